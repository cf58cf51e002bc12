//! The real-time cycle.

mod bus_time;
mod called;
mod ended;
mod events;
mod follow;
mod stalls;

use std::fmt;
use std::io;
use std::time::Duration;

use ethercat::al::AlState;
use ethercat::link::MAXIMUM_FRAME_LENGTH;
use ethercat::main_device::{BringUpPhase, BusError, MainDevice};
use ethercat::time::Instant;
use ethercat_linux::cyclic;
use ethercat_linux::link::Link;
use ipc::message::control::Action;
use motion::Seconds;
use motion::supervision::BLIND_CYCLES;
use record::{CycleRecord, Phase};
use types::CycleClock;
use types::cycle::LOSS_TIME;

use crate::axis::{Axes, AxisConfiguration, AxisError, Conditions, FaultCodes};
use crate::bus::BusRequests;
use crate::clock_lock::ClockLock;
use crate::controller::{Controller, ControllerOutput, CycleInfo, Freshness, Io};
use crate::interlock::{InterlockError, Interlocks};
use crate::ipc::Ipc;
use crate::observer::{CycleEvent, Happening, Observer, Publisher, publication};
use crate::publication::Publication;
use crate::sampling::{Sampler, Samples, sampling};
use crate::signal::{Governing, Moment, Signals, SignalsError};
use crate::status::Status;
use crate::stop::{ShutdownPhase, Situation, StopHandle};
use crate::watch::BusWatch;
use rt::clock::{Clock, MonotonicClock};
use rt::pacer::{OverrunPolicy, Pacer, Release};

pub use crate::watch::Lost;
use bus_time::BusTime;
use called::CalledController;
pub use ended::Ended;
pub use stalls::{HostStalls, USUAL_WATCHDOG};
pub use types::FrameOrder;

/// Settings of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CycleConfiguration {
    /// Time between two releases.
    pub period: Duration,
    /// Reply that a cycle works with.
    pub order: FrameOrder,
    /// Cycles in Op after which the cycle ends; `None` runs until a stop is requested.
    pub cycles: Option<u64>,
    /// Policy for releases that a cycle ran past.
    pub overrun: OverrunPolicy,
    /// Clock that its releases follow.
    pub clock: CycleClock,
    /// Time the bus may stay lost, so that no SubDevice answers, before the cycle ends; `None`
    /// waits forever.
    pub loss: Option<Duration>,
}

impl CycleConfiguration {
    /// At this period until it is asked to stop: each cycle takes the reply to the last, and
    /// releases that are missed are skipped.
    #[must_use]
    pub fn every(period: Duration) -> Self {
        let (order, overrun) = (FrameOrder::default(), OverrunPolicy::default());
        Self { period, order, cycles: None, overrun, clock: CycleClock::default(), loss: Some(LOSS_TIME) }
    }
}

/// A MainDevice on its link, run cycle by cycle.
///
/// Nothing in it fails: it is recorded, and the other side reads it from the [`Observer`].
pub struct Cycle<L, C> {
    main_device: MainDevice,
    link: L,
    pacer: Pacer<C>,
    /// Time of SubDevices in this process.
    bus_time: Option<BusTime>,
    host_stalls: HostStalls,
    /// It waits for the readers of its records.
    is_patient: bool,
    axes: Axes,
    controller: CalledController,
    configuration: CycleConfiguration,
    publisher: Publisher,
    record: CycleRecord,
    publication: Publication,
    /// Its axes stay as they were: the publication has the present ones.
    status: Status,
    /// As it was in the last cycle before the stop.
    before_stop: Status,
    controller_lost: bool,
    /// True if axes moved, or had a torque, when the command went stale; `None` unless it is stale.
    stale_in_motion: Option<bool>,
    command_lost: bool,
    /// Status at the request for Init.
    before_init: Status,
    phase: ShutdownPhase,
    /// Since when the stop hurries, by the host's clock.
    hurried_since: Option<Instant>,
    ipc: Option<Ipc>,
    bus: Option<BusRequests>,
    output: ControllerOutput,
    cycles_in_op: u64,
    failure: Option<BusError>,
    stopped_by_overrun: Option<u64>,
    fault_codes: FaultCodes,
    interlocks: Interlocks,
    signals: Signals,
    sampler: Option<Sampler>,
    watch: BusWatch,
    lock: Option<ClockLock>,
    /// When the last cycle began.
    begun: Option<Instant>,
    frame: [u8; MAXIMUM_FRAME_LENGTH],
}

