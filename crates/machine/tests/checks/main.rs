//! Tests of every check with machines that are files in a folder.

mod lies;
mod rows;
mod tree;

use std::collections::BTreeSet;

use machine::check::{self, Finding, Severity};
use onbeat_machine as machine;

use tree::Tree;

/// Finding of one check.
fn finding(tree: &Tree, name: &str) -> Finding {
    let found = check::all(&tree.subject()).into_iter().find(|finding| finding.name == name);
    found.unwrap_or_else(|| panic!("no check is called {name}"))
}

// feature(doctor): every check can pass and every check can fail
#[test]
fn a_well_tuned_machine_passes_every_check() {
    let findings = check::all(&Tree::tuned("tuned").subject());
    let not_ok: Vec<_> = findings.iter().filter(|finding| finding.severity != Severity::Ok).collect();
    assert!(not_ok.is_empty(), "{not_ok:#?}");
    assert!(findings.len() > 40, "{}", findings.len());
    assert!(findings.iter().all(|it| !it.found.is_empty() && !it.wanted.is_empty() && !it.why.is_empty()));
    assert!(findings.iter().all(|finding| finding.fix.is_empty() && !finding.fixable));
}

/// Each row spoils one property of the well-tuned machine; a check without a row could not fail.
// feature(doctor): every check can pass and every check can fail
#[test]
fn every_check_can_fail() {
    let mut failed = BTreeSet::new();
    for (number, row) in rows::ROWS.iter().enumerate() {
        let tree = Tree::tuned(&format!("row-{number}"));
        let mut tree = tree;
        (row.spoil)(&mut tree);
        let found = finding(&tree, row.check);
        assert_eq!(found.severity, row.severity, "row {number}: {found:#?}");
        assert!(found.found.contains(row.found), "row {number}: expected {:?}: {found:#?}", row.found);
        assert_eq!(found.fixable, row.fixable, "row {number}: {found:#?}");
        if found.severity > Severity::Ok {
            assert!(!found.fix.is_empty(), "row {number}: {found:#?}");
            failed.insert(row.check);
        }
    }
    let without: Vec<_> =
        check::names().map(|(name, _)| name).filter(|name| !failed.contains(name)).collect();
    assert!(without.is_empty(), "no row makes these fail: {without:?}");
}

/// The changes of a fix make its check pass: they are written to the files of the folder.
// feature(doctor): `--fix` changes settings, `--restore` restores them
#[test]
fn every_written_fix_resolves_its_finding() {
    let mut mended = 0;
    for (number, row) in rows::ROWS.iter().enumerate().filter(|(_, row)| row.fixable) {
        let mut tree = Tree::tuned(&format!("fix-{number}"));
        (row.spoil)(&mut tree);
        let before = finding(&tree, row.check);
        for change in &before.changes {
            tree.make(change);
        }
        let after = finding(&tree, row.check);
        assert!(after.severity < before.severity, "row {number}: {after:#?}");
        mended += 1;
    }
    assert!(mended > 20, "{mended}");
}

#[test]
fn names_are_unique_and_do_not_need_quotes() {
    let names: Vec<_> = check::names().map(|(name, _)| name).collect();
    let unique: BTreeSet<_> = names.iter().collect();
    assert_eq!(unique.len(), names.len());
    let plain = |name: &&str| {
        name.bytes().all(|letter| letter.is_ascii_lowercase() || letter == b'-' || letter == b'6')
    };
    assert!(names.iter().all(plain), "{names:?}");
}

#[test]
fn without_an_interface_nothing_is_said_of_one() {
    let tree = Tree::tuned("no-interface");
    let findings = check::all(&check::Subject::new(tree.root(), Some(3)));
    assert!(findings.iter().all(|finding| !finding.name.starts_with("nic-")));
    assert!(findings.len() > 40);
}

#[test]
fn the_first_isolated_cpu_is_the_default_and_else_the_last() {
    let mut tree = Tree::tuned("default-cpu");
    let cpu = |tree: &Tree| check::Subject::new(tree.root(), None).cpu();
    assert_eq!(cpu(&tree), 3);
    tree.file("/sys/devices/system/cpu/isolated", "1-2");
    assert_eq!(cpu(&tree), 1);
    tree.file("/sys/devices/system/cpu/isolated", "\n");
    tree.file("/sys/devices/system/cpu/online", "0-2");
    assert_eq!(cpu(&tree), 2);
    tree.file("/sys/devices/system/cpu/online", "what?");
    assert_eq!(cpu(&tree), 0);
}

/// The page for users names every check, and marks exactly the checks that a row above fixes.
#[test]
fn the_documentation_lists_every_check() {
    let page = include_str!("../../../../docs/doctor.md");
    let section =
        page.split_once("## The checks").expect("a section").1.split_once("\n## ").expect("another").0;
    let listed: BTreeSet<&str> =
        section.split('`').skip(1).step_by(2).filter(|it| !it.starts_with(['-', '*'])).collect();
    let names: BTreeSet<&str> = check::names().map(|(name, _)| name).collect();
    let missing: Vec<_> = names.difference(&listed).collect();
    let unknown: Vec<_> = listed.difference(&names).collect();
    assert!(missing.is_empty() && unknown.is_empty(), "missing: {missing:?}, unknown: {unknown:?}");
    for name in names {
        let marked = section.contains(&format!("`{name}`*"));
        let mended = rows::ROWS.iter().any(|row| row.check == name && row.fixable);
        assert_eq!(marked, mended, "{name}");
    }
}
