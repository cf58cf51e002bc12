//! Cycles of a run as tables and plots.

use record::{CycleRecord, RunSummary, Statistics};

use crate::boxes::Boxes;
use crate::numbers::{four, microseconds, milliseconds};
use crate::plots::{self, Samples};
use crate::{Row, Section, Table};

/// Statistics of the run.
#[must_use]
pub fn summary(cycles: &[CycleRecord], period_ns: u64) -> RunSummary {
    let mut summary = RunSummary::new(period_ns);
    cycles.iter().for_each(|cycle| summary.record(cycle));
    summary
}

/// Table of T_period, T_jitter and T_exec: average, maximum, minimum, standard deviation.
#[must_use]
pub fn servo_table(summary: &RunSummary) -> Table {
    let period = four(&summary.actual_period);
    let (jitter, execution) = (four(&summary.release_jitter), four(&summary.execution_time));
    let row = |index: usize| Row {
        name: period[index].0.to_owned(),
        cells: vec![
            milliseconds(period[index].1),
            microseconds(jitter[index].1),
            microseconds(execution[index].1),
        ],
        from_paper: false,
    };
    Table {
        caption: "The actual period, its distance from the requested period, and C + P + T".to_owned(),
        columns: ["", "T_period (ms)", "T_jitter (us)", "T_exec (us)"].map(str::to_owned).to_vec(),
        rows: (0..period.len()).map(row).collect(),
    }
}

/// Percentiles of the times that decide if the cycle is punctual.
#[must_use]
pub fn percentiles(summary: &RunSummary) -> Table {
    let times = [
        ("wakeup latency (release to start)", &summary.wakeup_latency),
        ("T_jitter", &summary.release_jitter),
        ("T_exec", &summary.execution_time),
        ("response time (release to end)", &summary.response_time),
    ];
    percentile_table("Percentiles in us; a dash where there are too few samples", &times)
}

/// Table with one row of percentiles for each statistics.
pub(crate) fn percentile_table(caption: &str, times: &[(&str, &Statistics)]) -> Table {
    let columns = QUANTILES.iter().map(|(name, _)| (*name).to_owned());
    let row = |(name, statistics): &(&str, &Statistics)| {
        let percentile = |&(_, quantile): &(_, f64)| {
            microseconds(statistics.known_percentile(quantile).map(|it| it as f64))
        };
        let maximum = microseconds(statistics.maximum().map(|it| it as f64));
        let cycle = statistics.maximum_cycle().map_or_else(|| "-".to_owned(), |cycle| cycle.to_string());
        let cells = QUANTILES.iter().map(percentile).chain([maximum, cycle]).collect();
        Row { name: (*name).to_owned(), cells, from_paper: false }
    };
    Table {
        caption: caption.to_owned(),
        columns: std::iter::once(String::new())
            .chain(columns)
            .chain(["maximum".to_owned(), "at cycle".to_owned()])
            .collect(),
        rows: times.iter().map(row).collect(),
    }
}

/// Table of errors: count, first and last cycle.
#[must_use]
pub fn health(summary: &RunSummary) -> Table {
    let counts = [
        ("cycles with a wrong working counter", summary.working_counter_errors),
        ("lost frames", summary.lost_frames),
        ("overruns", summary.overruns),
        ("skipped releases", summary.skipped_releases),
        ("dropped records", summary.dropped_records),
    ];
    let cycle = |cycle: Option<u64>| cycle.map_or_else(|| "-".to_owned(), |cycle| cycle.to_string());
    Table {
        caption: format!("What went wrong in {} cycles", summary.cycles()),
        columns: ["", "count", "first cycle", "last cycle"].map(str::to_owned).to_vec(),
        rows: counts
            .map(|(name, it)| Row {
                name: name.to_owned(),
                cells: vec![it.count.to_string(), cycle(it.first_cycle), cycle(it.last_cycle)],
                from_paper: false,
            })
            .to_vec(),
    }
}

/// Plots of a run: box of the periods, histogram, cumulative tail and time traces.
#[must_use]
pub fn plots(cycles: &[CycleRecord], period_ns: u64) -> Vec<Section> {
    let Some(first) = cycles.first() else { return Vec::new() };
    let micro = |nanoseconds: u64| nanoseconds as f64 / 1e3;
    let seconds = |cycle: &CycleRecord| cycle.release_ns.saturating_sub(first.release_ns) as f64 / 1e9;
    let times: Vec<f64> = cycles.iter().map(seconds).collect();
    let latency: Vec<f64> = cycles.iter().map(|cycle| micro(cycle.wakeup_latency())).collect();
    let execution: Vec<f64> = cycles.iter().map(|cycle| micro(cycle.execution_time())).collect();
    let response: Vec<f64> = cycles.iter().map(|cycle| micro(cycle.response_time())).collect();
    let (mut since, mut period, mut jitter) = (Vec::new(), Vec::new(), Vec::new());
    for (pair, &time) in cycles.windows(2).zip(&times[1..]) {
        if let Some(actual) = pair[1].actual_period(&pair[0]) {
            since.push(time);
            period.push(micro(actual));
            jitter.push(micro(actual.abs_diff(period_ns)));
        }
    }
    let all = [
        Samples { name: "wakeup latency", values: &latency },
        Samples { name: "T_jitter", values: &jitter },
        Samples { name: "T_exec", values: &execution },
        Samples { name: "response time", values: &response },
    ];
    let costs = [all[0], all[2]];
    vec![
        Section::Boxes(Boxes::of(
            "T_period: a narrow box at the period is good",
            "us",
            &[Samples { name: "T_period", values: &period }],
        )),
        Section::Trace(plots::trace(
            "T_period over time: a flat line is good",
            "us",
            &since,
            &[Samples { name: "T_period", values: &period }],
        )),
        Section::Trace(plots::trace(
            "Wakeup latency and T_exec over time: peaks are late cycles",
            "us",
            &times,
            &costs,
        )),
        Section::Histogram(plots::histogram("How often each time came: far right is late", "us", &all)),
        Section::Tail(plots::tail("Share of cycles above each time: a steep fall is good", "us", &all)),
    ]
}

/// Percentiles of the tables.
const QUANTILES: [(&str, f64); 5] =
    [("50 %", 0.5), ("99 %", 0.99), ("99.9 %", 0.999), ("99.99 %", 0.9999), ("99.999 %", 0.99999)];
