//! A counting allocator watches the cycle: through capture and faults, supervised, with an IPC that
//! clients read and write as fast as they can, a bus with all kinds of requests, and rows for a
//! recording, from Op to the request to stop.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use ethercat::cia402::{CyclicMode, State};
use ethercat::pdo::PdoField;
use ethercat::sii::Identity;
use ethercat_linux::link::{Capture, DirectLink, FaultRates, Faults, Faulty, Link, SimulatedLink};
use ipc::bus::{Backend, Service, Ticket};
use ipc::client::Client;
use onbeat_control::bus::{self, BusBackend, BusPoll, WriteProtection};
use onbeat_control::controller::{Controller, ControllerOutput, CycleInfo, ExternalCommand, Io};
use onbeat_control::cycle::{CycleConfiguration, FrameOrder};
use onbeat_control::signal::{Input, SignalError, Signals};
use onbeat_control::stop::StopHandle;
use rt::clock::{BusClock, Clock, MonotonicClock, VirtualClock};
use simulator::application::servo::default_mapping;
use simulator::application::sii::digital_outputs;
use simulator::application::{DigitalOutputs, Wires};
use simulator::{EscDescription, Segment, SubDevice};
use testkit::{CountingAllocator, allocations};
use types::signal::{Flow, OutputBehaviour, Writer};
use types::{Signal, Value, ValueType};

use support::{
    IpcFolder, PERIOD, Peers, Servant, cycle_in_bus_time, cycle_of, ipc_with, rules, servo, supervised,
};

#[global_allocator]
static ALLOCATOR: CountingAllocator = allocations::COUNTED;

/// Cycles that are watched.
const ENOUGH: u64 = 1_000;

/// Enabled cycles in which simulated drives in this thread write each of their objects once.
const SETTLING: u64 = 200;

/// Cycles after which a machine too busy to bring the bus to Op, or a bus that fell out of it, is
/// given up.
const TOO_MANY: u64 = 60_000;

/// Watches its thread while every axis is enabled, and asks for a stop when it has seen enough.
struct Watching {
    servant: Servant,
    leaks: bool,
    /// Enabled cycles before the watch.
    settling: u64,
    cycles: &'static AtomicU64,
    stop: StopHandle,
    word: Option<Input<u16>>,
}

impl Controller for Watching {
    fn init(&mut self, signals: &Signals) -> Result<(), SignalError> {
        self.word = Some(signals.input("statusword")?);
        Ok(())
    }

    fn command(&mut self, command: &ExternalCommand) {
        self.servant.command(command);
    }

    fn output(&self) -> ControllerOutput {
        self.servant.output()
    }

    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        if let Some(word) = self.word {
            std::hint::black_box((io.get(word), io.is_fresh(word)));
        }
        self.servant.update(info, io);
        let enabled = io.axes().iter().all(|report| report.state == Some(State::OperationEnabled));
        if enabled && !info.stopping && self.settling > 0 {
            self.settling -= 1;
        } else if enabled && !info.stopping {
            allocations::watch(true);
            let watched = self.cycles.fetch_add(1, Ordering::Relaxed);
            if watched == 100 && self.leaks {
                std::hint::black_box(Box::new(info));
            }
            if watched == ENOUGH {
                self.stop.stop();
            }
        }
        if info.stopping {
            allocations::watch(false);
        }
    }
}

/// A thread that asks the bus for all there is, all the time.
struct Asking(Arc<AtomicBool>, JoinHandle<u64>);

impl Asking {
    fn start(mut backend: BusBackend, mut poll: BusPoll) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let ask = move || {
            let (mut answers, mut id) = (0, 0);
            while !stopped.load(Ordering::Relaxed) {
                let position = (id % 6) as u16;
                let service = match id % 8 {
                    0 => Service::Status { errors: id % 2 == 0, receive_times: id % 3 == 0 },
                    5 => Service::ClearErrors,
                    6 => Service::Latches { position },
                    1 => Service::ObjectList { position, list: 1 },
                    2 => Service::Upload {
                        position: 99,
                        index: 0x1008,
                        sub_index: 0,
                        complete_access: false,
                    },
                    3 => Service::Upload { position, index: 0x5FFF, sub_index: 0, complete_access: false },
                    4 => Service::DescribeEntry { position, index: 0x6041, sub_index: 0, value_info: 0 },
                    _ => Service::Upload { position, index: 0x1008, sub_index: 0, complete_access: false },
                };
                id += u64::from(backend.submit(Ticket { session: 0, id }, &service, None));
                answers += u64::from(poll.read().is_some());
                while backend.poll().is_some() {
                    answers += 1;
                }
                std::thread::sleep(Duration::from_micros(200));
            }
            answers
        };
        Self(stop, std::thread::spawn(ask))
    }

    /// Requests that had an outcome.
    fn stop(self) -> u64 {
        self.0.store(true, Ordering::Relaxed);
        self.1.join().unwrap()
    }
}

