//! One controller in the cycle's thread and in a separate process, in virtual time: it sees and
//! does the same.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod support;

use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use ethercat::cia402::{CyclicMode, Request as DriveRequest};
use ethercat::sii::Identity;
use ethercat_linux::link::DirectLink;
use ipc::command::{AxisTarget, Command, Writer};
use ipc::controller::ExternalCommand;
use ipc::description::{AxisDescription, ControllerDescription, Description, OUTSIDE, SignalDescription};
use ipc::state::{self, Clamped, Limit, State};
use motion::base::{Pose, Twist};
use motion::{AxisPhase, Metres, MetresPerSecond, Radians, RadiansPerSecond};
use onbeat_control::axis::AxisConfiguration;
use onbeat_control::controller::{AxisReport, Controller, ControllerOutput, CycleInfo, Freshness, Io};
use onbeat_control::cycle::{CycleConfiguration, FrameOrder};
use onbeat_control::external::{ControllerProcess, External, ExternalAxis, ProcessError, Settings};
use onbeat_control::signal::{Counters, Input, Output, SignalError, Signals};
use onbeat_control::stop::StopHandle;
use rt::clock::{Clock, MonotonicClock, VirtualClock};
use simulator::application::Signal as Level;
use simulator::application::analogue::{self, AnalogueInputs};
use simulator::application::digital::{DigitalInputs, DigitalOutputs, Wires};
use simulator::application::servo::{ServoDescription, ServoDrive, default_mapping};
use simulator::application::sii::{digital_inputs, digital_outputs, with_coe};
use simulator::coe::DeviceDescription;
use simulator::{EscDescription, Segment, SubDevice};
use support::controller::Direct;
use support::{IpcFolder, PERIOD, cycle_of, ipc_with, rules, supervised};
use types::signal::{Flow, OutputBehaviour, Scaling, Writer as Setter};
use types::{Signal, ValueType};

const IDENTITY: Identity =
    Identity { vendor_id: 0xFFFF_0B01, product_code: 0x0402, revision: 1, serial: 0 };

const MODES: [CyclicMode; 2] = [CyclicMode::Position, CyclicMode::Velocity];

const CYCLES: u64 = 1_500;

/// Two drives in two modes, an analogue input, digital inputs that are all high, and digital
/// outputs.
fn segment() -> Segment {
    let sub_device =
        |sii: Vec<u8>, application| SubDevice::new(EscDescription::default(), sii, application);
    let device = || DeviceDescription::new(IDENTITY, "device");
    let drives = MODES.map(|mode| {
        let description = ServoDescription { mode, ..ServoDescription::new(device()) };
        let sii = with_coe(IDENTITY, "Servo", default_mapping()).image().emit();
        sub_device(sii, Box::new(ServoDrive::new(&description).unwrap()))
    });
    let level = AnalogueInputs::new(&device(), &[Level::Constant(1234.0)]).unwrap();
    let switches = Wires::new();
    switches.set_levels(0b1111);
    let terminals = [
        sub_device(with_coe(IDENTITY, "Analogue", analogue::mapping(1)).image().emit(), Box::new(level)),
        sub_device(
            digital_inputs(IDENTITY, "Inputs", 4).image().emit(),
            Box::new(DigitalInputs::new(4, switches).unwrap()),
        ),
        sub_device(
            digital_outputs(IDENTITY, "Outputs", 4).image().emit(),
            Box::new(DigitalOutputs::new(4, Wires::new()).unwrap()),
        ),
    ];
    Segment::new(drives.into_iter().chain(terminals).collect())
}

fn axes() -> Vec<AxisConfiguration> {
    let mut axes = supervised(2);
    axes[1].mode = MODES[1].into();
    axes[1].supervision.as_mut().unwrap().mode = MODES[1].into();
    axes
}

