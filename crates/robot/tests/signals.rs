//! Signals in a robot file: valid and invalid ones.
use ethercat::pdo::{Pdo, PdoEntry, PdoMapping};
use onbeat_robot::RobotConfig;
use types::signal::{Flow, OnStale, OutputBehaviour, Scaling, Writer};
use types::{Signal, ValueKind, ValueType};

const STATION: &str = include_str!("../../../examples/io-station.toml");

fn pdo(index: u16, entries: &[(u16, u8, u8, &str)]) -> Pdo {
    let entry = |&(index, sub_index, bit_length, name): &(u16, u8, u8, &str)| PdoEntry {
        index,
        sub_index,
        bit_length,
        data_type: 0,
        name: name.to_owned(),
    };
    Pdo {
        index,
        sync_manager: None,
        fixed: true,
        name: String::new(),
        entries: entries.iter().map(entry).collect(),
    }
}

/// Process data of the station, as the SII of its SubDevices gives it.
fn mapping(position: usize) -> PdoMapping {
    let bit = |first: u16, object: u16, number: u16, name| {
        pdo(first + number, &[(object + 0x10 * number, 1, 1, name)])
    };
    let analogue = |number: u16| {
        let index = 0x6000 + 0x10 * number;
        pdo(0x1A00 + number, &[(index, 1, 16, "Status"), (index, 0x11, 16, "Value")])
    };
    let mapping = |outputs: Vec<Pdo>, inputs: Vec<Pdo>| PdoMapping { outputs, inputs };
    match position {
        1 => mapping((0..4).map(|number| bit(0x1600, 0x7000, number, "Output")).collect(), vec![]),
        2 => mapping(vec![], (0..4).map(|number| bit(0x1A00, 0x6000, number, "Input")).collect()),
        3 => mapping(vec![], (0..4).map(analogue).collect()),
        6 => {
            let output =
                |number: u16| pdo(0x1600 + number, &[(0x7000 + 0x10 * number, 1, 16, "Analog output")]);
            mapping((0..4).map(output).collect(), vec![])
        }
        _ => PdoMapping::default(),
    }
}

/// Signals of the station with these more lines, once its bus is known.
fn signals(lines: &str) -> Result<Vec<Signal>, String> {
    // Spindle: the file has it.
    let robot = RobotConfig::parse(&format!("{STATION}\n{lines}\n"), "r.toml")
        .map_err(|error| error.to_string())?;
    let mappings: Vec<PdoMapping> = (0..7)
        .map(|position| {
            robot.bus.sub_devices[position].explicit_mapping().cloned().unwrap_or_else(|| mapping(position))
        })
        .collect();
    robot.signals(|position| mappings.get(position)).map_err(|error| error.to_string())
}

fn signal(keys: &str) -> String {
    format!("[[signal]]\nname = \"it\"\n{keys}")
}

// feature(signals): `[[signal]]` by channel or entry, with type, unit, scale, offset, range and the values of an output at a stop, a stale command and a return
#[test]
fn channels_and_entries_get_their_names_types_and_scales() {
    let lines = [
        "[[signal]]\nname = \"door\"\nsub_device = \"switches\"\nchannel = 3",
        "[[signal]]\nname = \"pressure\"\nsub_device = \"sensors\"\nchannel = 2\nunit = \"bar\"\nscale = 0.5\noffset = -1.0\nrange = [0, 10]",
        "[[signal]]\nname = \"feed forward\"\nsub_device = \"valves\"\nentry = { index = 0x7010, sub_index = 1 }\ninitial = -5\non_stale = \"hold\"\non_stop = \"zero\"\non_return = 7\nrange = [-100, 100]",
        "[[signal]]\nname = \"lamp\"\nsub_device = \"lamps\"\nchannel = 1\non_stop = true\non_stale = false",
    ];
    let all = signals(&lines.join("\n")).unwrap();
    let [door, pressure, feed, lamp] = ["door", "pressure", "feed forward", "lamp"]
        .map(|name| all.iter().find(|it| it.name == name).unwrap());
    assert_eq!((door.sub_device, door.bit_offset, door.value_type), (2, 2, ValueType::Bool));
    assert_eq!((door.flow.clone(), door.kind()), (Flow::Input, ValueKind::Bool));
    assert_eq!((pressure.bit_offset, pressure.value_type), (48, ValueType::Signed(16)));
    assert_eq!(pressure.scaling, Some(Scaling { scale: 0.5, offset: -1.0 }));
    assert_eq!((pressure.unit.as_str(), pressure.range), ("bar", Some((0.0, 10.0))));
    let behaviour = OutputBehaviour {
        initial: 0xFFFB,
        on_stale: Some(OnStale::Hold),
        on_return: Some(7),
        ..OutputBehaviour::default()
    };
    assert_eq!((feed.value_type, feed.flow.clone()), (ValueType::Signed(16), Flow::Output(behaviour)));
    let behaviour =
        OutputBehaviour { on_stop: 1, on_stale: Some(OnStale::Bits(0)), ..OutputBehaviour::default() };
    assert_eq!(lamp.flow, Flow::Output(behaviour));
}

