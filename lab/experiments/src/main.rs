//! The program `onbeat-measure`: experiments of the papers, reports of recordings, response-time
//! analysis. `onbeat measure`, `onbeat report` and `onbeat analyse` start it.
#![forbid(unsafe_code)]
// `cli::output` writes: it survives a closed or full output.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod commands;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::commands::{Measure, analyse, report};

/// Makes measurements as papers made them, with their tables and plots
#[derive(Parser, Debug)]
#[command(name = "onbeat-measure", bin_name = "onbeat measure", version, propagate_version = true)]
struct Arguments {
    #[command(subcommand)]
    measure: Measure,
}

/// Commands of `onbeat` that live in this program
#[derive(Parser, Debug)]
#[command(name = "onbeat", version, propagate_version = true)]
struct OnRecords {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Show tables and plots of a recorded run or an experiment
    Report(report::Report),
    /// Prove from their times whether tasks meet their deadlines, and how far off they are
    Analyse(analyse::Analyse),
}

fn main() -> ExitCode {
    let named = std::env::args_os().nth(1);
    if named.is_some_and(|it| Command::has_subcommand(&it.to_string_lossy())) {
        cli::execute(|arguments: OnRecords| match arguments.command {
            Command::Report(report) => report.execute(),
            Command::Analyse(analyse) => analyse.execute(),
        })
    } else {
        cli::execute(|arguments: Arguments| arguments.measure.execute())
    }
}
