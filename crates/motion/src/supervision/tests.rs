//! Promises of supervision, for any command.

mod brake;
mod braked_runaway;
mod clamped;
mod drive_torque;
mod edges;
mod ending;
mod halting;
mod jogs;
mod lead;
mod meetings;
mod outside;
mod quick_stop;
mod resets;
mod runaway;
mod start;
mod together;

use proptest::prelude::*;

use super::*;
use crate::units::RadiansPerSecondSquared;

const PERIOD: Seconds = Seconds(1e-3);
const VELOCITY: f64 = 4.0;
const DECELERATION: f64 = 20.0;
const STEP: f64 = 0.008;
/// Sums of doubles.
const SLACK: f64 = 1e-6;

fn settings(mode: CyclicMode, on_stale: OnStale) -> Settings {
    Settings {
        mode: mode.into(),
        limits: Limits {
            position: Some((Radians(-1.0), Radians(2.0))),
            velocity: RadiansPerSecond(VELOCITY),
            acceleration: RadiansPerSecondSquared(DECELERATION),
            deceleration: RadiansPerSecondSquared(DECELERATION),
            jerk: Limits::usual_jerk(RadiansPerSecondSquared(DECELERATION)),
            torque: NewtonMetres(3.0),
            step: Radians(STEP),
            written: Written::default(),
        },
        following_error: Some(FollowingErrorLimit { distance: Radians(0.1), timeout: Seconds(0.01) }),
        on_stale,
        outage: Outage::default(),
    }
}

/// An axis that is where it was sent one cycle later, and its supervisor.
struct Bench {
    supervisor: Supervisor,
    feedback: AxisFeedback,
    fault: bool,
    stale: bool,
    follows: bool,
}

impl Bench {
    fn new(settings: Settings) -> Self {
        let feedback = AxisFeedback {
            phase: AxisPhase::HoldingAt(Radians::ZERO),
            fresh: true,
            ..AxisFeedback::default()
        };
        let supervisor = Supervisor::new(settings, PERIOD).unwrap();
        let mut bench = Self { supervisor, feedback, fault: false, stale: false, follows: true };
        bench.cycle(AxisSetpoint::default());
        bench
    }

    fn position(on_stale: OnStale) -> Self {
        Self::new(settings(CyclicMode::Position, on_stale))
    }

    fn cycle(&mut self, asked: AxisSetpoint) -> Supervised {
        let stale = self.stale.then(|| self.supervisor.ramp_time());
        let seen = Seen { feedback: self.feedback, fault: self.fault, stale, ..Seen::default() };
        let supervised = self.supervisor.step(PERIOD, asked, &seen);
        let enabled =
            !matches!(supervised.intervention, Some(Intervention::Disable | Intervention::QuickStop))
                && !self.fault;
        self.feedback.phase = if enabled { AxisPhase::Following } else { AxisPhase::NotEnabled };
        if self.follows && enabled {
            let sent = supervised.setpoint;
            match self.supervisor.settings().mode.cyclic() {
                CyclicMode::Position => self.feedback.position = sent.position,
                CyclicMode::Velocity => self.feedback.position += sent.velocity * PERIOD,
                CyclicMode::Torque => {}
            }
            self.feedback.velocity = sent.velocity;
        } else if !enabled {
            self.feedback.velocity = RadiansPerSecond::ZERO;
        }
        supervised
    }

    fn ask(&mut self, position: f64) -> Supervised {
        self.cycle(AxisSetpoint { position: Radians(position), ..AxisSetpoint::default() })
    }

    /// Moves at `velocity` for some cycles.
    fn cruise(&mut self, velocity: f64, cycles: usize) -> Supervised {
        let mut position = self.feedback.position.0;
        let mut last = self.ask(position);
        for _ in 0..cycles {
            position += velocity * PERIOD.0;
            last = self.ask(position);
        }
        last
    }

