//! One SubDevice's part of the bring-up and its mailbox: carries out a plan, one datagram at a
//! time.
//!
//! All SubDevices' workers run side by side; each has at most one datagram on its way.

mod receive;
mod transmit;

use alloc::vec::Vec;
use core::time::Duration;

use crate::al::AlState;
use crate::register::{self, DlStatus, dc};
use crate::time::Instant;
use crate::wire::coe::Emergency;

use super::barrier::BarrierAccess;
use super::clock::ClockSetting;
use super::coe_mapping::{Comparison, MappingReader};
use super::configuration::Barrier;
use super::configuration::StartupSdo;
use super::error::{Awaited, AwaitedAction, SubDeviceError, SyncMiss};
use super::limits::{self, Limits};
use super::mailbox::MailboxClient;
use super::plan::{self, Action, Reading};
use super::request::{MailboxError, MailboxOutcome};
use super::retry::RetryCounter;
use super::sii_reader::{SiiReader, SiiRequest};
use super::state_change::StateChange;
use super::sub_device::SubDevice;
use super::topology::Upstream;

/// Bytes of the longest mapping object that is uploaded at once, and space for objects that hold
/// more than they should.
const LONGEST_MAPPING: usize = 4 + 4 * plan::LONGEST_AT_ONCE;

/// Bytes read to see a state: AL status, two reserved, AL status code.
const AL_STATUS_LENGTH: usize = 6;

/// Result of a reply, besides the next datagram.
#[derive(Debug)]
pub(super) enum Outcome {
    /// Nothing to report.
    Nothing,
    /// Its AL status was read, with no plan under way.
    Looked,
    /// Receive times were latched, at all SubDevices.
    Latched,
    /// The bring-up fails here.
    Failed(SubDeviceError),
    /// A mailbox request from outside is done.
    Mailbox(MailboxOutcome),
    /// The SubDevice sent an emergency.
    Emergency(Emergency),
    /// SYNC0 did not start, and is started again.
    SyncMissed(SyncMiss),
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
    Sii(SiiReader),
    /// The mailbox client has it.
    Mailbox,
    /// A PDO mapping, of which the mailbox client has an object.
    Mapping(MappingReader),
    /// The same, for a comparison.
    Comparison(Comparison),
    /// An object that bounds an axis, which the mailbox client has.
    Barrier(BarrierAccess),
}

/// Read of a SubDevice after its plan is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// Reads the AL status, also during a mailbox request.
    Status,
    /// Clears the error counters: the first read of a diagnosis.
    Clear,
    /// Reads them.
    Errors,
    /// Reads the DL status.
    Links,
    /// Reads the latch inputs.
    Inputs,
    /// Latches receive times at all SubDevices.
    Latch,
    /// Reads its own.
    Times,
}

impl Look {
    const fn next(self) -> Option<Self> {
        match self {
            Self::Clear => Some(Self::Errors),
            Self::Errors => Some(Self::Links),
            Self::Status | Self::Links | Self::Inputs | Self::Latch | Self::Times => None,
        }
    }
}

/// The worker of one SubDevice.
#[derive(Debug)]
pub(super) struct Worker {
    position: u16,
    /// Its place in the order in which frames are processed.
    place: u16,
    station: u16,
    limits: Limits,
    plan: Vec<Action>,
    next: usize,
    step: Step,
    awaiting: bool,
    /// The datagram on its way belongs to something given up since.
    stale: bool,
    not_before: Instant,
    /// Most actions done so far, before any was restarted.
    furthest: usize,
    /// Since when it has been seen to get no further.
    stuck_since: Option<Instant>,
    unanswered: RetryCounter,
    losses: RetryCounter,
    /// Replies that had come too late before the first of the losses.
    late_before: u64,
    pub(super) mailbox: MailboxClient,
    /// Its state request waits for the other SubDevices.
    is_held: bool,
    /// The AL status shall be read once.
    look_at_status: bool,
    /// The next read of a diagnosis.
    look: Option<Look>,
    /// The read with a datagram on its way.
    looking: Option<Look>,
    latches: Latches,
    /// The one before it, and its links.
    before: Option<Before>,
    /// Its possible upstream SubDevices, and the one found.
    may_hang_on: MayHangOn,
    hangs_on: Option<Upstream>,
    /// Starts of SYNC0 in this plan that came to nothing.
    sync_misses: u32,
    /// The latch inputs shall be read once.
    look_at_inputs: bool,
    /// Receive times shall be latched, or the latched ones read: [`Look::Latch`], [`Look::Times`].
    times: Option<Look>,
    /// Memory for the SDO uploads of a plan.
    spare: Vec<u8>,
}