// feature(signals): outputs with `writer = "outside"`, one writer each
#[test]
fn external_output_has_its_stale_value_without_command() {
    let outside = |keys: &str| {
        let lines = signal(&format!(
            "sub_device = \"valves\"\nentry = {{ index = 0x7010, sub_index = 1 }}\nwriter = \"outside\"\n{keys}"
        ));
        let it = signals(&lines).unwrap().into_iter().find(|it| it.name == "it").unwrap();
        assert!(it.is_commanded());
        let Flow::Output(OutputBehaviour { writer: Writer::Outside, initial, on_stale, .. }) = it.flow
        else {
            panic!("{it:?}")
        };
        (initial, on_stale)
    };
    assert_eq!(outside(""), (0, Some(OnStale::Bits(0))));
    // The value next to zero that it may have.
    assert_eq!(outside("range = [5, 9]"), (5, Some(OnStale::Bits(5))));
    assert_eq!(outside("initial = 3\non_stale = \"hold\""), (3, Some(OnStale::Hold)));
    let all = signals(&signal("sub_device = \"lamps\"\nchannel = 1\nwriter = \"controller\"")).unwrap();
    assert!(!all.iter().find(|it| it.name == "it").unwrap().is_commanded());
}

// feature(signals): outputs with the number of the cycle, for observers outside
#[test]
fn output_shows_cycle_number_over_one_bit_channels() {
    // With the fourth channel, which the spindle's brake has, and the third, which is the red lamp.
    let station = STATION.replacen("channels = 4", "channels = 16", 1);
    let channel = |number: u16| pdo(0x1600 + number, &[(0x7000 + 0x10 * number, 1, 1, "Output")]);
    let target = pdo(0x1610, &[(0x60FF, 0, 32, "target velocity")]);
    let mapping = PdoMapping { outputs: (0..16).map(channel).chain([target]).collect(), inputs: vec![] };
    let found = |keys: &str| {
        let number = signal(&format!("sub_device = \"lamps\"\nwriter = \"cycle\"\n{keys}"));
        let robot = RobotConfig::parse(&format!("{station}\n{number}\n"), "r.toml").unwrap();
        robot.signals(|position| (position == 1).then_some(&mapping)).map_err(|error| error.to_string())
    };
    let all = found("channel = 5\ntype = \"uint12\"").unwrap();
    let number = all.iter().find(|it| it.name == "it").unwrap();
    assert_eq!(
        (number.bit_offset, number.value_type, &number.flow),
        (4, ValueType::Unsigned(12), &Flow::Cycle)
    );
    assert_eq!((number.is_commanded(), number.read_only_for()), (false, Some("the cycle")));
    let lamps = |signal: &&Signal| signal.sub_device == 1 && signal.name.starts_with("lamps.");
    assert_eq!(all.iter().filter(lamps).count(), 3, "its channels are nothing else: {all:?}");
    for (keys, sentence) in [
        (
            "channel = 1\ntype = \"uint8\"",
            "which the brake of axis \"spindle\" writes, expected one writer",
        ),
        (
            "channel = 8\ntype = \"uint10\"",
            "type \"uint10\" for the signal \"it\" from 0x7070:01 \"Output\" (1 bit) on, expected \
             bool, or at most uint9: that is the number of neighbouring channels of one bit: \
             correct type",
        ),
        (
            "channel = 5\ntype = \"uint7\"",
            "uint7 for the signal \"it\" with writer = \"cycle\", expected an unsigned integer of 8 to 64 bits: choose \
             another, or join channels of one bit by their type, as \"uint16\"",
        ),
        ("channel = 5\nelements = 8", "bool for the signal \"it[0]\" with writer = \"cycle\""),
        (
            "channel = 5\ntype = \"uint8\"\non_stop = 1",
            "on_stop for the signal \"it\" with writer = \"cycle\", expected the number of the cycle and nothing else: \
             remove it",
        ),
        (
            "entry = { index = 0x60FF }\ntype = \"uint32\"",
            "object 0x60ff, which drives an axis, for the signal \"it\" with writer = \"cycle\", expected an output that \
             moves nothing: choose another",
        ),
    ] {
        let error = found(keys).unwrap_err();
        assert!(error.contains(sentence), "{error}\n expected {sentence}");
    }
}

