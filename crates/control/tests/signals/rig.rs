//! A drive, terminals, and a scripted controller over them, with or without another process.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ethercat::sii::Identity;
use ethercat_linux::link::{DirectLink, Link};
use ipc::client::Client;
use ipc::command::{Command, Writer};
use ipc::state::State;
use onbeat_control::axis::AxisConfiguration;
use onbeat_control::controller::{Controller, CycleInfo, Io};
use onbeat_control::cycle::{Cycle, CycleConfiguration, Ended};
use onbeat_control::signal::{Input, Output, SignalError, Signals, SignalsError};
use onbeat_control::stop::StopHandle;
use rt::clock::{Clock, MonotonicClock, VirtualClock};
use simulator::application::Signal as Level;
use simulator::application::analogue::{self, AnalogueInputs};
use simulator::application::digital::{DigitalInputs, DigitalOutputs, Wires};
use simulator::application::servo::{ServoDescription, ServoDrive, default_mapping};
use simulator::application::sii::{digital_inputs, digital_outputs, with_coe};
use simulator::coe::DeviceDescription;
use simulator::{EscDescription, Segment, SubDevice};
use types::signal::{Flow, OutputBehaviour, Scaling};
use types::{Signal, Value, ValueType};

use crate::support::{IpcFolder, PERIOD, cycle_of, ipc_with, rules};

pub(crate) const IDENTITY: Identity =
    Identity { vendor_id: 0xFFFF_0B01, product_code: 0x0402, revision: 1, serial: 0 };

pub(crate) const ANALOGUE: usize = 1;
pub(crate) const SWITCHES: usize = 2;
pub(crate) const LAMPS: usize = 3;

/// A drive, two analogue inputs, four digital inputs, and at the end of the line four digital
/// outputs.
pub(crate) fn segment(switches: &Wires, lamps: &Wires) -> Segment {
    let sub_device =
        |sii: Vec<u8>, application| SubDevice::new(EscDescription::default(), sii, application);
    let device = || DeviceDescription::new(IDENTITY, "device");
    let drive = ServoDrive::new(&ServoDescription::new(device())).unwrap();
    let analogue =
        AnalogueInputs::new(&device(), &[Level::Constant(100.0), Level::Constant(-2000.0)]).unwrap();
    Segment::new(vec![
        sub_device(with_coe(IDENTITY, "Servo", default_mapping()).image().emit(), Box::new(drive)),
        sub_device(with_coe(IDENTITY, "Analogue", analogue::mapping(2)).image().emit(), Box::new(analogue)),
        sub_device(
            digital_inputs(IDENTITY, "Inputs", 4).image().emit(),
            Box::new(DigitalInputs::new(4, switches.clone()).unwrap()),
        ),
        sub_device(
            digital_outputs(IDENTITY, "Outputs", 4).image().emit(),
            Box::new(DigitalOutputs::new(4, lamps.clone()).unwrap()),
        ),
    ])
}

pub(crate) fn signal(
    name: &str,
    sub_device: usize,
    bit_offset: usize,
    value_type: ValueType,
    flow: Flow,
) -> Signal {
    let (name, unit) = (name.to_owned(), String::new());
    Signal { name, sub_device, bit_offset, value_type, unit, scaling: None, range: None, flow }
}

pub(crate) fn lamp(number: usize, behaviour: OutputBehaviour) -> Signal {
    signal(&format!("lamp {number}"), LAMPS, number - 1, ValueType::Bool, Flow::Output(behaviour))
}

/// Signals of the segment; the first lamp behaves as said.
pub(crate) fn signals(first: OutputBehaviour) -> Vec<Signal> {
    let scaling = Some(Scaling { scale: 0.01, offset: 1.0 });
    let word = ValueType::Signed(16);
    vec![
        signal("door closed", SWITCHES, 2, ValueType::Bool, Flow::Input),
        Signal { scaling, ..signal("pressure", ANALOGUE, 48, word, Flow::Input) },
        signal("level", ANALOGUE, 16, word, Flow::Input),
        signal("speed", 0, 0, ValueType::Signed(32), Flow::Taken("axis \"x\"".to_owned())),
        lamp(1, first),
        lamp(2, OutputBehaviour::default()),
    ]
}

/// The outputs of the last terminal as often as they change.
pub(crate) struct Watched {
    pub(crate) direct: DirectLink<Segment, VirtualClock>,
    pub(crate) acts: Receiver<Act>,
    pub(crate) lamps: Wires,
    pub(crate) seen: Levels,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    Cut,
    Mend,
}

impl Link for Watched {
    fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
        for act in self.acts.try_iter() {
            assert!(match act {
                Act::Cut => self.direct.segment().disconnect(SWITCHES, 1),
                Act::Mend => self.direct.segment().connect(SWITCHES, 1),
            });
        }
        self.direct.transmit(frame)?;
        let mut seen = self.seen.lock().unwrap();
        if seen.last() != Some(&self.lamps.levels()) {
            seen.push(self.lamps.levels());
        }
        Ok(())
    }

    fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>> {
        self.direct.receive(buffer, timeout)
    }
}

/// Levels of the lamps, as often as they change.
pub(crate) type Levels = Arc<Mutex<Vec<u64>>>;

/// Levels of the lamps, and how the cycle ended.
pub(crate) struct Played {
    pub(crate) levels: Vec<u64>,
    pub(crate) ended: Ended<Watched>,
}

/// Cycle before its first cycle, and the levels that its lamps will have.
type Begun = (Result<Cycle<Watched, VirtualClock>, SignalsError>, Levels);

