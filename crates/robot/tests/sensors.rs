//! Sensors: signals that together are a measurement.
//!
//! Frames: places on the robot, fixed to each other.

use onbeat_robot::{RobotConfig, SensorKind};

const STATION: &str = include_str!("../../../examples/io-station.toml");

const HUMANOID: &str = include_str!("../../../examples/humanoid-59.toml");

// feature(signals): sensors of several signals, with their frames
#[test]
fn a_sensor_has_its_signals_in_the_order_of_its_kind() {
    let robot = RobotConfig::parse(HUMANOID, "r.toml").unwrap();
    assert_eq!(robot.sensors.len(), 5);
    let (foot, head) = (&robot.sensors[0], &robot.sensors[4]);
    assert_eq!(
        (foot.name.as_str(), foot.kind, foot.frame.as_str()),
        ("left_foot", SensorKind::ForceTorque, "left_foot_sensor")
    );
    assert_eq!(foot.signals[..2], ["left foot force.x", "left foot force.y"]);
    assert_eq!((foot.signals.len(), foot.signals[5].as_str()), (6, "left foot torque.z"));
    assert_eq!(
        (head.kind, head.signals.len(), head.signals[3].as_str()),
        (SensorKind::Imu, 6, "rate of turn.x")
    );
    assert!(robot.names_signal("rate of turn.x") && !robot.names_signal("rate of turn"));
    // A frame with the sensor's own name, where the file gives none.
    let station = RobotConfig::parse(STATION, "r.toml").unwrap();
    assert_eq!(station.sensors[0].frame, "forces");
}

// feature(signals): sensors of several signals, with their frames
#[test]
fn a_sensor_that_cannot_be_is_named_with_its_place() {
    let sensor = |keys: &str| format!("{STATION}\n[[sensor]]\nname = \"it\"\n{keys}\n");
    let force = "kind = \"force_torque\"\nforce = \"force\"";
    for (text, sentence) in [
        (
            sensor(force),
            "the sensor \"it\" without torque, expected torque = the name of a signal: add torque",
        ),
        (
            sensor(&format!("{force}\ntorque = \"torqe\"")),
            "torque = \"torqe\", expected the name of a [[signal]]: did you mean \"torque\"?",
        ),
        (
            sensor(&format!("{force}\ntorque = \"tank level\"")),
            "torque = \"tank level\", a signal of 1 value, expected one of 3 values: correct its elements",
        ),
        (
            sensor("kind = \"temperature\"\ntemperature = \"force\""),
            "temperature = \"force\", a signal of 3 values, expected one of 1 value: correct its elements",
        ),
        (
            sensor("kind = \"temperature\"\ntemperature = \"tank level\"\nforce = \"force\""),
            "force of the sensor \"it\", which is of another kind, expected force only with kind = \"force_torque\": remove it",
        ),
        (
            sensor("kind = \"temperature\"\ntemperature = \"tank level\"").replace("\"it\"", "\"it here\""),
            "the sensor \"it here\", expected letters, digits and single underscores",
        ),
        (
            sensor(&format!("{force}\ntorque = \"torque\"")).replace("\"it\"", "\"forces\""),
            "a second sensor \"forces\", expected every name once",
        ),
        (
            sensor(&format!("{force}\ntorque = \"force\"")),
            "torque = \"force\", which is force of the sensor \"it\", expected a separate signal: \
             correct torque",
        ),
        (
            sensor("kind = \"force\""),
            "unknown value \"force\", expected one of force_torque, imu, temperature",
        ),
    ] {
        let error = RobotConfig::parse(&text, "r.toml").unwrap_err().to_string();
        assert!(error.contains(sentence) && error.starts_with("r.toml:"), "{error}\n expected {sentence}");
    }
}

const BASE: &str = include_str!("../../../examples/first-drive.toml");

const M4K: &str = include_str!("../../../examples/m4k.toml");

#[test]
fn a_frame_is_on_the_base_unless_it_says_where() {
    let text = format!(
        "{BASE}\n[[frame]]\nname = \"tool\"\nparent = \"plate\"\n[[frame]]\nname = \"plate\"\nxyz = [0, 0, 1]\n"
    );
    let robot = RobotConfig::parse(&text, "r.toml").unwrap();
    let [tool, plate] = robot.frames.as_slice() else { panic!("{:?}", robot.frames) };
    assert_eq!((tool.parent.as_str(), plate.parent.as_str()), ("plate", "base_link"));
    assert_eq!((tool.xyz, plate.xyz, plate.rpy), ([0.0; 3], [0.0, 0.0, 1.0], [0.0; 3]));
}

#[test]
fn a_frame_that_cannot_be_is_named_with_its_place() {
    for (keys, sentence) in [
        ("name = \"a b\"", "the frame \"a b\", expected letters, digits and signs without blanks"),
        ("name = \"/a\"", "the frame \"/a\", expected letters"),
        ("name = \"odom\"", "a second frame \"odom\", expected a name used once"),
        ("name = \"base_link\"", "a second frame \"base_link\""),
        ("name = \"left-wheel\"", "a second frame \"left-wheel\""),
        ("name = \"it\"\nxyz = [1, 2]", "xyz of 2 numbers, expected three finite numbers: correct xyz"),
        ("name = \"it\"\nrpy = [1, 2, inf]", "rpy with inf, expected three finite numbers: correct rpy"),
        (
            "name = \"it\"\nparent = \"base_lnk\"",
            "the frame \"it\" on the unknown frame \"base_lnk\", expected the name of a frame: did you mean \"base_link\"?",
        ),
        ("name = \"it\"\nparent = \"it\"", "the frame \"it\", which is fixed to itself"),
        (
            "name = \"it\"\nparent = \"other\"\n[[frame]]\nname = \"other\"\nparent = \"it\"",
            "the frame \"it\", which is fixed to itself",
        ),
    ] {
        let error =
            RobotConfig::parse(&format!("{M4K}\n[[frame]]\n{keys}\n"), "r.toml").unwrap_err().to_string();
        assert!(error.contains(sentence), "{keys}: {error}");
    }
}
