//! Targets that change at any instant, over axes of every size.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use fastrand::Rng;
use onbeat_motion::online::{AxisLimits, OnlineError, OnlineMotion, Synchronisation, Target};
use onbeat_motion::{
    Radians, RadiansPerSecond, RadiansPerSecondCubed, RadiansPerSecondSquared, Seconds, TrajectoryPoint,
};

// feature(motion): jerk-limited online motion
#[test]
fn targets_that_change_in_flight_never_break_a_limit() {
    let mut rng = Rng::with_seed(4);
    for trial in 0..400 {
        let axes = rng.usize(1..=4);
        let limits: Vec<AxisLimits> = (0..axes).map(|_| any_limits(&mut rng)).collect();
        let mut motion = OnlineMotion::new(&limits, synchronisation(trial)).unwrap();
        for _ in 0..20 {
            motion.aim(&any_targets(&mut rng, &limits)).unwrap();
            let period = Seconds(motion.remaining().0.max(0.1) / rng.f64().mul_add(300.0, 30.0));
            for _ in 0..rng.usize(1..40) {
                let before = motion.points().to_vec();
                let after = motion.advance(period);
                for ((before, after), limits) in before.iter().zip(after).zip(&limits) {
                    step_is_possible(before, after, limits, period);
                }
            }
        }
    }
}

#[test]
fn every_axis_ends_exactly_at_its_target() {
    let mut rng = Rng::with_seed(5);
    for trial in 0..300 {
        let limits: Vec<AxisLimits> = (0..3).map(|_| any_limits(&mut rng)).collect();
        let mut motion = OnlineMotion::new(&limits, synchronisation(trial)).unwrap();
        motion.aim(&any_targets(&mut rng, &limits)).unwrap();
        motion.advance(motion.remaining() * rng.f64());
        let targets = any_targets(&mut rng, &limits);
        motion.aim(&targets).unwrap();
        assert!(!motion.arrived());
        let beyond = Seconds(0.25);
        motion.advance(motion.remaining() + beyond);
        assert!(motion.arrived());
        for (point, target) in motion.points().iter().zip(&targets) {
            match *target {
                Target::Position { position, velocity } => {
                    assert_eq!(point.velocity, velocity);
                    let ahead = point.position - position;
                    // Axes on their own were there some time ago.
                    assert!(
                        ahead.0 * velocity.0 >= 0.0 && ahead.abs() >= (velocity * beyond).abs() * 0.999
                    );
                    assert!(velocity != RadiansPerSecond::ZERO || ahead == Radians::ZERO);
                }
                Target::Velocity(velocity) => assert_eq!(point.velocity, velocity),
            }
        }
    }
}

#[test]
fn coordinated_axes_arrive_together_with_the_slowest() {
    let mut rng = Rng::with_seed(6);
    for _ in 0..300 {
        let axes = rng.usize(2..=12);
        let limits: Vec<AxisLimits> = (0..axes).map(|_| any_limits(&mut rng)).collect();
        let mut together = OnlineMotion::new(&limits, Synchronisation::Together).unwrap();
        let mut alone = OnlineMotion::new(&limits, Synchronisation::Independent).unwrap();
        for (axis, limits) in limits.iter().enumerate() {
            let point = TrajectoryPoint {
                position: Radians(rng.f64() - 0.5),
                velocity: limits.velocity * (rng.f64() - 0.5),
                acceleration: RadiansPerSecondSquared::ZERO,
            };
            together.begin(axis, point).unwrap();
            alone.begin(axis, point).unwrap();
        }
        let targets: Vec<Target> =
            (0..axes).map(|_| Target::rest_at(Radians(rng.f64() * 8.0 - 4.0))).collect();
        together.aim(&targets).unwrap();
        alone.aim(&targets).unwrap();
        let (common, fastest) = (together.remaining(), alone.remaining());
        assert!(common.0 >= fastest.0 - 1e-9);
        // Just before the end all are still on their way, just after it none is.
        together.advance(common - Seconds(1e-6));
        let moving = |point: &TrajectoryPoint| point.velocity != RadiansPerSecond::ZERO;
        assert!(together.points().iter().all(moving), "{:?}", together.points());
        together.advance(Seconds(2e-6));
        assert!(together.arrived() && !together.points().iter().any(moving));
    }
}

