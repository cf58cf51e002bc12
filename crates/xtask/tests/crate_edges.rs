//! Dependencies between the crates of the workspace, and the places of unsafe code.

mod workspace;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use workspace::{crates, folder_of, text};

/// Crates of ours that only the tests of a crate import, if any.
const IN_TESTS: &[(&str, &[&str])] = &[
    ("ethercat", &["simulator"]),
    ("rt", &["ipc", "testkit"]),
    ("ethercat-linux", &["simulator", "testkit"]),
    ("motion", &["testkit"]),
    ("report", &["types"]),
    ("machine", &["testkit"]),
    ("ipc", &["testkit"]),
    ("simulator", &["testkit"]),
    ("control", &["schedulability", "diagnose", "simulator", "testkit"]),
    ("controllers", &["ethercat-linux", "rt", "simulator", "testkit"]),
    ("devices", &["testkit"]),
    ("experiments", &["testkit"]),
    ("onbeat", &["testkit"]),
    ("cli", &["testkit"]),
    ("testkit", &["ethercat-linux", "ipc", "onbeat"]),
    ("ros2", &["testkit"]),
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
    "control",
    "controllers",
    "ros2",
    "onbeat",
    "cli",
    "xtask",
];

#[test]
fn crates_import_what_the_architecture_allows_and_nothing_else() {
    let packages = workspace::packages();
    let short = |package: &Value| {
        let name = text(package, "name");
        name.strip_prefix("onbeat-").unwrap_or(name).to_owned()
    };
    let all: BTreeSet<String> = packages.iter().map(short).collect();
    let allowed = edges_of_the_architecture(&all);
    assert_eq!(
        allowed.keys().cloned().collect::<BTreeSet<_>>(),
        all,
        "crates in ARCHITECTURE.md, and there are"
    );
    for package in &packages {
        let name = short(package);
        let dependencies = package["dependencies"].as_array().expect("a list of dependencies");
        let ours = |of_tests: bool| -> BTreeSet<String> {
            let found = dependencies.iter().filter(|it| (it["kind"] == "dev") == of_tests);
            found.map(short).filter(|name| all.contains(name)).collect()
        };
        let imported = ours(false);
        assert_eq!(imported, allowed[&name], "{name} imports, and ARCHITECTURE.md allows");
        // Tests import again what they need of the crate's own.
        let in_tests: BTreeSet<_> = ours(true).difference(&imported).cloned().collect();
        let expected = IN_TESTS.iter().find(|(it, _)| *it == name).map_or(&[][..], |&(_, names)| names);
        let expected = expected.iter().map(|&it| it.to_owned()).collect();
        assert_eq!(in_tests, expected, "{name} imports in its tests, and IN_TESTS allows");
    }
}

/// Crates of ours that each crate may import, by the table of the workspace.
fn edges_of_the_architecture(all: &BTreeSet<String>) -> BTreeMap<String, BTreeSet<String>> {
    let page = fs::read_to_string(crates().join("../ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let mut edges = BTreeMap::new();
    for row in page.lines().filter(|line| line.starts_with("| [`")) {
        let cells: Vec<&str> = row.split('|').collect();
        let names = |cell: &str| -> BTreeSet<String> {
            cell.split('`').skip(1).step_by(2).filter(|&it| all.contains(it)).map(str::to_owned).collect()
        };
        let (name, told) = (names(cells[1]).pop_first().expect("a crate"), names(cells[3]));
        let above: BTreeSet<String> = edges.keys().cloned().collect();
        let told = if cells[3].contains("all above but") { &above - &told } else { told };
        assert!(edges.insert(name, told).is_none(), "{row}");
    }
    edges
}

#[test]
fn the_simulator_never_mentions_the_main_device() {
    let found = lines_with(&crates().join("simulator/src"), |line| line.contains("main_device"));
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn crates_without_system_calls_forbid_unsafe_code() {
    for name in SAFE {
        let source = folder_of(name).join("src");
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
    &["rt", "ethercat-linux", "machine", "diagnose", "ipc", "devices", "experiments", "testkit"];

#[test]
fn unsafe_code_is_only_in_crates_that_talk_to_the_system() {
    for name in UNSAFE_IN_SYS {
        unsafe_code_stands_below_sys(&folder_of(name).join("src"));
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

/// Crates that a program with its own bus compiles in addition to this project.
// feature(bus): a dozen other crates at most; no signal handler, no printing, no exit
#[test]
fn the_bus_brings_a_dozen_other_crates_at_most() {
    let others = others_than_ours("onbeat-ethercat-linux");
    assert!((1..=12).contains(&others.len()), "{} crates: {others:?}", others.len());
}

/// Crates that a program which runs a robot compiles besides this project.
// feature(library): devices, diagnosis and recordings are features, off by default
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
        let source = folder_of(name).join("src");
        let takes =
            |line: &str| taken.iter().any(|it| line.contains(it)) && !line.trim_start().starts_with("//");
        let mut found = lines_with(&source, takes);
        found.retain(|(file, ..)| !file.ends_with("tests.rs"));
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
    ("rt/src/profile.rs", "MEMORY_HOLDERS", "mlockall(2) holds for the process: its last holder ends it"),
    (
        "rt/src/always_on.rs",
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
    (
        "rt/src/panic.rs",
        "TOLD_ELSEWHERE",
        "the panic hook is the process's: a thread that has its panics told by another",
    ),
    ("rt/src/panic.rs", "PREPARED", "the panic hook is the process's: it is set once"),
    ("simulator/src/coe/object.rs", "NAMES", "a constant that is made once"),
];

// feature(library): no globals except the listed ones of the process, each with its reason
#[test]
fn the_library_has_no_global_but_what_is_the_processes_own() {
    let is_static = |line: &str| {
        let code = line.trim_start();
        let item =
            code.strip_prefix("pub").map_or(code, |rest| rest.split_once(' ').map_or(rest, |it| it.1));
        ["static ", "thread_local!(", "lazy_static!"].iter().any(|it| item.starts_with(it))
    };
    let mut left: BTreeSet<(&str, &str)> = STATICS.iter().map(|&(file, name, _)| (file, name)).collect();
    for name in LIBRARY {
        for (file, number, line) in lines_with(&folder_of(name).join("src"), is_static) {
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
