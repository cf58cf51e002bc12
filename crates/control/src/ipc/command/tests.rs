//! Commands that a robot takes, and commands that it refuses.

use types::ValueType;
use types::signal::{Flow, OutputBehaviour, Writer};

use motion::{Metres, NewtonMetres, Radians, RadiansPerSecond};

use super::*;

const NOW: u64 = 10_000_000_000;

fn rules() -> Rules {
    let position = Takes { position: true, velocity: true, effort: false };
    let torque = Takes { effort: true, ..Takes::default() };
    Rules {
        axes: vec![position, torque],
        base: Some(BaseRules { sideways: false }),
        pose: true,
        controllers: Vec::new(),
        signals: Commanded::of(&signals()),
        longest_time_to_live: Duration::from_secs(1),
    }
}

fn good() -> Command {
    Command {
        sequence: 1,
        stamp_ns: NOW,
        time_to_live_ns: 100_000_000,
        twist: Some(Twist::new(-1.0, 0.0, 2.0)),
        pose: Some(ToolPose { position: [0.1, 0.2, 0.3].map(Metres), orientation: [0.6, 0.0, -0.8, 0.0] }),
        axes: vec![Some(AxisTarget::Position(Radians(2.0))), Some(AxisTarget::Effort(NewtonMetres(-4.0)))],
        signals: vec![Some(Value::Bool(true)), Some(Value::Real(9.5))],
    }
}

/// An input, and two outputs of the outside.
fn signals() -> Vec<Signal> {
    let outside = OutputBehaviour { writer: Writer::Outside, ..OutputBehaviour::default() };
    let signal = |value_type, range, flow| Signal {
        name: String::new(),
        sub_device: 0,
        bit_offset: 0,
        value_type,
        unit: String::new(),
        scaling: None,
        range,
        flow,
    };
    vec![
        signal(ValueType::Bool, None, Flow::Input),
        signal(ValueType::Bool, None, Flow::Output(outside)),
        signal(ValueType::Signed(16), Some((-10.0, 10.0)), Flow::Output(outside)),
    ]
}

fn refused(change: impl FnOnce(&mut Command)) -> Option<(Refusal, Option<usize>)> {
    let mut command = good();
    change(&mut command);
    rules().check(&command, NOW, 0, &Gates::default()).err().map(|Refused { why, axis, .. }| (why, axis))
}

#[test]
fn command_beyond_the_limits_is_taken() {
    assert_eq!(refused(|_| ()), None);
    assert_eq!(refused(|command| command.axes = vec![None, None]), None);
    assert_eq!(refused(|command| command.time_to_live_ns = 1_000_000_000), None);
    assert_eq!(
        refused(|command| command.axes[0] = Some(AxisTarget::Velocity(RadiansPerSecond(-3e300)))),
        None
    );
    assert_eq!(refused(|command| command.axes[1] = Some(AxisTarget::Effort(NewtonMetres(f64::MAX)))), None);
    assert_eq!(refused(|command| command.twist = Some(Twist::new(1e9, 0.0, -1e9))), None);
}

#[test]
fn a_command_of_another_time_is_refused() {
    let time = Some((Refusal::Time, None));
    assert_eq!(refused(|command| command.stamp_ns = NOW + 1), time);
    assert_eq!(refused(|command| command.stamp_ns = u64::MAX), time);
    assert_eq!(refused(|command| command.time_to_live_ns = 0), time);
    assert_eq!(refused(|command| command.time_to_live_ns = 1_000_000_001), time);
}

#[test]
fn a_command_for_another_robot_is_refused() {
    for axes in [vec![], vec![None], vec![None; 3]] {
        assert_eq!(refused(|command| command.axes = axes), Some((Refusal::Axes, None)));
    }
}

// feature(signals): values from outside that cannot be are refused with the signal and the reason
#[test]
fn each_signal_has_its_own_reason() {
    let rows = [
        (0, Value::Unsigned(1), Refusal::SignalType),
        (0, Value::Real(f64::NAN), Refusal::NotFinite),
        (1, Value::Bool(true), Refusal::SignalType),
        (1, Value::Real(f64::INFINITY), Refusal::NotFinite),
        (1, Value::Real(10.1), Refusal::SignalRange),
        (1, Value::Signed(i64::MIN), Refusal::SignalRange),
        (1, Value::Unsigned(u64::MAX), Refusal::SignalRange),
    ];
    for (index, value, why) in rows {
        let command = Command { signals: vec![None; 2], ..good() };
        assert_eq!(rules().check(&command, NOW, 0, &Gates::default()), Ok(()));
        let mut command = good();
        command.signals[index] = Some(value);
        let refused = Refused { signal: Some(index + 1), ..Refused::whole(why) };
        assert_eq!(rules().check(&command, NOW, 0, &Gates::default()), Err(refused), "{value:?}");
    }
    for signals in [vec![], vec![None], vec![None; 3]] {
        assert_eq!(refused(|command| command.signals = signals), Some((Refusal::Signals, None)));
    }
}

