//! Robots moved by hand: `onbeat control move` and `jog`.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use onbeat::ipc::state::{State, StopReason};

use crate::common::{Ran, Running, file, finished, onbeat, shared};
use crate::robots::Robot;

const ARM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/arm.toml");
const M4K: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/m4k.toml");

/// A slow cycle: a shared machine stalls now and then.
const SLOW: [&str; 2] = ["--period", "10ms"];

fn control(robot: &Robot, arguments: &[&str]) -> Command {
    let mut command = onbeat();
    command.args(["control", "--cycle"]).arg(robot.ipc.path()).args(arguments);
    command
}

fn asked(robot: &Robot, arguments: &[&str]) -> Ran {
    finished(control(robot, arguments))
}

fn near(found: f64, expected: f64) -> bool {
    (found - expected).abs() < 0.01
}

// feature(program): `onbeat control move`, `jog`
#[test]
fn a_shell_moves_axes_slowly_to_positions_and_by_distances() {
    let _shared = shared();
    let robot = Robot::run("move", ARM, &SLOW);
    let over = AtomicBool::new(false);
    let fastest = std::thread::scope(|scope| {
        let looks = scope.spawn(|| {
            let (reader, mut fastest) = (robot.ipc.state(), 0.0_f64);
            while !over.load(Ordering::Relaxed) {
                if let Ok(state) = reader.read() {
                    fastest = state.axes.iter().map(|axis| axis.velocity.abs()).fold(fastest, f64::max);
                }
                std::thread::sleep(Duration::from_millis(2));
            }
            fastest
        });
        let ran = asked(&robot, &["move", "wrist_pitch", "0.2", "shoulder_lift", "-0.1745"]);
        over.store(true, Ordering::Relaxed);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "done\n"), "{}", ran.stderr);
        assert!(ran.stderr.contains("wrist_pitch from "), "{}", ran.stderr);
        looks.join().expect("a look")
    });
    // A tenth of 2 rad/s, and what a drive's control loop does about it.
    assert!(fastest > 0.1 && fastest < 0.3, "{fastest} rad/s");
    robot
        .until("there", |state| near(state.axes[4].position, 0.2) && near(state.axes[1].position, -0.1745));
    let ran = asked(&robot, &["move", "--by", "--speed", "50%", "wrist_pitch", "-0.1"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    robot.until("back a little", |state| near(state.axes[4].position, 0.1));
    robot.interrupt();
}

/// From profile position to profile velocity and back, with the drive enabled, by the requests of a
/// shell.
// feature(program): `onbeat control switch` changes the mode of operation of axes to that of the controller
#[test]
fn a_shell_switches_an_axis_to_the_mode_of_another_controller() {
    let _shared = shared();
    let table = include_str!("../../../../examples/indexing-table.toml");
    let target = "{ index = 0x607A, bits = 32, name = \"target position\" },";
    let text = table.replacen(target, &format!("{target}\n{{ index = 0x60FF, bits = 32 }},"), 1);
    let jog = "[[controller]]\nname = \"jog\"\nkind = \"joint_velocity\"\nmode = \"pv\"\n";
    let text = text.replacen("[controller]", "[[controller]]", 1) + "\n" + jog;
    let file = std::env::temp_dir().join(format!("onbeat-modes-{}.toml", std::process::id()));
    std::fs::write(&file, text).expect("room");
    let robot = Robot::run("modes", file.to_str().expect("UTF-8"), &SLOW);
    let _ = std::fs::remove_file(&file);
    let before = robot.until("enabled", |state| state.control.enabled && state.axes[0].mode == 1);
    for (controller, mode) in [("jog", 3), ("joint_position", 1)] {
        let ran = asked(&robot, &["switch", controller]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "done\n"), "{}", ran.stderr);
        let state = robot.until(controller, |state| state.axes[0].mode == mode);
        assert!(near(state.axes[0].position, before.axes[0].position), "{state:?}");
        assert_eq!(state.axes[0].stop, 0, "{state:?}");
    }
    let ran = asked(&robot, &["switch", "jo"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("no such controller"), "{}", ran.stderr);
    robot.interrupt();
}

/// The commands of docs/first-drive.md, on the file written by hand.
// feature(program): a jog that moves an axis outside its limits farther out ends with the reason
#[test]
fn a_jog_outwards_ends_with_the_reason() {
    let _shared = shared();
    let drive = include_str!("../../../../examples/first-drive.toml");
    // The axis starts at 0, far outside its limits.
    let limits = "encoder = \"incremental\"\nlimits = { position = [1.0, 2.0], velocity = 6.0,";
    let drive = drive.replace("limits = { velocity = 6.0,", limits);
    let path = file("jog-outwards.toml", &drive);
    let robot = Robot::attached("jog-outwards", path.to_str().expect("UTF-8"), &SLOW);
    robot.until("in Op", |state| state.bus.phase == 7);
    asked(&robot, &["enable"]);
    robot.until("enabled", |state| state.axes[0].drive_state == 5);
    let Some(mut jog) = Jog::start(&robot, "shaft") else { return };
    jog.hold(b"\x1b[D", &robot, "held by the jog", |state| state.axes[0].stop == StopReason::Jog as u8);
    jog.keys.write_all(b"\x1b[Dq").expect("the terminal");
    let (code, text) = jog.finish();
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("1.0000 to 2.0000 rad: hold up or right to jog it inwards"), "{text}");
    let state = robot.until("at standstill", at_rest);
    assert!(state.axes[0].position.abs() < 0.01, "{state:?}");
    robot.end();
}

