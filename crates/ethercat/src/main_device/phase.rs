//! Bring-up and shutdown: phases that all SubDevices go through together.

mod process_data;

use alloc::vec;
use alloc::vec::Vec;

use types::WorkingCounter;

use crate::al::{AlState, AlStatus};
use crate::redundancy::Ring;
use crate::time::Instant;

use super::MainDevice;
use super::barrier::BarrierState;
use super::bring_up;
use super::configuration::Presence;
use super::error::{BusError, SubDeviceError};
use super::exchange::Purpose;
use super::limits::{self, Limits};
use super::open_ring::{self, OpenRing};
use super::plan::{self, Action};
use super::presence;
use super::report::{BringUpPhase, Event};
use super::sub_device::SubDevice;
use super::together::Together;
use super::worker::Worker;
use super::workers::Workers;

/// Step that all SubDevices are at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    OpenPorts,
    Reset,
    Identify,
    Latch,
    ReadLatched,
    Address,
    SetClocks,
    PreOp,
    ProcessData,
    SettleClocks,
    ReadDifferences,
    Ready,
    SafeOp,
    WholeCycles,
    Op,
    Running,
    ToInit,
    AwaitInit,
    Down,
}

impl Phase {
    pub(super) fn bring_up_phase(self) -> BringUpPhase {
        match self {
            Self::OpenPorts
            | Self::Reset
            | Self::Identify
            | Self::Latch
            | Self::ReadLatched
            | Self::Address => BringUpPhase::Scan,
            Self::SetClocks => BringUpPhase::Clocks,
            Self::PreOp | Self::ProcessData | Self::SettleClocks | Self::ReadDifferences => {
                BringUpPhase::Configuration
            }
            Self::Ready => BringUpPhase::PreOp,
            Self::SafeOp => BringUpPhase::ToSafeOp,
            Self::WholeCycles => BringUpPhase::SafeOp,
            Self::Op => BringUpPhase::ToOp,
            Self::Running => BringUpPhase::Op,
            Self::ToInit | Self::AwaitInit => BringUpPhase::ToInit,
            Self::Down => BringUpPhase::Down,
        }
    }

    pub(super) fn has_process_data(self) -> bool {
        matches!(self, Self::Ready | Self::SafeOp | Self::WholeCycles | Self::Op | Self::Running)
    }

    pub(super) fn serves_mailboxes(self) -> bool {
        self.has_process_data()
    }

    /// Op was requested.
    pub(super) fn is_towards_op(self) -> bool {
        matches!(self, Self::Op | Self::Running)
    }

    pub(super) fn is_going_down(self) -> bool {
        matches!(self, Self::ToInit | Self::AwaitInit | Self::Down)
    }
}

/// One SubDevice's plans for later, made before the cycle starts.
#[derive(Debug, Default)]
pub(super) struct Plans {
    safe_op: Vec<Action>,
    op: Vec<Action>,
    init: Vec<Action>,
    /// Back to Op from SafeOp.
    pub(super) short: Vec<Action>,
    /// Back to Op from any state.
    pub(super) anew: Vec<Action>,
}

impl MainDevice {
    /// Looks for anything in Op but process data: to send, to wait for or to change. True if there
    /// is nothing.
    #[inline(always)]
    pub(super) fn check_quiet(&mut self) -> bool {
        // While a frame is sent again nothing happened; there may be a new request.
        let is_asked = !self.requests.is_empty() || !self.workers.are_known_at_rest();
        self.cycle.repeats() && !is_asked || self.check_all_quiet()
    }

    #[cold]
    fn check_all_quiet(&mut self) -> bool {
        self.phase == Phase::Running
            && self.requests.is_empty()
            && self.exchange.in_flight(Purpose::Service) == 0
            && self.broadcasts.is_done()
            && self.recovery.is_idle()
            && self.workers.are_at_rest()
    }

    /// Continues to the next phase while all are done with this one.
    pub(super) fn advance(&mut self, now: Instant) {
        // First: the end of a recovery clears the mailbox.
        self.recover(now);
        self.serve_requests(now);
        if matches!(self.phase, Phase::Running | Phase::Down) {
            return;
        }
        // SYNC0 waits for the reference clock's time, and that for a cycle that comes back.
        let waits_for_time = self.phase == Phase::SafeOp && self.reference_time.is_none();
        if waits_for_time && self.is_late(now) {
            let error = self.incomplete_process_data(now);
            self.fail(error);
        }
        self.expire_together(now);
        while self.broadcasts.is_done() && self.workers.are_done() {
            let before = self.phase;
            if let Err(error) = self.leave_phase(now) {
                self.fail(error);
            }
            if self.phase == before {
                return;
            }
            let (old, phase) = (before.bring_up_phase(), self.phase.bring_up_phase());
            self.phase_since = now;
            self.broadcasts.since = None;
            if old != phase {
                self.tell(Event::BringUpPhase { phase, at: now });
            }
        }
    }

