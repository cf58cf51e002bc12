//! Debian's PREEMPT_RT kernel for 64-bit ARM on an emulated board: doctor, the robot on a cable, two tasks, and the tests of the lock-free code.
//!
//! Not part of `cargo xtask test`: all programs are built for another machine, which takes minutes. The emulator orders loads and stores as this
//! machine does, more strongly than ARM: the orders that ARM allows are what loom and Miri go through (`cargo xtask proofs`).

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::apt::{ARM64, Apt};
use super::guest::{Boot, Image, Results};
use super::kernel::{self, Flavour};
use super::program;
use super::qemu::Qemu;
use super::two_cpus;
use crate::command;
use crate::dist;
use crate::report::Outcome;
use crate::setup::QEMU_ARM;

/// Release of Debian.
const RELEASE: &str = "bookworm";

/// Period: an emulated CPU is some twenty times slower than a real one.
const PERIOD: &str = "20ms";

/// Tests of the lock-free code that must have run.
const TESTS: [&str; 3] = [
    "readers_never_see_two_publications_in_one",
    "a_writer_killed_at_any_store_leaves_the_last_whole_publication_and_the_next_writer_goes_on",
    "publications_are_read_by_their_numbers_until_the_writer_comes_round_to_their_slots",
];

/// Fetches the kernel and a shell, and builds our programs, below `folder`.
///
/// # Errors
/// The outcome of the step.
pub(super) fn prepare(root: &Path, folder: &Path) -> Result<Image, Outcome> {
    if !command::works(QEMU_ARM, &["--version"]) {
        return Err(Outcome::Skipped(format!("no {QEMU_ARM} (Debian: qemu-system-arm)")));
    }
    dist::install(root, "aarch64").map_err(Outcome::Skipped)?;
    let fetched = || {
        let apt = Apt::of_release(RELEASE, ARM64, folder)?;
        let kernel = kernel::fetch(&apt, folder, Flavour::RealTime)?;
        let shell = folder.join("busybox-static");
        apt.fetch(|apt| kernel::unpack(apt, "busybox-static", &shell))?;
        Ok((kernel, shell.join("bin/busybox")))
    };
    let (kernel, busybox) = fetched().map_err(Outcome::Skipped)?;
    let onbeat = program::build(root, folder, program::ARM64).map_err(Outcome::Failed)?;
    Ok(Image { folder: folder.to_owned(), qemu: Qemu::Arm, kernel, busybox, onbeat })
}

/// Boots, runs, and evaluates the results.
///
/// # Errors
/// The expected and the found result.
pub(super) fn judge(root: &Path, image: &Image) -> Result<(), String> {
    let robot = super::robot(root, PERIOD)?;
    let tests = program::build_unit_tests(root, &image.folder, program::ARM64, "onbeat-ipc")?;
    let tests = fs::read(&tests).map_err(|error| format!("{}: {error}", tests.display()))?;
    let results = image.boot(&Boot {
        name: "aarch64",
        machine: &["-smp", "2", "-accel", "tcg,thread=multi"],
        parameters: super::PARAMETERS,
        script: include_str!("arm.sh"),
        files: &[("robot.toml", robot.as_bytes()), ("root/lock-free", &tests)],
        longest: Duration::from_secs(900),
    })?;
    let kernel = results.section("kernel")?;
    println!("{kernel}");
    if !kernel.contains("aarch64") || !kernel.contains("PREEMPT_RT") {
        return Err(format!("kernel: expected an aarch64 one with PREEMPT_RT, found {kernel}"));
    }
    two_cpus::doctor(&results)?;
    two_cpus::run(&results)?;
    tasks(&results)?;
    lock_free(&results)
}

/// Checks that the two tasks of the controllers paper ran, and that none was faster than its busy time.
fn tasks(results: &Results) -> Result<(), String> {
    let report = results.json("tasks").map_err(|error| {
        format!("{error}; it said {}", results.section("tasks-said").unwrap_or_default())
    })?;
    let measured = report["values"]["tasks"].as_array().cloned().unwrap_or_default();
    let text = |task: &Value| {
        let response = &task["response_ns"];
        format!(
            "{} {} to {} ns, {} jobs",
            task["name"], response["minimum"], response["maximum"], response["count"]
        )
    };
    let told: Vec<String> = measured.iter().map(text).collect();
    println!("onbeat measure tasks: {}", told.join("; "));
    let ran = |task: &Value| task["response_ns"]["count"].as_u64().is_some_and(|jobs| jobs > 10);
    if measured.len() < 2 || !measured.iter().all(ran) {
        return Err(format!("tasks: expected two with more than 10 jobs each, found {}", report["values"]));
    }
    Ok(())
}

fn lock_free(results: &Results) -> Result<(), String> {
    let said = results.section("lock-free")?;
    let exit = results.section("lock-free-exit")?;
    if exit != "0" {
        return Err(format!("tests of the lock-free code: expected exit code 0, found {exit}: {said}"));
    }
    let missing =
        TESTS.iter().find(|test| !said.lines().any(|line| line.contains(**test) && line.ends_with("ok")));
    if let Some(missing) = missing {
        return Err(format!("the test {missing} did not run: {said}"));
    }
    let summary = said.lines().find(|line| line.starts_with("test result")).unwrap_or_default();
    println!("onbeat-ipc: {summary}");
    Ok(())
}
