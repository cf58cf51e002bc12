//! The MainDevice: bytes and time in, bytes and events out.
//!
//! ```text
//! poll_transmit -> frame for the link      (again after every other call, until it returns None)
//! handle_frame  <- frame from the link
//! poll_event    -> an event                (after handle_frame and poll_transmit)
//! poll_timeout  -> when to poll again if no frame comes
//! ```
//!
//! Without cycles these four calls bring the bus to PreOp and serve mailboxes. A cycle adds, every
//! period, [`MainDevice::end_cycle`] after receiving and [`MainDevice::begin_cycle`] before
//! transmitting. With the first cycle the bus continues to its target state, with process data in
//! every cycle.
//!
//! | module | part |
//! |---|---|
//! | `exchange`, `others` | frames on their way and their replies; frames of other senders |
//! | `limits`, `retry`, `standstill` | tries and times until a silent SubDevice is given up |
//! | `phase`, `broadcasts`, `together`, `bring_up`, `plan`, `worker`, `workers` | bring-up and shutdown: all together, and each SubDevice |
//! | `recovery` | recovery of SubDevices that leave Op while the bus is there |
//! | `presence`, `absent`, `late`, `outline` | SubDevices that may be absent or join late |
//! | `services` | the frames of all but process data |
//! | `state_change`, `sii_reader`, `request`, `mailbox`, `sdo_transfer`, `coe_mapping`, `sync0` | the longer tasks of a worker |
//! | `topology`, `clock`, `reference`, `receive_times`, `latches` | the tree, and the time in it |
//! | `error_counters`, `diagnosis` | errors that SubDevices count, and where the fault is |
//! | `barrier` | objects that bound the axes of a drive |
//! | `watchdogs` | their settings, and a check that these were taken |
//! | `layout`, `cyclic`, `process_data` | process data: layout, cycle, typed values |

mod absent;
mod awaited;
mod barrier;
mod bring_up;
mod broadcasts;
mod clock;
mod coe_mapping;
mod configuration;
mod cyclic;
mod diagnosis;
mod error;
mod error_counters;
mod estimated_delays;
mod exchange;
mod latches;
mod layout;
mod limits;
mod mailbox;
mod open_ring;
mod others;
mod outline;
mod phase;
mod plan;
mod presence;
mod process_data;
mod receive_times;
mod recovery;
mod reference;
mod report;
mod request;
mod retry;
mod sdo_transfer;
mod services;
mod settling;
mod sii_reader;
mod standstill;
mod state_change;
mod sub_device;
mod sync0;
mod together;
mod topology;
mod watchdogs;
mod worker;
mod workers;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use crate::al::{AlState, AlStatus};
use crate::link::MAXIMUM_FRAME_LENGTH;
use crate::redundancy::Ring;
use crate::register::{dc, sync_manager};
use crate::time::Instant;
use crate::wire::{frame, read_u16, read_u32};

use broadcasts::Broadcasts;
use cyclic::Cyclic;
use exchange::{Exchange, Owner, Purpose, Usual};
use others::Others;
use phase::{Phase, Plans};
use recovery::Recovery;
use settling::Settling;
use together::Together;
use worker::{Outcome, Received, Worker};
use workers::Workers;

pub use barrier::BarrierState;
pub use clock::{ClockNode, ClockSetting, reference, settings};
pub use configuration::{
    Barrier, BarrierTask, Configuration, ConfigurationError, ExpectedIdentity, LONGEST_WATCHDOG, LatchMode,
    MAXIMUM_SUB_DEVICES, Oversampling, Presence, ProcessDataSource, Replies, StartupSdo,
    SubDeviceConfiguration, Sync0, Sync1, UnitValue, Watchdog,
};
pub use diagnosis::{Examined, Fault, Finding, judge, ring_break};
pub use error::{Awaited, AwaitedAction, BusError, SubDeviceError, SyncMiss};
pub use latches::{LatchEdge, LatchInput, Latches};
pub use process_data::{Input, Output};
pub use report::{BringUpPhase, ClockReport, CycleReport, Event, Reception, ReceptionCounters};
pub use request::{MailboxError, MailboxOutcome, MailboxRequest, MailboxService};
pub use sub_device::{EscInformation, Mailbox, SubDevice};
pub use sync0::SyncPhase;
pub use topology::{LatchedTimes, Place, Shown, Upstream, places};
pub use types::{CableEnd, ErrorCounters, PortErrorCounters, WorkingCounter};

