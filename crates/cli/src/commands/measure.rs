//! `onbeat measure`, `report` and `analyse`: start `onbeat-measure`, the program of the
//! experiments.

use std::env;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::process::Command;

use clap::Args;

use crate::failure::Failure;

/// Program of the experiments; it is in the same folder as this one.
const PROGRAM: &str = "onbeat-measure";

/// Package that it is built from.
const PACKAGE: &str = "onbeat-experiments";

#[derive(Args, Debug)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub(crate) struct Elsewhere {
    /// Arguments of the program onbeat-measure
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

impl Elsewhere {
    /// Becomes the other program, with the name of a command that is no experiment: signals and the
    /// exit code are its own.
    pub(crate) fn execute(self, command: Option<&str>) -> Result<(), Failure> {
        let program = env::current_exe()?.with_file_name(PROGRAM);
        let error = Command::new(&program).args(command).args(self.arguments).exec();
        let path = program.display();
        Err(Failure::new(match error.kind() {
            ErrorKind::NotFound => format!(
                "{path} is not there, and the commands measure, report and analyse are in it: build it with `cargo build --release \
                 --package {PACKAGE}` (without --release where onbeat is a debug build)"
            ),
            _ => format!("{path} cannot be started ({error}): expected the program of the experiments"),
        }))
    }
}
