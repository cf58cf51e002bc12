//! The run's real-time threads in the diagnostics: the cycle, then the devices' tasks.

use ipc::diagnostics::{DisturbanceCounts, SpreadNs, TaskDiagnostics, Watched};
use machine::task::Counters;
use record::{RunSummary, Statistics};
use rt::task::{LiveReader, Subject};

/// All of them.
pub(super) struct Tasks {
    /// The kernel's number of the cycle's thread; 0 where it is not known.
    cycle: i32,
    beside: Vec<TaskBeside>,
}

/// A real-time task next to the cycle.
pub(super) struct TaskBeside {
    first: TaskDiagnostics,
    live: LiveReader,
    subject: Subject,
}

impl Tasks {
    /// The cycle in this thread of ours, and the other tasks.
    pub(super) fn new(cycle: i32, beside: Vec<TaskBeside>) -> Self {
        Self { cycle, beside }
    }

    /// The tasks other than the cycle, for a watch over their threads.
    pub(super) fn subjects(&self) -> impl Iterator<Item = Subject> + '_ {
        self.beside.iter().map(|task| task.subject.clone())
    }

    /// State of each of them, with what a watch found of each; the cycle as its summary says.
    pub(super) fn diagnostics(&self, summary: &RunSummary, watched: Vec<Watched>) -> Vec<TaskDiagnostics> {
        let cycle = TaskDiagnostics {
            name: "cycle".to_owned(),
            thread: self.cycle,
            period_ns: summary.period_ns(),
            jobs: summary.cycles(),
            actual_period_ns: spread(&summary.actual_period),
            response_ns: spread(&summary.response_time),
            overruns: summary.overruns.count,
            ..TaskDiagnostics::default()
        };
        let mut told: Vec<TaskDiagnostics> =
            std::iter::once(cycle).chain(self.beside.iter().map(TaskBeside::now)).collect();
        let mut watched = watched.into_iter();
        for task in &mut told {
            task.disturbances = counted(task.thread);
            task.watched = watched.next();
        }
        told
    }
}

impl TaskBeside {
    #[cfg(feature = "devices")]
    pub(super) fn new(task: &rt::task::Task) -> Self {
        let first = TaskDiagnostics {
            name: task.name().to_owned(),
            thread: task.tid(),
            period_ns: types::time::nanoseconds(task.period()),
            ..TaskDiagnostics::default()
        };
        Self { first, live: task.live_reader(), subject: task.subject() }
    }

    fn now(&self) -> TaskDiagnostics {
        let live = self.live.read();
        TaskDiagnostics {
            jobs: live.jobs,
            actual_period_ns: live.period.into(),
            response_ns: live.response.into(),
            overruns: live.overruns,
            ..self.first.clone()
        }
    }
}

/// Counts of the kernel for a thread since it started; nothing once it has ended.
fn counted(thread: i32) -> Option<DisturbanceCounts> {
    Counters::read(thread).map(|counted| DisturbanceCounts {
        voluntary_switches: counted.voluntary,
        involuntary_switches: counted.involuntary,
        minor_faults: counted.minor_faults,
        major_faults: counted.major_faults,
    })
}

fn spread(statistics: &Statistics) -> SpreadNs {
    SpreadNs {
        minimum: statistics.minimum().unwrap_or(0),
        mean: statistics.average().unwrap_or(0.0) as u64,
        maximum: statistics.maximum().unwrap_or(0),
    }
}
