//! Runs in the papers' own tables: rows or columns of each run next to the papers' values,
//! including co-kernels.

use report::compare::Run;
use report::{Row, Table};
use serde_json::Value;

use crate::paper::{Figure, Paper};

/// Tables of the experiment's paper with these runs in them; none where the runs lack the
/// quantities.
#[must_use]
pub fn tables(runs: &[Run]) -> Vec<Table> {
    let Some(first) = runs.first() else { return Vec::new() };
    let tables = match first.report.experiment.as_str() {
        "servo" => vec![servo(runs)],
        "interference" => vec![interference(runs)],
        "tasks" => vec![tasks(runs)],
        "ipc" => vec![within(runs), sender(runs)],
        "tuning" => [("none", "Figure 7"), ("paper", "Figure 8"), ("light", "Figure 8")]
            .map(|(load, name)| tuning(runs, load, name))
            .into(),
        _ => Vec::new(),
    };
    tables.into_iter().flatten().collect()
}

/// Table 3 of the servo paper: its rows, a column for each run and each kernel of the paper.
fn servo(runs: &[Run]) -> Option<Table> {
    let printed = figure(Paper::Servo, "Table 3")?;
    let scale = |unit: &str| if unit == "ms" { 1e6 } else { 1e3 };
    let mut some = false;
    let rows = printed.rows.iter().map(|cells| {
        // `T_period average, ms`
        let (name, unit) = cells[0].split_once(", ").unwrap_or((&cells[0], "us"));
        let (quantity, statistic) = name.split_once(' ').unwrap_or((name, ""));
        let key = format!("{}_ns", quantity.to_lowercase());
        let ours = runs.iter().map(|run| {
            let ns = run.report.values.get(&key).and_then(|it| it[statistic_key(statistic)].as_f64());
            some |= ns.is_some();
            fixed(ns.map(|ns| ns / scale(unit)), if unit == "ms" { 6 } else { 3 })
        });
        let ours: Vec<String> = ours.collect();
        Row {
            name: cells[0].clone(),
            cells: ours.into_iter().chain(cells[1..].iter().cloned()).collect(),
            from_paper: false,
        }
    });
    let rows = rows.collect();
    let columns = std::iter::once(String::new())
        .chain(runs.iter().map(|run| run.name.clone()))
        .chain(printed.columns.iter().map(|it| format!("{it} (paper)")));
    let table = Table {
        caption: "Table 3 of the servo paper with these runs: six drives at 1 ms".into(),
        columns: columns.collect(),
        rows,
    };
    some.then_some(table)
}

/// Table I of the master-performance paper: its columns, four rows for each run, then the paper's.
fn interference(runs: &[Run]) -> Option<Table> {
    let printed = figure(Paper::MasterPerformance, "Table I")?;
    let statistics = [
        ("mean", "mean_ns"),
        ("SD", "standard_deviation_ns"),
        ("min", "minimum_ns"),
        ("max", "maximum_ns"),
    ];
    let loads = ["none", "cpu", "k-lock", "irq"];
    let rows = runs.iter().flat_map(|run| {
        let cell = |load: &str| {
            let cells = run.report.values.get("cells")?.as_array()?;
            cells.iter().find(|it| it["load"] == load && it["period_ns"] == 1_000_000)
        };
        statistics.map(|(name, key)| {
            let of =
                |load| fixed(cell(load).and_then(|it| it["jitter"][key].as_f64()).map(|ns| ns / 1e3), 3);
            ours(format!("{}: {name}", run.name), loads.map(of).into())
        })
    });
    with_printed(
        "Table I of the master-performance paper with these runs: jitter J, us, at 1000 us",
        &printed,
        rows.collect(),
    )
}

/// Table 3 of the controllers paper: its columns, four rows for each run, then the rows of the
/// boards under Xenomai.
fn tasks(runs: &[Run]) -> Option<Table> {
    let printed = figure(Paper::Controllers, "Table 3")?;
    let statistics = ["avg", "max", "min", "SD"];
    let columns = [0, 1].map(|place| ["period_ns", "response_ns", "jitter_ns"].map(|key| (place, key)));
    let rows = runs.iter().flat_map(|run| {
        let value = |(place, key): (usize, &str), statistic: &str| {
            let task = run.report.values.get("tasks")?.get(place)?;
            task[key][statistic_key(statistic)].as_f64()
        };
        statistics.map(|statistic| {
            let cells =
                columns.iter().flatten().map(|&it| fixed(value(it, statistic).map(|ns| ns / 1e6), 6));
            ours(format!("{}: {statistic}", run.name), cells.collect())
        })
    });
    with_printed(
        "Table 3 of the controllers paper with these runs: period P, response R, jitter J, ms",
        &printed,
        rows.collect(),
    )
}

