//! Axes that do not follow their commands, and axes that only seem so.

use super::*;

/// rad/s: a quarter of the limit.
const ERROR: f64 = VELOCITY * VELOCITY_ERROR;

/// A supervisor and the velocity that its axis reports.
struct Axis {
    supervisor: Supervisor,
    seen: Seen,
    mode: CyclicMode,
}

impl Axis {
    fn new(mode: CyclicMode) -> Self {
        let settings = settings(mode, OnStale::Hold);
        let limits = Limits { position: None, ..settings.limits };
        let supervisor = Supervisor::new(Settings { limits, ..settings }, PERIOD).unwrap();
        let feedback = AxisFeedback { phase: AxisPhase::Following, fresh: true, ..AxisFeedback::default() };
        let mut axis = Self { supervisor, seen: Seen { feedback, enabled: true, ..Seen::default() }, mode };
        // At standstill first.
        axis.cycle(0.0, 0.0);
        axis
    }

    /// A cycle with this command, in the number of the mode, and this velocity.
    fn cycle(&mut self, command: f64, velocity: f64) -> Supervised {
        let mut asked = AxisSetpoint::default();
        match self.mode {
            CyclicMode::Torque => asked.torque = NewtonMetres(command),
            _ => asked.velocity = RadiansPerSecond(command),
        }
        self.seen.feedback.velocity = RadiansPerSecond(velocity);
        self.seen.feedback.position += RadiansPerSecond(velocity) * PERIOD;
        self.supervisor.step(PERIOD, asked, &self.seen)
    }

    /// Cycles of this until the axis is stopped for a runaway; `None` within 0.3 s.
    fn until(&mut self, command: f64, velocity: impl Fn(f64) -> f64) -> Option<u32> {
        (1..=300).find(|&cycle| {
            let supervised = self.cycle(command, velocity(f64::from(cycle) * PERIOD.0));
            supervised.reason == Some(StopReason::Runaway)
        })
    }
}

// feature(axes): an axis that moves against its command or faster loses its torque within 50 ms
#[test]
fn an_axis_against_its_command_is_cut_off_after_50_ms() {
    for side in [1.0, -1.0] {
        let mut csv = Axis::new(CyclicMode::Velocity);
        let cycles = csv.until(side, |_| -side * (ERROR + 0.1)).unwrap();
        assert!((50..=52).contains(&cycles), "{cycles} cycles");
        let supervised = csv.cycle(side, 0.0);
        assert_eq!(supervised.intervention, Some(Intervention::CutOff));
        let mut fast = Axis::new(CyclicMode::Velocity);
        assert!(fast.until(side, |_| side * (1.0 + ERROR + 0.1)).is_some(), "faster than its command");
        let mut cst = Axis::new(CyclicMode::Torque);
        let cycles = cst.until(side, |time| -side * (ERROR + 5.0 * time)).unwrap();
        assert!((50..=53).contains(&cycles), "{cycles} cycles");
    }
}

#[test]
fn it_is_latched_until_a_reset() {
    let mut axis = Axis::new(CyclicMode::Velocity);
    axis.until(1.0, |_| -2.0 * ERROR).unwrap();
    axis.seen.feedback.phase = AxisPhase::NotEnabled;
    for _ in 0..100 {
        assert_eq!(axis.cycle(0.0, 0.0).reason, Some(StopReason::Runaway));
    }
    axis.supervisor.acknowledge();
    axis.cycle(0.0, 0.0);
    assert_eq!(axis.supervisor.stopped(), None);
}

