use std::time::Duration;

use ethercat::cia402::object;
use motion::AxisScale;
use motion::brake::BrakeConfiguration;
use motion::supervision::{FollowingErrorLimit, Limits};
use types::{CyclicMode, OnStale};

/// One axis: a servo drive and the scale of its numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Name; unique in the robot.
    pub name: String,
    /// Position on the bus of its drive.
    pub sub_device: usize,
    /// CiA 402 mode of operation.
    pub mode: CyclicMode,
    /// Conversion between the drive's numbers and SI.
    pub scale: AxisScale,
    /// Limits of the axis.
    pub limits: Limits,
    /// Supervision of the following error; `None` leaves it to the drive.
    pub following_error: Option<FollowingErrorLimit>,
    /// Reaction to a stale command.
    pub on_stale: OnStale,
    /// Source of its absolute position.
    pub homing: Homing,
    /// Brake, if the cycle has to wait for one.
    pub brake: Option<BrakeConfiguration>,
}

/// Source of an axis's absolute position.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Homing {
    /// No homing: the drive's zero is the axis's.
    #[default]
    Never,
    /// Absolute encoder.
    Absolute {
        /// Position of the axis where the drive's is zero, in rad.
        offset: f64,
    },
    /// Homing on request at a mark to which the operator has moved the axis.
    CurrentPosition {
        /// Position of the mark, in rad.
        position: f64,
    },
    /// Homing on request by the drive, which finds its mark by itself (CiA 402, homing mode).
    Drive(DriveHoming),
}

/// Homing by a drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DriveHoming {
    /// Homing method, 0x6098.
    pub method: i8,
    /// Position of the mark, in rad.
    pub position: f64,
    /// Speed towards a switch, in rad/s.
    pub switch_velocity: f64,
    /// Speed towards the mark itself, in rad/s.
    pub zero_velocity: f64,
    /// Acceleration, in rad/s^2.
    pub acceleration: f64,
    /// Longest time of the homing.
    pub time_out: Duration,
}

impl DriveHoming {
    /// True if the axis moves: the other kinds take its present position.
    #[must_use]
    pub const fn moves(&self) -> bool {
        !matches!(self.method, 35 | 37)
    }
}

/// An object that a mode of operation needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModeObject {
    /// Object index; the sub-index is 0.
    pub index: u16,
    /// Its name in CiA 402.
    pub name: &'static str,
    /// Direction of the object.
    pub direction: ObjectDirection,
}

/// Direction of a mapped object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectDirection {
    /// MainDevice to SubDevice.
    Output,
    /// SubDevice to MainDevice.
    Input,
}

impl ObjectDirection {
    /// `outputs` or `inputs`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Output => "outputs",
            Self::Input => "inputs",
        }
    }
}

/// Objects that must be in the process data for `mode` (CiA 402-2, cyclic modes). The actual position is
/// among them in every mode: supervision needs it.
#[must_use]
pub const fn mode_objects(mode: CyclicMode) -> [ModeObject; 4] {
    use ObjectDirection::{Input, Output};
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
