//! Robot file, as it is read and checked.
//!
//! A field is a key of the file under its own or its renamed name, and has the type in which the
//! key is used. Skipped fields are no keys: the checks derive them from keys. Every repeated entry
//! is expanded, every reference is an index that exists. Quantities are SI: radians, radians per
//! second, newton metres, hertz.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use types::FeedbackInput;
use types::state::BrakeInput;

mod axis;
mod body;
mod bus;
mod controller;
mod cycle;
mod mapping;
mod mode;
mod peripheral;
mod signal;

pub(crate) use axis::InterlockKeys;
pub use axis::{Axis, HomingSettings};
pub(crate) use axis::{FeedbackInputKeys, FeedbackKeys, JogKeys};
pub use body::Frame;
pub use body::{Arm, Base};
pub(crate) use bus::Kind;
pub use bus::{AnalogueSource, Bus, Parent, Simulation, SubDevice};
pub(crate) use bus::{BUS_KEYS, DEVICE_KEYS, DistributedClock, MOST_SUB_DEVICES};
pub(crate) use controller::AxisSwing;
pub use controller::{Controller, Sinusoid};
pub(crate) use cycle::HIGHEST_CPU;
pub use cycle::{Cycle, Overrides, ResetFaults};
pub(crate) use mapping::MOST_BYTES;
pub(crate) use mode::CHANGE_OBJECTS;
pub use mode::{ModeObject, mode_objects, profile_objects};
pub use peripheral::Peripheral;
pub(crate) use peripheral::made_of;
pub use peripheral::{Ipc, IpcPort};
pub use signal::Sensor;
pub use signal::Signals;
pub(crate) use signal::{NamedSignal, SignalEntry, SignalWriter};
pub use types::{
    AfterOutage, ApplicationKind, AxisMode, BaseKind, ControllerKind, CyclicMode, DacChip, DigitalOutput,
    Encoder, EncoderSide, EscKind, FrameOrder, ImuOutput, ImuUnit, Interlock, InterlockKind, LedChip,
    OnStale, OverrunPolicy, PeripheralKind, PortKind, Profile, ProfileError, SensorKind, TerminalModel,
};

/// A robot file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RobotConfig {
    /// Name.
    #[serde(default = "usual_name")]
    pub name: String,
    /// The real-time cycle.
    pub cycle: Cycle,
    #[serde(default)]
    pub(crate) device: Devices,
    /// The SubDevices.
    pub bus: Bus,
    /// The axes, in the order of the file.
    #[serde(default, rename = "axis")]
    pub axes: Vec<Axis>,
    #[serde(default, rename = "interlock")]
    pub(crate) interlock_keys: Vec<InterlockKeys>,
    /// Signals that the file names; see [`RobotConfig::signals`].
    #[serde(default, rename = "signal")]
    pub signals: Signals,
    /// Signals that together are a measurement.
    #[serde(default, rename = "sensor")]
    pub sensors: Vec<Sensor>,
    /// Controllers; the first one is active at the start. At least one.
    #[serde(default, rename = "controller")]
    pub controllers: Vec<Controller>,
    /// Mobile base, if there is one.
    pub base: Option<Base>,
    /// Arm, if the file describes one.
    pub arm: Option<Arm>,
    /// Places on the robot, fixed to each other.
    #[serde(default, rename = "frame")]
    pub frames: Vec<Frame>,
    /// Shared-memory interface of the cycle.
    #[serde(default)]
    pub ipc: Ipc,
    /// Devices that are not on the bus, with their own tasks.
    #[serde(default, rename = "peripheral")]
    pub peripherals: Vec<Peripheral>,
    /// Interlocks, which stop axes, or permit them to be enabled.
    #[serde(skip)]
    pub interlocks: Vec<Interlock>,
}

impl RobotConfig {
    /// Inputs of the feedback of the brakes: index of the axis, name, and input. In the order of
    /// the axes, `released` before `closed`.
    pub fn brake_inputs(&self) -> impl Iterator<Item = (usize, BrakeInput, FeedbackInput)> + '_ {
        let feedback = |axis: &Axis| axis.brake.map(|brake| brake.feedback).unwrap_or_default();
        let axes = self.axes.iter().map(feedback).enumerate();
        axes.flat_map(|(axis, it)| it.inputs().map(move |(name, input)| (axis, name, input)))
    }
}

/// `[device.NAME]`, with keys that are put into SubDevices before they are read.
pub(crate) type Devices = BTreeMap<String, IgnoredAny>;

fn usual_name() -> String {
    "robot".to_owned()
}

/// Functions that give keys their usual values.
macro_rules! usual {
    ($($name:ident: $type:ty = $value:expr;)*) => { $(
        const fn $name() -> $type {
            $value
        }
    )* };
}
use usual;
