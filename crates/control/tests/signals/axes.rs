//! Signals of a robot with axes.

use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use ethercat::al::AlState;
use ethercat::cia402::{AxisMode, CyclicMode, Request};
use ethercat::main_device::{Configuration, MainDevice, StartupSdo, SubDeviceConfiguration};
use ethercat::pdo::{Direction, PdoEntry};
use ethercat_linux::link::DirectLink;
use ipc::state::State;
use motion::AxisPhase;
use motion::brake::BrakeConfiguration;
use onbeat_control::axis::{AxisConfiguration, DigitalOutput};
use onbeat_control::controller::{Controller, ControllerOutput, CycleInfo, Io};
use onbeat_control::cycle::CycleConfiguration;
use onbeat_control::signal::{Input, Output, Ownership, SignalError, Signals, SignalsError};
use onbeat_control::stop::StopHandle;
use rt::clock::VirtualClock;
use simulator::application::servo::default_mapping;
use simulator::{EscDescription, Segment, SubDevice};
use types::signal::{Flow, OnStale, OutputBehaviour};
use types::{Value, ValueType};

use super::rig::{LAMPS, Outside, cycle, signal, signals};
use crate::support::{IpcFolder, PERIOD, cycle_with, ipc_with, rules, servo, supervised};

/// Enables the axis and watches its controlword.
struct Moving {
    word: Option<Input<u16>>,
    seen: Sender<bool>,
}

impl Controller for Moving {
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
    let (cycle, _) = cycle(signals, &supervised(1), 400, |_, _| Box::new(Moving { word: None, seen }));
    let ended = cycle.unwrap().run(&StopHandle::new());
    assert_eq!(ended.before_stop.axes[0].state, Some(ethercat::cia402::State::OperationEnabled));
    // Enable operation, as the axis wrote it.
    assert_eq!(ended.signals[1].1.value, Value::Unsigned(0x0F));
    let seen: Vec<bool> = told.try_iter().collect();
    assert!(seen.iter().filter(|&&same| same).count() > 300, "{seen:?}");
}

// feature(signals): a program of the library cannot write an object by which an axis moves
#[test]
fn a_signal_at_a_set_point_of_an_axis_is_refused() {
    let mapping = default_mapping();
    let entries: Vec<_> = mapping.entries(Direction::Output).collect();
    let begun = |at, bits, flow, axes: &[AxisConfiguration]| {
        let signals = vec![signal("mine", 0, at, ValueType::Unsigned(bits), flow)];
        let (seen, _) = channel();
        cycle(signals, axes, 1, |_, _| Box::new(Moving { word: None, seen })).0.map(drop)
    };
    let output = || Flow::Output(OutputBehaviour::default());
    let mut moving = 0;
    for (entry, field) in &entries {
        let bits = field.bit_length as u8;
        let refused = begun(field.bit_offset, bits, output(), &supervised(1));
        let is_owned = matches!(refused, Err(SignalsError::Owned(_)));
        let index = entry.index;
        let moves = [0x6040, 0x6060, 0x607A, 0x60FF, 0x6071].contains(&index);
        assert!(is_owned || !moves, "{index:#06x}: {refused:?}");
        moving += usize::from(moves);
        if !moves {
            continue;
        }
        // Its last bit alone, too.
        for flow in [output(), Flow::Fixed(1), Flow::Cycle] {
            let last = field.bit_offset + field.bit_length - 1;
            assert!(matches!(begun(last, 1, flow, &supervised(1)), Err(SignalsError::Owned(_))));
        }
        // Readable by the program, and free where no axis is.
        let taken = Flow::Taken("axis".to_owned());
        for (flow, axes) in [(taken, supervised(1)), (output(), vec![])] {
            let found = begun(field.bit_offset, bits, flow, &axes);
            assert!(!matches!(found, Err(SignalsError::Owned(_))), "{found:?}");
        }
    }
    assert!(moving >= 2, "{entries:?}");
    let to = mapping.output(0x607A, 0).unwrap().bit_offset;
    let why = begun(to, 32, output(), &supervised(1)).unwrap_err().to_string();
    let expected = "signal \"mine\" writes 0x607a:00 of SubDevice 0, which an axis writes within its limits: remove \
                    the signal, and set the axis's set-point";
    assert_eq!(why, expected);
}

