//! The fast checks before a commit: format, lints, unit tests of the crates that changed, lists of
//! messages, and rules.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::report::{Outcome, Report};
use crate::{check, command};

/// Crates with tests that need neither real time nor network namespaces: all their tests run.
const PURE: [&str; 6] = ["types", "ethercat", "motion", "record", "robot", "schedulability"];

/// The ROS 2 node, a separate workspace.
const ROS2: &str = "ros2";

/// Runs the checks of `wanted`, or of the crates that changed since the last commit of `main`.
pub(crate) fn run(root: &Path, wanted: &[&str], report: &mut Report) {
    let changed = if wanted.is_empty() { changed(root) } else { named(root, wanted) };
    let mut crates = match changed {
        Ok(crates) if crates.is_empty() => {
            return println!("no crate changed since main; `cargo xtask quick CRATE` checks one");
        }
        Ok(crates) => crates,
        Err(why) => return report.step("quick", || Outcome::Failed(why)),
    };
    if crates.remove(ROS2) {
        let lints = ["clippy", "--quiet", "--all-targets", "--", "--no-deps", "-D", "warnings"];
        let steps: [(&str, &[&str]); 3] = [
            ("format: ros2", &["fmt", "--check"]),
            ("clippy: ros2", &lints),
            ("tests of ros2", &["test", "--quiet", "--bins"]),
        ];
        for (name, words) in steps {
            report.step(name, || check::of_ros2(root, words));
        }
    }
    if crates.is_empty() {
        return;
    }
    let packages: Vec<String> = crates.iter().flat_map(|name| ["-p".to_owned(), package(name)]).collect();
    let cargo = |words: &[&str], more: &[&str]| {
        let mut cargo = command::cargo(root, words);
        cargo.args(&packages).args(more);
        cargo
    };
    report.step("format", || Outcome::of(&mut cargo(&["fmt"], &["--check"])));
    let lints = ["--all-targets", "--", "-D", "warnings"];
    report.step("clippy", || Outcome::of(&mut cargo(&["clippy", "--quiet"], &lints)));
    for name in &crates {
        let mut tests = command::cargo(root, &["test", "--quiet", "-p", &package(name)]);
        match name.as_str() {
            "machine" => tests.args(["--features", "check"]),
            "simulator" => tests.args(["--features", "faults", "--lib"]),
            "types" => tests.args(["--features", "near", "--tests"]),
            "rt" => tests.args(["--features", "threads", "--lib"]),
            name if PURE.contains(&name) => tests.arg("--tests"),
            name if folder(root, name).is_some_and(|it| it.join("src/lib.rs").exists()) => {
                tests.arg("--lib")
            }
            _ => tests.arg("--bins"),
        };
        report.step(&format!("tests of {name}"), || Outcome::of(&mut tests));
    }
    report.step("lists of messages", || {
        let lists = ["test", "--quiet", "-p", "xtask", "--test", "messages"];
        Outcome::of(&mut command::cargo(root, &lists))
    });
    check::rules(root, report);
}

/// Folders below `crates` and `lab`, and `ros2`, with files that differ from the branch `main`, or
/// from the commit before where that is checked out.
fn changed(root: &Path) -> Result<BTreeSet<String>, String> {
    let git = |words: &[&str]| command::output(Command::new("git").args(words).current_dir(root));
    let here = git(&["rev-parse", "--abbrev-ref", "HEAD"])?;
    let dirty = git(&["status", "--porcelain", "--", "crates", "lab", ROS2])?;
    let base = match here.trim() {
        "main" if dirty.is_empty() => "HEAD~1".to_owned(),
        "main" => "HEAD".to_owned(),
        _ => git(&["merge-base", "main", "HEAD"])?.trim().to_owned(),
    };
    let tracked = git(&["diff", "--name-only", &base, "--", "crates", "lab", ROS2])?;
    let new = git(&["ls-files", "--others", "--exclude-standard", "--", "crates", "lab", ROS2])?;
    let name = |path: &str| {
        let mut parts = path.split('/');
        parts.next().filter(|&first| first == ROS2).or_else(|| parts.next()).map(str::to_owned)
    };
    let found = tracked.lines().chain(new.lines()).filter_map(name);
    Ok(found.filter(|name| folder(root, name).is_some()).collect())
}

fn named(root: &Path, wanted: &[&str]) -> Result<BTreeSet<String>, String> {
    let short = |name: &&str| name.strip_prefix("onbeat-").unwrap_or(name).to_owned();
    match wanted.iter().find(|name| folder(root, &short(name)).is_none()) {
        Some(unknown) => Err(format!("no crate `{unknown}`, expected a folder below crates/ or lab/")),
        None => Ok(wanted.iter().map(short).collect()),
    }
}

/// Folder of a crate.
fn folder(root: &Path, name: &str) -> Option<PathBuf> {
    let places = ["crates", "lab"].map(|place| root.join(place).join(name));
    let own = (name == ROS2).then(|| root.join(name));
    places.into_iter().chain(own).find(|it| it.join("Cargo.toml").exists())
}

/// Package of the crate in a folder.
fn package(folder: &str) -> String {
    match folder {
        "onbeat" | "xtask" | "testkit" => folder.to_owned(),
        name => format!("onbeat-{name}"),
    }
}