    fn leave_phase(&mut self, now: Instant) -> Result<(), BusError> {
        match self.phase {
            Phase::OpenPorts if self.broadcasts.without_more < limits::ROUNDS_WITHOUT_MORE => {
                self.broadcasts.start(&bring_up::OPEN_PORTS);
                Ok(())
            }
            Phase::OpenPorts => {
                self.broadcasts.start(&bring_up::RESET);
                self.phase = Phase::Reset;
                Ok(())
            }
            Phase::Reset => self.begin_identify(),
            Phase::Identify if self.sub_devices.iter().any(SubDevice::has_clock) => {
                self.broadcasts.start(&bring_up::LATCH);
                self.phase = Phase::Latch;
                Ok(())
            }
            Phase::Identify => self.arrange(now),
            Phase::Latch => {
                for (worker, sub_device) in self.workers.iter_mut().zip(&self.sub_devices) {
                    if sub_device.has_clock() {
                        worker.start(&mut plan::read_latched_times());
                    }
                }
                self.latched_at = now;
                self.phase = Phase::ReadLatched;
                Ok(())
            }
            Phase::ReadLatched => self.arrange(now),
            Phase::Address => self.put_in_places(),
            Phase::SetClocks => self.begin_pre_op(),
            Phase::PreOp => self.begin_process_data(),
            Phase::ProcessData => {
                // Tools that stop at PreOp inspect every bus.
                if self.configuration.target > AlState::PreOp {
                    bring_up::check(&self.sub_devices)?;
                }
                self.begin_settling(now);
                Ok(())
            }
            Phase::SettleClocks => {
                self.go_on_settling(now);
                Ok(())
            }
            Phase::ReadDifferences => {
                self.tell_who_is_off();
                self.phase = Phase::Ready;
                Ok(())
            }
            Phase::Ready if self.cycle.running => {
                bring_up::check(&self.sub_devices)?;
                self.check_siis()?;
                self.start_plans(|plans| &mut plans.safe_op);
                self.gather(AlState::SafeOp);
                self.phase = Phase::SafeOp;
                Ok(())
            }
            Phase::SafeOp => {
                self.cycle.forget_whole_cycles();
                self.phase = Phase::WholeCycles;
                Ok(())
            }
            Phase::WholeCycles => self.await_whole_cycles(now),
            Phase::Op => {
                // A SubDevice without an SII stays in Init.
                if self.sub_devices.iter().any(|it| it.sii_problem.is_some()) {
                    self.status_in_op.state |= AlState::Init.number();
                }
                self.phase = Phase::Running;
                self.tell_who_is_absent();
                Ok(())
            }
            Phase::ToInit => {
                self.start_plans(|plans| &mut plans.init);
                self.phase = Phase::AwaitInit;
                Ok(())
            }
            Phase::AwaitInit => {
                self.phase = Phase::Down;
                Ok(())
            }
            Phase::Ready | Phase::Running | Phase::Down => Ok(()),
        }
    }

    fn begin_identify(&mut self) -> Result<(), BusError> {
        let count = self.broadcasts.counted.filter(|&count| count > 0).ok_or(BusError::Empty)?;
        let found = usize::from(count);
        if found > super::MAXIMUM_SUB_DEVICES {
            return Err(BusError::TooMany { found, maximum: super::MAXIMUM_SUB_DEVICES });
        }
        self.sub_devices = (0..count).map(SubDevice::new).collect();
        self.make_workers();
        let names = self.configuration.sub_devices.iter().flatten().map(|it| &it.name);
        for (sub_device, name) in
            self.sub_devices.iter_mut().zip(names).filter(|(_, name)| !name.is_empty())
        {
            sub_device.name.clone_from(name);
        }
        for worker in self.workers.iter_mut() {
            worker.start(&mut plan::identify());
        }
        self.phase = Phase::Identify;
        Ok(())
    }

    /// A worker without a plan for every SubDevice.
    pub(super) fn make_workers(&mut self) {
        let count = self.sub_devices.len() as u16;
        let limits = Limits { sub_devices: count, ..Limits::of(&self.configuration) };
        let workers = self.sub_devices.iter().map(|it| Worker::new(it, limits));
        self.workers = Workers::new(workers.collect());
        self.plans = self
            .sub_devices
            .iter()
            .map(|_| Plans { init: plan::init(false), ..Plans::default() })
            .collect();
    }

