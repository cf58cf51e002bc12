//! Checks of the shared-memory interface.

use std::time::Duration;

use toml::Spanned;

use super::{Checked, cycle, number};
use crate::description::{Ipc, IpcPort, IpcPortKind};
use crate::error::Problem;
use crate::file;

pub(super) fn ipc(entry: &file::Ipc, robot: &str) -> Checked<Ipc> {
    let name = match &entry.name {
        Some(name) => file_name(name, "the IPC's name")?,
        None => made_of(robot),
    };
    let group = entry.group.as_ref().map(|group| file_name(group, "the group")).transpose()?;
    let longest_time_to_live = match &entry.longest_time_to_live {
        None => USUAL_TIME_TO_LIVE,
        Some(length) => {
            let range = (Duration::from_millis(1), Duration::from_secs(60));
            let remedy = "a command that holds for long is obeyed for long after its sender died";
            cycle::within("longest_time_to_live", length.get_ref().0, range, length, remedy)?;
            length.get_ref().0
        }
    };
    let mut ports: Vec<IpcPort> = Vec::new();
    for entry in &entry.port {
        let port = port(entry)?;
        if OURS.contains(&port.name.as_str()) || ports.iter().any(|other| other.name == port.name) {
            let found = format!("a second port \"{}\"", port.name);
            return Err(Problem::new(entry.name.span(), found, "every name once", "give it another name"));
        }
        ports.push(port);
    }
    let [enable, force] = [entry.enable, entry.force].map(|it| it.unwrap_or(true));
    Ok(Ipc { name, group, enable, force, longest_time_to_live, ports })
}

fn port(entry: &file::IpcPort) -> Checked<IpcPort> {
    let name = file_name(&entry.name, "the port's name")?;
    let size = number::whole("size", &entry.size, 1..=LARGEST)? as usize;
    let depth = number::optional_whole("depth", entry.depth.as_ref(), 1..=DEEPEST)?;
    let kind = match (entry.kind.get_ref(), depth) {
        (file::IpcPortKind::Message, depth) => {
            IpcPortKind::Message { size, depth: depth.map_or(USUAL_DEPTH, |depth| depth as usize) }
        }
        (file::IpcPortKind::Stream, None) => IpcPortKind::Stream { size },
        (file::IpcPortKind::Stream, Some(_)) => {
            let span = entry.depth.as_ref().map_or(0..0, Spanned::span);
            let found = "a depth for a stream of bytes";
            return Err(Problem::new(span, found, "depth only of messages", "remove it; size is its room"));
        }
    };
    Ok(IpcPort { name, kind })
}

/// Checks a name that is also part of a file's name.
fn file_name(name: &Spanned<String>, what: &str) -> Checked<String> {
    let text = name.get_ref();
    if (1..=64).contains(&text.len()) && text.chars().all(fits) && !text.starts_with(['.', '-']) {
        return Ok(text.clone());
    }
    let expected = "1 to 64 letters, digits, '.', '_' or '-', the first one a letter, digit or '_'";
    Err(Problem::new(name.span(), format!("{what} {text:?}"), expected, "choose another"))
}

/// Robot's name, with other characters replaced.
fn made_of(robot: &str) -> String {
    let letters = robot.chars().map(|letter| if fits(letter) { letter } else { '-' });
    let name: String = letters.skip_while(|letter| matches!(letter, '.' | '-')).take(64).collect();
    if name.is_empty() { "robot".to_owned() } else { name }
}

const fn fits(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-')
}

/// Ports that every interface has.
const OURS: [&str; 2] = ["control", "trajectory"];

const USUAL_TIME_TO_LIVE: Duration = Duration::from_secs(1);

/// Largest message or stream, in bytes, and largest depth of a port, in messages.
const LARGEST: i64 = 1 << 20;
const DEEPEST: i64 = 65_536;
const USUAL_DEPTH: usize = 64;
