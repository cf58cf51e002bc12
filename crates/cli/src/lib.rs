//! `onbeat`: runs robots and machines from ordinary Linux in real time.
//!
//! The program is [`program`]; [`Run`] and [`run`] are for those who bring a [`Controller`] of their own:
//!
//! ```no_run
//! use onbeat::{AxisCommand, AxisReport, Beat, Controller, Request};
//!
//! /// Every axis is enabled and stays where it is.
//! struct Stay;
//!
//! impl Controller for Stay {
//!     fn update(&mut self, _: Beat, reports: &[AxisReport], commands: &mut [AxisCommand]) {
//!         for (report, command) in reports.iter().zip(commands) {
//!             command.request = Request::Enable;
//!             if let onbeat::AxisPhase::HoldingAt(position) = report.feedback.phase {
//!                 command.setpoint.position = position;
//!             }
//!         }
//!     }
//! }
//!
//! println!("{}", onbeat::run("examples/six-axis.toml", Stay)?);
//! # Ok::<(), onbeat::Error>(())
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | `facade` | a robot's cycle with somebody's own controller |
//! | `commands` | one file a command |
//! | `compose` | from the robot's description to the parts that run it |
//! | `words` | what people read |
//! | `arguments`, `object_address` | what several commands read from the command line |
//! | `bus` | a bus in PreOp, for commands that need no cycle |
//! | `stop` | Ctrl-C |
//! | `output` | standard output and standard error, closed, full or stopped |
//! | `failure` | how a command ends when it cannot do its work |
#![forbid(unsafe_code)]
// `output` writes: it survives what is closed or full.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod arguments;
mod bus;
mod commands;
mod compose;
mod facade;
pub mod failure;
mod limits;
mod object_address;
pub mod output;
pub mod stop;
mod words;

pub use bridge;
pub use ethercat::cia402::Request;
pub use facade::{Error, Finished, Robot, Run, controllers, run};
pub use motion::{self, AxisPhase, AxisSetpoint};
pub use runtime::controller::{
    Asked, AxisCommand, AxisReport, AxisTarget, Beat, Controller, Freshness, Told,
};
pub use runtime::signal::{Input, Io, Output, SignalError, SignalValue, Signals};

use std::process::ExitCode;

use clap::Parser;

use crate::commands::Command;
use crate::failure::Failure;

/// Runs robots and machines over EtherCAT from ordinary Linux, in real time
#[derive(Parser, Debug)]
#[command(name = "onbeat", version, propagate_version = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// The program: reads the command line, does what it says, and tells how it went.
#[must_use]
pub fn program() -> ExitCode {
    execute(|arguments: Arguments| arguments.command.execute())
}

/// A program of ours: reads its command line, acts on it, and tells how it went.
#[must_use]
pub fn execute<A: Parser>(act: fn(A) -> Result<(), Failure>) -> ExitCode {
    limits::check().map_or_else(|failure| ended(&failure), |()| by_arguments(act))
}

/// Not part of [`execute`]: its frame is large, and the stack may be small.
#[inline(never)]
fn by_arguments<A: Parser>(act: fn(A) -> Result<(), Failure>) -> ExitCode {
    let arguments = match A::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let _ = error.print();
            let wrong = error.use_stderr();
            let code = commands::usage_exit_code(std::env::args_os().nth(1).as_deref());
            return if wrong { ExitCode::from(code) } else { ExitCode::SUCCESS };
        }
    };
    stop::survive_file_limits();
    match act(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => ended(&failure),
    }
}

fn ended(failure: &Failure) -> ExitCode {
    if !failure.is_silent() {
        output::say_or_give_up(format!("onbeat: {failure}"));
    }
    failure.exit_code()
}
