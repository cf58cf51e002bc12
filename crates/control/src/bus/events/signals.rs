//! Events of forced signals, in words.

use std::time::Duration;

use ipc::bus::Happening as Reported;
use ipc::bus::Severity::{Ok as Good, Warning};
use ipc::force::Client;
use types::number::Rounded;
use types::signal::Value;
use types::time::span;

use super::Described;
use super::requests::client;
use crate::bus::names::{MOST_NAMED, PartNames};
use crate::observer::{CycleEvent, Happening};
use crate::signal::{ForceEvent, ReleaseReason};

/// A signal is forced, or no longer; nor are the signals of `others`.
pub(super) fn described(event: &ForceEvent, others: &[CycleEvent], names: &PartNames) -> Described {
    match *event {
        ForceEvent::Forced { ref signal, value, time, by } => forced(signal, value, time, by),
        ForceEvent::Released { ref signal, value, reason, after } => {
            released((signal, value), reason, after, others, names)
        }
    }
}

/// A signal is forced by a client.
fn forced(signal: &str, value: Value, time: Duration, by: Client) -> Described {
    let Client { user, process } = by;
    let for_ns = types::time::nanoseconds(time);
    let what = Reported::SignalForced { signal: signal.to_string(), value, for_ns, user, process };
    let forced = shown(value);
    let sentence =
        format!("signal \"{signal}\" is forced to {forced} for {}, by {}", span(time), client(by));
    (what, Warning, sentence)
}

fn shown(value: Value) -> String {
    match value {
        Value::Real(value) => Rounded(value).to_string(),
        value => value.to_string(),
    }
}

/// A signal is no longer forced and has this value, nor are the signals of `others`.
fn released(
    (signal, value): (&str, Value),
    reason: ReleaseReason,
    after: u64,
    others: &[CycleEvent],
    names: &PartNames,
) -> Described {
    let by = match reason {
        ReleaseReason::Request(by) => Some(by),
        _ => None,
    };
    let (signals, are) = signals_are((signal, value), others);
    let lasted = if others.is_empty() { format!(" after {}", names.cycles(after)) } else { String::new() };
    let why =
        by.map_or_else(|| reason.words().to_owned(), |by| format!("{} by {}", reason.words(), client(by)));
    let what = Reported::SignalReleased {
        signal: signal.to_string(),
        value: Some(value),
        reason: reason.words().to_owned(),
        after,
        user: by.map(|by| by.user),
        process: by.map(|by| by.process),
    };
    (what, Good, format!("{signals} {are} no longer forced{lasted}: {why}"))
}

/// The released signal, and the signals of similar events, each with its value now.
fn signals_are(first: (&str, Value), others: &[CycleEvent]) -> (String, &'static str) {
    let further = others.iter().filter_map(|other| match &other.what {
        Happening::Force(ForceEvent::Released { signal, value, .. }) => Some((&**signal, *value)),
        _ => None,
    });
    let named = |(name, value): (&str, Value)| format!("\"{name}\" (now {})", shown(value));
    match others.len() {
        0 => (format!("signal {}", named(first)), "is"),
        more if more >= MOST_NAMED => (format!("{} signals, the first {},", more + 1, named(first)), "are"),
        _ => {
            let all: Vec<String> = [first].into_iter().chain(further).map(named).collect();
            (format!("signals {}", all.join(", ")), "are")
        }
    }
}
