//! `onbeat simulate`: what it says.
//!
//! `onbeat simulate --record`: what an observer at the other end of the cable writes down.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, thread};

use record::recording::Recording;
use rustix::process::{Pid, Signal, kill_process};
use testkit::{Side, Testbed};

use crate::common::{Running, alone, finished, onbeat, run, six_axis_with};

#[test]
fn without_an_interface_it_says_what_it_needs() {
    let ran = run(&["simulate"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("--iface"), "{}", ran.stderr);
}

// feature(program): `simulate --sii` keeps SIIs over a restart
#[test]
fn a_broken_sii_file_is_reported() {
    let folder = env::temp_dir().join(format!("onbeat-simulate-sii-{}", process::id()));
    fs::create_dir_all(&folder).unwrap();
    let broken = folder.join("drive-1.sii");
    fs::write(&broken, "no SII").unwrap();
    let ran = run(&["simulate", "--iface", "lo", "--sii", folder.to_str().unwrap()]);
    let sentence = format!(
        "onbeat: {}: SII image cut short: 6 bytes, expected at least 128, the header: remove the file to begin with a new SII\n",
        broken.display()
    );
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), sentence.as_str()));
}

/// A test network, or why there is none.
fn testbed() -> Option<Testbed> {
    Testbed::new().map_err(|skip| testkit::skip!("{skip}")).ok()
}

