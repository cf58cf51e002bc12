//! Two serial lines as of an EL6022: bytes pass by a handshake in the process data. Each line
//! receives the bytes that the other sends, as with a cable between them.
//!
//! Simplifications: 9600 baud, ten bits a byte, independent of the settings. No parity or framing
//! errors, no continuous sending.

use std::collections::VecDeque;

use ethercat::pdo::{MAPPING_INPUTS, MAPPING_OUTPUTS, PdoMapping};
use ethercat::time::Instant;
use ethercat::wire::coe::AccessRights;

use super::coe_application::CoeApplication;
use super::fixed_pdo;
use super::sii::entry;
use crate::coe::{CoeDevice, DataType, DeviceDescription, Entry, EntryId, Object, READ_WRITE, common};

/// Lines.
pub const LINES: usize = 2;

/// Bytes of data in each direction's process data of a line.
pub const DATA: usize = 22;

/// Control bits: send, received, initialise; the number of bytes is in the high byte.
pub const TRANSMIT_REQUEST: u16 = 1 << 0;
/// Toggled when the bytes received were taken.
pub const RECEIVE_ACCEPTED: u16 = 1 << 1;
/// Set to empty both buffers.
pub const INIT_REQUEST: u16 = 1 << 2;

/// Status bits: as the request when the bytes are taken.
pub const TRANSMIT_ACCEPTED: u16 = 1 << 0;
/// Toggled with new bytes.
pub const RECEIVE_REQUEST: u16 = 1 << 1;
/// Set while both buffers are kept empty.
pub const INIT_ACCEPTED: u16 = 1 << 2;
/// The buffer of received bytes is full; others are lost.
pub const BUFFER_FULL: u16 = 1 << 3;

/// Capacity of the buffers, in bytes.
const SEND_BUFFER: usize = 128;
const RECEIVE_BUFFER: usize = 864;

/// Time of a byte at 9600 baud, in ns.
const BYTE_TIME: u64 = 1_041_667;

/// First objects: data of the first line; control and status are one above. Each line is 0x10
/// behind.
const OUTPUTS: u16 = 0x7000;
const INPUTS: u16 = 0x6000;
const LINE_STEP: u16 = 0x10;
const WORD: u8 = 0x01;
const FIRST_DATA: u8 = 0x11;

/// A terminal with two serial lines.
#[derive(Clone, Debug)]
pub struct SerialLines {
    coe: CoeDevice,
    lines: [SerialLine; LINES],
}

#[derive(Clone, Debug)]
struct SerialLine {
    control: EntryId,
    status: EntryId,
    data_out: Vec<EntryId>,
    data_in: Vec<EntryId>,
    sending: VecDeque<u8>,
    received: VecDeque<u8>,
    /// Time at which the byte on the line has passed.
    next: Option<Instant>,
    transmit: bool,
    receive: bool,
    length: u16,
}

impl SerialLines {
    /// The terminal, with its two lines connected.
    #[must_use]
    pub fn new(device: &DeviceDescription) -> Self {
        let mut dictionary = common::dictionary(device);
        let inputs = AccessRights::READ.with(AccessRights::TX_PDO_MAPPABLE);
        let outputs = READ_WRITE.with(AccessRights::RX_PDO_MAPPABLE);
        for line in 0..LINES as u16 {
            for (first, word, data, access) in
                [(OUTPUTS, "Ctrl", "Data Out", outputs), (INPUTS, "Status", "Data In", inputs)]
            {
                let index = first + LINE_STEP * line;
                let bytes = (0..DATA as u8)
                    .map(|it| Entry::new(FIRST_DATA + it, format!("{data} {it}"), DataType::U8, access));
                dictionary.add(Object::record(
                    index,
                    format!("COM {data} Ch.{}", line + 1),
                    0,
                    bytes.collect(),
                ));
                let word_entry = Entry::new(WORD, word, DataType::U16, access);
                let name = format!("COM {word} Ch.{}", line + 1);
                dictionary.add(Object::record(index + 1, name, 0, vec![word_entry]));
            }
        }
        common::add_mapping(&mut dictionary, &mapping(), 0);
        let lines = core::array::from_fn(|line| {
            let find = |index: u16, sub_index| {
                let index = index + LINE_STEP * line as u16;
                dictionary.find(index, sub_index).expect("all entries were added above")
            };
            let data =
                |first: u16| (0..DATA as u8).map(|it| find(first, FIRST_DATA + it)).collect::<Vec<_>>();
            SerialLine {
                control: find(OUTPUTS + 1, WORD),
                status: find(INPUTS + 1, WORD),
                data_out: data(OUTPUTS),
                data_in: data(INPUTS),
                sending: VecDeque::with_capacity(SEND_BUFFER),
                received: VecDeque::with_capacity(RECEIVE_BUFFER),
                next: None,
                transmit: false,
                receive: false,
                length: 0,
            }
        });
        Self { coe: CoeDevice::new(dictionary), lines }
    }

