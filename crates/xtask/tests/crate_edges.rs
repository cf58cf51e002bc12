//! Dependencies between the crates of the workspace, and the places of unsafe code.

mod workspace;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use workspace::{crates, text};

/// Package, crates of ours it may import, and those its tests may import besides.
const EDGES: &[(&str, &[&str], &[&str])] = &[
    ("onbeat-types", &[], &[]),
    ("onbeat-ethercat", &["onbeat-types"], &["onbeat-simulator"]),
    ("onbeat-rt", &["onbeat-types"], &[]),
    ("onbeat-ethercat-linux", &["onbeat-ethercat", "onbeat-rt"], &["onbeat-simulator", "testkit"]),
    ("onbeat-motion", &["onbeat-types"], &["testkit"]),
    ("onbeat-record", &["onbeat-types"], &[]),
    ("onbeat-schedulability", &["onbeat-types"], &[]),
    ("onbeat-report", &["onbeat-record"], &["onbeat-types"]),
    ("onbeat-machine", &["onbeat-types"], &["testkit"]),
    ("onbeat-diagnose", &["onbeat-types", "onbeat-rt", "onbeat-record", "onbeat-machine"], &[]),
    ("onbeat-ipc", &["onbeat-types"], &["testkit"]),
    ("onbeat-robot", &["onbeat-types", "onbeat-ethercat", "onbeat-motion", "onbeat-schedulability"], &[]),
    ("onbeat-simulator", &["onbeat-ethercat", "onbeat-motion", "onbeat-types"], &["testkit"]),
    (
        "onbeat-control",
        &[
            "onbeat-types",
            "onbeat-ethercat",
            "onbeat-ethercat-linux",
            "onbeat-rt",
            "onbeat-motion",
            "onbeat-record",
            "onbeat-machine",
            "onbeat-ipc",
        ],
        &["onbeat-schedulability", "onbeat-diagnose", "onbeat-simulator", "testkit"],
    ),
    (
        "onbeat-controllers",
        &["onbeat-ethercat", "onbeat-motion", "onbeat-ipc", "onbeat-control"],
        &["onbeat-simulator", "testkit"],
    ),
    (
        "onbeat-devices",
        &["onbeat-types", "onbeat-motion", "onbeat-record", "onbeat-ipc", "onbeat-control"],
        &["testkit"],
    ),
    ("onbeat-ros2", &["onbeat-types", "onbeat-ipc", "onbeat-motion"], &["testkit"]),
    (
        "onbeat-experiments",
        &[
            "onbeat-types",
            "onbeat-ethercat",
            "onbeat-rt",
            "onbeat-ethercat-linux",
            "onbeat-simulator",
            "onbeat-record",
            "onbeat-schedulability",
            "onbeat-report",
            "onbeat-machine",
            "onbeat-control",
            "onbeat-motion",
            "onbeat-ipc",
            "onbeat-controllers",
            "onbeat-devices",
            "onbeat-robot",
            "onbeat",
            "onbeat-cli",
        ],
        &["testkit"],
    ),
    (
        "onbeat",
        &[
            "onbeat-types",
            "onbeat-ethercat",
            "onbeat-motion",
            "onbeat-record",
            "onbeat-machine",
            "onbeat-diagnose",
            "onbeat-ipc",
            "onbeat-robot",
            "onbeat-simulator",
            "onbeat-control",
            "onbeat-controllers",
            "onbeat-devices",
        ],
        &["onbeat-ethercat-linux", "testkit"],
    ),
    (
        "onbeat-cli",
        &[
            "onbeat",
            "onbeat-types",
            "onbeat-ethercat",
            "onbeat-rt",
            "onbeat-ethercat-linux",
            "onbeat-motion",
            "onbeat-record",
            "onbeat-machine",
            "onbeat-diagnose",
            "onbeat-ipc",
            "onbeat-robot",
            "onbeat-simulator",
            "onbeat-control",
            "onbeat-controllers",
            "onbeat-devices",
        ],
        &["testkit"],
    ),
    ("testkit", &[], &[]),
    ("xtask", &["testkit"], &[]),
];

/// Crates in which every target forbids unsafe code.
const SAFE: &[&str] = &[
    "types",
    "ethercat",
    "motion",
    "record",
    "schedulability",
    "report",
    "robot",
    "simulator",
    "controllers",
    "ros2",
    "onbeat",
    "cli",
    "xtask",
];

