//! Jogs, required homing, and interlocks of jogs in the robot file.
use motion::supervision::JogLimits;
use motion::{NewtonMetres, RadiansPerSecond};
use onbeat_robot::{InterlockKind, RobotConfig};

/// A drive that is homed by its method 17, with further lines for its axis.
fn text(limits: &str, homing: &str, keys: &str) -> String {
    format!(
        r#"
[cycle]
period = "1ms"

[[bus.sub_device]]
name = "drive"
simulate = {{ kind = "servo_drive", limit_switches = [-3.0, 4.0] }}

[[bus.sub_device]]
name = "switches"
simulate = {{ kind = "digital_inputs", channels = 4 }}

[[axis]]
name = "slide"
sub_device = "drive"
mode = "csp"
counts_per_revolution = 4096
rated_torque = 1.0
limits = {{ velocity = 10.0, torque = 2.0{limits} }}
{homing}
{keys}
"#
    )
}

fn parsed(limits: &str, homing: &str, keys: &str) -> RobotConfig {
    RobotConfig::parse(&text(limits, homing, keys), "r.toml").unwrap()
}

fn refused(limits: &str, homing: &str, keys: &str) -> String {
    RobotConfig::parse(&text(limits, homing, keys), "r.toml").unwrap_err().to_string()
}

fn jog(velocity: f64, torque: f64) -> Option<JogLimits> {
    Some(JogLimits { velocity: RadiansPerSecond(velocity), torque: NewtonMetres(torque) })
}

#[test]
fn a_jog_is_slow_unless_the_file_says_otherwise() {
    let of = |keys: &str| parsed("", "", keys).axes[0].jog;
    assert_eq!(of(""), jog(0.25, 0.6));
    assert_eq!(of("jog = { velocity = 1.5 }"), jog(1.5, 0.6));
    assert_eq!(of("jog = { torque = 1.0 }"), jog(0.25, 1.0));
    let slow = text("", "", "").replace("velocity = 10.0", "velocity = 1.0");
    assert_eq!(RobotConfig::parse(&slow, "r.toml").unwrap().axes[0].jog, jog(0.1, 0.6));
    for (keys, sentence) in [
        ("jog = { velocity = 11.0 }", "at most the velocity limit of the axis, 10"),
        ("jog = { torque = 2.5 }", "at most the torque limit of the axis, 2"),
        ("jog = { velocity = 0.0 }", "velocity = 0"),
        ("jog = { speed = 1.0 }", "expected one of velocity, torque"),
    ] {
        assert!(refused("", "", keys).contains(sentence), "{keys}: {}", refused("", "", keys));
    }
}

// feature(axes): homing.required: no controller moves an axis before it is homed
#[test]
fn homing_is_required_for_limits_without_an_absolute_encoder() {
    const LIMITS: &str = ", position = [-2.0, 2.0]";
    let by = |keys: &str| format!("homing = {{ {keys} }}");
    for (limits, homing, keys, required) in [
        (LIMITS, by("method = 17"), "", true),
        (LIMITS, by("method = 17"), "encoder = \"incremental\"", true),
        (LIMITS, by("method = 17"), "encoder = \"single_turn\"", false),
        (LIMITS, by("method = 17, required = false"), "", false),
        ("", by("method = 17"), "", false),
        ("", by("method = 17, required = true"), "", true),
        (LIMITS, by("method = 35"), "", true),
        (LIMITS, by("method = 37"), "", true),
        (LIMITS, by("method = 37, required = false"), "", false),
        (LIMITS, by("method = 37"), "encoder = \"multi_turn\"\nencoder_range = 8", false),
        (LIMITS, by("position = 0.5"), "", true),
        (LIMITS, by("position = 0.5"), "encoder = \"incremental\"", true),
        (LIMITS, by("position = 0.5"), "encoder = \"single_turn\"", false),
        (LIMITS, by("position = 0.5, required = false"), "", false),
        ("", by("position = 0.5"), "", false),
        ("", by("position = 0.5, required = true"), "", true),
        (LIMITS, by("offset = 0.5"), "", false),
        (LIMITS, String::new(), "", false),
    ] {
        let objects = "simulate = { kind = \"servo_drive\", limit_switches = [-3.0, 4.0] }";
        let text = text(limits, &homing, keys).replace(objects, &format!("{objects}\n{PDOS}"));
        let robot = RobotConfig::parse(&text, "r.toml").unwrap();
        assert_eq!(robot.axes[0].needs_homing, required, "{limits} {homing} {keys}");
        // Nothing makes the others ready after a restart of the drive.
        let finds_none = |doubt: &String| doubt.contains("no homing of it finds a switch");
        let has_a_way = homing.contains("method = 17") || keys.contains("_turn\"");
        let doubted = limits == LIMITS && !has_a_way && keys.contains("incremental");
        assert_eq!(robot.doubts().iter().any(finds_none), doubted, "{limits} {homing} {keys}");
        let noted = limits == LIMITS && !keys.contains("encoder");
        assert_eq!(robot.notes().len(), usize::from(noted), "{limits} {homing} {keys}");
    }
    let found = refused(LIMITS, &by("offset = 0.5, required = true"), "");
    assert!(found.contains("required = true and offset, expected a homing to wait for"), "{found}");
}

/// Process data of a drive that changes its mode.
const PDOS: &str = "
[bus.sub_device.pdos]
outputs = [{ index = 0x1600, entries = [
    { index = 0x6040, bits = 16 }, { index = 0x607A, bits = 32 }, { index = 0x6060, bits = 8 },
] }]
inputs = [{ index = 0x1A00, entries = [
    { index = 0x6041, bits = 16 }, { index = 0x6064, bits = 32 }, { index = 0x6061, bits = 8 },
] }]
";

#[test]
fn interlocks_permit_jogs_and_automatic_motion() {
    for (name, kind) in [("jog", InterlockKind::Jog), ("automatic", InterlockKind::Automatic)] {
        let keys = format!(
            "[[interlock]]\nname = \"key\"\nkind = \"{name}\"\nsub_device = \"switches\"\nchannel = 1"
        );
        assert_eq!(parsed("", "", &keys).interlocks[0].kind, kind);
    }
    let keys = "[[interlock]]\nname = \"key\"\nkind = \"set_up\"\nsub_device = \"switches\"\nchannel = 1";
    let found = refused("", "", keys);
    assert!(found.contains("expected one of stop, enable, jog, automatic"), "{found}");
}
