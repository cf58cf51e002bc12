//! Cells as tables, plots and numbers.

use crate::jitter::{BusJitter, DeviationHistogram, Moments};
use report::numbers::microseconds;
use report::{Plot, Report, Row, Section, Series, Table};
use serde_json::{Value, json};

use super::cell::Cell;
use super::edges::Edges;
use super::sweep;
use crate::paper::Paper;

/// Adds all results of the cells.
pub(super) fn fill(cells: &[Cell], report: &mut Report) {
    let mut periods: Vec<_> = cells.iter().map(|cell| cell.period).collect();
    periods.dedup();
    for period in periods {
        let of_period: Vec<&Cell> = cells.iter().filter(|cell| cell.period == period).collect();
        let at = format!("at a period of {} us", period.as_nanos() as f64 / 1e3);
        report.sections.push(Section::Table(jitter_table(&of_period, &at)));
        report.sections.push(Section::Table(period_table(&of_period, &at)));
        report.sections.push(Section::Table(identity_table(&of_period, &at)));
        report.sections.push(Section::Table(estimate_table(&of_period, &at)));
        report.sections.push(Section::Table(wave_table(&of_period, &at)));
        if of_period.iter().any(|cell| !cell.judgement.edges.is_empty()) {
            let of_cells = || of_period.iter().map(|cell| (cell.load.as_str(), &cell.judgement.edges[..]));
            report.sections.push(Section::Table(edge_table(of_cells(), &at)));
            report.sections.push(Section::Histogram(edge_histogram(of_cells(), &at)));
        }
        report.sections.push(Section::Table(circumstances(&of_period, &at)));
        report.sections.extend(sweep::sections(&of_period, &at));
        report.sections.push(Section::Histogram(histogram(&of_period, &at)));
        report.sections.push(Section::Tail(tail(&of_period, &at)));
        report.sections.push(Section::Trace(trace(&of_period, &at)));
    }
    report.sections.push(Section::Text(OURS.to_owned()));
    Paper::MasterPerformance.append(&["Table I", "Table II", "Table III", "identity"], report);
    report.values.insert("cells".into(), cells.iter().map(values).collect());
}

const OURS: &str = "Loads of memory and GPU, shares and missing cycles are ours; the other rows and columns are the paper's, which stamped the \
    edges of a terminal's output where this observer stamps frames. Edges by a terminal have a table of their own; a simulated one stamps them when the \
    frame that sets the output has come, by the kernel's stamp and a clock that drifts.";

/// Summary of a cell in one line.
pub(super) fn line(cell: &Cell) -> String {
    let jitter = &cell.judgement.jitter;
    format!(
        "{} cycles: J {} to {} us, SD {} us; S SD {} us; {} missing",
        jitter.arrivals,
        microseconds(some(&jitter.jitter, Moments::minimum)),
        microseconds(some(&jitter.jitter, Moments::maximum)),
        microseconds(some(&jitter.jitter, Moments::standard_deviation)),
        microseconds(some(&jitter.periods, Moments::standard_deviation)),
        jitter.missing
    )
}

fn jitter_table(cells: &[&Cell], at: &str) -> Table {
    let row = |cell: &&Cell| {
        let it = &cell.judgement.jitter;
        let size = |share| it.jitter_histogram.size_at(share).map(|size| size as f64);
        let mut cells: Vec<String> = four(&it.jitter).into();
        cells.extend([size(0.99), size(0.999), size(0.9999)].map(microseconds));
        cells.push(it.relative_jitter().map_or("-".to_owned(), |share| format!("{:.2} %", share * 100.0)));
        Row { name: cell.load.clone(), cells, ..Row::default() }
    };
    Table {
        caption: format!("Period jitter J {at}, us; relative: the largest, as a share of the period"),
        columns: columns([
            "load",
            "min",
            "max",
            "mean",
            "SD",
            "99 % within ±",
            "99.9 %",
            "99.99 %",
            "relative",
        ]),
        rows: cells.iter().map(row).collect(),
    }
}

fn period_table(cells: &[&Cell], at: &str) -> Table {
    let row = |cell: &&Cell| {
        let it = &cell.judgement.jitter;
        let mut cells: Vec<String> = four(&it.periods).into();
        cells.extend([it.arrivals.to_string(), it.missing.to_string()]);
        cells.push(it.longest_gap.map_or("0".to_owned(), |(_, cycles)| cycles.to_string()));
        Row { name: cell.load.clone(), cells, ..Row::default() }
    };
    Table {
        caption: format!("Measured period S {at}, us, and cycles without a frame"),
        columns: columns(["load", "min", "max", "mean", "SD", "cycles", "missing", "in a row"]),
        rows: cells.iter().map(row).collect(),
    }
}

