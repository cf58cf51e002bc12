use std::time::Duration;

use ipc::force::{Client, Force};
use types::ValueType;

use super::*;

/// One output of eight bits, at 100.
fn output(behaviour: OutputBehaviour) -> Signals {
    let signal = Signal {
        name: "valve".to_owned(),
        sub_device: 0,
        bit_offset: 0,
        value_type: ValueType::Unsigned(8),
        unit: String::new(),
        scaling: None,
        range: Some((10.0, 200.0)),
        flow: Flow::Output(behaviour),
    };
    let field = PdoField { bit_offset: 0, bit_length: 8 };
    let state = State {
        field,
        raw: 100,
        before: 100,
        forced: None,
        written: 100,
        fresh: true,
        seen: true,
        missed: 0,
        closed: false,
    };
    let commanded = if signal.is_commanded() { vec![0] } else { vec![] };
    let names = vec![Arc::from("valve")];
    Signals { signals: vec![signal], names, states: vec![state], commanded, ..Signals::default() }
}

fn value(signals: &Signals) -> u64 {
    signals.states[0].shown()
}

fn governing(stale: bool, stopping: bool) -> Governing {
    let freshness = if stale { Freshness::Stale } else { Freshness::Fresh };
    Governing { cycle: 0, freshness, stopping, now: Instant::EPOCH }
}

/// A cycle of a controller that lives on the command, and sets its output.
fn set(signals: &mut Signals, governing: Governing, value: u64) {
    signals.govern(&governing, &mut |_| ());
    signals.set(0, Value::Unsigned(value));
    if governing.freshness == Freshness::Stale {
        signals.abandon();
    }
}

fn at(ms: u64) -> Instant {
    Instant::EPOCH + Duration::from_millis(ms)
}

const BY: Client = Client { user: 1000, process: 7 };

fn force(signals: &mut Signals, force: Force, now: Instant) {
    let governing = Governing { now, ..governing(false, false) };
    signals.force(force, BY, &governing, &mut |_| ());
}

fn hold(value: u64) -> Force {
    Force::Hold { signal: 0, value: Value::Unsigned(value), time: Duration::from_millis(10) }
}

// feature(signals): an output while the command is stale; values beyond the range and not finite are counted
#[test]
fn stale_command_holds_an_output_or_sets_its_value() {
    for (on_stale, stale) in [(None, 120), (Some(OnStale::Hold), 100), (Some(OnStale::Bits(7)), 7)] {
        let mut signals = output(OutputBehaviour { on_stale, ..OutputBehaviour::default() });
        set(&mut signals, governing(true, false), 120);
        assert_eq!(value(&signals), stale, "{on_stale:?}");
        set(&mut signals, governing(false, false), 130);
        assert_eq!(value(&signals), 130, "{on_stale:?}");
        // The end decides over it.
        set(&mut signals, governing(true, true), 120);
        assert_eq!(value(&signals), 0, "{on_stale:?}");
    }
}

// feature(signals): outputs with `writer = "outside"`, one writer each
#[test]
fn commanded_output_goes_stale_with_every_controller() {
    let on_stale = Some(OnStale::Bits(12));
    let behaviour = OutputBehaviour { writer: Writer::Outside, on_stale, ..OutputBehaviour::default() };
    let mut signals = output(behaviour);
    signals.govern(&governing(false, false), &mut |_| ());
    signals.command(&[None, Some(Value::Unsigned(1))]);
    assert_eq!(value(&signals), 100, "nothing is asked of it");
    signals.command(&[Some(Value::Unsigned(120))]);
    assert_eq!(value(&signals), 120);
    signals.set(0, Value::Unsigned(90));
    assert_eq!((value(&signals), signals.counters.refused), (120, 1), "no controller sets it");
    signals.govern(&governing(true, false), &mut |_| ());
    signals.command(&[Some(Value::Unsigned(130))]);
    assert_eq!(value(&signals), 12, "its time is over before it is read");
    signals.govern(&governing(false, false), &mut |_| ());
    assert_eq!(value(&signals), 12, "until it is commanded again");
    signals.command(&[Some(Value::Unsigned(140))]);
    assert_eq!(value(&signals), 140);
    signals.govern(&governing(false, true), &mut |_| ());
    signals.command(&[Some(Value::Unsigned(150))]);
    assert_eq!(value(&signals), 0);
    // An output of a controller that does not depend on the command keeps its value.
    let mut signals = output(OutputBehaviour { on_stale, ..OutputBehaviour::default() });
    signals.govern(&governing(true, false), &mut |_| ());
    signals.set(0, Value::Unsigned(120));
    signals.command(&[Some(Value::Unsigned(130))]);
    assert_eq!(value(&signals), 120, "nobody else sets it");
}

