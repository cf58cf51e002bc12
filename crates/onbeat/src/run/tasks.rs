//! The run's real-time threads, as others are told of them: the cycle, then the devices' tasks.

use control::task::LiveReader;
use diagnose::disturbance::{CycleWatch, Disturbances, Subject};
use ipc::diagnostics::{DisturbanceCounts, SpreadNs, TaskDiagnostics, Watched};
use machine::task::Counters;
use record::{CycleRecord, RunSummary, Statistics};

/// All of them, and the watch over them if there is one.
pub(super) struct Tasks {
    /// The kernel's number of the cycle's thread; 0 where it is not known.
    cycle: i32,
    beside: Vec<TaskBeside>,
    watch: Option<CycleWatch>,
}

/// A real-time task beside the cycle.
pub(super) struct TaskBeside {
    told: TaskDiagnostics,
    live: LiveReader,
    subject: Subject,
}

impl Tasks {
    /// The cycle in this thread of ours, and tasks beside it; `watch` comes to watch these, too.
    pub(super) fn new(cycle: i32, beside: Vec<TaskBeside>, mut watch: Option<CycleWatch>) -> Self {
        if let Some(watch) = &mut watch {
            beside.iter().for_each(|task| watch.add(task.subject.clone()));
        }
        Self { cycle, beside, watch }
    }

    /// Shows the watch a measured cycle.
    pub(super) fn see(&self, record: &CycleRecord) {
        self.watch.iter().for_each(|watch| watch.see(record));
    }

    /// Ends the measurement: the stop follows.
    pub(super) fn close(&self) {
        self.watch.iter().for_each(CycleWatch::close);
    }

    /// Disturbances of each of them, in the order of [`Self::told`]; nothing unless they are watched.
    pub(super) fn found(&self) -> Vec<Disturbances> {
        self.watch.as_ref().map(CycleWatch::read).unwrap_or_default()
    }

    /// State of each of them; the cycle as its summary says.
    pub(super) fn told(&self, summary: &RunSummary) -> Vec<TaskDiagnostics> {
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
        let found = self.found();
        for (place, task) in told.iter_mut().enumerate() {
            task.disturbances = counted(task.thread);
            task.watched = found.get(place).map(watched);
        }
        told
    }
}

impl TaskBeside {
    #[cfg(feature = "devices")]
    pub(super) fn new(task: &control::task::Task) -> Self {
        let told = TaskDiagnostics {
            name: task.name().to_owned(),
            thread: task.tid(),
            period_ns: types::time::nanoseconds(task.period()),
            ..TaskDiagnostics::default()
        };
        Self { told, live: task.live_reader(), subject: task.subject() }
    }

    fn now(&self) -> TaskDiagnostics {
        let live = self.live.read();
        TaskDiagnostics {
            jobs: live.jobs,
            actual_period_ns: live.period.into(),
            response_ns: live.response.into(),
            overruns: live.overruns,
            ..self.told.clone()
        }
    }
}

/// Results of a watch, as others are told of them.
fn watched(found: &Disturbances) -> Watched {
    let counts = found.counts;
    Watched {
        means: found.means.to_string(),
        preemptions: counts.preemptions,
        sleeps: counts.sleeps,
        minor_faults: counts.minor_faults,
        major_faults: counts.major_faults,
        system_calls: counts.system_calls,
        blocking_calls: counts.blocking_calls,
        causes: found.causes.iter().take(MOST_CAUSES).cloned().collect(),
        firsts: found.firsts.iter().map(ToString::to_string).collect(),
        missing: found.missing.clone(),
        lost: found.lost,
    }
}

/// Causes told at most: the document has room for all tasks.
const MOST_CAUSES: usize = 8;

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

#[cfg(test)]
mod tests {
    use diagnose::disturbance::{Counts, Disturbance, First, Frame, Kind, Means};

    use super::*;

    #[test]
    fn what_was_found_stands_in_the_document() {
        let frame = Frame { function: "reads".into(), file: Some("a.rs".into()), line: Some(7) };
        let cause = |count| Disturbance {
            kind: Kind::Task,
            name: format!("thread {count}"),
            count,
            first_period: 1,
            last_period: 2,
        };
        let found = Disturbances {
            name: "sonar".into(),
            tid: 5,
            means: Means::Tracepoints,
            missing: vec![],
            counts: Counts { system_calls: 2, sleeps: 1, blocking_calls: 1, ..Counts::default() },
            causes: (0..20).rev().map(cause).collect(),
            firsts: vec![First {
                kind: Kind::BlockingCall,
                name: "read".into(),
                period: 9,
                at_ns: 1,
                backtrace: vec![frame],
                backtrace_period: Some(11),
            }],
            lost: 0,
        };
        let told = watched(&found);
        assert_eq!((told.system_calls, told.sleeps, told.blocking_calls), (2, 1, 1));
        let first = "blocking system call (read) in period 9, and in period 11 there\n    reads at a.rs:7";
        assert_eq!(told.firsts, [first]);
        assert_eq!(told.means, "tracepoints");
        let counts: Vec<u64> = told.causes.iter().map(|it| it.count).collect();
        assert_eq!(counts, [19, 18, 17, 16, 15, 14, 13, 12], "the most frequent, no more than find room");
        let json = serde_json::to_value(&told.causes[0]).unwrap();
        let expected = r#"{"kind":"task","name":"thread 19","count":19,"first_period":1,"last_period":2}"#;
        assert_eq!(json, serde_json::from_str::<serde_json::Value>(expected).unwrap());
    }
}
