//! Start-up time and memory of a simulated bus, and time from a fresh clone.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::statistics::Sorted;
use crate::command;
use crate::report::{Outcome, Report};

/// Numbers of SubDevices of the buses measured.
const COUNTS: [usize; 3] = [6, 59, 200];
/// Starts of each.
const STARTS: usize = 9;

/// Measures from the start of the program to its end: bring-up to Op, one cycle, and back to Init.
pub(crate) fn bring_up(root: &Path, folder: &Path, report: &mut Report) {
    report.step("bench bring-up", || match measure(root, folder) {
        Ok(table) => {
            println!("{table}");
            Outcome::Passed
        }
        Err(why) => Outcome::Failed(why),
    });
}

/// Measures from `git clone` to the first cycle, with a target folder of its own; downloaded crates are
/// kept.
pub(crate) fn fresh_clone(root: &Path, report: &mut Report) {
    report.step("bench clone", || {
        let clone = root.join("target/bench-clone");
        let _ = fs::remove_dir_all(&clone);
        let start = Instant::now();
        let mut git = Command::new("git");
        git.args(["clone", "--quiet", "--no-hardlinks"]).arg(root).arg(&clone);
        let mut run =
            command::cargo(&clone, &["run", "--release", "--quiet", "--", "run", "--cycles", "1"]);
        run.env("CARGO_TARGET_DIR", clone.join("target"));
        let took =
            command::output(&mut git).and_then(|_| command::output(&mut run)).map(|_| start.elapsed());
        let _ = fs::remove_dir_all(&clone);
        match took {
            Ok(took) => {
                let cores = std::thread::available_parallelism().map_or(0, usize::from);
                println!(
                    "from git clone to the end of the first cycle: {:.1} s, {cores} cores",
                    took.as_secs_f64()
                );
                Outcome::Passed
            }
            Err(why) => Outcome::Failed(why),
        }
    });
}

fn measure(root: &Path, folder: &Path) -> Result<String, String> {
    let onbeat = root.join("target/release/onbeat");
    let mut table = String::from("SubDevices   start to end ms (median)   slowest   peak memory MiB\n");
    let mut raw = String::from("sub_devices,milliseconds,peak_kib\n");
    for count in COUNTS {
        let robot = folder.join(format!("robot-{count}-drives.toml"));
        fs::write(&robot, super::wire::drives(count)).map_err(|error| error.to_string())?;
        let mut run = Command::new(&onbeat);
        run.arg("run").arg(&robot).args(["--cycles", "1", "--json"]);
        let mut durations = Vec::new();
        let mut most = 0;
        for _ in 0..STARTS {
            let (took, peak) = run_to_end(&mut run)?;
            let _ = writeln!(raw, "{count},{:.1},{peak}", took.as_secs_f64() * 1e3);
            durations.push(took.as_micros() as u64);
            most = most.max(peak);
        }
        let sorted = Sorted::new(durations);
        let [median, slowest] = [0.5, 1.0].map(|share| sorted.quantile(share) as f64 / 1e3);
        let _ = writeln!(table, "{count:10} {median:26.0} {slowest:9.0} {:17.1}", most as f64 / 1024.0);
    }
    let mut six_axis = Command::new(&onbeat);
    six_axis.arg("run").arg(root.join("examples/six-axis.toml")).args(["--cycles", "2000", "--json"]);
    let (_, peak) = run_to_end(&mut six_axis)?;
    let _ = writeln!(
        table,
        "peak memory of 2 000 cycles of examples/six-axis.toml: {:.1} MiB",
        peak as f64 / 1024.0
    );
    let path = folder.join("bring-up.csv");
    fs::write(&path, raw).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(table)
}

/// Run time of a program, and its peak resident memory (VmHWM) in KiB.
fn run_to_end(command: &mut Command) -> Result<(Duration, u64), String> {
    let start = Instant::now();
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut child =
        child.map_err(|error| format!("`{}` does not start: {error}", command::words(command)))?;
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        let read = fs::read_to_string(&status).unwrap_or_default();
        let found = read
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
        peak = peak.max(found.unwrap_or(0));
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) if status.success() => return Ok((start.elapsed(), peak)),
            Some(status) => return Err(format!("`{}` ended with {status}", command::words(command))),
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    }
}
