//! Keys of a robot file and their types, before any check.
//!
//! Values that a check may refuse keep their place in the text ([`Spanned`]).

mod axis;
mod body;
mod bus;
mod controller;
mod interlock;
mod signal;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use crate::field;
use crate::model::{Cycle, Ipc, Peripheral, Sensor};

pub(crate) use axis::{Axis, Brake, BrakeOutput, FollowingError, Homing, Limits};
pub(crate) use body::{Arm, Base, BaseKind, BaseLimits};
pub(crate) use bus::{
    Bus, Device, DistributedClock, Entry, Pdo, Pdos, Repeated, Replies, Simulate, SimulateKind,
    SimulatedSource, Startup, SubDevice, Watchdog,
};
pub(crate) use controller::{Controller, ControllerKind, Controllers};
pub(crate) use interlock::Interlock;
pub(crate) use signal::{Signal, SignalDirection, SignalEntry, SignalWriter};

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Document {
    pub(crate) name: Option<String>,
    pub(crate) cycle: Cycle,
    #[serde(default)]
    pub(crate) device: BTreeMap<String, Device>,
    pub(crate) bus: Spanned<Bus>,
    #[serde(default)]
    pub(crate) axis: Vec<Axis>,
    #[serde(default)]
    pub(crate) interlock: Vec<Interlock>,
    #[serde(default)]
    pub(crate) signal: Vec<Signal>,
    #[serde(default)]
    pub(crate) sensor: Vec<Sensor>,
    #[serde(default)]
    pub(crate) controller: Controllers,
    pub(crate) base: Option<Spanned<Base>>,
    pub(crate) arm: Option<Arm>,
    #[serde(default)]
    pub(crate) ipc: Ipc,
    #[serde(default)]
    pub(crate) peripheral: Vec<Peripheral>,
}

/// A duration, written as text.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Length(#[serde(deserialize_with = "field::time")] pub(crate) Duration);
