//! Any frames and any times at a segment with a digital output and a servo drive with an open
//! mailbox: no panic, no endless loop, and a reply has the length and the headers of its frame.
//!
//! The input is a row of commands: a byte that says what to do, and what that needs.
#![no_main]

use core::time::Duration;
use std::sync::LazyLock;

use ethercat::al::AlState;
use ethercat::link::{MAXIMUM_FRAME_LENGTH, Segment as _};
use ethercat::register::{self, SyncManager};
use ethercat::sii::{Identity, SiiSyncManager};
use ethercat::time::Instant;
use ethercat::wire::frame::DATAGRAMS_OFFSET;
use ethercat::wire::{Address, Command, DatagramHeader, FrameBuilder, MacAddress};
use libfuzzer_sys::fuzz_target;
use simulator::application::digital::{DigitalOutputs, Wires};
use simulator::application::servo::{self, ServoDescription, ServoDrive};
use simulator::application::sii::{digital_outputs, with_coe};
use simulator::coe::DeviceDescription;
use simulator::{Segment, SubDevice};

fuzz_target!(|bytes: &[u8]| {
    let mut segment = segment();
    let mut now = Instant::from_nanos(1_000_000);
    let mut rest = bytes;
    while let [what, behind @ ..] = rest {
        rest = match what {
            // A whole frame as it is.
            0 => frame(&mut segment, now, behind, false),
            // The datagrams of a frame with right headers.
            1..=0xBF => frame(&mut segment, now, behind, true),
            // Up to four steps of an application.
            0xC0..=0xF7 => {
                now = now + Duration::from_nanos(u64::from(what & 0x3F) * 16_000);
                segment.advance(now);
                behind
            }
            // A tenth of a second and more: watchdogs.
            0xF8..=0xFB => {
                now = now + Duration::from_millis(110);
                segment.advance(now);
                behind
            }
            _ => {
                let [place, behind @ ..] = behind else { break };
                let (position, port) = (usize::from(place >> 4), usize::from(place & 0x0F));
                match what {
                    0xFC => _ = segment.disconnect(position, port),
                    0xFD => _ = segment.connect(position, port),
                    0xFE => _ = segment.power_cycle(position),
                    _ => segment.disturb(position, port),
                }
                behind
            }
        };
    }
});

/// Passes the frame with the length in the first two bytes of `bytes`, and returns the bytes behind
/// it.
fn frame<'a>(segment: &mut Segment, now: Instant, bytes: &'a [u8], right_headers: bool) -> &'a [u8] {
    let [low, high, behind @ ..] = bytes else { return &[] };
    let length = usize::from(u16::from_le_bytes([*low, *high])) % MAXIMUM_FRAME_LENGTH;
    let (content, behind) = behind.split_at(length.min(behind.len()));
    let mut frame = if right_headers { vec![0; DATAGRAMS_OFFSET] } else { Vec::new() };
    frame.extend(content);
    frame.truncate(MAXIMUM_FRAME_LENGTH);
    if right_headers {
        let announced = (frame.len() - DATAGRAMS_OFFSET) as u16 & 0x07FF | 0x1000;
        frame[12..14].copy_from_slice(&[0x88, 0xA4]);
        frame[14..16].copy_from_slice(&announced.to_le_bytes());
    }
    let sent = frame.clone();
    if segment.process_frame(now, &mut frame) {
        assert_eq!(frame[..6], sent[..6]);
        assert_eq!(frame[12..frame.len().min(16)], sent[12..frame.len().min(16)]);
        assert_eq!(frame[6], sent[6] | 2);
    }
    behind
}

/// Images each segment is made of: described, laid out and emitted once.
struct Parts {
    outputs: Vec<u8>,
    drive: Vec<u8>,
    mailbox: Vec<SyncManager>,
    application: ServoDrive,
}

static PARTS: LazyLock<Parts> = LazyLock::new(|| {
    let image = with_coe(Identity::default(), "drive", servo::default_mapping()).image();
    let settings = |it: &SiiSyncManager| SyncManager {
        physical_address: it.physical_address,
        length: it.length,
        control: it.control,
        active: true,
    };
    let device = ServoDescription::new(DeviceDescription::new(Identity::default(), "drive"));
    Parts {
        outputs: digital_outputs(Identity::default(), "outputs", 8).image().emit(),
        drive: image.emit(),
        mailbox: image.sync_managers().iter().take(2).map(settings).collect(),
        application: ServoDrive::new(&device).expect("the default drive"),
    }
});

fn segment() -> Segment {
    let parts = &*PARTS;
    let outputs = DigitalOutputs::new(8, Wires::new()).expect("eight outputs");
    let mut segment = Segment::new(vec![
        SubDevice::from_sii(&parts.outputs, Box::new(outputs)),
        SubDevice::from_sii(&parts.drive, Box::new(parts.application.clone())),
    ]);
    // The drive's mailbox, and its state PreOp.
    for (number, settings) in (0..).zip(&parts.mailbox) {
        write(&mut segment, SyncManager::register(number), &settings.emit());
    }
    write(&mut segment, register::AL_CONTROL, &[AlState::PreOp.number(), 0]);
    segment.advance(Instant::from_nanos(1_000_000));
    assert_eq!(segment.sub_devices()[1].al_status().al_state(), Some(AlState::PreOp));
    segment
}

/// Writes to the drive, the second SubDevice.
fn write(segment: &mut Segment, register: u16, bytes: &[u8]) {
    let mut buffer = [0; 100];
    let mut builder = FrameBuilder::new(&mut buffer, MacAddress::MAIN_DEVICE);
    let address = Address::at_position(1, register);
    builder.push_data(DatagramHeader::new(Command::Apwr, 0, address, bytes.len() as u16), bytes);
    let length = builder.finish();
    assert!(segment.process_frame(Instant::EPOCH, &mut buffer[..length]));
}