pub(crate) fn cycle(
    signals: Vec<Signal>,
    axes: &[AxisConfiguration],
    cycles: u64,
    controller: impl FnOnce(Wires, Sender<Act>) -> Box<dyn Controller>,
) -> Begun {
    let configuration = CycleConfiguration { cycles: Some(cycles), ..CycleConfiguration::every(PERIOD) };
    configured(configuration, signals, axes, controller)
}

pub(crate) fn configured(
    configuration: CycleConfiguration,
    signals: Vec<Signal>,
    axes: &[AxisConfiguration],
    controller: impl FnOnce(Wires, Sender<Act>) -> Box<dyn Controller>,
) -> Begun {
    let clock = VirtualClock::default();
    // Commands bear the machine's own time: the cycle's is ahead of it all the time.
    clock.advance(Duration::from_nanos(MonotonicClock.now().as_nanos()) + Duration::from_secs(600));
    let (switches, lamps) = (Wires::new(), Wires::new());
    let (act, acts) = channel();
    let direct = DirectLink::new(segment(&switches, &lamps), clock.clone(), Duration::from_micros(60));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let link = Watched { direct, acts, lamps, seen: Arc::clone(&seen) };
    let (mut cycle, _observer) = cycle_of(link, clock, axes, controller(switches, act), configuration);
    (cycle.set_signals(signals).map(|()| cycle), seen)
}

pub(crate) fn play(
    signals: Vec<Signal>,
    cycles: u64,
    script: impl FnMut(&mut Scene<'_, '_>) + Send + 'static,
) -> Played {
    let (cycle, seen) = cycle(signals, &[], cycles, |switches, act| {
        Box::new(Scripted { script, switches, act, handles: None, in_op: 0 })
    });
    let ended = cycle.unwrap().run(&StopHandle::new());
    assert_eq!(ended.failure, None);
    let levels = seen.lock().unwrap().clone();
    Played { levels, ended }
}

/// The same with an IPC; outputs of the outside are among these signals.
pub(crate) fn play_outside(
    name: &str,
    signals: Vec<Signal>,
    cycles: u64,
    mut script: impl FnMut(&mut Scene<'_, '_>, &mut Outside) + Send + 'static,
) -> Played {
    let folder = IpcFolder::new(name);
    let (ipc, _server, client) = ipc_with(&folder, rules(0), &signals);
    let mut outside = Outside { client, writer: None, state: State::default() };
    let (cycle, seen) = cycle(signals, &[], cycles, |switches, act| {
        let script = move |stage: &mut Scene<'_, '_>| {
            if outside.client.state().read_into(&mut outside.state).is_ok() && stage.in_op > 0 {
                script(stage, &mut outside);
            }
        };
        Box::new(Scripted { script, switches, act, handles: None, in_op: 0 })
    });
    let ended = cycle.unwrap().with_ipc(ipc).run(&StopHandle::new());
    assert_eq!(ended.failure, None);
    let levels = seen.lock().unwrap().clone();
    Played { levels, ended }
}

/// Another process, as it were, between two cycles.
pub(crate) struct Outside {
    pub(crate) client: Client,
    pub(crate) writer: Option<Writer>,
    /// State of the cycle before.
    pub(crate) state: State,
}

impl Outside {
    /// Commands these outputs until `time_to_live` from this cycle on, by its own clock.
    pub(crate) fn send(&mut self, info: CycleInfo, values: &[Option<Value>], time_to_live: Duration) {
        let time_to_live = (info.release + time_to_live).since(MonotonicClock.now());
        let writer = self.writer.get_or_insert_with(|| self.client.command().unwrap());
        let command = Command {
            time_to_live_ns: time_to_live.as_nanos() as u64,
            signals: values.to_vec(),
            ..Command::default()
        };
        writer.send(&command).unwrap();
    }
}

pub(crate) struct Scene<'a, 'b> {
    /// Cycles in which the lamps were taken.
    pub(crate) in_op: u64,
    pub(crate) info: CycleInfo,
    pub(crate) io: &'a mut Io<'b>,
    pub(crate) switches: &'a Wires,
    pub(crate) act: &'a Sender<Act>,
    pub(crate) handles: Handles,
}

#[derive(Clone, Copy)]
pub(crate) struct Handles {
    pub(crate) door: Input<bool>,
    pub(crate) pressure: Input<f64>,
    pub(crate) level: Input<i16>,
    pub(crate) lamps: [Output<bool>; 2],
}

pub(crate) struct Scripted<S> {
    pub(crate) script: S,
    pub(crate) switches: Wires,
    pub(crate) act: Sender<Act>,
    pub(crate) handles: Option<Handles>,
    pub(crate) in_op: u64,
}

impl<S: FnMut(&mut Scene<'_, '_>) + Send> Controller for Scripted<S> {
    fn init(&mut self, signals: &Signals) -> Result<(), SignalError> {
        self.handles = Some(Handles {
            door: signals.input("door closed")?,
            pressure: signals.input("pressure")?,
            level: signals.input("level")?,
            lamps: [signals.output("lamp 1")?, signals.output("lamp 2")?],
        });
        Ok(())
    }

    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        let handles = self.handles.unwrap();
        self.in_op += u64::from(io.is_taken(handles.lamps[1]) || self.in_op > 0);
        let Self { switches, act, in_op, .. } = self;
        (self.script)(&mut Scene { in_op: *in_op, info, io, switches, act, handles });
    }
}
