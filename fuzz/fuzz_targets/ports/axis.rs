//! An axis with its supervision, and a drive behind it that does what it is sent, or is in trouble.

use control::controller::{AxisCommand, AxisReport};
use ethercat::cia402::{CyclicMode, Request, State};
use motion::supervision::{
    Ending, FollowingErrorLimit, Intervention, Limits, OnStale, Outage, Seen, Settings, StopReason,
    Supervised, Supervisor, Written,
};
use motion::{
    AxisFeedback, AxisPhase, MetresPerSecond, MetresPerSecondCubed, MetresPerSecondSquared, NewtonMetres,
    Radians, RadiansPerSecond, RadiansPerSecondCubed, RadiansPerSecondSquared, Seconds, TwistLimits,
};
use onbeat_controllers::AxisSettings;

use crate::PERIOD;

pub(crate) const VELOCITY: f64 = 4.0;
const ACCELERATION: f64 = 40.0;
const JERK: f64 = 800.0;
const POSITIONS: (f64, f64) = (-3.0, 3.0);
const TORQUE: f64 = 2.0;

/// Rounding.
const HARDLY: f64 = 1e-9;

/// Fault of a drive.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Trouble {
    #[default]
    None,
    /// It is in fault until it is reset.
    Fault,
    /// It stays in the state it is in.
    Deaf,
    /// It does not move.
    Stuck,
    /// Its inputs do not come.
    NotFresh,
}

#[derive(Debug)]
pub(crate) struct Axis {
    mode: CyclicMode,
    supervisor: Supervisor,
    report: AxisReport,
    sent: Option<Supervised>,
    request: Request,
    /// Real position of the drive.
    place: Radians,
    /// Cycles in a row in which it was not fresh of, up to this one; and whether it was in this
    /// one.
    missed: u64,
    fresh: bool,
    pub(crate) trouble: Trouble,
}

impl Axis {
    pub(crate) fn new(mode: CyclicMode) -> Self {
        let settings = Settings {
            mode: mode.into(),
            limits: Limits {
                position: (mode == CyclicMode::Position)
                    .then_some((Radians(POSITIONS.0), Radians(POSITIONS.1))),
                velocity: RadiansPerSecond(VELOCITY),
                acceleration: RadiansPerSecondSquared(ACCELERATION),
                deceleration: RadiansPerSecondSquared(ACCELERATION),
                jerk: RadiansPerSecondCubed(JERK),
                torque: NewtonMetres(TORQUE),
                step: Radians(2.0 * VELOCITY * PERIOD.as_secs_f64()),
                written: Written::ALL,
            },
            following_error: Some(FollowingErrorLimit { distance: Radians(0.5), timeout: Seconds(0.05) }),
            on_stale: OnStale::Ramp,
            outage: Outage::default(),
        };
        let supervisor = Supervisor::new(settings, Seconds(PERIOD.as_secs_f64())).expect("settings");
        let report = AxisReport { state: Some(State::SwitchOnDisabled), ..AxisReport::default() };
        Self {
            mode,
            supervisor,
            report,
            sent: None,
            request: Request::Disable,
            place: Radians(0.0),
            missed: 0,
            fresh: true,
            trouble: Trouble::None,
        }
    }

    /// Report of the drive on what it was sent last, `periods` ago, as the controller is shown it.
    pub(crate) fn report(&mut self, periods: u64) -> AxisReport {
        self.play();
        self.missed += periods - 1;
        self.report.missed = self.missed as u32;
        let mut shown = self.report;
        shown.feedback.phase = self.supervisor.phase(shown.feedback.phase);
        shown.stop = self.sent.and_then(|sent| sent.reason);
        shown
    }

    /// Takes the controller's command through supervision, and checks it.
    pub(crate) fn take(&mut self, elapsed: Seconds, command: &AxisCommand, ending: Ending) {
        if command.request == Request::FaultReset {
            self.supervisor.acknowledge();
        }
        if command.home {
            self.report.homed = true;
        }
        let seen = Seen {
            feedback: self.report.feedback,
            fault: self.report.state == Some(State::Fault),
            missed: self.missed,
            ending,
            ..Seen::default()
        };
        let before = self.sent.map_or(self.report.feedback.position, |sent| sent.setpoint.position);
        let supervised = self.supervisor.step(elapsed, command.setpoint, &seen);
        self.request = match supervised.intervention {
            Some(Intervention::Disable | Intervention::CutOff) => Request::Disable,
            Some(Intervention::Follow) => Request::Enable,
            Some(Intervention::QuickStop) => Request::QuickStop,
            Some(Intervention::Halt) => Request::Halt,
            None => command.request,
        };
        self.sent = Some(supervised);
        self.judge(elapsed, before, &supervised);
    }

