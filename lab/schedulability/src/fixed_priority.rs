//! Response-time analysis under fixed priorities: [`response_times`].

use crate::Protocol;
use crate::blocking::{blocking, inverting, is_deferred};
use crate::effort::Effort;
use crate::level::{Level, Load, Worst};
use crate::task::{Task, TaskSet};

/// Longest time from a release to the end of its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseTime {
    /// Upper bound, ns.
    Bounded(u64),
    /// Grows for ever: the utilisation exceeds the processor.
    Unbounded,
    /// Lower bound, ns; the effort allowed gave no upper one.
    AtLeast(u64),
}

impl ResponseTime {
    /// The bound, ns.
    #[must_use]
    pub const fn ns(self) -> Option<u64> {
        match self {
            Self::Bounded(ns) => Some(ns),
            Self::Unbounded | Self::AtLeast(_) => None,
        }
    }

    /// True if the response is proven to be at most `deadline_ns`.
    #[must_use]
    pub const fn meets(self, deadline_ns: u64) -> bool {
        matches!(self, Self::Bounded(ns) if ns <= deadline_ns)
    }
}

/// Worst response time of each task in the order of the set, from the priorities, one processor at
/// a time.
///
/// ```
/// use onbeat_schedulability::{ResponseTime, Task, TaskSet, fixed_priority};
///
/// let tasks = vec![Task::new("tau1", 99, 1_000_000, 500_000), Task::new("tau2", 80, 5_000_000, 1_500_000)];
/// let responses = fixed_priority::response_times(&TaskSet::new(tasks));
/// assert_eq!(responses, [ResponseTime::Bounded(500_000), ResponseTime::Bounded(3_000_000)]);
/// ```
#[must_use]
pub fn response_times(set: &TaskSet) -> Vec<ResponseTime> {
    let effort = Effort::default();
    (0..set.tasks.len()).map(|place| response_time(set, place, &effort)).collect()
}

/// Worst response time of one task.
#[must_use]
pub fn response_time(set: &TaskSet, place: usize, effort: &Effort) -> ResponseTime {
    match worst(set, place, &|_| Scale::ONE, None, effort) {
        Worst::Bounded(time) => {
            u64::try_from(time).map_or(ResponseTime::AtLeast(u64::MAX), ResponseTime::Bounded)
        }
        Worst::Unbounded => ResponseTime::Unbounded,
        Worst::AtLeast(time) => ResponseTime::AtLeast(u64::try_from(time).unwrap_or(u64::MAX)),
    }
}

/// Steps of the recurrence for the response of a task's first job in a busy period, ns: from its
/// execution time and blocking on, until one repeats, a hundred at most. Empty for a task that
/// cannot be preempted: its recurrence differs.
///
/// ```
/// use onbeat_schedulability::{Task, TaskSet, fixed_priority};
///
/// let tasks = vec![Task::new("tau1", 99, 1_000_000, 500_000), Task::new("tau2", 80, 5_000_000, 1_500_000)];
/// assert_eq!(fixed_priority::steps(&TaskSet::new(tasks), 1), [2_500_000, 3_000_000, 3_000_000]);
/// ```
#[must_use]
pub fn steps(set: &TaskSet, place: usize) -> Vec<u64> {
    let steps = level(set, place, Scale::ONE, &|_| Scale::ONE).steps(MOST_STEPS);
    steps.into_iter().map_while(|step| u64::try_from(step).ok()).collect()
}

/// Steps that are shown at most.
const MOST_STEPS: usize = 100;

/// True if a task is proven to meet its deadline with the execution time of each task scaled.
pub(crate) fn meets(set: &TaskSet, place: usize, scale: &impl Fn(usize) -> Scale, effort: &Effort) -> bool {
    let unit = scale(place);
    let deadline = u128::from(set.tasks[place].deadline_ns) * unit.denominator;
    matches!(worst(set, place, scale, Some(deadline), effort), Worst::Bounded(time) if time <= deadline)
}

/// First late job of a busy period, and the jobs that run until its deadline has passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LateWindow {
    /// Number of the job, from 0.
    pub(crate) job: u64,
    pub(crate) blocking_ns: u64,
    /// Indices of other tasks, with the number of jobs of each that run before it.
    pub(crate) others: Vec<(usize, u64)>,
}