/// A SubDevice with a known delay that frames pass next before this one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    pub(super) station: u16,
    pub(super) delay: u32,
    pub(super) links: DlStatus,
}

/// A SubDevice that another may be connected to, at a port that frames leave by after they have
/// come back to `behind`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Junction {
    pub(super) position: u16,
    pub(super) station: u16,
    pub(super) behind: u8,
}

/// The nearest of them, in the order in which they are read.
pub(super) type MayHangOn = [Option<Junction>; 4];

/// Latched receive times: of the reference clock and of this SubDevice, and the offset that
/// follows.
#[derive(Clone, Copy, Debug, Default)]
struct Latches {
    reference: u64,
    own: u64,
    /// When they were latched.
    at: Instant,
    offset: u64,
}

/// Circumstances of a reply.
#[derive(Clone, Copy, Debug)]
pub(super) struct Received {
    pub(super) now: Instant,
    /// About the time of the bus, whole.
    pub(super) bus_time: Option<u64>,
    pub(super) working_counter: u16,
}

/// The reference clock, for the workers of clocks that follow it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReferenceClock {
    /// Approximate complete time that it shows now.
    pub(super) time: Option<u64>,
    /// It shows 64 bits, not 32.
    pub(super) is_whole: bool,
    /// Its station address and its setting; `None` while there is none.
    pub(super) there: Option<(u16, ClockSetting)>,
}

impl Worker {
    /// From now on this is the time between two cycles.
    pub(super) fn set_period(&mut self, period: Duration) {
        self.limits.period = period;
    }

    pub(super) fn new(sub_device: &SubDevice, limits: Limits) -> Self {
        Self {
            position: sub_device.position,
            place: sub_device.processed,
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
            is_held: false,
            look_at_status: false,
            look: None,
            looking: None,
            latches: Latches::default(),
            before: None,
            may_hang_on: MayHangOn::default(),
            hangs_on: None,
            sync_misses: 0,
            look_at_inputs: false,
            times: None,
            spare: Vec::with_capacity(LONGEST_MAPPING),
        }
    }

    /// Starts the plan in `plan`, which holds the old one afterwards: on the real-time path nothing
    /// is freed. Drops the work under way, and the reply to a datagram still on its way.
    pub(super) fn start(&mut self, plan: &mut Vec<Action>) -> Option<MailboxOutcome> {
        let is_own = self.owns_request();
        let mut dropped = self.mailbox.close(MailboxError::NotReady);
        if let Some(own) = dropped.take_if(|_| is_own) {
            self.keep(own.request.data);
        }
        core::mem::swap(&mut self.plan, plan);
        (self.next, self.furthest, self.sync_misses) = (0, 0, 0);
        self.stale = self.awaiting;
        (self.is_held, self.look_at_status, self.look_at_inputs) = (false, false, false);
        (self.look, self.looking) = (None, None);
        self.step = Step::Start;
        (self.not_before, self.stuck_since) = (Instant::EPOCH, None);
        (self.unanswered, self.losses) = (RetryCounter::default(), RetryCounter::default());
        dropped
    }

    /// Sets `before`, from which the delay of its clock follows, and `may_hang_on`, the possible
    /// places.
    pub(super) fn stands_behind(&mut self, before: Option<Before>, may_hang_on: MayHangOn) {
        self.before = before;
        (self.may_hang_on, self.hangs_on) = (may_hang_on, None);
    }

    /// The upstream port, if the plan has found it.
    pub(super) fn found_place(&self) -> Option<Upstream> {
        self.hangs_on
    }

    /// Ends the plan under way, and gives it back into `plan`, whole as it was started from there.
    pub(super) fn end(&mut self, plan: &mut Vec<Action>) {
        // No other request is in the mailbox while a plan is under way.
        let _ = self.start(plan);
        self.next = self.plan.len();
    }

    /// True if the mailbox carries a request of the plan.
    fn owns_request(&self) -> bool {
        matches!(self.step, Step::Mailbox | Step::Mapping(_) | Step::Comparison(_) | Step::Barrier(_))
    }

    /// Takes back the data of a plan's own request.
    fn keep(&mut self, data: Vec<u8>) {
        match self.plan.get_mut(self.next) {
            Some(Action::Download(sdo)) => sdo.data = data,
            _ => self.spare = data,
        }
    }

    /// True if the plan is carried out.
    pub(super) fn is_done(&self) -> bool {
        self.next >= self.plan.len()
    }

