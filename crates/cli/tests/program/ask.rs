//! The bus of a running cycle, asked by other programs.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::process::Command;
use std::time::{Duration, Instant};

use onbeat::ipc::bus::{Bytes, Outcome, Service};
use onbeat::ipc::client::Client;
use onbeat::ipc::state::State;
use onbeat::ipc::words;

use crate::common::{Ran, Running, await_cycles, finished, onbeat, shared, until};

/// A run with its interface in a separate folder.
struct Robot {
    running: Running,
    socket: String,
}

impl Robot {
    fn start(test: &str, arguments: &[&str]) -> Self {
        let folder = std::env::temp_dir().join(format!("onbeat-ask-{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let socket = folder.join("robot.sock").to_str().unwrap().to_owned();
        let mut command = onbeat();
        command.args(["run", "--json", "--ipc", &socket]).args(arguments);
        let running = Running::start(command);
        await_cycles(running.id(), 1);
        let robot = Self { running, socket };
        let started = Instant::now();
        // In Op, with its axes enabled.
        while !robot
            .attach()
            .state()
            .read()
            .is_ok_and(|it| it.axes.iter().all(|axis| axis.drive_state == 5))
        {
            assert!(started.elapsed() < Duration::from_secs(60), "it is not enabled");
            std::thread::sleep(Duration::from_millis(5));
        }
        robot
    }

    fn attach(&self) -> Client {
        Client::open(self.socket.as_ref()).unwrap()
    }

    /// The program at the bus of this run.
    fn ask(&self, arguments: &[&str]) -> Ran {
        finished(self.command(arguments))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = onbeat();
        command.args(arguments).args(["--cycle", &self.socket]);
        command
    }

    fn interrupt(self) -> serde_json::Value {
        let number = self.running.id().to_string();
        assert!(Command::new("kill").args(["-INT", &number]).status().unwrap().success());
        self.running.finish().json()
    }
}

/// The one line on standard error of a program that went on to its work.
fn said(ran: &Ran) -> &str {
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let line = ran.stderr.trim_end();
    assert!(line.contains("using the running cycle") && !line.contains('\n'), "{line}");
    line
}

/// The sentence of a refused program, after the line that names the asked cycle.
fn refused(ran: &Ran) -> &str {
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    let mut lines = ran.stderr.lines();
    assert!(lines.next().is_some_and(|line| line.contains("using the running cycle")), "{}", ran.stderr);
    let sentence = lines.next().unwrap();
    assert_eq!(lines.next(), None, "{}", ran.stderr);
    sentence
}

// feature(running-bus): objects of a running robot are read, written and listed, with abort codes
#[test]
fn objects_of_a_running_robot_are_read_written_and_listed() {
    let _shared = shared();
    let robot = Robot::start("objects", &[]);
    let ran = robot.ask(&["sdo", "read", "drive-1", "0x1018:1"]);
    assert!(said(&ran).contains("\"robot\""), "{}", ran.stderr);
    assert_eq!(ran.stdout.trim(), "4294904577 0xffff0b01");
    let ran = robot.ask(&["sdo", "read", "3", "0x1018:2", "--json"]);
    let read: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&read["type"], &read["bytes"]), (&"uint32".into(), &"02040000".into()), "{read}");
    assert_eq!((&read["value"], &read["text"]), (&1026.into(), &"1026 0x00000402".into()), "{read}");
    let write = ["sdo", "write", "drive-2", "0x6065", "123456"];
    // It bounds an axis that has power.
    for bound in [&write[..], &["sdo", "write", "drive-2", "0x6072", "0"]] {
        let ran = robot.ask(bound);
        let sentence = refused(&ran);
        assert!(sentence.contains("has power") && sentence.contains("--force"), "{sentence}");
    }
    let ran = robot.ask(&[&write[..], &["--force"]].concat());
    said(&ran);
    assert_eq!(robot.ask(&["sdo", "read", "drive-2", "0x6065"]).stdout.trim(), "123456 0x0001e240");
    let ran = robot.ask(&["sdo", "list", "drive-1"]);
    said(&ran);
    for expected in ["0x1018", "0x6040", "0x607a", "uint16", "int32"] {
        assert!(ran.stdout.contains(expected), "{expected}: {}", ran.stdout);
    }
    let ran = robot.ask(&["sdo", "read", "drive-2", "0x5FFF"]);
    for part in ["drive-2", "0x5fff:00", "0x06020000", "does not exist"] {
        assert!(refused(&ran).contains(part), "{}", ran.stderr);
    }
    let ran = robot.ask(&["sdo", "write", "drive-1", "0x1018:1", "9"]);
    assert!(refused(&ran).contains("0x06010002"), "{}", ran.stderr);
    let ran = robot.ask(&["sdo", "read", "drive-9", "0x1018:1"]);
    assert!(refused(&ran).contains("drive-1"), "{}", ran.stderr);
    let end = robot.interrupt();
    assert_eq!(end["working_counter_errors"], 0, "{end}");
}

