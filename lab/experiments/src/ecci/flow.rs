//! Data flow in cycles over a cable: from an event at a SubDevice to the controller, from its
//! command to the SubDevice, and from event to reaction.
//!
//! A SubDevice turns a byte of inputs at random instants and notes when its output follows. The
//! controller, in the cycle's thread or in a separate process, copies the byte. All stamp
//! CLOCK_MONOTONIC, the SubDevice in steps of 250 us.

mod probe;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::Duration;

use control::controller::Controller;
use control::cycle::{Cycle, CycleConfiguration, FrameOrder};
use control::external::{External, Settings};
use control::stop::StopHandle;
use ethercat::al::AlState;
use ethercat::main_device::{Configuration, MainDevice};
use ethercat::time::Instant;
use ethercat_linux::bring_up::Pump;
use ethercat_linux::link::PacketLink;
use ethercat_linux::serve::Server;
use ipc::description::SignalDescription;
use report::{Report, Row, Section, Table};
use rt::clock::MonotonicClock;
use rt::profile::Granted;
use schedulability::bus::{Latency, LinkRate, Network, Sampling};
use serde_json::json;
use simulator::sub_device::STEP;
use types::ValueKind;
use types::time::nanoseconds;

use self::probe::{Echo, Shared};
use super::{Ecci, answer, way};
use crate::cable::{Cable, FAR, NEAR};
use crate::paper::Paper;
use crate::thread::real_time;
use crate::{Context, Error, frames};

/// Measures each order of frames with either place of the controller, and adds a table to the
/// report.
pub(super) fn measure(ecci: &Ecci, context: &Context<'_>, report: &mut Report) -> Result<(), Error> {
    context.say("ecci: data flow over a cable");
    let paper = Paper::Humanoid.contents();
    let of_paper = paper.figures.iter().filter(|it| it.name == "Section 2").flat_map(|it| it.table().rows);
    let mut rows: Vec<Row> =
        of_paper.map(|row| Row { name: format!("{}, {}", paper.name, row.name), ..row }).collect();
    let (mut computed, mut measured) = (Vec::new(), Vec::new());
    for order in [FrameOrder::ReplyOfLastCycle, FrameOrder::WaitForReply] {
        let latency = latency(order, bus())?;
        let parts = [latency.sensor, latency.command, latency.total]
            .map(|(soonest, latest)| [soonest, latest].map(|ns| ns as f64 / nanoseconds(PERIOD) as f64));
        let [sensor, command, all] = parts;
        let name = format!("{}, computed", order.name());
        computed.push(json!({ "flow": name, "in": sensor, "out": command, "all": all }));
        let cells = parts.map(|[soonest, latest]| format!("{soonest:.2} to {latest:.2}"));
        rows.push(Row { name, cells: cells.into(), from_paper: false });
        for (in_thread, place) in [(true, "in the cycle's thread"), (false, "controller process")] {
            if context.stopped() {
                break;
            }
            let name = format!("{}, {place}", order.name());
            match run(ecci, context, order, in_thread) {
                Ok(flow) => {
                    measured.push(json!({ "flow": name, "events": flow.len(), "in": ends(&flow, 0),
                                          "out": ends(&flow, 1), "all": ends(&flow, 2) }));
                    let cells = [0, 1, 2].map(|part| words(&flow, part));
                    rows.push(Row { name, cells: cells.into(), from_paper: false });
                }
                Err(error) => report.warn(format!("data flow over a cable, {name}: {error}")),
            }
        }
    }
    report.values.insert("flow_computed".into(), computed.into());
    report.values.insert("flow".into(), measured.into());
    report.sections.push(Section::Table(Table {
        caption: "Data flow over a cable, cycles: from 1 % to 99 % of the events, median in brackets"
            .into(),
        columns: crate::distribution::heads(
            "cycle and controller",
            &["sensor to controller", "command to actuator", "event to reaction"],
        ),
        rows,
    }));
    report.sections.push(Section::Text(COMPUTED.into()));
    Ok(())
}

