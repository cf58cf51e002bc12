//! The end of a run: its results in words, printed, with the verdict.

use control::cycle::{HostStalls, USUAL_WATCHDOG};
use control::verdict::COULD_NOT_RUN;
use onbeat::compose::link::SimulatedTime;
use onbeat::{Error, FailedStart, Summary};

use super::Run;
use super::headline::Headline;
use super::outcome::{Outcome, wrapped};
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

    /// Puts the results of a run in words. What was measured is shown, even if the bus failed or a
    /// file is not whole.
    pub(super) fn conclude(&self, standing: &Standing<'_>, summary: &Summary) -> Result<Finished, Failure> {
        let outcome = Outcome::new(standing, summary);
        let has_timing = self.time != Some(SimulatedTime::Fast);
        let exported = summary.diagnosis.explanation.as_ref().map(|it| self.explain.export(it));
        let failed_files = usize::from(exported.as_ref().is_some_and(Result::is_err));
        let headline = Headline { robot: standing.robot, summary, has_timing, failed_files }.to_string();
        let table = format!("{}\n{}", wrapped(&headline, ""), outcome.table());
        let json = outcome.json()?;
        let stalls = summary.host_stalls.filter(|_| self.json).and_then(late_cycles);
        let verdict = standing.verdict(&summary.findings);
        let mut written = Written { notes: stalls.into_iter().collect(), verdict };
        written.add(exported.transpose().map(Option::flatten));
        written.add_files(&summary.files);
        Ok(Finished { table, json, notes: written.notes, verdict: written.verdict })
    }
}

/// The failure of a bus that did not reach Op, and of files that are not whole.
pub(super) fn without_op(standing: &Standing<'_>, failed: &FailedStart, live: &LiveLine) -> Failure {
    let mut written = Written { notes: Vec::new(), verdict: standing.verdict(&failed.findings) };
    written.add_files(&failed.files);
    written.notes.iter().for_each(|note| live.say(note));
    written.verdict.err().unwrap_or_else(|| Failure::silent(COULD_NOT_RUN))
}

/// A sentence on cycles that the host ran late, where the bus waited for them: the headline has
/// the same for people.
fn late_cycles(stalls: HostStalls) -> Option<String> {
    let HostStalls { count, longest, beyond_watchdog } = stalls;
    let plural = |number| if number == 1 { "" } else { "s" };
    (count > 0).then(|| {
        format!(
            "{count} late cycle{}, longest {:.1} ms; on a wire, a drive with a watchdog of {} ms would have stopped \
             {beyond_watchdog} time{}",
            plural(count),
            longest.as_secs_f64() * 1e3,
            USUAL_WATCHDOG.as_millis(),
            plural(beyond_watchdog)
        )
    })
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
    /// The recording and the capture of a run.
    fn add_files(&mut self, files: &[Result<String, Error>]) {
        for file in files {
            self.add(file.as_ref().map(|note| Some(note.clone())).map_err(Failure::new));
        }
    }

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
