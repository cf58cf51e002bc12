//! Keys of a robot file and their types, before any check.
//!
//! Values that a check may refuse keep their place in the text ([`Spanned`]).

mod axis;
mod body;
mod bus;
mod controller;
mod interlock;
mod ipc;
mod peripheral;
mod sensor;
mod signal;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;
use types::{AfterOutage, FrameOrder, OverrunPolicy};

pub(crate) use axis::{Axis, Brake, BrakeOutput, FollowingError, Homing, Limits};
pub(crate) use body::{Arm, Base, BaseKind, BaseLimits};
pub(crate) use bus::{
    Bus, Device, DistributedClock, Entry, Pdo, Pdos, Repeated, Replies, Simulate, SimulateKind,
    SimulatedSource, Startup, SubDevice, Watchdog,
};
pub(crate) use controller::{Controller, ControllerKind, Controllers};
pub(crate) use interlock::Interlock;
pub(crate) use ipc::{Ipc, IpcPort, IpcPortKind};
pub(crate) use peripheral::{LedChip, Peripheral, PeripheralKind};
pub(crate) use sensor::{Sensor, SensorKind};
pub(crate) use signal::{Signal, SignalDirection, SignalEntry, SignalWriter};

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Document {
    pub(crate) name: Option<String>,
    pub(crate) cycle: Spanned<Cycle>,
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

/// `[cycle]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cycle {
    pub(crate) period: Spanned<Length>,
    pub(crate) profile: Option<Spanned<String>>,
    pub(crate) priority: Option<Spanned<i64>>,
    pub(crate) deadline_runtime: Option<Spanned<Length>>,
    pub(crate) cpu: Option<Spanned<i64>>,
    pub(crate) spin_margin: Option<Spanned<Length>>,
    #[serde(default)]
    pub(crate) overrun: OverrunPolicy,
    #[serde(default)]
    pub(crate) frame_order: FrameOrder,
    pub(crate) outage_time: Option<Spanned<Length>>,
    #[serde(default)]
    pub(crate) after_outage: AfterOutage,
    pub(crate) loss_time: Option<Spanned<LengthOrWait>>,
}

/// A duration, or `"wait"`: for ever.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LengthOrWait(pub(crate) Option<Duration>);

impl<'de> Deserialize<'de> for LengthOrWait {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == "wait" {
            return Ok(Self(None));
        }
        crate::duration::parse(&text).map(|length| Self(Some(length))).map_err(|_| {
            let expected =
                "a number and a unit (ns, us, ms, s, min, h) in quotes, as in \"10s\", or \"wait\"";
            serde::de::Error::invalid_value(serde::de::Unexpected::Str(&text), &expected)
        })
    }
}

/// A duration, written as text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Length(pub(crate) Duration);

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl serde::de::Visitor<'_> for Visitor {
            type Value = Length;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a number and a unit (ns, us, ms, s, min, h) in quotes, as in \"500us\"")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Length, E> {
                let wrong = |_| E::invalid_value(serde::de::Unexpected::Str(text), &self);
                crate::duration::parse(text).map(Length).map_err(wrong)
            }
        }

        deserializer.deserialize_str(Visitor)
    }
}
