//! One task and all that can delay it: the recurrences of response-time analysis.
//!
//! For job `q` of a busy period, counted from 0, with `B` the blocking and the sum over all that goes before it:
//!
//! ```text
//! W(q) = B + (q + 1) C + sum ceil((W(q) + J_j) / P_j) C_j        R = max over q of W(q) + J - q P
//! ```
//!
//! (Joseph and Pandya 1986, Audsley et al. 1993, Tindell et al. 1994; several jobs: Lehoczky 1990.) A job that cannot
//! be preempted only waits for what comes until it starts (George et al. 1996, Davis et al. 2007):
//!
//! ```text
//! S(q) = B + q C + sum (floor((S(q) + J_j) / P_j) + 1) C_j        R = max over q of S(q) + C + J - q P
//! ```
//!
//! Times are whole numbers of a unit the caller chooses, so that scaled execution times stay exact.

use super::effort::Effort;

/// What a task asks of its processor.
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
    /// Longer than this nothing is searched for.
    pub(crate) farthest: u128,
    /// All that goes before it.
    pub(crate) others: Vec<Load>,
}

/// The longest response, or what is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Worst {
    Bounded(u128),
    Unbounded,
    /// Found so far, when the search was cut short.
    AtLeast(u128),
}

impl Level {
    /// The worst response. The search ends as soon as one above `enough` is seen.
    pub(crate) fn worst(&self, enough: Option<u128>, effort: &Effort) -> Worst {
        if self.is_overloaded(effort) == Some(true) {
            return Worst::Unbounded;
        }
        let enough = enough.unwrap_or(u128::MAX);
        effort.spend(|effort| match self.preemptive {
            true => self.worst_preemptive(enough, effort),
            false => self.worst_at_start(enough, effort),
        })
    }

    fn worst_preemptive(&self, enough: u128, effort: &Effort) -> Worst {
        let (mut worst, mut job) = (0, 0);
        let mut window = self.earliest(self.own.cost);
        loop {
            let before = job * self.own.period;
            let base = self.blocking + self.own.cost * (job + 1);
            let bound = enough.saturating_add(before).saturating_sub(self.own.jitter);
            let (end, settled) = self.settle(base, window, bound, u128::div_ceil, effort);
            worst = worst.max((end + self.own.jitter).saturating_sub(before));
            if !settled || worst > enough {
                return Worst::AtLeast(worst);
            }
            job += 1;
            // Nothing of higher priority is left at `end`; is there a job of ours that came before it?
            if (end + self.own.jitter).div_ceil(self.own.period) <= job {
                return Worst::Bounded(worst);
            }
            window = end + self.own.cost;
        }
    }

    fn worst_at_start(&self, enough: u128, effort: &Effort) -> Worst {
        let busy = self.busy_period(effort);
        let jobs = busy.map_or(1, |busy| (busy + self.own.jitter).div_ceil(self.own.period).max(1));
        let (mut worst, mut window) = (0, self.earliest(0));
        for job in 0..jobs {
            let before = job * self.own.period;
            let base = self.blocking + self.own.cost * job;
            let bound = enough.saturating_add(before).saturating_sub(self.own.jitter + self.own.cost);
            let releases = |time, period| time / period + 1;
            let (start, settled) = self.settle(base, window, bound, releases, effort);
            worst = worst.max((start + self.own.cost + self.own.jitter).saturating_sub(before));
            if !settled || worst > enough {
                return Worst::AtLeast(worst);
            }
            window = start + self.own.cost;
        }
        if busy.is_some() { Worst::Bounded(worst) } else { Worst::AtLeast(worst) }
    }

    /// How long the processor can be busy with this level at most; `None` if that was not found.
    fn busy_period(&self, effort: &Effort) -> Option<u128> {
        let mut all = self.clone();
        all.others.push(self.own);
        let start = all.earliest(self.own.cost);
        let (length, settled) = all.settle(self.blocking, start, self.farthest, u128::div_ceil, effort);
        settled.then_some(length)
    }

    /// The smallest solution of `time = base + what others ask for until then`, from `time` on, which must not lie
    /// behind it; and whether it was reached at or below `bound`.
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

    /// What the others ask for in a window, with so many releases of a period in a time.
    fn asked(&self, window: u128, releases: impl Fn(u128, u128) -> u128) -> u128 {
        let each = self.others.iter().map(|other| {
            releases(window.saturating_add(other.jitter), other.period).saturating_mul(other.cost)
        });
        each.fold(0, u128::saturating_add)
    }

    /// A time before which `cost`, and all that goes before it, surely is not done.
    ///
    /// `W >= B + C + sum (W + J_j) C_j / P_j` gives `W >= (B + C + sum U_j J_j) / (1 - sum U_j)`: much closer to the
    /// solution than 0 when the processor is nearly full (Sjödin and Hansson 1998). Rounded down.
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

    /// Whether more is asked for in the long run than there is; `None` if the sum is too fine to tell.
    fn is_overloaded(&self, effort: &Effort) -> Option<bool> {
        effort.take(self.others.len() + 1);
        let all = self.others.iter().chain([&self.own]).map(|load| (load.cost, load.period));
        super::utilisation::compare_with_one(all).map(|order| order.is_gt())
    }
}

/// Binary places of a share of the processor.
const SHARE_BITS: u32 = 40;