    /// The identities and receive times of all are known: sorts the SubDevices by the cable,
    /// compares them with the description, and sets their clocks.
    fn arrange(&mut self, now: Instant) -> Result<(), BusError> {
        if self.ring.is_some() {
            bring_up::name(&mut self.sub_devices)?;
        }
        match self.ring {
            Some(Ring::Open { before }) => open_ring::check_open(&self.sub_devices, before)?,
            Some(Ring::Turned) => open_ring::check_turned(&self.sub_devices)?,
            Some(Ring::Closed) => open_ring::note_implausible_times(&mut self.sub_devices),
            None => {}
        }
        let open =
            self.ring_open_behind().and_then(|before| open_ring::close(&mut self.sub_devices, before));
        bring_up::sort_by_cable(&mut self.sub_devices, open.is_none())?;
        // From here on it is known whether a SubDevice marks frames as circulating: otherwise a
        // mark means a broken ring.
        let marks = |it: &SubDevice| it.entry_port != 0 && !it.dl_status.is_open(0);
        self.exchange.takes_circulating = self.sub_devices.iter().any(marks);
        if let Some(described) = self.configuration.may_lack() {
            bring_up::name(&mut self.sub_devices)?;
            self.assigned = presence::assign(&self.sub_devices, described)?;
            self.measure_clocks(now, open);
            return self.begin_addresses();
        }
        self.make_workers();
        bring_up::verify(&mut self.sub_devices, self.configuration.sub_devices.as_deref())?;
        self.check_siis()?;
        self.measure_clocks(now, open);
        // Their addresses count the order of processing, which differs from that of the cable here.
        if self.sub_devices.iter().all(|it| it.processed == it.position) {
            return self.begin_clocks();
        }
        self.assigned = self.sub_devices.iter().map(|it| Some(it.position)).collect();
        self.begin_addresses()
    }

    /// Works out the delays and offsets of all clocks, where there are any.
    fn measure_clocks(&mut self, now: Instant, open: Option<OpenRing>) {
        if !self.configuration.distributed_clocks || !self.sub_devices.iter().any(SubDevice::has_clock) {
            return;
        }
        let system_time = self.host_time(now);
        let assigned = &self.assigned;
        let is_stranger = |place: usize| assigned.get(place).is_some_and(Option::is_none);
        self.reference = bring_up::set_clocks(&mut self.sub_devices, system_time, is_stranger, open);
        self.clocks_set = Some((system_time, self.latched_at));
    }

    pub(super) fn begin_clocks(&mut self) -> Result<(), BusError> {
        if self.sub_devices.iter().all(|it| it.clock.is_none()) {
            return self.begin_pre_op();
        }
        for (worker, sub_device) in self.workers.iter_mut().zip(&self.sub_devices) {
            if let Some(setting) = sub_device.clock {
                worker.start(&mut plan::set_clock(setting));
            }
        }
        self.phase = Phase::SetClocks;
        Ok(())
    }

    /// Tools may inspect a SubDevice without an SII; a running bus may need it.
    pub(super) fn check_siis(&self) -> Result<(), BusError> {
        match self.configuration.target > AlState::PreOp {
            true => bring_up::check_siis(&self.sub_devices, self.configuration.sub_devices.as_deref()),
            false => Ok(()),
        }
    }

    fn begin_pre_op(&mut self) -> Result<(), BusError> {
        let default = super::SubDeviceConfiguration::default();
        for (position, sub_device) in self.sub_devices.iter_mut().enumerate() {
            if sub_device.sii_problem.is_some() {
                // Nothing is known of it, and its ESC has not been configured: it stays in Init.
                continue;
            }
            let configured = self.configuration.sub_devices.as_ref().and_then(|it| it.get(position));
            let configuration = configured.unwrap_or(&default);
            let fail = |sub_device: &SubDevice, error| Err(bring_up::at(sub_device, error));
            sub_device.wanted_watchdog = configuration.process_data_watchdog;
            sub_device.wanted_pdi_watchdog = configuration.pdi_watchdog;
            bring_up::mapping(sub_device, configuration);
            sub_device.barriers = vec![BarrierState::default(); configuration.barriers.len()];
            if sub_device.is_absent || sub_device.mark.presence == Presence::HotConnect {
                self.workers[position].mailbox.reserve();
            }
            if configuration.sync0.is_some() && !self.configuration.distributed_clocks {
                return fail(sub_device, SubDeviceError::ClocksOff);
            }
            if sub_device.is_absent {
                let init = plan::init(configuration.sync0.is_some());
                self.plans[position] = Plans { init, ..Plans::default() };
                continue;
            }
            sub_device.mailbox = match bring_up::mailbox(sub_device) {
                Ok(mailbox) => mailbox,
                Err(error) => return fail(sub_device, error),
            };
            let has_coe = sub_device.mailbox.is_some_and(|mailbox| mailbox.coe);
            if bring_up::needs_coe(configuration) && !has_coe {
                return fail(sub_device, SubDeviceError::NoCoe);
            }
            if bring_up::describes_pdos(configuration) && !has_coe {
                if let Err(error) = bring_up::check_own_pdos(sub_device) {
                    return fail(sub_device, error);
                }
            }
            if let Err(error) = bring_up::oversample(sub_device, configuration) {
                return fail(sub_device, error);
            }
            if configuration.sync0.is_some() && sub_device.clock.is_none() {
                return fail(sub_device, SubDeviceError::NoClock);
            }
            if configuration.latches.is_some() && !sub_device.has_clock() {
                return fail(sub_device, SubDeviceError::NoLatches);
            }
            self.plans[position] = Plans {
                safe_op: plan::safe_op(configuration),
                op: plan::op(),
                init: plan::init(configuration.sync0.is_some()),
                ..Plans::default()
            };
            let worker = &mut self.workers[position];
            worker.mailbox.open(sub_device.mailbox);
            let unknown = bring_up::unknown_mapping(sub_device, configuration);
            let at_once = sub_device.has_complete_access();
            worker.start(&mut plan::pre_op(sub_device.mailbox.as_ref(), configuration, unknown, at_once));
        }
        self.phase = Phase::PreOp;
        Ok(())
    }