/// Events kept until they are polled; further ones are dropped and counted.
const EVENTS: usize = 256;

/// The same for each SubDevice on large buses: the state of an axis depends on these events.
const EVENTS_EACH: usize = 4;

/// Mailbox requests that can wait.
const REQUESTS: usize = 64;

/// An EtherCAT MainDevice (formerly: master) for one segment.
#[doc(alias = "master")]
#[derive(Debug)]
pub struct MainDevice {
    configuration: Configuration,
    exchange: Exchange,
    others: Others,
    phase: Phase,
    /// Since when `phase` has been the phase.
    phase_since: Instant,
    broadcasts: Broadcasts,
    sub_devices: Vec<SubDevice>,
    /// Positions of the SubDevices found, until they have their addresses; `None` for unexpected
    /// ones.
    assigned: Vec<Option<u16>>,
    /// Unexpected SubDevices found during bring-up, by their places in the order of processing.
    strangers: Vec<presence::Stranger>,
    workers: Workers,
    together: Together,
    plans: Vec<Plans>,
    /// The worker that is served first in the next service frame.
    next_worker: usize,
    /// Time of the last check for workers that take too long.
    expired_at: Instant,
    /// When it was called last; the epoch before.
    served_at: Instant,
    cycle: Cyclic,
    /// AL status of all SubDevices together where each is as it was brought up.
    status_in_op: AlStatus,
    reference: Option<u16>,
    /// False while its time is not handed on to the others.
    reference_hands_on: bool,
    /// Static drift compensation.
    settling: Settling,
    /// Replies in a row without its time.
    reference_silent: u32,
    /// When it was gone; until another is elected.
    reference_lost: Option<Instant>,
    recovery: Recovery,
    /// State of the ring, if its link is one.
    ring: Option<Ring>,
    /// When the frame that all clocks latched came back, and the time of the bus that they were set
    /// to show then.
    latched_at: Instant,
    clocks_set: Option<(u64, Instant)>,
    /// System time read last, whole, and when it came.
    reference_time: Option<(u64, Instant)>,
    /// The same, and when its frame was sent; until it is taken.
    reference_sample: Option<(u64, Instant)>,
    /// Send time of the frame that is answered by the current reply.
    answered_sent_at: Instant,
    requests: VecDeque<MailboxRequest>,
    events: VecDeque<Event>,
    events_dropped: u64,
}

impl MainDevice {
    /// A MainDevice that has sent nothing yet.
    ///
    /// # Errors
    /// A fault of `configuration` that cannot be run.
    pub fn new(configuration: Configuration) -> Result<Self, ConfigurationError> {
        configuration.check()?;
        let mut exchange = Exchange::new(configuration.source);
        exchange.takes_unchanged_source = configuration.replies == Replies::UnchangedSource;
        Ok(Self {
            exchange: exchange.starting_at(configuration.first_generation),
            others: Others::default(),
            configuration,
            phase: Phase::OpenPorts,
            phase_since: Instant::EPOCH,
            broadcasts: Broadcasts::new(&bring_up::OPEN_PORTS),
            sub_devices: Vec::new(),
            assigned: Vec::new(),
            strangers: Vec::new(),
            workers: Workers::default(),
            together: Together::Apart,
            plans: Vec::new(),
            next_worker: 0,
            expired_at: Instant::EPOCH,
            served_at: Instant::EPOCH,
            cycle: Cyclic::default(),
            status_in_op: AlStatus::in_state(AlState::Op),
            reference: None,
            reference_hands_on: true,
            settling: Settling::default(),
            reference_silent: 0,
            reference_lost: None,
            recovery: Recovery::default(),
            ring: None,
            latched_at: Instant::EPOCH,
            clocks_set: None,
            reference_time: None,
            reference_sample: None,
            answered_sent_at: Instant::EPOCH,
            requests: VecDeque::with_capacity(REQUESTS),
            events: VecDeque::with_capacity(EVENTS),
            events_dropped: 0,
        })
    }

