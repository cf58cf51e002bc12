//! Process data by name, down to simulated terminals and a drive, in virtual time.
mod axes;
mod names;
mod rig;

use std::sync::mpsc::channel;
use std::time::Duration;

use ipc::state::Refusal;
use onbeat_control::controller::Freshness;
use rig::{Act, Handles, LAMPS, lamp, play, play_outside, signal, signals};
use types::signal::{Flow, OnStale, OutputBehaviour, Writer as Setter};
use types::{Signal, Value, ValueType};

// feature(signals): inputs and outputs by name in a controller, with axes or without
#[test]
fn an_input_by_name_sets_an_output_by_name() {
    let (tell, told) = channel();
    let played = play(signals(OutputBehaviour::default()), 60, move |stage| {
        let Handles { door, pressure, level, lamps } = stage.handles;
        stage.switches.set(2, stage.in_op >= 20);
        stage.io.set(lamps[1], stage.io.get(door));
        if stage.in_op == 10 || stage.in_op == 30 {
            let seen =
                (stage.io.get(door), stage.io.is_fresh(door), stage.io.get(pressure), stage.io.get(level));
            tell.send(seen).unwrap();
        }
    });
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [(false, true, -19.0, 100), (true, true, -19.0, 100)]);
    // Dark, the second one on, and dark again with the stop.
    assert_eq!(played.levels, [0, 2, 0]);
    let values: Vec<Value> = played.ended.signals.iter().map(|it| it.1.value).collect();
    assert_eq!(values[..3], [Value::Bool(true), Value::Real(-19.0), Value::Signed(100)]);
    assert_eq!(values[5], Value::Bool(true));
    assert!(played.ended.signals.iter().all(|it| it.1.fresh), "{:?}", played.ended.signals);
}

// feature(signals): initial, stop and return values; fresh or not
#[test]
fn output_starts_and_stops_with_its_values() {
    let on = OutputBehaviour { initial: 1, ..OutputBehaviour::default() };
    let played = play(signals(on), 30, |_| ());
    assert_eq!(played.levels, [0, 1, 0]);
    // The stop value is set before Init clears it, whatever the controller sets meanwhile.
    let stop = OutputBehaviour { on_stop: 1, ..OutputBehaviour::default() };
    let played = play(signals(stop), 30, |stage| {
        stage.io.set(stage.handles.lamps[0], false);
        stage.io.set(stage.handles.lamps[1], !stage.info.stopping || stage.in_op > 0);
    });
    assert_eq!(played.levels, [0, 2, 1, 0]);
}

// feature(signals): initial, stop and return values; fresh or not
#[test]
fn what_bounds_an_axis_has_its_value_from_the_start() {
    let mut all = signals(OutputBehaviour::default());
    all.push(Signal {
        name: "bound".to_owned(),
        flow: Flow::Fixed(1),
        ..lamp(3, OutputBehaviour::default())
    });
    assert_eq!(play(all, 30, |_| ()).levels, [0, 4, 0]);
}

// feature(signals): initial, stop and return values; fresh or not
#[test]
fn an_input_that_does_not_come_keeps_its_value_and_is_not_fresh() {
    let (tell, told) = channel();
    play(signals(OutputBehaviour::default()), 60, move |stage| {
        stage.switches.set(2, stage.in_op < 30);
        match stage.in_op {
            20 => stage.act.send(Act::Cut).unwrap(),
            40 => stage.act.send(Act::Mend).unwrap(),
            _ => {}
        }
        // The switches are before the cut, the lamps behind it.
        let io = &stage.io;
        tell.send((stage.in_op, io.is_fresh(stage.handles.door), io.is_taken(stage.handles.lamps[0])))
            .unwrap();
    });
    let told: Vec<_> = told.try_iter().filter(|it| it.0 > 0).collect();
    assert!(told.iter().any(|it| it.0 > 22 && it.0 < 40 && it.1 && !it.2), "{told:?}");
    assert!(told.iter().filter(|it| it.0 > 24 && it.0 < 40).all(|it| !it.2), "{told:?}");
}

