//! The robots of `examples/`, moved from another process through their IPCs.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use onbeat::ipc::channel::Channel;
use onbeat::ipc::client::Client;
use onbeat::ipc::command::{self, ToolPose, Twist};
use onbeat::ipc::message::trajectory::{
    self, Abort, AxisTolerances, Begin, GoalTime, Order, Outcome, Point, Report, Tolerance,
};
use onbeat::ipc::message::{Rows, control as requests};
use onbeat::ipc::state::{Refusal, State, TrajectoryStatus};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::{Ran, Running, await_cycles, onbeat, shared};
use motion::{Metres, SerialArm};

/// A run of an example, with its IPC in a separate folder.
pub(crate) struct Robot {
    running: Running,
    pub(crate) ipc: Client,
    folder: PathBuf,
}

impl Robot {
    fn start(example: &str) -> Self {
        let robot = format!("{}/../../examples/{example}.toml", env!("CARGO_MANIFEST_DIR"));
        // An outage would cancel a test's request: two cycles during which a shared machine stalls.
        Self::run(example, &robot, &["--period", "10ms"])
    }

    /// A run of this robot file; `test` names its folder.
    pub(crate) fn run(test: &str, robot: &str, arguments: &[&str]) -> Self {
        let robot = Self::attached(test, robot, arguments);
        robot.until("enabled", |state| state.axes.iter().all(|axis| axis.phase == 2));
        robot
    }