// feature(program): `onbeat control move`, `jog`
#[test]
fn the_first_drive_moves_as_its_page_says() {
    let _shared = shared();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/first-drive.toml");
    let robot = Robot::run("first-drive", file, &SLOW);
    for (arguments, position) in [
        (&["move", "--by", "shaft", "5", "--degrees"][..], 0.0873),
        (&["move", "shaft", "0", "--speed", "20%"], 0.0),
    ] {
        let ran = asked(&robot, arguments);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        robot.until("there", |state| near(state.axes[0].position, position));
    }
    // As the page has them, one behind the other: the loop of the drive still settles.
    for (place, controller) in ["joint_velocity", "joint_trajectory"].iter().cycle().take(4).enumerate() {
        let to = if place == 0 { "5" } else { "0" };
        if *controller == "joint_velocity" {
            let ran = asked(&robot, &["move", "shaft", to, "--degrees", "--speed", "50%"]);
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        }
        let ran = asked(&robot, &["switch", controller]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
    assert_eq!(asked(&robot, &["reset"]).code, Some(0));
    let ran = asked(&robot, &["jog", "shaft"]);
    assert!(ran.sentence().contains("keys need a terminal"), "{}", ran.stderr);
    assert!(
        !include_str!("../../../../examples/first-drive.toml").contains("control switch"),
        "a jog needs none"
    );
    if let Some(mut jog) = Jog::start(&robot, "shaft") {
        jog.hold(b"\x1b[C", &robot, "turned on", |state| state.axes[0].position > 0.1);
        let state = robot.until("at rest", at_rest);
        assert!(state.axes[0].position < 1.0, "slow: {state:?}");
        jog.hold(b"\x1b[D", &robot, "turned back", |state| state.axes[0].position < 0.0);
        jog.keys.write_all(b"q").expect("the terminal");
        assert!(jog.terminal.wait().expect("its end").success());
    }
    robot.interrupt();
}

// feature(program): `onbeat control move`, `jog`
#[test]
fn a_motion_that_cannot_be_is_a_sentence_and_moves_nothing() {
    let _shared = shared();
    let robot = Robot::run("move-wrong", ARM, &SLOW);
    for (arguments, sentence) in [
        (&["move", "wrist_pich", "0.1"][..], "near it: \"wrist_pitch\""),
        (
            &["move", "shoulder_pan", "3.0"],
            "3 rad for axis \"shoulder_pan\", expected -2.9 to 2.9 rad, its limits",
        ),
        (
            &["move", "shoulder_pan", "1e300"],
            "1e300 rad for axis \"shoulder_pan\", expected -2.9 to 2.9 rad, its limits",
        ),
        (&["move", "--by", "shoulder_pan", "-180", "--degrees"], "expected -2.9 to 2.9 rad, its limits"),
        (&["move", "shoulder_pan", "0.1", "shoulder_lift"], "axis \"shoulder_lift\" without a position"),
        (&["move", "shoulder_pan", "0.1", "shoulder_pan", "0.2"], "axis \"shoulder_pan\" named twice"),
        (&["move", "shoulder_pan", "nan"], "expected a position as a number"),
        (&["move", "shoulder_pan", "2", "--speed", "0.001%"], "expected at most 3600 s"),
        (&["jog"], "keys need a terminal"),
    ] {
        let ran = asked(&robot, arguments);
        assert!(ran.sentence().contains(sentence), "{arguments:?}: {}", ran.stderr);
    }
    let ran = asked(&robot, &["move", "--speed", "0", "shoulder_pan", "0.1"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("expected a share above 0"), "{}", ran.stderr);
    assert_eq!(asked(&robot, &["switch", "positions"]).code, Some(0));
    let ran = asked(&robot, &["move", "shoulder_pan", "0.1"]);
    let sentence = "controller \"positions\" (joint_position) is active, expected joint_trajectory of these axes; `onbeat \
                    control switch trajectories` makes it so";
    assert!(ran.sentence().contains(sentence), "{}", ran.stderr);
    robot.until("where it was", |state| state.axes.iter().all(|axis| near(axis.position, 0.0)));
    robot.interrupt();
}

// feature(program): `onbeat control move` of an axis that is held or not enabled says which, why and what to do
#[test]
fn a_motion_of_a_stopped_axis_is_refused_with_reason_and_remedy() {
    let _shared = shared();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/first-drive.toml");
    // In bus time a stall of the computer is no outage.
    let robot = Robot::run("move-held", file, &[&SLOW[..], &["--time", "host"]].concat());
    robot.stand_still(Duration::from_millis(500));
    robot.until("held", |state| state.axes[0].stop != 0);
    let ran = asked(&robot, &["move", "shaft", "0.1"]);
    // An outage, or the drive's own watchdog that came before: the stall is the cause of both.
    let words = ["shaft: ", "this computer stalled for ", "; type `onbeat control reset`"];
    let is_told = words.iter().all(|it| ran.sentence().contains(it));
    assert!(ran.code == Some(1) && is_told, "{}", ran.stderr);
    assert_eq!(asked(&robot, &["reset"]).code, Some(0));
    assert_eq!(asked(&robot, &["disable"]).code, Some(0));
    let ran = asked(&robot, &["move", "shaft", "0.1"]);
    let sentence = "the drive of axis \"shaft\" is in Switch on disabled, expected Operation enabled: `onbeat control enable`";
    assert!(ran.code == Some(1) && ran.sentence().contains(sentence), "{}", ran.stderr);
    robot.interrupt();
}

// feature(program): `onbeat control move`, `jog`: the refusal for an axis names its mode and the motion that the mode takes
#[test]
fn a_motion_that_the_mode_refuses_names_the_mode() {
    let _shared = shared();
    let robot = Robot::run("move-mode", M4K, &SLOW);
    let ran = asked(&robot, &["move", "--by", "left-wheel", "0.1"]);
    let sentence = "expected joint_trajectory of these axes; the robot file has none: axis \
        \"left-wheel\" is in csv, which takes a velocity";
    assert!(ran.sentence().contains(sentence), "{}", ran.stderr);
    robot.interrupt();
}

// feature(program): `onbeat control stop`, `deactivate` and `disable` work while any client has the port of requests
#[test]
fn a_stop_is_obeyed_during_other_requests() {
    let _shared = shared();
    let robot = Robot::run("stop-heard", ARM, &SLOW);
    let other = robot.ipc.port("control").expect("the port");
    // It would take 19 s.
    let moving = Running::start(control(&robot, &["move", "shoulder_pan", "2.0"]));
    robot.until("under way", |state| state.axes[0].position > 0.02);
    let ran = asked(&robot, &["move", "shoulder_pan", "0.0"]);
    assert!(
        ran.sentence().contains("a motion is in progress, expected all axes at standstill"),
        "{}",
        ran.stderr
    );
    let ran = asked(&robot, &["reset"]);
    assert!(ran.sentence().contains("has port `control` open"), "{}", ran.stderr);
    let stops: Vec<Running> = (0..6).map(|_| Running::start(control(&robot, &["stop"]))).collect();
    for stop in stops {
        let ran = stop.finish();
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "done\n"), "{}", ran.stderr);
    }
    let state = robot.until("at rest", |state| state.axes[0].target_velocity == 0.0);
    assert!(state.axes[0].position < 1.0, "{state:?}");
    assert_eq!(moving.finish().code, Some(1), "its motion was taken away");
    assert_eq!(asked(&robot, &["deactivate"]).code, Some(0));
    let ran = asked(&robot, &["move", "--by", "wrist_pitch", "0.01"]);
    assert!(ran.sentence().contains("no controller is active"), "{}", ran.stderr);
    assert_eq!(asked(&robot, &["disable"]).code, Some(0));
    drop(other);
    for arguments in
        [&["enable"][..], &["switch", "trajectories"], &["move", "--by", "wrist_pitch", "0.01"]]
    {
        let ran = asked(&robot, arguments);
        assert_eq!(ran.code, Some(0), "{arguments:?}: {}", ran.stderr);
    }
    robot.interrupt();
}

#[test]
fn a_motion_called_off_before_it_begins_is_no_success() {
    let _shared = shared();
    let robot = Robot::run("move-early", ARM, &SLOW);
    for milliseconds in 1..20 {
        let running = Running::start(control(&robot, &["move", "--by", "wrist_pitch", "0.001"]));
        std::thread::sleep(Duration::from_millis(milliseconds));
        let _ = Command::new("kill").args(["-INT", &running.id().to_string()]).status();
        let ran = running.finish();
        let whole = ran.stdout == "done\n";
        assert!(whole == (ran.code == Some(0)), "{:?} {}{}", ran.code, ran.stdout, ran.stderr);
    }
    robot.interrupt();
}

// feature(program): `onbeat control move`, `jog`
#[test]
fn a_motion_that_is_called_off_brings_its_axis_to_rest() {
    let _shared = shared();
    let robot = Robot::run("move-off", ARM, &SLOW);
    // It would take 19 s.
    let running = Running::start(control(&robot, &["move", "shoulder_pan", "2.0"]));
    robot.until("under way", |state| state.axes[0].position > 0.02);
    let process = running.id().to_string();
    assert!(Command::new("kill").args(["-INT", &process]).status().expect("kill").success());
    let ran = running.finish();
    let off = ran.stderr.contains("onbeat: cancelled: the axes are at standstill");
    assert!(ran.code == Some(1) && off, "{:?} {}", ran.code, ran.stderr);
    let state = robot.until("at rest", |state| state.axes[0].target_velocity == 0.0);
    assert!(state.axes[0].position < 1.0, "{state:?}");
    robot.interrupt();
}

/// `onbeat control jog` in a terminal; none where there is no `script`.
struct Jog {
    terminal: Child,
    keys: ChildStdin,
    /// File with what it showed.
    shown: PathBuf,
}

impl Jog {
    fn start(robot: &Robot, arguments: &str) -> Option<Self> {
        let there = Command::new("script").arg("--version").stdout(Stdio::null()).status();
        if !there.is_ok_and(|status| status.success()) {
            testkit::skip!("it needs `script` for a terminal (Debian: bsdutils)");
            return None;
        }
        let program = env!("CARGO_BIN_EXE_onbeat");
        let line = format!("exec {program} control --cycle {} jog {arguments}", robot.ipc.path().display());
        let mut command = Command::new("script");
        command.args(["-q", "-e", "-f", "-c", &line, "/dev/null"]).env("TERM", "xterm");
        testkit::end_with_parent(&mut command);
        let shown = robot.ipc.path().with_extension("jog");
        let mut terminal = command
            .stdin(Stdio::piped())
            .stdout(File::create(&shown).expect("a file"))
            .stderr(Stdio::null())
            .spawn()
            .expect("script");
        let keys = terminal.stdin.take().expect("a pipe");
        Some(Self { terminal, keys, shown })
    }

    /// Exit code and output.
    fn finish(self) -> (Option<i32>, String) {
        let Self { mut terminal, keys, shown } = self;
        let code = terminal.wait().expect("its end").code();
        drop(keys);
        (code, String::from_utf8_lossy(&std::fs::read(shown).expect("a file")).into_owned())
    }

    /// Holds a key until the state is so.
    fn hold(&mut self, key: &[u8], robot: &Robot, what: &str, is: impl Fn(&State) -> bool) {
        let (reader, begin) = (robot.ipc.state(), Instant::now());
        while !reader.read().is_ok_and(|state| is(&state)) {
            assert!(begin.elapsed() < Duration::from_secs(60), "not {what}: {:?}", reader.read());
            self.keys.write_all(key).expect("the terminal");
            std::thread::sleep(Duration::from_millis(40));
        }
    }
}

fn at_rest(state: &State) -> bool {
    state.axes.iter().all(|axis| axis.target_velocity == 0.0)
}

// feature(program): `onbeat control move`, `jog`
#[test]
fn a_held_key_drives_a_base_and_its_release_stops_it() {
    let _shared = shared();
    let robot = Robot::run("jog", M4K, &SLOW);
    let Some(mut jog) = Jog::start(&robot, "--speed 25%") else { return };
    jog.hold(b"\x1b[A", &robot, "ahead", |state| state.base.pose[0] > 0.05);
    robot.until("at rest", at_rest);
    jog.hold(b"\x1b[D", &robot, "turned", |state| state.base.pose[2] > 0.05);
    jog.keys.write_all(b"q").expect("the terminal");
    let status = jog.terminal.wait().expect("its end");
    assert!(status.success(), "{status}");
    assert!(at_rest(&robot.ipc.state().read().expect("a state")), "it ends when the base is at rest");
    let Some(mut jog) = Jog::start(&robot, "") else { return };
    assert_eq!(asked(&robot, &["disable"]).code, Some(0));
    let status = jog.terminal.wait().expect("its end");
    assert!(!status.success(), "nothing moves any more");
    robot.interrupt();
}

/// In CSP, with a controller of trajectories: no switch of controllers.
// feature(program): `onbeat control move`, `jog`
#[test]
fn a_jog_of_an_axis_needs_no_controller() {
    let _shared = shared();
    let robot = Robot::run("jog-alone", ARM, &SLOW);
    robot.until("enabled", |state| state.control.enabled && state.axes.iter().all(|it| it.stop == 0));
    let Some(mut jog) = Jog::start(&robot, "wrist_pitch") else { return };
    jog.hold(b"\x1b[C", &robot, "turned on", |state| state.axes[4].position > 0.1);
    jog.hold(b"\x1b[D", &robot, "turned back", |state| state.axes[4].position < 0.05);
    jog.keys.write_all(b"q").expect("the terminal");
    let status = jog.terminal.wait().expect("its end");
    assert!(status.success(), "{status}");
    let state = robot.until("its controller's", |state| state.axes[4].stop == 0);
    assert!(state.axes[4].velocity.abs() < 0.05, "{state:?}");
    let ran = asked(&robot, &["move", "wrist_pitch", "0.0"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    robot.interrupt();
}

// feature(program): `onbeat control move`, `jog`
#[test]
fn a_killed_jog_or_a_closed_terminal_stops_the_motion() {
    let _shared = shared();
    let robot = Robot::run("jog-killed", M4K, &SLOW);
    assert_eq!(asked(&robot, &["switch", "wheels"]).code, Some(0));
    let wheel = robot.ipc.description().axes[0].name.clone();
    for gone in ["killed", "terminal"] {
        let Some(mut jog) = Jog::start(&robot, &wheel) else { return };
        let from = robot.ipc.state().read().expect("a state").axes[0].position;
        jog.hold(b"\x1b[C", &robot, "turned on", |state| state.axes[0].position > from + 0.2);
        if gone == "killed" {
            // `exec` made the program the child of `script`.
            let id = jog.terminal.id();
            let children =
                std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).expect("children");
            assert!(
                Command::new("kill").args(["-KILL", children.trim()]).status().expect("kill").success()
            );
        } else {
            jog.terminal.kill().expect("script");
        }
        let _ = jog.terminal.wait();
        robot.until("at rest", at_rest);
    }
    let _ = robot.end();
}
