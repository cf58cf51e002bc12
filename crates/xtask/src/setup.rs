//! Programs a machine needs, and their installation. Every installation is announced; if one fails,
//! the steps that need it are skipped, each with its reason.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{self, works};
use crate::report::{Outcome, Report};

/// Program, or library header, needed by conformance checks, with the test for its presence and its
/// Debian package.
struct Need {
    program: &'static str,
    probe: &'static [&'static str],
    package: &'static str,
}

const NEEDS: &[Need] = &[
    Need { program: "ip", probe: &["-V"], package: "iproute2" },
    Need { program: "tshark", probe: &["--version"], package: "tshark" },
    Need { program: "cyclictest", probe: &["--help"], package: "rt-tests" },
    Need { program: "ethtool", probe: &["--version"], package: "ethtool" },
    Need { program: "strace", probe: &["-V"], package: "strace" },
    Need { program: "tmux", probe: &["-V"], package: "tmux" },
    Need { program: "c++", probe: &["--version"], package: "g++" },
    Need { program: "qemu-system-x86_64", probe: &["--version"], package: "qemu-system-x86" },
    Need { program: "/bin/busybox", probe: &["true"], package: "busybox-static" },
    Need { program: "cpio", probe: &["--version"], package: "cpio" },
    Need { program: "xz", probe: &["--version"], package: "xz-utils" },
    Need { program: "python3", probe: &["-c", "import ensurepip, venv"], package: "python3-venv" },
    Need { program: "chromium", probe: &["--version"], package: "chromium" },
    Need { program: "debootstrap", probe: &["--version"], package: "debootstrap" },
    Need { program: "systemd-analyze", probe: &["--version"], package: "systemd" },
    Need { program: "test", probe: &["-e", FAST_DDS], package: "libfastrtps-dev" },
];

/// Header of Fast DDS 2; its package has this name in Debian 12.
pub(crate) const FAST_DDS: &str = "/usr/include/fastrtps/fastrtps_all.h";

/// Packages needed by `cargo xtask bench` only: a compiler for the reflector, and the kernel's
/// headers for it.
const BENCH_PACKAGES: &[&str] = &["clang", "libbpf-dev"];

/// Packages needed by `cargo xtask dist` only: programs of other machines run in it.
const DIST_NEEDS: &[Need] = &[
    Need { program: "debootstrap", probe: &["--version"], package: "debootstrap" },
    Need { program: "systemd-analyze", probe: &["--version"], package: "systemd" },
    Need { program: "qemu-arm-static", probe: &["--version"], package: "qemu-user-static" },
    Need { program: "python3", probe: &["-c", "import ensurepip, venv"], package: "python3-venv" },
];

/// Packages needed by `cargo xtask rt --arch aarch64` only.
const ARM_NEEDS: &[Need] = &[Need { program: QEMU_ARM, probe: &["--version"], package: "qemu-system-arm" }];

/// The emulator of ARM's 64-bit machines.
pub(crate) const QEMU_ARM: &str = "qemu-system-aarch64";

/// Space that a whole run of the tests fills in a clean checkout, measured with `du`, and some to
/// spare.
const NEEDED_GIB: u64 = 16;

/// Prints the free space of the file system below `root`, and fails where builds would end in its
/// middle.
pub(crate) fn disk(root: &Path, report: &mut Report) {
    let built = root.join("target/debug/deps").exists();
    report.step("disk", || match free_gib(root) {
        Ok(free) if free < NEEDED_GIB && !built => Outcome::Failed(format!(
            "{}: expected {NEEDED_GIB} GiB of free space for what is built, found {free} GiB",
            root.display()
        )),
        Ok(free) => {
            println!("{free} GiB are free");
            Outcome::Passed
        }
        Err(why) => Outcome::Skipped(why),
    });
}

