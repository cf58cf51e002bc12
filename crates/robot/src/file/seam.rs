use serde::Deserialize;
use toml::Spanned;

use super::Length;

/// `[seam]`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Seam {
    pub(crate) name: Option<Spanned<String>>,
    pub(crate) group: Option<Spanned<String>>,
    pub(crate) enable: Option<bool>,
    pub(crate) force: Option<bool>,
    pub(crate) longest_time_to_live: Option<Spanned<Length>>,
    #[serde(default)]
    pub(crate) port: Vec<SeamPort>,
}

/// `[[seam.port]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SeamPort {
    pub(crate) name: Spanned<String>,
    pub(crate) kind: Spanned<SeamPortKind>,
    pub(crate) size: Spanned<i64>,
    pub(crate) depth: Option<Spanned<i64>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SeamPortKind {
    Message,
    Stream,
}