    /// Sends the same command until standstill; returns the velocities sent.
    fn velocities(&mut self, asked: f64, cycles: usize) -> Vec<f64> {
        (0..cycles).map(|_| self.ask(asked).setpoint.velocity.0).collect()
    }
}

#[test]
fn numbers_that_mean_nothing_are_refused() {
    let good = settings(CyclicMode::Position, OnStale::Hold);
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let limits = Limits { velocity: RadiansPerSecond(bad), ..good.limits };
        assert!(Supervisor::new(Settings { limits, ..good }, PERIOD).is_err(), "{bad}");
        assert!(Supervisor::new(good, Seconds(bad)).is_err(), "{bad}");
    }
    let limits = Limits { position: Some((Radians(1.0), Radians(1.0))), ..good.limits };
    assert!(Supervisor::new(Settings { limits, ..good }, PERIOD).is_err());
}

#[test]
fn a_stop_stays_until_it_is_acknowledged() {
    let mut bench = Bench::position(OnStale::Hold);
    bench.cruise(2.0, 100);
    assert_eq!(bench.ask(f64::NAN).reason, Some(StopReason::NotFinite));
    let velocities = bench.velocities(0.2, 1_000);
    assert_eq!(velocities[999], 0.0);
    assert_eq!(bench.supervisor.stopped(), Some(StopReason::NotFinite));
    let rest = bench.feedback.position;
    assert_eq!(bench.supervisor.phase(AxisPhase::Following), AxisPhase::HoldingAt(rest));
    bench.supervisor.acknowledge();
    let after = bench.ask(rest.0);
    assert_eq!((after.reason, after.setpoint.position), (None, rest));
    bench.cruise(-2.0, 10);
    assert_eq!(bench.supervisor.stopped(), None);
}

#[test]
fn an_acknowledgement_before_a_stop_does_not_end_it() {
    let mut bench = Bench::position(OnStale::Hold);
    bench.supervisor.acknowledge();
    bench.ask(0.0);
    bench.ask(f64::INFINITY);
    bench.velocities(0.0, 1_000);
    assert_eq!(bench.supervisor.stopped(), Some(StopReason::NotFinite));
}

#[test]
fn each_trouble_has_its_reason() {
    let reason = |ask: f64| Bench::position(OnStale::Hold).ask(ask).reason;
    assert_eq!(reason(STEP * 1.01), Some(StopReason::Step));
    assert_eq!(reason(VELOCITY * 1.06e-3), Some(StopReason::VelocityLimit));
    assert_eq!(reason(VELOCITY * 1.04e-3), None);
    assert_eq!(reason(f64::NAN), Some(StopReason::NotFinite));
    let mut bench = Bench::position(OnStale::Hold);
    let reasons = (0..2_000).map(|cycle| bench.ask(f64::from(cycle) * 2e-3).reason);
    assert!(reasons.flatten().any(|reason| reason == StopReason::PositionLimit));
    assert!(bench.feedback.position <= Radians(2.0), "{:?}", bench.feedback);
    let mut bench = Bench::position(OnStale::Hold);
    bench.fault = true;
    let supervised = bench.ask(0.0);
    assert_eq!(
        (supervised.reason, supervised.intervention),
        (Some(StopReason::Fault), Some(Intervention::Disable))
    );
}

#[test]
fn fault_ends_only_when_the_drive_reports_it() {
    let mut bench = Bench::position(OnStale::Hold);
    bench.fault = true;
    bench.ask(0.0);
    bench.supervisor.acknowledge();
    assert_eq!(bench.ask(0.0).reason, Some(StopReason::Fault));
    bench.fault = false;
    assert_eq!(bench.ask(0.0).reason, None);
    // The next one is another.
    bench.fault = true;
    bench.ask(0.0);
    bench.fault = false;
    assert_eq!(bench.ask(0.0).reason, Some(StopReason::Fault));
}

