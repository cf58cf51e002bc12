//! A ring of SubDevices at two interfaces: broken, healed, and reported; and setups that are no
//! ring.

use std::process::{Command, Stdio};

use testkit::{Side, Testbed};

use crate::common::{
    Ran, Running, Shared, await_cycles, file, finished, number, onbeat, run, shared, six_axis_with,
};
use crate::wire::SIX_AXIS;

/// The six axes, the last OUT back to the MainDevice.
fn ring(name: &str) -> String {
    let robot = six_axis_with(name, "[bus]\n", "[bus]\nring = true\n");
    robot.to_str().expect("UTF-8").to_owned()
}

const OPEN: &str = "the ring is open between SubDevice 2 \"drive-3\" port 1 and SubDevice 3 \
    \"drive-4\" port 0; frames now travel from both ends";

/// A break and its end are reported, and none is missed for longer than the frames that were under
/// way.
fn is_healed(ran: &Ran) {
    assert_eq!(ran.code, Some(0), "{}", worst_first(ran));
    let told = |words: &str| ran.stderr.find(words).unwrap_or_else(|| panic!("{words}: {}", ran.stderr));
    assert!(told(OPEN) < told("the ring is closed again after "), "{}", ran.stderr);
    for lost in LOST {
        assert!(!ran.stderr.contains(lost), "{lost}: {}", worst_first(ran));
    }
}

/// Words of a SubDevice or an axis that was missed.
const LOST: [&str; 4] = ["no process data", "not answer", "is held", "are held"];

/// Text of a failure: the summary of a long test run keeps its first line.
fn worst_first(ran: &Ran) -> String {
    let is_bad = |line: &&str| LOST.iter().any(|it| line.contains(it));
    let bad: Vec<&str> = ran.stderr.lines().filter(is_bad).take(4).collect();
    let last = ran.stderr.trim_end().lines().next_back().unwrap_or_default();
    format!("{} | {last}\n{}{}", bad.join(" | "), ran.stdout, ran.stderr)
}

/// A run during which the machine did not stand still for so long that its axes were stopped, as
/// they must be.
fn undisturbed(mut run: impl FnMut() -> Ran) -> Ran {
    let mut ran = run();
    for _ in 0..4 {
        if !["(outage)", "this computer stalled"].iter().any(|it| ran.stderr.contains(it)) {
            break;
        }
        eprintln!("the machine stood still: once more");
        ran = run();
    }
    ran
}

/// The same at a ring of two cables: a new one each time, as a disturbed run leaves drives in
/// fault. `None` where there are no cables.
fn on_a_ring(name: &str, play: impl Fn(&TwoCables) -> Ran) -> Option<(TwoCables, Ran)> {
    let mut new = Some(TwoCables::simulating(name)?);
    let mut used = None;
    let ran = undisturbed(|| {
        // The one of before ends first: both have this name.
        drop(used.take());
        let ring = new.take().or_else(|| TwoCables::simulating(name)).expect("cables, as before");
        let ran = play(&ring);
        used = Some(ring);
        ran
    });
    Some((used?, ran))
}

// feature(redundancy): a simulated ring (`ring = true`) broken and healed by a script while it runs
#[test]
fn a_simulated_ring_breaks_and_heals_in_a_run() {
    let script = file("ring-faults.txt", "1500ms cable pull drive-3:1\n2300ms cable plug drive-3:1\n");
    let robot = ring("ring.toml");
    let script = script.to_str().expect("UTF-8");
    let arguments = ["run", &robot, "--for", "3s", "--no-ipc", "--json", "--faults", script];
    is_healed(&undisturbed(|| run(&arguments)));
}

// feature(redundancy): where a running ring is open: a finding of `diag`, and events
#[test]
fn a_break_is_a_finding_of_diag_and_an_event() {
    let _shared = shared();
    let name = format!("diag-of-a-ring-{}", std::process::id());
    let robot = ring("diag-ring.toml");
    let mut command = onbeat();
    command.args(["run", &robot, "--cycles", "8000", "--ipc", &name, "--json", "--control", &name]);
    let running = Running::start(command);
    await_cycles(running.id(), 2500);
    let ask = |arguments: &[&str], code: i32| {
        let mut command = onbeat();
        command.args(arguments);
        let ran = finished(command);
        assert_eq!(ran.code, Some(code), "{}{}", ran.stdout, ran.stderr);
        ran.stdout
    };
    let diag = ["diag", "--cycle", &name];
    assert!(ask(&diag, 0).contains("\nthe ring is closed since cycle "));
    ask(&["fault", "--of", &name, "cable", "pull", "drive-6:1"], 0);
    let found = ask(&diag, 3);
    let place = "the ring is open between SubDevice 5 \"drive-6\" port 1 and the second interface";
    assert!(found.contains(&format!("\n! {place} since cycle ")), "{found}");
    let json: serde_json::Value =
        serde_json::from_str(&ask(&[&diag[..], &["--json"]].concat(), 3)).expect("JSON");
    let ends = serde_json::json!([{ "position": 5, "port": 1 }, { "position": null, "port": 1 }]);
    assert_eq!(json["ring"]["open"], ends);
    let finding = |it: &serde_json::Value| it["fault"] == "ring_open" && it["ends"] == ends;
    assert!(json["findings"].as_array().expect("findings").iter().any(finding), "{json}");
    ask(&["fault", "--of", &name, "cable", "plug", "drive-6:1"], 0);
    // Events reach readers some 20 ms after their cycle.
    let is_closed = || {
        let events = ask(&["events", "--cycle", &name], 0);
        assert!(events.contains(place), "{events}");
        events.contains("the ring is closed again after ")
    };
    assert!((0..20).any(|_| is_closed()), "{}", ask(&["events", "--cycle", &name], 0));
    // The run prints the same as attached clients read: time, cycle and sentence.
    let events = ask(&["events", "--cycle", &name], 0);
    let said = running.finish().stderr;
    for line in events.lines().filter(|line| line.contains(": the ring is ")) {
        let (_, sentence) = line.split_once(" cycle ").expect("a moment");
        assert!(said.contains(&format!(" cycle {sentence}\n")), "{line}: {said}");
    }
}

