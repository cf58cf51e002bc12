//! Process data by name, down to simulated terminals and a drive, in virtual time.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod rig;
#[path = "../support/mod.rs"]
mod support;

use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use ethercat::cia402::Request;
use ipc::state::{self, Refusal};
use onbeat_control::controller::{Controller, CycleInfo, Freshness};
use onbeat_control::cycle::{CycleConfiguration, FrameOrder};
use onbeat_control::signal::{Input, Io, Output, SignalError, Signals};
use onbeat_control::stop::StopHandle;
use rig::{ANALOGUE, Act, Handles, LAMPS, configured, cycle, lamp, play, play_outside, signal, signals};
use simulator::application::servo::default_mapping;
use support::{PERIOD, supervised};
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
fn an_output_begins_with_its_initial_value_and_stops_with_another() {
    let on = OutputBehaviour { initial: 1, ..OutputBehaviour::default() };
    let played = play(signals(on), 30, |_| ());
    assert_eq!(played.levels, [0, 1, 0]);
    // The stop value stands before Init clears it, whatever the controller sets meanwhile.
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
fn an_output_of_the_outside_is_commanded_goes_stale_and_is_commanded_again() {
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
fn an_output_of_the_outside_that_returns_waits_for_the_next_command() {
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
    assert_eq!(told, [1, 0, 1].map(|word| (word, state::Freshness::Fresh)));
}

// feature(signals): values from outside that cannot be are refused with the signal and the reason
#[test]
fn a_command_that_a_signal_cannot_take_is_refused_with_the_signal_and_its_reason() {
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
        assert_eq!((command.last_refused_axis, command.freshness), (u16::MAX, state::Freshness::Never));
    }
    assert_eq!(played.levels, [0], "nothing moves");
}

// feature(signals): forces: over the controller and of inputs, until a time is over, a release, or the stop
#[test]
fn a_force_wins_over_the_controller_until_its_time_is_over_or_it_is_released_and_the_stop_over_it() {
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

// feature(signals): forces: over the controller and of inputs, until a time is over, a release, or the stop
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

/// Two lamps and two levels by one name each.
fn arrays() -> Vec<Signal> {
    let output = || Flow::Output(OutputBehaviour::default());
    let level = |name, bit| signal(name, ANALOGUE, bit, ValueType::Signed(16), Flow::Input);
    vec![
        signal("lamps[0]", LAMPS, 0, ValueType::Bool, output()),
        signal("lamps[1]", LAMPS, 1, ValueType::Bool, output()),
        level("levels.first", 16),
        level("levels.second", 48),
    ]
}

struct Arrays {
    lamps: Option<[Output<bool>; 2]>,
    levels: Option<[Input<i16>; 2]>,
    seen: Sender<[i16; 2]>,
}

impl Controller for Arrays {
    fn init(&mut self, signals: &Signals) -> Result<(), SignalError> {
        (self.lamps, self.levels) = (Some(signals.outputs("lamps")?), Some(signals.inputs("levels")?));
        Ok(())
    }

    fn update(&mut self, _: CycleInfo, io: &mut Io<'_>) {
        io.set_all(self.lamps.unwrap(), [false, true]);
        self.seen.send(io.get_all(self.levels.unwrap())).unwrap();
    }
}

// feature(signals): arrays and byte strings: signals of several elements, read and set as one
#[test]
fn an_array_is_read_and_set_as_one() {
    let (seen, told) = channel();
    let (cycle, levels) =
        cycle(arrays(), &[], 60, |_, _| Box::new(Arrays { lamps: None, levels: None, seen }));
    assert_eq!(cycle.unwrap().run(&StopHandle::new()).failure, None);
    assert_eq!(told.try_iter().last(), Some([100, -2000]));
    assert_eq!(*levels.lock().unwrap(), [0, 2, 0]);
}

// feature(signals): outputs with the number of the cycle, for observers outside
#[test]
fn an_output_counts_the_cycles() {
    for order in [FrameOrder::ReplyOfLastCycle, FrameOrder::WaitForReply] {
        let number = signal("number", LAMPS, 0, ValueType::Unsigned(8), Flow::Cycle);
        let read_only: Ask = |it| {
            let refused = it.output::<u8>("number").unwrap_err().to_string();
            assert_eq!(refused, "output \"number\" is written by the cycle: it can be read only");
            Ok(())
        };
        let cycles = 60;
        let configuration =
            CycleConfiguration { order, cycles: Some(cycles), ..CycleConfiguration::every(PERIOD) };
        let (cycle, levels) =
            configured(configuration, vec![number], &[], |_, _| Box::new(Asking(read_only)));
        let ended = cycle.unwrap().run(&StopHandle::new());
        assert_eq!(ended.failure, None);
        // The four lamps are its lowest bits; they are low before Op, and after it.
        let levels = levels.lock().unwrap();
        let counted = &levels[1..levels.len() - 1];
        assert!(counted.len() as u64 >= cycles, "{order:?}: {levels:?}");
        assert!(counted.windows(2).all(|pair| pair[1] == (pair[0] + 1) % 16), "{order:?}: {levels:?}");
        let (_, last) = &ended.signals[0];
        assert!(matches!(last.value, Value::Unsigned(60..=255)) && last.fresh, "{last:?}");
    }
}

type Ask = fn(&Signals) -> Result<(), SignalError>;

/// Asks for signals as it is told.
struct Asking(Ask);

impl Controller for Asking {
    fn init(&mut self, signals: &Signals) -> Result<(), SignalError> {
        (self.0)(signals)
    }
}

// feature(signals): outputs with `writer = "outside"`, one writer each
// feature(signals): a wrong name or type at the start, with the near ones
#[test]
fn a_wrong_name_or_type_ends_the_start_with_the_near_ones() {
    let asked: [(Ask, &str); 7] = [
        (
            |it| it.input::<bool>("door_close").map(drop),
            "no input is called \"door_close\"; near it: \"door closed\", \"pressure\", \"level\"",
        ),
        (
            |it| it.output::<bool>("lamp").map(drop),
            "no output is called \"lamp\"; near it: \"lamp 1\", \"lamp 2\", \"lamp 3\"",
        ),
        (
            |it| it.output::<bool>("door closed").map(drop),
            "signal \"door closed\" is an input, expected an output",
        ),
        (
            |it| it.input::<u16>("level").map(drop),
            "signal \"level\" is int16, which u16 does not take; read and write it as i16 or f64",
        ),
        (
            |it| it.input::<i16>("pressure").map(drop),
            "signal \"pressure\" is int16 with a scale, which i16 does not take; read and write it as f64",
        ),
        (
            |it| it.output::<i32>("speed").map(drop),
            "output \"speed\" is written by axis \"x\": it can be read only",
        ),
        (
            |it| it.output::<bool>("lamp 3").map(drop),
            "output \"lamp 3\" is commanded from outside: leave it to that, or remove writer = \"outside\"",
        ),
    ];
    for (ask, sentence) in asked {
        let (cycle, _) = cycle(with_outside(), &[], 1, |_, _| Box::new(Asking(ask)));
        let error = cycle.map(drop).unwrap_err().to_string();
        assert!(error.starts_with("the controller cannot start: ") && error.contains(sentence), "{error}");
    }
    let asked: [(Ask, &str); 4] = [
        (|it| it.inputs::<i16, 3>("levels").map(drop), "signal \"levels\" has 2 elements, expected 3"),
        (
            |it| it.inputs::<i16, 2>("level").map(drop),
            "no input is called \"level\"; near it: \"levels.first\"",
        ),
        (
            |it| it.inputs::<i16, 1>("levels.first").map(drop),
            "signal \"levels.first\" has no elements, expected 1",
        ),
        (
            |it| it.inputs::<u16, 2>("levels").map(drop),
            "signal \"levels.first\" is int16, which u16 does not take",
        ),
    ];
    for (ask, sentence) in asked {
        let (cycle, _) = cycle(arrays(), &[], 1, |_, _| Box::new(Asking(ask)));
        let error = cycle.map(drop).unwrap_err().to_string();
        assert!(error.contains(sentence), "{error}");
    }
    let outside = vec![signal("far", LAMPS, 8, ValueType::Bool, Flow::Output(OutputBehaviour::default()))];
    let (cycle, _) = cycle(outside, &[], 1, |_, _| Box::new(Asking(|_| Ok(()))));
    let error = cycle.map(drop).unwrap_err().to_string();
    assert_eq!(
        error,
        "signal \"far\" ends at bit 9 of SubDevice 3, expected at most 8 bits: correct its place"
    );
}

/// Enables the axis and watches its controlword.
struct Mover {
    word: Option<Input<u16>>,
    seen: Sender<bool>,
}

impl Controller for Mover {
    fn init(&mut self, signals: &Signals) -> Result<(), SignalError> {
        self.word = Some(signals.input("statusword")?);
        Ok(())
    }

    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        let report = *io.axis(0).unwrap();
        let command = io.command(0).unwrap();
        command.request = if info.stopping { Request::Disable } else { Request::Enable };
        command.setpoint.position = report.feedback.position;
        let word = io.get(self.word.unwrap());
        self.seen.send(io.is_fresh(self.word.unwrap()) && word == report.statusword.0).unwrap();
    }
}

// feature(signals): inputs and outputs by name in a controller, with axes or without
#[test]
fn a_controller_of_signals_moves_axes_too() {
    let mapping = default_mapping();
    let at = mapping.input(0x6041, 0).unwrap().bit_offset;
    let to = mapping.output(0x6040, 0).unwrap().bit_offset;
    let word = |name, at, flow| signal(name, 0, at, ValueType::Unsigned(16), flow);
    let taken = Flow::Taken("axis \"axis-0\"".to_owned());
    let signals = vec![word("statusword", at, Flow::Input), word("controlword", to, taken)];
    let (seen, told) = channel();
    let (cycle, _) = cycle(signals, &supervised(1), 400, |_, _| Box::new(Mover { word: None, seen }));
    let ended = cycle.unwrap().run(&StopHandle::new());
    assert_eq!(ended.before_stop.axes[0].state, Some(ethercat::cia402::State::OperationEnabled));
    // Enable operation, as the axis wrote it.
    assert_eq!(ended.signals[1].1.value, Value::Unsigned(0x0F));
    let seen: Vec<bool> = told.try_iter().collect();
    assert!(seen.iter().filter(|&&same| same).count() > 300, "{seen:?}");
}
