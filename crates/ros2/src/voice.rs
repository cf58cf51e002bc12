//! Log on standard error and on /rosout. A peer that sends nonsense a thousand times a second must not fill
//! either, so each kind of message is logged at most once in two seconds, with the number of those left
//! out.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Display;
use std::time::{Duration, Instant};

use crate::clock::{WallClock, monotonic_ns};
use crate::dds::Writer;
use crate::messages::parameter::Log;

/// Log with a rate limit.
pub(crate) struct Voice {
    quiet: bool,
    node: String,
    rosout: RefCell<Option<Writer>>,
    said: RefCell<HashMap<&'static str, Said>>,
}

#[derive(Clone, Copy)]
struct Said {
    at: Instant,
    swallowed: u64,
}

/// Severity, in the numbers of rcl_interfaces/Log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Level {
    Info = 20,
    Warn = 30,
    Error = 40,
}

/// Shortest time between two messages of one kind.
const PAUSE: Duration = Duration::from_secs(2);

impl Voice {
    /// A log; `quiet` keeps information off standard error.
    pub(crate) fn new(quiet: bool, node: String) -> Self {
        Self { quiet, node, rosout: RefCell::new(None), said: RefCell::new(HashMap::new()) }
    }

    /// Logs on /rosout, too, from now on.
    pub(crate) fn on_rosout(&self, writer: Option<Writer>) {
        *self.rosout.borrow_mut() = writer;
    }

    /// Logs information; `kind` distinguishes the messages for the rate limit.
    pub(crate) fn info(&self, kind: &'static str, text: impl Display) {
        self.say(Level::Info, kind, &text);
    }

    /// Logs a refusal.
    pub(crate) fn warn(&self, kind: &'static str, text: impl Display) {
        self.say(Level::Warn, kind, &text);
    }

    /// Logs a failure.
    pub(crate) fn error(&self, kind: &'static str, text: impl Display) {
        self.say(Level::Error, kind, &text);
    }

    fn say(&self, level: Level, kind: &'static str, text: &dyn Display) {
        let Some(swallowed) = self.due(kind, Instant::now()) else {
            return;
        };
        let text = if swallowed == 0 {
            text.to_string()
        } else {
            format!("{text} (and {swallowed} of {kind} before, for this or another reason)")
        };
        if level != Level::Info || !self.quiet {
            eprintln!("onbeat-ros2: {text}");
        }
        if let Some(rosout) = self.rosout.borrow().as_ref() {
            let stamp = WallClock::now().stamp(monotonic_ns());
            let name = self.node.trim_start_matches('/').replace('/', ".");
            rosout.send(&Log { stamp, level: level as u8, name, msg: text, ..Log::default() });
        }
    }

    /// Number of messages of this kind left out, if the next may be logged.
    fn due(&self, kind: &'static str, now: Instant) -> Option<u64> {
        let mut said = self.said.borrow_mut();
        match said.get_mut(kind) {
            Some(last) if now.duration_since(last.at) < PAUSE => {
                last.swallowed += 1;
                None
            }
            last => {
                let swallowed = last.map_or(0, |last| last.swallowed);
                said.insert(kind, Said { at: now, swallowed: 0 });
                Some(swallowed)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_one_kind_is_one_sentence_and_a_number() {
        let voice = Voice::new(true, "/onbeat".into());
        let start = Instant::now();
        assert_eq!(voice.due("twist", start), Some(0));
        for _ in 0..1000 {
            assert_eq!(voice.due("twist", start + PAUSE / 2), None);
        }
        assert_eq!(voice.due("joints", start), Some(0), "another kind is not held back");
        assert_eq!(voice.due("twist", start + PAUSE), Some(1000));
        assert_eq!(voice.due("twist", start + PAUSE * 2), Some(0));
    }
}
