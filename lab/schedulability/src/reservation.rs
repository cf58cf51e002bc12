//! Reservations of `SCHED_DEADLINE`: the kernel's admission test, and its guarantee.

use std::cmp::Ordering;

use crate::task::Task;
use crate::utilisation::compare;

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
