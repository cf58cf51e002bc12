//! Recordings as reports: of the cycle, of other measurements, cut off, and wrong.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use onbeat_report::compare::{Run, compare};
use onbeat_report::{Report, Section};
use proptest::prelude::*;
use record::recording::{Header, RecordingWriter};
use record::{CycleRecord, Phase, Recording, cycles, process_data};
use serde_json::{Value, json};

fn recording(what: &str, facts: Value, columns: &[&str], rows: &[Vec<i64>], end: Value) -> Vec<u8> {
    let facts = facts.as_object().unwrap().clone();
    let columns = columns.iter().map(|&it| it.to_owned()).collect();
    let header = Header { what: what.into(), columns, facts };
    let mut writer = RecordingWriter::begin(Vec::new(), &header).unwrap();
    rows.iter().for_each(|row| writer.row(row).unwrap());
    writer.finish(end.as_object().unwrap()).unwrap()
}

fn cycle() -> Vec<u8> {
    let rows: Vec<Vec<i64>> = (0..1000_u64)
        .map(|cycle| {
            let release = cycle * 1_000_000;
            let start = release + 2_000 + if cycle == 500 { 300_000 } else { cycle % 5 * 100 };
            let mut info = CycleRecord::begin(cycle, release, start);
            info.finish(Phase::Update, start + 8_000);
            cycles::row(&info).to_vec()
        })
        .collect();
    let facts = json!({
        "period_ns": 1_000_000, "robot": "six-axis", "cpu": { "requested": 1, "granted": null },
        "warnings": ["SCHED_FIFO 80 was refused"],
    });
    let machine = json!({ "machine": { "busy": 0.25, "idle": 0.75, "steal": 0.0 } });
    recording("cycle", facts, &cycles::COLUMNS, &rows, machine)
}

/// A recording of so many cycles with these signals, described as given, and one axis; the first
/// signal is forced.
fn with_signals(signals: Value, rows: &[Vec<Option<types::Value>>]) -> Vec<u8> {
    let count = signals.as_array().unwrap().len();
    let names = signals
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .flat_map(|name| [process_data::of_signal(name), process_data::of_force(name)]);
    let of_axis = process_data::of_axis("arm");
    let columns = cycles::COLUMNS.map(str::to_owned).into_iter().chain([process_data::FORCED.to_owned()]);
    let columns = columns.chain(names).chain(of_axis).collect();
    let facts = json!({ "period_ns": 1_000_000, "signals": signals }).as_object().unwrap().clone();
    let mut writer =
        RecordingWriter::begin(Vec::new(), &Header { what: "cycle".into(), columns, facts }).unwrap();
    for (cycle, values) in (0..).zip(rows) {
        let record = CycleRecord::begin(cycle, cycle * 1_000_000, cycle * 1_000_000 + 5_000);
        let (forced, behind) = (values[0], &values[1..]);
        let (of_signals, of_axis) = behind.split_at(count);
        let with_force = of_signals.iter().enumerate().flat_map(|(place, &value)| {
            [value, if place == 0 { forced } else { forced.map(|_| types::Value::Unsigned(0)) }]
        });
        let states = process_data::STATE_OF_AXIS.map(|_| forced.map(|_| types::Value::Unsigned(0)));
        let all = [forced].into_iter().chain(with_force).chain(of_axis.iter().copied()).chain(states);
        writer.row_with(&cycles::row(&record), all).unwrap();
    }
    writer.finish(&serde_json::Map::new()).unwrap()
}

fn report(file: &[u8]) -> Result<Report, String> {
    let recording = Recording::read(file).map_err(|error| error.to_string())?;
    Report::of_recording("it", &recording)
}

fn plots(report: &Report) -> usize {
    report.sections.iter().filter(|it| !matches!(it, Section::Text(_) | Section::Table(_))).count()
}