impl<L: Link, C: Clock> Cycle<L, C> {
    /// Makes a cycle around a MainDevice that was brought up to PreOp, and its observer.
    ///
    /// # Errors
    /// An axis with objects that are not in the process data of its drive.
    pub fn new(
        main_device: MainDevice,
        link: L,
        clock: C,
        axes: &[AxisConfiguration],
        controller: Box<dyn Controller>,
        configuration: CycleConfiguration,
    ) -> Result<(Self, Observer), AxisError> {
        rt::panic::prepare();
        let sub_devices = main_device.sub_devices().len();
        let (publisher, observer) = publication(sub_devices, axes.len());
        let bound = Axes::bind(axes, &main_device, configuration.period)?;
        let cycle = Self {
            fault_codes: FaultCodes::of(&bound),
            watch: BusWatch::new(sub_devices, axes.len(), configuration.loss),
            // Half a period from SYNC0 without a shift, on either side.
            lock: (configuration.clock == CycleClock::Reference)
                .then(|| ClockLock::new(configuration.period, configuration.period / 2)),
            begun: None,
            axes: bound,
            interlocks: Interlocks::default(),
            signals: Signals::default(),
            sampler: None,
            main_device,
            link,
            pacer: Pacer::new(clock, configuration.period).with_policy(configuration.overrun),
            bus_time: None,
            host_stalls: HostStalls::default(),
            is_patient: false,
            controller: CalledController::new(controller),
            configuration,
            publisher,
            record: CycleRecord::begin(0, 0, 0),
            publication: Publication::new(configuration.period, axes.len()),
            status: Status::initial(sub_devices, axes.len()),
            before_stop: Status::initial(sub_devices, axes.len()),
            controller_lost: false,
            stale_in_motion: None,
            command_lost: false,
            before_init: Status::initial(sub_devices, axes.len()),
            phase: ShutdownPhase::Running,
            ipc: None,
            bus: None,
            output: ControllerOutput::default(),
            cycles_in_op: 0,
            failure: None,
            stopped_by_overrun: None,
            hurried_since: None,
            frame: [0; MAXIMUM_FRAME_LENGTH],
        };
        Ok((cycle, observer))
    }

    /// The same with digital inputs that stop axes, or permit them to be enabled.
    ///
    /// # Errors
    /// An interlock with a missing input.
    pub fn with_interlocks(self, configurations: &[types::Interlock]) -> Result<Self, InterlockError> {
        let mut interlocks = Interlocks::bind(configurations, &self.main_device)?;
        interlocks.find_signals(&self.signals);
        Ok(Self { interlocks, ..self })
    }

    /// Gives it the axes that each controller moves together, in the order of the controllers:
    /// where one of them is unreferenced or not homed, the active controller moves none.
    #[must_use]
    pub fn with_chains(mut self, chains: Vec<Vec<usize>>) -> Self {
        self.axes.set_chains(chains);
        self
    }

    /// Gives it process data by name, which its controller finds in [`Controller::init`].
    ///
    /// # Errors
    /// A signal outside the process data, one that writes an output of an axis, one that the
    /// controller does not find, or its panic; [`Cycle::abandon`] gives back the bus.
    pub fn set_signals(&mut self, signals: Vec<types::Signal>) -> Result<(), SignalsError> {
        self.signals = Signals::bind(signals, &mut self.main_device, &self.axes.owned_outputs())?;
        self.interlocks.find_signals(&self.signals);
        self.axes.keep_torque_limits(&self.signals);
        self.controller.init(&self.signals)
    }

