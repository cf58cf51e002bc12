//! `onbeat run`: a robot's cycle.

mod chronicle;
mod conclusion;
mod controller;
mod event_file;
mod explain;
mod headline;
mod hold;
mod interface;
mod log;
mod outcome;
mod parts;
mod recording;
mod reporter;
mod service;
mod tasks;
mod trouble;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::TypedValueParser;
use ethercat::main_device::{BusError, SubDeviceError};
use ethercat_linux::bring_up::BringUpError;
use onbeat::compose::link::{self, SimulatedTime};
use onbeat::{Control, Detail, Error};
use robot::{FileError, FrameOrder, Overrides, OverrunPolicy, Profile, RobotConfig};

use crate::arguments::{Wire, check_cpu, lasting, named, time};
use crate::bus::or_take_over;
use crate::failure::Failure;
use crate::left_behind;
use crate::stop::Stop;
use crate::words::live_line::LiveLine;
use crate::words::moment::TimeOfDay;
use conclusion::{Finished, without_op};
use log::Log;
use reporter::RunReporter;
use trouble::Standing;

/// Behind the options in the help.
pub(crate) const HOW_IT_ENDS: &str = "\
Ctrl-C (or SIGTERM, SIGHUP, SIGQUIT, ...) stops the axes and takes the bus to Init; a second signal
ends the run within 2 s, a third at once.

Exit codes; of several the highest:
  0    all went well
  1    it could not run, was ended by overrun \"stop\", or a requested file is incomplete
  2    the command line cannot be read
  3    an axis ended in fault, was stopped by supervision or for lack of a command,
       or was not enabled or disabled as commanded
  4    the bus ended lost, or a SubDevice outside Op
  130  ended by force";

#[derive(Args, Debug)]
pub(crate) struct Run {
    /// Robot file; without one the built-in six servo axes
    #[arg(value_name = "ROBOT.toml")]
    robot: Option<PathBuf>,

    /// Stop after this time in Op; without it and --cycles Ctrl-C stops
    #[arg(long = "for", value_name = "TIME", value_parser = lasting, conflicts_with = "cycles")]
    duration: Option<Duration>,

    /// Stop after this many cycles in Op
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    cycles: Option<u64>,

    /// Run at this period instead of the robot file's
    #[arg(long, value_name = "TIME", value_parser = time)]
    period: Option<Duration>,

    /// Reply that a cycle works with, instead of the robot file's
    #[arg(long, value_parser = frame_order(), value_name = "ORDER")]
    frame_order: Option<FrameOrder>,

    /// Start with a separate controller process instead of the robot file's controller
    #[arg(long, value_enum, value_name = "WHERE", conflicts_with = "no_ipc")]
    controller: Option<controller::Where>,

    /// Write errors and the result only: no live line, no notices, no events that are no errors
    #[arg(short, long)]
    quiet: bool,

    /// Write details too: what bounds each axis in its drive
    #[arg(short, long, conflicts_with = "quiet")]
    verbose: bool,

    /// End with one JSON object instead of the table
    #[arg(long)]
    json: bool,

    /// Append events to this file, a JSON object a line; at 16 MiB renamed to FILE.1, up to FILE.4
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,

    /// Moved to `onbeat serve`, path /metrics
    #[arg(long, value_name = "ADDRESS:PORT", hide = true)]
    metrics: Option<String>,

    /// Name of the IPC for other programs, or path of its socket; default: the robot's name
    #[arg(long, value_name = "NAME", conflicts_with = "no_ipc")]
    ipc: Option<String>,

    /// Let no other program attach
    #[arg(long)]
    no_ipc: bool,

    /// Folder for history, positions and counts of resets over restarts; default with --iface: the
    /// folder of systemd, else `~/.local/state/onbeat`
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,

