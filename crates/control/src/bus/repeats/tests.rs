use super::*;

fn event(milliseconds: u64, what: Happening) -> CycleEvent {
    CycleEvent { cycle: milliseconds, at: at(milliseconds), cable: None, what }
}

fn at(milliseconds: u64) -> Instant {
    Instant::from_nanos(milliseconds * 1_000_000)
}

fn stopped(axis: usize, reason: StopReason) -> Happening {
    Happening::AxisStopped { axis, reason, with: None, because: Cause::default() }
}

/// Passes pairs of events of these axes, 12 ms long, every 40 ms. Returns the events that were
/// passed on and the reports of a look every 20 ms.
fn flood(
    repeats: &mut Repeats,
    axes: std::ops::Range<usize>,
    times: std::ops::Range<u64>,
) -> (usize, Vec<Repeated>) {
    let (mut passed, mut reported) = (0, Vec::new());
    for now in times {
        for axis in axes.clone() {
            let what = match now % 40 {
                0 => stopped(axis, StopReason::Stale),
                12 => Happening::AxisFreed { axis },
                _ => continue,
            };
            passed += usize::from(repeats.passes(&event(now, what)));
        }
        if now % 20 == 0 {
            reported.extend(repeats.due(at(now)));
        }
    }
    (passed, reported)
}

// feature(program): events that repeat are one line a second or less, with count and longest duration
#[test]
fn pairs_that_repeat_become_one_event_a_second_or_less() {
    let mut repeats = Repeats::default();
    let (passed, reported) = flood(&mut repeats, 0..6, 0..25_000);
    // 625 pairs of each of 6 axes.
    assert_eq!(passed, 3 * 2 * 6);
    assert!((3..=25).contains(&reported.len()), "{}", reported.len());
    assert!(reported.iter().all(|it| it.begins.len() == 6 && it.longest == 12), "{reported:?}");
    let rest = repeats.rest();
    assert_eq!(rest.len(), 1);
    let late = reported.iter().chain(&rest).map(|it| it.within).max();
    assert!(late <= Some(Duration::from_millis(2_020)), "{late:?}");
    let count: u64 = reported.iter().chain(&rest).map(|it| it.count).sum();
    assert_eq!(count + 3, 625, "none is missing in the counts");
    assert!(reported.windows(2).all(|two| two[1].begins[0].cycle - two[0].begins[0].cycle >= 1_000));
}

#[test]
fn pairs_pass_again_once_they_have_ended() {
    let mut repeats = Repeats::default();
    let (_, reported) = flood(&mut repeats, 0..1, 0..500);
    assert_eq!(reported.len(), 0);
    let due = repeats.due(at(1_600));
    assert!(due.len() == 1 && due[0].count == 13 - 3 && !due[0].lasts, "{due:?}");
    assert_eq!(repeats.due(at(60_000)).len(), 0);
    assert!(repeats.passes(&event(60_000, stopped(0, StopReason::Stale))));
    assert!(repeats.passes(&event(61_000, Happening::AxisFreed { axis: 0 })));
    // Three in a second, for hours, are none too many.
    for number in 0..1_000 {
        let now = 100_000 + number * 500;
        assert!(repeats.passes(&event(now, stopped(0, StopReason::Stale))), "{number}");
        assert!(repeats.passes(&event(now + 100, Happening::AxisFreed { axis: 0 })), "{number}");
        assert_eq!(repeats.due(at(now + 200)).len(), 0);
    }
}

// feature(program): a drive's fault and the first stop for a reason are never lost among events that repeat
#[test]
fn faults_and_first_occurrences_pass_in_a_flood() {
    let mut repeats = Repeats::default();
    let _ = flood(&mut repeats, 0..2, 0..5_000);
    for what in [
        Happening::DriveFault { axis: 0, position: 0, code: 0x7500 },
        stopped(0, StopReason::Fault),
        stopped(2, StopReason::Stale),
        Happening::SubDeviceLost { position: 0 },
        Happening::Stalled { cycles: 3 },
    ] {
        let event = event(5_001, what);
        assert!(repeats.passes(&event), "{event:?}");
    }
    // The end of the first stop for another reason passes, too.
    assert!(repeats.passes(&event(5_010, Happening::AxisFreed { axis: 0 })));
}

