//! Recordings as reports: of the cycle, of other measurements, cut off, and wrong.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use onbeat_report::{Report, Section};
use proptest::prelude::*;
use record::recording::{Header, RecordingWriter};
use record::{CycleRecord, Phase, Recording, cycles};
use serde_json::{Value, json};

fn recording(what: &str, facts: Value, columns: &[&str], rows: &[Vec<i64>], end: Value) -> String {
    let facts = facts.as_object().unwrap().clone();
    let columns = columns.iter().map(|&it| it.to_owned()).collect();
    let header = Header { what: what.into(), columns, facts };
    let mut writer = RecordingWriter::begin(Vec::new(), &header).unwrap();
    rows.iter().for_each(|row| writer.row(row).unwrap());
    String::from_utf8(writer.finish(end.as_object().unwrap()).unwrap()).unwrap()
}

fn cycle() -> String {
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
        "period_ns": 1_000_000, "robot": "six-axis", "cpu": { "asked": 1, "granted": null },
        "warnings": ["SCHED_FIFO 80 was refused"],
    });
    let machine = json!({ "machine": { "busy": 0.25, "idle": 0.75, "steal": 0.0 } });
    recording("cycle", facts, &cycles::COLUMNS, &rows, machine)
}

fn report(text: &str) -> Result<Report, String> {
    let recording = Recording::read(text.as_bytes()).map_err(|error| error.to_string())?;
    Report::of_recording("it", &recording)
}

fn plots(report: &Report) -> usize {
    report.sections.iter().filter(|it| !matches!(it, Section::Text(_) | Section::Table(_))).count()
}

#[test]
fn a_run_has_the_servo_table_its_conditions_and_its_plots() {
    let report = report(&cycle()).unwrap();
    let text = report.text();
    for expected in [
        "period    1 ms\n",
        "cpu       asked 1\n",
        "machine   25.0 % busy, 75.0 % idle, 0.0 % stolen\n",
        "warning   SCHED_FIFO 80 was refused\n",
        "T_period (ms)  T_jitter (us)  T_exec (us)\n",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let maximum = text.lines().find(|line| line.starts_with("wakeup latency")).unwrap();
    assert!(maximum.ends_with("302.000       500"), "the late cycle with its number: {maximum}");
    assert_eq!(plots(&report), 4);
    assert_eq!(report.values["wakeup_latency_ns"]["maximum"], 302_000);
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
    assert!(plots(&report) == 4);
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
        let mut bytes = cycle().into_bytes();
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
        rows in prop::collection::vec(prop::collection::vec(any::<i64>(), 15), 0..20),
        period in any::<u64>(),
    ) {
        let text = recording(&what, json!({ "period_ns": period }), &cycles::COLUMNS, &rows, json!({}));
        if let Ok(report) = report(&text) {
            let page = report.html();
            let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
            prop_assert!(roxmltree::Document::parse_with_options(&page, options).is_ok(), "{}", page);
            prop_assert!(Report::from_json(&report.json()).is_ok());
        }
    }

    #[test]
    fn any_text_as_json_is_a_report_or_a_sentence(text in ".{0,200}") {
        if let Err(error) = Report::from_json(&text) {
            prop_assert!(error.to_string().starts_with("expected a report"));
        }
    }
}
