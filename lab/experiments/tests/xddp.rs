//! `measure xddp`, short.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod support;

use onbeat_experiments::xddp::Xddp;
use support::{Folder, assert_in_order, conduct, number, table};

// feature(measure): `measure xddp`: a message through a port and back, woken by polling, an event or a helper thread
#[test]
fn port_messages_are_timed_both_ways_for_each_wakeup() {
    let folder = Folder::new();
    let experiment = Xddp { samples: 100, ..Xddp::default() };
    let report = conduct(&folder, |context| experiment.run(context));

    let ports = ["look", "event", "helper"]
        .map(|wake| ["messages", "stream"].map(|kind| format!("{kind}, {wake}")));
    let calls = table(&report, "System calls of the real-time task");
    for circumstances in ["idle", "loaded"] {
        let at = |caption: &str| table(&report, &format!("{caption}, us, {circumstances}"));
        let (there, round_trip) = (at("From the real-time task to the ordinary one"), at("There and back"));
        for table in [
            at("The call that sends"),
            there,
            at("From the ordinary task to the real-time one"),
            round_trip,
        ] {
            assert_in_order(table);
        }
        for port in ports.iter().flatten() {
            assert!(number(there, port, "minimum") > 0.0);
            assert!(number(round_trip, port, "average") >= number(there, port, "average"), "{port}");
            let recording = folder.recording(&format!("{}-{circumstances}", port.replace(", ", "-")));
            assert!(recording.complete);
            assert_eq!(recording.header.columns, ["send_ns", "there_ns", "back_ns", "round_trip_ns"]);
            assert!(
                recording.rows().all(|row| row[1] + row[2] <= row[3]),
                "both ways are parts of the whole"
            );
            // Late answers are left out, and reported.
            let told = report
                .text()
                .contains(&format!("{} messages of {port} had no answer", 100 - recording.rows().len()));
            assert!(recording.rows().len() == 100 || told, "{}", report.text());
            let row = format!("{port}, {circumstances}");
            assert_eq!(number(calls, &row, "messages"), 100.0);
            let woken = number(calls, &row, "to wake the other side");
            assert!(woken <= 1.0 && (woken > 0.0) == port.ends_with("event"), "{row}: {woken}");
        }
    }
    assert_eq!(folder.recordings(), 12);
    assert_eq!(report.values["ports"].as_array().unwrap().len(), 12);
    assert_eq!(report.values["paper"][0]["figure"]["name"], "Table 1");
}
