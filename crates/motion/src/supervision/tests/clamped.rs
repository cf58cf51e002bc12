//! Set-points beyond the written limits of acceleration and jerk.

use fastrand::Rng;

use super::*;
use crate::online::{AxisLimits, OnlineMotion, Synchronisation, Target};
use crate::units::RadiansPerSecondCubed;

const JERK: f64 = 400.0;

/// Stops brake twice as hard as a motion.
fn written(mode: CyclicMode) -> Settings {
    let mut settings = settings(mode, OnStale::Hold);
    settings.limits.deceleration = RadiansPerSecondSquared(2.0 * DECELERATION);
    settings.limits.jerk = RadiansPerSecondCubed(JERK);
    settings.limits.written = Written::ALL;
    settings
}

/// On its way to a velocity within acceleration and jerk.
fn planned(highest: f64, velocity: f64) -> OnlineMotion {
    let limits = AxisLimits {
        velocity: RadiansPerSecond(highest),
        acceleration: RadiansPerSecondSquared(DECELERATION),
        jerk: RadiansPerSecondCubed(JERK),
    };
    let mut motion = OnlineMotion::new(&[limits], Synchronisation::Independent).unwrap();
    motion.aim_axis(0, Target::Velocity(RadiansPerSecond(velocity))).unwrap();
    motion
}

fn velocity(bench: &mut Bench, velocity: f64) -> Supervised {
    bench.cycle(AxisSetpoint { velocity: RadiansPerSecond(velocity), ..AxisSetpoint::default() })
}

/// Cycles until a bench is stopped for good.
fn stopped_after(bench: &mut Bench, mut next: impl FnMut(u32) -> AxisSetpoint) -> Option<u32> {
    (0..2_000).find(|&cycle| {
        bench.cycle(next(cycle));
        bench.supervisor.stopped() == Some(StopReason::AccelerationLimit)
    })
}

#[test]
fn motions_planned_at_the_limits_pass_unchanged() {
    let mut rng = Rng::with_seed(3);
    for trial in 0..300 {
        let mode = if trial % 3 == 0 { CyclicMode::Velocity } else { CyclicMode::Position };
        let mut settings = written(mode);
        let period = Seconds([0.000_25, 0.001, 0.004][rng.usize(..3)]);
        let limits = &mut settings.limits;
        limits.acceleration = limits.acceleration * (0.5 + rng.f64());
        limits.jerk = limits.jerk * (0.1 + 5.0 * rng.f64());
        limits.step = limits.velocity * period * 2.0;
        settings.following_error = None;
        if mode == CyclicMode::Velocity {
            limits.position = None;
        }
        let (velocity, acceleration, jerk) = (limits.velocity, limits.acceleration, limits.jerk);
        let limits = AxisLimits { velocity, acceleration, jerk };
        let mut motion = OnlineMotion::new(&[limits], Synchronisation::Independent).unwrap();
        let mut supervisor = Supervisor::new(settings, period).unwrap();
        let mut feedback = AxisFeedback {
            phase: AxisPhase::HoldingAt(Radians::ZERO),
            fresh: true,
            ..AxisFeedback::default()
        };
        for cycle in 0..4_000 {
            if cycle % 400 == 0 || rng.u32(..200) == 0 {
                let place = [-1.0, 2.0, rng.f64() * 3.0 - 1.0][rng.usize(..3)];
                let target = match mode {
                    CyclicMode::Position => Target::rest_at(Radians(place)),
                    _ => Target::Velocity(velocity * (rng.f64() * 2.0 - 1.0)),
                };
                motion.aim_axis(0, target).unwrap();
            }
            let point = motion.advance(period)[0];
            // A planner that turns round at a position limit may pass it a little.
            let position = Radians(point.position.0.clamp(-1.0, 2.0));
            let position = if mode == CyclicMode::Position { position } else { Radians::ZERO };
            if mode == CyclicMode::Position && position != point.position {
                break;
            }
            let asked = AxisSetpoint { position, velocity: point.velocity, ..AxisSetpoint::default() };
            let sent = supervisor.step(period, asked, &Seen { feedback, ..Seen::default() });
            let is_same = match mode {
                CyclicMode::Position => sent.setpoint.position == asked.position,
                _ => sent.setpoint.velocity == asked.velocity,
            };
            assert!(is_same && sent.reason.is_none(), "{trial} {cycle}: {asked:?} {sent:?} {limits:?}");
            feedback.phase = AxisPhase::Following;
            feedback.position = sent.setpoint.position;
        }
    }
}

