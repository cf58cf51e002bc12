//! One SubDevice's part of the bring-up and its mailbox: carries out a plan, one datagram at a time.
//!
//! All SubDevices' workers run side by side; each has at most one datagram on its way.

mod receive;
mod transmit;

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};
use core::time::Duration;

use crate::register::{self, dc};
use crate::time::Instant;
use crate::wire::coe::Emergency;

use super::coe_mapping::MappingReader;
use super::configuration::StartupSdo;
use super::error::SubDeviceError;
use super::limits::{self, Limits};
use super::mailbox::MailboxClient;
use super::plan::Action;
use super::request::{MailboxError, MailboxOutcome};
use super::retry::RetryCounter;
use super::sii_reader::{SiiReader, SiiRequest};
use super::state_change::StateChange;
use super::sub_device::SubDevice;

/// Bytes of the longest value of a mapping or assignment object, and room for those that hold more than they should.
const LONGEST_MAPPING_VALUE: usize = 64;

/// Bytes read to see a state: AL status, two reserved, AL status code.
const AL_STATUS_LENGTH: usize = 6;

/// Result of a reply, besides the next datagram.
#[derive(Debug)]
pub(super) enum Outcome {
    /// Nothing to tell.
    Nothing,
    /// The bring-up fails here.
    Failed(SubDeviceError),
    /// A mailbox request from outside is done.
    Mailbox(MailboxOutcome),
    /// The SubDevice sent an emergency.
    Emergency(Emergency),
    /// The SubDevice, in Op, does not answer any more.
    Unreachable,
}

/// State of the action being carried out.
#[derive(Debug)]
enum Step {
    /// Not begun.
    Start,
    /// A change of state: the register written next.
    State(StateChange),
    /// The EEPROM.
    Sii(Box<SiiReader>),
    /// The mailbox client has it.
    Mailbox,
    /// A PDO mapping, of which the mailbox client has an object.
    Mapping(MappingReader),
}

/// The worker of one SubDevice.
#[derive(Debug)]
pub(super) struct Worker {
    position: u16,
    station: u16,
    limits: Limits,
    plan: Vec<Action>,
    next: usize,
    step: Step,
    awaiting: bool,
    /// The datagram on its way belongs to something given up since.
    stale: bool,
    not_before: Instant,
    /// Actions done before any was begun anew.
    furthest: usize,
    /// Since when it has been seen to get no further.
    stuck_since: Option<Instant>,
    unanswered: RetryCounter,
    losses: RetryCounter,
    /// Replies that had come too late before the first of the losses.
    late_before: u64,
    pub(super) mailbox: MailboxClient,
    /// The AL status shall be read once.
    look_at_status: bool,
    /// The error counters shall be read once.
    look_at_errors: bool,
    /// The datagram on its way reads the error counters.
    reads_errors: bool,
}

/// The workers of all SubDevices, by position.
#[derive(Debug, Default)]
pub(super) struct Workers {
    all: Vec<Worker>,
    /// None has anything to send or to wait for, until somebody turns to one.
    at_rest: bool,
}

impl Workers {
    pub(super) fn new(all: Vec<Worker>) -> Self {
        Self { all, at_rest: false }
    }

    /// True if none has anything to send or to wait for: looked up once, and known until one is turned to.
    pub(super) fn are_at_rest(&mut self) -> bool {
        self.at_rest = self.at_rest || self.all.iter().all(|it| it.due().is_none() && it.mailbox.is_idle());
        self.at_rest
    }
}

impl Deref for Workers {
    type Target = [Worker];

    fn deref(&self) -> &[Worker] {
        &self.all
    }
}

impl DerefMut for Workers {
    fn deref_mut(&mut self) -> &mut [Worker] {
        self.at_rest = false;
        &mut self.all
    }
}

impl Worker {
    /// From now on this is the time between two cycles.
    pub(super) fn set_period(&mut self, period: Duration) {
        self.limits.period = period;
    }

    pub(super) fn new(sub_device: &SubDevice, limits: Limits) -> Self {
        Self {
            position: sub_device.position,
            station: sub_device.station_address,
            limits,
            plan: Vec::new(),
            next: 0,
            step: Step::Start,
            awaiting: false,
            stale: false,
            not_before: Instant::EPOCH,
            furthest: 0,
            stuck_since: None,
            unanswered: RetryCounter::default(),
            losses: RetryCounter::default(),
            late_before: 0,
            mailbox: MailboxClient::new(limits.mailbox, limits.transfer),
            look_at_status: false,
            look_at_errors: false,
            reads_errors: false,
        }
    }

    /// Starts the plan in `plan`, which holds the old one afterwards: on the real-time path nothing is freed.
    /// Drops the work under way, and the reply to a datagram still on its way.
    pub(super) fn start(&mut self, plan: &mut Vec<Action>) -> Option<MailboxOutcome> {
        core::mem::swap(&mut self.plan, plan);
        (self.next, self.furthest) = (0, 0);
        self.stale = self.awaiting;
        (self.look_at_status, self.look_at_errors, self.reads_errors) = (false, false, false);
        let is_own = matches!(self.step, Step::Mailbox | Step::Mapping(_));
        let dropped = self.mailbox.close(MailboxError::NotReady).filter(|_| !is_own);
        self.step = Step::Start;
        (self.not_before, self.stuck_since) = (Instant::EPOCH, None);
        (self.unanswered, self.losses) = (RetryCounter::default(), RetryCounter::default());
        dropped
    }