fn ip(testbed: &Testbed, arguments: &[&str]) -> String {
    let mut command = Command::new("ip");
    command.args(arguments);
    let output = testbed.run_in(Side::Far, command).output().expect("ip");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

// feature(program): `simulate` survives an interface that goes down and ends with one that is removed
#[test]
fn it_ends_with_its_interface() {
    let Some(testbed) = testbed() else { return };
    let mut simulate = onbeat();
    simulate.args(["simulate", "examples/io-station.toml", "--iface", "far"]);
    let simulate = Running::start(testbed.run_in(Side::Far, simulate));
    // It receives all frames, also with other destination addresses: the interface is promiscuous.
    let begin = Instant::now();
    while !ip(&testbed, &["-details", "link", "show", "far"]).contains("promiscuity 1") {
        assert!(begin.elapsed() < Duration::from_secs(20), "it does not open its interface");
    }
    ip(&testbed, &["link", "delete", "far"]);
    let ran = simulate.finish_within(Duration::from_secs(20));
    let sentence = "onbeat: interface far: it was removed while SubDevices answered on it; create \
        it again and start again\n";
    assert!(ran.code == Some(1) && ran.stderr.ends_with(sentence), "{:?}: {}", ran.code, ran.stderr);
}

/// A simulator that was killed leaves its socket behind, until any other one starts: another
/// test's, it may be.
// feature(program): the control socket of a killed simulator keeps no other out, and is removed by the next one of any name
#[test]
fn leftovers_of_a_killed_simulator_are_removed() {
    let Some(testbed) = testbed() else { return };
    let simulate = |name: &str, more: &[&str]| {
        let mut command = onbeat();
        command.args(["simulate", "examples/io-station.toml", "--iface", "far", "--control", name]);
        command.args(more);
        Running::start(testbed.run_in(Side::Far, command))
    };
    let name = format!("killed-{}", process::id());
    let other = format!("{name}-other");
    let socket = Path::new("/run/onbeat").join(format!("{name}.faults"));
    for next in [&name, &other] {
        let mut killed = simulate(&name, &[]);
        let begin = Instant::now();
        while !socket.exists() {
            assert!(begin.elapsed() < Duration::from_secs(20), "it does not open its socket");
            thread::sleep(Duration::from_millis(5));
        }
        killed.kill();
        let ran = simulate(next, &["--for", "10ms"]).finish();
        assert_eq!(ran.code, Some(0), "{next}: {}", ran.stderr);
        assert!(!socket.exists(), "{next}");
    }
}

// feature(program): the actual scheduling of a thread, read back; a policy set from outside is reported
#[test]
fn it_says_how_it_is_really_scheduled() {
    let Some(testbed) = testbed() else { return };
    let fifo_50 = |robot: &Path| {
        let (mut command, program) = (Command::new("chrt"), onbeat());
        command.current_dir(program.get_current_dir().expect("the folder of the examples"));
        command.args(["-f", "50"]).arg(program.get_program()).arg("simulate").arg(robot);
        command.args(["--iface", "far", "--for", "10ms"]);
        finished(testbed.run_in(Side::Far, command))
    };
    let ordinary = six_axis_with("ordinary.toml", "profile = \"PM\" ", "profile = \"none\" ");
    let ran = fifo_50(&ordinary);
    if ran.code != Some(0) {
        return testkit::skip!("needs chrt (Debian: util-linux) and SCHED_FIFO: {}", ran.stderr);
    }
    assert!(ran.stderr.contains(" SubDevices on far, SCHED_FIFO 50, memory"), "{}", ran.stderr);
    let ran = fifo_50(Path::new("examples/six-axis.toml"));
    assert!(ran.stderr.contains(", SCHED_FIFO 79 (it was started with SCHED_FIFO 50), "), "{}", ran.stderr);
}

const ROBOT: &str = "examples/fast-output.toml";

/// Ends a simulator as Ctrl-C does, and waits for it.
fn stop(mut simulator: Child) -> Option<i32> {
    let process = Pid::from_child(&simulator);
    kill_process(process, Signal::INT).expect("a signal");
    simulator.wait().expect("the simulator ends").code()
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

// feature(measure): `simulate --record`: any MainDevice's cycles with the kernel's time stamps
#[test]
fn every_cycle_is_recorded_with_its_number_and_its_stamp() {
    let _alone = alone();
    let testbed = match Testbed::new() {
        Ok(testbed) => testbed,
        Err(skip) => return testkit::skip!("{skip}"),
    };
    let file = path("observed.mcap");
    let mut simulate = onbeat();
    simulate.args(["simulate", ROBOT, "--iface", Side::Far.interface(), "--record"]).arg(&file);
    let mut simulate = testbed.run_in(Side::Far, simulate);
    let simulator = simulate.stderr(Stdio::null()).spawn().expect("the simulator");
    let mut run = onbeat();
    run.args(["run", ROBOT, "--cycles", "1000", "--json", "--iface", Side::Near.interface()]);
    finished(testbed.run_in(Side::Near, run)).json();
    assert_eq!(stop(simulator), Some(0));

    let recording =
        Recording::read(BufReader::new(File::open(&file).expect("the recording"))).expect("whole");
    assert!(recording.complete && recording.header.what == "bus", "{:?}", recording.header);
    assert_eq!(recording.header.facts["cycle_number_bits"], 16);
    assert_eq!(recording.header.facts["period_ns"], 1_000_000);
    assert_eq!((&recording.end["rows_dropped"], &recording.end["kernel_dropped"]), (&0.into(), &0.into()));
    let column = |name: &str| recording.column(name).expect("the column").collect::<Vec<_>>();
    let rising = |values: &[i64]| values.windows(2).all(|pair| pair[0] < pair[1]);
    let (stamps, outputs) = (column("arrival_ns"), column("outputs"));
    assert!(rising(&stamps) && rising(&column("frame")) && rising(&column("generation")));
    // In Op the outputs count the cycles, one by one, except after overruns.
    let cycles: Vec<i64> = outputs.iter().copied().filter(|levels| *levels >= 0).collect();
    assert!(cycles.len() >= 1000, "{} cycles in Op", cycles.len());
    let counted: Vec<i64> = cycles.windows(2).map(|pair| (pair[1] - pair[0]) & 0xFFFF).collect();
    assert!(counted.iter().all(|&step| step > 0), "a new cycle each");
    let missing = counted.iter().sum::<i64>() - counted.len() as i64;
    // A missing frame was never sent: the MainDevice's own numbers have no gap, frame by frame.
    let steps = |values: &[i64]| values.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>();
    assert_eq!(steps(&column("generation")), steps(&column("frame")));
    // The fast output changes with every frame but where cycles are missing.
    let edges = outputs.windows(2).filter(|pair| pair[0] >= 0 && (pair[0] ^ pair[1]) & 1 == 1).count();
    assert!(edges as i64 + missing + 1 >= cycles.len() as i64, "{edges} edges, {missing} missing");
}

#[test]
fn a_recording_that_cannot_be_written_is_refused_at_the_start() {
    let ran = run(&["simulate", ROBOT, "--iface", "lo", "--record", "/nowhere/at/all"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let sentence = ran.stderr.lines().last().unwrap_or_default();
    // Without the right to open the interface that is what it says first.
    let reasons = ["/nowhere/at/all: the recording cannot be written", "CAP_NET_RAW"];
    assert!(reasons.iter().any(|reason| sentence.contains(reason)), "{sentence}");
}
