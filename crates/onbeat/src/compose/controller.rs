//! The controllers of a robot's axes, from its file.

use control::external::{self, External};
use controllers::{
    AxisSettings, BaseController, Cartesian, ControllerManager, Hold, HomedBy, JointEffort, JointPosition,
    JointTrajectory, JointVelocity, ManagedAxis, Member, MemberKind, Sinusoid, SwingSettings,
    TrajectorySettings,
};
use ipc::controller::CycleEnd;
use ipc::message::control::{PORT, STOP_PORT};
use ipc::message::trajectory;
use motion::homing::Homing;
use motion::kinematics::{JointLimits, Line, LineSpeed};
use motion::{AxisLimits, RadiansPerSecond};
use robot::{Base, BaseKind, ControllerKind, RobotConfig};

use super::ipc::Ports;
use super::urdf::tool;
use crate::Error;
use crate::error::ControllerError;

/// Axes that each controller of `robot` moves together, in their order; empty for a controller that
/// moves them independently.
pub(crate) fn chains(robot: &RobotConfig) -> Vec<Vec<usize>> {
    let chain = |it: &robot::Controller| match it.kind {
        ControllerKind::JointTrajectory
        | ControllerKind::Cartesian
        | ControllerKind::DiffDrive
        | ControllerKind::OmniDrive => it.axes.clone(),
        // The axes of a command are checked on arrival; a controller process is responsible for its
        // own.
        ControllerKind::JointPosition
        | ControllerKind::JointVelocity
        | ControllerKind::JointEffort
        | ControllerKind::Hold
        | ControllerKind::Sinusoid
        | ControllerKind::External => Vec::new(),
    };
    robot.controllers.iter().map(chain).collect()
}

/// The controllers of `robot`, the first one active.
fn manager(robot: &RobotConfig, mut external: Option<CycleEnd>) -> Result<ControllerManager, Error> {
    let axis = |axis: &robot::Axis| ManagedAxis {
        mode: axis.mode,
        velocity_limit: axis.limits.velocity,
        homing: match axis.homing {
            Homing::Never | Homing::Absolute { .. } => HomedBy::Nobody,
            Homing::CurrentPosition { .. } => HomedBy::Hand,
            Homing::Drive { .. } => HomedBy::Drive,
        },
    };
    let axes: Vec<_> = robot.axes.iter().map(axis).collect();
    let member = |controller: &robot::Controller| {
        kind(robot, controller, external.take_if(|_| is_external(controller)))
            .map(|kind| Member::new(kind, &controller.axes))
            .map(|member| controller.mode.into_iter().fold(member, Member::in_mode))
    };
    let members = robot.controllers.iter().map(member).collect::<Result<_, _>>()?;
    Ok(ControllerManager::new(&axes, members, robot.ipc.enable))
}

/// The same, with the ports `control`, `stop` and `trajectory` if there is an IPC.
pub(crate) fn controllers(robot: &RobotConfig, ports: Option<Ports>) -> Result<ControllerManager, Error> {
    let mut ports = ports;
    let manager = manager(robot, ports.as_mut().and_then(|ports| ports.external.take()))?;
    let taken = ports.and_then(|mut ports| {
        Some((ports.take(PORT)?, ports.take(STOP_PORT)?, ports.take(trajectory::PORT)?))
    });
    Ok(match taken {
        Some((requests, stops, orders)) => {
            manager.with_ports(Box::new(requests), Box::new(orders)).with_stop_port(Box::new(stops))
        }
        None => manager,
    })
}

fn is_external(controller: &robot::Controller) -> bool {
    controller.kind == ControllerKind::External
}

/// A controller process moves axes in their modes.
fn external(robot: &RobotConfig, controller: &robot::Controller) -> external::Settings {
    let axis = |(index, axis): (usize, &robot::Axis)| {
        controller.axes.contains(&index).then(|| external::ExternalAxis {
            mode: axis.mode,
            position: settings(robot, index).position_limits,
        })
    };
    external::Settings {
        deadline: controller.deadline,
        max_late: controller.max_late,
        axes: robot.axes.iter().enumerate().map(axis).collect(),
    }
}

