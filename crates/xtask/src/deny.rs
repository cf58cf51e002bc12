//! The rules of `deny.toml`: held by the checks below in every run, and by cargo-deny where it is installed.
//!
//! | rule | own check |
//! |---|---|
//! | `[licenses]` | [`crate::dist::licences::check`] |
//! | `[sources]`: crates.io and this repository only | `source` of each package in `cargo metadata` |
//! | `[bans]`: no requirement `*` of a foreign crate | `dependencies` of each of our packages |
//! | `[advisories]` | none: cargo-deny alone, where its database can be reached |
//!
//! Building cargo-deny takes longer than the whole check of this workspace: nothing installs it.

use std::path::Path;

use serde_json::Value;

use crate::command;
use crate::dist::licences::{metadata, text};
use crate::report::{Outcome, Report};

/// Checks sources and bans.
pub(crate) fn check(root: &Path) -> Outcome {
    let found: Result<Vec<String>, String> =
        [root.to_owned(), root.join("python")].iter().try_fold(Vec::new(), |mut all, workspace| {
            all.extend(wrong(&metadata(workspace, &[])?));
            Ok(all)
        });
    match found {
        Ok(wrong) if wrong.is_empty() => Outcome::Passed,
        Ok(wrong) => Outcome::Failed(format!("against deny.toml: {}", wrong.join("; "))),
        Err(why) => Outcome::Failed(why),
    }
}

/// Packages that break `[sources]` or `[bans]`.
fn wrong(metadata: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = text(package, "name");
        match package["source"].as_str() {
            Some(CRATES_IO) => continue,
            Some(other) => {
                wrong.push(format!("{name} comes from {other}, expected crates.io"));
                continue;
            }
            None => {}
        }
        let dependencies = package["dependencies"].as_array().into_iter().flatten();
        let any = dependencies.filter(|it| text(it, "req") == "*" && it["path"].is_null());
        wrong.extend(any.map(|it| format!("{name} takes any version of {}", text(it, "name"))));
    }
    wrong
}

/// Runs cargo-deny over the same rules, and its advisories where their database can be reached.
pub(crate) fn cargo_deny(root: &Path, report: &mut Report) {
    if !command::works("cargo", &["deny", "--version"]) {
        return report.step("cargo deny", || {
            let how = "`cargo install --locked cargo-deny`, some minutes";
            Outcome::Skipped(format!(
                "it is not installed ({how}): licences, bans and sources are checked without it, advisories are not"
            ))
        });
    }
    let check = ["deny", "--all-features", "check", "bans", "licenses", "sources"];
    report.step("cargo deny", || Outcome::of(&mut command::cargo(root, &check)));
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

/// The registry of crates.io, as `cargo metadata` names it.
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn foreign_sources_and_open_versions_are_named() {
        let package = |name: &str, source: Value, req: &str, path: Value| {
            json!({ "name": name, "source": source,
                    "dependencies": [{ "name": "x", "req": req, "path": path }] })
        };
        let git = "git+https://example.org/x#1";
        let packages = [
            package("ours", Value::Null, "^1", Value::Null),
            package("beside", Value::Null, "*", "/beside".into()),
            package("theirs", CRATES_IO.into(), "*", Value::Null),
            package("loose", Value::Null, "*", Value::Null),
            package("fork", git.into(), "^1", Value::Null),
        ];
        let found = wrong(&json!({ "packages": packages }));
        assert_eq!(
            found,
            [
                "loose takes any version of x".to_owned(),
                format!("fork comes from {git}, expected crates.io")
            ]
        );
    }

    /// The checks of this file are the rules of deny.toml.
    #[test]
    fn the_rules_are_those_of_the_file() {
        let file = std::fs::read_to_string(crate::workspace_root().join("deny.toml")).expect("deny.toml");
        for line in [
            "wildcards = \"deny\"",
            "multiple-versions = \"allow\"",
            "unknown-registry = \"deny\"",
            "unknown-git = \"deny\"",
            "allow-registry = [\"https://github.com/rust-lang/crates.io-index\"]",
            "allow-git = []",
        ] {
            assert!(file.lines().any(|it| it == line), "deny.toml: expected {line}");
        }
    }
}