// feature(signals): arrays and byte strings: signals of several elements, read and set as one
#[test]
fn elements_are_signals_of_their_own() {
    let all = signals(
        "[[signal]]\nname = \"pressure\"\nsub_device = \"sensors\"\nchannel = 2\nelements = 3\nunit = \"bar\"\nscale = 0.5\n
        [[signal]]\nname = \"doors\"\nsub_device = \"switches\"\nentry = { index = 0x6000, sub_index = 1 }\nelements = [\"left\", \"right\"]",
    )
    .unwrap();
    let find = |name: &str| all.iter().find(|it| it.name == name).unwrap_or_else(|| panic!("{name}"));
    let places = ["pressure[0]", "pressure[1]", "pressure[2]"].map(|name| find(name).bit_offset);
    assert_eq!(places, [48, 80, 112]);
    assert_eq!(
        (find("pressure[2]").unit.as_str(), find("pressure[2]").value_type),
        ("bar", ValueType::Signed(16))
    );
    assert_eq!((find("doors.left").bit_offset, find("doors.right").bit_offset), (0, 1));
    assert!(!all.iter().any(|it| it.name == "switches.0x6010:01" || it.name == "sensors.0x6010:11"));
}

// feature(signals): arrays and byte strings: signals of several elements, read and set as one
#[test]
fn a_byte_string_is_split_into_its_elements() {
    let text = format!(
        "{STATION}\n{}\nelements = 12\n",
        signal("sub_device = \"coupler\"\nentry = { index = 0x6000 }")
    );
    let robot = RobotConfig::parse(&text, "r.toml").unwrap();
    let bytes = PdoMapping {
        outputs: vec![],
        inputs: vec![pdo(0x1A00, &[(0x6001, 0, 8, "Length"), (0x6000, 0, 96, "Text")])],
    };
    let all = robot.signals(|position| (position == 0).then_some(&bytes)).unwrap();
    let of_it: Vec<_> = all.iter().filter(|it| it.name.starts_with("it[")).collect();
    assert_eq!(of_it.len(), 12);
    assert_eq!(
        (of_it[0].bit_offset, of_it[11].bit_offset, of_it[11].value_type),
        (8, 96, ValueType::Unsigned(8))
    );
    let error = RobotConfig::parse(&text.replace("elements = 12", "elements = 13"), "r.toml")
        .unwrap()
        .signals(|position| (position == 0).then_some(&bytes))
        .unwrap_err()
        .to_string();
    assert!(
        error.ends_with("13 elements of the signal \"it\" on 0x6000:00 \"Text\" (96 bits), expected a number of elements that divides its bits, with at most 64 bits each: correct elements"),
        "{error}"
    );
}

