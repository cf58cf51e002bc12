//! Any bytes as a mailbox: no panic, the header re-emits byte for byte, and a parsed CoE message
//! re-emits to the same bytes.
#![no_main]

use ethercat::wire::coe::{
    CoeHeader, CoeMessage, EntryDescription, ObjectDescription, SDO_LENGTH, SdoInformationService,
};
use ethercat::wire::mailbox::{HEADER_LENGTH, Header, MailboxError};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok((header, payload)) = Header::parse(bytes) else { return };
    assert_eq!(payload.len(), usize::from(header.length));
    assert_eq!(header.emit(), bytes[..HEADER_LENGTH]);
    if let Ok(error) = MailboxError::parse(payload) {
        assert_eq!(error.emit(), payload[..4]);
    }
    let Ok((coe, _)) = CoeHeader::parse(payload) else { return };
    assert_eq!(coe.emit(), payload[..2]);
    let Ok(message) = CoeMessage::parse(payload) else { return };
    let mut buffer = vec![0xEE; payload.len().max(SDO_LENGTH)];
    let length = message.emit(&mut buffer).expect("what was parsed fits where it was");
    assert_eq!(CoeMessage::parse(&buffer[..length]), Ok(message));
    if let CoeMessage::SdoInformation(information) = message {
        match information.service {
            SdoInformationService::ObjectResponse(data) => {
                let Ok(object) = ObjectDescription::parse(data) else { return };
                let length = object.emit(&mut buffer).expect("what was parsed fits where it was");
                assert_eq!(&buffer[..length], data);
            }
            SdoInformationService::EntryResponse(data) => {
                let Ok(entry) = EntryDescription::parse(data) else { return };
                let length = entry.emit(&mut buffer).expect("what was parsed fits where it was");
                assert_eq!(&buffer[..length], data);
                let _ = entry.values();
            }
            _ => {}
        }
    }
});
