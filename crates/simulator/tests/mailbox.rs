//! The mailbox on the wire: hand-over, counters, repeats, errors (ETG.1000.4, 5.6 and 6.10).

use crate::bus;

use bus::{Bus, sii};
use ethercat::al::AlState::{Init, PreOp};
use ethercat::pdo::PdoMapping;
use ethercat::register::SyncManager;
use ethercat::register::sync_manager::{ACTIVATE_REPEAT, PDI_CONTROL_REPEAT_ACK};
use ethercat::sdo_abort::AbortCode;
use ethercat::sii::{Identity, Image, MailboxProtocols};
use ethercat::time::Instant;
use ethercat::wire::coe::{SdoInformation, SdoInformationService};
use ethercat::wire::mailbox::{self, Header, MailboxError, MailboxType};
use onbeat_simulator::SubDevice;
use onbeat_simulator::application::sii::with_coe;
use onbeat_simulator::application::{
    Application, GenericDevice, NoApplication, ProcessDataLengths, Replies,
};

const OUT: u16 = 0x1000;
const IN: u16 = 0x1080;
const LENGTH: u16 = 64;

/// Answers each message with the count of messages and its contents; a request of 0xEE is answered
/// twice.
#[derive(Default)]
struct Counting {
    seen: u8,
}

impl Application for Counting {
    fn process_data_lengths(&self) -> ProcessDataLengths {
        ProcessDataLengths::default()
    }

    fn step(&mut self, _now: Instant, _outputs: Option<&[u8]>, _inputs: &mut [u8]) {}

    fn coe(&mut self, request: &[u8], replies: &mut Replies<'_>) -> Result<(), MailboxError> {
        assert_eq!(replies.payload_limit(), usize::from(LENGTH) - mailbox::HEADER_LENGTH);
        self.seen += 1;
        replies.push(&[self.seen, request[0]]);
        if request[0] == 0xEE {
            replies.push(&[self.seen, 0xFF]);
        }
        Ok(())
    }
}

fn open(application: Box<dyn Application>) -> Bus {
    let mut image = sii(0, 0);
    for (word, value) in [(0x18, OUT), (0x19, LENGTH), (0x1A, IN), (0x1B, LENGTH), (0x1C, 4)] {
        image[word * 2..word * 2 + 2].copy_from_slice(&value.to_le_bytes());
    }
    let mut bus = Bus::line(vec![SubDevice::from_sii(&image, application)]);
    bus.sync_manager(0, 0, SyncManager::CONTROL_MAILBOX_OUT, OUT, LENGTH);
    bus.sync_manager(0, 1, SyncManager::CONTROL_MAILBOX_IN, IN, LENGTH);
    assert_eq!(bus.request(0, PreOp), (2, 0));
    bus
}

fn send(bus: &mut Bus, kind: MailboxType, counter: u8, payload: &[u8]) {
    let mut message = [0; LENGTH as usize];
    mailbox::emit(kind, counter, payload, &mut message).unwrap();
    assert_eq!(bus.write(0, OUT, &message), 1);
    bus.wait(1);
}

fn receive(bus: &mut Bus) -> Option<(Header, Vec<u8>)> {
    let reply = bus.read(0, IN, usize::from(LENGTH));
    (reply.working_counter == 1).then(|| {
        let (header, payload) = Header::parse(&reply.data).unwrap();
        (header, payload.to_vec())
    })
}

fn payload(bus: &mut Bus) -> Option<Vec<u8>> {
    receive(bus).map(|(_, payload)| payload)
}

/// Toggles the repeat request and waits for the acknowledge.
fn repeat(bus: &mut Bus) {
    let activate = SyncManager::register(1) + 6;
    let request = bus.read(0, activate, 1).data[0] ^ ACTIVATE_REPEAT;
    bus.write(0, activate, &[request]);
    bus.wait(1);
    let acknowledge = bus.read(0, activate + 1, 1).data[0] & PDI_CONTROL_REPEAT_ACK;
    assert_eq!(acknowledge, request & ACTIVATE_REPEAT);
}

#[test]
fn a_request_is_answered_and_replies_are_numbered() {
    let mut bus = open(Box::<Counting>::default());
    assert_eq!(receive(&mut bus), None);
    for counter in 1..=8 {
        send(&mut bus, MailboxType::Coe, (counter - 1) % 7 + 1, &[counter, 0]);
        let (header, payload) = receive(&mut bus).unwrap();
        assert_eq!((header.kind, header.counter), (MailboxType::Coe, (counter - 1) % 7 + 1));
        assert_eq!(payload, [counter, counter]);
        assert_eq!(receive(&mut bus), None);
    }
}

#[test]
fn a_request_with_the_same_counter_is_the_same_request() {
    let mut bus = open(Box::<Counting>::default());
    send(&mut bus, MailboxType::Coe, 3, &[1, 0]);
    assert_eq!(payload(&mut bus), Some(vec![1, 1]));
    send(&mut bus, MailboxType::Coe, 3, &[1, 0]);
    assert_eq!(payload(&mut bus), None);
    // Counter 0 disables the check.
    for seen in [2, 3] {
        send(&mut bus, MailboxType::Coe, 0, &[1, 0]);
        assert_eq!(payload(&mut bus), Some(vec![seen, 1]));
    }
    // Counting restarts with the mailbox.
    send(&mut bus, MailboxType::Coe, 5, &[1, 0]);
    payload(&mut bus);
    bus.request(0, Init);
    bus.request(0, PreOp);
    send(&mut bus, MailboxType::Coe, 5, &[1, 0]);
    assert_eq!(payload(&mut bus), Some(vec![5, 1]));
}

