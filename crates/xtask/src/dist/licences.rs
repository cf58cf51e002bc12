//! Licences of the libraries in the programs: only licences that deny.toml allows, and their texts.
//!
//! `cargo deny` reads the same file; its installation takes longer than all other steps of a
//! release.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::read;
use super::target::PACKAGES;
use crate::command;
use crate::report::Outcome;
use crate::ros2;

/// Checks the workspace, the Python package and the ROS 2 node.
pub(crate) fn check(root: &Path) -> Outcome {
    let found = Allowed::read(root).and_then(|allowed| {
        let mut wrong = Vec::new();
        ros2::prepare(root)?;
        for workspace in [root.to_owned(), root.join("python"), root.join("ros2")] {
            for package in metadata(&workspace, &[])?["packages"].as_array().into_iter().flatten() {
                if !allowed.package(package) {
                    wrong.push(format!("{}: {}", text(package, "name"), text(package, "license")));
                }
            }
        }
        Ok(wrong)
    });
    match found {
        Ok(wrong) if wrong.is_empty() => Outcome::Passed,
        Ok(wrong) => {
            Outcome::Failed(format!("licences that deny.toml does not allow: {}", wrong.join("; ")))
        }
        Err(why) => Outcome::Failed(why),
    }
}

/// The licences' texts of everything in the programs for a target, each once.
///
/// # Errors
/// cargo's, or the file system's.
pub(super) fn notices(root: &Path, target: &str) -> Result<String, String> {
    ros2::prepare(root)?;
    let (mut list, mut texts) = (BTreeSet::new(), BTreeMap::<String, BTreeSet<String>>::new());
    for workspace in [root.to_owned(), root.join("ros2")] {
        let metadata = metadata(&workspace, &["--filter-platform", target])?;
        let inside = linked(&metadata);
        let packages = metadata["packages"].as_array().into_iter().flatten();
        for package in packages.filter(|it| is_foreign(it) && inside.contains(text(it, "id"))) {
            let name = format!("{} {}", text(package, "name"), text(package, "version"));
            let (licence, repository) = (text(package, "license"), text(package, "repository"));
            list.insert(format!("{name}: {licence}, {repository}\n"));
            for file in files(package) {
                texts.entry(read(&file)?).or_default().insert(name.clone());
            }
        }
    }
    let list: String = list.into_iter().collect();
    let joined = |names: BTreeSet<String>| names.into_iter().collect::<Vec<_>>().join(", ");
    let texts = texts.into_iter().map(|(text, names)| format!("\n=== {}\n\n{text}\n", joined(names)));
    Ok(format!("Libraries in these programs, and their licences.\n\n{list}{}", texts.collect::<String>()))
}

/// True for a library of other people: from crates.io, or with patches of ours.
fn is_foreign(package: &Value) -> bool {
    !package["source"].is_null() || text(package, "manifest_path").contains("/target/ros2/")
}

/// Files with the licence of a package; of several to choose from not the long one.
fn files(package: &Value) -> Vec<std::path::PathBuf> {
    let folder = Path::new(text(package, "manifest_path")).parent();
    let entries = folder.into_iter().filter_map(|it| fs::read_dir(it).ok()).flatten().flatten();
    let is_licence = |name: &str| {
        let name = name.to_uppercase();
        ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"].iter().any(|it| name.starts_with(it))
    };
    let name =
        |path: &Path| path.file_name().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
    let mut found: Vec<_> =
        entries.map(|it| it.path()).filter(|it| it.is_file() && is_licence(&name(it))).collect();
    found.sort();
    let choice = tokens(text(package, "license")).iter().any(|it| it == "OR");
    let is_long = |path: &Path| name(path).to_uppercase().contains("APACHE");
    if choice && found.iter().any(|it| !is_long(it)) {
        found.retain(|it| !is_long(it));
    }
    found
}