/// Table 4 of the controllers paper: its columns, a row for each run, then the boards under
/// Xenomai.
fn within(runs: &[Run]) -> Option<Table> {
    let printed = figure(Paper::Controllers, "Table 4")?;
    let rows = runs.iter().map(|run| {
        let of = |means: &str| find(run, "within_two_tasks", "means", means);
        let cells = ["semaphore", "mutex"].map(|means| {
            let response = of(means).and_then(|it| it["response_ns"]["average"].as_f64());
            [response, of(means).and_then(|it| it["more_ns"].as_f64())]
                .map(|ns| fixed(ns.map(|ns| ns / 1e3), 3))
        });
        ours(run.name.clone(), cells.concat())
    });
    with_printed(
        "Table 4 of the controllers paper with these runs: response R of tau1, and T = R - R0, us",
        &printed,
        rows.collect(),
    )
}

/// Table 5 of the controllers paper: its columns, four rows for each run and queue, then the boards
/// under Xenomai.
fn sender(runs: &[Run]) -> Option<Table> {
    let printed = figure(Paper::Controllers, "Table 5")?;
    let queues = [("", "POSIX message queue"), (", our port", "our port, waking by an event")];
    let rows = runs.iter().flat_map(|run| queues.map(|queue| (run, queue)));
    let rows = rows.flat_map(|(run, (suffix, mechanism))| {
        let sent = find(run, "periodic_sender", "mechanism", mechanism);
        ["avg", "max", "min", "SD"].map(|statistic| {
            let ns = |key: &str| sent.and_then(|it| it[key][statistic_key(statistic)].as_f64());
            let periods =
                ["sender_period_ns", "receiver_period_ns"].map(|key| fixed(ns(key).map(|ns| ns / 1e6), 6));
            let message = fixed(ns("message_ns").map(|ns| ns / 1e3), 3);
            ours(
                format!("{}{suffix}: {statistic}", run.name),
                periods.into_iter().chain([message]).collect(),
            )
        })
    });
    with_printed(
        "Table 5 of the controllers paper with these runs: periods of sender and receiver, and T of a message through a queue",
        &printed,
        rows.collect(),
    )
}

/// A run's value of this name.
fn find<'a>(run: &'a Run, values: &str, key: &str, name: &str) -> Option<&'a Value> {
    run.report.values.get(values)?.as_array()?.iter().find(|it| it[key] == name)
}

/// Maxima of T_period in the humanoid paper's Figures 7 and 8: its columns, two rows for each run,
/// then the paper's.
fn tuning(runs: &[Run], load: &str, name: &str) -> Option<Table> {
    let mut printed = figure(Paper::Humanoid, name)?;
    printed.rows.retain(|row| row[0] == "low 99 %: max" || row[0] == "100 %: max");
    let rows = runs.iter().flat_map(|run| {
        let value = |column: &str, share: &str| {
            let letters = if column == "No tuning" { "none" } else { column };
            let cells = run.report.values.get("cells")?.as_array()?;
            let cell = cells.iter().find(|it| it["column"] == letters && it["load"] == load)?;
            cell["t_period_ns"][share]["maximum"].as_f64()
        };
        [("low 99 %: max", "low_99"), ("100 %: max", "low_100")].map(|(name, share)| {
            let cells = printed.columns.iter().map(|it| fixed(value(it, share).map(|ns| ns / 1e3), 1));
            ours(format!("{}: {name}", run.name), cells.collect())
        })
    });
    let rows = rows.collect();
    let lighter = if load == "light" { ", ours under a lighter load" } else { "" };
    let caption =
        format!("{name} of the humanoid paper with these runs: the longest T_period, us{lighter}");
    with_printed(&caption, &printed, rows)
}

/// Our rows, then the paper's; `None` if none of ours has a number.
fn with_printed(caption: &str, printed: &Figure, rows: Vec<Row>) -> Option<Table> {
    let some = rows.iter().flat_map(|row| &row.cells).any(|it| it != NONE);
    let paper = printed.table();
    let rows = rows.into_iter().chain(paper.rows).collect();
    some.then(|| Table { caption: caption.to_owned(), columns: paper.columns, rows })
}

fn figure(paper: Paper, name: &str) -> Option<Figure> {
    paper.contents().figures.into_iter().find(|it| it.name == name)
}

fn ours(name: String, cells: Vec<String>) -> Row {
    Row { name, cells, from_paper: false }
}

/// Key of a statistic in `values`, by its name in the papers.
fn statistic_key(name: &str) -> &'static str {
    match name {
        "average" | "avg" => "average",
        "maximum" | "max" => "maximum",
        "minimum" | "min" => "minimum",
        _ => "standard_deviation",
    }
}

