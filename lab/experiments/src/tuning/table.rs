//! Cells as tables, plots and values.

use record::CycleRecord;
use record::lowest::{Lowest, Share};
use report::boxes::Boxes;
use report::numbers::microseconds;
use report::plots::{self, Samples};
use report::{Plot, Report, Row, Section, Table};
use serde_json::{Map, Value, json};

use super::cell::Measured;
use super::{Background, Tuning};
use crate::paper::Paper;

pub(super) fn report(settings: &Tuning, cells: &[Measured]) -> Report {
    let mut report = head(settings, cells);
    for &load in &settings.loads {
        let cells: Vec<&Measured> = cells.iter().filter(|cell| cell.load == load).collect();
        if cells.is_empty() {
            continue;
        }
        let (words, name) = (described(load), load.name());
        report.sections.push(Section::Table(lowest_table(
            &format!("Wakeup latency, us, {words}: the lower the better"),
            &cells,
            |cell| &cell.latency,
        )));
        report.sections.push(Section::Table(lowest_table(
            &format!("T_period, us, {words}: the closer to the period the better"),
            &cells,
            |cell| &cell.period,
        )));
        let figure = if load == Background::None { "Figure 7" } else { "Figure 8" };
        Paper::Humanoid.append(&[figure], &mut report);
        report.sections.push(Section::Table(health(
            &format!("What went wrong, and what the machine did, {words}"),
            &cells,
        )));
        report.sections.extend(pictures(name, &cells));
    }
    doubts(&mut report, cells);
    report.values.extend(values(settings, cells));
    report
}

fn head(settings: &Tuning, cells: &[Measured]) -> Report {
    let mut report = Report {
        experiment: "tuning".to_owned(),
        title: "What each real-time tuning is worth".to_owned(),
        source: Some("the humanoid paper, Figures 7 and 8: 1 ms, 59 SubDevices, 10 min a column".to_owned()),
        measured: "for every cycle of the cycle: the wakeup latency, from the instant it should have started to the one \
                   it did; and T_period, from start to start. Each row is of the lowest so many per cent of the cycles, \
                   so that the rare worst ones show by what they add"
            .to_owned(),
        good: "a 100 % maximum far below the period, and rows that hardly differ: then the worst cycle is like any other"
            .to_owned(),
        found: Some(
            "under load a longest period of 346 ms untuned, 50 ms with C, 1.5 ms with P, 1.1 ms \
             with PC and PMC, and 1.07 ms with PMCS; its standard deviation is a quarter of PMC's"
                .to_owned(),
        ),
        ..Report::default()
    };
    let conditions = cells.first().map(|cell| &cell.conditions);
    if let Some(conditions) = conditions {
        let text = |name: &str| conditions[name].as_str().unwrap_or("not known").to_owned();
        report.condition("sub_devices", conditions["sub_devices"].to_string());
        report.condition("link", format!("{}, {}", text("link"), text("frame_order")));
    }
    report.condition("period", format!("{} ms", settings.period.as_secs_f64() * 1e3));
    report
        .condition("duration", format!("{} s a cell (the paper: 600 s)", settings.duration.as_secs_f64()));
    let letters =
        "P SCHED_FIFO, M memory locked and pre-faulted, C a dedicated CPU, S spins for the last stretch";
    report.condition("letters", letters);
    for (load, of) in [
        (Background::Paper, "the paper's, by processes of our own"),
        (Background::Light, "of the paper's kinds, and lighter, by processes of our own"),
    ] {
        if settings.loads.contains(&load) {
            let kinds: Vec<&str> = load.loads().iter().map(|it| it.describe()).collect();
            report.condition(format!("load {}", load.name()), format!("{of}: {}", kinds.join("; ")));
        }
    }
    report.sections.push(Section::Text(
        "A dash marks a row with too few measured cycles, or a column that was not measured; (got \
         ...) over a column says which of the requested letters the machine granted."
            .to_owned(),
    ));
    report
}

fn described(load: Background) -> &'static str {
    match load {
        Background::None => "unloaded",
        Background::Paper => "under the paper's load",
        Background::Light => "under a lighter load of the paper's kinds",
    }
}

fn heads(cells: &[&Measured]) -> Vec<String> {
    let head = |cell: &&Measured| match cell.is_granted() {
        true => cell.column.title(),
        false => format!("{} (got {})", cell.column.title(), cell.granted),
    };
    std::iter::once(String::new()).chain(cells.iter().map(head)).collect()
}

