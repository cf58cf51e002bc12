use std::time::Duration;

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
    Signals { signals: vec![signal], states: vec![state], commanded, ..Signals::default() }
}

fn value(signals: &Signals) -> u64 {
    signals.states[0].shown()
}

fn governing(stale: bool, stopping: bool) -> Governing {
    let freshness = if stale { Freshness::Stale } else { Freshness::Fresh };
    Governing { freshness, stopping, now: Instant::EPOCH }
}

/// A cycle of a controller that lives on the command, and sets its output.
fn set(signals: &mut Signals, governing: Governing, value: u64) {
    signals.govern(governing);
    signals.set(0, Value::Unsigned(value));
    if governing.freshness == Freshness::Stale {
        signals.abandon();
    }
}

fn at(ms: u64) -> Instant {
    Instant::EPOCH + Duration::from_millis(ms)
}

fn hold(value: u64) -> Force {
    Force::Hold { signal: 0, value: Value::Unsigned(value), time: Duration::from_millis(10) }
}

// feature(signals): an output while the command is stale; values beyond the range and not finite are counted
#[test]
fn a_stale_command_holds_an_output_or_gives_it_its_value_until_it_is_fresh_again() {
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
fn an_output_of_the_outside_is_set_by_commands_and_goes_stale_whoever_the_controller_is() {
    let on_stale = Some(OnStale::Bits(12));
    let behaviour = OutputBehaviour { writer: Writer::Outside, on_stale, ..OutputBehaviour::default() };
    let mut signals = output(behaviour);
    signals.govern(governing(false, false));
    signals.command(&[None, Some(Value::Unsigned(1))]);
    assert_eq!(value(&signals), 100, "nothing is asked of it");
    signals.command(&[Some(Value::Unsigned(120))]);
    assert_eq!(value(&signals), 120);
    signals.set(0, Value::Unsigned(90));
    assert_eq!((value(&signals), signals.counters.refused), (120, 1), "no controller sets it");
    signals.govern(governing(true, false));
    signals.command(&[Some(Value::Unsigned(130))]);
    assert_eq!(value(&signals), 12, "its time is over before it is read");
    signals.govern(governing(false, false));
    assert_eq!(value(&signals), 12, "until it is commanded again");
    signals.command(&[Some(Value::Unsigned(140))]);
    assert_eq!(value(&signals), 140);
    signals.govern(governing(false, true));
    signals.command(&[Some(Value::Unsigned(150))]);
    assert_eq!(value(&signals), 0);
    // That of a controller with a mind of its own goes on.
    let mut signals = output(OutputBehaviour { on_stale, ..OutputBehaviour::default() });
    signals.govern(governing(true, false));
    signals.set(0, Value::Unsigned(120));
    signals.command(&[Some(Value::Unsigned(130))]);
    assert_eq!(value(&signals), 120, "nobody else sets it");
}

// feature(signals): forces: over the controller and of inputs, until a time is over, a release, or the stop
#[test]
fn a_force_wins_until_its_time_is_over_it_is_released_or_the_cycle_stops() {
    let behaviour = || OutputBehaviour { on_stale: Some(OnStale::Bits(7)), ..OutputBehaviour::default() };
    let run = |signals: &mut Signals, ms: u64, stale: bool, stopping: bool| {
        set(signals, Governing { now: at(ms), ..governing(stale, stopping) }, 120);
        (value(signals), signals.value(0).unwrap().forced)
    };
    let mut signals = output(behaviour());
    signals.force(hold(150), at(0));
    assert_eq!(run(&mut signals, 0, false, false), (150, true));
    assert_eq!(run(&mut signals, 9, true, false), (150, true), "over a stale command, too");
    assert_eq!(run(&mut signals, 10, true, false), (7, false));
    assert_eq!(run(&mut signals, 11, false, false), (120, false), "the controller has it again");
    for release in [Force::Release(0), Force::ReleaseAll] {
        signals.force(hold(150), at(20));
        signals.force(hold(160), at(20));
        assert_eq!(run(&mut signals, 21, false, false), (160, true));
        signals.force(release, at(22));
        assert_eq!(run(&mut signals, 22, false, false), (120, false));
    }
    signals.force(hold(150), at(30));
    assert_eq!(run(&mut signals, 30, false, true), (0, false), "on_stop decides over it");
    signals.force(hold(150), at(31));
    assert_eq!(run(&mut signals, 31, false, true), (0, false), "and over one that comes later");
}

// feature(signals): forces: over the controller and of inputs, until a time is over, a release, or the stop
#[test]
fn an_output_that_is_to_return_with_a_value_does_not_return_forced() {
    for (on_return, returned) in [(None, (150, true)), (Some(3), (3, false))] {
        let mut signals = output(OutputBehaviour { on_return, ..OutputBehaviour::default() });
        signals.force(hold(150), at(0));
        signals.states[0].missed = BLIND_CYCLES + 1;
        signals.govern(governing(false, false));
        signals.states[0].missed = 0;
        signals.govern(governing(false, false));
        assert_eq!((value(&signals), signals.value(0).unwrap().forced), returned);
    }
}

// feature(signals): forces: over the controller and of inputs, until a time is over, a release, or the stop
#[test]
fn what_nobody_may_force_is_not_forced_whatever_is_asked() {
    let mut signals = output(OutputBehaviour::default());
    signals.force(Force::Hold { signal: 0, value: Value::Real(f64::NAN), time: Duration::MAX }, at(0));
    signals.force(Force::Hold { signal: 1, value: Value::Unsigned(1), time: Duration::MAX }, at(0));
    signals.force(Force::Release(usize::MAX), at(0));
    signals.signals[0].flow = Flow::Taken("axis \"x\"".to_owned());
    signals.force(hold(150), at(0));
    assert_eq!((value(&signals), signals.value(0).unwrap().forced), (100, false));
}

// feature(signals): no signal is on what moves an axis, also not on an offset that the axis leaves at zero; what bounds it stays as the file says
#[test]
fn what_bounds_an_axis_stays_whatever_is_asked_and_also_while_the_cycle_stops() {
    let mut signals = output(OutputBehaviour::default());
    signals.signals[0].flow = Flow::Fixed(100);
    signals.force(hold(150), at(0));
    signals.govern(governing(true, true));
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
