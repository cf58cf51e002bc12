//! Start-up time and memory of a simulated bus, and time from a fresh clone.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use testkit::{Side, Testbed};

use super::statistics::Sorted;
use crate::command;
use crate::judges::simulate::Simulate;
use crate::report::{Outcome, Report};

/// Numbers of SubDevices of the buses measured.
const COUNTS: [usize; 4] = [6, 59, 200, 1000];
/// Starts of each.
const STARTS: usize = 9;
/// Time for the simulator to start, before the run looks for it.
const SIMULATOR_STARTS: Duration = Duration::from_secs(2);
/// Seconds after which a peer is ended that has not said anything.
const PEER_TIMEOUT: &str = "60";
/// Bytes of outputs and of inputs of a drive of [`drives`].
const BYTES_EACH: usize = 16;

/// Measures from the start of the program to its end: bring-up to PreOp, one cycle, and back to
/// Init. A large bus needs more cycles to Op.
pub(crate) fn bring_up(root: &Path, folder: &Path, report: &mut Report) {
    report.step("bench bring-up", || match measure(root, folder) {
        Ok(table) => {
            println!("{table}");
            Outcome::Passed
        }
        Err(why) => Outcome::Failed(why),
    });
}

/// Measures from `git clone` to the first cycle, with a separate target folder; downloaded crates
/// are kept.
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

/// Measures the same over a veth pair, and the time of each of `peers` from its start to Op,
/// against a running simulator: two different measurements, not comparable number by number.
///
/// # Errors
/// The missing part, or the reason that ours does not come up. A peer's failure is shown in its
/// place.
pub(crate) fn over_the_wire(
    root: &Path,
    folder: &Path,
    mut peers: Vec<(&str, Result<Command, String>)>,
) -> Result<String, String> {
    let onbeat = root.join("target/release/onbeat");
    let mut table = String::from(
        "SubDevices   over a veth pair, ms (median): peers from start to Op, ours from start to end of one cycle, before Op\n",
    );
    for count in COUNTS {
        let robot = folder.join(format!("robot-{count}-drives.toml"));
        fs::write(&robot, drives(count)).map_err(|error| error.to_string())?;
        let testbed = Testbed::new().map_err(|skip| skip.to_string())?;
        let _simulated = Simulate::start(&testbed, &onbeat, &robot)?;
        std::thread::sleep(SIMULATOR_STARTS);
        let mut ours = Command::new(&onbeat);
        ours.arg("run").arg(&robot).args(["--iface", Side::Near.interface(), "--cycles", "1", "--json"]);
        let mut ours = testbed.run_in(Side::Near, ours);
        let took = median(|| run_to_end(&mut ours).map(|(took, _)| took))?;
        let _ = writeln!(table, "{count:10}   Onbeat {took:.0}");
        for (name, command) in &mut peers {
            let cell = match command {
                Ok(command) => {
                    let mut peer = Command::new("timeout");
                    peer.arg(PEER_TIMEOUT).arg(command.get_program()).args(command.get_args());
                    peer.arg(Side::Near.interface()).args([count.to_string(), BYTES_EACH.to_string()]);
                    let mut peer = testbed.run_in(Side::Near, peer);
                    median(|| run_to_ready(&mut peer)).map_or_else(|why| why, |took| format!("{took:.0}"))
                }
                Err(why) => why.clone(),
            };
            let _ = writeln!(table, "{:10}   {name} {cell}", "");
        }
    }
    Ok(table)
}

/// Median of the starts, in ms.
fn median(mut start: impl FnMut() -> Result<Duration, String>) -> Result<f64, String> {
    let all: Result<Vec<_>, _> = (0..STARTS).map(|_| Ok(start()?.as_micros() as u64)).collect();
    all.map(|all: Vec<u64>| Sorted::new(all).quantile(0.5) as f64 / 1e3)
}

/// Time until a program says `ready`; its first line otherwise.
fn run_to_ready(command: &mut Command) -> Result<Duration, String> {
    let start = Instant::now();
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child =
        child.map_err(|error| format!("`{}` does not start: {error}", command::words(command)))?;
    let mut line = String::new();
    let told = child.stdout.take().map(|output| BufReader::new(output).read_line(&mut line));
    let took = start.elapsed();
    let is_ready = matches!(told, Some(Ok(_))) && line.starts_with("ready ");
    drop(child.stdin.take());
    let ended = child.wait_with_output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&ended.stderr);
    let why = said.lines().last().unwrap_or("no answer");
    if is_ready { Ok(took) } else { Err(format!("does not: {why} ({})", ended.status)) }
}

fn measure(root: &Path, folder: &Path) -> Result<String, String> {
    let onbeat = root.join("target/release/onbeat");
    let mut table = String::from("SubDevices   start to end ms (median)   slowest   peak memory MiB\n");
    let mut raw = String::from("sub_devices,milliseconds,peak_kib\n");
    for count in COUNTS {
        let robot = folder.join(format!("robot-{count}-drives.toml"));
        fs::write(&robot, drives(count)).map_err(|error| error.to_string())?;
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

/// Robot file of `count` drives, with the shortest of the usual periods in which the wire carries
/// their process data.
pub(crate) fn drives(count: usize) -> String {
    let period = match count {
        0..=250 => "1ms",
        251..=500 => "2ms",
        _ => "4ms",
    };
    ROBOT.replace("COUNT", &count.to_string()).replace("PERIOD", period)
}

const ROBOT: &str = r#"# Written by `cargo xtask bench wire`: 16 bytes of outputs and of inputs each, four of them padding.
name = "wire"

[cycle]
period = "PERIOD"

[device.servo]
identity = { vendor_id = 0xFFFF_0B01, product_code = 0x0000_0403, revision = 0x0001_0000 }

[device.servo.pdos]
outputs = [{ index = 0x1600, entries = [
    { index = 0x6040, bits = 16 }, { index = 0x607A, bits = 32 }, { index = 0x60FF, bits = 32 },
    { index = 0x6071, bits = 16 }, { index = 0x0000, bits = 32 },
] }]
inputs = [{ index = 0x1A00, entries = [
    { index = 0x6041, bits = 16 }, { index = 0x6064, bits = 32 }, { index = 0x606C, bits = 32 },
    { index = 0x6077, bits = 16 }, { index = 0x0000, bits = 32 },
] }]

[device.servo.simulate]
kind = "servo_drive"
encoder_counts = 1_048_576
inertia = 5e-4
rated_torque = 2.4

[bus]

[[bus.sub_device]]
name = "drive-{}"
count = COUNT
device = "servo"
"#;
