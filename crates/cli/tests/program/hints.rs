//! Hints behind a mistake: they name what was wrong, and what to do about that.
//!
//! Refusals and stops with their reasons: interlocks by name, tried with simulated inputs.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use onbeat::ipc::description::Description;
use onbeat::ipc::server::Builder;
use onbeat::ipc::state::{State, StopReason};

use crate::common::{Ran, Running, file, finished, folder, onbeat, run, shared, six_axis_with};
use crate::robots::Robot;

/// Standard error of a command line that cannot be read.
fn usage(arguments: &[&str]) -> String {
    let ran = run(arguments);
    assert_eq!(ran.code, Some(2), "{arguments:?}: {}{}", ran.stdout, ran.stderr);
    ran.stderr
}

// feature(program): hints name what was wrong: command line, robot file, CPU, folder, cycle, right
#[test]
fn no_option_is_to_be_given_behind_two_dashes() {
    for arguments in
        [&["run", "--for", "-1s"][..], &["run", "-z"], &["run", "--silent"], &["run", "--duration", "1s"]]
    {
        let said = usage(arguments);
        assert!(!said.contains("-- -"), "{arguments:?}: {said}");
    }
    assert!(usage(&["run", "--for", "-1s"]).contains("--for=-1s"));
    assert!(usage(&["run", "--for=-1s"]).contains("\"-1s\""), "{}", usage(&["run", "--for=-1s"]));
    assert!(usage(&["run", "--duration", "1s"]).contains("'--for'"));
    // It has no such option.
    assert!(!usage(&["events", "--duration", "1s"]).contains("'--for'"));
}

