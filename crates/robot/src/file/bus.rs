use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor, value::MapAccessDeserializer};
use toml::Spanned;

use super::Length;

/// `[bus]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bus {
    #[serde(default)]
    pub(crate) distributed_clocks: bool,
    pub(crate) process_data_watchdog: Option<Spanned<Watchdog>>,
    pub(crate) pdi_watchdog: Option<Spanned<Watchdog>>,
    #[serde(default)]
    pub(crate) replies: Replies,
    #[serde(default)]
    pub(crate) sub_device: Vec<Spanned<SubDevice>>,
}

/// `replies = "..."`
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Replies {
    #[default]
    ProcessedSource,
    UnchangedSource,
}

/// Keys that expand one entry to several: `count`, `first`, and `{}` in names.
#[derive(Clone, Debug)]
pub(crate) struct Repeated<'a> {
    pub(crate) name: &'a Spanned<String>,
    pub(crate) count: Option<&'a Spanned<i64>>,
    pub(crate) first: Option<&'a Spanned<i64>>,
}

/// `[[bus.sub_device]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SubDevice {
    pub(crate) name: Spanned<String>,
    pub(crate) count: Option<Spanned<i64>>,
    pub(crate) first: Option<Spanned<i64>>,
    pub(crate) device: Option<Spanned<String>>,
    pub(crate) alias: Option<Spanned<u16>>,
    pub(crate) parent: Option<Spanned<String>>,
    pub(crate) port: Option<Spanned<i64>>,
    pub(crate) identity: Option<Identity>,
    pub(crate) pdos: Option<Spanned<Pdos>>,
    pub(crate) startup: Option<Vec<Startup>>,
    pub(crate) dc: Option<Spanned<DistributedClock>>,
    pub(crate) process_data_watchdog: Option<Spanned<Watchdog>>,
    pub(crate) pdi_watchdog: Option<Spanned<Watchdog>>,
    pub(crate) simulate: Option<Spanned<Simulate>>,
    pub(crate) group: Option<Spanned<String>>,
}

/// `[device.NAME]`: common properties of SubDevices of one kind.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Device {
    pub(crate) identity: Option<Identity>,
    pub(crate) pdos: Option<Spanned<Pdos>>,
    pub(crate) startup: Option<Vec<Startup>>,
    pub(crate) dc: Option<Spanned<DistributedClock>>,
    pub(crate) process_data_watchdog: Option<Spanned<Watchdog>>,
    pub(crate) pdi_watchdog: Option<Spanned<Watchdog>>,
    pub(crate) simulate: Option<Spanned<Simulate>>,
    pub(crate) group: Option<Spanned<String>>,
}

/// A watchdog: a duration, or "off".
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watchdog(pub(crate) Option<Duration>);

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Identity {
    pub(crate) vendor_id: u32,
    pub(crate) product_code: u32,
    pub(crate) revision: Option<u32>,
}

/// `pdos = "sii"`, or a table.
#[derive(Debug)]
pub(crate) enum Pdos {
    Sii,
    Explicit(Mapping),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mapping {
    #[serde(default)]
    pub(crate) outputs: Vec<Spanned<Pdo>>,
    #[serde(default)]
    pub(crate) inputs: Vec<Spanned<Pdo>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pdo {
    pub(crate) index: Spanned<u16>,
    pub(crate) name: Option<String>,
    #[serde(default)]
    pub(crate) fixed: bool,
    pub(crate) entries: Vec<Spanned<Entry>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    pub(crate) index: u16,
    #[serde(default)]
    pub(crate) sub_index: u8,
    pub(crate) bits: Spanned<i64>,
    pub(crate) name: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Startup {
    pub(crate) index: u16,
    #[serde(default)]
    pub(crate) sub_index: u8,
    #[serde(default)]
    pub(crate) complete_access: bool,
    #[serde(rename = "type")]
    pub(crate) value_type: Spanned<String>,
    pub(crate) value: Spanned<toml::Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DistributedClock {
    pub(crate) sync0: Option<Spanned<Length>>,
    pub(crate) shift: Option<Spanned<Length>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Simulate {
    pub(crate) kind: SimulateKind,
    pub(crate) sii: Option<PathBuf>,
    pub(crate) channels: Option<Spanned<i64>>,
    pub(crate) encoder_counts: Option<Spanned<i64>>,
    pub(crate) inertia: Option<Spanned<f64>>,
    pub(crate) viscous_friction: Option<Spanned<f64>>,
    pub(crate) coulomb_friction: Option<Spanned<f64>>,
    pub(crate) rated_torque: Option<Spanned<f64>>,
    pub(crate) torque_limit: Option<Spanned<f64>>,
    pub(crate) limit_switches: Option<Spanned<[f64; 2]>>,
    pub(crate) source: Option<Spanned<SimulatedSource>>,
    pub(crate) amplitude: Option<Spanned<f64>>,
    pub(crate) frequency: Option<Spanned<f64>>,
    pub(crate) offset: Option<Spanned<f64>>,
    pub(crate) rate: Option<Spanned<f64>>,
    pub(crate) follows: Option<Spanned<String>>,
}

/// `source = "..."` of analogue inputs
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SimulatedSource {
    Sine,
    Ramp,
    Outputs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SimulateKind {
    Coupler,
    DigitalOutputs,
    DigitalInputs,
    AnalogueInput,
    AnalogueOutput,
    Encoder,
    ForceTorqueSensor,
    ServoDrive,
}

impl<'de> Deserialize<'de> for Watchdog {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TimeOrOff;

        impl Visitor<'_> for TimeOrOff {
            type Value = Watchdog;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration in quotes, as in \"100ms\", or \"off\"")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Watchdog, E> {
                if text == "off" {
                    return Ok(Watchdog(None));
                }
                let wrong = |_| E::invalid_value(serde::de::Unexpected::Str(text), &self);
                crate::duration::parse(text).map(|time| Watchdog(Some(time))).map_err(wrong)
            }
        }

        deserializer.deserialize_str(TimeOrOff)
    }
}

impl<'de> Deserialize<'de> for Pdos {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrTable;

        impl<'de> Visitor<'de> for TextOrTable {
            type Value = Pdos;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"sii\", or a table with outputs and inputs")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Pdos, E> {
                let other = || E::invalid_value(serde::de::Unexpected::Str(text), &self);
                (text == "sii").then_some(Pdos::Sii).ok_or_else(other)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Pdos, A::Error> {
                Mapping::deserialize(MapAccessDeserializer::new(map)).map(Pdos::Explicit)
            }
        }

        deserializer.deserialize_any(TextOrTable)
    }
}