/// Jobs that the first late job of a task waits for; `None` if none is late, or none was found.
pub(crate) fn late_window(set: &TaskSet, place: usize, effort: &Effort) -> Option<LateWindow> {
    let task = &set.tasks[place];
    let level = level(set, place, Scale::ONE, &|_| Scale::ONE);
    let (job, end) = effort.spend(|effort| level.first_late(u128::from(task.deadline_ns), effort))?;
    let short = |number: u128| u64::try_from(number).unwrap_or(u64::MAX);
    let others = others(set, place).into_iter().enumerate();
    let others = others.map(|(row, other)| (other, short(level.jobs_before(row, end))));
    Some(LateWindow { job: short(job), blocking_ns: short(level.blocking), others: others.collect() })
}

/// A factor on execution times, as a fraction. All factors of one analysis share a denominator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scale {
    pub(crate) numerator: u128,
    pub(crate) denominator: u128,
}

impl Scale {
    pub(crate) const ONE: Self = Self { numerator: 1, denominator: 1 };
}

fn worst(
    set: &TaskSet,
    place: usize,
    scale: &impl Fn(usize) -> Scale,
    enough: Option<u128>,
    effort: &Effort,
) -> Worst {
    // The search for the tasks that delay each other takes time, too.
    if !effort.take(set.tasks.len()) {
        return Worst::AtLeast(0);
    }
    // Jobs that sleep for a lock count as released up to a period late, so they must end within the
    // period.
    let deferred = |&other: &usize| is_deferred(&set.tasks[other], &set.tasks, set.protocol);
    let ends_in_its_period = |other: usize| {
        let level = level(set, other, scale(other), scale);
        matches!(level.worst(Some(level.own.period), effort), Worst::Bounded(time) if time <= level.own.period)
    };
    let holds =
        set.protocol != Protocol::None || (0..set.tasks.len()).filter(deferred).all(ends_in_its_period);
    if holds { level(set, place, scale(place), scale).worst(enough, effort) } else { Worst::Unbounded }
}

/// A task and all that delays it, in units of 1 ns over the denominator.
fn level(set: &TaskSet, place: usize, unit: Scale, scale: &impl Fn(usize) -> Scale) -> Level {
    let task = &set.tasks[place];
    let load = |task: &Task, scale: Scale| Load {
        period: u128::from(task.period_ns) * unit.denominator,
        jitter: u128::from(task.jitter_ns) * unit.denominator,
        cost: u128::from(task.wcet_ns) * scale.numerator,
    };
    let other = |other: usize| {
        let mut load = load(&set.tasks[other], scale(other));
        if is_deferred(&set.tasks[other], &set.tasks, set.protocol) {
            load.jitter += load.period;
        }
        load
    };
    Level {
        own: load(task, unit),
        blocking: scaled_blocking(set, place, unit, scale),
        preemptive: task.preemptive,
        farthest: u128::from(u64::MAX) * unit.denominator,
        others: others(set, place).into_iter().map(other).collect(),
    }
}

/// Indices of the tasks that run before the one at `place`.
fn others(set: &TaskSet, place: usize) -> Vec<usize> {
    let task = &set.tasks[place];
    let middle = inverting(task, &set.tasks, set.protocol);
    let goes_before = |&other: &usize| {
        let above = &set.tasks[other];
        let higher = above.cpu == task.cpu && above.priority >= task.priority && other != place;
        higher || middle.iter().any(|middle| std::ptr::eq(*middle, above))
    };
    (0..set.tasks.len()).filter(goes_before).collect()
}

