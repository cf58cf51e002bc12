//! The experiments' command line, one file each.

pub(crate) mod analyse;
mod continued;
mod culprit;
mod devices;
mod ecci;
mod interference;
mod interrupt;
mod ipc;
mod man;
mod navigation;
pub(crate) mod report;
mod tuning;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ::report::Report;
use clap::{Args, Subcommand};
use onbeat_experiments::{Context, Error, Programs, Progress, kept};

use cli::failure::Failure;
use cli::output;
use cli::stop::Stop;

#[derive(Subcommand, Debug)]
pub(crate) enum Measure {
    /// Worth of priority, memory lock, CPU shield and spinning sleep each, unloaded and under load
    Tuning(tuning::Tuning),
    /// Period jitter of the bus under load, seen by an independent observer at the other end of the
    /// cable
    Interference(interference::Interference),
    /// Two periodic tasks on one CPU beside their computed response times
    Tasks(devices::Tasks),
    /// Our pacer beside cyclictest: the same priority, CPU and period, in turns
    Wakeup(interrupt::Wakeup),
    /// From an interrupt to user code: timers, frames, a GPIO line
    Interrupt(interrupt::Interrupt),
    /// Cost of semaphores, mutexes, queues, pipes, futexes, eventfds and our own shared-memory
    /// interface
    Ipc(ipc::Ipc),
    /// A message through a port: from a real-time task to an ordinary one, and back, with each way
    /// to wake it
    Xddp(ipc::Xddp),
    /// Cost to the cycle of sharing its state with 0, 1, 8 and 64 readers: our shared-memory
    /// interface beside mutexes
    Ecci(ecci::Ecci),
    /// The service robot's five devices, each a real-time task and an ordinary one: periods,
    /// responses, utilisation
    Devices(devices::Devices),
    /// A robot round an obstacle: the actuator's period in one ordinary process and through the IPC
    Navigation(navigation::Navigation),
    /// An omnidirectional robot on its path, by the convolution-based generator
    Omni(navigation::Omni),
    /// Cost of a cycle by the number of its SubDevices, axes and signals
    Cost(ipc::Cost),
    /// Six servo drives for a minute: T_period, T_jitter, T_exec
    Servo(tuning::Servo),
    /// Put one of the experiments' loads on this machine until it is ended
    #[command(hide = true)]
    Load(culprit::Load),
    /// Drive a base along the course of `navigation`
    #[command(hide = true)]
    Pilot(navigation::Pilot),
    /// Answer a cycle of `ecci` as its controller process
    #[command(hide = true)]
    Answer(ecci::Answer),
    /// Take a CPU from a cycle now and then, to try out `onbeat run --explain`
    Culprit(culprit::Culprit),
    /// Write the manual pages of `onbeat` and `onbeat-measure` into a folder
    #[command(hide = true)]
    Man(man::Man),
}

impl Measure {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        match self {
            Self::Tuning(it) => it.execute(),
            Self::Interference(it) => it.execute(),
            Self::Tasks(it) => it.execute(),
            Self::Wakeup(it) => it.execute(),
            Self::Interrupt(it) => it.execute(),
            Self::Ipc(it) => it.execute(),
            Self::Xddp(it) => it.execute(),
            Self::Ecci(it) => it.execute(),
            Self::Devices(it) => it.execute(),
            Self::Navigation(it) => it.execute(),
            Self::Omni(it) => it.execute(),
            Self::Cost(it) => it.execute(),
            Self::Servo(it) => it.execute(),
            Self::Load(it) => it.execute(),
            Self::Pilot(it) => it.execute(),
            Self::Answer(it) => it.execute(),
            Self::Culprit(it) => it.execute(),
            Self::Man(it) => it.execute(),
        }
    }
}

/// Options of every experiment.
#[derive(Args, Clone, Debug)]
pub(crate) struct Common {
    /// Folder for raw data and the report; without it measurements/NAME-DATE-TIME
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Print the report as JSON instead of text
    #[arg(long)]
    json: bool,
}

impl Common {
    /// Makes the folder, runs the experiment, saves its report, prints it.
    pub(crate) fn conduct(
        &self,
        name: &str,
        experiment: impl FnOnce(&Context) -> Result<Report, Error>,
    ) -> Result<(), Failure> {
        self.conduct_cells(name, None, experiment)
    }

