//! Script of faults: a line each, with its time since the start; checked whole before the first
//! frame.
//!
//! ```text
//! # What the wire does to it.
//! 1.5s  power off drive-3 for 500ms
//! 3s    frames lose 10%
//! 4s    clear
//! ```

use std::fmt;
use std::path::Path;
use std::time::Duration;

use robot::FileError;
use thiserror::Error;
use types::duration;

use super::grammar::{FaultError, Words};
use super::{Targets, Timed};

/// Faults with their times since the start, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    pub(super) steps: Vec<(Duration, Timed)>,
}

/// Everything that is wrong with a script, at least one error; errors beyond the first
/// [`MOST_SHOWN`] are counted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub struct ScriptErrors {
    /// In the order of lines, each with its file and line.
    pub errors: Vec<FileError>,
}

impl fmt::Display for ScriptErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: Vec<String> = self.errors.iter().take(MOST_SHOWN).map(FileError::to_string).collect();
        f.write_str(&shown.join("\n"))?;
        match self.errors.len().saturating_sub(MOST_SHOWN) {
            0 => Ok(()),
            more => write!(f, "\n{more} more errors"),
        }
    }
}

/// Errors shown of one script.
pub const MOST_SHOWN: usize = 20;

impl Script {
    /// Reads and checks the script at `path`.
    ///
    /// # Errors
    /// It cannot be read, or lines of it are wrong: all of them.
    pub fn read(path: &Path, targets: &Targets) -> Result<Self, ScriptErrors> {
        let text = robot::read_text(path, "a script of faults");
        let text = text.map_err(|error| ScriptErrors { errors: vec![error] })?;
        Self::parse(&text, &path.display().to_string(), targets)
    }

    /// Checks the script `text`, which errors name `file`.
    ///
    /// # Errors
    /// All lines that are wrong.
    pub fn parse(text: &str, file: &str, targets: &Targets) -> Result<Self, ScriptErrors> {
        let (mut steps, mut errors) = (Vec::<(Duration, Timed)>::new(), Vec::new());
        let mut latest = (Duration::ZERO, 0);
        for (line, content) in (1..).zip(text.lines()) {
            let Some(Scripted { at, fault }) = scripted(content, targets) else { continue };
            match at {
                Some(at) if at < latest.0 => errors.push(goes_back(content, at, latest).at(file, line)),
                Some(at) => latest = (at, line),
                None => {}
            }
            match fault {
                Ok(timed) => steps.extend(at.map(|at| (at, timed))),
                Err(error) => errors.push(error.at(file, line)),
            }
        }
        if errors.is_empty() { Ok(Self { steps }) } else { Err(ScriptErrors { errors }) }
    }

    /// Number of its faults.
    #[must_use]
    pub fn count(&self) -> usize {
        self.steps.len()
    }

    /// Time of its last fault, or of the last end of one.
    #[must_use]
    pub fn length(&self) -> Duration {
        let ends =
            self.steps.iter().map(|(at, timed)| at.saturating_add(timed.lasting.unwrap_or_default()));
        ends.max().unwrap_or_default()
    }
}

/// Line of a script that is not empty.
#[derive(Debug)]
struct Scripted {
    /// Time since the start, where it can be read.
    at: Option<Duration>,
    fault: Result<Timed, FaultError>,
}

/// Reads a line of a script: a time since the start, and a fault. `None` for an empty line.
fn scripted(line: &str, targets: &Targets) -> Option<Scripted> {
    let line = line.split_once('#').map_or(line, |(before, _)| before);
    if line.trim().is_empty() {
        return None;
    }
    let mut words = Words::of(line, targets);
    let at = words.time("a time since the start");
    let fault = at.clone().and_then(|_| {
        let timed = words.timed()?;
        words.end().map(|()| timed)
    });
    Some(Scripted { at: at.ok(), fault })
}

impl FaultError {
    fn at(self, file: &str, line: usize) -> FileError {
        let Self { column, found, expected, remedy } = self;
        FileError { file: file.to_owned(), place: Some((line, column)), found, expected, remedy }
    }
}

fn goes_back(content: &str, at: Duration, (latest, line): (Duration, usize)) -> FaultError {
    let column = content.chars().take_while(|letter| letter.is_whitespace()).count() + 1;
    FaultError {
        column,
        found: format!("the time goes back to {}", duration::format(at)),
        expected: format!("at least {}, the time of line {line}", duration::format(latest)),
        remedy: "put the lines in the order of their times".to_owned(),
    }
}
