//! Any bytes as replies of a laser range finder, in any pieces: no panic, no unbounded memory, and
//! after all of it the next complete reply is still read.
#![no_main]

use devices::scip::{Replies, Reply, Session};
use libfuzzer_sys::fuzz_target;

const REPLY: &[u8] = b"\n\nBM\n00P\n\n";

fuzz_target!(|bytes: &[u8]| {
    let _ = Reply::parse(bytes);
    let piece = bytes.first().map_or(1, |&byte| usize::from(byte) + 1);
    let mut replies = Replies::new();
    let mut session = Session::new(0);
    let mut now = 0;
    for bytes in bytes.chunks(piece) {
        replies.push(bytes);
        while let Some(reply) = replies.next_reply() {
            if let Err(error) = reply {
                assert!(!error.to_string().is_empty());
            }
        }
        now += 300_000_000;
        session.handle_bytes(bytes, now);
        session.handle_timeout(now);
        while session.poll_event().is_some() {}
        if let Some(line) = session.poll_transmit() {
            assert!(line.ends_with(b"\n"));
        }
    }
    replies.push(REPLY);
    let last = std::iter::from_fn(|| replies.next_reply()).last();
    assert!(matches!(last, Some(Ok(_))), "{last:?}");
});
