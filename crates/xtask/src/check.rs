//! Checks of formatting, lints, documentation, and of a target without an operating system.

mod house;

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::command;
use crate::dist;
use crate::dist::licences;
use crate::report::{Outcome, Report};
use crate::{ros2, setup};

/// Runs the checks of every commit.
pub(crate) fn all(root: &Path, report: &mut Report) {
    format(root, report);
    clippy(root, report);
    documentation(root, report);
    licences(root, report);
    rules(root, report);
    report.step("Rust versions", || rust_versions(root).map_or_else(Outcome::Failed, |()| Outcome::Passed));
}

/// Compares the figures of the repository, such as lengths and circles, with their limits.
pub(crate) fn rules(root: &Path, report: &mut Report) {
    house::all(root, report);
}

/// Checks the rules of `deny.toml`: licences, bans and sources of every workspace, and advisories
/// where their database can be reached. Installs cargo-deny if it is missing.
pub(crate) fn deny(root: &Path, report: &mut Report) {
    if let Err(why) = setup::cargo_deny(root) {
        return report.step("cargo deny", || Outcome::Failed(why));
    }
    // No program contains what fuzz targets are built of, so its licences do not matter.
    let all: &[_] = &["bans", "licenses", "sources"];
    if let Err(why) = ros2::prepare(root) {
        return report.step("cargo deny", || Outcome::Failed(why));
    }
    for (manifest, rules) in [
        ("Cargo.toml", all),
        ("python/Cargo.toml", all),
        ("ros2/Cargo.toml", all),
        ("fuzz/Cargo.toml", &["bans", "sources"]),
    ] {
        let check =
            ["deny", "--all-features", "--manifest-path", manifest, "check", "--config", "deny.toml"];
        report.step(&format!("cargo deny {manifest}"), || {
            Outcome::of(command::cargo(root, &check).args(rules))
        });
    }
    report.step("cargo deny: advisories", || {
        // Fetched apart: a database that cannot be reached is no finding.
        match command::output(&mut command::cargo(root, &["deny", "fetch", "db"])) {
            Err(why) => Outcome::Skipped(format!("no database of advisories: {why}")),
            Ok(_) => {
                let check = ["deny", "check", "--disable-fetch", "advisories"];
                Outcome::of(&mut command::cargo(root, &check))
            }
        }
    });
}

/// Checks that no library needs a newer Rust than the manifest of its workspace declares.
fn rust_versions(root: &Path) -> Result<(), String> {
    ros2::prepare(root)?;
    for (folder, program) in [(root.to_owned(), "onbeat-cli"), (root.join("ros2"), "onbeat-ros2")] {
        let metadata = licences::metadata(&folder, &["--filter-platform", LINUX])?;
        let packages: Vec<&Value> = metadata["packages"].as_array().into_iter().flatten().collect();
        let declared = packages.iter().find(|it| licences::text(it, "name") == program);
        let declared = declared.map(|it| version(it)).ok_or_else(|| format!("no package {program}"))?;
        if let Some(newer) = packages.into_iter().find(|it| version(it) > declared) {
            return Err(format!(
                "{}: {} needs Rust {}, the manifest declares {}",
                folder.display(),
                licences::text(newer, "name"),
                licences::text(newer, "rust_version"),
                declared.map(|part| part.to_string()).join(".")
            ));
        }
    }
    Ok(())
}

/// Rust version that a package needs; zeros if it does not say so.
fn version(package: &Value) -> [u32; 3] {
    let mut parts =
        licences::text(package, "rust_version").split('.').map(|part| part.parse().unwrap_or(0));
    std::array::from_fn(|_| parts.next().unwrap_or(0))
}

const LINUX: &str = "x86_64-unknown-linux-gnu";

/// Checks that every file is formatted by rustfmt.
pub(crate) fn format(root: &Path, report: &mut Report) {
    report.step("format", || Outcome::of(&mut command::cargo(root, &["fmt", "--all", "--check"])));
    report.step("format: ros2", || of_ros2(root, &["fmt", "--check"]));
}

