//! Modes of operation of axes, and what they ask of drives and controllers.
//!
//! Mapped objects that move or bound an axis: signals that only the axis writes, or the robot file
//! once.

use onbeat_robot::RobotConfig;
use types::signal::Flow;
use types::{AxisMode, CyclicMode, Signal};

const TABLE: &str = include_str!("../../../examples/indexing-table.toml");

fn refused(text: &str) -> String {
    let error = RobotConfig::parse(text, "r.toml").unwrap_err().to_string();
    error.split(": ").skip(1).collect::<Vec<_>>().join(": ")
}

/// The table with this mode, this target and the kind of controller that moves it.
fn table(mode: &str, target: &str, kind: &str) -> String {
    let text = TABLE.replacen("mode = \"pp\"", &format!("mode = \"{mode}\""), 1);
    let text = text.replacen("{ index = 0x607A, bits = 32,", &format!("{{ {target},"), 1);
    text.replacen("joint_position", kind, 1)
}

// feature(axes): `mode` of an axis: csp, csv, cst, ip, pp, pv, tq, each with the objects and the controllers that it needs
#[test]
fn every_mode_has_its_target_and_its_controllers() {
    let position = "index = 0x607A, bits = 32";
    let velocity = "index = 0x60FF, bits = 32";
    let torque = "index = 0x6071, bits = 16";
    let interpolation = "index = 0x60C1, sub_index = 1, bits = 32";
    for (mode, target, kind, quantity) in [
        (AxisMode::CyclicPosition, position, "joint_trajectory", CyclicMode::Position),
        (AxisMode::InterpolatedPosition, interpolation, "joint_trajectory", CyclicMode::Position),
        (AxisMode::ProfilePosition, position, "joint_position", CyclicMode::Position),
        (AxisMode::CyclicVelocity, velocity, "joint_velocity", CyclicMode::Velocity),
        (AxisMode::ProfileVelocity, velocity, "joint_velocity", CyclicMode::Velocity),
        (AxisMode::CyclicTorque, torque, "joint_effort", CyclicMode::Torque),
        (AxisMode::ProfileTorque, torque, "joint_effort", CyclicMode::Torque),
    ] {
        let robot = RobotConfig::parse(&table(mode.name(), target, kind), "r.toml").unwrap();
        assert_eq!((robot.axes[0].mode, robot.axes[0].mode.cyclic()), (mode, quantity));
        assert_eq!(robot.controllers[0].axes, [0], "{mode:?}");
        let error = refused(&table(mode.name(), "index = 0x2000, bits = 32", kind));
        let index = match mode {
            AxisMode::InterpolatedPosition => "0x60c1:1",
            _ => ["0x607a", "0x60ff", "0x6071"][quantity as usize],
        };
        let expected = format!("axis \"table\" in mode {} without object {index}", mode.name());
        assert!(error.contains(&expected), "{error}");
    }
    let error = refused(&table("pp", position, "joint_trajectory"));
    assert!(
        error.contains("joint_trajectory without an axis to move") && error.contains("csp or ip"),
        "{error}"
    );
    let error = refused(&table("hm", position, "hold"));
    assert!(error.contains("hm") && error.contains("csp"), "{error}");
}

