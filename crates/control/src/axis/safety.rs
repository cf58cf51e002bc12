//! Supervision and brake, between the request of the controller and the command of the drive.

use ethercat::cia402::{AxisMode, QuickStopHelp, Request, State};
use ethercat::main_device::MainDevice;
use ethercat::pdo::PdoField;
use motion::brake::BrakeSeen;
use motion::supervision::{
    BLIND_CYCLES, Ending, InterlockState, Intervention, OUTAGE_CYCLES, OtherAxis, QuickStopStep, Seen,
    Settings, StopReason, StoppingMeans, Supervisor, is_enabled_meanwhile,
};
use motion::{AxisFeedback, AxisPhase, AxisSetpoint, NewtonMetres, Radians, RadiansPerSecond, Seconds};

use super::brake::BoundBrake;
use super::{AxisConfiguration, AxisError};
use crate::controller::{AxisCommand, BrakeInputCause};
use crate::signal::Moment;

/// Supervision and brake of one axis.
#[derive(Debug)]
pub(super) struct AxisSafety {
    supervisor: Option<Supervisor>,
    brake: Option<BoundBrake>,
    /// It holds a load that falls without torque or brake.
    holds_load: bool,
    /// The end of the run waits for nothing any more.
    hurries: bool,
    /// Command of this cycle as far as it is made safe, and the data it is checked against.
    command: AxisCommand,
    state: Option<State>,
    holds_at: Radians,
    seen: Seen,
    /// Help that the request of this cycle comes with.
    help: QuickStopHelp,
    /// Cycles for which set-points restart at the actual position: that has just jumped.
    anchored: u8,
    period: Seconds,
    /// Cycles of an outage after which the drive of the axis is commanded to a quick stop.
    outage_cycles: u64,
    /// Cycles after which that quick stop has ended, and the axis is not waited for.
    give_up_cycles: u64,
}

impl AxisSafety {
    pub(super) fn new(
        configuration: &AxisConfiguration,
        brake: Option<BoundBrake>,
        period: Seconds,
    ) -> Result<Self, AxisError> {
        let mode = configuration.mode;
        let keeps_torque = configuration.holds_load && configuration.brake.is_none();
        let AxisConfiguration { halts, quick_stops, .. } = *configuration;
        let means = StoppingMeans { halts, quick_stops, keeps_torque };
        let tolerance = configuration.position_sense.tolerance;
        let supervisor = |settings| {
            let it = Supervisor::new(Settings { mode, ..settings }, period)?;
            let it = it
                .with_means(means)
                .with_tolerance(tolerance)
                .with_velocity_error(configuration.velocity_error);
            match configuration.jog {
                Some(jog) => it.with_jog(jog),
                None => Ok(it),
            }
        };
        let supervisor = configuration.supervision.map(supervisor).transpose();
        let axis = || configuration.name.clone();
        let supervisor = supervisor.map_err(|error| AxisError::Supervision { axis: axis(), error })?;
        let outage_cycles =
            supervisor.as_ref().map_or(f64::from(OUTAGE_CYCLES), |it| it.outage_time() / period);
        let (outage_cycles, braking) =
            (outage_cycles.ceil() as u64, (QUICK_STOP_TIME / period).ceil() as u64);
        let give_up_cycles = outage_cycles.saturating_add(braking);
        Ok(Self {
            supervisor,
            brake,
            holds_load: configuration.holds_load,
            hurries: false,
            command: AxisCommand::default(),
            state: None,
            holds_at: Radians::default(),
            seen: Seen::default(),
            help: QuickStopHelp::None,
            anchored: 0,
            period,
            outage_cycles,
            give_up_cycles,
        })
    }

    /// Reads the feedback of its brake.
    pub(super) fn read(&mut self, main_device: &MainDevice, moment: Moment) {
        if let Some(brake) = &mut self.brake {
            brake.read(main_device, moment);
        }
    }

    /// Numbers the inputs of its brake from `first`, and returns the number of the next.
    pub(super) fn number_brake_inputs(&mut self, first: usize) -> usize {
        self.brake.as_mut().map_or(first, |it| it.number_inputs(first))
    }

    /// True once the feedback of its brake was read, where it has some.
    pub(super) fn knows_brake(&self) -> bool {
        self.brake.as_ref().is_none_or(|it| it.reading.is_read())
    }

    /// True once the feedback of its brake has shown that it is closed, or a fault, where it has
    /// some.
    pub(super) fn has_shown_brake(&self) -> bool {
        self.brake.as_ref().is_none_or(|it| it.brake.has_shown())
    }

