use serde::Deserialize;
use types::SensorKind;
use types::signal::Direction;

use crate::field::{factor, finite, two};
use crate::value::Spanned;

/// Signals of a robot file, as far as they are known without the process data of its SubDevices.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "Vec<NamedSignal>")]
pub struct Signals {
    pub(crate) named: Vec<NamedSignal>,
    /// The robot file, for errors with their place.
    pub(crate) text: String,
    pub(crate) file: String,
}

impl From<Vec<NamedSignal>> for Signals {
    fn from(named: Vec<NamedSignal>) -> Self {
        Self { named, ..Self::default() }
    }
}

/// `[[signal]]`; it keeps its places, as its process data may be known only when the bus is there.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NamedSignal {
    pub(crate) name: Spanned<String>,
    pub(crate) sub_device: Spanned<String>,
    pub(crate) entry: Option<Spanned<SignalEntry>>,
    pub(crate) channel: Option<Spanned<i64>>,
    pub(crate) elements: Option<Spanned<toml::Value>>,
    pub(crate) direction: Option<Direction>,
    #[serde(rename = "type")]
    pub(crate) value_type: Option<Spanned<String>>,
    pub(crate) unit: Option<Spanned<String>>,
    pub(crate) scale: Option<Spanned<Scale>>,
    pub(crate) offset: Option<Spanned<Offset>>,
    pub(crate) range: Option<Spanned<Range>>,
    pub(crate) writer: Option<Spanned<SignalWriter>>,
    pub(crate) initial: Option<Spanned<toml::Value>>,
    pub(crate) on_stale: Option<Spanned<toml::Value>>,
    pub(crate) on_stop: Option<Spanned<toml::Value>>,
    pub(crate) on_return: Option<Spanned<toml::Value>>,
}

impl NamedSignal {
    /// True if it gives the value of this object of a SubDevice.
    pub(crate) fn gives(&self, sub_device: &str, (index, sub_index): (u16, u8)) -> bool {
        let names = |it: &SignalEntry| (it.index, it.sub_index) == (index, sub_index);
        let is_here = self.sub_device.get_ref() == sub_device;
        is_here && self.initial.is_some() && self.entry.as_ref().is_some_and(|it| names(it.get_ref()))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignalEntry {
    pub(crate) index: u16,
    #[serde(default)]
    pub(crate) sub_index: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SignalWriter {
    Controller,
    Outside,
    Cycle,
}

/// Lowest and highest value of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub(crate) struct Range(#[serde(deserialize_with = "two")] pub(crate) (f64, f64));

/// Factor of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub(crate) struct Scale(#[serde(deserialize_with = "factor")] pub(crate) f64);

/// Value of a signal at entry 0.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub(crate) struct Offset(#[serde(deserialize_with = "finite")] pub(crate) f64);

/// `[[sensor]]`: signals that together are a measurement others know.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sensor {
    /// Name; unique, and valid in ROS.
    #[serde(deserialize_with = "token")]
    pub name: String,
    /// Measurement.
    pub kind: SensorKind,
    /// Frame its values are in; by default its own.
    #[serde(default)]
    pub frame: String,
    pub(crate) force: Option<String>,
    pub(crate) torque: Option<String>,
    pub(crate) acceleration: Option<String>,
    pub(crate) angular_velocity: Option<String>,
    pub(crate) orientation: Option<String>,
    pub(crate) temperature: Option<String>,
    /// Names of its signals, in the order of its kind.
    #[serde(skip)]
    pub signals: Vec<String>,
}

fn token<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    let is_token = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !name.contains("__");
    is_token.then_some(()).ok_or_else(|| {
        let expected = "letters, digits and single underscores, a letter first: a name that ROS takes";
        crate::error::refused(format_args!("the sensor \"{name}\""), expected, "rename it")
    })?;
    Ok(name)
}
