//! Regularity of frames under load, measured by an independent observer (master-performance paper,
//! Tables I to III, Figures 2 to 4 and 6).
//!
//! `onbeat run` is the MainDevice, on one CPU. `onbeat simulate --record` is the observer, another
//! process on another CPU: it answers as a coupler, a terminal whose first output changes with
//! every cycle, and one that stamps the edges at its inputs, and records the kernel's receive time
//! stamp of every frame. Between them is a veth pair made for the purpose, or a real cable. The
//! loads are separate processes. [`crate::jitter`] defines the computed quantities.

mod cell;
mod edges;
mod judge;
mod sweep;
mod tables;

use std::ffi::OsString;
use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use machine::ethtool::StampingClock;
use record::RecordingReader;
use report::Report;

pub use edges::{Edges, edges_of_file};
pub use judge::Wave;
pub use judge::{Judgement, judge_file, judge_stream};

use crate::cable::{Cable, FAR, NEAR};
use crate::load::{HostMemory, Load};
use crate::runner::open;
use crate::surroundings::Surroundings;
use crate::{Context, Error};
use cell::Cell;

/// Settings of the experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interference {
    /// Robot file; `None` for the one with the fast output.
    pub robot: Option<PathBuf>,
    /// Periods, in order.
    pub periods: Vec<Duration>,
    /// Loads, in order; `None` for no load.
    pub loads: Vec<Option<Load>>,
    /// Length of each cell.
    pub length: Length,
    /// Number of cycles above which a cell's rows are evaluated as they come and not kept, except
    /// for a histogram of the periods.
    pub most_rows: u64,
    /// Processes of each load; `None` for one per CPU.
    pub load_processes: Option<usize>,
    /// Interfaces of the cycle and of the observer, joined by a cable; `None` makes a veth pair.
    pub interfaces: Option<(String, String)>,
    /// CPU of the cycle; `None` for the robot file's.
    pub cpu: Option<usize>,
    /// CPU of the observer; `None` for any.
    pub observer_cpu: Option<usize>,
    /// Additional options of `onbeat run`: profile, priority, frame order.
    pub options: Vec<OsString>,
}

/// Five million cycles: a file of a third of a gigabyte.
const MOST_ROWS: u64 = 5_000_000;

/// Length of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Number of cycles.
    Samples(u64),
    /// Duration.
    Duration(Duration),
}

impl Default for Interference {
    /// The paper's settings: every load at 1000, 500 and 250 us, a million samples each.
    fn default() -> Self {
        let loads = [Load::Cpu, Load::KernelLock, Load::BlockIo, Load::Memory, Load::Gpu(HostMemory::Both)];
        Self {
            robot: None,
            periods: [1000, 500, 250].map(Duration::from_micros).into(),
            loads: std::iter::once(None).chain(loads.map(Some)).collect(),
            length: Length::Samples(1_000_000),
            most_rows: MOST_ROWS,
            load_processes: None,
            interfaces: None,
            cpu: None,
            observer_cpu: None,
            options: Vec::new(),
        }
    }
}

impl Interference {
    /// Runs the experiment. If it is stopped, it reports the cells it has.
    ///
    /// # Errors
    /// The right to make a cable is missing, a process failed, or a recording cannot be read or
    /// written.
    pub fn run(&self, context: &Context) -> Result<Report, Error> {
        if self.periods.is_empty() || self.loads.is_empty() {
            return Err(Error::other("nothing to measure: name at least one period and one load"));
        }
        let places = Places::new(self.interfaces.as_ref())?;
        let robot = match &self.robot {
            Some(path) => path.clone(),
            None => built_in_robot(&context.directory)?,
        };
        let surroundings = Surroundings::begin(context).of_robot(Some(&robot));
        let mut report = self.heading(&places);
        let besides = self.besides(context, &mut report);
        let (mut cells, mut failures): (Vec<Cell>, Vec<Error>) = (Vec::new(), Vec::new());
        let times = self.periods.iter().flat_map(|&period| {
            let time = Duration::try_from_secs_f64(period.as_secs_f64() * self.samples(period) as f64);
            vec![time.unwrap_or(Duration::MAX).saturating_add(cell::AROUND); besides.len()]
        });
        context.progress.plan("interference", times.collect());
        for &period in &self.periods {
            for beside in &besides {
                if context.stopped() {
                    continue;
                }
                let name =
                    format!("period {period:?}, load {}, {} cycles", beside.title, self.samples(period));
                if let Some(cell) = context.kept(&cell::name(period, beside))? {
                    context.pass_over_cell(name);
                    cells.push(cell);
                    continue;
                }
                context.begin_cell(name);
                match cell::run(self, context, &places, &robot, (period, beside)) {
                    Ok(cell) => {
                        context.say(format_args!("  {}", tables::line(&cell)));
                        cells.push(cell);
                    }
                    Err(error) => {
                        context.say(format_args!("  {error}"));
                        failures.push(error);
                    }
                }
            }
        }
        // One failed cell does not lose the measured cells.
        if cells.is_empty() {
            return Err(failures
                .into_iter()
                .next()
                .unwrap_or_else(|| Error::other("stopped before the first cell")));
        }
        doubts(&cells, &mut report);
        surroundings.end(&mut report);
        failures.iter().for_each(|failure| report.warn(failure.to_string()));
        tables::fill(&cells, &mut report);
        Ok(report)
    }

