use std::time::Duration;

use serde::Deserialize;
use serde::de::Deserializer;
use types::PortKind;

use super::usual;
use crate::error::refused;
use crate::field::{time_within, whole};

/// `[ipc]`: name, access and ports of the shared-memory interface.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ipc {
    /// Name of the interface; the robot's name by default.
    #[serde(deserialize_with = "ipcs_name")]
    pub name: String,
    /// Group with members that may attach in addition to the user that runs the cycle.
    #[serde(deserialize_with = "group")]
    pub group: Option<String>,
    /// True if the drives are enabled at the start; otherwise on request.
    pub enable: bool,
    /// True if signals may be forced.
    pub force: bool,
    /// Longest time to live of a command.
    #[serde(deserialize_with = "time_to_live")]
    pub longest_time_to_live: Duration,
    /// Ports in addition to `control` and `trajectory`.
    #[serde(rename = "port")]
    pub ports: Vec<IpcPort>,
}

impl Default for Ipc {
    fn default() -> Self {
        Self {
            name: String::new(),
            group: None,
            enable: true,
            force: true,
            longest_time_to_live: Duration::from_secs(1),
            ports: Vec::new(),
        }
    }
}

/// `[[ipc.port]]`: a port of a datagram channel.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IpcPort {
    /// Name; unique.
    #[serde(deserialize_with = "ports_name")]
    pub name: String,
    /// Kind.
    pub kind: PortKind,
    /// Bytes of the longest message, or of the buffer of a stream each way.
    #[serde(deserialize_with = "whole::<_, _, 1, 1_048_576>")]
    pub size: usize,
    /// Depth of the queue each way, in messages.
    #[serde(default = "usual_depth", deserialize_with = "whole::<_, _, 1, 65_536>")]
    pub depth: usize,
}

usual! {
    usual_depth: usize = 64;
}

fn time_to_live<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let range = Duration::from_millis(1)..=Duration::from_secs(60);
    let remedy = "the axes follow a command for this long after its sender has ended";
    time_within(deserializer, range, remedy)
}

fn ipcs_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    file_name(deserializer, "the IPC's name")
}

fn ports_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    file_name(deserializer, "the port's name")
}

fn group<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    file_name(deserializer, "the group").map(Some)
}

/// A name that is also part of a file's name.
fn file_name<'de, D: Deserializer<'de>>(deserializer: D, what: &str) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if (1..=64).contains(&text.len()) && text.chars().all(fits) && !text.starts_with(['.', '-']) {
        return Ok(text);
    }
    let expected = "1 to 64 letters, digits, '.', '_' or '-', the first one a letter, digit or '_'";
    Err(refused(format_args!("{what} {text:?}"), expected, "choose another"))
}

/// Robot's name, with other characters replaced.
pub(crate) fn made_of(robot: &str) -> String {
    let letters = robot.chars().map(|letter| if fits(letter) { letter } else { '-' });
    let name: String = letters.skip_while(|letter| matches!(letter, '.' | '-')).take(64).collect();
    if name.is_empty() { "robot".to_owned() } else { name }
}

const fn fits(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-')
}
