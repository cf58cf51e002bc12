//! Mailbox transfers that never finish, though each message is answered: they are aborted after a
//! total time.

use crate::rig;

use std::time::Duration;

use ethercat::main_device::{
    BringUpPhase, Configuration, Event, MailboxError, MailboxRequest, MailboxService, StartupSdo,
    SubDeviceConfiguration,
};
use ethercat::pdo::PdoMapping;
use ethercat::sdo_abort::AbortCode;
use ethercat::sii::Identity;
use ethercat::time::Instant;
use ethercat::wire::coe::{
    CoeMessage, ListType, SdoInformation, SdoInformationService, SdoPayload, SdoRequest, SdoResponse,
};
use ethercat::wire::mailbox::MailboxError as Refusal;
use onbeat_simulator::SubDevice;
use onbeat_simulator::application::sii::with_coe;
use onbeat_simulator::application::{Application, ProcessDataLengths, Replies};

use rig::Rig;

const TOTAL: Duration = Duration::from_millis(500);
const TIMEOUT: Duration = Duration::from_millis(300);
const PER_BYTE: Duration = Duration::from_millis(2);

/// Announced size of the object, in bytes.
const ANNOUNCED: u32 = 2000;

/// A mailbox that answers every message, after a delay, with a number of bytes of an endless
/// transfer.
struct Endless {
    answers_after: Duration,
    bytes: usize,
    /// Answers that hold data, and come at once; the others are empty. `None`: all are alike.
    at_once: Option<u32>,
    /// Next answer, and its time.
    pending: Option<(Instant, CoeKind)>,
    now: Instant,
    toggle: bool,
}

#[derive(Clone, Copy, Debug)]
enum CoeKind {
    Segment,
    Began,
    None(u16),
    Fragment,
    Written(u16),
    SegmentWritten,
}

impl Endless {
    fn is_quick(&self) -> bool {
        self.at_once.is_some_and(|left| left > 0)
    }
}

impl Application for Endless {
    fn process_data_lengths(&self) -> ProcessDataLengths {
        ProcessDataLengths::default()
    }

    fn step(&mut self, now: Instant, _outputs: Option<&[u8]>, _inputs: &mut [u8]) {
        self.now = now;
    }

    fn coe(&mut self, request: &[u8], _replies: &mut Replies<'_>) -> Result<(), Refusal> {
        let kind = match CoeMessage::parse(request) {
            Ok(CoeMessage::SdoRequest(SdoRequest::InitiateUpload { index: 0x2000, .. })) => CoeKind::Began,
            Ok(CoeMessage::SdoRequest(SdoRequest::InitiateUpload { index, .. })) => CoeKind::None(index),
            Ok(CoeMessage::SdoRequest(SdoRequest::UploadSegment { toggle })) => {
                self.toggle = toggle;
                CoeKind::Segment
            }
            Ok(CoeMessage::SdoRequest(SdoRequest::InitiateDownload { index, .. })) => {
                CoeKind::Written(index)
            }
            Ok(CoeMessage::SdoRequest(SdoRequest::DownloadSegment { toggle, .. })) => {
                self.toggle = toggle;
                CoeKind::SegmentWritten
            }
            _ => CoeKind::Fragment,
        };
        let after = if self.is_quick() { Duration::ZERO } else { self.answers_after };
        self.pending = Some((self.now + after, kind));
        Ok(())
    }

    fn poll_coe(&mut self, replies: &mut Replies<'_>) {
        let Some((due, kind)) = self.pending.filter(|(due, _)| *due <= self.now) else { return };
        let holds_any = self.is_quick() || self.at_once.is_none();
        let data = vec![0xA5; if holds_any { self.bytes } else { 0 }];
        self.at_once = self.at_once.map(|left| left.saturating_sub(1));
        let (index, sub_index, complete_access, toggle) = (0x2000, 0, false, self.toggle);
        let message = match kind {
            CoeKind::Began => CoeMessage::SdoResponse(SdoResponse::InitiateUpload {
                index,
                sub_index,
                complete_access,
                payload: SdoPayload::Normal { total_size: ANNOUNCED, data: &[] },
            }),
            CoeKind::None(index) => {
                let code = AbortCode::NO_OBJECT;
                CoeMessage::SdoResponse(SdoResponse::Abort { index, sub_index, code })
            }
            CoeKind::Segment => {
                CoeMessage::SdoResponse(SdoResponse::UploadSegment { toggle, last: false, data: &data })
            }
            CoeKind::Written(index) => {
                CoeMessage::SdoResponse(SdoResponse::InitiateDownload { index, sub_index, complete_access })
            }
            CoeKind::SegmentWritten => CoeMessage::SdoResponse(SdoResponse::DownloadSegment { toggle }),
            CoeKind::Fragment => CoeMessage::SdoInformation(SdoInformation {
                fragments_left: 9,
                incomplete: true,
                service: SdoInformationService::ListResponse(&data),
            }),
        };
        let mut bytes = [0; 128];
        let length = message.emit(&mut bytes).expect("it fits the mailbox");
        assert!(replies.push(&bytes[..length]));
        let goes_on = matches!(kind, CoeKind::Fragment);
        self.pending = goes_on.then_some((due + self.answers_after, kind));
    }
}

fn endless(answers_after: Duration, bytes: usize) -> SubDevice {
    endless_after(None, answers_after, bytes)
}

