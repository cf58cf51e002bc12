//! The rules of `deny.toml`, checked by cargo-deny: licences, bans and sources of every workspace,
//! and advisories where their database can be reached.

use std::path::Path;

use crate::command;
use crate::report::{Outcome, Report};
use crate::{ros2, setup};

/// Installs cargo-deny if it is missing, and checks.
pub(crate) fn all(root: &Path, report: &mut Report) {
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
