//! Signals and axes of a recording as a table and as plots over time.

use record::Recording;
use record::process_data::{Column, FORCED, of_force};
use serde_json::Value;

use crate::plots::{self, Samples};
use crate::{Row, Section, Table};

/// Table and plots of the process data; empty of a recording without.
pub(crate) fn sections(recording: &Recording) -> Vec<Section> {
    let quantities = quantities(recording);
    if quantities.is_empty() {
        return Vec::new();
    }
    let mut sections = vec![Section::Table(table(&quantities))];
    let forced = values(recording, FORCED).iter().filter(|&&count| count > 0.0).count();
    if forced > 0 {
        let which = forced_signals(recording);
        sections
            .push(Section::Text(format!("Signals were forced from outside in {forced} cycles{which}.")));
    }
    sections.extend(traces(recording, &quantities));
    sections
}

/// Signals that were forced, each with the cycles that it was; empty where the recording has none.
fn forced_signals(recording: &Recording) -> String {
    let named = recording.header.columns.iter().filter_map(|column| match Column::of(column) {
        Some(Column::Force(name)) => {
            let cycles = values(recording, &of_force(name)).iter().filter(|&&it| it > 0.0).count();
            (cycles > 0).then(|| format!("\"{name}\" in {cycles}"))
        }
        _ => None,
    });
    let named: Vec<String> = named.collect();
    if named.is_empty() { String::new() } else { format!(": {}", named.join(", ")) }
}

/// Rows with dropped process data.
pub(crate) fn dropped(recording: &Recording) -> usize {
    values(recording, FORCED).iter().filter(|count| count.is_nan()).count()
}

/// One column.
struct Quantity {
    name: String,
    unit: String,
    /// Caption of the plot it is in.
    plot: String,
    /// NaN where there is none.
    values: Vec<f64>,
}

fn quantities(recording: &Recording) -> Vec<Quantity> {
    let quantity = |column: &String| {
        let (name, unit, plot) = match Column::of(column)? {
            Column::Signal(name) => {
                let (unit, is_bit) = described(recording, name);
                let plot = match (unit.as_str(), is_bit) {
                    (_, true) => "Signals of one bit over time".to_owned(),
                    ("", false) => "Signals without a unit over time".to_owned(),
                    (unit, false) => format!("Signals in {unit} over time"),
                };
                (name.to_owned(), unit, plot)
            }
            Column::Axis(axis, quantity, unit) => {
                if unit.is_empty() {
                    // States are reported as events: an average of them has no meaning.
                    return None;
                }
                let plain = quantity.strip_prefix("target_").unwrap_or(quantity);
                let plot = format!("Axes: {plain} in {unit}, and its target, over time");
                (format!("{axis} {}", quantity.replace('_', " ")), unit.to_owned(), plot)
            }
            Column::Force(_) | Column::Other => return None,
        };
        Some(Quantity { name, unit, plot, values: values(recording, column) })
    };
    recording.header.columns.iter().filter_map(quantity).collect()
}

/// Unit of a signal in the header, and whether it is a bit.
fn described(recording: &Recording, name: &str) -> (String, bool) {
    let signals = recording.header.facts.get("signals").and_then(Value::as_array);
    let signal = signals.and_then(|signals| signals.iter().find(|it| it["name"] == name));
    let text = |key: &str| signal.and_then(|it| it[key].as_str()).unwrap_or_default();
    (text("unit").to_owned(), text("type") == "bool")
}

fn values(recording: &Recording, column: &str) -> Vec<f64> {
    recording.process_data(column).map(Iterator::collect).unwrap_or_default()
}

fn table(quantities: &[Quantity]) -> Table {
    let row = |quantity: &Quantity| {
        let known = || quantity.values.iter().copied().filter(|value| !value.is_nan());
        let count = known().count();
        let average = (count > 0).then(|| known().sum::<f64>() / count as f64);
        let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), short);
        let missing = quantity.values.len() - count;
        let numbers = [average, known().reduce(f64::max), known().reduce(f64::min)].map(number);
        let unit = std::iter::once(quantity.unit.clone());
        let cells = unit.chain(numbers).chain([missing.to_string()]).collect();
        Row { name: quantity.name.clone(), cells, from_paper: false }
    };
    Table {
        caption: "Signals and axes over all cycles, and cycles without their values".to_owned(),
        columns: ["", "unit", "average", "maximum", "minimum", "cycles without"]
            .map(str::to_owned)
            .to_vec(),
        rows: quantities.iter().map(row).collect(),
    }
}

/// A number in few letters.
fn short(value: f64) -> String {
    match value.abs() {
        size if size != 0.0 && !(1e-3..1e7).contains(&size) => format!("{value:.3e}"),
        _ => format!("{value:.4}").trim_end_matches('0').trim_end_matches('.').to_owned(),
    }
}

/// Plots over time: what has one unit together, and no more lines in one than can be distinguished.
fn traces(recording: &Recording, quantities: &[Quantity]) -> Vec<Section> {
    let Some(releases) = recording.column("release_ns") else { return Vec::new() };
    let releases: Vec<i64> = releases.collect();
    let seconds = |at: &i64| at.saturating_sub(releases[0]) as f64 / 1e9;
    let times: Vec<f64> = releases.iter().map(seconds).collect();
    let mut captions: Vec<&str> = Vec::new();
    for quantity in quantities {
        if !captions.contains(&quantity.plot.as_str()) {
            captions.push(&quantity.plot);
        }
    }
    let mut sections = Vec::new();
    for caption in captions {
        let together: Vec<&Quantity> = quantities.iter().filter(|it| it.plot == caption).collect();
        for some in together.chunks(LINES) {
            let unit = if some[0].unit.is_empty() { "value" } else { &some[0].unit };
            sections.push(Section::Curve(curve(caption, unit, &times, some)));
        }
    }
    sections
}

fn curve(caption: &str, unit: &str, times: &[f64], quantities: &[&Quantity]) -> crate::Plot {
    let mut plot = plots::trace(caption, unit, times, &[]);
    for quantity in quantities {
        // A picture has no place for what is not finite, or next to it.
        let known = times.iter().zip(&quantity.values).filter(|(_, value)| value.abs() < HUGE);
        let (times, values): (Vec<f64>, Vec<f64>) = known.map(|(&time, &value)| (time, value)).unzip();
        let samples = [Samples { name: &quantity.name, values: &values }];
        plot.series.extend(plots::trace("", "", &times, &samples).series);
    }
    plot
}

/// Lines in one plot.
const LINES: usize = 8;

/// Value from which on there is nothing to be seen in a plot.
const HUGE: f64 = 1e100;
