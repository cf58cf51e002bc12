//! List of all features with their tests, from the comments `// feature(KEY): TEXT` above the
//! tests.
//!
//! Tests with the same key and text share a row.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::report::Outcome;

/// Sections of the list: key in the comments, and title.
const SECTIONS: &[(&str, &str)] = &[
    ("protocol", "Protocol (`crates/ethercat`)"),
    ("bus", "The bus without a robot file (`crates/ethercat-linux`)"),
    ("main-device", "MainDevice (`ethercat::main_device`)"),
    ("redundancy", "Cable redundancy (`ethercat::redundancy`, `link::Redundant`)"),
    ("cia402", "CiA 402 (`ethercat::cia402`)"),
    ("simulator", "Simulator (`crates/simulator`)"),
    ("cycle", "Cycle (`control::cycle`, `crates/rt`, `crates/record`)"),
    ("library", "The library (`crates/onbeat`)"),
    ("program", "Program (`crates/cli`)"),
    ("hold", "Holding the cycle (`rt::profile`, `crates/machine`)"),
    ("doctor", "`onbeat doctor`"),
    ("measure", "Recording, reporting, `onbeat measure`"),
    ("explain", "`onbeat run --explain` (`crates/diagnose`)"),
    ("analyse", "`onbeat analyse` (`schedulability`, `schedulability::bus`)"),
    ("ipc", "Shared memory (`crates/ipc`, `control::ipc`)"),
    ("running-bus", "The running bus, asked from outside (`ipc::bus`, `control::bus`)"),
    ("diagnosis", "`onbeat diag` (`ethercat::main_device::judge`)"),
    ("axes", "Axes and controllers (`motion::supervision`, `control::axis`, `crates/controllers`)"),
    ("signals", "Signals: process data by name (`types::signal`, `robot/check/signal`, `control::signal`)"),
    ("motion", "Motion (`crates/motion`)"),
    ("tasks", "Real-time tasks (`rt::task`, `diagnose::disturbance`)"),
    ("devices", "Devices (`crates/devices`)"),
    ("ros2", "ROS 2 (`ros2`)"),
    ("papers", "The papers' comparisons (`lab/experiments`)"),
];

const HEAD: &str = "\
# Features and their tests

From the comments `// feature(KEY): TEXT` above the tests.
";

/// One row: a feature and the names of its tests.
struct Row {
    key: String,
    text: String,
    tests: Vec<String>,
}

/// Writes the list.
pub(crate) fn write(root: &Path) -> Outcome {
    let written = page(root).and_then(|page| {
        let target = root.join("target");
        fs::create_dir_all(&target)
            .and_then(|()| fs::write(target.join("features.md"), page))
            .map_err(|error| format!("{}: {error}", target.display()))
    });
    written.map_or_else(Outcome::Failed, |()| Outcome::Passed)
}

/// Text of the list.
fn page(root: &Path) -> Result<String, String> {
    let mut rows = Vec::new();
    let mut files = sources(&root.join("crates"))?;
    files.extend(sources(&root.join("lab"))?);
    files.extend(sources(&root.join("ros2"))?);
    files.sort();
    for file in files {
        let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        collect(&text, &mut rows).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(render(&rows))
}

fn render(rows: &[Row]) -> String {
    let mut page = HEAD.to_owned();
    for (key, title) in SECTIONS {
        let mut here = rows.iter().filter(|row| row.key == *key).peekable();
        if here.peek().is_none() {
            continue;
        }
        let _ = write!(page, "\n## {title}\n\n| feature | test |\n|---|---|\n");
        for Row { text, tests, .. } in here {
            let tests: Vec<String> = tests.iter().map(|test| format!("`{test}`")).collect();
            let _ = writeln!(page, "| {text} | {} |", tests.join(", "));
        }
    }
    page
}

/// Adds the features of a source file: features above a `#[test]` belong to the function that
/// follows.
fn collect(text: &str, rows: &mut Vec<Row>) -> Result<(), String> {
    let mut places: HashMap<(String, String), usize> =
        rows.iter().enumerate().map(|(place, row)| ((row.key.clone(), row.text.clone()), place)).collect();
    let mut waiting = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(feature) = line.strip_prefix(MARK) {
            waiting.push(feature_of(feature).map_err(|error| format!("line {}: {error}", number + 1))?);
        } else if let Some(name) = line.strip_prefix("fn ").and_then(|it| it.split('(').next()) {
            for (key, text) in waiting.drain(..) {
                let place = *places.entry((key.clone(), text.clone())).or_insert_with(|| {
                    rows.push(Row { key, text, tests: Vec::new() });
                    rows.len() - 1
                });
                rows[place].tests.push(name.to_owned());
            }
        } else if !(waiting.is_empty() || line.starts_with('#') || line.starts_with("//")) {
            return Err(format!("line {}: found {line:?}, expected the test of a feature", number + 1));
        }
    }
    Ok(())
}

/// Key and text behind the mark.
fn feature_of(feature: &str) -> Result<(String, String), String> {
    let (key, text) = feature.split_once("): ").ok_or("expected `// feature(KEY): TEXT`")?;
    if SECTIONS.iter().any(|(known, _)| *known == key) {
        return Ok((key.to_owned(), text.to_owned()));
    }
    let known: Vec<&str> = SECTIONS.iter().map(|(key, _)| *key).collect();
    Err(format!("found key \"{key}\", expected one of {}", known.join(", ")))
}

fn sources(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|error| format!("{}: {error}", folder.display()))?.path();
        if path.is_dir() && !path.ends_with("target") {
            files.extend(sources(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(files)
}

/// Begin of a feature's comment.
const MARK: &str = "// feature(";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_has_features() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let list = page(&root).unwrap();
        assert!(list.matches("\n| ").count() > 200, "{list}");
        for (_, title) in SECTIONS {
            assert!(list.contains(&format!("\n## {title}\n")), "{title}");
        }
    }

    fn rows(text: &str) -> Result<Vec<Row>, String> {
        let mut rows = Vec::new();
        collect(text, &mut rows).map(|()| rows)
    }

    #[test]
    fn tests_with_the_same_text_share_a_row() {
        let text =
            ["one", "two"].map(|name| format!("{MARK}cycle): no allocation\n#[test]\nfn {name}() {{}}\n"));
        let page = render(&rows(&text.concat()).unwrap());
        assert!(page.contains("| no allocation | `one`, `two` |"), "{page}");
    }

    #[test]
    fn a_comment_without_a_test_or_with_an_unknown_key_is_reported() {
        let lost = rows(&format!("{MARK}cycle): no allocation\n\nstruct It;\n")).err().unwrap();
        assert_eq!(lost, "line 2: found \"\", expected the test of a feature");
        let unknown = rows(&format!("{MARK}cicle): no allocation\n#[test]\n")).err().unwrap();
        assert!(unknown.starts_with("line 1: found key \"cicle\", expected one of protocol"), "{unknown}");
    }
}