// feature(signals): initial, stop and return values; fresh or not
#[test]
fn an_output_returns_with_the_value_it_is_to_return_with() {
    for (on_return, first_levels) in [(None, 1), (Some(0), 0)] {
        let (tell, told) = channel();
        let lost = OutputBehaviour { on_return, ..OutputBehaviour::default() };
        play(signals(lost), 120, move |stage| {
            match stage.in_op {
                20 => stage.act.send(Act::Cut).unwrap(),
                60 => stage.act.send(Act::Mend).unwrap(),
                _ => {}
            }
            if stage.in_op < 30 {
                stage.io.set(stage.handles.lamps[0], true);
            }
            if (50..60).contains(&stage.in_op) {
                stage.io.set(stage.handles.lamps[0], true);
            }
            tell.send((stage.in_op, u64::from(stage.io.sent(stage.handles.lamps[0])))).unwrap();
        });
        let told: Vec<_> = told.try_iter().collect();
        let at = |cycle: u64| told.iter().find(|it| it.0 == cycle).unwrap().1;
        assert_eq!((at(19), at(58), at(100)), (1, first_levels, first_levels), "{on_return:?}");
    }
}

/// The signals, and a third lamp that is commanded from outside.
fn with_outside() -> Vec<Signal> {
    let behaviour = OutputBehaviour {
        writer: Setter::Outside,
        on_stale: Some(OnStale::Bits(0)),
        ..OutputBehaviour::default()
    };
    [signals(OutputBehaviour::default()), vec![lamp(3, behaviour)]].concat()
}

// feature(signals): outputs with `writer = "outside"`, one writer each
#[test]
fn commanded_output_goes_stale_and_recovers() {
    let (tell, told) = channel();
    let on = [Some(Value::Bool(true))];
    let mut sent = 0;
    let played = play_outside("commanded", with_outside(), 400, move |stage, outside| {
        let (cycle, freshness) = (stage.info, stage.io.freshness());
        tell.send(freshness).unwrap();
        match (sent, freshness) {
            (0, _) if stage.in_op == 10 => outside.send(cycle, &on, Duration::from_millis(20)),
            // Its time over, the next holder takes over.
            (1, Freshness::Stale) => {
                outside.writer = None;
                outside.send(cycle, &on, Duration::from_secs(60));
            }
            // Nothing is asked of it: it stays as it is.
            (2, _) if stage.in_op == 300 => outside.send(cycle, &[None], Duration::from_secs(60)),
            _ => return,
        }
        sent += 1;
    });
    assert_eq!(played.levels, [0, 4, 0, 4, 0]);
    let mut told: Vec<Freshness> = told.try_iter().collect();
    told.dedup();
    assert_eq!(told, [Freshness::Never, Freshness::Fresh, Freshness::Stale, Freshness::Fresh]);
    assert_eq!(played.ended.signals[6].1.value, Value::Bool(true));
}

// feature(signals): outputs with `writer = "outside"`, one writer each
#[test]
fn returned_output_waits_for_the_next_command() {
    let (tell, told) = channel();
    let on = [Some(Value::Bool(true))];
    let mut signals = with_outside();
    signals[6] = lamp(
        3,
        OutputBehaviour { writer: Setter::Outside, on_return: Some(0), ..OutputBehaviour::default() },
    );
    play_outside("returned", signals, 200, move |stage, outside| {
        match stage.in_op {
            10 | 150 => outside.send(stage.info, &on, Duration::from_secs(60)),
            30 => stage.act.send(Act::Cut).unwrap(),
            80 => stage.act.send(Act::Mend).unwrap(),
            _ => {}
        }
        if [25, 140, 160].contains(&stage.in_op) {
            tell.send((outside.state.signals[6].word, outside.state.command.freshness)).unwrap();
        }
    });
    let told: Vec<_> = told.try_iter().collect();
    assert_eq!(told, [1, 0, 1].map(|word| (word, Freshness::Fresh)));
}

