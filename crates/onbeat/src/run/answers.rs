//! Answers of a controller process that the cycle refuses.

use std::sync::Arc;

use ipc::controller::{ControllerCounters, Counters, Wrong};

use crate::Notice;

/// Counts of a controller process, and the reasons of refusals that were reported.
pub(super) struct Answers {
    counters: Arc<Counters>,
    reported: Vec<Wrong>,
}

impl Answers {
    pub(super) const fn new(counters: Arc<Counters>) -> Self {
        Self { counters, reported: Vec::new() }
    }

    /// Report of a refusal for a reason that is new: a process that answers wrong does so in every cycle.
    pub(super) fn look(&mut self) -> Option<Notice> {
        let ControllerCounters { wrong, last_wrong, why_wrong, .. } = self.counters.read();
        let why = u8::try_from(why_wrong).ok().and_then(Wrong::from_code).filter(|_| wrong > 0)?;
        if self.reported.contains(&why) {
            return None;
        }
        self.reported.push(why);
        Some(Notice::WrongAnswer { cycle: last_wrong, why })
    }
}
