//! Soak: a bus with random faults from a seed, for as long as one likes; memory, descriptors and
//! outcome.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::command;
use crate::report::{Outcome, Report};

/// Settings of a soak.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    /// Seconds with faults; a calm minute follows.
    pub(super) seconds: u64,
    /// Seed of the faults: the same ones every time.
    pub(super) seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { seconds: 3600, seed: 1 }
    }
}

impl Options {
    /// Parses `[--seconds N] [--seed N]`.
    ///
    /// # Errors
    /// The expected arguments, in one sentence.
    pub(super) fn parse(words: &[&str]) -> Result<Self, String> {
        let mut options = Self::default();
        for pair in words.chunks(2) {
            let number = pair.get(1).and_then(|number| number.parse().ok()).filter(|number| *number > 0);
            match (pair[0], number) {
                ("--seconds", Some(seconds)) => options.seconds = seconds,
                ("--seed", Some(seed)) => options.seed = seed,
                _ => return Err(format!("`{}`: expected [--seconds N] [--seed N]", words.join(" "))),
            }
        }
        Ok(options)
    }
}

/// Runs the six axes with faults, and states what became of them.
pub(super) fn measure(root: &Path, options: Options, report: &mut Report) {
    report.step("bench soak", || match soak(root, options) {
        Ok(text) => {
            println!("{text}");
            Outcome::Passed
        }
        Err(why) => Outcome::Failed(why),
    });
}

fn soak(root: &Path, options: Options) -> Result<String, String> {
    command::run(&mut command::cargo(root, &["build", "--release", "--quiet", "--package", "onbeat-cli"]))?;
    let folder = root.join("bench-results").join(format!("soak-{}", options.seed));
    let wrong = |error: std::io::Error| format!("{}: {error}", folder.display());
    fs::create_dir_all(&folder).map_err(wrong)?;
    let script = folder.join("faults.txt");
    let faults = faults(options);
    fs::write(&script, &faults).map_err(wrong)?;
    let file = |name: &str| fs::File::create(folder.join(name)).map_err(wrong);
    let mut run = Command::new(root.join("target/release/onbeat"));
    run.arg("run").arg(root.join("examples/six-axis.toml")).arg("--faults").arg(&script);
    run.args(["--for", &format!("{}s", options.seconds + CALM), "--json"]);
    run.stdin(Stdio::null()).stdout(file("run.json")?).stderr(file("run.txt")?);
    let (samples, status) = watch(&mut run)?;
    let mut raw = String::from("seconds,resident_kib,descriptors,threads\n");
    for Sample { seconds, resident, descriptors, threads } in &samples {
        let _ = writeln!(raw, "{seconds},{resident},{descriptors},{threads}");
    }
    fs::write(folder.join("samples.csv"), raw).map_err(wrong)?;
    let told = fs::read_to_string(folder.join("run.json")).map_err(wrong)?;
    let outcome: Value = serde_json::from_str(&told).map_err(|error| {
        format!("{}: {error}; it ended with {status}", folder.join("run.json").display())
    })?;
    conclude(&outcome, &samples, faults.lines().count(), status, &folder)
}

/// Seconds without a fault at the end.
const CALM: u64 = 60;
/// SubDevices of the robot.
const DRIVES: u64 = 6;

