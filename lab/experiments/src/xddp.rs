//! Time of a message through a port, between a real-time task and an ordinary one (service-robot
//! paper, XDDP).

mod exchange;

use std::time::Duration;

use ipc::channel::{Kind, Wake};
use report::{Report, Row, Section, Table};
use serde_json::{Value, json};

use self::exchange::{Exchange, MESSAGE, Passed};
use crate::distribution::{self, Durations, heads};
use crate::load::{Load, Loads};
use crate::paper::Paper;
use crate::raw::{Raw, facts};
use crate::surroundings::Surroundings;
use crate::thread::{default_cpu, real_time};
use crate::{Context, Error};
use types::time::nanoseconds;

/// Settings of the experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Xddp {
    /// Messages of each port.
    pub samples: usize,
    /// Time between two messages: the period of the real-time task.
    pub interval: Duration,
    /// Ports without load, and under load.
    pub loaded: Vec<bool>,
    /// Pause of the helper thread between two looks.
    pub pause: Duration,
    /// `SCHED_FIFO` priority of the real-time task.
    pub priority: u8,
    /// CPU of the real-time task.
    pub cpu: usize,
}

impl Default for Xddp {
    fn default() -> Self {
        Self {
            samples: 2_000,
            interval: Duration::from_millis(1),
            loaded: vec![false, true],
            pause: Duration::from_micros(50),
            priority: 80,
            cpu: default_cpu(),
        }
    }
}

/// Loads next to the ports, one process of each for each CPU: the paper's stress is on CPU and
/// memory.
const STRESS: [Load; 2] = [Load::Cpu, Load::Memory];

/// Measured port.
struct Cell {
    name: String,
    loaded: bool,
    passed: Passed,
}

impl Xddp {
    /// Runs the experiment. If it is stopped, it reports the ports it has.
    ///
    /// # Errors
    /// The shared-memory interface, a thread or a load cannot be started, or a file cannot be
    /// written.
    pub fn run(&self, context: &Context) -> Result<Report, Error> {
        let surroundings = Surroundings::begin(context);
        let (mut cells, mut doubts) = (Vec::new(), Vec::new());
        for &loaded in &self.loaded {
            let cpus = std::thread::available_parallelism().map_or(1, usize::from);
            let stress = if loaded { STRESS.repeat(cpus) } else { Vec::new() };
            let mut loads = Loads::start(context, &stress)?;
            for (name, kind, wake) in self.ports() {
                if context.stopped() {
                    break;
                }
                context.say(format_args!("xddp: {name}, {}", circumstances(loaded)));
                let cell = Cell { passed: self.exchange(kind, wake).run(context.stop)?, name, loaded };
                self.keep(context, &cell)?;
                cells.push(cell);
            }
            doubts.extend(loads.ended());
        }
        let mut report = self.report(&cells);
        surroundings.end(&mut report);
        for cell in &cells {
            cell.passed.refusals.iter().for_each(|refusal| report.warn(refusal.as_str()));
            if cell.passed.lost > 0 {
                let (lost, name) = (cell.passed.lost, &cell.name);
                report.warn(format!(
                    "{lost} messages of {name} had no answer within {:?}",
                    exchange::TIMEOUT
                ));
            }
        }
        doubts.into_iter().for_each(|doubt| report.warn(doubt));
        Ok(report)
    }

    /// Ports by name.
    fn ports(&self) -> Vec<(String, Kind, Wake)> {
        let kinds = [
            ("messages", Kind::Message { size: MESSAGE, depth: 16 }),
            ("stream", Kind::Stream { size: 16 * MESSAGE }),
        ];
        let wakes =
            [("look", Wake::Look), ("event", Wake::Event), ("helper", Wake::Helper { every: self.pause })];
        let with = |(kind, of)| wakes.map(|(wake, it)| (format!("{kind}, {wake}"), of, it));
        kinds.into_iter().flat_map(with).collect()
    }

    fn exchange(&self, kind: Kind, wake: Wake) -> Exchange {
        let profile = real_time(Some(self.priority), self.cpu);
        Exchange { kind, wake, samples: self.samples, interval: self.interval, profile }
    }

    /// Records a port.
    fn keep(&self, context: &Context, cell: &Cell) -> Result<(), Error> {
        let Passed { sends, there, back, round_trips, .. } = &cell.passed;
        let settings = facts([
            ("port", cell.name.as_str().into()),
            ("loaded", cell.loaded.into()),
            ("interval_ns", nanoseconds(self.interval).into()),
            ("priority", self.priority.into()),
            ("cpu", self.cpu.into()),
        ]);
        let name = format!("{}-{}", cell.name.replace(", ", "-"), circumstances(cell.loaded));
        let columns = ["send_ns", "there_ns", "back_ns", "round_trip_ns"];
        let mut raw = Raw::begin(context, &name, "message", &columns, settings)?;
        raw.append(&[sends, there, back, round_trips])?;
        raw.finish(facts([]))
    }