fn kind(
    robot: &RobotConfig,
    controller: &robot::Controller,
    process: Option<CycleEnd>,
) -> Result<MemberKind, Error> {
    let of_axis = |&axis: &usize| AxisSettings {
        profile: controller.mode_of(&robot.axes[axis]).is_profile(),
        ..settings(robot, axis)
    };
    let axes: Vec<_> = controller.axes.iter().map(of_axis).collect();
    let plain = |controller| Ok(MemberKind::Plain(controller));
    let failed = |source| Error::Controller { name: controller.name.clone(), source };
    match controller.kind {
        ControllerKind::Hold => plain(Box::new(Hold)),
        ControllerKind::Sinusoid => {
            let swings = axes.iter().zip(&controller.swings).map(|(&axis, swing)| SwingSettings {
                axis,
                sinusoid: swing.trajectory(),
                delay: swing.delay(),
            });
            plain(Box::new(Sinusoid::new(&swings.collect::<Vec<_>>())))
        }
        ControllerKind::JointPosition => {
            plain(Box::new(JointPosition::new(&axes).map_err(|error| failed(error.into()))?))
        }
        ControllerKind::JointVelocity => {
            let mode = |settings: AxisSettings| {
                (settings, controller.mode_of(&robot.axes[settings.axis]).cyclic())
            };
            let axes: Vec<_> = axes.into_iter().map(mode).collect();
            plain(Box::new(JointVelocity::new(&axes).map_err(|error| failed(error.into()))?))
        }
        ControllerKind::JointEffort => {
            let torque = |settings: AxisSettings| (settings, robot.axes[settings.axis].limits.torque);
            plain(Box::new(JointEffort::new(&axes.into_iter().map(torque).collect::<Vec<_>>())))
        }
        ControllerKind::JointTrajectory => {
            let settings = TrajectorySettings {
                axes,
                robot_axes: robot.axes.len(),
                points: controller.points,
                path_tolerance: controller.path_tolerance,
                goal_tolerance: controller.goal_tolerance,
                goal_time: controller.goal_time,
            };
            let controller = JointTrajectory::new(settings).map_err(|error| failed(error.into()))?;
            Ok(MemberKind::Trajectory(Box::new(controller)))
        }
        ControllerKind::Cartesian => {
            let (axes, line) = line(robot, controller)?;
            plain(Box::new(Cartesian::new(&axes, line).map_err(|error| failed(error.into()))?))
        }
        ControllerKind::External => {
            let end = process.ok_or_else(|| failed(ControllerError::NoIpc))?;
            plain(Box::new(External::new(end, external(robot, controller))))
        }
        ControllerKind::DiffDrive | ControllerKind::OmniDrive => {
            let base = robot.base.as_ref().ok_or_else(|| failed(ControllerError::NoBase))?;
            drive(robot, base).map(Box::new).map(MemberKind::Base).map_err(failed)
        }
    }
}

/// Axes of the joints from base to tool, in their order, and the planner of lines.
fn line(robot: &RobotConfig, controller: &robot::Controller) -> Result<(Vec<usize>, Line), Error> {
    let failed = |source| Error::Controller { name: controller.name.clone(), source };
    let (Some(arm), Some(described)) = (tool(robot)?, &robot.arm) else {
        return Err(failed(ControllerError::NoArm));
    };
    let axis_of = |joint: &str| {
        let axis = described.joints.iter().position(|it| it.as_deref() == Some(joint));
        let axis = axis.filter(|axis| controller.axes.contains(axis));
        axis.ok_or_else(|| failed(ControllerError::NoAxis { joint: joint.to_owned() }))
    };
    let axes = arm.joints().iter().map(|it| axis_of(&it.name)).collect::<Result<Vec<_>, _>>()?;
    if let Some(&other) = controller.axes.iter().find(|axis| !axes.contains(axis)) {
        return Err(failed(ControllerError::OtherAxis {
            axis: robot.axes[other].name.clone(),
            base: arm.base_link().to_owned(),
            tool: arm.tip_link().to_owned(),
        }));
    }
    let limits = |&axis: &usize| {
        let settings = settings(robot, axis);
        let motion = AxisLimits {
            velocity: settings.velocity_limit,
            acceleration: settings.acceleration_limit,
            jerk: settings.jerk_limit,
        };
        JointLimits { position: settings.position_limits, motion }
    };
    let limits: Vec<_> = axes.iter().map(limits).collect();
    let speed = LineSpeed { linear: controller.linear_velocity, angular: controller.angular_velocity };
    Line::new(arm, &limits, speed).map(|line| (axes, line)).map_err(|error| failed(error.into()))
}