// feature(signals): every other entry as `sub_device.entry`, one of more than 64 bits as its bytes
#[test]
fn unnamed_entry_wider_than_a_number_is_shown_as_bytes() {
    let entries = [(0x6001, 0, 8, "Length"), (0x6000, 0, 96, "Text"), (0x6002, 0, 68, "")];
    let bytes = PdoMapping {
        outputs: vec![pdo(0x1600, &[(0x7000, 0, 80, "Answer")])],
        inputs: vec![pdo(0x1A00, &entries)],
    };
    let found = |lines: &str| {
        let robot = RobotConfig::parse(&format!("{STATION}\n{lines}\n"), "r.toml").unwrap();
        robot.signals(|position| (position == 0).then_some(&bytes))
    };
    let all = found("").unwrap();
    let of = |array: &str| -> Vec<(usize, ValueType)> {
        let elements = all.iter().filter(|it| it.name.starts_with(&format!("{array}[")));
        elements.map(|it| (it.bit_offset, it.value_type)).collect()
    };
    let byte = ValueType::Unsigned(8);
    assert_eq!(of("coupler.Text"), (0..12).map(|at| (8 + 8 * at, byte)).collect::<Vec<_>>());
    let wide = of("coupler.0x6002:00");
    assert_eq!((wide.len(), wide[0], wide[8]), (9, (104, byte), (168, ValueType::Unsigned(4))));
    assert_eq!(of("coupler.Answer").len(), 10);
    let output = all.iter().find(|it| it.name == "coupler.Answer[9]").unwrap();
    assert_eq!(output.flow, Flow::Output(OutputBehaviour::default()));
    assert!(all.iter().any(|it| it.name == "coupler.Length"));
    // A named entry exists only under that name.
    let keys = "sub_device = \"coupler\"\nentry = { index = 0x6000 }\nelements = 6";
    let named = found(&signal(keys)).unwrap();
    assert!(!named.iter().any(|it| it.name.starts_with("coupler.Text")), "{named:?}");
    // No other signal may have the name of a byte.
    let lamp =
        "[[signal]]\nname = \"coupler.Text[3]\"\nsub_device = \"coupler\"\nentry = { index = 0x6001 }";
    let error = found(lamp).unwrap_err().to_string();
    assert!(error.contains("which is the name of 0x6000:00 \"Text\" (96 bits) of \"coupler\""), "{error}");
}

// feature(signals): types from the SII, where it says signed, float or double
#[test]
fn the_sii_says_what_is_signed_or_a_float() {
    let mut entries = pdo(
        0x1A00,
        &[(0x2000, 1, 32, "a"), (0x2000, 2, 32, "b"), (0x2000, 3, 16, "c"), (0x6064, 0, 32, "d")],
    );
    for (entry, data_type) in entries.entries.iter_mut().zip([0x08, 0x04, 0x04, 0x07]) {
        entry.data_type = data_type;
    }
    let robot = RobotConfig::parse(STATION, "r.toml").unwrap();
    let mapping = PdoMapping { outputs: vec![], inputs: vec![entries] };
    let all = robot.signals(|position| (position == 0).then_some(&mapping)).unwrap();
    let types: Vec<_> = all.iter().map(|it| it.value_type).collect();
    // A type of another width says nothing, and CiA 402 decides over a careless SII.
    let expected =
        [ValueType::Float, ValueType::Signed(32), ValueType::Unsigned(16), ValueType::Signed(32)];
    assert_eq!(types, expected);
}

// feature(signals): every other entry as `sub_device.entry`, one of more than 64 bits as its bytes
#[test]
fn entries_without_a_name_are_there_by_their_own() {
    let all = signals(&signal("sub_device = \"lamps\"\nchannel = 1")).unwrap();
    let find = |name: &str| {
        all.iter().find(|signal| signal.name == name).unwrap_or_else(|| panic!("{name}: {all:?}"))
    };
    // The only one of its name in its SubDevice.
    assert_eq!(find("valves.0x7010:01").flow, Flow::Output(OutputBehaviour::default()));
    assert_eq!(find("spindle.controlword").flow, Flow::Taken("axis \"spindle\"".to_owned()));
    assert_eq!(find("lamps.0x7030:01").flow, Flow::Taken("the brake of axis \"spindle\"".to_owned()));
    assert_eq!(find("sensors.0x6010:11").value_type, ValueType::Signed(16));
    assert_eq!(find("sensors.0x6010:01").value_type, ValueType::Unsigned(16));
    assert_eq!(find("spindle.position actual value").value_type, ValueType::Signed(32));
    // Every entry once: 4 lamps, 4 switches, 8 words of the sensors, 5 of the drive, 4 valves.
    assert_eq!(all.len(), 25);
    assert!(!all.iter().any(|signal| signal.name == "lamps.0x7000:01"));
}