#[test]
fn lagging_axis_is_stopped_by_its_drive_after_its_time() {
    let mut bench = Bench::position(OnStale::Hold);
    bench.follows = false;
    let cycles = (1..1_000)
        .find(|&cycle| bench.ask(f64::from(cycle) * 1e-3).intervention == Some(Intervention::QuickStop));
    // 0.1 rad at 1 rad/s, and 10 ms.
    assert!(cycles.is_some_and(|cycles| (110..=114).contains(&cycles)), "{cycles:?}");
    assert_eq!(bench.supervisor.stopped(), Some(StopReason::FollowingError));
}

#[test]
fn stale_command_stops_axis_as_configured_fresh_one_frees_it() {
    let expected = [
        (OnStale::Hold, None),
        (OnStale::Ramp, None),
        (OnStale::QuickStop, Some(Intervention::QuickStop)),
        (OnStale::Disable, Some(Intervention::Disable)),
    ];
    for (on_stale, intervention) in expected {
        let mut bench = Bench::position(on_stale);
        bench.cruise(2.0, 100);
        bench.stale = true;
        let first = bench.ask(0.2);
        assert_eq!((first.reason, first.intervention), (Some(StopReason::Stale), intervention));
        bench.velocities(0.2, 1_000);
        assert_eq!(bench.feedback.velocity.0, 0.0);
        bench.stale = false;
        let place = bench.feedback.position.0;
        bench.ask(place);
        assert_eq!(bench.supervisor.stopped(), None, "{on_stale:?}");
    }
}

#[test]
fn ramp_lasts_as_the_slowest_axis_and_keeps_velocity_ratio() {
    let mut benches = [Bench::position(OnStale::Ramp), Bench::position(OnStale::Ramp)];
    benches[0].cruise(3.0, 100);
    benches[1].cruise(1.0, 100);
    let longest = benches[0].supervisor.ramp_time().0.max(benches[1].supervisor.ramp_time().0);
    for cycle in 0..400 {
        let [fast, slow] = [0, 1].map(|index| {
            let bench = &mut benches[index];
            let seen = Seen {
                feedback: bench.feedback,
                fault: false,
                stale: Some(Seconds(longest)),
                ..Seen::default()
            };
            let setpoint = bench.supervisor.step(PERIOD, AxisSetpoint::default(), &seen).setpoint;
            bench.feedback.position = setpoint.position;
            setpoint.velocity.0
        });
        assert!((fast - 3.0 * slow).abs() < 1e-9, "{cycle}: {fast} {slow}");
    }
    assert_eq!(benches[0].supervisor.sent.velocity.0, 0.0);
}

#[test]
fn velocities_stop_before_a_position_limit_and_go_back() {
    let mut bench = Bench::new(settings(CyclicMode::Velocity, OnStale::Hold));
    let ask = |bench: &mut Bench, velocity| {
        bench.cycle(AxisSetpoint { velocity: RadiansPerSecond(velocity), ..AxisSetpoint::default() })
    };
    let mut reasons = Vec::new();
    for _ in 0..3_000 {
        reasons.extend(ask(&mut bench, VELOCITY).reason);
    }
    assert!(bench.feedback.position.0 < 2.0 && bench.feedback.position.0 > 1.9, "{:?}", bench.feedback);
    assert!(reasons.iter().all(|&reason| reason == StopReason::PositionLimit) && !reasons.is_empty());
    assert_eq!(bench.supervisor.stopped(), None, "a soft stop is no latched one");
    assert!(ask(&mut bench, -1.0).setpoint.velocity.0 == -1.0);
    assert_eq!(ask(&mut bench, 2.0 * VELOCITY).reason, Some(StopReason::VelocityLimit));
}

