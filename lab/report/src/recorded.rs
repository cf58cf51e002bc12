//! Any recording as a report: a recording of the cycle with all tables, others by their columns.

use record::conditions::{LATE_REPLIES, SIMULATED};
use record::recording::Facts;
use record::{Recording, cycles};
use serde_json::Value;

use crate::plots::{self, Samples};
use crate::{Report, Row, Section, Table, cycle, process_data};

impl Report {
    /// Report of a recording: its tables and plots, its conditions, and its warnings. `name` is for
    /// the title, as the file's name.
    ///
    /// # Errors
    /// A recording of a cycle with incomplete columns.
    pub fn of_recording(name: &str, recording: &Recording) -> Result<Self, String> {
        let what = recording.header.what.as_str();
        let mut report = Self {
            experiment: what.to_owned(),
            title: format!("{name}: {}", title(what)),
            measured: measured(what),
            good: good(what).to_owned(),
            ..Self::default()
        };
        report.facts(&recording.header.facts);
        report.facts(&recording.end);
        report.condition("samples", recording.len().to_string());
        if !recording.complete {
            report.warn("the recording was cut off: what was known only at its end is missing");
        }
        if what == cycles::WHAT {
            let (period, cycles) = cycles::cycles(recording)?;
            let summary = cycle::summary(&cycles, period);
            if summary.dropped_records.count > 0 {
                let count = summary.dropped_records.count;
                report.warn(format!("{count} cycles are missing: the recorder did not keep up"));
            }
            let tables =
                [cycle::servo_table(&summary), cycle::percentiles(&summary), cycle::health(&summary)];
            report.sections.extend(tables.map(Section::Table));
            if summary.lost_frames.count > 0
                && recording.header.facts.get("link") == Some(&SIMULATED.into())
            {
                report.sections.push(Section::Text(LATE_REPLIES.to_owned()));
            }
            report.sections.extend(cycle::plots(&cycles, period));
            let dropped = process_data::dropped(recording);
            if dropped > 0 {
                report.warn(format!(
                    "{dropped} cycles are without signals and axes: the recorder did not keep up"
                ));
            }
            report.sections.extend(process_data::sections(recording));
            if let Ok(Value::Object(values)) = serde_json::to_value(&summary) {
                report.values = values;
            }
        } else {
            by_columns(&mut report, recording);
        }
        Ok(report)
    }

    /// Adds facts as conditions by their names, and a list named `warnings` as warnings.
    pub fn facts(&mut self, facts: &Facts) {
        for (name, value) in facts {
            match value {
                Value::Array(warnings) if name == "warnings" => {
                    warnings.iter().filter_map(Value::as_str).for_each(|warning| self.warn(warning));
                }
                // The table of signals has what counts of it.
                Value::Array(_) if name == "signals" => {}
                _ => {
                    let (name, value) = in_words(name, value);
                    if !value.is_empty() {
                        self.condition(name, value);
                    }
                }
            }
        }
    }
}

fn title(what: &str) -> String {
    match what {
        "cycle" => "the cycles of a run".to_owned(),
        "wakeup" => "how late a thread woke up".to_owned(),
        "bus" => "frames of the cycle as seen on the bus".to_owned(),
        _ => format!("a recording of `{what}`"),
    }
}

fn measured(what: &str) -> String {
    match what {
        "cycle" => {
            "for every cycle: when it should have started, when it did, and what each of its phases took"
                .to_owned()
        }
        "wakeup" => "for every cycle of a thread that does nothing else: from the requested \
            wake-up time to the actual one"
            .to_owned(),
        "bus" => {
            "for every cycle: when its frame passed, by the clock of an independent observer".to_owned()
        }
        _ => format!("what the columns of a recording of `{what}` say, row by row"),
    }
}

fn good(what: &str) -> &'static str {
    match what {
        "cycle" => {
            "a wakeup latency and a T_jitter of a few per cent of the period at most, a response time below the \
                    period, and no overrun"
        }
        "wakeup" => "a maximum far below the period, and hardly above the average",
        "bus" => "periods that hardly differ from the requested period",
        _ => "times that hardly differ from one another",
    }
}