#[test]
fn a_step_is_clamped_and_then_reached() {
    for (step, written) in [(0.004, true), (0.004, false), (-0.002, true), (0.000_1, true)] {
        let mut settings = written_or_not(written);
        settings.following_error = None;
        let mut bench = Bench::new(settings);
        let first = bench.ask(step);
        assert_eq!(first.reason, Some(StopReason::AccelerationLimit));
        assert!(first.setpoint.position.abs() < Radians(1e-4), "{first:?}");
        let rest = (0..150).find(|_| bench.ask(step).reason.is_none());
        assert!(rest.is_some(), "{step}: {:?} {:?}", bench.feedback, bench.supervisor.stopped());
        assert_eq!(bench.ask(step).setpoint.position, Radians(step));
    }
}

/// Acceleration is written, jerk is or is not.
fn written_or_not(jerk: bool) -> Settings {
    let mut settings = written(CyclicMode::Position);
    settings.limits.written.jerk = jerk;
    settings
}

#[test]
fn a_moving_target_is_caught_up_with() {
    let mut bench = Bench::new(written(CyclicMode::Position));
    // At once as fast as 0.1 rad/s, which takes the axis longer.
    let passed = (1..100).find(|&cycle| bench.ask(f64::from(cycle) * 0.000_1).reason.is_none());
    assert!(passed.is_some_and(|cycle| cycle > 30), "{passed:?}");
    assert_eq!(bench.supervisor.stopped(), None);
}

#[test]
fn a_source_beyond_its_limits_for_100_ms_is_stopped() {
    let mut bench = Bench::new(written(CyclicMode::Velocity));
    let buzz = |cycle: u32| {
        let velocity = RadiansPerSecond(if cycle % 2 == 0 { 3.9 } else { -3.9 });
        AxisSetpoint { velocity, ..AxisSetpoint::default() }
    };
    assert_eq!(stopped_after(&mut bench, buzz), Some(100));
    let mut bench = Bench::new(written(CyclicMode::Position));
    let buzz = |cycle: u32| {
        let position = Radians(if cycle % 2 == 0 { 0.003_5 } else { 0.0 });
        AxisSetpoint { position, ..AxisSetpoint::default() }
    };
    assert_eq!(stopped_after(&mut bench, buzz), Some(100));
    // A step now and then is clamped and reached: no stop.
    let mut bench = Bench::new(written(CyclicMode::Velocity));
    let now_and_then = |cycle: u32| {
        let velocity = RadiansPerSecond(if cycle / 500 % 2 == 0 { 1.0 } else { -1.0 });
        AxisSetpoint { velocity, ..AxisSetpoint::default() }
    };
    assert_eq!(stopped_after(&mut bench, now_and_then), None);
    assert!(bench.feedback.velocity.0 < -0.99, "{:?}", bench.feedback);
}

