use std::collections::BTreeMap;
use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use super::Length;

/// `[controller]`, or several as `[[controller]]`.
#[derive(Debug, Default)]
pub(crate) struct Controllers(pub(crate) Vec<Controller>);

/// `[controller]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Controller {
    pub(crate) name: Option<Spanned<String>>,
    pub(crate) kind: Spanned<ControllerKind>,
    pub(crate) axes: Option<Spanned<Vec<Spanned<String>>>>,
    pub(crate) amplitude: Option<Spanned<f64>>,
    pub(crate) frequency: Option<Spanned<f64>>,
    pub(crate) phase: Option<Spanned<f64>>,
    pub(crate) phase_step: Option<Spanned<f64>>,
    #[serde(default)]
    pub(crate) axis: BTreeMap<Spanned<String>, AxisSwing>,
    pub(crate) path_tolerance: Option<Spanned<f64>>,
    pub(crate) goal_tolerance: Option<Spanned<f64>>,
    pub(crate) goal_time: Option<Spanned<Length>>,
    pub(crate) points: Option<Spanned<i64>>,
    pub(crate) linear_velocity: Option<Spanned<f64>>,
    pub(crate) angular_velocity: Option<Spanned<f64>>,
    pub(crate) deadline: Option<Spanned<Length>>,
    pub(crate) max_late: Option<Spanned<i64>>,
}

/// `[controller.axis.NAME]`: differing values of one axis.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AxisSwing {
    pub(crate) amplitude: Option<Spanned<f64>>,
    pub(crate) frequency: Option<Spanned<f64>>,
    pub(crate) phase: Option<Spanned<f64>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ControllerKind {
    Hold,
    Sinusoid,
    JointTrajectory,
    JointPosition,
    JointVelocity,
    JointEffort,
    DiffDrive,
    OmniDrive,
    Cartesian,
    External,
}

impl<'de> Deserialize<'de> for Controllers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrSeveral;

        impl<'de> Visitor<'de> for OneOrSeveral {
            type Value = Controllers;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("one [controller], or a list of [[controller]]")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Controllers, A::Error> {
                Controller::deserialize(MapAccessDeserializer::new(map)).map(|one| Controllers(vec![one]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Controllers, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(Controllers)
            }
        }

        deserializer.deserialize_any(OneOrSeveral)
    }
}
