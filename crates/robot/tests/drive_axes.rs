//! Several axes on one SubDevice: valid and invalid files.
//!
//! Encoders in the robot file, and the doubts of `check` about them.

use onbeat_robot::{ResetFaults, RobotConfig};
use types::signal::Flow;

use crate::support;

const GOOD: &str = include_str!("../../../examples/xy-table.toml");

/// Error of [`GOOD`] with `good` replaced by `bad`, without its place.
fn sentence(good: &str, bad: &str) -> String {
    support::sentence(GOOD, good, bad)
}

// feature(axes): several axes on one SubDevice, by number or counted up; one twice, or not there, is named
#[test]
fn axes_of_one_sub_device_are_numbered_or_counted_up() {
    let robot = RobotConfig::parse(GOOD, "r.toml").unwrap();
    let axes: Vec<_> =
        robot.axes.iter().map(|axis| (axis.name.as_str(), axis.sub_device, axis.drive_axis)).collect();
    assert_eq!(axes, [("left x", 0, 0), ("left y", 0, 1), ("right 1", 1, 0), ("right 2", 1, 1)]);
}

// feature(axes): several axes on one SubDevice, by number or counted up; one twice, or not there, is named
#[test]
fn an_axis_twice_or_not_there_is_a_sentence() {
    let second = "drive_axis = 2\n";
    for (good, bad, told) in [
        (
            second,
            "",
            "axis 1 of SubDevice 0 for axis \"left y\"; \"left x\" has it, expected every axis of a drive once: give \
             each its own SubDevice, or drive_axis where one has several",
        ),
        (
            second,
            "drive_axis = 3\n",
            "axis 3 of \"left\" for axis \"left y\", expected 1 to 2, the axes it is simulated with: raise axes in its \
             simulate",
        ),
        ("axes = 2\n", "axes = 3\n", ""),
        (second, "drive_axis = 9\n", "drive_axis = 9, expected 1 to 8: correct drive_axis"),
        ("axes = 2\n", "axes = 9\n", "axes = 9, expected 1 to 8: correct axes"),
        (
            "{ index = 0x687A, bits = 32, name = \"target position y\" },",
            "",
            "axis \"left y\" in mode csp without object 0x687a, expected target position among the outputs of \"left\": \
             map it, or correct drive_axis",
        ),
        (
            "startup = [",
            "startup = [{ index = 0x6860, type = \"int8\", value = 9 }, ",
            "axis \"left y\" in mode csp, expected the mode that start-up writes to 0x6860 ([9]): remove that start-up \
             SDO: the axis sets its mode itself",
        ),
        (
            "drive_axis = 2\n",
            "drive_axis = 2\nhoming = { method = 37 }\n",
            "axis \"left y\" homed by its drive without object 0x6860, expected it among the outputs of \"left\": the \
             cycle changes the mode, and sends no SDO: map it (8 bits)",
        ),
    ] {
        match told {
            "" => assert!(RobotConfig::parse(&GOOD.replacen(good, bad, 1), "r.toml").is_ok(), "{bad}"),
            told => assert_eq!(sentence(good, bad), told, "{bad}"),
        }
    }
}

/// Flow of a signal of the left drive.
fn flow(text: &str, name: &str) -> Result<Flow, String> {
    let robot = RobotConfig::parse(text, "r.toml").map_err(|error| error.to_string())?;
    let mapping = |position: usize| robot.bus.sub_devices[position].explicit_mapping();
    let all = robot.signals(mapping).map_err(|error| error.to_string())?;
    Ok(all.into_iter().find(|it| it.name == name).unwrap_or_else(|| panic!("no {name}")).flow)
}

