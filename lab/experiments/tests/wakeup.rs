//! `measure wakeup`, short.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod support;

use std::sync::Mutex;
use std::time::Duration;

use onbeat_experiments::wakeup::Wakeup;
use support::{Folder, assert_in_order, conduct, conduct_as, table};

// feature(measure): `measure wakeup`, compared with cyclictest
#[test]
fn ours_and_cyclictest_take_turns_and_every_cycle_is_recorded() {
    let folder = Folder::new();
    let experiment =
        Wakeup { period: Duration::from_micros(500), samples: 300, rounds: 3, ..Wakeup::default() };
    let report = conduct(&folder, |context| experiment.run(context));

    let latencies = table(&report, "Wake-up latency, us");
    assert_in_order(latencies);
    let names: Vec<&str> = latencies.rows.iter().map(|row| &*row.name).collect();
    // Installed and allowed or not: cyclictest's numbers stand in the table, or a warning says why
    // they do not.
    let ran = names.contains(&"cyclictest");
    assert!(ran != report.warnings.iter().any(|warning| warning.starts_with("cyclictest")), "{names:?}");
    assert_eq!(names.len(), if ran { 3 } else { 2 });
    assert_eq!(table(&report, "Ours over cyclictest's").rows.len(), if ran { 2 } else { 0 });
    assert_eq!(table(&report, "Median of each turn").rows.len(), 3);
    assert_eq!(report.values["rounds_not_worse"].is_u64(), ran);

    for name in ["ours", "ours-spinning"] {
        let recording = folder.recording(name);
        assert!(recording.complete);
        assert_eq!(recording.header.what, "wakeup");
        let rounds: Vec<i64> = recording.column("round").unwrap().collect();
        assert_eq!(rounds.len(), 300);
        assert!((1..=3).all(|round| rounds.iter().filter(|&&it| it == round).count() == 100));
        assert!(recording.column("wakeup_latency_ns").unwrap().all(|latency| latency >= 0));
    }
    assert_eq!(folder.recording("cyclictest").rows().len(), if ran { 300 } else { 0 });

    // It resumes with the missing round.
    let rounds = |name: &str, round| -> Vec<i64> {
        let recording = folder.recording(name);
        let rows = recording.column("round").unwrap().zip(recording.column("wakeup_latency_ns").unwrap());
        rows.filter(|it| it.0 == round).map(|it| it.1).collect()
    };
    let (first, second) = (rounds("ours", 1), rounds("ours", 2));
    std::fs::remove_file(folder.0.join("round-2.cell.json")).unwrap();
    let said = Mutex::new(Vec::new());
    let say = |line: &str| said.lock().unwrap().push(line.to_owned());
    conduct_as(&folder, true, &say, |context| experiment.run(context));
    let said = said.into_inner().unwrap();
    assert_eq!(said.iter().filter(|line| line.ends_with("measured before")).count(), 2, "{said:?}");
    assert!(said.iter().any(|line| line.starts_with("wakeup: 2 of 3, round-2; ")), "{said:?}");
    assert_eq!(rounds("ours", 1), first);
    assert!(rounds("ours", 2).len() == 100 && rounds("ours", 2) != second);
}