fn drive(robot: &RobotConfig, base: &Base) -> Result<BaseController, ControllerError> {
    let limits = base.wheels.iter().map(|&wheel| robot.axes[wheel].limits.velocity.0);
    let slowest = RadiansPerSecond(limits.fold(f64::INFINITY, f64::min));
    if base.kind == BaseKind::Differential {
        let two = base.two_wheels()?;
        let wheels = base.wheels.as_slice().try_into()?;
        return Ok(BaseController::differential(two, wheels, slowest, base.limits)?);
    }
    Ok(BaseController::omni(base.four_wheels()?, base.wheels.as_slice().try_into()?, slowest, base.limits)?)
}

fn settings(robot: &RobotConfig, axis: usize) -> AxisSettings {
    let limits = &robot.axes[axis].limits;
    AxisSettings {
        axis,
        profile: robot.axes[axis].mode.is_profile(),
        position_limits: limits.position,
        velocity_limit: limits.velocity,
        acceleration_limit: limits.acceleration,
        jerk_limit: limits.jerk,
    }
}

#[cfg(test)]
mod tests {
    use motion::MetresPerSecond;
    use motion::base::Twist;
    use motion::kinematics::OmniBase;

    use super::*;

    /// Omni wheels of 0.1 m at the corners of 0.6 m by 0.4 m.
    fn omni() -> OmniBase {
        let text = include_str!("../../../../examples/omni.toml");
        let mut base = RobotConfig::parse(text, "omni.toml").unwrap().base.unwrap();
        (base.kind, base.wheel_radius, base.wheelbase, base.track) = (BaseKind::Omni, 0.1, 0.6, 0.4);
        base.four_wheels().unwrap()
    }

    /// Front left, front right, rear left, rear right, in rad/s.
    fn wheels(x: f64, y: f64, yaw: f64) -> [f64; 4] {
        let (x, y) = (MetresPerSecond(x), MetresPerSecond(y));
        omni().wheels(Twist { x, y, yaw: RadiansPerSecond(yaw) }).map(|wheel| wheel.0)
    }

    fn assert_close(found: [f64; 4], wanted: [f64; 4]) {
        let close = found.iter().zip(wanted).all(|(found, wanted)| (found - wanted).abs() < 1e-9);
        assert!(close, "{found:?}, wanted {wanted:?}");
    }

    // feature(axes): `diff_drive`, `omni_drive` (Mecanum): twist, odometry and wheels agree
    #[test]
    fn omni_wheels_at_the_corners_drive_ahead_aside_and_about() {
        let slanted = 10.0 * std::f64::consts::FRAC_1_SQRT_2;
        assert_close(wheels(1.0, 0.0, 0.0), [slanted; 4]);
        // To the left the wheels in front of left and behind on the right turn backwards.
        assert_close(wheels(0.0, 1.0, 0.0), [-slanted, slanted, slanted, -slanted]);
        // Counter-clockwise the left ones turn backwards; each goes (0.3 + 0.2) / sqrt 2 m/s along
        // its way.
        let turning = slanted * 0.5;
        assert_close(wheels(0.0, 0.0, 1.0), [-turning, turning, -turning, turning]);
    }
}
