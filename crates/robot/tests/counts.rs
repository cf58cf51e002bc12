//! Scales and positions that the 32 bits of a drive do not hold.

use onbeat_robot::RobotConfig;

fn robot(mode: &str, scale: &str, limits: &str, rest: &str) -> String {
    format!(
        "[cycle]\nperiod = \"1ms\"\n[[bus.sub_device]]\nname = \"drive\"\n\
         simulate = {{ kind = \"servo_drive\" }}\n\
         [[axis]]\nname = \"elbow\"\nsub_device = \"drive\"\nmode = \"{mode}\"\nrated_torque = 1.3\n\
         {scale}\nlimits = {{ {limits} velocity = 2.0, acceleration = 10.0, torque = 3.9 }}\n\
         encoder = \"multi_turn\"\nencoder_range = 4096\n{rest}\n"
    )
}

const LIMITS: &str = "position = [-1.2, 1.2],";
const SCALE: &str = "counts_per_revolution = 131_072";

// feature(axes): a scale or an offset with positions that do not fit the counts of the drive is refused
#[test]
fn positions_that_do_not_fit_the_counts_are_refused() {
    let offset = |value: &str| format!("homing = {{ offset = {value} }}");
    let huge = "counts_per_revolution = 9223372036854775808";
    for (mode, scale, limits, rest, found) in [
        ("csp", huge, LIMITS, "", "counts between the position limits"),
        ("csp", &format!("{SCALE}\ngear_ratio = 1e300"), LIMITS, "", "counts between the position limits"),
        ("csp", &format!("{SCALE}\ngear_ratio = 1e-300"), LIMITS, "", "counts between the position limits"),
        ("csp", "counts_per_revolution = 1", "position = [-1.2, 1.2],", "", "counts between"),
        ("csp", huge, "", "", "counts in a step of one cycle"),
        ("csv", "counts_per_revolution = 1e10", "", "", "counts/s at the velocity limit"),
        ("csp", SCALE, LIMITS, &offset("1e300"), "homing.offset = "),
        ("csp", SCALE, LIMITS, &offset("-1.1e8"), "homing.offset = "),
        ("csp", SCALE, "", "homing = { position = 1e300 }", "homing.position = "),
    ] {
        let text = robot(mode, scale, limits, rest);
        let refused = RobotConfig::parse(&text, "r.toml").expect_err(found).to_string();
        assert!(refused.contains(found) && refused.starts_with("r.toml:"), "{found}: {refused}");
    }
    let fits = |mode, scale, limits, rest| {
        let parsed = RobotConfig::parse(&robot(mode, scale, limits, rest), "r.toml");
        assert!(parsed.is_ok(), "{}", parsed.unwrap_err());
    };
    // 24 bits behind a gear of 500.
    fits("csp", "counts_per_revolution = 16_777_216\ngear_ratio = -500", "position = [-1.2, 0.3],", "");
    fits("csv", "counts_per_revolution = 6_000_000_000", "", "");
    fits("csp", SCALE, LIMITS, &offset("9.9e7"));
}
