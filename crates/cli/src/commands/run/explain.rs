//! `onbeat run --explain`: why beats were late.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use blame::{Explainer, Explanation, Settings};
use clap::Args;
use machine::cpus::Cpus;
use machine::task;
use robot::Robot;
use runtime::output::OutputThread;

use crate::arguments::time;
use crate::failure::Failure;
use crate::output::LAST_PATIENCE;

/// Where the help lists them.
const EXPLAIN: &str = "Why beats are late";

#[derive(Args, Clone, Debug)]
pub(super) struct Explain {
    /// Name what made beats late, by the kernel's own trace (needs root; counters are told without)
    #[arg(long, help_heading = EXPLAIN)]
    explain: bool,

    /// Also write the worst beats with all that happened around them into this folder, for ui.perfetto.dev
    #[arg(long, help_heading = EXPLAIN, value_name = "DIR", requires = "explain")]
    explain_out: Option<PathBuf>,

    /// Beats later than this are late
    #[arg(long, help_heading = EXPLAIN, value_name = "TIME", value_parser = time, default_value = "50us")]
    late_above: Duration,
}

impl Explain {
    /// Starts to record, if that was asked for: to be done before the cycle starts.
    pub(super) fn start(&self, robot: &Robot) -> Result<Option<Explainer>, Failure> {
        if !self.explain {
            return Ok(None);
        }
        // A folder that cannot be made is told now, not after an hour.
        if let Some(folder) = &self.explain_out {
            fs::create_dir_all(folder).map_err(|error| cannot_write(folder, &error))?;
        }
        let nanos = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Ok(Some(Explainer::start(Settings {
            late_above_ns: nanos(self.late_above),
            period_ns: nanos(robot.cycle.period),
            waits_for_reply: robot.cycle.frame_order == robot::FrameOrder::WaitForReply,
            cpu: robot.cycle.cpu.filter(|&cpu| may_be_bound_to(cpu)),
        })))
    }

    /// Writes the worst beats where they were asked for; says how many and where. A folder that takes nothing any more is
    /// given up.
    pub(super) fn export(&self, explanation: &Explanation) -> Result<Option<String>, Failure> {
        let Some(folder) = &self.explain_out else { return Ok(None) };
        let mut files = Vec::new();
        for explained in &explanation.worst {
            let path = folder.join(format!("cycle-{}.json", explained.late.cycle));
            files.push((path, serde_json::to_string(&blame::perfetto::trace(explained))?));
        }
        let count = files.len();
        let writing = OutputThread::start("explain", move |taken| {
            files.iter().try_for_each(|(path, trace)| {
                fs::write(path, trace).map_err(|error| cannot_write(path, &error))?;
                taken.add(1);
                Ok(())
            })
        })?;
        writing.finish(LAST_PATIENCE).unwrap_or_else(|_| {
            Err(Failure::new(format!(
                "{} takes nothing any more: {} of {count} late beats are in it; write them elsewhere",
                folder.display(),
                writing.taken()
            )))
        })?;
        Ok(Some(format!("{count} late beats are in {}: open them in ui.perfetto.dev", folder.display())))
    }
}

/// Whether the cycle will get the CPU it asks for: otherwise it may run on any, and all are recorded. A thread tries it,
/// so that this one stays where it is.
fn may_be_bound_to(cpu: usize) -> bool {
    let bind = move || task::set_affinity(task::current(), &Cpus::one(cpu)).is_ok();
    thread::spawn(bind).join().unwrap_or(false)
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("{} cannot be written: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_that_the_cycle_cannot_get_is_not_the_one_that_is_recorded() {
        let mine = task::affinity(task::current()).unwrap();
        assert!(mine.last().is_some_and(may_be_bound_to));
        assert!(!may_be_bound_to(4095));
        assert_eq!(task::affinity(task::current()).unwrap(), mine, "this thread stays where it is");
    }
}
