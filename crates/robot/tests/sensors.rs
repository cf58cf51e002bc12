//! Sensors: signals that together are a measurement.
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
