//! One task and all that can delay it: the recurrences of response-time analysis.
//!
//! For job `q` of a busy period, counted from 0, with `B` the blocking and the sum over all work
//! that precedes it:
//!
//! ```text
//! W(q) = B + (q + 1) C + sum ceil((W(q) + J_j) / P_j) C_j        R = max over q of W(q) + J - q P
//! ```
//!
//! (Joseph and Pandya 1986, Audsley et al. 1993, Tindell et al. 1994; several jobs: Lehoczky 1990.)
//! A job that cannot be preempted waits only for jobs released until it starts (George et al. 1996,
//! Davis et al. 2007):
//!
//! ```text
//! S(q) = B + q C + sum (floor((S(q) + J_j) / P_j) + 1) C_j        R = max over q of S(q) + C + J - q P
//! ```
//!
//! Times are whole numbers of a unit that the caller chooses, so that scaled execution times stay
//! exact.

use crate::effort::Effort;

/// Demand of a task on its processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) period: u128,
    pub(crate) jitter: u128,
    pub(crate) cost: u128,
}

/// A task and all that delays it.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    pub(crate) own: Load,
    pub(crate) blocking: u128,
    pub(crate) preemptive: bool,
    /// Longest time that is searched.
    pub(crate) farthest: u128,
    /// Tasks that run before it.
    pub(crate) others: Vec<Load>,
}

/// Worst response, or the part of it that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Worst {
    Bounded(u128),
    Unbounded,
    /// Largest response found before the search was cut short.
    AtLeast(u128),
}

impl Level {
    /// Worst response. The search ends as soon as one above `enough` is found.
    pub(crate) fn worst(&self, enough: Option<u128>, effort: &Effort) -> Worst {
        if self.is_overloaded(effort) == Some(true) {
            return Worst::Unbounded;
        }
        let enough = enough.unwrap_or(u128::MAX);
        effort.spend(|effort| self.walk(enough, effort, |_, _| {}))
    }

    /// Steps of the recurrence for the first job, from `W = B + C` on, until one repeats: `most` at
    /// most. Empty for a job that cannot be preempted.
    pub(crate) fn steps(&self, most: usize) -> Vec<u128> {
        let base = self.blocking + self.own.cost;
        let next = |time: &u128| {
            let next = base.saturating_add(self.asked(*time, u128::div_ceil));
            (next != *time && next <= self.farthest).then_some(next)
        };
        let mut steps: Vec<u128> = std::iter::successors(Some(base), next).take(most).collect();
        // The last one is its own successor.
        let settled = steps.last().filter(|last| next(last).is_none()).copied();
        steps.extend(settled);
        // The first is no step, but where they begin.
        steps.drain(..1);
        if self.preemptive { steps } else { Vec::new() }
    }

    /// First job later than `enough`, and the time from the start of the busy period to its end.
    pub(crate) fn first_late(&self, enough: u128, effort: &Effort) -> Option<(u128, u128)> {
        let mut late = None;
        self.walk(u128::MAX, effort, |job, end| {
            if late.is_none() && self.response(job, end) > enough {
                late = Some((job, end));
            }
        });
        late
    }

    /// Number of jobs of the `other`th task that run before a job of this task ends, if it runs
    /// until `end`.
    pub(crate) fn jobs_before(&self, other: usize, end: u128) -> u128 {
        let Load { period, jitter, .. } = self.others[other];
        if self.preemptive {
            (end + jitter).div_ceil(period)
        } else {
            (end - self.own.cost + jitter) / period + 1
        }
    }

    fn response(&self, job: u128, end: u128) -> u128 {
        (end + self.own.jitter).saturating_sub(job * self.own.period)
    }

    /// Visits the jobs of the busy period until its end or until one is later than `enough`.
    fn walk(&self, enough: u128, effort: &Effort, mut each: impl FnMut(u128, u128)) -> Worst {
        let jobs = if self.preemptive {
            None
        } else {
            self.busy_period(effort).map(|busy| self.released_in(busy))
        };
        let (mut worst, mut job) = (0, 0);
        let mut from = self.earliest(if self.preemptive { self.own.cost } else { 0 });
        loop {
            let bound = enough.saturating_add(job * self.own.period).saturating_sub(self.own.jitter);
            let (end, settled) = self.end_of(job, from, bound, effort);
            each(job, end);
            worst = worst.max(self.response(job, end));
            if !settled || worst > enough {
                return Worst::AtLeast(worst);
            }
            job += 1;
            // With preemption no work of higher priority is left at `end`: only this task can
            // continue.
            let over = if self.preemptive {
                self.released_in(end) <= job
            } else {
                jobs.is_some_and(|all| all <= job)
            };
            if over {
                return Worst::Bounded(worst);
            }
            if !self.preemptive && jobs.is_none() {
                return Worst::AtLeast(worst);
            }
            from = if self.preemptive { end + self.own.cost } else { end };
        }
    }

