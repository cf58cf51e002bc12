//! Interlocks in a robot file: valid and invalid ones.
//!
//! Axes that are stopped with others, in a robot file: valid ones and invalid ones.

use onbeat_robot::{InterlockKind, RobotConfig};

const STATION: &str = include_str!("../../../examples/io-station.toml");

fn robot(interlocks: &str) -> Result<RobotConfig, String> {
    RobotConfig::parse(&format!("{STATION}\n{interlocks}\n"), "r.toml").map_err(|error| error.to_string())
}

fn interlock(keys: &str) -> String {
    format!("[[interlock]]\nname = \"door\"\n{keys}")
}

#[test]
fn an_interlock_is_for_all_axes_unless_it_names_some() {
    let keys = "kind = \"stop\"\nsub_device = \"switches\"\nchannel = 2";
    let found = robot(&interlock(keys)).unwrap().interlocks.remove(0);
    assert_eq!((found.kind, found.sub_device, found.channel), (InterlockKind::Stop, 2, 2));
    assert_eq!((found.inverted, found.axes), (false, vec![0]));
    let one =
        "kind = \"enable\"\nsub_device = \"switches\"\nchannel = 4\ninverted = true\naxes = [\"spindle\"]";
    let found = robot(&interlock(one)).unwrap().interlocks.remove(0);
    assert_eq!((found.kind, found.inverted, found.axes), (InterlockKind::Enable, true, vec![0]));
}

// feature(axes): interlocks: stop signals and permissions, fail-safe
#[test]
fn what_cannot_be_is_named() {
    let good = "kind = \"stop\"\nsub_device = \"switches\"\nchannel = 2";
    for (interlocks, sentence) in [
        (
            interlock(&good.replace("switches", "switchs")),
            "unknown SubDevice \"switchs\", expected the name of a SubDevice on the bus: did you mean \"switches\"?",
        ),
        (
            interlock(&good.replace("switches", "lamps")),
            "channel 2 for the interlock \"door\", expected a SubDevice with digital inputs; \"lamps\" has none: correct sub_device or channel",
        ),
        (
            interlock(&good.replace("= 2", "= 5")),
            "channel 5 for the interlock \"door\", expected 1 to 4, the digital inputs of \"switches\": correct sub_device or channel",
        ),
        (
            interlock(&good.replace("= 2", "= 0")),
            "channel 0 for the interlock \"door\", expected 1 to 4, the digital inputs of \"switches\": correct sub_device or channel",
        ),
        (
            interlock(&format!("{good}\naxes = [\"spindel\"]")),
            "interlock \"door\" for the unknown axis \"spindel\", expected the name of an axis: did you mean \"spindle\"?",
        ),
        // It would hold nothing.
        (
            interlock(&format!("{good}\naxes = []")),
            "interlock \"door\" for no axis, expected names of axes: name them, or remove axes for all",
        ),
        (
            format!("{0}\n{0}", interlock(good)),
            "a second interlock \"door\", expected every name once: give it another name",
        ),
        (
            interlock(&good.replace("\"stop\"", "\"halt\"")),
            "unknown value \"halt\", expected one of stop, enable",
        ),
    ] {
        let error = robot(&interlocks).unwrap_err();
        assert!(error.contains(sentence), "{error}");
    }
}

const TABLE: &str = include_str!("../../../examples/xy-table.toml");

const ARM: &str = include_str!("../../../examples/six-axis.toml");

fn parsed(text: &str) -> Result<RobotConfig, String> {
    RobotConfig::parse(text, "r.toml").map_err(|error| error.to_string())
}

/// The file with this line in the table of the axis of this name.
fn with(text: &str, axis: &str, line: &str) -> String {
    let name = format!("[[axis]]\nname = \"{axis}\"\n");
    assert!(text.contains(&name), "{axis}");
    text.replace(&name, &format!("{name}{line}\n"))
}

fn stops(robot: &RobotConfig) -> Vec<Vec<usize>> {
    robot.axes.iter().map(|axis| axis.stops.clone()).collect()
}

#[test]
fn axis_stops_only_the_axes_it_names() {
    let robot = parsed(TABLE).unwrap();
    assert!(stops(&robot).iter().all(Vec::is_empty));
    let names: Vec<_> = robot.axes.iter().map(|axis| axis.name.clone()).collect();
    let line = format!("stops = [\"{}\", \"{}\"]", names[1], names[2]);
    let robot = parsed(&with(TABLE, &names[0], &line)).unwrap();
    assert_eq!(stops(&robot)[..2], [vec![1, 2], vec![]]);
}

/// One list for all axes of an arm names each of them; `{}` is the number of the axis.
#[test]
fn the_axes_of_one_entry_stop_each_other_and_none_itself() {
    let all = "stops = [\"axis-1\", \"axis-2\", \"axis-3\", \"axis-4\", \"axis-5\", \"axis-6\"]";
    let robot = parsed(&with(ARM, "axis-{}", all)).unwrap();
    for (axis, stops) in stops(&robot).into_iter().enumerate() {
        assert_eq!(stops, (0..6).filter(|&other| other != axis).collect::<Vec<_>>());
    }
    let robot = parsed(&with(ARM, "axis-{}", "stops = [\"axis-{}\", \"axis-6\"]")).unwrap();
    assert_eq!(stops(&robot), [vec![5], vec![5], vec![5], vec![5], vec![5], vec![]][..]);
}

// feature(axes): `stops` of an unknown axis, of itself, or of one axis twice: an error with file and line
#[test]
fn contradictions_are_named_with_their_place() {
    let robot = parsed(TABLE).unwrap();
    let [first, second] = [0, 1].map(|axis: usize| robot.axes[axis].name.clone());
    for (names, sentence) in [
        (
            format!("\"{second}\", \"nobody-at-all\""),
            format!(
                "axis \"{first}\" that stops the unknown axis \"nobody-at-all\", expected the name of an axis: correct stops"
            ),
        ),
        (
            format!("\"{first}\""),
            format!("axis \"{first}\" that stops itself, expected names of other axes: remove it"),
        ),
        (
            format!("\"{second}\", \"{second}\""),
            format!("axis \"{first}\" that stops \"{second}\" twice, expected every axis once: remove one"),
        ),
    ] {
        let text = with(TABLE, &first, &format!("stops = [{names}]"));
        let line = text.lines().position(|line| line.starts_with("stops = ")).unwrap() + 1;
        let error = parsed(&text).unwrap_err();
        assert!(error.starts_with(&format!("r.toml:{line}:")), "{error}");
        assert!(error.ends_with(&sentence), "{error}");
    }
}
