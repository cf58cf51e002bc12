//! The program `onbeat-measure`: experiments of the papers. `onbeat measure` starts it.
#![forbid(unsafe_code)]
// `cli::output` writes: it survives a closed or full output.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod commands;

use std::process::ExitCode;

use clap::Parser;

use crate::commands::Measure;

/// Makes measurements as papers made them, with their tables and plots
#[derive(Parser, Debug)]
#[command(name = "onbeat-measure", bin_name = "onbeat measure", version, propagate_version = true)]
struct Arguments {
    #[command(subcommand)]
    measure: Measure,
}

fn main() -> ExitCode {
    cli::execute(|arguments: Arguments| arguments.measure.execute())
}