/// Table of maximum, average and standard deviation of each share, then the minimum and the count.
fn lowest_table(caption: &str, cells: &[&Measured], values: fn(&Measured) -> &Vec<u64>) -> Table {
    let mut rows = Vec::new();
    let figures: [(&str, Of<Lowest, f64>); 3] = [
        ("maximum", |it| it.maximum as f64),
        ("average", |it| it.average),
        ("standard deviation", |it| it.standard_deviation),
    ];
    for share in Share::PAPER {
        for (name, figure) in figures {
            let cell =
                |cell: &&Measured| microseconds(Lowest::of(values(cell), share).as_ref().map(figure));
            rows.push(row(format!("{}: {name}", share.name), cells.iter().map(cell)));
        }
    }
    let minimum = |cell: &&Measured| microseconds(values(cell).first().map(|&it| it as f64));
    rows.push(row("minimum".to_owned(), cells.iter().map(minimum)));
    rows.push(row("samples".to_owned(), cells.iter().map(|cell| values(cell).len().to_string())));
    Table { caption: caption.to_owned(), columns: heads(cells), rows }
}

fn health(caption: &str, cells: &[&Measured]) -> Table {
    let counts: [(&str, Of<Measured, u64>); 5] = [
        ("overruns", |it| it.summary.overruns.count),
        ("skipped releases", |it| it.summary.skipped_releases.count),
        ("lost frames", |it| it.summary.lost_frames.count),
        ("cycles with a wrong working counter", |it| it.summary.working_counter_errors.count),
        ("dropped records", |it| it.summary.dropped_records.count),
    ];
    let mut rows: Vec<Row> = counts
        .into_iter()
        .map(|(name, count)| row(name.to_owned(), cells.iter().map(|cell| count(cell).to_string())))
        .collect();
    for (index, name) in ["machine busy, %", "machine idle, %", "machine stolen, %"].into_iter().enumerate()
    {
        let share = |cell: &&Measured| {
            let whole = cell.busy.as_ref().map(|it| [it.whole.busy, it.whole.idle, it.whole.steal][index]);
            whole.map_or_else(|| "-".to_owned(), |share| format!("{:.1}", share * 100.0))
        };
        rows.push(row(name.to_owned(), cells.iter().map(share)));
    }
    Table { caption: caption.to_owned(), columns: heads(cells), rows }
}

fn row(name: String, cells: impl Iterator<Item = String>) -> Row {
    Row { name, cells: cells.collect(), from_paper: false }
}

fn pictures(load: &str, cells: &[&Measured]) -> Vec<Section> {
    let in_order: Vec<(String, Vec<f64>)> = cells
        .iter()
        .map(|cell| {
            (cell.column.title(), cell.cycles.iter().map(|it| it.wakeup_latency() as f64 / 1e3).collect())
        })
        .collect();
    let samples: Vec<Samples> =
        in_order.iter().map(|(name, values)| Samples { name, values: values.as_slice() }).collect();
    let about = |what: &str| format!("Wakeup latency, load {load}: {what}");
    let periods: Vec<(String, Vec<f64>)> = cells
        .iter()
        .map(|cell| (cell.column.title(), cell.period.iter().map(|&ns| ns as f64 / 1e3).collect()))
        .collect();
    let periods: Vec<Samples> =
        periods.iter().map(|(name, values)| Samples { name, values: values.as_slice() }).collect();
    vec![
        Section::Boxes(Boxes::of(
            &format!("T_period, load {load}: a narrow box at the period is good"),
            "us",
            &periods,
        )),
        Section::Tail(plots::tail(
            &about("share of cycles above each value; a steep fall far left is good"),
            "us",
            &samples,
        )),
        Section::Histogram(plots::histogram(
            &about("how often each value came; far right is late"),
            "us",
            &samples,
        )),
        Section::Trace(trace(&about("over time; peaks are late cycles"), cells, &samples)),
    ]
}

/// Plot with one line a cell, each over its own time: under load some have far fewer cycles than
/// others.
fn trace(caption: &str, cells: &[&Measured], samples: &[Samples]) -> Plot {
    let mut all = Plot::default();
    for (cell, it) in cells.iter().zip(samples) {
        let first = cell.cycles.first().map_or(0, |cycle| cycle.release_ns);
        let since = |cycle: &CycleRecord| cycle.release_ns.saturating_sub(first) as f64 / 1e9;
        let times: Vec<f64> = cell.cycles.iter().map(since).collect();
        let one = plots::trace(caption, "us", &times, &[*it]);
        all = Plot { series: all.series.into_iter().chain(one.series).collect(), ..one };
    }
    all
}

/// Refusals, losses and missing loads: each sentence once, with its cells.
fn doubts(report: &mut Report, cells: &[Measured]) {
    let mut about: Vec<(String, Vec<String>)> = Vec::new();
    for cell in cells {
        let dropped = cell.summary.dropped_records.count;
        let missing = (dropped > 0)
            .then(|| format!("{dropped} cycles are missing in the numbers: the recorder did not keep up"));
        for sentence in cell.refused.iter().chain(&cell.ended_loads).cloned().chain(missing) {
            let name = format!("{}/{}", cell.column.title(), cell.load.name());
            match about.iter_mut().find(|(other, _)| *other == sentence) {
                Some((_, names)) => names.push(name),
                None => about.push((sentence, vec![name])),
            }
        }
    }
    for (sentence, names) in about {
        report.warn(format!("{sentence}; in {}", names.join(", ")));
    }
}

