//! Choices of an axis.

use alloc::string::String;
use alloc::vec::Vec;

use crate::named::named;

named! {
    /// CiA 402 modes in which the MainDevice gives a set-point every cycle.
    CyclicMode {
        /// CSP: target position 0x607A.
        Position = "csp";
        /// CSV: target velocity 0x60FF.
        Velocity = "csv";
        /// CST: target torque 0x6071.
        Torque = "cst";
    }
}

named! {
    /// Reaction of an axis to a stale command.
    #[derive(Default)]
    OnStale {
        /// Comes to rest at its deceleration, then keeps its position, enabled. In torque mode the drive halts along its
        /// own ramp.
        #[default]
        Hold = "hold";
        /// Comes to rest smoothly, in the same time as all axes with this reaction, so that a base keeps to its arc and an
        /// arm to its line; then keeps its position, enabled. In torque mode the torque falls to zero.
        Ramp = "ramp";
        /// CiA 402 quick stop: along the drive's own ramp, then without torque.
        QuickStop = "quick_stop";
        /// Disables the drive: without torque at once.
        Disable = "disable";
    }
}

named! {
    /// Effect of an interlock while its input does not permit.
    InterlockKind {
        /// Brings its axes to rest, then disables them, until they are reset.
        Stop = "stop";
        /// Brings its axes to rest, then disables them; once the input permits again, they may be enabled.
        Enable = "enable";
    }
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