#[test]
fn each_axis_has_its_own_reason() {
    use AxisTarget::{Effort, Position, Velocity};
    let rows = [
        (0, Position(Radians(f64::NAN)), Refusal::NotFinite),
        (0, Velocity(RadiansPerSecond(f64::NEG_INFINITY)), Refusal::NotFinite),
        (0, Effort(NewtonMetres(0.0)), Refusal::Mode),
        (1, Position(Radians(0.0)), Refusal::Mode),
        (1, Velocity(RadiansPerSecond(0.0)), Refusal::Mode),
        (1, Effort(NewtonMetres(f64::NAN)), Refusal::NotFinite),
    ];
    for (axis, target, why) in rows {
        let found = refused(|command| command.axes[axis] = Some(target));
        assert_eq!(found, Some((why, Some(axis))), "{target:?}");
    }
}

// feature(ipc): a command of which the active controller follows no target is refused, and which other would is known
#[test]
fn command_without_a_followed_target_is_refused() {
    let positions = Takes { position: true, ..Takes::default() };
    let torques = Takes { effort: true, ..Takes::default() };
    let follows = |takes: [Takes; 2]| Follows { axes: takes.to_vec(), ..Follows::default() };
    let none = Takes::default();
    let controllers = vec![
        follows([positions, none]),
        follows([none, torques]),
        Follows { twist: true, ..follows([none; 2]) },
        Follows { pose: true, ..follows([none; 2]) },
    ];
    let rules = Rules { controllers, ..rules() };
    let only = |first: bool, second: bool, twist: bool, pose: bool| {
        let Command { axes, twist: drives, pose: reaches, .. } = good();
        Command {
            axes: vec![axes[0].filter(|_| first), axes[1].filter(|_| second)],
            twist: drives.filter(|_| twist),
            pose: reaches.filter(|_| pose),
            signals: vec![None; 2],
            ..good()
        }
    };
    let inactive = |axis| Err(Refused { axis, ..Refused::whole(Refusal::Inactive) });
    for (place, command, axis) in [
        (0, only(true, false, false, false), Some(0)),
        (1, only(false, true, false, false), Some(1)),
        (2, only(false, false, true, false), None),
        (3, only(false, false, false, true), None),
    ] {
        for active in [0, 1, 2, 3, usize::from(ipc::state::NO_CONTROLLER)] {
            let expected = if active == place { Ok(()) } else { inactive(axis) };
            assert_eq!(
                rules.check(&command, NOW, active, &Gates::default()),
                expected,
                "{command:?} with {active}"
            );
        }
        // A followed part, or none that moves anything, is enough.
        assert_eq!(rules.check(&good(), NOW, place, &Gates::default()), Ok(()));
        assert_eq!(rules.check(&only(false, false, false, false), NOW, place, &Gates::default()), Ok(()));
    }
    let with_output = Command { signals: good().signals, ..only(true, false, false, false) };
    assert!(with_output.signals.iter().any(Option::is_some));
    assert_eq!(
        rules.check(&with_output, NOW, 1, &Gates::default()),
        Ok(()),
        "an output that it sets as well is taken"
    );
    let velocity = Command {
        axes: vec![Some(AxisTarget::Velocity(RadiansPerSecond(1.0))), None],
        ..only(false, false, false, false)
    };
    assert_eq!(
        rules.check(&velocity, NOW, 0, &Gates::default()),
        inactive(Some(0)),
        "of another kind than it follows"
    );
    assert_eq!(rules.check(&velocity, NOW, 1, &Gates::default()), inactive(Some(0)));
}

