//! The program `onbeat`: from the command line to the library [`onbeat`](https://docs.rs/onbeat),
//! and words for people.
//!
//! | module | contents |
//! |---|---|
//! | `commands` | one file a command |
//! | `words` | text for people |
//! | `arguments`, `object_address` | arguments that several commands share |
//! | `usage` | advice where the command line cannot be read |
//! | `bus` | a bus in PreOp, for commands that need no cycle |
//! | [`stop`] | Ctrl-C |
//! | [`output`] | standard output and standard error, closed, full or stopped |
//! | `printer` | standard output next to other work |
//! | `target` | the running cycle that a command means |
//! | `journal` | systemd's journal |
//! | [`failure`] | end of a command that cannot do its work |
#![forbid(unsafe_code)]
// `output` writes: it survives what is closed or full.
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod arguments;
mod bus;
mod commands;
pub mod failure;
mod journal;
mod left_behind;
mod limits;
mod object_address;
pub mod output;
mod printer;
pub mod stop;
mod target;
mod usage;
pub mod words;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use ipc::bus::Severity;

use crate::commands::Command;
use crate::failure::Failure;

/// Runs robots and machines over EtherCAT from ordinary Linux, in real time
#[derive(Parser, Debug)]
#[command(name = "onbeat", version, propagate_version = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// The command line of the program, for manual pages.
#[must_use]
pub fn command_line() -> clap::Command {
    Arguments::command()
}

/// The program: reads the command line, does what it says, and reports the outcome.
#[must_use]
pub fn program() -> ExitCode {
    execute(|arguments: Arguments| arguments.command.execute(command_line))
}

/// A program of ours: reads its command line, acts on it, and reports the outcome.
#[must_use]
pub fn execute<A: Parser>(act: fn(A) -> Result<(), Failure>) -> ExitCode {
    limits::check().map_or_else(|failure| ended(&failure), |()| by_arguments(act))
}

/// Not part of [`execute`]: its frame is large, and the stack may be small.
#[inline(never)]
fn by_arguments<A: Parser>(act: fn(A) -> Result<(), Failure>) -> ExitCode {
    let arguments = match A::try_parse() {
        Ok(arguments) => arguments,
        Err(mut error) => {
            usage::correct(&mut error, &A::command());
            let printed = error.print();
            if error.use_stderr() {
                let code = commands::usage_exit_code(std::env::args_os().nth(1).as_deref());
                return ExitCode::from(code);
            }
            // The requested help or version.
            return output::judged(printed).map_or_else(|failure| ended(&failure), |()| ExitCode::SUCCESS);
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
        output::say_or_give_up(journal::with_priority(Severity::Error, &failure.lines()).into_owned());
    }
    failure.exit_code()
}
