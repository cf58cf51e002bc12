//! Choices of an axis.

use alloc::string::String;
use alloc::vec::Vec;

use crate::macros::named;
use crate::state::BrakeInput;

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

impl CyclicMode {
    /// Its set-point in a sentence.
    #[must_use]
    pub const fn setpoint(self) -> &'static str {
        match self {
            Self::Position => "a position",
            Self::Velocity => "a velocity",
            Self::Torque => "a torque",
        }
    }
}

named! {
    /// CiA 402 mode of operation of an axis.
    AxisMode {
        /// CSP: a target position 0x607A every cycle.
        CyclicPosition = "csp";
        /// CSV: a target velocity 0x60FF every cycle.
        CyclicVelocity = "csv";
        /// CST: a target torque 0x6071 every cycle.
        CyclicTorque = "cst";
        /// IP: a set-point 0x60C1:1 every cycle.
        InterpolatedPosition = "ip";
        /// PP: the drive makes its own way to a target position 0x607A.
        ProfilePosition = "pp";
        /// PV: the drive ramps to a target velocity 0x60FF by itself.
        ProfileVelocity = "pv";
        /// TQ: the drive ramps to a target torque 0x6071 along its own slope.
        ProfileTorque = "tq";
    }
}

impl AxisMode {
    /// The cyclic mode with the same set-points: positions, velocities or torques.
    #[must_use]
    pub const fn cyclic(self) -> CyclicMode {
        match self {
            Self::CyclicPosition | Self::InterpolatedPosition | Self::ProfilePosition => {
                CyclicMode::Position
            }
            Self::CyclicVelocity | Self::ProfileVelocity => CyclicMode::Velocity,
            Self::CyclicTorque | Self::ProfileTorque => CyclicMode::Torque,
        }
    }

    /// True if the drive makes the motion from one set-point to the next by itself.
    #[must_use]
    pub const fn is_profile(self) -> bool {
        match self {
            Self::ProfilePosition | Self::ProfileVelocity | Self::ProfileTorque => true,
            Self::CyclicPosition
            | Self::CyclicVelocity
            | Self::CyclicTorque
            | Self::InterpolatedPosition => false,
        }
    }
}

impl From<CyclicMode> for AxisMode {
    fn from(mode: CyclicMode) -> Self {
        match mode {
            CyclicMode::Position => Self::CyclicPosition,
            CyclicMode::Velocity => Self::CyclicVelocity,
            CyclicMode::Torque => Self::CyclicTorque,
        }
    }
}

named! {
    /// Reaction of an axis to a stale command.
    #[derive(Default)]
    OnStale {
        /// Stops at its deceleration, then keeps its position, enabled. In torque mode the drive
        /// halts along its own ramp.
        #[default]
        Hold = "hold";
        /// Stops smoothly, in the same time as all axes with this reaction, so that a base keeps
        /// its arc and an arm its line; then keeps its position, enabled. In torque mode the torque
        /// falls to zero.
        Ramp = "ramp";
        /// CiA 402 quick stop: along the drive's own ramp, then without torque.
        QuickStop = "quick_stop";
        /// Disables the drive: without torque at once.
        Disable = "disable";
    }
}

named! {
    /// Knowledge of an encoder about the position after it was without power.
    #[derive(Default)]
    Encoder {
        /// Nothing: it counts from where it is switched on.
        #[default]
        Incremental = "incremental";
        /// The angle within a revolution.
        SingleTurn = "single_turn";
        /// The angle, and the revolutions up to a number of them.
        MultiTurn = "multi_turn";
    }
}

named! {
    /// Side of the gear that an encoder is on.
    #[derive(Default)]
    EncoderSide {
        /// On the motor.
        #[default]
        Motor = "motor";
        /// On the shaft behind the gear.
        Load = "load";
    }
}

named! {
    /// Effect of an interlock while its input does not permit.
    InterlockKind {
        /// Stops its axes, then disables them, until they are reset.
        Stop = "stop";
        /// Stops its axes, then disables them; once the input permits again, they may be enabled.
        Enable = "enable";
        /// Permits jogs of its axes (enabling switch).
        Jog = "jog";
        /// Permits automatic motion; without it its axes are in set-up mode, in which only a jog
        /// moves them.
        Automatic = "automatic";
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

/// Feedback of a brake: digital inputs that show whether it is open or closed. Without either, it
/// has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BrakeFeedback {
    /// Input that is on while the brake is open.
    pub released: Option<FeedbackInput>,
    /// Input that is on while the brake is closed.
    pub closed: Option<FeedbackInput>,
}

/// One digital input of the feedback of a brake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FeedbackInput {
    /// Position on the bus of its SubDevice, from 0.
    pub sub_device: usize,
    /// Number of the digital input of that SubDevice, from 1.
    pub channel: usize,
    /// True if it is on while it is low.
    pub inverted: bool,
}

impl BrakeFeedback {
    /// Its inputs, with their names.
    pub fn inputs(&self) -> impl Iterator<Item = (BrakeInput, FeedbackInput)> + use<> {
        let named = [(BrakeInput::Released, self.released), (BrakeInput::Closed, self.closed)];
        named.into_iter().filter_map(|(name, input)| Some((name, input?)))
    }
}