    /// Report what delays the cycle's thread and the devices' tasks: preemptions, sleeps, page
    /// faults, system calls; `--watch=backtraces` says where
    #[arg(long, value_parser = detail(), value_name = "DETAIL", num_args = 0..=1, require_equals = true,
          default_missing_value = "counts")]
    watch: Option<Detail>,

    /// Script of faults for the simulated bus, one a line, as `1.5s power off drive-3 for 500ms`;
    /// times count from its start; `onbeat fault list` prints all forms
    #[arg(long, value_name = "FILE",
          conflicts_with_all = ["iface", "loss", "late", "duplicate", "reorder", "corrupt"])]
    faults: Option<PathBuf>,

    /// Let `onbeat fault` find the simulated bus, by this name
    #[arg(long, value_name = "NAME",
          conflicts_with_all = ["iface", "loss", "late", "duplicate", "reorder", "corrupt"])]
    control: Option<String>,

    /// Time of the simulated bus; default: bus
    #[arg(long, value_name = "TIME", value_parser = simulated_time(), conflicts_with = "iface")]
    time: Option<SimulatedTime>,

    /// Stop when the process that started this one is gone: for scripts and supervisors
    #[arg(long)]
    with_parent: bool,

    #[command(flatten)]
    hold: Hold,

    #[command(flatten)]
    recording: recording::Recording,

    #[command(flatten)]
    explain: explain::Explain,

    #[command(flatten)]
    wire: Wire,
}

/// Frame orders, with their help.
fn frame_order() -> impl TypedValueParser<Value = FrameOrder> {
    named(FrameOrder::ALL.map(|it| {
        let help = match it {
            FrameOrder::ReplyOfLastCycle => "Take the reply to the last cycle's frames, never wait",
            FrameOrder::WaitForReply => "Send, then wait for this cycle's own reply",
        };
        (it, it.name(), help)
    }))
}

/// Times of a simulated bus, with their help.
fn simulated_time() -> impl TypedValueParser<Value = SimulatedTime> {
    named([
        (SimulatedTime::Bus, "bus", "One period a cycle: a stall of this computer stops the bus, too"),
        (
            SimulatedTime::Fast,
            "fast",
            "As bus, without a wait between cycles: each run is the same, no client attaches",
        ),
        (SimulatedTime::Host, "host", "Time of this computer: a stall is an outage, as on a wire"),
    ])
}

/// Details of a watch, with their help.
fn detail() -> impl TypedValueParser<Value = Detail> {
    named([
        (Detail::Counts, "counts", "Count, causes and periods of disturbances"),
        (Detail::Backtraces, "backtraces", "Place of the thread at the first of each kind, too"),
    ])
}

