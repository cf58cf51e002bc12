//! `cargo xtask bench explain`: cost of `onbeat run --explain` for the cycle.
//!
//! Short runs with and without it alternate, so that disturbances of the machine affect both alike.
//! Compare the medians: the tails are the machine's.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use super::conditions;
use super::recorded::Recorded;
use super::statistics::Sorted;
use crate::command;
use crate::report::{Outcome, Report};

/// Cycles of a run: three seconds at one a millisecond.
const CYCLES: &str = "3000";

/// Measures this many rounds of both.
pub(crate) fn measure(root: &Path, rounds: usize, report: &mut Report) {
    report.step("bench explain", || match compare(root, rounds) {
        Ok(table) => {
            println!("{}{table}", conditions::describe());
            conditions::doubts().iter().for_each(|doubt| println!("warning: {doubt}"));
            Outcome::Passed
        }
        Err(why) => Outcome::Failed(why),
    });
}

fn compare(root: &Path, rounds: usize) -> Result<String, String> {
    command::run(&mut command::cargo(root, &["build", "--release", "--quiet", "--package", "onbeat-cli"]))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let folder = root.join(format!("bench-results/explain-{now}"));
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut sides = [Side::new("without"), Side::new("--explain")];
    for round in 0..rounds {
        for turn in 0..2 {
            // The order alternates, too.
            let side = (round + turn) % 2;
            let recording = folder.join(format!("{side}-{round}.mcap"));
            run(root, side == 1, &recording)?;
            sides[side].take(root, &recording)?;
        }
    }
    let mut table = String::from("\n1 ms cycle, six axes        cycles   median us    99 % us\n");
    let [without, with] = sides.map(Side::sorted);
    for (place, what) in WHATS.iter().enumerate() {
        for (name, side) in [("without", &without), ("--explain", &with)] {
            let (median, tail) =
                (side[place].quantile(0.5) as f64 / 1e3, side[place].quantile(0.99) as f64 / 1e3);
            let count = side[place].len();
            let _ = writeln!(table, "{what:<16}{name:<12}{count:>6}{median:>12.2}{tail:>11.2}");
        }
        let cost = with[place].quantile(0.5) as f64 - without[place].quantile(0.5) as f64;
        let _ = writeln!(table, "{what:<16}{:<12}{:>6}{:>12.2}", "cost", "", cost / 1e3);
    }
    let _ = writeln!(table, "every single number: {}", folder.display());
    Ok(table)
}

/// Quantities compared.
const WHATS: [&str; 3] = ["wakeup latency", "T_exec", "response time"];

struct Side {
    name: &'static str,
    durations: [Vec<u64>; WHATS.len()],
}

impl Side {
    fn new(name: &'static str) -> Self {
        Self { name, durations: Default::default() }
    }

    /// Reads the cycles of a recording.
    fn take(&mut self, root: &Path, recording: &Path) -> Result<(), String> {
        let recorded =
            Recorded::read(root, recording).map_err(|error| format!("{}: {error}", self.name))?;
        let execution = ["receive_ns", "read_ns", "command_ns", "update_ns", "write_ns", "transmit_ns"];
        let instants = recorded.values(["release_ns", "start_ns", "end_ns"])?;
        for ([release, start, end], phases) in instants.zip(recorded.values(execution)?) {
            self.durations[0].push(start.saturating_sub(release));
            self.durations[1].push(phases.iter().sum());
            self.durations[2].push(end.saturating_sub(release));
        }
        Ok(())
    }

    fn sorted(self) -> [Sorted; WHATS.len()] {
        self.durations.map(Sorted::new)
    }
}

fn run(root: &Path, explain: bool, recording: &Path) -> Result<(), String> {
    let cpu = std::thread::available_parallelism().map_or(1, usize::from) - 1;
    let mut command = Command::new(root.join("target/release/onbeat"));
    command.args(["run", "--cycles", CYCLES, "--period", "1ms", "--priority", "80", "--json"]);
    command.args(["--cpu", &cpu.to_string(), "--signals", "none", "--force", "--record"]).arg(recording);
    if explain {
        command.arg("--explain");
    }
    let end = command::output(&mut command)?;
    let end: serde_json::Value = serde_json::from_str(&end).map_err(|error| error.to_string())?;
    match end["explain"]["source"].as_str() {
        Some("counters") => Err(format!("no trace here: {}", end["explain"]["notes"])),
        _ => Ok(()),
    }
}
