//! Faults on demand: `onbeat fault` to an `onbeat simulate`, and scripts.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, send, socket_with,
};
use testkit::Side;

use crate::common::{Ran, Running, await_cycles, file, finished, number, onbeat, run, shared};
use crate::wire::{SIX_AXIS, Wire};

/// Cycles that take longer than it takes to Op.
const IN_OP: u64 = 2500;

/// A simulator that faults find by the name of this test.
struct Simulator {
    wire: Wire,
    name: String,
}

impl Simulator {
    fn of(test: &str) -> Option<Self> {
        let name = format!("{test}-{}", std::process::id());
        let wire = Wire::simulating(SIX_AXIS, &["--control", &name])?;
        Some(Self { wire, name })
    }

    fn fault(&self, words: &[&str]) -> Ran {
        let mut command = onbeat();
        command.args(["fault", "--of", &self.name]).args(words);
        finished(command)
    }

    /// Has a fault take place.
    fn take(&self, line: &str) {
        let ran = self.fault(&line.split(' ').collect::<Vec<_>>());
        let told = ran.stdout.trim_end().split_once("s ").map(|(_, fault)| fault);
        assert_eq!((ran.code, told), (Some(0), Some(line)), "{}", ran.stderr);
    }

    /// A run in which these take place once it is in Op.
    fn run_with(&self, faults: &[&str]) -> Ran {
        let mut run = onbeat();
        run.args([
            "run",
            SIX_AXIS,
            "--cycles",
            "5000",
            "--no-ipc",
            "--json",
            "--iface",
            Side::Near.interface(),
        ]);
        let running = Running::start(self.wire.testbed.run_in(Side::Near, run));
        await_cycles(running.id(), IN_OP);
        faults.iter().for_each(|line| self.take(line));
        running.finish()
    }
}

// feature(program): `onbeat fault` makes faults in a running `simulate`: a run at the other end reports them
#[test]
fn faults_sent_to_a_simulator_are_reported_by_the_run() {
    let Some(simulator) = Simulator::of("told") else { return };
    let ran = simulator.run_with(&["drive fault drive-3 0x7500", "power off drive-6"]);
    assert_eq!(ran.code, Some(4), "{}", ran.stderr);
    for told in [
        "onbeat: axis \"axis-3\" ended in Fault: 0x7500: ",
        "SubDevice 5 \"drive-6\" does not answer any more: check its power and the cable between SubDevice 4 \"drive-5\" port 1 \
         and SubDevice 5 \"drive-6\" port 0",
    ] {
        assert!(ran.stderr.contains(told), "{told}: {}", ran.stderr);
    }
    let listed = simulator.fault(&["list"]).stdout;
    assert!(
        listed.contains("\nlasts    power off drive-6\n") && listed.contains("frames lose COUNT"),
        "{listed}"
    );
    simulator.take("clear");
    assert_eq!(simulator.wire.onbeat(&["scan", "--json"]).json().as_array().map(Vec::len), Some(6));
}

// feature(program): `onbeat fault` makes faults in a running `simulate`: a run at the other end reports them
#[test]
fn frames_are_lost_and_delayed_by_a_simulator() {
    let Some(simulator) = Simulator::of("frames") else { return };
    let ran = simulator.run_with(&["seed 7", "frames lose 20", "frames delay 3ms for 50ms"]);
    let end: serde_json::Value = serde_json::from_str(&ran.stdout).expect("the numbers");
    assert!(
        number(&end["frames"], "lost") >= 20 && number(&end["frames"], "late") >= 10,
        "{}",
        end["frames"]
    );
    // And they are not any more.
    let after = simulator.wire.onbeat(&["scan", "--json"]).json();
    assert_eq!(after.as_array().map(Vec::len), Some(6));
}

// feature(program): `onbeat fault` makes faults in a running `simulate`: a run at the other end reports them
#[test]
fn another_identity_in_place_of_a_drive_is_refused_by_a_run() {
    let Some(simulator) = Simulator::of("identity") else { return };
    simulator.take("identity drive-2 vendor=0x1234");
    let ran = simulator.wire.onbeat(&["run", SIX_AXIS, "--cycles", "10", "--no-ipc"]);
    let told = ran.sentence();
    assert!(told.contains("SubDevice 1 \"drive-2\"") && told.contains("1234"), "{told}");
    simulator.take("sii restore drive-2");
    let ran = simulator.wire.onbeat(&["run", SIX_AXIS, "--cycles", "10", "--no-ipc"]);
    assert!(ran.code != Some(1), "{}", ran.stderr);
}