fn identity_table(cells: &[&Cell], at: &str) -> Table {
    let row = |cell: &&Cell| {
        let it = &cell.judgement.jitter;
        let dash = || "-".to_owned();
        let mut cells = vec![it.oscillator_difference_ppm().map_or_else(dash, |ppm| format!("{ppm:.3}"))];
        match it.identity {
            None => cells.extend(std::iter::repeat_with(dash).take(5)),
            Some(identity) => {
                let square = |it: f64| format!("{:.4}", it / 1e6);
                cells.push(square(identity.jitter_variance));
                cells.push(square(identity.half_period_variance));
                cells.push(square(identity.covariance));
                cells.push(format!("{:.4} %", identity.relative_difference() * 100.0));
                cells.push(identity.correlation().map_or_else(dash, |it| format!("{it:.3}")));
            }
        }
        Row { name: cell.load.clone(), cells, ..Row::default() }
    };
    Table {
        caption: format!(
            "Oscillator difference {at}, and the identity var(J) = var(S)/2 + cov(J_i, J_i-1), in us²: a correlation near 1 \
             is lateness that lasts, near 0 cycles late by themselves"
        ),
        columns: columns(["load", "ppm", "var(J)", "var(S)/2", "cov", "sides differ by", "correlation"]),
        rows: cells.iter().map(row).collect(),
    }
}

/// The paper's estimate for runs too long to keep their edges, next to the estimated quantity.
fn estimate_table(cells: &[&Cell], at: &str) -> Table {
    let row = |cell: &&Cell| {
        let it = &cell.judgement.jitter;
        let direct = it.identity.map(|identity| identity.jitter_variance.sqrt());
        let estimated = it.estimated_deviation();
        let ratio = estimated.zip(direct).filter(|(_, direct)| *direct > 0.0);
        let mut cells: Vec<String> = [direct, estimated].map(microseconds).into();
        cells
            .push(ratio.map_or("-".to_owned(), |(estimated, direct)| format!("{:.4}", estimated / direct)));
        cells.push(it.short.map_or("-".to_owned(), |short| short.pairs.to_string()));
        Row { name: cell.load.clone(), cells, ..Row::default() }
    };
    Table {
        caption: format!(
            "SD of J {at}, us: of all cycles, and as the paper estimates it for 24 h, from S of all and the covariance of a short run, here the \
             first cycles: sqrt(var(S)/2 + cov)"
        ),
        columns: columns(["load", "SD of J", "estimated", "estimated / SD", "cycles of the covariance"]),
        rows: cells.iter().map(row).collect(),
    }
}

/// Square waves of the outputs.
fn wave_table(cells: &[&Cell], at: &str) -> Table {
    let rows = cells.iter().flat_map(|cell| {
        cell.judgement.waves.iter().map(|wave| {
            let it = &wave.edges;
            let mut cells = vec![format!("{:.3}", 1e9 / it.period_ns as f64)];
            cells.extend(four(&it.jitter));
            cells.extend([it.arrivals.to_string(), it.missing.to_string()]);
            let cycles = it.period_ns as f64 / cell.judgement.jitter.period_ns as f64;
            Row {
                name: format!("{}, output {}: {cycles} cycles", cell.load, wave.output),
                cells,
                ..Row::default()
            }
        })
    });
    Table {
        caption: format!(
            "J of the rising edges of the outputs that count the cycles, square waves, {at}, us"
        ),
        columns: columns(["load, wave", "frequency, Hz", "min", "max", "mean", "SD", "edges", "missing"]),
        rows: rows.collect(),
    }
}

/// Adds the edges of a recording alone.
pub(super) fn fill_edges(edges: &[Edges], report: &mut Report) {
    let cells = || std::iter::once(("as recorded", edges));
    let nominal = edges.last().map_or(0, |own| own.jitter.period_ns);
    let at = format!("at a period of {} us", nominal as f64 / 1e3);
    report.sections.push(Section::Table(edge_table(cells(), &at)));
    report.sections.push(Section::Histogram(edge_histogram(cells(), &at)));
    report.values.insert("edges".into(), edges.iter().map(edge_values).collect());
}