    /// The next frame to send, written into `buffer`; its length is returned. Call until `None`.
    /// With a buffer of less than [`MAXIMUM_FRAME_LENGTH`] bytes none is sent.
    pub fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<usize> {
        let buffer = buffer.first_chunk_mut::<MAXIMUM_FRAME_LENGTH>()?;
        let frame = self.next_frame(now)?;
        buffer[..frame.len()].copy_from_slice(frame);
        Some(frame.len())
    }

    /// The same in place: a link that copies the frame makes the only copy.
    #[inline]
    pub fn next_frame(&mut self, now: Instant) -> Option<&[u8]> {
        if !self.cycle.sending.is_due && self.check_quiet() {
            self.served_at = now;
            return None;
        }
        let slot = self.transmit(now)?;
        Some(self.exchange.frame(slot))
    }

    /// Slot of the next frame, which is on its way from here on.
    fn transmit(&mut self, now: Instant) -> Option<usize> {
        self.note_served(now);
        // Process data first: it waits for nothing else.
        if self.cycle.sending.is_due
            && let Some(slot) = self.transmit_process_data(now)
        {
            return Some(slot);
        }
        if self.check_quiet() { None } else { self.transmit_others(now) }
    }

    /// The frames of a bus that is not quiet. Cold: kept apart from the code of a quiet cycle,
    /// which the processor has to fetch again each time the kernel has sent a frame.
    #[cold]
    fn transmit_others(&mut self, now: Instant) -> Option<usize> {
        self.cycle.expect_nothing();
        self.expire_services(now);
        self.advance(now);
        self.transmit_service(now)
    }

    /// Takes a received Ethernet frame, of any source.
    pub fn handle_frame(&mut self, now: Instant, bytes: &[u8]) -> Reception {
        let Some(Usual { index, ends_as_usual }) = self.exchange.accept_usual(bytes) else {
            return self.handle_other(now, bytes);
        };
        let taken = if ends_as_usual { self.cycle.receive_again(index, bytes) } else { None };
        match taken {
            None => self.deliver_all(now, index, bytes),
            Some(has_clocks) => {
                self.served_at = now;
                if has_clocks {
                    self.take_clocks(now, index, bytes);
                }
            }
        }
        Reception::Accepted
    }

    /// Takes the clock times of a reply with process data.
    #[inline(never)]
    fn take_clocks(&mut self, now: Instant, index: usize, bytes: &[u8]) {
        self.answered_sent_at = self.exchange.sent_at(index);
        let mut number = 0;
        while let Some(&sent) = self.exchange.datagrams(index).get(number) {
            let (data, working_counter) = sent.answer(bytes);
            match sent.owner {
                Owner::ReferenceTime => self.take_reference_time(now, data),
                Owner::ClockDifference => self.take_difference(data, working_counter),
                _ => {}
            }
            number += 1;
        }
    }

    fn take_difference(&mut self, data: &[u8], working_counter: u16) {
        if working_counter == 1 {
            let difference = dc::difference_nanoseconds(read_u32(data, 0).unwrap_or(0));
            self.sub_devices[usize::from(self.cycle.clocks.asked)].clock_difference = Some(difference);
        }
    }

