//! The axes as the cycle takes them.

use control::axis::AxisConfiguration;
use ethercat::cia402::object::{HALT_OPTION_CODE, QUICK_STOP_OPTION_CODE, of_axis};
use ethercat::main_device::SubDevice;
use motion::supervision::{Outage, Settings};
use motion::{Radians, Seconds};
use robot::RobotConfig;

use super::barriers::option_code_of;

/// The axes of `robot`, in their order.
pub(crate) fn axes(robot: &RobotConfig) -> Vec<AxisConfiguration> {
    let axis = |axis: &robot::Axis| {
        // Supervision keeps to the step in radians; what the drive is sent is rounded to counts at
        // both ends of it.
        let step = Radians(axis.limits.step.0 + 2.0 / axis.scale.counts_per_radian().abs());
        AxisConfiguration {
            supervision: Some(supervision(axis, &robot.cycle)),
            modes: axis.modes.clone(),
            feedback_velocity: axis.feedback_velocity,
            velocity_error: axis.velocity_error,
            jog: axis.jog,
            homing: axis.homing,
            needs_homing: axis.needs_homing,
            position_sense: axis.position_sense,
            brake: axis.brake,
            holds_load: axis.holds_load,
            halts: halts(robot, axis),
            drive_axis: axis.drive_axis,
            stops: axis.stops.clone(),
            ..AxisConfiguration::new(&axis.name, axis.sub_device, axis.mode, axis.scale, step)
        }
    };
    robot.axes.iter().map(axis).collect()
}

/// The same, with the option codes that their drives returned in PreOp.
pub(crate) fn axes_of(robot: &RobotConfig, found: &[SubDevice]) -> Vec<AxisConfiguration> {
    let mut axes = axes(robot);
    for (number, axis) in axes.iter_mut().enumerate() {
        if let Some(code) = option_code_of(robot, number, HALT_OPTION_CODE, found) {
            axis.halts = matches!(code, 1 | 2);
        }
        axis.quick_stops = option_code_of(robot, number, QUICK_STOP_OPTION_CODE, found) != Some(0);
    }
    axes
}

/// True unless a start-up object makes its drive lose torque at a halt (0x605D neither 1 nor 2).
fn halts(robot: &RobotConfig, axis: &robot::Axis) -> bool {
    let startup = robot.bus.sub_devices.get(axis.sub_device).map_or(&[][..], |it| &it.startup);
    let code = of_axis(HALT_OPTION_CODE, axis.drive_axis);
    let written = startup.iter().rfind(|it| it.index == code && it.sub_index == 0);
    written.is_none_or(|it| matches!(it.data[..], [1 | 2, 0]))
}

/// Supervision between the controller and the drive of `axis`.
fn supervision(axis: &robot::Axis, cycle: &robot::Cycle) -> Settings {
    Settings {
        mode: axis.mode,
        limits: axis.limits,
        following_error: axis.following_error,
        on_stale: axis.on_stale,
        outage: Outage {
            time: cycle.outage_time.map(|time| Seconds(time.as_secs_f64())),
            after: cycle.after_outage,
        },
    }
}