    /// Number of jobs of this task released within `time` of the start of the busy period.
    fn released_in(&self, time: u128) -> u128 {
        (time + self.own.jitter).div_ceil(self.own.period)
    }

    /// End of a job, counted from the start of the busy period; and `true` if it was found at or
    /// below `bound`.
    fn end_of(&self, job: u128, from: u128, bound: u128, effort: &Effort) -> (u128, bool) {
        let before = self.blocking + self.own.cost * job;
        if self.preemptive {
            return self.settle(before + self.own.cost, from, bound, u128::div_ceil, effort);
        }
        let bound = bound.saturating_sub(self.own.cost);
        let (start, settled) = self.settle(before, from, bound, |time, period| time / period + 1, effort);
        (start + self.own.cost, settled)
    }

    /// Longest busy period of the processor at this level; `None` if it was not found.
    fn busy_period(&self, effort: &Effort) -> Option<u128> {
        let mut all = self.clone();
        all.others.push(self.own);
        let start = all.earliest(self.own.cost);
        let (length, settled) = all.settle(self.blocking, start, self.farthest, u128::div_ceil, effort);
        settled.then_some(length)
    }

    /// Smallest solution of `time = base + demand of the others until then`, found from `time` on,
    /// which must not lie behind it; and `true` if it was reached at or below `bound`.
    fn settle(
        &self,
        base: u128,
        time: u128,
        bound: u128,
        releases: impl Fn(u128, u128) -> u128 + Copy,
        effort: &Effort,
    ) -> (u128, bool) {
        let mut time = time.max(1);
        loop {
            if time > bound.min(self.farthest) || !effort.take(self.others.len() + 1) {
                return (time, false);
            }
            let next = base.saturating_add(self.asked(time, releases));
            if next <= time {
                return (next, true);
            }
            time = next.min(self.farthest + 1);
        }
    }

    /// Demand of the others in a window; `releases` gives the number of releases of a period in a
    /// time.
    fn asked(&self, window: u128, releases: impl Fn(u128, u128) -> u128) -> u128 {
        let each = self.others.iter().map(|other| {
            releases(window.saturating_add(other.jitter), other.period).saturating_mul(other.cost)
        });
        each.fold(0, u128::saturating_add)
    }

    /// Time before which `cost`, and all that precedes it, is certainly not done.
    ///
    /// `W >= B + C + sum (W + J_j) C_j / P_j` gives `W >= (B + C + sum U_j J_j) / (1 - sum U_j)`:
    /// much closer to the solution than 0 when the processor is nearly full (Sjödin and Hansson
    /// 1998). Rounded down.
    fn earliest(&self, cost: u128) -> u128 {
        let base = self.blocking + cost;
        let (mut used, mut waiting) = (0_u128, 0_u128);
        for other in &self.others {
            let share = (other.cost.min(u128::MAX >> SHARE_BITS) << SHARE_BITS) / other.period;
            used = used.saturating_add(share);
            waiting = waiting.saturating_add(share.saturating_mul(other.jitter) >> SHARE_BITS);
        }
        let free = (1_u128 << SHARE_BITS).saturating_sub(used);
        let work = base.saturating_add(waiting);
        if free == 0 || work >= u128::MAX >> SHARE_BITS {
            return base;
        }
        ((work << SHARE_BITS) / free).min(self.farthest)
    }

    /// True if the utilisation exceeds 1; `None` if the sum is too fine to decide.
    fn is_overloaded(&self, effort: &Effort) -> Option<bool> {
        effort.take(self.others.len() + 1);
        let all = self.others.iter().chain([&self.own]).map(|load| (load.cost, load.period));
        crate::utilisation::compare_with_one(all).map(|order| order.is_gt())
    }
}

/// Binary places of a share of the processor.
const SHARE_BITS: u32 = 40;