    /// Number of cycles of a cell.
    fn samples(&self, period: Duration) -> u64 {
        match self.length {
            Length::Samples(samples) => samples,
            Length::Duration(duration) => {
                let cycles = duration.as_nanos().div_ceil(period.as_nanos().max(1));
                u64::try_from(cycles).unwrap_or(u64::MAX)
            }
        }
    }

    /// Loads next to the cycle in each row.
    fn besides(&self, context: &Context, report: &mut Report) -> Vec<Beside> {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let processes = self.load_processes.unwrap_or(cpus);
        let mut besides = Vec::new();
        for &load in &self.loads {
            let Some(load) = load else {
                besides.push(Beside {
                    name: "none".into(),
                    title: "none".into(),
                    load: None,
                    processes: 0,
                });
                continue;
            };
            let name = load.name().to_owned();
            let (Load::Gpu(_) | Load::GpuCopies(..)) = load else {
                besides.push(Beside { title: name.clone(), name, load: Some(load), processes });
                continue;
            };
            match find_gpu(context) {
                Ok(gpu) => {
                    if !report.conditions.iter().any(|it| it.name == "GPU") {
                        report.condition("GPU", gpu);
                    }
                    besides.push(Beside { title: name.clone(), name, load: Some(load), processes: 1 });
                }
                Err(why) => {
                    if !report.conditions.iter().any(|it| it.name == "GPU") {
                        report.condition("GPU", format!("none: {why}"));
                    }
                    // One stand-in is enough, and a row with the load itself needs none.
                    let (all, what) = match load {
                        Load::Gpu(_) => (vec![Load::Memory], name.as_str()),
                        _ => (Load::MEMORY_SWEEP.to_vec(), "gpu-sweep"),
                    };
                    for load in all.into_iter().map(Some) {
                        if !self.loads.contains(&load) && !besides.iter().any(|it: &Beside| it.load == load)
                        {
                            let name = load.map_or("", Load::name).to_owned();
                            let title = format!("{name} (replaces {what})");
                            besides.push(Beside { name, title, load, processes });
                        }
                    }
                    report.warn(format!(
                        "load {what} was not applied: {why}; memory bandwidth replaces it (load \
                         memory, memory-10 and so on)"
                    ));
                }
            }
        }
        besides
    }

    fn heading(&self, places: &Places) -> Report {
        let mut report = Report {
            experiment: "interference".to_owned(),
            title: "Period jitter of the bus under load".to_owned(),
            source: Some("the master-performance paper, Tables I to III, Figures 2 to 4 and 6".to_owned()),
            measured: "when the frame of every cycle reaches the other end of the cable, by the clock of an observer there: S, \
                       the time from one frame to the next, and J, how far each frame is from an even grid"
                .to_owned(),
            good: "J of a few us under every load, the same at every period, and no missing cycles: then loads do not reach \
                   the cycle"
                .to_owned(),
            found: Some(
                "J of up to 1.4 ms on a standard kernel, 13 us under PREEMPT_RT and 10 us under RTAI, whatever the load or the period"
                    .to_owned(),
            ),
            ..Report::default()
        };
        let cpu = |cpu: Option<usize>| cpu.map_or("any CPU".to_owned(), |cpu| format!("CPU {cpu}"));
        report.condition("cycle", format!("onbeat run on {}, {}", places.cycle, cpu(self.cpu)));
        report.condition(
            "observer",
            format!("onbeat simulate on {}, {}", places.observer, cpu(self.observer_cpu)),
        );
        let cable = match &places.cable {
            Some(_) => {
                "a veth pair between two network namespaces: a stamp is taken inside the sender's system call"
            }
            None if is_virtual(&places.observer) => {
                "a virtual one between the interfaces given: a stamp is taken inside the sender's system call"
            }
            None => "real: a stamp is taken in the observer's receive softirq, with its interrupt latency",
        };
        report.condition("cable", cable);
        report.condition("stamps", "kernel receive time stamps (SO_TIMESTAMPNS), CLOCK_REALTIME");
        report.condition("hardware stamps", hardware_stamps(places));
        if self.cpu.is_some() && self.cpu == self.observer_cpu {
            report.warn(
                "the cycle and its observer share a CPU: give them two with --cpu and --observer-cpu",
            );
        }
        report
    }
}

