//! Any bytes as an Ethernet frame: no panic, and what parses re-emits byte for byte.
#![no_main]

use ethercat::wire::{Frame, FrameBuilder};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(frame) = Frame::parse(bytes) else { return };
    let mut buffer = vec![0; bytes.len().max(60)];
    let mut builder = FrameBuilder::new(&mut buffer, frame.source());
    let mut counters = Vec::new();
    for datagram in frame.datagrams() {
        let place = builder.push_data(datagram.header, datagram.data).expect("it fitted before");
        counters.push((place.working_counter(), datagram.working_counter));
    }
    let length = builder.finish();
    for (at, counter) in counters {
        buffer[at..at + 2].copy_from_slice(&counter.to_le_bytes());
    }
    let again = Frame::parse(&buffer[..length]).expect("what was built parses");
    let same = again.datagrams().zip(frame.datagrams()).all(|(again, first)| {
        again.header == first.header
            && again.data == first.data
            && again.working_counter == first.working_counter
    });
    assert!(same && again.datagrams().count() == frame.datagrams().count());
});