    /// Hands the signals at these places, in their order, and all axes over in every cycle from Op
    /// on, for a recording; after [`Cycle::set_signals`].
    pub fn sample(&mut self, places: Vec<usize>) -> Samples {
        self.publication.resize(self.signals.count(), self.interlocks.count());
        let (sampler, samples) = sampling(&self.signals, places, self.publication.rows());
        self.sampler = Some(sampler);
        samples
    }

    /// The bus of a cycle that is not to run.
    #[must_use]
    pub fn abandon(self) -> (MainDevice, L) {
        // Why there is no run is known already.
        let _ = self.controller.end();
        (self.main_device, self.link)
    }

    /// The same, asked and seen by other processes.
    ///
    /// # Panics
    /// If the IPC was opened for another number of axes.
    #[must_use]
    pub fn with_ipc(mut self, mut ipc: Ipc) -> Self {
        self.publication.set_region(ipc.take_region());
        Self { ipc: Some(ipc), ..self }
    }

    /// The same with requests of other programs to its bus.
    #[must_use]
    pub fn with_bus(self, requests: BusRequests) -> Self {
        Self { bus: Some(requests), ..self }
    }

    /// Its MainDevice, with the bus in PreOp.
    #[must_use]
    pub fn main_device(&self) -> &MainDevice {
        &self.main_device
    }

    /// The same with a spinning sleep, see [`Pacer`], by [`rt::profile::Grants::spin_margin`].
    #[must_use]
    pub fn with_spin(self, margin: Duration) -> Self {
        Self { pacer: self.pacer.with_spin(margin), ..self }
    }

    /// Runs on the calling thread: to Op, on until `stop` is set or the cycles have run, then the
    /// axes to rest, the drives disabled, the bus to Init.
    pub fn run(mut self, stop: &StopHandle) -> Ended<L> {
        let _mark = rt::panic::mark();
        self.publication.resize(self.signals.count(), self.interlocks.count());
        self.sampler.iter_mut().for_each(|it| it.follow(self.publication.rows()));
        self.pacer.restart();
        while self.phase != ShutdownPhase::Ended {
            self.await_readers(stop);
            let release = self.pacer.wait();
            self.begin_bus_time();
            self.begin(release);
            if self.configuration.order == FrameOrder::WaitForReply {
                self.transmit(release);
            }
            self.receive(release);
            self.read(release);
            self.command(stop);
            self.update(release);
            self.write();
            if self.configuration.order == FrameOrder::ReplyOfLastCycle {
                self.transmit(release);
            }
            self.publish(release);
        }
        self.status.read_axes(self.publication.axes());
        Ended {
            failure: self.failure,
            stopped_by_overrun: self.stopped_by_overrun,
            lost: self.watch.lost(),
            overruns: self.pacer.overruns(),
            host_stalls: self.bus_time.is_some().then_some(self.host_stalls),
            cycles_in_op: self.cycles_in_op,
            status: self.status,
            before_stop: self.before_stop,
            controller_lost: self.controller_lost,
            controller_panic: self.controller.end(),
            command_lost: self.command_lost,
            before_init: self.before_init,
            signal_counters: self.signals.counters(),
            signals: self.signals.into_before_stop(),
            main_device: self.main_device,
            link: self.link,
        }
    }

    /// The same for a cycle without real time, which waits for its observer and its samples to be
    /// read: none is dropped, unless the reader of the samples takes none for seconds.
    #[must_use]
    pub fn with_patience(self) -> Self {
        Self { is_patient: true, ..self }
    }

    fn await_readers(&mut self, stop: &StopHandle) {
        let Self { sampler, publisher, phase, is_patient, .. } = self;
        let mut samples = sampler.as_mut().filter(|_| *phase == ShutdownPhase::Running);
        let mut waits = || !publisher.has_room() || samples.as_mut().is_some_and(|it| it.waits());
        // From the stop on nothing is recorded.
        while *is_patient && !stop.is_requested() && waits() {
            std::thread::sleep(READERS_EVERY);
        }
    }