/// Stamps that the observer's card could take, in words.
fn hardware_stamps(places: &Places) -> String {
    let interface = places.observer.clone();
    let clock = places.at_observer(move || Ok(StampingClock::read(&interface)));
    match clock {
        Ok(Ok(Some(clock))) => {
            let number =
                clock.number.map_or("a separate clock".to_owned(), |number| format!("/dev/ptp{number}"));
            let which =
                if clock.stamps_all { "every frame" } else { "frames of a time protocol only, not these" };
            format!("not used: {} stamps {which}, by {number}", places.observer)
        }
        Ok(Ok(None)) => format!("none: {} has no clock that stamps frames", places.observer),
        Ok(Err(error)) => format!("not known: {}: {error}", places.observer),
        Err(error) => format!("not known: {}: {error}", places.observer),
    }
}

/// True of an interface that is no device: veth and its like.
fn is_virtual(interface: &str) -> bool {
    let folder = Path::new("/sys/class/net").join(interface);
    folder.exists() && !folder.join("device").exists()
}

/// Loads next to the cycle.
#[derive(Clone, Debug)]
struct Beside {
    /// Name in file names.
    name: String,
    /// Name in tables.
    title: String,
    load: Option<Load>,
    processes: usize,
}

/// Interfaces of the cycle and of the observer, and the private cable between them, if there is
/// one.
#[derive(Debug)]
struct Places {
    cycle: String,
    observer: String,
    cable: Option<Cable>,
}

impl Places {
    fn new(interfaces: Option<&(String, String)>) -> Result<Self, Error> {
        Ok(match interfaces {
            Some((cycle, observer)) => {
                Self { cycle: cycle.clone(), observer: observer.clone(), cable: None }
            }
            None => Self { cycle: NEAR.into(), observer: FAR.into(), cable: Some(Cable::lay()?) },
        })
    }

    fn at_cycle<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        match &self.cable {
            Some(cable) => cable.near.within(work),
            None => work(),
        }
    }

    fn at_observer<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        match &self.cable {
            Some(cable) => cable.far.within(work),
            None => work(),
        }
    }
}

/// Evaluates a recording made by `onbeat simulate --record`, of any MainDevice, or one of a cycle
/// that read the times of a time-stamping terminal.
///
/// # Errors
/// The file cannot be read or is no such recording.
pub fn judge(path: &Path) -> Result<Report, Error> {
    if is_of_a_cycle(path) {
        return judge_edges(path);
    }
    let judgement = judge_file(path, u64::MAX)?;
    let period = Duration::from_nanos(judgement.jitter.period_ns);
    let mut report = Report {
        experiment: "interference".to_owned(),
        title: "Period jitter of a bus".to_owned(),
        source: Some("definitions of the master-performance paper".to_owned()),
        measured: "when the frame of every cycle reached the observer that recorded it: S, the time from one frame to the \
                   next, and J, how far each frame is from an even grid"
            .to_owned(),
        good: "J of a few us, and no missing cycles".to_owned(),
        ..Report::default()
    };
    report.condition("recording", path.display().to_string());
    for (name, fact) in &judgement.facts {
        let text = fact.as_str().map_or_else(|| fact.to_string(), str::to_owned);
        report.condition(name.clone(), text);
    }
    let run = serde_json::Value::Null;
    let cell = Cell { period, load: "as recorded".to_owned(), judgement, run, work: None, swept: None };
    if cell.judgement.end.is_empty() {
        report.warn("the recording was cut off: the numbers are of what it had by then");
    }
    let cells = [cell];
    doubts(&cells, &mut report);
    tables::fill(&cells, &mut report);
    Ok(report)
}

