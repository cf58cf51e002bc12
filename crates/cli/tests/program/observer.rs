//! `onbeat simulate --record`: what an observer at the other end of the cable writes down.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use record::recording::Recording;
use rustix::process::{Pid, Signal, kill_process};
use testkit::{Side, Testbed};

use crate::common::{alone, finished, onbeat};

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
    let ran = crate::common::run(&["simulate", ROBOT, "--iface", "lo", "--record", "/nowhere/at/all"]);
    let sentence = ran.sentence();
    // Without the right to open the interface that is what it says first.
    let reasons = ["/nowhere/at/all: the recording cannot be written", "CAP_NET_RAW"];
    assert!(reasons.iter().any(|reason| sentence.contains(reason)), "{sentence}");
}