    fn begin(&mut self, release: Release) {
        let now = self.pacer.clock().now();
        self.record = CycleRecord::begin(release.cycle, release.instant.as_nanos(), now.as_nanos());
        self.record.skipped = u32::try_from(release.skipped).unwrap_or(u32::MAX);
        // An overrun on the way to Op moves nothing: it is counted only.
        // Bus time is not late: SubDevices in this process wait for the cycle.
        let stops = self.configuration.overrun == OverrunPolicy::Stop
            && self.bus_time.is_none()
            && release.after_overrun
            && self.phase == ShutdownPhase::Running
            && self.main_device.phase() == BringUpPhase::Op;
        if stops {
            self.stopped_by_overrun = self.pacer.overruns().last;
        }
    }

    /// Frames to the process image.
    fn receive(&mut self, release: Release) {
        // The last quarter of the period is for computing.
        let timeout = self.configuration.period * 3 / 4;
        let (now, start) = (self.bus_now(), self.bus_release(release));
        let end = match self.configuration.order {
            // The reply of the last cycle cannot be there immediately after it.
            _ if release.caught_up => now + timeout,
            FrameOrder::ReplyOfLastCycle => start,
            FrameOrder::WaitForReply => start + timeout,
        };
        let Self { main_device, link, pacer, bus_time, frame, record, .. } = self;
        let received = match bus_time {
            None => {
                let waited = |now: Instant| record.finish(Phase::Wait, now.as_nanos());
                cyclic::receive(main_device, link, pacer.clock(), now, frame, end, waited)
            }
            // The record is of the host's time.
            Some(bus_time) => {
                let waited = |_| record.finish(Phase::Wait, pacer.clock().now().as_nanos());
                cyclic::receive(main_device, link, bus_time.clock(), now, frame, end, waited)
            }
        };
        if let Err(error) = received {
            self.note_link_error(&error);
        }
        self.status.report = self.main_device.end_cycle(self.bus_now());
        self.follow_reference(release);
        self.finish_on_link(Phase::Receive);
    }

    /// Process image to feedback.
    fn read(&mut self, release: Release) {
        let periods = u32::try_from(release.skipped).unwrap_or(u32::MAX).saturating_add(1);
        let elapsed = self.configuration.period.saturating_mul(periods);
        let stalled = self.bus_stalled();
        // Frames sent before a long stall were answered long ago.
        let outdated = stalled > BLIND_CYCLES && self.configuration.order == FrameOrder::ReplyOfLastCycle;
        let moment = Moment { elapsed, stalled, outdated };
        self.axes.read(&self.main_device, moment);
        self.signals.read(&self.main_device, moment);
        self.watch_sub_devices(release.cycle);
        self.look_at_interlocks(release.cycle, moment);
        self.look_at_faults(release.cycle);
        if let Some(bus) = &mut self.bus {
            bus.look(release.cycle, &mut self.main_device);
        }
        if stalled > BLIND_CYCLES && self.main_device.phase() == BringUpPhase::Op {
            self.tell(release.cycle, Happening::Stalled { cycles: stalled });
        }
        self.finish(Phase::Read);
    }

    fn look_at_interlocks(&mut self, cycle: u64, moment: Moment) {
        let (at, in_op) = (self.now(), self.main_device.phase() == BringUpPhase::Op);
        let Self { publisher, main_device, signals, axes, .. } = self;
        self.interlocks.look(main_device, moment, signals, axes, |interlock, allows, level| {
            if in_op {
                publisher.event(CycleEvent {
                    cycle,
                    at,
                    cable: None,
                    what: Happening::Interlock { interlock, allows, level },
                });
            }
        });
    }