    /// Delivers all datagrams of the frame in a slot, and takes the steps that follow from them.
    #[cold]
    fn deliver_all(&mut self, now: Instant, index: usize, bytes: &[u8]) {
        self.note_served(now);
        self.cycle.expect_nothing();
        self.answered_sent_at = self.exchange.sent_at(index);
        let mut number = 0;
        while let Some(&sent) = self.exchange.datagrams(index).get(number) {
            let (data, working_counter) = sent.answer(bytes);
            self.deliver(now, sent.owner, data, working_counter);
            number += 1;
        }
        if !self.check_quiet() {
            self.advance(now);
        }
    }

    /// Takes a frame that is no usual reply with process data.
    #[cold]
    fn handle_other(&mut self, now: Instant, bytes: &[u8]) -> Reception {
        self.note_served(now);
        let (index, purpose) = match self.exchange.accept(bytes) {
            Ok(answered) => answered,
            Err(reception) => return self.refused(now, bytes, reception),
        };
        if purpose == Purpose::Service {
            self.exchange.reply_time.answered(now.since(self.exchange.sent_at(index)));
        }
        self.deliver_all(now, index, bytes);
        Reception::Accepted
    }

    /// A frame came that answers none on its way.
    fn refused(&mut self, now: Instant, bytes: &[u8], reception: Reception) -> Reception {
        if reception == Reception::Late {
            self.exchange.learn_late(now, bytes);
        }
        if matches!(reception, Reception::Late | Reception::Duplicate) {
            self.cycle.disturbed();
        }
        if reception == Reception::OtherMainDevice && self.others.received(now) {
            let source = frame::source(bytes);
            self.tell(Event::OtherMainDevice { source, frames: self.reception().other_main_device });
        }
        reception
    }

