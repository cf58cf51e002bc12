use serde::Deserialize;
use types::SensorKind;

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