#[test]
fn crates_import_only_what_the_map_allows() {
    let packages = workspace::packages();
    let known: BTreeMap<_, _> =
        EDGES.iter().map(|&(name, imports, tests)| (name, (imports, tests))).collect();
    let mut names: Vec<&str> = packages.iter().map(|package| text(package, "name")).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        known.keys().copied().collect::<Vec<_>>(),
        "the workspace's packages and the map's differ"
    );
    let mut wrong = Vec::new();
    for package in &packages {
        let name = text(package, "name");
        let (imports, tests) = known[name];
        for dependency in package["dependencies"].as_array().expect("a list of dependencies") {
            let imported = text(dependency, "name");
            if !known.contains_key(imported) {
                continue; // not ours
            }
            let in_tests = dependency["kind"] == "dev";
            let allowed = imports.contains(&imported) || in_tests && tests.contains(&imported);
            if !allowed {
                wrong.push(format!(
                    "{name} imports {imported}{}",
                    if in_tests { " in its tests" } else { "" }
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "edges the map does not have: {wrong:#?}");
}

#[test]
fn the_simulator_never_mentions_the_main_device() {
    let found = lines_with(&crates().join("simulator/src"), |line| line.contains("main_device"));
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn crates_without_system_calls_forbid_unsafe_code() {
    for name in SAFE {
        let source = crates().join(name).join("src");
        let root =
            ["lib.rs", "main.rs"].map(|file| source.join(file)).into_iter().find(|file| file.exists());
        let root = root.unwrap_or_else(|| panic!("{name} has a lib.rs or a main.rs"));
        let text = fs::read_to_string(&root).expect("a readable source file");
        assert!(
            text.contains("#![forbid(unsafe_code)]"),
            "{} lacks #![forbid(unsafe_code)]",
            root.display()
        );
    }
}

/// Crates that make system calls, and may have unsafe code below `src/sys` only.
const UNSAFE_IN_SYS: &[&str] =
    &["rt", "ethercat-linux", "machine", "diagnose", "ipc", "control", "devices", "experiments", "testkit"];

#[test]
fn unsafe_code_stands_only_where_a_crate_talks_to_the_system() {
    for name in UNSAFE_IN_SYS {
        unsafe_code_stands_below_sys(&crates().join(name).join("src"));
    }
}

fn unsafe_code_stands_below_sys(source: &Path) {
    let is_unsafe = |line: &str| {
        let code = line.split("//").next().unwrap_or_default();
        code.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|word| word == "unsafe")
    };
    let found = lines_with(source, is_unsafe);
    let outside: Vec<_> = found.iter().filter(|(file, ..)| !file.starts_with(source.join("sys"))).collect();
    assert!(outside.is_empty(), "unsafe code outside src/sys: {outside:#?}");
}

/// Crates that a program with a bus of its own compiles besides this project.
// feature(bus): a dozen other crates at most; no signal handler, no printing, no exit
#[test]
fn the_bus_brings_a_dozen_other_crates_at_most() {
    let mut tree = Command::new(env!("CARGO"));
    tree.args([
        "tree",
        "--package",
        "onbeat-ethercat-linux",
        "--edges",
        "normal",
        "--prefix",
        "none",
        "--offline",
    ]);
    let output = tree.current_dir(crates()).output().expect("cargo tree runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let listed = String::from_utf8_lossy(&output.stdout);
    let names = listed.lines().filter_map(|line| line.split(' ').next());
    let others: BTreeSet<_> =
        names.filter(|name| !name.is_empty() && !name.starts_with("onbeat-")).collect();
    assert!((1..=12).contains(&others.len()), "{} crates: {others:?}", others.len());
}

/// Signals, standard output and the end of the process belong to the program, not to a library.
// feature(bus): a dozen other crates at most; no signal handler, no printing, no exit
#[test]
fn the_libraries_of_the_bus_take_nothing_that_is_the_programs() {
    let taken = [
        "print!(",
        "println!(",
        "dbg!(",
        "process::exit",
        "process::abort",
        "sigaction",
        "libc::signal(",
        "signal_hook",
        "static mut",
    ];
    for name in ["types", "ethercat", "rt", "ethercat-linux", "onbeat"] {
        let source = crates().join(name).join("src");
        let takes =
            |line: &str| taken.iter().any(|it| line.contains(it)) && !line.trim_start().starts_with("//");
        let found = lines_with(&source, takes);
        assert!(found.is_empty(), "{found:#?}");
    }
}

/// File, line number and line of all Rust lines below `folder` that `wanted` selects.
fn lines_with(folder: &Path, wanted: impl Fn(&str) -> bool + Copy) -> Vec<(PathBuf, usize, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a source folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(lines_with(&path, wanted));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("a readable source file");
            let lines = text.lines().enumerate().filter(|(_, line)| wanted(line));
            found.extend(lines.map(|(number, line)| (path.clone(), number + 1, line.trim().to_owned())));
        }
    }
    found
}
