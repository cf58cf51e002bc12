//! The run's real-time threads, as others are told of them: the cycle, then the devices' tasks.

use std::fmt::Write as _;

use bridge::diagnostics::{DisturbanceCounts, SpreadNs, TaskDiagnostics, Watched};
use machine::task::Counters;
use runtime::disturbance::{CycleWatch, Disturbances, Subject};
use runtime::task::{LiveReader, Task};
use timing::{CycleRecord, RunSummary, Statistics};

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

    /// Shows the watch a measured beat.
    pub(super) fn see(&self, record: &CycleRecord) {
        self.watch.iter().for_each(|watch| watch.see(record));
    }

    /// What follows is the stop.
    pub(super) fn close(&self) {
        self.watch.iter().for_each(CycleWatch::close);
    }

    /// What disturbed each of them, in the order of [`Self::told`]; nothing unless they are watched.
    pub(super) fn found(&self) -> Vec<Disturbances> {
        self.watch.as_ref().map(CycleWatch::read).unwrap_or_default()
    }

    /// How each of them stands; the cycle as its summary says.
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
            task.watched = found.get(place).map(Watched::from);
        }
        told
    }
}

impl TaskBeside {
    pub(super) fn new(task: &Task) -> Self {
        let told = TaskDiagnostics {
            name: task.name().to_owned(),
            thread: task.tid(),
            period_ns: u64::try_from(task.period().as_nanos()).unwrap_or(u64::MAX),
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

/// What the kernel has counted of a thread since it started; nothing once it has ended.
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

/// What the watch counted of each task, a line each; nothing where nobody watched.
pub(super) fn table(tasks: &[TaskDiagnostics]) -> String {
    let watched: Vec<(&str, &Watched)> =
        tasks.iter().filter_map(|task| Some((task.name.as_str(), task.watched.as_ref()?))).collect();
    if watched.is_empty() {
        return String::new();
    }
    let width = watched.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).max(4);
    let mut text = format!(
        "\n{:<width$}{:>13}{:>8}{:>14}{:>14}{:>14}{:>10}\n",
        "task", "preemptions", "sleeps", "minor faults", "major faults", "system calls", "blocking"
    );
    for (name, it) in watched {
        // What the means cannot see is not zero.
        let calls = |count: u64| if it.means == "tracepoints" { count.to_string() } else { "-".to_owned() };
        let _ = writeln!(
            text,
            "{name:<width$}{:>13}{:>8}{:>14}{:>14}{:>14}{:>10}",
            it.preemptions,
            it.sleeps,
            it.minor_faults,
            it.major_faults,
            calls(it.system_calls),
            calls(it.blocking_calls),
        );
    }
    text
}

/// What disturbed one of them, in words.
pub(super) fn in_words(found: &Disturbances) -> String {
    let (whom, period) = match found.name.as_str() {
        "cycle" => ("the cycle's thread".to_owned(), "beat"),
        name => (format!("task {name}"), "period"),
    };
    let mut words = match found.is_calm() {
        true => format!("nothing disturbed {whom}"),
        false => format!("disturbances of {whom}:"),
    };
    for it in &found.culprits {
        let periods = match it.first_period == it.last_period {
            true => format!("in {period} {}", it.first_period),
            false => format!("in {period}s {} to {}", it.first_period, it.last_period),
        };
        words += &format!("\n  {} x {} ({}) {periods}", it.count, it.kind, it.name);
    }
    for first in found.firsts.iter().filter(|first| !first.backtrace.is_empty()) {
        words += &format!("\n  the first {first}");
    }
    if found.lost > 0 {
        words += &format!("\n  {} more events were lost", found.lost);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_line_for_each_watched_task_and_no_number_where_nothing_can_be_seen() {
        let task = |name: &str, means: &str| TaskDiagnostics {
            name: name.to_owned(),
            watched: Some(Watched {
                means: means.to_owned(),
                preemptions: 7,
                blocking_calls: 5,
                ..Watched::default()
            }),
            ..TaskDiagnostics::default()
        };
        let unwatched = TaskDiagnostics { name: "led_strip".to_owned(), ..TaskDiagnostics::default() };
        assert_eq!(table(std::slice::from_ref(&unwatched)), "");
        let text = table(&[task("cycle", "tracepoints"), unwatched, task("imu", "counters")]);
        let lines: Vec<Vec<&str>> =
            text.lines().skip(2).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines, [["cycle", "7", "0", "0", "0", "0", "5"], ["imu", "7", "0", "0", "0", "-", "-"]]);
    }
}
