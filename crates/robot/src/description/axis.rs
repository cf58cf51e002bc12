use std::time::Duration;

use ethercat::cia402::{CyclicMode, object};
use motion::AxisScale;

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
    pub limits: AxisLimits,
    /// Supervision of the following error; `None` leaves it to the drive.
    pub following_error: Option<FollowingError>,
    /// Reaction to a stale command.
    pub on_stale: OnStale,
    /// Source of its absolute position.
    pub homing: Homing,
    /// Brake, if the cycle has to wait for one.
    pub brake: Option<Brake>,
}

/// Limits of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AxisLimits {
    /// Lowest and highest position, in rad; `None` for an axis that turns without limit.
    pub position: Option<(f64, f64)>,
    /// Highest speed in either direction, in rad/s.
    pub velocity: f64,
    /// Highest acceleration in either direction, in rad/s^2: for planning, and for braking by supervision.
    pub acceleration: f64,
    /// Highest jerk in either direction, in rad/s^3, for planning.
    pub jerk: f64,
    /// Highest torque in either direction at the axis, in N m.
    pub torque: f64,
    /// Largest change of the position command from one cycle to the next, in rad.
    pub maximum_step: f64,
}

/// Reaction of an axis to a stale command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnStale {
    /// Comes to rest at its acceleration limit, then keeps the position, with the drive enabled.
    #[default]
    Hold,
    /// Comes to rest smoothly, in the same time as all axes with this reaction, then as [`OnStale::Hold`].
    Ramp,
    /// CiA 402 quick stop.
    QuickStop,
    /// Disables the drive: no torque.
    Disable,
}

/// Tolerance of an axis's distance from its set-point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FollowingError {
    /// Largest tolerated distance, in rad.
    pub window: f64,
    /// Time from which on a larger distance is an error.
    pub time: Duration,
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

/// A brake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Brake {
    /// Time until the axis is free.
    pub release: Duration,
    /// Time until it holds.
    pub engage: Duration,
    /// Output that powers its coil; `None` where the drive does that itself.
    pub output: Option<DigitalOutput>,
}

/// One digital output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DigitalOutput {
    /// Position on the bus of its SubDevice.
    pub sub_device: usize,
    /// Number of the digital output ([`ethercat::pdo::PdoMapping::digital_outputs`]), from 1.
    pub channel: usize,
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

/// Short name of a mode: `csp`, `csv`, `cst`.
#[must_use]
pub const fn short_name(mode: CyclicMode) -> &'static str {
    match mode {
        CyclicMode::Position => "csp",
        CyclicMode::Velocity => "csv",
        CyclicMode::Torque => "cst",
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