// feature(program): hints name what was wrong: command line, robot file, CPU, folder, cycle, right
#[test]
fn an_invalid_text_argument_is_reported_by_its_number() {
    let of = |before: &[&str]| {
        let mut command = onbeat();
        command.args(before).arg(OsStr::from_bytes(b"\xff\xfe"));
        finished(command)
    };
    for before in [&["events", "--cycle"][..], &["io", "get"], &["run", "--for"], &["run", "--control"]] {
        let ran = of(before);
        assert_eq!(ran.code, Some(2), "{before:?}: {}", ran.stderr);
        let number = before.len() + 1;
        let expected = format!("word {number} of the command line: found \"\\xFF\\xFE\", expected UTF-8");
        assert!(ran.stderr.contains(&expected), "{before:?}: {}", ran.stderr);
    }
    // A path may be any.
    let ran = of(&["check"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
}

// feature(program): hints name what was wrong: command line, robot file, CPU, folder, cycle, right
#[test]
fn an_object_in_two_words_is_reported() {
    let said = usage(&["sdo", "read", "0", "0x1018", "1"]);
    assert!(said.contains("0x1018:1") && !said.contains("-- 1"), "{said}");
}

// feature(program): hints name what was wrong: command line, robot file, CPU, folder, cycle, right
#[test]
fn a_value_of_the_command_line_is_not_the_files() {
    let file = six_axis_with("hints.toml", "period = \"1ms\"", "period = \"2ms\"");
    for robot in [&[][..], &[file.to_str().unwrap()]] {
        let ran = run(&[&["run", "--period", "10us"][..], robot].concat());
        let sentence = ran.sentence();
        assert!(
            sentence.starts_with("onbeat: the command line: ") && sentence.contains("10us"),
            "{sentence}"
        );
        assert!(!sentence.contains(".toml"), "{sentence}");
    }
    // An error within a file is still reported with its position.
    let wrong = six_axis_with("hints-wrong.toml", "period = \"1ms\"", "period = \"1us\"");
    let ran = run(&["run", wrong.to_str().unwrap(), "--priority", "50"]);
    assert!(ran.sentence().contains("hints-wrong.toml:"), "{}", ran.stderr);
}

// feature(program): hints name what was wrong: command line, robot file, CPU, folder, cycle, right
#[test]
fn a_cpu_that_is_not_there_is_refused_before_the_bus() {
    let ran = run(&["run", "--cpu", "1023", "--cycles", "10"]);
    let sentence = ran.sentence();
    assert!(sentence.contains("--cpu: found 1023, expected one of this machine's CPUs: 0"), "{sentence}");
    let ran = run(&["run", "--iface", "lo", "--prepare-nic", "--nic-cpu", "1023"]);
    let expected = "--nic-cpu: found 1023, expected one of this machine's CPUs: 0";
    assert!(ran.sentence().contains(expected), "{}", ran.stderr);
    let ran = run(&["simulate", "--iface", "lo", "--cpu", "1023", "--for", "1ms"]);
    assert_eq!(ran.code, Some(1));
    let expected = "--cpu: found 1023, expected one of this machine's CPUs: 0";
    assert!(ran.sentence().contains(expected), "{}", ran.stderr);
}

// feature(program): hints name what was wrong: command line, robot file, CPU, folder, cycle, right
#[test]
fn a_mistyped_folder_is_not_made() {
    // Not below a folder of temporary files, where it would be made.
    let typo = Path::new("/").join(format!("onbeat-typo-{}", std::process::id()));
    let ran = run(&["run", "--cycles", "10", "--ipc", typo.join("x.sock").to_str().unwrap()]);
    assert!(ran.sentence().contains("there is no such folder"), "{}", ran.stderr);
    assert!(!typo.exists());
}

// feature(program): hints name what was wrong: command line, robot file, CPU, folder, cycle, right
#[test]
fn a_foreign_bus_gets_a_hint_how_to_draft_a_file() {
    let ran = run(&["run", "--segment", "examples/io-station.toml", "--cycles", "10"]);
    assert_eq!(ran.code, Some(1));
    for part in ["built-in robot", "onbeat new --segment examples/io-station.toml -o robot.toml"] {
        assert!(ran.stderr.contains(part), "{}", ran.stderr);
    }
    let ran =
        run(&["run", "examples/six-axis.toml", "--segment", "examples/io-station.toml", "--cycles", "10"]);
    assert!(!ran.sentence().contains("built-in"), "{}", ran.stderr);
}

// feature(program): hints name what was wrong: command line, robot file, CPU, folder, cycle, right
#[test]
fn an_esi_file_instead_of_an_image_is_reported() {
    file("hints-esi.xml", "\u{feff}<?xml version=\"1.0\"?>\n<EtherCATInfo/>\n");
    let robot = six_axis_with(
        "hints-esi.toml",
        "kind = \"servo_drive\"",
        "kind = \"servo_drive\"\nsii = \"hints-esi.xml\"",
    );
    let ran = run(&["run", robot.to_str().unwrap(), "--cycles", "10"]);
    assert!(ran.sentence().contains("an ESI file (XML), expected an SII image"), "{}", ran.stderr);
}

// feature(program): hints name what was wrong: command line, robot file, CPU, folder, cycle, right
#[test]
fn of_several_cycles_top_says_how_one_is_named() {
    let runtime = folder("hints-cycles");
    let sockets = runtime.join("onbeat");
    std::fs::create_dir(&sockets).unwrap();
    let open = |name: &str| {
        let mut builder = Builder::new(name, &Description::default());
        builder.folder(&sockets);
        builder.open().unwrap()
    };
    let _two = [open("hints-one"), open("hints-two")];
    let mut command = onbeat();
    command.env("XDG_RUNTIME_DIR", &runtime).env_remove("ONBEAT_IPC").args(["top", "--once"]);
    let ran = finished(command);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    for part in ["name one, as with `onbeat top NAME`", "hints-one (process ", "hints-two (process "] {
        assert!(ran.stderr.contains(part), "{}", ran.stderr);
    }
    assert!(!ran.stderr.contains("--cycle"), "{}", ran.stderr);
}

// feature(program): a separate simulated bus is named where a cycle of the same robot runs
#[test]
fn separate_simulation_names_the_running_cycle() {
    let runtime = folder("hints-same-robot");
    let open = |robot: &str, sub_device: &str| {
        let (robot, sub_devices) = (robot.to_owned(), vec![sub_device.to_owned()]);
        let description = Description { robot, sub_devices, ..Description::default() };
        let mut builder = Builder::new("hints-bench", &description);
        builder.folder(&runtime);
        builder.open().unwrap()
    };
    let said = |arguments: &[&str]| {
        let mut command = onbeat();
        // Other cycles may run, of the same robot, too.
        command.env("ONBEAT_IPC", runtime.join("hints-bench.sock")).args(arguments);
        let ran = finished(command);
        assert_eq!(ran.code, Some(0), "{arguments:?}: {}{}", ran.stdout, ran.stderr);
        ran.stderr
    };
    const FILE: &str = "examples/first-drive.toml";
    let read = ["sdo", "read", "0", "0x6041"];
    // By the name of the robot, and by its SubDevices, as of a draft.
    for (arguments, cycle) in [
        (&[&read[..], &["--robot", FILE]].concat()[..], ["first-drive", "x"]),
        (&[&read[..], &["--segment", FILE]].concat(), ["first-drive", "x"]),
        (&["scan", FILE], ["first-drive", "x"]),
        (&["scan", "--segment", FILE], ["bench", "drive"]),
        (&["diag", "--segment", FILE], ["bench", "drive"]),
    ] {
        let _cycle = open(cycle[0], cycle[1]);
        let bus = match cycle {
            ["first-drive", _] => "the running cycle of this robot",
            _ => "robot \"bench\", which has SubDevices of these names",
        };
        let expected = format!(
            "on a separate simulated bus, robot \"first-drive\"; --cycle hints-bench uses the bus of {bus}\n"
        );
        assert_eq!(said(arguments), expected, "{arguments:?}");
    }
    let _cycle = open("first-drive", "x");
    let lamps = "name = \"hints-lamps\"\nsimulate = { kind = \"digital_outputs\", channels = 4 }\n";
    let other = format!("name = \"hints-other\"\n[cycle]\nperiod = \"1ms\"\n[[bus.sub_device]]\n{lamps}");
    let other = file("hints-other.toml", &other);
    assert_eq!(said(&["scan", "--segment", other.to_str().unwrap()]), "");
}

// feature(program): `fault list` without a simulator ends with 1, the folders and the remedy
#[test]
fn fault_list_without_a_simulator_ends_with_1() {
    let runtime = folder("hints-no-simulator");
    let mut command = onbeat();
    command.env("XDG_RUNTIME_DIR", &runtime).args(["fault", "list"]);
    let ran = finished(command);
    if ran.code == Some(0) || ran.stderr.contains("several simulators run") {
        return testkit::skip!("a simulator of this computer answers");
    }
    assert!(ran.sentence().contains(runtime.to_str().unwrap()), "{}", ran.stderr);
    let remedy = "start one with `onbeat run ROBOT.toml --control NAME`";
    assert!(ran.sentence().contains(remedy) && ran.stdout.contains("power off"), "{}", ran.stderr);
}

// feature(program): hints name what was wrong: command line, robot file, CPU, folder, cycle, right
#[test]
fn what_root_has_changed_is_put_back_by_root() {
    if !rustix::process::geteuid().is_root() {
        return testkit::skip!("it needs root, to have a folder of root's");
    }
    let _ = std::fs::create_dir(RUN);
    let ran = as_nobody(&["doctor", "--restore"]);
    if ran.stderr.contains("setpriv:") {
        return testkit::skip!("{}", ran.stderr);
    }
    assert_eq!(ran.code, Some(3), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("run this as root") && !ran.stderr.contains("remove it"), "{}", ran.stderr);
}

/// Runs the program as a user without rights, from a folder that this user may read.
fn as_nobody(arguments: &[&str]) -> Ran {
    let program = onbeat();
    let copy = std::env::temp_dir().join(format!("onbeat-hints-{}", std::process::id()));
    std::fs::copy(Path::new(program.get_program()), &copy).expect("a copy");
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&copy).args(arguments);
    let ran = finished(command);
    std::fs::remove_file(copy).expect("the copy");
    ran
}

/// Folder of root's journals.
const RUN: &str = "/run/onbeat";

/// One drive. Its E-stop is input 1 of a terminal, and low at the start.
fn with_emergency_stop() -> String {
    let drive = include_str!("../../../../examples/first-drive.toml");
    // A shared machine stalls now and then.
    let drive = drive.replace("[cycle]\n", "[cycle]\noutage_time = \"10s\"\n");
    let stop = "\
[bus]
process_data_watchdog = \"2min\"

[[bus.sub_device]]
name = \"inputs-1\"
simulate = { kind = \"digital_inputs\", channels = 4, initial = [false] }

[[interlock]]
name = \"e-stop\"
kind = \"stop\"
sub_device = \"inputs-1\"
channel = 1
axes = [\"shaft\"]
";
    format!("{drive}\n{stop}")
}

fn control(robot: &Robot, arguments: &[&str]) -> Command {
    let mut command = onbeat();
    command.args(["control", "--cycle"]).arg(robot.ipc.path()).args(arguments);
    command
}

fn asked(robot: &Robot, arguments: &[&str]) -> Ran {
    finished(control(robot, arguments))
}

// feature(program): refusals of `onbeat control` name the interlock, its input and level, and the next command
// feature(simulator): `onbeat fault input` and `initial` set the digital inputs of a simulated terminal
#[test]
fn an_emergency_stop_is_named_at_the_start_and_in_motion() {
    let _shared = shared();
    let path = file("emergency-stop.toml", &with_emergency_stop());
    let name = format!("reasons-{}", std::process::id());
    let arguments = ["--period", "10ms", "--control", &name];
    let robot = Robot::attached("reasons", path.to_str().expect("UTF-8"), &arguments);
    let is_low = |state: &State| state.interlocks[0].level == 1;
    let before = robot.until("low", is_low).cycle;
    let low = "interlock \"e-stop\" (inputs-1, channel 1) is low";
    let remedy = "release it, then `onbeat control reset`";
    for (request, not) in [("reset", "not reset"), ("enable", "not enabled")] {
        let ran = asked(&robot, &[request]);
        let expected = format!("{not}: shaft: {low}; {remedy}");
        assert!(ran.code == Some(1) && ran.sentence().contains(&expected), "{}", ran.stderr);
    }
    // A request is given up after 1000 of these cycles.
    let cycles = robot.until("answered", |_| true).cycle - before;
    assert!(cycles < 1_000, "the refusals took {cycles} cycles");
    let ran = asked(&robot, &["move", "shaft", "0.1"]);
    assert!(ran.code == Some(1) && ran.sentence().contains(low), "{}", ran.stderr);

    let fault = |level: &str| {
        let mut command = onbeat();
        command.args(["fault", "--of", &name, "input", "inputs-1:1", level]);
        let ran = finished(command);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    };
    fault("high");
    robot.until("high", |state| state.interlocks[0].permits);
    let ran = asked(&robot, &["enable"]);
    let again = "interlock \"e-stop\" (inputs-1, channel 1) is high again; type `onbeat control reset`";
    assert!(ran.code == Some(1) && ran.sentence().contains(again), "{}", ran.stderr);
    let ran = asked(&robot, &["reset"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "done\n"), "{}", ran.stderr);
    robot.until("enabled", |state| state.axes[0].phase == 2);

    // It would take minutes.
    let moving = Running::start(control(&robot, &["move", "--speed", "1%", "shaft", "5"]));
    robot.until("under way", |state| state.axes[0].position > 0.01);
    fault("low");
    let ran = moving.finish();
    assert!(ran.code == Some(1) && ran.stderr.contains(low), "{}", ran.stderr);
    let end = robot.end();
    assert_eq!(end.code, Some(3), "{}", end.stderr);
    let held = format!("axis \"shaft\" is held: {low}");
    assert!(end.stderr.matches(&held).count() >= 2, "at the start and in motion: {}", end.stderr);
    assert!(end.stderr.contains(&format!("supervision stopped axis \"shaft\": {low}")), "{}", end.stderr);
}

// feature(program): a SubDevice without process data that does not answer is named as the cause
#[test]
fn a_coupler_without_power_is_the_one_that_is_named() {
    let _shared = shared();
    let coupler = "[[bus.sub_device]]\nname = \"coupler\"\nsimulate = { kind = \"coupler\" }\n\n";
    let text = with_emergency_stop().replace("[false]", "[true]");
    let text = text.replacen("[[bus.sub_device]]", &format!("{coupler}[[bus.sub_device]]"), 1);
    let text = text.replace("outage_time = \"10s\"", "outage_time = \"20ms\"");
    let path = file("coupler-off.toml", &text);
    let name = format!("coupler-off-{}", std::process::id());
    let arguments = ["--period", "10ms", "--control", &name];
    let robot = Robot::run("coupler-off", path.to_str().expect("UTF-8"), &arguments);
    let mut command = onbeat();
    command.args(["fault", "--of", &name, "power", "off", "coupler"]);
    let ran = finished(command);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let lost = robot.until("lost", |state| state.axes[0].stop == StopReason::Outage as u8).cycle;
    // `run` names a loss after 100 ms.
    robot.until("some cycles later", |state| state.cycle > lost + 20);
    let cable = "behind the cable between the network interface and SubDevice 0 \"coupler\" port 0";
    let ran = asked(&robot, &["enable"]);
    assert!(ran.code == Some(1) && ran.sentence().contains(cable), "{}", ran.stderr);
    let end = robot.end();
    assert_eq!(end.code, Some(4), "{}", end.stderr);
    let all =
        "no process data of SubDevice 0 \"coupler\", SubDevice 1 \"drive\", SubDevice 2 \"inputs-1\",";
    let lost = end.stderr.lines().find(|it| it.contains(all));
    assert!(lost.is_some_and(|it| it.contains(cable)), "{}", end.stderr);
    let silent = "SubDevice 0 \"coupler\" did not answer in the last";
    assert!(end.stderr.contains(silent), "{}", end.stderr);
}

// feature(program): `onbeat control reset` names the step that stopped an axis if its drive ignores a quick stop
#[test]
fn a_reset_names_the_step_that_replaced_the_quick_stop() {
    let _shared = shared();
    let text = include_str!("../../../../examples/first-drive.toml");
    let text = text.replace("kind = \"servo_drive\"\n", "kind = \"servo_drive\"\nquick_stop = false\n");
    let text = text.replace("[cycle]\n", "[cycle]\noutage_time = \"1s\"\n");
    let text = format!("{text}\n[bus]\nprocess_data_watchdog = \"2min\"\n");
    let path = file("no-quick-stop.toml", &text);
    let name = format!("no-quick-stop-{}", std::process::id());
    let arguments = ["--period", "10ms", "--control", &name];
    let robot = Robot::run("no-quick-stop", path.to_str().expect("UTF-8"), &arguments);
    let mut command = onbeat();
    command.args(["fault", "--of", &name, "frames", "lose", "100%", "for", "2s"]);
    let ran = finished(command);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    robot.until("stopped by set-points", |state| state.axes[0].quick_stop == 1);
    let step = "its drive does not carry out the quick stop, it was stopped by set-points to standstill";
    let ran = asked(&robot, &["enable"]);
    let remedy = "check the power of SubDevice 0 \"drive\" and its cables, then `onbeat control reset`";
    let expected = format!("(outage); {step}; {remedy}");
    assert!(ran.code == Some(1) && ran.sentence().contains(&expected), "{}", ran.stderr);
    let ran = asked(&robot, &["reset"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "done\n"), "{}", ran.stderr);
    let expected = format!("shaft: reset; {step}: correct its 0x605A or its firmware\n");
    assert!(ran.stderr.contains(&expected), "{}", ran.stderr);
    // The next reset has nothing to name.
    robot.until("its controller's again", |state| state.axes[0].phase == 2);
    let ran = asked(&robot, &["reset"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{}", ran.stderr);
    assert_eq!(robot.end().code, Some(0));
}
