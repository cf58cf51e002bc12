//! Any bytes as an Ethernet frame: no panic, and what parses re-emits byte for byte.
#![no_main]

use ethercat::link::MINIMUM_FRAME_LENGTH;
use ethercat::wire::Frame;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(frame) = Frame::parse(bytes) else { return };
    let mut buffer = vec![0xEE; bytes.len().max(MINIMUM_FRAME_LENGTH)];
    let length = frame.emit(&mut buffer).expect("a buffer as long as the frame holds it");
    assert_eq!(&buffer[..length], bytes);
});
