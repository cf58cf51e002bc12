//! Choices of an axis.

use alloc::string::String;
use alloc::vec::Vec;

/// CiA 402 modes in which the MainDevice gives a set-point every cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize))]
pub enum CyclicMode {
    /// CSP: target position 0x607A.
    #[cfg_attr(feature = "serde", serde(rename = "csp"))]
    Position,
    /// CSV: target velocity 0x60FF.
    #[cfg_attr(feature = "serde", serde(rename = "csv"))]
    Velocity,
    /// CST: target torque 0x6071.
    #[cfg_attr(feature = "serde", serde(rename = "cst"))]
    Torque,
}

impl CyclicMode {
    /// Short name: `csp`, `csv`, `cst`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Position => "csp",
            Self::Velocity => "csv",
            Self::Torque => "cst",
        }
    }
}

/// Reaction of an axis to a stale command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Deserialize, serde::Serialize),
    serde(rename_all = "snake_case")
)]
pub enum OnStale {
    /// Comes to rest at its deceleration, then keeps its position, enabled. In torque mode the drive halts along its
    /// own ramp.
    #[default]
    Hold,
    /// Comes to rest smoothly, in the same time as all axes with this reaction, so that a base keeps to its arc and an
    /// arm to its line; then keeps its position, enabled. In torque mode the torque falls to zero.
    Ramp,
    /// CiA 402 quick stop: along the drive's own ramp, then without torque.
    QuickStop,
    /// Disables the drive: without torque at once.
    Disable,
}

/// Effect of an interlock while its input does not permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Deserialize, serde::Serialize),
    serde(rename_all = "kebab-case")
)]
pub enum InterlockKind {
    /// Brings its axes to rest, then disables them, until they are reset.
    Stop,
    /// Brings its axes to rest, then disables them; once the input permits again, they may be enabled.
    Enable,
}

/// Digital input that stops axes, or permits them to be enabled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interlock {
    /// Name; unique in the robot.
    pub name: String,
    /// Effect while its input does not permit.
    pub kind: InterlockKind,
    /// Position on the bus of its SubDevice, from 0.
    pub sub_device: usize,
    /// Number of the digital input of that SubDevice, from 1.
    pub channel: usize,
    /// True if the input permits while it is low: a wire that breaks is then not seen.
    pub inverted: bool,
    /// Indices of its axes, from 0.
    pub axes: Vec<usize>,
}

/// One digital output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DigitalOutput {
    /// Position on the bus of its SubDevice, from 0.
    pub sub_device: usize,
    /// Number of the digital output of that SubDevice, from 1.
    pub channel: usize,
}
