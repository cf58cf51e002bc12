//! Manual pages and completions, made by programs that run on this machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Programs, copy, write};
use crate::command;

/// Folder with `man`, and a file of completions for each shell.
#[derive(Debug)]
pub(super) struct Pages(PathBuf);

impl Pages {
    /// Has the programs write them below `folder`.
    ///
    /// # Errors
    /// A program's, or the file system's.
    pub(super) fn make(programs: &Programs, folder: &Path) -> Result<Self, String> {
        let pages = Self(folder.join("pages"));
        let manual = pages.0.join("man");
        let made = fs::remove_dir_all(&pages.0).or(Ok(())).and_then(|()| fs::create_dir_all(&manual));
        made.map_err(|error| format!("{}: {error}", manual.display()))?;
        command::output(Command::new(&programs.measure).arg("man").arg(&manual))?;
        let of_node = command::output(Command::new(&programs.ros2).arg("--man"))?;
        write(&manual.join("onbeat-ros2.1"), of_node)?;
        for shell in SHELLS {
            let script = command::output(Command::new(&programs.onbeat).args(["completions", shell]))?;
            write(&pages.0.join(shell), script)?;
        }
        Ok(pages)
    }

    /// Puts the manual pages into a folder, compressed by gzip on request, as Debian has them.
    ///
    /// # Errors
    /// The file system's, or gzip's.
    pub(super) fn put_manual(&self, folder: &Path, packed: bool) -> Result<(), String> {
        let manual = self.0.join("man");
        let entries = fs::read_dir(&manual).map_err(|error| format!("{}: {error}", manual.display()))?;
        let mut pages: Vec<PathBuf> = Vec::new();
        for page in entries.flatten() {
            let to = folder.join(page.file_name());
            copy(&page.path(), &to)?;
            pages.push(to);
        }
        if packed {
            command::output(Command::new("gzip").args(["-9n", "--"]).args(&pages))?;
        }
        Ok(())
    }

    /// Puts the completions into these files: bash, zsh, fish.
    ///
    /// # Errors
    /// The file system's.
    pub(super) fn put_completions(&self, files: [PathBuf; 3]) -> Result<(), String> {
        SHELLS.iter().zip(files).try_for_each(|(shell, file)| copy(&self.0.join(shell), &file))
    }
}

const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];