/// Edges by the times of a terminal, and the cycle's own stamps.
fn edge_table<'a>(cells: impl Iterator<Item = (&'a str, &'a [Edges])>, at: &str) -> Table {
    let row = |load: &str, edges: &Edges| {
        let it = &edges.jitter;
        let mut cells = vec![format!("{:.3}", 1e9 / it.period_ns as f64)];
        cells.extend(four(&it.jitter));
        cells.push(microseconds(it.jitter_histogram.size_at(0.99).map(|size| size as f64)));
        cells.push(microseconds(some(&it.periods, Moments::standard_deviation)));
        cells.extend([it.arrivals.to_string(), it.missing.to_string()]);
        let cycles = if edges.cycles == 1 { "cycle" } else { "cycles" };
        Row { name: format!("{load}, {}: {} {cycles}", edges.name, edges.cycles), cells, ..Row::default() }
    };
    Table {
        caption: format!(
            "J of edges by the times of a time-stamping terminal, as in the paper, {at}, us; and \
             by the cycle's own stamps, when its frames were handed over"
        ),
        columns: columns([
            "load, edge",
            "frequency, Hz",
            "min",
            "max",
            "mean",
            "SD",
            "99 % within ±",
            "SD of S",
            "edges",
            "missing",
        ]),
        rows: cells.flat_map(|(load, edges)| edges.iter().map(move |it| row(load, it))).collect(),
    }
}

fn edge_histogram<'a>(cells: impl Iterator<Item = (&'a str, &'a [Edges])>, at: &str) -> Plot {
    let series = cells.flat_map(|(load, edges)| {
        edges.iter().map(move |it| (format!("{load}, {}", it.name), &it.jitter.jitter_histogram))
    });
    bins(
        series.collect(),
        format!(
            "J of the edges, and of the cycle's own stamps, {at} (the outermost bins hold what is beyond)"
        ),
        "edges",
    )
}

fn edge_values(edges: &Edges) -> Value {
    let it = &edges.jitter;
    json!({
        "name": edges.name,
        "cycles": edges.cycles,
        "edges": it.arrivals,
        "missing": it.missing,
        "jitter": moments_of(&it.jitter),
        "measured_period": moments_of(&it.periods),
        "oscillator_difference_ppm": it.oscillator_difference_ppm(),
    })
}

fn circumstances(cells: &[&Cell], at: &str) -> Table {
    let row = |cell: &&Cell| {
        let machine = cell.judgement.end.get("machine");
        let share = |name: &str| {
            let share = machine.and_then(|it| it.get(name).or_else(|| it.get("whole")?.get(name)));
            share.and_then(Value::as_f64).map_or("-".to_owned(), |share| format!("{:.1} %", share * 100.0))
        };
        let count = |names: [&str; 2]| {
            let value = &cell.run[names[0]];
            let value = if names[1].is_empty() { value } else { value.get(names[1]).unwrap_or(value) };
            value.as_u64().map_or("-".to_owned(), |count| count.to_string())
        };
        let cells = vec![
            share("busy"),
            share("idle"),
            share("steal"),
            count(["overruns", "count"]),
            count(["lost_frames", "count"]),
            count(["working_counter_errors", "count"]),
            cell.work.as_ref().map_or("-".to_owned(), |it| format!("{:.0} {}", it.rate, it.what)),
        ];
        Row { name: cell.load.clone(), cells, ..Row::default() }
    };
    Table {
        caption: format!("The machine meanwhile, and what the cycle says of itself, {at}"),
        columns: columns([
            "load",
            "busy",
            "idle",
            "steal",
            "overruns",
            "lost frames",
            "working counters wrong",
            "work of the load a second",
        ]),
        rows: cells.iter().map(row).collect(),
    }
}

/// Number of bins of a histogram.
const BINS: usize = 120;

/// Range of a histogram, as a multiple of the range of 99 % of the periods.
const REACH: f64 = 5.0;

fn histogram(cells: &[&Cell], at: &str) -> Plot {
    let series = cells.iter().map(|cell| (cell.load.clone(), &cell.judgement.jitter.period_histogram));
    bins(
        series.collect(),
        format!(
            "S - T, measured period less the nominal one, {at} (the outermost bins hold what is beyond)"
        ),
        "periods",
    )
}

