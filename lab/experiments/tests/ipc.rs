//! `measure ipc`, short.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod support;

use std::time::Duration;

use onbeat_experiments::ipc::Ipc;
use support::{Folder, assert_in_order, conduct, goes_on, number, table};

// feature(measure): `measure ipc`, with rt-tests as peers
// feature(measure): `--continue DIR` of `ipc`
#[test]
fn every_mechanism_is_measured_alone_and_between_threads() {
    let folder = Folder::new();
    let (within, interval) = (Duration::from_millis(400), Duration::from_micros(300));
    let experiment = Ipc { samples: 80, interval, rounds: 2, within, messages: 100, ..Ipc::default() };
    let report = conduct(&folder, |context| experiment.run(context));

    let calls = table(&report, "A call without a waiting thread");
    assert_eq!(calls.rows.len(), 12, "seven mechanisms, five of our own");
    assert_in_order(calls);
    for caption in ["both threads at priority 80", "80 asks, 90 answers"] {
        let wake_ups = table(&report, &format!("Round trip / 2, us: {caption}"));
        assert_eq!(wake_ups.rows.len(), 7);
        assert_in_order(wake_ups);
    }
    // The kernel wakes a sleeper: that costs more than a semaphore without a sleeper.
    let wake_up_ns = 1e3 * number(table(&report, "80 asks, 90 answers"), "semaphore", "minimum");
    assert!(wake_up_ns > number(calls, "semaphore", "minimum"));

    // Tables 4 and 5 of the paper, in its form.
    let within = table(&report, "Two tasks that share one means");
    let means = ["nothing", "semaphore", "mutex", "mutex (priority inheritance)", "our rings"];
    assert!(within.rows.iter().map(|row| &*row.name).eq(means), "{within:?}");
    for means in means {
        // The first task is busy for half a millisecond; T is what its response is longer by.
        assert!(number(within, means, "R min") >= 500.0, "{means}");
        let more = number(within, means, "R") - number(within, "nothing", "R");
        assert!((number(within, means, "T") - more).abs() < 0.002, "{means}");
    }
    let sent = table(&report, "A message from a periodic sender");
    assert_eq!(sent.rows.len(), 6 * 4, "five mechanisms and our port");
    for name in ["POSIX message queue", "our port, waking by an event"] {
        let [least, average, most] =
            ["min", "avg", "max"].map(|it| number(sent, &format!("{name}: {it}"), "T, us"));
        assert!(0.0 < least && least <= average && average <= most, "{name}");
    }
    let figures = report.values["paper"].as_array().unwrap();
    assert!(figures.iter().map(|it| &it["figure"]["name"]).eq(["Table 4", "Table 5"]));

    // One recording of the calls and two of the round trips for each mechanism, and one of each
    // periodic sender; one way is part of there and back.
    assert_eq!(folder.recordings(), 27);
    let recording = folder.recording("POSIX-message-queue-same-priority");
    assert!(recording.complete);
    assert_eq!(recording.header.columns, ["round_trip_ns", "one_way_ns"]);
    assert_eq!(recording.rows().len(), 80);
    assert!(recording.rows().all(|row| 0 < row[1] && row[1] <= row[0]));
    assert_eq!(report.values["mechanisms"].as_array().unwrap().len(), 7);
    goes_on(&folder, &report, |context| experiment.run(context));
}

/// Installed or not: rt-tests' numbers stand in the table, or a warning says why they do not.
// feature(measure): `measure ipc`, with rt-tests as peers
#[test]
fn the_peers_are_there_or_it_is_said_why_not() {
    let folder = Folder::new();
    let (within, interval) = (Duration::from_millis(5), Duration::from_micros(500));
    let experiment = Ipc { samples: 50, interval, rounds: 1, within, messages: 2, ..Ipc::default() };
    let report = conduct(&folder, |context| experiment.run(context));
    let beside = table(&report, "next to rt-tests");
    for program in ["ptsematest", "pmqtest"] {
        let row = beside.rows.iter().find(|row| row.name.starts_with(program));
        let warned = report.warnings.iter().any(|warning| warning.starts_with(program));
        assert!(row.is_some() != warned, "{program}: {row:?}, {:?}", report.warnings);
        if row.is_some() {
            assert_eq!(number(beside, &format!("{program} (rt-tests)"), "samples"), 50.0);
        }
    }
}
