//! Slack: possible growth of execution times, of one task or of all together.
//!
//! The sections of a task grow with it; a given `blocking` does not. Slack is the growth in per
//! cent: at 25 all deadlines are still met at 1.25 times the execution time. Below 0 it is the cut
//! that is needed.

use crate::deadlines;
use crate::effort::Effort;
use crate::fixed_priority::Scale;
use crate::task::TaskSet;
use crate::utilisation::compare_with_one;

/// Tasks with growing execution times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growing {
    /// The task at this index, analysed with all tasks on its processor.
    Task(usize),
    /// All tasks of all processors, by one factor.
    System,
}

/// Possible growth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Slack {
    /// Largest factor.
    Factor(f64),
    /// Unlimited growth: the task takes no time.
    Unlimited,
    /// Not even a factor of 0 meets all deadlines.
    Hopeless,
    /// Not found within the effort allowed.
    Unknown,
}

impl Slack {
    /// Growth in per cent; below 0 if execution times must shrink.
    #[must_use]
    pub fn percent(self) -> Option<f64> {
        match self {
            // Rounded where the subtraction leaves nothing but noise.
            Self::Factor(factor) => Some(((factor - 1.0) * 1e11).round() / 1e9),
            Self::Unlimited | Self::Hopeless | Self::Unknown => None,
        }
    }
}

impl std::fmt::Display for Slack {
    /// Prints per cent with two decimals, halves away from zero.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Factor(_) => {
                let percent = self.percent().unwrap_or_default();
                // Adding 0 turns -0 into 0.
                write!(f, "{:.2} %", (percent * 100.0).round() / 100.0 + 0.0)
            }
            Self::Unlimited => f.write_str("unlimited"),
            Self::Hopeless => f.write_str("no factor helps"),
            Self::Unknown => f.write_str("not found"),
        }
    }
}

/// Largest execution time of one task at which all tasks on its processor meet their deadlines,
/// exact, ns.
///
/// # Errors
/// The slack, if it is not a number.
pub fn largest_wcet(set: &TaskSet, place: usize, effort: &Effort) -> Result<u64, Slack> {
    let task = &set.tasks[place];
    let longest = task.deadline_ns.max(task.wcet_ns);
    let denominator = u128::from(task.wcet_ns.max(1));
    let holds = |wcet: u64| {
        let factor = if task.wcet_ns == 0 { 1 } else { u128::from(wcet) };
        let scale =
            |other| Scale { numerator: if other == place { factor } else { denominator }, denominator };
        meets_when_scaled(set, Growing::Task(place), &scale, effort)
    };
    if task.wcet_ns == 0 {
        return Err(if holds(0) { Slack::Unlimited } else { Slack::Hopeless });
    }
    let (mut good, mut bad) = if holds(task.wcet_ns) {
        (task.wcet_ns, longest + 1)
    } else if holds(0) {
        (0, task.wcet_ns)
    } else {
        return Err(if effort.exhausted() { Slack::Unknown } else { Slack::Hopeless });
    };
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if holds(middle) { good = middle } else { bad = middle }
    }
    if effort.exhausted() { Err(Slack::Unknown) } else { Ok(good) }
}

/// Largest factor at which all deadlines are met: for one task exact to the nanosecond, for the
/// system to 2^-32, rounded down.
#[must_use]
pub fn slack(set: &TaskSet, growing: Growing, effort: &Effort) -> Slack {
    if let Growing::Task(place) = growing {
        let wcet = largest_wcet(set, place, effort);
        return wcet
            .map_or_else(|slack| slack, |ns| Slack::Factor(ns as f64 / set.tasks[place].wcet_ns as f64));
    }
    let holds = |factor: u128| {
        let scale = |_| Scale { numerator: factor, denominator: EXACT };
        meets_when_scaled(set, growing, &scale, effort)
    };
    let found = search(set, growing, EXACT, holds);
    if effort.exhausted() { Slack::Unknown } else { found }
}

/// Slack by the method of MAST, the tool of the University of Cantabria: the factor is doubled
/// until deadlines are missed and then bisected to 1/256, and accepted only while the utilisation
/// of every processor is below 0.9975.
#[must_use]
pub fn mast_slack(set: &TaskSet, growing: Growing, effort: &Effort) -> Slack {
    let holds = |factor: u128| {
        let scale = |place| match growing {
            Growing::Task(grown) if grown != place => Scale { numerator: STEPS, denominator: STEPS },
            _ => Scale { numerator: factor, denominator: STEPS },
        };
        if effort.exhausted() {
            return false;
        }
        let cpus = affected_processors(set, growing);
        let below = cpus.into_iter().all(|cpu| {
            let here = set.tasks.iter().enumerate().filter(|(_, task)| task.cpu == cpu);
            let share = here.map(|(place, task)| {
                let (numerator, denominator) = MAST_LIMIT;
                let cost = u128::from(task.wcet_ns) * scale(place).numerator * denominator;
                (cost, u128::from(task.period_ns) * STEPS * numerator)
            });
            compare_with_one(share.collect::<Vec<_>>().iter().copied()).is_some_and(|order| order.is_lt())
        });
        below && meets_when_scaled(set, growing, &scale, effort)
    };
    let found = search(set, growing, STEPS, holds);
    if effort.exhausted() { Slack::Unknown } else { found }
}

