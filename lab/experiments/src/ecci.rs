//! Cost of sharing the cycle's state with many readers (humanoid paper, ECCI).
//!
//! The paper's Motion Controller makes one request a cycle, which writes the state and reads the
//! commands of all axes, in a cache that other tasks read, too, behind a mutex with priority
//! inheritance. It is compared here with two other ways, each with 0, 1, 8 and 64 readers that
//! never pause.

mod answer;
mod flow;
mod process;
mod turn;
mod verdict;
mod way;

use std::time::Duration;

use report::Report;
use serde_json::json;

pub use self::answer::{Answering, READY};
use self::turn::{Taken, Turn};
use self::way::Way;
pub(crate) use self::way::{open_ipc, state_of};
use crate::raw::{Raw, facts};
use crate::surroundings::Surroundings;
use crate::thread::{default_cpu, real_time};
use crate::{Context, Error};

/// Settings of the experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ecci {
    /// Requests of each cell in each of its two passes.
    pub samples: usize,
    /// Parts of each pass; the cells alternate part by part.
    pub rounds: usize,
    /// Time between two requests.
    pub interval: Duration,
    /// Axes of the state; the humanoid has 59.
    pub axes: usize,
    /// `SCHED_FIFO` priority of the cycle's thread; readers and commanding thread are ordinary
    /// threads.
    pub priority: u8,
    /// CPU of the cycle's thread; the others run wherever the scheduler puts them.
    pub cpu: usize,
}

impl Default for Ecci {
    fn default() -> Self {
        Self {
            samples: 20_000,
            rounds: 4,
            interval: Duration::from_micros(250),
            axes: 59,
            priority: 80,
            cpu: default_cpu(),
        }
    }
}

/// Numbers of readers of the cells.
const READERS: [usize; 4] = [0, 1, 8, 64];

/// Passes of each cell; the difference between two equal measurements is the noise.
const PASSES: usize = 2;

impl Ecci {
    /// Runs the experiment.
    ///
    /// # Errors
    /// A mechanism is missing on this system, a thread cannot be started, or a file cannot be
    /// written.
    pub fn run(&self, context: &Context) -> Result<Report, Error> {
        let surroundings = Surroundings::begin(context);
        let mut cells = cells();
        let mut raws = cells.iter().map(|cell| self.begin(context, cell)).collect::<Result<Vec<_>, _>>()?;
        let rounds = self.rounds.max(1);
        let mut chance = fastrand::Rng::with_seed(SEED);
        let turn = self.turn(&cells[0], context);
        let requests =
            u32::try_from((turn.samples + turn.warm_up) * cells.len() * PASSES).unwrap_or(u32::MAX);
        context.progress.plan("ecci", (0..rounds).map(|_| self.interval * requests).collect());
        for round in 0..rounds {
            context.begin_cell("a turn of every cell");
            // The order changes each round, so that no cell always follows the same one.
            let mut order: Vec<(usize, usize)> =
                (0..cells.len()).flat_map(|cell| (0..PASSES).map(move |pass| (cell, pass))).collect();
            chance.shuffle(&mut order);
            for (place, pass) in order {
                if context.stopped() {
                    break;
                }
                let cell = &mut cells[place];
                let taken = self.turn(cell, context).take().map_err(|error| {
                    Error::other(format_args!(
                        "ecci, {}, {} readers: {error}",
                        cell.way.name(),
                        cell.readers
                    ))
                })?;
                let many = |value: usize| vec![value as u64; taken.requests.len()];
                raws[place].append(&[&many(pass), &many(round), &taken.requests])?;
                cell.add(pass, taken);
            }
        }
        for (raw, cell) in raws.into_iter().zip(&cells) {
            raw.finish(facts([
                ("reads", cell.reads.into()),
                ("torn", cell.torn.into()),
                ("waits", cell.waits.into()),
            ]))?;
        }
        let mut report = self.report(&cells);
        process::measure(self, context, &mut report)
            .map_err(|error| Error::other(format_args!("ecci, controller process: {error}")))?;
        flow::measure(self, context, &mut report)?;
        surroundings.end(&mut report);
        Ok(report)
    }

