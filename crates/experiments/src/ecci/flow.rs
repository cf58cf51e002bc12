//! Data flow in cycles over a cable: from an event at a SubDevice to the controller, from its command to the SubDevice, and
//! from event to reaction.
//!
//! A SubDevice turns a byte of inputs at random instants and notes when its output follows; the controller copies the byte.
//! Both stamp CLOCK_MONOTONIC, the SubDevice in steps of 250 us.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use control::bring_up::Pump;
use control::clock::{Clock, MonotonicClock};
use control::controller::{Controller, CycleInfo};
use control::cycle::{Cycle, CycleConfiguration, FrameOrder};
use control::external::{External, Settings};
use control::link::PacketLink;
use control::profile::{Granted, RealTimeProfile};
use control::serve::Server;
use control::signal::{Input, Io, Output, SignalError, Signals};
use control::stop::StopHandle;
use ethercat::al::AlState;
use ethercat::al_status_code::AlStatusCode;
use ethercat::main_device::{Configuration, MainDevice};
use ethercat::sii::Identity;
use ethercat::time::Instant;
use ipc::client::Client;
use ipc::description::SignalDescription;
use report::{Report, Row, Section, Table};
use serde_json::json;
use simulator::application::sii::{digital_inputs, digital_outputs};
use simulator::application::{Application, ProcessDataLengths, StateChange};
use simulator::{EscDescription, Segment, SubDevice};
use types::signal::{Flow, OutputBehaviour};
use types::{Signal, ValueKind, ValueType};

use super::{Ecci, way};
use crate::cable::{Cable, FAR, NEAR};
use crate::thread::real_time;
use crate::{Context, Error};

/// Measures each order of frames with either place of the controller, and adds a table to the report.
pub(super) fn measure(ecci: &Ecci, context: &Context<'_>, report: &mut Report) {
    context.say("ecci: data flow over a cable");
    let mut rows = vec![
        row("humanoid paper, computed", true, ["1.5 to 2.5", "1.5", "3 to 4"].map(str::to_owned)),
        row("reply_of_last_cycle, computed", false, ["1 to 2", "0", "1 to 2"].map(str::to_owned)),
        row("wait_for_reply, computed", false, ["0 to 1", "1", "1 to 2"].map(str::to_owned)),
    ];
    let mut values = Vec::new();
    for (order, order_name) in [
        (FrameOrder::ReplyOfLastCycle, "reply_of_last_cycle"),
        (FrameOrder::WaitForReply, "wait_for_reply"),
    ] {
        for (in_thread, place) in [(true, "in the cycle's thread"), (false, "controller process")] {
            if context.stopped() {
                break;
            }
            match run(ecci, order, in_thread) {
                Ok(flow) => {
                    let name = format!("{order_name}, {place}");
                    values.push(json!({ "flow": name, "events": flow.len(), "in": ends(&flow, 0),
                                        "out": ends(&flow, 1), "all": ends(&flow, 2) }));
                    let cells = [0, 1, 2].map(|part| words(&flow, part));
                    rows.push(row(&name, false, cells));
                }
                Err(error) => {
                    report.warn(format!("data flow over a cable, {order_name}, {place}: {error}"))
                }
            }
        }
    }
    report.values.insert("flow".into(), values.into());
    report.sections.push(Section::Table(Table {
        caption: "Data flow over a cable, cycles: from 1 % to 99 % of the events, median in brackets"
            .into(),
        columns: crate::distribution::heads(
            "cycle and controller",
            &["sensor to controller", "command to actuator", "event to reaction"],
        ),
        rows,
    }));
}

fn row(name: &str, from_paper: bool, cells: [String; 3]) -> Row {
    Row { name: name.into(), cells: cells.into(), from_paper }
}

/// In, out and all of each event, in cycles.
type Flow3 = [f64; 3];

fn sorted(flow: &[Flow3], part: usize) -> Vec<f64> {
    let mut all: Vec<f64> = flow.iter().map(|it| it[part]).collect();
    all.sort_by(f64::total_cmp);
    all
}

/// 1 %, median, 99 %.
fn ends(flow: &[Flow3], part: usize) -> Option<[f64; 3]> {
    let all = sorted(flow, part);
    let at = |share: f64| all.get(((all.len().max(1) - 1) as f64 * share).round() as usize).copied();
    Some([at(0.01)?, at(0.5)?, at(0.99)?])
}

