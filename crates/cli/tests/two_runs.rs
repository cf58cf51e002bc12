//! Two runs after each other in one process: a signal to the first is none to the second.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use onbeat::{AxisCommand, AxisReport, Beat, Controller, Run};
use rustix::process::{Signal, getpid, kill_process};

/// Sends this process SIGINT on its hundredth beat, if it is to.
struct Interrupts(Option<u32>);

impl Controller for Interrupts {
    fn update(&mut self, _: Beat, _: &[AxisReport], _: &mut [AxisCommand]) {
        self.0 = match self.0 {
            Some(0) => {
                kill_process(getpid(), Signal::INT).unwrap();
                None
            }
            left => left.map(|left| left - 1),
        };
    }
}

#[test]
fn a_run_after_one_that_was_stopped_runs_to_its_end() {
    let six_axis = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/six-axis.toml");
    let run = Run::of(six_axis).option(&["--no-seam"]);
    let stopped = run.clone().with(|_| Interrupts(Some(100))).unwrap();
    assert!(stopped.cycles > 0);
    let whole = run.cycles(200).with(|_| Interrupts(None)).unwrap();
    assert_eq!(whole.cycles, 200);
}
