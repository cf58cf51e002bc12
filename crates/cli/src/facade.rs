//! A robot's cycle with somebody's own controller: all that `onbeat run` does, without the robot file's controllers.

use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::process::ExitCode;

use bridge::channel::Port;
use clap::Parser;
use runtime::controller::Controller;

use crate::commands::run;
use crate::compose::seam::Ports;
use crate::compose::{controller, robot_file};
use crate::failure::Failure;
use crate::words::live_line::LiveLine;

/// Runs the robot of this file, simulated, with this controller, until Ctrl-C: see [`Run`].
///
/// # Errors
/// As [`Run::with`].
pub fn run(robot_file: impl AsRef<Path>, controller: impl Controller + 'static) -> Result<Finished, Error> {
    Run::of(robot_file).with(|_| controller)
}

/// The controllers of a robot file, to be wrapped in one's own.
///
/// # Errors
/// A robot file that is not as expected.
pub fn controllers(robot_file: impl AsRef<Path>) -> Result<impl Controller + 'static, Error> {
    let robot = robot_file::robot(Some(robot_file.as_ref()), None)?;
    Ok(controller::controllers(&robot, None)?)
}

/// A run to be: brings the bus up, enables what the controller asks to be enabled, and runs the cycle until it has run long
/// enough, or Ctrl-C.
///
/// The cycle is that of `onbeat run`: its profile, its timing, supervision of every axis by the limits of the robot file,
/// and the seam that other programs attach to. A live line and what happens on the bus go to standard error.
#[derive(Clone, Debug)]
pub struct Run {
    words: Vec<OsString>,
}

impl Run {
    /// Of the robot in this file; simulated, unless [`Run::on`] a network interface.
    #[must_use]
    pub fn of(robot_file: impl AsRef<Path>) -> Self {
        Self { words: vec!["run".into(), robot_file.as_ref().into()] }
    }

    /// On the real bus at this network interface.
    #[must_use]
    pub fn on(self, interface: &str) -> Self {
        self.option(&["--iface", interface])
    }

    /// Until this many beats have been measured, 1 or more.
    #[must_use]
    pub fn cycles(self, cycles: u64) -> Self {
        self.option(&["--cycles", &cycles.to_string()])
    }

    /// With an option of `onbeat run`, as on its command line: `&["--profile", "PMC"]`, `&["--record", "run.onbeat"]`.
    #[must_use]
    pub fn option(mut self, words: &[&str]) -> Self {
        self.words.extend(words.iter().map(OsString::from));
        self
    }

    /// Runs it with the controller that `make` makes for it.
    ///
    /// # Errors
    /// A robot file, an option or a bus that is not as expected, or a run that did not go as it should: one sentence that
    /// says where, what was expected, what was found, and what to do.
    pub fn with<C: Controller + 'static>(
        self,
        make: impl FnOnce(&mut Robot) -> C,
    ) -> Result<Finished, Error> {
        let (finished, verdict) = self.judged_with(make)?;
        verdict.map(|()| finished)
    }

    /// Runs it as [`Run::with`] does, and returns the numbers of a run that did not go as it should, too, beside its
    /// verdict.
    ///
    /// # Errors
    /// A robot file, an option or a bus that is not as expected: there are no numbers.
    pub fn judged_with<C: Controller + 'static>(
        self,
        make: impl FnOnce(&mut Robot) -> C,
    ) -> Result<(Finished, Result<(), Error>), Error> {
        let CommandLine { run } = CommandLine::try_parse_from(self.words).map_err(Failure::new)?;
        let own: run::Own<'_> = Box::new(|robot, ports| {
            let axes = robot.axes.iter().map(|axis| axis.name.clone()).collect();
            Box::new(make(&mut Robot { axes, ports }))
        });
        let run::Finished { table, json, notes, verdict, cycles, working_counter_errors } =
            run.finish(Some(own), &mut LiveLine::new())?;
        let finished = Finished { cycles, working_counter_errors, table, json, notes };
        Ok((finished, verdict.map_err(Error)))
    }
}

/// The robot a controller is made for.
#[derive(Debug)]
pub struct Robot {
    axes: Vec<String>,
    ports: Option<Ports>,
}

impl Robot {
    /// Names of the axes, in the order in which a controller sees them.
    #[must_use]
    pub fn axes(&self) -> &[String] {
        &self.axes
    }

    /// The real-time end of a port of the seam: `control`, `trajectory`, or one of the robot file. Once; `None` where there
    /// is none of that name, or no seam. The controller binds it on its first beat.
    pub fn port(&mut self, name: &str) -> Option<Port> {
        let ports = self.ports.as_mut()?;
        ports.take(name)
    }
}

/// A run that went as it should. Displays as the table of `onbeat run`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finished {
    /// Measured beats.
    pub cycles: u64,
    /// Beats of those with a wrong working counter.
    pub working_counter_errors: u64,
    /// All that was measured, as `onbeat run --json` prints it.
    pub json: String,
    /// Files that were written, each a sentence.
    pub notes: Vec<String>,
    table: String,
}

impl fmt::Display for Finished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.table)?;
        self.notes.iter().try_for_each(|note| writeln!(f, "{note}"))
    }
}

/// Why a run could not be, or did not go as it should: one sentence.
pub struct Error(Failure);

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Self(failure)
    }
}

impl Error {
    /// The exit code `onbeat run` ends with.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        self.0.exit_code()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// As it displays: `main` shows it so.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Error {}

#[derive(Parser)]
#[command(no_binary_name = false)]
struct CommandLine {
    #[command(flatten)]
    run: run::Run,
}
