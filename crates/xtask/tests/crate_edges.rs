//! Dependencies between the crates of the workspace, and the places of unsafe code.

mod workspace;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
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
    ("onbeat-ros2", &["onbeat-types", "onbeat-ipc", "onbeat-motion"], &[]),
    (
        "onbeat-experiments",
        &[
            "onbeat-types",
            "onbeat-ethercat",
            "onbeat-rt",
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
            "onbeat-motion",
            "onbeat-record",
            "onbeat-machine",
            "onbeat-diagnose",
            "onbeat-ipc",
            "onbeat-robot",
            "onbeat-simulator",
            "onbeat-control",
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
fn crates_import_what_the_map_allows_and_nothing_else() {
    let packages = workspace::packages();
    let mut names: Vec<&str> = packages.iter().map(|package| text(package, "name")).collect();
    names.sort_unstable();
    let mut known: Vec<&str> = EDGES.iter().map(|&(name, ..)| name).collect();
    known.sort_unstable();
    assert_eq!(names, known, "the workspace's packages and the map's differ");
    for &(name, imports, tests) in EDGES {
        let package = packages.iter().find(|package| text(package, "name") == name).expect("a package");
        let dependencies = package["dependencies"].as_array().expect("a list of dependencies");
        let of_tests = |dependency: &&Value| dependency["kind"] == "dev";
        let ours = |found: Vec<&Value>| -> BTreeSet<String> {
            let names = found.into_iter().map(|it| text(it, "name"));
            names.filter(|name| known.contains(name)).map(str::to_owned).collect()
        };
        let (in_tests, imported) = dependencies.iter().partition(of_tests);
        let imported = ours(imported);
        // Tests import again what they need of the crate's own.
        let in_tests: BTreeSet<_> = ours(in_tests).difference(&imported).cloned().collect();
        for (found, allowed, whose) in [(imported, imports, ""), (in_tests, tests, " in its tests")] {
            let allowed: BTreeSet<_> = allowed.iter().map(|&name| name.to_owned()).collect();
            let more: Vec<_> = found.difference(&allowed).collect();
            assert!(more.is_empty(), "{name} imports{whose} what the map does not have: {more:?}");
            let less: Vec<_> = allowed.difference(&found).collect();
            assert!(less.is_empty(), "the map allows {name}{whose} what it does not import: {less:?}");
        }
    }
}

#[test]
fn the_table_of_the_architecture_has_the_same_edges() {
    let page = fs::read_to_string(crates().join("../ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let short = |name: &'static str| name.strip_prefix("onbeat-").unwrap_or(name);
    let all: BTreeSet<&str> = EDGES.iter().map(|&(name, ..)| short(name)).collect();
    let mut above = BTreeSet::new();
    for row in page.lines().filter(|line| line.starts_with("| [`")) {
        let cells: Vec<&str> = row.split('|').collect();
        let names = |cell: &str| -> BTreeSet<String> {
            cell.split('`').skip(1).step_by(2).filter(|it| all.contains(it)).map(str::to_owned).collect()
        };
        let (name, told) = (names(cells[1]).pop_first().expect("a crate"), names(cells[3]));
        let told = if cells[3].contains("all above but") { &above - &told } else { told };
        let &(_, imports, _) =
            EDGES.iter().find(|it| short(it.0) == name).expect("the crate is in the map");
        let allowed: BTreeSet<String> = imports.iter().map(|&it| short(it).to_owned()).collect();
        assert_eq!(told, allowed, "{name} in ARCHITECTURE.md, and in the map");
        above.insert(name);
    }
    assert_eq!(above.len(), all.len(), "{above:?}");
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
    let others = others_than_ours("onbeat-ethercat-linux");
    assert!((1..=12).contains(&others.len()), "{} crates: {others:?}", others.len());
}

/// Crates that a program which runs a robot compiles besides this project.
// feature(library): devices, diagnosis and recordings are features, off unless asked for
#[test]
fn the_library_brings_what_a_robot_needs() {
    let others = others_than_ours("onbeat");
    let heavy = ["mcap", "framehop", "backtrace", "object", "syscalls", "gpiocdev", "i2cdev", "spidev"];
    assert!(!heavy.iter().any(|name| others.contains(*name)), "{others:?}");
    assert!((1..=MOST_OF_THE_LIBRARY).contains(&others.len()), "{} crates: {others:?}", others.len());
}

/// As ARCHITECTURE.md says.
const MOST_OF_THE_LIBRARY: usize = 45;

/// Crates that are not ours, and are compiled for this package as its users have it.
fn others_than_ours(package: &str) -> BTreeSet<String> {
    let mut tree = Command::new(env!("CARGO"));
    tree.args(["tree", "--package", package, "--edges", "normal", "--prefix", "none", "--offline"]);
    let output = tree.current_dir(crates()).output().expect("cargo tree runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let listed = String::from_utf8_lossy(&output.stdout);
    let names = listed.lines().filter_map(|line| line.split(' ').next());
    names.filter(|name| !name.is_empty() && !name.starts_with("onbeat")).map(str::to_owned).collect()
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
    ];
    for name in ["types", "ethercat", "rt", "ethercat-linux", "onbeat"] {
        let source = crates().join(name).join("src");
        let takes =
            |line: &str| taken.iter().any(|it| line.contains(it)) && !line.trim_start().starts_with("//");
        let found = lines_with(&source, takes);
        assert!(found.is_empty(), "{found:#?}");
    }
}

/// Crates that a program with the library is made of.
const LIBRARY: &[&str] = &[
    "types",
    "ethercat",
    "rt",
    "ethercat-linux",
    "motion",
    "record",
    "schedulability",
    "machine",
    "diagnose",
    "ipc",
    "robot",
    "simulator",
    "control",
    "controllers",
    "devices",
    "onbeat",
];

/// Statics of the library: file, name, and the reason for each.
const STATICS: &[(&str, &str, &str)] = &[
    (
        "control/src/profile.rs",
        "MEMORY_HOLDERS",
        "mlockall(2) holds for the process: its last holder ends it",
    ),
    (
        "control/src/always_on.rs",
        "HUGE_PAGE_HOLDERS",
        "PR_SET_THP_DISABLE holds for the process: its last holder ends it",
    ),
    (
        "machine/src/journal.rs",
        "OWN",
        "changes to the machine that a process undoes which ends without dropping them",
    ),
    ("machine/src/journal/record.rs", "NUMBER", "two journals of a process have two files"),
    ("diagnose/src/trace/tracefs.rs", "MADE", "two traces of a process have two names"),
    ("simulator/src/coe/object.rs", "NAMES", "a constant that is made once"),
];

// feature(library): no global beside those that belong to the process, each with its reason
#[test]
fn the_library_has_no_global_but_what_is_the_processes_own() {
    let is_static = |line: &str| {
        let code = line.trim_start();
        let item =
            code.strip_prefix("pub").map_or(code, |rest| rest.split_once(' ').map_or(rest, |it| it.1));
        ["static ", "thread_local!", "lazy_static!"].iter().any(|it| item.starts_with(it))
    };
    let mut left: BTreeSet<(&str, &str)> = STATICS.iter().map(|&(file, name, _)| (file, name)).collect();
    for name in LIBRARY {
        for (file, number, line) in lines_with(&crates().join(name).join("src"), is_static) {
            let file = file.strip_prefix(crates()).expect("a file of ours");
            if file.components().any(|part| ["tests", "tests.rs"].iter().any(|it| part.as_os_str() == *it))
            {
                continue;
            }
            let reasoned = STATICS.iter().find(|(place, name, _)| {
                file == Path::new(place) && line.contains(&format!("static {name}: "))
            });
            let &(place, name, _) = reasoned.unwrap_or_else(|| {
                panic!("{}:{number}: a global, without a reason in STATICS: {line}", file.display())
            });
            left.remove(&(place, name));
        }
    }
    assert!(left.is_empty(), "reasons for globals that are gone: {left:?}");
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
