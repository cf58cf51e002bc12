//! Utilisation of a processor, compared exactly, and the bounds on it.

use std::cmp::Ordering;

use crate::task::Task;

/// Sum of execution time over period, for display; comparisons use [`compare`].
#[must_use]
pub fn utilisation<'a>(tasks: impl IntoIterator<Item = &'a Task>) -> f64 {
    tasks.into_iter().map(|task| task.wcet_ns as f64 / task.period_ns as f64).sum()
}

/// Order of the utilisation and `numerator / denominator`, exact.
///
/// `None` if the periods have no common multiple below 2^120 and the sum is closer than about
/// 10^-20.
#[must_use]
pub fn compare<'a>(
    tasks: impl IntoIterator<Item = &'a Task>,
    numerator: u64,
    denominator: u64,
) -> Option<Ordering> {
    let each = tasks.into_iter().map(|task| {
        let cost = u128::from(task.wcet_ns) * u128::from(denominator);
        let period = u128::from(task.period_ns) * u128::from(numerator);
        (cost, period)
    });
    if numerator == 0 {
        let any = each.map(|(cost, _)| cost).any(|cost| cost > 0);
        return Some(if any { Ordering::Greater } else { Ordering::Equal });
    }
    compare_with_one(each.collect::<Vec<_>>().iter().copied())
}

/// Bound of Liu and Layland 1973: rate-monotonic `n` tasks with deadlines equal to their periods
/// are schedulable up to `n (2^(1/n) - 1)`.
#[must_use]
pub fn liu_layland_bound(tasks: usize) -> f64 {
    let n = tasks.max(1) as f64;
    n * ((std::f64::consts::LN_2 / n).exp_m1())
}

/// Product of `U + 1` over the tasks. Rate-monotonic tasks with deadlines equal to their periods
/// are schedulable while it is at most 2 (Bini, Buttazzo and Buttazzo 2003).
#[must_use]
pub fn hyperbolic_product<'a>(tasks: impl IntoIterator<Item = &'a Task>) -> f64 {
    tasks.into_iter().map(|task| task.wcet_ns as f64 / task.period_ns as f64 + 1.0).product()
}

/// Order of a sum of fractions and 1.
pub(crate) fn compare_with_one(fractions: impl Iterator<Item = (u128, u128)> + Clone) -> Option<Ordering> {
    by_bounds(fractions.clone()).or_else(|| exactly(fractions))
}

/// Order by the sum rounded down and rounded up, where that decides.
fn by_bounds(fractions: impl Iterator<Item = (u128, u128)>) -> Option<Ordering> {
    let one = 1_u128 << PLACES;
    let (mut low, mut high) = (0_u128, 0_u128);
    for (numerator, denominator) in fractions {
        let (whole, rest) = (numerator / denominator, numerator % denominator);
        if whole >= 1 {
            if whole > 1 || rest > 0 || low > 0 {
                return Some(Ordering::Greater);
            }
            low += one;
            high += one;
            continue;
        }
        // Keeps the remainder small enough to be shifted; the bits cut off only widen the bounds.
        let cut = (u128::BITS - rest.leading_zeros()).saturating_sub(u128::BITS - PLACES - 1);
        let (rest_low, rest_high) = (rest >> cut, (rest >> cut) + u128::from(cut > 0));
        let (below, above) = (denominator >> cut, (denominator >> cut) + u128::from(cut > 0));
        low += (rest_low << PLACES) / above.max(1);
        high += (rest_high << PLACES).div_ceil(below.max(1));
        if low > one {
            return Some(Ordering::Greater);
        }
    }
    (high < one).then_some(Ordering::Less)
}

/// Order by the sum as one fraction.
fn exactly(fractions: impl Iterator<Item = (u128, u128)>) -> Option<Ordering> {
    let (mut sum, mut common) = (0_u128, 1_u128);
    for (numerator, denominator) in fractions {
        let shared = greatest_common_divisor(numerator, denominator);
        let (numerator, denominator) = (numerator / shared, denominator / shared);
        let shared = greatest_common_divisor(common, denominator);
        let multiple = (common / shared).checked_mul(denominator)?;
        let raised = sum.checked_mul(multiple / common)?;
        sum = raised.checked_add(numerator.checked_mul(multiple / denominator)?)?;
        common = multiple;
    }
    Some(sum.cmp(&common))
}

fn greatest_common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

/// Binary places of the rounded sums.
const PLACES: u32 = 64;

/// Default share of each processor that the kernel gives to real-time work: `sched_rt_runtime_us`
/// of `sched_rt_period_us`, 950 000 of 1 000 000.
pub const DEFAULT_LIMIT: (u64, u64) = (950_000, 1_000_000);

