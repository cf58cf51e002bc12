//! Brakes on digital outputs: assignment of outputs, and invalid outputs.
//!
//! Feedback of brakes: assignment of inputs, and invalid inputs.

use onbeat_robot::{Axis, RobotConfig};
use types::FeedbackInput;
use types::state::BrakeInput;

use crate::support;

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

/// Terminals of each kind, and two wheels with feedback of their brakes on the first.
const WITH_INPUTS: &str = r#"
[cycle]
period = "1ms"

[[bus.sub_device]]
name = "inputs"
simulate = { kind = "digital_inputs", channels = 5 }

[[bus.sub_device]]
name = "outputs"
simulate = { kind = "digital_outputs", channels = 4 }

[[bus.sub_device]]
name = "real-inputs"

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

[axis.brake]
release = "80ms"
engage = "50ms"
output = { sub_device = "outputs", channel = 1 }
feedback.released = { sub_device = "inputs", channel = 1 }
feedback.closed = { sub_device = "inputs", channel = 3, inverted = true }

[[axis]]
name = "joint"
sub_device = "drive-3"
mode = "csp"
counts_per_revolution = 4096
rated_torque = 1.0
limits = { velocity = 10.0, torque = 2.0 }
brake = { release = "150ms", engage = "100ms" }
"#;

/// Keys of the feedback of the joint's brake.
fn joint(feedback: &str) -> String {
    let good = "engage = \"100ms\" }";
    assert!(WITH_INPUTS.contains(good));
    WITH_INPUTS.replacen(good, &format!("engage = \"100ms\", feedback = {{ {feedback} }} }}"), 1)
}

// feature(axes): feedback of a brake on digital inputs, from the robot file to the stop of the axis
#[test]
fn brakes_have_inputs_that_no_other_brake_has() {
    let robot = RobotConfig::parse(WITH_INPUTS, "r.toml").unwrap();
    let input = |channel, inverted| FeedbackInput { sub_device: 0, channel, inverted };
    let found: Vec<_> = robot.brake_inputs().collect();
    assert_eq!(
        found,
        [
            (0, BrakeInput::Released, input(1, false)),
            (0, BrakeInput::Closed, input(3, true)),
            (1, BrakeInput::Released, input(2, false)),
            (1, BrakeInput::Closed, input(4, true)),
        ]
    );
    // A drive that works its own brake, with one input.
    let one = joint("closed = { sub_device = \"inputs\", channel = 5 }");
    let robot = RobotConfig::parse(&one, "r.toml").unwrap();
    let feedback = robot.axes[2].brake.unwrap().feedback;
    assert_eq!((feedback.released, feedback.closed), (None, Some(input(5, false))));
}

#[test]
fn invalid_feedback_of_a_brake_is_refused_with_its_place() {
    let released = |sub_device: &str, channel: i64| {
        joint(&format!("released = {{ sub_device = \"{sub_device}\", channel = {channel} }}"))
    };
    for (text, wanted) in [
        (
            joint(""),
            "axis \"joint\" with brake feedback without an input, expected released, closed, or both: add one, or \
             remove feedback",
        ),
        (
            released("input", 1),
            "axis \"joint\" with the input released of its brake on the unknown SubDevice \"input\", expected the name \
             of a SubDevice on the bus: did you mean \"inputs\"?",
        ),
        (
            released("outputs", 1),
            "axis \"joint\" with the input released of its brake on \"outputs\", which has no digital inputs, expected \
             a SubDevice with digital inputs, as \"inputs\": name another SubDevice",
        ),
        (
            released("inputs", 6),
            "channel 6 for the input released of the brake of axis \"joint\", expected 1 to 5, the digital inputs of \
             \"inputs\": correct channel",
        ),
        (
            released("inputs", 0),
            "channel 0 for the input released of the brake of axis \"joint\", expected 1 to 5, the digital inputs of \
             \"inputs\": correct channel",
        ),
        (
            released("inputs", 4),
            "channel 4 of \"inputs\" for the input released of the brake of axis \"joint\"; the input closed of the \
             brake of axis \"wheel-2\" has it, expected an input for each feedback: choose another",
        ),
        (
            joint(
                "released = { sub_device = \"inputs\", channel = 5 }, closed = { sub_device = \"inputs\", channel = 5 }",
            ),
            "channel 5 of \"inputs\" for the input closed of the brake of axis \"joint\"; the input released of the \
             brake of axis \"joint\" has it, expected an input for each feedback: choose another",
        ),
        (
            joint("close = { sub_device = \"inputs\", channel = 5 }"),
            "unknown key \"close\", expected one of released, closed: did you mean \"closed\"?",
        ),
        (
            joint("closed = { sub_device = \"inputs\", channel = 5, invert = true }"),
            "unknown key \"invert\", expected one of sub_device, channel, inverted: did you mean \"inverted\"?",
        ),
        (
            WITH_INPUTS.replacen("release = \"80ms\"\n", "", 1),
            "the key \"release\" is missing from this table, expected release = ...: add it",
        ),
    ] {
        let error = RobotConfig::parse(&text, "r.toml").unwrap_err().to_string();
        let told = error.split_once(": ").map_or("", |(_, told)| told);
        assert_eq!(told, wanted, "{error}");
    }
}

/// Feedback that may be absent while its drive is there would stop every axis, or say nothing.
#[test]
fn feedback_is_there_whenever_its_drive_is() {
    let here = "name = \"inputs\"\nsimulate";
    for presence in ["optional", "hot_connect"] {
        let there = format!("name = \"inputs\"\nalias = 5\npresence = \"{presence}\"\nsimulate");
        let wanted = format!(
            "axis \"wheel-1\" with the input released of its brake on \"inputs\", which is {presence}, expected a \
             SubDevice that is there whenever \"drive-1\" is: make it required, or put both into one group"
        );
        assert_eq!(support::sentence(WITH_INPUTS, here, &there), wanted);
    }
    let wanted = "the input released of the brake of axis \"wheel-1\" on";
    let slow = support::sentence(WITH_INPUTS, here, "name = \"inputs\"\nevery = 2\nsimulate");
    assert!(slow.starts_with(wanted), "{slow}");
}
