//! Checked description of a robot.
//!
//! Every value here has passed the checks, every reference is an index that exists, every repeated entry is
//! expanded. Quantities are SI: radians, radians per second, newton metres, hertz.

mod axis;
mod body;
mod bus;
mod controller;
mod cycle;
mod ipc;
mod peripheral;
mod sensor;
mod signal;

pub use axis::{Axis, DriveHoming, Homing, ModeObject, ObjectDirection, mode_objects};
pub use body::{Arm, Base, BaseKind};
pub use bus::{
    AnalogueSource, Application, Bus, EncoderSource, Parent, ServoDrivePlant, Simulation, SubDevice,
};
pub use controller::{Cartesian, Controller, ControllerKind, External, JointTrajectory, Sinusoid};
pub use cycle::Cycle;
pub(crate) use cycle::HIGHEST_CPU;
pub(crate) use ipc::made_of;
pub use ipc::{Ipc, IpcPort, IpcPortKind};
pub use peripheral::{LedChip, Peripheral, PeripheralKind};
pub use sensor::{Sensor, SensorKind};
pub use signal::Signals;
pub use types::{
    AfterOutage, CyclicMode, DigitalOutput, FrameOrder, Interlock, InterlockKind, OnStale, OverrunPolicy,
    Profile, ProfileError,
};

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
    /// Signals that together are a measurement.
    pub sensors: Vec<Sensor>,
    /// Controllers; the first one is active at the start. At least one.
    pub controllers: Vec<Controller>,
    /// Mobile base, if there is one.
    pub base: Option<Base>,
    /// Arm, if the file describes one.
    pub arm: Option<Arm>,
    /// Shared-memory interface of the cycle.
    pub ipc: Ipc,
    /// Devices beside the bus, with tasks of their own.
    pub peripherals: Vec<Peripheral>,
}
