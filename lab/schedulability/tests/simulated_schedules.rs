//! Schedules simulated tick by tick, with no code shared with the analysis: no response is ever
//! longer than its bound, and an exact bound is reached.

use onbeat_schedulability::{
    Effort, Policy, Protocol, ResponseTime, Section, Task, TaskSet, earliest_deadline,
    earliest_deadline::Feasibility, fixed_priority,
};
use proptest::prelude::*;

/// Number of ticks.
const TICKS: u64 = 2_000;

/// Releases and execution times of jobs.
#[derive(Clone, Copy, Debug)]
enum Releases {
    /// All together at 0, as often and as long as allowed.
    Synchronous,
    /// Pseudo-random within the limits, by this seed.
    Random(u64),
}

struct Job {
    task: usize,
    /// Arrival on the grid.
    arrival: u64,
    /// Resource held in each tick that is left, the next one last.
    left: Vec<Holds>,
    started: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Holds {
    Nothing,
    Processor,
    Lock(String),
}

/// Longest response of each task; for jobs that have not ended, the time so far.
fn play(set: &TaskSet, releases: Releases) -> Vec<u64> {
    let mut random = Random(match releases {
        Releases::Synchronous => 0,
        Releases::Random(seed) => seed | 1,
    });
    let mut longest = vec![0; set.tasks.len()];
    // Arrival on the grid, and the tick at which it is ready.
    let mut next: Vec<(u64, u64)> = set
        .tasks
        .iter()
        .map(|task| match releases {
            Releases::Synchronous => (0, 0),
            Releases::Random(_) => {
                let arrival = random.below(2 * task.period_ns);
                (arrival, arrival + random.below(task.jitter_ns + 1))
            }
        })
        .collect();
    let mut jobs: Vec<Job> = Vec::new();
    for now in 0..TICKS {
        for (place, task) in set.tasks.iter().enumerate() {
            while next[place].1 <= now {
                jobs.push(job(task, place, next[place].0, releases, &mut random));
                let arrival = next[place].0 + task.period_ns;
                let (later, jitter) = match releases {
                    Releases::Synchronous => (0, 0),
                    Releases::Random(_) => {
                        let rare = if random.below(8) == 0 { random.below(5) } else { 0 };
                        (rare, random.below(task.jitter_ns + 1))
                    }
                };
                // Jobs of a task become ready in their order.
                next[place] = (arrival + later, (arrival + later + jitter).max(next[place].1));
            }
        }
        if let Some(running) = choose(set, &jobs) {
            jobs[running].started = true;
            jobs[running].left.pop();
            if jobs[running].left.is_empty() {
                let ended = jobs.remove(running);
                longest[ended.task] = longest[ended.task].max(now + 1 - ended.arrival);
            }
        }
    }
    for job in jobs {
        longest[job.task] = longest[job.task].max(TICKS - job.arrival);
    }
    longest
}

fn job(task: &Task, place: usize, arrival: u64, releases: Releases, random: &mut Random) -> Job {
    let mut parts: Vec<Vec<Holds>> = Vec::new();
    let mut free = task.wcet_ns;
    for section in &task.sections {
        let holds = section.resource.clone().map_or(Holds::Processor, Holds::Lock);
        parts.push(vec![holds; section.length_ns as usize]);
        free -= section.length_ns;
    }
    parts.extend((0..free).map(|_| vec![if task.preemptive { Holds::Nothing } else { Holds::Processor }]));
    if let Releases::Random(_) = releases {
        for end in (1..parts.len()).rev() {
            parts.swap(end, random.below(end as u64 + 1) as usize);
        }
        let dropped = if random.below(3) == 0 { random.below(parts.len() as u64) } else { 0 };
        parts.truncate(parts.len() - dropped as usize);
    }
    Job { task: place, arrival, left: parts.concat(), started: false }
}

/// Job that runs in this tick.
fn choose(set: &TaskSet, jobs: &[Job]) -> Option<usize> {
    let urgency = |job: &Job| match set.policy {
        Policy::FixedPriority => i64::from(set.tasks[job.task].priority),
        _ => -((job.arrival + set.tasks[job.task].deadline_ns) as i64),
    };
    // Only the first job of a task runs; a running job that may not be preempted precedes all
    // others.
    let first = |place: usize| jobs[..place].iter().all(|other| other.task != jobs[place].task);
    let candidates: Vec<usize> = (0..jobs.len()).filter(|&place| first(place)).collect();
    if let Some(&place) = candidates
        .iter()
        .find(|&&place| jobs[place].started && inside(set, &jobs[place]) == Some(Holds::Processor))
    {
        return Some(place);
    }
    let holder = |lock: &Holds, but: usize| {
        candidates
            .iter()
            .copied()
            .find(|&place| place != but && inside(set, &jobs[place]).as_ref() == Some(lock))
    };
    let wanted = |place: usize| match jobs[place].left.last() {
        Some(lock @ Holds::Lock(_)) => holder(lock, place),
        _ => None,
    };
    let effective = |place: usize| {
        let own = urgency(&jobs[place]);
        let Some(lock @ Holds::Lock(name)) = &inside(set, &jobs[place]) else { return own };
        match set.protocol {
            Protocol::None => own,
            Protocol::Inheritance => candidates
                .iter()
                .filter(|&&other| other != place && jobs[other].left.last() == Some(lock))
                .map(|&other| urgency(&jobs[other]))
                .fold(own, i64::max),
            Protocol::Ceiling => set
                .tasks
                .iter()
                .filter(|task| task.sections.iter().any(|section| section.resource.as_ref() == Some(name)))
                .map(|task| i64::from(task.priority))
                .fold(own, i64::max),
        }
    };
    let ready = candidates.iter().copied().filter(|&place| wanted(place).is_none());
    // Of equals the one that has begun.
    ready.max_by_key(|&place| (effective(place), jobs[place].started))
}

/// Resource that a job holds right now: it has done a part of a section, and not all of it.
fn inside(set: &TaskSet, job: &Job) -> Option<Holds> {
    let task = &set.tasks[job.task];
    let next = job.left.last()?;
    match next {
        Holds::Nothing => None,
        Holds::Processor if !task.preemptive => job.started.then_some(Holds::Processor),
        held => {
            let name = if let Holds::Lock(name) = held { Some(name) } else { None };
            let length =
                task.sections.iter().find(|section| section.resource.as_ref() == name)?.length_ns as usize;
            let same = job.left.iter().rev().take_while(|other| *other == held).count();
            (same % length != 0).then(|| held.clone())
        }
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

fn independent() -> impl Strategy<Value = Vec<Task>> {
    let one = (2_u64..40, 1_u64..100, 0_u64..25, 1_u64..80);
    prop::collection::vec(one, 1..5).prop_map(|rows| {
        let count = rows.len() as u64;
        let each = rows.into_iter().enumerate().map(|(place, (period, share, jitter, deadline))| {
            let wcet = (period * share / 55 / count).clamp(1, period);
            let mut task = Task::new(place.to_string(), 100 - place as u32, period, wcet);
            (task.jitter_ns, task.deadline_ns) = (jitter, deadline);
            task
        });
        each.collect()
    })
}

/// Tasks with at most one section each, of individual length.
fn with_sections() -> impl Strategy<Value = Vec<Task>> {
    (independent(), prop::collection::vec((0_usize..4, 1_u64..6), 5)).prop_map(|(mut tasks, sections)| {
        for (task, (resource, length)) in tasks.iter_mut().zip(sections) {
            let length_ns = length.min(task.wcet_ns);
            task.jitter_ns %= task.period_ns;
            let section = |resource| vec![Section { resource, length_ns }];
            match resource {
                0 => {}
                1 => task.sections = section(None),
                2 => task.sections = section(Some("bus".into())),
                _ => task.sections = section(Some("log".into())),
            }
        }
        tasks
    })
}

/// Little effort: a processor that is exactly full has busy periods without end, and no bound is
/// found for it.
fn effort() -> Effort {
    Effort::new(20_000)
}

fn bounds(set: &TaskSet) -> Vec<ResponseTime> {
    (0..set.tasks.len()).map(|place| fixed_priority::response_time(set, place, &effort())).collect()
}

fn within_bounds(set: &TaskSet, seed: u64) -> Result<(), TestCaseError> {
    let bounds = bounds(set);
    let played = play(set, Releases::Random(seed));
    for (place, (bound, played)) in bounds.iter().zip(played).enumerate() {
        if let Some(bound) = bound.ns() {
            prop_assert!(played <= bound, "task {place} took {played}, bound {bound}: {set:?}");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300, failure_persistence: None, ..ProptestConfig::default()
    })]

    // feature(analyse): no simulated schedule exceeds the bound, and the critical instant reaches it
    #[test]
    fn fixed_priorities_with_jitter_stay_within_the_bound(tasks in independent(), seed: u64) {
        within_bounds(&TaskSet::new(tasks), seed)?;
    }

    #[test]
    fn tasks_without_preemption_stay_within_the_bound(mut tasks in independent(), seed: u64, kept in 0_usize..4) {
        for (place, task) in tasks.iter_mut().enumerate() {
            task.preemptive = place == kept;
        }
        within_bounds(&TaskSet::new(tasks), seed)?;
    }

    // feature(analyse): no simulated schedule exceeds the bound, and the critical instant reaches it
    #[test]
    fn locks_stay_within_the_bound(tasks in with_sections(), seed: u64) {
        for protocol in [Protocol::Inheritance, Protocol::Ceiling, Protocol::None] {
            within_bounds(&TaskSet { tasks: tasks.clone(), policy: Policy::FixedPriority, protocol }, seed)?;
        }
    }

    // feature(analyse): no simulated schedule exceeds the bound, and the critical instant reaches it
    #[test]
    fn together_at_once_the_bound_is_reached(mut tasks in independent()) {
        for task in &mut tasks {
            task.jitter_ns = 0;
        }
        let set = TaskSet::new(tasks);
        let played = play(&set, Releases::Synchronous);
        for (bound, played) in bounds(&set).iter().zip(played) {
            // A busy period longer than the simulation would not be seen to its end.
            if let Some(bound) = bound.ns().filter(|&bound| bound < TICKS / 4) {
                prop_assert_eq!(played, bound, "{:?}", set);
            }
        }
    }

    // feature(analyse): EDF and SCHED_DEADLINE reservations
    #[test]
    fn edf_misses_exactly_when_the_demand_does_not_fit(mut tasks in independent()) {
        for task in &mut tasks {
            task.jitter_ns = 0;
        }
        let punctual = TaskSet { tasks, policy: Policy::EarliestDeadline, protocol: Protocol::Ceiling };
        let mut pairs = punctual.tasks.iter().zip(play(&punctual, Releases::Synchronous));
        let missed = pairs.any(|(task, longest)| longest > task.deadline_ns);
        match earliest_deadline::feasibility(&punctual, 0, &effort()) {
            Feasibility::Schedulable => prop_assert!(!missed, "{:?}", punctual),
            Feasibility::Misses { interval_ns, .. } if interval_ns < TICKS / 2 => {
                prop_assert!(missed, "{:?}", punctual);
            }
            Feasibility::Misses { .. } | Feasibility::Overloaded | Feasibility::Unknown => {}
        }
    }

    #[test]
    fn earliest_deadline_first_stays_within_the_bound(tasks in independent(), seed: u64) {
        let set = TaskSet { tasks, policy: Policy::EarliestDeadline, protocol: Protocol::Ceiling };
        let feasible = earliest_deadline::feasibility(&set, 0, &effort());
        let feasible = feasible == Feasibility::Schedulable;
        for (place, played) in play(&set, Releases::Random(seed)).into_iter().enumerate() {
            let bound = earliest_deadline::response_time(&set, place, &effort());
            if let Some(bound) = bound.ns() {
                prop_assert!(played <= bound, "task {} took {}, bound {}: {:?}", place, played, bound, set);
            }
            prop_assert!(!feasible || played <= set.tasks[place].deadline_ns, "{:?}", set);
        }
    }
}