#[test]
fn an_axis_that_lags_or_is_blocked_does_not_run_away() {
    /// Name, mode, command, and the velocity at a time.
    type Row = (&'static str, CyclicMode, f64, fn(f64) -> f64);
    let rows: [Row; 8] = [
        ("blocked", CyclicMode::Velocity, VELOCITY, |_| 0.0),
        ("pushed back slowly", CyclicMode::Velocity, 1.0, |_| -ERROR * 0.9),
        ("braked at its limit", CyclicMode::Velocity, 0.0, |time| {
            (VELOCITY - DECELERATION * time).max(0.0)
        }),
        ("49 ms", CyclicMode::Velocity, 1.0, |time| if time < 0.049 { -3.0 } else { 1.0 }),
        ("braked by its torque", CyclicMode::Torque, -1.0, |time| (VELOCITY - 10.0 * time).max(0.0)),
        ("no torque", CyclicMode::Torque, 0.0, |time| -3.0 - time),
        ("torque of friction", CyclicMode::Torque, 0.02, |time| -3.0 - time),
        ("with its torque", CyclicMode::Torque, 1.0, |time| 3.0 + time),
    ];
    for (name, mode, command, velocity) in rows {
        let mut axis = Axis::new(mode);
        if velocity(0.0) > 1.0 && mode == CyclicMode::Velocity {
            axis.cycle(VELOCITY, VELOCITY);
        }
        assert_eq!(axis.until(command, velocity), None, "{name}");
    }
}

#[test]
fn a_wrong_speed_after_an_outage_does_not_speed_the_axis_up() {
    for side in [1.0, -1.0] {
        let mut axis = Axis::new(CyclicMode::Velocity);
        for cycle in 1..=100 {
            let velocity = side * (DECELERATION * f64::from(cycle) * PERIOD.0).min(1.0);
            axis.cycle(velocity, velocity);
        }
        axis.seen.feedback.fresh = false;
        for missed in 1..=5 {
            axis.seen.missed = missed;
            axis.cycle(side, side);
        }
        assert_eq!(axis.supervisor.stopped(), Some(StopReason::Outage));
        (axis.seen.feedback.fresh, axis.seen.missed) = (true, 0);
        let first = axis.cycle(side, side * (VELOCITY - 0.1)).setpoint.velocity.0 * side;
        assert!(first > 0.5, "it begins at its speed: {first}");
        let mut fastest = first;
        for _ in 0..300 {
            fastest = fastest.max(axis.cycle(side, side * 0.9).setpoint.velocity.0.abs());
        }
        assert!(fastest <= 1.0 + SLACK, "{fastest}");
    }
}

#[test]
fn a_stop_by_set_points_is_evaluated() {
    let mut stopped = Axis::new(CyclicMode::Velocity);
    stopped.supervisor.stop_for(StopReason::Brake);
    assert!(stopped.until(1.0, |_| -3.0 * ERROR).is_some());
    // A stop signal, and a permission that is missing, do not give the torque back.
    for interlock in [InterlockState::Stop, InterlockState::NotPermitted] {
        stopped.seen.interlock = interlock;
        let supervised = stopped.cycle(0.0, -3.0 * ERROR);
        assert_eq!(supervised.intervention, Some(Intervention::CutOff));
    }
    let mut held = Axis::new(CyclicMode::Velocity);
    held.seen.set_up = true;
    assert!(held.until(0.0, |_| 2.0 * ERROR).is_some(), "in set-up mode");
}

#[test]
fn a_stop_that_the_drive_carries_out_slowly_is_no_runaway() {
    let mut axis = Axis::new(CyclicMode::Velocity);
    let limit = VELOCITY - 0.1;
    // To its speed within its acceleration.
    for cycle in 1..=250 {
        let velocity = (DECELERATION * f64::from(cycle) * PERIOD.0).min(limit);
        axis.cycle(velocity, velocity);
    }
    axis.supervisor.stop_for(StopReason::Brake);
    assert_eq!(axis.until(limit, |time| (limit - DECELERATION / 4.0 * time).max(0.0)), None);
}

#[test]
fn a_load_that_is_lowered_does_not_run_away() {
    let mut steady = Axis::new(CyclicMode::Torque);
    assert_eq!(steady.until(1.0, |_| -2.0 * ERROR), None);
    let mut heavy = Axis::new(CyclicMode::Torque);
    let means = StoppingMeans { keeps_torque: true, ..heavy.supervisor.means() };
    heavy.supervisor = heavy.supervisor.with_means(means);
    assert_eq!(heavy.until(1.0, |time| -ERROR - 5.0 * time), None, "it would fall");
}

#[test]
fn a_stop_or_an_axis_without_torque_is_not_evaluated() {
    let away = |_: f64| -3.0 * ERROR;
    let mut braking = Axis::new(CyclicMode::Velocity);
    braking.seen.braking = true;
    assert_eq!(braking.until(1.0, away), None, "its controller has the drive brake");
    let mut disabled = Axis::new(CyclicMode::Velocity);
    disabled.seen.feedback.phase = AxisPhase::NotEnabled;
    assert_eq!(disabled.until(1.0, away), None, "moved by hand");
    let mut stopped = Axis::new(CyclicMode::Torque);
    stopped.supervisor.stop_for(StopReason::Brake);
    assert_eq!(stopped.until(1.0, away), None, "its drive halts it");
    let mut blind = Axis::new(CyclicMode::Velocity);
    blind.seen.feedback.fresh = false;
    assert_eq!(blind.until(1.0, away), None, "no feedback");
    let mut other = Axis::new(CyclicMode::Velocity);
    other.supervisor = other.supervisor.with_velocity_error(Some(RadiansPerSecond(4.0 * ERROR)));
    assert_eq!(other.until(1.0, away), None, "within its velocity_error");
}

// feature(axes): outside its position limits an axis gets no outward torque, and says that it is outside
#[test]
fn outside_its_limits_an_axis_gets_inward_torque_only() {
    for (place, side) in [(2.1, 1.0), (-1.1, -1.0)] {
        let mut axis = Axis::new(CyclicMode::Torque);
        axis.supervisor = Supervisor::new(settings(CyclicMode::Torque, OnStale::Hold), PERIOD).unwrap();
        axis.seen.feedback.position = Radians(place);
        for (asked, sent) in [(side, 0.0), (3.0 * side, 0.0), (-side, -side), (-9.0 * side, -3.0 * side)] {
            let out = axis.cycle(asked, 0.0);
            assert_eq!(
                (out.setpoint.torque.0, out.intervention),
                (sent, None),
                "{asked} Nm at {place} rad"
            );
            assert_eq!(out.reason, Some(StopReason::InwardsOnly));
            assert_eq!(axis.supervisor.stopped(), None);
        }
        axis.seen.feedback.position = Radians(0.0);
        let out = axis.cycle(side, 0.0);
        assert_eq!((out.setpoint.torque.0, out.reason), (side, None));
    }
}

#[test]
fn an_axis_outside_its_limits_is_reported_in_every_mode() {
    use types::AxisMode::{ProfilePosition, ProfileTorque, ProfileVelocity};
    for mode in [ProfilePosition, ProfileVelocity, ProfileTorque, CyclicMode::Torque.into()] {
        let base = settings(CyclicMode::Position, OnStale::Hold);
        let mut supervisor =
            Supervisor::new(Settings { mode, ..base }, PERIOD).unwrap().with_tolerance(Radians(0.02));
        let mut at = |place: f64, phase: AxisPhase| {
            let position = Radians(place);
            let feedback = AxisFeedback { position, phase, fresh: true, ..AxisFeedback::default() };
            let asked = AxisSetpoint { position, ..AxisSetpoint::default() };
            let seen = Seen { feedback, enabled: phase != AxisPhase::NotEnabled, ..Seen::default() };
            supervisor.step(PERIOD, asked, &seen).reason
        };
        assert_eq!(at(-1.5, AxisPhase::NotEnabled), None, "{mode:?}: moved by hand");
        for place in [-1.5, -1.01] {
            let held = at(place, AxisPhase::HoldingAt(Radians(place)));
            assert_eq!(held, Some(StopReason::InwardsOnly), "{mode:?} at {place} rad");
        }
        assert_eq!(at(-0.9, AxisPhase::Following), None, "{mode:?}");
        assert_eq!(at(-1.01, AxisPhase::Following), None, "{mode:?}: noise at a limit");
    }
}

#[test]
fn an_overshoot_in_torque_mode_has_a_size() {
    let mut axis = Axis::new(CyclicMode::Torque);
    axis.supervisor = Supervisor::new(settings(CyclicMode::Torque, OnStale::Hold), PERIOD).unwrap();
    let mut at = |position: f64, velocity: f64| {
        axis.seen.feedback.position = Radians(position - velocity * PERIOD.0);
        axis.cycle(0.0, velocity);
        axis.supervisor.overshoot().map(|it| it.0)
    };
    assert_eq!(at(1.99, 1.0), None);
    assert_eq!(at(2.02, 1.0), None, "still on its way");
    assert!(at(2.05, 0.0).is_some_and(|by| (by - 0.05).abs() < 1e-9));
    assert!(at(2.01, -0.5).is_some_and(|by| (by - 0.05).abs() < 1e-9), "on its way back");
    assert_eq!(at(1.9, 0.0), None, "back within its limits");
    assert_eq!(at(-1.1, -1.0), None);
    assert!(at(-1.2, 0.0).is_some_and(|by| (by - 0.2).abs() < 1e-9));
    let mut by_hand = Axis::new(CyclicMode::Torque);
    by_hand.supervisor = Supervisor::new(settings(CyclicMode::Torque, OnStale::Hold), PERIOD).unwrap();
    by_hand.seen.enabled = false;
    by_hand.seen.feedback.phase = AxisPhase::NotEnabled;
    by_hand.seen.feedback.position = Radians(2.5);
    by_hand.cycle(0.0, 0.0);
    assert_eq!(by_hand.supervisor.overshoot(), None, "a person moved it there");
}