fn scaled_blocking(set: &TaskSet, place: usize, unit: Scale, scale: &impl Fn(usize) -> Scale) -> u128 {
    let task = &set.tasks[place];
    let given = u128::from(task.blocking_ns);
    let computed = u128::from(blocking(task, &set.tasks, set.protocol)) - given;
    // Sections are part of execution times and grow with the lower tasks; the largest factor is
    // safe.
    let below = set.tasks.iter().enumerate();
    let below = below.filter(|(_, other)| other.cpu == task.cpu && other.priority < task.priority);
    let largest = below.map(|(other, _)| scale(other).numerator).max().unwrap_or(unit.denominator);
    given * unit.denominator + if computed == 0 { 0 } else { computed * largest }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn responses(tasks: &[Task]) -> Vec<Option<u64>> {
        response_times(&TaskSet::new(tasks.to_vec())).into_iter().map(ResponseTime::ns).collect()
    }

    // feature(analyse): fixed-priority response times with jitter, blocking, arbitrary deadlines, no preemption
    #[test]
    fn the_textbook_examples_come_out() {
        // Joseph and Pandya's recurrence on the three tasks of Burns and Wellings' textbook.
        let tasks = [Task::new("a", 3, 7, 3), Task::new("b", 2, 12, 3), Task::new("c", 1, 20, 5)];
        assert_eq!(responses(&tasks), [Some(3), Some(6), Some(20)]);
        // Lehoczky 1990: the worst job of the second task is the fifth of its busy period.
        let tasks = [Task::new("a", 2, 70, 26), Task::new("b", 1, 100, 62)];
        assert_eq!(responses(&tasks), [Some(26), Some(118)]);
    }

    #[test]
    fn jitter_and_blocking_count() {
        let mut tasks = [Task::new("a", 2, 10, 3), Task::new("b", 1, 20, 4)];
        tasks[0].jitter_ns = 4;
        // Two jobs of a in b's window: one late, one on time.
        assert_eq!(responses(&tasks), [Some(7), Some(10)]);
        tasks[1].jitter_ns = 5;
        tasks[1].blocking_ns = 1;
        assert_eq!(responses(&tasks), [Some(7), Some(16)]);
    }

    // feature(analyse): fixed-priority response times with jitter, blocking, arbitrary deadlines, no preemption
    #[test]
    fn jobs_that_cannot_be_preempted_follow_davis_and_others() {
        // Davis, Burns, Bril and Lukkien 2007, the counter-example to the older CAN analysis: the
        // second job of C.
        let mut tasks =
            [Task::new("A", 3, 250, 100), Task::new("B", 2, 350, 100), Task::new("C", 1, 350, 100)];
        for task in &mut tasks {
            task.preemptive = false;
        }
        assert_eq!(responses(&tasks), [Some(200), Some(300), Some(350)]);
    }

    // feature(analyse): the steps of the iteration: `onbeat analyse --steps`
    #[test]
    fn steps_end_at_the_response_or_after_a_hundred() {
        let steps = |tasks: &[Task], place| steps(&TaskSet::new(tasks.to_vec()), place);
        // Burns and Wellings' textbook: w of the third is 11, 14, 17, 20, 20 from 5 on.
        let mut tasks = [Task::new("a", 3, 7, 3), Task::new("b", 2, 12, 3), Task::new("c", 1, 20, 5)];
        assert_eq!(steps(&tasks, 2), [11, 14, 17, 20, 20]);
        assert_eq!(steps(&tasks, 0), [3], "nothing delays it");
        tasks[2].blocking_ns = 1;
        assert_eq!(steps(&tasks, 2)[0], 12);
        // One that no time suffices for.
        let full = [Task::new("a", 2, 10, 10), Task::new("b", 1, 1000, 1)];
        assert_eq!(steps(&full, 1).len(), MOST_STEPS - 1);
        tasks[2].preemptive = false;
        assert_eq!(steps(&tasks, 2), [0; 0]);
    }

    #[test]
    fn overload_is_unbounded_for_the_affected_tasks() {
        let tasks = [Task::new("a", 3, 10, 6), Task::new("b", 2, 10, 4), Task::new("c", 1, 1000, 1)];
        let responses = response_times(&TaskSet::new(tasks.to_vec()));
        let expected = [ResponseTime::Bounded(6), ResponseTime::Bounded(10), ResponseTime::Unbounded];
        assert_eq!(responses, expected);
    }

    // feature(analyse): absurd sets end
    #[test]
    fn absurd_sets_end() {
        let last = crate::task::LONGEST_NS;
        let mut tasks = vec![Task::new("fast", 9, 1, 1), Task::new("slow", 1, last, last)];
        assert_eq!(responses(&tasks), [Some(1), None]);
        tasks[0] = Task::new("fast", 9, 1_000_000_007, 1_000_000_006);
        tasks[1] = Task::new("slow", 1, last, 999_999_999);
        tasks[1].jitter_ns = last;
        assert!(responses(&tasks)[0].is_some());
        let many: Vec<_> =
            (0..1_500_u32).map(|n| Task::new(n.to_string(), n, 1_000_003 + 7 * u64::from(n), 99)).collect();
        assert!(responses(&many).iter().all(Option::is_some));
    }

    #[test]
    fn other_processors_do_not_matter() {
        let mut tasks = [Task::new("a", 2, 10, 6), Task::new("b", 1, 10, 6)];
        tasks[1].cpu = 1;
        assert_eq!(responses(&tasks), [Some(6), Some(6)]);
    }

    #[test]
    fn equal_priorities_delay_each_other() {
        assert_eq!(responses(&[Task::new("a", 1, 10, 3), Task::new("b", 1, 10, 4)]), [Some(7), Some(7)]);
    }
}