/// Script of faults, one every 2 to 8 s; each ends before the next but one.
fn faults(Options { seconds, seed }: Options) -> String {
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut script, mut at) = (format!("5s seed {seed}\n"), 10_000);
    while at < seconds * 1000 {
        let drive = random.u64(..DRIVES);
        let lasting = random.u64(20..1500);
        let share = random.u64(1..20);
        let fault = match random.u8(..16) {
            0..3 => format!("power off {drive} for {lasting}ms"),
            3..5 => format!("cable pull {}:1 for {lasting}ms", random.u64(..DRIVES - 1)),
            5 => format!("crc {drive}:0 {}", random.u8(1..200)),
            6 => format!("mailbox stuck {drive} for {lasting}ms"),
            7 => format!("application stop {drive} for {lasting}ms"),
            8 => format!("watchdog expire {drive}"),
            9 => format!("clock jump {drive} +{}us", random.u64(1..500)),
            10 => format!("drive fault {drive} 0x7500"),
            11 => format!("drive power off {drive} for {lasting}ms"),
            12 => format!("frames lose {share}% for {lasting}ms"),
            13 => format!("frames delay {}us {share}% for {lasting}ms", random.u64(50..900)),
            14 => format!("frames reorder {share}% for {lasting}ms"),
            _ => format!("frames corrupt {share}% for {lasting}ms"),
        };
        let _ = writeln!(script, "{at}ms {fault}");
        at += random.u64(2_000..8_000);
    }
    let _ = writeln!(script, "{}ms clear", seconds * 1000);
    script
}

/// Resources of the program at one instant.
#[derive(Clone, Copy, Debug)]
struct Sample {
    seconds: u64,
    /// Resident memory in KiB.
    resident: u64,
    descriptors: usize,
    threads: u64,
}

fn watch(run: &mut Command) -> Result<(Vec<Sample>, String), String> {
    println!("$ {}", command::words(run));
    let start = Instant::now();
    let child = testkit::end_with_parent(run).spawn();
    let mut child = child.map_err(|error| format!("`{}` does not start: {error}", command::words(run)))?;
    let mut samples = Vec::new();
    loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Ok((samples, status.to_string()));
        }
        samples.extend(sample(child.id(), start.elapsed()));
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn sample(process: u32, since: Duration) -> Option<Sample> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let value = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    Some(Sample {
        seconds: since.as_secs(),
        resident: value("VmRSS:")?,
        descriptors: fs::read_dir(format!("/proc/{process}/fd")).ok()?.count(),
        threads: value("Threads:")?,
    })
}

/// States the outcome; fails if anything grew, or the bus was not in Op again at the end.
fn conclude(
    outcome: &Value,
    samples: &[Sample],
    faults: usize,
    status: String,
    folder: &Path,
) -> Result<String, String> {
    let settled = samples.iter().skip(30).collect::<Vec<_>>();
    let [Some(first), Some(last)] = [settled.first(), settled.last()] else {
        return Err(format!("it ended with {status} before it had settled: {}", folder.display()));
    };
    let most = |of: fn(&Sample) -> u64| settled.iter().map(|it| of(it)).max().unwrap_or(0);
    let mut text = format!("{faults} lines of faults in {} s; it ended with {status}\n", last.seconds);
    let _ = writeln!(
        text,
        "resident memory   {} KiB after 30 s, {} at the end, {} at most",
        first.resident,
        last.resident,
        most(|it| it.resident)
    );
    let _ = writeln!(
        text,
        "descriptors       {} after 30 s, {} at the end, {} at most",
        first.descriptors,
        last.descriptors,
        most(|it| it.descriptors as u64)
    );
    let _ = writeln!(
        text,
        "threads           {} after 30 s, {} at the end, {} at most",
        first.threads,
        last.threads,
        most(|it| it.threads)
    );
    for key in ["cycles", "overruns", "frames", "clock_lock", "findings"] {
        let _ = writeln!(text, "{key:17} {}", outcome[key]);
    }
    let empty = Vec::new();
    let sub_devices = outcome["sub_devices"].as_array().unwrap_or(&empty);
    let in_op = sub_devices.iter().filter(|it| it["answers"] == true && it["state"] == "Op").count();
    let _ = writeln!(text, "in Op at the end  {in_op} of {} SubDevices", sub_devices.len());
    let _ = writeln!(text, "raw data          {}", folder.display());
    let grew =
        last.resident > first.resident + first.resident / 20 || last.descriptors != first.descriptors;
    if grew || in_op < DRIVES as usize { Err(text) } else { Ok(text) }
}
