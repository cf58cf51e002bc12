//! Complete analysis of a task set: [`analyse`].

use crate::Policy;
use crate::blocking::blocking;
use crate::earliest_deadline;
use crate::effort::Effort;
use crate::fixed_priority::{self, ResponseTime};
use crate::reservation;
use crate::sensitivity::{self, Growing, Slack, affected_processors};
use crate::task::{TaskError, TaskSet};
use crate::utilisation::utilisation;

/// Result of an analysis.
#[derive(Clone, Debug, PartialEq)]
pub struct Analysis {
    /// Results of the tasks, in the order of the set.
    pub tasks: Vec<TaskVerdict>,
    /// Results of the processors that have tasks, in rising order.
    pub processors: Vec<Processor>,
    /// True if every task of every processor is proven to meet its deadlines.
    pub schedulable: bool,
    /// Possible growth of all execution times together, exact.
    pub slack: Slack,
    /// Possible growth by MAST's method.
    pub mast_slack: Slack,
}

/// Result for one task.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskVerdict {
    /// Worst response time.
    pub response: ResponseTime,
    /// True if the task is proven to meet every deadline.
    pub schedulable: bool,
    /// Longest blocking by lower-priority work, ns.
    pub blocking_ns: u64,
    /// Possible growth of its execution time, exact.
    pub slack: Slack,
    /// Possible growth by MAST's method.
    pub mast_slack: Slack,
}

/// Result for one processor.
#[derive(Clone, Debug, PartialEq)]
pub struct Processor {
    /// Number of the processor.
    pub cpu: usize,
    /// Utilisation; above 1 is too much.
    pub utilisation: f64,
    /// Number of its tasks.
    pub tasks: usize,
    /// Result of the demand test, under earliest deadline first.
    pub feasibility: Option<earliest_deadline::Feasibility>,
    /// True if the kernel admits its reservations, under `SCHED_DEADLINE`.
    pub admitted: Option<bool>,
}

/// Analyses a task set.
///
/// ```
/// use onbeat_schedulability::{Task, TaskSet, analyse};
///
/// let tasks = vec![Task::new("tau1", 99, 1_000_000, 500_000), Task::new("tau2", 80, 5_000_000, 1_500_000)];
/// let found = analyse(&TaskSet::new(tasks))?;
/// assert!(found.schedulable);
/// assert_eq!(found.slack.percent(), Some(25.0));
/// # Ok::<(), onbeat_schedulability::TaskError>(())
/// ```
///
/// # Errors
/// The errors of [`TaskSet::check`].
pub fn analyse(set: &TaskSet) -> Result<Analysis, TaskError> {
    set.check()?;
    let effort = Effort::default();
    let processors: Vec<_> = affected_processors(set, Growing::System)
        .into_iter()
        .map(|cpu| processor(set, cpu, &effort))
        .collect();
    let mut tasks: Vec<_> =
        (0..set.tasks.len()).map(|place| task(set, place, &processors, &effort)).collect();
    let schedulable = tasks.iter().all(|task| task.schedulable);
    // Slack comes last, with a separate effort: the verdict is complete whatever the slack costs.
    let effort = Effort::new(SLACK_STEPS);
    let slack = sensitivity::slack(set, Growing::System, &effort);
    let mast_slack = sensitivity::mast_slack(set, Growing::System, &effort);
    for (place, task) in tasks.iter_mut().enumerate() {
        task.slack = sensitivity::slack(set, Growing::Task(place), &effort);
        task.mast_slack = sensitivity::mast_slack(set, Growing::Task(place), &effort);
    }
    Ok(Analysis { tasks, processors, schedulable, slack, mast_slack })
}

fn processor(set: &TaskSet, cpu: usize, effort: &Effort) -> Processor {
    let tasks: Vec<_> = set.tasks.iter().filter(|task| task.cpu == cpu).cloned().collect();
    let by_deadline = set.policy != Policy::FixedPriority;
    Processor {
        cpu,
        utilisation: utilisation(&tasks),
        tasks: tasks.len(),
        feasibility: by_deadline.then(|| earliest_deadline::feasibility(set, cpu, effort)),
        admitted: (set.policy == Policy::Reservation)
            .then(|| reservation::is_admitted(&tasks, 1, reservation::DEFAULT_LIMIT)),
    }
}

fn task(set: &TaskSet, place: usize, processors: &[Processor], effort: &Effort) -> TaskVerdict {
    let task = &set.tasks[place];
    let (response, schedulable, blocking_ns) = if set.policy == Policy::FixedPriority {
        let response = fixed_priority::response_time(set, place, effort);
        (response, response.meets(task.deadline_ns), blocking(task, &set.tasks, set.protocol))
    } else {
        let response = earliest_deadline::response_time(set, place, effort);
        let processor = processors.iter().find(|processor| processor.cpu == task.cpu);
        let feasible = processor.is_some_and(|processor| {
            processor.feasibility == Some(earliest_deadline::Feasibility::Schedulable)
                && processor.admitted != Some(false)
        });
        // If the demand does not fit, tasks within their bounds are still safe, unless admission is
        // refused.
        let admitted = processor.is_none_or(|processor| processor.admitted != Some(false));
        (
            response,
            feasible || admitted && response.meets(task.deadline_ns),
            earliest_deadline::blocking(set, place),
        )
    };
    TaskVerdict { response, schedulable, blocking_ns, slack: Slack::Unknown, mast_slack: Slack::Unknown }
}

/// Steps that all searches for slack may take together.
const SLACK_STEPS: u64 = 300_000_000;