    fn judge(&self, elapsed: Seconds, before: Radians, supervised: &Supervised) {
        let it = &supervised.setpoint;
        let numbers = [it.position.0, it.velocity.0, it.torque.0];
        assert!(numbers.iter().all(|number| number.is_finite()), "{supervised:?}");
        if self.report.feedback.phase != AxisPhase::Following {
            return;
        }
        assert!(it.torque.0.abs() <= TORQUE + HARDLY, "{supervised:?}");
        if self.mode == CyclicMode::Velocity {
            return assert!(it.velocity.0.abs() <= VELOCITY + HARDLY, "{supervised:?}");
        }
        let within = POSITIONS.0 - HARDLY..=POSITIONS.1 + HARDLY;
        assert!(within.contains(&it.position.0), "{supervised:?}");
        if self.fresh && supervised.reason == Some(StopReason::Outage) {
            // The motion restarts at the position of the axis.
            return;
        }
        let step = (it.position - before).0.abs();
        assert!(step <= VELOCITY * elapsed.0 + HARDLY, "{step} rad from {before:?}: {supervised:?}");
    }

    /// Advances the drive by a cycle.
    fn play(&mut self) {
        let report = &mut self.report;
        report.state = match (self.trouble, self.request) {
            (Trouble::Deaf, _) => report.state,
            (Trouble::Fault, Request::FaultReset) => {
                self.trouble = Trouble::None;
                Some(State::SwitchOnDisabled)
            }
            (Trouble::Fault, _) => Some(State::Fault),
            (_, Request::Enable | Request::Halt) => Some(State::OperationEnabled),
            (_, Request::Disable | Request::QuickStop) => Some(State::SwitchOnDisabled),
            (_, Request::FaultReset) => report.state,
        };
        let enabled = report.state == Some(State::OperationEnabled);
        let AxisFeedback { position, phase, .. } = report.feedback;
        let phase = match phase {
            _ if !enabled => AxisPhase::NotEnabled,
            AxisPhase::NotEnabled => AxisPhase::HoldingAt(position),
            _ => AxisPhase::Following,
        };
        let moved = match (self.sent, self.mode) {
            (Some(sent), CyclicMode::Position) if enabled => (sent.setpoint.position - self.place).0,
            (Some(sent), _) if enabled => sent.setpoint.velocity.0 * PERIOD.as_secs_f64(),
            _ => 0.0,
        };
        let moved = if self.trouble == Trouble::Stuck { 0.0 } else { moved };
        let fresh = self.trouble != Trouble::NotFresh;
        report.feedback = AxisFeedback { phase, fresh, ..report.feedback };
        self.place += Radians(moved);
        if self.fresh {
            self.missed = 0;
        }
        self.fresh = fresh;
        self.missed += u64::from(!fresh);
        if fresh {
            report.feedback.position = self.place;
            report.feedback.velocity = RadiansPerSecond(moved / PERIOD.as_secs_f64());
        }
    }
}

pub(crate) fn settings(axis: usize) -> AxisSettings {
    AxisSettings {
        axis,
        position_limits: Some((Radians(POSITIONS.0), Radians(POSITIONS.1))),
        velocity_limit: RadiansPerSecond(VELOCITY),
        acceleration_limit: RadiansPerSecondSquared(ACCELERATION),
        jerk_limit: RadiansPerSecondCubed(JERK),
        profile: false,
    }
}

pub(crate) fn twist_limits() -> TwistLimits {
    TwistLimits {
        velocity: MetresPerSecond(0.35),
        acceleration: MetresPerSecondSquared(0.5),
        jerk: MetresPerSecondCubed(5.0),
        yaw_velocity: RadiansPerSecond(1.5),
        yaw_acceleration: RadiansPerSecondSquared(3.0),
        yaw_jerk: RadiansPerSecondCubed(30.0),
    }
}
