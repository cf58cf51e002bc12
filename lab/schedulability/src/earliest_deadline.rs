//! Earliest deadline first on one processor: the demand of every interval, and worst response
//! times.
//!
//! Tasks are schedulable if and only if no interval of length `t` has a demand above `t`. The
//! demand is the work of jobs released and due inside (Baruah, Mok and Rosier 1990), plus one
//! section of a job due later (Baker 1991):
//!
//! ```text
//! B(t) + sum over D_i - J_i <= t of (floor((t - D_i + J_i) / P_i) + 1) C_i  <=  t
//! ```
//!
//! Only deadlines up to the longest busy period need checking, and few of these: from the last one,
//! step back to the demand found (quick processor-demand analysis, Zhang and Burns 2009). Blocking
//! changes only at the deadlines of tasks, so the interval is searched piece by piece with constant
//! blocking.

use crate::effort::Effort;
use crate::fixed_priority::{ResponseTime, Scale};
use crate::task::{Task, TaskSet};
use crate::utilisation::compare_with_one;

/// Result of the demand test on one processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feasibility {
    /// Every deadline is met.
    Schedulable,
    /// Utilisation above 1.
    Overloaded,
    /// An interval with a demand that exceeds its length.
    Misses {
        /// Length of the interval, ns.
        interval_ns: u64,
        /// Demand in it, ns.
        demand_ns: u64,
    },
    /// Undecided within the effort allowed.
    Unknown,
}

/// Result of the demand test for the tasks of processor `cpu`.
#[must_use]
pub fn feasibility(set: &TaskSet, cpu: usize, effort: &Effort) -> Feasibility {
    Demand::of(set, cpu, &|_| Scale::ONE).feasibility(effort)
}

/// True if the tasks of `cpu` meet their deadlines with execution times scaled.
pub(crate) fn meets(set: &TaskSet, cpu: usize, scale: &impl Fn(usize) -> Scale, effort: &Effort) -> bool {
    if !effort.take(set.tasks.len()) {
        return false;
    }
    let demand = Demand::of(set, cpu, scale);
    effort.spend(|effort| demand.feasibility(effort)) == Feasibility::Schedulable
}

/// Worst response time of one task (Spuri 1996): of all release instants of its jobs within a busy
/// period, the ones at which its deadline coincides with another's are examined.
#[must_use]
pub fn response_time(set: &TaskSet, place: usize, effort: &Effort) -> ResponseTime {
    if !effort.take(set.tasks.len()) {
        return ResponseTime::AtLeast(0);
    }
    let demand = Demand::of(set, set.tasks[place].cpu, &|_| Scale::ONE);
    let own = demand.tasks.iter().position(|task| task.place == place);
    own.map_or(ResponseTime::AtLeast(0), |own| effort.spend(|effort| demand.response_time(own, effort)))
}

/// Longest delay of a job of this task by jobs due later, ns.
#[must_use]
pub fn blocking(set: &TaskSet, place: usize) -> u64 {
    let demand = Demand::of(set, set.tasks[place].cpu, &|_| Scale::ONE);
    let own = demand.tasks.iter().find(|task| task.place == place);
    own.map_or(0, |task| u64::try_from(demand.blocking(task.due)).unwrap_or(u64::MAX))
}

/// One task, with times in units of 1 ns over the denominator.
#[derive(Clone, Debug)]
struct Asking {
    place: usize,
    period: u128,
    jitter: u128,
    cost: u128,
    /// Deadline less jitter: the time that remains in the worst case.
    due: u128,
    /// Given blocking, beyond the sections of others.
    blocking: u128,
    /// Lengths of its sections, each with the shortest `due` among the users of its resource; 0 for
    /// the processor.
    sections: Vec<(u128, u128)>,
}

#[derive(Clone, Debug)]
struct Demand {
    tasks: Vec<Asking>,
    /// True if a task has no time at all between its latest release and its deadline: `due` is then
    /// not exact.
    hopeless: bool,
    farthest: u128,
}

