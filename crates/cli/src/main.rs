//! The program `onbeat`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    onbeat_cli::program()
}
