//! A counting allocator sees the cycle: through capture and faults, supervised, with a seam that others read and write as
//! fast as they can, and a bus that is asked for all there is, from Op to the request to stop.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use bridge::attach::Attachment;
use bridge::bus::{Backend, Service, Ticket};
use ethercat::cia402::State;
use ethercat::pdo::PdoField;
use onbeat_runtime::bus::{self, BusBackend, Guard};
use onbeat_runtime::clock::MonotonicClock;
use onbeat_runtime::controller::{Asked, Beat, Controller, Told};
use onbeat_runtime::cycle::{CycleConfiguration, FrameOrder};
use onbeat_runtime::link::{Capture, FaultRates, Faults, Faulty, SimulatedLink};
use onbeat_runtime::signal::{Input, Io, SignalError, Signals};
use onbeat_runtime::stop::StopHandle;
use simulator::application::servo::default_mapping;
use testbed::{CountingAllocator, allocations};
use types::signal::{Flow, OutputBehaviour, Writer};
use types::{Signal, Value, ValueType};

use support::{PERIOD, Peers, SeamFolder, Servant, cycle_of, rules, seam_with, segment, supervised};

#[global_allocator]
static ALLOCATOR: CountingAllocator = allocations::COUNTED;

/// Beats that are watched.
const ENOUGH: u64 = 1_000;

/// Beats after which a machine too busy to bring the bus to Op, or a bus that fell out of it, is given up.
const TOO_MANY: u64 = 60_000;

/// Watches its thread while every axis is enabled, and asks for a stop when it has seen enough.
struct Watching {
    servant: Servant,
    leaks: bool,
    beats: &'static AtomicU64,
    stop: StopHandle,
    word: Option<Input<u16>>,
}

impl Controller for Watching {
    fn init(&mut self, signals: &Signals) -> Result<(), SignalError> {
        self.word = Some(signals.input("statusword")?);
        Ok(())
    }

    fn hear(&mut self, asked: &Asked) {
        self.servant.hear(asked);
    }

    fn tell(&self) -> Told {
        self.servant.tell()
    }

    fn update(&mut self, beat: Beat, io: &mut Io<'_>) {
        if let Some(word) = self.word {
            std::hint::black_box((io.get(word), io.is_fresh(word)));
        }
        self.servant.update(beat, io);
        let enabled = io.axes().iter().all(|report| report.state == Some(State::OperationEnabled));
        if enabled && !beat.stopping {
            allocations::watch(true);
            let watched = self.beats.fetch_add(1, Ordering::Relaxed);
            if watched == 100 && self.leaks {
                std::hint::black_box(Box::new(beat));
            }
            if watched == ENOUGH {
                self.stop.stop();
            }
        }
        if beat.stopping {
            allocations::watch(false);
        }
    }
}

/// A thread that asks the bus for all there is, all the time.
struct Asking(Arc<AtomicBool>, JoinHandle<u64>);

impl Asking {
    fn start(mut backend: BusBackend) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let ask = move || {
            let (mut answers, mut id) = (0, 0);
            while !stopped.load(Ordering::Relaxed) {
                let position = (id % 6) as u16;
                let service = match id % 7 {
                    0 => Service::Status { errors: id % 2 == 0 },
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

/// Allocator calls in the cycle, and the beats they were counted in.
fn run(order: FrameOrder, leaks: bool) -> (u64, u64) {
    static BEATS: AtomicU64 = AtomicU64::new(0);
    let stop = StopHandle::new();
    BEATS.store(0, Ordering::Relaxed);
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
    let link = Faulty::new(SimulatedLink::new(segment(6)), faults);
    let link = Capture::to_writer(link, std::io::sink(), "simulated").unwrap();
    let controller =
        Watching { servant: Servant::new(6, 1.0), leaks, beats: &BEATS, stop: stop.clone(), word: None };
    let configuration =
        CycleConfiguration { order, beats: Some(TOO_MANY), ..CycleConfiguration::every(PERIOD) };
    let (cycle, observer) = cycle_of(link, MonotonicClock, &supervised(6), controller, configuration);
    let folder = SeamFolder::new("allocations");
    let (seam, _door, attachment) = seam_with(&folder, rules(6), &signals());
    let peers = Peers::start(&attachment, 6);
    let (forcing, goes_on) =
        (Attachment::open(attachment.path()).unwrap(), Arc::new(AtomicBool::new(true)));
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
    let guard = Guard::new(cycle.main_device(), (0..6).collect());
    let status = observer.status_reader();
    let (requests, backend) = bus::requests(cycle.main_device(), guard, status, serde_json::Value::Null);
    let asking = Asking::start(backend);
    let mut cycle = cycle.with_seam(seam).with_bus(requests);
    cycle.set_signals(signals()).unwrap();
    let ended = cycle.run(&stop);
    assert_eq!(ended.failure, None);
    let answers = asking.stop();
    assert!(answers > 20, "{answers} answers of the bus");
    let (read, sent) = peers.stop();
    goes_on.store(false, Ordering::Relaxed);
    let forced = forcing.join().unwrap();
    assert!(forced > 100, "{forced}");
    let command = attachment.state().read().unwrap().command;
    assert!(read > 100 && sent > 100 && command.accepted > 100, "{read} {sent} {command:?}");
    assert!(command.refused > 100, "{command:?}");
    let set =
        ended.signals.iter().filter(|(signal, state)| signal.is_commanded() && state.value.number() > 0.0);
    assert!(set.count() > 0, "{:?}", ended.signals);
    (allocations::calls() - before, BEATS.load(Ordering::Relaxed))
}

/// An input and an output of each drive, and one that is commanded from outside.
fn signals() -> Vec<Signal> {
    let mapping = default_mapping();
    let (status, control) = (mapping.input(0x6041, 0).unwrap(), mapping.output(0x6040, 0).unwrap());
    let signal = |name: &str, sub_device, field: PdoField, flow| Signal {
        name: name.to_owned(),
        sub_device,
        bit_offset: field.bit_offset,
        value_type: ValueType::Unsigned(16),
        unit: String::new(),
        scaling: None,
        range: matches!(flow, Flow::Output(_)).then_some((0.0, 250.0)),
        flow,
    };
    let torque = mapping.output(0x6071, 0).unwrap();
    let outside = OutputBehaviour { writer: Writer::Outside, ..OutputBehaviour::default() };
    let taken = || Flow::Taken("an axis".to_owned());
    let of = |drive| {
        [
            signal("statusword", drive, status, Flow::Input),
            signal("controlword", drive, control, taken()),
            signal("torque", drive, torque, Flow::Output(outside)),
        ]
    };
    (0..6).flat_map(of).collect()
}

/// One test, so that nothing else runs beside it.
// feature(signals): in the cycle no allocation
// feature(running-bus): no allocation in the cycle
// feature(ipc): the real-time ends ask for no memory, and make no system call
// feature(cycle): no allocation in the cycle
#[test]
fn the_cycle_neither_allocates_nor_frees() {
    for order in [FrameOrder::ReplyOfLastBeat, FrameOrder::WaitForReply] {
        let (calls, beats) = run(order, false);
        assert!(beats >= ENOUGH, "{order:?}: watched {beats} beats only");
        assert_eq!(calls, 0, "{order:?}: allocator calls in {beats} beats");
    }
    // The count counts: one box made and dropped on purpose.
    assert_eq!(run(FrameOrder::ReplyOfLastBeat, true).0, 2);
}