impl Demand {
    fn of(set: &TaskSet, cpu: usize, scale: &impl Fn(usize) -> Scale) -> Self {
        let here = || set.tasks.iter().enumerate().filter(move |(_, task)| task.cpu == cpu);
        let unit = here().next().map_or(1, |(place, _)| scale(place).denominator);
        let due = |task: &Task| u128::from(task.deadline_ns.saturating_sub(task.jitter_ns)) * unit;
        let ceiling = |resource: &Option<String>| match resource {
            None => 0,
            Some(_) => {
                let users = here()
                    .filter(|(_, task)| task.sections.iter().any(|other| other.resource == *resource));
                users.map(|(_, task)| due(task)).min().unwrap_or(0)
            }
        };
        let asking = |(place, task): (usize, &Task)| {
            let factor = scale(place).numerator;
            let section = |length_ns: u64, ceiling| (u128::from(length_ns) * factor, ceiling);
            let mut sections: Vec<_> =
                task.sections.iter().map(|each| section(each.length_ns, ceiling(&each.resource))).collect();
            if !task.preemptive {
                sections.push(section(task.wcet_ns, 0));
            }
            Asking {
                place,
                period: u128::from(task.period_ns) * unit,
                jitter: u128::from(task.jitter_ns) * unit,
                cost: u128::from(task.wcet_ns) * factor,
                due: due(task),
                blocking: u128::from(task.blocking_ns) * unit,
                sections,
            }
        };
        let tasks: Vec<_> = here().map(asking).collect();
        let hopeless = here().any(|(_, task)| task.deadline_ns <= task.jitter_ns && task.wcet_ns > 0);
        Self { tasks, hopeless, farthest: u128::from(u64::MAX) * unit }
    }

    fn feasibility(&self, effort: &Effort) -> Feasibility {
        let load = compare_with_one(self.tasks.iter().map(|task| (task.cost, task.period)));
        if load.is_some_and(|order| order.is_gt()) {
            return Feasibility::Overloaded;
        }
        if self.hopeless {
            return Feasibility::Misses { interval_ns: 0, demand_ns: 1 };
        }
        let simple =
            |task: &Asking| task.due >= task.period && task.sections.is_empty() && task.blocking == 0;
        if load.is_some() && self.tasks.iter().all(simple) {
            return Feasibility::Schedulable; // Liu and Layland 1973
        }
        let Some(end) = self.horizon(effort) else { return Feasibility::Unknown };
        let mut edges: Vec<u128> =
            self.tasks.iter().map(|task| task.due).filter(|&due| due < end).collect();
        edges.extend([0, end]);
        edges.sort_unstable();
        edges.dedup();
        for piece in edges.windows(2).rev() {
            match self.check_piece(piece[0], piece[1], effort) {
                Feasibility::Schedulable => {}
                other => return other,
            }
        }
        Feasibility::Schedulable
    }

    /// Checks that demand and blocking fit at every deadline in `low..high`.
    fn check_piece(&self, low: u128, high: u128, effort: &Effort) -> Feasibility {
        let blocking = self.blocking(low);
        let mut next = self.last_deadline_before(high);
        while let Some(time) = next.filter(|&time| time >= low) {
            if !effort.take(2 * self.tasks.len()) {
                return Feasibility::Unknown;
            }
            let demand = self.demand(time).saturating_add(blocking);
            if demand > time {
                let unit = (self.farthest / u128::from(u64::MAX)).max(1);
                let ns = |time: u128| u64::try_from(time / unit).unwrap_or(u64::MAX);
                return Feasibility::Misses { interval_ns: ns(time), demand_ns: ns(demand) };
            }
            next = if demand < time { Some(demand) } else { self.last_deadline_before(time) };
        }
        Feasibility::Schedulable
    }

    fn demand(&self, time: u128) -> u128 {
        let due = self.tasks.iter().filter(|task| task.due <= time);
        due.map(|task| ((time - task.due) / task.period + 1).saturating_mul(task.cost))
            .fold(0, u128::saturating_add)
    }

    fn last_deadline_before(&self, time: u128) -> Option<u128> {
        let each = self.tasks.iter().filter(|task| task.due < time);
        each.map(|task| task.due + (time - 1 - task.due) / task.period * task.period).max()
    }