/// Histograms over the same bins, in the range of all but the rarest.
fn bins(histograms: Vec<(String, &DeviationHistogram)>, caption: String, y: &str) -> Plot {
    let all = || histograms.iter().map(|(_, it)| *it);
    let reach = all().filter_map(|it| it.size_at(0.99)).max().unwrap_or(1).max(1) as f64 * REACH;
    let extremes = all().filter_map(DeviationHistogram::extremes);
    let (low, high) = extremes.fold((0, 0), |all, one| (one.0.min(all.0), one.1.max(all.1)));
    let (low, high) = ((low as f64).max(-reach), (high as f64 + 1.0).min(reach));
    let series = histograms.iter().map(|(name, histogram)| {
        let bins = histogram.bins((low, high), BINS);
        let points = bins.iter().copied().chain((!bins.is_empty()).then_some((high, 0)));
        let points = points.map(|(edge, count)| (edge / 1e3, count as f64)).collect();
        Series { name: name.clone(), points }
    });
    Plot { caption, x: "us".to_owned(), y: y.to_owned(), series: series.collect() }
}

/// Number of points of a tail distribution.
const TAIL_POINTS: usize = 200;

fn tail(cells: &[&Cell], at: &str) -> Plot {
    let series = cells.iter().map(|cell| {
        let points = cell.judgement.jitter.jitter_histogram.tail(TAIL_POINTS);
        let points = points.into_iter().map(|(size, share)| (size / 1e3, share)).collect();
        Series { name: cell.load.clone(), points }
    });
    Plot {
        caption: format!("|J|, the size of the period jitter, {at}"),
        x: "us".to_owned(),
        y: "share of cycles above".to_owned(),
        series: series.collect(),
    }
}

fn trace(cells: &[&Cell], at: &str) -> Plot {
    let series = cells.iter().map(|cell| {
        let it = &cell.judgement.jitter;
        let stretches = it.trace.stretches();
        let first = stretches.first().map_or(0, |one| one.cycle);
        let time = |cycle: u64| (cycle - first) as f64 * it.period_ns as f64 / 1e9;
        let points = stretches.iter().flat_map(|one| {
            let at = time(one.cycle);
            [(at, one.minimum / 1e3), (at, one.maximum / 1e3)]
        });
        Series { name: cell.load.clone(), points: points.collect() }
    });
    Plot {
        caption: format!("Period jitter J {at}: the smallest and the largest of each stretch"),
        x: "s".to_owned(),
        y: "us".to_owned(),
        series: series.collect(),
    }
}

/// Numbers of a cell for programs.
fn values(cell: &Cell) -> Value {
    let it: &BusJitter = &cell.judgement.jitter;
    json!({
        "period_ns": it.period_ns,
        "load": cell.load,
        "work": cell.work,
        "swept": cell.swept,
        "cycles": it.arrivals,
        "missing": it.missing,
        "jitter": moments_of(&it.jitter),
        "measured_period": moments_of(&it.periods),
        "mean_period_ns": it.mean_period_ns(),
        "oscillator_difference_ppm": it.oscillator_difference_ppm(),
        "relative_jitter": it.relative_jitter(),
        "estimated_deviation_ns": it.estimated_deviation(),
        "waves": cell.judgement.waves.iter().map(|wave| json!({
            "output": wave.output,
            "period_ns": wave.edges.period_ns,
            "edges": wave.edges.arrivals,
            "jitter": moments_of(&wave.edges.jitter),
        })).collect::<Vec<_>>(),
        "edges": cell.judgement.edges.iter().map(edge_values).collect::<Vec<_>>(),
        "identity": it.identity.map(|identity| json!({
            "jitter_variance_ns2": identity.jitter_variance,
            "half_period_variance_ns2": identity.half_period_variance,
            "covariance_ns2": identity.covariance,
            "relative_difference": identity.relative_difference(),
        })),
        "observer": cell.judgement.end,
        "cycle": cell.run,
    })
}

fn moments_of(it: &Moments) -> Value {
    json!({
        "count": it.count(),
        "minimum_ns": it.minimum(),
        "maximum_ns": it.maximum(),
        "mean_ns": it.mean(),
        "standard_deviation_ns": it.standard_deviation(),
    })
}

fn four(moments: &Moments) -> [String; 4] {
    [Moments::minimum, Moments::maximum, Moments::mean, Moments::standard_deviation]
        .map(|which| some(moments, which))
        // A mean within the rounding error is shown as 0, without a sign.
        .map(|it| microseconds(it.map(|it| if it.abs() < 0.5 { 0.0 } else { it })))
}

/// One of the moments, if there are samples.
fn some<T>(moments: &Moments, which: impl FnOnce(&Moments) -> T) -> Option<T> {
    (moments.count() > 0).then(|| which(moments))
}

fn columns<const N: usize>(names: [&str; N]) -> Vec<String> {
    names.map(str::to_owned).into()
}
