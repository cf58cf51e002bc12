//! The server against the codec as its client.

use ethercat::wire::coe::{AccessRights, SdoInformationService as Information};
use ethercat::wire::coe::{EntryDescription, ListType, ObjectCode, ObjectDescription, ValueInfo};
use proptest::prelude::*;

use super::super::data_type::DataType;
use super::super::object::{Allowed, Entry, Object, READ_WRITE};
use super::*;

/// Mailboxes from the smallest the standard allows to a full frame, less six bytes of header.
const LIMITS: [usize; 6] = [10, 11, 26, 58, 122, 1478];

const TEXT: &str = "A text that is a good deal longer than the smallest mailbox";

fn server() -> CoeServer {
    let mut dictionary = ObjectDictionary::new();
    let number = |data_type| Entry::new(0, "number", data_type, READ_WRITE);
    dictionary.add(Object::variable(0x2000, number(DataType::U16).with_value(0x1234)));
    dictionary.add(Object::variable(0x2001, number(DataType::Unsigned(64)).with_value(-2)));
    let text = Entry::new(0, "text", DataType::VisibleString, READ_WRITE).with_text(TEXT);
    dictionary.add(Object::variable(0x2002, text));
    let mappable = READ_WRITE.with(AccessRights::RX_PDO_MAPPABLE);
    let ranged = Entry::new(1, "ranged", DataType::I16, mappable).with_allowed(Allowed::Range(-7, 7));
    let rest = (2..=40).map(|sub| Entry::new(sub, "", DataType::U32, READ_WRITE).with_value(sub.into()));
    let entries = core::iter::once(ranged).chain(rest).collect();
    dictionary.add(Object::record(0x2003, "record", 0, entries));
    let mut server = CoeServer::new(dictionary);
    server.enter(AlState::PreOp);
    server
}

fn exchange(server: &mut CoeServer, request: &SdoRequest<'_>, limit: usize) -> Vec<u8> {
    let mut message = vec![0; limit];
    let length = request.emit(&mut message).expect("the request fits the mailbox");
    let mut replies = raw_exchange(server, &message[..length], limit);
    assert!(replies.len() <= 1, "one reply at most");
    replies.pop_front().unwrap_or_default()
}

fn raw_exchange(server: &mut CoeServer, request: &[u8], limit: usize) -> VecDeque<Vec<u8>> {
    let mut queue = VecDeque::new();
    let _ = server.handle(request, &mut Replies::new(&mut queue, limit));
    assert!(queue.iter().all(|reply| reply.len() <= limit));
    queue
}

fn response(reply: &[u8]) -> Result<SdoResponse<'_>, AbortCode> {
    if let Ok(SdoRequest::Abort { code, .. }) = SdoRequest::parse(reply) {
        return Err(code);
    }
    Ok(SdoResponse::parse(reply).expect("a response or an abort"))
}

fn upload(
    server: &mut CoeServer,
    (index, sub_index, complete_access): (u16, u8, bool),
    limit: usize,
) -> Result<Vec<u8>, AbortCode> {
    let request = SdoRequest::InitiateUpload { index, sub_index, complete_access };
    let reply = exchange(server, &request, limit);
    let SdoResponse::InitiateUpload { payload, .. } = response(&reply)? else { panic!("{reply:?}") };
    let mut bytes = payload.data().to_vec();
    let total = payload.total_size();
    let mut toggle = false;
    while bytes.len() < total {
        let reply = exchange(server, &SdoRequest::UploadSegment { toggle }, limit);
        let SdoResponse::UploadSegment { toggle: echoed, last, data } = response(&reply)? else {
            panic!("{reply:?}")
        };
        bytes.extend_from_slice(data);
        assert_eq!((echoed, last), (toggle, bytes.len() == total));
        toggle = !toggle;
    }
    assert_eq!(bytes.len(), total);
    Ok(bytes)
}

