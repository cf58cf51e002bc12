use ipc::description::{AxisDescription, SensorDescription, SignalDescription};
use types::{CyclicMode, SensorKind};

use super::*;

fn robot() -> Description {
    let controller = |name: &str| ControllerDescription {
        name: name.into(),
        kind: Some(ControllerKind::JointTrajectory),
        axes: vec![],
    };
    Description { controllers: ["a", "b", "c"].map(controller).to_vec(), ..Description::default() }
}

/// Three controllers; `a` is active, `c` not configured.
fn controllers() -> Controllers {
    let mut controllers = Controllers::new(&robot());
    controllers.refresh(0);
    controllers.cleanup("c").unwrap();
    controllers
}

fn states(controllers: &Controllers) -> Vec<(&str, State)> {
    controllers.loaded().collect()
}

// feature(ros2): controllers are loaded, configured, activated, deactivated and unloaded as ros2_control does it, with its refusals
#[test]
fn a_controller_passes_through_the_states_of_ros2_control() {
    let mut all = controllers();
    assert_eq!(states(&all), [("a", State::Active), ("b", State::Inactive), ("c", State::Unconfigured)]);
    assert_eq!(all.load("b").unwrap_err(), "controller `b` is loaded already");
    assert_eq!(
        all.load("d").unwrap_err(),
        "there is no controller `d` by the robot file; there are a, b, c"
    );
    assert_eq!(all.unload("a").unwrap_err(), "controller `a` is active; deactivate it first");
    assert_eq!(all.cleanup("a").unwrap_err(), "controller `a` is active; deactivate it first");
    all.configure("a").unwrap();
    all.unload("b").unwrap();
    for refused in [all.unload("b"), all.configure("b"), all.cleanup("b"), all.unload("d")] {
        assert!(refused.unwrap_err().ends_with("is loaded"));
    }
    assert_eq!(states(&all), [("a", State::Active), ("c", State::Unconfigured)]);
    all.load("b").unwrap();
    all.configure("c").unwrap();
    all.refresh(usize::MAX);
    let now = [("a", State::Inactive), ("b", State::Unconfigured), ("c", State::Inactive)];
    assert_eq!(states(&all), now, "none is active");
    all.unload("a").unwrap();
    all.refresh(0);
    assert_eq!(states(&all)[0], ("a", State::Active), "another program has activated it");
}

#[test]
fn a_switch_is_refused_as_its_strictness_says() {
    let all = controllers();
    let switch = |on: &[&str], off: &[&str], strictness: i32| {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        all.switch(&SwitchControllerRequest {
            activate_controllers: names(on),
            deactivate_controllers: names(off),
            strictness,
            ..SwitchControllerRequest::default()
        })
    };
    let (best_effort, strict, force) = (1, STRICT, FORCE_AUTO);
    let nothing = Ok(Switch::default());
    let to = |deactivate, activate| Ok(Switch { deactivate, activate, broadcasters: vec![] });
    let to_b = to(true, Some(1));
    for strictness in [0, best_effort, strict, 3, force] {
        assert_eq!(switch(&["b"], &["a"], strictness), to_b);
        assert_eq!(switch(&[], &["a"], strictness), to(true, None));
        assert_eq!(switch(&["a"], &[], strictness), nothing, "it is active");
        assert_eq!(switch(&[], &[], strictness), nothing);
        assert!(switch(&["d"], &[], strictness).is_err() && switch(&[], &["d"], strictness).is_err());
    }
    assert!(switch(&["b"], &[], strict).unwrap_err().starts_with("controller `a` is active"));
    assert!(switch(&["b"], &[], best_effort).is_err(), "nothing of it can be");
    assert_eq!(switch(&["b"], &[], force), to_b, "what is in the way goes");
    // Wrong in a part: all of it, or that part.
    assert_eq!(switch(&["b"], &["a", "d"], strict).unwrap_err(), "no controller `d` is loaded");
    assert_eq!(switch(&["b"], &["a", "d"], best_effort), to_b);
    assert_eq!(switch(&["b"], &["a", "b"], strict).unwrap_err(), "controller `b` is not active");
    assert_eq!(switch(&["b"], &["a", "b"], best_effort), to_b);
    assert_eq!(switch(&["c"], &[], strict).unwrap_err(), "controller `c` is not configured");
    assert_eq!(switch(&["c"], &[], best_effort), nothing);
    assert!(switch(&["a"], &["a"], strict).unwrap_err().contains("at once"));
    assert_eq!(switch(&["a"], &["a"], best_effort), to(true, None));
    assert_eq!(switch(&["b", "a"], &[], strict).unwrap_err(), "one controller at a time can be active");
}