// feature(running-bus): what the cycle relies on is refused; without power by force only, with power not at all
#[test]
fn what_the_cycle_relies_on_is_not_written_behind_its_back() {
    let _shared = shared();
    let robot = Robot::start("guarded", &[]);
    for (object, value, part) in [
        ("0x6040", "0", "running axis"),
        ("0x6060", "9", "running axis"),
        ("0x607A", "1000000", "running axis"),
        ("0x60FF", "1", "running axis"),
        ("0x1C12:0", "0", "mapping"),
        ("0x1600:0", "0", "mapping"),
    ] {
        let write = ["sdo", "write", "drive-1", object, value];
        let ran = robot.ask(&write);
        let sentence = refused(&ran);
        assert!(sentence.contains(part) && sentence.contains("--force"), "{object}: {sentence}");
        // Its axis is enabled: what moves it is not written at all.
        let ran = robot.ask(&[&write[..], &["--force"]].concat());
        assert!(refused(&ran).contains("has power"), "{object}: {}", ran.stderr);
    }
    let state = robot.attach().state().read().unwrap();
    assert!(state.axes.iter().all(|axis| axis.drive_state == 5), "{state:?}");
    robot.interrupt();
}

// feature(running-bus): `scan` of a running robot: states, working counters, clock differences, error counters
#[test]
fn scan_of_a_running_robot_shows_states_and_keeps_op() {
    let _shared = shared();
    let robot = Robot::start("scan", &[]);
    let ran = robot.ask(&["scan"]);
    said(&ran);
    assert!(ran.stdout.contains("drive-6") && ran.stdout.contains(" Op "), "{}", ran.stdout);
    assert!(ran.stdout.contains("working counters 18/18"), "{}", ran.stdout);
    let found = robot.ask(&["scan", "--json"]).json();
    for drive in found.as_array().unwrap() {
        assert_eq!((&drive["state"], &drive["now"]["state"]), (&"Op".into(), &"Op".into()), "{drive}");
        assert_eq!(
            (&drive["now"]["al_status_code"], &drive["now"]["exchanges"]),
            (&0.into(), &true.into())
        );
        assert_eq!(drive["now"]["errors"]["ports"].as_array().map(Vec::len), Some(4), "{drive}");
        assert!(drive["now"]["clock_difference_ns"].is_i64(), "{drive}");
    }
    assert_eq!(found.as_array().unwrap().len(), 6);
    let cleared = robot.ask(&["diag", "clear"]);
    said(&cleared);
    assert_eq!(cleared.stdout.trim(), "cleared the error counters of 6 SubDevices");
    let ran = robot.ask(&["diag"]);
    said(&ran);
    assert!(
        ran.stdout.contains("working counters 18/18") && ran.stdout.contains("nothing is wrong"),
        "{}",
        ran.stdout
    );
    let state = robot.attach().state().read().unwrap();
    assert!(state.axes.iter().all(|axis| axis.drive_state == 5), "{state:?}");
    robot.interrupt();
}

// feature(running-bus): `scan` and `sdo` of a running cycle refuse what needs a bus of their own
#[test]
fn options_of_an_exclusive_bus_are_refused_on_a_running_cycle() {
    for own in [
        &["--capture", "x.pcapng"][..],
        &["--loss", "1%"],
        &["--late", "1%"],
        &["--duplicate", "1%"],
        &["--reorder", "1%"],
        &["--corrupt", "1%"],
        &["--iface", "lo"],
        &["--iface", "lo", "--take-over"],
        &["--segment", "examples/six-axis.toml"],
    ] {
        for command in [&["scan"][..], &["diag"], &["sdo", "list", "0"]] {
            let mut asked = onbeat();
            asked.args(command).args(["--cycle", "nobody"]).args(own);
            let ran = finished(asked);
            let conflict = ran.stderr.contains("cannot be used with");
            assert!(ran.code == Some(2) && conflict, "{own:?}: {:?} {}", ran.code, ran.stderr);
        }
    }
    let robot = "examples/six-axis.toml";
    for command in [&["scan", robot][..], &["diag", robot], &["sdo", "list", "0", "--robot", robot]] {
        let mut asked = onbeat();
        asked.args(command).args(["--cycle", "nobody"]);
        assert_eq!(finished(asked).code, Some(2), "{command:?}");
    }
}