/// The same of the first run that was watched for long enough.
fn enough(order: FrameOrder, in_bus_time: bool, leaks: bool) -> (u64, u64) {
    for _ in 0..4 {
        let (calls, cycles) = run(order, in_bus_time, leaks);
        if cycles >= ENOUGH {
            return (calls, cycles);
        }
        eprintln!("{order:?}: watched {cycles} cycles only, {calls} allocator calls: once more");
        testkit::await_calm(Duration::from_secs(30));
    }
    panic!("{order:?}: axes are stopped all the time");
}

/// Allocator calls in the cycle, and the cycles they were counted in.
fn run(order: FrameOrder, in_bus_time: bool, leaks: bool) -> (u64, u64) {
    static CYCLES: AtomicU64 = AtomicU64::new(0);
    let stop = StopHandle::new();
    CYCLES.store(0, Ordering::Relaxed);
    let before = allocations::calls();
    let rates = FaultRates {
        loss: 0.01,
        corrupt: 0.0,
        duplicate: 0.01,
        delay: 0.01,
        delay_by: Duration::from_millis(3),
        reorder: 0.01,
    };
    let faults = Faults { requests: FaultRates::default(), replies: rates, seed: 1 };
    let bus = in_bus_time.then(|| VirtualClock::at(MonotonicClock.now()));
    let simulated: Box<dyn Link + Send> = match &bus {
        Some(bus) => Box::new(DirectLink::new(segment(), bus.clone(), Duration::from_micros(20))),
        None => Box::new(SimulatedLink::new(segment())),
    };
    let clock = bus.clone().map_or(BusClock::Host, BusClock::Simulated);
    let link = Faulty::with_clock(simulated, faults, clock);
    let link = Capture::to_writer(link, std::io::sink(), "simulated").unwrap();
    // A simulated drive has its own copy of an object from the first value on.
    let settling = if in_bus_time { SETTLING } else { 0 };
    let controller = Watching {
        servant: Servant::new(6, 1.0),
        leaks,
        settling,
        cycles: &CYCLES,
        stop: stop.clone(),
        word: None,
    };
    let configuration =
        CycleConfiguration { order, cycles: Some(TOO_MANY), ..CycleConfiguration::every(PERIOD) };
    let mut axes = supervised(6);
    (0..6).for_each(|axis| axes[axis].stops = vec![(axis + 1) % 6]);
    let (cycle, observer) = match bus {
        Some(bus) => cycle_in_bus_time(link, (MonotonicClock, bus), &axes, controller, configuration),
        None => cycle_of(link, MonotonicClock, &axes, controller, configuration),
    };
    let folder = IpcFolder::new("allocations");
    let (ipc, _server, client) = ipc_with(&folder, rules(6), &signals());
    let peers = Peers::start(&client, 6);
    let (forcing, goes_on) = (Client::open(client.path()).unwrap(), Arc::new(AtomicBool::new(true)));
    let goes = Arc::clone(&goes_on);
    let forcing = std::thread::spawn(move || {
        let mut forced = 0_u64;
        while goes.load(Ordering::Relaxed) {
            forced += u64::from(forcing.force(0, Value::Unsigned(1), Duration::from_millis(2)).is_ok());
            forced += u64::from(forcing.force(2, Value::Unsigned(2), Duration::from_secs(1)).is_ok());
            forced += u64::from(forcing.release(None).is_ok());
            std::thread::sleep(Duration::from_millis(1));
        }
        forced
    });
    let protection = WriteProtection::new(cycle.main_device(), (0..6).map(|drive| (drive, 0)).collect());
    let status = observer.status_reader();
    let (requests, backend) =
        bus::requests(cycle.main_device(), protection, status, || serde_json::Value::Null);
    let (requests, poll) = requests.polling(cycle.main_device(), PERIOD, observer.status_reader());
    let asking = Asking::start(backend, poll);
    // SubDevices allocate for a mailbox request, and are in the cycle's thread here.
    let mut cycle = if in_bus_time { cycle } else { cycle.with_bus(requests) }.with_ipc(ipc);
    cycle.set_signals(signals()).unwrap();
    let mut samples = cycle.sample((0..signals().len()).collect());
    let ended = cycle.run(&stop);
    assert_eq!(ended.failure, None);
    let sampled = (0..TOO_MANY).filter(|&cycle| samples.go_to(cycle)).count() as u64;
    assert!(sampled >= ENOUGH, "{sampled} rows for a recording");
    let answers = asking.stop();
    assert!(answers > 20 || in_bus_time, "{answers} answers of the bus");
    let (read, sent) = peers.stop();
    goes_on.store(false, Ordering::Relaxed);
    let forced = forcing.join().unwrap();
    assert!(forced > 100, "{forced}");
    let command = client.state().read().unwrap().command;
    assert!(read > 100 && sent > 100 && command.accepted > 100, "{read} {sent} {command:?}");
    assert!(command.refused > 100, "{command:?}");
    let set =
        ended.signals.iter().filter(|(signal, state)| signal.is_commanded() && state.value.number() > 0.0);
    assert!(set.count() > 0, "{:?}", ended.signals);
    (allocations::calls() - before, CYCLES.load(Ordering::Relaxed))
}