// feature(signals): objects of each axis of a drive are that axis's; digital outputs are signals where the mask leaves the brake out
#[test]
fn axes_own_their_objects_and_outputs_are_free_without_brake() {
    let taken = |axis: &str| Ok(Flow::Taken(format!("axis \"{axis}\"")));
    assert_eq!(flow(GOOD, "left.controlword"), taken("left x"));
    assert_eq!(flow(GOOD, "left.controlword y"), taken("left y"));
    assert_eq!(flow(GOOD, "right.target position y"), taken("right 2"));
    assert!(matches!(flow(GOOD, "left outputs"), Ok(Flow::Output(_))));
    // An unused axis of the drive stays at zero.
    let alone = GOOD.replacen("count = 2", "count = 1", 1);
    assert_eq!(flow(&alone, "right.controlword y"), taken("right 1"));
    for (mask, index) in [("0x0003_0001", "sub_index = 2"), ("0x0003_0000", "sub_index = 1")] {
        let text = GOOD.replacen(
            "sub_index = 2, type = \"uint32\", value = 0x0003_0000",
            &format!("{index}, type = \"uint32\", value = {mask}"),
            1,
        );
        let refused = flow(&text, "left outputs").unwrap_err();
        assert!(refused.contains("which axis \"left x\" writes"), "{refused}");
    }
}

/// The example of an arm, with other lines for its encoders.
fn arm(keys: &str) -> String {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/arm.toml")).unwrap();
    let given = "encoder = \"multi_turn\"\nencoder_range = 4096                # revolutions that it distinguishes without power\n";
    assert!(text.contains(given));
    text.replace(given, keys)
}

fn doubts(keys: &str) -> Vec<String> {
    let mut doubts = RobotConfig::parse(&arm(keys), "arm.toml").unwrap().doubts();
    doubts.dedup_by_key(|it| it.split(": ").skip(1).map(str::to_owned).collect::<Vec<_>>());
    doubts
}

fn refused(keys: &str) -> String {
    RobotConfig::parse(&arm(keys), "arm.toml").unwrap_err().to_string()
}

// feature(axes): the robot file says what an encoder keeps without power
#[test]
fn limits_without_an_encoder_are_doubted_for_real_drives() {
    let simulation = "[device.joint-drive.simulate]\n";
    let text = arm("");
    let (before, behind) = text.split_once(simulation).unwrap();
    let (_, behind) = behind.split_once("\n\n").unwrap();
    let mut found = RobotConfig::parse(&format!("{before}\n{behind}"), "arm.toml").unwrap().doubts();
    found.retain(|it| it.starts_with("axis"));
    assert_eq!(found.len(), 6, "{found:?}");
    assert!(found[0].contains("limits.position without encoder"), "{found:?}");
    assert!(found[0].contains("no homing of it finds a switch"), "{found:?}");
    // A simulated drive restarts only on command: one note, and no doubt.
    let robot = RobotConfig::parse(&text, "arm.toml").unwrap();
    assert_eq!(robot.doubts(), [""; 0]);
    let notes = robot.notes();
    assert!(
        matches!(&notes[..], [it] if it.starts_with("axes \"axis-1\", ") && it.contains("--iface")),
        "{notes:?}"
    );
    let example = RobotConfig::parse(include_str!("../../../examples/arm.toml"), "arm.toml").unwrap();
    assert_eq!(example.notes(), [""; 0]);
}

// feature(program): `check` names an axis that nothing makes ready after a restart of its drive
#[test]
fn an_incremental_encoder_without_a_switch_is_doubted() {
    let found = doubts("encoder = \"incremental\"\n");
    let dead_end = "nothing makes it ready but a new start of `onbeat run`: no homing of it finds a switch";
    assert!(found.len() == 1 && found[0].contains(dead_end), "{found:?}");
}

