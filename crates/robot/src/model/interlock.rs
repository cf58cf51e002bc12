use serde::Deserialize;
use types::InterlockKind;

use crate::field::readable;

/// `[[interlock]]`
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InterlockKeys {
    #[serde(deserialize_with = "readable")]
    pub(crate) name: String,
    pub(crate) kind: InterlockKind,
    pub(crate) sub_device: String,
    pub(crate) channel: i64,
    #[serde(default)]
    pub(crate) inverted: bool,
    pub(crate) axes: Option<Vec<String>>,
}
