//! Our bounds against the bounds of the `response-time-analysis` crate, which were verified in Coq.

use onbeat_schedulability::{Effort, Policy, Protocol, Task, TaskSet, earliest_deadline, fixed_priority};
use proptest::prelude::*;
use response_time_analysis::arrival::Sporadic;
use response_time_analysis::demand::RBF;
use response_time_analysis::time::{Duration, Service};
use response_time_analysis::{edf, fixed_priority as judge, wcet::Scalar};

/// Longest time that the reference searches: the busy periods of processors that are almost full
/// are longer.
const LIMIT: u64 = 50_000;

/// Effort that suffices for every busy period below that.
fn effort() -> Effort {
    Effort::new(1_000_000)
}

fn sporadic(task: &Task) -> Sporadic {
    Sporadic::new(Duration::from(task.period_ns), Duration::from(task.jitter_ns))
}

fn demand(task: &Task) -> RBF<Sporadic, Scalar> {
    RBF::new(sporadic(task), Scalar::new(Service::from(task.wcet_ns)))
}

/// Task set for the task at `place`, with its jitter removed: the reference counts from the
/// release, this crate from the grid.
fn punctual(tasks: &[Task], place: usize) -> TaskSet {
    let mut tasks = tasks.to_vec();
    tasks[place].jitter_ns = 0;
    TaskSet::new(tasks)
}

/// True if all busy periods end well below the limit of the reference, or never: just below full
/// utilisation they are as long as the hyperperiod.
fn is_decided(tasks: &[Task]) -> bool {
    let utilisations = tasks.iter().scan(0.0, |sum, task| {
        *sum += task.wcet_ns as f64 / task.period_ns as f64;
        Some(*sum)
    });
    utilisations.into_iter().all(|sum| !(0.99..=1.000_001).contains(&sum))
}

fn tasks() -> impl Strategy<Value = Vec<Task>> {
    let one = (2_u64..60, 1_u64..100, 0_u64..30, 1_u64..120);
    prop::collection::vec(one, 1..6)
        .prop_map(|rows| {
            let count = rows.len() as u64;
            let each = rows.into_iter().enumerate().map(|(place, (period, share, jitter, deadline))| {
                // On the average a little less than the whole processor.
                let wcet = (period * share / 50 / count).clamp(1, period);
                let mut task = Task::new(place.to_string(), 100 - place as u32, period, wcet);
                (task.jitter_ns, task.deadline_ns) = (jitter, deadline);
                task
            });
            each.collect::<Vec<_>>()
        })
        .prop_filter("a busy period as long as the hyperperiod", |tasks| is_decided(tasks))
}

/// Checks that the bounds agree; where the reference has none, the processor is overloaded or it
/// gave up.
fn agree(ours: Option<u64>, theirs: Option<u64>, set: &TaskSet, place: usize) -> Result<(), TestCaseError> {
    let asked: f64 = set.tasks.iter().map(|task| task.wcet_ns as f64 / task.period_ns as f64).sum();
    if theirs.is_some() || asked < 0.9 {
        prop_assert_eq!(ours, theirs, "task {} of {:?}", place, set);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    // feature(analyse): fixed-priority response times with jitter, blocking, arbitrary deadlines, no preemption
    #[test]
    fn preemptive_fixed_priorities(tasks in tasks()) {
        for place in 0..tasks.len() {
            let set = punctual(&tasks, place);
            let above: Vec<_> = set.tasks[..place].iter().map(demand).collect();
            let theirs = judge::fully_preemptive::dedicated_uniproc_rta(
                &demand(&set.tasks[place]), &above, Duration::from(LIMIT),
            );
            let ours = fixed_priority::response_time(&set, place, &effort()).ns();
            agree(ours, theirs.ok().map(u64::from), &set, place)?;
        }
    }

    // feature(analyse): fixed-priority response times with jitter, blocking, arbitrary deadlines, no preemption
    #[test]
    fn fixed_priorities_without_preemption(tasks in tasks()) {
        for place in 0..tasks.len() {
            let mut set = punctual(&tasks, place);
            for task in &mut set.tasks {
                task.preemptive = false;
            }
            let above: Vec<_> = set.tasks[..place].iter().map(demand).collect();
            let blocking = set.tasks[place + 1..].iter().map(|task| task.wcet_ns).max().unwrap_or(0);
            let task = judge::fully_nonpreemptive::TaskUnderAnalysis {
                wcet: Scalar::new(Service::from(set.tasks[place].wcet_ns)),
                arrivals: &sporadic(&set.tasks[place]),
                blocking_bound: Service::from(blocking),
            };
            let theirs = judge::fully_nonpreemptive::dedicated_uniproc_rta(&task, &above, Duration::from(LIMIT));
            let ours = fixed_priority::response_time(&set, place, &effort()).ns();
            agree(ours, theirs.ok().map(u64::from), &set, place)?;
        }
    }

    // feature(analyse): EDF and SCHED_DEADLINE reservations
    #[test]
    fn earliest_deadline_first(mut tasks in tasks()) {
        for task in &mut tasks {
            task.jitter_ns = 0;
        }
        let set = TaskSet { tasks, policy: Policy::EarliestDeadline, protocol: Protocol::Ceiling };
        let demands: Vec<_> = set.tasks.iter().map(demand).collect();
        let judged = |place: usize| {
            let deadline = Duration::from(set.tasks[place].deadline_ns);
            edf::fully_preemptive::Task { rbf: &demands[place], deadline }
        };
        for place in 0..demands.len() {
            let others: Vec<_> = (0..demands.len()).filter(|&other| other != place).map(judged).collect();
            let limit = Duration::from(LIMIT);
            let theirs = edf::fully_preemptive::dedicated_uniproc_rta(&judged(place), &others, limit);
            let ours = earliest_deadline::response_time(&set, place, &effort()).ns();
            agree(ours, theirs.ok().map(u64::from), &set, place)?;
        }
    }
}