    /// Longest section of a job due after `time` that can delay one due at `time` or before, or the
    /// given blocking.
    fn blocking(&self, time: u128) -> u128 {
        let later = self.tasks.iter().filter(|task| task.due > time);
        let harmful = later.flat_map(|task| &task.sections).filter(|&&(_, ceiling)| ceiling <= time);
        let given = self.tasks.iter().filter(|task| task.due <= time).map(|task| task.blocking);
        harmful.map(|&(length, _)| length).chain(given).max().unwrap_or(0)
    }

    /// Time from which on no deadline can be the first one missed: one more than the longest busy
    /// period, or the bound of the demand's straight upper limit, if that is shorter.
    fn horizon(&self, effort: &Effort) -> Option<u128> {
        let latest = self.tasks.iter().map(|task| task.due).max().unwrap_or(0);
        let by_busy = self.busy_period(effort);
        let by_slope = self.slope_bound();
        let end = match (by_busy, by_slope) {
            (Some(busy), Some(slope)) => busy.min(slope.max(latest)),
            (busy, slope) => busy.or(slope.map(|slope| slope.max(latest)))?,
        };
        (end < self.farthest).then_some(end + 1)
    }

    /// Longest busy period of the processor.
    fn busy_period(&self, effort: &Effort) -> Option<u128> {
        let blocking = self.longest_blocking();
        let mut time = 1;
        loop {
            if !effort.take(self.tasks.len()) || time > self.farthest {
                return None;
            }
            let each = self.tasks.iter();
            let each =
                each.map(|task| (time + task.jitter).div_ceil(task.period).saturating_mul(task.cost));
            let next = each.fold(blocking, u128::saturating_add);
            if next <= time {
                return Some(time);
            }
            time = next;
        }
    }

    fn longest_blocking(&self) -> u128 {
        let sections = self.tasks.iter().flat_map(|task| &task.sections).map(|&(length, _)| length);
        sections.chain(self.tasks.iter().map(|task| task.blocking)).max().unwrap_or(0)
    }

    /// Bound from `t < h(t) + B <= U t + B + sum (P_i - due_i) U_i`, which can hold only for `t`
    /// below `(B + sum (P_i - due_i) U_i) / (1 - U)`, rounded up; `None` when the processor is
    /// practically full.
    fn slope_bound(&self) -> Option<u128> {
        const BITS: u32 = 40;
        let (mut used, mut early) = (0_u128, self.longest_blocking().checked_mul(1 << BITS)?);
        for task in &self.tasks {
            let share = task.cost.checked_mul(1 << BITS)?.div_ceil(task.period);
            used = used.checked_add(share)?;
            early = early.checked_add(task.period.saturating_sub(task.due).checked_mul(share)?)?;
        }
        let free = (1_u128 << BITS).checked_sub(used).filter(|&free| free > 0)?;
        Some(early.div_ceil(free) + 1)
    }

    fn response_time(&self, own: usize, effort: &Effort) -> ResponseTime {
        let load = compare_with_one(self.tasks.iter().map(|task| (task.cost, task.period)));
        if load.is_some_and(|order| order.is_gt()) {
            return ResponseTime::Unbounded;
        }
        let task = &self.tasks[own];
        let mut worst = task.cost + task.jitter;
        let bounded = |worst: u128| u64::try_from(worst).ok();
        let at_least = |worst| ResponseTime::AtLeast(bounded(worst).unwrap_or(u64::MAX));
        let Some(busy) = self.busy_period(effort).filter(|_| !self.hopeless) else {
            return at_least(worst);
        };
        for other in &self.tasks {
            // From the first deadline of the other at which ours can fall.
            let first = task.due.saturating_sub(other.due).div_ceil(other.period);
            for count in first.. {
                let deadline = other.due + count * other.period;
                let arrival = deadline.saturating_sub(task.due);
                if arrival >= busy {
                    break;
                }
                let Some(end) = self.end_of_job(own, arrival, busy, effort) else { return at_least(worst) };
                worst = worst.max(end.saturating_sub(arrival) + task.jitter);
            }
        }
        bounded(worst).map_or(ResponseTime::AtLeast(u64::MAX), ResponseTime::Bounded)
    }

