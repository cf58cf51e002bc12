use serde::Deserialize;
use toml::Spanned;

/// `[[signal]]`
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Signal {
    pub(crate) name: Spanned<String>,
    pub(crate) sub_device: Spanned<String>,
    pub(crate) entry: Option<Spanned<SignalEntry>>,
    pub(crate) channel: Option<Spanned<i64>>,
    pub(crate) elements: Option<Spanned<toml::Value>>,
    pub(crate) direction: Option<SignalDirection>,
    #[serde(rename = "type")]
    pub(crate) value_type: Option<Spanned<String>>,
    pub(crate) unit: Option<Spanned<String>>,
    pub(crate) scale: Option<Spanned<f64>>,
    pub(crate) offset: Option<Spanned<f64>>,
    pub(crate) range: Option<Spanned<[f64; 2]>>,
    pub(crate) writer: Option<Spanned<SignalWriter>>,
    pub(crate) initial: Option<Spanned<toml::Value>>,
    pub(crate) on_stale: Option<Spanned<toml::Value>>,
    pub(crate) on_stop: Option<Spanned<toml::Value>>,
    pub(crate) on_return: Option<Spanned<toml::Value>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignalEntry {
    pub(crate) index: u16,
    #[serde(default)]
    pub(crate) sub_index: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SignalWriter {
    Controller,
    Outside,
    Cycle,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SignalDirection {
    Input,
    Output,
}