// feature(running-bus): a SubDevice without a mailbox
#[test]
fn a_sub_device_without_a_mailbox_is_reported() {
    let _shared = shared();
    let robot = Robot::start("terminals", &["examples/io-station.toml"]);
    let found = robot.ask(&["scan", "--json", "-v"]).json();
    let names: Vec<_> = found.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    let without = names.iter().map(|name| robot.ask(&["sdo", "read", name, "0x1018:1"]));
    let sentences: Vec<_> = without.filter(|ran| ran.code == Some(1)).collect();
    assert!(!sentences.is_empty(), "all of {names:?} have mailboxes");
    assert!(sentences.iter().all(|ran| refused(ran).contains("no CoE mailbox")), "{}", sentences[0].stderr);
    robot.interrupt();
}

// feature(running-bus): several clients at once, and killed ones
#[test]
fn many_clients_and_killed_ones_do_not_disturb_the_cycle() {
    let _shared = shared();
    let robot = Robot::start("many", &["--period", "4ms"]);
    let upload =
        |position| Service::Upload { position, index: 0x1018, sub_index: 2, complete_access: false };
    let attached = robot.attach();
    let reads = std::thread::scope(|scope| {
        let client = |number: u16| {
            let mut client = attached.bus().unwrap();
            move || {
                (0..20)
                    .filter(|_| {
                        let read = client.call(upload(number % 6)).unwrap();
                        read == Outcome::Data(Bytes(0x0402_u32.to_le_bytes().into()))
                    })
                    .count()
            }
        };
        let clients: Vec<_> = (0..12).map(|number| scope.spawn(client(number))).collect();
        // In the midst of that, programs that list whole dictionaries and are killed.
        for _ in 0..6 {
            let mut command = robot.command(&["sdo", "list", "drive-3"]);
            let mut child = command
                .stdout(std::process::Stdio::null())
                .stderr(std::process::Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(Duration::from_millis(60));
            child.kill().unwrap();
            child.wait().unwrap();
        }
        clients.into_iter().map(|client| client.join().unwrap()).sum::<usize>()
    });
    assert_eq!(reads, 12 * 20);
    // The SubDevice still answers after its killed clients, and their requests were counted.
    said(&robot.ask(&["sdo", "read", "drive-3", "0x1018:1"]));
    let told: serde_json::Value = serde_json::from_str(&attached.diagnostics().unwrap()).unwrap();
    let (requests, malformed) =
        (told["bus"]["requests"].as_u64().unwrap(), told["bus"]["malformed"].as_u64());
    assert!(requests > 12 * 20 && malformed == Some(0), "{told}");
    let end = robot.interrupt();
    assert_eq!(end["working_counter_errors"], 0, "{end}");
}

// feature(running-bus): `onbeat events`
#[test]
fn events_are_printed_with_cycles_until_the_end() {
    let _shared = shared();
    let robot = Robot::start("events", &[]);
    // A thread takes events out of the ring a few times a second; the state is there at once.
    let started = Instant::now();
    loop {
        let ran = robot.ask(&["events"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        if ran.stdout.lines().any(|line| line.contains("cycle ") && line.contains("phase Op")) {
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "{}", ran.stdout);
    }
    let follower = Running::start(robot.command(&["events", "--follow", "--json"]));
    std::thread::sleep(Duration::from_millis(300));
    robot.interrupt();
    let ran = follower.finish();
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let events: Vec<serde_json::Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let phase = |name: &str| events.iter().find(|it| it["event"] == "phase" && it["phase"] == name);
    let (op, down) = (phase("Op").unwrap(), phase("Down").unwrap());
    assert!(op["cycle"].as_u64() < down["cycle"].as_u64(), "{events:?}");
}

// feature(program): `onbeat control`
#[test]
fn a_shell_resets_disables_and_enables_running_axes() {
    let _shared = shared();
    let name = format!("reset-{}", std::process::id());
    let robot = Robot::start("control", &["--control", &name]);
    let mut fault = onbeat();
    fault.args(["fault", "--of", &name, "drive", "fault", "drive-3", "0x7500"]);
    assert_eq!(finished(fault).code, Some(0));
    let of = |state: &State| state.axes[2].drive_state;
    until(&robot.attach(), "in fault", |state| words::drive_state(of(state)) == "Fault");
    let done = |request: &[&str]| {
        let ran = robot.ask(&[&["control"], request].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "done\n"), "{request:?}: {}", ran.stderr);
    };
    done(&["reset"]);
    done(&["disable"]);
    assert!(robot.attach().state().read().unwrap().axes.iter().all(|axis| axis.drive_state < 5));
    done(&["enable"]);
    until(&robot.attach(), "enabled again", |state| state.axes.iter().all(|axis| axis.drive_state == 5));
    let ran = robot.ask(&["control", "home", "axis-9"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("near it: \"axis-1\""), "{}", ran.stderr);
    let ran = robot.ask(&["control", "switch", "nobody"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("there is \"sinusoid\""), "{}", ran.stderr);
    robot.interrupt();
}