    /// Follows the handshake of line `number`.
    fn shake_hands(&mut self, number: usize, control: u16) {
        let dictionary = self.coe.dictionary_mut();
        let line = &mut self.lines[number];
        let mut status = 0;
        let (request, accepted) = (control & TRANSMIT_REQUEST != 0, control & RECEIVE_ACCEPTED != 0);
        if control & INIT_REQUEST != 0 {
            line.sending.clear();
            line.received.clear();
            (line.transmit, line.receive, line.length, line.next) = (request, accepted, 0, None);
            status |= INIT_ACCEPTED;
        } else {
            let length = usize::from(control >> 8).min(DATA);
            if request != line.transmit && line.sending.len() + length <= SEND_BUFFER {
                let bytes = line.data_out[..length].iter().map(|&id| dictionary.get(id) as u8);
                line.sending.extend(bytes);
                line.transmit = request;
            }
            if accepted == line.receive && !line.received.is_empty() {
                let length = line.received.len().min(DATA);
                for (&id, byte) in line.data_in.iter().zip(line.received.drain(..length)) {
                    dictionary.set(id, byte.into());
                }
                line.length = length as u16;
                line.receive = !line.receive;
            }
        }
        if line.received.len() >= RECEIVE_BUFFER {
            status |= BUFFER_FULL;
        }
        status |= if line.transmit { TRANSMIT_ACCEPTED } else { 0 };
        status |= if line.receive { RECEIVE_REQUEST } else { 0 };
        dictionary.set(line.status, i64::from(status | line.length << 8));
    }

    /// Moves the bytes that have passed by `now` to the other line.
    fn pass(&mut self, number: usize, now: Instant) {
        loop {
            let line = &mut self.lines[number];
            if line.sending.is_empty() {
                line.next = None;
                return;
            }
            let due =
                *line.next.get_or_insert(Instant::from_nanos(now.as_nanos().saturating_add(BYTE_TIME)));
            if due > now {
                return;
            }
            line.next = Some(Instant::from_nanos(due.as_nanos().saturating_add(BYTE_TIME)));
            let byte = line.sending.pop_front();
            let other = &mut self.lines[(number + 1) % LINES].received;
            if other.len() < RECEIVE_BUFFER {
                other.extend(byte);
            }
        }
    }
}

/// PDOs: a word and [`DATA`] bytes for each line and direction.
#[must_use]
pub fn mapping() -> PdoMapping {
    let pdos = |first: u16, objects: u16, sync_manager, word: &str, data: &str, name: &str| {
        let pdo = |line: u16| {
            let index = objects + LINE_STEP * line;
            let bytes = (0..DATA as u8)
                .map(|it| entry(index, FIRST_DATA + it, DataType::U8, &format!("{data} {it}")));
            let word = entry(index + 1, WORD, DataType::U16, word);
            let name = format!("COM {name} Ch.{}", line + 1);
            fixed_pdo(first + line, sync_manager, &name, [word].into_iter().chain(bytes).collect())
        };
        (0..LINES as u16).map(pdo).collect()
    };
    PdoMapping {
        outputs: pdos(MAPPING_OUTPUTS + 4, OUTPUTS, 2, "Ctrl", "Data Out", "RxPDO-Map Outputs"),
        inputs: pdos(MAPPING_INPUTS + 4, INPUTS, 3, "Status", "Data In", "TxPDO-Map Inputs"),
    }
}

