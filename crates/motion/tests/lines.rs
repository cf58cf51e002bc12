//! Straight lines of an arm's tool: planned, followed in virtual time, and looked at in every
//! cycle.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use glam::{DQuat, DVec3};
use onbeat_motion::kinematics::{JointLimits, Line, LineError, LineSpeed, SerialArm, ToolPose, Transform};
use onbeat_motion::online::{AxisLimits, Progress, ProgressLimits};
use onbeat_motion::{
    Metres, MetresPerSecond, Radians, RadiansPerSecond, RadiansPerSecondCubed, RadiansPerSecondSquared,
    Seconds,
};
use proptest::prelude::*;

const ARM: &str = include_str!("../../../examples/arm.urdf");

const VELOCITY: f64 = 2.0;
const ACCELERATION: f64 = 10.0;
const JERK: f64 = 100.0;
const POSITIONS: (f64, f64) = (-2.9, 2.9);
const LINEAR: f64 = 0.25;
const ANGULAR: f64 = 1.0;
const PERIOD: f64 = 1e-3;

/// Bent: no joint near a singular pose.
const BENT: [f64; 6] = [0.3, -0.5, 0.9, 0.4, 0.8, -0.2];

fn line() -> Line {
    let motion = AxisLimits {
        velocity: RadiansPerSecond(VELOCITY),
        acceleration: RadiansPerSecondSquared(ACCELERATION),
        jerk: RadiansPerSecondCubed(JERK),
    };
    let limits = JointLimits { position: Some((Radians(POSITIONS.0), Radians(POSITIONS.1))), motion };
    let speed = LineSpeed { linear: MetresPerSecond(LINEAR), angular: RadiansPerSecond(ANGULAR) };
    Line::new(SerialArm::from_urdf(ARM, None, None).unwrap(), &[limits; 6], speed).unwrap()
}

fn pose(tip: &Transform) -> ToolPose {
    let [x, y, z] = tip.position.to_array();
    let q = tip.rotation;
    ToolPose { position: [x, y, z].map(Metres), orientation: [q.x, q.y, q.z, q.w] }
}

fn planned(line: &mut Line, from: &[f64; 6], to: ToolPose) -> Result<ProgressLimits, LineError> {
    line.aim(from.iter().copied().map(Radians), to)?;
    for _ in 0..2_000 {
        if let Some(limits) = line.plan()? {
            return Ok(limits);
        }
    }
    panic!("it never ends");
}

/// Most of what happened on the way.
#[derive(Debug, Default)]
struct Most {
    away: f64,
    turned: f64,
    linear: f64,
    velocity: f64,
    acceleration: f64,
    jerk: f64,
    cycles: u32,
}

/// Follows the line and stops at `stop`, s; the joints' last positions, and the most there was.
fn followed(
    line: &Line,
    limits: ProgressLimits,
    from: &[f64; 6],
    to: &Transform,
    stop: f64,
) -> ([f64; 6], Most) {
    let arm = line.arm();
    let start = arm.forward(from);
    let way = to.position - start.position;
    let mut progress = Progress::default();
    progress.begin(limits).unwrap();
    let (mut most, mut before) = (Most::default(), [*from; 3]);
    let mut tool = start;
    while !progress.arrived() && most.cycles < 700_000 {
        if f64::from(most.cycles) * PERIOD >= stop && f64::from(most.cycles) * PERIOD < stop + PERIOD {
            progress.stop().unwrap();
        }
        most.cycles += 1;
        let place = progress.advance(Seconds(PERIOD));
        let now: [f64; 6] = std::array::from_fn(|joint| line.joint(joint, place).position.0);
        for joint in 0..6 {
            let [a, b, c] = before.map(|row: [f64; 6]| row[joint]);
            let d = now[joint];
            assert!(d >= POSITIONS.0 - 1e-9 && d <= POSITIONS.1 + 1e-9, "joint {joint} at {d}");
            let point = line.joint(joint, place);
            most.velocity = most.velocity.max(point.velocity.0.abs()).max(((d - c) / PERIOD).abs());
            most.acceleration = most.acceleration.max(point.acceleration.0.abs());
            most.acceleration = most.acceleration.max(((d - 2.0 * c + b) / PERIOD.powi(2)).abs());
            most.jerk = most.jerk.max(((d - 3.0 * c + 3.0 * b - a) / PERIOD.powi(3)).abs());
        }
        before = [before[1], before[2], now];
        let at = arm.forward(&now);
        let gone = at.position - start.position;
        let along = if way.length() > 0.0 { way * (gone.dot(way) / way.length_squared()) } else { way };
        most.away = most.away.max((gone - along).length());
        let wanted = Transform {
            rotation: DQuat::from_scaled_axis(to.turn_since(&start) * place.progress) * start.rotation,
            ..start
        };
        most.turned = most.turned.max(at.turn_since(&wanted).length());
        most.linear = most.linear.max((at.position - tool.position).length() / PERIOD);
        tool = at;
    }
    (before[2], most)
}

