//! `measure ecci`, short.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod support;

use std::time::Duration;

use onbeat_experiments::ecci::Ecci;
use report::{Report, Section};
use support::{Folder, conduct, number, table};

// feature(papers): `measure ecci`: our IPC and two mutexes with 0, 1, 8, 64 readers
// feature(papers): `measure ecci`: event to answer and data flow, in the cycle's thread and in a controller process, measured and computed
#[test]
fn mechanisms_are_measured_for_each_reader_count_without_tears() {
    let folder = Folder::new();
    let experiment =
        Ecci { samples: 60, rounds: 2, interval: Duration::from_micros(200), ..Ecci::default() };
    let report = conduct(&folder, |context| experiment.run(context));

    let requests = table(&report, "One request of the cycle, us");
    let ways = ["our IPC", "mutex cache with priority inheritance", "plain mutex cache"];
    for way in ways {
        for readers in [0, 1, 8, 64] {
            let row = format!("{way}, {readers}");
            let (median, maximum) = (number(requests, &row, "median"), number(requests, &row, "maximum"));
            assert!(0.0 < median && median <= maximum, "{row}: {median} {maximum}");
            assert_eq!(number(requests, &row, "torn"), 0.0, "{row}");
            let reads = number(requests, &row, "reads/s");
            assert!((readers > 0) == (reads > 0.0), "{row}: {reads} reads a second");
        }
    }
    // The same load next to our IPC, for each number of readers but none.
    assert_eq!(requests.rows.len(), 15);
    assert_eq!(table(&report, "Over the same way without readers").rows.len(), 15);
    assert_eq!(table(&report, "The same cell twice").rows.len(), 15);
    let verdicts = report.sections.iter().filter(
        |section| matches!(section, Section::Text(text) if ways.iter().any(|way| text.starts_with(way))),
    );
    assert_eq!(verdicts.count(), 3, "{}", report.text());

    assert_eq!(folder.recordings(), 15);
    let recording = folder.recording("ipc-64");
    assert!(recording.complete);
    assert_eq!(recording.header.columns, ["pass", "round", "request_ns"]);
    assert_eq!(recording.rows().len(), 120, "two passes");
    assert_eq!(recording.rows().filter(|row| row[0] == 1 && row[1] == 1).count(), 30);
    assert_eq!(report.values["cells"].as_array().unwrap().len(), 15);
    answers_and_flow(&report);
}

/// A controller process next to one in the cycle's thread.
fn answers_and_flow(report: &Report) {
    let answers = report.values["answers"].as_array().unwrap();
    let names: Vec<_> = answers.iter().map(|it| it["controller"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    for (place, it) in answers.iter().enumerate() {
        let process = it["process"].as_u64();
        let is_another = process.is_some_and(|id| id > 1 && id != u64::from(std::process::id()));
        assert_eq!(is_another, place > 0, "{it}");
        let all = it["samples"].as_u64().unwrap() + it["late"].as_u64().unwrap();
        assert_eq!(all, 60, "{it}");
    }
    assert_eq!(table(report, "Event to answer").rows.len(), 3);
    assert!(answers[0]["median_ns"].as_u64() < answers[1]["median_ns"].as_u64(), "{answers:?}");

    let computed = report.values["flow_computed"].as_array().unwrap();
    assert_eq!(computed.len(), 2, "{computed:?}");
    let flow = report.values["flow"].as_array().unwrap();
    if flow.is_empty() {
        let why = |it: &&String| it.starts_with("data flow over a cable");
        return testkit::skip!("{}", report.warnings.iter().find(why).unwrap());
    }
    assert_eq!(flow.len(), 4, "{}", report.text());
    for it in flow {
        assert_eq!(it["events"], 20, "{it}");
        let median = |part: &str| it[part][1].as_f64().unwrap();
        // A busy machine makes it longer, none makes it shorter than the order of frames does.
        let name = it["flow"].as_str().unwrap();
        let order = name.split(',').next().unwrap();
        let computed = computed.iter().find(|it| it["flow"].as_str().unwrap().starts_with(order)).unwrap();
        let soonest = |part: &str| computed[part][0].as_f64().unwrap();
        assert!(median("in") > soonest("in") && median("all") > soonest("all"), "{it}, {computed}");
        // What is seen late leaves less of the time until the command does; one that leaves behind
        // the computing leaves sooner where that takes less than is assumed.
        let waits = if order == "wait_for_reply" { 0.8 * soonest("out") } else { 0.0 };
        assert!(median("out") > waits, "{it}, {computed}");
    }
    let rows = &table(report, "Data flow over a cable").rows;
    assert_eq!((rows.len(), rows.iter().filter(|row| row.from_paper).count()), (7, 1));
}