    /// The next thing that happened. Call until `None`.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Time of the next [`Self::poll_transmit`] if no frame comes before; `None`: not until a cycle
    /// or a request. Every other call may change it.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let expiry = self.exchange.oldest(Purpose::Service).map(|sent| sent + self.reply_timeout());
        // Without space for a frame, its reply comes first, or it expires.
        let due = self.workers.next_due().filter(|_| self.exchange.has_room());
        let settling = self.phase == Phase::SettleClocks && self.settling.is_due();
        let settling = settling.then_some(Instant::EPOCH);
        [expiry, due, settling, self.broadcasts.due(), self.recovery.due()].into_iter().flatten().min()
    }

    /// Phase of the bus.
    #[must_use]
    pub fn phase(&self) -> BringUpPhase {
        self.phase.bring_up_phase()
    }

    /// Requests another state: [`AlState::Init`] shuts the bus down from any state; a higher state
    /// is the new target of a bus that is not shut down.
    pub fn request_state(&mut self, state: AlState) {
        self.cycle.expect_nothing();
        if state == AlState::Init {
            self.take_down();
        } else {
            self.configuration.target = state;
        }
    }

    /// Sets the time between two cycles, before the first of them.
    ///
    /// # Errors
    /// A period that cannot be run, or process data that flows already.
    pub fn set_period(&mut self, period: Duration) -> Result<(), ConfigurationError> {
        configuration::check_period(period)?;
        if self.cycle.running || self.phase() > BringUpPhase::PreOp {
            return Err(ConfigurationError::Running);
        }
        self.configuration.period = period;
        self.workers.iter_mut().for_each(|worker| worker.set_period(period));
        let groups = self.configuration.groups(self.sub_devices.len());
        let layout = self.cycle.layout.fitted(&groups, period);
        self.lay_out(layout, &groups);
        Ok(())
    }

    /// The configuration it was given.
    #[must_use]
    pub fn configuration(&self) -> &Configuration {
        &self.configuration
    }

    /// The SubDevices found, by position; complete, and in the order of the cable, from
    /// [`BringUpPhase::Clocks`] on.
    #[must_use]
    pub fn sub_devices(&self) -> &[SubDevice] {
        &self.sub_devices
    }

    /// The inputs of the SubDevice at `position`, as they came in last; empty if it has none.
    #[must_use]
    pub fn inputs(&self, position: usize) -> &[u8] {
        self.sub_devices.get(position).map_or(&[], |it| &self.cycle.inputs[it.inputs.clone()])
    }

    /// True if all inputs of the SubDevice at `position`, and of its group, came in with the last
    /// cycle that was ended.
    ///
    /// A short working counter shows that a SubDevice is missing, and not which: all in the
    /// datagram count as missing for that cycle. From the next cycle on each SubDevice has separate
    /// datagrams, until all have been complete for ten cycles. On buses with too many SubDevices
    /// for that, neighbours still share them.
    ///
    /// Inputs that take more than one datagram also need a complete and undisturbed previous cycle,
    /// as an ESC keeps a buffer that was read in part for the next cycle.
    #[must_use]
    pub fn inputs_fresh(&self, position: usize) -> bool {
        self.cycle.is_fresh(position)
    }

    /// True if the SubDevice at `position`, and its group, took the outputs of the last cycle that
    /// was ended. True if there are none.
    #[must_use]
    pub fn outputs_taken(&self, position: usize) -> bool {
        self.cycle.is_taken(position)
    }

    /// True if the SubDevice at `position`, and its group, took part in the last cycle that was
    /// ended: [`Self::inputs_fresh`] and [`Self::outputs_taken`].
    #[must_use]
    pub fn exchanged(&self, position: usize) -> bool {
        self.inputs_fresh(position) && self.outputs_taken(position)
    }

    /// True if the SubDevice at `position` is in Op, as far as is known. One that is absent or does
    /// not answer is not.
    #[must_use]
    pub fn is_in_op(&self, position: usize) -> bool {
        let in_op = AlStatus::in_state(AlState::Op);
        let is_shown = self.sub_devices.get(position).is_some_and(|it| it.al_status == in_op);
        is_shown && self.recovery.is_in_op(position as u16) && !self.does_not_answer(position as u16)
    }

    /// The outputs of the SubDevice at `position`, as the next cycle sends them; empty if it has
    /// none.
    #[must_use]
    pub fn outputs_mut(&mut self, position: usize) -> &mut [u8] {
        match self.sub_devices.get(position) {
            None => &mut [],
            Some(it) => &mut self.cycle.outputs[it.outputs.clone()],
        }
    }

    /// Bytes of the whole process image: outputs, inputs.
    #[must_use]
    pub fn process_image_bytes(&self) -> (usize, usize) {
        (self.cycle.outputs.len(), self.cycle.inputs.len())
    }

    /// Working counters of the last cycle, one for each process data datagram, in the order they
    /// are sent.
    pub fn working_counters(&self) -> impl Iterator<Item = WorkingCounter> {
        self.cycle.working_counters()
    }

    /// Frames sent and received since the start.
    #[must_use]
    pub fn reception(&self) -> ReceptionCounters {
        self.exchange.counters
    }

    /// Distributed clocks as they stand.
    #[must_use]
    pub fn clock(&self) -> ClockReport {
        let there = self.sub_devices.iter().filter(|it| !self.is_gone(it.position));
        let differences = there.filter_map(|it| it.clock_difference);
        let largest = differences.map(i32::unsigned_abs).max().unwrap_or(0);
        ClockReport {
            reference: self.reference,
            reference_time: self.reference_time.map_or(0, |(time, _)| time),
            largest_difference: Duration::from_nanos(u64::from(largest)),
        }
    }

    /// Events that were not polled in time.
    #[must_use]
    pub fn events_dropped(&self) -> u64 {
        self.events_dropped
    }

    /// Queues a mailbox request; its outcome comes as [`Event::Mailbox`].
    ///
    /// # Errors
    /// Returns the request if there is no such SubDevice or mailbox, the SubDevice does not answer
    /// ([`MailboxError::Gone`]), the bus is below PreOp, or too many requests wait (both
    /// [`MailboxError::NotReady`]).
    pub fn submit(&mut self, request: MailboxRequest) -> Result<(), MailboxOutcome> {
        let refuse = |request, error| Err(MailboxOutcome { request, result: Err(error) });
        let count = self.sub_devices.len();
        let position = request.position;
        match self.sub_devices.get(usize::from(position)) {
            _ if !self.phase.serves_mailboxes() || self.requests.len() == REQUESTS => {
                refuse(request, MailboxError::NotReady)
            }
            None => refuse(request, MailboxError::NoSubDevice { position, count }),
            Some(_) if self.is_gone(position) => refuse(request, MailboxError::Gone),
            Some(it) if !it.mailbox.is_some_and(|mailbox| mailbox.coe) => {
                refuse(request, MailboxError::NoCoe)
            }
            Some(_) => {
                self.requests.push_back(request);
                Ok(())
            }
        }
    }

    /// Takes the data of a reply.
    fn deliver(&mut self, now: Instant, owner: Owner, data: &[u8], working_counter: u16) {
        match owner {
            Owner::Chunk(chunk, part) => self.cycle.receive(chunk, part, data, working_counter),
            Owner::ClockDifference => self.take_difference(data, working_counter),
            Owner::HostTime | Owner::Passage => {}
            Owner::ReferenceTime => self.take_reference_time(now, data),
            Owner::Settling => {
                self.settling.over();
                self.take_reference_time(now, data);
            }
            Owner::Spread => {
                let of_all = usize::from(working_counter) >= self.clocks();
                self.settling.spread_came(data, of_all);
            }
            Owner::BusStatus => {
                let status = AlStatus::from_bits(read_u16(data, 0).unwrap_or(0));
                self.watch_states(now, status, working_counter);
            }
            Owner::MailboxStatus => {
                let place = usize::from(self.cycle.mailboxes.asked);
                let is_full = working_counter == 1 && sync_manager::is_mailbox_full(data);
                if is_full && self.workers[place].takes_mail() {
                    self.workers[place].mailbox.fetch_mail(now);
                }
            }
            Owner::Bus => self.broadcast_answered(working_counter),
            Owner::Survey(place) => self.survey_answered(now, place, data, working_counter),
            Owner::Visit => self.visit_answered(now, data, working_counter),
            Owner::Worker(position) => {
                let place = usize::from(position);
                let before = self.sub_devices[place].al_status;
                let received = Received { now, bus_time: self.bus_time(now), working_counter };
                let outcome = self.workers[place].reply(received, data, &mut self.sub_devices[place]);
                match outcome {
                    Outcome::Looked => self.note_state(now, position, before),
                    Outcome::Latched => self.read_receive_times(),
                    outcome => self.handle_outcome(now, position, outcome),
                }
            }
        }
    }

    fn handle_outcome(&mut self, now: Instant, position: u16, outcome: Outcome) {
        match outcome {
            Outcome::Nothing | Outcome::Looked | Outcome::Latched => {}
            Outcome::Failed(error) => {
                let Some(error) = self.recovery_failed(now, position, error) else { return };
                let error = bring_up::at(&self.sub_devices[usize::from(position)], error);
                self.fail(error);
            }
            Outcome::Mailbox(outcome) => self.tell(Event::Mailbox(outcome)),
            Outcome::Unreachable => self.note_unreachable(now, position),
            Outcome::SyncMissed(miss) => self.tell(Event::SyncMissed { position, miss }),
            Outcome::Emergency(emergency) => {
                self.sub_devices[usize::from(position)].emergencies += 1;
                self.tell(Event::Emergency {
                    position,
                    error_code: emergency.error_code,
                    error_register: emergency.error_register,
                    manufacturer: emergency.data,
                });
            }
        }
    }

    fn tell(&mut self, event: Event) {
        if self.events.len() == EVENTS.max(EVENTS_EACH * self.sub_devices.len()) {
            self.events_dropped += 1;
        } else {
            self.events.push_back(event);
        }
    }
}