#[test]
fn a_soft_stop_and_an_eager_speed_do_not_count_as_clamping() {
    let mut bench = Bench::new(written(CyclicMode::Velocity));
    let mut motion = planned(VELOCITY, VELOCITY);
    let mut reasons = Vec::new();
    for _ in 0..3_000 {
        let supervised = velocity(&mut bench, motion.advance(PERIOD)[0].velocity.0);
        reasons.extend(supervised.reason);
        assert_eq!(bench.supervisor.stopped(), None);
    }
    assert!(reasons.iter().all(|&reason| reason == StopReason::PositionLimit) && reasons.len() > 1_000);
    assert!((1.9..=2.0).contains(&bench.feedback.position.0), "{:?}", bench.feedback);
    // A source beyond its limits that the end of the way holds anyway.
    let wild = |cycle: u32| {
        let velocity = RadiansPerSecond(VELOCITY - f64::from(cycle % 2));
        AxisSetpoint { velocity, ..AxisSetpoint::default() }
    };
    assert_eq!(stopped_after(&mut bench, wild), None);
    let mut settings = written(CyclicMode::Position);
    settings.limits.position = None;
    let mut bench = Bench::new(settings);
    let mut motion = planned(1.04 * VELOCITY, 1.04 * VELOCITY);
    for cycle in 0..2_000 {
        if cycle == 1_000 {
            motion.aim_axis(0, Target::Velocity(RadiansPerSecond::ZERO)).unwrap();
        }
        let place = motion.advance(PERIOD)[0].position.0;
        let supervised = bench.ask(place);
        assert!(supervised.setpoint.velocity <= RadiansPerSecond(VELOCITY * 1.000_01));
        assert_eq!(bench.supervisor.stopped(), None, "{cycle}");
    }
}

#[test]
fn a_stop_brakes_at_its_own_deceleration_and_nothing_else_does() {
    for mode in [CyclicMode::Position, CyclicMode::Velocity] {
        let mut bench = Bench::new(written(mode));
        let mut motion = planned(2.0, 2.0);
        let mut cycle = |bench: &mut Bench, wild: bool| {
            let mut asked: AxisSetpoint = motion.advance(PERIOD)[0].into();
            if wild {
                (asked.position, asked.velocity) = (Radians(f64::NAN), RadiansPerSecond(f64::NAN));
            }
            bench.cycle(asked)
        };
        for _ in 0..600 {
            cycle(&mut bench, false);
        }
        let mut last = bench.feedback.velocity;
        let mut hardest = 0.0_f64;
        for _ in 0..100 {
            let now = cycle(&mut bench, true).setpoint.velocity;
            hardest = hardest.max((last - now).0 / PERIOD.0);
            last = now;
        }
        assert!((hardest - 2.0 * DECELERATION).abs() < 1e-6, "{mode:?}: {hardest}");
        assert_eq!(last, RadiansPerSecond::ZERO);
    }
    let good = written(CyclicMode::Position);
    let deceleration = RadiansPerSecondSquared(DECELERATION * 0.99);
    let limits = Limits { deceleration, ..good.limits };
    let refused = Supervisor::new(Settings { limits, ..good }, PERIOD).unwrap_err().to_string();
    assert!(refused.starts_with("deceleration of a stop: expected at least"), "{refused}");
}

#[test]
fn a_path_of_straight_lines_is_followed() {
    const SLOW: Seconds = Seconds(0.01);
    let mut s = written(CyclicMode::Position);
    s.limits.velocity = RadiansPerSecond(2.0);
    s.limits.acceleration = RadiansPerSecondSquared(10.0);
    s.limits.deceleration = RadiansPerSecondSquared(10.0);
    s.limits.jerk = RadiansPerSecondCubed(100.0);
    s.limits.step = Radians(0.05);
    s.limits.position = Some((Radians(-2.9), Radians(2.9)));
    for there in [0.5, -0.4, 0.3, 0.2, -0.1, 0.6] {
        let mut bench = Bench::new(s);
        bench.supervisor = Supervisor::new(s, SLOW).unwrap();
        for cycle in 0..300 {
            let t = f64::from(cycle) * SLOW.0;
            let p = if t < 0.5 {
                0.2 * t / 0.5
            } else if t < 1.0 {
                0.2 + (there - 0.2) * (t - 0.5) / 0.5
            } else {
                there
            };
            let asked = AxisSetpoint { position: Radians(p), ..AxisSetpoint::default() };
            let seen = Seen { feedback: bench.feedback, ..Seen::default() };
            let it = bench.supervisor.step(SLOW, asked, &seen);
            bench.feedback.position = it.setpoint.position;
            assert_eq!(
                bench.supervisor.stopped(),
                None,
                "{there}: {cycle} {it:?} {:?}",
                bench.supervisor.clamp
            );
        }
    }
}
