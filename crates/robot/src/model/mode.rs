use ethercat::cia402::object;
use types::AxisMode;
use types::signal::Direction;

/// An object that a mode of operation needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModeObject {
    /// Object index.
    pub index: u16,
    /// Its sub-index.
    pub sub_index: u8,
    /// Its name in CiA 402.
    pub name: &'static str,
    /// Direction of the object.
    pub direction: Direction,
}

/// Objects that must be in the process data for `mode` (CiA 402-2). The actual position is
/// among them in every mode: supervision needs it.
#[must_use]
pub const fn mode_objects(mode: AxisMode) -> [ModeObject; 4] {
    use Direction::{Input, Output};
    let target = match mode {
        AxisMode::InterpolatedPosition => ModeObject {
            sub_index: 1,
            ..entry(object::INTERPOLATION_DATA_RECORD, "interpolation data record", Output)
        },
        AxisMode::CyclicPosition | AxisMode::ProfilePosition => {
            entry(object::TARGET_POSITION, "target position", Output)
        }
        AxisMode::CyclicVelocity | AxisMode::ProfileVelocity => {
            entry(object::TARGET_VELOCITY, "target velocity", Output)
        }
        AxisMode::CyclicTorque | AxisMode::ProfileTorque => {
            entry(object::TARGET_TORQUE, "target torque", Output)
        }
    };
    [
        entry(object::CONTROLWORD, "controlword", Output),
        target,
        entry(object::STATUSWORD, "statusword", Input),
        entry(object::POSITION_ACTUAL_VALUE, "position actual value", Input),
    ]
}

/// Objects that must also be in the process data if the mode is changed while the cycle runs.
pub(crate) const CHANGE_OBJECTS: [ModeObject; 2] = [
    entry(object::MODES_OF_OPERATION, "modes of operation", Direction::Output),
    entry(object::MODES_OF_OPERATION_DISPLAY, "modes of operation display", Direction::Input),
];

const fn entry(index: u16, name: &'static str, direction: Direction) -> ModeObject {
    ModeObject { index, sub_index: 0, name, direction }
}

/// Objects by which the drive of an axis in a profile mode makes its own way: the axis writes them
/// by its limits.
#[must_use]
pub const fn profile_objects(mode: AxisMode) -> &'static [(u16, &'static str)] {
    use object::{PROFILE_ACCELERATION, PROFILE_DECELERATION, PROFILE_VELOCITY, TORQUE_SLOPE};
    match mode {
        AxisMode::ProfilePosition => &[
            (PROFILE_VELOCITY, "profile velocity"),
            (PROFILE_ACCELERATION, "profile acceleration"),
            (PROFILE_DECELERATION, "profile deceleration"),
        ],
        AxisMode::ProfileVelocity => &[
            (PROFILE_ACCELERATION, "profile acceleration"),
            (PROFILE_DECELERATION, "profile deceleration"),
        ],
        AxisMode::ProfileTorque => &[(TORQUE_SLOPE, "torque slope")],
        _ => &[],
    }
}
