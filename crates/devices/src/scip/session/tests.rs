//! Tests of a session with a simulated sensor in virtual time.

use super::*;
use crate::fake::range_finder::{Faults, Sensor, Settings};

const MS: u64 = 1_000_000;

/// Events of a session, and its final state.
struct Talk {
    events: Vec<Event>,
    session: Session,
    /// Time of each event, ms.
    at: Vec<u64>,
}

impl Talk {
    fn scans(&self) -> usize {
        self.events.iter().filter(|event| matches!(event, Event::Scan(_))).count()
    }

    fn failure(&self) -> Option<String> {
        self.events.iter().find_map(|event| match event {
            Event::Failed(error) => Some(error.to_string()),
            _ => None,
        })
    }

    fn ready_at_ms(&self) -> Option<u64> {
        let place = self.events.iter().position(|event| matches!(event, Event::Ready(_)))?;
        Some(self.at[place])
    }
}

fn talk(faults: Faults, milliseconds: u64) -> Talk {
    let noise = 0;
    let mut sensor = Sensor::new(Settings { faults, noise, ..Settings::default() }, 5_000 * MS);
    let begin = 7_000 * MS;
    let mut session = Session::new(begin);
    let (mut events, mut at) = (Vec::new(), Vec::new());
    for millisecond in 0..milliseconds {
        let now = begin + millisecond * MS;
        if let Some(line) = session.poll_transmit() {
            sensor.handle_bytes(&line, now);
        }
        let said = sensor.poll_transmit(now);
        session.handle_bytes(&said, now);
        if session.poll_timeout().is_some_and(|deadline| deadline <= now) {
            session.handle_timeout(now);
        }
        while let Some(event) = session.poll_event() {
            events.push(event);
            at.push(millisecond);
        }
    }
    Talk { events, session, at }
}

#[test]
fn sensor_identifies_itself_and_streams() {
    let talk = talk(Faults::default(), 2_000);
    assert_eq!(talk.failure(), None);
    assert!(talk.ready_at_ms().unwrap() < 20);
    assert!((18..=20).contains(&talk.scans()), "{}", talk.scans());
    let Some(Event::Ready(told)) = talk.events.first() else { panic!("{:?}", talk.events) };
    assert_eq!((told.1.first, told.1.last, told.1.longest), (44, 725, 5_600));
    let Some(Event::Scan(scan)) = talk.events.get(3) else { panic!() };
    // Ahead, at step 384, is a wall at 3 m; stamps are in virtual time.
    assert_eq!(scan.ranges[384 - 44], 3_000);
    assert!(scan.stamp_ns % (100 * MS) < 20 * MS, "{}", scan.stamp_ns);
    assert_eq!(talk.session.counters().wrong, 0);
}

#[test]
fn old_protocol_or_streaming_sensor_is_reset() {
    let old = talk(Faults { old_protocol: true, ..Faults::default() }, 4_000);
    assert_eq!((old.failure(), old.scans() > 15), (None, true), "{:?}", old.events.first());
    let streaming = talk(Faults { streams_already: true, ..Faults::default() }, 2_000);
    assert_eq!((streaming.failure(), streaming.scans() > 15), (None, true));
}

#[test]
fn scans_with_wrong_sums_or_cut_short_cost_no_others() {
    let faults = Faults { wrong_sum_in: 5, half_in: 7, ..Faults::default() };
    let talk = talk(faults, 4_000);
    assert_eq!(talk.failure(), None);
    let wrong = talk.events.iter().filter(|event| matches!(event, Event::Wrong(_))).count();
    // Of 40 scans every fifth has a wrong sum; every seventh has no end and is found in front of
    // the next.
    assert!(talk.scans() >= 25 && wrong >= 6, "{} scans, {wrong} wrong", talk.scans());
    assert!(talk.session.counters().lost_bytes > 0);
    assert!(talk.events.iter().all(|event| match event {
        Event::Scan(scan) => scan.ranges.len() == 682 && scan.ranges[340] == 3_000,
        _ => true,
    }));
}

#[test]
fn silence_garbage_and_a_broken_laser_end_it_with_a_reason() {
    let mute = talk(Faults { mute: true, ..Faults::default() }, 8_000);
    assert_eq!(
        mute.failure().unwrap(),
        "no reply to SCIP2.0 for 1500 ms: is it the right port, powered, and not in use by another program?"
    );
    let garbage = talk(Faults { garbage: true, ..Faults::default() }, 8_000);
    assert!(garbage.failure().unwrap().starts_with("no reply to SCIP2.0"), "{:?}", garbage.failure());
    let broken = talk(Faults { broken_laser: true, ..Faults::default() }, 2_000);
    assert_eq!(broken.failure().unwrap(), "BM refused with status 01: its laser is broken");
    let silent = talk(Faults { silent_after: 5, ..Faults::default() }, 4_000);
    assert_eq!((silent.scans(), silent.failure().unwrap()), (5, "no scan for 1000 ms".to_owned()));
}

#[test]
fn garbage_without_end_ends_it_too() {
    let mut session = Session::new(0);
    session.step = SessionStep::Version;
    for number in 0..30 {
        session.handle_bytes(b"VV\n00P\nwrong\n\n", number);
    }
    let events: Vec<_> = std::iter::from_fn(|| session.poll_event()).collect();
    assert!(
        matches!(events.last(), Some(Event::Failed(SessionError::Garbage { count: 20, .. }))),
        "{events:?}"
    );
    assert_eq!((events.len(), session.poll_timeout()), (20, None));
}

#[test]
fn parameters_that_make_no_sense_end_it() {
    let settings = Settings { sector: [700, 44, 384], ..Settings::default() };
    let mut sensor = Sensor::new(settings, 0);
    let mut session = Session::new(0);
    for now in 0..2_000 {
        if let Some(line) = session.poll_transmit() {
            sensor.handle_bytes(&line, now * MS);
        }
        session.handle_bytes(&sensor.poll_transmit(now * MS), now * MS);
    }
    let failed = std::iter::from_fn(|| session.poll_event()).last();
    let Some(Event::Failed(error)) = failed else { panic!("{failed:?}") };
    assert_eq!(error.to_string(), "its parameters make no sense: steps 700 to 44 of 1024 a turn, 5600 mm");
}