fn signals() -> Vec<Signal> {
    let signal = |name: &str, sub_device, bit_offset, value_type, flow| Signal {
        name: name.to_owned(),
        sub_device,
        bit_offset,
        value_type,
        unit: String::new(),
        scaling: None,
        range: None,
        flow,
    };
    let output = |writer| Flow::Output(OutputBehaviour { writer, ..OutputBehaviour::default() });
    let scaling = Some(Scaling { scale: 0.01, offset: 1.0 });
    vec![
        signal("door", 3, 2, ValueType::Bool, Flow::Input),
        // Expected within a range that it is not in.
        Signal {
            scaling,
            range: Some((0.0, 5.0)),
            ..signal("pressure", 2, 16, ValueType::Signed(16), Flow::Input)
        },
        signal("lamp", 4, 0, ValueType::Bool, output(Setter::Controller)),
        Signal {
            range: Some((0.0, 2.0)),
            ..signal("steps", 4, 1, ValueType::Unsigned(2), output(Setter::Controller))
        },
        signal("horn", 4, 3, ValueType::Bool, output(Setter::Outside)),
        signal("speed", 0, 0, ValueType::Signed(32), Flow::Taken("axis \"x\"".to_owned())),
    ]
}

/// The description that a process gets of them.
fn description() -> Description {
    let axis = |(index, mode): (usize, CyclicMode)| {
        AxisDescription::new(format!("axis-{index}"), mode, 10.0, 10.0)
    };
    let signal = |signal: &Signal| SignalDescription {
        name: signal.name.clone(),
        direction: signal.direction(),
        value_type: signal.value_type,
        kind: signal.kind(),
        range: signal.range,
        scaling: signal.scaling.map(|it| (it.scale, it.offset)),
        writer: match &signal.flow {
            Flow::Input => None,
            Flow::Taken(part) => Some(part.clone()),
            Flow::Cycle | Flow::Fixed(_) => Some("cycle".to_owned()),
            Flow::Output(_) if signal.is_commanded() => Some(OUTSIDE.to_owned()),
            Flow::Output(_) => Some("controller".to_owned()),
        },
        ..SignalDescription::default()
    };
    Description {
        axes: MODES.into_iter().enumerate().map(axis).collect(),
        controllers: vec![ControllerDescription {
            name: "process".to_owned(),
            kind: Some(types::ControllerKind::External),
            axes: vec![0, 1],
        }],
        signals: signals().iter().map(signal).collect(),
        ..Description::default()
    }
}

/// A cycle as its controller sees it.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    info: CycleInfo,
    reports: Vec<AxisReport>,
    command: ExternalCommand,
    freshness: Freshness,
    door: (bool, bool),
    pressure: (f64, bool),
    lamp: (bool, bool),
    steps: (u8, bool),
    counters: Counters,
    /// State that was published in the cycle before.
    state: State,
}

type Handles = (Input<bool>, Input<f64>, Output<bool>, Output<u8>);

/// Follows the command from outside, and sets outputs.
struct Busy {
    handles: Option<Handles>,
    position: f64,
    command: ExternalCommand,
    outside: Writer,
    states: state::Reader,
    seen: Sender<Seen>,
}

impl Controller for Busy {
    fn init(&mut self, signals: &Signals) -> Result<(), SignalError> {
        self.handles = Some((
            signals.input("door")?,
            signals.input("pressure")?,
            signals.output("lamp")?,
            signals.output("steps")?,
        ));
        Ok(())
    }