/// In, out and all of each event, in cycles.
type Flow3 = [f64; 3];

/// 1 %, median, 99 %.
fn ends(flow: &[Flow3], part: usize) -> Option<[f64; 3]> {
    let mut all: Vec<f64> = flow.iter().map(|it| it[part]).collect();
    all.sort_by(f64::total_cmp);
    let at = |share: f64| all.get(((all.len().max(1) - 1) as f64 * share).round() as usize).copied();
    Some([at(0.01)?, at(0.5)?, at(0.99)?])
}

fn words(flow: &[Flow3], part: usize) -> String {
    ends(flow, part)
        .map_or("-".to_owned(), |[low, median, high]| format!("{low:.2} to {high:.2} ({median:.2})"))
}

fn run(
    ecci: &Ecci,
    context: &Context<'_>,
    order: FrameOrder,
    in_thread: bool,
) -> Result<Vec<Flow3>, Error> {
    let cable = Cable::lay()?;
    let mut server = cable.far.within(|| Server::open(FAR).map_err(Error::other))?;
    let mut link =
        cable.near.within(|| PacketLink::open(NEAR, Duration::from_secs(5)).map_err(Error::other))?;
    let (shared, over) = (Shared::default(), Arc::new(AtomicBool::new(false)));
    let events = (ecci.samples / 100).clamp(20, 200);
    let stop = StopHandle::new();
    let mut segment = probe::segment(&shared, events, &stop);
    let serving = thread::spawn({
        let over = Arc::clone(&over);
        move || server.run(&mut segment, &over).map(drop)
    });
    let ran = if in_thread {
        conduct(ecci, order, Box::new(Echo::new(&shared)), &mut link, &stop).map(|()| None)
    } else {
        with_process(ecci, context, order, &mut link, &stop).map(Some)
    };
    over.store(true, Ordering::Relaxed);
    let served = serving.join().map_err(|_| Error::other("the thread of the SubDevice panicked"))?;
    let by_process = ran?;
    served.map_err(Error::other)?;
    let stamps = shared.lock().unwrap_or_else(PoisonError::into_inner);
    let seen = by_process.as_ref().unwrap_or(&stamps.seen);
    let cycles = |from: Instant, to: Instant| to.since(from).as_secs_f64() / PERIOD.as_secs_f64();
    let all = stamps.events.iter().zip(seen).zip(&stamps.reactions);
    Ok(all
        .map(|((&event, &seen), &done)| [cycles(event, seen), cycles(seen, done), cycles(event, done)])
        .collect())
}

/// With the controller in a separate process; instants at which it saw the events.
fn with_process(
    ecci: &Ecci,
    context: &Context<'_>,
    order: FrameOrder,
    link: &mut PacketLink,
    stop: &StopHandle,
) -> Result<Vec<Instant>, Error> {
    let described = |name: &str| SignalDescription {
        name: name.into(),
        kind: ValueKind::Unsigned,
        ..Default::default()
    };
    let signals = vec![described("event"), described("reaction")];
    let (end, door) = way::controlled(0, signals).map_err(Error::other)?;
    let below = ecci.priority.saturating_sub(1).max(1);
    let process = answer::Process::start(context, door.path(), Some(below))?;
    let settings = Settings { deadline: PERIOD * 3 / 4, max_late: 1000, axes: Vec::new() };
    conduct(ecci, order, Box::new(External::new(end, settings)), link, stop)?;
    drop(door);
    process.finish()
}

