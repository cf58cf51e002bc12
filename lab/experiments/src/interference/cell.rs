//! One cell: one period under one load, with the cycle, the observer and the load in processes of
//! their own.

use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::jitter::BusObserver;
use record::recording::{Header, RecordingWriter};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::edges::edges_of_file;
use super::judge::{Judgement, judge_file, judge_stream};
use super::{Beside, Interference, Places};
use crate::child::ChildProcess;
use crate::load::processes::Work;
use crate::load::{HostMemory, Load, Loads, gpu};
use crate::{Context, Error};

/// Results of a cell.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Cell {
    pub(super) period: Duration,
    pub(super) load: String,
    pub(super) judgement: Judgement,
    /// Summary printed by the cycle; null if it was stopped before.
    pub(super) run: Value,
    /// Work of the load meanwhile.
    #[serde(default)]
    pub(super) work: Option<Work>,
    /// Place of the load in a sweep.
    #[serde(default)]
    pub(super) swept: Option<Swept>,
}

/// Place of a cell in a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Swept {
    pub(super) kind: SweptSize,
    pub(super) size: f64,
}

/// Size that is swept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum SweptSize {
    /// Copies to a GPU from pinned memory, MB.
    Pinned,
    /// Copies to a GPU from ordinary memory, MB.
    Pageable,
    /// Memory bandwidth, read and written, GB/s.
    Memory,
}

impl Swept {
    /// Place of a load that is one of a sweep, by its size or its work.
    pub(super) fn of(load: Load, work: Option<&Work>) -> Option<Self> {
        let (kind, size) = match load {
            Load::GpuCopies(HostMemory::Pinned, size) => (SweptSize::Pinned, gpu::SIZES[size] as f64 / 1e6),
            Load::GpuCopies(_, size) => (SweptSize::Pageable, gpu::SIZES[size] as f64 / 1e6),
            // Each byte copied is read and written.
            Load::Memory | Load::MemoryPart(_) => (SweptSize::Memory, work?.rate * 2.0 * 1.048_576e-3),
            _ => return None,
        };
        Some(Self { kind, size })
    }
}

impl SweptSize {
    pub(super) const ALL: [Self; 3] = [Self::Pinned, Self::Pageable, Self::Memory];

    pub(super) const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Pinned => ("copies from pinned memory", "MB"),
            Self::Pageable => ("copies from memory that is not pinned", "MB"),
            Self::Memory => ("memory bandwidth used, read and written", "GB/s"),
        }
    }
}

/// Name of the recording of the observer.
pub(super) fn name(period: Duration, beside: &Beside) -> String {
    format!("interference-{}us-{}", period.as_nanos() as f64 / 1e3, beside.name)
}

/// Name of the cycle's recording that belongs to it.
fn cycle_name(name: &str) -> String {
    format!("{name}-cycle")
}

/// Runs the cell, and keeps it if it is whole.
pub(super) fn run(
    experiment: &Interference,
    context: &Context,
    places: &Places,
    robot: &Path,
    (period, beside): (Duration, &Beside),
) -> Result<Cell, Error> {
    let name = name(period, beside);
    let cell = measure(experiment, context, places, robot, (period, beside))?;
    if !context.stopped() {
        context.keep(&name, &cell)?;
    }
    Ok(cell)
}

fn measure(
    experiment: &Interference,
    context: &Context,
    places: &Places,
    robot: &Path,
    (period, beside): (Duration, &Beside),
) -> Result<Cell, Error> {
    let samples = experiment.samples(period);
    let name = name(period, beside);
    let children = Children { experiment, context, places, robot, period, samples };
    if samples > experiment.most_rows {
        return children.stream(&name, beside);
    }
    let path = context.fresh_path(&name)?;
    let mut observer = children.observe(&path)?;
    await_file(context, &mut observer, &path)?;
    let run = children.run_cycle(&name, beside, &mut observer)?;
    observer.finish()?;
    let mut judgement = judge_file(&path, samples)?;
    // A run that was stopped before Op has none.
    let cycle = context.path(&cycle_name(&name));
    if cycle.exists() {
        judgement.edges = edges_of_file(&cycle)?;
    }
    Ok(children.cell(beside, judgement, run))
}

