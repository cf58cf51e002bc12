//! The planner for ROS 2 users, in Python, is the planner of the experiment.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use motion::base::{Pose, Twist};
use motion::{Metres, MetresPerSecond, Radians, RadiansPerSecond};
use onbeat_experiments::navigation::Course;
use onbeat_experiments::navigation::planner::DynamicWindow;

// feature(papers): `measure navigation`
#[test]
fn the_python_planner_decides_as_the_one_in_rust() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/examples/dynamic_window.py");
    let mut command = Command::new("python3");
    command.arg(script).arg("--decide").stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut python) = command.spawn() else {
        return testkit::skip!("python3 is needed and cannot be started");
    };
    let mut rng = fastrand::Rng::with_seed(9);
    let course = Course::default();
    let mut about = |middle: f64, width: f64| middle + (rng.f64() - 0.5) * width;
    let mut states = Vec::new();
    while states.len() < 60 {
        let pose =
            Pose { x: Metres(about(1.5, 3.2)), y: Metres(about(0.0, 1.8)), yaw: Radians(about(0.0, 4.0)) };
        let twist = Twist {
            x: MetresPerSecond(about(0.25, 0.6)),
            yaw: RadiansPerSecond(about(0.0, 2.0)),
            ..Twist::default()
        };
        if course.room(pose) > 0.01 {
            states.push((pose, twist));
        }
    }
    let mut stdin = python.stdin.take().unwrap();
    for (pose, twist) in &states {
        writeln!(stdin, "{} {} {} {} {}", pose.x.0, pose.y.0, pose.yaw.0, twist.x.0, twist.yaw.0).unwrap();
    }
    drop(stdin);
    let output = python.wait_with_output().unwrap();
    let answers = String::from_utf8(output.stdout).unwrap();
    assert_eq!(answers.lines().count(), states.len(), "{answers}");
    for ((pose, twist), answer) in states.into_iter().zip(answers.lines()) {
        let points: Vec<[f64; 2]> = course.scan(pose).into_iter().flatten().collect();
        let ours = DynamicWindow::of(&course).plan(twist, course.goal_from(pose), &points);
        let theirs: Vec<f64> = answer.split(' ').map(|number| number.parse().unwrap()).collect();
        let same = (ours.x.0 - theirs[0]).abs() < 1e-9 && (ours.yaw.0 - theirs[1]).abs() < 1e-9;
        assert!(same, "at {pose:?} with {twist:?}: {ours:?} in Rust, {answer} in Python");
    }
}