/// Bound signal of these bits of an output of a drive that has these outputs in addition, and
/// this start-up.
fn bound(
    extra: &[PdoEntry],
    startup: &[StartupSdo],
    (entry, first, bits): ((u16, u8), usize, u8),
    flow: Flow,
    mode: AxisMode,
) -> Result<(), SignalsError> {
    let mut mapping = default_mapping();
    mapping.outputs[0].entries.extend(extra.to_vec());
    let (drive, sii) = servo(CyclicMode::Position, |it| it.mapping = mapping.clone());
    let segment = Segment::new(vec![SubDevice::new(EscDescription::default(), sii, Box::new(drive))]);
    let clock = VirtualClock::default();
    clock.advance(Duration::from_secs(1000));
    let link = DirectLink::new(segment, clock.clone(), Duration::from_micros(60));
    let configured =
        SubDeviceConfiguration { startup: startup.to_vec(), ..SubDeviceConfiguration::default() };
    let main_device = MainDevice::new(Configuration {
        target: AlState::Op,
        period: PERIOD,
        sub_devices: Some(vec![configured]),
        ..Configuration::default()
    });
    let mut axis = supervised(1).remove(0);
    axis.mode = mode;
    let (seen, _) = channel();
    let (controller, configuration) = (Moving { word: None, seen }, CycleConfiguration::every(PERIOD));
    let (mut cycle, _) = cycle_with(main_device.unwrap(), link, clock, &[axis], controller, configuration);
    let at = mapping.output(entry.0, entry.1).unwrap().bit_offset + first;
    match cycle.set_signals(vec![signal("mine", 0, at, ValueType::Unsigned(bits), flow)]) {
        // It is bound, and the controller finds no statusword.
        Err(SignalsError::Controller(_)) => Ok(()),
        other => other,
    }
}

fn owner(bound: Result<(), SignalsError>) -> Option<Ownership> {
    match bound {
        Ok(()) => None,
        Err(SignalsError::Owned(error)) => Some(error.ownership),
        Err(other) => panic!("{other}"),
    }
}

