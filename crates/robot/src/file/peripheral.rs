use std::path::PathBuf;

use serde::Deserialize;
use toml::Spanned;

use super::Length;

/// `[[peripheral]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Peripheral {
    pub(crate) kind: Spanned<PeripheralKind>,
    pub(crate) name: Option<Spanned<String>>,
    pub(crate) port: Option<Spanned<String>>,
    pub(crate) period: Option<Spanned<Length>>,
    pub(crate) priority: Option<Spanned<i64>>,
    pub(crate) cpu: Option<Spanned<i64>>,
    pub(crate) device: Option<Spanned<PathBuf>>,
    pub(crate) baud: Option<Spanned<i64>>,
    pub(crate) watched: Option<Spanned<f64>>,
    pub(crate) trigger: Option<Spanned<i64>>,
    pub(crate) echo: Option<Spanned<i64>>,
    pub(crate) temperature: Option<Spanned<f64>>,
    pub(crate) address: Option<Spanned<i64>>,
    pub(crate) chip: Option<Spanned<LedChip>>,
    pub(crate) leds: Option<Spanned<i64>>,
    pub(crate) brightness: Option<Spanned<i64>>,
    pub(crate) axes: Option<Spanned<[String; 2]>>,
    pub(crate) velocity: Option<Spanned<f64>>,
    pub(crate) acceleration: Option<Spanned<f64>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PeripheralKind {
    Sonar,
    RangeFinder,
    LedStrip,
    Imu,
    Actuators,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LedChip {
    Apa102,
    Ws2812,
}
