use serde::Deserialize;
use toml::Spanned;

/// `[[sensor]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sensor {
    pub(crate) name: Spanned<String>,
    pub(crate) kind: SensorKind,
    pub(crate) frame: Option<Spanned<String>>,
    pub(crate) force: Option<Spanned<String>>,
    pub(crate) torque: Option<Spanned<String>>,
    pub(crate) acceleration: Option<Spanned<String>>,
    pub(crate) angular_velocity: Option<Spanned<String>>,
    pub(crate) orientation: Option<Spanned<String>>,
    pub(crate) temperature: Option<Spanned<String>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SensorKind {
    ForceTorque,
    Imu,
    Temperature,
}
