//! A robot's process data by name, once its bus is in PreOp.

use ethercat::pdo::PdoMapping;
use ipc::description::{OUTSIDE, SensorDescription, SignalDescription};
use robot::RobotConfig;
use types::Signal;
use types::signal::Flow;

use crate::Error;

/// Signals of `robot` in the process data of its SubDevices, in their order.
pub(crate) fn signals(robot: &RobotConfig, mappings: &[PdoMapping]) -> Result<Vec<Signal>, Error> {
    Ok(robot.signals(|position| mappings.get(position))?)
}

/// Descriptions of the signals for other processes.
pub(crate) fn described(robot: &RobotConfig, signals: &[Signal]) -> Vec<SignalDescription> {
    let described = |signal: &Signal| SignalDescription {
        name: signal.name.clone(),
        sub_device: robot
            .bus
            .sub_devices
            .get(signal.sub_device)
            .map(|it| it.name.clone())
            .unwrap_or_default(),
        direction: signal.direction(),
        value_type: signal.value_type,
        kind: signal.kind(),
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

/// Sensors in the description for clients.
pub(crate) fn sensors(robot: &RobotConfig, signals: &[Signal]) -> Vec<SensorDescription> {
    let place = |name: &String| signals.iter().position(|signal| signal.name == *name);
    let described = |sensor: &robot::Sensor| SensorDescription {
        name: sensor.name.clone(),
        kind: sensor.kind,
        frame: sensor.frame.clone(),
        signals: sensor.signals.iter().filter_map(place).collect(),
    };
    robot.sensors.iter().map(described).collect()
}