// feature(signals): values from outside that cannot be are refused with the signal and the reason
#[test]
fn impossible_signal_command_is_refused_with_a_reason() {
    let valve = OutputBehaviour { writer: Setter::Outside, ..OutputBehaviour::default() };
    let word = signal("valve", LAMPS, 4, ValueType::Unsigned(3), Flow::Output(valve));
    let signals = [with_outside(), vec![Signal { range: Some((1.0, 5.0)), ..word }]].concat();
    let bad = [
        ([None, Some(Value::Real(f64::NAN))], Refusal::NotFinite, 7),
        ([Some(Value::Unsigned(1)), Some(Value::Unsigned(2))], Refusal::SignalType, 6),
        ([None, Some(Value::Signed(6))], Refusal::SignalRange, 7),
        ([None, Some(Value::Signed(0))], Refusal::SignalRange, 7),
    ];
    let (tell, told) = channel();
    let played = play_outside("refused-signal", signals, 100, move |stage, outside| {
        let turn = stage.in_op as usize / 10;
        match (stage.in_op % 10, bad.get(turn)) {
            (1, Some((values, ..))) => outside.send(stage.info, values, Duration::from_secs(60)),
            (9, Some((_, why, place))) => {
                tell.send((outside.state.command, turn as u64, *why, *place)).unwrap()
            }
            _ => {}
        }
    });
    let told: Vec<_> = told.try_iter().collect();
    assert_eq!(told.len(), bad.len());
    for (command, turn, why, place) in told {
        assert_eq!((command.refused, command.accepted), (turn + 1, 0));
        assert_eq!((command.last_refusal, command.last_refused_signal), (why as u8, place), "{command:?}");
        assert_eq!((command.last_refused_axis, command.freshness), (u16::MAX, Freshness::Never));
    }
    assert_eq!(played.levels, [0], "nothing moves");
}

// feature(signals): forces: over the controller and of inputs, until a time has passed, a release, or the stop
#[test]
fn force_overrides_the_controller_and_the_stop_the_force() {
    let (tell, told) = channel();
    let second = 5;
    let mut signals = with_outside();
    signals[4] = lamp(1, OutputBehaviour { on_stop: 1, ..OutputBehaviour::default() });
    let played = play_outside("forced", signals, 300, move |stage, outside| {
        let force = |time| outside.client.force(second, Value::Bool(true), time).unwrap();
        match stage.in_op {
            // From the next cycle on.
            10 => force(Duration::from_millis(30)),
            100 => force(Duration::from_secs(3600)),
            150 => outside.client.release(Some(second)).unwrap(),
            200 => force(Duration::from_secs(3600)),
            _ => {}
        }
        let lamp = stage.handles.lamps[1];
        stage.io.set(lamp, false);
        assert_eq!(stage.io.sent(lamp), stage.io.is_forced(lamp));
        let shown = outside.state.signals[second];
        assert_eq!(shown.word == 1, shown.forced);
        tell.send((stage.in_op, stage.io.is_forced(lamp))).unwrap();
    });
    // The stop lights the first lamp, and takes the force off the second one.
    assert_eq!(played.levels, [0, 2, 0, 2, 0, 2, 1, 0]);
    let told: Vec<_> = told.try_iter().collect();
    let forced = |from: u64, to: u64| told.iter().filter(|it| it.1 && (from..to).contains(&it.0)).count();
    assert!((29..=31).contains(&forced(0, 100)), "{}", forced(0, 100));
    assert_eq!((forced(101, 151), forced(151, 201)), (50, 0));
    let last = played.ended.signals[second].1;
    assert!(last.forced && last.value == Value::Bool(true), "{last:?}");
}

// feature(signals): forces: over the controller and of inputs, until a time has passed, a release, or the stop
#[test]
fn a_forced_input_is_what_the_controller_sees_and_shows() {
    let (tell, told) = channel();
    let played = play_outside("forced-input", with_outside(), 80, move |stage, outside| {
        let Handles { door, pressure, lamps, .. } = stage.handles;
        match stage.in_op {
            10 => outside.client.force(0, Value::Bool(true), Duration::from_secs(60)).unwrap(),
            20 => outside.client.force(1, Value::Real(7.25), Duration::from_secs(60)).unwrap(),
            30 => assert!(outside.client.force(3, Value::Signed(1), Duration::from_secs(1)).is_err()),
            40 => outside.client.release(None).unwrap(),
            _ => {}
        }
        stage.io.set(lamps[0], stage.io.get(door));
        if [5, 35, 45].contains(&stage.in_op) {
            let io = &stage.io;
            let forced = [io.is_forced(door), io.is_forced(pressure)];
            tell.send((io.get(door), io.get(pressure), io.is_fresh(door), forced)).unwrap();
        }
    });
    let told: Vec<_> = told.try_iter().collect();
    let free = (false, -19.0, true, [false; 2]);
    assert_eq!(told, [free, (true, 7.25, true, [true; 2]), free]);
    assert_eq!(played.levels, [0, 1, 0]);
}