    fn turn<'a>(&self, cell: &Cell, context: &Context<'a>) -> Turn<'a> {
        let samples = self.samples.div_ceil(self.rounds.max(1)).max(1);
        Turn {
            way: cell.way,
            readers: cell.readers,
            axes: self.axes,
            samples,
            warm_up: samples / 10 + 10,
            interval: self.interval,
            profile: real_time(Some(self.priority), self.cpu),
            stop: context.stop,
        }
    }

    fn begin(&self, context: &Context, cell: &Cell) -> Result<Raw, Error> {
        let settings = facts([
            ("way", cell.way.name().into()),
            ("readers", cell.readers.into()),
            ("axes", self.axes.into()),
            ("interval_ns", (self.interval.as_nanos() as u64).into()),
            ("priority", self.priority.into()),
            ("cpu", self.cpu.into()),
        ]);
        let name = format!("{}-{}", cell.way.slug(), cell.readers);
        Raw::begin(context, &name, "request", &["pass", "round", "request_ns"], settings)
    }

    fn report(&self, cells: &[Cell]) -> Report {
        let mut report = Report {
            experiment: "ecci".into(),
            title: "What the cycle pays to share its state".into(),
            source: Some("the humanoid paper's ECCI: one request a cycle, many readers".into()),
            measured: format!(
                "how long the cycle's one request a cycle takes - publish the state of {} axes, take the newest \
                 command - while readers copy that state without a pause",
                self.axes
            ),
            good: "short; and the same however many read".into(),
            ..Report::default()
        };
        report
            .condition("cycle", format!("SCHED_FIFO {} on CPU {}, memory locked", self.priority, self.cpu));
        report.condition("readers", "ordinary threads, each attached by itself, on any CPU");
        report.condition("commands", "a new one every 5 ms, from an ordinary thread");
        report.condition("time between requests", format!("{} us", self.interval.as_micros()));
        let rounds = self.rounds.max(1);
        report.condition(
            "samples",
            format!(
                "{} requests a cell in each of 2 passes, in {rounds} rounds, each in another order; a tenth more \
                 before each turn as warm-up, which begins when every reader has read",
                self.samples
            ),
        );
        verdict::all(cells, &mut report);
        report.values =
            facts([("axes", self.axes.into()), ("cells", cells.iter().map(Cell::value).collect())]);
        self.doubts(cells, &mut report);
        report
    }

    fn doubts(&self, cells: &[Cell], report: &mut Report) {
        for refusal in cells.iter().flat_map(|cell| &cell.refusals) {
            report.warn(refusal.clone());
        }
        for cell in cells.iter().filter(|cell| cell.torn > 0) {
            report.warn(format!(
                "{}, {} readers: {} states or commands were of two cycles at once: that is a defect, report it",
                cell.way.name(),
                cell.readers,
                cell.torn
            ));
        }
        for cell in cells {
            let taken: usize = cell.passes.iter().map(Vec::len).sum();
            if taken < self.samples * PASSES {
                report.warn(format!(
                    "{}, {} readers: {taken} of {} requests only: they took too long, and the turns were ended",
                    cell.way.name(),
                    cell.readers,
                    self.samples * PASSES
                ));
            }
        }
    }
}

/// Three mechanisms with each number of readers, and our interface under the same load without
/// readers.
fn cells() -> Vec<Cell> {
    let ways = [Way::Ipc, Way::Inheriting, Way::Plain].into_iter();
    let all = ways.flat_map(|way| READERS.into_iter().map(move |readers| (way, readers)));
    let beside = READERS.into_iter().skip(1).map(|readers| (Way::IpcUnread, readers));
    all.chain(beside).map(|(way, readers)| Cell::new(way, readers)).collect()
}

/// Measurements of one way with some readers.
#[derive(Clone, Debug)]
struct Cell {
    way: Way,
    readers: usize,
    /// Durations of the requests in each pass, ns.
    passes: [Vec<u64>; PASSES],
    reads: u64,
    torn: u64,
    /// Readers that the cycle waited for.
    waits: u64,
    elapsed: Duration,
    refusals: Vec<String>,
}

impl Cell {
    fn new(way: Way, readers: usize) -> Self {
        let passes = Default::default();
        Self {
            way,
            readers,
            passes,
            reads: 0,
            torn: 0,
            waits: 0,
            elapsed: Duration::ZERO,
            refusals: Vec::new(),
        }
    }

    fn add(&mut self, pass: usize, taken: Taken) {
        self.passes[pass].extend(taken.requests);
        self.reads += taken.reads;
        self.torn += taken.torn;
        self.waits += taken.waits;
        self.elapsed += taken.elapsed;
        self.refusals.extend(taken.refusals);
        self.refusals.dedup();
    }

    /// Durations of both passes.
    fn all(&self) -> Vec<u64> {
        self.passes.concat()
    }

    /// Whole states read per second by all readers together.
    fn reads_per_second(&self) -> f64 {
        self.reads as f64 / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    fn value(&self) -> serde_json::Value {
        let marks = |ns: &[u64]| {
            let it = verdict::Marks::of(ns);
            json!({ "samples": ns.len(), "median_ns": it.median, "low_99_99_ns": it.tail, "maximum_ns": it.maximum })
        };
        json!({
            "way": self.way.name(),
            "readers": self.readers,
            "request": marks(&self.all()),
            "passes": self.passes.iter().map(|pass| marks(pass)).collect::<Vec<_>>(),
            "reads_per_second": self.reads_per_second(),
            "torn": self.torn,
            "waited_for": self.waits,
        })
    }
}

const SEED: u64 = 59;