// feature(axes): speed and ramps of a drive that makes its own way are the limits' alone: no start-up SDO, no signal
#[test]
fn the_profile_of_a_drive_is_the_axiss_to_write() {
    let startup =
        "[[bus.sub_device.startup]]\nindex = 0x6081\ntype = \"uint32\"\nvalue = 7\n\n[bus.sub_device.pdos]";
    let with_startup = TABLE.replacen("[bus.sub_device.pdos]", startup, 1);
    let error = refused(&with_startup);
    assert!(error.contains("a start-up SDO to 0x6081") && error.contains("limits"), "{error}");
    // A cyclic mode does not care.
    assert!(RobotConfig::parse(&with_startup.replacen("\"pp\"", "\"csp\"", 1), "r.toml").is_ok());

    let target = "{ index = 0x607A, bits = 32, name = \"target position\" },";
    let mapped = TABLE.replacen(
        target,
        &format!("{target}\n{{ index = 0x6081, bits = 32, name = \"profile velocity\" }},"),
        1,
    );
    let flow = |text: &str| {
        let robot = RobotConfig::parse(text, "r.toml").map_err(|error| error.to_string())?;
        let mapping = robot.bus.sub_devices[0].explicit_mapping().cloned();
        let signals = robot.signals(|_| mapping.as_ref()).map_err(|error| error.to_string())?;
        Ok::<_, String>(signals.into_iter().find(|it| it.name.ends_with("profile velocity")).unwrap().flow)
    };
    assert_eq!(flow(&mapped), Ok(Flow::Taken("axis \"table\"".to_owned())));
    let signal =
        "[[signal]]\nname = \"speed\"\nsub_device = \"drive\"\nentry = { index = 0x6081 }\non_stop = 5\n";
    let error = flow(&format!("{mapped}\n{signal}")).unwrap_err();
    assert!(error.contains("which axis \"table\" writes"), "{error}");
}

/// The table with 0x60FF, too, and a second controller with these keys.
fn with_second(keys: &str) -> String {
    let target = "{ index = 0x607A, bits = 32, name = \"target position\" },";
    let text = TABLE.replacen(target, &format!("{target}\n{{ index = 0x60FF, bits = 32 }},"), 1);
    text.replacen("[controller]", "[[controller]]", 1) + &format!("\n[[controller]]\n{keys}\n")
}

// feature(axes): `mode` of a controller, other than that of its axes: the drive has to map its objects
#[test]
fn a_controller_may_move_its_axes_in_another_mode() {
    let jog = "kind = \"joint_velocity\"\nname = \"jog\"\nmode = \"pv\"";
    let robot = RobotConfig::parse(&with_second(jog), "r.toml").unwrap();
    assert_eq!(
        (robot.axes[0].mode, &robot.axes[0].modes[..]),
        (AxisMode::ProfilePosition, &[AxisMode::ProfileVelocity][..])
    );
    assert_eq!(
        (robot.controllers[1].mode, &robot.controllers[1].axes[..]),
        (Some(AxisMode::ProfileVelocity), &[0][..])
    );
    assert_eq!(robot.controllers[0].mode_of(&robot.axes[0]), AxisMode::ProfilePosition);
    // Its own mode is not an additional one.
    let own = jog.replace("joint_velocity", "joint_position").replace("\"pv\"", "\"pp\"");
    assert!(RobotConfig::parse(&with_second(&own), "r.toml").unwrap().axes[0].modes.is_empty());
    for (text, parts) in [
        (
            with_second(&jog.replace("\"pv\"", "\"cst\"")),
            ["mode cst for joint_velocity", "csp, ip, csv or pv"],
        ),
        (with_second(&jog.replace("joint_velocity", "hold")), ["mode for hold", "joint_position"]),
        (
            with_second(&jog.replace("\"pv\"", "\"ip\"")),
            ["in mode ip without object 0x60c1:1", "interpolation"],
        ),
        (
            with_second(jog).replacen(
                "{ index = 0x6060, bits = 8, name = \"modes of operation\" },",
                "",
                1,
            ),
            ["in mode pv without object 0x6060", "modes of operation among the outputs"],
        ),
        (
            with_second(jog).replacen(
                "{ index = 0x6061, bits = 8, name = \"modes of operation display\" },",
                "",
                1,
            ),
            ["in mode pv without object 0x6061", "modes of operation display among the inputs"],
        ),
    ] {
        let error = refused(&text);
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
    let startup =
        "[[bus.sub_device.startup]]\nindex = 0x6083\ntype = \"uint32\"\nvalue = 7\n\n[bus.sub_device.pdos]";
    let csp = with_second(jog).replacen("\"pp\"", "\"csp\"", 1);
    let error = refused(&csp.replacen("[bus.sub_device.pdos]", startup, 1));
    assert!(error.contains("in mode pv and a start-up SDO to 0x6083"), "{error}");
}

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