    /// Input that shows the fault of its brake.
    pub(super) fn brake_cause(&self) -> Option<BrakeInputCause> {
        self.brake.as_ref()?.cause()
    }

    fn brake_fault(&self) -> Option<StopReason> {
        self.brake.as_ref()?.brake.fault().map(|it| it.reason)
    }

    /// The end of the run hurries: no torque is kept for a brake that does not close.
    pub(super) const fn hurry(&mut self) {
        self.hurries = true;
    }

    /// The phase a controller is shown.
    pub(super) fn shown(&self, phase: AxisPhase, holds_at: Radians) -> AxisPhase {
        let phase = self.held(phase, holds_at);
        self.supervisor.as_ref().map_or(phase, |supervisor| supervisor.phase(phase))
    }

    /// Decides whether the axis is stopped or released; the result may stop others before
    /// [`Self::step`]. `holds_at` is the last target position sent to the drive.
    pub(super) fn judge(
        &mut self,
        elapsed: Seconds,
        asked: &AxisCommand,
        state: Option<State>,
        holds_at: Radians,
        mut seen: Seen,
    ) {
        let mut command = *asked;
        seen.feedback.phase = match seen.homing {
            // No set-points to supervise: the drive follows its one command.
            true => AxisPhase::NotEnabled,
            false => self.held(seen.feedback.phase, holds_at),
        };
        if self.anchored == 2 {
            // It was asked before the jump.
            command.setpoint = holding(holds_at);
        }
        self.anchored = self.anchored.saturating_sub(1);
        if let Some(brake) = self.brake.as_mut().filter(|_| asked.request == Request::FaultReset) {
            brake.brake.acknowledge();
        }
        seen.brake = self.brake_fault();
        if let Some(supervisor) = &mut self.supervisor {
            if asked.request == Request::FaultReset {
                supervisor.acknowledge();
                // There is no fault to reset: the axis must not fall, nor lose its torque while it
                // brakes.
                match state {
                    Some(State::OperationEnabled) => command.request = Request::Enable,
                    Some(State::QuickStopActive) => command.request = Request::QuickStop,
                    _ => {}
                }
            }
            if command.request == Request::Halt && !supervisor.means().halts {
                // Its halt is known not to brake.
                command.request = Request::QuickStop;
            }
            seen.fault = state.is_some_and(State::is_faulted);
            seen.braking = matches!(command.request, Request::Halt | Request::QuickStop);
            seen.disables = command.request == Request::Disable;
            seen.asks = command.request == Request::Enable;
            seen.quick_stop = command.request == Request::QuickStop;
            supervisor.judge(elapsed, command.setpoint, &seen);
        }
        (self.command, self.state, self.holds_at, self.seen) = (command, state, holds_at, seen);
    }

    /// Its stop, for axes that are stopped with it.
    pub(super) fn stop_for_others(&self) -> OtherAxis {
        self.supervisor.as_ref().map_or(OtherAxis::Free, Supervisor::stop_for_others)
    }

    /// Its drive is not sent the request to enable it.
    pub(super) fn hold_back(&mut self, lapses: bool) {
        if let Some(supervisor) = &mut self.supervisor {
            supervisor.hold_back(lapses);
        }
    }

    /// Stops it with another axis, as long as that is stopped. True if that has just begun.
    pub(super) fn stop_with(&mut self, other: OtherAxis) -> bool {
        self.supervisor.as_mut().is_some_and(|supervisor| supervisor.stop_with(other))
    }

    /// Holds it as long as another axis of its chain is not ready.
    pub(super) fn hold_with_chain(&mut self, held: bool) {
        if let Some(supervisor) = &mut self.supervisor {
            supervisor.hold_with_chain(held);
        }
    }

    /// Reason that keeps a controller from moving it and the axes of its chain.
    pub(super) fn unready(&self) -> Option<StopReason> {
        self.supervisor.as_ref().and_then(Supervisor::unready)
    }

    /// True while a jog has it.
    pub(super) fn is_jogged(&self) -> bool {
        self.supervisor.as_ref().is_some_and(Supervisor::is_jogged)
    }

    /// True in the modes in which a jog moves it; never without supervision.
    pub(super) fn takes_jogs(&self) -> bool {
        self.supervisor.as_ref().is_some_and(Supervisor::takes_jogs)
    }

