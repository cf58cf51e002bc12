//! Invalid controllers, bases, arms and interfaces: one sentence each, as for the rest of the file.

use crate::support;

use motion::homing::Homing;
use onbeat_robot::{BaseKind, ControllerKind, OnStale, RobotConfig};
use support::spoiled;

/// A valid file with all of them, of which each test spoils one.
const GOOD: &str = r#"
[cycle]
period = "1ms"

[device.servo]
simulate = { kind = "servo_drive" }

[[bus.sub_device]]
name = "drive-{}"
count = 4
device = "servo"

[[axis]]
name = "wheel-{}"
count = 2
sub_device = "drive-{}"
mode = "csv"
counts_per_revolution = 4096
rated_torque = 1.0
limits = { velocity = 10.0, torque = 2.0 }
on_stale = "ramp"

[[axis]]
name = "joint"
sub_device = "drive-3"
mode = "csp"
counts_per_revolution = 4096
rated_torque = 1.0
limits = { velocity = 10.0, acceleration = 20.0, jerk = 300.0, torque = 2.0 }
following_error = { window = 0.1, time = "20ms" }
homing = { position = 0.5 }
brake = { release = "150ms", engage = "100ms" }

[[axis]]
name = "hand"
sub_device = "drive-4"
mode = "cst"
counts_per_revolution = 4096
rated_torque = 1.0
limits = { velocity = 10.0, torque = 2.0 }

[base]
kind = "differential"
wheel_radius = 0.1
track = 0.4
left = "wheel-1"
right = "wheel-2"
limits = { velocity = 0.9, acceleration = 1.0, yaw = 2.0, yaw_acceleration = 4.0 }

[arm]
urdf = "arm.urdf"
joints = { joint = "elbow" }

[[controller]]
kind = "diff_drive"

[[controller]]
name = "follow"
kind = "joint_trajectory"
path_tolerance = 0.1
goal_time = "1s"
points = 20

[[controller]]
kind = "joint_position"
axes = ["joint"]

[[controller]]
kind = "joint_effort"

[ipc]
name = "one"
group = "robots"
enable = false
longest_time_to_live = "500ms"

[[ipc.port]]
name = "log"
kind = "stream"
size = 4096
"#;

/// Error of [`GOOD`] with `good` replaced by `bad`, without its place.
fn sentence(good: &str, bad: &str) -> String {
    support::sentence(GOOD, good, bad)
}

#[test]
fn the_good_file_is_good() {
    let robot = RobotConfig::parse(GOOD, "r.toml").unwrap();
    let controllers: Vec<_> = robot.controllers.iter().map(|it| (it.name.as_str(), &it.axes[..])).collect();
    let expected: [(&str, &[usize]); 4] =
        [("diff_drive", &[0, 1]), ("follow", &[2]), ("joint_position", &[2]), ("joint_effort", &[3])];
    assert_eq!(controllers, expected);
    let joint = &robot.axes[2];
    assert_eq!((joint.limits.deceleration.0, joint.limits.jerk.0), (20.0, 300.0));
    assert_eq!(joint.homing, Homing::CurrentPosition { position: motion::Radians(0.5) });
    assert_eq!(joint.brake.unwrap().times.release.0, 0.15);
    let wheel = &robot.axes[0];
    assert_eq!(
        (wheel.limits.acceleration.0, wheel.limits.jerk.0),
        (40.0, 160.0),
        "where the file does not say"
    );
    assert_eq!(wheel.on_stale, OnStale::Ramp);
    assert_eq!(robot.arm.unwrap().joints, [None, None, Some("elbow".to_owned()), None]);
    assert_eq!((robot.ipc.name.as_str(), robot.ipc.enable, robot.ipc.ports.len()), ("one", false, 1));
}

#[test]
fn one_controller_is_still_a_table_and_none_holds() {
    let start = GOOD.find("[[controller]]").unwrap();
    let without = GOOD[..start].to_owned();
    let robot = RobotConfig::parse(&without, "r.toml").unwrap();
    assert_eq!((robot.controllers.len(), robot.controllers[0].kind), (1, ControllerKind::Hold));
    assert_eq!(robot.controllers[0].axes, [0, 1, 2, 3]);
    let robot =
        RobotConfig::parse(&(without + "[controller]\nkind = \"joint_velocity\"\n"), "r.toml").unwrap();
    assert_eq!(
        (robot.controllers.len(), &robot.controllers[0].axes[..]),
        (1, &[0, 1, 2][..]),
        "no torque says how fast an axis turns"
    );
    assert_eq!(robot.ipc.name, "robot");
    let swing = "[controller]\nkind = \"sinusoid\"\namplitude = 0.1\nfrequency = 0.5\n";
    let robot = RobotConfig::parse(&(GOOD[..start].to_owned() + swing), "r.toml").unwrap();
    assert_eq!(robot.controllers[0].axes, [0, 1, 2], "no torque says how far an axis swings");
}

