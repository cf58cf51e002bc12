//! Mailbox messages of real devices.

use std::collections::{BTreeMap, BTreeSet};

use onbeat_ethercat::register::{self, SyncManager, SyncManagerDirection, SyncManagerMode};
use onbeat_ethercat::sdo_abort::AbortCode;
use onbeat_ethercat::wire::coe::{CoeMessage, SdoRequest, SdoResponse};
use onbeat_ethercat::wire::mailbox::{HEADER_LENGTH, Header, MailboxType};
use onbeat_ethercat::wire::{Command, Frame};

use crate::recording::Recording;

/// A message seen on the wire.
pub(crate) struct Message {
    /// Number of the frame in the recording, from 1.
    pub(crate) frame: usize,
    pub(crate) station: u16,
    pub(crate) bytes: Vec<u8>,
    /// The frame has been through the segment.
    pub(crate) processed: bool,
}

/// Every mailbox message of `recording`: all writes to and reads from the memory that the
/// MainDevice configured as mailbox.
pub(crate) fn messages(recording: &Recording) -> Vec<Message> {
    let mut mailboxes: BTreeMap<(u16, u16), SyncManagerDirection> = BTreeMap::new();
    let mut messages = Vec::new();
    for (number, bytes) in recording.frames.iter().enumerate() {
        let Ok(frame) = Frame::parse(bytes) else { continue };
        let processed = frame.source().is_processed();
        for datagram in frame.datagrams() {
            let (station, address) = (datagram.header.adp(), datagram.header.ado());
            let command = datagram.header.command;
            let sync_managers = register::SYNC_MANAGER..register::SYNC_MANAGER + 16 * 8;
            if command == Command::Fpwr && sync_managers.contains(&address) && address % 8 == 0 {
                for it in datagram.data.chunks_exact(8).filter_map(SyncManager::parse) {
                    if it.mode() == Some(SyncManagerMode::Mailbox) && it.length > 0 {
                        mailboxes.insert((station, it.physical_address), it.direction().unwrap());
                    }
                }
            }
            match (mailboxes.get(&(station, address)), command) {
                (Some(SyncManagerDirection::Write), Command::Fpwr) => {}
                (Some(SyncManagerDirection::Read), Command::Fprd) if datagram.working_counter == 1 => {}
                _ => continue,
            }
            // TwinCAT reads the two bytes of length before the message.
            if datagram.data.len() < HEADER_LENGTH {
                continue;
            }
            messages.push(Message { frame: number + 1, station, bytes: datagram.data.to_vec(), processed });
        }
    }
    messages
}

/// An SDO transfer, put together from its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Transfer {
    pub(crate) station: u16,
    pub(crate) index: u16,
    pub(crate) sub_index: u8,
    pub(crate) complete_access: bool,
    /// Data read or written; or the reason why not.
    pub(crate) result: Result<Vec<u8>, AbortCode>,
    pub(crate) download: bool,
}

/// The SDO transfers of `recording` that came to an end.
pub(crate) fn transfers(recording: &Recording) -> Vec<Transfer> {
    let mut open: BTreeMap<u16, (Transfer, usize)> = BTreeMap::new();
    let mut closed = Vec::new();
    for message in messages(recording).iter().filter(|message| message.processed) {
        let (header, payload) = Header::parse(&message.bytes).unwrap();
        if header.kind != MailboxType::Coe {
            continue;
        }
        let station = message.station;
        let start = |index, sub_index, complete_access, data: Vec<u8>, download| Transfer {
            station,
            index,
            sub_index,
            complete_access,
            result: Ok(data),
            download,
        };
        let mut close = |open: &mut BTreeMap<u16, (Transfer, usize)>| {
            closed.extend(open.remove(&station).map(|(transfer, _)| transfer));
        };
        let extend = |open: &mut BTreeMap<u16, (Transfer, usize)>, data: &[u8]| {
            open.get_mut(&station).unwrap().0.result.as_mut().unwrap().extend_from_slice(data);
        };
        match CoeMessage::parse(payload).unwrap() {
            CoeMessage::SdoRequest(SdoRequest::InitiateUpload { index, sub_index, complete_access }) => {
                open.insert(station, (start(index, sub_index, complete_access, Vec::new(), false), 0));
            }
            CoeMessage::SdoRequest(SdoRequest::InitiateDownload {
                index,
                sub_index,
                complete_access,
                payload,
            }) => {
                let transfer = start(index, sub_index, complete_access, payload.data().to_vec(), true);
                open.insert(station, (transfer, payload.total_size()));
            }
            CoeMessage::SdoResponse(SdoResponse::InitiateUpload { index, sub_index, payload, .. }) => {
                let (transfer, total_size) = open.get_mut(&station).unwrap();
                assert_eq!((transfer.index, transfer.sub_index), (index, sub_index));
                *total_size = payload.total_size();
                extend(&mut open, payload.data());
                if payload.data().len() == payload.total_size() {
                    close(&mut open);
                }
            }
            CoeMessage::SdoResponse(SdoResponse::UploadSegment { last, data, .. }) => {
                extend(&mut open, data);
                if last {
                    close(&mut open);
                }
            }
            CoeMessage::SdoRequest(SdoRequest::DownloadSegment { data, .. }) => extend(&mut open, data),
            CoeMessage::SdoResponse(
                SdoResponse::InitiateDownload { .. } | SdoResponse::DownloadSegment { .. },
            ) => {
                let (transfer, total_size) = &open[&station];
                if transfer.result.as_ref().unwrap().len() >= *total_size {
                    close(&mut open);
                }
            }
            CoeMessage::SdoRequest(SdoRequest::Abort { code, .. })
            | CoeMessage::SdoResponse(SdoResponse::Abort { code, .. }) => {
                open.get_mut(&station).unwrap().0.result = Err(code);
                close(&mut open);
            }
            _ => {}
        }
    }
    closed
}

