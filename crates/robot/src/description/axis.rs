use std::time::Duration;

use ethercat::cia402::{CyclicMode, object};
use motion::AxisScale;

/// One axis: a servo drive and what its numbers mean.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What it is called; unique in the robot.
    pub name: String,
    /// Position on the bus of its drive.
    pub sub_device: usize,
    /// CiA 402 mode of operation.
    pub mode: CyclicMode,
    /// From the drive's numbers to SI and back.
    pub scale: AxisScale,
    /// What the axis must not exceed.
    pub limits: AxisLimits,
    /// How well it has to follow; `None` leaves that to its drive.
    pub following_error: Option<FollowingError>,
    /// What happens when the command goes stale.
    pub on_stale: OnStale,
    /// How it learns its absolute position.
    pub homing: Homing,
    /// Its brake, if the cycle has to wait for one.
    pub brake: Option<Brake>,
}

/// What an axis must not exceed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AxisLimits {
    /// Lowest and highest position, in rad; `None` for an axis that turns for ever.
    pub position: Option<(f64, f64)>,
    /// Highest speed either way, in rad/s.
    pub velocity: f64,
    /// Highest acceleration either way, in rad/s^2: what controllers plan with and supervision brakes with.
    pub acceleration: f64,
    /// Highest jerk either way, in rad/s^3, that controllers plan with.
    pub jerk: f64,
    /// Highest torque either way at the axis, in N m.
    pub torque: f64,
    /// Largest change of the position command from one beat to the next, in rad.
    pub maximum_step: f64,
}

/// What an axis does when its command goes stale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnStale {
    /// To rest at its acceleration limit, then keep the position, with the drive enabled.
    #[default]
    Hold,
    /// Smoothly to rest, all axes that do so in the same time, then as [`OnStale::Hold`].
    Ramp,
    /// CiA 402 quick stop.
    QuickStop,
    /// Take the torque off.
    Disable,
}

/// How far an axis may be from its set-point, and for how long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FollowingError {
    /// Farther than this is too far, in rad.
    pub window: f64,
    /// It may be too far for less than this.
    pub time: Duration,
}

/// How an axis learns its absolute position.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Homing {
    /// Not at all: zero is where its drive says.
    #[default]
    Never,
    /// Its encoder is absolute.
    Absolute {
        /// Position of the axis where the drive's is zero, in rad.
        offset: f64,
    },
    /// Somebody brings it to a mark and asks for homing.
    CurrentPosition {
        /// Position of the mark, in rad.
        position: f64,
    },
    /// Somebody asks for homing, and the drive finds its mark by itself (CiA 402, homing mode).
    Drive(DriveHoming),
}

/// How a drive finds its mark.
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
    /// How long it may take.
    pub time_out: Duration,
}

impl DriveHoming {
    /// Whether the axis moves: the others take it where it stands.
    #[must_use]
    pub const fn moves(&self) -> bool {
        !matches!(self.method, 35 | 37)
    }
}

/// A brake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Brake {
    /// How long it takes until the axis is free.
    pub release: Duration,
    /// How long it takes until it holds.
    pub engage: Duration,
    /// What gives its coil power; `None` where the drive does that itself.
    pub output: Option<DigitalOutput>,
}

/// One digital output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DigitalOutput {
    /// Position on the bus of its SubDevice.
    pub sub_device: usize,
    /// Which one of its digital outputs ([`ethercat::pdo::PdoMapping::digital_outputs`]), from 1.
    pub channel: usize,
}

/// An object a mode of operation lives on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModeObject {
    /// Object index; the sub-index is 0.
    pub index: u16,
    /// Its name in CiA 402.
    pub name: &'static str,
    /// Which way it goes.
    pub direction: ObjectDirection,
}

/// Which way a mapped object goes.
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

/// The short name people use for a mode: `csp`, `csv`, `cst`.
#[must_use]
pub const fn short_name(mode: CyclicMode) -> &'static str {
    match mode {
        CyclicMode::Position => "csp",
        CyclicMode::Velocity => "csv",
        CyclicMode::Torque => "cst",
    }
}

/// The objects that must be in the process data for `mode` (CiA 402-2, cyclic modes). The actual position
/// is among them in every mode: a robot is blind without it.
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