/// Name of a fact without its unit, and its value with it.
fn in_words(name: &str, value: &Value) -> (String, String) {
    match (name.strip_suffix("_ns"), value.as_f64()) {
        (Some(name), Some(nanoseconds)) => (name.to_owned(), time(nanoseconds)),
        _ => (name.to_owned(), text(value)),
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => number
            .as_f64()
            .filter(|it| it.fract() != 0.0)
            .map_or_else(|| number.to_string(), |fraction| format!("{fraction:.4}")),
        Value::Array(values) => {
            values.iter().map(text).filter(|it| !it.is_empty()).collect::<Vec<_>>().join("; ")
        }
        Value::Object(fields) => {
            let percent = |name: &str| fields.get(name).and_then(Value::as_f64).map(|share| share * 100.0);
            if let (Some(busy), Some(idle), Some(steal)) =
                (percent("busy"), percent("idle"), percent("steal"))
            {
                return format!("{busy:.1} % busy, {idle:.1} % idle, {steal:.1} % stolen");
            }
            let field = |(name, value): (&String, &Value)| {
                let (name, value) = in_words(name, value);
                (!value.is_empty()).then(|| format!("{name} {value}"))
            };
            fields.iter().filter_map(field).collect::<Vec<_>>().join(", ")
        }
    }
}

/// Time in a suitable unit.
fn time(nanoseconds: f64) -> String {
    let (unit, size) = match nanoseconds.abs() {
        size if size < 1e3 => ("ns", 1.0),
        size if size < 1e6 => ("us", 1e3),
        size if size < 1e9 => ("ms", 1e6),
        _ => ("s", 1e9),
    };
    let text = format!("{:.6}", nanoseconds / size);
    format!("{} {unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A column to be shown.
struct ShownFigures {
    name: String,
    /// Times in us, all other values unchanged.
    is_time: bool,
    values: Vec<f64>,
    average: Option<f64>,
    deviation: Option<f64>,
}

fn by_columns(report: &mut Report, recording: &Recording) {
    let columns: Vec<ShownFigures> =
        recording.header.columns.iter().filter_map(|name| shown(name, recording.column(name)?)).collect();
    for (is_time, caption) in [(true, "Times in us"), (false, "Numbers")] {
        let rows: Vec<Row> =
            columns.iter().filter(|it| it.is_time == is_time).map(ShownFigures::row).collect();
        if !rows.is_empty() {
            report.sections.push(Section::Table(Table {
                caption: format!("{caption}: each column of the recording, over its rows"),
                columns: ["", "average", "maximum", "minimum", "standard deviation"]
                    .map(str::to_owned)
                    .to_vec(),
                rows,
            }));
        }
    }
    let times: Vec<&ShownFigures> =
        columns.iter().filter(|it| it.is_time && !it.values.is_empty()).collect();
    if times.is_empty() {
        return;
    }
    let samples: Vec<Samples> =
        times.iter().map(|it| Samples { name: &it.name, values: &it.values }).collect();
    let longest = times.iter().map(|it| it.values.len()).max().unwrap_or(0);
    let rows: Vec<f64> = (0..longest).map(|row| row as f64).collect();
    let mut trace = plots::trace("Row by row: peaks are what happens rarely", "us", &rows, &samples);
    "row".clone_into(&mut trace.x);
    report.sections.extend([
        Section::Trace(trace),
        Section::Histogram(plots::histogram("How often each value came", "us", &samples)),
        Section::Tail(plots::tail("Share of rows above each value", "us", &samples)),
    ]);
}

/// Values of a column; for a column that only rises, such as an instant or a count, the steps from
/// row to row.
fn shown(name: &str, column: impl ExactSizeIterator<Item = i64>) -> Option<ShownFigures> {
    let values: Vec<i64> = column.collect();
    let rises = values.len() > 2 && values.windows(2).all(|pair| pair[0] < pair[1]);
    let base = name.strip_suffix("_ns");
    let mut label = base.unwrap_or(name).replace('_', " ");
    let mut values: Vec<f64> = if rises {
        label.push_str(", row to row");
        values.windows(2).map(|pair| pair[1] as f64 - pair[0] as f64).collect()
    } else {
        values.into_iter().map(|value| value as f64).collect()
    };
    if base.is_some() {
        values.iter_mut().for_each(|value| *value /= 1e3);
    }
    let count = values.len() as f64;
    let average = (count > 0.0).then(|| values.iter().sum::<f64>() / count);
    let deviation = average
        .map(|average| (values.iter().map(|value| (value - average).powi(2)).sum::<f64>() / count).sqrt());
    // A count that rises by one with every row carries no information.
    let tells = !(rises && values.iter().all(|&step| step == 1.0));
    tells.then_some(ShownFigures { name: label, is_time: base.is_some(), values, average, deviation })
}

impl ShownFigures {
    fn row(&self) -> Row {
        let most = self.values.iter().copied().reduce(f64::max);
        let least = self.values.iter().copied().reduce(f64::min);
        let number =
            |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"));
        let cells = [self.average, most, least, self.deviation].map(number).to_vec();
        Row { name: self.name.clone(), cells, from_paper: false }
    }
}
