//! Simulated CP2112, eight GPIO lines on USB: the kernel's driver `hid-cp2112` talks to this test
//! over `uhid`. Reports follow Silicon Labs' AN495, as far as that driver uses them.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;

/// State of its lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines {
    /// Bit mask of the lines that are outputs.
    pub(crate) outputs: u8,
    /// Lines that were set, in order, with their levels.
    pub(crate) set: Vec<(u32, bool)>,
}

/// Simulated chip, present while this program runs.
#[derive(Debug)]
pub(crate) struct Expander {
    lines: Arc<Mutex<Lines>>,
}

impl Expander {
    /// Connects the chip; the error names what it needs.
    pub(crate) fn plug_in() -> Result<Self, String> {
        let uhid = OpenOptions::new().read(true).write(true).open("/dev/uhid");
        let mut uhid = uhid.map_err(|error| format!("/dev/uhid: {error}"))?;
        uhid.write_all(&create()).map_err(|error| format!("/dev/uhid takes no device: {error}"))?;
        let lines = Arc::new(Mutex::new(Lines::default()));
        let seen = Arc::clone(&lines);
        thread::spawn(move || serve(uhid, &seen));
        Ok(Self { lines })
    }

    pub(crate) fn lines(&self) -> Lines {
        self.lines.lock().unwrap().clone()
    }

    /// GPIO chip that the kernel has created for it, if any.
    pub(crate) fn chip() -> Option<PathBuf> {
        let chips = gpiocdev::chip::chips().ok()?;
        chips.into_iter().find(|chip| {
            let info = gpiocdev::chip::Chip::from_path(chip).and_then(|chip| chip.info());
            info.is_ok_and(|info| info.label == "cp2112_gpio")
        })
    }
}

/// Event numbers of linux/uhid.h.
const GET_REPORT: u32 = 9;
const GET_REPORT_REPLY: u32 = 10;
const CREATE2: u32 = 11;
const SET_REPORT: u32 = 13;
const SET_REPORT_REPLY: u32 = 14;

/// Feature reports of the chip, and their lengths including the number.
const GPIO_CONFIGURATION: (u8, usize) = (2, 5);
const GPIO_GET: (u8, usize) = (3, 2);
const GPIO_SET: (u8, usize) = (4, 3);
const VERSION: (u8, usize) = (5, 3);
const SMBUS_CONFIGURATION: (u8, usize) = (6, 14);
const LOCK: (u8, usize) = (0x20, 2);

/// `struct uhid_create2_req`: a vendor-specific device with one feature report, on USB, 10c4:ea90.
fn create() -> Vec<u8> {
    let descriptor = [
        0x06, 0x00, 0xff, 0x09, 0x01, 0xa1, 0x01, 0x85, 0x02, 0x09, 0x01, 0x15, 0x00, 0x26, 0xff, 0x00,
        0x75, 0x08, 0x95, 0x04, 0xb1, 0x02, 0xc0,
    ];
    let mut event = CREATE2.to_ne_bytes().to_vec();
    let mut text = |text: &[u8], length: usize| {
        event.extend_from_slice(text);
        event.resize(event.len() + length - text.len(), 0);
    };
    text(b"CP2112 of a test", 128);
    text(b"", 64);
    text(b"", 64);
    event.extend_from_slice(&(descriptor.len() as u16).to_ne_bytes());
    event.extend_from_slice(&3_u16.to_ne_bytes());
    for number in [0x10c4_u32, 0xea90, 0x0100, 0] {
        event.extend_from_slice(&number.to_ne_bytes());
    }
    event.extend_from_slice(&descriptor);
    event
}

/// Answers the kernel until the program ends.
fn serve(mut uhid: File, lines: &Mutex<Lines>) {
    let mut event = [0; 4_380];
    while let Ok(length) = uhid.read(&mut event) {
        let event = &event[..length];
        let word = |place: usize| u32::from_ne_bytes(event[place..place + 4].try_into().unwrap());
        let reply = match word(0) {
            GET_REPORT => {
                let report = get(event[8], &lines.lock().unwrap());
                let mut reply = [GET_REPORT_REPLY, word(4)].map(u32::to_ne_bytes).concat();
                reply.extend_from_slice(&0_u16.to_ne_bytes());
                reply.extend_from_slice(&(report.len() as u16).to_ne_bytes());
                reply.extend_from_slice(&report);
                reply
            }
            SET_REPORT => {
                set(&event[12..], &mut lines.lock().unwrap());
                let mut reply = [SET_REPORT_REPLY, word(4)].map(u32::to_ne_bytes).concat();
                reply.extend_from_slice(&0_u16.to_ne_bytes());
                reply
            }
            _ => continue,
        };
        if uhid.write_all(&reply).is_err() {
            return;
        }
    }
}

/// Answers a get-report: configurations as they were set, all inputs low.
fn get(number: u8, lines: &Lines) -> Vec<u8> {
    let known = [GPIO_CONFIGURATION, GPIO_GET, GPIO_SET, VERSION, SMBUS_CONFIGURATION, LOCK];
    let length = known.iter().find(|(known, _)| *known == number).map_or(1, |(_, length)| *length);
    let mut report = vec![0; length];
    report[0] = number;
    if number == GPIO_CONFIGURATION.0 {
        report[1] = lines.outputs;
    }
    report
}

/// Handles a set-report.
fn set(report: &[u8], lines: &mut Lines) {
    if report[0] == GPIO_CONFIGURATION.0 {
        lines.outputs = report[1];
    } else if report[0] == GPIO_SET.0 {
        let which = (0..8).filter(|line| report[2] & 1 << line != 0);
        lines.set.extend(which.map(|line| (line, report[1] & 1 << line != 0)));
    }
}
