//! Several axes on one SubDevice: valid and invalid files.
use crate::support;

use onbeat_robot::RobotConfig;
use types::signal::Flow;

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
