//! `onbeat diag`: where on the bus a fault is.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use onbeat::ipc::bus::{
    self, Backend, BusStatus, ErrorCounters, Outcome, PortLink, Service, SubDeviceStatus, Ticket,
};
use onbeat::ipc::description::Description;
use onbeat::ipc::server::{Builder, Endpoints, Server};
use serde_json::{Value, json};

use crate::common::{Ran, Running, SIMULATED, await_cycles, file, finished, onbeat, run, shared};
use crate::wire::SIX_AXIS;

/// Three SubDevices in a line, with a bad cable between the last two: every look finds ten damaged
/// frames more.
#[derive(Default)]
struct BadCable {
    damaged: u8,
    done: VecDeque<(Ticket, Outcome)>,
}

impl Backend for BadCable {
    fn submit(&mut self, ticket: Ticket, service: &Service, reads_only: Option<&str>) -> bool {
        let outcome = match service {
            Service::Describe => Outcome::SubDevices((0..3).map(described).collect()),
            Service::Status { errors: false, .. } => self.status(),
            Service::Status { errors: true, .. } => {
                self.damaged += 10;
                self.status()
            }
            Service::ClearErrors => {
                assert_eq!(reads_only, None, "the same user may command");
                self.damaged = 0;
                Outcome::Done(true)
            }
            Service::Latches { position } => {
                assert_eq!(reads_only, None, "the same user may command");
                let mut inputs = [bus::LatchInput::default(); 2];
                let time_ns = (*position == 1).then_some(848_654_881_000_123_450);
                inputs[0].rising = bus::LatchEdge { time_ns, is_new: true };
                inputs[0].high = time_ns.is_some();
                Outcome::Latches(inputs)
            }
            other => panic!("{other:?}"),
        };
        self.done.push_back((ticket, outcome));
        true
    }

    fn poll(&mut self) -> Option<(Ticket, Outcome)> {
        self.done.pop_front()
    }
}

impl BadCable {
    fn status(&self) -> Outcome {
        let open = |link: bool| PortLink { link, loop_closed: !link, communication: link };
        let sub_device = |number: usize| {
            let mut errors = ErrorCounters::default();
            match number {
                1 => errors.ports[1].forwarded_rx_errors = self.damaged,
                2 => errors.ports[0].invalid_frames = self.damaged,
                _ => {}
            }
            SubDeviceStatus {
                state: "Op".into(),
                exchanges: true,
                errors: Some(errors),
                links: Some([open(true), open(number < 2), open(false), open(false)]),
                clock_difference_ns: Some(10 * number as i32 - 5),
                sync0: (number == 1).then_some(bus::SyncStatus {
                    cycle_ns: 1_000_000,
                    shift_ns: 250_000,
                    frame_phase_ns: 262_340,
                }),
                ..SubDeviceStatus::default()
            }
        };
        let sub_devices = (0..3).map(sub_device).collect();
        Outcome::Status(Box::new(BusStatus {
            cycle: 77,
            phase: "Op".into(),
            reference_clock: Some(0),
            clock: Some(bus::ClockStatus {
                lock: "locked".into(),
                difference_ns: -1_234_560,
                frame_phase_ns: 512_340,
                phase_error_ns: -340,
                drift_ppb: 49_980,
                losses: 1,
                ..bus::ClockStatus::default()
            }),
            sub_devices,
            ..BusStatus::default()
        }))
    }
}

fn described(position: u16) -> Value {
    let upstream = position.checked_sub(1).map(|before| json!({ "position": before, "port": 1 }));
    json!({
        "position": position, "name": format!("drive-{position}"), "vendor_id": 1, "product_code": 2, "revision": 3,
        "serial": 4, "alias": 0, "state": "Op", "upstream": upstream, "entry_port": 0, "delay_ns": 100 * position,
        "remarks": [], "outputs": [], "inputs": [], "details": [],
    })
}

/// A cycle with that bus.
struct Cycle {
    _ends: Endpoints,
    server: Server,
    _bus: bus::Server,
    folder: PathBuf,
}

impl Cycle {
    fn start(test: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("onbeat-diag-{test}-{}", std::process::id()));
        let mut builder = Builder::new("robot", &Description::default());
        builder.folder(&folder);
        let guests = builder.bus().unwrap();
        let (ends, server) = builder.open().unwrap();
        let bus = bus::Server::start(guests, Box::new(BadCable::default())).unwrap();
        Self { _ends: ends, server, _bus: bus, folder }
    }

    fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = onbeat();
        command.arg("diag").args(arguments).arg("--cycle").arg(self.server.path());
        command
    }

    fn ask(&self, arguments: &[&str]) -> Ran {
        finished(self.command(arguments))
    }
}

