//! Homing by drives that find their marks by themselves: valid and invalid settings.
use crate::support;

use motion::homing::Homing;
use motion::{Radians, Seconds};
use onbeat_robot::{ApplicationKind, RobotConfig};

const GOOD: &str = r#"
[cycle]
period = "1ms"

[[bus.sub_device]]
name = "drive"
simulate = { kind = "servo_drive", limit_switches = [-3.0, 4.0] }

[bus.sub_device.pdos]
outputs = [{ index = 0x1600, entries = [
    { index = 0x6040, bits = 16 },
    { index = 0x607A, bits = 32 },
    { index = 0x6060, bits = 8 },
] }]
inputs = [{ index = 0x1A00, entries = [
    { index = 0x6041, bits = 16 },
    { index = 0x6064, bits = 32 },
    { index = 0x6061, bits = 8 },
] }]

[[axis]]
name = "slide"
sub_device = "drive"
mode = "csp"
counts_per_revolution = 4096
rated_torque = 1.0
limits = { velocity = 10.0, acceleration = 50.0, torque = 2.0 }
homing = { method = 17 }
"#;

fn homing(text: &str) -> Homing {
    RobotConfig::parse(text, "r.toml").unwrap().axes[0].homing
}

/// Method, speeds and acceleration.
fn settings(text: &str) -> (Option<i8>, [f64; 3]) {
    let it = RobotConfig::parse(text, "r.toml").unwrap().axes[0].homing_settings.unwrap();
    (it.method, [it.switch_velocity.0, it.zero_velocity.0, it.acceleration.0])
}

/// Error of [`GOOD`] with `good` replaced by `bad`, without its place.
fn sentence(good: &str, bad: &str) -> String {
    support::sentence(GOOD, good, bad)
}

#[test]
fn missing_homing_values_follow_from_axis_limits() {
    let drive =
        |position, time_out| Homing::Drive { position: Radians(position), timeout: Seconds(time_out) };
    assert_eq!(homing(GOOD), drive(0.0, 30.0));
    assert_eq!(settings(GOOD), (Some(17), [1.0, 0.1, 50.0]));
    let all = "{ method = 34, position = -0.25, switch_velocity = 5.0, zero_velocity = 2.0, acceleration = 20.0, \
               time_out = \"2min\" }";
    let said = GOOD.replacen("{ method = 17 }", all, 1);
    assert_eq!(homing(&said), drive(-0.25, 120.0));
    assert_eq!(settings(&said), (Some(34), [5.0, 2.0, 20.0]));
    // Without a method the position belongs to a mark to which the operator moves the axis.
    let by_hand = GOOD.replacen("method = 17", "position = 1.0", 1);
    assert_eq!(homing(&by_hand), Homing::CurrentPosition { position: Radians(1.0) });
    let switch = GOOD
        .replacen("limit_switches = [-3.0, 4.0]", "home_switch = [2.0, 2.5]", 1)
        .replacen("17", "24", 1);
    let robot = RobotConfig::parse(&switch, "r.toml").unwrap();
    assert_eq!(robot.bus.sub_devices[0].simulation.as_ref().unwrap().home_switch, Some((2.0, 2.5)));
    // A real drive may know every method, and its SII may map the modes.
    let simulate = "simulate = { kind = \"servo_drive\", limit_switches = [-3.0, 4.0] }";
    let real = GOOD.replacen(simulate, "", 1).replacen("method = 17", "method = 7", 1);
    assert_eq!(settings(&real).0, Some(7));
    let robot = RobotConfig::parse(GOOD, "r.toml").unwrap();
    let simulation = robot.bus.sub_devices[0].simulation.clone().unwrap();
    assert_eq!(simulation.application, ApplicationKind::ServoDrive);
    assert_eq!(simulation.limit_switches, Some((-3.0, 4.0)));
}

// feature(axes): homing by the drive (CiA 402 mode 6), without a step afterwards; errors, time-outs, called off
#[test]
fn homings_that_cannot_be_are_refused_with_what_is_missing() {
    for (good, bad, wanted) in [
        (
            "{ index = 0x6060, bits = 8 },",
            "",
            "axis \"slide\" homed by its drive without object 0x6060, expected it among the outputs of \"drive\": the \
             cycle changes the mode, and sends no SDO: map it (8 bits)",
        ),
        (
            "{ index = 0x6061, bits = 8 },",
            "",
            "axis \"slide\" homed by its drive without object 0x6061, expected it among the inputs of \"drive\": the \
             cycle changes the mode, and sends no SDO: map it (8 bits)",
        ),
        (
            "method = 17",
            "method = 36",
            "method = 36, expected a homing method of CiA 402: 1 to 14, 17 to 30, 33 to 35, or 37: correct method",
        ),
        (
            "method = 17",
            "method = 7",
            "method 7 for the simulated drive \"drive\" without a home switch, expected home_switch = [FIRST, LAST] in \
             its simulate: add it",
        ),
        (
            "limit_switches = [-3.0, 4.0]",
            "home_switch = [1.0, 1.0]",
            "home_switch = [1, 1], expected two angles in rad, the lower one first: correct home_switch",
        ),
        (
            ", limit_switches = [-3.0, 4.0]",
            "",
            "method 17 for the simulated drive \"drive\" without limit switches, expected limit_switches = [LOWEST, \
             HIGHEST] in its simulate: add it",
        ),
        (
            "[-3.0, 4.0]",
            "[3.0, 4.0]",
            "limit_switches = [3, 4], expected an angle below 0 and one above 0, in rad: the shaft starts at 0: correct \
             limit_switches",
        ),
        (
            "kind = \"servo_drive\", limit_switches",
            "kind = \"digital_outputs\", channels = 1, limit_switches",
            "limit_switches for another kind of application, expected limit_switches only with a \
             servo_drive: remove it",
        ),
        (
            "method = 17",
            "method = 17, offset = 1.0",
            "offset and method, expected offset of an absolute encoder, or method of a drive that finds its mark: \
             remove one of the two",
        ),
        (
            "method = 17",
            "position = 1.0, zero_velocity = 1.0",
            "zero_velocity without a method, expected method = the homing method of the drive: add it, or remove it",
        ),
        (
            "method = 17",
            "method = 17, switch_velocity = 11.0",
            "switch_velocity = 11, expected at most the velocity limit of the axis, 10: lower switch_velocity",
        ),
        (
            "method = 17",
            "method = 17, zero_velocity = -1.0",
            "zero_velocity = -1, expected a finite number above 0: correct zero_velocity",
        ),
        (
            "method = 17",
            "method = 17, acceleration = 51.0",
            "acceleration = 51, expected at most the acceleration limit of the axis, 50: lower acceleration",
        ),
        (
            "method = 17",
            "method = 17, time_out = \"1h\"",
            "time_out 1h, expected 100ms to 10min: correct time_out",
        ),
        (
            "method = 17",
            "methode = 17",
            "unknown key \"methode\", expected one of offset, position, method, switch_velocity, zero_velocity, \
             acceleration, time_out, required: did you mean \"method\"?",
        ),
    ] {
        assert_eq!(sentence(good, bad), wanted);
    }
}
