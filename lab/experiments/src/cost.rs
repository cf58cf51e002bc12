//! Cost of a cycle against the number of its SubDevices, axes and signals: its own work, without
//! wire, simulation and sleep.

mod bench;
mod cases;
mod exchange;
mod fit;
mod sweep;

use std::io;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use record::{CycleRecord, Statistics};
use report::{Report, Row, Section, Table};
use rt::profile::{Granted, RealTimeProfile};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::bench::Measured;
use self::cases::Case;
use crate::distribution::heads;
use crate::raw::{Raw, facts};
use crate::surroundings::Surroundings;
use crate::thread::real_time;
use crate::{Context, Error};

/// Settings of the experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Cycles of each round of a bus, at most [`Cost::MOST_CYCLES`].
    pub cycles: usize,
    /// Rounds; the buses take turns.
    pub rounds: usize,
    /// Most SubDevices, axes, signals of a bus.
    pub largest: usize,
    /// `SCHED_FIFO` priority of the measuring thread; `None` for an ordinary one.
    pub priority: Option<u8>,
    /// CPU of the measuring thread.
    pub cpu: usize,
}

/// Buses of each table, by what varies.
const NUMBERS: [usize; 4] = [1, 10, 100, 1_000];

/// Time that a cycle takes with its simulation, for the time left.
const EACH: Duration = Duration::from_micros(100);

impl Cost {
    /// Most cycles of a round: the ring of a cycle's records holds them.
    pub const MOST_CYCLES: usize = 7_000;

    /// Runs the experiment.
    ///
    /// # Errors
    /// A bus that does not come up, or a file that cannot be written.
    pub fn run(&self, context: &Context) -> Result<Report, Error> {
        let surroundings = Surroundings::begin(context);
        let cases: Vec<Case> = cases(self.largest);
        let mut found: Vec<CostFound> = cases.iter().map(|_| CostFound::default()).collect();
        let mut raws = cases.iter().map(|case| raw(context, *case)).collect::<Result<Vec<_>, _>>()?;
        let cycles = u32::try_from(self.cycles * cases.len()).unwrap_or(u32::MAX);
        context.progress.plan("cost", vec![EACH * cycles; self.rounds.max(1)]);
        for round in 1..=self.rounds.max(1) {
            let measure = || self.round(context, &cases);
            let Some(times) = context.cell(&format!("round-{round}"), measure)? else { break };
            for ((times, found), raw) in times.iter().zip(&mut found).zip(&mut raws) {
                raw.append(&[&times.collect, &times.process, &times.transmit, &times.whole])?;
                found.add(times);
            }
        }
        for raw in raws {
            raw.finish(facts([]))?;
        }
        let mut report = report(&cases, &found);
        surroundings.end(&mut report);
        Ok(report)
    }

    /// Measures each bus, until the user requests a stop.
    fn round(&self, context: &Context, cases: &[Case]) -> Result<Vec<Times>, Error> {
        let measured = cases.iter().map(|case| self.measure(*case, context.stop));
        let whole = measured.map_while(Result::transpose);
        whole.map(|measured| Ok(Times::of(&measured?))).collect()
    }