fn download(
    server: &mut CoeServer,
    (index, sub_index, complete_access): (u16, u8, bool),
    bytes: &[u8],
    limit: usize,
) -> Result<(), AbortCode> {
    let payload = SdoPayload::fitting(bytes, limit);
    let mut sent = payload.data().len();
    let request = SdoRequest::InitiateDownload { index, sub_index, complete_access, payload };
    let reply = exchange(server, &request, limit);
    assert!(matches!(response(&reply)?, SdoResponse::InitiateDownload { .. }));
    let mut toggle = false;
    while sent < bytes.len() {
        let end = bytes.len().min(sent + limit - SEGMENT_OVERHEAD);
        let last = end == bytes.len();
        let request = SdoRequest::DownloadSegment { toggle, last, data: &bytes[sent..end] };
        let reply = exchange(server, &request, limit);
        assert_eq!(response(&reply)?, SdoResponse::DownloadSegment { toggle });
        sent = end;
        toggle = !toggle;
    }
    Ok(())
}

// feature(simulator): SDO expedited, normal, segmented at every mailbox size
#[test]
fn expedited_normal_and_segmented_uploads_at_every_mailbox_size() {
    for limit in LIMITS {
        let mut server = server();
        assert_eq!(upload(&mut server, (0x2000, 0, false), limit), Ok(vec![0x34, 0x12]));
        assert_eq!(upload(&mut server, (0x2001, 0, false), limit), Ok((-2_i64).to_le_bytes().to_vec()));
        assert_eq!(upload(&mut server, (0x2002, 0, false), limit), Ok(TEXT.as_bytes().to_vec()));
        let record = upload(&mut server, (0x2003, 0, true), limit).expect("complete access");
        assert_eq!((record.len(), &record[..8]), (2 + 2 + 39 * 4, &[40, 0, 0, 0, 2, 0, 0, 0][..]));
        assert_eq!(upload(&mut server, (0x2003, 1, true), limit), Ok(record[2..].to_vec()));
        assert_eq!(upload(&mut server, (0x1FFF, 0, false), limit), Err(AbortCode::NO_OBJECT));
    }
}

#[test]
fn expedited_normal_segmented_downloads_at_every_mailbox_size() {
    for limit in LIMITS {
        let mut server = server();
        assert_eq!(download(&mut server, (0x2000, 0, false), &[1, 2], limit), Ok(()));
        assert_eq!(download(&mut server, (0x2001, 0, false), &[8, 7, 6, 5, 4, 3, 2, 1], limit), Ok(()));
        let text = "another text of some length to write";
        assert_eq!(download(&mut server, (0x2002, 0, false), text.as_bytes(), limit), Ok(()));
        assert_eq!(upload(&mut server, (0x2002, 0, false), limit), Ok(text.as_bytes().to_vec()));
        assert_eq!(server.dictionary().value(0x2000, 0), Some(0x0201));
        assert_eq!(server.dictionary().value(0x2001, 0), Some(0x0102_0304_0506_0708));
        let mut record = upload(&mut server, (0x2003, 0, true), limit).expect("complete access");
        record[2] = 5;
        record[40] = 0x77;
        assert_eq!(download(&mut server, (0x2003, 0, true), &record, limit), Ok(()));
        assert_eq!(upload(&mut server, (0x2003, 0, true), limit), Ok(record.clone()));
        record[2] = 8;
        let refused = download(&mut server, (0x2003, 0, true), &record, limit);
        assert_eq!(refused, Err(AbortCode::VALUE_RANGE));
        assert_eq!(download(&mut server, (0x2002, 0, false), &[b'x'; 99], limit), Err(AbortCode::TOO_LONG));
    }
}

#[test]
fn expedited_download_without_size_takes_object_length() {
    let mut server = server();
    let replies = raw_exchange(&mut server, &[0, 0x20, 0x22, 0x00, 0x20, 0, 0xCD, 0xAB, 0, 0], 10);
    assert!(matches!(response(&replies[0]), Ok(SdoResponse::InitiateDownload { .. })));
    assert_eq!(server.dictionary().value(0x2000, 0), Some(0xABCD));
}