/// `onbeat simulate` at the far end of two cables, as a ring that faults find by its name.
struct TwoCables {
    testbed: Testbed,
    name: String,
    _simulator: Running,
    _shared: Shared,
}

impl TwoCables {
    fn simulating(test: &str) -> Option<Self> {
        let shared = shared();
        let made = Testbed::new().and_then(|testbed| testbed.add_cable().map(|()| testbed));
        let testbed = match made {
            Ok(testbed) => testbed,
            Err(skip) => {
                testkit::skip!("{skip}");
                return None;
            }
        };
        let name = format!("{test}-{}", std::process::id());
        let mut command = onbeat();
        let (first, second) = (Side::Far.interface(), Side::Far.second_interface());
        command.args([
            "simulate",
            SIX_AXIS,
            "--control",
            &name,
            "--iface",
            first,
            "--second-iface",
            second,
        ]);
        let simulator = Running::start(testbed.run_in(Side::Far, command));
        let it = Self { testbed, name, _simulator: simulator, _shared: shared };
        // It needs a moment to open its interfaces.
        let answers = |_: &i32| it.finished(&["scan", "--json"], &BOTH).code == Some(0);
        assert!((0..20).any(|number| answers(&number)), "nobody answers");
        Some(it)
    }

    fn command(&self, arguments: &[&str], ends: &[&str]) -> Command {
        let mut command = onbeat();
        command.args(arguments).args(ends);
        self.testbed.run_in(Side::Near, command)
    }

    fn finished(&self, arguments: &[&str], ends: &[&str]) -> Ran {
        finished(self.command(arguments, ends))
    }

    fn fault(&self, words: &str) {
        let mut command = onbeat();
        command.args(["fault", "--of", &self.name]).args(words.split(' '));
        assert_eq!(finished(command).code, Some(0), "{words}");
    }
}

/// A stall of this computer for 9 ms, as shared machines have several a second, stops no axis at
/// this period.
const PERIOD: &str = "4ms";

const BOTH: [&str; 4] =
    ["--iface", Side::Near.interface(), "--second-iface", Side::Near.second_interface()];

