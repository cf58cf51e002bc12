use std::sync::Arc;
use std::time::Duration;

use ethercat::cia402::{AxisMode, CyclicMode};
use ethercat::main_device::BringUpPhase;
use ethercat::sii::Identity;
use ethercat::time::Instant;
use ipc::description::Referencing;
use motion::supervision::StopReason;
use types::Value;
use types::state::InputLevel;

use ipc::force::Client;
use ipc::message::control::{Action, Refusal};

use super::*;
use crate::controller::{ClientRequest, IgnoredSetpoint, InterlockCause};
use crate::observer::Cause;
use crate::signal::{ForceEvent, ReleaseReason};

fn names() -> PartNames {
    let names = |count| (1..=count).map(|it| format!("drive-{it}")).collect::<Vec<_>>();
    PartNames {
        sub_devices: names(3),
        axes: names(3),
        period: Duration::from_millis(2),
        ..PartNames::default()
    }
}

fn of(what: Happening) -> Event {
    let at = Instant::from_nanos(70);
    event(&CycleEvent { cycle: 7, at, cable: None, what }, &names()).expect("an event for others")
}

/// Every phase of the bus has a different name in an event, and is found by it.
#[test]
fn every_phase_round_trips_by_name() {
    for phase in BringUpPhase::ALL {
        let told = of(Happening::Bus(BusEvent::BringUpPhase { phase, at: Instant::from_nanos(1) }));
        let line = serde_json::to_string(&told).unwrap();
        let Reported::Phase { phase: name } = serde_json::from_str::<Event>(&line).unwrap().what else {
            panic!("{line}");
        };
        assert_eq!(BringUpPhase::from_words(&name), Some(phase), "{line}");
        assert_eq!(told.sentence, format!("the bus is in phase {name}"));
    }
    assert_eq!(BringUpPhase::from_words("op"), None);
}

/// An event has message, severity and sentence with its cycle.
#[test]
fn an_event_has_its_sentence_and_its_severity() {
    let told = of(Happening::RingClosed { after: 3 });
    assert_eq!((told.cycle, told.at_ns, told.severity), (7, 70, Good));
    assert_eq!(told.sentence, "the ring is closed again after 3 cycles, 6 ms");
    let told = of(Happening::Bus(BusEvent::Unreachable { position: 1 }));
    let expected = "SubDevice 1 \"drive-2\" does not answer any more: check its power and the cable to it";
    assert_eq!((told.severity, told.sentence.as_str()), (Error, expected));
    let (error_register, manufacturer) = (0, [0; 5]);
    let reset = BusEvent::Emergency { position: 1, error_code: 0, error_register, manufacturer };
    let told = of(Happening::Bus(reset));
    let expected = "SubDevice 1 \"drive-2\" sends an emergency: its error is reset (0x0000), ";
    assert!(told.severity == Good && told.sentence.starts_with(expected), "{}", told.sentence);
    let told = of(Happening::DriveFault { axis: 0, position: 0, code: 0x2310 });
    let start = "axis \"drive-1\" at SubDevice 0 \"drive-1\" is in fault: 0x2310: ";
    assert!(told.sentence.starts_with(start), "{}", told.sentence);
    let what = IgnoredSetpoint { mode: AxisMode::CyclicVelocity, given: CyclicMode::Position };
    let told = of(Happening::SetpointIgnored { axis: 1, what });
    let expected = "axis \"drive-2\" does not move: its controller sets a position and no more, and in csv it takes a velocity";
    assert_eq!((told.severity, told.sentence.as_str()), (Warning, expected));
}

// feature(program): `run` and `events` name only remedies that an unreferenced axis has
#[test]
fn an_unreferenced_axis_is_sent_only_where_it_has_a_way() {
    let way = |by_switch, by_measurement| Referencing { by_switch, by_measurement };
    let referencing = vec![way(true, false), way(false, true), way(false, false)];
    let names = PartNames { referencing, ..names() };
    let why =
        |axes: &[usize]| stop_reason(axes, StopReason::UnreferencedRestart, None, Cause::default(), &names);
    assert!(why(&[0]).ends_with("; home it on a switch"), "{}", why(&[0]));
    assert!(why(&[1]).ends_with("`onbeat control accept-position`"), "{}", why(&[1]));
    assert!(!why(&[1]).contains("switch"), "{}", why(&[1]));
    assert!(why(&[2]).contains("add `homing` with a switch"), "{}", why(&[2]));
    assert!(!why(&[2]).contains("accept-position"), "{}", why(&[2]));
    assert!(why(&[0, 1]).contains("home it on a switch, or"), "{}", why(&[0, 1]));
    let homed = stop_reason(&[1], StopReason::NotHomed, None, Cause::default(), &names);
    assert!(homed.contains("`onbeat control home drive-2`"), "{homed}");
}