/// The library's own synchronisation is the reference.
#[test]
fn axes_that_go_together_take_as_long_as_the_library_says() {
    use rsruckig::prelude::*;
    let mut rng = Rng::with_seed(8);
    let mut judged = 0;
    for _ in 0..1000 {
        let limits: [AxisLimits; 5] = std::array::from_fn(|_| any_limits(&mut rng));
        let mut motion = OnlineMotion::new(&limits, Synchronisation::Together).unwrap();
        let mut input = InputParameter::<5>::new(None);
        let targets: [Target; 5] = std::array::from_fn(|axis| {
            let (from, to) = (rng.f64() * 0.9 * limits[axis].velocity.0, rng.f64() * 4.0 - 2.0);
            let velocity = RadiansPerSecond(from);
            motion.begin(axis, TrajectoryPoint { velocity, ..TrajectoryPoint::default() }).unwrap();
            (input.current_velocity[axis], input.target_position[axis]) = (from, to);
            input.max_velocity[axis] = limits[axis].velocity.0;
            input.max_acceleration[axis] = limits[axis].acceleration.0;
            input.max_jerk[axis] = limits[axis].jerk.0;
            Target::rest_at(Radians(to))
        });
        motion.aim(&targets).unwrap();
        let mut trajectory = Trajectory::<5>::new(None);
        // The library sometimes fails for five axes at once; for one at a time it did not.
        if Ruckig::<5, ThrowErrorHandler>::new(None, 0.001).calculate(&input, &mut trajectory).is_err() {
            continue;
        }
        judged += 1;
        let (ours, theirs) = (motion.remaining().0, trajectory.get_duration());
        assert!((ours - theirs).abs() < 1e-6 * theirs.max(1.0), "{ours} {theirs}");
    }
    assert!(judged > 900, "{judged}");
}

#[test]
fn axis_without_command_stops() {
    let mut motion = OnlineMotion::new(&[LIMITS], Synchronisation::Independent).unwrap();
    let point = TrajectoryPoint {
        position: Radians(1e6),
        velocity: RadiansPerSecond(-1.5),
        acceleration: RadiansPerSecondSquared(2.0),
    };
    motion.begin(0, point).unwrap();
    assert_eq!(motion.points()[0], point);
    let rest = motion.advance(Seconds(10.0))[0];
    assert_eq!(rest.velocity, RadiansPerSecond::ZERO);
    assert!(rest.position < Radians(1e6) && rest.position > Radians(1e6 - 2.0), "{rest:?}");
}

#[test]
fn invalid_numbers_are_refused_and_the_axis_continues() {
    let mut motion = OnlineMotion::new(&[LIMITS; 2], Synchronisation::Together).unwrap();
    let good = Target::rest_at(Radians(1.0));
    motion.aim(&[good, good]).unwrap();
    motion.advance(Seconds(0.1));
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let found = motion.aim(&[good, Target::rest_at(Radians(bad))]).unwrap_err();
        assert!(matches!(found, OnlineError::NotFinite { axis: 1, .. }), "{found:?}");
        let found = motion.aim_axis(0, Target::Velocity(RadiansPerSecond(bad))).unwrap_err();
        assert!(matches!(found, OnlineError::NotFinite { axis: 0, .. }), "{found:?}");
        let point = TrajectoryPoint { position: Radians(bad), ..TrajectoryPoint::default() };
        assert!(matches!(motion.begin(0, point), Err(OnlineError::NotFinite { .. })));
        let limits = AxisLimits { jerk: RadiansPerSecondCubed(bad), ..LIMITS };
        let found = OnlineMotion::new(&[LIMITS, limits], Synchronisation::Together).unwrap_err();
        assert!(matches!(found, OnlineError::Limit { axis: 1, name: "jerk", .. }), "{found:?}");
    }
    let too_fast = Target::Velocity(RadiansPerSecond(2.1));
    assert!(matches!(motion.aim(&[good, too_fast]), Err(OnlineError::TooFast { axis: 1, .. })));
    let far = Target::rest_at(Radians(1e5));
    assert_eq!(motion.aim(&[far, good]), Err(OnlineError::TooLong { axis: 0 }));
    assert_eq!(motion.aim(&[good]), Err(OnlineError::Targets { found: 1, axes: 2 }));
    assert_eq!(motion.aim_axis(2, good), Err(OnlineError::Axis { axis: 2, axes: 2 }));
    motion.advance(motion.remaining());
    assert_eq!(motion.points().iter().map(|point| point.position.0).collect::<Vec<_>>(), [1.0, 1.0]);
}

/// A hundred thousand plans by default; ONBEAT_TRIALS sets another number.
// feature(motion): jerk-limited online motion
#[test]
fn a_way_is_found_from_every_state_to_every_target() {
    let trials =
        std::env::var("ONBEAT_TRIALS").ok().and_then(|trials| trials.parse().ok()).unwrap_or(100_000);
    let mut rng = Rng::with_seed(7);
    let mut missing = Vec::new();
    for _ in 0..trials / 20 {
        let limits = any_limits(&mut rng);
        let mut motion = OnlineMotion::new(&[limits], Synchronisation::Independent).unwrap();
        for _ in 0..20 {
            let target = any_targets(&mut rng, &[limits])[0];
            if let Err(why) = motion.aim_axis(0, target) {
                missing.push((why, limits, motion.points()[0], target));
            }
            motion.advance(motion.remaining() * rng.f64() * 1.2);
        }
    }
    assert!(missing.is_empty(), "{} of {trials}, first {:?}", missing.len(), missing[0]);
}