    /// Limit of a jog; 0 without supervision.
    pub(super) fn fastest_jog(&self) -> RadiansPerSecond {
        self.supervisor.as_ref().map_or(RadiansPerSecond::ZERO, |it| it.jog_limits().velocity)
    }

    /// Limits of torque of the axis and of its jog; `None` without supervision.
    pub(super) fn torque_limits(&self) -> Option<(NewtonMetres, NewtonMetres)> {
        self.supervisor.as_ref().map(|it| (it.settings().limits.torque, it.jog_limits().torque))
    }

    /// The cycle sets the torque limit of its drive; `jog`: the limit of a jog.
    pub(super) fn set_drive_torque(&mut self, jog: NewtonMetres) {
        self.supervisor = self.supervisor.take().map(|it| it.with_drive_torque(jog));
    }

    /// True if its drive gets the torque limit of a jog.
    pub(super) fn has_low_torque(&self) -> bool {
        self.supervisor.as_ref().is_some_and(Supervisor::has_low_torque)
    }

    /// True if a jog may begin.
    pub(super) fn may_jog(&self) -> bool {
        self.supervisor.as_ref().is_some_and(|it| it.may_jog(&self.seen.feedback))
    }

    /// Command the drive gets, and the reason for which the axis is stopped or held back.
    pub(super) fn step(&mut self, elapsed: Seconds) -> (AxisCommand, Option<StopReason>) {
        let Seen { homing, missed, .. } = self.seen;
        let mut command = self.command;
        let mut reason = None;
        self.help = QuickStopHelp::None;
        let holding = holding(self.holds_at);
        if let Some(supervisor) = &mut self.supervisor {
            let supervised = supervisor.send(elapsed, command.setpoint, &self.seen);
            command.setpoint = supervised.setpoint;
            // Its homing is the reason for holding an unreferenced axis.
            let homes = homing && supervised.reason.is_some_and(StopReason::lets_home);
            // An axis that only its controller must not move is enabled; then it is halted.
            let enables = !self.seen.enabled
                && command.request == Request::Enable
                && supervised.reason.is_some_and(is_enabled_meanwhile);
            let passes = homes || enables;
            let intervention = supervised.intervention.filter(|&it| !(passes && it == Intervention::Halt));
            let coasts = !supervisor.means().quick_stops && intervention == Some(Intervention::Halt);
            command.request = match command.request {
                // Its quick stop would take the torque off.
                Request::QuickStop if coasts => Request::Halt,
                request => overruled(request, intervention),
            };
            self.help = help(supervisor, intervention);
            reason = supervised.reason;
            // A drive that homes takes no set-points: it is halted, which cancels homing. Its
            // motion in an outage is not visible.
            let held = missed > BLIND_CYCLES
                || self.seen.set_up
                || reason.is_some_and(|reason| !reason.lets_home());
            if homing && held && command.request == Request::Enable {
                command.request = Request::Halt;
            }
        } else if missed > BLIND_CYCLES {
            // The drive's own care holds the position.
            command.setpoint = holding;
            if missed > self.outage_cycles {
                command.request = overruled(command.request, Some(Intervention::QuickStop));
                reason = Some(StopReason::Outage);
            }
        }
        let reason = self.step_brake(elapsed, &mut command).or(reason);
        (command, reason)
    }

    /// Steps the brake, and limits the `command` by it. Returns the fault that its feedback shows.
    fn step_brake(&mut self, elapsed: Seconds, command: &mut AxisCommand) -> Option<StopReason> {
        let gives_way = self.hurries || !self.holds_load && self.may_give_way();
        let brake = self.brake.as_mut()?;
        let missed = self.seen.missed;
        if self.supervisor.is_none() && brake.brake.fault().is_some() {
            command.request = Request::Disable;
        }
        // After an outage the quick stop of the drive has ended by now, or there is none.
        let holds = matches!(self.state, Some(State::OperationEnabled | State::QuickStopActive));
        let torque = holds && missed <= self.give_up_cycles && self.help != QuickStopHelp::CutsOff;
        let seen = BrakeSeen {
            torque,
            // A drive that brakes is not braked against.
            wanted: matches!(command.request, Request::Enable | Request::Halt | Request::QuickStop),
            powered: self.state.is_some_and(State::is_powered),
            reading: brake.reading,
            is_reached: missed <= BLIND_CYCLES,
            gives_way,
        };
        brake.now = brake.brake.step(elapsed, &seen);
        if brake.now.keep_torque {
            command.request = match self.supervisor.as_ref().map(Supervisor::holds_by) {
                Some(Intervention::Follow) => Request::Enable,
                Some(Intervention::QuickStop) => Request::QuickStop,
                _ => Request::Halt,
            };
            self.help = QuickStopHelp::None;
        }
        if !brake.now.free {
            command.setpoint = holding(self.holds_at);
        }
        brake.brake.fault().map(|it| it.reason)
    }