/// Summary of the cycle, and the work of the load.
type Ran = (Value, Option<Work>);

/// Settings of a cell's processes.
struct Children<'a> {
    experiment: &'a Interference,
    context: &'a Context<'a>,
    places: &'a Places,
    robot: &'a Path,
    period: Duration,
    samples: u64,
}

impl Children<'_> {
    /// Runs a series too long to keep, as [`run`] does.
    fn stream(&self, name: &str, beside: &Beside) -> Result<Cell, Error> {
        // The observer writes into a pipe.
        let output = Path::new("/dev/stdout");
        let mut observer = self.observe(output)?;
        let stream = observer.take_output().ok_or_else(|| Error::other("the observer has no output"))?;
        let histogram = self.context.fresh_path(&format!("{name}-histogram"))?;
        let samples = self.samples;
        let judge = thread::spawn(move || {
            let mut saved = Instant::now();
            let mut failed = None;
            let judged = judge_stream(BufReader::new(stream), samples, |observer| {
                if saved.elapsed() >= SAVE_EVERY && failed.is_none() {
                    failed = save(observer, &histogram).err();
                    saved = Instant::now();
                }
            });
            (judged, failed, histogram)
        });
        let run = self.run_cycle(name, beside, &mut observer)?;
        observer.finish()?;
        let (judged, failed, histogram) =
            judge.join().map_err(|_| Error::other("the reader of the observer panicked"))?;
        if let Some(error) = failed {
            return Err(error);
        }
        let judgement = judged.map_err(|error| Error::Recording { path: output.to_owned(), error })?;
        save_periods(&judgement.jitter.period_histogram, judgement.jitter.period_ns, &histogram)?;
        Ok(self.cell(beside, judgement, run))
    }

    /// Starts the observer, which answers as the SubDevices.
    fn observe(&self, recording: &Path) -> Result<ChildProcess, Error> {
        // The file of an earlier cell of this name must not be taken for this one's.
        if recording.extension().is_some() {
            let _ = std::fs::remove_file(recording);
        }
        let mut command = Command::new(&self.context.programs.onbeat);
        command.arg("simulate").arg(self.robot).args(["--with-parent", "--iface", &self.places.observer]);
        command.args(["--period", &nanoseconds(self.period)]);
        command.arg("--record").arg(recording);
        if let Some(cpu) = self.experiment.observer_cpu {
            command.args(["--cpu", &cpu.to_string()]);
        }
        self.places.at_observer(move || ChildProcess::start(command))
    }

    /// Starts the load, runs the cycle to its end, and stops the load.
    fn run_cycle(&self, name: &str, beside: &Beside, observer: &mut ChildProcess) -> Result<Ran, Error> {
        let loads: Vec<Load> = beside.load.into_iter().cycle().take(beside.processes).collect();
        let mut loads = Loads::start(self.context, &loads)?;
        let mut command = Command::new(&self.context.programs.onbeat);
        command.arg("run").arg(self.robot).args(["--json", "--with-parent", "--iface", &self.places.cycle]);
        command.args(["--period", &nanoseconds(self.period), "--cycles", &self.samples.to_string()]);
        if let Some(cpu) = self.experiment.cpu {
            command.args(["--cpu", &cpu.to_string()]);
        }
        if self.samples <= self.experiment.most_rows {
            let recording = self.context.fresh_path(&cycle_name(name))?;
            command.args(["--signals", "named", "--record"]).arg(recording);
        }
        command.args(&self.experiment.options);
        let mut cycle = self.places.at_cycle(move || ChildProcess::start_and_listen(command))?;
        let begin = Instant::now();
        let longest = self.period.mul_f64(self.samples as f64 * 4.0) + TIMEOUT;
        while !cycle.is_over() {
            observer.still_goes_on()?;
            if let Some(why) = loads.ended().first() {
                return Err(Error::other(format_args!("{name}: {why}")));
            }
            if begin.elapsed() > longest {
                return Err(Error::other(format_args!(
                    "{name}: {} cycles of {:?} have not come to an end within {longest:?}: the machine is too busy for \
                     this period",
                    self.samples, self.period
                )));
            }
            if !self.context.wait(Duration::from_millis(50)) {
                break;
            }
        }
        let work = loads.end();
        let run = match cycle.finish_with(|said| serde_json::from_str(said).ok()) {
            // A cycle stopped before Op prints no summary.
            Err(_) if self.context.stopped() => Value::Null,
            said => said?,
        };
        Ok((run, work))
    }

    fn cell(&self, beside: &Beside, judgement: Judgement, (run, work): Ran) -> Cell {
        let swept = beside.load.and_then(|load| Swept::of(load, work.as_ref()));
        Cell { period: self.period, load: beside.title.clone(), judgement, run, work, swept }
    }
}

