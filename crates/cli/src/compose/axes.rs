//! The axes as the cycle takes them.

use motion::Radians;
use robot::Robot;
use runtime::axis::AxisConfiguration;

/// The axes of `robot`, in their order.
pub(crate) fn axes(robot: &Robot) -> Vec<AxisConfiguration> {
    let axis = |axis: &robot::Axis| AxisConfiguration {
        name: axis.name.clone(),
        sub_device: axis.sub_device,
        mode: axis.mode,
        scale: axis.scale,
        maximum_step: Radians(axis.limits.maximum_step),
    };
    robot.axes.iter().map(axis).collect()
}

/// Places of the SubDevices whose outputs carry the number of the beat.
pub(crate) fn beat_numbers(robot: &Robot) -> Vec<usize> {
    let sub_devices = robot.bus.sub_devices.iter().enumerate();
    sub_devices.filter(|(_, it)| it.beat_number).map(|(position, _)| position).collect()
}