fn within_limits(most: &Most) {
    assert!(most.velocity <= VELOCITY * 1.001, "{most:?}");
    assert!(most.acceleration <= ACCELERATION * 1.001, "{most:?}");
    // Differences of positions about 1 carry 1e-16 / 1e-9.
    assert!(most.jerk <= JERK * 1.001 + 1e-3, "{most:?}");
    assert!(most.linear <= LINEAR * 1.001, "{most:?}");
    assert!(most.away < 1.5e-4 && most.turned < 6e-4, "{most:?}");
}

fn moved(from: &[f64; 6], by: [f64; 3], turn: [f64; 3]) -> Transform {
    let start = line().arm().forward(from);
    let position = start.position + DVec3::from(by);
    let rotation = DQuat::from_scaled_axis(DVec3::from(turn)) * start.rotation;
    Transform { position, rotation }
}

// feature(axes): `cartesian`: an arm's tool along straight lines, joints within velocity, acceleration and jerk at every cycle
#[test]
fn the_tool_goes_straight_and_arrives() {
    let mut line = line();
    for (by, turn) in [
        ([0.0, 0.2, -0.1], [0.0; 3]),
        ([-0.1, -0.2, 0.1], [0.3, -0.2, 0.4]),
        ([0.0; 3], [0.0, 0.5, 0.0]),
        ([1e-7, 0.0, 0.0], [0.0; 3]),
        ([0.0; 3], [0.0; 3]),
    ] {
        let to = moved(&BENT, by, turn);
        let limits = planned(&mut line, &BENT, pose(&to)).unwrap();
        let (end, most) = followed(&line, limits, &BENT, &to, f64::INFINITY);
        within_limits(&most);
        let at = line.arm().forward(&end);
        assert!((at.position - to.position).length() < 1e-7, "{by:?}");
        assert!(at.turn_since(&to).length() < 1e-7, "{turn:?}");
    }
    // The first one is long enough to be fast: 0.22 m at 0.25 m/s take no longer than three times
    // that.
    let to = moved(&BENT, [0.0, 0.2, -0.1], [0.0; 3]);
    let limits = planned(&mut line, &BENT, pose(&to)).unwrap();
    let (_, most) = followed(&line, limits, &BENT, &to, f64::INFINITY);
    assert!(most.cycles < 3_000, "{most:?}");
}

#[test]
fn a_stop_ends_on_the_line() {
    let mut line = line();
    let to = moved(&BENT, [0.0, 0.2, -0.1], [0.1, 0.2, 0.0]);
    for stop in [0.0, 0.05, 0.3, 0.7, 1.1, 1.4] {
        let limits = planned(&mut line, &BENT, pose(&to)).unwrap();
        let (_, most) = followed(&line, limits, &BENT, &to, stop);
        within_limits(&most);
    }
}

