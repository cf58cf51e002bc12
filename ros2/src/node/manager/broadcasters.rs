//! Publishing of joints and sensors as the broadcasters of ros2_controllers: each is a controller
//! that claims nothing, is active from the start, and can be active next to other controllers.

use ipc::description::Description;
use types::SensorKind;

use super::hardware;
use crate::messages::controller_manager::HardwareInterface;

/// Name of the one that publishes /joint_states and /dynamic_joint_states.
pub(crate) const JOINT_STATES: &str = "joint_state_broadcaster";

/// One that the robot has.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Broadcaster {
    pub(super) name: String,
    /// The first type is reported.
    pub(super) types: Vec<String>,
    pub(super) state_interfaces: Vec<String>,
}

/// Broadcasters of a robot: of its joints, and of each sensor by its name. A controller of the same
/// name keeps the name.
pub(super) fn of(robot: &Description) -> Vec<Broadcaster> {
    let mut all = Vec::new();
    if !robot.axes.is_empty() {
        all.push(Broadcaster {
            name: JOINT_STATES.to_owned(),
            types: vec![JOINT_STATES_TYPE.to_owned()],
            state_interfaces: names(hardware::axes(robot)),
        });
    }
    all.extend(robot.sensors.iter().map(|sensor| Broadcaster {
        name: sensor.name.clone(),
        types: types(sensor.kind),
        state_interfaces: names(sensor.signals.iter().map(|&place| hardware::signal(robot, place))),
    }));
    all.retain(|it| robot.controllers.iter().all(|controller| controller.name != it.name));
    all
}

/// Types of all broadcasters that a robot file can have, as the node reports them.
pub(super) fn known_types() -> impl Iterator<Item = String> {
    let sensors = SensorKind::ALL.iter().map(|&kind| types(kind).swap_remove(0));
    std::iter::once(JOINT_STATES_TYPE.to_owned()).chain(sensors)
}

const JOINT_STATES_TYPE: &str = "joint_state_broadcaster/JointStateBroadcaster";

/// Types of a sensor's, that of ros2_controllers first if there is one.
fn types(kind: SensorKind) -> Vec<String> {
    let known = match kind {
        SensorKind::ForceTorque => Some("force_torque_sensor_broadcaster/ForceTorqueSensorBroadcaster"),
        SensorKind::Imu => Some("imu_sensor_broadcaster/IMUSensorBroadcaster"),
        SensorKind::Temperature => None,
    };
    known.map(str::to_owned).into_iter().chain([format!("onbeat/{}", kind.name())]).collect()
}

fn names(interfaces: impl IntoIterator<Item = HardwareInterface>) -> Vec<String> {
    interfaces.into_iter().map(|it| it.name).collect()
}