impl Drop for Cycle {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

const PLACE: &str = "the fault is between SubDevice 1 \"drive-1\" port 1 and SubDevice 2 \"drive-2\" port 0: 10 invalid frames \
                     at SubDevice 2 \"drive-2\" port 0; check this cable and its connectors";

// feature(diagnosis): `onbeat diag` of a running cycle: a table, findings in sentences, exit code 3; `diag clear`
#[test]
fn a_fault_is_located_and_the_counters_are_cleared() {
    let cycle = Cycle::start("place");
    let ran = cycle.ask(&[]);
    assert_eq!(ran.code, Some(3), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("using the running cycle"), "{}", ran.stderr);
    let found: Vec<_> = ran.stdout.lines().filter_map(|line| line.strip_prefix("! ")).collect();
    assert_eq!(found, [PLACE], "{}", ran.stdout);
    assert!(ran.stdout.contains("spread 20 ns"), "{}", ran.stdout);
    for line in [
        "lock to the reference clock: locked, phase error -0.3 us, drift +49.98 ppm, lost 1 time\n",
        "reference clock -1234.6 us from this host's; frames pass it 512.3 us behind SYNC0 without a shift\n",
    ] {
        assert!(ran.stdout.contains(line), "{line} in {}", ran.stdout);
    }
    let row = |name: &str| -> Vec<String> {
        let line = ran.stdout.lines().find(|line| line.contains(name)).unwrap();
        line.split_whitespace().map(str::to_owned).collect()
    };
    assert_eq!(row("drive-1")[3..6], ["5", "100", "262.3"], "behind its SYNC0: {}", ran.stdout);
    let last = row("drive-2");
    assert_eq!(
        last,
        ["2", "drive-2", "Op", "15", "200", "-", "0", "0", "0", "yes", "pass", "10", "0", "0", "0"]
    );
    let cleared = cycle.ask(&["clear"]);
    assert_eq!(
        (cleared.code, cleared.stdout.trim()),
        (Some(0), "cleared the error counters of 3 SubDevices")
    );
    // That look found ten frames more, and this one another ten.
    let ran = cycle.ask(&["--json"]);
    assert_eq!(ran.code, Some(3), "{}{}", ran.stdout, ran.stderr);
    let told: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&told["cycle"], &told["clock_spread_ns"]), (&77.into(), &20.into()), "{told}");
    assert_eq!((&told["clock"]["lock"], &told["clock"]["drift_ppb"]), (&"locked".into(), &49_980.into()));
    let ends = json!([{ "position": 1, "port": 1 }, { "position": 2, "port": 0 }]);
    let finding = &told["findings"][0];
    assert_eq!((&finding["fault"], &finding["ends"]), (&"damaged_frames".into(), &ends), "{told}");
    assert_eq!(finding["count"], 20, "{told}");
    assert_eq!(told["sub_devices"][2]["now"]["errors"]["ports"][0]["invalid_frames"], 20, "{told}");
}