fn words(flow: &[Flow3], part: usize) -> String {
    ends(flow, part)
        .map_or("-".to_owned(), |[low, median, high]| format!("{low:.2} to {high:.2} ({median:.2})"))
}

/// When what happened.
#[derive(Default)]
struct Stamps {
    events: Vec<Instant>,
    seen: Vec<Instant>,
    reactions: Vec<Instant>,
}

type Shared = Arc<Mutex<Stamps>>;

fn stamp(shared: &Shared, add: impl FnOnce(&mut Stamps)) {
    add(&mut shared.lock().unwrap_or_else(PoisonError::into_inner));
}

fn run(ecci: &Ecci, order: FrameOrder, in_thread: bool) -> Result<Vec<Flow3>, Error> {
    let cable = Cable::lay()?;
    let mut server = cable.far.within(|| Server::open(FAR).map_err(Error::other))?;
    let mut link =
        cable.near.within(|| PacketLink::open(NEAR, Duration::from_secs(5)).map_err(Error::other))?;
    let (shared, over) = (Shared::default(), Arc::new(AtomicBool::new(false)));
    let events = (ecci.samples / 100).clamp(20, 200);
    let stop = StopHandle::new();
    let mut segment = segment(&shared, events, &stop);
    let serving = thread::spawn({
        let over = Arc::clone(&over);
        move || server.run(&mut segment, &over).map(drop)
    });
    let ran = conduct(ecci, order, in_thread, &shared, &mut link, &stop);
    over.store(true, Ordering::Relaxed);
    let served = serving.join().map_err(|_| Error::other("the thread of the SubDevice panicked"))?;
    ran?;
    served.map_err(Error::other)?;
    let stamps = shared.lock().unwrap_or_else(PoisonError::into_inner);
    let cycles = |from: Instant, to: Instant| to.since(from).as_secs_f64() / PERIOD.as_secs_f64();
    let all = stamps.events.iter().zip(&stamps.seen).zip(&stamps.reactions);
    Ok(all
        .map(|((&event, &seen), &done)| [cycles(event, seen), cycles(seen, done), cycles(event, done)])
        .collect())
}

