//! Causes of missed deadlines, and changes that would meet them.

use crate::Policy;
use crate::assignment::{audsley, deadline_monotonic};
use crate::deadlines::meets_deadlines;
use crate::earliest_deadline::Feasibility;
use crate::effort::Effort;
use crate::fixed_priority::{ResponseTime, late_window};
use crate::sensitivity::largest_wcet;
use crate::task::TaskSet;
use crate::verdict::Analysis;

/// A task that is not proven to meet its deadline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miss {
    /// Index of the task in its set.
    pub place: usize,
    /// Largest lateness, ns; `None` without a bound on the response.
    pub late_ns: Option<u64>,
    /// Parts of its response, the largest first. Empty where no late job was found to take apart.
    pub parts: Vec<(Part, u64)>,
}

/// A part of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Its own execution, including earlier jobs of it that still ran at its release.
    Own,
    /// Its release jitter.
    Jitter,
    /// Work of lower priority that holds a lock or the processor.
    Blocking,
    /// Jobs of another task.
    Task {
        /// Index of that task.
        place: usize,
        /// Number of its jobs.
        jobs: u64,
    },
}

/// A change after which all tasks of a processor meet their deadlines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// New priorities, one for each task of the set in its order.
    Priorities(Vec<u32>),
    /// A shorter execution time.
    Wcet {
        /// Index of the task.
        place: usize,
        /// Largest sufficient execution time, ns.
        wcet_ns: u64,
    },
    /// Less release jitter.
    Jitter {
        /// Index of the task.
        place: usize,
        /// Largest sufficient jitter, ns.
        jitter_ns: u64,
    },
    /// A later deadline.
    Deadline {
        /// Index of the task.
        place: usize,
        /// Earliest sufficient deadline, ns.
        deadline_ns: u64,
    },
}

/// Tasks of a processor that are not proven to meet their deadlines.
#[must_use]
pub fn misses(set: &TaskSet, found: &Analysis, cpu: usize) -> Vec<Miss> {
    let effort = Effort::new(STEPS);
    let here = set.tasks.iter().zip(&found.tasks).enumerate().filter(|(_, (task, _))| task.cpu == cpu);
    here.filter(|(_, (_, verdict))| !verdict.schedulable)
        .map(|(place, (task, verdict))| {
            let late_ns = verdict.response.ns().map(|response| response.saturating_sub(task.deadline_ns));
            let looked_at =
                set.policy == Policy::FixedPriority && verdict.response != ResponseTime::Unbounded;
            let parts = if looked_at { parts(set, place, &effort) } else { Vec::new() };
            Miss { place, late_ns: late_ns.filter(|&late| late > 0), parts }
        })
        .collect()
}

/// Changes that each suffice alone, the smallest first: priorities cost nothing, then the shortest
/// cut of an execution time, then less jitter, then a later deadline. Empty if none of these
/// suffices.
#[must_use]
pub fn changes(set: &TaskSet, found: &Analysis, cpu: usize) -> Vec<Change> {
    let effort = Effort::new(STEPS);
    let mut changes = Vec::new();
    if set.policy == Policy::FixedPriority {
        changes.extend(better_priorities(set, cpu, &effort).map(Change::Priorities));
    }
    let here = || set.tasks.iter().enumerate().filter(|(_, task)| task.cpu == cpu);
    let shorter = here().filter_map(|(place, task)| {
        let wcet_ns = largest_wcet(set, place, &effort).ok()?;
        (0 < wcet_ns && wcet_ns < task.wcet_ns)
            .then_some((task.wcet_ns - wcet_ns, Change::Wcet { place, wcet_ns }))
    });
    let mut shorter: Vec<_> = shorter.collect();
    shorter.sort_by_key(|&(less, _)| less);
    changes.extend(shorter.into_iter().map(|(_, change)| change));
    let mut late = here().filter(|&(place, _)| !found.tasks[place].schedulable);
    if let (Some((place, task)), None) = (late.next(), late.next()) {
        let response = found.tasks[place].response.ns().filter(|&ns| ns > task.deadline_ns);
        let jitter_ns = response.and_then(|ns| task.jitter_ns.checked_sub(ns - task.deadline_ns));
        let jitter = jitter_ns.map(|jitter_ns| Change::Jitter { place, jitter_ns });
        let deadline = response.map(|deadline_ns| Change::Deadline { place, deadline_ns });
        let helps = |change: &Change| {
            let mut changed = set.clone();
            match *change {
                Change::Jitter { place, jitter_ns } => changed.tasks[place].jitter_ns = jitter_ns,
                Change::Deadline { place, deadline_ns } => changed.tasks[place].deadline_ns = deadline_ns,
                Change::Priorities(_) | Change::Wcet { .. } => {}
            }
            meets_deadlines(&changed, cpu, &effort)
        };
        changes.extend([jitter, deadline].into_iter().flatten().filter(helps));
    }
    changes
}

