//! Interlocks in a robot file: valid and invalid ones.
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
