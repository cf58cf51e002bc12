//! Hostile set-points through trajectory planning and supervision, evaluated by an oracle that
//! knows the limits alone.

mod source;

use std::collections::VecDeque;

use fastrand::Rng;
use onbeat_motion::supervision::{
    CyclicMode, Limits, OnStale, Outage, Seen, Settings, StopReason, Supervisor, Written,
};
use onbeat_motion::{
    AxisFeedback, AxisPhase, AxisSetpoint, NewtonMetres, Radians, RadiansPerSecond, RadiansPerSecondCubed,
    RadiansPerSecondSquared, Seconds,
};

use source::Jogs;
use source::Oracle;
use source::Source;

/// Set-points in one `cargo test`; `ONBEAT_SET_POINTS` gives another number.
const SET_POINTS: u64 = 10_000_000;

/// Seeds of axes that got a set-point beyond a limit before a correction: here a stop just before a
/// position limit.
const FOUND: [u64; 1] = [5_308_865_321];

/// Set-points of one axis.
const LENGTH: u64 = 2_000;

// feature(axes): written limits of acceleration and jerk clamp the set-points of every source
#[test]
fn hostile_set_points_never_exceed_a_limit() {
    let set_points = std::env::var("ONBEAT_SET_POINTS").map_or(SET_POINTS, |text| text.parse().unwrap());
    let seed: u64 = std::env::var("ONBEAT_SEED").map_or(1, |text| text.parse().unwrap());
    let (mut clamped, mut jogged) = (0, 0);
    FOUND.iter().for_each(|&seed| _ = play(seed, LENGTH));
    for trial in 0..set_points.div_ceil(LENGTH) {
        let played = play(seed.wrapping_mul(0x9E37_79B9) ^ trial, LENGTH);
        (clamped, jogged) = (clamped + played.clamped, jogged + played.jogged);
    }
    // The test would show nothing if every set-point passed, or if every axis were stopped at once.
    assert!(clamped * 50 > set_points && clamped < set_points, "{clamped} of {set_points} clamped");
    assert!(jogged * 50 > set_points && jogged * 2 < set_points, "{jogged} of {set_points} jogged");
}

/// Clamped set-points of one axis, and set-points of a jog.
#[derive(Default)]
struct Played {
    clamped: u64,
    jogged: u64,
}

/// One axis with random limits.
fn play(seed: u64, length: u64) -> Played {
    let mut rng = Rng::with_seed(seed);
    let mode = if rng.bool() { CyclicMode::Position } else { CyclicMode::Velocity };
    let (settings, period) = any_settings(&mut rng, mode);
    let (mut jogs, jog_limits) = Jogs::any(&mut rng, &settings);
    let mut supervisor = Supervisor::new(settings, period).unwrap().with_jog(jog_limits).unwrap();
    let mut source = Source::new(&mut rng, &settings, period);
    let mut oracle = Oracle::new(&settings, period);
    let mut feedback =
        AxisFeedback { phase: AxisPhase::HoldingAt(Radians::ZERO), fresh: true, ..AxisFeedback::default() };
    // The axis answers some cycles later.
    let mut late: VecDeque<AxisSetpoint> = vec![AxisSetpoint::default(); rng.usize(0..=3)].into();
    // In csp some axes are ahead of their set-points, by more or less from time to time.
    let leads = mode == CyclicMode::Position && rng.u32(..4) == 0;
    let mut lead = Radians::ZERO;
    let mut played = Played::default();
    for cycle in 0..length {
        if leads && rng.u32(..100) == 0 {
            lead = Radians((rng.f64() - 0.5) * settings.limits.velocity.0 * 0.1);
        }
        let shown = AxisFeedback { phase: supervisor.phase(feedback.phase), ..feedback };
        let asked = source.next(&mut rng, &shown);
        if rng.u32(..40) == 0 {
            supervisor.acknowledge();
        }
        let seen = AxisFeedback { position: feedback.position + lead, ..feedback };
        let seen = jogs.look(&mut rng, Seen { feedback: seen, ..Seen::default() });
        let supervised = supervisor.step(period, asked, &seen);
        played.clamped += u64::from(
            supervised.reason == Some(StopReason::AccelerationLimit) && supervisor.stopped().is_none(),
        );
        played.jogged += u64::from(supervised.reason == Some(StopReason::Jog));
        late.push_back(supervised.setpoint);
        let answer = late.pop_front().unwrap();
        let before = feedback.position;
        match mode {
            CyclicMode::Position => feedback.position = answer.position,
            _ => feedback.position += answer.velocity * period,
        }
        feedback.velocity = (feedback.position - before) / period;
        feedback.phase = AxisPhase::Following;
        let jogged = jogs.judge(&seen, &supervised);
        let is_free = supervisor.stopped().is_none() || jogged == Ok(true);
        let sound = jogged.and_then(|_| oracle.look(&supervised, !is_free, feedback.position));
        if let Err(why) = sound {
            panic!("seed {seed}, cycle {cycle}, {settings:?}, period {period}: {why}");
        }
    }
    played
}

fn any_settings(rng: &mut Rng, mode: CyclicMode) -> (Settings, Seconds) {
    let period = Seconds([0.000_25, 0.001, 0.001, 0.002, 0.004][rng.usize(..5)]);
    let velocity = 10_f64.powf(rng.f64() * 2.0 - 1.0);
    let acceleration = velocity / (0.03 + rng.f64() * 0.5);
    let jerk = acceleration / (0.004 + rng.f64() * 0.2);
    let deceleration = acceleration * [1.0, 1.0, 2.0][rng.usize(..3)];
    let bounded = rng.u32(..4) > 0;
    let (low, high) = (-0.05 - rng.f64() * velocity, 0.05 + rng.f64() * velocity);
    let written = [Written::ALL, Written::ALL, Written { acceleration: true, jerk: false }][rng.usize(..3)];
    let limits = Limits {
        position: bounded.then_some((Radians(low), Radians(high))),
        velocity: RadiansPerSecond(velocity),
        acceleration: RadiansPerSecondSquared(acceleration),
        deceleration: RadiansPerSecondSquared(deceleration),
        jerk: RadiansPerSecondCubed(jerk),
        torque: NewtonMetres(1.0),
        step: Radians(2.0 * velocity * period.0),
        written,
    };
    let (on_stale, outage) = (OnStale::Hold, Outage::default());
    (Settings { mode: mode.into(), limits, following_error: None, on_stale, outage }, period)
}
