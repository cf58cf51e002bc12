//! The second barrier: values for the drives that follow from the limits of the axes.
//!
//! Scales and positions that the 32 bits of a drive do not hold.

use ethercat::main_device::{Barrier, BarrierTask, UnitValue};
use onbeat_robot::{BarrierSource, RobotConfig};

/// A file of one drive with one axis, 65536 counts a turn behind a gear, and these further keys.
fn robot(gear_ratio: f64, mode: &str, axis: &str, startup: &str) -> RobotConfig {
    let text = format!(
        "[cycle]\nperiod = \"1ms\"\n\
         [[bus.sub_device]]\nname = \"drive\"\nsimulate = {{ kind = \"servo_drive\" }}\n{startup}\n\
         [[axis]]\nname = \"x\"\nsub_device = \"drive\"\nmode = \"{mode}\"\ncounts_per_revolution = 65_536\n\
         gear_ratio = {gear_ratio}\nrated_torque = 2.0\n{axis}"
    );
    RobotConfig::parse(&text, "robot.toml").unwrap()
}

/// The limits of all tests: 2 rad/s and 4 rad/s^2 leave 0.5 rad for a stop, and a step is 4 mrad.
const LIMITS: &str =
    "limits = { position = [-1.0, 2.0], velocity = 2.0, acceleration = 4.0, torque = 5.0 }\n";

fn source(robot: &RobotConfig, index: u16, sub_index: u8) -> BarrierSource {
    let barriers = robot.drive_barriers();
    barriers.into_iter().find(|it| (it.index, it.sub_index) == (index, sub_index)).unwrap().source
}

