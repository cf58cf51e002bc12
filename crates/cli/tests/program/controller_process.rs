//! A controller in a separate process, from the user's point of view.
//!
//! A controller process that means harm, through the program: what the drives were sent is in the
//! recording.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use ipc::client::Client;
use ipc::command::AxisTarget;
use ipc::controller::{Controller, DriveRequest};
use ipc::state::{BringUpPhase, StopReason};
use ipc::units::{Radians, RadiansPerSecond};
use types::CyclicMode;

use crate::common::{Ran, Running, alone, file, finished, folder, onbeat, run_alone, until};

fn socket(name: &str) -> PathBuf {
    std::env::temp_dir()
        .join(format!("onbeat-controller-{}", std::process::id()))
        .join(format!("{name}.sock"))
}

fn start(robot: &str, ipc: &Path, rest: &[&str]) -> Running {
    let mut command = onbeat();
    command.args(["run", robot, "--controller", "external", "--ipc"]).arg(ipc).args(rest);
    Running::start(command)
}

/// Turns the axes, each in its mode, until the cycle has ended.
fn control(ipc: &Path) {
    let deadline = Instant::now() + Duration::from_secs(30);
    let ipc = loop {
        match Client::open(ipc) {
            Ok(ipc) => break ipc,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        thread::sleep(Duration::from_millis(5));
    };
    let modes: Vec<CyclicMode> = ipc.description().axes.iter().map(|axis| axis.mode.cyclic()).collect();
    let mut controller = ipc.controller().expect("the role");
    let mut positions = vec![0.0; modes.len()];
    while let Some(turn) = controller.wait() {
        let moves = !turn.request.stopping;
        let axes = turn.request.axes.iter().zip(&mut turn.answer.axes);
        for ((axis, answer), (position, mode)) in axes.zip(positions.iter_mut().zip(&modes)) {
            *position =
                if axis.phase != 2 { axis.target_position } else { *position + f64::from(moves) * 1e-4 };
            answer.request = Some(DriveRequest::Enable);
            let velocity = f64::from(moves) * 0.1;
            let position = AxisTarget::Position(Radians(*position));
            answer.target = Some(if *mode == CyclicMode::Position {
                position
            } else {
                AxisTarget::Velocity(RadiansPerSecond(velocity))
            });
        }
        turn.send();
    }
}

// feature(ipc): `run --controller external`, `kind = "external"`
#[test]
fn a_controller_process_moves_axes_and_is_reported() {
    let _alone = alone();
    for json in [true, false] {
        let ipc = socket("moves");
        let rest: &[&str] = if json { &["--cycles", "1500", "--json"] } else { &["--cycles", "700"] };
        let program = start("examples/six-axis.toml", &ipc, rest);
        let process = thread::spawn(move || control(&ipc));
        let ran = program.finish();
        process.join().expect("the controller");
        if !json {
            assert!(ran.stdout.contains("controller process      "), "{}{}", ran.stdout, ran.stderr);
            continue;
        }
        let end = ran.json();
        assert!(end["controller"]["answered"].as_u64() > Some(1000), "{end}");
        assert!(end["controller"]["response_ns"]["mean"].as_u64() > Some(0), "{end}");
        // 0.1 rad/s for more than a second, however many answers came late.
        let position = |axis: usize| end["axes"][axis]["position"].as_f64().expect("a position");
        assert!((0..6).all(|axis| position(axis) > 0.05), "{end}");
    }
}

// feature(ipc): `run --controller external`, `kind = "external"`
#[test]
fn without_a_process_the_axes_stay_disabled_and_the_run_is_well() {
    let ran = run_alone(&[
        "run",
        "examples/six-axis.toml",
        "--controller",
        "external",
        "--cycles",
        "300",
        "--json",
        "--ipc",
        socket("nobody").to_str().expect("UTF-8"),
    ]);
    let end = ran.json();
    assert_eq!(end["controller"]["answered"], 0);
    assert_eq!(end["controller"]["late"], 0, "nobody is waited for");
    assert_eq!(end["axes"][0]["state"], "Switch on disabled");
}

// feature(ipc): `run --controller external`, `kind = "external"`
#[test]
fn a_killed_process_stops_the_axes_and_the_bus_stays_in_op() {
    let _alone = alone();
    let text = include_str!("../../../../examples/six-axis.toml");
    let from = text.find("[controller]").expect("a controller");
    let external = "[controller]\nkind = \"external\"\ndeadline = \"600us\"\nmax_late = 20\n";
    let path = file("external.toml", &format!("{}{external}", &text[..from]));
    let ipc = socket("goes");
    let mut command = onbeat();
    command.arg("run").arg(&path).arg("--ipc").arg(&ipc).args(["--cycles", "1500", "--json"]);
    let program = Running::start(command);
    let leaving = ipc.clone();
    let process = thread::spawn(move || {
        let deadline = Instant::now() + Duration::from_secs(30);
        let ipc = loop {
            if let Ok(ipc) = Client::open(&leaving) {
                break ipc;
            }
            assert!(Instant::now() < deadline);
            thread::sleep(Duration::from_millis(5));
        };
        let mut controller = ipc.controller().expect("the role");
        let mut enabled = 0;
        while let Some(turn) = controller.wait() {
            enabled += usize::from(turn.request.axes[0].phase == 2);
            if enabled == 50 {
                return;
            }
            for (axis, answer) in turn.request.axes.iter().zip(&mut turn.answer.axes).take(4) {
                answer.request = Some(DriveRequest::Enable);
                answer.target = Some(AxisTarget::Position(Radians(axis.target_position)));
            }
            turn.send();
        }
    });
    let ran = program.finish();
    process.join().expect("the controller");
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(ran.stderr.contains("the controller process ended"), "{}", ran.stderr);
    let end: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert!(end["controller"]["stops"].as_u64() >= Some(1), "{end}");
    assert!(end["axes"][0]["stop"].as_str().is_some_and(|stop| stop.contains("stale")), "{end}");
    assert_eq!(end["sub_devices"][0]["state"], "Op");
}

/// Answers to a cycle, with the first four axes enabled at their places, for this many requests of
/// an enabled axis.
fn answer_in_place(controller: &mut Controller, enabled: usize) {
    let mut seen = 0;
    while seen < enabled {
        let turn = controller.wait().expect("a request");
        seen += usize::from(turn.request.axes[0].phase == 2);
        for (axis, answer) in turn.request.axes.iter().zip(&mut turn.answer.axes).take(4) {
            answer.request = Some(DriveRequest::Enable);
            answer.target = Some(AxisTarget::Position(Radians(axis.target_position)));
        }
        turn.send();
    }
}

// feature(program): enable and reset with no, a new and a silent controller process say what is missing
#[test]
fn a_new_process_attaches_and_enables_after_the_last_died() {
    let _alone = alone();
    let text = include_str!("../../../../examples/six-axis.toml");
    let from = text.find("[controller]").expect("a controller");
    let external = "[controller]\nkind = \"external\"\ndeadline = \"600us\"\nmax_late = 20\n";
    let path = file("next-process.toml", &format!("{}{external}", &text[..from]));
    let ipc = socket("next");
    let mut command = onbeat();
    command.arg("run").arg(&path).arg("--ipc").arg(&ipc).args(["--for", "10min"]);
    let mut program = Running::start(command);
    let client = attached(&ipc);
    until(&client, "the bus in Op", |it| it.bus.phase == BringUpPhase::Op as u8);
    let ask = |what: &str| {
        let mut control = onbeat();
        control.args(["control", what, "--cycle"]).arg(&ipc);
        finished(control)
    };
    let missing = "no controller process is attached; start it, then `onbeat control enable`";
    let enable = ask("enable");
    // Lines of progress may come first.
    let last = |ran: &Ran| ran.stderr.lines().last().unwrap_or_default().to_owned();
    assert_eq!((enable.code, last(&enable)), (Some(1), format!("onbeat: not enabled: {missing}")));
    let reset = ask("reset");
    assert!(reset.code == Some(0) && reset.stderr.contains(missing), "{}", reset.stderr);
    let mut controller = client.controller().expect("the role");
    // What was refused needs another request.
    let waits = "the controller process has not answered yet";
    let enable = ask("enable");
    assert!(enable.code == Some(0) && enable.stderr.contains(waits), "{}", enable.stderr);
    answer_in_place(&mut controller, 50);
    drop(controller);
    until(&client, "the stop without a process", |it| it.axes[0].stop == StopReason::Stale as u8);
    let (enable, reset) = (ask("enable"), ask("reset"));
    assert!(enable.code == Some(1) && last(&enable).ends_with(missing), "{}", enable.stderr);
    let remedy = "start the controller process again, or look at its messages";
    assert!(reset.code == Some(1) && reset.stderr.contains(remedy), "{}", reset.stderr);
    // The next process enables before its first answer.
    let mut controller = client.controller().expect("the role");
    for what in ["reset", "enable"] {
        let asked = ask(what);
        assert!(asked.code == Some(0) && asked.stderr.contains(waits), "{what}: {}", asked.stderr);
    }
    answer_in_place(&mut controller, 50);
    // It is attached and silent.
    until(&client, "the stop by a silent process", |it| it.axes[0].stop == StopReason::Stale as u8);
    let enable = ask("enable");
    assert!(enable.code == Some(1) && enable.stderr.contains(remedy), "{}", enable.stderr);
    program.kill();
}

// feature(ipc): the first refused answer of each reason is reported while the run continues
#[test]
fn wrong_answers_of_a_process_are_reported_once() {
    let _alone = alone();
    let ipc = socket("wrong");
    let program = start("examples/six-axis.toml", &ipc, &["--cycles", "1500"]);
    let process = thread::spawn(move || {
        let deadline = Instant::now() + Duration::from_secs(30);
        let ipc = loop {
            if let Ok(ipc) = Client::open(&ipc) {
                break ipc;
            }
            assert!(Instant::now() < deadline);
            thread::sleep(Duration::from_millis(5));
        };
        let mut controller = ipc.controller().expect("the role");
        while let Some(turn) = controller.wait() {
            // Positions for all of them: the last two are in csv.
            for (axis, answer) in turn.request.axes.iter().zip(&mut turn.answer.axes) {
                answer.request = Some(DriveRequest::Enable);
                answer.target = Some(AxisTarget::Position(Radians(axis.target_position)));
            }
            turn.send();
        }
    });
    let ran = program.finish();
    process.join().expect("the controller");
    let told = "an answer of the controller process is refused: a set-point that the axis's mode does not follow, or for an axis of \
                another controller: axis \"axis-5\" is in csv, in which it takes a velocity; its axes stop";
    assert_eq!(ran.stderr.matches(told).count(), 1, "{}", ran.stderr);
}

#[test]
fn what_cannot_be_is_one_sentence() {
    let ran = run_alone(&["run", "examples/six-axis.toml", "--controller", "external", "--no-ipc"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    let text = include_str!("../../../../examples/six-axis.toml");
    let from = text.find("[controller]").expect("a controller");
    let path =
        file("external-no-ipc.toml", &format!("{}[controller]\nkind = \"external\"\n", &text[..from]));
    let ran = run_alone(&["run", path.to_str().expect("UTF-8"), "--no-ipc"]);
    assert_eq!(
        ran.stderr.lines().last(),
        Some(
            "onbeat: controller \"external\": expected an IPC for its process, found none: leave \
             out --no-ipc and --time fast, or see why no IPC is open"
        ),
        "{}",
        ran.stderr
    );
}

const COUNTS: f64 = 1_048_576.0;

const POSITION: f64 = 1.2;

const VELOCITY: f64 = 4.0;

const ACCELERATION: f64 = 20.0;

/// Answers of one kind in a row, and resets of what they stopped at the begin of the next kind.
const KIND: u64 = 500;

const RESETS: u64 = 20;

const CYCLES: u64 = 8 * KIND;

/// The built-in robot with limits: four axes in csp, two in csv.
fn robot() -> PathBuf {
    let limits = "limits = { position = [-1.2, 1.2], velocity = 4.0, acceleration = 20.0, jerk = 400.0, torque = 4.8 }\n\
                  encoder = \"multi_turn\"\nencoder_range = 4096";
    let text = include_str!("../../../../examples/six-axis.toml");
    let good = "limits = { velocity = 50.0, torque = 4.8 }";
    assert_eq!(text.matches(good).count(), 2, "the six-axis robot has no `{good}`");
    file(
        "hostile-process.toml",
        &text.replace(good, limits).replace("amplitude = 1.0 ", "amplitude = 0.9 "),
    )
}

fn attached(ipc: &Path) -> Client {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        match Client::open(ipc) {
            Ok(ipc) => return ipc,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Answers until the cycle has ended. Returns the number of answers.
fn answer(ipc: &Path) -> u64 {
    let ipc = attached(ipc);
    let modes: Vec<CyclicMode> = ipc.description().axes.iter().map(|axis| axis.mode.cyclic()).collect();
    let mut controller = ipc.controller().expect("the role");
    let mut held = vec![0.0; modes.len()];
    let mut answers = 0;
    while let Some(turn) = controller.wait() {
        answers += 1;
        let (kind, at) = (answers / KIND, answers % KIND);
        let side = if answers % 2 == 0 { 1.0 } else { -1.0 };
        // Looks like chance, and is the same in each run.
        let chance = (answers * 7_919 % 1_009) as f64 / 1_009.0;
        let slow_side = if (answers / 200) % 2 == 0 { 1.0 } else { -1.0 };
        let axes = turn.request.axes.iter().zip(&mut turn.answer.axes).zip(&modes).zip(&mut held);
        for (((axis, answer), mode), held) in axes {
            let is_position = *mode == CyclicMode::Position;
            let target = match kind {
                _ if axis.phase != 2 => axis.target_position,
                // To and fro by most of what a cycle allows.
                0 | 1 if is_position => *held + 0.0035 * (side + 1.0) / 2.0,
                0 | 1 => 3.9 * side,
                2 => [5.0, -5.0, 1e300, -1e308, 0.0][(5.0 * chance) as usize],
                3 if is_position => axis.target_position + 0.0075 * slow_side,
                3 => 3.9 * slow_side,
                4 => 1e9 * slow_side,
                5 if at % 100 == 99 => f64::NAN,
                _ if is_position => axis.target_position + 0.003 * (chance - 0.5),
                _ => 8.0 * (chance - 0.5),
            };
            if axis.phase != 2 {
                *held = axis.target_position;
            }
            let requests =
                [DriveRequest::Enable, DriveRequest::Disable, DriveRequest::QuickStop, DriveRequest::Halt];
            answer.request = Some(match kind {
                _ if at < RESETS => DriveRequest::FaultReset,
                6 => requests[(answers / 50 % 4) as usize],
                _ => DriveRequest::Enable,
            });
            answer.target = Some(match is_position {
                true => AxisTarget::Position(Radians(target)),
                false => AxisTarget::Velocity(RadiansPerSecond(if axis.phase == 2 { target } else { 0.0 })),
            });
        }
        turn.send();
    }
    answers
}

/// Rows of set-points in which a drive follows them, in runs of consecutive ones.
fn followed(rows: &[(f64, f64, f64)]) -> Vec<Vec<f64>> {
    let mut runs = vec![Vec::new()];
    let mut before = None;
    for &(cycle, controlword, target) in rows {
        // Under a halt (bit 8) the drive brakes by itself.
        let follows = controlword as u64 & 0x010F == 0x0F && target.is_finite();
        if !follows || before.is_some_and(|before| cycle - before != 1.0) {
            runs.push(Vec::new());
        }
        if follows {
            runs.last_mut().expect("a run").push(target);
        }
        before = Some(cycle);
    }
    runs
}

// feature(ipc): a hostile controller process, through the program: set-points in the recording stay within position, velocity and acceleration
#[test]
fn a_hostile_process_keeps_every_limit_at_the_drives() {
    let _alone = alone();
    let folder = folder("hostile-process");
    let (ipc, recording, csv) = (folder.join("ipc.sock"), folder.join("run.mcap"), folder.join("run.csv"));
    let mut command = onbeat();
    command.arg("run").arg(robot()).args(["--controller", "external", "--json", "--signals", "all"]);
    command.args(["--cycles", &CYCLES.to_string(), "--record"]).arg(&recording).arg("--ipc").arg(&ipc);
    let program = Running::start(command);
    let process = thread::spawn(move || answer(&ipc));
    let ran = program.finish_within(Duration::from_secs(120));
    let answers = process.join().expect("the controller");
    // What it left stopped is no success, and never a crash.
    assert!(matches!(ran.code, Some(0 | 3)), "{:?} {}", ran.code, ran.stderr);
    assert!(answers > CYCLES / 2, "{answers} answers: {}", ran.stderr);
    let mut export = onbeat();
    export.arg("export").arg(&recording).arg(&csv);
    let exported = finished(export);
    assert_eq!(exported.code, Some(0), "{}", exported.stderr);
    let text = std::fs::read_to_string(&csv).expect("the rows");
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let names: Vec<&str> = lines.next().expect("a head").split(',').collect();
    let rows: Vec<Vec<f64>> =
        lines.map(|line| line.split(',').map(|it| it.parse().unwrap_or(f64::NAN)).collect()).collect();
    let place =
        |name: &str| names.iter().position(|it| *it == name).unwrap_or_else(|| panic!("{name}: {names:?}"));
    let period = 1e-3;
    let mut moved = 0;
    for drive in 1..=6 {
        let is_position = drive <= 4;
        let what = if is_position { "target position" } else { "target velocity" };
        let (word, target) = (
            place(&format!("signal:drive-{drive}.controlword")),
            place(&format!("signal:drive-{drive}.{what}")),
        );
        let cycle = place("cycle");
        let rows: Vec<_> = rows
            .iter()
            .map(|row| (row[cycle], row[word], row[target] / COUNTS * std::f64::consts::TAU))
            .collect();
        for run in followed(&rows) {
            // At first the position of the axis is sent back until it is seen to be enabled.
            let Some(run) = run.get(5..) else { continue };
            moved += run.windows(2).filter(|pair| pair[0] != pair[1]).count();
            for window in run.windows(3) {
                let [a, b, c] = [window[0], window[1], window[2]];
                let (velocity, acceleration, count) = match is_position {
                    true => ((c - b) / period, (c - 2.0 * b + a) / period.powi(2), 6e-6 / period),
                    false => (c, (c - b) / period, 6e-6),
                };
                let most = ACCELERATION * 1.0101 + 2.1 * count / period;
                assert!(
                    velocity.abs() <= VELOCITY * 1.001 + count,
                    "drive {drive}: {velocity} rad/s {window:?}"
                );
                assert!(acceleration.abs() <= most, "drive {drive}: {acceleration} rad/s2 {window:?}");
                assert!(!is_position || c.abs() <= POSITION + 6e-6, "drive {drive}: {c} rad");
            }
        }
    }
    assert!(moved > 2_000, "{moved} set-points that moved");
}
