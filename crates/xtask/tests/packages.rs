//! Manifests of the crates: what crates.io asks for, and a file list without surprises.

mod workspace;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use workspace::{crates, packages, text};

/// Crates that are not published: tests, the project's commands, the papers' experiments, and the
/// one that needs a library with our patches.
const UNPUBLISHED: &[&str] = &["onbeat-experiments", "onbeat-ros2", "testkit", "xtask"];

/// Keywords that crates.io takes at most, and letters of one.
const KEYWORDS: usize = 5;
const LETTERS: usize = 20;

// feature(library): every package has both licence files
#[test]
fn the_crates_to_publish_carry_what_crates_io_asks_for() {
    let wrong: Vec<_> = packages().iter().flat_map(faults).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Faults of a package's manifest, each a sentence.
fn faults(package: &Value) -> Vec<String> {
    let name = text(package, "name");
    let is_published = package["publish"].is_null();
    if UNPUBLISHED.contains(&name) || !is_published {
        let agree = UNPUBLISHED.contains(&name) && !is_published;
        return if agree {
            Vec::new()
        } else {
            vec![format!("{name}: publish = false here and there only")]
        };
    }
    let words = |key: &str| -> Vec<&str> {
        package[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    };
    let has = |key: &str| package[key].as_str().is_some_and(|it| !it.is_empty());
    let folder = Path::new(text(package, "manifest_path")).parent().expect("a folder");
    let is_keyword = |it: &&str| it.len() <= LETTERS && it.starts_with(|c: char| c.is_ascii_alphanumeric());
    let checks = [
        ("a description", has("description")),
        ("a license", has("license")),
        ("a repository", has("repository")),
        ("its page at docs.rs", package["documentation"] == format!("https://docs.rs/{name}")),
        ("the texts of both licences", LICENCES.iter().all(|file| same_as_root(folder, file))),
        ("a readme that is there", has("readme") && folder.join(text(package, "readme")).is_file()),
        ("1 to 5 keywords", (1..=KEYWORDS).contains(&words("keywords").len())),
        ("keywords of 20 letters at most", words("keywords").iter().all(is_keyword)),
        ("categories", (1..=KEYWORDS).contains(&words("categories").len())),
        ("a version of each crate of ours that it needs", needs_versions(package)),
    ];
    let missing = checks.iter().filter(|(_, holds)| !holds);
    missing.map(|(wanted, _)| format!("{name}: expected {wanted}")).collect()
}

/// Files of the licences, in each package and at the root.
const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

/// True if `file` in the package, a link, has the text of the file at the root.
fn same_as_root(folder: &Path, file: &str) -> bool {
    let root = fs::read(crates().join("..").join(file)).expect("a licence at the root");
    fs::read(folder.join(file)).is_ok_and(|text| text == root)
}

/// True if crates of ours have a version, without which a package cannot be published. Crates that
/// only tests need are left out of a package if they have none.
fn needs_versions(package: &Value) -> bool {
    let dependencies = package["dependencies"].as_array().into_iter().flatten();
    let mut ours = dependencies.filter(|it| !it["path"].is_null() && it["kind"] != "dev");
    ours.all(|it| it["req"] != "*" && !UNPUBLISHED.contains(&text(it, "name")))
}

#[test]
fn a_package_holds_its_sources_and_nothing_else() {
    let packages = packages();
    for name in packages.iter().map(|it| text(it, "name")).filter(|name| !UNPUBLISHED.contains(name)) {
        let mut list = Command::new(env!("CARGO"));
        list.args(["package", "--list", "--allow-dirty", "--offline", "--package", name]);
        let output = list.current_dir(crates()).output().expect("cargo package runs");
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        let listed = String::from_utf8_lossy(&output.stdout);
        let files: Vec<_> = listed.lines().collect();
        let has = |wanted: &[&str]| files.iter().any(|file| wanted.contains(file));
        assert!(has(&["README.md"]) && has(&["src/lib.rs", "src/main.rs"]), "{name}: {files:?}");
        assert!(has(&["LICENSE-APACHE"]) && has(&["LICENSE-MIT"]), "{name}: no licence file: {files:?}");
        let known = ["src/", "tests/", "examples/", "benches/", "robot.schema.json"];
        let tops = [
            "Cargo.toml",
            "Cargo.toml.orig",
            "Cargo.lock",
            "README.md",
            "LICENSE-APACHE",
            "LICENSE-MIT",
            "build.rs",
            ".cargo_vcs_info.json",
        ];
        let strange: Vec<_> = files
            .iter()
            .filter(|file| !tops.contains(file) && !known.iter().any(|folder| file.starts_with(folder)))
            .collect();
        assert!(strange.is_empty(), "{name}: {strange:?}");
    }
}

// feature(library): the doc examples of a package need no file outside it
#[test]
fn doc_examples_reach_no_file_outside_their_package() {
    let mut outside = Vec::new();
    for package in packages().iter().filter(|it| !UNPUBLISHED.contains(&text(it, "name"))) {
        let folder = Path::new(text(package, "manifest_path")).parent().expect("a folder");
        for (path, line) in doc_includes(&folder.join("src")) {
            let named = line.split('"').nth(1).expect("a path");
            let file = path.parent().expect("a folder").join(named).canonicalize().expect("a file");
            if !file.starts_with(folder.canonicalize().expect("a folder")) {
                outside.push(format!("{}: {line}", path.display()));
            }
        }
    }
    assert!(outside.is_empty(), "move them to testkit, which is not published: {outside:#?}");
}

/// Lines of the sources below `folder` that take documentation from a file.
fn doc_includes(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|it| it.path()) {
        if path.is_dir() {
            found.extend(doc_includes(&path));
        } else if path.extension().is_some_and(|it| it == "rs") {
            let source = fs::read_to_string(&path).expect("UTF-8");
            let lines = source.lines().filter(|line| line.trim_start().starts_with("#[doc = include_str!"));
            found.extend(lines.map(|line| (path.clone(), line.trim().to_owned())));
        }
    }
    found
}

/// Where tests are modules of one program, a file that it does not name would never run.
#[test]
fn every_file_of_tests_is_in_a_program() {
    for package in packages() {
        let manifest = Path::new(text(&package, "manifest_path"));
        let folder = manifest.parent().expect("a folder").join("tests");
        let targets = package["targets"].as_array().expect("targets");
        let programs: Vec<PathBuf> = targets.iter().map(|it| PathBuf::from(text(it, "src_path"))).collect();
        let main = fs::read_to_string(folder.join("main.rs")).unwrap_or_default();
        for file in fs::read_dir(&folder).into_iter().flatten().flatten().map(|it| it.path()) {
            let stem = file.file_stem().and_then(|it| it.to_str()).expect("UTF-8");
            let is_source = file.extension().is_some_and(|it| it == "rs");
            let is_named = main.lines().any(|line| line == format!("mod {stem};"));
            assert!(!is_source || is_named || programs.contains(&file), "{} never runs", file.display());
        }
    }
}
