//! `onbeat`: runs robots and machines from ordinary Linux in real time.
//!
//! | module | what it holds |
//! |---|---|
//! | [`commands`] | one file a command |
//! | [`compose`] | from the robot's description to the parts that run it |
//! | [`words`] | what people read |
//! | [`arguments`], [`object_address`] | what several commands read from the command line |
//! | [`bus`] | a bus in PreOp, for commands that need no cycle |
//! | [`stop`] | Ctrl-C |
//! | [`failure`] | how a command ends when it cannot do its work |
#![forbid(unsafe_code)]

mod arguments;
mod bus;
mod commands;
mod compose;
mod failure;
mod object_address;
mod stop;
mod words;

use std::process::ExitCode;

use clap::Parser;

use crate::commands::Command;

/// Runs robots and machines over EtherCAT from ordinary Linux, in real time
#[derive(Parser, Debug)]
#[command(name = "onbeat", version, propagate_version = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let _ = error.print();
            let wrong = error.use_stderr();
            let code = commands::usage_exit_code(std::env::args_os().nth(1).as_deref());
            return if wrong { ExitCode::from(code) } else { ExitCode::SUCCESS };
        }
    };
    match arguments.command.execute() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.is_silent() {
                eprintln!("onbeat: {failure}");
            }
            failure.exit_code()
        }
    }
}