#[test]
fn every_recorded_mailbox_message_re_emits_byte_for_byte() {
    let (mut seen, mut coe) = (0, 0);
    let recordings = Recording::all();
    for recording in &recordings {
        for message in messages(recording) {
            let place = format!("{} frame {}", recording.name(), message.frame);
            let (header, payload) =
                Header::parse(&message.bytes).unwrap_or_else(|error| panic!("{place}: {error}"));
            assert_eq!(header.emit(), message.bytes[..6], "{place}");
            seen += 1;
            if header.kind != MailboxType::Coe {
                continue;
            }
            coe += 1;
            let parsed = CoeMessage::parse(payload).unwrap_or_else(|error| panic!("{place}: {error}"));
            let mut emitted = [0xEE; 1500];
            let length = parsed.emit(&mut emitted).unwrap();
            let mut expected = payload.to_vec();
            if let CoeMessage::SdoResponse(SdoResponse::InitiateDownload { .. }) = parsed {
                // Reserved; the EL3004 leaves the request's data there.
                expected[6..10].fill(0);
            }
            assert_eq!(emitted[..length], expected, "{place}: {parsed:?}");
        }
    }
    assert!(recordings.is_empty() || (coe > 0 && seen > coe), "no mailbox messages found");
}

// feature(protocol): mailbox and CoE messages as tshark sees them
#[test]
fn mailbox_messages_are_the_ones_tshark_sees() {
    let fields = [
        "frame.number",
        "ecat_mailbox.length",
        "ecat_mailbox.type",
        "ecat_mailbox.counter",
        "ecat_mailbox.coe.type",
        "ecat_mailbox.coe.sdoidx",
        "ecat_mailbox.coe.sdosub",
        "ecat_mailbox.coe.abortcode",
    ];
    for recording in Recording::all() {
        let Some(theirs) = recording.tshark("ecat_mailbox", &fields) else { return };
        let ours: BTreeSet<_> = messages(&recording).iter().map(described).collect();
        let theirs: BTreeSet<_> = theirs.into_iter().collect();
        let missing: Vec<_> = theirs.difference(&ours).collect();
        let surplus: Vec<_> = ours.difference(&theirs).collect();
        assert!(
            missing.is_empty() && surplus.is_empty(),
            "{}: tshark {missing:?}, we {surplus:?}",
            recording.name()
        );
    }
}

/// The fields of a message as tshark prints them.
fn described(message: &Message) -> Vec<String> {
    let (header, payload) = Header::parse(&message.bytes).unwrap();
    let mut fields = vec![
        message.frame.to_string(),
        header.length.to_string(),
        header.kind.number().to_string(),
        header.counter.to_string(),
    ];
    fields.resize(8, String::new());
    if header.kind != MailboxType::Coe {
        return fields;
    }
    let parsed = CoeMessage::parse(payload).unwrap();
    let (service, address) = match parsed {
        CoeMessage::SdoRequest(
            SdoRequest::InitiateDownload { index, sub_index, .. }
            | SdoRequest::InitiateUpload { index, sub_index, .. }
            | SdoRequest::Abort { index, sub_index, .. },
        ) => (2, Some((index, sub_index))),
        CoeMessage::SdoResponse(
            SdoResponse::InitiateDownload { index, sub_index, .. }
            | SdoResponse::InitiateUpload { index, sub_index, .. }
            | SdoResponse::Abort { index, sub_index, .. },
        ) => (3, Some((index, sub_index))),
        CoeMessage::SdoRequest(_) => (2, None),
        CoeMessage::SdoResponse(_) => (3, None),
        CoeMessage::SdoInformation(_) => (8, None),
        CoeMessage::Emergency(_) => (1, None),
        CoeMessage::Other(header, _) => (header.service.number(), None),
    };
    fields[4] = service.to_string();
    if let Some((index, sub_index)) = address {
        fields[5] = format!("0x{index:04x}");
        fields[6] = format!("0x{sub_index:02x}");
    }
    if let CoeMessage::SdoRequest(SdoRequest::Abort { code, .. })
    | CoeMessage::SdoResponse(SdoResponse::Abort { code, .. }) = parsed
    {
        fields[7] = format!("0x{:08x}", code.0);
    }
    fields
}