/// Selector of a number.
type Of<T, N> = fn(&T) -> N;

/// Values: `period_ns`, `duration_ns`, and `cells`: each `column` (letters or `none`), `load`,
/// `granted` (letters), `refused`, `samples`, `wakeup_latency_ns` and `t_period_ns` (each `minimum`
/// and, by share, `maximum`, `average`, `standard_deviation`), the counts, `machine`, `recording`.
fn values(settings: &Tuning, cells: &[Measured]) -> Map<String, Value> {
    let cells: Vec<Value> = cells
        .iter()
        .map(|cell| {
            json!({
                "column": cell.column.profile(),
                "load": cell.load.name(),
                "granted": cell.granted,
                "refused": cell.refused,
                "ended_loads": cell.ended_loads,
                "samples": cell.cycles.len(),
                "wakeup_latency_ns": shares(&cell.latency),
                "t_period_ns": shares(&cell.period),
                "overruns": cell.summary.overruns.count,
                "skipped_releases": cell.summary.skipped_releases.count,
                "lost_frames": cell.summary.lost_frames.count,
                "working_counter_errors": cell.summary.working_counter_errors.count,
                "dropped_records": cell.summary.dropped_records.count,
                "machine": cell.busy,
                "conditions": cell.conditions,
                "recording": cell.recording.file_name().map(|it| it.to_string_lossy()),
            })
        })
        .collect();
    let whole = |duration: std::time::Duration| Value::from(types::time::nanoseconds(duration));
    let mut values = Map::new();
    values.insert("period_ns".to_owned(), whole(settings.period));
    values.insert("duration_ns".to_owned(), whole(settings.duration));
    values.insert("cells".to_owned(), cells.into());
    values
}

fn shares(sorted: &[u64]) -> Value {
    let mut values = Map::new();
    values.insert("minimum".to_owned(), json!(sorted.first()));
    for share in Share::PAPER {
        values.insert(share.key.to_owned(), json!(Lowest::of(sorted, share)));
    }
    values.into()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::Column;
    use super::super::cell::Cell;
    use super::*;

    fn measured(cycles: Vec<CycleRecord>, granted: &str) -> Measured {
        let cell = Cell {
            column: "PM".parse::<Column>().unwrap(),
            load: Background::Paper,
            period: Duration::from_millis(1),
            duration: Duration::from_secs(1),
        };
        let mut measured = Measured::new(&cell, 1_000_000, cycles, "PM-paper.mcap".into());
        measured.granted = granted.to_owned();
        measured
    }

    /// One cycle in ten, each `late` ns late.
    fn rare(late: u64) -> Vec<CycleRecord> {
        let info = |cycle: u64| CycleRecord::begin(cycle, cycle * 1_000_000, cycle * 1_000_000 + late);
        (0..1000).step_by(10).map(info).collect()
    }

    #[test]
    fn a_trace_is_drawn_over_its_own_time() {
        let often: Vec<CycleRecord> =
            (0..1000).map(|it| CycleRecord::begin(it, it * 1_000_000, it * 1_000_000)).collect();
        let (rare, often) = (measured(rare(5_000), "PM"), measured(often, "PM"));
        let sections = pictures("paper", &[&rare, &often]);
        let Some(Section::Trace(plot)) = sections.last() else { panic!("{sections:?}") };
        let ends: Vec<f64> = plot.series.iter().map(|it| it.points.last().unwrap().0).collect();
        assert_eq!(ends, [0.99, 0.999]);
    }

    #[test]
    fn a_report_says_what_was_granted_and_each_doubt_once() {
        let mut cells = [measured(rare(5_000), "P"), measured(rare(7_000), "PM")];
        for cell in &mut cells {
            cell.ended_loads = vec!["the load ping ended".to_owned()];
        }
        let report = report(&Tuning { loads: vec![Background::Paper], ..Tuning::default() }, &cells);
        assert_eq!(report.warnings[0], "the load ping ended; in PM/paper, PM/paper");
        let text = report.text();
        assert!(text.contains("PM (got P)"), "{text}");
        let cells = report.values["cells"].as_array().unwrap();
        assert_eq!(cells[1]["wakeup_latency_ns"]["low_100"]["maximum"], 7_000);
        assert_eq!(cells[1]["wakeup_latency_ns"]["low_99"]["samples"], 99);
        assert_eq!(cells[0]["granted"], "P");
    }
}
