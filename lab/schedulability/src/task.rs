//! Input of the analysis: tasks, and the rules by which they share a processor.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;
use types::{Policy, Protocol};

/// A task that is released again and again. All times are ns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Name; unique in its set.
    pub name: String,
    /// Priority; higher wins, as with `SCHED_FIFO`. A task is taken to run after all others of its
    /// priority.
    pub priority: u32,
    /// Shortest time between two releases; above 0.
    pub period_ns: u64,
    /// Longest execution time of one job, alone on its processor.
    pub wcet_ns: u64,
    /// Deadline, from the release to the latest end; above 0, and may exceed the period.
    pub deadline_ns: u64,
    /// Release jitter: latest time after its grid point at which a job becomes ready.
    pub jitter_ns: u64,
    /// Longest time that lower-priority work may block it, beyond [`Task::sections`].
    pub blocking_ns: u64,
    /// Processor it runs on.
    pub cpu: usize,
    /// True if its jobs can be preempted outside of [`Task::sections`].
    pub preemptive: bool,
    /// Critical sections, one entry for each time a job enters one. They do not nest.
    pub sections: Vec<Section>,
}

impl Task {
    /// A preemptive task on processor 0 with its period as its deadline.
    #[must_use]
    pub fn new(name: impl Into<String>, priority: u32, period_ns: u64, wcet_ns: u64) -> Self {
        Self {
            name: name.into(),
            priority,
            period_ns,
            wcet_ns,
            deadline_ns: period_ns,
            jitter_ns: 0,
            blocking_ns: 0,
            cpu: 0,
            preemptive: true,
            sections: Vec::new(),
        }
    }
}

/// Critical section: a part of a job that holds a lock or the processor. Part of the task's
/// execution time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Lock it holds; `None` for the processor itself: it cannot be preempted.
    pub resource: Option<String>,
    /// Longest duration, ns; at most the task's execution time.
    pub length_ns: u64,
}

/// Tasks, and the rules by which they share processors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskSet {
    /// The tasks, in any order.
    pub tasks: Vec<Task>,
    /// Scheduling policy.
    pub policy: Policy,
    /// Lock protocol.
    pub protocol: Protocol,
}

impl TaskSet {
    /// A set of preemptive tasks under fixed priorities.
    #[must_use]
    pub fn new(tasks: Vec<Task>) -> Self {
        Self { tasks, ..Self::default() }
    }

    /// Checks that the set can be analysed.
    ///
    /// # Errors
    /// The first task that cannot be, with the reason.
    pub fn check(&self) -> Result<(), TaskError> {
        let mut names = BTreeSet::new();
        let mut homes = BTreeMap::new();
        for task in &self.tasks {
            let fail = |why: String| Err(TaskError { task: task.name.clone(), why });
            if !names.insert(&task.name) {
                return fail("another task has the same name".into());
            }
            if task.period_ns == 0 || task.deadline_ns == 0 {
                return fail("found a period or a deadline of 0, expected at least 1ns".into());
            }
            for (what, time) in [
                ("period", task.period_ns),
                ("wcet", task.wcet_ns),
                ("deadline", task.deadline_ns),
                ("jitter", task.jitter_ns),
                ("blocking", task.blocking_ns),
            ] {
                if time > LONGEST_NS {
                    return fail(format!("found a {what} of {time} ns, expected at most {LONGEST_NS} ns"));
                }
            }
            let in_sections =
                task.sections.iter().map(|section| u128::from(section.length_ns)).sum::<u128>();
            if in_sections > u128::from(task.wcet_ns) {
                return fail(format!(
                    "found critical sections of {in_sections} ns, expected at most its wcet, {} ns",
                    task.wcet_ns
                ));
            }
            for resource in task.sections.iter().filter_map(|section| section.resource.as_ref()) {
                if *homes.entry(resource).or_insert(task.cpu) != task.cpu {
                    return fail(format!(
                        "found the resource \"{resource}\" on cpu {} and on others, expected it on one cpu only",
                        task.cpu
                    ));
                }
            }
            if self.policy != Policy::FixedPriority
                && self.protocol != Protocol::Ceiling
                && task.sections.iter().any(|section| section.resource.is_some())
            {
                return fail(
                    "found a lock under earliest deadline first, expected protocol \"ceiling\"".into(),
                );
            }
        }
        Ok(())
    }
}

/// Longest time in a task: about 31 years.
pub const LONGEST_NS: u64 = 1_000_000_000_000_000_000;

/// Reason for which a set cannot be analysed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("task \"{task}\": {why}")]
pub struct TaskError {
    /// Name of the task.
    pub task: String,
    /// Value found and value expected.
    pub why: String,
}