// feature(program): `check` doubts a `position_tolerance` or a `coast` farther than the axis goes
#[test]
fn distances_beyond_the_limits_or_a_motor_turn_are_doubted() {
    // 5.8 rad between the limits; 0.063 rad is a turn of the motor.
    let multi = |keys: &str| doubts(&format!("encoder = \"multi_turn\"\nencoder_range = 4096\n{keys}\n"));
    for (keys, sentence) in [
        (
            "position_tolerance = 10.0",
            "position_tolerance = 10 rad is more than one turn of its motor, 0.0",
        ),
        ("position_tolerance = 0.07", "position_tolerance = 0.07 rad is more than one turn of its motor"),
        ("coast = 10.0", "coast = 10 rad is more than the span of limits.position, 5.800 rad"),
        ("coast = 1e308", "is more than the span of limits.position"),
    ] {
        let found = multi(keys);
        assert!(found.len() == 1 && found[0].contains(sentence), "{keys}: {found:?}");
    }
    for keys in ["", "position_tolerance = 0.06", "coast = 5.0"] {
        assert_eq!(multi(keys), [""; 0], "{keys}");
    }
}

#[test]
fn an_encoder_that_cannot_keep_the_position_is_doubted() {
    let found = doubts("encoder = \"single_turn\"\n");
    assert!(
        found[0].contains("its single_turn encoder distinguishes 0.063 rad, its limits span 5.800 rad"),
        "{found:?}"
    );
    assert_eq!(doubts("encoder = \"single_turn\"\nencoder_side = \"load\"\n"), [""; 0]);
    // 5.9 rad and half of it: a moving axis may pass that.
    let found = doubts("encoder = \"single_turn\"\nencoder_side = \"load\"\ncoast = 2.6\n");
    assert!(found[0].contains("each restart of its drive leaves it unreferenced"), "{found:?}");
}

#[test]
fn an_encoder_range_fits_the_encoder() {
    let found = refused("encoder = \"multi_turn\"\n");
    assert!(
        found.contains("encoder = \"multi_turn\" without encoder_range, expected encoder_range = "),
        "{found}"
    );
    let found = refused("encoder = \"single_turn\"\nencoder_range = 4\n");
    assert!(
        found.contains("encoder = \"single_turn\" and encoder_range = 4, expected a range of 1"),
        "{found}"
    );
    let found = refused("encoder_range = 4\n");
    assert!(
        found.contains("encoder_range = 4 of an encoder that is not absolute, expected encoder = "),
        "{found}"
    );
    assert!(
        refused("encoder = \"absolute\"\n")
            .contains("expected one of incremental, single_turn, multi_turn")
    );
    assert!(refused("coast = -1.0\n").contains("coast = -1, expected a finite number, 0 or above"));
    assert!(refused("position_tolerance = 0.0\n").contains("position_tolerance = 0"));
}

// feature(axes): `position_memory`, and `reset_faults`, which needs it on axes with limits
#[test]
fn position_memory_and_reset_faults_go_together() {
    let robot = |axis: &str, cycle: &str| {
        let text = arm(axis).replacen("[cycle]\n", &format!("[cycle]\n{cycle}"), 1);
        RobotConfig::parse(&text, "arm.toml").map_err(|error| error.to_string())
    };
    let memory = "encoder = \"multi_turn\"\nencoder_range = 4096\nposition_memory = true\n";
    let communication = "reset_faults = \"communication\"\nreset_codes = [0x8611]\n";
    let good = robot(memory, communication).expect("a good file");
    assert!(good.axes[0].position_memory);
    assert_eq!(good.cycle.reset_faults, ResetFaults::Communication);
    assert_eq!(good.cycle.reset_codes, [0x8611]);
    let refused = |axis: &str, cycle: &str| robot(axis, cycle).expect_err("refused");
    let found = refused("", communication);
    assert!(found.contains("expected position_memory of each axis with limits.position"), "{found}");
    let found = refused(memory, "reset_codes = [0x8611]\n");
    assert!(found.contains("reset_codes without reset_faults"), "{found}");
    assert!(refused(memory, "reset_faults = \"all\"\n").contains("communication"));
    // Another scale or offset is another place.
    let scale =
        |keys: &str| robot(&format!("{memory}{keys}"), "").expect("a good file").axes[0].scale_sha256();
    assert_eq!(scale(""), scale("coast = 0.1\n"));
    let other = memory.replace("4096", "1024");
    let other = robot(&other, "").expect("a good file").axes[0].scale_sha256();
    assert_ne!(scale(""), other);
}