fn endless_after(at_once: Option<u32>, answers_after: Duration, bytes: usize) -> SubDevice {
    let image = with_coe(Identity::default(), "endless", PdoMapping::default()).image();
    let now = Instant::EPOCH;
    SubDevice::from_sii(
        &image.emit(),
        Box::new(Endless { answers_after, bytes, at_once, pending: None, now, toggle: false }),
    )
}

fn configuration() -> Configuration {
    Configuration { mailbox_timeout: TIMEOUT, transfer_timeout: TOTAL, ..Configuration::default() }
}

/// Result of the request, and its duration.
fn carry(
    device: SubDevice,
    service: MailboxService,
    data: Vec<u8>,
) -> (Result<(), MailboxError>, Duration) {
    let described = SubDeviceConfiguration::default();
    let mut rig =
        Rig::new(Configuration { sub_devices: Some(vec![described]), ..configuration() }, vec![device]);
    rig.pump_to(BringUpPhase::PreOp);
    assert_eq!(rig.main_device.phase(), BringUpPhase::PreOp, "{:?}", rig.events);
    let start = rig.now;
    rig.main_device.submit(MailboxRequest { position: 0, service, data }).expect("there is room");
    while rig.now.since(start) < Duration::from_secs(60) {
        rig.pump(Duration::from_millis(1));
        let outcome = rig.events.drain(..).find_map(|event| match event {
            Event::Mailbox(outcome) => Some(outcome),
            _ => None,
        });
        if let Some(outcome) = outcome {
            return (outcome.result, rig.now.since(start));
        }
    }
    panic!("it never ended")
}

const UPLOAD: MailboxService =
    MailboxService::Upload { index: 0x2000, sub_index: 0, complete_access: false };
const DOWNLOAD: MailboxService =
    MailboxService::Download { index: 0x2000, sub_index: 0, complete_access: false };

// feature(main-device): a total time-out for every mailbox transfer; the error has its progress
#[test]
fn tiny_segments_and_fragments_time_out_after_the_total() {
    let tenth = Duration::from_millis(100);
    for service in [UPLOAD, MailboxService::ObjectList(ListType::ALL)] {
        for bytes in [0, 2, 10] {
            let (ended, after) = carry(endless(tenth, bytes), service, Vec::with_capacity(1 << 20));
            let Err(MailboxError::Unfinished { answers, bytes: got, .. }) = ended else {
                panic!("{service:?} with {bytes} bytes an answer: {ended:?}")
            };
            assert_eq!(got % bytes.max(1), 0, "{got}");
            assert!(answers > 3 && got <= 10 * answers as usize, "{answers} answers, {got} bytes");
            let limit = TOTAL + PER_BYTE * got as u32;
            assert!(after >= limit && after < limit + Duration::from_millis(20), "{after:?}, {limit:?}");
            let sentence = ended.unwrap_err().to_string();
            assert!(sentence.contains(&format!("{got} bytes in {answers} answers")), "{sentence}");
        }
    }
}

// feature(main-device): a bring-up without progress ends below 10 s, with any replies; the error names the SubDevice and the step
#[test]
fn bytes_that_came_soon_buy_no_time_for_empty_answers() {
    let device = endless_after(Some(101), Duration::from_millis(100), 50);
    let (ended, after) = carry(device, UPLOAD, Vec::with_capacity(1 << 20));
    assert!(matches!(ended, Err(MailboxError::Unfinished { bytes: 4000.., .. })), "{ended:?}");
    assert!(after >= TOTAL && after < TOTAL + Duration::from_millis(500), "{after:?}");
}

#[test]
fn a_download_that_is_acknowledged_slowly_says_how_far_it_got() {
    let slow = Duration::from_millis(290);
    let (ended, after) = carry(endless(slow, 0), DOWNLOAD, vec![7; 2000]);
    let Err(MailboxError::Unfinished { bytes, .. }) = ended else { panic!("{ended:?}") };
    assert!((100..2000).contains(&bytes), "{bytes}");
    assert!(after < TOTAL + PER_BYTE * 2000, "{after:?}");
}

// feature(main-device): a total time-out for every mailbox transfer; the error has its progress
#[test]
fn transfer_past_the_total_may_finish_while_it_progresses() {
    let (ended, after) = carry(endless(Duration::from_millis(100), 0), DOWNLOAD, vec![7; 1000]);
    assert_eq!(ended, Ok(()));
    assert!(after > TOTAL, "{after:?}");
}

#[test]
fn a_start_up_value_that_is_never_taken_whole_ends_the_bring_up() {
    let data = vec![7; 1000];
    let startup = vec![StartupSdo { index: 0x2000, sub_index: 0, complete_access: false, data }];
    let described = SubDeviceConfiguration { startup, ..SubDeviceConfiguration::default() };
    let mut rig = Rig::new(
        Configuration { sub_devices: Some(vec![described]), ..configuration() },
        vec![endless(Duration::from_millis(290), 0)],
    );
    let start = rig.now;
    rig.pump_to(BringUpPhase::PreOp);
    let sentence = rig.failure().map(ToString::to_string).unwrap_or_default();
    assert!(sentence.contains("SDO 0x2000:00: not over after"), "{sentence}");
    assert!(rig.now.since(start) < Duration::from_secs(5));
}
