use serde::Deserialize;
use toml::Spanned;
use types::{CyclicMode, OnStale};

use super::Length;

/// `[[axis]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Axis {
    pub(crate) name: Spanned<String>,
    pub(crate) count: Option<Spanned<i64>>,
    pub(crate) first: Option<Spanned<i64>>,
    pub(crate) sub_device: Spanned<String>,
    pub(crate) mode: Spanned<CyclicMode>,
    pub(crate) counts_per_revolution: Spanned<f64>,
    pub(crate) gear_ratio: Option<Spanned<f64>>,
    pub(crate) rated_torque: Spanned<f64>,
    pub(crate) limits: Limits,
    pub(crate) following_error: Option<FollowingError>,
    #[serde(default)]
    pub(crate) on_stale: OnStale,
    pub(crate) homing: Option<Spanned<Homing>>,
    pub(crate) brake: Option<Brake>,
}

/// `limits` of an axis.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Limits {
    pub(crate) position: Option<Spanned<[f64; 2]>>,
    pub(crate) velocity: Spanned<f64>,
    pub(crate) acceleration: Option<Spanned<f64>>,
    pub(crate) jerk: Option<Spanned<f64>>,
    pub(crate) torque: Spanned<f64>,
    pub(crate) maximum_step: Option<Spanned<f64>>,
}

/// `following_error` of an axis.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FollowingError {
    pub(crate) window: Spanned<f64>,
    pub(crate) time: Option<Spanned<Length>>,
}

/// `homing` of an axis.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Homing {
    pub(crate) offset: Option<Spanned<f64>>,
    pub(crate) position: Option<Spanned<f64>>,
    pub(crate) method: Option<Spanned<i64>>,
    pub(crate) switch_velocity: Option<Spanned<f64>>,
    pub(crate) zero_velocity: Option<Spanned<f64>>,
    pub(crate) acceleration: Option<Spanned<f64>>,
    pub(crate) time_out: Option<Spanned<Length>>,
}

/// `brake` of an axis.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Brake {
    pub(crate) release: Spanned<Length>,
    pub(crate) engage: Spanned<Length>,
    pub(crate) output: Option<BrakeOutput>,
}

/// `output` of a brake.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BrakeOutput {
    pub(crate) sub_device: Spanned<String>,
    pub(crate) channel: Spanned<i64>,
}
