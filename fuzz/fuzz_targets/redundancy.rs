//! Any two replies to the two copies of any frame: no panic, a frame that is no reply changes
//! nothing, and every working counter grows once by its growth in each of them.
//!
//! The input is a byte, and with an even one three frames of one length: a reply, a frame as it was
//! sent, and another reply to it. With an odd one it is a series of datagrams with right headers,
//! and changes of the two replies to them.
#![no_main]

use ethercat::link::MAXIMUM_FRAME_LENGTH;
use ethercat::redundancy::{identity, is_processed, second_copy, splice};
use ethercat::wire::frame::places;
use ethercat::wire::{Address, Command, DatagramHeader, FrameBuilder, MacAddress, read_u16};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let [how, rest @ ..] = bytes else { return };
    if how & 1 == 0 {
        let mut frames = rest.chunks_exact((rest.len() / 3).max(1));
        if let (Some(reply), Some(sent), Some(second)) = (frames.next(), frames.next(), frames.next()) {
            judge(reply, sent, second);
            look(sent.to_vec(), *how, reply);
        }
        return;
    }
    let (sent, changes) = built(rest);
    let copy = look(sent.clone(), *how, &sent);
    let (mut first, mut second) = (sent.clone(), copy.clone());
    for change in changes.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]]));
        let reply = if at >> 15 == 0 { &mut first } else { &mut second };
        if let Some(byte) = reply.get_mut(at & 0x7FFF) {
            *byte ^= change[2];
        }
    }
    // Whichever comes first; the one that is there alone is put into the frame as it was sent.
    judge(&first, &copy, &second);
    judge(&sent, &copy, &second);
    judge(&sent, &sent, &first);
});

/// Puts a reply to `sent` into another one, and compares the working counters.
fn judge(before: &[u8], sent: &[u8], second: &[u8]) {
    let mut reply = before.to_vec();
    if !splice(&mut reply, sent, second) {
        assert_eq!(reply, before);
        return;
    }
    for place in places(sent) {
        let at = place.working_counter();
        let counter = |bytes: &[u8]| read_u16(bytes, at).expect("of one length");
        let grown = counter(second).wrapping_sub(counter(sent));
        assert_eq!(counter(&reply), counter(before).wrapping_add(grown), "at {at}");
    }
}

/// The second copy of a frame, in a ring as `how` says; looks at all that a frame shows.
fn look(mut frame: Vec<u8>, how: u8, reply: &[u8]) -> Vec<u8> {
    let sent = frame.clone();
    let before = (how & 2 != 0).then(|| u16::from(how >> 4));
    let time = (how & 4 != 0).then_some(0x0102_0304_0506_0708);
    let contents = second_copy(&mut frame, before, time);
    _ = (contents.passed(&sent, reply), contents.time(&sent, reply));
    _ = (identity(reply), is_processed(reply));
    assert_eq!(frame.len(), sent.len());
    frame
}

/// A frame of the datagrams in `bytes`, and what is behind them: six bytes of a header each, and
/// its data.
fn built(bytes: &[u8]) -> (Vec<u8>, &[u8]) {
    let mut buffer = [0; MAXIMUM_FRAME_LENGTH];
    let mut builder = FrameBuilder::new(&mut buffer, MacAddress::MAIN_DEVICE);
    let mut rest = bytes;
    while let [command, length, a, b, c, d, behind @ ..] = rest {
        if *command == u8::MAX {
            rest = behind;
            break;
        }
        let Some((data, behind)) = behind.split_at_checked(usize::from(length % 32)) else { break };
        let command = Command::from_number(*command);
        let mut header = DatagramHeader::new(command, 7, Address::Logical(0), data.len() as u16);
        header.address = u32::from_le_bytes([*a, *b, *c, *d]);
        if builder.push_data(header, data).is_none() {
            break;
        }
        rest = behind;
    }
    let length = builder.finish();
    (buffer[..length].to_vec(), rest)
}
