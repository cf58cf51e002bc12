//! `cargo xtask bench wire`: round trips over a veth pair with a far end that reflects in the
//! kernel.
//!
//! Each contestant has a separate cable and runs at SCHED_FIFO 80 on the same core. Contestants
//! alternate in short rounds, so that disturbances of the machine affect all of them alike. The
//! reply is available when the send returns (the kernel runs both ends of the cable on the sender's
//! core), so that the measurement is of the program's own cost: system calls, copies, building,
//! matching and checking.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use super::contestant::{Contestant, Load, Reflector, Round};
use super::recorded::Sorted;
use super::{contestant, start};
use crate::report::{Outcome, Report};
use crate::{bench, command, setup};

/// Length of the measurement.
#[derive(Debug)]
pub(crate) struct Options {
    /// Rounds of each contestant.
    pub(crate) rounds: usize,
    /// Cycles in a round.
    pub(crate) cycles: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { rounds: 50, cycles: 2000 }
    }
}

const LOADS: &[Load] = &[
    Load { frame_bytes: 92, sub_devices: 2, bytes_each: 16 },
    Load { frame_bytes: 988, sub_devices: 30, bytes_each: 16 },
];

/// Measures every load.
pub(crate) fn measure(root: &Path, options: &Options, report: &mut Report) {
    let folder = results_folder(root);
    let prepared = fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()));
    if let Err(why) = prepared.and_then(|()| build(root, &["lab/peers/wire", "lab/peers/ethercrab"])) {
        return report.step("bench wire", || Outcome::Skipped(why));
    }
    let conditions = bench::describe();
    let _ = fs::write(folder.join("conditions.txt"), &conditions);
    for load in LOADS {
        report.step(&format!("bench wire, {} B", load.frame_bytes), || {
            match measure_load(root, &folder, load, options) {
                Ok(table) => {
                    println!("{conditions}{table}");
                    bench::doubts().iter().for_each(|doubt| println!("warning: {doubt}"));
                    Outcome::Passed
                }
                Err(why) => Outcome::Failed(why),
            }
        });
    }
    bring_ups(root, &folder, report);
    println!("every single number: {}", folder.display());
}

/// Measures the way up alone.
pub(crate) fn bring_up(root: &Path, report: &mut Report) {
    let folder = results_folder(root);
    let prepared = fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()));
    if let Err(why) = prepared.and_then(|()| build(root, &["lab/peers/ethercrab"])) {
        return report.step("bench bring-up", || Outcome::Skipped(why));
    }
    println!("{}", bench::describe());
    bring_ups(root, &folder, report);
    bench::doubts().iter().for_each(|doubt| println!("warning: {doubt}"));
}

/// Measures the way up of a simulated bus, and of one over a veth pair.
fn bring_ups(root: &Path, folder: &Path, report: &mut Report) {
    start::bring_up(root, folder, report);
    report.step("bench bring-up, wire", || match bring_up_wire(root, folder) {
        Ok(table) => {
            println!("{table}");
            Outcome::Passed
        }
        Err(why) => Outcome::Failed(why),
    });
}

fn measure_load(root: &Path, folder: &Path, load: &Load, options: &Options) -> Result<String, String> {
    let reflector = Reflector::compile(root, folder, load.sub_devices)?;
    let mut contestants = Vec::new();
    for Program { name, command, needs_bus, by_xdp } in programs(root) {
        let (onbeat, robot) = (root.join("target/release/onbeat"), robot(folder, load)?);
        let simulate = needs_bus.then_some((onbeat.as_path(), robot.as_path()));
        let start = |command| Contestant::start(name, command, by_xdp, load, simulate, &reflector);
        match command.and_then(start) {
            Ok(contestant) => contestants.push((contestant, by_xdp, Vec::new())),
            Err(why) => println!("{name} does not take part: {why}"),
        }
    }
    for (contestant, ..) in &mut contestants {
        contestant.round(options.cycles)?; // warms caches and sockets; not counted
    }
    for _ in 0..options.rounds {
        for (contestant, _, rounds) in &mut contestants {
            rounds.push(contestant.round(options.cycles)?);
        }
    }
    let mut table = String::from(
        "\ncontestant       frame B   median us    p99 us  p99.9 us  CPU us/cycle   x floor  x loop\n",
    );
    let medians: Vec<(&str, Vec<u64>)> = contestants
        .iter()
        .map(|(it, _, rounds)| (it.name, rounds.iter().map(Round::median).collect()))
        .collect();
    for ((contestant, by_xdp, rounds), (name, own)) in contestants.into_iter().zip(&medians) {
        save(folder, &contestant, load, &rounds)?;
        let cpu: u64 = rounds.iter().map(|round| round.cpu).sum();
        let all = Sorted::new(rounds.into_iter().flat_map(|round| round.cycles).collect());
        let [median, p99, p999] = [0.5, 0.99, 0.999].map(|share| all.quantile(share) as f64 / 1e3);
        let cpu = cpu as f64 / (options.rounds * options.cycles) as f64 / 1e3;
        let bytes = contestant.frame_bytes;
        let [floor, same] = [FLOOR, if by_xdp { LOOP_XDP } else { LOOP }].map(|beside| {
            medians.iter().find(|(name, _)| *name == beside).map_or(f64::NAN, |(_, it)| ratio(own, it))
        });
        let _ = writeln!(
            table,
            "{name:16} {bytes:7} {median:11.2} {p99:9.2} {p999:9.2} {cpu:13.2} {floor:9.2} {same:7.3}"
        );
    }
    let _ = writeln!(
        table,
        "{} cycles each, in {} rounds taking turns, SCHED_FIFO 80 on one core, one cable each\n\
         frame B: bytes sent a cycle; `raw, as ours` sends Onbeat's frame through the raw socket, `raw AF_XDP, ours`\n\
         through a loop of AF_XDP, `Onbeat's link` and `Onbeat's XdpLink` through its links, without a MainDevice; ethercrab reads every AL status too, KickCAT\n\
         sends two frames in turn\n\
         x floor, x loop: median of the ratios of a round's median to that of `raw socket`, and of `raw, as ours` or, by AF_XDP, `raw AF_XDP, ours`",
        options.rounds * options.cycles,
        options.rounds
    );
    Ok(table)
}

