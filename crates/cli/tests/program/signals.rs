//! Process data by name, from the user's point of view: a robot file with signals, a run of it,
//! `onbeat io` next to it.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::{Ran, Running, await_cycles, file, finished, onbeat, run, shared};

/// The station with these signals besides.
fn station(name: &str, signals: &str) -> PathBuf {
    let text = include_str!("../../../../examples/io-station.toml");
    file(name, &format!("{text}\n{signals}\n"))
}

fn signals_of(end: &Value) -> impl Fn(&str) -> Value + use<> {
    let signals = end.as_array().or(end["signals"].as_array()).expect("signals").clone();
    move |name| signals.iter().find(|it| it["name"] == name).unwrap_or_else(|| panic!("{name}")).clone()
}

const SIGNALS: &str = "
[[signal]]
name = \"ready\"
sub_device = \"lamps\"
channel = 1
initial = true

[[signal]]
name = \"ready seen\"
sub_device = \"switches\"
channel = 1

[[signal]]
name = \"pressure\"
sub_device = \"sensors\"
channel = 2
unit = \"bar\"
scale = 0.001
offset = 50.0
";

// feature(signals): `onbeat io`, `top`, `run --json`; an error with the line of the file leaves the bus in Init
#[test]
fn a_run_ends_with_its_signals() {
    let path = station("signals.toml", SIGNALS);
    let end = run(&["run", path.to_str().unwrap(), "--cycles", "500", "--json", "--no-ipc"]).json();
    let signal = signals_of(&end);
    // The simulated switches are wired to the lamps.
    assert_eq!((&signal("ready")["value"], &signal("ready seen")["value"]), (&true.into(), &true.into()));
    assert_eq!(signal("ready seen")["fresh"], true);
    let pressure = signal("pressure")["value"].as_f64().expect("a number");
    assert!((33.0..=67.0).contains(&pressure) && signal("pressure")["unit"] == "bar", "{pressure}");
    // Entries without a name, and what an axis writes.
    assert_eq!(signal("switches.0x6020:01")["value"], false);
    assert_eq!(signal("spindle.statusword")["value"].as_u64().map(|word| word & 0x6F), Some(0x27));
    assert_eq!(signal("spindle.controlword")["value"], 0x0F);
}

// feature(signals): `onbeat io`, `top`, `run --json`; an error with the line of the file leaves the bus in Init
#[test]
fn io_lists_gets_and_watches_the_signals_of_a_running_cycle() {
    let _shared = shared();
    let path = station("signals-io.toml", SIGNALS);
    let socket = std::env::temp_dir().join(format!("onbeat-io-{}", std::process::id())).join("io.sock");
    let mut command = onbeat();
    command.args([
        "run",
        path.to_str().unwrap(),
        "--for",
        "20s",
        "--json",
        "--ipc",
        socket.to_str().unwrap(),
    ]);
    let cycle = Running::start(command);
    await_cycles(cycle.id(), 1_000);
    let io = |arguments: &[&str]| -> Command {
        let mut command = onbeat();
        command.arg("io").args(arguments).args(["--cycle", socket.to_str().unwrap()]);
        command
    };
    let listed = finished(io(&["list"]));
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
    let line =
        |name: &str| listed.stdout.lines().find(|line| line.starts_with(name)).expect("a line").to_owned();
    assert!(
        line("ready seen").contains("bool") && line("ready seen").contains("true"),
        "{}",
        listed.stdout
    );
    assert!(line("pressure").contains(" bar"), "{}", listed.stdout);
    assert!(line("spindle.controlword").contains("axis \"spindle\""), "{}", listed.stdout);
    let got = finished(io(&["get", "ready seen", "pressure"])).stdout;
    assert!(got.starts_with("true\n") && got.trim_end().ends_with(" bar"), "{got}");
    let signal = signals_of(&finished(io(&["get", "pressure", "--json"])).json());
    assert_eq!(
        (&signal("pressure")["direction"], &signal("pressure")["type"]),
        (&"input".into(), &"int16".into())
    );
    let wrong = finished(io(&["get", "presure"]));
    assert!(
        wrong.sentence().contains("no signal is called \"presure\"")
            && wrong.sentence().contains("near it: \"pressure\"")
    );
    let watching = Running::start(io(&["watch", "pressure", "ready seen", "--json"]));
    std::thread::sleep(Duration::from_millis(500));
    let shown = |argument: &str| {
        let mut command = onbeat();
        command.args(["top", socket.to_str().unwrap(), argument]);
        finished(command)
    };
    assert!(shown("--once").stdout.contains("pressure"));
    assert_eq!(signals_of(&shown("--json").json())("ready")["value"], true);
    // Watching ends with the cycle.
    Command::new("kill").args(["-INT", &cycle.id().to_string()]).status().expect("kill");
    cycle.finish();
    let watched = watching.finish().stdout;
    let values = |name: &str| watched.lines().filter(|line| line.contains(name)).count();
    assert!(values("\"pressure\"") > 5, "{watched}");
    let first: Value = serde_json::from_str(watched.lines().next().expect("a line")).expect("JSON");
    assert!(first["cycle"].as_u64() > Some(0) && first["value"].is_number(), "{first}");
}

