//! `onbeat simulate`: what it says.

use std::path::Path;
use std::process::{self, Command};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use testkit::{Side, Testbed};

use crate::common::{Running, finished, onbeat, run, six_axis_with};

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

// feature(program): how a thread is really scheduled, read back; a policy from outside is told
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