/// One run, from bring-up to the last event.
fn conduct(
    ecci: &Ecci,
    order: FrameOrder,
    controller: Box<dyn Controller>,
    link: &mut PacketLink,
    stop: &StopHandle,
) -> Result<(), Error> {
    let mut main_device = MainDevice::new(bus()).map_err(Error::other)?;
    Pump { main_device: &mut main_device, link, clock: &MonotonicClock, stop: stop.flag() }
        .bring_up(Duration::from_secs(10), |_| ())
        .map_err(Error::other)?;
    let cycles = Some(MOST_CYCLES);
    let configuration = CycleConfiguration { order, cycles, ..CycleConfiguration::every(PERIOD) };
    let profile = real_time(Some(ecci.priority), ecci.cpu);
    thread::scope(|scope| {
        let cycle = scope.spawn(|| -> Result<(), Error> {
            let _granted = Granted::ask(&profile);
            let (mut cycle, _observer) =
                Cycle::new(main_device, link, MonotonicClock, &[], controller, configuration)
                    .map_err(Error::other)?;
            cycle.set_signals(probe::signals()).map_err(Error::other)?;
            cycle.run(stop).failure.map_or(Ok(()), |error| Err(Error::other(error)))
        });
        cycle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn bus() -> Configuration {
    Configuration { target: AlState::Op, period: PERIOD, ..Configuration::default() }
}

const COMPUTED: &str = "Computed as `onbeat analyse` does: an event falls anywhere into a period; with reply_of_last_cycle it waits \
                        for a frame and is read at the next release, where the command leaves behind 100 us of computing; with \
                        wait_for_reply it is read when the frame is back (its bytes at 100 Mbit/s, 1 us in the SubDevice), and \
                        the command leaves at the next release. The SubDevice adds up to 250 us to either way.";

/// Long compared to the steps of the SubDevice.
const PERIOD: Duration = Duration::from_millis(4);

/// Cycles after which a machine too busy to react is given up.
const MOST_CYCLES: u64 = 10_000;

/// Delays of the parts of an event's path, with this configuration of the bus.
fn latency(order: FrameOrder, configuration: Configuration) -> Result<Latency, Error> {
    let period_ns = nanoseconds(configuration.period);
    let segment = probe::segment(&Shared::default(), 0, &StopHandle::new());
    let network = Network {
        rate: LinkRate::Mbit100,
        frames: frames::of_a_cycle(segment, configuration)?.whole,
        sub_devices: 1,
        forward_ns: FORWARD_NS,
        cables_ns: 0,
    };
    let step = nanoseconds(STEP);
    let sampling = Sampling::Free { input_ns: step, output_ns: step };
    Ok(network.way(period_ns, order, COMPUTING_NS, sampling).latency())
}

/// Delay of a frame in the SubDevice, there and back: the default of `onbeat analyse`.
const FORWARD_NS: u64 = 1_000;

/// Computing time of the MainDevice in a cycle, likewise; a controller process's answer is within.
const COMPUTING_NS: u64 = 100_000;

#[cfg(test)]
mod tests {
    use super::*;
    use ethercat::al::AlState;
    use std::time::Duration;

    #[test]
    fn steps_of_the_subdevice_and_frame_order_differ() {
        let of = |order, milliseconds| {
            let period = Duration::from_millis(milliseconds);
            let configuration = Configuration { target: AlState::Op, period, ..Configuration::default() };
            latency(order, configuration).unwrap()
        };
        for period in [1, 4] {
            let period_ns = period * 1_000_000;
            let [last, wait] =
                [FrameOrder::ReplyOfLastCycle, FrameOrder::WaitForReply].map(|it| of(it, period));
            // Either takes from one to two periods, and two steps of the SubDevice at most.
            for order in [last, wait] {
                assert_eq!(order.total, (period_ns, 2 * period_ns + 500_000), "{order:?}");
            }
            // Inputs wait for a release, or outputs do.
            assert_eq!(last.command, (COMPUTING_NS, COMPUTING_NS + 250_000), "{last:?}");
            let (soonest, _) = wait.sensor;
            assert!((FORWARD_NS..COMPUTING_NS).contains(&soonest), "the frame is on the wire: {wait:?}");
            assert_eq!(wait.command.0 + soonest, period_ns, "{wait:?}");
        }
    }
}
