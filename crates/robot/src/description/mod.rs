//! The checked description: what a robot is.
//!
//! Every value here has passed the checks, every reference is an index that exists, every repeated
//! entry is written out. Quantities are SI: radians, radians per second, newton metres, hertz.

mod axis;
mod bus;
mod controller;
mod cycle;

pub use axis::{Axis, AxisLimits, ModeObject, ObjectDirection, OnStale, mode_objects, short_name};
pub use bus::{Application, Bus, Parent, ServoDrivePlant, Simulation, SubDevice};
pub use controller::{Controller, Sinusoid};
pub use cycle::{Cycle, FrameOrder, Overrun, Profile, ProfileError};

/// A robot.
#[derive(Clone, Debug, PartialEq)]
pub struct Robot {
    /// What it is called.
    pub name: String,
    /// The real-time cycle.
    pub cycle: Cycle,
    /// The SubDevices.
    pub bus: Bus,
    /// The axes, in the order of the file.
    pub axes: Vec<Axis>,
    /// What moves the axes.
    pub controller: Controller,
}