// feature(signals): forces: over the controller and of inputs, until a time has passed, a release, or the stop
#[test]
fn force_lasts_until_expiry_release_or_stop() {
    let behaviour = || OutputBehaviour { on_stale: Some(OnStale::Bits(7)), ..OutputBehaviour::default() };
    let run = |signals: &mut Signals, ms: u64, stale: bool, stopping: bool| {
        set(signals, Governing { now: at(ms), ..governing(stale, stopping) }, 120);
        (value(signals), signals.value(0).unwrap().forced)
    };
    let mut signals = output(behaviour());
    force(&mut signals, hold(150), at(0));
    assert_eq!(run(&mut signals, 0, false, false), (150, true));
    assert_eq!(run(&mut signals, 9, true, false), (150, true), "over a stale command, too");
    assert_eq!(run(&mut signals, 10, true, false), (7, false));
    assert_eq!(run(&mut signals, 11, false, false), (120, false), "the controller has it again");
    for release in [Force::Release(0), Force::ReleaseAll] {
        force(&mut signals, hold(150), at(20));
        force(&mut signals, hold(160), at(20));
        assert_eq!(run(&mut signals, 21, false, false), (160, true));
        force(&mut signals, release, at(22));
        assert_eq!(run(&mut signals, 22, false, false), (120, false));
    }
    force(&mut signals, hold(150), at(30));
    assert_eq!(run(&mut signals, 30, false, true), (0, false), "on_stop decides over it");
    force(&mut signals, hold(150), at(31));
    assert_eq!(run(&mut signals, 31, false, true), (0, false), "and over one that comes later");
}

// feature(signals): forces: over the controller and of inputs, until a time has passed, a release, or the stop
#[test]
fn output_with_a_return_value_does_not_return_forced() {
    for (on_return, returned) in [(None, (150, true)), (Some(3), (3, false))] {
        let mut signals = output(OutputBehaviour { on_return, ..OutputBehaviour::default() });
        force(&mut signals, hold(150), at(0));
        signals.states[0].missed = BLIND_CYCLES + 1;
        signals.govern(&governing(false, false), &mut |_| ());
        signals.states[0].missed = 0;
        signals.govern(&governing(false, false), &mut |_| ());
        assert_eq!((value(&signals), signals.value(0).unwrap().forced), returned);
    }
}

/// Events of forces in a cycle of this number, 1 ms each.
fn events(
    signals: &mut Signals,
    cycle: u64,
    asked: Option<(Force, Client)>,
    stopping: bool,
) -> Vec<ForceEvent> {
    let mut told = Vec::new();
    let governing = Governing { cycle, now: at(cycle), ..governing(false, stopping) };
    if let Some((force, by)) = asked {
        signals.force(force, by, &governing, &mut |what| told.push(what));
    }
    signals.govern(&governing, &mut |what| told.push(what));
    told
}

