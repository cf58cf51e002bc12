//! The archive, with every file at its path below a prefix such as `/usr/local`, manual
//! pages and completions among them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Programs, Target, VERSION, copy, licences, write};
use crate::command;

/// Makes `onbeat-VERSION-TARGET.tar.gz` in `folder`.
///
/// # Errors
/// The file system's, or tar's.
pub(super) fn make(
    root: &Path,
    folder: &Path,
    target: &Target,
    programs: &Programs,
    pages: &Pages,
) -> Result<(), String> {
    let name = format!("onbeat-{VERSION}-{}", target.triple);
    let staged = folder.join("stage");
    let prefix = staged.join(&name);
    let _ = fs::remove_dir_all(&prefix);
    for program in programs.each() {
        copy(program, &prefix.join("bin").join(program.file_name().unwrap_or_default()))?;
    }
    let share = prefix.join("share");
    pages.put_manual(&share.join("man/man1"), false)?;
    pages.put_completions([
        share.join("bash-completion/completions/onbeat"),
        share.join("zsh/site-functions/_onbeat"),
        share.join("fish/vendor_completions.d/onbeat.fish"),
    ])?;
    let unit = fs::read_to_string(root.join(UNIT)).map_err(|error| format!("{UNIT}: {error}"))?;
    // It is unpacked below /usr/local.
    write(
        &prefix.join("lib/systemd/system/onbeat@.service"),
        unit.replace("/usr/bin/", "/usr/local/bin/"),
    )?;
    copy(&root.join(LAUNCH), &share.join(LAUNCH_PLACE))?;
    let documentation = share.join("doc/onbeat");
    for file in DOCUMENTATION.iter().chain(LICENCES) {
        copy(&root.join(file), &documentation.join(file))?;
    }
    put_folders(root, &documentation)?;
    write(&documentation.join("THIRD-PARTY.txt"), licences::notices(root, target.triple)?)?;
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mode=u+w,go=rX"]);
    tar.arg(format!("--mtime=@{}", time_of_commit(root))).arg("-czf");
    tar.arg(folder.join(format!("{name}.tar.gz"))).arg("-C").arg(&staged).arg(&name);
    command::output(&mut tar).map(drop)
}

/// Puts the examples and the documentation's pages into a folder.
///
/// # Errors
/// The file system's.
pub(super) fn put_folders(root: &Path, to: &Path) -> Result<(), String> {
    for folder in ["docs", "examples"] {
        let listed = command::output(Command::new("git").args(["ls-files", folder]).current_dir(root))?;
        listed.lines().try_for_each(|file| copy(&root.join(file), &to.join(file)))?;
    }
    Ok(())
}

/// Seconds since 1970 at which the commit was made, which is the time of every file: the same
/// commit, the same archive.
pub(super) fn time_of_commit(root: &Path) -> String {
    let time = command::output(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(root));
    time.map_or_else(|_| "0".to_owned(), |time| time.trim().to_owned())
}

pub(super) const UNIT: &str = "packaging/onbeat@.service";
pub(super) const LAUNCH: &str = "packaging/launch/onbeat.launch.py";
/// Place of the launch file below `share`.
pub(super) const LAUNCH_PLACE: &str = "onbeat/launch/onbeat.launch.py";
pub(super) const DOCUMENTATION: &[&str] = &["README.md", "CHANGELOG.md", "FEATURES.md"];
const LICENCES: &[&str] = &["LICENSE-MIT", "LICENSE-APACHE"];

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