#[test]
fn a_wrong_toggle_ends_the_transfer() {
    let mut server = server();
    let initiate = SdoRequest::InitiateUpload { index: 0x2002, sub_index: 0, complete_access: false };
    exchange(&mut server, &initiate, 26);
    let segment = SdoRequest::UploadSegment { toggle: true };
    let reply = exchange(&mut server, &segment, 26);
    assert_eq!(response(&reply), Err(AbortCode::TOGGLE_NOT_ALTERNATED));
    let reply = exchange(&mut server, &segment, 26);
    assert_eq!(response(&reply), Err(AbortCode::UNKNOWN_COMMAND));
}

#[test]
fn a_new_transfer_replaces_the_running_one() {
    let mut server = server();
    let payload = SdoPayload::fitting(TEXT.as_bytes(), 26);
    let start =
        SdoRequest::InitiateDownload { index: 0x2002, sub_index: 0, complete_access: false, payload };
    exchange(&mut server, &start, 26);
    assert_eq!(upload(&mut server, (0x2001, 0, false), 10), Ok((-2_i64).to_le_bytes().to_vec()));
    let segment = SdoRequest::DownloadSegment { toggle: false, last: true, data: b"x" };
    let reply = exchange(&mut server, &segment, 26);
    assert_eq!(response(&reply), Err(AbortCode::UNKNOWN_COMMAND));
}

#[test]
fn an_abort_by_the_client_ends_the_transfer_in_silence() {
    let mut server = server();
    let initiate = SdoRequest::InitiateUpload { index: 0x2002, sub_index: 0, complete_access: false };
    exchange(&mut server, &initiate, 26);
    let abort = SdoRequest::Abort { index: 0x2002, sub_index: 0, code: AbortCode::TIMEOUT };
    assert!(exchange(&mut server, &abort, 26).is_empty());
    let reply = exchange(&mut server, &SdoRequest::UploadSegment { toggle: false }, 26);
    assert_eq!(response(&reply), Err(AbortCode::UNKNOWN_COMMAND));
}

#[test]
fn block_transfer_is_an_unknown_command() {
    let mut server = server();
    let replies = raw_exchange(&mut server, &[0, 0x20, 0xA0, 0x00, 0x20, 0, 0, 0, 0, 0], 26);
    assert_eq!(response(&replies[0]), Err(AbortCode::UNKNOWN_COMMAND));
}

/// Joined fragments of an answer, or the abort code.
fn ask(server: &mut CoeServer, request: Information<'_>, limit: usize) -> Result<Vec<u8>, AbortCode> {
    let mut message = [0; 16];
    let length = SdoInformation::whole(request).emit(&mut message).expect("16 bytes hold any request");
    let mut bytes = Vec::new();
    let mut left = None;
    let mut queue = raw_exchange(server, &message[..length], limit);
    loop {
        let Some(reply) = queue.pop_front() else {
            server.poll(&mut Replies::new(&mut queue, limit));
            assert!(!queue.is_empty(), "fragments are missing: {left:?}");
            continue;
        };
        let information = SdoInformation::parse(&reply).expect("SDO information");
        assert!(left.is_none_or(|left: u16| left == information.fragments_left + 1));
        left = Some(information.fragments_left);
        match information.service {
            Information::ListResponse(data)
            | Information::ObjectResponse(data)
            | Information::EntryResponse(data) => bytes.extend_from_slice(data),
            Information::Error(code) => return Err(code),
            other => panic!("{other:?}"),
        }
        if !information.incomplete {
            assert_eq!((left, queue.len()), (Some(0), 0));
            return Ok(bytes);
        }
    }
}

