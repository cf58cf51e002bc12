//! Limits of commands from outside: a command is taken only if one of the controllers follows it.

use control::ipc::{BaseRules, Follows, Rules, Takes};
use ethercat::cia402::{AxisMode, CyclicMode};
use robot::{BaseKind, ControllerKind, RobotConfig};

/// Holder of the axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MovedBy {
    /// The robot file's controllers.
    Controllers,
    /// A controller of the program's own: any target may be meant for it that the drives' modes can
    /// follow.
    Own,
}

/// Limits of commands for `robot`. Its signals are known in PreOp.
pub(super) fn rules(robot: &RobotConfig, moved_by: MovedBy) -> Rules {
    let follow = |parts: Parts, axes: &[usize]| {
        let mut takes = vec![NO_TARGET; robot.axes.len()];
        axes.iter().for_each(|&axis| takes[axis] = (parts.targets)(robot.axes[axis].mode));
        Follows { axes: takes, twist: parts.twist, pose: parts.pose }
    };
    let each: Vec<Follows> =
        robot.controllers.iter().map(|it| follow(follows(it.kind), &it.axes)).collect();
    let own =
        (moved_by == MovedBy::Own).then(|| follow(ANYTHING, &(0..robot.axes.len()).collect::<Vec<_>>()));
    let all = || own.iter().chain(&each);
    let (twist, pose) = (all().any(|it| it.twist), all().any(|it| it.pose));
    let base = robot.base.as_ref().filter(|_| twist);
    let of = |axis: usize, kind: fn(&Takes) -> bool| all().any(|it| kind(&it.axes[axis]));
    let takes = |axis| Takes {
        position: of(axis, |it| it.position),
        velocity: of(axis, |it| it.velocity),
        effort: of(axis, |it| it.effort),
    };
    Rules {
        axes: (0..robot.axes.len()).map(takes).collect(),
        base: base.map(|base| BaseRules { sideways: base.kind != BaseKind::Differential }),
        pose: pose && robot.arm.is_some(),
        // A custom controller decides what it follows, and when.
        controllers: if own.is_some() { Vec::new() } else { each },
        signals: Vec::new(),
        longest_time_to_live: robot.ipc.longest_time_to_live,
    }
}

/// Parts of a command that a controller follows.
struct Parts {
    /// Targets of an axis in this mode.
    targets: fn(AxisMode) -> Takes,
    /// The velocity of the base.
    twist: bool,
    /// The pose of the tool.
    pose: bool,
}

const NO_TARGET: Takes = Takes { position: false, velocity: false, effort: false };
const NOTHING: Parts = Parts { targets: |_| NO_TARGET, twist: false, pose: false };
/// For a controller of the program's own: all that it may be made for.
const ANYTHING: Parts = Parts { targets: of_mode, twist: true, pose: true };

fn follows(kind: ControllerKind) -> Parts {
    match kind {
        ControllerKind::Hold | ControllerKind::Sinusoid | ControllerKind::JointTrajectory => NOTHING,
        ControllerKind::JointPosition => {
            Parts { targets: |_| Takes { position: true, ..NO_TARGET }, ..NOTHING }
        }
        ControllerKind::JointVelocity => {
            Parts { targets: |_| Takes { velocity: true, ..NO_TARGET }, ..NOTHING }
        }
        ControllerKind::JointEffort => {
            Parts { targets: |_| Takes { effort: true, ..NO_TARGET }, ..NOTHING }
        }
        ControllerKind::DiffDrive | ControllerKind::OmniDrive => Parts { twist: true, ..NOTHING },
        ControllerKind::Cartesian => Parts { pose: true, ..NOTHING },
        ControllerKind::External => ANYTHING,
    }
}

/// A drive that follows positions can also be moved at a velocity, unless it generates its own
/// profile.
fn of_mode(mode: AxisMode) -> Takes {
    let kind = mode.cyclic();
    Takes {
        position: kind == CyclicMode::Position,
        velocity: kind != CyclicMode::Torque && mode != AxisMode::ProfilePosition,
        effort: kind == CyclicMode::Torque,
    }
}

#[cfg(test)]
mod tests {
    use robot::Controller;

    use super::*;

    /// Rules of this robot, moved by one controller of this kind for the first two axes.
    fn rules_of(text: &str, kind: ControllerKind) -> Rules {
        let mut robot = RobotConfig::parse(text, "robot.toml").unwrap();
        robot.controllers = vec![Controller::of_kind(kind, vec![0, 1], robot.cycle.period)];
        rules(&robot, MovedBy::Controllers)
    }

    #[test]
    fn targets_are_taken_for_axes_that_follow_them() {
        let text = include_str!("../../../../examples/six-axis.toml");
        let taken = |kind| {
            rules_of(text, kind).axes.iter().map(|it| [it.position, it.velocity, it.effort]).collect()
        };
        let first_two =
            |takes: [bool; 3]| -> Vec<[bool; 3]> { [[takes; 2].as_slice(), &[[false; 3]; 4]].concat() };
        let kinds = [
            (ControllerKind::Hold, [false, false, false]),
            (ControllerKind::Sinusoid, [false, false, false]),
            (ControllerKind::JointTrajectory, [false, false, false]),
            (ControllerKind::JointPosition, [true, false, false]),
            (ControllerKind::JointVelocity, [false, true, false]),
            (ControllerKind::JointEffort, [false, false, true]),
            // Both are in csp.
            (ControllerKind::External, [true, true, false]),
        ];
        for (kind, takes) in kinds {
            let found: Vec<_> = taken(kind);
            assert_eq!(found, first_two(takes), "{kind:?}");
        }
    }

    #[test]
    fn each_controller_follows_its_targets_and_custom_ones_all() {
        let mut robot =
            RobotConfig::parse(include_str!("../../../../examples/six-axis.toml"), "robot.toml").unwrap();
        let of = |kind, axes| Controller::of_kind(kind, axes, robot.cycle.period);
        robot.controllers =
            vec![of(ControllerKind::JointPosition, vec![0]), of(ControllerKind::JointVelocity, vec![0, 1])];
        let found = rules(&robot, MovedBy::Controllers);
        let takes = |of: &[Takes]| of[..3].iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let each: Vec<_> = found.controllers.iter().map(|it| takes(&it.axes)).collect();
        assert_eq!(each, ["positions, no targets, no targets", "velocities, velocities, no targets"]);
        assert_eq!(takes(&found.axes), "positions and velocities, velocities, no targets");
        assert!(rules(&robot, MovedBy::Own).controllers.is_empty());
    }

    #[test]
    fn bases_take_twists_and_arms_take_poses() {
        let base = include_str!("../../../../examples/m4k.toml");
        let arm = include_str!("../../../../examples/arm.toml");
        for (kind, twist, pose) in [
            (ControllerKind::DiffDrive, true, false),
            (ControllerKind::Cartesian, false, true),
            (ControllerKind::External, true, true),
            (ControllerKind::JointVelocity, false, false),
        ] {
            let (base, arm) = (rules_of(base, kind), rules_of(arm, kind));
            assert_eq!((base.base.is_some(), base.pose), (twist, false), "{kind:?}");
            assert_eq!((arm.base.is_some(), arm.pose), (false, pose), "{kind:?}");
        }
    }
}