fn free_gib(root: &Path) -> Result<u64, String> {
    let mut df = Command::new("df");
    df.args(["--output=avail", "--block-size=1G"]).arg(root);
    let output = df.output().map_err(|error| format!("df does not start: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().last().unwrap_or_default().trim();
    last.parse().map_err(|_| format!("df: expected a number, found `{last}`"))
}

/// Installs the packages of missing programs.
pub(crate) fn debian_packages(report: &mut Report) {
    let missing = missing(NEEDS);
    if !missing.is_empty() {
        report.step("Debian packages", || install(&missing));
    }
}

/// Installs what a guest of 64-bit ARM needs.
pub(crate) fn arm_packages(report: &mut Report) {
    let missing = missing(ARM_NEEDS);
    if !missing.is_empty() {
        report.step("Debian packages", || install(&missing));
    }
}

/// Installs what a release needs.
pub(crate) fn dist_packages(report: &mut Report) {
    let missing = missing(DIST_NEEDS);
    if !missing.is_empty() {
        report.step("Debian packages", || install(&missing));
    }
}

fn missing(needs: &[Need]) -> Vec<&'static str> {
    needs.iter().filter(|need| !works(need.program, need.probe)).map(|need| need.package).collect()
}

/// Installs the packages for compiling the reflector of `bench wire`.
///
/// # Errors
/// The installation failed.
pub(crate) fn bench_packages() -> Result<(), String> {
    let headers = Path::new("/usr/include/bpf/bpf_helpers.h").exists();
    if clang().is_some() && headers {
        return Ok(());
    }
    match install(BENCH_PACKAGES) {
        Outcome::Passed => Ok(()),
        Outcome::Failed(why) | Outcome::Skipped(why) => Err(why),
    }
}

/// C compiler that can emit eBPF, under any of Debian's names for it.
pub(crate) fn clang() -> Option<String> {
    let numbered = (11..30).rev().map(|version| format!("clang-{version}"));
    std::iter::once("clang".to_owned()).chain(numbered).find(|name| works(name, &["--version"]))
}

/// Python of a virtual environment with the peers at their pinned versions.
///
/// # Errors
/// The environment cannot be made.
pub(crate) fn python(root: &Path) -> Result<PathBuf, String> {
    python_with(root, ".venv", "lab/peers/requirements.txt")
}

/// Python of a virtual environment with SimSo, which is distributed as source only.
///
/// # Errors
/// The environment cannot be made.
pub(crate) fn python_with_simso(root: &Path) -> Result<PathBuf, String> {
    python_with(root, ".venv-simso", "lab/peers/simso.txt")
}

/// Python of a virtual environment with the tools that build, test and check the Python package.
///
/// # Errors
/// The environment cannot be made.
pub(crate) fn python_package_tools(root: &Path) -> Result<PathBuf, String> {
    python_with(root, ".venv-python", "python/requirements.txt")
}

/// Python of a virtual environment with the tools that build wheels for other systems than this.
///
/// # Errors
/// The environment cannot be made.
pub(crate) fn python_wheel_tools(root: &Path) -> Result<PathBuf, String> {
    python_with(root, ".venv-wheel", "python/wheel.txt")
}

/// Python of a virtual environment with Cyclone DDS.
///
/// # Errors
/// The environment cannot be made.
pub(crate) fn python_with_cyclone(root: &Path) -> Result<PathBuf, String> {
    python_with(root, ".venv-cyclone", "lab/peers/cyclone.txt")
}

/// Python of a virtual environment with ROS 2: rclpy, on Fast DDS.
///
/// # Errors
/// The environment cannot be made.
pub(crate) fn python_with_ros(root: &Path) -> Result<PathBuf, String> {
    python_with(root, ".venv-ros", "lab/peers/ros.txt")
}

fn python_with(root: &Path, name: &str, requirements: &str) -> Result<PathBuf, String> {
    let environment = root.join(name);
    let python = environment.join("bin/python");
    let requirements = root.join(requirements);
    let installed = environment.join("requirements.txt");
    let wanted =
        std::fs::read(&requirements).map_err(|error| format!("{}: {error}", requirements.display()))?;
    if std::fs::read(&installed).is_ok_and(|found| found == wanted) {
        return Ok(python);
    }
    println!(
        "installing {} into {name}",
        String::from_utf8_lossy(&wanted).lines().collect::<Vec<_>>().join(", ")
    );
    command::output(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]);
    command::output(pip.arg("-r").arg(&requirements))?;
    std::fs::write(&installed, &wanted).map_err(|error| format!("{}: {error}", installed.display()))?;
    Ok(python)
}

