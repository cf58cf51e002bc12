//! The axes as the cycle takes them.

use ethercat::cia402::CyclicMode;
use motion::supervision::{Limits, Mode, OnStale, Settings};
use motion::{NewtonMetres, Radians, RadiansPerSecond};
use robot::Robot;
use runtime::axis::AxisConfiguration;

/// The axes of `robot`, in their order.
pub(crate) fn axes(robot: &Robot) -> Vec<AxisConfiguration> {
    let axis = |axis: &robot::Axis| {
        let step = Radians(axis.limits.maximum_step);
        AxisConfiguration {
            supervision: Some(supervision(axis)),
            ..AxisConfiguration::new(&axis.name, axis.sub_device, axis.mode, axis.scale, step)
        }
    };
    robot.axes.iter().map(axis).collect()
}

/// What stands between the controller and the drive of `axis`.
fn supervision(axis: &robot::Axis) -> Settings {
    let robot::AxisLimits { position, velocity, torque, maximum_step } = axis.limits;
    let velocity = RadiansPerSecond(velocity);
    Settings {
        mode: match axis.mode {
            CyclicMode::Position => Mode::Position,
            CyclicMode::Velocity => Mode::Velocity,
            CyclicMode::Torque => Mode::Torque,
        },
        limits: Limits {
            position: position.map(|(lowest, highest)| (Radians(lowest), Radians(highest))),
            velocity,
            deceleration: Limits::usual_deceleration(velocity),
            torque: NewtonMetres(torque),
            step: Radians(maximum_step),
        },
        following_error: None,
        on_stale: match axis.on_stale {
            robot::OnStale::Hold => OnStale::Hold,
            robot::OnStale::QuickStop => OnStale::QuickStop,
            robot::OnStale::Disable => OnStale::Disable,
        },
    }
}

/// Places of the SubDevices whose outputs carry the number of the beat.
pub(crate) fn beat_numbers(robot: &Robot) -> Vec<usize> {
    let sub_devices = robot.bus.sub_devices.iter().enumerate();
    sub_devices.filter(|(_, it)| it.beat_number).map(|(position, _)| position).collect()
}
