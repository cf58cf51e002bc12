//! Names of a robot's parts, for the sentences of events.

use control::bus::PartNames;
use ipc::description::Referencing;
use robot::{Axis, RobotConfig};

/// Names of the parts of a robot at this network interface, if it is on one.
#[must_use]
pub fn part_names(robot: &RobotConfig, interface: Option<String>) -> PartNames {
    PartNames {
        sub_devices: robot.bus.sub_devices.iter().map(|it| it.name.clone()).collect(),
        axes: robot.axes.iter().map(|it| it.name.clone()).collect(),
        referencing: robot.axes.iter().map(referencing).collect(),
        interlocks: robot.interlocks.clone(),
        brake_inputs: robot.brake_inputs().map(|(_, name, input)| (name, input)).collect(),
        interface,
        period: robot.cycle.period,
    }
}

/// Ways to make an axis ready while it is unreferenced.
pub(super) fn referencing(axis: &Axis) -> Referencing {
    let sense = axis.position_sense;
    Referencing { by_switch: sense.homes_on_a_switch, by_measurement: sense.range.is_some() }
}
