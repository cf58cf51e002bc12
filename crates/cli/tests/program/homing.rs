//! A drive that homes by itself, commanded through the IPC of a running program.

use std::io::Write;
use std::time::{Duration, Instant};

use onbeat::ipc::client::Client;
use onbeat::ipc::message::control::{Action, Refusal, Reply, Request, SIZE};
use onbeat::ipc::reference::{Given, Purpose};
use onbeat::ipc::state::{State, StopReason};

use crate::common::{Running, await_cycles, file, onbeat, shared, until};

/// One drive, 3 rad before the limit switch and 6 rad before the index pulse that its method looks
/// for.
const ROBOT: &str = r#"
name = "homing"

[cycle]
period = "1ms"
profile = "none"
outage_time = "250ms"
after_outage = "resume"

[[bus.sub_device]]
name = "drive"
simulate = { kind = "servo_drive", limit_switches = [-3.0, 3.0] }

[bus.sub_device.pdos]
outputs = [{ index = 0x1600, entries = [
    { index = 0x6040, bits = 16 },
    { index = 0x607A, bits = 32 },
    { index = 0x6060, bits = 8 },
] }]
inputs = [{ index = 0x1A00, entries = [
    { index = 0x6041, bits = 16 },
    { index = 0x6064, bits = 32 },
    { index = 0x606C, bits = 32 },
    { index = 0x6061, bits = 8 },
] }]

[[axis]]
name = "slide"
sub_device = "drive"
mode = "csp"
counts_per_revolution = 1_048_576
rated_torque = 2.4
limits = { velocity = 20.0, acceleration = 200.0, torque = 4.8 }
homing = { method = 17, position = 1.25, switch_velocity = 6.0, zero_velocity = 0.5 }
"#;

/// A robot that runs, its port `control`, and the state it shows.
struct Robot {
    running: Running,
    ipc: Client,
    requests: u64,
}

/// Name of the simulated bus of a robot, for faults.
fn bus(name: &str) -> String {
    format!("{name}-{}", std::process::id())
}