impl Run {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        self.check_time()?;
        self.check_metrics()?;
        let mut live = LiveLine::new_quiet(self.quiet);
        let robot = self.robot()?;
        let mut log = Log::open(
            &robot,
            (self.wire.iface.as_deref(), TimeOfDay::of_run(self.time.unwrap_or_default())),
            self.events.as_deref(),
            live.voice(),
        )?;
        let outcome =
            self.finish(&robot, &mut log, &mut live).and_then(|finished| self.print(finished, &live));
        let written = log.end(&outcome);
        Failure::both(outcome, written)
    }

    /// Runs it from the first frame to the last.
    fn finish(&self, robot: &RobotConfig, log: &mut Log, live: &mut LiveLine) -> Result<Finished, Failure> {
        if self.with_parent {
            rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::INT))?;
        }
        left_behind::put_back(|line| live.say(line));
        self.explain.make_folder()?;
        let stop = Stop::listen_for_a_run(live.voice())?;
        let wire = self.wire();
        let is_alone = wire.interface.is_none() && !wire.has_faults();
        let mut reporter = RunReporter::new(robot, log, live, (is_alone, self.verbose));
        let ran = self.settings(robot, &stop).run_by(Control::AsDescribed, &mut reporter);
        let link_trouble = reporter.link_trouble().map(str::to_owned);
        let standing = |status| Standing { robot, status, link_trouble: link_trouble.as_deref() };
        let summary = match ran {
            Ok(summary) => summary,
            Err(Error::NotInOp(failed)) => {
                return Err(without_op(&standing(&failed.status), &failed, live));
            }
            Err(error) => return Err(self.or_draft(error)),
        };
        tasks::tell_disturbances(&summary.diagnosis.disturbances, live);
        self.conclude(&standing(&summary.status), &summary)
    }

    /// Names the command that has the metrics now.
    fn check_metrics(&self) -> Result<(), Failure> {
        self.metrics.as_ref().map_or(Ok(()), |address| {
            Err(Failure::new(format!(
                "--metrics {address}: `onbeat serve --listen {address}` next to the run answers Prometheus now, at \
                 http://{address}/metrics; leave out --metrics"
            )))
        })
    }

    /// Refuses what needs other programs, where the bus does not wait for them.
    fn check_time(&self) -> Result<(), Failure> {
        let asked = [
            (self.ipc.is_some(), "--ipc"),
            (self.controller.is_some(), "--controller"),
            (self.control.is_some(), "--control"),
        ];
        let other =
            asked.into_iter().find(|(is_asked, _)| *is_asked && self.time == Some(SimulatedTime::Fast));
        other.map_or(Ok(()), |(_, option)| {
            Err(Failure::new(format!(
                "--time fast with {option}: no other program attaches to a bus that does not wait; leave out one of the two"
            )))
        })
    }

    /// The link, with all its faults.
    fn wire(&self) -> link::Wire {
        let (script, control) = (self.faults.clone(), self.control.clone());
        let time = self.time.unwrap_or_default();
        link::Wire { script, control, time, ..self.wire.on_link() }
    }

    /// The library's robot, with what the command line says of its run.
    fn settings(&self, robot: &RobotConfig, stop: &Stop) -> onbeat::Robot {
        let wire = self.wire();
        let wire_is_real = wire.interface.is_some();
        let mut run = onbeat::Robot::from(robot.clone()).wire(wire).stop(stop.handle());
        if let Some(cycles) = self.cycles {
            run = run.cycles(cycles);
        }
        if let Some(duration) = self.duration {
            run = run.duration(duration);
        }
        run = self.recording.of(run);
        if let Some(name) = &self.ipc {
            run = run.ipc(name);
        }
        if self.no_ipc {
            run = run.without_ipc();
        }
        let usual = || wire_is_real.then(onbeat::state::usual_directory).flatten();
        if let Some(folder) = self.state.clone().or_else(usual) {
            run = run.state_directory(folder);
        }
        if let Some(late_above) = self.explain.late_above() {
            run = run.explain(late_above);
        }
        match self.watch {
            None => run,
            Some(detail) => run.watch(detail),
        }
    }

    /// A bus that is not as the built-in robot is probably one that a file is to be drafted for.
    fn or_draft(&self, error: Error) -> Failure {
        let other = matches!(
            &error,
            Error::BringUp(BringUpError::Bus(
                BusError::Missing { .. }
                    | BusError::Unexpected { .. }
                    | BusError::NobodyDescribed { .. }
                    | BusError::SubDevice { error: SubDeviceError::Identity { .. }, .. }
            ))
        );
        let failure = or_take_over(error);
        let place = match (&self.wire.iface, &self.wire.segment) {
            (Some(interface), _) => format!("--iface {interface}"),
            (None, Some(segment)) => format!("--segment {}", segment.display()),
            (None, None) => return failure,
        };
        if self.robot.is_some() || !other {
            return failure;
        }
        failure.and(Failure::new(format!(
            "no robot file was given, so the built-in robot of six servo drives was expected: `onbeat new {place} -o \
             robot.toml` drafts a file of what is there, `onbeat scan {place}` shows it"
        )))
    }

    /// The robot file's robot, with what the command line changes.
    fn robot(&self) -> Result<RobotConfig, Failure> {
        let overrides =
            Overrides { period: self.period, frame_order: self.frame_order, ..self.hold.overrides() };
        let read = |overrides| RobotConfig::read_or_built_in(self.robot.as_deref(), overrides);
        self.hold.check_cpus()?;
        // What the file alone is not blamed for is the command line's.
        let mut robot = read(overrides).map_err(|error| match read(Overrides::default()) {
            Ok(_) => {
                let others = read(Overrides { period: None, ..overrides });
                Failure::new(of_the_command_line(error, self.period.filter(|_| others.is_ok())))
            }
            Err(of_file) => of_file.into(),
        })?;
        if self.controller.is_some() {
            controller::put_first(&mut robot);
        }
        Ok(robot)
    }
}

