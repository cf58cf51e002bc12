//! Check of FEATURES.md: every test it names exists.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

#[test]
fn every_test_that_features_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut names = HashSet::new();
    collect_tests(&root.join("crates"), &mut names);
    let features = fs::read_to_string(root.join("FEATURES.md")).expect("FEATURES.md");
    let rows = features.lines().filter(|line| line.starts_with('|') && line.contains('`'));
    let tests = rows.filter_map(|row| row.trim_end_matches('|').rsplit('|').next());
    let named: Vec<_> = tests.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    assert!(named.len() > 50, "{} names", named.len());
    let missing: Vec<_> = named.iter().filter(|name| !names.contains(**name)).collect();
    assert!(missing.is_empty(), "no such tests: {missing:?}");
}

/// Collects functions after a `#[test]`, or inside a `proptest!`.
fn collect_tests(folder: &Path, names: &mut HashSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        if entry.is_dir() {
            collect_tests(&entry, names);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&entry).expect("UTF-8");
            let mut is_test = false;
            for line in text.lines().map(str::trim) {
                if let (true, Some(name)) =
                    (is_test, line.strip_prefix("fn ").and_then(|it| it.split('(').next()))
                {
                    names.insert(name.to_owned());
                    is_test = false;
                }
                is_test = line.starts_with("#[test]") || (is_test && line.starts_with('#'));
            }
        }
    }
}
