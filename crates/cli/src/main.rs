//! The program `onbeat`; what it does is in the library of the same name.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    onbeat::program()
}
