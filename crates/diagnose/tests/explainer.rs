//! Explanation of a run, cycle by cycle.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use onbeat_diagnose::explanation::{MOST_LATE, WORST};
use onbeat_diagnose::{Explainer, Kind, Settings};
use record::{CycleRecord, Phase};
use rt::clock::now_ns;
use rustix::thread::gettid;

const US: u64 = 1_000;

const SETTINGS: Settings =
    Settings { late_above_ns: 50 * US, period_ns: 1_000 * US, waits_for_reply: false, cpu: None };

/// Record of a cycle that started this late and then took 10 us.
fn record(cycle: u64, release: u64, late: u64) -> CycleRecord {
    let mut record = CycleRecord::begin(cycle, release, release + late);
    record.finish(Phase::Update, release + late + 10 * US);
    record
}

// feature(explain): counters where there is no trace
#[test]
fn without_trace_counters_and_missing_means_are_reported() {
    let mut explainer = Explainer::by_counters(SETTINGS, "no tracefs here".to_owned());
    assert_eq!(explainer.trace_is_missing(), Some("no tracefs here"));
    explainer.follow(gettid().as_raw_nonzero().get());
    let now = now_ns();
    explainer.look(&[]);
    // Sleeps, to be counted.
    (0..5).for_each(|_| std::thread::sleep(std::time::Duration::from_millis(1)));
    explainer.look(&[record(1, now, 20 * US), record(2, now + 1_000 * US, 300 * US)]);
    let explanation = explainer.finish();
    assert_eq!(explanation.source, "counters");
    assert_eq!((explanation.late.len(), explanation.late_cycles), (1, 1));
    let late = &explanation.late[0];
    assert_eq!((late.cycle, late.late_ns), (2, 300 * US));
    assert_eq!(late.causes.iter().map(|cause| cause.ns).sum::<u64>(), 300 * US);
    assert!(late.causes.iter().all(|cause| matches!(cause.kind, Kind::Steal | Kind::Task | Kind::Unknown)));
    let sleeps = late.causes.iter().find(|cause| cause.kind == Kind::Unknown);
    if let Some(counted) = sleeps {
        assert!(
            counted.name.contains(" sleeps") && !counted.name.contains(" 0 sleeps"),
            "{}",
            counted.name
        );
    }
    assert!(explanation.notes.iter().any(|note| note.contains("no trace: no tracefs here")));
    assert!(explanation.to_string().contains("no tracefs here"));
}

// feature(explain): a cycle later than all before it is reported at once
#[test]
fn a_look_gives_the_cycle_that_is_later_than_all_before_it() {
    let mut explainer = Explainer::by_counters(SETTINGS, "not wanted".to_owned());
    let mut told = Vec::new();
    for (cycle, late) in [(1, 60), (2, 90), (3, 70), (4, 90), (5, 20), (6, 95), (7, 0), (8, 0)] {
        told.extend(explainer.look(&[record(cycle, cycle * 1_000 * US, late * US)]).map(|late| late.cycle));
    }
    assert_eq!(told, [1, 2, 6]);
}

// feature(explain): a recording has a mark for each late cycle, however many a look explains
#[test]
fn a_look_returns_all_late_cycles_that_it_explains() {
    let mut explainer = Explainer::by_counters(SETTINGS, "not wanted".to_owned());
    let late = |cycles: std::ops::Range<u64>| {
        cycles.map(|cycle| record(cycle, cycle * 1_000 * US, 60 * US)).collect::<Vec<_>>()
    };
    explainer.look(&late(0..500));
    assert!(explainer.explained().is_empty(), "the next look explains them");
    explainer.look(&late(500..501));
    assert!(explainer.explained().iter().map(|it| it.cycle).eq(0..500));
    explainer.look(&[]);
    assert!(explainer.explained().iter().map(|it| it.cycle).eq([500]));
    explainer.look(&[]);
    assert!(explainer.explained().is_empty());
}

#[test]
fn worst_late_cycles_are_kept_and_all_counted() {
    let mut explainer = Explainer::by_counters(SETTINGS, "not wanted".to_owned());
    explainer.follow(gettid().as_raw_nonzero().get());
    let many = MOST_LATE as u64 + 500;
    let now = now_ns();
    let records: Vec<CycleRecord> = (0..many)
        .map(|cycle| record(cycle, now + cycle * 1_000 * US, 60 * US + cycle % 900 * US))
        .collect();
    for some in records.chunks(700) {
        explainer.look(some);
    }
    let explanation = explainer.finish();
    assert_eq!((explanation.late.len(), explanation.late_cycles), (MOST_LATE, many));
    assert!(explanation.late.is_sorted_by_key(|late| late.cycle));
    let latest = explanation.late.iter().map(|late| late.late_ns).max().unwrap();
    assert_eq!(latest, 959 * US);
    assert!(explanation.late.iter().all(|late| late.late_ns > 60 * US), "the least late are left out");
    assert_eq!(explanation.worst.len(), WORST);
    assert!(explanation.worst.iter().all(|it| it.late.late_ns == latest));
    assert!(explanation.notes.iter().any(|note| note.contains("the worst 10000 are listed")));
    let summed: u64 = explanation.by_cause.iter().map(|total| total.ns).sum();
    assert_eq!(summed, records.iter().map(CycleRecord::wakeup_latency).sum::<u64>());
}

/// A run without explanations answers from its records.
// feature(explain): `onbeat explain` asks a running cycle why it was late, also one without --explain
#[test]
fn records_alone_answer_for_the_last_minutes() {
    let mut explainer = Explainer::by_records(SETTINGS);
    assert_eq!(explainer.trace_is_missing(), None);
    explainer.follow(gettid().as_raw_nonzero().get());
    let (recent, begin) = (explainer.recent(), now_ns());
    let late = [10 * US, 300 * US, 20 * US, 90 * US];
    let records = (1..).zip(late).map(|(cycle, late)| record(cycle, begin + cycle * 1_000 * US, late));
    assert!(explainer.look(&records.collect::<Vec<_>>()).is_none(), "nothing is reported as it happens");
    explainer.look(&[]);
    let report = recent.report(begin + 10_000 * US, 60_000_000 * US);
    assert_eq!(
        (report.source.as_str(), report.late_above_ns, report.period_ns),
        ("records", 50 * US, 1_000 * US)
    );
    assert_eq!((report.last.cycles, report.last.late_cycles), (4, 2));
    assert_eq!((report.last.worst_cycle, report.last.worst_ns), (2, 300 * US));
    assert_eq!(
        report.late.iter().map(|it| (it.cycle, it.late_ns)).collect::<Vec<_>>(),
        [(2, 300 * US), (4, 90 * US)]
    );
    for late in &report.late {
        assert_eq!(late.causes.iter().map(|it| it.ns).sum::<u64>(), late.late_ns);
    }
    assert_eq!(report.by_cause.iter().map(|it| it.ns).sum::<u64>(), 390 * US);
}
