//! Assignment of priorities and processors to tasks.

use crate::Policy;
use crate::deadlines::meets_deadlines;
use crate::effort::Effort;
use crate::fixed_priority::response_time;
use crate::task::{Task, TaskSet};

/// Gives higher priorities to shorter periods (Liu and Layland 1973): optimal when deadlines equal
/// periods, without jitter and blocking.
pub fn rate_monotonic(set: &mut TaskSet) {
    by_key(set, |task| task.period_ns);
}

/// Gives higher priorities to shorter deadlines less jitter (Leung and Whitehead 1982; with jitter
/// Zuhily and Burns 2007): optimal when deadlines are within the periods, without blocking.
pub fn deadline_monotonic(set: &mut TaskSet) {
    by_key(set, |task| task.deadline_ns.saturating_sub(task.jitter_ns));
}

/// Finds priorities that meet all deadlines, if there are any and the effort suffices (Audsley
/// 1991): the lowest goes to a task that meets its deadline with it, and so on upwards. Returns
/// `false` if there are none; the set is then unchanged.
#[must_use]
pub fn audsley(set: &mut TaskSet, effort: &Effort) -> bool {
    let before: Vec<u32> = set.tasks.iter().map(|task| task.priority).collect();
    let highest = set.tasks.len() as u32;
    let mut open: Vec<usize> = (0..set.tasks.len()).collect();
    // Of the tasks feasible at a level, the one with the latest deadline: it leaves the most to the
    // others.
    open.sort_by_key(|&place| std::cmp::Reverse(set.tasks[place].deadline_ns));
    for &place in &open {
        set.tasks[place].priority = highest + 1;
    }
    for level in 1..=highest {
        let found = open.iter().take_while(|_| !effort.exhausted()).position(|&place| {
            set.tasks[place].priority = level;
            let bears = response_time(set, place, effort).meets(set.tasks[place].deadline_ns);
            if !bears {
                set.tasks[place].priority = highest + 1;
            }
            bears
        });
        let Some(found) = found else {
            for (task, priority) in set.tasks.iter_mut().zip(before) {
                task.priority = priority;
            }
            return false;
        };
        open.remove(found);
    }
    true
}

/// Strategy for spreading tasks over processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// First fit, the first processor that meets all deadlines: leaves processors free.
    First,
    /// Worst fit, the least loaded of the processors that meet all deadlines: leaves capacity on
    /// each.
    Worst,
}

/// Spreads the tasks over `cpus` processors, the heaviest first, keeping priorities.
///
/// # Errors
/// The first task that fits on no processor; the set is then unchanged.
pub fn partition(set: &mut TaskSet, cpus: usize, fit: Fit, effort: &Effort) -> Result<(), String> {
    let share = |task: &Task| task.wcet_ns as f64 / task.period_ns as f64;
    let mut order: Vec<usize> = (0..set.tasks.len()).collect();
    order.sort_by(|&a, &b| share(&set.tasks[b]).total_cmp(&share(&set.tasks[a])));
    let mut load = vec![0.0; cpus];
    let mut placed = TaskSet { tasks: Vec::new(), ..*set };
    for place in order {
        let mut choices: Vec<usize> = (0..cpus).collect();
        if fit == Fit::Worst {
            choices.sort_by(|&a, &b| f64::total_cmp(&load[a], &load[b]));
        }
        let fits = choices.into_iter().find(|&cpu| {
            placed.tasks.push(Task { cpu, ..set.tasks[place].clone() });
            let fits = placed.check().is_ok() && meets_deadlines(&placed, cpu, effort);
            if !fits {
                placed.tasks.pop();
            }
            fits
        });
        let Some(cpu) = fits else { return Err(set.tasks[place].name.clone()) };
        load[cpu] += share(&set.tasks[place]);
    }
    for task in &mut set.tasks {
        if let Some(found) = placed.tasks.iter().find(|placed| placed.name == task.name) {
            task.cpu = found.cpu;
        }
    }
    Ok(())
}

fn by_key(set: &mut TaskSet, key: impl Fn(&Task) -> u64) {
    set.policy = Policy::FixedPriority;
    let mut order: Vec<usize> = (0..set.tasks.len()).collect();
    order.sort_by_key(|&place| key(&set.tasks[place]));
    let highest = set.tasks.len() as u32;
    for (rank, place) in order.into_iter().enumerate() {
        set.tasks[place].priority = highest - rank as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn priorities(set: &TaskSet) -> Vec<u32> {
        set.tasks.iter().map(|task| task.priority).collect()
    }

    #[test]
    fn the_shorter_the_higher() {
        let mut set = TaskSet::new(vec![
            Task::new("a", 1, 30, 1),
            Task::new("b", 1, 10, 1),
            Task::new("c", 1, 20, 1),
        ]);
        rate_monotonic(&mut set);
        assert_eq!(priorities(&set), [1, 3, 2]);
        set.tasks[0].deadline_ns = 5;
        set.tasks[1].jitter_ns = 6;
        deadline_monotonic(&mut set);
        assert_eq!(priorities(&set), [2, 3, 1]);
    }

    // feature(analyse): utilisation bounds, priority assignment, partitions
    #[test]
    fn audsley_finds_what_deadline_monotonic_does_not() {
        // With arbitrary deadlines deadline monotonic is not optimal: Lehoczky's example with a
        // deadline of 115.
        let mut a = Task::new("a", 1, 70, 52);
        let mut b = Task::new("b", 1, 100, 25);
        (a.deadline_ns, b.deadline_ns) = (110, 100);
        let all_meet = |set: &TaskSet| meets_deadlines(set, 0, &Effort::default());
        let mut found_one = false;
        for cost in 1..=60 {
            for deadline in 60..=200 {
                (a.wcet_ns, a.deadline_ns) = (cost, deadline);
                let mut set = TaskSet::new(vec![a.clone(), b.clone()]);
                deadline_monotonic(&mut set);
                let monotonic = all_meet(&set);
                let possible = audsley(&mut set, &Effort::default());
                assert!(possible == all_meet(&set) || !possible, "what it gives is schedulable");
                assert!(possible || !monotonic, "it never finds less");
                found_one |= possible && !monotonic;
            }
        }
        assert!(found_one);
    }

    // feature(analyse): utilisation bounds, priority assignment, partitions
    #[test]
    fn tasks_are_spread_until_they_fit() {
        let tasks = (1..=4).map(|n| Task::new(format!("t{n}"), n, 10, 4)).collect();
        let set = TaskSet::new(tasks);
        let cpus = |fit| {
            let mut set = set.clone();
            partition(&mut set, 3, fit, &Effort::default())
                .map(|()| set.tasks.iter().map(|task| task.cpu).collect::<Vec<_>>())
        };
        assert_eq!(cpus(Fit::First), Ok(vec![0, 0, 1, 1]));
        assert_eq!(cpus(Fit::Worst), Ok(vec![0, 1, 2, 0]));
        let too_few = partition(&mut set.clone(), 1, Fit::First, &Effort::default());
        assert_eq!(too_few, Err("t3".into()));
    }
}