// feature(cycle): the servo paper's table
#[test]
fn a_run_has_the_servo_table_its_conditions_and_its_plots() {
    let report = report(&cycle()).unwrap();
    let text = report.text();
    for expected in [
        "period    1 ms\n",
        "cpu       requested 1\n",
        "machine   25.0 % busy, 75.0 % idle, 0.0 % stolen\n",
        "warning   SCHED_FIFO 80 was refused\n",
        "T_period (ms)  T_jitter (us)  T_exec (us)\n",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let maximum = text.lines().find(|line| line.starts_with("wakeup latency")).unwrap();
    assert!(maximum.ends_with("302.000       500"), "the late cycle with its number: {maximum}");
    assert_eq!(plots(&report), 5);
    assert_eq!(report.values["wakeup_latency_ns"]["maximum"], 302_000);
}

// feature(measure): `report` of signals and axes: a table, plots over time by unit, cycles without
#[test]
fn signals_and_axes_have_a_table_and_plots_by_their_units() {
    let signals = json!([
        { "name": "door, closed", "type": "bool", "unit": "" },
        { "name": "pressure", "type": "int16", "unit": "bar" },
        { "name": "level", "type": "int16", "unit": "bar" },
    ]);
    let rows: Vec<Vec<_>> = (0..1000)
        .map(|cycle| {
            let real = |value: f64| Some(types::Value::Real(value));
            let forced = Some(types::Value::Unsigned(u64::from(cycle > 989)));
            let pressure = real(f64::from(cycle) / 100.0).filter(|_| cycle % 10 != 0);
            let axis = (0..6).map(|quantity| real(f64::from(quantity * 100)));
            let all = [forced, Some(types::Value::Bool(cycle < 250)), pressure, real(2.0)]
                .into_iter()
                .chain(axis);
            all.map(|value| value.filter(|_| cycle != 5)).collect()
        })
        .collect();
    let report = report(&with_signals(signals, &rows)).unwrap();
    let text = report.text();
    let line = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        let line = line.unwrap_or_else(|| panic!("{name}: {text}")).trim_start_matches(name);
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("door, closed"), "0.2492 1 0 1");
    assert_eq!(line("pressure"), "bar 5.0055 9.99 0.01 101");
    assert_eq!(line("arm target position"), "rad 300 300 300 1");
    assert!(
        text.contains("Signals were forced from outside in 10 cycles: \"door, closed\" in 10."),
        "{text}"
    );
    let warning = "1 cycles are without signals and axes: the recorder did not keep up";
    assert!(report.warnings.iter().any(|it| it == warning), "{:?}", report.warnings);
    assert!(report.conditions.iter().all(|it| it.name != "signals"), "{:?}", report.conditions);
    let curves = report.sections.iter().filter_map(|it| match it {
        Section::Curve(plot) => Some((plot.caption.as_str(), plot.y.as_str(), plot.series.len())),
        _ => None,
    });
    let expected = [
        ("Signals of one bit over time", "value", 1),
        ("Signals in bar over time", "bar", 2),
        ("Axes: position in rad, and its target, over time", "rad", 2),
        ("Axes: velocity in rad/s, and its target, over time", "rad/s", 2),
        ("Axes: torque in N m, and its target, over time", "N m", 2),
    ];
    assert_eq!(curves.collect::<Vec<_>>(), expected);
    assert_eq!(plots(&report), 5 + expected.len());
    let pressure = report.sections.iter().find_map(|it| match it {
        Section::Curve(plot) => plot.series.iter().find(|it| it.name == "pressure"),
        _ => None,
    });
    let points = &pressure.unwrap().points;
    assert!(points.len() > 800 && points.iter().all(|(time, value)| (time * 10.0 - value).abs() < 1e-9));
}

#[test]
fn many_signals_are_split_into_several_plots() {
    let signals: Value =
        (0..20).map(|it| json!({ "name": format!("s{it}"), "type": "double", "unit": "V" })).collect();
    let report = report(&with_signals(signals, &[vec![Some(types::Value::Real(1.0)); 27]])).unwrap();
    assert_eq!(plots(&report), 5 + 3 + 3);
}