#[test]
fn a_twist_the_base_cannot_do_is_refused() {
    let rows = [
        ((0.0, 0.1, 0.0), Refusal::Mode),
        ((0.0, 0.0, f64::NEG_INFINITY), Refusal::NotFinite),
        ((f64::NAN, 0.0, 0.0), Refusal::NotFinite),
        ((0.0, f64::INFINITY, 0.0), Refusal::NotFinite),
    ];
    for ((x, y, yaw), why) in rows {
        assert_eq!(refused(|command| command.twist = Some(Twist::new(x, y, yaw))), Some((why, None)));
    }
    let mut rules = rules();
    rules.base = Some(BaseRules { sideways: true });
    let sideways = Command { twist: Some(Twist::new(0.7, -0.7, 0.0)), ..good() };
    assert_eq!(rules.check(&sideways, NOW, 0, &Gates::default()), Ok(()));
    rules.base = None;
    let refused = rules.check(&good(), NOW, 0, &Gates::default()).unwrap_err();
    assert_eq!((refused.why, refused.axis), (Refusal::Mode, None));
}

// feature(axes): `cartesian`: poses that are none are refused at the IPC
#[test]
fn a_pose_is_finite_and_turned_by_a_unit_quaternion() {
    let pose = |position: [f64; 3], orientation| {
        let position = position.map(Metres);
        refused(|it| it.pose = Some(ToolPose { position, orientation }))
    };
    assert_eq!(pose([9.0; 3], [0.5, 0.5, -0.5, 0.5004]), None);
    let rows = [
        ([0.0; 3], [0.0; 4], Refusal::Orientation),
        ([0.0; 3], [0.0, 0.0, 0.0, 1.002], Refusal::Orientation),
        ([0.0; 3], [f64::MAX; 4], Refusal::Orientation),
        ([0.0, f64::NAN, 0.0], [0.0, 0.0, 0.0, 1.0], Refusal::NotFinite),
        ([0.0; 3], [0.0, 0.0, f64::INFINITY, 1.0], Refusal::NotFinite),
    ];
    for (position, orientation, why) in rows {
        assert_eq!(pose(position, orientation), Some((why, None)), "{position:?} {orientation:?}");
    }
    let rules = Rules { pose: false, ..rules() };
    assert_eq!(rules.check(&good(), NOW, 0, &Gates::default()), Err(Refused::whole(Refusal::Mode)));
}

// feature(ipc): any bits in a command: only finite numbers are taken, of kinds that the robot follows
#[test]
fn only_finite_numbers_of_known_kinds_are_taken() {
    let mut random = fastrand::Rng::with_seed(11);
    let (mut taken, rules) = (0, rules());
    for _ in 0..200_000 {
        // Mostly plausible, for otherwise nothing is ever taken.
        let mut number = || match random.u8(..8) {
            0 => f64::from_bits(random.u64(..)),
            _ => random.f64() * 8.0 - 4.0,
        };
        let numbers = [number(), number(), number(), number(), number()];
        let target = |kind: u8, number| match kind {
            0 => None,
            1 => Some(AxisTarget::Position(Radians(number))),
            2 => Some(AxisTarget::Velocity(RadiansPerSecond(number))),
            _ => Some(AxisTarget::Effort(NewtonMetres(number))),
        };
        let twist = Twist::new(numbers[2], 0.0, numbers[4]);
        let command = Command {
            twist: random.bool().then_some(twist),
            axes: vec![target(random.u8(..4), numbers[0]), target(random.u8(..4), numbers[1])],
            ..good()
        };
        if rules.check(&command, NOW, 0, &Gates::default()).is_ok() {
            taken += 1;
            assert!(match command.axes[0] {
                Some(AxisTarget::Effort(_)) => false,
                target => target.is_none_or(|target| target.number().is_finite()),
            });
            assert!(command.axes[1].is_none_or(|target| matches!(target, AxisTarget::Effort(_))));
            assert!(command.twist.is_none_or(|twist| twist.x.is_finite() && twist.yaw.is_finite()));
        }
    }
    assert!(taken > 1_000, "{taken}");
}

/// Of a base or an arm the axes are named by the chain that moves them.
#[test]
fn a_twist_with_an_axis_that_is_not_ready_names_it() {
    let gates = Gates { axes: Vec::new(), chain: Some((1, Refusal::NotHomed)) };
    let only = |twist: bool, pose: bool| {
        let good = good();
        let axes = vec![None, None];
        Command { twist: good.twist.filter(|_| twist), pose: good.pose.filter(|_| pose), axes, ..good }
    };
    let expected = Err(Refused { axis: Some(1), ..Refused::whole(Refusal::NotHomed) });
    assert_eq!(rules().check(&only(true, false), NOW, 0, &gates), expected);
    assert_eq!(rules().check(&only(false, true), NOW, 0, &gates), expected);
    assert_eq!(rules().check(&only(false, false), NOW, 0, &gates), Ok(()));
}
