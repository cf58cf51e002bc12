//! All problems of a file at once, and values that are hardly meant.

use onbeat_robot::RobotConfig;

const M4K: &str = include_str!("../../../examples/m4k.toml");
const ARM: &str = include_str!("../../../examples/arm.toml");
const EXAMPLES: [&str; 6] = [
    include_str!("../../../examples/six-axis.toml"),
    include_str!("../../../examples/io-station.toml"),
    include_str!("../../../examples/humanoid-59.toml"),
    M4K,
    include_str!("../../../examples/omni.toml"),
    ARM,
];

fn spoiled(text: &str, changes: &[(&str, &str)]) -> String {
    changes.iter().fold(text.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    })
}

// feature(program): `onbeat check`
#[test]
fn independent_mistakes_are_reported_together_with_places() {
    let text = spoiled(
        ARM,
        &[
            ("outage_time = \"80ms\"", "outage_tim = \"80ms\""),
            ("after_outage = \"resume\"", "after_outage = \"go\""),
            ("inertia = 3e-4", "inertia = -3e-4"),
            ("on_stale = \"hold\"", "on_stale = \"help\""),
            ("goal_tolerance = 0.01", "goal_tolerance = \"small\""),
        ],
    );
    let mut problems = RobotConfig::problems(&text, "arm.toml");
    assert_eq!(problems.len(), 5, "{problems:#?}");
    let first = RobotConfig::parse(&text, "arm.toml").unwrap_err();
    assert_eq!(problems[0], first, "the one that a run tells");
    problems.sort_by_key(|problem| problem.place);
    for (problem, wrong) in problems.iter().zip(["outage_tim", "go", "-3e-4", "help", "small"]) {
        let (line, column) = problem.place.unwrap();
        let there = &text.lines().nth(line - 1).unwrap()[column - 1..];
        assert!(there.trim_start_matches('"').starts_with(wrong), "{problem}: {there}");
    }
}

/// A substitute for a wrong value, used to find the following problems, is not reported.
// feature(program): `onbeat check`
#[test]
fn substitutes_for_wrong_values_are_not_reported() {
    let tool = "presence = \"hot_connect\"\ngroup = \"tool\"\nsimulate = { kind = \"el1008\" }";
    let text = format!(
        "[cycle]\nperiod = \"2ms\"\n[bus]\n[[bus.sub_device]]\nname = \"a\"\nalias = 77\n{tool}\n\
         [[bus.sub_device]]\nname = \"b\"\nsimulate = {{ kind = \"el1008\" }}\n\
         [[bus.sub_device]]\nname = \"c\"\n{tool}\n"
    );
    let problems: Vec<String> =
        RobotConfig::problems(&text, "r.toml").iter().map(ToString::to_string).collect();
    let apart = "group \"tool\" with another SubDevice in it, expected all of a group in a row";
    assert!(problems.iter().any(|it| it.contains(apart)), "{problems:#?}");
    for it in &problems {
        let (line, _) = it.trim_start_matches("r.toml:").split_once(':').unwrap();
        let line = text.lines().nth(line.parse::<usize>().unwrap() - 1).unwrap();
        assert!(line.contains("tool") || line.contains("hot_connect"), "{it}");
        assert!(!it.contains("1ms"), "{it}");
    }
}

// feature(program): `onbeat check`
#[test]
fn omitted_key_is_fine_and_missing_keys_are_reported_last() {
    // Without its mode an axis cannot be read, nor without a kind a controller and a simulated
    // device.
    let wrong = spoiled(
        ARM,
        &[
            ("period = \"1ms\"", "period = \"1mss\""),
            ("profile = \"PM\"", "profile = \"PX\""),
            ("mode = \"csp\"", "mode = \"cps\""),
            ("kind = \"servo_drive\"", "kind = \"servo\""),
            ("kind = \"joint_trajectory\"", "kind = \"joint_trajctory\""),
        ],
    );
    let problems = RobotConfig::problems(&wrong, "arm.toml");
    assert_eq!(problems.len(), 5, "{problems:#?}");
    let missing = spoiled(ARM, &[("mode = \"csp\"", ""), ("inertia = 3e-4", "inertia = 0")]);
    let problems: Vec<_> =
        RobotConfig::problems(&missing, "arm.toml").iter().map(ToString::to_string).collect();
    assert_eq!(problems.len(), 2, "{problems:#?}");
    assert!(
        problems[0].contains("inertia = 0") && problems[1].contains("\"mode\" is missing"),
        "{problems:#?}"
    );
    // Invalid TOML is one problem.
    assert_eq!(RobotConfig::problems("[cycle", "x.toml").len(), 1);
}

// feature(program): `onbeat check`
#[test]
fn first_twenty_of_many_problems_are_reported() {
    let keys: String = (0..5_000).map(|number| format!("key-{number:04} = 0\n")).collect();
    let problems = RobotConfig::problems(&format!("{keys}{M4K}"), "robot.toml");
    let lines: Vec<_> = problems.iter().map(|problem| problem.place.unwrap().0).collect();
    assert!(lines.iter().copied().eq(1..=20), "{lines:?}");
}

// feature(program): `onbeat check`
#[test]
fn problems_exist_iff_reading_fails_and_the_first_is_equal() {
    for text in EXAMPLES {
        assert_eq!(RobotConfig::problems(text, "robot.toml"), []);
        let lines: Vec<&str> = text.lines().collect();
        // Each line left out, and each with another value.
        for (number, line) in lines.iter().enumerate() {
            let value = line.split_once('=').map_or(String::new(), |(key, _)| format!("{key}= -7.5"));
            for replaced in ["", value.as_str()] {
                let mut spoiled = lines.clone();
                spoiled[number] = replaced;
                let text = spoiled.join("\n");
                let first = RobotConfig::parse(&text, "robot.toml").err();
                assert_eq!(RobotConfig::problems(&text, "robot.toml").first(), first.as_ref(), "{line}");
            }
        }
    }
}

// feature(program): `onbeat check`
#[test]
fn values_in_another_unit_are_doubted_and_the_examples_are_not() {
    for text in EXAMPLES {
        assert_eq!(RobotConfig::parse(text, "robot.toml").unwrap().doubts(), [""; 0]);
    }
    let doubts = |text: &str, changes: &[(&str, &str)]| {
        RobotConfig::parse(&spoiled(text, changes), "robot.toml").unwrap().doubts().join("\n")
    };
    let found = doubts(
        M4K,
        &[("wheel_diameter = 0.2032", "wheel_diameter = 203.2"), ("track = 0.23", "track = 420.0")],
    );
    assert!(found.contains("base: wheel_diameter = 203.2 m; are these millimetres?"), "{found}");
    assert!(found.contains("base: track = 420 m"), "{found}");
    let found = doubts(ARM, &[("torque = 260.0", "torque = 48000.0"), ("[-2.9, 2.9]", "[-180.0, 180.0]")]);
    assert!(
        found.contains("axis \"axis-1\": limits.torque = 48000 N m is more than 32 times the rated torque"),
        "{found}"
    );
    assert!(found.contains("limits.position = [-180, 180] rad is 57 turns; are these degrees?"), "{found}");
    assert_eq!(found.lines().count(), 12, "two of each axis: {found}");
    let found = doubts(ARM, &[("velocity = 2.0", "velocity = 5000.0")]);
    assert!(found.contains("limits.velocity = 5000 rad/s is 47746 turns a minute"), "{found}");
}