fn conduct(
    ecci: &Ecci,
    order: FrameOrder,
    in_thread: bool,
    shared: &Shared,
    link: &mut PacketLink,
    stop: &StopHandle,
) -> Result<(), Error> {
    let configuration = Configuration { target: AlState::Op, period: PERIOD, ..Configuration::default() };
    let mut main_device = MainDevice::new(configuration).map_err(Error::other)?;
    Pump { main_device: &mut main_device, link, clock: &MonotonicClock, stop: stop.flag() }
        .bring_up(Duration::from_secs(10), |_| ())
        .map_err(Error::other)?;
    let described = |name: &str| SignalDescription {
        name: name.into(),
        kind: ValueKind::Unsigned,
        ..Default::default()
    };
    let (mut builder, folder) =
        way::builder(0, vec![described("event"), described("reaction")]).map_err(Error::other)?;
    let end = builder.controller();
    let (_ends, server) = builder.open().map_err(Error::other)?;
    let (controller, process): (Box<dyn Controller>, _) = if in_thread {
        (Box::new(Echo { shared: Arc::clone(shared), input: None, output: None, last: 0 }), None)
    } else {
        let settings = Settings { deadline: PERIOD * 3 / 4, max_late: 1000, axes: Vec::new() };
        let mut process =
            Client::open(server.path()).map_err(Error::other)?.controller().map_err(Error::other)?;
        let shared = Arc::clone(shared);
        let profile = real_time(Some(ecci.priority.saturating_sub(1).max(1)), ecci.cpu);
        let profile = RealTimeProfile { cpu: None, ..profile };
        let serve = move || {
            let _granted = Granted::ask(&profile);
            let mut last = 0;
            while let Some(turn) = process.wait() {
                let level = turn.request.signals.first().map_or(0, |signal| signal.word);
                note_change(&shared, &mut last, level);
                if let Some(output) = turn.answer.outputs.last_mut() {
                    *output = Some(level);
                }
                turn.send();
            }
        };
        (Box::new(External::new(end, settings)), Some(thread::spawn(serve)))
    };
    let cycles = Some(MOST_CYCLES);
    let configuration = CycleConfiguration { order, cycles, ..CycleConfiguration::every(PERIOD) };
    let profile = real_time(Some(ecci.priority), ecci.cpu);
    let ended = thread::scope(|scope| {
        let cycle = scope.spawn(|| -> Result<(), Error> {
            let _granted = Granted::ask(&profile);
            let (mut cycle, _observer) =
                Cycle::new(main_device, link, MonotonicClock, &[], controller, configuration)
                    .map_err(Error::other)?;
            cycle.set_signals(signals()).map_err(Error::other)?;
            cycle.run(stop).failure.map_or(Ok(()), |error| Err(Error::other(error)))
        });
        cycle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    drop((server, folder));
    process.map_or(Ok(()), |process| process.join().map_err(|_| Error::other("the process panicked")))?;
    ended
}

fn note_change(shared: &Shared, last: &mut u64, level: u64) {
    if std::mem::replace(last, level) != level {
        stamp(shared, |stamps| stamps.seen.push(MonotonicClock.now()));
    }
}

/// Copies the event to the reaction, in the cycle's thread. Its lock is one that nobody holds for long; it is no controller
/// for a robot.
struct Echo {
    shared: Shared,
    input: Option<Input<u8>>,
    output: Option<Output<u8>>,
    last: u64,
}

impl Controller for Echo {
    fn init(&mut self, signals: &Signals) -> Result<(), SignalError> {
        self.input = Some(signals.input("event")?);
        self.output = Some(signals.output("reaction")?);
        Ok(())
    }

    fn update(&mut self, _: CycleInfo, io: &mut Io<'_>) {
        if let (Some(input), Some(output)) = (self.input, self.output) {
            let level = io.get(input);
            note_change(&self.shared, &mut self.last, level.into());
            io.set(output, level);
        }
    }
}

fn signals() -> Vec<Signal> {
    let signal = |name: &str, flow| Signal {
        name: name.into(),
        sub_device: 0,
        bit_offset: 0,
        value_type: ValueType::Unsigned(8),
        unit: String::new(),
        scaling: None,
        range: None,
        flow,
    };
    vec![signal("event", Flow::Input), signal("reaction", Flow::Output(OutputBehaviour::default()))]
}

fn segment(shared: &Shared, events: usize, stop: &StopHandle) -> Segment {
    let identity = Identity { vendor_id: 0xFFFF_0B01, product_code: 0x0E02, revision: 1, serial: 0 };
    let mut sii = digital_outputs(identity, "Probe", 8);
    sii.mapping.inputs = digital_inputs(identity, "Probe", 8).mapping.inputs;
    let probe = Probe {
        shared: Arc::clone(shared),
        left: events,
        next: None,
        level: 0,
        answered: 0,
        random: fastrand::Rng::with_seed(4),
        stop: stop.clone(),
    };
    Segment::new(vec![SubDevice::new(EscDescription::default(), sii.image().emit(), Box::new(probe))])
}

/// Turns its inputs over at random instants, one event after the reaction to the one before.
struct Probe {
    shared: Shared,
    left: usize,
    next: Option<Instant>,
    level: u8,
    answered: u8,
    random: fastrand::Rng,
    stop: StopHandle,
}

impl Application for Probe {
    fn process_data_lengths(&self) -> ProcessDataLengths {
        ProcessDataLengths { outputs: 1, inputs: 1 }
    }

    fn enter(&mut self, _: &StateChange) -> Result<(), AlStatusCode> {
        Ok(())
    }

    fn step(&mut self, now: Instant, outputs: Option<&[u8]>, inputs: &mut [u8]) {
        let Some(&[output]) = outputs else { return };
        if self.level == self.answered {
            let random = &mut self.random;
            let next = *self.next.get_or_insert_with(|| {
                now + PERIOD * 4 + Duration::from_nanos(random.u64(..PERIOD.as_nanos() as u64))
            });
            if self.left == 0 {
                self.stop.stop();
            } else if now >= next {
                self.left -= 1;
                self.level ^= 1;
                stamp(&self.shared, |stamps| stamps.events.push(now));
            }
        } else if output == self.level {
            (self.answered, self.next) = (self.level, None);
            stamp(&self.shared, |stamps| stamps.reactions.push(now));
        }
        if let Some(input) = inputs.first_mut() {
            *input = self.level;
        }
    }
}

/// Long beside the steps of the SubDevice.
const PERIOD: Duration = Duration::from_millis(4);

/// Cycles after which a machine too busy to react is given up.
const MOST_CYCLES: u64 = 10_000;
