//! Any bytes as a mailbox: no panic, and what parses as CoE re-emits to the same message.
#![no_main]

use ethercat::wire::coe::CoeMessage;
use ethercat::wire::mailbox::{Header, MailboxError};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok((header, payload)) = Header::parse(bytes) else { return };
    assert_eq!(payload.len(), usize::from(header.length));
    let _ = MailboxError::parse(payload).map(|error| error.to_string());
    let Ok(message) = CoeMessage::parse(payload) else { return };
    let mut buffer = vec![0; payload.len() + 16];
    // A message may announce less than it carries; what is emitted must then say so.
    let Ok(length) = message.emit(&mut buffer) else { return };
    assert_eq!(CoeMessage::parse(&buffer[..length]), Ok(message));
});
