//! Script of faults: a line each, with its time since the start; checked whole before the first
//! frame.
//!
//! ```text
//! # What the wire does to it.
//! 1.5s  power off drive-3 for 500ms
//! 3s    frames lose 10%
//! 4s    clear
//! ```

use std::time::Duration;

use types::duration;

use super::line::{FaultError, Words};
use super::{Targets, Timed};

/// Faults with their times since the start, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    steps: Vec<(Duration, Timed)>,
}

impl Script {
    /// Checks the script `text`.
    ///
    /// # Errors
    /// All lines that are wrong, with their numbers from 1.
    pub fn parse(text: &str, targets: &Targets) -> Result<Self, Vec<(usize, FaultError)>> {
        let (mut steps, mut errors) = (Vec::<(Duration, Timed)>::new(), Vec::new());
        let mut latest = (Duration::ZERO, 0);
        for (line, content) in (1..).zip(text.lines()) {
            let Some(Scripted { at, fault }) = scripted(content, targets) else { continue };
            match at {
                Some(at) if at < latest.0 => errors.push((line, goes_back(content, at, latest))),
                Some(at) => latest = (at, line),
                None => {}
            }
            match fault {
                Ok(timed) => steps.extend(at.map(|at| (at, timed))),
                Err(error) => errors.push((line, error)),
            }
        }
        if errors.is_empty() { Ok(Self { steps }) } else { Err(errors) }
    }

    /// Its faults.
    #[must_use]
    pub fn steps(&self) -> &[(Duration, Timed)] {
        &self.steps
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

fn goes_back(content: &str, at: Duration, (latest, line): (Duration, usize)) -> FaultError {
    let column = content.chars().take_while(|letter| letter.is_whitespace()).count() + 1;
    FaultError {
        column,
        found: format!("the time goes back to {}", duration::format(at)),
        expected: format!("at least {}, the time of line {line}", duration::format(latest)),
        remedy: "put the lines in the order of their times".to_owned(),
    }
}