#[test]
fn torque_is_clamped_and_axis_too_fast_for_its_limit_halts() {
    let mut bench = Bench::new(settings(CyclicMode::Torque, OnStale::Ramp));
    let ask = |bench: &mut Bench, torque| {
        bench.cycle(AxisSetpoint { torque: NewtonMetres(torque), ..AxisSetpoint::default() })
    };
    assert_eq!(ask(&mut bench, 10.0).setpoint.torque, NewtonMetres(3.0));
    bench.follows = false;
    bench.feedback.position = Radians(1.9);
    bench.feedback.velocity = RadiansPerSecond(3.0);
    let halted = ask(&mut bench, 1.0);
    assert_eq!(
        (halted.reason, halted.intervention, halted.setpoint.torque),
        (Some(StopReason::PositionLimit), Some(Intervention::Halt), NewtonMetres::ZERO)
    );
    bench.feedback.velocity = RadiansPerSecond::ZERO;
    bench.supervisor.acknowledge();
    assert_eq!(ask(&mut bench, 1.0).reason, None);
    bench.stale = true;
    let torques: Vec<f64> = (0..300).map(|_| ask(&mut bench, 1.0).setpoint.torque.0).collect();
    assert!(torques.windows(2).all(|pair| pair[1] <= pair[0]) && torques[299] == 0.0, "{torques:?}");
}

/// A shaft of 1 kg m^2 in torque mode: pulled by `gravity`, N m, braked by `friction`, N m s/rad.
/// Its controller holds it or lets it turn, and gives no torque once the cycle ends. Returns its
/// highest speed until supervision stopped it, and after how long.
fn torque_taken_away(gravity: f64, friction: f64, turning: f64) -> Option<(f64, Seconds)> {
    let mut supervisor = Supervisor::new(settings(CyclicMode::Torque, OnStale::Hold), PERIOD).unwrap();
    let (mut position, mut velocity, mut fastest) = (0.0_f64, turning, 0.0_f64);
    for cycle in 0..7_000 {
        let ends = cycle >= 200;
        let torque = NewtonMetres(if ends { 0.0 } else { gravity + friction * turning });
        let feedback = AxisFeedback {
            position: Radians(position),
            velocity: RadiansPerSecond(velocity),
            phase: AxisPhase::Following,
            fresh: true,
            ..AxisFeedback::default()
        };
        let asked = AxisSetpoint { position: Radians(position), torque, ..AxisSetpoint::default() };
        let ending = if ends { Ending::Asked } else { Ending::No };
        let taken = supervisor.step(PERIOD, asked, &Seen { feedback, ending, ..Seen::default() });
        if taken.reason.is_some() {
            assert_eq!(
                (taken.reason, taken.intervention),
                (Some(StopReason::Ending), Some(Intervention::Halt))
            );
            return Some((fastest, PERIOD * f64::from(cycle - 200)));
        }
        velocity += (taken.setpoint.torque.0 - gravity - friction * velocity) * PERIOD.0;
        position += velocity * PERIOD.0;
        if ends {
            fastest = fastest.max(velocity.abs());
        }
    }
    None
}

#[test]
fn load_released_by_its_controller_is_halted_before_it_falls() {
    for (gravity, friction) in [(1.0, 0.3), (1.0, 1.0), (-1.5, 0.5)] {
        let (fastest, after) = torque_taken_away(gravity, friction, 0.0).expect("it is taken");
        assert!(fastest <= VELOCITY * 0.03, "{gravity} {friction}: {fastest} rad/s");
        assert!(after <= Seconds(0.2), "{gravity} {friction}: {after}");
    }
    // Turning freely, without a torque and without friction.
    let (_, after) = torque_taken_away(0.0, 0.0, 0.3 * VELOCITY).expect("it is taken");
    assert!(after <= FREE_TIME * 1.1, "{after}");
    // An axis that friction brakes stops by itself.
    assert_eq!(torque_taken_away(0.0, 8.0, 0.3 * VELOCITY), None);
}

/// Command of a wild controller: now a small step, now a large one, now no number.
fn wild() -> impl Strategy<Value = Vec<f64>> {
    let value = prop_oneof![
        8 => -1.2e-2..1.2e-2_f64,
        1 => -3.0..3.0_f64,
        1 => prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300]),
    ];
    prop::collection::vec(value, 1..600)
}

