use serde::Deserialize;
use toml::Spanned;

use super::Length;

/// `[ipc]`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ipc {
    pub(crate) name: Option<Spanned<String>>,
    pub(crate) group: Option<Spanned<String>>,
    pub(crate) enable: Option<bool>,
    pub(crate) force: Option<bool>,
    pub(crate) longest_time_to_live: Option<Spanned<Length>>,
    #[serde(default)]
    pub(crate) port: Vec<IpcPort>,
}

/// `[[ipc.port]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct IpcPort {
    pub(crate) name: Spanned<String>,
    pub(crate) kind: Spanned<IpcPortKind>,
    pub(crate) size: Spanned<i64>,
    pub(crate) depth: Option<Spanned<i64>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum IpcPortKind {
    Message,
    Stream,
}
