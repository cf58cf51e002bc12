//! One SubDevice's part of the bring-up and its mailbox: carries out a plan, one datagram at a time.
//!
//! All SubDevices' workers run side by side; each has at most one datagram on its way.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};
use core::time::Duration;

use crate::al::AlStatus;
use crate::al_status_code::AlStatusCode;
use crate::register::{self, DlStatus, dc};
use crate::time::Instant;
use crate::wire::coe::Emergency;
use crate::wire::{Address, Command, read_u16, read_u32, read_u64};

use super::clock::LatchedTimes;
use super::coe_mapping::{self, MappingReader};
use super::configuration::StartupSdo;
use super::error::SubDeviceError;
use super::error_counters::ErrorCounters;
use super::exchange::{Outgoing, Owner};
use super::limits::{self, Limits};
use super::mailbox::{MailboxClient, Progress};
use super::plan::{Action, Reading};
use super::request::{MailboxError, MailboxOutcome, MailboxRequest, MailboxService};
use super::retry::RetryCounter;
use super::sii_reader::{SiiProgress, SiiReader, SiiRequest};
use super::state_change::{Ask, StateChange, StateProgress};
use super::sub_device::{EscInformation, SubDevice};
use super::sync0::sync0_start;

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

    /// Appends the next datagram; `false` if there is none, or no room.
    pub(super) fn emit(
        &mut self,
        now: Instant,
        sub_device: &SubDevice,
        reference_time: Option<u64>,
        outgoing: &mut Outgoing<'_>,
    ) -> bool {
        if self.due().is_none_or(|due| due > now) {
            return false;
        }
        if !self.mailbox.is_idle() {
            self.awaiting = self.mailbox.emit(self.station, Owner::Worker(self.position), outgoing);
            return self.awaiting;
        }
        self.awaiting = if self.is_done() {
            self.emit_look(outgoing)
        } else {
            self.emit_action(now, sub_device, reference_time, outgoing)
        };
        self.awaiting
    }

    fn emit_look(&mut self, outgoing: &mut Outgoing<'_>) -> bool {
        if self.look_at_status {
            return self.push_read(register::AL_STATUS, AL_STATUS_LENGTH, outgoing);
        }
        let (register, length) = (register::RECEIVE_ERROR_COUNTERS, ErrorCounters::LENGTH);
        self.reads_errors = self.look_at_errors && self.push_read(register, length, outgoing);
        self.reads_errors
    }

    fn emit_action(
        &mut self,
        now: Instant,
        sub_device: &SubDevice,
        reference_time: Option<u64>,
        outgoing: &mut Outgoing<'_>,
    ) -> bool {
        match &self.plan[self.next] {
            Action::AssignStationAddress => {
                let address = Address::at_position(self.position, register::STATION_ADDRESS);
                let station = self.station.to_le_bytes();
                push(Command::Apwr, address, &station, self.position, outgoing)
            }
            Action::Read(reading) => {
                let (register, length) = reading.registers();
                self.push_read(register, length, outgoing)
            }
            Action::Write(register, data) => self.push_write(*register, data, outgoing),
            Action::WriteSync0Start(sync0) => {
                // The reference clock's time is known from the first cycle on.
                let Some(reference_time) = reference_time else { return false };
                let start = sync0_start(reference_time, *sync0, self.limits.period).to_le_bytes();
                self.push_write(dc::START_TIME, &start, outgoing)
            }
            Action::StartSync0 => {
                self.push_write(dc::CYCLIC_UNIT_CONTROL, &[0, dc::ACTIVATE_SYNC0], outgoing)
            }
            Action::RequestState(state) => {
                if !matches!(self.step, Step::State(_)) {
                    self.step = Step::State(StateChange::new(*state, now, self.limits.state));
                }
                let Step::State(change) = &self.step else { return false };
                match change.ask(sub_device.al_status) {
                    Ask::Read => self.push_read(register::AL_STATUS, AL_STATUS_LENGTH, outgoing),
                    Ask::Write(control) => {
                        self.push_write(register::AL_CONTROL, &control.bits().to_le_bytes(), outgoing)
                    }
                }
            }
            Action::ReadSii => {
                if !matches!(self.step, Step::Sii(_)) {
                    self.step = Step::Sii(Box::default());
                }
                let Step::Sii(reader) = &self.step else { return false };
                match reader.request() {
                    SiiRequest::Command(bytes) => self.push_write(SiiRequest::REGISTER, &bytes, outgoing),
                    SiiRequest::Fetch => {
                        self.push_read(SiiRequest::REGISTER, SiiRequest::FETCH_LENGTH, outgoing)
                    }
                }
            }
            Action::Download(_) | Action::Verify { .. } | Action::ReadMapping(_) => {
                self.emit_request(now, outgoing)
            }
        }
    }

    fn emit_request(&mut self, now: Instant, outgoing: &mut Outgoing<'_>) -> bool {
        let upload = |(index, sub_index)| {
            let service = MailboxService::Upload { index, sub_index, complete_access: false };
            (service, Vec::with_capacity(LONGEST_MAPPING_VALUE))
        };
        let (service, data) = match &mut self.plan[self.next] {
            Action::Download(sdo) => {
                let StartupSdo { index, sub_index, complete_access, ref mut data } = *sdo;
                self.step = Step::Mailbox;
                (MailboxService::Download { index, sub_index, complete_access }, core::mem::take(data))
            }
            Action::Verify { index, sub_index, .. } => {
                self.step = Step::Mailbox;
                upload((*index, *sub_index))
            }
            Action::ReadMapping(directions) => {
                if !matches!(self.step, Step::Mapping(_)) {
                    self.step = Step::Mapping(MappingReader::new(*directions));
                }
                let Step::Mapping(reader) = &self.step else { return false };
                upload(reader.request())
            }
            _ => return false,
        };
        let request = MailboxRequest { position: self.position, service, data };
        // Plans with SDOs are only made for SubDevices with CoE, and any mailbox holds the first message.
        if self.mailbox.start(now, request).is_err() {
            return false;
        }
        self.mailbox.emit(self.station, Owner::Worker(self.position), outgoing)
    }

    fn push_read(&self, register: u16, length: usize, outgoing: &mut Outgoing<'_>) -> bool {
        let address = Address::Station { station: self.station, register };
        outgoing.push(Command::Fprd, address, length, Owner::Worker(self.position)).is_some()
    }

    fn push_write(&self, register: u16, data: &[u8], outgoing: &mut Outgoing<'_>) -> bool {
        let address = Address::Station { station: self.station, register };
        push(Command::Fpwr, address, data, self.position, outgoing)
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

    /// The datagram on its way came back.
    pub(super) fn reply(
        &mut self,
        now: Instant,
        data: &[u8],
        working_counter: u16,
        sub_device: &mut SubDevice,
    ) -> Outcome {
        self.awaiting = false;
        if core::mem::take(&mut self.stale) {
            return Outcome::Nothing;
        }
        self.losses = RetryCounter::default();
        if !self.mailbox.is_idle() {
            let progress = self.mailbox.reply(now, data, working_counter);
            return self.mailbox_progress(now, progress, sub_device);
        }
        if core::mem::take(&mut self.reads_errors) {
            self.look_at_errors = false;
            sub_device.error_counters = ErrorCounters::parse(data).filter(|_| working_counter == 1);
            return Outcome::Nothing;
        }
        if working_counter != 1 {
            return self.unanswered(now);
        }
        self.unanswered = RetryCounter::default();
        if self.is_done() {
            self.look_at_status = false;
            note_status(sub_device, data);
            return Outcome::Nothing;
        }
        match self.advance(now, data, sub_device) {
            Ok(()) => Outcome::Nothing,
            Err(error) => Outcome::Failed(error),
        }
    }

    fn unanswered(&mut self, now: Instant) -> Outcome {
        self.unanswered.count(now);
        self.not_before = now + limits::PAUSE;
        if self.is_done() {
            self.look_at_status = self.unanswered.tries < limits::ATTEMPTS;
            let newly = self.unanswered.tries == limits::ATTEMPTS;
            return if newly { Outcome::Unreachable } else { Outcome::Nothing };
        }
        if !self.unanswered.exhausts(limits::UNANSWERED) {
            return Outcome::Nothing;
        }
        Outcome::Failed(SubDeviceError::NoAnswer {
            register: self.register(),
            attempts: self.unanswered.tries,
            within: self.unanswered.lasted(),
        })
    }

    /// The current action's datagram was answered with `data`.
    fn advance(
        &mut self,
        now: Instant,
        data: &[u8],
        sub_device: &mut SubDevice,
    ) -> Result<(), SubDeviceError> {
        match &self.plan[self.next] {
            Action::Read(reading) => note(*reading, data, sub_device),
            Action::RequestState(_) => return self.advance_state(now, data, sub_device),
            Action::ReadSii => {
                self.advance_sii(now, data, sub_device);
                return Ok(());
            }
            Action::AssignStationAddress
            | Action::Write(..)
            | Action::WriteSync0Start(_)
            | Action::StartSync0
            | Action::Download(_)
            | Action::Verify { .. }
            | Action::ReadMapping(_) => {}
        }
        self.action_done();
        Ok(())
    }

    fn advance_state(
        &mut self,
        now: Instant,
        data: &[u8],
        sub_device: &mut SubDevice,
    ) -> Result<(), SubDeviceError> {
        let Step::State(change) = &mut self.step else { return Ok(()) };
        if change.ask(sub_device.al_status) == Ask::Read {
            note_status(sub_device, data);
        }
        match change.answered(now, sub_device.al_status, sub_device.al_status_code)? {
            StateProgress::Continue => {}
            StateProgress::Wait => self.not_before = now + limits::PAUSE,
            StateProgress::Reached => self.action_done(),
        }
        Ok(())
    }

    fn advance_sii(&mut self, now: Instant, data: &[u8], sub_device: &mut SubDevice) {
        let Step::Sii(reader) = &mut self.step else { return };
        if matches!(reader.request(), SiiRequest::Command(_)) {
            reader.commanded(now);
            return;
        }
        let image = match reader.fetched(now, data) {
            Ok(SiiProgress::Busy) => return self.not_before = now + limits::PAUSE / 4,
            Ok(SiiProgress::More) => return self.stuck_since = None,
            Ok(SiiProgress::Complete) => core::mem::take(&mut **reader).finish(),
            Err(error) => Err(error),
        };
        match image {
            Ok(image) => {
                sub_device.identity = image.header.identity();
                sub_device.sii = Some(image);
            }
            // It is there all the same; who needs its SII says so.
            Err(error) => sub_device.sii_problem = Some(error),
        }
        self.action_done();
    }

    fn mailbox_progress(
        &mut self,
        now: Instant,
        progress: Progress,
        sub_device: &mut SubDevice,
    ) -> Outcome {
        match progress {
            Progress::Continue | Progress::Idle => Outcome::Nothing,
            Progress::Wait => {
                self.not_before = now + limits::PAUSE;
                Outcome::Nothing
            }
            Progress::Emergency(emergency) => Outcome::Emergency(emergency),
            Progress::Done(outcome) if matches!(self.step, Step::Mailbox | Step::Mapping(_)) => {
                match self.request_done(&outcome, sub_device) {
                    Ok(()) => Outcome::Nothing,
                    Err(error) => Outcome::Failed(error),
                }
            }
            Progress::Done(outcome) => Outcome::Mailbox(outcome),
        }
    }

    /// The current action's SDO is done.
    fn request_done(
        &mut self,
        outcome: &MailboxOutcome,
        sub_device: &mut SubDevice,
    ) -> Result<(), SubDeviceError> {
        if let Step::Mapping(reader) = &mut self.step {
            let answer = outcome.result.map(|()| &outcome.request.data[..]);
            match reader.answered(answer) {
                Ok(None) => return Ok(()),
                Ok(Some(mapping)) => sub_device.mapping = mapping,
                // Told later, if it is to go on: tools look at what else there is.
                Err(error) => sub_device.mapping_error = Some(error),
            }
            self.action_done();
            return Ok(());
        }
        outcome.result.map_err(|error| sdo_error(&outcome.request, error))?;
        if let Action::Verify { index, sub_index, expected } = self.plan[self.next] {
            let found = coe_mapping::number(&outcome.request.data);
            if !coe_mapping::is_same(index, expected, found) {
                return Err(SubDeviceError::Mapping { index, sub_index, expected, found });
            }
        }
        self.action_done();
        Ok(())
    }

    fn action_done(&mut self) {
        self.next += 1;
        self.step = Step::Start;
        self.not_before = Instant::EPOCH;
        if self.next > self.furthest {
            (self.furthest, self.stuck_since) = (self.next, None);
        }
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

fn push(
    command: Command,
    address: Address,
    data: &[u8],
    position: u16,
    outgoing: &mut Outgoing<'_>,
) -> bool {
    match outgoing.push(command, address, data.len(), Owner::Worker(position)) {
        None => false,
        Some(place) => {
            place.copy_from_slice(data);
            true
        }
    }
}

fn sdo_error(request: &MailboxRequest, error: MailboxError) -> SubDeviceError {
    match request.service {
        MailboxService::Download { index, sub_index, .. }
        | MailboxService::Upload { index, sub_index, .. } => {
            SubDeviceError::Sdo { index, sub_index, error }
        }
        service => SubDeviceError::Sdo { index: service.index().unwrap_or(0), sub_index: 0, error },
    }
}

fn note(reading: Reading, data: &[u8], sub_device: &mut SubDevice) {
    match reading {
        Reading::Information => {
            sub_device.information = EscInformation::parse(data).unwrap_or_default();
        }
        Reading::DlStatus => {
            sub_device.dl_status = DlStatus::from_bits(read_u16(data, 0).unwrap_or(0));
        }
        Reading::LatchedTimes => {
            sub_device.latched = LatchedTimes {
                ports: core::array::from_fn(|port| read_u32(data, port * 4).unwrap_or(0)),
                processing_unit: read_u64(data, 0x18).unwrap_or(0),
            };
        }
        Reading::Watchdogs => sub_device.watchdogs = super::watchdogs::parse(data),
        Reading::SyncManagers(_) => sub_device.feeds_watchdog = super::watchdogs::is_fed(data),
    }
}

fn note_status(sub_device: &mut SubDevice, data: &[u8]) {
    sub_device.al_status = AlStatus::from_bits(read_u16(data, 0).unwrap_or(0));
    sub_device.al_status_code = AlStatusCode(read_u16(data, 4).unwrap_or(0));
}