// feature(diagnosis): `onbeat diag --watch` evaluates the counts since its previous line, a JSON object a line
#[test]
fn watch_reports_only_new_counts() {
    let cycle = Cycle::start("watch");
    let mut command = cycle.command(&["--json", "--watch", "10ms"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().take(3);
    let told: Vec<Value> = lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    for (look, it) in (1..).zip(&told) {
        assert_eq!(it["findings"][0]["count"], 10, "{it}");
        assert_eq!(it["sub_devices"][2]["now"]["errors"]["ports"][0]["invalid_frames"], 10 * look, "{it}");
    }
    // Its reader is gone: it ends by itself.
    let begin = std::time::Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(begin.elapsed() < Duration::from_secs(30), "it goes on");
        std::thread::sleep(Duration::from_millis(10));
    }
}

// feature(main-device): `onbeat diag latches`: levels and times of latch inputs, in a table and JSON
#[test]
fn latch_inputs_are_listed() {
    let cycle = Cycle::start("latches");
    let ran = cycle.ask(&["latches"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let rows: Vec<Vec<_>> = ran.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[3], ["1", "drive-1", "0", "high", "848654881000123450*", "-"], "{}", ran.stdout);
    assert_eq!((rows[4][3], rows.len()), ("low", 8), "{}", ran.stdout);
    let told: Value = serde_json::from_str(&cycle.ask(&["latches", "--json"]).stdout).unwrap();
    let rising = json!({ "time_ns": 848_654_881_000_123_450_u64, "is_new": true });
    assert_eq!((&told[1]["name"], &told[1]["inputs"][0]["rising"]), (&"drive-1".into(), &rising), "{told}");
    let own = run(&["diag", "latches", "--json"]).json();
    assert_eq!(own.as_array().map(Vec::len), Some(6), "{own}");
    assert_eq!(own[5]["inputs"][1]["rising"], json!({ "time_ns": null, "is_new": false }), "{own}");
}

// feature(diagnosis): `onbeat diag` of a bus without a running cycle, brought to PreOp; exit code 0 if nothing is wrong
#[test]
fn a_healthy_bus_is_reported_as_such() {
    let ran = run(&["diag"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains(SIMULATED) && ran.stdout.ends_with("nothing is wrong\n"), "{}", ran.stdout);
    let told = run(&["diag", "examples/humanoid-59.toml", "--json"]).json();
    assert_eq!((&told["findings"], &told["cycle"]), (&json!([]), &Value::Null), "{told}");
    let sub_devices = told["sub_devices"].as_array().unwrap();
    assert_eq!(sub_devices.len(), 59);
    for it in sub_devices {
        let entry = it["entry_port"].as_u64().unwrap() as usize;
        assert_eq!(it["now"]["links"][entry]["communication"], true, "{it}");
        assert_eq!(it["receive_times_ns"].as_array().map(Vec::len), Some(4), "{it}");
    }
    let ran = run(&["diag", "clear"]);
    assert_eq!((ran.code, ran.stdout.trim()), (Some(0), "cleared the error counters of 6 SubDevices"));
}

/// Frames are damaged on demand while a robot runs, and a running diagnosis names the cable.
// feature(diagnosis): `onbeat fault crc` on a running cycle, and `onbeat diag` names the damaged cable
#[test]
fn a_bad_cable_is_named_while_the_cycle_runs() {
    let _shared = shared();
    let name = format!("diag-of-a-bad-cable-{}", std::process::id());
    let mut command = onbeat();
    command.args(["run", SIX_AXIS, "--cycles", "6000", "--ipc", &name, "--json", "--control", &name]);
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
    assert!(ask(&diag, 0).ends_with("nothing is wrong\n"));
    ask(&["fault", "--of", &name, "crc", "drive-4:0", "7"], 0);
    let place = "the fault is between SubDevice 2 \"drive-3\" port 1 and SubDevice 3 \"drive-4\" port 0: 7 invalid frames at SubDevice 3 \
                 \"drive-4\" port 0; check this cable and its connectors";
    let found = ask(&diag, 3);
    let found: Vec<_> = found.lines().filter_map(|line| line.strip_prefix("! ")).collect();
    assert_eq!(found, [place]);
    let told: Value = serde_json::from_str(&ask(&["diag", "--cycle", &name, "--json"], 3)).unwrap();
    let ends = json!([{ "position": 2, "port": 1 }, { "position": 3, "port": 0 }]);
    assert_eq!(
        (&told["findings"][0]["fault"], &told["findings"][0]["ends"]),
        (&"damaged_frames".into(), &ends)
    );
    // Cleared, nothing is wrong any more, and the cycle has not noticed.
    ask(&["diag", "clear", "--cycle", &name], 0);
    assert!(ask(&diag, 0).ends_with("nothing is wrong\n"));
    assert!(matches!(running.finish().code, Some(0 | 3)));
}

/// An unpowered drive, and another in its place, while a robot runs: neither is reported in Op, and
/// the event names the cable to the place.
// feature(diagnosis): a SubDevice that does not answer has no state in `diag`, `scan` and the status of the bus; another device at its position is reported with its cable
#[test]
fn absent_and_foreign_sub_devices_are_reported() {
    let _shared = shared();
    let name = format!("diag-of-a-stranger-{}", std::process::id());
    let mut command = onbeat();
    command.args(["run", SIX_AXIS, "--cycles", "20000", "--ipc", &name, "--json", "--control", &name]);
    let running = Running::start(command);
    await_cycles(running.id(), 2500);
    let ask = |arguments: &[&str]| {
        let mut command = onbeat();
        command.args(arguments);
        finished(command).stdout
    };
    let json = |arguments: &[&str]| -> Value { serde_json::from_str(&ask(arguments)).unwrap() };
    let events = || -> Vec<Value> {
        let told = ask(&["events", "--cycle", &name, "--json"]);
        told.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    ask(&["fault", "--of", &name, "identity", "drive-6", "product=0x999"]);
    ask(&["fault", "--of", &name, "power", "cycle", "drive-6"]);
    let ends = json!([{ "position": 4, "port": 1 }, { "position": 5, "port": 0 }]);
    let stranger = (0..100).find_map(|_| {
        std::thread::sleep(Duration::from_millis(50));
        events().into_iter().find(|it| it["event"] == "stranger")
    });
    let stranger = stranger.expect("an event within seconds");
    assert_eq!((&stranger["expected"], &stranger["between"]), (&5.into(), &ends), "{stranger}");
    let diag = ["diag", "--cycle", &name, "--json"];
    let told = json(&diag);
    let states: Vec<_> =
        told["sub_devices"].as_array().unwrap().iter().map(|it| &it["now"]["state"]).collect();
    assert_eq!(states, ["Op", "Op", "Op", "Op", "Op", "no answer"], "{told}");
    // Nor has it a clock that counts, nor SYNC0.
    let [there, gone] = [4, 5].map(|position| &told["sub_devices"][position]["now"]);
    assert!(there["clock_difference_ns"].is_i64() && there["sync0"].is_object(), "{there}");
    assert!(gone["clock_difference_ns"].is_null() && gone["sync0"].is_null(), "{gone}");
    assert_eq!(json(&["scan", "--cycle", &name, "--json"])[5]["state"], "no answer");
    assert!(ask(&["diag", "--cycle", &name]).contains("\n   5 drive-6  no answer "));
    // The right drive again, which recovers by itself.
    ask(&["fault", "--of", &name, "sii", "restore", "drive-6"]);
    ask(&["fault", "--of", &name, "power", "cycle", "drive-6"]);
    let is_back = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        json(&diag)["sub_devices"][5]["now"]["state"] == "Op"
    });
    assert!(is_back, "{}", json(&diag));
    // An event of a state has the cable to its SubDevice, too.
    ask(&["fault", "--of", &name, "watchdog", "expire", "drive-6"]);
    let changed = (0..100).find_map(|_| {
        std::thread::sleep(Duration::from_millis(50));
        let is_it = |it: &Value| it["event"] == "state_changed" && it["position"] == 5;
        events().into_iter().rfind(is_it).filter(|it| it["al_status_code"] == 0x1B)
    });
    assert_eq!(changed.expect("an event within seconds")["between"], ends);
    running.finish();
}

/// Without its only drive a cycle loses every frame: no link is known.
// feature(diagnosis): a silent SubDevice behind no known link is named with its cable and power
#[test]
fn an_unpowered_only_drive_is_named_with_cable_and_power() {
    let _shared = shared();
    let name = format!("diag-of-an-unpowered-drive-{}", std::process::id());
    let mut command = onbeat();
    let file = "examples/first-drive.toml";
    command.args(["run", file, "--cycles", "20000", "--ipc", &name, "--json", "--control", &name]);
    let running = Running::start(command);
    await_cycles(running.id(), 2500);
    let ask = |arguments: &[&str]| {
        let mut command = onbeat();
        command.args(arguments);
        finished(command)
    };
    ask(&["fault", "--of", &name, "power", "off", "drive"]);
    let finding = "! SubDevice 0 \"drive\" does not answer: check its power, and the cable between the MainDevice and \
                   SubDevice 0 \"drive\" port 0\n";
    let mut ran = ask(&["diag", "--cycle", &name]);
    for _ in 0..100 {
        if ran.stdout.contains(finding) {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
        ran = ask(&["diag", "--cycle", &name]);
    }
    assert!(ran.code == Some(3) && ran.stdout.contains(finding), "{}", ran.stdout);
    ask(&["fault", "--of", &name, "power", "on", "drive"]);
    running.finish();
}

/// A drive with an absent group mate exchanges nothing, but answers; so it does where no SubDevice
/// is recovered.
// feature(diagnosis): a SubDevice that does not answer has no state in `diag`, `scan` and the status of the bus; another device at its position is reported with its cable
#[test]
fn a_sub_device_with_an_absent_mate_has_a_state() {
    let text = include_str!("../../../../examples/six-axis.toml");
    let all = "count = 6\ndevice = \"servo\"\n";
    assert!(text.contains(all), "the drives of the example");
    let mate =
        |name| format!("\n[[bus.sub_device]]\nname = \"{name}\"\ndevice = \"servo\"\ngroup = \"mates\"\n");
    let last = format!("count = 4\ndevice = \"servo\"\n{}{}", mate("drive-5"), mate("drive-6"));
    let text = text.replace(all, &last).replace("[bus]\n", "[bus]\nrecovery = false\n");
    let robot = file("mates.toml", &text);
    let _shared = shared();
    let name = format!("diag-of-mates-{}", std::process::id());
    let mut command = onbeat();
    command.arg("run").arg(&robot).args([
        "--cycles",
        "20000",
        "--ipc",
        &name,
        "--json",
        "--control",
        &name,
    ]);
    let running = Running::start(command);
    await_cycles(running.id(), 2500);
    let ask = |arguments: &[&str]| {
        let mut command = onbeat();
        command.args(arguments);
        finished(command).stdout
    };
    ask(&["fault", "--of", &name, "cable", "pull", "drive-5:1"]);
    let mut told = Value::Null;
    let is_so = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        told = serde_json::from_str(&ask(&["diag", "--cycle", &name, "--json"])).unwrap();
        let [mate, lost] = [4, 5].map(|position| &told["sub_devices"][position]["now"]);
        mate["exchanges"] == false && mate["state"] == "Op" && lost["state"] == "no answer"
    });
    assert!(is_so, "{told}");
    running.finish();
}