#[test]
fn an_unknown_kind_is_shown_by_its_columns() {
    let rows: Vec<Vec<i64>> =
        (0..100).map(|row| vec![row, row * 5_000, row % 3 * 1_000, -row % 2]).collect();
    let text = recording("tea", json!({}), &["cup", "poured_ns", "steep_ns", "sugar"], &rows, json!({}));
    let report = report(&text).unwrap();
    let text = report.text();
    let line = |name: &str| {
        let line =
            text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {text}"));
        line.trim_start_matches(name).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("poured, row to row"), "5.000 5.000 5.000 0.000");
    assert_eq!(line("steep"), "0.990 2.000 0.000 0.818");
    assert_eq!(line("sugar"), "-0.500 0.000 -1.000 0.500");
    assert!(text.starts_with("it: a recording of `tea`") && !text.contains("cup,"), "{text}");
    assert_eq!(plots(&report), 3);
}

#[test]
fn a_recording_cut_off_is_shown_and_says_so() {
    let whole = cycle();
    let report = report(&whole[..whole.len() / 2]).unwrap();
    assert!(
        report.warnings.iter().any(|it| it.starts_with("the recording was cut off")),
        "{:?}",
        report.warnings
    );
    assert!(plots(&report) == 5);
    let empty = recording("wakeup", json!({}), &["latency_ns"], &[], json!({}));
    assert_eq!(plots(&self::report(&empty).unwrap()), 0);
}

#[test]
fn a_cycle_that_is_none_is_refused_with_what_it_lacks() {
    let lacks = recording("cycle", json!({ "period_ns": 5 }), &["cycle"], &[], json!({}));
    assert!(report(&lacks).unwrap_err().contains("no column `release_ns`"));
    let lacks = recording("cycle", json!({}), &cycles::COLUMNS, &[], json!({}));
    assert!(report(&lacks).unwrap_err().contains("no `period_ns`"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Any file content gives a report that can be rendered, or an error.
    // feature(measure): damaged recordings
    #[test]
    fn any_change_of_a_recording_is_a_report_or_a_sentence(
        at in 0..4000_usize, with in prop::collection::vec(any::<u8>(), 0..6), cut in 0..4_usize,
    ) {
        let mut bytes = cycle();
        bytes.truncate(8000);
        let end = (at + cut).min(bytes.len());
        bytes.splice(at..end, with);
        if let Ok(recording) = Recording::read(bytes.as_slice()) {
            if let Ok(report) = Report::of_recording("any", &recording) {
                prop_assert!(!report.html().is_empty() && !report.text().is_empty());
            }
        }
    }

    #[test]
    fn any_values_are_rendered(
        what in "cycle|wakeup|[a-z]{0,5}",
        rows in prop::collection::vec(prop::collection::vec(any::<i64>(), 16), 0..20),
        period in any::<u64>(),
    ) {
        let text = recording(&what, json!({ "period_ns": period }), &cycles::COLUMNS, &rows, json!({}));
        if let Ok(report) = report(&text) {
            let page = report.html();
            let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
            prop_assert!(roxmltree::Document::parse_with_options(&page, options).is_ok(), "{}", page);
            prop_assert!(Report::from_json(&report.json()).is_ok());
            let runs = ["a", "b <&>"].map(|name| Run { name: name.to_owned(), report: report.clone() });
            let page = compare(&runs).map(|it| it.html());
            let well_formed = page.map_or(true, |page| {
                let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
                roxmltree::Document::parse_with_options(&page, options).is_ok()
            });
            prop_assert!(well_formed);
        }
    }

    #[test]
    fn any_signals_are_rendered(
        name in ".{0,20}", unit in ".{0,5}",
        rows in prop::collection::vec(prop::collection::vec(any::<f64>(), 8), 0..20),
    ) {
        let signals = json!([{ "name": name, "type": "double", "unit": unit }]);
        let real = |value: &f64| (*value != 0.0).then_some(types::Value::Real(*value));
        let rows: Vec<Vec<_>> = rows.iter().map(|row| row.iter().map(real).collect()).collect();
        let report = report(&with_signals(signals, &rows)).unwrap();
        let page = report.html();
        let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
        prop_assert!(roxmltree::Document::parse_with_options(&page, options).is_ok(), "{}", page);
        prop_assert!(Report::from_json(&report.json()).is_ok());
    }

    #[test]
    fn any_text_as_json_is_a_report_or_a_sentence(text in ".{0,200}") {
        if let Err(error) = Report::from_json(&text) {
            prop_assert!(error.to_string().starts_with("expected a report"));
        }
    }
}