    /// True where the torque of an axis without a load goes, though its brake does not close: at
    /// the end of the run, and without the permission of an interlock.
    fn may_give_way(&self) -> bool {
        self.seen.ending != Ending::No || self.seen.interlock >= InterlockState::NotPermitted
    }

    /// Help that the request of this cycle comes with.
    pub(super) const fn help(&self) -> QuickStopHelp {
        self.help
    }

    /// Step that stopped it because its drive did not carry out a quick stop.
    pub(super) fn quick_stop_step(&self) -> Option<QuickStopStep> {
        self.supervisor.as_ref().and_then(Supervisor::quick_stop_step)
    }

    /// True if it holds a load that falls without the torque, until a reset, or slows down to that.
    pub(super) fn keeps_load(&self) -> bool {
        let by_brake = self.brake.as_ref().is_some_and(|it| it.brake.holds_by_torque());
        (self.holds_load && by_brake) || self.supervisor.as_ref().is_some_and(Supervisor::keeps_load)
    }

    /// Distance beyond a position limit at which it stopped.
    pub(super) fn overshoot(&self) -> Option<Radians> {
        self.supervisor.as_ref().and_then(Supervisor::overshoot)
    }

    /// Longest time that such steps take from here.
    pub(super) fn quick_stop_time(&self) -> Seconds {
        self.supervisor.as_ref().map_or(Seconds::ZERO, Supervisor::quick_stop_time)
    }

    /// Power to the brake's coil, or not.
    pub(super) fn write(&self, main_device: &mut MainDevice) {
        if let Some(brake) = &self.brake {
            brake.write(main_device);
        }
    }

    /// Output that holds its brake open: place of the SubDevice, and field.
    pub(super) fn brake_output(&self) -> Option<(usize, PdoField)> {
        self.brake.as_ref()?.output()
    }

    /// Time its brake takes to hold it.
    pub(super) fn engage_time(&self) -> Seconds {
        self.brake.as_ref().map_or(Seconds::ZERO, |brake| brake.brake.times().engage)
    }

    /// Time in which the feedback of its brake, if any, shows whether that is closed, once the
    /// torque has ended.
    pub(super) fn time_to_show(&self) -> Seconds {
        let shown = self.brake.as_ref().filter(|it| it.reading.shows());
        shown.map_or(Seconds::ZERO, |it| it.brake.time_to_show(self.period))
    }

    /// True while that feedback may still show that the brake does not close.
    pub(super) fn is_pending(&self) -> bool {
        self.brake.as_ref().is_some_and(|it| it.brake.is_pending())
    }

    /// Time supervision takes from here to bring the axis to rest.
    pub(super) fn braking_time(&self) -> Seconds {
        self.supervisor.as_ref().map_or(Seconds::ZERO, Supervisor::braking_time)
    }

    /// True if an axis at this speed is far from rest.
    pub(super) fn is_fast(&self, velocity: RadiansPerSecond) -> bool {
        self.supervisor.as_ref().is_some_and(|it| velocity.abs() > it.settings().limits.velocity * FAST)
    }

    /// True if an axis at this speed is faster than this share of its limit.
    pub(super) fn is_faster_than(&self, velocity: RadiansPerSecond, share: f64) -> bool {
        self.supervisor.as_ref().is_some_and(|it| velocity.abs() > it.settings().limits.velocity * share)
    }

    /// True if an axis with an outage of so many cycles is no longer waited for.
    pub(super) fn gives_up_after(&self, missed: u64) -> bool {
        missed > self.give_up_cycles
    }

    /// Time the axis takes to ramp to zero.
    pub(super) fn ramp_time(&self) -> Seconds {
        self.supervisor.as_ref().map_or(Seconds::ZERO, Supervisor::ramp_time)
    }

    /// True if supervision has not stopped it.
    pub(super) fn is_free(&self) -> bool {
        self.supervisor.as_ref().is_none_or(|it| it.stopped().is_none())
    }

    /// Set-points are of another mode from now on.
    pub(super) fn change_mode(&mut self, mode: AxisMode, feedback: &AxisFeedback) {
        if let Some(supervisor) = &mut self.supervisor {
            supervisor.change_mode(mode, feedback);
        }
    }

