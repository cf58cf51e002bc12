//! Brakes on digital outputs: assignment of outputs, and invalid outputs.
use crate::support;

use onbeat_robot::{Axis, RobotConfig};

/// Terminals of each kind, and two wheels with their brakes on the first.
const GOOD: &str = r#"
[cycle]
period = "1ms"

[[bus.sub_device]]
name = "outputs"
simulate = { kind = "digital_outputs", channels = 3 }

[[bus.sub_device]]
name = "real-outputs"

[[bus.sub_device]]
name = "mapped"
pdos = { outputs = [{ index = 0x1600, entries = [
    { index = 0x7000, sub_index = 1, bits = 8 },
    { index = 0x7010, sub_index = 1, bits = 1 },
    { index = 0, bits = 1 },
    { index = 0x7020, sub_index = 1, bits = 1 },
] }] }

[[bus.sub_device]]
name = "drive-{}"
count = 3
simulate = { kind = "servo_drive" }

[[axis]]
name = "wheel-{}"
count = 2
sub_device = "drive-{}"
mode = "csv"
counts_per_revolution = 4096
rated_torque = 1.0
limits = { velocity = 10.0, torque = 2.0 }
brake = { release = "80ms", engage = "50ms", output = { sub_device = "outputs", channel = 2 } }

[[axis]]
name = "joint"
sub_device = "drive-3"
mode = "csp"
counts_per_revolution = 4096
rated_torque = 1.0
limits = { velocity = 10.0, torque = 2.0 }
brake = { release = "150ms", engage = "100ms" }
"#;

/// Error of [`GOOD`] with `good` replaced by `bad`, without its place.
fn sentence(good: &str, bad: &str) -> String {
    support::sentence(GOOD, good, bad)
}

/// Places and channels of the outputs of the axes' brakes.
fn brake_outputs(text: &str) -> Vec<Option<(usize, usize)>> {
    let robot = RobotConfig::parse(text, "r.toml").unwrap();
    let output = |axis: &Axis| axis.brake.and_then(|brake| brake.output);
    robot.axes.iter().map(|axis| output(axis).map(|it| (it.sub_device, it.channel))).collect()
}

// feature(axes): a brake on a digital output, from the robot file to the terminal
#[test]
fn brakes_have_digital_outputs_of_their_own() {
    // Axes of one entry take the channels of a terminal one by one.
    assert_eq!(brake_outputs(GOOD), [Some((0, 2)), Some((0, 3)), None]);
    let each = GOOD.replacen("name = \"real-outputs\"", "name = \"outputs-{}\"\ncount = 2", 1);
    let each = each.replacen("\"outputs\", channel = 2", "\"outputs-{}\", channel = 7", 1);
    assert_eq!(brake_outputs(&each)[..2], [Some((1, 7)), Some((2, 7))], "a terminal for each axis");
    let mapped = GOOD.replacen("\"outputs\", channel = 2", "\"mapped\", channel = 1", 1);
    assert_eq!(brake_outputs(&mapped)[..2], [Some((2, 1)), Some((2, 2))], "objects of one bit");

    let on = |sub_device: &str, channel: &str| format!("\"{sub_device}\", channel = {channel}");
    let joint = |channel: u8| {
        let output = format!("\"100ms\", output = {{ sub_device = \"outputs\", channel = {channel} }}");
        ("\"100ms\"".to_owned(), output)
    };
    let here = |bad: String| ("\"outputs\", channel = 2".to_owned(), bad);
    for ((good, bad), wanted) in [
        (
            here(on("output", "2")),
            "axis \"wheel-1\" with its brake on the unknown SubDevice \"output\", expected the name of a SubDevice on \
             the bus: did you mean \"outputs\"?",
        ),
        (
            here(on("drive-3", "1")),
            "axis \"wheel-1\" with its brake on \"drive-3\", which has no digital outputs, expected a SubDevice with \
             digital outputs, as \"outputs\": name another SubDevice",
        ),
        (
            here(on("outputs", "3")),
            "channel 4 for the brake of axis \"wheel-2\", expected 1 to 3, the digital outputs of \"outputs\": correct \
             channel",
        ),
        (
            here(on("outputs", "0")),
            "channel 0 for the brake of axis \"wheel-1\", expected 1 to 3, the digital outputs of \"outputs\": correct \
             channel",
        ),
        (
            here(on("mapped", "-9223372036854775808")),
            "channel -9223372036854775808 for the brake of axis \"wheel-1\", expected 1 to 2, the digital outputs of \
             \"mapped\": correct channel",
        ),
        (
            here(on("real-outputs", "9223372036854775807")),
            "channel 9223372036854775807 for the brake of axis \"wheel-1\", expected 1 to 11888, the digital outputs of \
             \"real-outputs\": correct channel",
        ),
        (
            joint(3),
            "channel 3 of \"outputs\" for the brake of axis \"joint\"; the brake of \"wheel-2\" has it, expected an \
             output for each brake: choose another",
        ),
        (
            here("\"outputs\", chanel = 2".to_owned()),
            "unknown key \"chanel\", expected one of sub_device, channel: did you mean \"channel\"?",
        ),
    ] {
        assert_eq!(sentence(&good, &bad), wanted);
    }
    let free = GOOD.replacen(&joint(1).0, &joint(1).1, 1);
    assert_eq!(brake_outputs(&free)[2], Some((0, 1)));
}

/// A brake that may be absent while its drive is there would stay closed under a moving axis.
#[test]
fn a_brake_is_there_whenever_its_drive_is() {
    let presence = |of: &str| {
        let outputs = format!("name = \"outputs\"\nalias = 5\npresence = \"{of}\"");
        GOOD.replacen("name = \"outputs\"", &outputs, 1)
    };
    for of in ["optional", "hot_connect"] {
        let expected = format!(
            "axis \"wheel-1\" with its brake on \"outputs\", which is {of}, expected a SubDevice that is there whenever \
             \"drive-1\" is: make it required, or put both into one group"
        );
        assert_eq!(support::sentence(&presence(of), "period = \"1ms\"", "period = \"2ms\""), expected);
    }
    // What is plugged together moves together.
    let grouped = presence("optional").replacen("alias = 5", "alias = 5\ngroup = \"tool\"", 1).replacen(
        "name = \"drive-{}\"",
        "name = \"drive-{}\"\ngroup = \"tool\"\nalias = 10\npresence = \"optional\"",
        1,
    );
    assert_eq!(brake_outputs(&grouped), [Some((0, 2)), Some((0, 3)), None]);
}
