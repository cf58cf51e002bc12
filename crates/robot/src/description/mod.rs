//! Checked description of a robot.
//!
//! Every value here has passed the checks, every reference is an index that exists, every repeated entry is
//! expanded. Quantities are SI: radians, radians per second, newton metres, hertz.

mod axis;
mod body;
mod bus;
mod controller;
mod cycle;
mod interlock;
mod peripheral;
mod seam;
mod signal;

pub use axis::{
    Axis, AxisLimits, Brake, DigitalOutput, DriveHoming, FollowingError, Homing, ModeObject,
    ObjectDirection, OnStale, mode_objects, short_name,
};
pub use body::{Arm, Base, BaseKind, BaseLimits};
pub use bus::{Application, Bus, Parent, ServoDrivePlant, Simulation, SubDevice};
pub use controller::{Controller, ControllerKind, External, JointTrajectory, Sinusoid};
pub use cycle::{AfterOutage, Cycle, FrameOrder, Overrun, Profile, ProfileError};
pub use interlock::{Interlock, InterlockKind};
pub use peripheral::{Peripheral, PeripheralKind};
pub use seam::{Seam, SeamPort, SeamPortKind};
pub use signal::Signals;

/// A robot.
#[derive(Clone, Debug, PartialEq)]
pub struct Robot {
    /// Name.
    pub name: String,
    /// The real-time cycle.
    pub cycle: Cycle,
    /// The SubDevices.
    pub bus: Bus,
    /// The axes, in the order of the file.
    pub axes: Vec<Axis>,
    /// Interlocks, which stop axes, or permit them to be enabled.
    pub interlocks: Vec<Interlock>,
    /// Signals that the file names; see [`Robot::signals`].
    pub signals: Signals,
    /// Controllers; the first one is active at the start. At least one.
    pub controllers: Vec<Controller>,
    /// Mobile base, if there is one.
    pub base: Option<Base>,
    /// Arm, if the file describes one.
    pub arm: Option<Arm>,
    /// Shared-memory interface of the cycle.
    pub seam: Seam,
    /// Devices beside the bus, with tasks of their own.
    pub peripherals: Vec<Peripheral>,
}
