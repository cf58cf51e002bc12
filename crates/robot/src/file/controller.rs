use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

/// `[controller]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Controller {
    pub(crate) kind: Spanned<ControllerKind>,
    pub(crate) amplitude: Option<Spanned<f64>>,
    pub(crate) frequency: Option<Spanned<f64>>,
    pub(crate) phase: Option<Spanned<f64>>,
    pub(crate) phase_step: Option<Spanned<f64>>,
    #[serde(default)]
    pub(crate) axis: BTreeMap<Spanned<String>, AxisSwing>,
}

/// `[controller.axis.NAME]`: what one axis does otherwise.
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
}
