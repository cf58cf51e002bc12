//! Limits of commands from outside: only what one of the controllers follows is taken.

use control::ipc::{BaseRules, Rules, Takes};
use ethercat::cia402::{AxisMode, CyclicMode};
use robot::{BaseKind, ControllerKind, RobotConfig};

use super::ipc::MovedBy;

/// Limits of commands for `robot`. Its signals are known in PreOp.
pub(super) fn rules(robot: &RobotConfig, moved_by: MovedBy) -> Rules {
    let mut takes = vec![Takes::default(); robot.axes.len()];
    let (mut twist, mut pose) = (false, false);
    let mut follow = |follows: Follows, axes: &[usize]| {
        twist |= follows.twist;
        pose |= follows.pose;
        for &axis in axes {
            let wider = (follows.targets)(robot.axes[axis].mode);
            takes[axis].position |= wider.position;
            takes[axis].velocity |= wider.velocity;
            takes[axis].effort |= wider.effort;
        }
    };
    if moved_by == MovedBy::Own {
        follow(ANYTHING, &(0..robot.axes.len()).collect::<Vec<_>>());
    }
    for controller in &robot.controllers {
        follow(follows(controller.kind), &controller.axes);
    }
    let base = robot.base.as_ref().filter(|_| twist);
    Rules {
        axes: takes,
        base: base.map(|base| BaseRules { sideways: base.kind != BaseKind::Differential }),
        pose: pose && robot.arm.is_some(),
        signals: Vec::new(),
        longest_time_to_live: robot.ipc.longest_time_to_live,
    }
}

/// Parts of a command that a controller follows.
struct Follows {
    /// Targets of an axis in this mode.
    targets: fn(AxisMode) -> Takes,
    /// The velocity of the base.
    twist: bool,
    /// The pose of the tool.
    pose: bool,
}

const NO_TARGET: Takes = Takes { position: false, velocity: false, effort: false };
const NOTHING: Follows = Follows { targets: |_| NO_TARGET, twist: false, pose: false };
/// For a controller of the program's own: all that it may be made for.
const ANYTHING: Follows = Follows { targets: of_mode, twist: true, pose: true };

fn follows(kind: ControllerKind) -> Follows {
    match kind {
        ControllerKind::Hold | ControllerKind::Sinusoid | ControllerKind::JointTrajectory => NOTHING,
        ControllerKind::JointPosition => {
            Follows { targets: |_| Takes { position: true, ..NO_TARGET }, ..NOTHING }
        }
        ControllerKind::JointVelocity => {
            Follows { targets: |_| Takes { velocity: true, ..NO_TARGET }, ..NOTHING }
        }
        ControllerKind::JointEffort => {
            Follows { targets: |_| Takes { effort: true, ..NO_TARGET }, ..NOTHING }
        }
        ControllerKind::DiffDrive | ControllerKind::OmniDrive => Follows { twist: true, ..NOTHING },
        ControllerKind::Cartesian => Follows { pose: true, ..NOTHING },
        ControllerKind::External => ANYTHING,
    }
}

/// A drive that follows positions can be moved at a velocity, too, unless it makes its own way to them.
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
    fn targets_are_taken_for_the_axes_of_a_controller_that_follows_them() {
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
    fn a_twist_is_taken_by_controllers_of_a_base_and_a_pose_by_those_of_an_arm() {
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
