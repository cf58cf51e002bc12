//! A robot's process data by name, once its bus is in PreOp.

use bridge::description::{SensorDescription, SignalDescription};
use ethercat::main_device::MainDevice;
use robot::Robot;
use types::Signal;
use types::signal::Flow;

use crate::failure::Failure;

/// Signals of `robot` in the process data of its bus.
pub(crate) fn signals(robot: &Robot, main_device: &MainDevice) -> Result<Vec<Signal>, Failure> {
    let mapping = |position: usize| main_device.sub_devices().get(position).map(|it| &it.mapping);
    robot.signals(mapping).map_err(Failure::new)
}

/// What those outside are told of them.
pub(crate) fn described(robot: &Robot, signals: &[Signal]) -> Vec<SignalDescription> {
    let described = |signal: &Signal| SignalDescription {
        name: signal.name.clone(),
        sub_device: robot
            .bus
            .sub_devices
            .get(signal.sub_device)
            .map(|it| it.name.clone())
            .unwrap_or_default(),
        direction: if signal.flow == Flow::Input { "input" } else { "output" }.to_owned(),
        value_type: signal.value_type.to_string(),
        kind: signal.kind().to_owned(),
        unit: signal.unit.clone(),
        range: signal.range,
        writer: match &signal.flow {
            Flow::Taken(writer) => Some(writer.clone()),
            Flow::Input | Flow::Output(_) => None,
        },
        named: robot.names_signal(&signal.name),
    };
    signals.iter().map(described).collect()
}

/// Sensors that those outside are told of.
pub(crate) fn sensors(robot: &Robot, signals: &[Signal]) -> Vec<SensorDescription> {
    let place = |name: &String| signals.iter().position(|signal| signal.name == *name);
    let described = |sensor: &robot::Sensor| SensorDescription {
        name: sensor.name.clone(),
        kind: sensor.kind.name().to_owned(),
        frame: sensor.frame.clone(),
        signals: sensor.signals.iter().filter_map(place).collect(),
    };
    robot.sensors.iter().map(described).collect()
}