    /// Commands for the cycle from outside.
    fn command(&mut self, stop: &StopHandle) {
        if let Some(ipc) = &mut self.ipc {
            ipc.commands.read(|| self.pacer.clock().now(), self.axes.gates());
            self.axes.request_jog(ipc.commands.jog());
        }
        self.take_positions();
        let phase = self.main_device.phase();
        self.cycles_in_op += u64::from(phase == BringUpPhase::Op);
        let enough = self.configuration.cycles.is_some_and(|cycles| self.cycles_in_op > cycles);
        let situation = Situation {
            requested: enough
                || self.stopped_by_overrun.is_some()
                || self.watch.lost().is_some()
                || self.controller.has_panicked()
                || stop.is_requested(),
            hurried: stop.is_hurried(),
            hurried_on_host: self.hurried_on_host(stop),
            braking: self.axes.braking_time(),
            failed: self.failure.is_some(),
            standing: self.axes.all_stand(),
            powered: self.axes.any_powered(),
            loaded: self.axes.any_keeps_load(),
            brakes: self.axes.longest_engage_time(),
            pending: self.axes.any_pending(),
            showing: self.axes.longest_time_to_show(),
            down: phase == BringUpPhase::Down,
        };
        let before = self.phase;
        self.phase = before.step(self.bus_now(), situation);
        if before == ShutdownPhase::Running && self.phase.stops() {
            self.before_stop.copy_from(&self.status, self.publication.axes());
            self.controller_lost = self.output.left_in_use;
            self.command_lost = self.stale_in_motion == Some(true);
            self.signals.keep();
        }
        if matches!(self.phase, ShutdownPhase::ToInit { .. }) && before != self.phase {
            self.before_init.copy_from(&self.status, self.publication.axes());
            self.main_device.request_state(AlState::Init);
        }
        self.finish(Phase::Command);
    }

    /// Feedback to set-points, made safe.
    fn update(&mut self, release: Release) {
        let cycle = CycleInfo {
            cycle: release.cycle,
            release: release.instant,
            bus_time: self.bus_release(release),
            period: self.configuration.period,
            periods: release.skipped + 1,
            stopping: self.phase.stops(),
        };
        let now = self.now();
        let command = self.ipc.as_ref().map(|ipc| ipc.commands.external());
        if let Some(command) = command {
            self.controller.command(command);
        }
        let freshness = command.map(|command| command.freshness).unwrap_or_default();
        let governing = Governing { cycle: release.cycle, freshness, stopping: cycle.stopping, now };
        let mut tell = |event| {
            let what = Happening::Force(event);
            self.publisher.event(CycleEvent { cycle: release.cycle, at: now, cable: None, what })
        };
        match &mut self.ipc {
            Some(ipc) => ipc.govern(&mut self.signals, &governing, &mut tell),
            None => self.signals.govern(&governing, &mut tell),
        }
        let (reports, commands) = self.axes.exchange();
        self.output = self.controller.update(cycle, &mut Io::new(&mut self.signals, reports, commands));
        if let Some(request) = self.output.request.filter(|it| is_reported(it.what)) {
            self.tell(release.cycle, Happening::Requested { request });
        }
        // Outputs and axes by the answer of this cycle.
        let stale = freshness == Freshness::Stale && self.output.commanded;
        self.stale_in_motion =
            stale.then(|| self.stale_in_motion.unwrap_or_else(|| !self.axes.all_stand()));
        if stale || self.output.lost {
            self.signals.abandon();
        }
        // Nothing moves before the whole bus is in Op: a way up that is given up ends at once.
        if self.cycles_in_op == 0
            || matches!(
                self.phase,
                ShutdownPhase::Disabling { .. }
                    | ShutdownPhase::Closing { .. }
                    | ShutdownPhase::ToInit { .. }
                    | ShutdownPhase::Ended
            )
        {
            let quickly = self.phase.stops_quickly(self.bus_now());
            self.axes.disable(quickly);
        }
        if cycle.stopping {
            self.axes.interrupt_homing();
        }
        if self.hurried_since.is_some() {
            self.axes.hurry();
        }
        let elapsed = self.configuration.period.as_secs_f64() * cycle.periods as f64;
        let is_over = stale || self.output.left_in_use;
        let at_rest = self.stale_in_motion == Some(false) && !self.output.left_in_use;
        self.axes.supervise(Conditions {
            elapsed: Seconds(elapsed),
            stale: is_over,
            at_rest,
            ending: self.phase.ending_with(self.output.rests),
            active: usize::from(self.output.control.active),
            rests: self.output.rests,
            lost: self.output.left_in_use,
        });
        self.finish(Phase::Update);
    }