/// Numbers of the packages that the programs are linked of.
fn linked(metadata: &Value) -> BTreeSet<&str> {
    let nodes = metadata["resolve"]["nodes"].as_array().into_iter().flatten();
    let nodes: BTreeMap<&str, &Value> = nodes.map(|node| (text(node, "id"), node)).collect();
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let ours = packages.filter(|it| it["source"].is_null() && PACKAGES.contains(&text(it, "name")));
    let mut open: Vec<&str> = ours.map(|it| text(it, "id")).collect();
    let mut found = BTreeSet::new();
    while let Some(id) = open.pop() {
        let Some(node) = nodes.get(id).filter(|_| found.insert(id)) else { continue };
        let needs = node["deps"].as_array().into_iter().flatten();
        let linked = needs.filter(|it| {
            it["dep_kinds"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
        });
        open.extend(linked.map(|it| text(it, "pkg")));
    }
    found
}

pub(crate) fn metadata(workspace: &Path, options: &[&str]) -> Result<Value, String> {
    let words = [&["metadata", "--format-version=1", "--locked", "--quiet"], options].concat();
    let said = command::output(&mut command::cargo(workspace, &words))?;
    serde_json::from_str(&said).map_err(|error| format!("cargo metadata: {error}"))
}

pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// Licences that deny.toml allows.
struct Allowed {
    licences: BTreeSet<String>,
    /// Crate, and a licence for it alone.
    exceptions: BTreeSet<(String, String)>,
}

impl Allowed {
    fn read(root: &Path) -> Result<Self, String> {
        let file = root.join("deny.toml");
        Self::parse(&read(&file)?)
            .ok_or_else(|| format!("{}: expected `allow` in [licenses]", file.display()))
    }

    /// Takes the two keys in the form that the file has them.
    fn parse(file: &str) -> Option<Self> {
        let list = |key: &str| Some(file.split_once(&format!("\n{key} = ["))?.1.split_once("]\n")?.0);
        let quoted =
            |text: &str| text.split('"').skip(1).step_by(2).map(str::to_owned).collect::<Vec<String>>();
        let exceptions = list("exceptions").unwrap_or_default().split("}").map(quoted);
        let exceptions = exceptions.flat_map(|words| {
            let (name, licences) =
                words.split_first().map_or((String::new(), &[][..]), |it| (it.0.clone(), it.1));
            licences.iter().map(move |it| (name.clone(), it.clone())).collect::<Vec<_>>()
        });
        Some(Self {
            licences: quoted(list("allow")?).into_iter().collect(),
            exceptions: exceptions.collect(),
        })
    }

    fn package(&self, package: &Value) -> bool {
        let name = text(package, "name");
        let allows = |licence: &str| {
            self.licences.contains(licence)
                || self.exceptions.contains(&(name.to_owned(), licence.to_owned()))
        };
        Expression { tokens: tokens(text(package, "license")), at: 0 }.whole(&allows)
    }
}

/// Words and parentheses of an SPDX expression; `/` is an old form of OR.
fn tokens(expression: &str) -> Vec<String> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    spaced.split_whitespace().map(str::to_owned).collect()
}

/// An SPDX expression on its way to true or false.
struct Expression {
    tokens: Vec<String>,
    at: usize,
}

impl Expression {
    fn whole(mut self, allows: &impl Fn(&str) -> bool) -> bool {
        let allowed = self.any(allows);
        allowed && self.at == self.tokens.len()
    }

    fn any(&mut self, allows: &impl Fn(&str) -> bool) -> bool {
        let mut allowed = self.all(allows);
        while self.takes("OR") {
            allowed |= self.all(allows);
        }
        allowed
    }

    fn all(&mut self, allows: &impl Fn(&str) -> bool) -> bool {
        let mut allowed = self.one(allows);
        while self.takes("AND") {
            allowed &= self.one(allows);
        }
        allowed
    }

    fn one(&mut self, allows: &impl Fn(&str) -> bool) -> bool {
        if self.takes("(") {
            return self.any(allows) & self.takes(")");
        }
        let mut licence = self.next();
        if self.takes("WITH") {
            licence = format!("{licence} WITH {}", self.next());
        }
        allows(&licence)
    }

    fn takes(&mut self, token: &str) -> bool {
        let is_it = self.tokens.get(self.at).is_some_and(|it| it == token);
        self.at += usize::from(is_it);
        is_it
    }

    fn next(&mut self) -> String {
        self.at += 1;
        self.tokens.get(self.at - 1).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_evaluated_as_spdx_specifies() {
        let allowed = Allowed::parse(
            "\nallow = [\"MIT\", \"A WITH B\"]\nexceptions = [{ crate = \"c\", allow = [\"M\"] }]\n",
        );
        let allowed = allowed.expect("a list");
        let judged = |name: &str, license: &str| {
            allowed.package(&serde_json::json!({ "name": name, "license": license }))
        };
        for right in ["MIT", "GPL-3.0 OR MIT", "GPL-3.0/MIT", "(MIT OR X) AND MIT", "A WITH B OR X"] {
            assert!(judged("any", right), "{right}");
        }
        for wrong in ["", "GPL-3.0", "MIT AND X", "A", "MIT AND (X OR Y)", "(MIT", "MIT MIT", "M"] {
            assert!(!judged("any", wrong), "{wrong}");
        }
        assert!(judged("c", "M") && judged("c", "M AND MIT"));
    }
}