fn written(robot: &RobotConfig, index: u16, sub_index: u8) -> i64 {
    match source(robot, index, sub_index) {
        BarrierSource::Limits(_, it) => match it.task {
            BarrierTask::Write(value) => it.number(value),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

// feature(axes): the drives hold the limits of their axes as a second barrier
#[test]
fn position_limits_are_in_counts_with_space_for_a_stop() {
    let ends = |robot: &RobotConfig| [1, 2].map(|it| written(robot, 0x607D, it));
    let multi_turn = format!("{LIMITS}encoder = \"multi_turn\"\nencoder_range = 65536\n");
    let counts = |radians: f64| radians * 65_536.0 * 3.0 / std::f64::consts::TAU;
    let about = |found: [i64; 2], expected: [f64; 2]| {
        for (found, expected) in found.into_iter().zip(expected) {
            assert!((found as f64 - counts(expected)).abs() < 2.0, "{found} of {}", counts(expected));
        }
    };
    about(ends(&robot(3.0, "csp", &multi_turn, "")), [-1.504, 2.504]);
    about(ends(&robot(-3.0, "csp", &multi_turn, "")), [-2.504, 1.504]);
    let offset = format!("{multi_turn}homing = {{ offset = 0.5 }}\n");
    about(ends(&robot(3.0, "csp", &offset, "")), [-2.004, 2.004]);
    // A stop deceleration of twice the acceleration needs half the distance.
    let hard = multi_turn.replace("torque", "stop_deceleration = 8.0, torque");
    about(ends(&robot(3.0, "csp", &hard, "")), [-1.254, 2.254]);
}

#[test]
fn a_zero_that_the_run_sets_leaves_out_the_position_limits() {
    let none = |keys: &str| match source(&robot(3.0, "csp", &format!("{LIMITS}{keys}"), ""), 0x607D, 1) {
        BarrierSource::None(reason) => reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(none(""), "the place of its position 0 is set in the run");
    assert_eq!(none("homing = { position = 0.0 }"), "the place of its position 0 is set in the run");
    assert!(none("encoder = \"single_turn\"").contains("another revolution"));
    assert!(none("homing = { method = 33 }").contains("before its homing"));
    assert_eq!(none("drive_limits = false"), "drive_limits = false");
}

// feature(axes): 0x607D is not written where a restart may shift the drive's count by whole ranges
#[test]
fn an_encoder_that_may_count_from_another_range_leaves_it_out() {
    // 65536 counts a revolution of the motor: 65536 revolutions fill the 32 bits of 0x6064.
    for range in ["2", "16", "4096", "65535", "65535.9999"] {
        for homing in ["", "homing = { offset = 0.0 }\n", "encoder_side = \"load\"\n"] {
            if range.starts_with("65535") && homing.starts_with("encoder_side") {
                continue; // Three times as many counts, behind the gear.
            }
            let keys = format!("{LIMITS}encoder = \"multi_turn\"\nencoder_range = {range}\n{homing}");
            let found = source(&robot(3.0, "csp", &keys, ""), 0x607D, 1);
            let reason = "after a restart its drive may count from another range of its encoder";
            assert_eq!(found, BarrierSource::None(reason), "{range} {homing}");
        }
    }
    for range in ["65536", "131072"] {
        let keys = format!("{LIMITS}encoder = \"multi_turn\"\nencoder_range = {range}\n");
        assert!(matches!(source(&robot(3.0, "csp", &keys, ""), 0x607D, 1), BarrierSource::Limits(..)));
    }
}

#[test]
fn torque_error_and_speeds_are_in_units_of_the_drive() {
    let keys = format!("{LIMITS}following_error = {{ window = 0.1, time = \"30ms\" }}\n");
    let csv = robot(-3.0, "csv", &keys, "");
    // 5 N m of 6 at the axis; 0.15 rad for 45 ms.
    assert_eq!(written(&csv, 0x6072, 0), 833);
    assert_eq!(written(&csv, 0x6065, 0), (0.15 * 65_536.0 * 3.0 / std::f64::consts::TAU).ceil() as i64);
    assert_eq!(written(&csv, 0x6066, 0), 45);
    let in_unit = |robot: &RobotConfig, index| match source(robot, index, 0) {
        BarrierSource::Limits(_, Barrier { task: BarrierTask::WriteInUnit(value), .. }) => value,
        other => panic!("{other:?}"),
    };
    let velocity = in_unit(&csv, 0x607F);
    let counts = (2.4 * 65_536.0 * 3.0 / std::f64::consts::TAU).ceil() as u32;
    assert_eq!((velocity.unit, velocity.in_unit(0)), (0x60A9, Some(counts)), "0x60FF is in counts");
    // 2.4 rad/s behind the gear are 68.75 turns a minute of the motor.
    assert_eq!(velocity.in_unit(0x00B4_4700), Some(69));
    let csp = robot(3.0, "csp", &keys, "");
    let [speed, stop]: [UnitValue; 2] = [0x607F, 0x6085].map(|index| in_unit(&csp, index));
    assert_eq!([speed.in_unit(0), stop.in_unit(0)], [None, None], "nothing says its unit");
    assert_eq!(stop.unit, 0x60AA);
}

#[test]
fn startup_wins_and_a_weaker_value_is_known() {
    let startup = "startup = [\n{ index = 0x6072, type = \"uint16\", value = 900 },\n\
                   { index = 0x6085, type = \"uint32\", value = 7 },\n\
                   { index = 0x607F, type = \"uint32\", value = 1 },\n]";
    let robot = robot(3.0, "csv", LIMITS, startup);
    let stop = (4.0 * 65_536.0 * 3.0 / std::f64::consts::TAU).ceil() as i64;
    let rows = [(0x6072, 900, Some(833)), (0x6085, 7, Some(stop)), (0x607F, 1, None)];
    for (index, value, limits) in rows {
        assert_eq!(source(&robot, index, 0), BarrierSource::Startup { value, limits }, "{index:#x}");
    }
}

#[test]
fn each_axis_of_a_drive_has_its_own_objects() {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/xy-table.toml"))
            .unwrap();
    let robot = RobotConfig::parse(&text, "xy-table.toml").unwrap();
    let barriers = robot.drive_barriers();
    let torques = barriers.iter().filter(|it| it.index & 0x7FF == 0x072).map(|it| (it.axis, it.index));
    let torques: Vec<_> = torques.collect();
    assert!(torques.starts_with(&[(0, 0x6072), (1, 0x6872)]), "{torques:x?}");
    let mut places = vec![Vec::new(); robot.bus.sub_devices.len()];
    for it in &barriers {
        if let BarrierSource::Limits(place, _) = it.source {
            places[robot.axes[it.axis].sub_device].push(place);
        }
    }
    for places in places {
        assert!(places.iter().copied().eq(0..places.len()), "{places:?}");
    }
}

#[test]
fn a_torque_limit_in_the_process_data_is_sent_by_the_cycle() {
    let pdos = "pdos = { outputs = [{ index = 0x1600, entries = [{ index = 0x6040, bits = 16 }, { index = 0x607A, bits = 32 }, \
                { index = 0x6072, bits = 16 }] }], inputs = [{ index = 0x1A00, entries = [{ index = 0x6041, bits = 16 }, \
                { index = 0x6064, bits = 32 }] }] }\n";
    for off in ["", "drive_limits = false\n"] {
        let axis = format!("{LIMITS}{off}");
        let mapped = robot(3.0, "csp", &axis, pdos);
        assert_eq!(source(&mapped, 0x6072, 0), BarrierSource::ProcessData(833), "{off}");
        let signal = "[[signal]]\nname = \"limit\"\nsub_device = \"drive\"\nentry = { index = 0x6072 }\n";
        let without = robot(3.0, "csp", &format!("{axis}{signal}"), pdos);
        assert_eq!(source(&without, 0x6072, 0), BarrierSource::ProcessData(833), "{off}");
        let given = robot(3.0, "csp", &format!("{axis}{signal}initial = 900\n"), pdos);
        let reason = "a [[signal]] gives its value in the process data";
        assert_eq!(source(&given, 0x6072, 0), BarrierSource::None(reason), "{off}");
    }
}

fn scaled(mode: &str, scale: &str, limits: &str, rest: &str) -> String {
    format!(
        "[cycle]\nperiod = \"1ms\"\n[[bus.sub_device]]\nname = \"drive\"\n\
         simulate = {{ kind = \"servo_drive\" }}\n\
         [[axis]]\nname = \"elbow\"\nsub_device = \"drive\"\nmode = \"{mode}\"\nrated_torque = 1.3\n\
         {scale}\nlimits = {{ {limits} velocity = 2.0, acceleration = 10.0, torque = 3.9 }}\n\
         encoder = \"multi_turn\"\nencoder_range = 4096\n{rest}\n"
    )
}

const POSITION: &str = "position = [-1.2, 1.2],";

const SCALE: &str = "counts_per_revolution = 131_072";

// feature(axes): a scale or an offset with positions that do not fit the counts of the drive is refused
#[test]
fn positions_that_do_not_fit_the_counts_are_refused() {
    let offset = |value: &str| format!("homing = {{ offset = {value} }}");
    let huge = "counts_per_revolution = 9223372036854775808";
    for (mode, scale, limits, rest, found) in [
        ("csp", huge, POSITION, "", "counts between the position limits"),
        (
            "csp",
            &format!("{SCALE}\ngear_ratio = 1e300"),
            POSITION,
            "",
            "counts between the position limits",
        ),
        (
            "csp",
            &format!("{SCALE}\ngear_ratio = 1e-300"),
            POSITION,
            "",
            "counts between the position limits",
        ),
        ("csp", "counts_per_revolution = 1", "position = [-1.2, 1.2],", "", "counts between"),
        ("csp", huge, "", "", "counts in a step of one cycle"),
        ("csv", "counts_per_revolution = 1e10", "", "", "counts/s at the velocity limit"),
        ("csp", SCALE, POSITION, &offset("1e300"), "homing.offset = "),
        ("csp", SCALE, POSITION, &offset("-1.1e8"), "homing.offset = "),
        ("csp", SCALE, "", "homing = { position = 1e300 }", "homing.position = "),
    ] {
        let text = scaled(mode, scale, limits, rest);
        let refused = RobotConfig::parse(&text, "r.toml").expect_err(found).to_string();
        assert!(refused.contains(found) && refused.starts_with("r.toml:"), "{found}: {refused}");
    }
    let fits = |mode, scale, limits, rest| {
        let parsed = RobotConfig::parse(&scaled(mode, scale, limits, rest), "r.toml");
        assert!(parsed.is_ok(), "{}", parsed.unwrap_err());
    };
    // 24 bits behind a gear of 500.
    fits("csp", "counts_per_revolution = 16_777_216\ngear_ratio = -500", "position = [-1.2, 0.3],", "");
    fits("csv", "counts_per_revolution = 6_000_000_000", "", "");
    fits("csp", SCALE, POSITION, &offset("9.9e7"));
}