/// True of the recording of a cycle, as `onbeat run --record` makes it.
fn is_of_a_cycle(path: &Path) -> bool {
    let reader = open(path).ok().and_then(|file| RecordingReader::open(BufReader::new(file)).ok());
    reader.is_some_and(|reader| reader.header().what == "cycle")
}

/// Evaluates the recording of a cycle that read the times of edges.
fn judge_edges(path: &Path) -> Result<Report, Error> {
    let edges = edges_of_file(path)?;
    if edges.is_empty() {
        return Err(Error::other(format_args!(
            "{}: expected a signal with the times of edges, an unsigned input of 64 bits as an EL1252 has; found none: name it in the robot \
             file, or record with --signals all",
            path.display()
        )));
    }
    let mut report = Report {
        experiment: "interference".to_owned(),
        title: "Period jitter of outputs, by the times of their edges".to_owned(),
        source: Some("definitions of the master-performance paper".to_owned()),
        measured: "when outputs that the cycle toggles rose and fell, by the clock of a terminal that stamps edges: S, the time from one edge \
                   to the next, and J, how far each edge is from an even grid"
            .to_owned(),
        good: "J of a few us, no missing edges, and the cycle's own stamps alike".to_owned(),
        ..Report::default()
    };
    report.condition("recording", path.display().to_string());
    tables::fill_edges(&edges, &mut report);
    Ok(report)
}

/// Warnings on conditions that spoil the cells.
fn doubts(cells: &[Cell], report: &mut Report) {
    for cell in cells {
        let place = format!("period {:?}, load {}", cell.period, cell.load);
        let number =
            |name: &str| cell.judgement.end.get(name).and_then(serde_json::Value::as_i64).unwrap_or(0);
        let lost = number("rows_dropped") + number("kernel_dropped");
        if lost > 0 {
            report
                .warn(format!("{place}: the observer missed {lost} frames: they count as missing cycles"));
        }
        let moved = number("clock_moved_ns");
        if moved.abs() > 1_000_000 {
            report.warn(format!(
                "{place}: the observer's clock was set by {:.3} ms meanwhile: stop what sets it, and measure again",
                moved as f64 / 1e6
            ));
        }
        if !cell.judgement.numbered {
            report.warn(
                "the frames carry no number of the cycle: cycles are distinguished by their time \
                 alone, and a cycle late by more than half a period may count as the next",
            );
        }
        for warning in crate::servo::refusals(&cell.run) {
            report.warn(warning);
        }
        if let Some(identity) = cell.judgement.jitter.identity.filter(|it| it.relative_difference() > 0.01)
        {
            report.warn(format!(
                "{place}: the two sides of the covariance identity differ by {:.1} %: the drift is too fast for the moving \
                 average",
                identity.relative_difference() * 100.0
            ));
        }
    }
}

/// Writes the robot file with the fast output and the terminal that stamps its edges, read by both
/// sides.
fn built_in_robot(directory: &Path) -> Result<PathBuf, Error> {
    let path = directory.join("time-stamps.toml");
    fs::write(&path, include_str!("../../../examples/time-stamps.toml"))
        .map_err(|error| Error::file(&path, error))?;
    Ok(path)
}

/// Name of the CUDA device, or the reason for none. Searched for in a separate process, because the
/// driver starts threads.
fn find_gpu(context: &Context) -> Result<String, String> {
    let output = Command::new(&context.programs.measure).args(["load", "gpu", "--find"]).output();
    let output = output.map_err(|error| format!("it cannot be looked for: {error}"))?;
    let text =
        |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().trim_start_matches("onbeat: ").to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

/// First and last CPU this process may use: the first for the observer, since it serves most
/// interrupts, the last for the cycle.
#[must_use]
pub fn cpus() -> (usize, usize) {
    use rustix::thread::{CpuSet, sched_getaffinity};
    let Ok(allowed) = sched_getaffinity(None) else { return (0, 0) };
    let mut cpus = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu));
    let first = cpus.next().unwrap_or(0);
    (first, cpus.next_back().unwrap_or(first))
}