// feature(signals): forces and their ends are events, with process and user, time, and reason of the end
#[test]
fn force_is_reported_once_and_its_end_with_a_reason() {
    let mut signals = output(OutputBehaviour { on_return: Some(3), ..OutputBehaviour::default() });
    let other = Client { process: 8, ..BY };
    let forced = |told: Vec<ForceEvent>| match &told[..] {
        [ForceEvent::Forced { signal, value, time, by }] => {
            assert_eq!((&**signal, *time), ("valve", Duration::from_millis(10)));
            (*value, *by)
        }
        _ => panic!("{told:?}"),
    };
    let released = |told: Vec<ForceEvent>| match &told[..] {
        [ForceEvent::Released { signal, value, reason, after }] => {
            assert_eq!(&**signal, "valve");
            (*value, *reason, *after)
        }
        _ => panic!("{told:?}"),
    };
    assert_eq!(forced(events(&mut signals, 1, Some((hold(150), BY)), false)), (Value::Unsigned(150), BY));
    // The same again lasts longer, and is no news; another value is, and another client.
    assert!(events(&mut signals, 5, Some((hold(150), BY)), false).is_empty());
    assert!(events(&mut signals, 14, None, false).is_empty());
    assert_eq!(forced(events(&mut signals, 14, Some((hold(160), BY)), false)).0, Value::Unsigned(160));
    assert_eq!(forced(events(&mut signals, 15, Some((hold(160), other)), false)).1, other);
    signals.set(0, Value::Unsigned(120));
    let now = Value::Unsigned;
    assert_eq!(released(events(&mut signals, 25, None, false)), (now(120), ReleaseReason::TimeOver, 24));
    assert!(events(&mut signals, 26, Some((Force::ReleaseAll, BY)), false).is_empty(), "nothing is forced");
    for release in [Force::Release(0), Force::ReleaseAll] {
        events(&mut signals, 30, Some((hold(150), BY)), false);
        let reason = ReleaseReason::Request(other);
        assert_eq!(
            released(events(&mut signals, 32, Some((release, other)), false)),
            (now(120), reason, 2)
        );
    }
    events(&mut signals, 40, Some((hold(150), BY)), false);
    signals.states[0].missed = BLIND_CYCLES + 1;
    assert_eq!(released(events(&mut signals, 41, None, false)), (now(3), ReleaseReason::Return, 1));
    signals.states[0].missed = 0;
    events(&mut signals, 50, Some((hold(150), BY)), false);
    assert_eq!(released(events(&mut signals, 53, None, true)), (now(0), ReleaseReason::Stop, 3));
}

// feature(signals): forces: over the controller and of inputs, until a time has passed, a release, or the stop
#[test]
fn forbidden_signals_are_never_forced() {
    let mut signals = output(OutputBehaviour::default());
    force(
        &mut signals,
        Force::Hold { signal: 0, value: Value::Real(f64::NAN), time: Duration::MAX },
        at(0),
    );
    force(&mut signals, Force::Hold { signal: 1, value: Value::Unsigned(1), time: Duration::MAX }, at(0));
    force(&mut signals, Force::Release(usize::MAX), at(0));
    signals.signals[0].flow = Flow::Taken("axis \"x\"".to_owned());
    force(&mut signals, hold(150), at(0));
    assert_eq!((value(&signals), signals.value(0).unwrap().forced), (100, false));
}

// feature(signals): no signal is on what moves an axis, also not on an offset that the axis leaves at zero; what bounds it stays as the file says
#[test]
fn fixed_output_of_an_axis_is_never_forced() {
    let mut signals = output(OutputBehaviour::default());
    signals.signals[0].flow = Flow::Fixed(100);
    force(&mut signals, hold(150), at(0));
    signals.govern(&governing(true, true), &mut |_| ());
    assert_eq!((value(&signals), signals.value(0).unwrap().forced), (100, false));
    assert!(matches!(signals.output::<u8>("valve"), Err(SignalError::Taken { .. })));
}

// feature(signals): an output while the command is stale; values beyond the range and not finite are counted
#[test]
fn what_cannot_be_is_clamped_or_refused_and_counted() {
    let mut signals = output(OutputBehaviour::default());
    signals.set(0, Value::Real(300.0));
    assert_eq!((value(&signals), signals.counters.clamped), (200, 1));
    signals.set(0, Value::Real(f64::NAN));
    signals.set(0, Value::Bool(true));
    signals.set(1, Value::Unsigned(1));
    assert_eq!((value(&signals), signals.counters), (200, Counters { clamped: 1, refused: 2 }));
}