/// Measures the way to Op over a veth pair: ours, and the peers that say when they are there.
fn bring_up_wire(root: &Path, folder: &Path) -> Result<String, String> {
    let peers = [pysoem(root), ethercrab(root)];
    start::over_the_wire(root, folder, peers.map(|it| (it.name, it.command)).into())
}

/// Median of the ratios of the medians of rounds: a change of the machine's speed from one round to
/// the next does not count.
fn ratio(rounds: &[u64], others: &[u64]) -> f64 {
    let millionths = rounds.iter().zip(others).map(|(own, other)| own * 1_000_000 / other.max(&1));
    Sorted::new(millionths.collect()).quantile(0.5) as f64 / 1e6
}

/// Contestants that the others are compared to: the raw socket, and raw loops with Onbeat's own
/// frame.
const FLOOR: &str = "raw socket";
const LOOP: &str = "raw, as ours";
const LOOP_XDP: &str = "raw AF_XDP, ours";

/// A program to be measured.
struct Program {
    name: &'static str,
    command: Result<Command, String>,
    needs_bus: bool,
    /// It has an XDP program on its interface.
    by_xdp: bool,
}

fn programs(root: &Path) -> Vec<Program> {
    let wire = |name, subject: &str| {
        let mut command = Command::new(root.join("lab/peers/wire/target/release/wire"));
        command.arg(subject);
        let (needs_bus, by_xdp) = (subject.ends_with("onbeat"), subject.starts_with("xdp"));
        Program { name, command: Ok(command), needs_bus, by_xdp }
    };
    vec![
        wire(FLOOR, "floor"),
        wire(LOOP, "riders"),
        wire("Onbeat's link", "link"),
        wire("Onbeat", "onbeat"),
        wire("raw AF_XDP", "xdp-floor"),
        wire(LOOP_XDP, "xdp-riders"),
        wire("Onbeat's XdpLink", "xdp-link"),
        wire("Onbeat, AF_XDP", "xdp-onbeat"),
        peer("SOEM", contestant::build(root).map(Command::new)),
        pysoem(root),
        peer("KickCAT python", script(root, "kickcat_wire.py")),
        ethercrab(root),
    ]
}

fn pysoem(root: &Path) -> Program {
    peer("pysoem", script(root, "pysoem_wire.py"))
}

fn ethercrab(root: &Path) -> Program {
    let mut command = Command::new(root.join("lab/peers/ethercrab/target/release/ethercrab-peer"));
    command.arg("wire");
    peer("ethercrab", Ok(command))
}

fn peer(name: &'static str, command: Result<Command, String>) -> Program {
    Program { name, command, needs_bus: true, by_xdp: false }
}

fn script(root: &Path, name: &str) -> Result<Command, String> {
    let mut command = Command::new(setup::python(root)?);
    command.arg(root.join("lab/peers").join(name));
    Ok(command)
}

/// Builds ours, and these projects around peers.
fn build(root: &Path, projects: &[&str]) -> Result<(), String> {
    command::run(&mut command::cargo(root, &["build", "--release", "--quiet", "--package", "onbeat-cli"]))?;
    for project in projects {
        command::run(&mut command::cargo(&root.join(project), &["build", "--release", "--quiet"]))?;
    }
    Ok(())
}

/// Saves one line per round: CPU time, then each cycle, in nanoseconds.
fn save(folder: &Path, contestant: &Contestant, load: &Load, rounds: &[Round]) -> Result<(), String> {
    let name = format!("{}-{}.csv", contestant.name.replace(' ', "-"), load.frame_bytes);
    let mut text = String::from("cpu_ns,cycle_ns...\n");
    for round in rounds {
        let _ = write!(text, "{}", round.cpu);
        for cycle in &round.cycles {
            let _ = write!(text, ",{cycle}");
        }
        text.push('\n');
    }
    fs::write(folder.join(&name), text).map_err(|error| format!("{name}: {error}"))
}

fn results_folder(root: &Path) -> PathBuf {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    root.join(format!("bench-results/wire-{now}"))
}

/// Writes a robot file of drives with frames as long as the load's.
fn robot(folder: &Path, load: &Load) -> Result<PathBuf, String> {
    let path = folder.join(format!("robot-{}.toml", load.frame_bytes));
    fs::write(&path, start::drives(load.sub_devices))
        .map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_machine_that_changes_its_speed_does_not_change_a_ratio() {
        assert_eq!(super::ratio(&[105, 210, 315], &[100, 200, 300]), 1.05);
    }
}