proptest! {
    // feature(axes): what is sent keeps within the limits, whatever is asked
    #[test]
    fn whatever_is_asked_what_is_sent_keeps_within_the_limits(
        asked in wild(), absolute in any::<bool>(), stale_at in 0..600_usize, acknowledges in 1..50_usize,
    ) {
        let mut bench = Bench::position(OnStale::Hold);
        let mut last = 0.0;
        for (cycle, &number) in asked.iter().enumerate() {
            bench.stale = cycle > stale_at && cycle < stale_at + 100;
            if cycle % acknowledges == 0 {
                bench.supervisor.acknowledge();
            }
            let here = bench.feedback.position.0;
            let supervised = bench.ask(if absolute { number } else { here + number });
            let sent = supervised.setpoint;
            prop_assert!(sent.position.is_finite() && sent.velocity.is_finite() && sent.torque.is_finite());
            prop_assert!((-1.0 - SLACK..=2.0 + SLACK).contains(&sent.position.0), "{}", sent.position);
            let moved = sent.position.0 - last;
            prop_assert!(moved.abs() <= VELOCITY * PERIOD.0 + SLACK * 1e-3, "{moved}");
            prop_assert!(moved.abs() <= STEP + SLACK * 1e-3);
            last = sent.position.0;
        }
    }

    #[test]
    fn every_stop_respects_deceleration_and_position_limits(
        velocity in -VELOCITY..VELOCITY, cycles in 0..1_500_usize, ramp in any::<bool>(),
        cause in 0..3_usize, elapsed in prop::sample::select(vec![1.0, 1.0, 2.0, 5.0]),
    ) {
        let mut bench = Bench::position(if ramp { OnStale::Ramp } else { OnStale::Hold });
        bench.cruise(velocity, cycles);
        let mut last = bench.feedback.velocity.0;
        bench.stale = cause == 0;
        for cycle in 0..1_500 {
            let asked = [bench.feedback.position.0, f64::NAN, 1e9][cause];
            let seen = Seen {
                feedback: bench.feedback, fault: false, stale: bench.stale.then(|| bench.supervisor.ramp_time()),
                ..Seen::default()
            };
            let dt = PERIOD * elapsed;
            let asked = AxisSetpoint { position: Radians(asked), ..AxisSetpoint::default() };
            let sent = bench.supervisor.step(dt, asked, &seen).setpoint;
            let change = (sent.velocity.0 - last).abs();
            // The step limit may hold it back where cycles were skipped.
            if sent.velocity.0.abs() * dt.0 < STEP * 0.99 && last.abs() * dt.0 < STEP * 0.99 {
                prop_assert!(change <= DECELERATION * dt.0 * (1.0 + 1e-6) + 1e-9, "{cycle}: {change}");
            }
            prop_assert!(sent.velocity.0.abs() <= last.abs() + 1e-9, "it turns back or speeds up");
            prop_assert!((-1.0 - SLACK..=2.0 + SLACK).contains(&sent.position.0));
            last = sent.velocity.0;
            bench.feedback.position = sent.position;
            bench.feedback.velocity = sent.velocity;
        }
        prop_assert_eq!(last, 0.0);
    }

    #[test]
    fn a_motion_within_its_limits_passes_unchanged(
        amplitude in 0.01..0.9_f64, frequency in 0.1..2.0_f64,
    ) {
        // Peak velocity and acceleration of a sinusoid within the limits, with its rise.
        let amplitude = amplitude.min(0.3 * VELOCITY / (core::f64::consts::TAU * frequency))
            .min(0.3 * DECELERATION / (core::f64::consts::TAU * frequency).powi(2));
        let sway = crate::SmoothSinusoid::new(
            Radians::ZERO, Radians(amplitude), crate::Hertz(frequency), Seconds(1.0),
        ).unwrap();
        let mut bench = Bench::position(OnStale::Hold);
        for cycle in 0..3_000 {
            let asked = sway.at(PERIOD * f64::from(cycle)).position;
            let supervised = bench.ask(asked.0);
            prop_assert_eq!(supervised.setpoint.position, asked);
            prop_assert_eq!(supervised.reason, None);
        }
    }
}