// feature(simulator): SDO information
#[test]
fn the_dictionary_describes_itself_at_every_mailbox_size() {
    for limit in LIMITS {
        let mut server = server();
        let all = ask(&mut server, Information::ListRequest(ListType::ALL), limit);
        assert_eq!(all, Ok(vec![1, 0, 0x00, 0x20, 0x01, 0x20, 0x02, 0x20, 0x03, 0x20]));
        let mappable = ask(&mut server, Information::ListRequest(ListType::RX_PDO_MAPPABLE), limit);
        assert_eq!(mappable, Ok(vec![2, 0, 0x03, 0x20]));
        let lengths = ask(&mut server, Information::ListRequest(ListType::LENGTHS), limit);
        assert_eq!(lengths, Ok(vec![0, 0, 4, 0, 1, 0, 0, 0, 0, 0, 0, 0]));
        let object = ask(&mut server, Information::ObjectRequest { index: 0x2003 }, limit);
        let object = object.expect("0x2003 exists");
        let object = ObjectDescription::parse(&object).expect("a description");
        assert_eq!((object.object_code, object.maximum_sub_index), (ObjectCode::RECORD, 40));
        assert_eq!(object.name, b"record");
        let request =
            Information::EntryRequest { index: 0x2003, sub_index: 1, value_info: ValueInfo(0x60) };
        let entry = ask(&mut server, request, limit).expect("the entry exists");
        let entry = EntryDescription::parse(&entry).expect("a description");
        assert_eq!((entry.data_type, entry.bit_length), (DataType::I16.code(), 16));
        assert_eq!(entry.access, READ_WRITE.with(AccessRights::RX_PDO_MAPPABLE));
        let values = entry.values().expect("values");
        assert_eq!((values.minimum, values.maximum), (Some(&[0xF9, 0xFF][..]), Some(&[7, 0][..])));
        assert_eq!(values.name, b"ranged");
        let missing = ask(&mut server, Information::ObjectRequest { index: 1 }, limit);
        assert_eq!(missing, Err(AbortCode::NO_OBJECT));
        let missing = Information::EntryRequest { index: 0x2003, sub_index: 41, value_info: ValueInfo(0) };
        assert_eq!(ask(&mut server, missing, limit), Err(AbortCode::NO_SUB_INDEX));
        let unknown = ask(&mut server, Information::ListRequest(ListType(6)), limit);
        assert_eq!(unknown, Err(AbortCode::UNSUPPORTED_ACCESS));
    }
}

#[test]
fn a_list_longer_than_the_reply_queue_goes_out_in_turns() {
    let mut dictionary = ObjectDictionary::new();
    for index in 0x2000..0x2200 {
        dictionary.add(Object::variable(index, Entry::new(0, "", DataType::U8, READ_WRITE)));
    }
    let mut server = CoeServer::new(dictionary);
    server.enter(AlState::PreOp);
    let list = ask(&mut server, Information::ListRequest(ListType::ALL), 10).expect("a list");
    assert_eq!(list.len(), 2 + 2 * 0x200);
}

#[test]
fn emergencies_wait_for_the_mailbox_and_end_with_it() {
    let mut server = server();
    let emergency = Emergency { error_code: 0x8611, error_register: 0x21, data: [1, 2, 3, 4, 5] };
    server.send(emergency);
    let mut queue = VecDeque::new();
    server.poll(&mut Replies::new(&mut queue, 26));
    assert_eq!(queue.pop_front().map(|message| Emergency::parse(&message)), Some(Ok(emergency)));
    for _ in 0..=EMERGENCY_LIMIT {
        server.send(emergency);
    }
    server.poll(&mut Replies::new(&mut queue, 26));
    assert_eq!(queue.len(), EMERGENCY_LIMIT);
    server.send(emergency);
    server.enter(AlState::Init);
    queue.clear();
    server.poll(&mut Replies::new(&mut queue, 26));
    assert!(queue.is_empty());
}

proptest! {
    #[test]
    fn no_message_sequence_panics_or_overruns_the_mailbox(
        messages in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 1..20),
        limit in 0_usize..64,
        valid_services in any::<bool>(),
    ) {
        let mut server = server();
        for mut message in messages {
            if valid_services && message.len() >= 6 {
                message[1] = if message[1] & 1 == 0 { 0x20 } else { 0x80 };
                message[3] &= 3;
                message[4] = 0x20;
            }
            raw_exchange(&mut server, &message, limit);
        }
    }
}