/// Waits until the observer has opened its interface and started its file.
fn await_file(context: &Context, observer: &mut ChildProcess, path: &Path) -> Result<(), Error> {
    let begin = Instant::now();
    while !path.exists() {
        observer.still_goes_on()?;
        if begin.elapsed() > TIMEOUT || !context.wait(Duration::from_millis(10)) {
            return Err(Error::other(format_args!(
                "{}: the observer has not begun its recording",
                path.display()
            )));
        }
    }
    Ok(())
}

/// Saves the periods of a running series.
fn save(observer: &BusObserver, path: &Path) -> Result<(), Error> {
    save_periods(observer.period_histogram(), observer.period_ns(), path)
}

/// Writes the frequency of each period, atomically.
fn save_periods(
    periods: &crate::jitter::DeviationHistogram,
    period_ns: u64,
    path: &Path,
) -> Result<(), Error> {
    let unfinished: PathBuf = path.with_extension("unfinished");
    let mut facts = record::Facts::new();
    facts.insert("period_ns".into(), period_ns.into());
    facts.insert("resolution".into(), "each deviation is known to 0.1 %".into());
    let header = Header {
        what: "period-histogram".into(),
        columns: ["deviation_ns", "count"].map(str::to_owned).into(),
        facts,
    };
    let write = || {
        let file = std::io::BufWriter::new(std::fs::File::create(&unfinished)?);
        let mut file = RecordingWriter::begin(file, &header)?;
        for (deviation_ns, count) in periods.entries() {
            file.row(&[deviation_ns, i64::try_from(count).unwrap_or(i64::MAX)])?;
        }
        let mut end = record::Facts::new();
        if let Some((minimum, maximum)) = periods.extremes() {
            end.insert("minimum_ns".into(), minimum.into());
            end.insert("maximum_ns".into(), maximum.into());
        }
        end.insert("periods".into(), periods.count().into());
        file.finish(&end)?;
        std::fs::rename(&unfinished, path)
    };
    write().map_err(|error| Error::file(path, error))
}

/// Exact period for the command line.
fn nanoseconds(period: Duration) -> String {
    format!("{}ns", period.as_nanos())
}

/// Interval at which a long series is saved.
const SAVE_EVERY: Duration = Duration::from_secs(600);

/// Overhead of a cell in addition to its cycles: processes start, the bus comes up, they end.
pub(super) const AROUND: Duration = Duration::from_secs(3);

/// Longest wait for a bring-up, also on a machine under load.
const TIMEOUT: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_has_its_place_by_its_size_or_its_work() {
        let place = |load, work: Option<&Work>| Swept::of(load, work).map(|it| (it.kind, it.size));
        assert_eq!(place(Load::GpuCopies(HostMemory::Pinned, 4), None), Some((SweptSize::Pinned, 2.6)));
        assert_eq!(place(Load::GpuCopies(HostMemory::Pageable, 0), None), Some((SweptSize::Pageable, 0.5)));
        let work = Work { rate: 1000.0, what: "MiB copied".to_owned() };
        let (kind, size) = place(Load::MemoryPart(25), Some(&work)).unwrap();
        assert!(kind == SweptSize::Memory && (size - 2.097_152).abs() < 1e-9, "{size}");
        assert_eq!(place(Load::Memory, None), None, "it told nothing");
        assert_eq!(place(Load::Cpu, Some(&work)), None);
    }
}
