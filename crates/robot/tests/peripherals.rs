//! Peripherals in a robot file: valid and invalid ones.
use onbeat_robot::RobotConfig;

/// Two drives that no controller turns.
const DRIVES: &str = r#"
[cycle]
period = "1ms"
[[bus.sub_device]]
name = "drive-{}"
count = 2
simulate = { kind = "servo_drive", encoder_counts = 4096 }

[[axis]]
name = "joint-{}"
count = 2
sub_device = "drive-{}"
mode = "csp"
counts_per_revolution = 4096
rated_torque = 1.0
limits = { velocity = 10.0, torque = 2.0 }

[controller]
kind = "sinusoid"
amplitude = 1.0
frequency = 1.0
"#;

/// Drives with peripherals behind them.
fn with_peripherals(text: &str) -> Result<RobotConfig, String> {
    RobotConfig::parse(&format!("{DRIVES}\n{text}"), "r.toml").map_err(|error| error.to_string())
}

#[test]
fn peripherals_have_the_papers_periods_and_ports_of_their_own() {
    let kinds = ["sonar", "range_finder", "led_strip", "imu", "actuators"];
    let text: String = kinds.iter().map(|kind| format!("[[peripheral]]\nkind = \"{kind}\"\n")).collect();
    let robot = with_peripherals(&text).unwrap();
    let found: Vec<_> =
        robot.peripherals.iter().map(|it| (it.port.as_str(), it.period.as_millis())).collect();
    assert_eq!(found, [("sonar", 30), ("scan", 200), ("led", 20), ("imu", 10), ("wheels", 10)]);
    assert!(robot.peripherals.iter().zip(kinds).all(|(it, kind)| it.name == kind && it.device.is_none()));
}

#[test]
fn a_unit_brings_its_address_and_motors_their_parts() {
    let imu = |text: &str| with_peripherals(&format!("[[peripheral]]\nkind = \"imu\"\n{text}")).unwrap();
    assert_eq!(imu("").peripherals[0].address, 0x68);
    assert_eq!(imu("unit = \"myahrs\"\noutput = \"raw\"").peripherals[0].address, 0x20);
    assert_eq!(imu("unit = \"myahrs\"\naddress = 0x21").peripherals[0].address, 0x21);
    let text = "[[peripheral]]\nkind = \"actuators\"\ndac = \"mcp4912\"\ndevice = \"/dev/spidev0.0\"\n\
                encoders = [\"/dev/spidev0.1\", \"/dev/spidev0.2\"]\nfull_scale = 25.0\nmotors_reversed = [false, true]\n";
    let motors = with_peripherals(text).unwrap().peripherals[0].clone();
    assert_eq!((motors.motors_reversed, motors.encoders_reversed), ([false, true], [false; 2]));
    assert_eq!(motors.encoders.unwrap()[1].to_str(), Some("/dev/spidev0.2"));
}