#[test]
fn a_stop_that_lasts_at_the_end_of_a_flood_is_reported_so() {
    let mut repeats = Repeats::default();
    let _ = flood(&mut repeats, 0..1, 0..490);
    let _ = repeats.passes(&event(490, stopped(0, StopReason::Stale)));
    let due = repeats.due(at(1_600));
    assert!(due.len() == 1 && due[0].lasts, "{due:?}");
    assert!(repeats.passes(&event(9_000, Happening::AxisFreed { axis: 0 })), "its end is reported");
}

#[test]
fn an_event_about_pairs_has_their_sentence_count_and_longest() {
    let axes = vec!["left".to_owned(), "right".to_owned()];
    let names = PartNames { axes, period: Duration::from_millis(1), ..PartNames::default() };
    let begins = (0..2).map(|axis| event(7, stopped(axis, StopReason::Stale))).collect();
    let within = Duration::from_secs(2);
    let repeated = Repeated { begins, count: 614, longest: 2012, within, lasts: true };
    let event = repeated.event(&names).unwrap();
    let (_, plain) = sentence(&repeated.begins[0], &repeated.begins[1..], &names).unwrap();
    assert!(
        event.sentence.starts_with(&plain) && event.sentence.contains("614 times in 2.0 s"),
        "{event:?}"
    );
    assert!(event.sentence.contains("2012 cycles") && event.sentence.ends_with("lasts"), "{event:?}");
    let json = serde_json::to_value(&event).unwrap();
    assert_eq!((&json["event"], &json["of"]["event"]), (&"repeated".into(), &"axis_stopped".into()));
    assert_eq!(
        (&json["others"], &json["count"], &json["longest"]),
        (&[1].into(), &614.into(), &2012.into())
    );
}

#[test]
fn stalls_that_repeat_have_the_longest() {
    let mut repeats = Repeats::default();
    let passed = (0..10)
        .filter(|&number| repeats.passes(&event(number * 50, Happening::Stalled { cycles: 10 - number })));
    assert_eq!(passed.count(), 3);
    let rest = repeats.rest();
    assert!(
        rest.len() == 1 && (rest[0].count, rest[0].longest, rest[0].lasts) == (7, 7, false),
        "{rest:?}"
    );
}

/// Four ends of a jog in half a second: the fourth is counted.
fn jogs(repeats: &mut Repeats) {
    for number in 0..4 {
        let because = Cause { ended: true, ..Cause::default() };
        let held = Happening::AxisStopped { axis: 0, reason: StopReason::Stale, with: None, because };
        let _ = repeats.passes(&event(number * 100, held));
        let _ = repeats.passes(&event(number * 100 + 50, Happening::AxisFreed { axis: 0 }));
    }
}

#[test]
fn another_cause_of_the_same_stop_passes_in_a_flood() {
    let with = |reason, because| Happening::AxisStopped { axis: 0, reason, with: None, because };
    let mut repeats = Repeats::default();
    jogs(&mut repeats);
    // The end of a jog is no failure; a command that ends while the axis moves is.
    assert!(repeats.passes(&event(450, with(StopReason::Stale, Cause::default()))));

    let mut repeats = Repeats::default();
    for number in 0..5 {
        let _ = repeats.passes(&event(number, with(StopReason::Outage, Cause::default())));
    }
    let stalled = |cycles| with(StopReason::Outage, Cause { stalled: cycles, ..Cause::default() });
    assert!(repeats.passes(&event(10, stalled(7))));
    let passed = (8..20).filter(|&cycles| repeats.passes(&event(10 + u64::from(cycles), stalled(cycles))));
    assert_eq!(passed.count(), 2, "stalls of another length are of one kind");
}

#[test]
fn another_level_or_cable_passes_in_a_flood() {
    let mut repeats = Repeats::default();
    let level = |level| Happening::Interlock { interlock: 0, allows: false, level };
    let passed = (0..5).filter(|&number| repeats.passes(&event(number, level(InputLevel::Low))));
    assert_eq!(passed.count(), 3);
    assert!(repeats.passes(&event(6, level(InputLevel::Lost))), "low is not lost");

    let end = |position, port| CableEnd { position: Some(position), port: Some(port) };
    let open = |first| Happening::RingOpen { between: [end(first, 1), end(first + 1, 0)] };
    let passed = (0..5).filter(|&number| repeats.passes(&event(number, open(0))));
    assert_eq!(passed.count(), 3);
    assert!(repeats.passes(&event(6, open(1))), "another cable");
}