/// Largest multiple of `1 / one` for which `holds` is true.
fn search(set: &TaskSet, growing: Growing, one: u128, holds: impl Fn(u128) -> bool) -> Slack {
    let grows = match growing {
        Growing::Task(place) => set.tasks[place].wcet_ns > 0,
        Growing::System => set.tasks.iter().any(|task| task.wcet_ns > 0),
    };
    if !grows {
        return if holds(one) { Slack::Unlimited } else { Slack::Hopeless };
    }
    let (mut good, mut bad) = if holds(one) {
        let mut good = one;
        // A factor of 2^64 takes every task beyond the longest deadline.
        while good < one << 64 && holds(2 * good) {
            good *= 2;
        }
        (good, 2 * good)
    } else if holds(0) {
        (0, one)
    } else {
        return Slack::Hopeless;
    };
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if holds(middle) { good = middle } else { bad = middle }
    }
    Slack::Factor(good as f64 / one as f64)
}

fn meets_when_scaled(
    set: &TaskSet,
    growing: Growing,
    scale: &impl Fn(usize) -> Scale,
    effort: &Effort,
) -> bool {
    if effort.exhausted() {
        return false;
    }
    let mut cpus = affected_processors(set, growing).into_iter();
    cpus.all(|cpu| deadlines::meets_when_scaled(set, cpu, scale, effort))
}

/// Processors with growing tasks.
pub(crate) fn affected_processors(set: &TaskSet, growing: Growing) -> Vec<usize> {
    let mut cpus = match growing {
        Growing::Task(place) => vec![set.tasks[place].cpu],
        Growing::System => set.tasks.iter().map(|task| task.cpu).collect(),
    };
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

/// Steps per factor of 1 in the search for the system's slack.
const EXACT: u128 = 1 << 32;

/// Steps per factor of 1 in MAST's search.
const STEPS: u128 = 256;

/// Utilisation at which MAST stops, as a fraction.
const MAST_LIMIT: (u128, u128) = (9_975, 10_000);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Task;

    fn both(tasks: Vec<Task>, growing: Growing) -> [String; 2] {
        let set = TaskSet::new(tasks);
        [slack(&set, growing, &Effort::default()), mast_slack(&set, growing, &Effort::default())]
            .map(|slack| slack.to_string())
    }

    #[test]
    fn the_two_tasks_of_the_controllers_paper() {
        let tasks =
            vec![Task::new("tau1", 99, 1_000_000, 500_000), Task::new("tau2", 80, 5_000_000, 1_500_000)];
        assert_eq!(both(tasks.clone(), Growing::Task(0)), ["40.00 %", "39.45 %"]);
        assert_eq!(both(tasks.clone(), Growing::Task(1)), ["66.67 %", "65.63 %"]);
        assert_eq!(both(tasks, Growing::System), ["25.00 %", "24.61 %"]);
    }

    // feature(analyse): slack, exact and MAST's way: 39.45, 65.63, 24.61 %; Table 6 with 914.06 %
    #[test]
    fn the_five_tasks_of_the_controllers_paper() {
        let times = [(10, 29), (10, 432), (20, 590), (30, 460), (200, 762)];
        let tasks: Vec<_> = (0..5)
            .map(|n| Task::new(n.to_string(), 99 - n as u32, times[n].0 * 1_000_000, times[n].1 * 1_000))
            .collect();
        let responses = crate::fixed_priority::response_times(&TaskSet::new(tasks.clone()));
        let responses: Vec<_> = responses.into_iter().map(|response| response.ns().unwrap()).collect();
        assert_eq!(responses, [29_000, 461_000, 1_051_000, 1_511_000, 2_273_000]);
        // Printed with one digit.
        let slack = ["31082.42 %", "2086.33 %", "3055.47 %", "5864.45 %", "23694.14 %"];
        for (task, slack) in slack.into_iter().enumerate() {
            assert_eq!(both(tasks.clone(), Growing::Task(task))[1], slack);
        }
        assert_eq!(both(tasks, Growing::System)[1], "914.06 %");
    }

    #[test]
    fn what_is_too_much_has_negative_slack() {
        let tasks = vec![Task::new("a", 2, 10, 5), Task::new("b", 1, 10, 10)];
        assert_eq!(both(tasks.clone(), Growing::Task(1)), ["-50.00 %", "-50.39 %"]);
        assert_eq!(both(tasks.clone(), Growing::Task(0)), ["-100.00 %", "no factor helps"]);
        assert_eq!(both(tasks, Growing::System)[0], "-33.33 %");
    }

    #[test]
    fn idle_task_has_unlimited_slack_and_hopeless_one_none() {
        let mut tasks = vec![Task::new("idle", 2, 10, 0), Task::new("b", 1, 10, 10)];
        assert_eq!(both(tasks.clone(), Growing::Task(0))[0], "unlimited");
        tasks[1].blocking_ns = 11;
        tasks[0].wcet_ns = 1;
        assert_eq!(both(tasks, Growing::Task(0)), ["no factor helps", "no factor helps"]);
    }
}