/// A force and its end have the signal, the value, the client and the reason.
#[test]
fn a_forced_signal_has_its_sentence_and_its_fields() {
    let by = Client { user: 1000, process: 77 };
    let (time, signal) = (Duration::from_secs(600), Arc::from("lamp green"));
    let told = of(Happening::Force(ForceEvent::Forced { signal, value: Value::Bool(true), time, by }));
    let expected = "signal \"lamp green\" is forced to true for 600.0 s, by process 77 of user 1000";
    assert_eq!((told.severity, told.sentence.as_str()), (Warning, expected));
    let what = Reported::SignalForced {
        signal: "lamp green".into(),
        value: Value::Bool(true),
        for_ns: 600_000_000_000,
        user: 1000,
        process: 77,
    };
    assert_eq!(told.what, what);
    let released = |name: &str, reason, after| {
        let value = if name == "b" { Value::Real(0.5) } else { Value::Bool(false) };
        Happening::Force(ForceEvent::Released { signal: Arc::from(name), value, reason, after })
    };
    let told = of(released("lamp green", ReleaseReason::Request(by), 50));
    let expected = "signal \"lamp green\" (now false) is no longer forced after 50 cycles, 100 ms: \
        released by process 77 of user 1000";
    assert_eq!((told.severity, told.sentence.as_str()), (Good, expected));
    let over = |name, after| released(name, ReleaseReason::TimeOver, after);
    let one = over("a", 3);
    assert!(!is_alike(&one, &released("b", ReleaseReason::Stop, 3)));
    assert!(is_alike(&one, &over("b", 4)));
    let event = |what| CycleEvent { cycle: 7, at: Instant::EPOCH, cable: None, what };
    let one = event(one);
    let told = |others: &[CycleEvent]| sentence(&one, others, &names()).unwrap().1;
    assert_eq!(
        told(&[event(over("b", 4))]),
        "signals \"a\" (now false), \"b\" (now 0.5) are no longer forced: its time has expired"
    );
    let many: Vec<CycleEvent> = (0..3).map(|_| event(over("b", 4))).collect();
    assert_eq!(
        told(&many),
        "4 signals, the first \"a\" (now false), are no longer forced: its time has expired"
    );
}

// feature(running-bus): a refused request is an event with the interlock and its level
#[test]
fn a_refused_request_names_its_interlock() {
    let by = Some(Client { user: 1000, process: 77 });
    let interlock = Some(InterlockCause { interlock: 0, level: InputLevel::Low, permits: false });
    let request = |refused, interlock| ClientRequest { what: Action::Enable, by, refused, interlock };
    let told = of(Happening::Requested { request: request(None, None) });
    let expected = "enabling of the drives requested by process 77 of user 1000";
    assert_eq!((told.severity, told.sentence.as_str()), (Good, expected));
    let told = of(Happening::Requested { request: request(Some(Refusal::Interlock), interlock) });
    let expected = "enabling of the drives refused for process 77 of user 1000: interlock 0 is low";
    assert_eq!((told.severity, told.sentence.as_str()), (Warning, expected));
    let told = of(Happening::Requested { request: request(Some(Refusal::Busy), None) });
    assert!(told.sentence.ends_with(": the last request is still in progress; wait for its reply"));
}