    fn command(&mut self, asked: &ExternalCommand) {
        self.command.clone_from(asked);
    }

    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        if info.cycle == 600 {
            let axes = vec![
                Some(AxisTarget::Position(Radians(0.4))),
                Some(AxisTarget::Velocity(RadiansPerSecond(1.5))),
            ];
            let signals = vec![Some(types::Value::Bool(true))];
            let time_to_live_ns = 3_600_000_000_000;
            self.outside.send(&Command { time_to_live_ns, axes, signals, ..Command::default() }).unwrap();
        }
        let (door, pressure, lamp, steps) = self.handles.unwrap();
        let seen = Seen {
            info,
            reports: io.axes().to_vec(),
            command: self.command.clone(),
            freshness: io.freshness(),
            door: (io.get(door), io.is_fresh(door)),
            pressure: (io.get(pressure), io.is_fresh(pressure)),
            lamp: (io.sent(lamp), io.is_taken(lamp)),
            steps: (io.sent(steps), io.is_forced(steps)),
            counters: io.counters(),
            state: self.states.read().map(|state| untimed(&state)).unwrap_or_default(),
        };
        self.seen.send(seen).unwrap();
        io.set(lamp, io.get(door) && info.cycle % 50 < 25);
        if info.cycle % 100 == 0 {
            io.set(steps, (info.cycle / 100 % 4) as u8);
        }
        let (reports, commands) = io.split();
        if let AxisPhase::HoldingAt(position) = reports[0].feedback.phase {
            self.position = position.0;
        }
        let fresh = self.command.freshness == Freshness::Fresh && !info.stopping;
        match self.command.axes[0] {
            Some(AxisTarget::Position(target)) if fresh => {
                self.position += (target.0 - self.position).clamp(-0.001, 0.001);
            }
            _ => {}
        }
        commands[0].setpoint.position = Radians(self.position);
        let velocity = &mut commands[1].setpoint.velocity.0;
        let wanted = match self.command.axes[1] {
            Some(AxisTarget::Velocity(target)) if fresh => target.0,
            _ => 0.0,
        };
        *velocity += (wanted - *velocity).clamp(-0.01, 0.01);
        for command in commands {
            command.request = DriveRequest::Enable;
        }
    }

    fn output(&self) -> ControllerOutput {
        let at = self.position;
        ControllerOutput {
            commanded: true,
            clamped: (self.position > 0.3).then_some(Clamped { limit: Limit::Velocity, axis: Some(1) }),
            pose: Pose { x: Metres(at), y: Metres(-at), yaw: Radians(2.0 * at) },
            twist: Twist { x: MetresPerSecond(1.0), ..Twist::default() },
            ..ControllerOutput::default()
        }
    }
}

/// Without the timing of the machine it ran on, and without values clamped: a process counts its
/// own, which the controller sees.
fn untimed(state: &State) -> State {
    let mut state = State { timing: state::Timing::default(), ..state.clone() };
    state.command.stamp_ns = 0;
    state.signal_counters = state::SignalCounters::default();
    state
}

fn play(order: FrameOrder, outside: bool) -> Vec<Seen> {
    let folder = IpcFolder::new(&format!("same-{order:?}-{outside}"));
    let clock = VirtualClock::default();
    // Commands bear the machine's own time: the cycle's is ahead of it all the time, by a whole
    // number of seconds.
    let ahead = Duration::from_nanos(MonotonicClock.now().as_nanos()).as_secs() + 600;
    clock.advance(Duration::from_secs(ahead));
    let (ipc, _server, attachment) = ipc_with(&folder, rules(2), &signals());
    let (seen, told) = channel();
    let controller = Busy {
        handles: None,
        position: 0.0,
        command: ExternalCommand { axes: vec![None; 2], ..ExternalCommand::default() },
        outside: attachment.command().unwrap(),
        states: attachment.state(),
        seen,
    };
    let controller: Box<dyn Controller> = if outside {
        let axes = MODES.map(|mode| Some(ExternalAxis { mode: mode.into(), position: None })).to_vec();
        let settings = Settings { deadline: Duration::from_micros(700), max_late: 3, axes };
        Box::new(External::new(Direct::new(&description(), controller, clock.clone()), settings))
    } else {
        Box::new(controller)
    };
    let configuration =
        CycleConfiguration { order, cycles: Some(CYCLES), ..CycleConfiguration::every(PERIOD) };
    let link = DirectLink::new(segment(), clock.clone(), Duration::from_micros(60));
    let (mut cycle, _observer) = cycle_of(link, clock, &axes(), controller, configuration);
    cycle.set_signals(signals()).unwrap();
    let ended = cycle.with_ipc(ipc).run(&StopHandle::new());
    assert_eq!(ended.failure, None);
    drop(ended);
    told.try_iter().collect()
}