impl CoeApplication for SerialLines {
    fn device(&self) -> &CoeDevice {
        &self.coe
    }

    fn device_mut(&mut self) -> &mut CoeDevice {
        &mut self.coe
    }

    fn work(&mut self, now: Instant, operational: bool) {
        for number in 0..LINES {
            if operational {
                let control = self.coe.dictionary().get(self.lines[number].control) as u16;
                self.shake_hands(number, control);
            }
            self.pass(number, now);
        }
    }

    fn restart(&mut self) {
        for line in &mut self.lines {
            line.sending.clear();
            line.received.clear();
            (line.transmit, line.receive, line.length, line.next) = (false, false, 0, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use ethercat::sii::Identity;

    use super::*;
    use crate::application::{Application, ProcessDataLengths};

    /// Bytes of a line's process data.
    const LINE: usize = 2 + DATA;

    struct Bench {
        lines: SerialLines,
        now: Instant,
        outputs: [u8; 2 * LINE],
        inputs: [u8; 2 * LINE],
    }

    impl Bench {
        fn new() -> Self {
            let lines = SerialLines::new(&DeviceDescription::new(Identity::default(), "device"));
            Self { lines, now: Instant::EPOCH, outputs: [0; 2 * LINE], inputs: [0; 2 * LINE] }
        }

        fn control(&mut self, line: usize, word: u16, data: &[u8]) {
            let start = LINE * line;
            self.outputs[start..start + 2].copy_from_slice(&word.to_le_bytes());
            self.outputs[start + 2..start + 2 + data.len()].copy_from_slice(data);
        }

        fn step(&mut self, milliseconds: u64) {
            for _ in 0..4 * milliseconds {
                self.now = self.now + Duration::from_micros(250);
                self.lines.step(self.now, Some(&self.outputs), &mut self.inputs);
            }
        }

        fn status(&self, line: usize) -> u16 {
            u16::from_le_bytes([self.inputs[LINE * line], self.inputs[LINE * line + 1]])
        }

        fn data(&self, line: usize) -> &[u8] {
            let start = LINE * line + 2;
            &self.inputs[start..start + usize::from(self.status(line) >> 8)]
        }
    }

    // feature(signals): simulated terminals as they are built: EL1008, EL1252, EL2004, EL3104, EL4034, EL5101, EL6022
    #[test]
    fn bytes_arrive_at_the_baud_rate_of_the_line() {
        let mut bench = Bench::new();
        assert_eq!(bench.lines.process_data_lengths(), ProcessDataLengths { outputs: 48, inputs: 48 });
        bench.control(0, 5 << 8 | TRANSMIT_REQUEST, b"hello");
        bench.step(1);
        assert_eq!((bench.status(0), bench.status(1)), (TRANSMIT_ACCEPTED, 0), "still on the line");
        bench.step(2);
        // The first two bytes have passed: they are shown, and stay until they are accepted.
        assert_eq!((bench.status(1), bench.data(1)), (1 << 8 | RECEIVE_REQUEST, &b"h"[..]));
        bench.step(10);
        assert_eq!(bench.data(1), b"h");
        bench.control(1, RECEIVE_ACCEPTED, &[]);
        bench.step(1);
        assert_eq!((bench.status(1), bench.data(1)), (4 << 8, &b"ello"[..]));
    }

    #[test]
    fn initialising_empties_buffers_and_full_ones_accept_nothing() {
        let mut bench = Bench::new();
        let mut request = 0;
        for _ in 0..7 {
            request ^= TRANSMIT_REQUEST;
            bench.control(0, 22 << 8 | request, &[0x55; DATA]);
            bench.lines.step(bench.now, Some(&bench.outputs), &mut bench.inputs);
        }
        // Five times 22 bytes fit.
        assert_eq!(bench.lines.lines[0].sending.len(), 110);
        bench.control(0, INIT_REQUEST, &[]);
        bench.step(1);
        assert_eq!((bench.status(0), bench.lines.lines[0].sending.len()), (INIT_ACCEPTED, 0));
        bench.control(0, 0, &[]);
        bench.step(1);
        assert_eq!(bench.status(0), 0);
    }
}