/// A cycle of the station with these lines besides, and `onbeat io` on it.
pub(crate) struct Station {
    pub(crate) cycle: Running,
    pub(crate) socket: PathBuf,
}

impl Station {
    pub(crate) fn start(name: &str, lines: &str) -> Self {
        let path = station(&format!("{name}.toml"), lines);
        let folder = std::env::temp_dir().join(format!("onbeat-{name}-{}", std::process::id()));
        let socket = folder.join("io.sock");
        let mut command = onbeat();
        command.arg("run").arg(&path).args(["--for", "50s", "--json", "--ipc"]).arg(&socket);
        let cycle = Running::start(command);
        await_cycles(cycle.id(), 1_000);
        Self { cycle, socket }
    }

    pub(crate) fn io(&self, arguments: &[&str]) -> Command {
        let mut command = onbeat();
        command.arg("io").args(arguments).arg("--cycle").arg(&self.socket);
        command
    }

    pub(crate) fn said(&self, arguments: &[&str]) -> String {
        let ran = finished(self.io(arguments));
        assert_eq!(ran.code, Some(0), "{arguments:?}: {}", ran.stderr);
        ran.stdout
    }

    pub(crate) fn refused(&self, arguments: &[&str], sentence: &str) {
        let ran = finished(self.io(arguments));
        assert!(ran.sentence().contains(sentence), "{arguments:?}: {}", ran.stderr);
    }