impl Robot {
    fn start(name: &str, text: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("onbeat-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let socket = folder.join("robot.sock");
        let path = file(&format!("{name}.toml"), text);
        let mut command = onbeat();
        command.arg("run").arg(path).args(["--for", "60s", "--json", "--ipc"]).arg(&socket);
        command.args(["--control", &bus(name)]);
        let running = Running::start(command);
        await_cycles(running.id(), 1);
        let ipc = Client::open(&socket).expect("an IPC");
        let robot = Self { running, ipc, requests: 0 };
        robot.until("enabled", |state| state.axes[0].drive_state == 5 && state.bus.phase == 7);
        robot
    }

    /// Looks until the state is so.
    fn until(&self, what: &str, is: impl Fn(&State) -> bool) -> State {
        until(&self.ipc, what, is)
    }

    /// Repeats the request while it is not possible: a host stall is an outage, and the axis stops
    /// first.
    fn ask_in_time(&mut self, what: Action) -> Result<(), Refusal> {
        let started = Instant::now();
        loop {
            match self.ask(what) {
                Err(Refusal::NotPossible | Refusal::Held)
                    if started.elapsed() < Duration::from_secs(20) =>
                {
                    std::thread::sleep(Duration::from_millis(20));
                }
                outcome => return outcome,
            }
        }
    }

    /// Outcome of this.
    fn ask(&mut self, what: Action) -> Result<(), Refusal> {
        self.requests += 1;
        let port = self.ipc.port("control").expect("the port");
        let mut buffer = [0; SIZE];
        let length = Request { id: self.requests, what }.encode(&mut buffer).expect("room");
        port.send_timeout(&buffer[..length], Duration::from_secs(40)).expect("room in the port");
        let received = port.recv_timeout(&mut buffer, Duration::from_secs(40)).expect("a port");
        let reply = Reply::decode(&buffer[..received.expect("a reply")]).expect("a reply");
        assert_eq!(reply.id, self.requests);
        reply.outcome
    }

    fn interrupt(self) -> serde_json::Value {
        let number = self.running.id().to_string();
        let kill = std::process::Command::new("kill").args(["-INT", &number]).status();
        assert!(kill.expect("kill").success());
        self.running.finish().json()
    }

    /// The same for a run that ends with its axis stopped.
    fn interrupt_stopped(self) -> String {
        let number = self.running.id().to_string();
        let kill = std::process::Command::new("kill").args(["-INT", &number]).status();
        assert!(kill.expect("kill").success());
        let ran = self.running.finish();
        assert_eq!(ran.code, Some(3), "{}", ran.stderr);
        ran.stderr
    }
}

// feature(axes): homing by the drive (CiA 402 mode 6), without a step afterwards; errors, time-outs, cancelled
#[test]
fn an_axis_is_homed_through_the_port() {
    let _shared = shared();
    let mut robot = Robot::start("homing", ROBOT);
    let before = robot.until("any", |_| true).axes[0];
    assert!(!before.homed && before.position.abs() < 0.01, "{before:?}");
    assert_eq!(robot.ask_in_time(Action::Home(0)), Ok(()));
    let state = robot.until("homed", |state| state.axes[0].homed);
    // Off the switch at 0.5 rad/s, and to rest at 200 rad/s^2.
    let at = state.axes[0];
    assert!((at.position - 1.25).abs() < 0.01, "{at:?}");
    assert_eq!((at.stop, at.drive_state), (0, 5));
    let later = robot.until("later", |later| later.cycle > state.cycle + 200).axes[0];
    assert!((later.position - at.position).abs() < 1e-3, "{at:?} {later:?}");
    // Once more: it knows the way.
    assert_eq!(robot.ask_in_time(Action::Home(0)), Ok(()));
    let again = robot.until("homed", |state| state.axes[0].homed).axes[0];
    assert!((again.position - 1.25).abs() < 0.01, "{again:?}");
    // A disabled drive does not home its axis.
    assert_eq!(robot.ask(Action::Disable), Ok(()));
    assert_eq!(robot.ask(Action::Home(0)), Err(Refusal::NotEnabled));
    robot.interrupt();
}

#[test]
fn a_failed_homing_is_reported_until_reset() {
    let _shared = shared();
    // The switch at 3 rad is before the index pulse.
    let text = ROBOT.replace("method = 17, ", "method = 34, ");
    let mut robot = Robot::start("homing-error", &text);
    assert_eq!(robot.ask(Action::Home(0)), Err(Refusal::Fault));
    let state = robot.until("stopped", |state| state.axes[0].stop == StopReason::HomingError as u8);
    assert!(!state.axes[0].homed);
    assert_eq!(robot.ask(Action::ResetFaults), Ok(()));
    robot.until("going on", |state| state.axes[0].stop == 0);
    robot.interrupt();

    let text = ROBOT.replace("switch_velocity = 6.0", "switch_velocity = 0.1, time_out = \"300ms\"");
    let text = text.replace("zero_velocity = 0.5", "zero_velocity = 0.1");
    let mut robot = Robot::start("homing-late", &text);
    assert_eq!(robot.ask(Action::Home(0)), Err(Refusal::TimedOut));
    robot.until("stopped", |state| state.axes[0].stop == StopReason::HomingTimedOut as u8);
    robot.interrupt_stopped();
}

#[test]
fn ending_the_home_command_stops_the_axis() {
    let _shared = shared();
    let text = ROBOT.replace("[-3.0, 3.0]", "[-3000.0, 3.0]");
    let robot = Robot::start("homing-off", &text);
    let mut home = onbeat();
    home.args(["control", "home", "slide", "--cycle"]).arg(robot.ipc.path());
    let home = Running::start(home);
    robot.until("searching", |state| state.axes[0].velocity < -5.0);
    let kill = std::process::Command::new("kill").args(["-INT", &home.id().to_string()]).status();
    assert!(kill.expect("kill").success());
    let ran = home.finish();
    assert!(
        ran.code == Some(1) && ran.stderr.contains("cancelled: the axes are at standstill"),
        "{}",
        ran.stderr
    );
    let state = robot.until("at rest", |state| state.axes[0].velocity.abs() < 0.01);
    assert!(!state.axes[0].homed && state.axes[0].stop == 0, "{state:?}");
    robot.interrupt();
}

#[test]
fn stop_takes_the_axis_back_from_its_drive() {
    let _shared = shared();
    let text = ROBOT.replace("[-3.0, 3.0]", "[-3000.0, 3.0]");
    let mut robot = Robot::start("homing-stop", &text);
    let port = robot.ipc.port("control").expect("the port");
    let mut buffer = [0; SIZE];
    let length = Request { id: 77, what: Action::Home(0) }.encode(&mut buffer).expect("room");
    port.send_timeout(&buffer[..length], Duration::from_secs(40)).expect("room in the port");
    robot.until("searching", |state| state.axes[0].velocity < -5.0);
    let length = Request { id: 78, what: Action::Stop }.encode(&mut buffer).expect("room");
    port.send_timeout(&buffer[..length], Duration::from_secs(40)).expect("room in the port");
    let mut replies = Vec::new();
    while replies.len() < 2 {
        let received = port.recv_timeout(&mut buffer, Duration::from_secs(40)).expect("a port");
        let reply = Reply::decode(&buffer[..received.expect("a reply")]).expect("a reply");
        replies.push((reply.id, reply.outcome));
    }
    assert_eq!(replies, [(77, Err(Refusal::Replaced)), (78, Ok(()))]);
    let rest = robot.until("at rest", |state| state.axes[0].velocity.abs() < 0.05).axes[0];
    assert!(!rest.homed && rest.drive_state == 5 && rest.stop == 0, "{rest:?}");
    drop(port);
    assert_eq!(robot.ask(Action::Disable), Ok(()));
    robot.interrupt();
}

/// One drive with an encoder that keeps its position, and no homing.
fn measured() -> String {
    let limits = "limits = { position = [-2.0, 2.0], velocity = 20.0, acceleration = 200.0, torque = 4.8 }\n\
                  encoder = \"multi_turn\"\nencoder_range = 4096";
    let plain = "limits = { velocity = 20.0, acceleration = 200.0, torque = 4.8 }";
    let homing = ROBOT.lines().find(|line| line.starts_with("homing = ")).expect("homing");
    ROBOT.replace(plain, limits).replace(homing, "")
}

/// Output of `onbeat control` at this robot.
fn control(robot: &Robot, words: &[&str]) -> (Option<i32>, String) {
    let mut command = onbeat();
    command.arg("control").args(words).arg("--cycle").arg(robot.ipc.path());
    let ran = command.stdin(std::process::Stdio::null()).output().expect("the program runs");
    let text = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
    (ran.status.code(), text)
}

/// Output of `onbeat control accept-position slide` on a terminal, where a person types the name.
fn accept(robot: &Robot, position: f64) -> (Option<i32>, String) {
    let program = onbeat().get_program().to_string_lossy().into_owned();
    let cycle = robot.ipc.path().display();
    let words = format!("{program} control accept-position slide --cycle {cycle} -- {position}");
    let mut command = std::process::Command::new("script");
    command.args(["--quiet", "--return", "--command", &words, "/dev/null"]);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut script = command.spawn().expect("script, of the package bsdutils");
    script.stdin.as_mut().expect("piped").write_all(b"slide\n").expect("it reads");
    let ran = script.wait_with_output().expect("it ends");
    (ran.status.code(), String::from_utf8_lossy(&ran.stdout).into_owned())
}

// feature(axes): accept-position makes an unreferenced axis ready; set-position is for axes without homing
#[test]
fn a_measured_position_makes_an_unreferenced_axis_ready() {
    let _shared = shared();
    let mut robot = Robot::start("measured", &measured());
    let refused = |robot: &Robot, position, why: &str| {
        let (code, text) = accept(robot, position);
        assert!(code == Some(1) && text.contains(why), "{text}");
    };
    let (code, text) = control(&robot, &["home", "slide"]);
    assert!(code == Some(1) && text.contains("its absolute encoder gives its position"), "{text}");
    assert!(!text.contains("set-position"), "{text}");
    let mut fault = onbeat();
    fault.args(["fault", "--of", &bus("measured"), "drive", "fault", "drive", "0x7305"]);
    assert_eq!(fault.status().unwrap().code(), Some(0));
    let unreferenced = StopReason::UnreferencedSensor as u8;
    robot.until("in fault", |state| state.axes[0].drive_state == 8);
    assert_eq!(robot.ask(Action::Disable), Ok(()));
    // The fault ends, the stop does not.
    assert_eq!(robot.ask(Action::ResetFaults), Err(Refusal::Held));
    robot.until("disabled and held", |state| {
        state.axes[0].drive_state == 2 && state.axes[0].stop == unreferenced
    });
    // A start of its drive is for a homing or a jog, and is said.
    let (code, text) = control(&robot, &["enable"]);
    let first = "type `onbeat control disable`, then measure its position";
    assert!(code == Some(1) && text.contains("enabled and held: slide: "), "{text}");
    assert!(text.contains(first), "{text}");
    robot.until("enabled", |state| state.axes[0].drive_state == 5);
    assert_eq!(robot.ask(Action::Disable), Ok(()));
    // A refused reset leaves it off, whatever was enabled before.
    let (code, text) = control(&robot, &["reset"]);
    assert!(code == Some(1) && text.contains("not reset: slide: "), "{text}");
    let here = robot.until("unreferenced", |state| state.axes[0].fresh).axes[0].position;
    refused(&robot, f64::NAN, "no finite number");
    let (_, text) = accept(&robot, f64::NAN);
    assert!(!text.contains("Type the name"), "{text}");
    refused(&robot, here + 0.5, "differ by more than position_tolerance");
    let (code, text) = control(&robot, &["set-position", "slide", "0.5"]);
    assert!(code == Some(1) && text.contains("it is unreferenced; home it on a switch"), "{text}");
    let (code, text) = control(&robot, &["accept-position", "slide", "0.0"]);
    assert!(code == Some(1) && text.contains("accept-position needs a terminal"), "{text}");
    // No program without a terminal, whatever it sends.
    if std::fs::File::open("/dev/tty").is_err() {
        let given = Given { axis: 0, position: here, purpose: Purpose::Accept };
        let text = robot.ipc.give_position(given).unwrap_err().to_string();
        assert!(text.contains("only from a program on a terminal"), "{text}");
    }
    let (code, text) = accept(&robot, here + 0.01);
    assert!(code == Some(0) && text.contains("rad accepted"), "{text}");
    let (code, text) = control(&robot, &["enable"]);
    let known = "its position is known again; type `onbeat control reset`";
    assert!(code == Some(1) && text.contains(known), "{text}");
    assert_eq!(robot.ask(Action::Disable), Ok(()));
    assert_eq!(robot.ask(Action::ResetFaults), Ok(()));
    assert_eq!(robot.ask(Action::Enable), Ok(()));
    let ready = robot.until("ready", |state| state.axes[0].drive_state == 5).axes[0];
    assert!(ready.homed && ready.stop == 0, "{ready:?}");
    refused(&robot, here, "its drive is enabled");
    assert_eq!(robot.ask(Action::Disable), Ok(()));
    refused(&robot, here, "nothing to accept");
    let (code, text) = control(&robot, &["set-position", "slide", "0.5"]);
    assert!(code == Some(1) && text.contains("its absolute encoder or its homing method"), "{text}");
    robot.interrupt();
}

// feature(program): refusals name what the robot file needs if nothing makes an unreferenced axis ready
#[test]
fn each_refusal_says_that_an_axis_has_no_way_back() {
    let _shared = shared();
    let text = measured().replace("encoder = \"multi_turn\"\nencoder_range = 4096", "");
    let text = format!("{text}\n[controller]\nkind = \"joint_trajectory\"\n");
    let mut robot = Robot::start("no-way-back", &text);
    let mut fault = onbeat();
    fault.args(["fault", "--of", &bus("no-way-back"), "drive", "fault", "drive", "0x7305"]);
    assert_eq!(fault.status().unwrap().code(), Some(0));
    robot.until("in fault", |state| state.axes[0].drive_state == 8);
    assert_eq!(robot.ask(Action::ResetFaults), Err(Refusal::Held));
    let needs = "add `homing` with a switch, or `encoder` and `encoder_range`, to the robot file";
    let until = "only a new start of `onbeat run` ends this";
    let names = |(code, text): (Option<i32>, String)| {
        assert!(code == Some(1) && text.contains(needs) && text.contains(until), "{text}");
        assert!(!text.contains("accept-position") && !text.contains("set-position"), "{text}");
    };
    names(control(&robot, &["enable"]));
    names(control(&robot, &["home", "slide"]));
    let (code, text) = control(&robot, &["move", "slide", "0.5"]);
    let reset = text.contains("onbeat control reset");
    assert!(code == Some(1) && text.contains(needs) && !reset, "{text}");
    assert_eq!(robot.ask(Action::Disable), Ok(()));
    let here = robot.until("disabled", |it| it.axes[0].drive_state == 2).axes[0].position;
    names(control(&robot, &["set-position", "slide", "0.5"]));
    let (code, text) = accept(&robot, here);
    assert!(code == Some(1) && text.contains(needs) && text.contains(until), "{text}");
    let stop = robot.interrupt_stopped();
    assert!(stop.contains(needs) && !stop.contains("accept-position"), "the end of the run: {stop}");
}

// feature(axes): accept-position makes an unreferenced axis ready; set-position is for axes without homing
#[test]
fn set_position_prints_the_old_and_the_new_value() {
    let _shared = shared();
    let homing = ROBOT.lines().find(|line| line.starts_with("homing = ")).unwrap();
    let mut robot = Robot::start("set-position", &ROBOT.replace(homing, ""));
    let (code, text) = control(&robot, &["set-position", "slide", "0.5"]);
    assert!(code == Some(1) && text.contains("its drive is enabled"), "{text}");
    assert_eq!(robot.ask(Action::Disable), Ok(()));
    let (code, text) = control(&robot, &["set-position", "slide", "1e300"]);
    assert!(code == Some(1) && text.contains("farther than 1e8 rad"), "{text}");
    let (code, text) = control(&robot, &["set-position", "slide", "0.5"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("rad before, 0.5 rad now; not homed"), "{text}");
    let there = robot.until("there", |state| (state.axes[0].position - 0.5).abs() < 1e-3).axes[0];
    assert!(!there.homed && there.stop == 0, "{there:?}");
    robot.interrupt();
}