    /// Measures one bus on a dedicated thread; `None` once the user requests a stop.
    fn measure(&self, case: Case, stop: &AtomicBool) -> Result<Option<Measured>, Error> {
        let cycles = self.cycles.clamp(1, Self::MOST_CYCLES);
        let profile = RealTimeProfile { ..real_time(self.priority, self.cpu) };
        let work = move || {
            let bench = case.bench()?;
            let _granted = Granted::ask(&profile);
            bench.measure(cycles, stop)
        };
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("cost".into()).spawn_scoped(scope, work);
            let thread = thread.map_err(|error: io::Error| Error::other(format_args!("cost: {error}")))?;
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

fn cases(largest: usize) -> Vec<Case> {
    let numbers = |most: usize| NUMBERS.into_iter().filter(move |number| *number <= most.min(largest));
    let terminals = numbers(1_000).map(Case::Terminals);
    let axes = numbers(100).map(Case::Axes);
    let signals = std::iter::once(0).chain(numbers(1_000)).map(Case::Signals);
    let numbers = sweep::NUMBERS.into_iter().filter(move |number| *number <= largest);
    let exchange = numbers.flat_map(|number| sweep::BYTES.map(|bytes| Case::Exchange(number, bytes)));
    terminals.chain(axes).chain(signals).chain(exchange).collect()
}

/// Times of one bus in one round, ns.
#[derive(Serialize, Deserialize)]
struct Times {
    collect: Vec<u64>,
    process: Vec<u64>,
    transmit: Vec<u64>,
    /// C + P + T.
    execution: Vec<u64>,
    whole: Vec<u64>,
    /// Frames of a cycle.
    frames: f64,
}

impl Times {
    fn of(measured: &Measured) -> Self {
        let column = |of: fn(&CycleRecord) -> u64| measured.records.iter().map(of).collect();
        Self {
            collect: column(CycleRecord::collect_time),
            process: column(CycleRecord::process_time),
            transmit: column(CycleRecord::transmit_time),
            execution: column(CycleRecord::execution_time),
            whole: column(|record| record.end_ns - record.start_ns),
            frames: measured.frames,
        }
    }
}

/// Statistics of one bus.
#[derive(Default)]
struct CostFound {
    collect: Statistics,
    process: Statistics,
    transmit: Statistics,
    /// C + P + T.
    execution: Statistics,
    whole: Statistics,
    frames: f64,
}

impl CostFound {
    fn add(&mut self, times: &Times) {
        for (statistics, times) in [
            (&mut self.collect, &times.collect),
            (&mut self.process, &times.process),
            (&mut self.transmit, &times.transmit),
            (&mut self.execution, &times.execution),
            (&mut self.whole, &times.whole),
        ] {
            (0..).zip(times).for_each(|(place, &ns)| statistics.record(ns, place));
        }
        self.frames = times.frames;
    }

    fn cells(&self, number: usize, empty: Option<f64>) -> Vec<String> {
        let median = |statistics: &Statistics| statistics.summary().p50.map(|ns| ns as f64);
        let whole = self.whole.summary();
        let each = median(&self.whole).zip(empty).map(|(whole, empty)| (whole - empty) / number as f64);
        let times = [
            median(&self.collect),
            median(&self.process),
            median(&self.transmit),
            whole.p50.map(|ns| ns as f64),
            whole.p99_9.map(|ns| ns as f64),
        ];
        let mut cells = vec![format!("{:.0}", self.frames)];
        cells.extend(times.map(report::numbers::microseconds));
        cells.push(each.filter(|_| number > 1).map_or_else(String::new, |ns| format!("{ns:.1}")));
        cells
    }
}

fn raw(context: &Context, case: Case) -> Result<Raw, Error> {
    let (mut what, number) = (named(case).0.to_owned(), case.number());
    if let Case::Exchange(_, bytes) = case {
        what = format!("{what}-of-{bytes}-bytes");
    }
    let columns = ["collect_ns", "process_ns", "transmit_ns", "whole_ns"];
    Raw::begin(
        context,
        &format!("{what}-{number}"),
        "cost",
        &columns,
        facts([(named(case).0, json!(number))]),
    )
}

const fn named(case: Case) -> (&'static str, usize) {
    let what = match case {
        Case::Terminals(_) => "sub_devices",
        Case::Axes(_) => "axes",
        Case::Signals(_) => "signals",
        Case::Exchange(..) => "exchange",
    };
    (what, case.number())
}

fn report(cases: &[Case], found: &[CostFound]) -> Report {
    let mut report = Report {
        experiment: "cost".into(),
        title: "Cost of a cycle".into(),
        measured: "a cycle's own work, from its wake-up to its last stamp: frames taken apart, values read, the \
                   controller, outputs written, frames built, state published; the link only copies frames, and the \
                   SubDevices are simulated outside the measured time"
            .into(),
        good: "time grows with what is on the bus, and no faster".into(),
        source: Some("the servo paper, T_exec".into()),
        found: Some("T_exec of 94 us (PREEMPT_RT) and 96 us (Xenomai) on average with six drives of 24 bytes, in the kernel and with a card; its dependence on their number and bytes is said, not measured".into()),
        ..Report::default()
    };
    let tables = [
        ("sub_devices", "SubDevice", "Digital terminals of 8 channels in a line, no axis, no signal"),
        ("axes", "axis", "Servo drives, each an axis in csp that is supervised and holds its position"),
        (
            "signals",
            "signals",
            "128 digital terminals; a controller reads or sets every signal in each cycle",
        ),
    ];
    for (what, head, caption) in tables {
        let rows = || cases.iter().zip(found).filter(|(case, _)| named(**case).0 == what);
        let smallest = rows().next().and_then(|(_, found)| found.whole.summary().p50);
        let empty = smallest.map(|ns| ns as f64);
        let row = |(case, found): (&Case, &CostFound)| Row {
            name: case.number().to_string(),
            cells: found.cells(case.number(), empty),
            from_paper: false,
        };
        let others = ["frames", "C", "P", "T", "whole", "whole 99.9 %", "each, ns"];
        report.sections.push(Section::Table(Table {
            caption: format!(
                "{caption}; medians, us; each: the median beyond the first row's, per {}",
                &head[..head.len() - 1]
            ),
            columns: heads(&what.replace("sub_devices", "SubDevices"), &others),
            rows: rows().map(row).collect(),
        }));
        for (case, found) in rows() {
            report.values.insert(format!("{what}_{}_ns", case.number()), value(found));
        }
    }
    sweep::append(cases, found, &mut report);
    report
}

fn value(found: &CostFound) -> Value {
    let whole = found.whole.summary();
    json!({ "frames": found.frames, "median": whole.p50, "p99_9": whole.p99_9, "maximum": whole.maximum })
}