    /// Waits until a signal shows so.
    pub(crate) fn await_value(&self, name: &str, text: &str) {
        let begin = Instant::now();
        loop {
            let found = self.said(&["get", name]);
            if found.trim_end() == text {
                return;
            }
            assert!(begin.elapsed() < Duration::from_secs(20), "{name} is {found}, expected {text}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

pub(crate) fn interrupt(program: Running) -> Ran {
    Command::new("kill").args(["-INT", &program.id().to_string()]).status().expect("kill");
    program.finish()
}

// feature(signals): `onbeat io set`, `force`, `release`
#[test]
fn io_set_holds_an_output_until_it_ends() {
    let _shared = shared();
    let station = Station::start("io-set", SIGNALS);
    let lamp = "lamp red";
    station.await_value(lamp, "false");
    let setting = Running::start(station.io(&["set", lamp, "true"]));
    station.await_value(lamp, "true");
    // The simulated switches are wired to the lamps.
    station.await_value("switches.0x6020:01", "true");
    let holder = format!("process {} gives the commands", setting.id());
    station.refused(&["set", lamp, "false"], &holder);
    station.refused(&["set", lamp, "false"], "`onbeat io force`, which needs no lease");
    let set = interrupt(setting);
    assert_eq!((set.code, set.stdout.trim_end()), (Some(0), "lamp red  true"), "{}", set.stderr);
    station.await_value(lamp, "false");
    // By itself after a while.
    assert_eq!(station.said(&["set", lamp, "on", "--for", "300ms"]).trim_end(), "lamp red  true");
    station.await_value(lamp, "false");
    for (arguments, sentence) in [
        (
            &["set", "ready", "false"][..],
            "output \"ready\" is written by the controller, expected one with writer = \"outside\"",
        ),
        (&["set", "ready seen", "false"], "\"ready seen\" is an input, expected an output"),
        (&["set", "spindle.controlword", "6"], "is written by axis \"spindle\": it can be read only"),
        // An offset moves the axis past its limits, though the axis writes none.
        (&["set", "spindle.torque offset", "30000"], "is written by axis \"spindle\": it can be read only"),
        (&["set", lamp, "2"], "\"2\" for the signal \"lamp red\", expected true or false"),
        (
            &["set", lamp, "true", lamp, "false"],
            "\"lamp red\" named twice, expected one value for each signal",
        ),
        (&["set", lamp, "on", "ready"], "\"ready\" without a value, expected a value behind each signal"),
        (&["set", "lamp rod", "on"], "no signal is called \"lamp rod\""),
    ] {
        station.refused(arguments, sentence);
    }
    // A killed `io set` holds nothing; the end of the cycle ends a running one.
    let mut killed = Running::start(station.io(&["set", lamp, "true"]));
    station.await_value(lamp, "true");
    killed.kill();
    station.await_value(lamp, "false");
    let setting = Running::start(station.io(&["set", lamp, "true"]));
    station.await_value(lamp, "true");
    let end = interrupt(station.cycle);
    assert_eq!(signals_of(&end.json())(lamp)["value"], true);
    assert!(setting.finish().sentence().contains("the cycle has ended"));
}

// feature(signals): `onbeat io set`, `force`, `release`
// feature(signals): forces and their ends are events, with process and user, time, and reason of the end
#[test]
fn io_force_wins_is_shown_and_ends_on_time_or_release() {
    let _shared = shared();
    let station = Station::start("io-force", SIGNALS);
    // A force does not need the lease.
    let setting = Running::start(station.io(&["set", "lamp red", "true"]));
    station.await_value("lamp red", "true");
    let forced = station.said(&["force", "lamp red", "false", "--for", "1h"]);
    assert_eq!(forced.trim_end(), "lamp red  false (forced)");
    station.await_value("switches.0x6020:01", "false");
    station.said(&["force", "ready seen", "false", "--for", "1h"]);
    station.said(&["force", "pressure", "20.5", "--for", "1h"]);
    assert_eq!(station.said(&["get", "pressure"]).trim_end(), "20.5 bar (forced)");
    // Forced again it shows the value it has now.
    for value in ["21.5", "22.5", "20.5"] {
        let forced = station.said(&["force", "pressure", value, "--for", "1h"]);
        assert_eq!(forced.trim_end(), format!("pressure  {value} bar (forced)"));
    }
    let listed = station.said(&["list"]);
    let line = |name: &str| listed.lines().find(|line| line.starts_with(name)).expect("a line").to_owned();
    assert!(line("lamp red").contains("false (forced)   (outside)"), "{listed}");
    assert!(
        line("ready seen").contains("false (forced)") && !line("ready  ").contains("(forced)"),
        "{listed}"
    );
    let json: Value = serde_json::from_str(&station.said(&["list", "--json"])).expect("JSON");
    let signal = signals_of(&json);
    assert_eq!((&signal("lamp red")["forced"], &signal("ready")["forced"]), (&true.into(), &false.into()));
    let mut top = onbeat();
    top.arg("top").arg(&station.socket).arg("--once");
    assert!(finished(top).stdout.contains("false (forced)"));
    // A released signal has its holder's value again; the others are unchanged.
    assert_eq!(station.said(&["release", "lamp red"]).trim_end(), "lamp red  true (released)");
    let released = station.said(&["release", "--all"]);
    let lines: Vec<&str> = released.lines().collect();
    assert!(
        matches!(lines[..], ["ready seen  true (released)", pressure] if pressure.starts_with("pressure  "))
    );
    assert_eq!(station.said(&["release", "--all"]), "no signal was forced\n");
    station.await_value("ready seen", "true");
    interrupt(setting);
    // The client is gone, the cycle counts the time.
    station.said(&["force", "ready", "false", "--for", "400ms"]);
    station.await_value("ready", "true");
    for (arguments, sentence) in [
        (
            &["force", "spindle.controlword", "6", "--for", "1s"][..],
            "written by axis \"spindle\", which no client can override",
        ),
        (
            &["force", "spindle.torque offset", "30000", "--for", "4s"],
            "written by axis \"spindle\", which no client can override",
        ),
        (
            &["force", "ready", "off", "--for", "1ns"],
            "--for 1ns, expected at least 1ms, the period of the cycle",
        ),
        (&["watch", "--every", "0s"], "--every 0ns, expected at least 1ms, the period of the cycle"),
        (&["set", "lamp red", "on", "--for", "0s"], "expected at least a period of the cycle"),
        (&["force", "ready", "off", "--for", "10m"], "(ns, us, ms, s, min, h)"),
        (&["force", "ready", "off", "--for", "25h"], "for the signal \"ready\", expected up to 24 h"),
        (
            &["force", "pressure", "-12.5", "--for", "1s"],
            "-12.5 for the signal \"pressure\", expected 17.23",
        ),
        (
            &["force", "pressure", "nan", "--for", "1s"],
            "\"nan\" for the signal \"pressure\", expected a number",
        ),
    ] {
        let ran = finished(station.io(arguments));
        assert!(ran.code != Some(0) && ran.stderr.contains(sentence), "{arguments:?}: {}", ran.stderr);
    }
    station.said(&["force", "ready", "false", "--for", "1h"]);
    let mut events = onbeat();
    events.arg("events").arg("--json").arg("--cycle").arg(&station.socket);
    let events = finished(events).stdout;
    let events: Vec<Value> =
        events.lines().map(|line| serde_json::from_str(line).expect("an event")).collect();
    let of = |name: &str, signal: &str| {
        let all = events.iter().filter(|it| it["event"] == name && it["signal"] == signal);
        all.cloned().collect::<Vec<_>>()
    };
    let forced = of("signal_forced", "pressure");
    let values: Vec<&Value> = forced.iter().map(|it| &it["value"]).collect();
    assert_eq!(values, [20.5, 21.5, 22.5, 20.5]);
    assert_eq!(
        (&forced[0]["for_ns"], &forced[0]["severity"]),
        (&3_600_000_000_000_u64.into(), &"warning".into())
    );
    assert!(forced.iter().all(|it| it["process"].as_u64() > Some(0) && it["cycle"].as_u64() > Some(0)));
    let released = of("signal_released", "pressure");
    assert_eq!((released.len(), &released[0]["reason"]), (1, &"released".into()), "{released:?}");
    assert!(released[0]["process"].is_u64() && released[0]["after"].as_u64() > Some(0), "{released:?}");
    assert_eq!(of("signal_released", "ready")[0]["reason"], "its time has expired");
    let ran = interrupt(station.cycle);
    let end = ran.json();
    let ready = signals_of(&end)("ready");
    assert_eq!((&ready["value"], &ready["forced"]), (&false.into(), &true.into()), "{ready}");
    for sentence in [
        "signal \"lamp red\" is forced to false for 3600.0 s, by process ",
        "are no longer forced: released by process ",
        "signal \"ready\" (now ",
    ] {
        assert!(ran.stderr.contains(sentence), "{sentence}: {}", ran.stderr);
    }
    assert_eq!(end["signal_counters"]["clamped"], 0);
}

// feature(signals): rights to force inputs and outputs
#[test]
fn a_robot_file_may_refuse_forces() {
    let _shared = shared();
    let station = Station::start("io-closed", "[ipc]\nforce = false");
    let sentence = "forcing a signal: this cycle does not permit forced signals: `[ipc] force` in \
        the robot file decides";
    station.refused(&["force", "lamp green", "false", "--for", "1s"], sentence);
    station.refused(&["release", "--all"], sentence);
    interrupt(station.cycle);
}

// feature(signals): `onbeat io`, `top`, `run --json`; an error with the line of the file leaves the bus in Init
#[test]
fn an_unknown_signal_is_named_with_its_line_in_init() {
    let path =
        station("signals-wrong.toml", "[[signal]]\nname = \"far\"\nsub_device = \"switches\"\nchannel = 5");
    let ran = run(&["run", path.to_str().unwrap(), "--cycles", "10"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let line = std::fs::read_to_string(&path).expect("the file").lines().count();
    let place = format!("signals-wrong.toml:{line}:");
    let sentence = "channel 5 for the signal \"far\", expected 1 to 4, the input channels of \"switches\": correct channel";
    assert!(ran.stderr.contains(&place) && ran.stderr.contains(sentence), "{}", ran.stderr);
}

// feature(signals): simulated terminals: analogue outputs and inputs, encoders on shafts, a force-torque sensor
#[test]
fn the_terminals_of_the_station_show_their_values() {
    let arguments = ["run", "examples/io-station.toml", "--cycles", "1500", "--json", "--no-ipc"];
    let end = run(&arguments).json();
    let signal = signals_of(&end);
    let number = |name: &str| signal(name)["value"].as_f64().expect("a number");
    // The probe measures the valve, which begins at 2.5 V.
    assert!((number("valve") - 2.5).abs() < 1e-3, "{}", number("valve"));
    assert_eq!(number("valve pressure"), number("valve"));
    // The encoder on the spindle's other end has turned with it, a little behind.
    let position = number("spindle.position actual value") / 1_048_576.0 * std::f64::consts::TAU;
    let turned = number("spindle turned");
    assert!(position.abs() > 0.1 && (turned - position).abs() < 0.1, "{turned} rad, {position} rad");
    assert!(["force.x", "force.y", "force.z"].iter().all(|name| number(name).abs() <= 10.0));
    assert!(number("force.x") != 0.0 && number("torque.z") != 0.0);
    assert!(number("forces.Sample counter") > 100.0 && signal("force.x")["unit"] == "N");
}

// feature(signals): the five sensors of a humanoid by name
#[test]
fn the_sensors_of_the_humanoid_are_there_by_name() {
    let _shared = shared();
    let socket = std::env::temp_dir().join(format!("onbeat-hum-{}", std::process::id())).join("h.sock");
    let mut command = onbeat();
    command.args(["run", "examples/humanoid-59.toml", "--for", "20s", "--json", "--period", "10ms"]);
    command.args(["--ipc", socket.to_str().unwrap()]);
    let cycle = Running::start(command);
    await_cycles(cycle.id(), 50);
    let mut command = onbeat();
    command.args(["io", "get", "left foot force.z", "right wrist torque.x", "acceleration.y"]);
    command.args(["magnetic field.z", "--json", "--cycle", socket.to_str().unwrap()]);
    let got = finished(command).json();
    let signal = signals_of(&got);
    let units = ["N", "N m", "m/s2", "uT"];
    let names = ["left foot force.z", "right wrist torque.x", "acceleration.y", "magnetic field.z"];
    for (name, unit) in names.into_iter().zip(units) {
        let it = signal(name);
        assert_eq!((&it["unit"], &it["direction"]), (&unit.into(), &"input".into()), "{it}");
        assert!(it["value"].as_f64().is_some_and(|value| value != 0.0), "{it}");
    }
    assert!(signal("left foot force.z")["value"].as_f64().is_some_and(|force| force.abs() <= 40.0));
    Command::new("kill").args(["-INT", &cycle.id().to_string()]).status().expect("kill");
    cycle.finish();
}