    /// The drive works in that mode.
    pub(super) fn settle_mode(&mut self) {
        if let Some(supervisor) = &mut self.supervisor {
            supervisor.settle_mode();
        }
    }

    /// True if the drive may look for its home.
    pub(super) fn may_home(&self) -> bool {
        let braked = self.brake.as_ref().is_some_and(|brake| !brake.now.free);
        self.anchored == 0 && !braked && self.supervisor.as_ref().is_none_or(Supervisor::may_home)
    }

    /// The position of the axis may be another one than reported, for this reason.
    pub(super) fn unreference(&mut self, reason: StopReason) {
        if let Some(supervisor) = &mut self.supervisor {
            supervisor.unreference(reason);
        }
    }

    /// Reason that its position may be another one than reported.
    pub(super) fn unreferenced(&self) -> Option<StopReason> {
        self.supervisor.as_ref().and_then(Supervisor::unreferenced)
    }

    /// The position of the axis is known again: its stop ends after a reset.
    pub(super) fn reference(&mut self) {
        if let Some(supervisor) = &mut self.supervisor {
            supervisor.reference();
        }
    }

    /// As a reset does.
    pub(super) fn acknowledge(&mut self) {
        if let Some(supervisor) = &mut self.supervisor {
            supervisor.acknowledge();
        }
    }

    /// The axis has a defect that is not seen here.
    pub(super) fn stop_for(&mut self, reason: StopReason) {
        if let Some(supervisor) = &mut self.supervisor {
            supervisor.stop_for(reason);
        }
    }

    /// True while its drive is to be in Operation enabled.
    pub(super) fn expects_enabled(&self) -> bool {
        self.supervisor.as_ref().is_some_and(Supervisor::expects_enabled)
    }

    /// It is disabled until a start request comes.
    pub(super) fn wait_for_start(&mut self) {
        if let Some(supervisor) = &mut self.supervisor {
            supervisor.require_start();
        }
    }

    /// Its drive was without power.
    pub(super) fn lose_power(&mut self) {
        if let Some(supervisor) = &mut self.supervisor {
            supervisor.lose_power();
        }
    }

    /// Its drive has left Op.
    pub(super) fn lose_drive(&mut self) {
        if let Some(supervisor) = &mut self.supervisor {
            supervisor.lose_drive();
        }
    }

    /// The position of the axis has jumped: its actual position has a new value.
    pub(super) fn anchor(&mut self) {
        self.anchored = 2;
    }

    /// The phase, as long as brake or homing lets set-points through; otherwise the axis is held.
    fn held(&self, phase: AxisPhase, holds_at: Radians) -> AxisPhase {
        let brake = self.brake.as_ref().is_some_and(|brake| !brake.now.free);
        match phase {
            AxisPhase::NotEnabled => phase,
            _ if brake || self.anchored > 0 => AxisPhase::HoldingAt(holds_at),
            _ => phase,
        }
    }
}

/// Set-point of an axis that is held.
fn holding(position: Radians) -> AxisSetpoint {
    AxisSetpoint { position, ..AxisSetpoint::default() }
}

/// Time of a quick stop that cannot be observed.
const QUICK_STOP_TIME: Seconds = Seconds(0.4);

/// Share of its highest speed above which an axis is not released without a quick stop.
const FAST: f64 = 0.02;

/// Request to the drive when supervision overrides the controller. A controller may always take the
/// torque off, or stop resetting a fault.
fn overruled(request: Request, intervention: Option<Intervention>) -> Request {
    match (intervention, request) {
        (None, _) | (_, Request::Disable | Request::FaultReset) => request,
        (Some(Intervention::Disable | Intervention::CutOff), _) => Request::Disable,
        (Some(Intervention::Follow), _) => Request::Enable,
        (Some(Intervention::QuickStop), _) => Request::QuickStop,
        (Some(Intervention::Halt), Request::QuickStop) => request,
        (Some(Intervention::Halt), _) => Request::Halt,
    }
}

/// Help that an intervention comes with.
fn help(supervisor: &Supervisor, intervention: Option<Intervention>) -> QuickStopHelp {
    match intervention {
        Some(Intervention::CutOff) => QuickStopHelp::CutsOff,
        Some(Intervention::QuickStop) if supervisor.leads_to_rest() => QuickStopHelp::LeadsToRest,
        Some(Intervention::QuickStop) if supervisor.means().halts => QuickStopHelp::Halts,
        _ => QuickStopHelp::None,
    }
}