/// A robot with a controller, a joint and an IMU.
fn robot_with_sensor() -> Description {
    let mut robot = robot();
    robot.controllers.truncate(2);
    robot.axes = vec![AxisDescription {
        measures_effort: false,
        ..AxisDescription::new("joint", CyclicMode::Position, 2.0, 5.0)
    }];
    let signal = |name: &str| SignalDescription {
        name: name.into(),
        sub_device: "inertial".into(),
        ..SignalDescription::default()
    };
    robot.signals = ["x", "y", "z"].map(signal).to_vec();
    let sensor = |name: &str| SensorDescription {
        name: name.into(),
        kind: SensorKind::Imu,
        frame: String::new(),
        signals: vec![0, 1, 2],
    };
    robot.sensors = vec![sensor("imu_sensor_broadcaster"), sensor("a")];
    robot
}

// feature(ros2): `joint_state_broadcaster` and a broadcaster for each sensor by its name are among the controllers: spawned and unspawned beside another, they publish while they are active
#[test]
fn broadcasters_are_active_next_to_another_controller() {
    let robot = robot_with_sensor();
    let mut all = Controllers::new(&robot);
    all.refresh(0);
    let (joints, imu) = ("joint_state_broadcaster", "imu_sensor_broadcaster");
    let expected =
        [("a", State::Active), ("b", State::Inactive), (joints, State::Active), (imu, State::Active)];
    assert_eq!(states(&all), expected, "a controller keeps its name");
    let listed = list(&all, &robot);
    let of = |name: &str| listed.iter().find(|it| it.name == name).expect(name);
    assert_eq!(of(joints).kind, "joint_state_broadcaster/JointStateBroadcaster");
    assert_eq!(of(joints).required_state_interfaces, ["joint/position", "joint/velocity"]);
    assert_eq!(of(imu).kind, "imu_sensor_broadcaster/IMUSensorBroadcaster");
    assert_eq!(of(imu).required_state_interfaces, ["inertial/x", "inertial/y", "inertial/z"]);
    assert!(of(imu).claimed_interfaces.is_empty() && of(imu).required_command_interfaces.is_empty());
    let mut switch = |on: &[&str], off: &[&str]| {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let switch = all.switch(&SwitchControllerRequest {
            activate_controllers: names(on),
            deactivate_controllers: names(off),
            strictness: STRICT,
            ..SwitchControllerRequest::default()
        })?;
        all.change(&switch.broadcasters);
        let sends = |name: &str| all.broadcasts(name);
        Ok::<_, String>(((switch.deactivate, switch.activate), (sends(joints), sends(imu))))
    };
    assert_eq!(switch(&[joints], &[]), Ok(((false, None), (true, true))), "as a spawner that comes late");
    assert_eq!(switch(&[], &[joints]), Ok(((false, None), (false, true))));
    assert_eq!(switch(&["b", joints], &["a", imu]), Ok(((true, Some(1)), (true, false))));
    assert_eq!(switch(&["b"], &[imu]).unwrap_err(), "controller `imu_sensor_broadcaster` is not active");
    assert!(all.broadcasts("a") && all.broadcasts("no broadcaster"));
    all.unload(imu).unwrap();
    all.change(&vec![(3, State::Active)]);
    assert!(!all.broadcasts(imu), "what is not loaded stays so");
    all.load(imu).unwrap();
    all.configure(imu).unwrap();
    assert_eq!(states(&all)[3], (imu, State::Inactive));
}
