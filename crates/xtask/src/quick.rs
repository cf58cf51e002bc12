//! The fast checks before a commit: format, lints, and unit tests of the crates that changed.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::command;
use crate::report::{Outcome, Report};

/// Crates whose tests need neither real time nor network namespaces: all their tests run.
const PURE: [&str; 6] = ["types", "ethercat", "motion", "record", "robot", "schedulability"];

/// Runs the checks of `wanted`, or of the crates that changed since the last commit of `main`.
pub(crate) fn run(root: &Path, wanted: &[&str], report: &mut Report) {
    let changed = if wanted.is_empty() { changed(root) } else { named(root, wanted) };
    let crates = match changed {
        Ok(crates) if crates.is_empty() => {
            return println!("no crate changed since main; `cargo xtask quick CRATE` checks one");
        }
        Ok(crates) => crates,
        Err(why) => return report.step("quick", || Outcome::Failed(why)),
    };
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
            "rt" => tests.args(["--features", "threads", "--lib"]),
            name if PURE.contains(&name) => tests.arg("--tests"),
            name if root.join("crates").join(name).join("src/lib.rs").exists() => tests.arg("--lib"),
            _ => tests.arg("--bins"),
        };
        report.step(&format!("tests of {name}"), || Outcome::of(&mut tests));
    }
}

/// Folders below `crates` with files that differ from the branch `main`, or from the commit before where that is checked out.
fn changed(root: &Path) -> Result<BTreeSet<String>, String> {
    let git = |words: &[&str]| command::output(Command::new("git").args(words).current_dir(root));
    let here = git(&["rev-parse", "--abbrev-ref", "HEAD"])?;
    let dirty = git(&["status", "--porcelain", "--", "crates"])?;
    let base = match here.trim() {
        "main" if dirty.is_empty() => "HEAD~1".to_owned(),
        "main" => "HEAD".to_owned(),
        _ => git(&["merge-base", "main", "HEAD"])?.trim().to_owned(),
    };
    let tracked = git(&["diff", "--name-only", &base, "--", "crates"])?;
    let new = git(&["ls-files", "--others", "--exclude-standard", "--", "crates"])?;
    let folder = |path: &str| path.split('/').nth(1).map(str::to_owned);
    let found = tracked.lines().chain(new.lines()).filter_map(folder);
    Ok(found.filter(|name| is_crate(root, name)).collect())
}

fn named(root: &Path, wanted: &[&str]) -> Result<BTreeSet<String>, String> {
    let short = |name: &&str| name.strip_prefix("onbeat-").unwrap_or(name).to_owned();
    match wanted.iter().find(|name| !is_crate(root, &short(name))) {
        Some(unknown) => Err(format!("no crate `{unknown}`, expected the name of a folder below crates/")),
        None => Ok(wanted.iter().map(short).collect()),
    }
}

fn is_crate(root: &Path, name: &str) -> bool {
    root.join("crates").join(name).join("Cargo.toml").exists()
}

/// Package of the crate in a folder.
fn package(folder: &str) -> String {
    match folder {
        "onbeat" | "xtask" | "testkit" => folder.to_owned(),
        name => format!("onbeat-{name}"),
    }
}
