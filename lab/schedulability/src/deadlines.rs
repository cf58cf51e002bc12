//! Proof that all tasks of a processor meet their deadlines: [`meets_deadlines`].

use crate::Policy;
use crate::earliest_deadline;
use crate::effort::Effort;
use crate::fixed_priority::{self, Scale};
use crate::reservation;
use crate::task::TaskSet;
use crate::utilisation::compare_with_one;

/// True if all tasks of a processor are proven to meet their deadlines.
#[must_use]
pub fn meets_deadlines(set: &TaskSet, cpu: usize, effort: &Effort) -> bool {
    meets_when_scaled(set, cpu, &|_| Scale::ONE, effort)
}

/// True if they are proven to meet them with execution times scaled.
pub(crate) fn meets_when_scaled(
    set: &TaskSet,
    cpu: usize,
    scale: &impl Fn(usize) -> Scale,
    effort: &Effort,
) -> bool {
    let here = || set.tasks.iter().enumerate().filter(|(_, task)| task.cpu == cpu);
    match set.policy {
        Policy::FixedPriority => here().all(|(place, _)| fixed_priority::meets(set, place, scale, effort)),
        Policy::EarliestDeadline => earliest_deadline::meets(set, cpu, scale, effort),
        Policy::Reservation => {
            let (numerator, denominator) = reservation::DEFAULT_LIMIT;
            let shares: Vec<_> = here()
                .map(|(place, task)| {
                    let Scale { numerator: factor, denominator: unit } = scale(place);
                    let cost = u128::from(task.wcet_ns) * factor * u128::from(denominator);
                    (cost, u128::from(task.period_ns) * unit * u128::from(numerator))
                })
                .collect();
            compare_with_one(shares.iter().copied()).is_some_and(std::cmp::Ordering::is_le)
                && earliest_deadline::meets(set, cpu, scale, effort)
        }
    }
}
