//! Debian's PREEMPT_RT kernel for 64-bit ARM on an emulated board: doctor, the robot on a cable,
//! two tasks, edges of GPIO lines, and the tests of the lock-free code.
//!
//! Not part of `cargo xtask test`: all programs are built for another machine, which takes minutes.
//! The emulator orders loads and stores as this machine does, more strongly than ARM: the orders
//! that ARM allows are what loom and Miri go through (`ipc`'s tests, `cargo xtask proofs`).

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::apt::{ARM64, Apt};
use super::guest::{Boot, Image, Results};
use super::kernel::{self, Flavour};
use super::lines::Lines;
use super::qmp::Qemu;
use super::{interfaces, program, two_cpus};
use crate::report::Outcome;
use crate::setup::QEMU_ARM;
use crate::{command, dist};

/// Release of Debian.
const RELEASE: &str = "bookworm";

/// Period: an emulated CPU is some twenty times slower than a real one.
const PERIOD: &str = "20ms";

/// Tests of the lock-free code that must have run.
const TESTS: [&str; 3] = [
    "readers_never_see_two_publications_in_one",
    "killed_writer_leaves_the_last_publication_and_the_next_works",
    "publications_are_readable_until_overwritten",
];

/// Test of the sonar's driver that must have run.
const ECHO: [&str; 1] = ["an_echo_is_measured_by_the_kernels_edges_near_and_far"];

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
    let read = |path: &Path| fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    let tests = program::build_unit_tests(root, &image.folder, program::ARM64, "onbeat-ipc")?;
    let devices =
        program::build_test(root, &image.folder, program::ARM64, "onbeat-devices", "linux_interfaces")?;
    // The path of a socket is short.
    let socket = |what| std::env::temp_dir().join(format!("onbeat-arm-{}.{what}", std::process::id()));
    let [monitor, test] = ["qmp", "qtest"].map(socket);
    let [qmp, qtest] =
        [&monitor, &test].map(|socket| format!("unix:{},server=on,wait=off", socket.display()));
    let mut lines = None;
    let results = image.boot_attended(
        &Boot {
            name: "aarch64",
            machine: &[
                "-smp",
                "2",
                "-accel",
                "tcg,thread=multi",
                "-qmp",
                &qmp,
                "-qtest",
                &qtest,
                "-qtest-log",
                "none",
            ],
            parameters: super::PARAMETERS,
            script: include_str!("arm.sh"),
            files: &[
                ("robot.toml", robot.as_bytes()),
                ("root/lock-free", &read(&tests)?),
                ("root/interfaces", &read(&devices)?),
            ],
            longest: Duration::from_secs(900),
        },
        &mut |section| {
            if section == "kernel" {
                lines = Some(Lines::play(&monitor, &test)?);
            }
            Ok(())
        },
    );
    drop(lines);
    [monitor, test].iter().for_each(|socket| drop(fs::remove_file(socket)));
    let results = results?;
    let kernel = results.section("kernel")?;
    println!("{kernel}");
    if !kernel.contains("aarch64") || !kernel.contains("PREEMPT_RT") {
        return Err(format!("kernel: expected an aarch64 one with PREEMPT_RT, found {kernel}"));
    }
    two_cpus::doctor(&results)?;
    two_cpus::run(&results)?;
    tasks(&results)?;
    edges(&results)?;
    lock_free(&results)
}

/// Checks that edges of wired lines were seen: by the sonar's driver, from a line to user code,
/// from a line to the answering line, and edges of tasks.
fn edges(results: &Results) -> Result<(), String> {
    let said = results.section("echo")?;
    interfaces::all_ran(said, &ECHO)?;
    let json = |name: &str| {
        let said = || results.section("edges-said").unwrap_or_default();
        results.json(name).map_err(|error| format!("{error}; it said {}", said()))
    };
    let report = json("interrupt")?;
    let cells = report["values"]["cells"].as_array().cloned().unwrap_or_default();
    let cell = |cell: &Value| (cell["from"].clone(), cell["condition"].clone(), cell["latency_ns"].clone());
    let gpio =
        cells.iter().map(cell).filter(|(from, ..)| from.as_str().is_some_and(|it| it.starts_with("GPIO")));
    let gpio: Vec<_> = gpio.collect();
    for (from, condition, it) in &gpio {
        println!("{from}, {condition}: {} to {} ns, {} edges", it["minimum"], it["maximum"], it["count"]);
    }
    // An edge to user code and an edge to the answer's, of a real-time thread and of an ordinary
    // one. A stalled emulated CPU may see two edges as none.
    let most =
        |(.., it): &(Value, Value, Value)| it["count"].as_u64().is_some_and(|count| count * 10 > EDGES * 9);
    if gpio.len() != 4 || !gpio.iter().all(most) {
        return Err(format!("GPIO: expected four rows of most of {EDGES} edges, found {gpio:?}"));
    }
    let report = json("toggled")?;
    for task in report["values"]["tasks"].as_array().into_iter().flatten() {
        let (own, outside) = (&task["period_ns"], &task["outside"]["period_ns"]);
        println!(
            "{}: period {} ns, by its GPIO line {} ns",
            task["name"], own["average"], outside["average"]
        );
        let count = |it: &Value| it["count"].as_u64().unwrap_or(0);
        if count(outside) < 10 || count(outside) * 10 < count(own) * 9 {
            return Err(format!(
                "a task that toggles a line: expected most of its edges to be seen, found {task}"
            ));
        }
    }
    Ok(())
}

/// Edges of the GPIO line that are waited for: see `arm.sh`.
const EDGES: u64 = 400;

/// Checks that the two tasks of the controllers paper ran, and that none was faster than its busy
/// time.
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
