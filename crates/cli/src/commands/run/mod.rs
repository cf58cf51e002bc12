//! `onbeat run`: a robot's cycle.

mod beside;
mod chronicle;
mod controller;
mod door;
mod explain;
mod hold;
mod interface;
mod name;
mod outcome;
mod prepare;
mod recorder;
mod running;
mod tasks;
mod teller;
mod trouble;
mod watch;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use ethercat::al::AlState;
use robot::{AfterOutage, Robot};
use runtime::controller::Controller;
use runtime::verdict::{COULD_NOT_RUN, Circumstances};

use crate::arguments::{Wire, time};
use crate::compose::{configuration, link, robot_file, seam};
use crate::failure::Failure;
use crate::limits;
use crate::output;
use crate::stop::Stop;
use crate::words::live_line::LiveLine;
use hold::{Hold, OverrunOutcome};
use outcome::Outcome;
use running::Ran;
use trouble::Standing;

/// Behind the options in the help.
pub(crate) const HOW_IT_ENDS: &str = "\
Ctrl-C (or SIGTERM, SIGHUP, SIGQUIT, ...) brings the axes to rest and the bus to Init; a second one within 2 s, a third ends at once.

Exit codes; of several the highest:
  0    all went well
  1    it could not run, was ended by overrun \"stop\", or a file asked for is not whole
  2    the command line cannot be read
  3    an axis ended in fault, stopped by supervision, or not as it was asked: enabled, or disabled
  4    the bus ended lost, or a SubDevice outside Op
  130  ended by force";

#[derive(Args, Debug)]
pub(crate) struct Run {
    /// Robot file; without one the built-in six servo axes
    #[arg(value_name = "ROBOT.toml")]
    robot: Option<PathBuf>,

    /// Stop after this time in Op; without it and --cycles Ctrl-C stops
    #[arg(long = "for", value_name = "TIME", value_parser = time, conflicts_with = "cycles")]
    duration: Option<Duration>,

    /// Stop after this many cycles in Op
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    cycles: Option<u64>,

    /// Run at this period instead of the robot file's
    #[arg(long, value_name = "TIME", value_parser = time)]
    period: Option<Duration>,

    /// Which reply a beat works with, instead of the robot file's
    #[arg(long, value_enum, value_name = "ORDER")]
    frame_order: Option<Order>,

    /// Begin with a controller in a process of its own instead of the robot file's: that of the file if it has one
    #[arg(long, value_enum, value_name = "WHERE", conflicts_with = "no_seam")]
    controller: Option<controller::Where>,

    /// End with one JSON object instead of the table
    #[arg(long)]
    json: bool,

    /// Write every measured beat to this file, for `onbeat report` and `onbeat analyse`
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// Name of the seam that other programs attach to, or path of its socket; without it the robot's name
    #[arg(long, value_name = "NAME", conflicts_with = "no_seam")]
    seam: Option<String>,

    /// Let no other program attach
    #[arg(long)]
    no_seam: bool,