    /// The same with axes that may stay disabled.
    pub(crate) fn attached(test: &str, robot: &str, arguments: &[&str]) -> Self {
        // Tests of one example run in parallel.
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("onbeat-{test}-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let socket = folder.join("robot.sock");
        let mut command = onbeat();
        command.args(["run", robot, "--json", "--ipc", socket.to_str().expect("a path")]).args(arguments);
        let running = Running::start(command);
        await_cycles(running.id(), 1);
        let ipc = Client::open(&socket).expect("an IPC to attach to");
        Self { running, ipc, folder }
    }

    /// Looks until the state is so; a minute at most.
    pub(crate) fn until(&self, what: &str, is: impl Fn(&State) -> bool) -> State {
        let (reader, started) = (self.ipc.state(), Instant::now());
        loop {
            match reader.read() {
                Ok(state) if is(&state) => return state,
                state => assert!(started.elapsed() < Duration::from_secs(60), "not {what}: {state:?}"),
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Stops the whole process for so long.
    pub(crate) fn stand_still(&self, lasts: Duration) {
        let signal = |which| {
            let pid = i32::try_from(self.running.id()).ok().and_then(Pid::from_raw).expect("its number");
            kill_process(pid, which).expect("a signal");
        };
        signal(Signal::STOP);
        std::thread::sleep(lasts);
        signal(Signal::CONT);
    }

    /// Ends the run; what it came to.
    pub(crate) fn interrupt(self) -> serde_json::Value {
        self.end().json()
    }

    /// The same with all it said.
    pub(crate) fn end(self) -> Ran {
        let number = self.running.id().to_string();
        assert!(Command::new("kill").args(["-INT", &number]).status().expect("kill").success());
        let end = self.running.finish();
        let _ = std::fs::remove_dir_all(&self.folder);
        end
    }
}

fn twist(x: f64, y: f64, yaw: f64) -> command::Command {
    let twist = Some(Twist::new(x, y, yaw));
    command::Command { twist, time_to_live_ns: 500_000_000, ..command::Command::default() }
}

/// Asks for a twist every 50 ms until the state is so.
fn drive(robot: &Robot, asked: [f64; 3], is: impl Fn(&State) -> bool) -> State {
    let mut writer = robot.ipc.command().expect("the only client");
    let axes = robot.ipc.description().axes.len();
    let (reader, started) = (robot.ipc.state(), Instant::now());
    loop {
        let [x, y, yaw] = asked;
        writer.send(&command::Command { axes: vec![None; axes], ..twist(x, y, yaw) }).expect("sent");
        match reader.read() {
            Ok(state) if is(&state) => return state,
            state => assert!(started.elapsed() < Duration::from_secs(60), "not yet: {state:?}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Both wheels of the service robot stand; drives in CSV answer with a count or so of noise.
fn stands(state: &State) -> bool {
    state.axes.iter().all(|axis| axis.velocity.abs() < 0.01)
        && state.base.twist.iter().all(|it| it.abs() < 1e-3)
}

#[test]
fn the_service_robot_follows_a_twist_and_stops_without_commands() {
    let _shared = shared();
    let robot = Robot::start("m4k");
    let base = robot.ipc.description().base.clone().expect("a base");
    assert_eq!((base.kind.name(), base.odometry_frame.as_str()), ("differential", "odom"));
    let state = drive(&robot, [0.4, 0.0, 0.5], |state| state.base.pose[2] > 0.5);
    assert!(state.command.accepted > 0 && state.command.refused == 0, "{:?}", state.command);
    // The client and its lease are gone; the last command goes stale.
    let state = robot.until("at rest", stands);
    let [x, y, yaw] = state.base.pose;
    // An arc of 0.8 m to the left, and what the wheels turned: 0.1016 m and 0.23 m.
    let [left, right] = [0, 1].map(|wheel| state.axes[wheel].position * 0.1016);
    assert!((yaw - (right - left) / 0.23).abs() < 1e-3, "{state:?}");
    let chord = 2.0 * ((left + right) / 2.0 / yaw) * (yaw / 2.0).sin();
    assert!((x.hypot(y) - chord).abs() < 0.02 && y > 0.05, "{x} {y}, chord {chord}");
    let ran = robot.end();
    assert!(ran.code == Some(3) && ran.stderr.contains("the command expired"), "{}", ran.stderr);
}

#[test]
fn a_mecanum_base_moves_sideways_and_a_differential_one_refuses() {
    let _shared = shared();
    let omni = Robot::start("omni");
    let state = drive(&omni, [0.0, 0.3, 0.0], |state| state.base.pose[1] > 0.2);
    assert!(state.base.pose[0].abs() < 0.02 && state.base.pose[2].abs() < 0.02, "{:?}", state.base);
    omni.interrupt();
    let robot = Robot::start("m4k");
    let state = drive(&robot, [0.0, 0.3, 0.0], |state| state.command.refused > 0);
    assert!(state.base.pose.iter().all(|it| it.abs() < 1e-3), "{:?}", state.base);
    robot.interrupt();
}

/// The port `trajectory` of an arm.
struct Trajectories(Channel);

impl Trajectories {
    fn send(&self, order: &Order) {
        let mut buffer = [0; trajectory::size(6)];
        let length = order.encode(&mut buffer).expect("room");
        self.0.send_timeout(&buffer[..length], Duration::from_secs(10)).expect("sent");
    }

    /// All six joints to these positions, one after the other this far apart in time.
    fn follow(&self, id: u64, path_position: Tolerance, seconds: f64, rows: &[[f64; 6]]) {
        let axes: Vec<_> = (0..6)
            .map(|axis| AxisTolerances { axis, path_position, ..AxisTolerances::default() })
            .collect();
        let axes = Rows::from_slice(&axes).expect("six");
        let (points, goal_time) = (rows.len() as u32, GoalTime::Within(5_000_000_000));
        self.send(&Order::Begin(Begin { id, points, start_ns: None, goal_time, axes }));
        for (index, row) in (0..).zip(rows) {
            self.send(&Order::Point(Point {
                id,
                index,
                time_from_start_ns: (seconds * 1e9) as u64 * (u64::from(index) + 1),
                positions: Rows::from_slice(row).expect("six"),
                velocities: Rows::new(),
                accelerations: Rows::new(),
            }));
        }
        self.send(&Order::Commit { id });
    }

    fn next(&self) -> Report {
        let mut buffer = [0; trajectory::REPORT_SIZE];
        let received = self.0.recv_timeout(&mut buffer, Duration::from_secs(60)).expect("an IPC");
        Report::decode(&buffer[..received.expect("a report within a minute")]).expect("a report")
    }
}

/// Switches to this controller, once the axes rest.
fn switch(robot: &Robot, controller: u32) {
    let requests = robot.ipc.port(requests::PORT).expect("free");
    let mut buffer = [0; requests::SIZE];
    let asked = requests::Request { id: 9, what: requests::Action::SwitchController(controller) };
    asked.encode(&mut buffer).expect("room");
    // The axes may still be stopping.
    let started = Instant::now();
    let outcome = loop {
        requests.send_timeout(&buffer, Duration::from_secs(10)).expect("sent");
        let mut answer = [0; requests::SIZE];
        requests.recv_timeout(&mut answer, Duration::from_secs(60)).expect("an IPC").expect("an answer");
        let reply = requests::Reply::decode(&answer).expect("a reply");
        if reply.outcome.is_ok() || started.elapsed() > Duration::from_secs(60) {
            break reply.outcome;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(outcome, Ok(()));
    robot.until("switched", |state| u32::from(state.control.active) == controller);
}

#[test]
fn the_arm_follows_cancels_and_aborts_trajectories() {
    let _shared = shared();
    let arm = Robot::start("arm");
    let description = arm.ipc.description();
    assert_eq!(description.axes[2].name, "elbow");
    assert!(description.urdf.as_ref().is_some_and(|urdf| urdf.contains("joint name=\"elbow\"")));
    let trajectories = Trajectories(arm.ipc.port(trajectory::PORT).expect("free"));
    let there = [0.5, -0.4, 0.3, 0.2, -0.1, 0.6];
    // A machine that loses frames for a while loses way: only the goal has to be reached.
    trajectories.follow(1, Tolerance::Unlimited, 0.5, &[[0.2; 6], there]);
    let reports = [1, 2].map(|_| trajectories.next());
    let outcomes = reports.map(|report| report.outcome);
    let state = arm.ipc.state().read().expect("a state");
    let axis = reports[1].axis.and_then(|axis| state.axes.get(axis as usize));
    assert_eq!(outcomes, [Outcome::Accepted, Outcome::Succeeded], "{axis:?} {:?}", state.timing);
    let state = arm.until("told", |state| state.control.trajectory_status == TrajectoryStatus::Succeeded);
    for (axis, position) in state.axes.iter().zip(there) {
        assert!((axis.position - position).abs() < 0.02, "{} {position}", axis.position);
    }

    trajectories.follow(2, Tolerance::Unlimited, 20.0, &[[2.0; 6]]);
    assert_eq!(trajectories.next().outcome, Outcome::Accepted);
    arm.until("on its way", |state| state.control.trajectory_elapsed_ns > 200_000_000);
    trajectories.send(&Order::Cancel { id: 2 });
    assert_eq!(trajectories.next().outcome, Outcome::Canceled);

    trajectories.follow(3, Tolerance::Within(1e-7), 2.0, &[[0.0; 6]]);
    assert_eq!(trajectories.next().outcome, Outcome::Accepted);
    let report = trajectories.next();
    assert_eq!(report.outcome, Outcome::Aborted(Abort::PathTolerance), "{report}");

    trajectories.follow(4, Tolerance::Unlimited, 2.0, &[[0.0, 0.0, 7.0, 0.0, 0.0, 0.0]]);
    let report = trajectories.next();
    assert_eq!((report.axis, report.allowed), (Some(2), 2.9), "{report}");
    assert_eq!(
        report.to_string(),
        "rejected: a position behind the limits of its axis, axis 2, point 0, found 7, allowed 2.9"
    );

    switch(&arm, 1);
    arm.interrupt();
}

// feature(axes): `cartesian`: a pose sent through the IPC moves the arm's tool there
#[test]
fn a_reachable_pose_moves_the_arm_and_another_is_refused() {
    let _shared = shared();
    let arm = Robot::start("arm");
    let description = arm.ipc.description();
    let links = description.arm.as_ref().expect("an arm whose tool follows poses");
    assert_eq!((links.base.as_str(), links.tool.as_str()), ("base", "tool"));
    let urdf = description.urdf.as_deref().expect("a URDF");
    let chain = SerialArm::from_urdf(urdf, Some(&links.base), Some(&links.tool)).expect("an arm");
    let place = |state: &State| -> [f64; 3] {
        let positions: Vec<f64> = state.axes.iter().map(|axis| axis.position).collect();
        chain.forward(&positions).position.to_array()
    };
    let far = |at: [f64; 3], to: [f64; 3]| {
        at.iter().zip(to).map(|(at, to)| (at - to).powi(2)).sum::<f64>().sqrt()
    };
    switch(&arm, 2);
    let begin = place(&arm.ipc.state().read().expect("a state"));
    let mut writer = arm.ipc.command().expect("the only client");
    let mut go = |position: [f64; 3], is: &dyn Fn(&State) -> bool| {
        let position = position.map(Metres);
        let pose = Some(ToolPose { position, orientation: [0.0, 0.0, 0.0, 1.0] });
        let asked = command::Command { pose, ..twist(0.0, 0.0, 0.0) };
        let asked = command::Command { twist: None, axes: vec![None; 6], ..asked };
        let started = Instant::now();
        loop {
            writer.send(&asked).expect("sent");
            match arm.ipc.state().read() {
                Ok(state) if is(&state) => return state,
                state => assert!(started.elapsed() < Duration::from_secs(60), "not yet: {state:?}"),
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    // Stretched along x, 0.67 m high: within its plane.
    let there = [begin[0] - 0.08, begin[1], begin[2] - 0.2];
    go(there, &|state| far(place(state), there) < 5e-3);
    let state = go([3.0, 0.0, 0.0], &|state| state.command.refused > 0);
    assert_eq!(state.command.last_refusal, Refusal::OutOfReach as u8);
    assert!(far(place(&state), there) < 0.01, "{:?}", place(&state));
    arm.interrupt();
}

// feature(program): two axes on one SubDevice: after a fault of one the other continues; the report names axis and SubDevice
#[test]
fn a_fault_of_one_of_two_axes_leaves_the_other_moving() {
    let _shared = shared();
    let table = Robot::start("xy-table");
    beside(&table, &["sdo", "write", "left", "0x2f01:2", "0x2310", "--cycle", "SOCKET"]);
    let phases = |state: &State| state.axes.iter().map(|axis| axis.phase).collect::<Vec<_>>();
    let state = table.until("in fault", |state| state.axes[1].phase == 0);
    assert_eq!(phases(&state), [2, 0, 2, 2]);
    let history = beside(&table, &["sdo", "read", "left", "0x1003:1", "--cycle", "SOCKET"]);
    let words = "74512 0x00012310, 0x2310: continuous overcurrent on the motor side";
    assert_eq!(history.trim(), words);
    let end = table.end();
    for told in [
        "axis \"left y\" at SubDevice 0 \"left\" is in fault: 0x2310: ",
        "axis \"left y\" ended in Fault: 0x2310: ",
    ] {
        assert!(end.stderr.contains(told), "{told}: {}", end.stderr);
    }
    assert!(!end.stderr.contains("\"left x\""), "{}", end.stderr);
}

/// Standard output of a command during a run; the run's socket replaces SOCKET.
fn beside(table: &Robot, arguments: &[&str]) -> String {
    let socket = table.folder.join("robot.sock");
    let socket = socket.to_str().expect("a path");
    let mut command = onbeat();
    command.args(arguments.iter().map(|&it| if it == "SOCKET" { socket } else { it }));
    let ran = crate::common::finished(command);
    assert_eq!(ran.code, Some(0), "{arguments:?}: {}", ran.stderr);
    ran.stdout
}

// feature(program): several axes of a SubDevice and its touch probe in `top` and `io`
#[test]
fn a_touch_probe_is_armed_by_a_client_and_reports_its_position() {
    let _shared = shared();
    let table = Robot::start("xy-table");
    // Its shaft passes the touch, from 0.2 rad on, once in two seconds.
    beside(&table, &["io", "set", "left probe", "17", "--for", "5s", "--cycle", "SOCKET"]);
    let position = beside(&table, &["io", "get", "left probe position", "--cycle", "SOCKET"]);
    let value: f64 = position.split_whitespace().next().and_then(|it| it.parse().ok()).expect("a number");
    assert!((value - 0.2).abs() < 1e-3 && position.contains("rad"), "{position}");
    let top = beside(&table, &["top", "--once", "SOCKET"]);
    for axis in ["left x", "left y", "right 1", "right 2"] {
        assert!(top.contains(axis), "{axis}: {top}");
    }
    let listed = beside(&table, &["io", "list", "--cycle", "SOCKET"]);
    let line = |name: &str| listed.lines().find(|line| line.contains(name)).expect("a line").to_owned();
    assert!(line("left.controlword y").contains("left y"), "{listed}");
    assert!(
        line("left outputs").contains("outside") && !line("left outputs").contains("left x"),
        "{listed}"
    );
    let end = table.interrupt();
    assert_eq!(end["axes"].as_array().map(Vec::len), Some(4), "{end}");
}