#[test]
fn a_lost_reply_is_repeated_on_request() {
    let mut bus = open(Box::<Counting>::default());
    send(&mut bus, MailboxType::Coe, 1, &[7, 0]);
    let lost = receive(&mut bus).unwrap();
    repeat(&mut bus);
    assert_eq!(receive(&mut bus), Some(lost.clone()));
    assert_eq!(receive(&mut bus), None);
    repeat(&mut bus);
    assert_eq!(receive(&mut bus), Some(lost));
}

#[test]
fn a_repeated_reply_does_not_lose_the_one_behind_it() {
    let mut bus = open(Box::<Counting>::default());
    send(&mut bus, MailboxType::Coe, 1, &[0xEE, 0]);
    let first = receive(&mut bus).unwrap();
    bus.wait(1); // the second reply is in the mailbox
    repeat(&mut bus);
    repeat(&mut bus);
    assert_eq!(receive(&mut bus), Some(first));
    bus.wait(1);
    assert_eq!(payload(&mut bus), Some(vec![1, 0xFF]));
    bus.wait(1);
    assert_eq!(receive(&mut bus), None);
}

fn error(bus: &mut Bus) -> MailboxError {
    let (header, payload) = receive(bus).unwrap();
    assert_eq!(header.kind, MailboxType::Error);
    MailboxError::parse(&payload).unwrap()
}

// feature(simulator): unknown mailbox protocols, CoE services and SDO information operations are answered
#[test]
fn unknown_services_and_operations_of_coe_are_answered() {
    let image = with_coe(Identity::default(), "device", PdoMapping::default()).image();
    let mut bus = open(Box::new(GenericDevice::from_sii(&image).unwrap()));
    for service in 0..16_u8 {
        let expected = match service {
            1 | 3..=7 => MailboxError::SERVICE_NOT_SUPPORTED,
            0 | 9.. => MailboxError::INVALID_HEADER,
            _ => continue,
        };
        send(&mut bus, MailboxType::Coe, 0, &[0, service << 4, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(error(&mut bus), expected, "service {service}");
    }
    // SDO information: operations that are not defined, and unsolicited answers.
    for operation in [0, 2, 4, 6, 8, 9, 0x7F] {
        send(&mut bus, MailboxType::Coe, 0, &[0, 0x80, operation, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let answer = payload(&mut bus).unwrap();
        let SdoInformationService::Error(code) = SdoInformation::parse(&answer).unwrap().service else {
            panic!("operation {operation}: {answer:?}")
        };
        assert_eq!(code, AbortCode::UNKNOWN_COMMAND, "operation {operation}");
    }
    send(&mut bus, MailboxType::Coe, 0, &[0, 0x80]);
    assert_eq!(error(&mut bus), MailboxError::SIZE_TOO_SHORT);
    // An error is not answered, or the exchange would never end.
    send(&mut bus, MailboxType::Coe, 0, &[0, 0x80, 7, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(receive(&mut bus), None);
}

// feature(simulator): unknown mailbox protocols, CoE services and SDO information operations are answered
#[test]
fn unsimulated_protocols_of_a_real_image_are_answered() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/real/sii/akd.bin");
    let Ok(bytes) = std::fs::read(path) else { return testkit::skip!("needs {path}") };
    let image = Image::parse(&bytes).unwrap();
    let protocols = image.header.mailbox_protocols();
    assert!(protocols.contains(MailboxProtocols::EOE) && protocols.contains(MailboxProtocols::FOE));
    let mut bus = open(Box::new(GenericDevice::from_sii(&image).unwrap()));
    for number in (1..16).filter(|&number| number != 3) {
        send(&mut bus, MailboxType::from_number(number), 0, &[1, 0, 0, 0, 0, 0]);
        assert_eq!(
            error(&mut bus),
            MailboxError::UNSUPPORTED_PROTOCOL,
            "{}",
            MailboxType::from_number(number)
        );
    }
    send(&mut bus, MailboxType::Coe, 0, &[0, 0x20, 0x40, 0x00, 0x10, 0, 0, 0, 0, 0]);
    assert_eq!(receive(&mut bus).unwrap().0.kind, MailboxType::Coe);
}

#[test]
fn what_cannot_be_served_is_answered_with_a_mailbox_error() {
    let mut bus = open(Box::<Counting>::default());
    send(&mut bus, MailboxType::Foe, 1, &[1, 0]);
    assert_eq!(error(&mut bus), MailboxError::UNSUPPORTED_PROTOCOL);
    send(&mut bus, MailboxType::Coe, 2, &[1]);
    assert_eq!(error(&mut bus), MailboxError::SIZE_TOO_SHORT);
    let mut message = [0; LENGTH as usize];
    message[0] = LENGTH as u8;
    assert_eq!(bus.write(0, OUT, &message), 1);
    bus.wait(1);
    assert_eq!(error(&mut bus), MailboxError::INVALID_SIZE);
    let mut bus = open(Box::new(NoApplication));
    send(&mut bus, MailboxType::Coe, 1, &[1, 0]);
    assert_eq!(error(&mut bus), MailboxError::UNSUPPORTED_PROTOCOL);
}

#[test]
fn in_init_nothing_is_served() {
    let mut bus = open(Box::<Counting>::default());
    bus.request(0, Init);
    let mut message = [0; LENGTH as usize];
    mailbox::emit(MailboxType::Coe, 1, &[1, 0], &mut message).unwrap();
    assert_eq!(bus.write(0, OUT, &message), 0);
    bus.wait(5);
    assert_eq!(receive(&mut bus), None);
}