// feature(signals): a program of the library cannot write an object by which an axis moves
#[test]
fn a_signal_at_a_limit_of_an_axis_or_its_brake_is_refused() {
    let entry = |(index, sub_index), bit_length| PdoEntry {
        index,
        sub_index,
        bit_length,
        data_type: 0,
        name: format!("{index:#06x}:{sub_index}"),
    };
    let output = || Flow::Output(OutputBehaviour::default());
    let csp: AxisMode = CyclicMode::Position.into();
    for mode in [csp, AxisMode::ProfilePosition] {
        for (index, bits) in [(0x6072, 16), (0x6081, 32), (0x6083, 32), (0x6084, 32), (0x6087, 32)] {
            let extra = [entry((index, 0), bits)];
            let of = |first, bits, flow| owner(bound(&extra, &[], ((index, 0), first, bits), flow, mode));
            for flow in [output(), Flow::Cycle] {
                assert_eq!(of(0, bits, flow.clone()), Some(Ownership::Limit), "{index:#06x} {flow:?}");
                // Its last bit alone, too.
                assert_eq!(of(usize::from(bits) - 1, 1, flow), Some(Ownership::Limit), "{index:#06x}");
            }
            for flow in [Flow::Fixed(1), Flow::Taken("axis".to_owned())] {
                assert_eq!(of(0, bits, flow), None, "{index:#06x}");
            }
        }
    }
    // The brake is the first bit, unless the mask of the drive's outputs does not have it.
    let mask = |value: u8| StartupSdo {
        index: 0x60FE,
        sub_index: 2,
        complete_access: false,
        data: vec![value, 0, 3, 0],
    };
    let values = entry((0x60FE, 1), 32);
    let both = [values.clone(), entry((0x60FE, 2), 32)];
    let of = |extra: &[PdoEntry], startup: &[StartupSdo], sub_index, first, bits, flow| {
        owner(bound(extra, startup, ((0x60FE, sub_index), first, bits), flow, csp))
    };
    let brake = Some(Ownership::Brake);
    let alone = std::slice::from_ref(&values);
    for flow in [output(), Flow::Fixed(1)] {
        assert_eq!(of(alone, &[], 1, 0, 32, flow.clone()), brake);
        assert_eq!(of(alone, &[mask(1)], 1, 0, 1, flow.clone()), brake);
        assert_eq!(of(&both, &[mask(0)], 1, 0, 1, flow.clone()), brake, "the mask can change");
        assert_eq!(of(&both, &[mask(0)], 2, 0, 1, flow.clone()), brake);
        assert_eq!(of(alone, &[mask(0)], 1, 0, 32, flow.clone()), None);
        assert_eq!(of(alone, &[], 1, 16, 2, flow), None, "no brake is there");
    }
    // A brake at a terminal, which is no drive.
    let mut axes = supervised(1);
    let output_at = DigitalOutput { sub_device: LAMPS, channel: 3 };
    axes[0].brake = Some(BrakeConfiguration { output: Some(output_at), ..BrakeConfiguration::default() });
    for flow in [output(), Flow::Fixed(1)] {
        for (first, bits, expected) in [(2, 1, brake), (0, 4, brake), (0, 2, None), (3, 1, None)] {
            let signals = vec![signal("mine", LAMPS, first, ValueType::Unsigned(bits), flow.clone())];
            let (seen, _) = channel();
            let (begun, _) = cycle(signals, &axes, 1, |_, _| Box::new(Moving { word: None, seen }));
            let found = match begun.map(drop) {
                Err(SignalsError::Owned(error)) => Some(error.ownership),
                _ => None,
            };
            assert_eq!(found, expected, "{bits} from {first}");
        }
    }
}

/// Lights the first lamp and enables the axis; twenty cycles later the process it lives on is lost.
struct Forsaken {
    lamp: Option<Output<bool>>,
    following: u64,
    outside: Outside,
    /// Of the state of each cycle: the axis is stopped, the lamp is dark.
    seen: Sender<(bool, bool)>,
}

impl Controller for Forsaken {
    fn init(&mut self, signals: &Signals) -> Result<(), SignalError> {
        self.lamp = Some(signals.output("lamp 1")?);
        Ok(())
    }

    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        let Outside { client, state, .. } = &mut self.outside;
        if client.state().read_into(state).is_ok() && !info.stopping {
            self.seen.send((state.axes[0].stop != 0, state.signals[4].word == 0)).unwrap();
        }
        let feedback = io.axis(0).unwrap().feedback;
        self.following += u64::from(feedback.phase == AxisPhase::Following);
        let command = io.command(0).unwrap();
        command.request = Request::Enable;
        command.setpoint.position = feedback.position;
        io.set(self.lamp.unwrap(), true);
    }

    fn output(&self) -> ControllerOutput {
        let lost = self.following > 20;
        ControllerOutput { lost, left_in_use: lost, ..ControllerOutput::default() }
    }
}

// feature(signals): an output while the command is stale; values beyond the range and not finite are counted
#[test]
fn outputs_and_axes_go_stale_in_the_same_cycle() {
    let folder = IpcFolder::new("forsaken");
    let signals =
        signals(OutputBehaviour { on_stale: Some(OnStale::Bits(0)), ..OutputBehaviour::default() });
    let (ipc, _server, client) = ipc_with(&folder, rules(1), &signals);
    let outside = Outside { client, writer: None, state: State::default() };
    let (seen, told) = channel();
    let (cycle, _) = cycle(signals, &supervised(1), 400, |_, _| {
        Box::new(Forsaken { lamp: None, following: 0, outside, seen })
    });
    let ended = cycle.unwrap().with_ipc(ipc).run(&StopHandle::new());
    assert_eq!(ended.failure, None);
    let mut seen: Vec<_> = told.try_iter().collect();
    seen.dedup();
    assert_eq!(seen, [(false, false), (true, true)]);
}