    /// Set-points to the process image.
    fn write(&mut self) {
        self.axes.write(&mut self.main_device);
        self.signals.write(&mut self.main_device);
        self.finish(Phase::Write);
    }

    /// Process image to frames; all of them leave before the first is awaited.
    fn transmit(&mut self, release: Release) {
        self.signals.write_number(&mut self.main_device, release.cycle);
        let now = self.bus_now();
        self.main_device.begin_cycle(now);
        let Self { main_device, link, status, watch, .. } = self;
        cyclic::transmit(main_device, link, now, |sent| match sent {
            Ok(()) => watch.note_taken(),
            Err(error) => {
                status.link_errors += 1;
                watch.note_link_error(&error);
            }
        });
        self.finish_on_link(Phase::Transmit);
    }

    fn note_link_error(&mut self, error: &io::Error) {
        self.status.link_errors += 1;
        self.watch.note_link_error(error);
    }

    /// Everything others may want to know.
    fn publish(&mut self, release: Release) {
        while let Some(event) = self.main_device.poll_event() {
            self.pass_on(release.cycle, event);
        }
        self.status.cycle = release.cycle;
        if self.phase.stops() {
            self.status.stop_began.get_or_insert(release.cycle);
        }
        self.status.phase = self.main_device.phase();
        self.watch_link(release.cycle);
        self.watch_axes(release.cycle);
        self.status.reception = self.main_device.reception();
        self.status.clock_difference = self.main_device.clock().largest_difference;
        self.publication.show_cycle(&self.status, release.instant, self.ipc.as_mut(), &self.output);
        self.publication.show_axes(self.axes.reports().iter().zip(self.axes.sent()));
        self.publication.show_process_data(&self.signals, self.interlocks.levels());
        // Before the record of the cycle: a reader of the record finds this.
        let words = self.publication.encode();
        self.sampler.iter_mut().filter(|_| self.cycles_in_op > 0).for_each(|it| it.write(words));
        self.publisher.status(&self.status, self.publication.axes());

        self.record.lost_frames = self.status.report.frames_lost.into();
        self.record.working_counter_ok = self.status.report.working_counter_errors == 0;
        self.finish(Phase::Publish);
        self.record.overrun = Duration::from_nanos(self.record.response_time()) > self.configuration.period;
        self.publisher.record(self.record);
        self.publication.record(&self.record, self.status.phase);
    }

    fn finish(&mut self, phase: Phase) {
        let now = self.pacer.clock().now();
        self.record.finish(phase, now.as_nanos());
    }

    /// The same without the time of SubDevices in this thread.
    fn finish_on_link(&mut self, phase: Phase) {
        let simulation = types::time::nanoseconds(self.link.take_simulation_time());
        self.record.finish_without(phase, self.pacer.clock().now().as_nanos(), simulation);
    }

    /// Time for which the stop has been hurried. A cycle that does not wait has the clock of the
    /// bus: the host's is asked.
    fn hurried_on_host(&mut self, stop: &StopHandle) -> Duration {
        if !stop.is_hurried() {
            return Duration::ZERO;
        }
        let now = if self.is_patient { MonotonicClock.now() } else { self.now() };
        now.since(*self.hurried_since.get_or_insert(now))
    }

    /// The clock as it was read last, at the end of the phase before.
    fn now(&self) -> Instant {
        Instant::from_nanos(self.record.end_ns)
    }
}

/// True of a request that may lead to a motion.
const fn is_reported(what: Action) -> bool {
    matches!(what, Action::Enable | Action::ResetFaults | Action::Home(_))
}

/// Interval at which it looks for space in the rings.
const READERS_EVERY: Duration = Duration::from_micros(200);

impl<L, C> fmt::Debug for Cycle<L, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cycle").field("configuration", &self.configuration).finish_non_exhaustive()
    }
}
