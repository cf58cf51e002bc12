use ethercat::cia402::object;
use types::CyclicMode;
use types::signal::Direction;

/// An object that a mode of operation needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModeObject {
    /// Object index; the sub-index is 0.
    pub index: u16,
    /// Its name in CiA 402.
    pub name: &'static str,
    /// Direction of the object.
    pub direction: Direction,
}

/// Objects that must be in the process data for `mode` (CiA 402-2, cyclic modes). The actual position is
/// among them in every mode: supervision needs it.
#[must_use]
pub const fn mode_objects(mode: CyclicMode) -> [ModeObject; 4] {
    use Direction::{Input, Output};
    let target = match mode {
        CyclicMode::Position => {
            ModeObject { index: object::TARGET_POSITION, name: "target position", direction: Output }
        }
        CyclicMode::Velocity => {
            ModeObject { index: object::TARGET_VELOCITY, name: "target velocity", direction: Output }
        }
        CyclicMode::Torque => {
            ModeObject { index: object::TARGET_TORQUE, name: "target torque", direction: Output }
        }
    };
    [
        ModeObject { index: object::CONTROLWORD, name: "controlword", direction: Output },
        target,
        ModeObject { index: object::STATUSWORD, name: "statusword", direction: Input },
        ModeObject {
            index: object::POSITION_ACTUAL_VALUE,
            name: "position actual value",
            direction: Input,
        },
    ]
}
