//! Schedulability of the measured tasks by utilisation bounds.

use ::devices::Peripheral;
use report::{Row, Section, Table};
use schedulability::utilisation::{hyperbolic_product, liu_layland_bound, utilisation};
use schedulability::{ResponseTime, Task, TaskSet, fixed_priority};
use serde_json::{Value, json};

use super::conduct::Ran;
use super::{nanoseconds, statistics};
use crate::distribution::heads;

/// Task set with measured execution times, rate-monotonic: the shorter the period, the higher the priority.
fn set(peripherals: &[Peripheral], ran: &[Ran], of: Of) -> Option<Vec<Task>> {
    let mut order: Vec<usize> = (0..peripherals.len()).collect();
    order.sort_by_key(|&place| std::cmp::Reverse(peripherals[place].period));
    peripherals
        .iter()
        .zip(ran)
        .enumerate()
        .map(|(place, (it, ran))| {
            let priority = order.iter().position(|&other| other == place).unwrap_or(0) as u32 + 1;
            Some(Task::new(it.name.as_str(), priority, nanoseconds(it.period), of(ran)?))
        })
        .collect()
}

fn median(ran: &Ran) -> Option<u64> {
    statistics(&ran.executions()).percentile(0.5)
}

fn longest(ran: &Ran) -> Option<u64> {
    statistics(&ran.executions()).maximum()
}

/// Selector of one of a task's execution times.
type Of = fn(&Ran) -> Option<u64>;

const WHICH: [(&str, Of); 2] = [("median", median), ("longest", longest)];

/// Tables of the tasks' utilisations and of the bounds.
pub(super) fn sections(peripherals: &[Peripheral], ran: &[Ran]) -> Vec<Section> {
    let Some(sets) = WHICH.iter().map(|(_, of)| set(peripherals, ran, *of)).collect::<Option<Vec<_>>>()
    else {
        return vec![Section::Text("No bound is tested: a task ran no job.".into())];
    };
    let responses: Vec<Vec<ResponseTime>> =
        sets.iter().map(|tasks| fixed_priority::response_times(&TaskSet::new(tasks.clone()))).collect();
    let micros = |ns: u64| report::numbers::microseconds(Some(ns as f64));
    let share = |task: &Task| format!("{:.4} %", 100.0 * utilisation([task]));
    let row = |place: usize| {
        let [median, longest] = [&sets[0][place], &sets[1][place]];
        let computed = responses[1][place].ns().map_or_else(|| "unbounded".to_owned(), micros);
        let cells =
            vec![micros(median.wcet_ns), share(median), micros(longest.wcet_ns), share(longest), computed];
        Row { name: median.name.clone(), cells, from_paper: false }
    };
    let shares = Section::Table(Table {
        caption: "Execution times C, us, start to end: what interrupted a job is in the longest; shares of the processor; \
                  and the worst response R that response-time analysis computes from the longest, us"
            .into(),
        columns: heads("task", &["median C", "U", "longest C", "U of it", "R of longest"]),
        rows: (0..peripherals.len()).map(row).collect(),
    });
    let bound = liu_layland_bound(peripherals.len());
    let row = |(&(name, _), tasks): (&(&str, _), &Vec<Task>)| {
        let (sum, product) = (utilisation(tasks), hyperbolic_product(tasks));
        let verdict = |holds: bool| if holds { "yes" } else { "not proven" }.to_owned();
        let cells = vec![
            format!("{sum:.6}"),
            format!("{bound:.6}"),
            verdict(sum <= bound),
            format!("{product:.6}"),
            verdict(product <= 2.0),
        ];
        Row { name: format!("with the {name} C"), cells, from_paper: false }
    };
    let bounds = Section::Table(Table {
        caption: "Utilisation bounds: schedulable by rate-monotonic priorities if U is at most n (2^(1/n) - 1) (Liu and \
                  Layland), or the product of U + 1 at most 2 (hyperbolic)"
            .into(),
        columns: heads("utilisation", &["U", "Liu and Layland", "holds", "product of U + 1", "at most 2"]),
        rows: WHICH.iter().zip(&sets).map(row).collect(),
    });
    vec![shares, bounds]
}

/// The same as values for programs.
pub(super) fn values(peripherals: &[Peripheral], ran: &[Ran]) -> Value {
    let bound = liu_layland_bound(peripherals.len());
    let of = |of: Of| {
        let tasks = set(peripherals, ran, of)?;
        let (sum, product) = (utilisation(&tasks), hyperbolic_product(&tasks));
        Some(json!({
            "utilisation": sum,
            "liu_layland_bound": bound,
            "liu_layland_holds": sum <= bound,
            "hyperbolic_product": product,
            "hyperbolic_holds": product <= 2.0,
        }))
    };
    json!({ "median": of(median), "longest": of(longest) })
}