// feature(program): `scan` ends with 3 where a SubDevice has a defect, as `diag` does
#[test]
fn a_scan_that_finds_a_spoilt_sii_shows_all_and_ends_with_3() {
    let Some(simulator) = Simulator::of("spoilt") else { return };
    simulator.take("sii cut drive-2 10");
    for arguments in [&["scan"][..], &["scan", "--json"]] {
        let ran = simulator.wire.onbeat(arguments);
        assert_eq!(ran.code, Some(3), "{}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains("it stays in Init, unconfigured"), "{}", ran.stdout);
        assert!(ran.stderr.is_empty(), "{}", ran.stderr);
    }
    simulator.take("sii restore drive-2");
    assert_eq!(simulator.wire.onbeat(&["scan"]).code, Some(0));
}

// feature(program): `onbeat fault` has faults take place on the simulated bus of a `run --control NAME`
#[test]
fn faults_are_sent_to_the_simulated_bus_of_a_run() {
    let _shared = shared();
    let name = format!("of-a-run-{}", std::process::id());
    let mut run = onbeat();
    run.args(["run", SIX_AXIS, "--cycles", "5000", "--ipc", &name, "--json", "--control", &name]);
    let running = Running::start(run);
    await_cycles(running.id(), IN_OP);
    let ask = |arguments: &[&str]| {
        let mut command = onbeat();
        command.args(arguments);
        let ran = finished(command);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran
    };
    ask(&["fault", "--of", &name, "crc", "drive-2:1", "5"]);
    let status = ask(&["scan", "-v", "--cycle", &name]);
    let sent = ask(&["fault", "--of", &name, "drive", "fault", "drive-3", "0x7500"]);
    let counted = "SubDevice 1 \"drive-2\": 5 invalid frames at port 1";
    assert!(status.stdout.contains(counted), "{}", status.stdout);
    let ran = running.finish();
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    for told in [format!("fault at {}", sent.stdout.trim_end().replacen(' ', ": ", 1)), "0x7500".to_owned()]
    {
        assert!(ran.stderr.contains(&told), "{told}: {}", ran.stderr);
    }
}

// feature(program): a fault that cannot be, and a simulator that is not there, are a sentence and exit code 1
#[test]
fn what_cannot_be_is_refused_in_a_sentence() {
    let nobody = run(&["fault", "--of", "no-such-simulator", "power", "off", "1"]);
    let told = nobody.sentence();
    assert!(
        told.starts_with("onbeat: no simulator called `no-such-simulator` runs: no process answers in /"),
        "{told}"
    );
    assert!(told.contains("start one with `onbeat run ROBOT.toml --control NAME`"), "{told}");
    assert_eq!(run(&["fault"]).code, Some(2));
    // The name may stand behind the fault, too.
    for arguments in [&["clear", "--of", "no-such-simulator"][..], &["clear", "--of=no-such-simulator"]] {
        let ran = run(&[&["fault"], arguments].concat());
        assert!(ran.sentence().contains("no simulator called `no-such-simulator` runs"), "{}", ran.stderr);
    }
    assert!(run(&["fault", "clear", "--of"]).sentence().contains("--of without a name"));
    let twice = run(&["fault", "--of", "one", "clear", "--of", "other"]);
    assert!(twice.sentence().contains("--of twice"), "{}", twice.stderr);
    let Some(simulator) = Simulator::of("refused") else { return };
    for (line, told) in [
        (
            "power of drive-1",
            "fault \"power of drive-1\": column 7: found \"of\", expected off, on or cycle: did you mean",
        ),
        ("cable pull drive-6:1", "expected a port with a cable, which are 0: correct the port"),
        (
            "clock jump drive-9 -1ms",
            "expected a SubDevice: a name, or a position from 0 to 5: near it: \"drive-",
        ),
    ] {
        let ran = simulator.fault(&line.split(' ').collect::<Vec<_>>());
        assert!(ran.sentence().contains(told), "{line}: {}", ran.stderr);
    }
    let second = {
        let mut command = onbeat();
        command.args(["simulate", SIX_AXIS, "--iface", "far", "--control", &simulator.name]);
        finished(simulator.wire.testbed.run_in(Side::Far, command))
    };
    assert!(second.sentence().contains("answers at /") && second.sentence().contains("(--control NAME)"));
}

// feature(program): a run without an optional SubDevice, which joins when it is plugged
#[test]
fn a_run_begins_without_an_optional_drive_which_joins() {
    let text = include_str!("../../../../examples/six-axis.toml");
    let all = "count = 6\ndevice = \"servo\"\n";
    assert!(text.contains(all), "the drives of the example");
    let last = "count = 5\ndevice = \"servo\"\n\n[[bus.sub_device]]\nname = \"drive-6\"\ndevice = \"servo\"\n\
                presence = \"optional\"\n";
    let robot = file("optional-drive.toml", &text.replace(all, last));
    let script = file("late-drive.txt", "0s power off drive-6\n3s power on drive-6\n");
    let [robot, script] = [&robot, &script].map(|it| it.to_str().expect("UTF-8"));
    let ran = run(&["run", robot, "--cycles", "7000", "--no-ipc", "--faults", script]);
    let told = [
        "SubDevice 5 \"drive-6\" is not on the bus; it joins when it comes",
        "SubDevice 5 \"drive-6\" is configured again",
        "SubDevice 5 \"drive-6\" has joined and is in Op, behind the cable between SubDevice 4 \"drive-5\" port 1 and SubDevice 5 \
         \"drive-6\" port 0",
    ];
    let mut rest = &ran.stderr[..];
    for told in told {
        let at = rest.find(told).unwrap_or_else(|| panic!("{told}: {}", ran.stderr));
        rest = &rest[at..];
    }
    // Power that returns moves nothing: its axis needs a start request.
    let waits = "supervision stopped axis \"axis-6\": power, STO or a permission was missing: the axis waits for a start request";
    assert!(ran.code == Some(3) && ran.stderr.contains(waits), "{}", ran.stderr);
}

/// File of the six axes, the last of which need not be there.
fn with_an_optional_drive(name: &str) -> PathBuf {
    let text = include_str!("../../../../examples/six-axis.toml");
    let all = "count = 6\ndevice = \"servo\"\n";
    let last = "count = 5\ndevice = \"servo\"\n\n[[bus.sub_device]]\nname = \"drive-6\"\ndevice = \"servo\"\n\
                presence = \"optional\"\n";
    file(name, &text.replace(all, last))
}

// feature(program): an optional SubDevice that was lost and has joined again is reported
#[test]
fn a_returned_optional_drive_is_reported() {
    let robot = with_an_optional_drive("optional-again.toml");
    let script = file("again.txt", "2s cable pull drive-5:1\n3s cable plug drive-5:1\n");
    let [robot, script] = [&robot, &script].map(|it| it.to_str().expect("UTF-8"));
    let ran = run(&["run", robot, "--cycles", "6000", "--no-ipc", "--faults", script]);
    let told =
        ["no process data of SubDevice 5 \"drive-6\"", "process data again of SubDevice 5 \"drive-6\""];
    let mut rest = &ran.stderr[..];
    for told in told {
        let at = rest.find(told).unwrap_or_else(|| panic!("{told}: {}", ran.stderr));
        rest = &rest[at..];
    }
    assert!(!rest.contains("without process data"), "{rest}");
    // All of the second that it was away counts, also once it is known to be absent.
    let (_, after) = rest.split_once(" after ").expect("the cycles that it was lost for");
    let cycles = after.split(' ').next().and_then(|it| it.parse::<u64>().ok());
    assert!(cycles.is_some_and(|cycles| cycles > 500), "{rest}");
}

// feature(diagnosis): the cable to a SubDevice that joined after the start is reported by its place, with the delay of its clock
#[test]
fn the_cable_to_a_drive_that_joined_late_has_its_place() {
    let robot = with_an_optional_drive("joins-late.toml");
    let script = file("joins-late.txt", "0s power off drive-6\n500ms power on drive-6\n");
    let [robot, script] = [&robot, &script].map(|it| it.to_str().expect("UTF-8"));
    let folder = std::env::temp_dir().join(format!("onbeat-joins-late-{}", std::process::id()));
    let socket = folder.join("robot.sock");
    let socket = socket.to_str().expect("UTF-8");
    let _shared = shared();
    let mut command = onbeat();
    command.args(["run", robot, "--for", "20s", "--ipc", socket, "--faults", script]);
    let running = Running::start(command);
    let started = Instant::now();
    let found = loop {
        let mut diag = onbeat();
        diag.args(["diag", "--json", "--cycle", socket]);
        let ran = finished(diag);
        let found = serde_json::from_str::<serde_json::Value>(&ran.stdout).unwrap_or_default();
        if found["sub_devices"][5]["now"]["state"] == "Op" {
            break found;
        }
        assert!(started.elapsed() < Duration::from_secs(30), "{}{}", ran.stdout, ran.stderr);
        std::thread::sleep(Duration::from_millis(100));
    };
    drop(running);
    let _ = std::fs::remove_dir_all(&folder);
    assert_eq!(found["sub_devices"][5]["upstream"], serde_json::json!({ "position": 4, "port": 1 }));
    // So has the delay of its clock, which was not known at the start.
    let delays = [4, 5].map(|position| found["sub_devices"][position]["delay_ns"].as_u64());
    assert!(delays[0].is_some() && delays[1] > delays[0], "{delays:?}");
    let findings = found["findings"].as_array().expect("findings");
    let lost: Vec<&str> = findings
        .iter()
        .filter(|it| it["fault"] == "lost_links")
        .filter_map(|it| it["sentence"].as_str())
        .collect();
    let between =
        "the link between SubDevice 4 \"drive-5\" port 1 and SubDevice 5 \"drive-6\" port 0 was lost ";
    assert!(matches!(lost[..], [it] if it.starts_with(between)), "{lost:?}");
}

// feature(program): of a group that cannot join, the SubDevice that keeps it out is named, and no other
#[test]
fn only_the_culprit_of_a_group_that_cannot_join_is_named() {
    let text = include_str!("../../../../examples/six-axis.toml");
    let all = "count = 6\ndevice = \"servo\"\n";
    let one = |number: u32| {
        format!(
            "\n[[bus.sub_device]]\nname = \"drive-{number}\"\ndevice = \"servo\"\nalias = {number}\n\
             presence = \"hot_connect\"\ngroup = \"pair\"\n"
        )
    };
    let last = format!("count = 4\ndevice = \"servo\"\n{}{}", one(5), one(6));
    let robot = file("group.toml", &text.replace(all, &last));
    let script = file("group.txt", "0s power off drive-5\n1s sii cut drive-6 150\n1.2s power on drive-5\n");
    let [robot, script] = [&robot, &script].map(|it| it.to_str().expect("UTF-8"));
    let ran = run(&["run", robot, "--cycles", "4000", "--no-ipc", "--json", "--faults", script]);
    assert_eq!(ran.code, Some(4), "{}", ran.stderr);
    let end: serde_json::Value = serde_json::from_str(&ran.stdout).expect("the numbers");
    let of_the_bus: Vec<&str> = end["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .filter(|it| it["code"] == 4)
        .filter_map(|it| it["sentence"].as_str())
        .collect();
    assert!(
        matches!(of_the_bus[..], [it] if it.starts_with("SubDevice 5 \"drive-6\" ended in ")),
        "{of_the_bus:?}"
    );
    assert!(!ran.stderr.contains("no process data of SubDevice 4"), "{}", ran.stderr);
}

// feature(program): a script of faults is checked whole before the first frame, and plays in `simulate` and `run`
#[test]
fn a_script_with_errors_is_refused_whole() {
    let script =
        file("wrong-faults.txt", "1s power off drive-9\n\n0.5s frames loose 1%\n2s clear\n1s clear\n");
    let script = script.to_str().expect("UTF-8");
    // The script is refused before the missing interface is opened.
    let simulate = run(&["simulate", SIX_AXIS, "--iface", "no-such-nic", "--faults", script]);
    let run_ = run(&["run", SIX_AXIS, "--cycles", "10", "--faults", script]);
    for ran in [simulate, run_] {
        let lines: Vec<&str> = ran.stderr.lines().collect();
        let told = [
            ":1:14: found \"drive-9\"",
            ":3:1: the time goes back to 500ms, expected at least 1s, the time of line 1",
            ":3:13: found \"loose\"",
            ":5:1: the time goes back to 1s",
        ];
        assert_eq!((ran.code, lines.len()), (Some(1), told.len()), "{}", ran.stderr);
        for (line, told) in lines.iter().zip(told) {
            let (place, _) = line.split_once(told).unwrap_or_else(|| panic!("{told}: {line}"));
            assert!(place.starts_with("onbeat: ") && place.ends_with("wrong-faults.txt"), "{line}");
        }
    }
    let missing = run(&["run", SIX_AXIS, "--cycles", "10", "--faults", "/no/such/script"]);
    assert!(missing.sentence().contains("/no/such/script: cannot be read"), "{}", missing.stderr);
    assert_eq!(run(&["run", "--faults", script, "--iface", "no-such-nic"]).code, Some(2));
}

// feature(program): a script of faults is checked whole before the first frame, and plays in `simulate` and `run`
#[test]
fn a_script_plays_in_a_run() {
    let script = file(
        "faults.txt",
        "# A drive, and then a cable.\n1500ms drive fault drive-2 0x8611\n2s cable pull drive-5:1\n",
    );
    let script = script.to_str().expect("UTF-8");
    let ran = run(&["run", SIX_AXIS, "--for", "3s", "--no-ipc", "--json", "--faults", script]);
    assert_eq!(ran.code, Some(4), "{}", ran.stderr);
    let place = |words: &str| ran.stderr.find(words).unwrap_or_else(|| panic!("{words}: {}", ran.stderr));
    place("fault at 1.500s: drive fault drive-2 0x8611\n");
    place("fault at 2.000s: cable pull drive-5:1\n");
    let fault = place("SubDevice 1 \"drive-2\" is in fault: 0x8611: ");
    assert!(fault < place("SubDevice 5 \"drive-6\" does not answer any more"), "{}", ran.stderr);
    let end: serde_json::Value = serde_json::from_str(&ran.stdout).expect("the numbers");
    assert_eq!(end["conditions"]["link"], "simulated, with faults");
}

// feature(program): frames lost on purpose are not called late
#[test]
fn frames_that_are_lost_on_purpose_are_not_this_machines() {
    let ran = run(&["run", SIX_AXIS, "--cycles", "500", "--no-ipc", "--loss", "5%"]);
    assert!(
        ran.stdout.contains("simulated, with faults") && ran.stdout.contains("lost frames"),
        "{}",
        ran.stdout
    );
    let late = ["this computer stalls"];
    assert!(
        !late.iter().any(|it| ran.stdout.contains(it) || ran.stderr.contains(it)),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
}

// feature(program): a script of faults is checked whole before the first frame, and plays in `simulate` and `run`
#[test]
fn a_script_plays_in_a_simulator() {
    let script = file("cut-faults.txt", "0s cable pull drive-4:1\n0s identity drive-1 serial=0xABCDEF\n");
    let Some(wire) = Wire::simulating(SIX_AXIS, &["--faults", script.to_str().expect("UTF-8")]) else {
        return;
    };
    let found = wire.onbeat(&["scan", "--json"]).json();
    let found = found.as_array().expect("SubDevices");
    assert_eq!((found.len(), &found[0]["serial"]), (4, &0xAB_CDEF.into()), "{:?}", found[0]);
}

// feature(program): `simulate` continues to answer frames, whatever its socket receives
#[test]
fn whatever_comes_to_its_socket_frames_are_answered() {
    let Some(simulator) = Simulator::of("hostile") else { return };
    let path = format!("/run/onbeat/{}.faults", simulator.name);
    let connected = || -> OwnedFd {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).expect("a socket");
        let address = SocketAddrUnix::new(Path::new(&path)).expect("a path");
        let started = Instant::now();
        loop {
            match connect(&socket, &address) {
                // More requests wait than the socket's queue keeps.
                Err(Errno::AGAIN) if started.elapsed() < Duration::from_secs(60) => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                connected => break connected.expect("it listens"),
            }
        }
        socket
    };
    let never_closed: Vec<OwnedFd> = (0..40).map(|_| connected()).collect();
    let garbage: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let others = [b"power off".as_slice(), &[0], &[0xFF; 4097], b"list\nlist", "µ".as_bytes(), &garbage];
    for _ in 0..20 {
        for bytes in others {
            // A connection that was closed on them takes no more.
            let _ = send(connected(), bytes, SendFlags::NOSIGNAL);
        }
    }
    let flood = connected();
    let running = {
        let mut run = onbeat();
        run.args([
            "run",
            SIX_AXIS,
            "--cycles",
            "2000",
            "--no-ipc",
            "--json",
            "--iface",
            Side::Near.interface(),
        ]);
        Running::start(simulator.wire.testbed.run_in(Side::Near, run))
    };
    for _ in 0..200 {
        let _ = (0..100).take_while(|_| send(&flood, b"list", SendFlags::NOSIGNAL).is_ok()).count();
        std::thread::sleep(Duration::from_millis(5));
    }
    let end = running.finish().json();
    assert_eq!(number(&end, "cycles"), 2000, "{end}");
    simulator.take("power cycle drive-1");
    drop(never_closed);
}
