//! A robot's process data by name, once its bus is in PreOp.

use ethercat::pdo::PdoMapping;
use ipc::description::{OUTSIDE, SensorDescription, SignalDescription};
use robot::Robot;
use types::Signal;
use types::signal::Flow;

use crate::Error;

/// Signals of `robot` in the process data of its SubDevices, in their order.
pub fn signals(robot: &Robot, mappings: &[PdoMapping]) -> Result<Vec<Signal>, Error> {
    Ok(robot.signals(|position| mappings.get(position))?)
}

/// Descriptions of the signals for other processes.
pub fn described(robot: &Robot, signals: &[Signal]) -> Vec<SignalDescription> {
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
        scaling: signal.scaling.map(|it| (it.scale, it.offset)),
        writer: match &signal.flow {
            Flow::Input => None,
            Flow::Output(_) if signal.is_commanded() => Some(OUTSIDE.to_owned()),
            Flow::Output(_) => Some("controller".to_owned()),
            Flow::Taken(_) | Flow::Fixed(_) | Flow::Cycle => signal.read_only_for().map(str::to_owned),
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