    /// True if this phase has taken the time of a change of state.
    fn is_late(&self, now: Instant) -> bool {
        now.since(self.phase_since) >= self.configuration.state_timeout
    }

    fn incomplete_process_data(&self, now: Instant) -> BusError {
        let short = self.cycle.replies.short;
        let after = now.since(self.phase_since);
        let comes_back = short.is_none_or(|(_, it)| it.received.is_some());
        // Before SYNC0 starts, some do not need to take part.
        if comes_back && self.reference.is_some() && self.reference_time.is_none() {
            return BusError::NoReferenceTime { after };
        }
        let whole = WorkingCounter { expected: 0, received: Some(0) };
        let (datagram, it) = short.unwrap_or((0, whole));
        BusError::IncompleteProcessData { after, datagram, expected: it.expected, received: it.received }
    }

    fn start_plans(&mut self, select: impl Fn(&mut Plans) -> &mut Vec<Action>) {
        for position in 0..self.workers.len() {
            if self.sub_devices[position].is_absent {
                continue;
            }
            let dropped = self.workers[position].start(select(&mut self.plans[position]));
            if let Some(outcome) = dropped {
                self.tell(Event::Mailbox(outcome));
            }
        }
    }

    /// Reports why, and takes the bus to Init.
    pub(super) fn fail(&mut self, error: BusError) {
        if !self.phase.is_going_down() {
            self.tell(Event::Failed(error));
            self.take_down();
        } else if self.phase == Phase::AwaitInit {
            // A SubDevice does not leave its state: all were requested to.
            self.drop_plans();
        }
    }

    /// Empties the plans of the workers; outstanding requests are answered.
    fn drop_plans(&mut self) {
        self.together = Together::Apart;
        for position in 0..self.workers.len() {
            if let Some(outcome) = self.workers[position].start(&mut Vec::new()) {
                self.tell(Event::Mailbox(outcome));
            }
        }
    }

    pub(super) fn take_down(&mut self) {
        if self.phase.is_going_down() {
            return;
        }
        self.drop_plans();
        self.cycle.stop();
        self.broadcasts.start(&bring_up::TO_INIT);
        self.broadcasts.since = None;
        self.phase = Phase::ToInit;
    }

    /// AL status and working counter of a broadcast without news for a quiet bus, so that
    /// [`Self::watch_states`] would do nothing; `None` while every broadcast may have some.
    pub(super) fn settled_status(&self) -> Option<(u16, u16)> {
        let answering = self.recovery.answering();
        let is_settled = usize::from(answering) + self.recovery.absent() == self.workers.len()
            && self.together == Together::Apart
            && self.reference_lost.is_none();
        is_settled.then(|| (self.status_in_op.bits(), answering))
    }

    /// In Op: has all examined when one is missing or shows another state.
    pub(super) fn watch_states(&mut self, now: Instant, combined: AlStatus, working_counter: u16) {
        self.see_together(now, combined, working_counter);
        let settled = matches!(self.phase, Phase::Running);
        let fine = combined == self.status_in_op
            && usize::from(working_counter) + self.recovery.absent() == self.workers.len()
            && self.recovery.is_idle();
        if settled {
            self.recovery.note_answering(working_counter);
            // It was gone for a moment, or another takes its place.
            if self.reference_lost.is_some_and(|since| now.since(since) >= limits::REFERENCE_PAUSE) {
                self.elect_reference();
            }
        }
        if settled && !fine && now.since(self.phase_since) >= limits::LOOK_PAUSE {
            self.phase_since = now;
            self.workers.iter_mut().for_each(Worker::look_at_status);
        }
    }
}