// feature(signals): unknown names, wrong types and ranges, two writers of one output: one sentence with file and line
#[test]
fn an_entry_of_both_directions_needs_one() {
    let both = PdoMapping {
        outputs: vec![pdo(0x1600, &[(0x7000, 1, 1, "")])],
        inputs: vec![pdo(0x1A00, &[(0x6000, 1, 1, "")])],
    };
    let found = |direction: &str| {
        let text = format!("{STATION}\n{}\n{direction}\n", signal("sub_device = \"coupler\"\nchannel = 1"));
        let robot = RobotConfig::parse(&text, "r.toml").unwrap();
        robot.signals(|position| (position == 0).then_some(&both)).map_err(|error| error.to_string())
    };
    let error = found("").unwrap_err();
    assert!(error.contains("which has this as an input and as an output, expected direction"), "{error}");
    assert!(matches!(found("direction = \"output\"").unwrap()[0].flow, Flow::Output(_)));
    assert_eq!(found("direction = \"input\"").unwrap()[0].flow, Flow::Input);
}

// feature(signals): unknown names, wrong types and ranges, two writers of one output: one sentence with file and line
#[test]
fn what_cannot_be_is_named_with_its_place() {
    let lamp = "sub_device = \"lamps\"\nchannel = 1";
    let sensor = "sub_device = \"sensors\"\nchannel = 1";
    let offset = "sub_device = \"valves\"\nentry = { index = 0x7010, sub_index = 1 }";
    let word = "sub_device = \"spindle\"\nentry = { index = 0x6040 }";
    for (lines, sentence) in [
        (
            signal(&lamp.replace("lamps", "lamp")),
            "unknown SubDevice \"lamp\", expected the name of a SubDevice on the bus: did you mean \"lamps\"?",
        ),
        (
            signal("sub_device = \"lamps\""),
            "signal \"it\" without entry and channel, expected entry = { index, sub_index }, or channel = 1 and up: give one of the two",
        ),
        (signal(&format!("{lamp}\nentry = {{ index = 1 }}")), "with both entry and channel"),
        (
            signal(&lamp.replace("= 1", "= 5")),
            "channel 5 for the signal \"it\", expected 1 to 4, the output channels of \"lamps\": correct channel",
        ),
        (signal(&lamp.replace("= 1", "= 0")), "channel 0 for the signal \"it\", expected 1 to 4"),
        (
            signal(&lamp.replace("lamps", "coupler")),
            "expected a SubDevice with such channels; \"coupler\" has none",
        ),
        (
            signal(&format!("{lamp}\ndirection = \"input\"")),
            "expected a SubDevice with such channels; \"lamps\" has none",
        ),
        (
            signal("sub_device = \"sensors\"\nentry = { index = 0x6001, sub_index = 0x11 }"),
            "signal \"it\" on 0x6001:11, expected process data of \"sensors\", near it 0x6000:11 \"Value\" (16 bits), 0x6000:01 \"Status\" (16 bits)",
        ),
        (
            signal(&format!("{sensor}\ntype = \"int17\"")),
            "type \"int17\" for the signal \"it\" on 0x6000:11 \"Value\" (16 bits), expected uint16 or int16: correct type",
        ),
        (
            signal(&format!("{sensor}\ntype = \"in16\"")),
            "unknown type \"in16\", expected bool, float, double, or int or uint with 1 to 64 bits, as uint16: did you mean \"int16\"?",
        ),
        (signal(&format!("{sensor}\nscale = 0.0")), "scale = 0, expected a finite number other than 0"),
        (
            signal(&format!("{sensor}\nscale = 1e-320")),
            "expected a finite number other than 0, and not nearer to it than 2.3e-308: correct scale",
        ),
        (
            signal(&format!("{sensor}\nscale = 1e308\noffset = 1e308")),
            "scale = 1e308 and offset = 1e308 for the signal \"it\", expected values of its int16 that are finite",
        ),
        (
            signal(lamp).replace("\"it\"", "\"valves.0x7010:01\""),
            "signal \"valves.0x7010:01\", which is the name of 0x7010:01 \"Analog output\" (16 \
             bits) of \"valves\", expected a separate name: give it another name",
        ),
        (signal(lamp).replace("\"it\"", "\"gnp\u{202E}.exe\""), "none of them a control character"),
        (
            format!(
                "{}\n[[sensor]]\nname = \"hot\"\nkind = \"temperature\"\ntemperature = \"it\"",
                signal(lamp)
            ),
            "signal \"it\" of the sensor \"hot\", which is an output, expected an input that is a number",
        ),
        (
            format!(
                "{}\n[[sensor]]\nname = \"hot\"\nkind = \"temperature\"\ntemperature = \"it\"",
                signal("sub_device = \"switches\"\nchannel = 1")
            ),
            "signal \"it\" of the sensor \"hot\", which is one bit, expected an input that is a number",
        ),
        (signal(&format!("{lamp}\nscale = 2.0")), "scale or offset for the signal \"it\" of one bit"),
        (
            signal(&format!("{sensor}\nrange = [5, 4]")),
            "range = [5, 4] for the signal \"it\", expected the lowest and the highest value",
        ),
        (
            signal(&format!("{sensor}\nrange = [0, 40000]")),
            "expected within -32768 to 32767, which its int16 holds: correct range",
        ),
        (
            signal(&format!("{sensor}\nscale = 0.001\nrange = [-32, 40]")),
            "which its int16 with its scale holds",
        ),
        (
            signal(&format!("{sensor}\ninitial = 1")),
            "initial for the signal \"it\", which is an input, expected initial only on outputs: remove it",
        ),
        (
            signal(&format!("{sensor}\nwriter = \"outside\"")),
            "writer for the signal \"it\", which is an input, expected writer only on outputs: remove it",
        ),
        (
            signal(&format!("{lamp}\nwriter = \"ros\"")),
            "unknown value \"ros\", expected one of controller, outside, cycle: correct or remove the value",
        ),
        (
            signal(&format!("{word}\nwriter = \"outside\"")),
            "which axis \"spindle\" writes, expected one writer for each output: remove one of the two",
        ),
        (
            signal(&format!("{lamp}\non_stop = \"hold\"")),
            "on_stop = \"hold\" for the signal \"it\", expected \"zero\" or a value: say what it is to be: Init clears it anyway",
        ),
        (
            signal(&format!("{lamp}\ninitial = 1")),
            "initial = 1 for the signal \"it\", expected true, false or \"zero\": correct initial",
        ),
        (
            signal(&format!("{offset}\ninitial = 1.5")),
            "initial = 1.5 for the signal \"it\", expected a whole number, -32768 to 32767 (int16), or \"zero\"",
        ),
        (
            signal(&format!("{offset}\nrange = [0, 9]\non_stop = 10")),
            "on_stop = 10 for the signal \"it\", expected 0 to 9, its range, or \"zero\"",
        ),
        (
            signal(word),
            "signal \"it\" on the output 0x6040:00 \"controlword\" (16 bits), which axis \"spindle\" writes, expected one writer for each output: remove one of the two",
        ),
        (signal(&lamp.replace("= 1", "= 4")), "which the brake of axis \"spindle\" writes"),
        (
            format!("{}\n{}", signal(lamp), signal(lamp).replace("\"it\"", "\"that\"")),
            "signal \"that\" on the output 0x7000:01 \"Output\" (1 bit), which signal \"it\" writes",
        ),
        (
            format!("{0}\n{0}", signal(lamp)),
            "a second signal \"it\", expected every name once: give it another name",
        ),
        (
            signal(&format!("{lamp}\nelements = 0")),
            "elements = 0 for the signal \"it\", expected their number, 1 to 256, or their names, as [\"x\", \"y\", \"z\"]: correct elements",
        ),
        (signal(&format!("{lamp}\nelements = [1, 2]")), "elements = [1, 2] for the signal \"it\""),
        (
            signal(&format!("{lamp}\nelements = 5")),
            "5 elements of the signal \"it\" from 0x7000:01 \"Output\" (1 bit) on, expected at most 4, which are there with 1 bit each: correct elements",
        ),
        (
            signal("sub_device = \"sensors\"\nentry = { index = 0x6020, sub_index = 1 }\nelements = 5"),
            "expected at most 4, which are there with 16 bits each",
        ),
        (
            signal(&format!("{}\nelements = 2", lamp.replace("= 1", "= 3"))),
            "signal \"it[0]\" on the output 0x7020:01 \"Output\" (1 bit), which signal \"lamp red\" writes",
        ),
        (
            format!(
                "{}\n{}",
                signal(&format!("{lamp}\nelements = 2")),
                signal("sub_device = \"sensors\"\nchannel = 1").replace("\"it\"", "\"it[1]\"")
            ),
            "a second signal \"it[1]\", expected every name once",
        ),
        (signal(&format!("{lamp}\ninital = true")), "unknown key \"inital\""),
    ] {
        let error = signals(&lines).unwrap_err();
        assert!(error.contains(sentence), "{error}\n expected {sentence}");
        let line = STATION.lines().count() + 1;
        let place: usize = error.split(':').nth(1).unwrap().parse().unwrap();
        assert!(place > line, "{error}");
    }
    // Two names for one input are no harm.
    let switch = "sub_device = \"switches\"\nchannel = 1";
    assert!(
        signals(&format!("{}\n{}", signal(switch), signal(switch).replace("\"it\"", "\"that\""))).is_ok()
    );
}

