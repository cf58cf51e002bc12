//! Names to handles: single signals, arrays, the number of the cycle, and names that are wrong.

use std::sync::mpsc::{Sender, channel};

use onbeat_control::controller::{Controller, CycleInfo, Io};
use onbeat_control::cycle::{CycleConfiguration, FrameOrder};
use onbeat_control::signal::{Input, Output, SignalError, Signals};
use onbeat_control::stop::StopHandle;
use types::signal::{Flow, OutputBehaviour};
use types::{Signal, Value, ValueType};

use super::rig::{ANALOGUE, LAMPS, configured, cycle, signal};
use super::with_outside;
use crate::support::PERIOD;

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

/// The same without their number in the program.
struct Slices {
    lamps: Vec<Output<bool>>,
    levels: Vec<Input<i16>>,
    seen: Sender<(usize, [i16; 3])>,
}

impl Controller for Slices {
    fn init(&mut self, signals: &Signals) -> Result<(), SignalError> {
        (self.lamps, self.levels) = (signals.output_slice("lamps")?, signals.input_slice("levels")?);
        Ok(())
    }

    fn update(&mut self, _: CycleInfo, io: &mut Io<'_>) {
        // Fewer values than elements, and more space than there are.
        io.set_slice(&self.lamps[1..], &[true, true]);
        let mut levels = [7; 3];
        let number = io.get_slice(&self.levels, &mut levels);
        self.seen.send((number, levels)).unwrap();
    }
}

/// As many handles as the robot file has elements, read and set as a slice.
// feature(signals): arrays and byte strings: signals of several elements, read and set as one
#[test]
fn an_array_is_read_and_set_as_a_slice() {
    let (seen, told) = channel();
    let slices = |_, _| -> Box<dyn Controller> { Box::new(Slices { lamps: vec![], levels: vec![], seen }) };
    let (cycle, levels) = cycle(arrays(), &[], 60, slices);
    assert_eq!(cycle.unwrap().run(&StopHandle::new()).failure, None);
    assert_eq!(told.try_iter().last(), Some((2, [100, -2000, 7])));
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

/// Requests the given signals.
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
            "no input is called \"door_close\"; near it: \"door closed\"",
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
            "output \"lamp 3\" is commanded from outside: do not write it here, or remove writer = \
             \"outside\"",
        ),
    ];
    for (ask, sentence) in asked {
        let (cycle, _) = cycle(with_outside(), &[], 1, |_, _| Box::new(Asking(ask)));
        let error = cycle.map(drop).unwrap_err().to_string();
        assert!(error.starts_with("the controller cannot start: ") && error.contains(sentence), "{error}");
    }
    let panics: Ask = |_| std::panic::resume_unwind(Box::new("on purpose"));
    let (panicked, _) = cycle(with_outside(), &[], 1, |_, _| Box::new(Asking(panics)));
    let error = panicked.map(drop).unwrap_err().to_string();
    assert_eq!(error, "the controller panicked before the first cycle: on purpose");
    let asked: [(Ask, &str); 7] = [
        (|it| it.input::<i16>("levels").map(drop), "signal \"levels\" has 2 elements, expected 1"),
        (|it| it.input_slice::<i16>("levels.first").map(drop), "signal \"levels.first\" has no elements"),
        (
            |it| it.output_slice::<bool>("levels").map(drop),
            "no output is called \"levels\"; there is \"lamps[0]\", \"lamps[1]\"",
        ),
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