#[test]
fn controllers_get_axes_they_can_move_and_keys_they_know() {
    for (good, bad, wanted) in [
        (
            "axes = [\"joint\"]",
            "axes = [\"hand\"]",
            "axis \"hand\" in mode cst for joint_position, expected mode csp, ip or pp: choose another kind or mode",
        ),
        (
            "axes = [\"joint\"]",
            "axes = [\"jont\"]",
            "the unknown axis \"jont\" in a controller, expected the name of an [[axis]]: did you mean \"joint\"?",
        ),
        (
            "axes = [\"joint\"]",
            "axes = [\"joint\", \"joint\"]",
            "axis \"joint\" again, expected every axis once: remove it",
        ),
        (
            "axes = [\"joint\"]",
            "axes = []",
            "a controller of no axis, expected names of axes: name them, or remove axes for all",
        ),
        (
            "kind = \"diff_drive\"",
            "kind = \"omni_drive\"",
            "omni_drive for a base of kind differential, expected kind mecanum or omni: describe such a [base], or \
             choose another kind",
        ),
        (
            "kind = \"diff_drive\"",
            "kind = \"diff_drive\"\naxes = [\"wheel-1\"]",
            "axes of a diff_drive, expected the wheels of [base]: remove axes",
        ),
        (
            "kind = \"joint_effort\"",
            "kind = \"sinusoid\"\namplitude = 0.1\nfrequency = 0.5\naxes = [\"hand\"]",
            "axis \"hand\" in mode cst for sinusoid, expected mode csp, ip or csv: choose another kind or mode",
        ),
        (
            "kind = \"joint_effort\"",
            "kind = \"joint_effort\"\npoints = 7",
            "points for joint_effort, expected kind = \"joint_trajectory\": change kind or remove this",
        ),
        (
            "kind = \"joint_effort\"",
            "kind = \"joint_effort\"\namplitude = 7.0",
            "amplitude for joint_effort, expected kind = \"sinusoid\": change kind or remove this",
        ),
        (
            "kind = \"joint_effort\"",
            "kind = \"joint_position\"",
            "a second controller \"joint_position\", expected every name once: give it another name",
        ),
        (
            "mode = \"cst\"",
            "mode = \"csv\"",
            "joint_effort without an axis to move, expected an [[axis]] in mode cst or tq: describe one, or choose \
             another kind",
        ),
        ("points = 20", "points = 1", "points = 1, expected 2 to 100000: correct points"),
        (
            "path_tolerance = 0.1",
            "path_tolerance = 0.0",
            "path_tolerance = 0, expected a finite number above 0: correct path_tolerance",
        ),
    ] {
        assert_eq!(sentence(good, bad), wanted);
    }
    let found = sentence("kind = \"joint_effort\"", "kind = \"joint_efort\"");
    assert!(found.ends_with("did you mean \"joint_effort\"?"), "{found}");
    let start = GOOD.find("[base]").unwrap();
    let end = GOOD.find("[arm]").unwrap();
    let found = sentence(&GOOD[start..end], "");
    assert!(found.starts_with("diff_drive without a [base], expected kind differential"), "{found}");
}

#[test]
fn a_base_turns_no_wheel_beyond_its_written_limits() {
    let wheel = "limits = { velocity = 10.0, torque = 2.0 }\non_stale";
    let limited = |key: &str| wheel.replace("velocity", &format!("{key}, velocity"));
    for (key, wanted) in [
        (
            "acceleration = 17.9",
            "acceleration and yaw_acceleration that turn wheel \"wheel-1\" with up to 18.000 rad/s\u{b2}, expected at \
             most the acceleration limit of its axis, 17.9 rad/s\u{b2}: lower them, or raise the axis's limit",
        ),
        (
            "jerk = 179.0",
            "jerk and yaw_jerk that turn wheel \"wheel-1\" with up to 180.000 rad/s\u{b3}, expected at most the jerk \
             limit of its axis, 179 rad/s\u{b3}: lower them, or raise the axis's limit",
        ),
    ] {
        assert_eq!(sentence(wheel, &limited(key)), wanted);
    }
    let enough = GOOD.replacen(wheel, &limited("acceleration = 18.0, jerk = 180.0"), 1);
    assert!(RobotConfig::parse(&enough, "r.toml").is_ok());
}