    /// Has it wait before its plan's request for a state.
    pub(super) fn hold(&mut self) {
        self.is_held = true;
    }

    /// True once enough consecutive tries found no answer to report it.
    pub(super) fn is_unanswered(&self) -> bool {
        self.unanswered.tries >= limits::ATTEMPTS
    }

    /// True while it waits there.
    pub(super) fn waits_to_ask(&self) -> bool {
        self.is_held && self.requested().is_some() && !self.awaiting && self.mailbox.is_idle()
    }

    /// True while it waits at `now` before its next action.
    pub(super) fn pauses(&self, now: Instant) -> bool {
        self.not_before > now
    }

    /// State that the next action requests.
    fn requested(&self) -> Option<AlState> {
        match self.plan.get(self.next) {
            Some(Action::RequestState(state)) => Some(*state),
            _ => None,
        }
    }

    /// Ends the wait: it requests the state itself, unless all were `asked`.
    pub(super) fn go_on(&mut self, asked: Option<Instant>) {
        let waited = self.waits_to_ask();
        self.is_held = false;
        if let (true, Some(now), Some(state)) = (waited, asked, self.requested()) {
            self.step = Step::State(StateChange::asked(state, now, self.limits.state));
        }
    }

    /// Ends the wait: it has reached the state.
    pub(super) fn arrived(&mut self) {
        self.is_held = false;
        if self.requested().is_some() {
            self.action_done();
        }
    }

    /// Action it is at, unless it is done.
    pub(super) fn awaited(&self) -> Option<Awaited> {
        let what = match self.plan.get(self.next)? {
            Action::AssignStationAddress => AwaitedAction::StationAddress,
            Action::Read(_) | Action::FindPlace | Action::Write(..) | Action::Part(_) => {
                AwaitedAction::Answer
            }
            Action::ReadSii | Action::LearnSii => AwaitedAction::Eeprom,
            Action::WriteSyncStart(_) | Action::StartSync(_) | Action::CheckSync(_) => AwaitedAction::Sync0,
            Action::Latch | Action::ReadLatch(_) | Action::ReadBefore(_) | Action::WriteOffset => {
                AwaitedAction::Clock
            }
            Action::RequestState(state) => AwaitedAction::State(*state),
            Action::Bound { barrier: Barrier { index, sub_index, .. }, .. }
            | Action::Download(StartupSdo { index, sub_index, .. })
            | Action::Verify { index, sub_index, .. } => AwaitedAction::Sdo(*index, *sub_index),
            Action::ReadMapping(_) | Action::SkipIfMapped { .. } => AwaitedAction::Mapping,
        };
        Some(Awaited { what, register: self.register() })
    }

    /// Watches the progress of the work. True if it takes too long, whatever comes back: a mailbox
    /// transfer that timed out while its frames were being lost, or a plan without progress.
    /// [`Self::expire`] ends it; only that changes its due time and its progress.
    pub(super) fn watch_progress(&mut self, now: Instant) -> bool {
        if !self.mailbox.is_idle() {
            self.stuck_since = None;
            return !self.awaiting && self.mailbox.is_overdue(now);
        }
        // Losses, missing answers and wrong ones have separate limits; in alternation they would
        // reset each other for ever.
        if self.waits_to_ask() {
            self.stuck_since = None;
        }
        now.since(*self.stuck_since.get_or_insert(now)) >= self.limits.stuck() && self.awaited().is_some()
    }

    /// Gives up what takes too long.
    pub(super) fn expire(&mut self, now: Instant, sub_device: &mut SubDevice) -> Outcome {
        if !self.mailbox.is_idle() {
            let progress = self.mailbox.give_up();
            return self.mailbox_progress(now, progress, sub_device);
        }
        let after = self.stuck_since.map_or(Duration::ZERO, |since| now.since(since));
        match self.awaited() {
            Some(awaited) => Outcome::Failed(SubDeviceError::Stuck { awaited, after }),
            None => Outcome::Nothing,
        }
    }

    /// Puts off when it is given up.
    pub(super) fn put_off(&mut self, by: Duration) {
        self.stuck_since = self.stuck_since.map(|since| since + by);
        match &mut self.step {
            Step::State(change) => change.put_off(by),
            Step::Sii(reader) => reader.put_off(by),
            Step::Start | Step::Mailbox | Step::Mapping(_) | Step::Comparison(_) | Step::Barrier(_) => {}
        }
        self.mailbox.put_off(by);
        self.unanswered.put_off(by);
        self.losses.put_off(by);
    }

