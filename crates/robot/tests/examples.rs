//! The robot files of `examples/` describe the robots that they claim to.
use std::fs;

use std::path::Path;
use std::time::Duration;

use ethercat::cia402::AxisMode;
use ethercat::main_device::{LatchMode, Replies, Sync1};
use motion::homing::Homing;
use robot::{ApplicationKind, BaseKind, ControllerKind, OnStale, Overrides, RobotConfig};

use onbeat_robot as robot;

fn example(name: &str) -> RobotConfig {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    RobotConfig::read(&path, Overrides::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn axes_in(robot: &RobotConfig, mode: AxisMode) -> usize {
    robot.axes.iter().filter(|axis| axis.mode == mode).count()
}

#[test]
fn a_segment_may_leave_the_source_address_alone() {
    let text = include_str!("../../../examples/six-axis.toml");
    let replies = |text: &str| RobotConfig::parse(text, "six-axis.toml").map(|robot| robot.bus.replies);
    assert_eq!(replies(text).ok(), Some(Replies::ProcessedSource));
    let changed = text.replacen("[bus]", "[bus]\nreplies = \"unchanged_source\"", 1);
    assert_eq!(replies(&changed).ok(), Some(Replies::UnchangedSource));
}

#[test]
fn six_axis_is_six_drives_of_twelve_bytes_each_way_in_two_modes() {
    let robot = example("six-axis.toml");
    assert_eq!(robot.cycle.period, Duration::from_millis(1));
    assert!(robot.bus.distributed_clocks);
    assert_eq!(robot.bus.sub_devices.len(), 6);
    for (position, sub_device) in robot.bus.sub_devices.iter().enumerate() {
        let mapping = sub_device.explicit_mapping().expect("explicit");
        assert_eq!((mapping.output_bits(), mapping.input_bits()), (96, 96));
        let clock = sub_device.sync0.expect("SYNC0");
        assert_eq!((clock.cycle, clock.shift), (Duration::from_millis(1), Duration::from_micros(100)));
        assert_eq!(robot.axes[position].name, format!("axis-{}", position + 1));
        assert_eq!(robot.axes[position].sub_device, position);
    }
    assert_eq!(axes_in(&robot, AxisMode::CyclicPosition), 4);
    assert_eq!(axes_in(&robot, AxisMode::CyclicVelocity), 2);
    let swings = &robot.controllers[0].swings;
    assert_eq!(swings.len(), 6);
    // Five sixths of a swing of two seconds.
    assert!((swings[5].delay().0 - 5.0 / 3.0).abs() < 1e-4);
}

#[test]
fn sync1_and_latch_inputs_of_a_sub_device() {
    let text =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/six-axis.toml"))
            .unwrap();
    let sync1 = |keys: &str| {
        let dc = "dc = { shift = \"100us\" }";
        assert!(text.contains(dc));
        let keys = format!("dc = {{ shift = \"100us\"{keys} }}\nlatches = [\"single\", \"continuous\"]");
        let robot = RobotConfig::parse(&text.replace(dc, &keys), "six-axis.toml").unwrap();
        assert_eq!(robot.bus.sub_devices[0].latches, Some([LatchMode::SINGLE, LatchMode::default()]));
        robot.bus.sub_devices[0].sync1
    };
    let (ms, us) = (Duration::from_millis, Duration::from_micros);
    assert_eq!(sync1(""), None);
    assert_eq!(sync1(", sync1 = \"4ms\""), Some(Sync1 { cycle: ms(4), delay: ms(0) }));
    assert_eq!(sync1(", sync1_delay = \"125us\""), Some(Sync1 { cycle: ms(1), delay: us(125) }));
}

#[test]
fn another_period_takes_sync0_along() {
    let text =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/six-axis.toml"))
            .unwrap();
    let period = Duration::from_micros(500);
    let robot = RobotConfig::parse_with(
        &text,
        "six-axis.toml",
        Overrides { period: Some(period), ..Overrides::default() },
    )
    .unwrap();
    assert_eq!(robot.cycle.period, period);
    assert!(robot.bus.sub_devices.iter().all(|it| it.sync0.unwrap().cycle == period));
}

#[test]
fn io_station_has_real_identities_and_one_axis() {
    let robot = example("io-station.toml");
    let products: Vec<u32> =
        robot.bus.sub_devices.iter().map(|it| it.identity.unwrap().product_code).collect();
    assert_eq!(products[..5], [0x044C_2C52, 0x07D4_3052, 0x03EC_3052, 0x0BBC_3052, 0x0041_4B44]);
    assert_eq!(products[5..], [0x044C_2C52, 0x0FA4_3052, 0x0BBC_3052, 0x141F_3052, 0x2648_3053]);
    assert_eq!(robot.axes.len(), 1);
    assert_eq!(robot.axes[0].sub_device, 4);
    assert_eq!(robot.bus.sub_devices[4].startup[1].data, [0xFD]);
}

#[test]
fn the_humanoid_is_59_sub_devices_on_two_junctions() {
    let robot = example("humanoid-59.toml");
    let sub_devices = &robot.bus.sub_devices;
    assert_eq!(sub_devices.len(), 59);
    assert_eq!(robot.axes.len(), 52);
    let junctions = sub_devices
        .iter()
        .filter(|it| it.simulation.as_ref().is_some_and(|it| it.application == ApplicationKind::Coupler));
    assert_eq!(junctions.count(), 2);
    let branches = |junction| {
        sub_devices.iter().filter(move |it| it.parent.is_some_and(|it| it.position == junction)).count()
    };
    let chest = sub_devices.iter().position(|it| it.name == "chest").unwrap();
    assert_eq!((branches(0), branches(chest)), (3, 3));
}

#[test]
fn service_robot_has_two_20_32_cm_wheels_geared_12_to_1() {
    let robot = example("m4k.toml");
    let base = robot.base.as_ref().unwrap();
    assert_eq!((base.kind, base.wheel_radius), (BaseKind::Differential, 0.1016));
    assert_eq!(base.wheels, [0, 1]);
    assert_eq!((base.odometry_frame.as_str(), base.base_frame.as_str()), ("odom", "base_link"));
    assert_eq!(axes_in(&robot, AxisMode::CyclicVelocity), 2);
    let turns =
        robot.axes.iter().map(|axis| axis.scale.counts_per_radian() * std::f64::consts::TAU / 16_384.0);
    let turns: Vec<_> = turns.map(|turns| turns.round()).collect();
    assert_eq!(turns, [12.0, -12.0]);
    assert!(robot.axes.iter().all(|axis| axis.on_stale == OnStale::Ramp));
    let kinds: Vec<_> = robot.controllers.iter().map(|it| (it.name.as_str(), it.kind.name())).collect();
    assert_eq!(kinds, [("base", "diff_drive"), ("wheels", "joint_velocity")]);
    assert_eq!(robot.ipc.name, "m4k");
}

#[test]
fn the_omnidirectional_base_has_four_mecanum_wheels() {
    let robot = example("omni.toml");
    let base = robot.base.as_ref().unwrap();
    assert_eq!((base.kind, &base.wheels[..]), (BaseKind::Mecanum, &[0, 1, 2, 3][..]));
    assert_eq!(robot.controllers[0].kind, ControllerKind::OmniDrive);
    assert_eq!(robot.controllers[0].axes, [0, 1, 2, 3]);
}

#[test]
fn the_arm_has_six_joints_with_names_of_its_urdf() {
    let robot = example("arm.toml");
    let arm = robot.arm.as_ref().unwrap();
    let urdf = fs::read_to_string(&arm.urdf).unwrap();
    assert_eq!(arm.joints.len(), 6);
    for joint in arm.joints.iter().flatten() {
        assert!(urdf.contains(&format!("<joint name=\"{joint}\" type=\"revolute\">")), "{joint}");
    }
    assert!(robot.axes.iter().all(|axis| axis.homing == Homing::Absolute { offset: motion::Radians(0.0) }));
    let follow = &robot.controllers[0];
    assert_eq!(follow.kind, ControllerKind::JointTrajectory);
    assert_eq!((follow.path_tolerance.map(|it| it.0), follow.points), (Some(0.1), 1000));
    let tool = &robot.controllers[2];
    assert_eq!(tool.kind, ControllerKind::Cartesian);
    assert_eq!((tool.linear_velocity.0, tool.angular_velocity.0), (0.25, 1.0));
    assert_eq!(tool.axes, [0, 1, 2, 3, 4, 5]);
}

/// Fields of the tables in the sources, by their names in the file.
fn keys() -> Vec<String> {
    let sources = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/model"));
    let mut keys = Vec::new();
    for source in sources.expect("the model's folder") {
        let source = fs::read_to_string(source.expect("a file").path()).expect("a source");
        for table in source.split("serde(deny_unknown_fields").skip(1) {
            let lines = table.lines().map(str::trim).take_while(|line| *line != "}");
            let mut attributes = String::new();
            for line in lines.filter(|line| !line.starts_with("///")) {
                let field = line.split_once(": ").filter(|_| !line.starts_with("#[")).map(|(name, _)| name);
                let Some(name) = field.and_then(|name| name.rsplit(' ').next()) else {
                    attributes += line;
                    continue;
                };
                let renamed = attributes.split_once("rename = \"").and_then(|(_, to)| to.split('"').next());
                if !attributes.contains("serde(skip)") {
                    keys.push(renamed.unwrap_or(name).to_owned());
                }
                attributes.clear();
            }
        }
    }
    keys
}

#[test]
fn the_reference_names_every_key_a_file_may_have() {
    let reference =
        concat!(include_str!("../../../docs/robot-file.md"), include_str!("../../../docs/devices.md"));
    let names = keys();
    assert!(names.len() > 50, "{names:?}");
    for name in names {
        let written = [
            format!("`{name}`"),
            format!("[{name}]"),
            format!("`{name}.N"),
            format!("`{name} = "),
            format!("[{name}."),
        ];
        let there = written.iter().any(|written| reference.contains(written.as_str()));
        assert!(
            there || reference.contains(&format!("`[[{name}]]`")),
            "{name} is not in docs/robot-file.md"
        );
    }
}

#[test]
fn the_xy_table_is_two_drives_with_two_axes_each() {
    let robot = example("xy-table.toml");
    assert_eq!(robot.bus.sub_devices.len(), 2);
    let places: Vec<_> = robot.axes.iter().map(|axis| (axis.sub_device, axis.drive_axis)).collect();
    assert_eq!(places, [(0, 0), (0, 1), (1, 0), (1, 1)]);
    assert!(robot.bus.sub_devices.iter().all(|it| it.simulation.as_ref().is_some_and(|it| it.axes == 2)));
}
