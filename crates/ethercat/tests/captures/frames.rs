//! Frames and datagrams of real devices.

use onbeat_ethercat::link::MAXIMUM_FRAME_LENGTH;
use onbeat_ethercat::wire::{Frame, FrameError};

use crate::recording::Recording;

// feature(protocol): Ethernet and EtherCAT frames, every datagram command, byte for byte as real devices sent them
#[test]
fn every_recorded_frame_re_emits_byte_for_byte() {
    for recording in Recording::all() {
        let mut ethercat = 0;
        for (number, bytes) in recording.frames.iter().enumerate() {
            let place = format!("{} frame {}", recording.name(), number + 1);
            let frame = match Frame::parse(bytes) {
                Err(FrameError::NotEtherCat { .. }) => continue,
                frame => frame.unwrap_or_else(|error| panic!("{place}: {error}")),
            };
            let mut buffer = [0xEE; MAXIMUM_FRAME_LENGTH];
            let length = frame.emit(&mut buffer).unwrap_or_else(|| panic!("{place} does not fit"));
            assert!(buffer[..length] == bytes[..], "{place}:\n{:02x?}\n{:02x?}", &buffer[..length], bytes);
            ethercat += 1;
        }
        assert!(ethercat > 0, "{} holds no EtherCAT frame", recording.name());
    }
}

// feature(protocol): the same frames and datagrams as tshark sees
#[test]
fn frames_and_datagrams_are_the_ones_tshark_sees() {
    let fields = ["ecat.cmd", "ecat.idx", "ecat.adp", "ecat.ado", "ecat.lad", "ecat.cnt"];
    for recording in Recording::all() {
        let Some(theirs) = recording.tshark("ecat", &fields) else { return };
        let ours: Vec<_> = recording.frames.iter().filter_map(|bytes| Frame::parse(bytes).ok()).collect();
        assert_eq!(ours.len(), theirs.len(), "{}: frames", recording.name());
        for (number, (frame, their_fields)) in ours.iter().zip(&theirs).enumerate() {
            let place = format!("{}, EtherCAT frame {}", recording.name(), number + 1);
            assert_eq!(&described(frame)[..], their_fields, "{place}");
        }
    }
}

/// The fields of all datagrams as tshark prints them.
fn described(frame: &Frame<'_>) -> [String; 6] {
    let mut fields: [Vec<String>; 6] = Default::default();
    for datagram in frame.datagrams() {
        let header = datagram.header;
        fields[0].push(format!("0x{:02x}", header.command.number()));
        fields[1].push(format!("0x{:02x}", header.index));
        if header.command.is_logical() {
            fields[4].push(format!("0x{:08x}", header.address));
        } else {
            fields[2].push(format!("0x{:04x}", header.adp()));
            fields[3].push(format!("0x{:04x}", header.ado()));
        }
        fields[5].push(datagram.working_counter.to_string());
    }
    fields.map(|values| values.join(","))
}
