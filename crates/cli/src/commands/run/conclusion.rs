//! The end of a run: its results in words, printed, with the verdict.

use onbeat::Summary;

use super::Run;
use super::outcome::Outcome;
use super::trouble::Standing;
use crate::failure::Failure;
use crate::output;
use crate::words::live_line::LiveLine;

impl Run {
    /// Prints what came of it.
    pub(super) fn print(&self, finished: Finished, live: &LiveLine) -> Result<(), Failure> {
        let text = if self.json { finished.json + "\n" } else { finished.table };
        let printed = output::print_or_give_up(text);
        finished.notes.iter().for_each(|note| live.say(note));
        Failure::both(finished.verdict, printed)
    }

    /// Puts the results of a run in words. What was measured is shown, even if the bus failed or a file is not whole.
    pub(super) fn conclude(&self, standing: &Standing<'_>, summary: &Summary) -> Result<Finished, Failure> {
        let outcome = Outcome::new(standing, summary);
        let (table, json) = (outcome.table(), outcome.json()?);
        let exported = summary.diagnosis.explanation.as_ref().map(|it| self.explain.export(it));
        let mut written = Written { notes: Vec::new(), verdict: standing.verdict(&summary.findings) };
        written.add(exported.transpose().map(Option::flatten));
        for file in &summary.files {
            written.add(file.as_ref().map(|note| Some(note.clone())).map_err(Failure::new));
        }
        Ok(Finished { table, json, notes: written.notes, verdict: written.verdict })
    }
}

/// A run that came to its end.
pub(super) struct Finished {
    /// For people.
    table: String,
    /// For programs.
    json: String,
    /// Further lines to print: files that were written.
    notes: Vec<String>,
    /// True if it ran as it should.
    verdict: Result<(), Failure>,
}

/// Outcome of files.
pub(super) struct Written {
    notes: Vec<String>,
    verdict: Result<(), Failure>,
}

impl Written {
    /// One more.
    fn add(&mut self, file: Result<Option<String>, Failure>) {
        match file {
            Ok(note) => self.notes.extend(note),
            Err(failure) => {
                let verdict = std::mem::replace(&mut self.verdict, Ok(()));
                self.verdict = Failure::both(verdict, Err(failure));
            }
        }
    }
}