    /// Watch what keeps the cycle's thread and the devices' tasks from their work and their wait: preemptions, sleeps,
    /// page faults, system calls; `--watch=backtraces` says where they were
    #[arg(long, value_enum, value_name = "DETAIL", num_args = 0..=1, require_equals = true,
          default_missing_value = "counts")]
    watch: Option<Watching>,

    /// Stop when the process that started this one is gone (experiments run their columns so)
    #[arg(long, hide = true)]
    with_parent: bool,

    #[command(flatten)]
    hold: Hold,

    #[command(flatten)]
    explain: explain::Explain,

    #[command(flatten)]
    wire: Wire,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Order {
    /// Take the reply to the last beat's frames, never wait
    ReplyOfLastBeat,
    /// Send, then wait for this beat's own reply
    WaitForReply,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Watching {
    /// How many, by what, in which periods
    Counts,
    /// Where a thread was at the first of each kind, too
    Backtraces,
}

impl Run {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        let mut live = LiveLine::new();
        let finished = self.finish(None, &mut live)?;
        let text = if self.json { finished.json + "\n" } else { finished.table };
        let printed = output::print_or_give_up(text);
        finished.notes.iter().for_each(|note| live.say(note));
        Failure::both(finished.verdict, printed)
    }

    /// Runs it from the first frame to the last; `own` instead of the robot file's controllers.
    pub(crate) fn finish(&self, own: Option<Own<'_>>, live: &mut LiveLine) -> Result<Finished, Failure> {
        if self.with_parent {
            rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::INT))?;
        }
        limits::check_for_a_run()?;
        if own.is_some() && self.controller.is_some() {
            let found = "--controller for a program with a controller of its own";
            return Err(Failure::new(format!("found {found}, expected one of the two: leave it out")));
        }
        let robot = self.robot()?;
        hold::restore_crashed(live);
        let file = self.record.as_deref().map(|path| recorder::create(path, live)).transpose()?;
        let main_device = configuration::main_device(configuration::configuration(&robot, AlState::Op))?;
        let link = link::open(&robot, &self.wire, &format!("run, robot \"{}\"", robot.name))?;
        let stop = Stop::listen_for_a_run(live.voice())?;
        let prepared = self.prepare(&robot, own, main_device, link, &stop, live)?;
        let ran = self.run(&robot, prepared, file, &stop, live)?;
        self.conclude(&robot, ran, stop.handle().is_hurried())
    }

    /// Puts in words what a run came to. What was measured is shown, even if the bus failed or a file is not whole.
    fn conclude(&self, robot: &Robot, ran: Ran, hurried: bool) -> Result<Finished, Failure> {
        let Ran { measured, conditions, granted, recorded, link_trouble, external, ended } = ran;
        let findings = ended.findings(Circumstances {
            period: robot.cycle.period,
            hurried,
            resumes: robot.cycle.after_outage == AfterOutage::Resume,
        });
        let captured = ended.link.finish();
        let standing =
            Standing { robot, status: &ended.before_stop, link_trouble: link_trouble.as_deref() };
        let verdict = standing.verdict(&findings);
        if ended.failure.is_some() && measured.summary.cycles() == 0 {
            return Err(verdict.err().unwrap_or_else(|| Failure::silent(COULD_NOT_RUN)));
        }
        let overrun = OverrunOutcome::of(robot.cycle.overrun, ended.overruns, ended.stopped_by_overrun);
        let mut outcome =
            Outcome::new(&standing, &findings, &ended.signals, &measured, conditions, &granted, overrun);
        outcome.controller = external;
        let (table, json) = (outcome.table(), outcome.json()?);
        let exported = measured.explanation.as_ref().map(|it| self.explain.export(it));
        let mut written = Written { notes: Vec::new(), verdict };
        written.add(captured);
        written.add(exported.transpose().map(Option::flatten));
        written.add(recorded.transpose());
        Ok(Finished {
            table,
            json,
            notes: written.notes,
            verdict: written.verdict,
            cycles: measured.summary.cycles(),
            working_counter_errors: measured.summary.working_counter_errors.count,
        })
    }

    /// The robot file's robot, with what the command line changes.
    pub(crate) fn robot(&self) -> Result<Robot, Failure> {
        let mut robot = robot_file::robot(self.robot.as_deref(), self.period)?;
        self.hold.change(&mut robot.cycle);
        if self.controller.is_some() {
            controller::put_first(&mut robot);
        }
        robot.cycle.frame_order = match self.frame_order {
            None => robot.cycle.frame_order,
            Some(Order::ReplyOfLastBeat) => robot::FrameOrder::ReplyOfLastBeat,
            Some(Order::WaitForReply) => robot::FrameOrder::WaitForReply,
        };
        Ok(robot)
    }

    /// Cycles to measure; `None` until somebody asks for a stop.
    fn limit(&self, robot: &Robot) -> Option<u64> {
        let beats = |duration: Duration| {
            u64::try_from(duration.as_nanos().div_ceil(robot.cycle.period.as_nanos())).unwrap_or(u64::MAX)
        };
        self.cycles.or(self.duration.map(beats))
    }
}

/// Makes a controller of somebody's own for this robot, with the ports of the seam where there is one.
pub(crate) type Own<'a> = Box<dyn FnOnce(&Robot, Option<seam::Ports>) -> Box<dyn Controller> + 'a>;

/// A run that came to its end.
pub(crate) struct Finished {
    /// For people.
    pub(crate) table: String,
    /// For programs.
    pub(crate) json: String,
    /// What else there is to say: files that were written.
    pub(crate) notes: Vec<String>,
    /// Whether it ran as it should.
    pub(crate) verdict: Result<(), Failure>,
    /// Measured beats.
    pub(crate) cycles: u64,
    /// Beats of those with a wrong working counter.
    pub(crate) working_counter_errors: u64,
}

/// What became of files.
struct Written {
    notes: Vec<String>,
    verdict: Result<(), Failure>,
}

impl Written {
    /// One more.
    fn add(&mut self, file: Result<Option<String>, Failure>) {
        match file {
            Ok(note) => self.notes.extend(note),
            Err(failure) => {
                let verdict = std::mem::replace(&mut self.verdict, Ok(()));
                self.verdict = Failure::both(verdict, Err(failure));
            }
        }
    }
}
