//! History of a robot over its runs: explanations of stops, and the commands of clients.

use std::collections::VecDeque;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::folder::{Folder, LARGEST, StateError};

/// An event that is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Kept {
    /// Time, in milliseconds since 1970 (UTC).
    pub unix_ms: u64,
    /// Kind.
    pub event: KeptKind,
    /// The event as a sentence.
    pub sentence: String,
    /// User of a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<u32>,
    /// Process of a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
}

/// Kind of an event that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum KeptKind {
    /// A run began.
    RunBegan,
    /// The robot file is another one than in the run before.
    FileChanged,
    /// The run before did not end: it was killed, or the computer lost power.
    NotEnded,
    /// First cause of a stop.
    Stop,
    /// A request to reset faults, or to enable.
    Request,
    /// A signal was forced.
    Forced,
    /// A position was accepted or set.
    PositionGiven,
    /// Faults were reset at the start (`reset_faults`).
    FaultsReset,
    /// A run ended.
    RunEnded,
}

impl Kept {
    /// An event of this moment.
    #[must_use]
    pub fn now(event: KeptKind, sentence: impl Into<String>) -> Self {
        let mut sentence = sentence.into();
        let end = (0..=LONGEST.min(sentence.len())).rfind(|&end| sentence.is_char_boundary(end));
        sentence.truncate(end.unwrap_or(0));
        Self { unix_ms: unix_ms(), event, sentence, user: None, process: None }
    }

    /// The same of a client.
    #[must_use]
    pub fn by(self, user: u32, process: u32) -> Self {
        Self { user: Some(user), process: Some(process), ..self }
    }
}

/// Milliseconds since 1970 (UTC).
pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The events that are kept, the oldest first.
#[derive(Debug, Default)]
pub struct History {
    events: VecDeque<Kept>,
}

impl History {
    /// Reads the history in a folder; a new one where there is none.
    ///
    /// # Errors
    /// A file that cannot be read: it is replaced with the next event.
    pub fn read(folder: &Folder) -> Result<Self, StateError> {
        let text = folder.read_text(FILE)?.unwrap_or_default();
        let events: Result<VecDeque<Kept>, _> = text.lines().map(serde_json::from_str).collect();
        let mut history = Self {
            events: events.map_err(|error| StateError::Other {
                path: folder.path().join(FILE),
                found: format!("other content ({error})"),
                expected: "events that Onbeat has written",
            })?,
        };
        history.limit();
        Ok(history)
    }

    /// The events, the oldest first.
    pub fn events(&self) -> impl DoubleEndedIterator<Item = &Kept> {
        self.events.iter()
    }

    /// Adds events, and writes all of them.
    ///
    /// # Errors
    /// The file is the one of before.
    pub(crate) fn add(
        &mut self,
        folder: &Folder,
        events: impl IntoIterator<Item = Kept>,
    ) -> Result<(), StateError> {
        self.events.extend(events);
        self.limit();
        let mut text = self.text();
        while text.len() > LARGEST && self.events.pop_front().is_some() {
            text = self.text();
        }
        folder.write_text(FILE, &text)
    }

    fn limit(&mut self) {
        let above = self.events.len().saturating_sub(MOST);
        self.events.drain(..above);
    }

    fn text(&self) -> String {
        let lines = self.events.iter().filter_map(|it| serde_json::to_string(it).ok());
        lines.map(|line| line + "\n").collect()
    }
}

const FILE: &str = "history.jsonl";

/// Events that are kept.
const MOST: usize = 200;

/// Longest sentence, bytes.
const LONGEST: usize = 600;
