//! `onbeat run --explain`: why cycles were late.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use diagnose::Explanation;
use rt::output::OutputThread;

use crate::arguments::time;
use crate::failure::Failure;
use crate::output::LAST_TIMEOUT;

/// Heading the help lists them under.
const EXPLAIN: &str = "Why cycles are late";

#[derive(Args, Clone, Debug)]
pub(super) struct Explain {
    /// Name the causes of late cycles, from kernel traces (needs root; without it only counters)
    #[arg(long, help_heading = EXPLAIN)]
    explain: bool,

    /// Also write traces of the worst cycles into this folder, for ui.perfetto.dev
    #[arg(long, help_heading = EXPLAIN, value_name = "DIR", requires = "explain")]
    explain_out: Option<PathBuf>,

    /// Cycles later than this are late; only with --explain
    #[arg(long, help_heading = EXPLAIN, value_name = "TIME", value_parser = time, default_value = "50us", requires = "explain")]
    late_above: Duration,
}

impl Explain {
    /// Lateness above which cycles are explained, if any are to be.
    pub(super) fn late_above(&self) -> Option<Duration> {
        self.explain.then_some(self.late_above)
    }

    /// Makes the folder: one that cannot be made is an error before the run, not after an hour.
    pub(super) fn make_folder(&self) -> Result<(), Failure> {
        let Some(folder) = &self.explain_out else { return Ok(()) };
        fs::create_dir_all(folder).map_err(|error| cannot_write(folder, &error))
    }

    /// Writes the worst cycles if that was requested; returns how many and where. A folder that can
    /// no longer be written is given up.
    pub(super) fn export(&self, explanation: &Explanation) -> Result<Option<String>, Failure> {
        let Some(folder) = &self.explain_out else { return Ok(None) };
        let mut files = Vec::new();
        for explained in &explanation.worst {
            let path = folder.join(format!("cycle-{}.json", explained.late.cycle));
            files.push((path, serde_json::to_string(&diagnose::perfetto::trace(explained))?));
        }
        let count = files.len();
        let writing = OutputThread::start("explain", move |taken| {
            files.iter().try_for_each(|(path, trace)| {
                fs::write(path, trace).map_err(|error| cannot_write(path, &error))?;
                taken.add(1);
                Ok(())
            })
        })?;
        writing.finish(LAST_TIMEOUT).unwrap_or_else(|_| {
            Err(Failure::new(format!(
                "{} takes nothing any more: {} of {count} late cycles are in it; write them elsewhere",
                folder.display(),
                writing.taken()
            )))
        })?;
        Ok(Some(format!("{count} late cycles are in {}: open them in ui.perfetto.dev", folder.display())))
    }
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("{} cannot be written: {error}", path.display()))
}