// feature(redundancy): `run` and `simulate` on the two ends of a ring, broken and healed; what is no ring in a sentence
#[test]
fn a_ring_at_two_interfaces_breaks_and_heals_in_a_run() {
    let arguments = ["run", SIX_AXIS, "--period", PERIOD, "--cycles", "1500", "--no-ipc", "--json"];
    let played = on_a_ring("ring", |ring| {
        let running = Running::start(ring.command(&arguments, &BOTH));
        await_cycles(running.id(), 625);
        ring.fault("cable pull drive-3:1");
        await_cycles(running.id(), 875);
        ring.fault("cable plug drive-3:1");
        running.finish()
    });
    let Some((ring, ran)) = played else { return };
    is_healed(&ran);
    let end = ran.json();
    assert_eq!(number(&end, "cycles"), 1500);

    // What is no ring.
    let reversed = ["--iface", Side::Near.second_interface(), "--second-iface", Side::Near.interface()];
    let said = ring.finished(&["scan"], &reversed);
    assert!(said.sentence().contains("the ring begins at near and ends at near-2"), "{}", said.stderr);
    let twice = ["--iface", Side::Near.interface(), "--second-iface", Side::Near.interface()];
    let said = ring.finished(&["scan"], &twice);
    assert!(said.sentence().contains("named as both ends of the ring"), "{}", said.stderr);
    // A closed ring at one end alone: frames leave at the other.
    let said = ring.finished(&["scan"], &BOTH[..2]);
    assert!(said.sentence().contains("name its second interface, too (--second-iface)"), "{}", said.stderr);
    ring.fault("cable pull drive-2:1");
    // A ring that is open at the start comes up from both ends; the run reports the place.
    let said = ring.finished(&["run", SIX_AXIS, "--cycles", "10"], &BOTH);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let open = "the ring is open between SubDevice 1 \"drive-2\" port 1 and SubDevice 2 \"drive-3\" port 0";
    assert!(said.stderr.contains(open), "{}", said.stderr);
    ring.fault("cable plug drive-2:1");
    let last = "the ring is open between SubDevice 5 \"drive-6\" port 1 and the second interface";
    ring.fault("cable pull drive-6:1");
    let said = ring.finished(&["run", SIX_AXIS, "--cycles", "10"], &BOTH);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(said.stderr.contains(last), "{}", said.stderr);
    ring.fault("cable plug drive-6:1");
    // The far end of the second interface is down: that one has no carrier.
    let far = |state: &str| {
        let mut command = Command::new("ip");
        let interface = Side::Far.second_interface();
        command.args(["-n", &ring.testbed.namespace(Side::Far), "link", "set", interface, state]);
        assert!(command.status().expect("ip").success(), "{state}");
    };
    far("down");
    let said = ring.finished(&["run", SIX_AXIS, "--cycles", "10"], &BOTH);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(said.stderr.contains(last), "{}", said.stderr);
    far("up");
    let whole =
        |_| !ring.finished(&["run", SIX_AXIS, "--cycles", "10"], &BOTH).stderr.contains("the ring is open");
    assert!((0..20).any(whole), "the second interface has its carrier again");
    ring.fault("cable pull drive-1:0");
    let said = ring.finished(&["run", SIX_AXIS, "--cycles", "10"], &BOTH);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let first = "the ring is open between the first interface and SubDevice 0 \"drive-1\" port 0";
    assert!(said.stderr.contains(first), "{}", said.stderr);
}

/// An interface goes down and up during a run, the second and then the first: the run names the end
/// at which the ring is open, and the simulator closes the port there as its own interface has lost
/// its carrier.
// feature(redundancy): `run` and `simulate` on the two ends of a ring, broken and healed; what is no ring in a sentence
#[test]
fn a_ring_continues_without_either_of_its_interfaces() {
    let played = on_a_ring("ends", |ring| {
        let set = |interface: &str, state: &str| {
            let mut command = Command::new("ip");
            command.args(["-n", &ring.testbed.namespace(Side::Near), "link", "set", interface, state]);
            assert!(command.status().expect("ip").success(), "{interface} {state}");
        };
        let arguments = ["run", SIX_AXIS, "--period", PERIOD, "--cycles", "2000", "--no-ipc", "--json"];
        let running = Running::start(ring.command(&arguments, &BOTH));
        let cables = [Side::Near.second_interface(), Side::Near.interface()];
        for (interface, cycle) in cables.into_iter().zip([625, 1250]) {
            await_cycles(running.id(), cycle);
            set(interface, "down");
            await_cycles(running.id(), cycle + 250);
            set(interface, "up");
        }
        running.finish()
    });
    let Some((_, ran)) = played else { return };
    assert_eq!(ran.code, Some(0), "{}", worst_first(&ran));
    for told in [
        "the ring is open between SubDevice 5 \"drive-6\" port 1 and the second interface; frames \
         now travel from both ends",
        "the ring is open between the first interface and SubDevice 0 \"drive-1\" port 0; frames \
         now travel from both ends",
    ] {
        assert!(ran.stderr.contains(told), "{told}: {}", ran.stderr);
    }
    assert_eq!(ran.stderr.matches("the ring is closed again after ").count(), 2, "{}", ran.stderr);
}

#[test]
fn a_separate_bus_at_the_second_interface_is_no_ring() {
    let _shared = shared();
    let made = Testbed::new().and_then(|testbed| testbed.add_cable().map(|()| testbed));
    let testbed = match made {
        Ok(testbed) => testbed,
        Err(skip) => return testkit::skip!("{skip}"),
    };
    let simulators = [Side::Far.interface(), Side::Far.second_interface()].map(|interface| {
        let mut command = onbeat();
        command.args(["simulate", SIX_AXIS, "--iface", interface]).stdin(Stdio::null());
        Running::start(testbed.run_in(Side::Far, command))
    });
    let mut said = String::new();
    for _ in 0..20 {
        let mut command = onbeat();
        command.arg("scan").args(BOTH);
        said = finished(testbed.run_in(Side::Near, command)).stderr;
        if said.contains("each has a separate bus, of 6 and 6 SubDevices") {
            return drop(simulators);
        }
    }
    panic!("{said}");
}

#[test]
fn a_ring_robot_needs_both_ends() {
    let robot = ring("ring-of-one.toml");
    let said = run(&["run", &robot, "--iface", "no-such-nic", "--cycles", "10"]);
    assert!(
        said.sentence().contains("expected its second end, too: name it with --second-iface"),
        "{}",
        said.stderr
    );
}
