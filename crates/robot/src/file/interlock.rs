use serde::Deserialize;
use toml::Spanned;
use types::InterlockKind;

/// `[[interlock]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Interlock {
    pub(crate) name: Spanned<String>,
    pub(crate) kind: InterlockKind,
    pub(crate) sub_device: Spanned<String>,
    pub(crate) channel: Spanned<i64>,
    #[serde(default)]
    pub(crate) inverted: bool,
    pub(crate) axes: Option<Vec<Spanned<String>>>,
}
