//! Mapped objects that move or bound an axis: signals that only the axis writes, or the robot file
//! once.
use onbeat_robot::RobotConfig;
use types::Signal;
use types::signal::Flow;

const STATION: &str = include_str!("../../../examples/io-station.toml");

/// Signals of the station with this object mapped on the spindle, too.
fn with_object(index: u16, keys: &str) -> Result<Vec<Signal>, String> {
    let offset = "{ index = 0x60B2, bits = 16, name = \"torque offset\" },";
    let bits = match index {
        0x6060 => 8,
        0x60B0 | 0x60B1 | 0x60FF => 32,
        _ => 16,
    };
    let more =
        format!("{offset}\n{{ index = {index:#06x}, sub_index = 0, bits = {bits}, name = \"it\" }},");
    let station = STATION.replacen(offset, &more, 1);
    let named = match keys {
        "" => String::new(),
        keys => format!(
            "[[signal]]\nname = \"it\"\nsub_device = \"spindle\"\nentry = {{ index = {index:#06x} }}\n{keys}"
        ),
    };
    let robot = RobotConfig::parse(&format!("{station}\n{named}\n"), "r.toml")
        .map_err(|error| error.to_string())?;
    let spindle = robot.bus.sub_devices[4].explicit_mapping().cloned();
    robot.signals(|position| spindle.as_ref().filter(|_| position == 4)).map_err(|error| error.to_string())
}

// feature(signals): no signal is on what moves an axis, also not on an offset that the axis leaves at zero; what bounds it stays as the file says
#[test]
fn what_moves_an_axis_is_the_axiss_also_where_it_writes_nothing() {
    let axis = Flow::Taken("axis \"spindle\"".to_owned());
    let all = with_object(0x6071, "").unwrap();
    let offset = all.iter().find(|it| it.name == "spindle.torque offset").unwrap();
    assert_eq!(offset.flow, axis);
    for index in [
        0x6060, 0x6071, 0x607C, 0x607E, 0x608F, 0x6092, 0x60B0, 0x60B1, 0x60C1, 0x60FE, 0x60FF, 0x6840,
        0x68B2,
    ] {
        let all = with_object(index, "").unwrap();
        assert_eq!(all.iter().find(|it| it.name == "spindle.it").unwrap().flow, axis, "{index:#06x}");
        for writer in ["controller", "outside", "cycle"] {
            let error =
                with_object(index, &format!("writer = \"{writer}\"\ntype = \"uint16\"")).unwrap_err();
            assert!(
                error.contains("which axis \"spindle\" writes, expected one writer"),
                "{index:#06x}: {error}"
            );
        }
    }
    for index in [0x6065, 0x6072, 0x607F, 0x6080, 0x6081, 0x6085, 0x60E0, 0x60E1, 0x6872] {
        let found = |keys: &str| {
            let all = with_object(index, keys)?;
            Ok::<_, String>(all.into_iter().find(|it| it.name.ends_with("it")).unwrap())
        };
        assert_eq!(found("").unwrap().flow, axis, "{index:#06x}");
        let given = found("initial = 1000").unwrap();
        assert_eq!((&given.flow, given.read_only_for()), (&Flow::Fixed(1000), Some("the robot file")));
        let nothing = found("type = \"uint16\"").unwrap().flow;
        let sent = if matches!(index, 0x6072 | 0x6872) { axis.clone() } else { Flow::Fixed(0) };
        assert_eq!(nothing, sent, "{index:#06x}");
        for keys in ["writer = \"outside\"", "on_stop = 5", "initial = 5\non_stale = \"hold\""] {
            let error = found(keys).unwrap_err();
            let sentence = "for the signal \"it\", which bounds axis \"spindle\", expected initial alone, at which it \
                            stays: remove it";
            assert!(error.contains(sentence), "{index:#06x}: {error}");
        }
    }
}
