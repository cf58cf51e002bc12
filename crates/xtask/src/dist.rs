//! A release: static programs for three kinds of machines as archives and as Debian packages, the
//! Python wheel, and their checksums, in `target/dist`.
//!
//! | module | contents |
//! |---|---|
//! | [`target`] | machines, and the programs built for them |
//! | [`licences`] | licences of the libraries in the programs |
//! | [`archive`] | the archive |
//! | [`debian`] | the Debian package |
//! | [`installed`] | a fresh Debian with the package in it |
//! | [`booted`] | that Debian booted, with a robot as a service |

mod archive;
mod booted;
mod debian;
pub(crate) mod installed;
pub(crate) mod licences;
mod target;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::report::{Outcome, Report};
use crate::{check, command, python, setup};
use archive::Pages;
use debian::Packed;
use target::{Programs, TARGETS, Target};
pub(crate) use target::{check as other_targets, install};

/// Version of everything in the workspace.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// True if there is a target of this name.
pub(crate) fn is_target(name: &str) -> bool {
    TARGETS.iter().any(|target| target.triple == name)
}

/// Makes a release for one target, or for all and Python.
pub(crate) fn all(root: &Path, only: Option<&str>, report: &mut Report) {
    setup::dist_packages(report);
    let folder = root.join("target/dist");
    let made = fs::remove_dir_all(&folder).or(Ok(())).and_then(|()| fs::create_dir_all(&folder));
    if let Err(error) = made {
        return report.step("dist", || Outcome::Failed(format!("{}: {error}", folder.display())));
    }
    check::licences(root, report);
    match only {
        // A release is whole: the crates, too, are built as they are handed out.
        None => check::built_packages(root, report),
        Some(_) => check::packages(root, report),
    }
    let mut pages = None;
    report.step("dist pages", || {
        let made = target::of_this_machine(root).and_then(|programs| Pages::make(&programs, &folder));
        made.map_or_else(Outcome::Failed, |made| {
            pages = Some(made);
            Outcome::Passed
        })
    });
    let Some(pages) = pages else { return };
    for target in TARGETS.iter().filter(|target| only.is_none_or(|only| only == target.triple)) {
        one(root, &folder, target, &pages, report);
    }
    if only.is_none() {
        python::wheels(root, &folder, VERSION, report);
    }
    report.step("dist checksums", || checksums(&folder).map_or_else(Outcome::Failed, |()| Outcome::Passed));
}

/// Builds, tries and packs one target.
fn one(root: &Path, folder: &Path, target: &Target, pages: &Pages, report: &mut Report) {
    let mut programs = None;
    report.step(&format!("dist {}", target.triple), || match target.build(root) {
        Ok(built) => {
            programs = Some(built);
            Outcome::Passed
        }
        Err(outcome) => outcome,
    });
    let Some(programs) = programs else { return };
    report.step(&format!("dist {}: a run", target.triple), || target.run(root, &programs));
    let mut package = None;
    report.step(&format!("dist {}: packed", target.triple), || {
        let archive = archive::make(root, folder, target, &programs, pages);
        let made =
            archive.and_then(|()| debian::make(root, folder, target, &programs, pages, Packed::Well));
        made.map_or_else(Outcome::Failed, |made| {
            println!("{}", made.display());
            package = Some(made);
            Outcome::Passed
        })
    });
    if let Some(package) = package.filter(|_| target.is_this_machine()) {
        report.step(&format!("dist {}: installed", target.triple), || installed::tried(root, &package));
    }
}

/// Writes `SHA256SUMS` of everything that is to be handed out.
fn checksums(folder: &Path) -> Result<(), String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let name = |path: &PathBuf| path.file_name().map(|it| it.to_string_lossy().into_owned());
    let files = entries.flatten().map(|it| it.path()).filter(|it| it.is_file());
    let mut names: Vec<String> = files.filter_map(|it| name(&it)).collect();
    names.sort();
    let sums = command::output(Command::new("sha256sum").args(&names).current_dir(folder))?;
    print!("{sums}");
    write(&folder.join("SHA256SUMS"), sums)
}

/// Writes a file, in a folder that is made if it is not there.
fn write(path: &Path, text: impl AsRef<[u8]>) -> Result<(), String> {
    let made = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(path, text));
    made.map_err(|error| format!("{}: {error}", path.display()))
}

/// Copies a file likewise, with its permissions.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let made = to.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::copy(from, to));
    made.map(drop).map_err(|error| format!("{} to {}: {error}", from.display(), to.display()))
}

/// Reads a file of the workspace.
fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}