#[test]
fn a_bad_peripheral_is_one_sentence() {
    for (text, sentence) in [
        (
            "[[peripheral]]\nkind = \"imu\"\nbaud = 9600",
            "baud in a peripheral of the kind imu, expected baud in a peripheral of the kind range_finder: remove it, \
             or correct the kind",
        ),
        (
            "[[peripheral]]\nkind = \"sonar\"\ndevice = \"/dev/gpiochip0\"\ntrigger = 3",
            "a sonar without echo, expected trigger and echo, the numbers of its lines on the chip: add both",
        ),
        (
            "[[peripheral]]\nkind = \"sonar\"\ndevice = \"/dev/gpiochip0\"\ntrigger = 3\necho = 3",
            "trigger and echo on line 3, expected two lines: correct one of them",
        ),
        (
            "[[peripheral]]\nkind = \"range_finder\"\ndevice = \"ttyACM0\"",
            "device = \"ttyACM0\", expected the whole path of a device, as \"/dev/ttyACM0\": write it from / on",
        ),
        (
            "[[peripheral]]\nkind = \"imu\"\n[[peripheral]]\nkind = \"imu\"",
            "a second peripheral \"imu\", expected every name once: give it another name",
        ),
        (
            "[[peripheral]]\nkind = \"imu\"\n[[peripheral]]\nkind = \"imu\"\nname = \"other\"",
            "a second port \"imu\", expected every port once: give the peripheral its own port: \
             port = \"...\"",
        ),
        (
            "[[peripheral]]\nkind = \"actuators\"\naxes = [\"joint-1\", \"joint-3\"]",
            "a wheel on the unknown axis \"joint-3\", expected the names of two [[axis]]: did you mean \"joint-1\"?",
        ),
        (
            "[[peripheral]]\nkind = \"actuators\"\naxes = [\"joint-1\", \"joint-2\"]",
            "wheels that no controller turns, expected a [[controller]] of the kind \"joint_velocity\" that has both axes: \
             add one, first of all controllers",
        ),
        (
            "[[peripheral]]\nkind = \"actuators\"\ndevice = \"/dev/can0\"",
            "device of actuators without dac, expected a key of DC motors only with dac = \
             \"mcp4912\" or \"mcp4922\": add dac, or remove it",
        ),
        (
            "[[peripheral]]\nkind = \"actuators\"\ndac = \"mcp4912\"",
            "dac without full_scale, expected full_scale, the velocity of a wheel at the end of the converter's range, \
             rad/s: add it",
        ),
        (
            "[[peripheral]]\nkind = \"actuators\"\ndac = \"mcp4912\"\nfull_scale = 8.0",
            "velocity 10 of wheels with full_scale 8, expected a velocity up to full_scale: lower the one or raise the other",
        ),
        (
            "[[peripheral]]\nkind = \"actuators\"\ndac = \"mcp4922\"\nfull_scale = 20.0\ndevice = \"/dev/spidev0.0\"",
            "a converter without encoders, expected encoders = [LEFT, RIGHT], their SPI devices: add them",
        ),
        (
            "[[peripheral]]\nkind = \"actuators\"\ndac = \"mcp4922\"\nfull_scale = 20.0\ndevice = \"/dev/spidev0.0\"\n\
             encoders = [\"/dev/spidev0.1\", \"/dev/spidev0.0\"]",
            "one SPI device for two parts, expected three SPI devices, one each for the converter and the encoders: \
             correct one of them",
        ),
        (
            "[[peripheral]]\nkind = \"actuators\"\ndac = \"mcp4922\"\nfull_scale = 20.0\nencoders = [\"spidev0.1\", \"/a\"]",
            "encoders = \"spidev0.1\", expected the whole path of a device, as \"/dev/ttyACM0\": write it from / on",
        ),
        (
            "[[peripheral]]\nkind = \"actuators\"\ndac = \"mcp4922\"\nfull_scale = 90.0\nvelocity = 80.0",
            "period 10 ms of DC motors that turn 80 rad/s, expected at most 20 ms, and at most 0.6 \
             rad of movement in it: shorten the period, or lower the velocity",
        ),
        (
            "[[peripheral]]\nkind = \"actuators\"\ndac = \"mcp4912\"\nfull_scale = 20.0\naxes = [\"joint-1\", \"joint-2\"]",
            "actuators with dac and axes, expected one of them: DC motors, or axes of the bus: remove one of them",
        ),
        (
            "[[peripheral]]\nkind = \"imu\"\noutput = \"euler\"",
            "output of an mpu6050, expected output only of unit = \"myahrs\": remove it, or \
             correct the unit",
        ),
        (
            "[[peripheral]]\nkind = \"lidar\"",
            "unknown value \"lidar\", expected one of sonar, range_finder, led_strip, imu, actuators: correct or remove \
             the value",
        ),
        (
            "[[peripheral]]\nkind = \"imu\"\nperiod = \"1us\"",
            "period 1us, expected 1ms to 10s: a device is read once a period",
        ),
    ] {
        let found = with_peripherals(text).unwrap_err();
        assert!(found.starts_with("r.toml:") && found.ends_with(sentence), "{found}");
    }
}
