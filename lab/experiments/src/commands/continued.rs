//! Resumes an interrupted experiment: its folder keeps the arguments that it was started with.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use cli::failure::Failure;
use serde::{Deserialize, Serialize};

/// Command line of an experiment.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Begun {
    experiment: String,
    /// Its arguments, without the ones for the places of the results.
    arguments: Vec<String>,
    /// Folder that it was started in: paths among the arguments are relative to it.
    folder: PathBuf,
}

/// Keeps the arguments of this process in the folder of its results.
pub(super) fn begin(directory: &Path, experiment: &str) -> Result<(), Failure> {
    let arguments = std::env::args_os().skip(2).map(OsString::into_string).collect::<Result<Vec<_>, _>>();
    // Arguments that are no text cannot be kept: such a run cannot be resumed.
    let Ok(arguments) = arguments else { return Ok(()) };
    let begun = Begun {
        experiment: experiment.to_owned(),
        arguments: settings(&arguments),
        folder: std::env::current_dir()?,
    };
    let path = directory.join(FILE);
    let text = serde_json::to_string(&begun)?;
    fs::write(&path, text).map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

/// Becomes the experiment that was begun in this folder.
pub(super) fn go_on(directory: &Path, experiment: &str) -> Result<(), Failure> {
    let path = directory.join(FILE);
    let at = |what: String| Failure::new(format!("{}: {what}", path.display()));
    let text = fs::read_to_string(&path).map_err(|error| {
        at(format!("{error}: expected the folder of an experiment that was interrupted"))
    })?;
    let begun: Begun = serde_json::from_str(&text)
        .map_err(|error| at(format!("expected the arguments of an experiment, found: {error}")))?;
    if begun.experiment != experiment {
        return Err(at(format!("found a run of `{}`, expected one of `{experiment}`", begun.experiment)));
    }
    let given: Vec<OsString> = std::env::args_os().skip(2).collect();
    let given: Vec<String> = given.iter().map(|it| it.to_string_lossy().into_owned()).collect();
    if let Some(other) = settings(&given).first() {
        return Err(Failure::new(format!(
            "{other}: --continue uses the settings of the first run: leave it out"
        )));
    }
    let directory = fs::canonicalize(directory)?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(experiment).arg("--out").arg(directory).arg("--resume");
    if given.iter().any(|it| it == "--json") {
        command.arg("--json");
    }
    command.args(begun.arguments).current_dir(&begun.folder);
    Err(Failure::new(format!("the experiment cannot be started: {}", command.exec())))
}

/// The arguments without [`super::Common`] and [`super::Cells`].
fn settings(arguments: &[String]) -> Vec<String> {
    let mut settings = Vec::new();
    let mut left = arguments.iter();
    while let Some(argument) = left.next() {
        match argument.as_str() {
            "--json" | "--resume" => {}
            "--out" | "--continue" => {
                left.next();
            }
            it if it.starts_with("--out=") || it.starts_with("--continue=") => {}
            // Options for another program.
            "--" => {
                settings.push(argument.clone());
                settings.extend(left.by_ref().cloned());
            }
            _ => settings.push(argument.clone()),
        }
    }
    settings
}

const FILE: &str = "arguments.json";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_the_arguments_but_for_the_place_of_the_results() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let given = words("--duration 3s --out /x --json robot.toml --continue=a --load none -- --out y");
        assert_eq!(settings(&given), words("--duration 3s robot.toml --load none -- --out y"));
        assert!(settings(&words("--continue a --json")).is_empty());
    }
}