// feature(axes): `cartesian`: robot files without an arm, or with axes that cannot follow, are refused with place and remedy
#[test]
fn a_controller_of_a_tool_moves_joints_of_the_arm() {
    let effort = "kind = \"joint_effort\"";
    for (bad, wanted) in [
        (
            "kind = \"cartesian\"\naxes = [\"hand\"]",
            "axis \"hand\" in mode cst for cartesian, expected mode csp or ip: choose another kind or mode",
        ),
        (
            "kind = \"cartesian\"\nlinear_velocity = 0",
            "linear_velocity = 0, expected a finite number above 0: correct linear_velocity",
        ),
        (
            "kind = \"joint_effort\"\nangular_velocity = 1.0",
            "angular_velocity for joint_effort, expected kind = \"cartesian\": change kind or remove this",
        ),
    ] {
        assert_eq!(sentence(effort, bad), wanted);
    }
    let with_tool = GOOD.replace(effort, "kind = \"cartesian\"");
    let robot = RobotConfig::parse(&with_tool, "r.toml").unwrap();
    let tool = robot.controllers.last().unwrap();
    assert_eq!((tool.name.as_str(), &tool.axes[..]), ("cartesian", &[2][..]));
    let sentence = |good: &str, bad: &str| {
        let error = spoiled(&with_tool, good, bad);
        format!("{}, expected {}: {}", error.found, error.expected, error.remedy)
    };
    let arm = "[arm]\nurdf = \"arm.urdf\"\njoints = { joint = \"elbow\" }\n";
    assert_eq!(
        sentence(arm, ""),
        "cartesian without an [arm], expected an [arm] with its urdf: describe one, or choose another kind"
    );
    assert_eq!(
        sentence("joints = { joint = \"elbow\" }", "joints = { joint = \"elbow\", hand = \"grip\" }"),
        "axis \"hand\" in mode cst for cartesian, expected mode csp or ip: change the mode, or name the joints between base \
         and tool in axes"
    );
    assert_eq!(
        sentence(
            "joints = { joint = \"elbow\" }",
            "joints = { hand = \"grip\" }\n\n[[controller]]\nname = \"tool\"\nkind = \"cartesian\"\naxes = [\"joint\"]"
        ),
        "axis \"joint\" for cartesian, which is no joint of the [arm], expected axes in [arm.joints]: remove it, or \
         name its joint"
    );
}

#[test]
fn a_base_has_the_wheels_and_lengths_of_its_kind() {
    for (good, bad, wanted) in [
        (
            "left = \"wheel-1\"",
            "left = \"joint\"",
            "wheel \"joint\" in mode csp, expected mode csv: change the axis's mode",
        ),
        (
            "left = \"wheel-1\"",
            "left = \"wheel-2\"",
            "axis \"wheel-2\" for a second wheel, expected an axis for each wheel: name another axis",
        ),
        (
            "left = \"wheel-1\"\n",
            "",
            "a base of kind differential without left, expected left = the name of its wheel's axis: add it",
        ),
        (
            "kind = \"differential\"",
            "kind = \"mecanum\"",
            "left for a base of kind mecanum, expected only what such a base has: remove it, or change kind",
        ),
        (
            "wheel_radius = 0.1",
            "wheel_radius = 0.1\nwheelbase = 1.0",
            "wheelbase for a base of kind differential, expected only what such a base has: remove it, or change kind",
        ),
        (
            "wheel_radius = 0.1",
            "",
            "wheels without a size, expected wheel_diameter or wheel_radius, in m: give one of the two",
        ),
        (
            "wheel_radius = 0.1",
            "wheel_radius = 0.1\nwheel_diameter = 0.2",
            "a diameter and a radius, expected wheel_diameter or wheel_radius, in m: give one of the two",
        ),
        ("track = 0.4", "track = -0.4", "track = -0.4, expected a finite number above 0: correct track"),
        (
            "velocity = 0.9",
            "velocity = 1.1",
            "velocity = 1.1, at which wheels turn at 11.000 rad/s, expected at most the velocity limit of \
             \"wheel-1\", 10 rad/s: lower it, or raise the axis's limit",
        ),
    ] {
        assert_eq!(sentence(good, bad), wanted);
    }
    let four = "kind = \"mecanum\"\nroller_angle = 45.0\nwheelbase = 1.0\nfront_left = \"wheel-1\"\nfront_right = \
                \"wheel-2\"\nrear_left = \"wheel-3\"\nrear_right = \"wheel-4\"\nwheel_radius = 0.1\ntrack = 0.4\n";
    let text =
        GOOD.replacen("count = 2", "count = 4", 1).replacen("count = 4\ndevice", "count = 6\ndevice", 1);
    let text = text.replacen("\"drive-3\"", "\"drive-5\"", 1).replacen("\"drive-4\"", "\"drive-6\"", 1);
    let (start, end) =
        (text.find("kind = \"diff").unwrap(), text.find("limits = { velocity = 0.9").unwrap());
    let text = text.replace(&text[start..end], four).replacen("diff_drive", "omni_drive", 1);
    let error = RobotConfig::parse(&text, "r.toml").unwrap_err().to_string();
    assert!(error.contains("roller_angle = 45, expected 0.1 to 1.47 rad: give it in radians"), "{error}");
    assert!(RobotConfig::parse(&text.replacen("45.0", "0.785398", 1), "r.toml").is_ok());
    let omni = text.replacen("kind = \"mecanum\"\nroller_angle = 45.0", "kind = \"omni\"", 1);
    let base = RobotConfig::parse(&omni, "r.toml").unwrap().base.unwrap();
    assert_eq!((base.kind, &base.wheels[..], base.wheelbase), (BaseKind::Omni, &[0, 1, 2, 3][..], 1.0));
}