    /// True if the plan is carried out.
    pub(super) fn is_done(&self) -> bool {
        self.next >= self.plan.len()
    }

    /// Action it is at, unless it is done.
    pub(super) fn awaited(&self) -> Option<String> {
        let what = match self.plan.get(self.next)? {
            Action::AssignStationAddress => "its station address".to_owned(),
            Action::Read(_) | Action::Write(..) => "an answer".to_owned(),
            Action::ReadSii => "its EEPROM".to_owned(),
            Action::WriteSync0Start(_) | Action::StartSync0 => "the start of SYNC0".to_owned(),
            Action::RequestState(state) => format!("state {state}"),
            Action::Download(StartupSdo { index, sub_index, .. })
            | Action::Verify { index, sub_index, .. } => format!("SDO {index:#06x}:{sub_index:02x}"),
            Action::ReadMapping(_) => "its PDO mapping by SDO".to_owned(),
        };
        Some(format!("{what}, register {:#06x}", self.register()))
    }

    /// Gives up what takes too long, whatever comes back: a mailbox transfer whose time is up while its frames are being
    /// lost, and a plan that gets no further.
    pub(super) fn expire(&mut self, now: Instant, sub_device: &mut SubDevice) -> Outcome {
        if self.mailbox.is_idle() {
            return self.expire_step(now);
        }
        self.stuck_since = None;
        if self.awaiting || !self.mailbox.is_overdue(now) {
            return Outcome::Nothing;
        }
        let progress = self.mailbox.give_up();
        self.mailbox_progress(now, progress, sub_device)
    }

    /// Losses, missing answers and wrong ones have limits of their own; in turn they would begin them anew for ever.
    fn expire_step(&mut self, now: Instant) -> Outcome {
        let lasted = now.since(*self.stuck_since.get_or_insert(now));
        if self.is_done() || lasted < self.limits.stuck() {
            return Outcome::Nothing;
        }
        let awaited = self.awaited().unwrap_or_default();
        Outcome::Failed(SubDeviceError::Stuck { awaited, after: lasted })
    }

    /// True if a request for the mailbox can be taken.
    pub(super) fn takes_mail(&self) -> bool {
        self.is_done() && self.mailbox.is_idle()
    }

    /// Has the AL status read once more.
    pub(super) fn look_at_status(&mut self) {
        self.look_at_status = true;
    }

    /// Has the error counters read once.
    pub(super) fn look_at_errors(&mut self) {
        self.look_at_errors = self.is_done();
    }

    /// True until they have been read, or do not answer.
    pub(super) fn looks_at_errors(&self) -> bool {
        self.look_at_errors
    }

    /// When there is something to send, or `None` while a datagram is on its way or nothing is to do.
    pub(super) fn due(&self) -> Option<Instant> {
        let looks = self.look_at_status || self.look_at_errors;
        let has_work = !self.is_done() || !self.mailbox.is_idle() || looks;
        (has_work && !self.awaiting).then_some(self.not_before)
    }

    /// The datagram on its way was lost; `late` replies have come too late so far, to whomever.
    pub(super) fn lost(&mut self, now: Instant, late: u64) -> Outcome {
        self.awaiting = false;
        self.reads_errors = false;
        if core::mem::take(&mut self.stale) {
            return Outcome::Nothing;
        }
        if self.losses.tries == 0 {
            self.late_before = late;
        }
        self.losses.count(now);
        self.mailbox.lost();
        if matches!(self.plan.get(self.next), Some(Action::StartSync0)) {
            self.next = 0;
        }
        if self.losses.exhausts(limits::LOSSES) && !self.is_done() {
            return Outcome::Failed(SubDeviceError::Lost {
                register: self.register(),
                lost: self.losses.tries,
                within: self.losses.lasted(),
                late: late - self.late_before,
            });
        }
        Outcome::Nothing
    }

    /// The register the current action is about; for errors.
    fn register(&self) -> u16 {
        match self.plan.get(self.next) {
            Some(Action::AssignStationAddress) => register::STATION_ADDRESS,
            Some(Action::Read(reading)) => reading.registers().0,
            Some(Action::Write(register, _)) => *register,
            Some(Action::WriteSync0Start(_)) => dc::START_TIME,
            Some(Action::StartSync0) => dc::CYCLIC_UNIT_CONTROL,
            Some(Action::ReadSii) => SiiRequest::REGISTER,
            Some(Action::Download(_) | Action::Verify { .. } | Action::ReadMapping(_)) => {
                register::SYNC_MANAGER
            }
            Some(Action::RequestState(_)) | None => register::AL_STATUS,
        }
    }
}
