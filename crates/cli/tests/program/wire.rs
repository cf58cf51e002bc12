//! The same commands on a wire: one process simulates, another runs.

use std::process::{Child, Command, Stdio};

use testbed::{Side, Testbed};

use crate::common::{finished, onbeat};

/// `onbeat simulate` on the far side; gone when dropped.
struct Simulated(Child);

impl Simulated {
    fn start(testbed: &Testbed) -> Self {
        let mut simulate = onbeat();
        simulate.args(["simulate", "--iface", Side::Far.interface()]);
        let child = testbed.run_in(Side::Far, simulate).stderr(Stdio::null()).spawn();
        Self(child.expect("onbeat simulate"))
    }
}

impl Drop for Simulated {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn near(testbed: &Testbed, arguments: &[&str]) -> Command {
    let mut command = onbeat();
    command.args(arguments).args(["--iface", Side::Near.interface()]);
    testbed.run_in(Side::Near, command)
}

#[test]
fn six_axes_run_over_a_cable_and_a_bus_that_dies_is_a_failure_without_states() {
    let testbed = match Testbed::new() {
        Ok(testbed) => testbed,
        Err(skip) => return eprintln!("skipped: {skip}"),
    };
    let ran = finished(near(&testbed, &["scan"]));
    assert!(ran.sentence().contains("no SubDevice answers"), "{}", ran.stderr);

    let mut simulated = Simulated::start(&testbed);
    std::thread::sleep(std::time::Duration::from_millis(500));
    let found = finished(near(&testbed, &["scan", "--json"])).json();
    assert_eq!(found.as_array().map(Vec::len), Some(6));
    let end = finished(near(&testbed, &["run", "--cycles", "300", "--json"])).json();
    assert_eq!(end["working_counter_errors"], 0, "{end}");
    assert_eq!(end["axes"][5]["state"], "Operation enabled");

    let killer = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(1500));
        simulated.0.kill().expect("kill");
    });
    let ran = finished(near(&testbed, &["run", "--cycles", "3000"]));
    killer.join().expect("the killer");
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("beats had no whole process data"), "{}", ran.stderr);
    assert!(
        ran.stdout.contains("no answer") && !ran.stdout.contains("Operation enabled"),
        "{}",
        ran.stdout
    );
}