    /// End of the busy period of jobs due no later than one that arrives at `arrival`.
    fn end_of_job(&self, own: usize, arrival: u128, busy: u128, effort: &Effort) -> Option<u128> {
        let task = &self.tasks[own];
        let deadline = arrival + task.due;
        let base = self.blocking(deadline) + (arrival / task.period + 1) * task.cost;
        let mut time = base.max(1);
        loop {
            if !effort.take(self.tasks.len()) {
                return None;
            }
            let others = self.tasks.iter().enumerate();
            let others = others.filter(|&(place, other)| place != own && other.due <= deadline);
            let next = others.fold(base, |sum, (_, other)| {
                let released = (time + other.jitter).div_ceil(other.period);
                let due = (deadline - other.due) / other.period + 1;
                sum + released.min(due) * other.cost
            });
            if next <= time {
                return Some(time);
            }
            time = next;
            debug_assert!(time <= busy, "a part of the busy period is no longer than it");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Section;
    use crate::{Policy, Protocol};

    fn set(tasks: &[(u64, u64, u64)]) -> TaskSet {
        let tasks = tasks.iter().enumerate().map(|(n, &(wcet, deadline, period))| {
            let mut task = Task::new(n.to_string(), 1, period, wcet);
            task.deadline_ns = deadline;
            task
        });
        TaskSet { tasks: tasks.collect(), policy: Policy::EarliestDeadline, protocol: Protocol::Ceiling }
    }

    fn verdict(set: &TaskSet) -> Feasibility {
        feasibility(set, 0, &Effort::default())
    }

    #[test]
    fn full_processor_is_schedulable_with_implicit_deadlines() {
        assert_eq!(verdict(&set(&[(1, 2, 2), (1, 3, 3), (1, 6, 6)])), Feasibility::Schedulable);
        assert_eq!(verdict(&set(&[(1, 2, 2), (1, 3, 3), (2, 6, 6)])), Feasibility::Overloaded);
        assert_eq!(verdict(&set(&[])), Feasibility::Schedulable);
    }

    #[test]
    fn short_deadlines_are_searched() {
        assert_eq!(verdict(&set(&[(1, 2, 4), (1, 2, 4), (2, 8, 8)])), Feasibility::Schedulable);
        let short = set(&[(1, 1, 4), (1, 1, 4)]);
        assert_eq!(verdict(&short), Feasibility::Misses { interval_ns: 1, demand_ns: 2 });
    }

    #[test]
    fn sections_of_jobs_due_later_block() {
        let mut blocked = set(&[(2, 4, 10), (6, 20, 20)]);
        assert_eq!(verdict(&blocked), Feasibility::Schedulable);
        blocked.tasks[1].sections = vec![Section { resource: None, length_ns: 3 }];
        assert_eq!(verdict(&blocked), Feasibility::Misses { interval_ns: 4, demand_ns: 5 });
        blocked.tasks[1].sections[0].resource = Some("bus".into());
        assert_eq!(verdict(&blocked), Feasibility::Schedulable, "nobody else wants the bus");
    }

    #[test]
    fn every_interval_is_as_the_definition_says() {
        let mut random = 12345_u64;
        let mut below = |n: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % n
        };
        let (mut good, mut bad) = (0, 0);
        for _ in 0..2_000 {
            let tasks: Vec<_> = (0..3)
                .map(|_| {
                    let period = [4, 5, 6, 8, 10, 12][below(6) as usize];
                    let wcet = 1 + below(3);
                    (wcet, wcet + below(period), period)
                })
                .collect();
            let set = set(&tasks);
            let full = crate::utilisation::compare(&set.tasks, 1, 1).unwrap();
            let demand = |t: u64| -> u64 {
                let due = tasks.iter().filter(|&&(_, deadline, _)| deadline <= t);
                due.map(|&(wcet, deadline, period)| ((t - deadline) / period + 1) * wcet).sum()
            };
            let expected = full.is_le() && (1..=300).all(|t| demand(t) <= t);
            assert_eq!(verdict(&set) == Feasibility::Schedulable, expected, "{tasks:?}");
            if expected {
                good += 1;
                for (place, task) in set.tasks.iter().enumerate() {
                    assert!(
                        response_time(&set, place, &Effort::default()).meets(task.deadline_ns),
                        "{tasks:?}"
                    );
                }
            } else {
                bad += 1;
            }
        }
        assert!(good > 100 && bad > 100);
    }
}