/// Interval that is too short under earliest deadline first: its length and the demand in it, both
/// ns.
#[must_use]
pub fn overfull_interval(found: &Analysis, cpu: usize) -> Option<(u64, u64)> {
    let processor = found.processors.iter().find(|processor| processor.cpu == cpu)?;
    match processor.feasibility {
        Some(Feasibility::Misses { interval_ns, demand_ns }) => Some((interval_ns, demand_ns)),
        _ => None,
    }
}

fn better_priorities(set: &TaskSet, cpu: usize, effort: &Effort) -> Option<Vec<u32>> {
    let mut here = TaskSet { tasks: Vec::new(), ..*set };
    here.tasks = set.tasks.iter().filter(|task| task.cpu == cpu).cloned().collect();
    let mut better = here.clone();
    deadline_monotonic(&mut better);
    let found = meets_deadlines(&better, cpu, effort) || {
        better = here;
        audsley(&mut better, effort)
    };
    let mut given = better.tasks.iter().map(|task| task.priority);
    let each =
        set.tasks.iter().map(|task| if task.cpu == cpu { given.next() } else { Some(task.priority) });
    found.then(|| each.collect())?
}

fn parts(set: &TaskSet, place: usize, effort: &Effort) -> Vec<(Part, u64)> {
    let task = &set.tasks[place];
    let Some(window) = late_window(set, place, effort) else { return Vec::new() };
    let mut parts = vec![
        (Part::Own, task.wcet_ns.saturating_mul(window.job + 1)),
        (Part::Jitter, task.jitter_ns),
        (Part::Blocking, window.blocking_ns),
    ];
    parts.extend(
        window.others.iter().map(|&(place, jobs)| {
            (Part::Task { place, jobs }, set.tasks[place].wcet_ns.saturating_mul(jobs))
        }),
    );
    parts.retain(|&(_, ns)| ns > 0);
    parts.sort_by_key(|&(_, ns)| std::cmp::Reverse(ns));
    parts
}

/// Steps that the search for changes may take.
const STEPS: u64 = 100_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Task, analyse};

    // feature(analyse): why a set does not hold, and the smallest change that helps
    #[test]
    fn a_miss_is_explained_and_each_change_helps() {
        let mut tasks =
            vec![Task::new("tau1", 3, 10, 3), Task::new("tau2", 2, 20, 6), Task::new("tau3", 1, 40, 10)];
        tasks[2].deadline_ns = 21;
        let set = TaskSet::new(tasks);
        let found = analyse(&set).unwrap();
        let misses = misses(&set, &found, 0);
        assert_eq!(misses.len(), 1);
        assert_eq!((misses[0].place, misses[0].late_ns), (2, Some(13)));
        let from = |place, jobs| Part::Task { place, jobs };
        let expected = [(from(0, 4), 12), (from(1, 2), 12), (Part::Own, 10)];
        assert_eq!(misses[0].parts, expected, "they add up to the response");
        let changes = changes(&set, &found, 0);
        assert!(
            matches!(changes.last(), Some(Change::Deadline { place: 2, deadline_ns: 34 })),
            "{changes:?}"
        );
        assert!(changes.iter().any(|change| matches!(change, Change::Wcet { place: 2, .. })));
        for change in changes {
            let mut changed = set.clone();
            match change {
                Change::Priorities(priorities) => {
                    for (task, priority) in changed.tasks.iter_mut().zip(priorities) {
                        task.priority = priority;
                    }
                }
                Change::Wcet { place, wcet_ns } => changed.tasks[place].wcet_ns = wcet_ns,
                Change::Jitter { place, jitter_ns } => changed.tasks[place].jitter_ns = jitter_ns,
                Change::Deadline { place, deadline_ns } => changed.tasks[place].deadline_ns = deadline_ns,
            }
            assert!(analyse(&changed).unwrap().schedulable);
        }
    }

    #[test]
    fn late_start_is_the_suggested_change() {
        let mut task = Task::new("cycle", 1, 1000, 100);
        task.jitter_ns = 2000;
        let set = TaskSet::new(vec![task]);
        let found = analyse(&set).unwrap();
        assert_eq!(misses(&set, &found, 0)[0].parts, [(Part::Jitter, 2000), (Part::Own, 100)]);
        let expected =
            [Change::Jitter { place: 0, jitter_ns: 900 }, Change::Deadline { place: 0, deadline_ns: 2100 }];
        assert_eq!(changes(&set, &found, 0), expected);
    }

    #[test]
    fn wrong_priorities_are_put_right_first() {
        let set = TaskSet::new(vec![Task::new("slow", 2, 100, 20), Task::new("fast", 1, 10, 2)]);
        let found = analyse(&set).unwrap();
        assert!(!found.schedulable);
        assert_eq!(changes(&set, &found, 0)[0], Change::Priorities(vec![1, 2]));
    }
}
