//! Log on standard error and on /rosout. A peer that sends nonsense a thousand times a second must
//! not fill either, so each kind of message is logged at most once in two seconds, with the number
//! of omitted ones.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt::Display;
use std::time::{Duration, Instant};

use crate::clock::{WallClock, monotonic_ns};
use crate::dds::Writer;
use crate::messages::parameter::{Log, LoggerLevel};
use crate::ros_args::RosArguments;

/// Log with a rate limit.
pub(crate) struct Voice {
    /// Lowest severity that standard error gets; `None` for none at all.
    console: Option<Level>,
    node: String,
    rosout: RefCell<Option<Writer>>,
    /// Lowest severity that is logged, and that at the start.
    level: Cell<u32>,
    default_level: u32,
    said: RefCell<HashMap<&'static str, Said>>,
}

#[derive(Clone, Copy)]
struct Said {
    at: Instant,
    swallowed: u64,
}

/// Severity, in the numbers of rcl_interfaces/Log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
#[repr(u8)]
pub(crate) enum Level {
    Info = 20,
    Warn = 30,
    Error = 40,
}

/// Level at the start, unless the command line has another.
const DEFAULT_LEVEL: u32 = Level::Info as u32;

/// Shortest time between two messages of one kind.
const PAUSE: Duration = Duration::from_secs(2);

impl Voice {
    /// A log of this node; `quiet` keeps information off standard error.
    pub(crate) fn new(quiet: bool, ros: &RosArguments, node: String) -> Self {
        let console = if quiet { Level::Warn } else { Level::Info };
        let default_level = ros.level_of(&logger(&node)).unwrap_or(DEFAULT_LEVEL);
        Self {
            console: ros.console.then_some(console),
            node,
            rosout: RefCell::new(None),
            level: Cell::new(default_level),
            default_level,
            said: RefCell::new(HashMap::new()),
        }
    }

    fn logger(&self) -> String {
        logger(&self.node)
    }

    /// Level of a logger; 0, not set, of all but this one.
    pub(crate) fn level_of(&self, name: String) -> LoggerLevel {
        let level = if name == self.logger() { self.level.get() } else { 0 };
        LoggerLevel { name, level }
    }

    /// Sets the level of this logger: 10 debug, 20 information, 30 warnings, 40 errors, 50 none of
    /// them; 0 the default.
    ///
    /// # Errors
    /// Another logger, or another level.
    pub(crate) fn set_level(&self, asked: &LoggerLevel) -> Result<(), String> {
        let logger = self.logger();
        if asked.name != logger {
            return Err(format!("logger `{}`: there is `{logger}`", asked.name));
        }
        match asked.level {
            0 => self.level.set(self.default_level),
            level @ (10 | 20 | 30 | 40 | 50) => self.level.set(level),
            level => return Err(format!("level {level}: expected 0, 10, 20, 30, 40 or 50")),
        }
        Ok(())
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
        if (level as u32) < self.level.get() {
            return;
        }
        let Some(swallowed) = self.due(kind, Instant::now()) else {
            return;
        };
        let text = if swallowed == 0 {
            text.to_string()
        } else {
            format!("{text} (and {swallowed} of {kind} before, for this or another reason)")
        };
        let text = shown(&text);
        if self.console.is_some_and(|lowest| level >= lowest) {
            eprintln!("onbeat-ros2: {text}");
        }
        if let Some(rosout) = self.rosout.borrow().as_ref() {
            let stamp = WallClock::now().stamp(monotonic_ns());
            let name = self.logger();
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

/// The text in one line that is safe on a terminal: names in it come from any peer on the network.
fn shown(text: &str) -> String {
    let letter = |letter: char| match letter.is_control() {
        true => letter.escape_default().to_string(),
        false => letter.to_string(),
    };
    text.chars().map(letter).collect()
}

/// Name of a node's logger: `/cell/onbeat` logs as `cell.onbeat`.
fn logger(node: &str) -> String {
    node.trim_start_matches('/').replace('/', ".")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn voice(node: &str) -> Voice {
        Voice::new(true, &RosArguments::default(), node.into())
    }

    // feature(ros2): `--ros-args --log-level`: of all loggers, of one, of loggers below a namespace
    #[test]
    fn the_command_line_says_at_which_level_is_logged() {
        let level = |arguments: &[&str], node: &str| {
            let line = ["--ros-args"].iter().chain(arguments).map(Into::into);
            let (_, ros) = RosArguments::take(line).unwrap();
            Voice::new(true, &ros, node.into()).level.get()
        };
        assert_eq!(level(&["--log-level", "WARN"], "/onbeat"), 30);
        assert_eq!(level(&["--log-level", "onbeat:=error", "--log-level", "debug"], "/onbeat"), 40);
        assert_eq!(level(&["--log-level", "cell:=fatal"], "/cell/onbeat"), 50);
        assert_eq!(level(&["--log-level", "cel:=fatal", "--log-level", "rcl:=error"], "/cell/onbeat"), 20);
        assert_eq!(level(&["--log-level", "warn", "--log-level", "info"], "/onbeat"), 20);
    }

    // feature(ros2): `~/get_logger_levels`, `~/set_logger_levels`
    #[test]
    fn the_level_of_only_this_logger_is_reported_and_set() {
        let voice = voice("/cell/onbeat");
        let level = |name: &str, level| LoggerLevel { name: name.into(), level };
        assert_eq!(voice.level_of("cell.onbeat".into()), level("cell.onbeat", 20));
        voice.set_level(&level("cell.onbeat", 40)).unwrap();
        voice.warn("twist", "too low");
        assert_eq!(voice.due("twist", Instant::now()), Some(0), "nothing was said");
        assert_eq!(voice.level_of("cell.onbeat".into()).level, 40);
        assert!(voice.set_level(&level("rcl", 10)).unwrap_err().contains("there is `cell.onbeat`"));
        assert!(voice.set_level(&level("cell.onbeat", 11)).is_err());
        assert_eq!(voice.level_of("rcl".into()).level, 0);
    }

    #[test]
    fn control_characters_in_network_names_are_escaped() {
        assert_eq!(shown("no joint `\u{1b}[2J\n\u{9b}ä`"), "no joint `\\u{1b}[2J\\n\\u{9b}ä`");
    }

    #[test]
    fn a_flood_of_one_kind_is_one_sentence_and_a_number() {
        let voice = voice("/onbeat");
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
