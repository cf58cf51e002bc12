//! The tool of an arm under the controller manager, with scripted axes: straight lines, changed
//! targets, stops, drives that drop out.
use crate::rig;

use control::controller::{AxisTarget, Controller, Freshness};
use ethercat::cia402::{CyclicMode, State};
use ipc::message::control::Action;
use ipc::state::Refusal;
use motion::kinematics::{JointLimits, Line, LineSpeed, SerialArm, ToolPose};
use motion::{AxisLimits, Metres, MetresPerSecond, RadiansPerSecond};
use onbeat_controllers::{Cartesian, JointPosition, Member, MemberKind};
use rig::bench::{Bench, Trouble};
use rig::{ACCELERATION, CYCLE, JERK, VELOCITY, settings};

const URDF: &str = include_str!("../../../examples/arm.urdf");

fn arm() -> SerialArm {
    SerialArm::from_urdf(URDF, None, None).unwrap()
}

fn cartesian() -> Cartesian {
    let limits = |axis: usize| {
        let it = settings(axis);
        let motion = AxisLimits {
            velocity: it.velocity_limit,
            acceleration: it.acceleration_limit,
            jerk: it.jerk_limit,
        };
        JointLimits { position: it.position_limits, motion }
    };
    let limits: Vec<_> = (0..6).map(limits).collect();
    let speed = LineSpeed { linear: MetresPerSecond(0.25), angular: RadiansPerSecond(1.0) };
    Cartesian::new(&[0, 1, 2, 3, 4, 5], Line::new(arm(), &limits, speed).unwrap()).unwrap()
}

/// Bent: no joint near a singular pose.
const BENT: [f64; 6] = [0.3, -0.5, 0.9, 0.4, 0.8, -0.2];

/// A bent arm with its tool controller active.
fn bent() -> Bench {
    let all = [0, 1, 2, 3, 4, 5];
    let positions = JointPosition::new(&all.map(settings)).unwrap();
    let member = |controller: Box<dyn Controller>| Member::new(MemberKind::Plain(controller), &all);
    let mut bench = Bench::new(
        &[CyclicMode::Position; 6],
        vec![member(Box::new(positions)), member(Box::new(cartesian()))],
    );
    bench.command.freshness = Freshness::Fresh;
    for (target, position) in bench.command.axes.iter_mut().zip(BENT) {
        *target = Some(AxisTarget::Position(motion::Radians(position)));
    }
    bench.run(3_000);
    let id = bench.request(Action::SwitchController(1));
    bench.run(20);
    assert_eq!(bench.reply(id), Some(Ok(())));
    bench.positions.clear();
    bench
}

fn joints(bench: &Bench) -> [f64; 6] {
    std::array::from_fn(|axis| bench.commands[axis].setpoint.position.0)
}

fn tool(joints: &[f64]) -> [f64; 3] {
    arm().forward(joints).position.to_array()
}

/// The tool's pose at these joints, moved by `by`.
fn target(joints: &[f64], by: [f64; 3]) -> ToolPose {
    let pose = arm().forward(joints);
    let at: [f64; 3] = pose.position.to_array();
    let q = pose.rotation;
    let position = [0, 1, 2].map(|axis| Metres(at[axis] + by[axis]));
    ToolPose { position, orientation: [q.x, q.y, q.z, q.w] }
}

fn distance(a: [f64; 3], b: [f64; 3]) -> f64 {
    [0, 1, 2].map(|axis| (a[axis] - b[axis]).powi(2)).iter().sum::<f64>().sqrt()
}

/// Farthest the tool was from the line between these places.
fn astray(rows: &[Vec<f64>], begin: [f64; 3], end: [f64; 3]) -> f64 {
    let length = distance(begin, end);
    let away = |row: &Vec<f64>| {
        let at = tool(row);
        let along: f64 =
            [0, 1, 2].map(|axis| (at[axis] - begin[axis]) * (end[axis] - begin[axis])).iter().sum();
        let foot = [0, 1, 2].map(|axis| begin[axis] + (end[axis] - begin[axis]) * along / length.powi(2));
        distance(at, foot)
    };
    rows.iter().map(away).fold(0.0, f64::max)
}

/// Set-points never jump, wherever the test has been.
fn smooth(bench: &Bench, axes: std::ops::Range<usize>) {
    for axis in axes {
        let fastest = bench.positions.windows(2).map(|it| ((it[1][axis] - it[0][axis]) / CYCLE).abs());
        assert!(fastest.fold(0.0, f64::max) <= VELOCITY * 1.001, "axis {axis}");
        assert!(bench.hardest(axis, 0) <= ACCELERATION * 1.001, "axis {axis}: {}", bench.hardest(axis, 0));
        let row = |it: &[Vec<f64>]| {
            (it[3][axis] - 3.0 * it[2][axis] + 3.0 * it[1][axis] - it[0][axis]) / CYCLE.powi(3)
        };
        let hardest = bench.positions.windows(4).map(|it| row(it).abs()).fold(0.0, f64::max);
        assert!(hardest <= JERK * 1.001, "axis {axis}: {hardest}");
    }
}

