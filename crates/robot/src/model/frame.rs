use serde::Deserialize;
use serde::de::{Deserializer, Error};

use crate::error::{KEY, refused};
use crate::field::Number;

/// `[[frame]]`: a place on the robot with a name, fixed to another.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Frame {
    /// Name; unique.
    #[serde(deserialize_with = "name")]
    pub name: String,
    /// Frame that it is fixed to; the base's frame by default.
    #[serde(default)]
    pub parent: String,
    /// Place in the parent, m: ahead, left, up.
    #[serde(default, deserialize_with = "three")]
    pub xyz: [f64; 3],
    /// Roll, pitch and yaw in the parent, rad: about its x, then its y, then its z, as in a URDF.
    #[serde(default, deserialize_with = "three")]
    pub rpy: [f64; 3],
}

/// A name that ROS 2 takes for a frame: no blanks, no slash before it (REP 105, tf2).
fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    if !name.is_empty() && !name.starts_with('/') && name.chars().all(|c| c.is_ascii_graphic()) {
        return Ok(name);
    }
    let expected = "letters, digits and signs without blanks, no slash first: a name that tf2 takes";
    Err(refused(format_args!("the frame \"{name}\""), expected, "rename it"))
}

fn three<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[f64; 3], D::Error> {
    let numbers = Vec::<f64>::deserialize(deserializer)?;
    let found = numbers.len();
    let numbers: [f64; 3] =
        numbers.try_into().map_err(|_| wrong::<D::Error>(format_args!("{KEY} of {found} numbers")))?;
    match numbers.iter().find(|number| !number.is_finite()) {
        Some(&number) => Err(wrong(format_args!("{KEY} with {}", Number(number)))),
        None => Ok(numbers),
    }
}

fn wrong<E: Error>(found: std::fmt::Arguments<'_>) -> E {
    refused(found, "three finite numbers", format_args!("correct {KEY}"))
}