/// Installs `cargo fuzz` if it is missing.
///
/// # Errors
/// The installation failed.
pub(crate) fn cargo_fuzz(root: &Path) -> Result<(), String> {
    if works("cargo", &["fuzz", "--version"]) {
        return Ok(());
    }
    println!("installing cargo-fuzz {CARGO_FUZZ} (cargo install)");
    command::run(&mut command::cargo(
        root,
        &["install", "--quiet", "--locked", "cargo-fuzz", "--version", CARGO_FUZZ],
    ))
}

const CARGO_FUZZ: &str = "0.13.2";

/// Installs `cargo deny` if it is missing: unoptimized, as its build takes longer than all its
/// checks.
///
/// # Errors
/// The installation failed.
pub(crate) fn cargo_deny(root: &Path) -> Result<(), String> {
    if works("cargo", &["deny", "--version"]) {
        return Ok(());
    }
    println!("installing cargo-deny {CARGO_DENY} (cargo install)");
    let install = ["install", "--quiet", "--locked", "--debug", "--no-default-features", "cargo-deny"];
    let mut install = command::cargo(root, &install);
    install
        .args(["--version", CARGO_DENY])
        .envs([("CARGO_PROFILE_DEV_DEBUG", "0"), ("CARGO_PROFILE_DEV_STRIP", "true")]);
    command::run(&mut install)
}

const CARGO_DENY: &str = "0.19.0";

fn install(packages: &[&str]) -> Outcome {
    let wanted = packages.join(" ");
    if !Path::new("/usr/bin/apt-get").exists() {
        return Outcome::Skipped(format!("no apt-get here; install by hand what Debian calls {wanted}"));
    }
    if !command::output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0") {
        return Outcome::Skipped(format!("needs root: apt-get install {wanted}"));
    }
    println!("installing Debian packages: {wanted}");
    match apt(&["update"]).and_then(|_| all_or_each(packages, apt_install)) {
        Ok(()) => Outcome::Passed,
        Err(error) => Outcome::Skipped(error),
    }
}

/// Installs all packages at once or, if that fails, for example because this release of Debian
/// lacks one, each by itself.
///
/// # Errors
/// Errors of the packages that failed.
fn all_or_each(packages: &[&str], install: impl Fn(&[&str]) -> Result<(), String>) -> Result<(), String> {
    if install(packages).is_ok() {
        return Ok(());
    }
    let failures = packages.iter().filter_map(|package| install(&[package]).err());
    let failures: Vec<String> = failures.collect();
    if failures.is_empty() { Ok(()) } else { Err(failures.join("; ")) }
}

fn apt_install(packages: &[&str]) -> Result<(), String> {
    apt(&[&["install", "--no-install-recommends"], packages].concat()).map(drop)
}

fn apt(arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new("apt-get");
    command::output(command.args(["-q", "-y"]).args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn a_package_missing_in_debian_does_not_block_the_others() {
        let installed = RefCell::new(Vec::new());
        let apt = |packages: &[&str]| {
            if packages.contains(&"gone") {
                return Err(format!("no {}", packages.join(" ")));
            }
            installed.borrow_mut().extend(packages.iter().map(|it| (*it).to_owned()));
            Ok(())
        };
        assert_eq!(all_or_each(&["tshark", "gone", "cpio"], apt), Err("no gone".to_owned()));
        assert_eq!(*installed.borrow(), ["tshark", "cpio"]);
        assert_eq!(all_or_each(&["strace", "ethtool"], apt), Ok(()));
        assert_eq!(installed.borrow().len(), 4);
    }

    #[test]
    fn what_is_missing_is_found_by_its_probe() {
        let there = Need { program: "test", probe: &["-e", "/"], package: "there" };
        let gone = Need { program: "test", probe: &["-e", "/no/such/header.h"], package: "gone" };
        let no_program = Need { program: "no-such-program", probe: &[], package: "no-program" };
        assert_eq!(missing(&[there, gone, no_program]), ["gone", "no-program"]);
        // Fast DDS is no program, and was skipped on every new machine.
        assert!(NEEDS.iter().any(|need| need.package == "libfastrtps-dev"));
    }
}
