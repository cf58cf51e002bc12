use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use toml::Spanned;

/// `[base]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Base {
    pub(crate) kind: Spanned<BaseKind>,
    pub(crate) wheel_diameter: Option<Spanned<f64>>,
    pub(crate) wheel_radius: Option<Spanned<f64>>,
    pub(crate) track: Spanned<f64>,
    pub(crate) wheelbase: Option<Spanned<f64>>,
    pub(crate) roller_angle: Option<Spanned<f64>>,
    pub(crate) left: Option<Spanned<String>>,
    pub(crate) right: Option<Spanned<String>>,
    pub(crate) front_left: Option<Spanned<String>>,
    pub(crate) front_right: Option<Spanned<String>>,
    pub(crate) rear_left: Option<Spanned<String>>,
    pub(crate) rear_right: Option<Spanned<String>>,
    pub(crate) limits: BaseLimits,
    pub(crate) odometry_frame: Option<Spanned<String>>,
    pub(crate) base_frame: Option<Spanned<String>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BaseKind {
    Differential,
    Mecanum,
    Omni,
}

/// `limits` of the base.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BaseLimits {
    pub(crate) velocity: Spanned<f64>,
    pub(crate) acceleration: Spanned<f64>,
    pub(crate) jerk: Option<Spanned<f64>>,
    pub(crate) yaw: Spanned<f64>,
    pub(crate) yaw_acceleration: Spanned<f64>,
    pub(crate) yaw_jerk: Option<Spanned<f64>>,
}

/// `[arm]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arm {
    pub(crate) urdf: PathBuf,
    pub(crate) base: Option<String>,
    pub(crate) tool: Option<String>,
    #[serde(default)]
    pub(crate) joints: BTreeMap<Spanned<String>, Spanned<String>>,
}
