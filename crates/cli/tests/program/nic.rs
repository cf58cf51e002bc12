//! `onbeat run --prepare-nic`: an interface is prepared for the time of a run.
//!
//! An interface that is not there is named, with what to do.

use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use testkit::{Side, Testbed, Turn};

use crate::common::{self, Ran, finished, onbeat, run};
use crate::wire::SIX_AXIS;

/// Time for a process to show what it does, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Six simulated axes at the far end, and the settings of the near one.
struct Card {
    testbed: Testbed,
    simulator: Child,
}

impl Card {
    /// With receive offload and deferral on; `None` if they are not supported.
    fn new() -> Option<Self> {
        let testbed = Testbed::new().map_err(|skip| testkit::skip!("{skip}")).ok()?;
        let mut simulate = onbeat();
        simulate.args(["simulate", SIX_AXIS, "--iface", "far"]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut simulate = testbed.run_in(Side::Far, simulate);
        let simulator =
            simulate.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the simulator");
        let card = Self { testbed, simulator };
        let spoilt =
            card.shell("ethtool -K near gro on && echo 20000 >/sys/class/net/near/gro_flush_timeout");
        if !spoilt.status.success() {
            testkit::skip!("needs ethtool (Debian: ethtool) and gro_flush_timeout");
            return None;
        }
        Some(card)
    }

    fn shell(&self, script: &str) -> std::process::Output {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]);
        self.testbed.run_in(Side::Near, shell).output().expect("a shell")
    }

    /// As other programs see them.
    fn settings(&self) -> String {
        let said = self
            .shell("ethtool -k near | grep ^generic-receive; cat /sys/class/net/near/gro_flush_timeout");
        String::from_utf8_lossy(&said.stdout).trim().replace('\n', ", ")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = onbeat();
        command.args(arguments);
        self.testbed.run_in(Side::Near, command)
    }

    fn onbeat(&self, arguments: &[&str]) -> Ran {
        finished(self.command(arguments))
    }

    fn await_answer(&self) {
        let begin = Instant::now();
        while self.onbeat(&["scan", "--iface", "near"]).code != Some(0) {
            assert!(begin.elapsed() < PATIENCE, "nobody answers at the far end");
        }
    }
}

impl Drop for Card {
    fn drop(&mut self) {
        let _ = self.simulator.kill();
        let _ = self.simulator.wait();
    }
}

const SPOILT: &str = "generic-receive-offload: on, 20000";

const PREPARED: &str = "generic-receive-offload: off, 0";

// feature(hold): `--prepare-nic`: the interface is prepared for the cycle; listed in the conditions; restored at the end and after a kill
#[test]
fn an_interface_is_prepared_and_restored_after_end_and_kill() {
    let (_turn, _alone) = (Turn::take().expect("a turn"), common::alone());
    let Some(card) = Card::new() else { return };
    card.await_answer();
    assert_eq!(card.settings(), SPOILT);

    let run = ["run", SIX_AXIS, "--iface", "near", "--no-ipc", "--profile", "none", "--json"];
    let ran = card.onbeat(&[&run[..], &["--cycles", "200", "--prepare-nic"]].concat());
    let end: Value =
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.stderr));
    let told = end["conditions"]["nic"].as_str().unwrap_or_else(|| panic!("{}", end["conditions"]));
    assert!(told.contains("near: gro 0") && told.contains("near/gro_flush_timeout = 0"), "{told}");
    assert!(ran.stderr.contains(&format!("interface near: {told}")), "{}", ran.stderr);
    assert_eq!(card.settings(), SPOILT);

    // Without being asked it changes nothing.
    let ran = card.onbeat(&[&run[..], &["--cycles", "20"]].concat());
    let end: Value =
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.stderr));
    assert_eq!(end["conditions"]["nic"], Value::Null);

    let mut killed = card.command(&[&run[..], &["--for", "60s", "--prepare-nic"]].concat());
    let mut killed = killed.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program");
    let begin = Instant::now();
    while card.settings() != PREPARED && begin.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(20));
    }
    let during = card.settings();
    killed.kill().expect("SIGKILL");
    killed.wait().expect("its end");
    let left = card.settings();
    let restored = card.onbeat(&["doctor", "--restore"]);
    assert_eq!((during.as_str(), left.as_str()), (PREPARED, PREPARED));
    assert_eq!(restored.code, Some(0), "{}", restored.stderr);
    assert!(
        restored.stdout.contains("preparation of interface near, left behind by process"),
        "{}",
        restored.stdout
    );
    assert_eq!(card.settings(), SPOILT);
}

// feature(doctor): deferral of a card's interrupts is checked by the link: off, except for a polled one
#[test]
fn deferral_is_checked_for_the_link() {
    let (_turn, _alone) = (Turn::take().expect("a turn"), common::alone());
    let Some(card) = Card::new() else { return };
    let look = |arguments: &[&str]| {
        let ran = card.onbeat(&[&["doctor", "--json", "--iface", "near"], arguments].concat());
        let object: Value =
            serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.stderr));
        let checks = object["checks"].as_array().expect("checks").clone();
        let check = checks.into_iter().find(|it| it["name"] == "nic-deferral").expect("the check");
        (
            check["severity"].as_str().expect("a severity").to_owned(),
            check["found"].as_str().expect("a state").to_owned(),
        )
    };
    assert_eq!(look(&[]), ("warning".to_owned(), "gro_flush_timeout".to_owned()));
    let (severity, found) = look(&["--link", "xdp-polled"]);
    assert_eq!(
        (severity.as_str(), found.as_str()),
        ("warning", "gro_flush_timeout = 20000 ns, napi_defer_hard_irqs = 0")
    );
    let said = card.shell("echo 2 >/sys/class/net/near/napi_defer_hard_irqs");
    assert!(said.status.success(), "{said:?}");
    assert_eq!(look(&["--link", "xdp-polled"]).0, "ok");
    assert_eq!(
        look(&["--link", "packet"]),
        ("warning".to_owned(), "gro_flush_timeout, napi_defer_hard_irqs".to_owned())
    );
}

// feature(program): missing interfaces
#[test]
fn every_command_names_the_interface() {
    for arguments in [
        &["run", "--iface", "no-such-nic", "--cycles", "1"][..],
        &["scan", "--iface", "no-such-nic"],
        &["new", "--iface", "no-such-nic"],
        &["simulate", "examples/six-axis.toml", "--iface", "no-such-nic"],
        &["sdo", "read", "0", "0x1018:1", "--iface", "no-such-nic"],
    ] {
        let ran = run(arguments);
        assert!(ran.sentence().contains("no-such-nic"), "{arguments:?}: {}", ran.stderr);
        let nameless: Vec<&str> =
            arguments.iter().map(|it| if *it == "no-such-nic" { "" } else { it }).collect();
        let ran = run(&nameless);
        assert!(
            ran.sentence().contains("the name of the interface is empty, expected one of: "),
            "{}",
            ran.stderr
        );
    }
}
