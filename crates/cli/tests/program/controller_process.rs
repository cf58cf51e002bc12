//! A controller in a separate process, from the user's point of view.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use ipc::client::Client;
use ipc::command::AxisTarget;
use ipc::controller::DriveRequest;
use ipc::units::{Radians, RadiansPerSecond};
use types::CyclicMode;

use crate::common::{Running, alone, file, onbeat, run_alone};

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

// feature(ipc): the first answer that is refused for a reason is told while the run goes on
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