#[test]
fn axes_are_homed_one_way_and_brakes_take_seconds_at_most() {
    for (good, bad, wanted) in [
        (
            "{ position = 0.5 }",
            "{ position = 0.5, offset = 0.1 }",
            "offset and position, expected offset of an absolute encoder, or position of a mark to be homed at: give \
             one of the two",
        ),
        (
            "{ position = 0.5 }",
            "{}",
            "neither offset nor position, expected offset of an absolute encoder, or position of a mark to be homed \
             at: give one of the two",
        ),
        (
            "{ position = 0.5 }",
            "{ offset = nan }",
            "offset = NaN, expected a finite number: correct offset",
        ),
        ("\"150ms\"", "\"15s\"", "release 15s, expected 0ns to 10s: shorten release"),
        (
            "window = 0.1",
            "window = 0.0",
            "window = 0, expected a number above 0, at most 1e12: correct window",
        ),
        ("jerk = 300.0", "jerk = 0.0", "jerk = 0, expected a number above 0, at most 1e12: correct jerk"),
    ] {
        assert_eq!(sentence(good, bad), wanted);
    }
}

#[test]
fn joints_and_ipcs_have_names_and_bounds() {
    for (good, bad, wanted) in [
        (
            "{ joint = \"elbow\" }",
            "{ joint = \"elbow\", hand = \"elbow\" }",
            "joint \"elbow\" for a second axis, expected a joint for each axis: name another joint",
        ),
        (
            "{ joint = \"elbow\" }",
            "{ joints = \"elbow\" }",
            "the unknown axis \"joints\" as a joint, expected the name of an [[axis]]: did you mean \"joint\"?",
        ),
        (
            "name = \"one\"",
            "name = \"../one\"",
            "the IPC's name \"../one\", expected 1 to 64 letters, digits, '.', '_' or '-', the first one a letter, \
             digit or '_': choose another",
        ),
        (
            "\"500ms\"",
            "\"2h\"",
            "longest_time_to_live 2h, expected 1ms to 1min: the axes follow a command for this \
             long after its sender has ended",
        ),
        (
            "\"log\"",
            "\"control\"",
            "a second port \"control\", expected every name once: give it another name",
        ),
        (
            "size = 4096",
            "size = 4096\ndepth = 4",
            "a depth for a stream of bytes, expected depth only of messages: remove it; size is \
             its capacity",
        ),
        (
            "limits = { velocity = 10.0, acceleration = 20.0",
            "limits = { position = [-1,5, 4,0], velocity = 10.0, acceleration = 20.0",
            "position of 4 values, expected two: correct position",
        ),
        (
            "kind = \"stream\"\nsize = 4096",
            "kind = \"message\"\nsize = 4097\ndepth = 4096",
            "4096 messages of 4097 bytes, expected messages of 1 to 65536 bytes, 1 to 4096 of them, not more than \
             16 MiB in all: lower size or depth",
        ),
        ("size = 4096", "size = 0", "size = 0, expected 1 to 1048576: correct size"),
    ] {
        assert_eq!(sentence(good, bad), wanted);
    }
}

#[test]
fn a_robots_name_makes_a_name_for_its_ipc() {
    for (robot, ipc) in
        [("my robot/2", "my-robot-2"), ("..hidden", "hidden"), ("µ", "robot"), ("", "robot")]
    {
        let text = format!("name = {robot:?}\n{GOOD}").replacen("name = \"one\"\n", "", 1);
        assert_eq!(RobotConfig::parse(&text, "r.toml").unwrap().ipc.name, ipc, "{robot}");
    }
}