    fn report(&self, cells: &[Cell]) -> Report {
        let mut report = Report {
            experiment: "xddp".into(),
            title: "A message through a port: from a real-time task to an ordinary one, and back".into(),
            source: Some("the service-robot paper, XDDP (Figure 2, Table 1)".into()),
            measured: format!(
                "for a message of {MESSAGE} bytes in every period of a real-time task: the call that sends it, the time to the ordinary \
                 task's reading it, the way back, and both ways together"
            ),
            good: "a send of a microsecond or two at most, whatever the load; with an event or a \
                helper thread, tens of microseconds to the other side where polling takes up to a \
                millisecond"
                .into(),
            found: Some(
                "no message by itself; with the device's driver in between 21 us (actuator) to 755 us (range finder) there and back"
                    .into(),
            ),
            ..Report::default()
        };
        report.condition(
            "real-time task",
            format!(
                "SCHED_FIFO {}, every {} us, CPU {}",
                self.priority,
                self.interval.as_micros(),
                self.cpu
            ),
        );
        report.condition("ordinary task and server", "ordinary scheduling, any CPU");
        let pause = self.pause.as_micros();
        report.condition(
            "ways to wake",
            format!("look: the server looks every 1 ms; event: the send wakes it; helper: a thread looks every {pause} us and wakes it"),
        );
        report.condition("samples", format!("{} messages a row", self.samples));
        for &loaded in &self.loaded {
            tables(cells, loaded, &mut report);
        }
        report.sections.push(calls(cells));
        report.sections.push(Section::Text(NOTES.into()));
        Paper::ServiceRobot.append(&["Table 1", "Figures 5 and 6"], &mut report);
        for &loaded in &self.loaded {
            let all = durations(cells, loaded, |it| &it.round_trips);
            let caption = format!("There and back, {}", circumstances(loaded));
            report.sections.extend(distribution::plots(&caption, &all));
        }
        report.values.insert("ports".into(), cells.iter().map(values).collect());
        report
    }
}

const NOTES: &str = "The real-time task waits for its answer by one more call (Port::wait), as a task of the paper does; a cycle never waits. \
                     The server and the ordinary task have to get a CPU: under load, most of the time is the wait for it.";

const fn circumstances(loaded: bool) -> &'static str {
    if loaded { "loaded" } else { "idle" }
}

type Of = fn(&Passed) -> &Vec<u64>;

const QUANTITIES: [(&str, Of); 4] = [
    ("The call that sends", |it| &it.sends),
    ("From the real-time task to the ordinary one", |it| &it.there),
    ("From the ordinary task to the real-time one", |it| &it.back),
    ("There and back", |it| &it.round_trips),
];

fn durations(cells: &[Cell], loaded: bool, of: Of) -> Vec<Durations> {
    let cells = cells.iter().filter(|cell| cell.loaded == loaded);
    cells.map(|cell| Durations::new(cell.name.as_str(), of(&cell.passed).clone())).collect()
}

fn tables(cells: &[Cell], loaded: bool, report: &mut Report) {
    for (caption, of) in QUANTITIES {
        let caption = format!("{caption}, us, {}", circumstances(loaded));
        report.sections.push(distribution::table(&caption, "port", &durations(cells, loaded, of)));
    }
}

/// Table of the real-time side's system calls.
fn calls(cells: &[Cell]) -> Section {
    let row = |cell: &Cell| {
        let Passed { woken, sent, waits, .. } = cell.passed;
        let each = |count: u64| format!("{:.3}", count as f64 / sent.max(1) as f64);
        let name = format!("{}, {}", cell.name, circumstances(cell.loaded));
        Row { name, cells: vec![sent.to_string(), each(woken), each(waits)], from_paper: false }
    };
    Section::Table(Table {
        caption: "System calls of the real-time task for each message, in addition to its sleep: \
            at most one to wake the other side, none by polling or with a helper thread"
            .into(),
        columns: heads("port", &["messages", "to wake the other side", "to wait for the answer"]),
        rows: cells.iter().map(row).collect(),
    })
}

fn values(cell: &Cell) -> Value {
    let it = &cell.passed;
    let statistics = |ns: &[u64]| Durations::new("", ns.to_vec()).statistics();
    json!({
        "port": cell.name,
        "loaded": cell.loaded,
        "send_ns": statistics(&it.sends),
        "there_ns": statistics(&it.there),
        "back_ns": statistics(&it.back),
        "round_trip_ns": statistics(&it.round_trips),
        "sent": it.sent,
        "woken": it.woken,
        "waits": it.waits,
        "lost": it.lost,
    })
}