// feature(signals): `[[signal]]` by channel or entry, with type, unit, scale, offset, range and the values of an output at a stop, a stale command and a return
#[test]
fn pdos_that_alternate_between_sync_managers_keep_their_entries() {
    let lines = "[cycle]\nperiod = \"1ms\"\n[[bus.sub_device]]\nname = \"it\"\n\
                 [[signal]]\nname = \"long\"\nsub_device = \"it\"\nchannel = 1\n\
                 [[signal]]\nname = \"short\"\nsub_device = \"it\"\nentry = { index = 0x6020, sub_index = 1 }\n";
    let robot = RobotConfig::parse(lines, "r.toml").unwrap();
    let at = |index: u16, sync_manager, bits| Pdo {
        sync_manager: Some(sync_manager),
        ..pdo(0x1A00 + index, &[(0x6000 + 0x10 * index, 1, bits, "")])
    };
    // The first and the third are one share, before the second.
    let mapping = PdoMapping { outputs: vec![], inputs: vec![at(0, 3, 32), at(1, 2, 8), at(2, 3, 16)] };
    let all = robot.signals(|_| Some(&mapping)).unwrap();
    let places: Vec<_> = all.iter().map(|it| (it.name.as_str(), it.bit_offset, it.value_type)).collect();
    let expected = [
        ("long", 0, ValueType::Unsigned(32)),
        ("short", 32, ValueType::Unsigned(16)),
        ("it.0x6010:01", 48, ValueType::Unsigned(8)),
    ];
    assert_eq!(places, expected);
}

/// The channel may be right: nothing is known yet of the SubDevice.
// feature(signals): a signal of a SubDevice that may be absent and has no described process data is named with the remedy
#[test]
fn a_signal_of_an_absent_sub_device_wants_its_pdos() {
    let absent = STATION.replacen("name = \"switches\"", "name = \"switches\"\npresence = \"optional\"", 1);
    let robot = RobotConfig::parse(&absent, "r.toml").unwrap();
    let found = |known: bool| {
        let mappings: Vec<PdoMapping> =
            (0..3).map(|it| if known || it < 2 { mapping(it) } else { PdoMapping::default() }).collect();
        robot.signals(|position| mappings.get(position)).map_err(|error| error.to_string())
    };
    assert!(found(true).is_ok());
    let error = found(false).unwrap_err();
    let told = "signal \"door closed\" on \"switches\", of which no process data is known, expected the pdos of a SubDevice \
                that may be absent at the start: give it pdos, or start with it plugged";
    assert!(error.ends_with(told), "{error}");
}