/// The cable to a SubDevice is named by both of its ends, in words and in JSON; several lost
/// ones have one where they hang on each other.
// feature(running-bus): losses and returns name the cable to the SubDevice by both its ends, in words and in JSON
#[test]
fn losses_and_returns_name_the_cable_by_both_its_ends() {
    let end = |position: Option<u16>, port| CableEnd { position, port: Some(port) };
    let to_third = [end(Some(1), 1), end(Some(2), 0)];
    let told = |cable, what| {
        let event = CycleEvent { cycle: 7, at: Instant::EPOCH, cable: Some(cable), what };
        super::event(&event, &names()).expect("an event for others")
    };
    let cable = "the cable between SubDevice 1 \"drive-2\" port 1 and SubDevice 2 \"drive-3\" port 0";
    let gone = told(to_third, Happening::Bus(BusEvent::Unreachable { position: 2 }));
    let expected = format!("SubDevice 2 \"drive-3\" does not answer any more: check its power and {cable}");
    assert_eq!(gone.sentence, expected);
    let ends = serde_json::json!([{ "position": 1, "port": 1 }, { "position": 2, "port": 0 }]);
    assert_eq!(serde_json::to_value(&gone).unwrap()["between"], ends);
    let again_in = Some(Duration::from_millis(100));
    let error = ethercat::main_device::SubDeviceError::NoClock;
    for what in [
        Happening::SubDeviceLost { position: 2 },
        Happening::SubDeviceBack { position: 2, after: 5 },
        Happening::Bus(BusEvent::Joined { position: 2 }),
        Happening::Bus(BusEvent::Reconfiguring { position: 2 }),
        Happening::Bus(BusEvent::Recovered { position: 2, anew: false }),
        Happening::Bus(BusEvent::NotRecovered { position: 2, error, again_in }),
    ] {
        let told = told(to_third, what);
        assert!(told.sentence.contains(&format!(", behind {cable}")), "{}", told.sentence);
        assert!(told.between.is_some(), "{}", told.sentence);
    }
    let to_first = [end(None, 0), end(Some(0), 0)];
    let first = told(to_first, Happening::SubDeviceLost { position: 0 });
    let expected = "no process data of SubDevice 0 \"drive-1\", behind the cable between the network interface and SubDevice 0 \
                    \"drive-1\" port 0";
    assert_eq!(first.sentence, expected);

    // Several: for SubDevices behind each other the first cable, for others none.
    let lost = |position: u16, upstream: u16| CycleEvent {
        cycle: 7,
        at: Instant::EPOCH,
        cable: Some([end(Some(upstream), 1), end(Some(position), 0)]),
        what: Happening::SubDeviceLost { position: position.into() },
    };
    let all_of = |others: &[CycleEvent]| sentence(&lost(1, 0), others, &names()).unwrap().1;
    let cable =
        "behind the cable between SubDevice 0 \"drive-1\" port 1 and SubDevice 1 \"drive-2\" port 0";
    assert!(all_of(&[lost(2, 1)]).ends_with(cable), "{}", all_of(&[lost(2, 1)]));
    assert!(!all_of(&[lost(2, 0)]).contains("cable"), "{}", all_of(&[lost(2, 0)]));
}

/// An unexpected device is reported with the SubDevice that is expected at its position.
// feature(main-device): an unexpected SubDevice is reported with its place and the SubDevice expected there
#[test]
fn unexpected_device_is_reported_with_the_expected_one() {
    let told = |expected, known| {
        let identity = Identity { vendor_id: 1, product_code: 2, revision: 3, serial: 4 };
        of(Happening::Bus(BusEvent::Stranger { place: 1, identity, expected, known })).sentence
    };
    let start = "unexpected SubDevice at position 1 of the bus, where SubDevice 1 \"drive-2\" \
        is expected, left in Init: ";
    assert!(told(Some(1), None).starts_with(start), "{}", told(Some(1), None));
    let start = "unexpected SubDevice at position 1 of the bus, left in Init: ";
    assert!(told(None, None).starts_with(start), "{}", told(None, None));
    let start = "SubDevice 2 \"drive-3\" is at position 1 of the bus, where SubDevice 1 \
        \"drive-2\" is expected, and not at its own position: left in Init; put it back: ";
    assert!(told(Some(1), Some(2)).starts_with(start), "{}", told(Some(1), Some(2)));
}

/// If the missing SubDevice is connected by a known cable, the unexpected one is reported with
/// it.
// feature(main-device): an unexpected SubDevice is reported with its place and the SubDevice expected there
#[test]
fn unexpected_device_is_reported_with_its_cable() {
    let identity = Identity { vendor_id: 1, product_code: 2, revision: 3, serial: 4 };
    let what = Happening::Bus(BusEvent::Stranger { place: 1, identity, expected: Some(1), known: None });
    let end = |position, port| CableEnd { position: Some(position), port: Some(port) };
    let cable = Some([end(0, 1), end(1, 0)]);
    let told = event(&CycleEvent { cycle: 7, at: Instant::EPOCH, cable, what }, &names()).unwrap();
    let place = "where SubDevice 1 \"drive-2\" is expected, behind the cable between SubDevice \
        0 \"drive-1\" port 1 and SubDevice 1 \"drive-2\" port 0, left in Init: ";
    assert!(told.sentence.contains(place), "{}", told.sentence);
    assert_eq!(told.between, cable);
}

/// Events that differ in their axis alone are one sentence.
#[test]
fn events_that_are_alike_have_one_sentence() {
    let stopped =
        |axis, reason| Happening::AxisStopped { axis, reason, with: None, because: Cause::default() };
    let (first, second) = (stopped(0, StopReason::Outage), stopped(2, StopReason::Outage));
    assert!(is_alike(&first, &second) && !is_alike(&first, &stopped(2, StopReason::Fault)));
    let at = Instant::EPOCH;
    let [first, second] = [first, second].map(|what| CycleEvent { cycle: 7, at, cable: None, what });
    let (severity, told) = sentence(&first, &[second], &names()).unwrap();
    assert_eq!(severity, Error);
    assert!(told.starts_with("axes \"drive-1\", \"drive-3\" are held: "), "{told}");
}
