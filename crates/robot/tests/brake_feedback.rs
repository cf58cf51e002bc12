//! Feedback of brakes: assignment of inputs, and invalid inputs.
use crate::support;

use onbeat_robot::RobotConfig;
use types::FeedbackInput;
use types::state::BrakeInput;

/// Terminals of each kind, and two wheels with feedback of their brakes on the first.
const GOOD: &str = r#"
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
    assert!(GOOD.contains(good));
    GOOD.replacen(good, &format!("engage = \"100ms\", feedback = {{ {feedback} }} }}"), 1)
}

// feature(axes): feedback of a brake on digital inputs, from the robot file to the stop of the axis
#[test]
fn brakes_have_inputs_that_no_other_brake_has() {
    let robot = RobotConfig::parse(GOOD, "r.toml").unwrap();
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
            GOOD.replacen("release = \"80ms\"\n", "", 1),
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
        assert_eq!(support::sentence(GOOD, here, &there), wanted);
    }
    let wanted = "the input released of the brake of axis \"wheel-1\" on";
    let slow = support::sentence(GOOD, here, "name = \"inputs\"\nevery = 2\nsimulate");
    assert!(slow.starts_with(wanted), "{slow}");
}