// feature(axes): `cartesian`: the tool reaches a pose on a straight line; another target is taken from rest on the line
#[test]
fn the_tool_goes_to_one_pose_after_another_on_straight_lines() {
    let mut bench = bent();
    let begin = tool(&BENT);
    let first = target(&BENT, [0.0, 0.2, -0.1]);
    bench.command.pose = Some(first);
    bench.run(3_000);
    let end = first.position.map(|it| it.0);
    assert!(distance(tool(&joints(&bench)), end) < 1e-6);
    assert!(astray(&bench.positions, begin, end) < 2e-4);
    // Half way back it is sent elsewhere.
    let from = bench.positions.len();
    bench.command.pose = Some(target(&BENT, [0.0; 3]));
    bench.run(500);
    let second = target(&BENT, [0.05, 0.1, 0.1]);
    bench.command.pose = Some(second);
    bench.run(300);
    let rows = &bench.positions[from..];
    let rest = 500 + rows[500..].windows(2).position(|it| it[0] == it[1]).expect("it comes to rest");
    let between = tool(&rows[rest]);
    assert!(distance(between, begin) > 0.02 && distance(between, end) > 0.02, "{between:?}");
    assert!(astray(&rows[..=rest], end, begin) < 2e-4, "it comes to rest on the line");
    bench.run(3_000);
    assert!(distance(tool(&joints(&bench)), second.position.map(|it| it.0)) < 1e-6);
    smooth(&bench, 0..6);
}

// feature(axes): `cartesian`: a refused target is counted once, and the arm holds
#[test]
fn unreachable_target_is_refused_once_and_nothing_moves() {
    let mut bench = bent();
    let mut refused = Vec::new();
    let still = joints(&bench);
    for by in [[3.0, 0.0, 0.0], [f64::NAN, 0.0, 0.0]] {
        bench.command.pose = Some(target(&BENT, by));
        for _ in 0..500 {
            bench.run(1);
            refused.extend(bench.manager.output().refused);
        }
    }
    assert_eq!(refused, [Refusal::OutOfReach, Refusal::NotFinite]);
    assert_eq!(joints(&bench), still);
    // A good one is followed all the same.
    bench.command.pose = Some(target(&BENT, [0.0, 0.1, 0.0]));
    bench.run(2_000);
    assert!(distance(tool(&joints(&bench)), tool(&BENT)) > 0.099);
}

#[test]
fn stop_ends_on_the_line_and_old_command_is_not_repeated() {
    let mut bench = bent();
    let there = target(&BENT, [0.0, 0.2, -0.1]);
    bench.command.pose = Some(there);
    bench.run(500);
    let id = bench.request(Action::Stop);
    bench.run(1_000);
    assert_eq!(bench.reply(id), Some(Ok(())));
    let end = there.position.map(|it| it.0);
    let rest = joints(&bench);
    assert!(distance(tool(&rest), end) > 0.05 && distance(tool(&rest), tool(&BENT)) > 0.02);
    assert!(astray(&bench.positions, tool(&BENT), end) < 2e-4);
    bench.run(1_000);
    assert_eq!(joints(&bench), rest);
    // The end of the cycle does the same.
    bench.command.pose = Some(target(&BENT, [0.0, 0.1, 0.1]));
    bench.run(300);
    bench.stopping = true;
    bench.run(1_000);
    let rest = joints(&bench);
    bench.run(200);
    assert_eq!(joints(&bench), rest);
    smooth(&bench, 0..6);
}

// feature(axes): `cartesian`: a drive that stops following stops the tool on its line
#[test]
fn while_a_drive_is_out_the_others_rest_until_a_target_after_it() {
    let mut bench = bent();
    let there = target(&BENT, [0.0, 0.2, -0.1]);
    bench.command.pose = Some(there);
    bench.run(500);
    bench.troubles[3] = Trouble::Fault;
    bench.run(1_000);
    let rest = joints(&bench);
    bench.run(200);
    assert_eq!(joints(&bench), rest);
    smooth(&bench, 0..3);
    smooth(&bench, 4..6);
    bench.request(Action::ResetFaults);
    bench.run(1_000);
    assert_eq!(bench.reports[3].state, Some(State::OperationEnabled));
    assert!(distance(tool(&joints(&bench)), tool(&rest)) < 1e-6, "the target from before moves nothing");
    let there = target(&BENT, [0.0, 0.2, -0.08]);
    bench.command.pose = Some(there);
    bench.run(4_000);
    let end = there.position.map(|it| it.0);
    assert!(distance(tool(&joints(&bench)), end) < 1e-6, "{:?}", bench.reports[3]);
    smooth(&bench, 0..3);
}

#[test]
fn without_a_fresh_command_nothing_begins() {
    let mut bench = bent();
    let still = joints(&bench);
    for freshness in [Freshness::Stale, Freshness::Never] {
        bench.command.freshness = freshness;
        bench.command.pose = Some(target(&BENT, [0.0, 0.2, -0.1]));
        bench.run(500);
        assert_eq!(joints(&bench), still);
    }
    assert!(bench.manager.output().commanded, "when it is stale, supervision stops the axes");
}
