//! Python package: built into a separate environment, tested with the program, and type-checked.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::report::{Outcome, Report};
use crate::{command, setup};

/// Builds, checks and tests the package, each as a step; skipped if pip cannot get packages.
pub(crate) fn all(root: &Path, report: &mut Report) {
    let python = prepare(root, report);
    test(root, python.as_deref(), report);
}

/// Builds the package into a separate environment, and checks its text: nothing of this is timed.
/// Returns the environment's Python if the package is built.
pub(crate) fn prepare(root: &Path, report: &mut Report) -> Option<PathBuf> {
    let mut python = None;
    report.step("python: environment", || match setup::python_package_tools(root) {
        Ok(found) => {
            python = Some(found);
            Outcome::Passed
        }
        Err(why) => Outcome::Skipped(format!("the Python package is not tested: {why}")),
    });
    let python = python?;
    let mut built = false;
    report.step("python: build onbeat and the package", || {
        let outcome = build(root, &python).map_or_else(Outcome::Failed, |()| Outcome::Passed);
        built = matches!(outcome, Outcome::Passed);
        outcome
    });
    report.step("python: mypy", || check(root, &python));
    report.step("python: format, clippy", || lint(root));
    built.then_some(python)
}

/// Tests the package that was built.
pub(crate) fn test(root: &Path, python: Option<&Path>, report: &mut Report) {
    if let Some(python) = python {
        report.step("python: pytest", || pytest(root, python));
    }
}

/// Builds the wheels of a release into `folder`, and installs this machine's into a separate
/// environment.
pub(crate) fn wheels(root: &Path, folder: &Path, version: &str, report: &mut Report) {
    let mut python = None;
    report.step("dist wheels: environment", || match setup::python_wheel_tools(root) {
        Ok(found) => {
            python = Some(found);
            Outcome::Passed
        }
        Err(why) => Outcome::Skipped(format!("no wheel is made: {why}")),
    });
    let Some(python) = python else { return };
    for processor in ["x86_64", "aarch64"] {
        report.step(&format!("dist wheel {processor}"), || {
            let target = format!("{processor}-unknown-linux-gnu");
            let wanted = Command::new("rustup").args(["target", "add", &target]).current_dir(root).output();
            if !wanted.is_ok_and(|it| it.status.success()) {
                return Outcome::Skipped(format!("needs rustup and the network, for the target {target}"));
            }
            // zig brings the C library of a system so old that every other has it, too.
            let mut wheel = maturin(&python);
            wheel.args(["build", "--release", "--locked", "--zig", "--compatibility", "manylinux2014"]);
            wheel.args(["--target", &target]).arg("--out").arg(folder);
            wheel.current_dir(root.join("python")).env("CARGO_TARGET_DIR", root.join("target/wheel"));
            // It looks for zig with the `python3` that it finds.
            let paths = std::env::var("PATH").unwrap_or_default();
            let programs = python.parent().unwrap_or(&python).display();
            wheel.env("PATH", format!("{programs}:{paths}"));
            Outcome::of(&mut wheel)
        });
    }
    report.step("dist wheel: installed", || {
        installed(folder, version).map_or_else(Outcome::Failed, |()| Outcome::Passed)
    });
}

/// Installs the package out of `folder`, and asks it for its version and its errors.
fn installed(folder: &Path, version: &str) -> Result<(), String> {
    let environment = folder.join("stage/python");
    command::output(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
    let python = environment.join("bin/python");
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]);
    command::output(pip.arg("--find-links").arg(folder).arg(format!("onbeat=={version}")))?;
    let mut asked = Command::new(&python);
    asked.args(["-c", ASKED, version]);
    command::run(&mut asked)
}

/// A program of Python: the version, the types, and an error that is raised.
const ASKED: &str = "\
import sys, importlib.resources, onbeat
assert onbeat.__version__ == sys.argv[1], onbeat.__version__
files = importlib.resources.files('onbeat')
assert (files / 'py.typed').is_file() and (files / '_native.pyi').is_file()
try:
    onbeat.attach('no-such-cycle')
except onbeat.NoCycleError as error:
    print(error)
else:
    sys.exit('no error')
";

fn build(root: &Path, python: &Path) -> Result<(), String> {
    crate::tests::build_programs(root)?;
    let mut develop = maturin(python);
    develop.args(["develop", "--locked"]).current_dir(root.join("python"));
    command::run(&mut develop)
}

/// Runs the tests, which start the program that all other tests were built with.
fn pytest(root: &Path, python: &Path) -> Outcome {
    let mut pytest = Command::new(python);
    pytest.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]).current_dir(root.join("python"));
    pytest.env("ONBEAT", root.join("target/debug/onbeat"));
    command::run_within(&mut pytest, LONGEST).map_or_else(Outcome::Failed, |()| Outcome::Passed)
}

fn check(root: &Path, python: &Path) -> Outcome {
    let mut mypy = Command::new(python);
    mypy.args(["-m", "mypy", "--cache-dir", "/dev/null", "onbeat", "tests"]);
    Outcome::of(mypy.current_dir(root.join("python")))
}

fn lint(root: &Path) -> Outcome {
    let python = root.join("python");
    let steps = [
        &["fmt", "--check"] as &[&str],
        &["clippy", "--quiet", "--locked", "--all-targets", "--", "--deny", "warnings"],
    ];
    for arguments in steps {
        if let Err(why) = command::run(&mut command::cargo(&python, arguments)) {
            return Outcome::Failed(why);
        }
    }
    Outcome::Passed
}

/// maturin of the environment, which it installs into.
fn maturin(python: &Path) -> Command {
    let programs = python.parent().map_or_else(PathBuf::new, Path::to_owned);
    let mut maturin = Command::new(programs.join("maturin"));
    maturin.env("VIRTUAL_ENV", programs.parent().unwrap_or(&programs));
    // Variables set by `cargo run` would make the package's own build look changed.
    for (name, _) in std::env::vars_os() {
        let name_text = name.to_string_lossy();
        if name_text.starts_with("CARGO_PKG_") || name_text.starts_with("CARGO_MANIFEST_") {
            maturin.env_remove(&name);
        }
    }
    maturin
}

/// Time limit; the tests take half a minute.
const LONGEST: Duration = Duration::from_secs(600);
