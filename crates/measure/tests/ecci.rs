//! `measure ecci`, short.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod support;

use std::time::Duration;

use onbeat_measure::ecci::Ecci;
use report::Section;
use support::{Folder, conduct, number, table};

#[test]
fn every_way_is_measured_twice_with_every_number_of_readers_and_nobody_sees_half_a_state() {
    let folder = Folder::new();
    let experiment =
        Ecci { samples: 60, rounds: 2, interval: Duration::from_micros(200), ..Ecci::default() };
    let report = conduct(&folder, |context| experiment.run(context));

    let requests = table(&report, "One request of the cycle, us");
    let ways = ["our seam", "mutex cache with priority inheritance", "plain mutex cache"];
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
    // The same load beside our seam, for each number of readers but none.
    assert_eq!(requests.rows.len(), 15);
    assert_eq!(table(&report, "Over the same way without readers").rows.len(), 15);
    assert_eq!(table(&report, "The same cell twice").rows.len(), 15);
    let verdicts = report.sections.iter().filter(
        |section| matches!(section, Section::Text(text) if ways.iter().any(|way| text.starts_with(way))),
    );
    assert_eq!(verdicts.count(), 3, "{}", report.text());

    assert_eq!(folder.recordings(), 15);
    let recording = folder.recording("seam-64");
    assert!(recording.complete);
    assert_eq!(recording.header.columns, ["pass", "round", "request_ns"]);
    assert_eq!(recording.rows().len(), 120, "two passes");
    assert_eq!(recording.rows().filter(|row| row[0] == 1 && row[1] == 1).count(), 30);
    assert_eq!(report.values["cells"].as_array().unwrap().len(), 15);
}