// feature(axes): `cartesian`: near singular poses the tool is slow, through them it is refused
#[test]
fn tool_slows_near_singularity_and_never_passes_it() {
    let mut line = line();
    // The wrist nearly stretched: the rolls before and behind it nearly turn about one axis.
    let near = [0.3, -0.5, 0.9, 0.4, 0.05, -0.2];
    let to = moved(&near, [0.0, 0.05, 0.0], [0.0; 3]);
    let limits = planned(&mut line, &near, pose(&to)).unwrap();
    let (end, most) = followed(&line, limits, &near, &to, f64::INFINITY);
    within_limits(&most);
    assert!((line.arm().forward(&end).position - to.position).length() < 1e-7);
    let to = moved(&BENT, [0.0, 0.05, 0.0], [0.0; 3]);
    let bent = planned(&mut line, &BENT, pose(&to)).unwrap();
    assert!(limits.velocity < bent.velocity, "{limits:?} {bent:?}");
    // Stretched: to the side, without turning, the wrist would have to flip first.
    let stretched = [0.0; 6];
    let to = moved(&stretched, [0.0, 0.2, 0.0], [0.0; 3]);
    let why = planned(&mut line, &stretched, pose(&to)).unwrap_err();
    assert!(matches!(why, LineError::Singular | LineError::OutOfReach), "{why:?}");
    // Within the plane of the stretched arm nothing is lost.
    let to = moved(&stretched, [-0.05, 0.0, -0.2], [0.0; 3]);
    let limits = planned(&mut line, &stretched, pose(&to)).unwrap();
    within_limits(&followed(&line, limits, &stretched, &to, f64::INFINITY).1);
}

// feature(axes): `cartesian`: targets out of reach or not finite are refused before anything moves
#[test]
fn what_cannot_be_reached_is_refused() {
    let mut line = line();
    let far = moved(&BENT, [3.0, 0.0, 0.0], [0.0; 3]);
    assert_eq!(planned(&mut line, &BENT, pose(&far)), Err(LineError::OutOfReach));
    assert_eq!(line.plan(), Err(LineError::Nothing), "a refused line is none");
    // Both ends can be reached, and what is between cannot: behind its back the first joint would
    // pass its limits.
    let turned = |pan: f64| [pan, BENT[1], BENT[2], BENT[3], BENT[4], BENT[5]];
    let behind = pose(&line.arm().forward(&turned(-2.6)));
    assert!(planned(&mut line, &turned(2.6), behind).is_err());
    let here = pose(&line.arm().forward(&BENT));
    let mut bad = here;
    bad.position[1] = Metres(f64::NAN);
    assert_eq!(planned(&mut line, &BENT, bad), Err(LineError::NotFinite));
    let bad = ToolPose { orientation: [0.0, 0.0, 0.0, 1.01], ..here };
    assert_eq!(planned(&mut line, &BENT, bad), Err(LineError::Orientation));
    assert_eq!(planned(&mut line, &[f64::INFINITY; 6], here), Err(LineError::NotFinite));
    let short = BENT[..5].iter().copied().map(Radians);
    assert_eq!(line.aim(short, here), Err(LineError::Joints { expected: 6, found: 5 }));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// Any target from any place: refused, or followed within every limit, and stopped anywhere.
    // feature(axes): `cartesian`: random targets never take a joint beyond a limit
    #[test]
    fn joints_keep_their_limits_for_any_target(
        from in prop::array::uniform6(-2.5..2.5_f64),
        by in prop::array::uniform3(-0.4..0.4_f64),
        turn in prop::array::uniform3(-1.0..1.0_f64),
        stop in 0.0..4.0_f64,
    ) {
        let mut line = line();
        let to = moved(&from, by, turn);
        if let Ok(limits) = planned(&mut line, &from, pose(&to)) {
            let stop = if stop > 3.0 { f64::INFINITY } else { stop };
            within_limits(&followed(&line, limits, &from, &to, stop).1);
        }
    }

    /// Half of the targets near a bent arm can be reached, so that the property above is not empty.
    #[test]
    fn targets_near_a_bent_arm_are_reached(
        by in prop::array::uniform3(-0.08..0.08_f64),
        turn in prop::array::uniform3(-0.2..0.2_f64),
    ) {
        let mut line = line();
        let to = moved(&BENT, by, turn);
        let limits = planned(&mut line, &BENT, pose(&to)).unwrap();
        let (end, _) = followed(&line, limits, &BENT, &to, f64::INFINITY);
        let away = line.arm().forward(&end).position - to.position;
        prop_assert!(away.length() < 1e-7, "{}", away.length());
    }
}