fn fixed(value: Option<f64>, digits: usize) -> String {
    let text = value.map_or_else(|| NONE.to_owned(), |it| format!("{it:.digits$}"));
    // A mean within the rounding error is 0, without a sign.
    match text
        .strip_prefix('-')
        .filter(|it| !it.is_empty() && it.chars().all(|letter| "0.".contains(letter)))
    {
        Some(zero) => zero.to_owned(),
        None => text,
    }
}

const NONE: &str = "-";

#[cfg(test)]
mod tests {
    use report::Report;
    use serde_json::json;

    use super::*;

    fn runs(experiment: &str, values: Value) -> Vec<Run> {
        let Value::Object(values) = values else { panic!("an object") };
        let report = Report { experiment: experiment.into(), values, ..Report::default() };
        ["6.1", "6.1 RT"].map(|name| Run { name: name.into(), report: report.clone() }).into()
    }

    fn row(table: &Table, name: &str) -> Vec<String> {
        table
            .rows
            .iter()
            .find(|it| it.name == name)
            .unwrap_or_else(|| panic!("{name}: {table:?}"))
            .cells
            .clone()
    }

    // feature(measure): runs of several kernels in the papers' tables, next to the papers' columns and co-kernels
    #[test]
    fn runs_are_listed_next_to_the_papers_co_kernels() {
        let four = json!({ "average": 1_000_000.0, "maximum": 1_250_000, "minimum": 900_000, "standard_deviation": 1_500.0 });
        let [table] =
            tables(&runs("servo", json!({ "t_period_ns": four, "t_jitter_ns": four }))).try_into().unwrap();
        let expected = ["", "6.1", "6.1 RT", "RT_PREEMPT (paper)", "Xenomai (paper)"];
        assert_eq!(table.columns, expected);
        assert_eq!(row(&table, "T_period maximum, ms"), ["1.250000", "1.250000", "1.103708", "1.024125"]);
        assert_eq!(row(&table, "T_jitter SD, us"), ["1.500", "1.500", "2.439", "1.195"]);
        assert_eq!(row(&table, "T_exec average, us"), ["-", "-", "94.429", "96.022"]);

        let cell = json!({ "load": "k-lock", "period_ns": 1_000_000, "jitter": { "maximum_ns": 4_500.0 } });
        let [table] = tables(&runs("interference", json!({ "cells": [cell] }))).try_into().unwrap();
        assert_eq!(row(&table, "6.1 RT: max"), ["-", "-", "4.500", "-"]);
        assert_eq!(row(&table, "RTAI: max"), ["2.489", "2.946", "3.789", "7.976"]);

        let task = json!({ "period_ns": four, "response_ns": four, "jitter_ns": four });
        let [table] = tables(&runs("tasks", json!({ "tasks": [task, task] }))).try_into().unwrap();
        assert_eq!(row(&table, "6.1: min"), ["0.900000"; 6]);
        assert!(table.rows.iter().any(|it| it.from_paper && it.name == "Zybo: max"), "{table:?}");

        let within = json!([{ "means": "nothing", "response_ns": four }, { "means": "mutex", "response_ns": four, "more_ns": 30_500.0 }]);
        let sent = json!([{ "mechanism": "POSIX message queue", "sender_period_ns": four, "message_ns": { "average": 15_250.0 } }]);
        let values = json!({ "within_two_tasks": within, "periodic_sender": sent });
        let [table4, table5] = tables(&runs("ipc", values)).try_into().unwrap();
        assert_eq!(row(&table4, "6.1 RT"), ["-", "-", "1000.000", "30.500"]);
        assert_eq!(row(&table4, "Zybo"), ["533.255", "30.6", "534.376", "31.721"]);
        assert_eq!(row(&table5, "6.1: avg"), ["1.000000", "-", "15.250"]);
        assert_eq!(row(&table5, "6.1, our port: avg"), ["-"; 3]);
        assert_eq!(row(&table5, "Zybo: max"), ["1.012644", "1.029186", "31.596"]);

        let share = json!({ "maximum": 1_100_000.0 });
        let cell = json!({ "column": "none", "load": "paper", "t_period_ns": { "low_100": share } });
        let [table] = tables(&runs("tuning", json!({ "cells": [cell] }))).try_into().unwrap();
        assert_eq!(row(&table, "6.1: 100 %: max")[..2], ["1100.0", "-"]);
        assert_eq!(row(&table, "100 %: max")[0], "346148");
    }

    #[test]
    fn a_zero_has_no_sign() {
        assert_eq!([Some(-1e-9), Some(-0.5), None].map(|it| fixed(it, 3)), ["0.000", "-0.500", "-"]);
    }

    #[test]
    fn runs_without_the_quantities_have_no_such_table() {
        for experiment in ["servo", "interference", "tasks", "ipc", "tuning", "other"] {
            assert_eq!(tables(&runs(experiment, json!({}))), []);
        }
        assert_eq!(tables(&[]), []);
    }
}