// feature(ipc): `onbeat::external::run`: a `Controller` in a separate process gets the same inputs and sends the same set-points as in the cycle's thread
#[test]
fn controller_behaves_the_same_in_a_separate_process() {
    for order in [FrameOrder::ReplyOfLastCycle, FrameOrder::WaitForReply] {
        let (inside, outside) = (play(order, false), play(order, true));
        // In the first cycle a process is only found to be there, and the second shows what the
        // first did.
        let (inside, outside) = (&inside[2..], &outside[1..]);
        let start = inside[0].info.release;
        let start_outside = outside[0].info.release;
        for (inside, outside) in inside.iter().zip(outside) {
            let mut outside = outside.clone();
            // The two runs began at different seconds of the machine's time.
            assert_eq!(inside.info.release.since(start), outside.info.release.since(start_outside));
            assert_eq!(inside.info.release.since(start), outside.info.bus_time.since(start_outside));
            outside.info.release = inside.info.release;
            outside.info.bus_time = inside.info.bus_time;
            outside.state.release_ns = inside.state.release_ns;
            // The state says which of the two it is.
            outside.state.control.process = inside.state.control.process;
            assert_eq!(*inside, outside);
        }
        assert_eq!(inside.len(), outside.len());
        // And it does something.
        let last = |found: fn(&Seen) -> bool| inside.iter().any(found);
        assert!(last(|it| it.pressure == (13.34, true) && it.door == (true, true)), "{:?}", inside.last());
        assert!(
            last(|it| it.lamp == (true, true)) && last(|it| it.steps.0 == 2 && it.counters.clamped > 0)
        );
        assert!(last(|it| (it.state.axes.first().map_or(0.0, |it| it.target_position) - 0.4).abs() < 1e-4));
        assert!(last(|it| it.state.axes.get(1).map_or(0.0, |it| it.target_velocity) > 1.4));
        assert!(last(|it| it.state.base.pose[0] > 0.3 && it.state.base.twist[0] == 1.0));
        assert!(last(|it| it.state.command.clamped == 1 && it.state.command.last_clamped_axis == 1));
        assert!(last(|it| it.reports.iter().all(|it| it.was_enabled && it.statusword.0 & 0x6F == 0x27)));
        assert!(last(|it| it.command.axes[1].is_some() && it.freshness == Freshness::Fresh));
    }
}

#[derive(Debug)]
struct Finds(Find);

type Find = fn(&Signals) -> Result<(), SignalError>;

impl Controller for Finds {
    fn init(&mut self, signals: &Signals) -> Result<(), SignalError> {
        (self.0)(signals)
    }
}

// feature(ipc): `onbeat::external::run`: a `Controller` in a separate process gets the same inputs and sends the same set-points as in the cycle's thread
#[test]
fn wrong_names_and_types_are_refused_as_in_the_cycles_thread() {
    let cases: [Find; 6] = [
        |it| it.input::<bool>("dor").map(drop),
        |it| it.input::<bool>("lamp").map(drop),
        |it| it.input::<i16>("pressure").map(drop),
        |it| it.output::<f32>("steps").map(drop),
        |it| it.output::<bool>("horn").map(drop),
        |it| it.output::<i32>("speed").map(drop),
    ];
    for find in cases {
        let clock = VirtualClock::default();
        let link = DirectLink::new(segment(), clock.clone(), Duration::from_micros(60));
        let (mut cycle, _observer) =
            cycle_of(link, clock, &axes(), Finds(find), CycleConfiguration::every(PERIOD));
        let inside = cycle.set_signals(signals()).unwrap_err().to_string();
        let outside = ControllerProcess::new(&description(), Finds(find)).unwrap_err();
        assert_eq!(inside, outside.to_string());
        assert!(matches!(outside, ProcessError::Signal(_)));
    }
}
