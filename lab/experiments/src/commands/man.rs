//! `onbeat-measure man`: manual pages of `onbeat` and `onbeat-measure`, for packages. They are made
//! here and not by `onbeat`, which stays small.

use std::path::PathBuf;

use clap::{Args, Command, CommandFactory};
use cli::failure::Failure;

use crate::{Arguments, OnRecords};

#[derive(Args, Debug)]
pub(crate) struct Man {
    /// Folder that is there
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl Man {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        clap_mangen::generate_to(command_line(), &self.folder)
            .map_err(|error| Failure::new(format!("{}: {error}", self.folder.display())))
    }
}

/// Both programs as one: `onbeat` knows the commands of this one by name only.
fn command_line() -> Command {
    let measure = Arguments::command().name("measure");
    let ours = OnRecords::command();
    ours.get_subcommands()
        .chain([&measure])
        .fold(cli::command_line(), |all, one| all.mut_subcommand(one.get_name(), |_| one.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each command has a page, with the options of the program that it is in.
    // feature(program): manual pages of every command, also of `onbeat-measure`
    #[test]
    fn every_command_has_a_page() {
        let folder = std::env::temp_dir().join(format!("onbeat-man-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        Man { folder: folder.clone() }.execute().expect("pages");
        let page = |name: &str| std::fs::read_to_string(folder.join(name)).expect(name);
        assert!(page("onbeat.1").contains("onbeat\\-run(1)"), "{}", page("onbeat.1"));
        for (name, option) in [
            ("onbeat-run.1", "cycles"),
            ("onbeat-sdo-read.1", "iface"),
            ("onbeat-report.1", "json"),
            ("onbeat-measure-tuning.1", "priority"),
        ] {
            assert!(page(name).contains(&format!("\\-\\-{option}")), "{name}: {}", page(name));
        }
        assert!(!folder.join("onbeat-measure-man.1").exists(), "hidden commands have none");
        let _ = std::fs::remove_dir_all(&folder);
    }
}