/// Users write round numbers, and there the library's shapes of a motion meet: 2 a^3/j^2, a^2/j,
/// v^2/a + v a/j.
#[test]
fn a_way_is_found_between_round_numbers() {
    const ROUND: [f64; 8] = [0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0];
    let mut missing = Vec::new();
    for (velocity, acceleration) in ROUND.into_iter().flat_map(|v| ROUND.map(|a| (v, a))) {
        for (jerk, of) in [1.0, 2.0, 4.0, 5.0, 10.0].into_iter().flat_map(|j| ROUND.map(|of| (j, of))) {
            let limits = AxisLimits {
                velocity: RadiansPerSecond(velocity),
                acceleration: RadiansPerSecondSquared(acceleration),
                jerk: RadiansPerSecondCubed(acceleration * jerk),
            };
            let shapes =
                [2.0 * acceleration / (jerk * jerk), velocity * velocity / acceleration + velocity / jerk];
            for distance in [of, shapes[0], -shapes[1]] {
                let mut motion = OnlineMotion::new(&[limits; 2], Synchronisation::Together).unwrap();
                let targets = [Target::rest_at(Radians(distance)), Target::rest_at(Radians(-of))];
                if let Err(why) = motion.aim(&targets) {
                    missing.push((why, limits, targets));
                    continue;
                }
                motion.advance(motion.remaining() * 0.5);
                let back = [Target::rest_at(Radians(0.0)), Target::Velocity(RadiansPerSecond(velocity))];
                if let Err(why) = motion.aim(&back) {
                    missing.push((why, limits, back));
                }
                motion.advance(motion.remaining());
                assert!((motion.points()[0].position.0).abs() < 1e-9, "{limits:?} {distance}");
            }
        }
    }
    assert!(missing.is_empty(), "{} missing, first {:?}", missing.len(), missing[0]);
}

fn step_is_possible(
    before: &TrajectoryPoint,
    after: &TrajectoryPoint,
    limits: &AxisLimits,
    period: Seconds,
) {
    let rounding = 1.0 + 1e-6;
    assert!(after.velocity.abs().0 <= limits.velocity.0 * rounding + 1e-8, "{after:?} {limits:?}");
    assert!(after.acceleration.abs().0 <= limits.acceleration.0 * rounding + 1e-8, "{after:?} {limits:?}");
    let step = (after.acceleration - before.acceleration).abs();
    assert!(step.0 <= limits.jerk.0 * period.0 * rounding + 1e-6, "{before:?} {after:?} {limits:?}");
    let step = (after.velocity - before.velocity).abs();
    assert!(
        step.0 <= limits.acceleration.0 * period.0 * rounding + 1e-6,
        "{before:?} {after:?} {limits:?}"
    );
    let step = (after.position - before.position).abs();
    assert!(step.0 <= limits.velocity.0 * period.0 * rounding + 1e-6, "{before:?} {after:?} {limits:?}");
}

fn synchronisation(trial: usize) -> Synchronisation {
    if trial % 2 == 0 { Synchronisation::Independent } else { Synchronisation::Together }
}

/// From a heavy table to a small motor, over three orders of magnitude each.
fn any_limits(rng: &mut Rng) -> AxisLimits {
    let mut between = |low: f64, high: f64| low * (high / low).powf(rng.f64());
    let velocity = between(0.1, 100.0);
    let acceleration = velocity * between(0.5, 50.0);
    AxisLimits {
        velocity: RadiansPerSecond(velocity),
        acceleration: RadiansPerSecondSquared(acceleration),
        jerk: RadiansPerSecondCubed(acceleration * between(1.0, 100.0)),
    }
}

fn any_targets(rng: &mut Rng, limits: &[AxisLimits]) -> Vec<Target> {
    let mut target = |limits: &AxisLimits| {
        let velocity = limits.velocity * (rng.f64() * 2.0 - 1.0);
        let position = Radians((rng.f64() - 0.5) * 20.0_f64.powf(rng.f64() * 2.0 - 1.0));
        match rng.u8(0..4) {
            0 => Target::Velocity(velocity),
            1 => Target::Position { position, velocity },
            _ => Target::rest_at(position),
        }
    };
    limits.iter().map(&mut target).collect()
}

const LIMITS: AxisLimits = AxisLimits {
    velocity: RadiansPerSecond(2.0),
    acceleration: RadiansPerSecondSquared(10.0),
    jerk: RadiansPerSecondCubed(100.0),
};