    /// True if a request for the mailbox can be taken: the reply to another read would be taken for
    /// the mailbox's.
    pub(super) fn takes_mail(&self) -> bool {
        self.is_done() && self.mailbox.is_idle() && !self.awaiting
    }

    /// Has the AL status read once more.
    pub(super) fn look_at_status(&mut self) {
        self.look_at_status = true;
    }

    /// Reads the error counters and the links once, after clearing them if `clear`; false while a
    /// plan is under way.
    pub(super) fn look_at_errors(&mut self, clear: bool) -> bool {
        let first = if clear || self.look == Some(Look::Clear) { Look::Clear } else { Look::Errors };
        self.look = self.is_done().then_some(first);
        self.look.is_some()
    }

    /// Has the latch inputs read once; false while a plan is under way.
    pub(super) fn look_at_inputs(&mut self) -> bool {
        self.look_at_inputs = self.is_done();
        self.look_at_inputs
    }

    /// True until they have been read, or do not answer.
    pub(super) fn looks_at_inputs(&self) -> bool {
        self.look_at_inputs
    }

    /// Latches receive times at all SubDevices if `latch`, else reads the own ones; false while a
    /// plan is under way.
    pub(super) fn look_at_times(&mut self, latch: bool) -> bool {
        let look = if latch { Look::Latch } else { Look::Times };
        self.times = self.is_done().then_some(look);
        self.times.is_some()
    }

    /// True until that is done, or given up.
    pub(super) fn looks_at_times(&self) -> bool {
        self.times.is_some()
    }

    /// True until they have been read, or do not answer.
    pub(super) fn looks_at_errors(&self) -> bool {
        self.look.is_some()
    }

    /// Time of its next datagram, or `None` while one is on its way or there is nothing to do.
    pub(super) fn due(&self) -> Option<Instant> {
        let looks =
            self.look_at_status || self.look_at_inputs || self.times.is_some() || self.look.is_some();
        let has_work = !self.is_done() || !self.mailbox.is_idle() || looks;
        (has_work && !self.awaiting && !self.waits_to_ask()).then_some(self.not_before)
    }

    /// The datagram on its way was lost; `late` replies have come too late so far, to whomever.
    pub(super) fn lost(&mut self, now: Instant, late: u64) -> Outcome {
        self.awaiting = false;
        let looking = self.looking.take();
        if looking == Some(Look::Latch) {
            // Sent again it may meet the latch of a SubDevice that is being brought up.
            self.times = None;
        }
        if core::mem::take(&mut self.stale) {
            return Outcome::Nothing;
        }
        if self.losses.tries == 0 {
            self.late_before = late;
        }
        self.losses.count(now);
        if looking.is_none() {
            self.mailbox.lost();
        }
        if matches!(self.plan.get(self.next), Some(Action::StartSync(_))) {
            self.begin_sync_anew();
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

    /// Goes back to where SYNC0 is switched off.
    fn begin_sync_anew(&mut self) {
        let is_off = |it: &Action| matches!(it, Action::Write(dc::CYCLIC_UNIT_CONTROL, _));
        self.next = self.plan[..self.next].iter().rposition(is_off).unwrap_or(0);
    }

    /// The register the current action is about; for errors.
    fn register(&self) -> u16 {
        match self.plan.get(self.next) {
            Some(Action::AssignStationAddress) => register::STATION_ADDRESS,
            Some(Action::Read(reading) | Action::ReadBefore(reading)) => reading.registers().0,
            Some(Action::FindPlace) => Reading::DlStatus.registers().0,
            Some(Action::Write(register, _)) => *register,
            Some(Action::WriteSyncStart(_)) => dc::START_TIME,
            Some(Action::StartSync(_) | Action::CheckSync(_)) => dc::CYCLIC_UNIT_CONTROL,
            Some(Action::Latch) => dc::RECEIVE_TIME,
            Some(Action::ReadLatch(_)) => dc::RECEIVE_TIME_PROCESSING_UNIT,
            Some(Action::WriteOffset) => dc::SYSTEM_TIME_OFFSET,
            Some(Action::ReadSii | Action::LearnSii) => SiiRequest::REGISTER,
            Some(Action::Download(_) | Action::Verify { .. } | Action::ReadMapping(_)) => {
                register::SYNC_MANAGER
            }
            Some(Action::Part(_) | Action::SkipIfMapped { .. } | Action::Bound { .. }) => {
                register::SYNC_MANAGER
            }
            Some(Action::RequestState(_)) | None => register::AL_STATUS,
        }
    }
}
