//! Numbers of other processes as quantities, and the other way round.

use ethercat::cia402::{self, Statusword};
use ipc::command::{self, Pose};
use ipc::controller::{Commanded, Drive};
use ipc::state;
use motion::base::Twist;
use motion::kinematics::ToolPose;
use motion::{AxisFeedback, AxisPhase, Metres, MetresPerSecond, NewtonMetres, Radians, RadiansPerSecond};

use crate::controller::{AxisReport, AxisTarget, ExternalCommand, Freshness};
use crate::status::stop_reason;

/// Puts the targets of a command in place of those before; allocates nothing.
pub(super) fn targets(
    asked: &mut ExternalCommand,
    twist: Option<command::Twist>,
    pose: Option<Pose>,
    axes: &[Option<command::AxisTarget>],
) {
    asked.twist = twist.map(|twist| Twist {
        x: MetresPerSecond(twist.x),
        y: MetresPerSecond(twist.y),
        yaw: RadiansPerSecond(twist.yaw),
    });
    asked.pose =
        pose.map(|pose| ToolPose { position: pose.position.map(Metres), orientation: pose.orientation });
    for (asked, target) in asked.axes.iter_mut().zip(axes) {
        *asked = target.map(|target| match target {
            command::AxisTarget::Position(position) => AxisTarget::Position(Radians(position)),
            command::AxisTarget::Velocity(velocity) => AxisTarget::Velocity(RadiansPerSecond(velocity)),
            command::AxisTarget::Effort(effort) => AxisTarget::Effort(NewtonMetres(effort)),
        });
    }
}

/// A command as it is shown to a controller process; allocates nothing.
pub(crate) fn told(asked: &ExternalCommand, shown: &mut Commanded) {
    shown.freshness = freshness(asked.freshness);
    shown.twist = asked.twist.map(|twist| command::Twist { x: twist.x.0, y: twist.y.0, yaw: twist.yaw.0 });
    shown.pose = asked
        .pose
        .map(|pose| Pose { position: pose.position.map(|it| it.0), orientation: pose.orientation });
    for (shown, target) in shown.axes.iter_mut().zip(&asked.axes) {
        *shown = target.map(|target| match target {
            AxisTarget::Position(position) => command::AxisTarget::Position(position.0),
            AxisTarget::Velocity(velocity) => command::AxisTarget::Velocity(velocity.0),
            AxisTarget::Effort(effort) => command::AxisTarget::Effort(effort.0),
        });
    }
}

/// The same command in that process.
pub(crate) fn hear(asked: &mut ExternalCommand, shown: &Commanded) {
    asked.freshness = match shown.freshness {
        state::Freshness::Never => Freshness::Never,
        state::Freshness::Fresh => Freshness::Fresh,
        state::Freshness::Stale => Freshness::Stale,
    };
    targets(asked, shown.twist, shown.pose, &shown.axes);
}

pub(super) fn freshness(freshness: Freshness) -> state::Freshness {
    match freshness {
        Freshness::Never => state::Freshness::Never,
        Freshness::Fresh => state::Freshness::Fresh,
        Freshness::Stale => state::Freshness::Stale,
    }
}

/// Report of an axis that is shown to a controller process.
pub(crate) fn report(axis: &state::Axis, drive: &Drive) -> AxisReport {
    let Drive { statusword, error_code, homing, was_enabled, missed, waits } = *drive;
    let state = usize::from(axis.drive_state).checked_sub(1);
    AxisReport {
        state: state.and_then(|index| cia402::State::ALL.get(index).copied()),
        feedback: AxisFeedback {
            position: Radians(axis.position),
            velocity: RadiansPerSecond(axis.velocity),
            torque: NewtonMetres(axis.effort),
            phase: match axis.phase {
                1 => AxisPhase::HoldingAt(Radians(axis.target_position)),
                2 => AxisPhase::Following,
                _ => AxisPhase::NotEnabled,
            },
            fresh: axis.fresh,
        },
        homed: axis.homed,
        homing,
        stop: stop_reason(axis.stop),
        statusword: Statusword(statusword),
        error_code,
        missed,
        waits,
        was_enabled,
    }
}