    /// The same; `continues` resumes an experiment with kept cells.
    fn conduct_cells(
        &self,
        name: &str,
        continues: Option<bool>,
        experiment: impl FnOnce(&Context) -> Result<Report, Error>,
    ) -> Result<(), Failure> {
        let stop = Stop::listen()?;
        let directory = self.out.clone().unwrap_or_else(|| {
            Path::new("measurements").join(format!("{name}-{}", date_and_time(SystemTime::now())))
        });
        onbeat_experiments::runner::make_directory(&directory)
            .map_err(|error| Failure::new(format!("{error}; choose another folder with --out")))?;
        if continues == Some(false) {
            kept::forget(&directory)?;
            continued::begin(&directory, name)?;
        }
        let context = Context {
            directory: directory.clone(),
            programs: Programs::of_this()?,
            stop: stop.flag(),
            say: &|line| output::say(line),
            progress: Progress::default(),
            continues: continues == Some(true),
        };
        let go_on = || match continues {
            Some(_) => format!("; `onbeat measure {name} --continue {}` continues", directory.display()),
            None => String::new(),
        };
        let mut report = match experiment(&context) {
            Ok(report) => report,
            Err(error) if context.stopped() => {
                return Err(Failure::new(format!("stopped: {error}{}", go_on())).or_code(STOPPED));
            }
            Err(error) if kept::any(&directory) => return Err(Failure::new(format!("{error}{}", go_on()))),
            Err(error) => return Err(error.into()),
        };
        if context.stopped() {
            report.warn("stopped before its end: the numbers are of what had run by then");
        }
        ::report::save(&report, &directory)?;
        let printed = output::print(if self.json { report.json() + "\n" } else { report.text() });
        output::say(format_args!("raw data and report in {}", directory.display()));
        let stopped = match context.stopped() {
            true => Err(Failure::new(format!("stopped before its end{}", go_on())).or_code(STOPPED)),
            false => Ok(()),
        };
        Failure::both(printed, stopped)
    }
}

/// Exit code of an experiment that was stopped before its end; what it had measured is reported.
const STOPPED: u8 = 3;

/// Options of an experiment of cells, which are kept as they are measured.
#[derive(Args, Clone, Debug)]
pub(crate) struct Cells {
    #[command(flatten)]
    common: Common,

    /// Continue the interrupted run in this folder: its settings, and its missing cells
    #[arg(long = "continue", value_name = "DIR", conflicts_with = "out")]
    continued: Option<PathBuf>,

    /// The folder of --out has a run to continue
    #[arg(long, hide = true, requires = "out")]
    resume: bool,
}

impl Cells {
    /// As [`Common::conduct`] does, with the cells that are missing.
    pub(crate) fn conduct(
        &self,
        name: &str,
        experiment: impl FnOnce(&Context) -> Result<Report, Error>,
    ) -> Result<(), Failure> {
        match &self.continued {
            Some(directory) => continued::go_on(directory, name),
            None => self.common.conduct_cells(name, Some(self.resume), experiment),
        }
    }
}

/// Options of the thread that an experiment measures with.
#[derive(Args, Clone, Copy, Debug)]
struct Thread {
    /// SCHED_FIFO priority of the measuring thread
    #[arg(long, value_name = "1-99", default_value = "80", value_parser = clap::value_parser!(u8).range(1..=99))]
    priority: u8,

    #[command(flatten)]
    cpu: Cpu,
}

/// Option of the CPU that an experiment measures on.
#[derive(Args, Clone, Copy, Debug)]
struct Cpu {
    /// CPU of the measuring threads; without it the last one this process may use
    #[arg(long = "cpu", value_name = "CPU")]
    given: Option<usize>,
}

impl Cpu {
    fn number(self) -> usize {
        self.given.unwrap_or_else(onbeat_experiments::thread::default_cpu)
    }
}

/// A duration on the command line, as in robot files.
fn time(text: &str) -> Result<Duration, String> {
    types::duration::parse(text).map_err(|error| error.to_string())
}

/// Time from one turn of a measurement to the next, or that a turn takes: between them a stop is
/// looked for.
fn turn(text: &str) -> Result<Duration, String> {
    match time(text)? {
        turn if turn <= LONGEST_TURN => Ok(turn),
        _ => Err(format!("found \"{text}\", expected {} at most", types::duration::format(LONGEST_TURN))),
    }
}

const LONGEST_TURN: Duration = Duration::from_secs(1);

/// A time that something lasts.
fn lasting(text: &str) -> Result<Duration, String> {
    types::duration::parse_lasting(text)
}

/// The UTC date and time of a folder's name, as `20261121-074027`.
fn date_and_time(now: SystemTime) -> String {
    let text = humantime::format_rfc3339_seconds(now).to_string();
    text.trim_end_matches('Z').replace(['-', ':'], "").replace('T', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_named_by_utc() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_246_827);
        assert_eq!(date_and_time(now), "20261121-074027");
    }
}
