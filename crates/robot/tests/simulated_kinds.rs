//! Kinds of simulated SubDevices and their ESCs: valid and invalid settings.
use crate::support;

use onbeat_robot::{ApplicationKind, EscKind, RobotConfig, TerminalModel};

const GOOD: &str = r#"
[cycle]
period = "1ms"

[[bus.sub_device]]
name = "coupler"
simulate = { kind = "coupler", esc = "et1100" }

[[bus.sub_device]]
name = "lamps"
simulate = { kind = "el2004" }

[[bus.sub_device]]
name = "levels"
simulate = { kind = "el3104", amplitude = 7.0 }

[[bus.sub_device]]
name = "lines"
simulate = { kind = "el6022", esc = "ip_core" }
"#;

#[test]
fn a_model_says_what_it_behaves_as_and_how_many_channels_it_has() {
    let robot = RobotConfig::parse(GOOD, "r.toml").unwrap();
    let simulations = robot.bus.sub_devices.iter().map(|it| it.simulation.as_ref().unwrap());
    let found: Vec<_> = simulations.map(|it| (it.application, it.terminal, it.channels, it.esc)).collect();
    assert_eq!(
        found,
        [
            (ApplicationKind::Coupler, None, 0, Some(EscKind::Et1100)),
            (ApplicationKind::DigitalOutputs, Some(TerminalModel::El2004), 4, None),
            (ApplicationKind::AnalogueInput, Some(TerminalModel::El3104), 4, None),
            (ApplicationKind::SerialLines, Some(TerminalModel::El6022), 2, Some(EscKind::IpCore)),
        ]
    );
}

#[test]
fn what_a_model_does_not_leave_open_is_refused() {
    for (good, bad, expected) in [
        (
            "kind = \"el2004\"",
            "kind = \"el2004\", channels = 4",
            "channels of a terminal with a model as its kind, expected a terminal as it is built: \
             remove it",
        ),
        (
            "kind = \"el2004\"",
            "kind = \"el2004\", sii = \"el2004.bin\"",
            "sii of a terminal with a model as its kind, expected a terminal as it is built: remove it",
        ),
        (
            "kind = \"el2004\"",
            "kind = \"el2004\", initial = [true]",
            "initial for another kind of application, expected initial only with digital_inputs or \
             an el1008: remove it",
        ),
        (
            "kind = \"el2004\"",
            "kind = \"digital_inputs\", channels = 2, initial = [true, false, true]",
            "initial with 3 levels, expected 2 at most, one for each channel: correct initial",
        ),
        (
            "kind = \"el2004\"",
            "kind = \"el1252\", initial = [true]",
            "initial with 1 levels, expected none: inputs of an el1252 follow the outputs: correct initial",
        ),
        (
            "kind = \"el2004\"",
            "kind = \"el2004\", offset = 1.0",
            "offset for another kind of application, expected offset only with an analogue_input: \
             remove it",
        ),
        (
            "esc = \"et1100\"",
            "esc = \"et1000\"",
            "unknown value \"et1000\", expected one of et1100, et1200, lan9252, esc10, esc20, ip_core: did you mean \
             \"et1100\"?",
        ),
        (
            "kind = \"el6022\"",
            "kind = \"el6021\"",
            "unknown value \"el6021\", expected one of coupler, digital_outputs, digital_inputs, analogue_input, \
             analogue_output, encoder, force_torque_sensor, serial_lines, servo_drive, el1008, el1252, el2004, el3104, el3702, \
             el4034, el4732, el5101, el6022: did you mean \"el6022\"?",
        ),
    ] {
        let error = support::spoiled(GOOD, good, bad);
        assert!(error.place.is_some(), "{error}");
        let sentence = format!("{}, expected {}: {}", error.found, error.expected, error.remedy);
        assert_eq!(sentence, expected);
    }
}

/// Clock of a simulated SubDevice: its rate error, and the jitter of its times.
#[test]
fn a_clock_drifts_and_jitters_within_bounds() {
    let with = |keys: &str| {
        let text = GOOD.replace(
            "simulate = { kind = \"el2004\" }",
            &format!("simulate = {{ kind = \"el2004\", {keys} }}"),
        );
        RobotConfig::parse(&text, "r.toml").map_err(|error| error.to_string())
    };
    let robot = with("drift_ppm = -35.5, jitter = \"250ns\"").unwrap();
    let clock = |position: usize| {
        let it = robot.bus.sub_devices[position].simulation.as_ref().unwrap();
        (it.drift_ppm, it.jitter)
    };
    assert_eq!(clock(1), (Some(-35.5), std::time::Duration::from_nanos(250)));
    assert_eq!(clock(0), (None, std::time::Duration::ZERO));
    for (keys, told) in [
        ("drift_ppm = 501.0", "drift_ppm = 501"),
        ("drift_ppm = nan", "drift_ppm"),
        ("jitter = \"101us\"", "jitter 101us"),
        ("jitter = 3", "integer `3`"),
    ] {
        let error = with(keys).unwrap_err();
        assert!(error.contains(told), "{keys}: {error}");
    }
}