/// The error of what the command line says; with the `period` that was typed, where that is what
/// the file does not go with.
fn of_the_command_line(error: FileError, period: Option<Duration>) -> FileError {
    let FileError { mut found, mut remedy, .. } = error;
    if let Some(period) = period {
        let typed = format!("--period {}", types::duration::format(period));
        if found.starts_with("period ") {
            found = typed;
        } else {
            found = format!("{typed} with {found} of the robot file");
            remedy = format!("choose another --period, or change the robot file: {remedy}");
        }
    }
    FileError { file: "the command line".to_owned(), place: None, found, remedy, ..error }
}

/// Heading the help lists them under.
const HOLD: &str = "Hold the cycle (overrides the robot file): see docs/hold.md";

// Over the robot file's `[cycle]`.
#[derive(Args, Clone, Debug, Default)]
struct Hold {
    /// Requests to the system: P priority, M memory lock, C CPU shield, S spinning sleep, or none
    #[arg(long, help_heading = HOLD, value_name = "PMCS|none")]
    profile: Option<Profile>,

    /// SCHED_FIFO priority for P
    #[arg(long, help_heading = HOLD, value_name = "1-99", value_parser = clap::value_parser!(u8).range(1..=99))]
    priority: Option<u8>,

    /// SCHED_DEADLINE for P instead: this much of every period is reserved
    #[arg(long, help_heading = HOLD, value_name = "TIME", value_parser = time, conflicts_with = "priority")]
    deadline_runtime: Option<Duration>,

    /// The CPU of the cycle; with C all else is moved away from it
    #[arg(long, help_heading = HOLD, value_name = "CPU")]
    cpu: Option<usize>,

    /// Time before each release at which S wakes up and spins
    #[arg(long, help_heading = HOLD, value_name = "TIME", value_parser = time)]
    spin_margin: Option<Duration>,

    /// Prepare the interface while the cycle runs, restore it after: see docs/links.md; needs root
    #[arg(long, help_heading = HOLD, requires = "iface")]
    prepare_nic: bool,

    /// The CPU of the interface's interrupts, for --prepare-nic; the cycle's, or with C another one
    #[arg(long, help_heading = HOLD, value_name = "CPU", requires = "iface")]
    nic_cpu: Option<usize>,

    /// Policy for releases that a cycle ran past
    #[arg(long, help_heading = HOLD, value_parser = overrun_policy(), value_name = "POLICY")]
    overrun: Option<OverrunPolicy>,
}

/// Policies of overruns, with their help.
fn overrun_policy() -> impl TypedValueParser<Value = OverrunPolicy> {
    named(OverrunPolicy::ALL.map(|it| {
        let help = match it {
            OverrunPolicy::Skip => "Skip to the next grid point",
            OverrunPolicy::CatchUp => "Run them back to back, ten at most",
            OverrunPolicy::Stop => "Stop the axes and end with an error",
        };
        (it, it.name(), help)
    }))
}

impl Hold {
    /// Refuses CPUs that this machine does not have.
    fn check_cpus(&self) -> Result<(), Failure> {
        check_cpu("--cpu", self.cpu)?;
        check_cpu("--nic-cpu", self.nic_cpu)
    }

    /// Values in the place of the robot file's.
    fn overrides(&self) -> Overrides {
        let Self { profile, priority, deadline_runtime, cpu, spin_margin, prepare_nic, nic_cpu, overrun } =
            *self;
        Overrides {
            profile,
            priority,
            deadline_runtime,
            cpu,
            spin_margin,
            prepare_nic: prepare_nic.then_some(true),
            nic_cpu,
            overrun,
            ..Overrides::default()
        }
    }
}