/// Six drives, and a terminal with six bytes of digital outputs.
fn segment() -> Segment {
    let drive = |position: u8| {
        let (drive, sii) = servo(CyclicMode::Position, |it| it.initial_position = position.into());
        SubDevice::new(EscDescription::default(), sii, Box::new(drive))
    };
    let sii = digital_outputs(Identity::default(), "lamps", 48).image().emit();
    let lamps = DigitalOutputs::new(48, Wires::new()).unwrap();
    let terminal = SubDevice::new(EscDescription::default(), sii, Box::new(lamps));
    Segment::new((0..6).map(drive).chain([terminal]).collect())
}

/// An input and an output of each drive, and a byte of the terminal that is commanded from outside.
fn signals() -> Vec<Signal> {
    let mapping = default_mapping();
    let (status, control) = (mapping.input(0x6041, 0).unwrap(), mapping.output(0x6040, 0).unwrap());
    let signal = |name: &str, sub_device, field: PdoField, flow| Signal {
        name: name.to_owned(),
        sub_device,
        bit_offset: field.bit_offset,
        value_type: ValueType::Unsigned(field.bit_length as u8),
        unit: String::new(),
        scaling: None,
        range: matches!(flow, Flow::Output(_)).then_some((0.0, 250.0)),
        flow,
    };
    let outside = OutputBehaviour { writer: Writer::Outside, ..OutputBehaviour::default() };
    let taken = || Flow::Taken("an axis".to_owned());
    let of = |drive| {
        let lamps = PdoField { bit_offset: 8 * drive, bit_length: 8 };
        [
            signal("statusword", drive, status, Flow::Input),
            signal("controlword", drive, control, taken()),
            signal("lamps", 6, lamps, Flow::Output(outside)),
        ]
    };
    (0..6).flat_map(of).collect()
}

/// One test, so that nothing else runs at the same time.
// feature(signals): in the cycle no allocation
// feature(running-bus): no allocation in the cycle
// feature(ipc): the real-time ends ask for no memory, and make no system call
// feature(cycle): no allocation in the cycle
#[test]
fn the_cycle_neither_allocates_nor_frees() {
    for order in [FrameOrder::ReplyOfLastCycle, FrameOrder::WaitForReply] {
        for in_bus_time in [false, true] {
            // A host stall is an outage, which stops the axes and ends the watch.
            let (calls, cycles) = enough(order, in_bus_time, false);
            assert_eq!(calls, 0, "{order:?}, {in_bus_time}: allocator calls in {cycles} cycles");
        }
    }
    // The count counts: one box made and dropped on purpose.
    assert_eq!(enough(FrameOrder::ReplyOfLastCycle, true, true).0, 2);
}