/// True if the kernel admits these reservations (runtime is the execution time) on `cpus`
/// processors: the sum of runtime / period is at most the limit's share of all (Linux,
/// `Documentation/scheduler/sched-deadline.rst`).
///
/// On one processor with deadlines equal to periods that is also a proof; otherwise it only bounds
/// the lateness of jobs.
#[must_use]
pub fn is_admitted(tasks: &[Task], cpus: usize, limit: (u64, u64)) -> bool {
    let share = limit.0.saturating_mul(cpus as u64);
    compare(tasks, share, limit.1).is_some_and(Ordering::is_le)
}

/// True if global earliest deadline first on `cpus` processors certainly meets all deadlines: the
/// density test of Goossens, Funk and Baruah 2003, `sum d_i <= m - (m - 1) max d_i` with `d_i = C_i
/// / min(D_i - J_i, P_i)`.
///
/// Sufficient, not necessary. Rounding is towards `false`.
#[must_use]
pub fn is_globally_schedulable(tasks: &[Task], cpus: usize) -> bool {
    const BITS: u32 = 60;
    let density = |task: &Task| {
        let time = task.deadline_ns.saturating_sub(task.jitter_ns).min(task.period_ns);
        let cost = u128::from(task.wcet_ns) << BITS;
        if time == 0 {
            if cost == 0 { 0 } else { u128::MAX >> 32 }
        } else {
            cost.div_ceil(u128::from(time))
        }
    };
    let densities = || tasks.iter().map(density);
    let (sum, largest) = (densities().fold(0, u128::saturating_add), densities().max().unwrap_or(0));
    let one = 1_u128 << BITS;
    let cpus = cpus as u128;
    largest <= one && sum.saturating_add(cpus.saturating_sub(1) * largest) <= cpus * one
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(fractions: &[(u128, u128)]) -> Option<Ordering> {
        compare_with_one(fractions.iter().copied())
    }

    #[test]
    fn sums_are_compared_exactly() {
        assert_eq!(of(&[(1, 3), (1, 3), (1, 3)]), Some(Ordering::Equal));
        assert_eq!(of(&[(1, 3), (1, 3), (1, 3), (1, u128::from(u64::MAX))]), Some(Ordering::Greater));
        assert_eq!(of(&[(1, 3), (1, 3), (333_333_333, 1_000_000_000)]), Some(Ordering::Less));
        assert_eq!(of(&[(5, 5)]), Some(Ordering::Equal));
        assert_eq!(of(&[(5, 5), (0, 7)]), Some(Ordering::Equal));
        assert_eq!(of(&[(1, 7), (5, 5)]), Some(Ordering::Greater));
        assert_eq!(of(&[(7, 5)]), Some(Ordering::Greater));
        assert_eq!(of(&[]), Some(Ordering::Less));
        let huge = u128::MAX >> 8;
        assert_eq!(of(&[(huge, huge), (1, huge)]), Some(Ordering::Greater));
        assert_eq!(of(&[(huge / 2, huge)]), Some(Ordering::Less));
    }

    #[test]
    fn ten_thousand_strange_periods_are_compared_at_once() {
        let many: Vec<_> = (0..10_000_u128).map(|n| (1_000_003 + n, (1_000_003 + n) * 10_001)).collect();
        assert_eq!(of(&many), Some(Ordering::Less));
    }

    // feature(analyse): utilisation bounds, priority assignment, partitions
    #[test]
    fn the_bounds_are_the_textbooks() {
        assert!((liu_layland_bound(1) - 1.0).abs() < 1e-12);
        assert!((liu_layland_bound(2) - 0.828_427).abs() < 1e-6);
        assert!((liu_layland_bound(1_000_000) - std::f64::consts::LN_2).abs() < 1e-6);
        let tasks = [Task::new("a", 2, 2, 1), Task::new("b", 1, 3, 1)];
        assert!((hyperbolic_product(&tasks) - 2.0).abs() < 1e-12);
        assert_eq!(compare(&tasks, 5, 6), Some(Ordering::Equal));
        assert_eq!(compare(&tasks, 0, 1), Some(Ordering::Greater));
    }

    // feature(analyse): EDF and SCHED_DEADLINE reservations
    #[test]
    fn the_kernel_keeps_five_percent() {
        let task = |wcet| Task::new("a", 0, 1_000_000, wcet);
        assert!(is_admitted(&[task(950_000)], 1, DEFAULT_LIMIT));
        assert!(!is_admitted(&[task(950_001)], 1, DEFAULT_LIMIT));
        assert!(is_admitted(&[task(950_000), task(950_000)], 2, DEFAULT_LIMIT));
    }

    #[test]
    fn a_heavy_task_costs_global_scheduling_much() {
        // Dhall's effect: two light tasks and one heavy one on two processors.
        let light = |name: &str| Task::new(name, 0, 10, 2);
        let heavy = Task::new("heavy", 0, 11, 10);
        assert!(!is_globally_schedulable(&[light("a"), light("b"), heavy], 2));
        assert!(is_globally_schedulable(&[light("a"), light("b"), light("c")], 2));
        assert!(is_globally_schedulable(&[light("a")], 1));
    }
}