/// Checks for warnings in libraries, programs, tests and examples.
pub(crate) fn clippy(root: &Path, report: &mut Report) {
    let arguments = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    report.step("clippy", || Outcome::of(&mut command::cargo(root, &arguments)));
    report.step("clippy: ros2", || {
        // Its dependencies were checked above.
        of_ros2(root, &["clippy", "--all-targets", "--", "--no-deps", "-D", "warnings"])
    });
    for features in ["", "diagnosis", "recording"] {
        let name = match features {
            "" => "clippy: the library without its features".to_owned(),
            one => format!("clippy: the library with the feature {one} alone"),
        };
        let alone = ["clippy", "--package", "onbeat", "--features", features];
        // Without features also its tests and examples. Its dependencies were checked above.
        let targets = if features.is_empty() { "--all-targets" } else { "--lib" };
        report.step(&name, || {
            Outcome::of(command::cargo(root, &alone).args([targets, "--", "--no-deps", "-D", "warnings"]))
        });
    }
}

/// cargo in the workspace of the ROS 2 node.
pub(crate) fn of_ros2(root: &Path, arguments: &[&str]) -> Outcome {
    match ros2::prepare(root) {
        Ok(()) => Outcome::of(ros2::cargo(root, arguments).env("RUSTDOCFLAGS", "-D warnings")),
        Err(why) => Outcome::Failed(why),
    }
}

/// Checks that every library has a licence that deny.toml allows.
pub(crate) fn licences(root: &Path, report: &mut Report) {
    report.step("licences", || licences::check(root));
}

/// Packs every crate that is to be published, as `cargo publish` does, without building it once
/// more.
pub(crate) fn packages(root: &Path, report: &mut Report) {
    report.step("cargo package", || package(root, &["--no-verify"]));
}

/// Packs them, and builds each from its package alone, on the packages of the others, as with
/// `cargo publish`. This takes minutes.
pub(crate) fn built_packages(root: &Path, report: &mut Report) {
    report.step("cargo package, each built", || package(root, &[]));
}

fn package(root: &Path, options: &[&str]) -> Outcome {
    let words = ["package", "--workspace", "--allow-dirty", "--quiet"];
    let kept = UNPUBLISHED.iter().flat_map(|name| ["--exclude", name]);
    let words: Vec<&str> = words.into_iter().chain(kept).chain(options.iter().copied()).collect();
    Outcome::of(&mut command::cargo(root, &words))
}

/// Crates of the workspace with `publish = false`; a test holds the list.
const UNPUBLISHED: [&str; 3] = ["onbeat-experiments", "testkit", "xtask"];

/// Checks that the program compiles with musl's library, and where a pointer has 32 bits.
pub(crate) fn other_targets(root: &Path, report: &mut Report) {
    report.step("the program on 32 bits, with musl", || dist::other_targets(root));
}

/// Builds the protocol crate for a target without an operating system.
pub(crate) fn bare_target(root: &Path, report: &mut Report) {
    report.step("the protocol without an operating system", || {
        let add = Command::new("rustup").args(["target", "add", BARE_TARGET]).current_dir(root).output();
        if !add.is_ok_and(|it| it.status.success()) {
            return Outcome::Skipped(format!("needs rustup and the network, for the target {BARE_TARGET}"));
        }
        let arguments = ["build", "--package", "onbeat-ethercat", "--target", BARE_TARGET];
        Outcome::of(&mut command::cargo(root, &arguments))
    });
}

/// A Cortex-M7: no operating system, no `std`.
const BARE_TARGET: &str = "thumbv7em-none-eabihf";

/// Checks for broken links in the documentation.
pub(crate) fn documentation(root: &Path, report: &mut Report) {
    let mut command = command::cargo(root, &["doc", "--workspace", "--no-deps"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    report.step("documentation", || Outcome::of(&mut command));
    report.step("documentation: ros2", || of_ros2(root, &["doc", "--no-deps"]));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rust_versions_compare_as_numbers() {
        let of = |version_text: &str| version(&json!({ "rust_version": version_text }));
        assert_eq!(of("1.88"), of("1.88.0"));
        assert!(of("1.100") > of("1.88.1") && of("1.88.1") > of("1.88"));
        assert_eq!(version(&json!({})), [0; 3]);
    }
}
