//! Drafts of SubDevices that exist in a test only.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::f64::consts::TAU;

use ethercat::pdo::{Direction, MAPPING_INPUTS, MAPPING_OUTPUTS, Pdo, PdoEntry, PdoMapping};
use ethercat::sii::{
    Builder, CoeDetails, DistributedClock, Identity, Image, Mailbox, MailboxProtocols, crc8,
};

use super::*;

const SETTING: Setting<'_> = Setting {
    name: "bench",
    file: "bench.toml",
    made_by: "a test",
    run: "--iface eth0",
    period: Duration::from_millis(1),
};

fn drafted(found: &[Found]) -> (String, RobotConfig) {
    let text = draft(found, &SETTING).unwrap();
    let robot = RobotConfig::parse(&text, "bench.toml").unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(robot.bus.sub_devices.len(), found.len(), "{text}");
    assert_eq!(robot.doubts(), [""; 0], "{text}");
    (text, robot)
}

fn pdo(index: u16, entries: &[(u32, &str)]) -> Pdo {
    let entry = |(value, name): &(u32, &str)| PdoEntry {
        name: (*name).to_owned(),
        ..PdoEntry::from_mapping_value(*value)
    };
    let entries = entries.iter().map(entry).collect();
    let sync_manager = Some(if index < MAPPING_INPUTS { 2 } else { 3 });
    Pdo { index, sync_manager, fixed: false, name: String::new(), entries }
}

/// A drive on a bus with default PDOs for CSP, and these objects.
fn drive(objects: &[(u16, u8, u32)]) -> Found {
    let mapping = PdoMapping {
        outputs: vec![pdo(
            MAPPING_OUTPUTS,
            &[(0x6040_0010, "controlword"), (0x607A_0020, "target position")],
        )],
        inputs: vec![pdo(MAPPING_INPUTS, &[(0x6041_0010, "statusword"), (0x6064_0020, "position")])],
    };
    let mut found = Found {
        identity: Some(Identity { vendor_id: 7, product_code: 8, revision: 9, serial: 10 }),
        name: "Servo 3000".to_owned(),
        order: "S-3000".to_owned(),
        mapping,
        coe: true,
        ..Found::default()
    };
    answer(&mut found, objects);
    found
}

/// Answers all questions, as a drive with these objects does.
fn answer(found: &mut Found, objects: &[(u16, u8, u32)]) {
    loop {
        let questions = found.questions();
        if questions.is_empty() {
            return;
        }
        for place in questions {
            let has = objects.iter().find(|(index, sub_index, _)| (*index, *sub_index) == place);
            let value = has.map(|(_, _, value)| value.to_le_bytes().to_vec());
            found.objects.insert(place, value.ok_or_else(|| "aborted, 0x06020000".to_owned()));
        }
    }
}

const SCALED: [(u16, u8, u32); 9] = [
    (0x1000, 0, 0x0002_0192),
    (0x6502, 0, 0x3A0),
    (0x608F, 1, 131_072),
    (0x608F, 2, 1),
    (0x6091, 1, 50),
    (0x6091, 2, 1),
    (0x6075, 0, 2_600),
    (0x6076, 0, 1_270),
    (0x60C2, 1, 2),
];

// feature(program): `onbeat new`: a robot file from a bus, or from SII images
#[test]
fn drive_gives_scale_torque_modes_and_interpolation_time() {
    let mut objects = SCALED.to_vec();
    objects.push((0x60C2, 2, 0xFD));
    let (text, robot) = drafted(&[drive(&objects)]);
    let axis = &robot.axes[0];
    assert_eq!(
        (axis.name.as_str(), axis.mode.cyclic(), axis.gear_ratio),
        ("s-3000", CyclicMode::Position, 50.0)
    );
    assert!((axis.scale.counts_per_radian() - 131_072.0 * 50.0 / TAU).abs() < 1e-6);
    assert!((axis.limits.torque.0 - 1.27 * 50.0).abs() < 1e-9, "{}", axis.limits.torque.0);
    // Ten turns a second of the motor, behind its gear.
    assert!((axis.limits.velocity.0 - 1.2).abs() < 1e-9, "{}", axis.limits.velocity.0);
    for part in [
        "hm, csp, csv, cst",
        "rated current 2.6 A",
        "50 of the motor for 1 of the shaft",
        "kind = \"joint_trajectory\"",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let written: Vec<_> = robot.bus.sub_devices[0]
        .startup
        .iter()
        .map(|it| (it.index, it.sub_index, it.data.clone()))
        .collect();
    assert_eq!(written, [(0x60C2, 1, vec![1]), (0x60C2, 2, vec![0xFD])]);
    assert_eq!(unknown_values(&text), 0, "{text}");
    assert!(text.contains("onbeat control move --by s-3000 5 --degrees"), "{text}");
    // Slower than the cycle.
    objects.push((0x1C32, 5, 2_000_000));
    let (text, _) = drafted(&[drive(&objects)]);
    assert!(text.contains("# unknown: whether it keeps up; 0x1C32:05 requires 2ms at least"), "{text}");
    // Where they cannot be written, they are not.
    let mut fixed = drive(&objects);
    fixed.read_only.insert((0x60C2, 1));
    assert_eq!(drafted(&[fixed]).1.bus.sub_devices[0].startup, []);
}

// feature(program): `onbeat new`: a robot file from a bus, or from SII images
#[test]
fn a_feed_constant_gives_the_position_units_of_a_turn() {
    let counts = |feed: [u32; 2], gear: u32| {
        let mut objects = SCALED.to_vec();
        objects[4].2 = gear;
        objects.extend([(0x6092, 1, feed[0]), (0x6092, 2, feed[1])]);
        let axis = drafted(&[drive(&objects)]).1.axes.remove(0);
        let turn = axis.scale.counts_per_radian() * TAU;
        assert!((turn - axis.counts_per_revolution * axis.gear_ratio).abs() < 1e-6 * turn);
        (axis.counts_per_revolution, turn.round())
    };
    assert_eq!(counts([36_000, 1], 1), (36_000.0, 36_000.0));
    assert_eq!(counts([36_000, 2], 10), (1_800.0, 18_000.0));
    assert_eq!(counts([131_072, 1], 1), (131_072.0, 131_072.0));
    // One unit a turn was hardly set: positions are increments.
    assert_eq!(counts([1, 1], 5), (131_072.0, 655_360.0));
}

// feature(program): `onbeat new`: a robot file from a bus, or from SII images
#[test]
fn what_a_drive_does_not_tell_is_marked_and_assumed_small() {
    let (text, robot) =
        drafted(&[drive(&[(0x1000, 0, 0x192), (0x6502, 0, 0), (0x608F, 1, 0), (0x6076, 0, 0)])]);
    assert_eq!(robot.axes[0].counts_per_revolution, 4096.0);
    assert_eq!(unknown_values(&text), 4, "{text}");
    for part in ["0x608F is no number that can be", "0x6091 aborted, 0x06020000", "0x6502: none; unknown: "]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    // Numbers that make no scale.
    let mut objects = SCALED;
    (objects[2].2, objects[4].2, objects[5].2) = (1, 1, u32::MAX);
    let (text, robot) = drafted(&[drive(&objects)]);
    assert_eq!((robot.axes.len(), robot.axes[0].gear_ratio > 0.0), (1, true), "{text}");
}

// feature(program): `onbeat new`: a robot file from a bus, or from SII images
#[test]
fn equal_neighbours_share_an_entry_and_other_motors_do_not() {
    let mut all = vec![drive(&SCALED), drive(&SCALED), drive(&SCALED), drive(&SCALED)];
    let mut strong = SCALED;
    strong[7].2 = 9_550;
    all[2] = drive(&strong);
    let (text, robot) = drafted(&all);
    let names: Vec<&str> = robot.bus.sub_devices.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["s-3000-1", "s-3000-2", "s-3000-3", "s-3000-4"]);
    assert_eq!(text.matches("[[bus.sub_device]]").count(), 1, "{text}");
    assert_eq!(text.matches("[[axis]]").count(), 3, "{text}");
    let axes: Vec<_> =
        robot.axes.iter().map(|it| (it.name.as_str(), it.sub_device, it.rated_torque.0)).collect();
    let expected =
        [("s-3000-1", 0, 1.27), ("s-3000-2", 1, 1.27), ("s-3000-3", 2, 9.55), ("s-3000-4", 3, 1.27)];
    assert_eq!(axes, expected);
    // One after the other, as a bus reports it.
    for (position, it) in all.iter_mut().enumerate().skip(1) {
        it.upstream = Some((position as u16 - 1, 1));
    }
    assert_eq!(drafted(&all).0.matches("[[bus.sub_device]]").count(), 1);
    // A terminal between them, an alias and a branch are entries of their own.
    let mut all: Vec<Found> = (0..6).map(|_| drive(&SCALED)).collect();
    all[1] = Found { identity: Some(Identity::default()), order: "EK1122".to_owned(), ..Found::default() };
    all[3].alias = 77;
    for (position, it) in all.iter_mut().enumerate().skip(1) {
        it.upstream = Some((position as u16 - 1, 1));
    }
    all[5].upstream = Some((1, 2));
    let (text, robot) = drafted(&all);
    let entries: Vec<&str> =
        text.split("[[bus.sub_device]]").skip(1).filter_map(|it| it.lines().nth(1)).collect();
    let names = ["s-3000-1", "ek1122", "s-3000-2", "s-3000-3", "s-3000-4", "s-3000-5"];
    assert_eq!(entries, names.map(|name| format!("name = \"{name}\"")));
    assert_eq!(robot.bus.sub_devices[3].alias, Some(77));
    assert_eq!(robot.bus.sub_devices[5].parent, Some(crate::Parent { position: 1, port: 2 }), "{text}");
}

// feature(program): `onbeat new`: a robot file from a bus, or from SII images
#[test]
fn several_axes_of_a_drive_are_axes_of_the_file() {
    let mut double = drive(&[]);
    for pdos in [&mut double.mapping.outputs, &mut double.mapping.inputs] {
        let mut second = pdos[0].clone();
        second.index += 0x10;
        second.entries.iter_mut().for_each(|it| it.index += 0x800);
        pdos.push(second);
    }
    double.objects.clear();
    let objects: Vec<_> = SCALED
        .iter()
        .flat_map(|it| [*it, (it.0 + 0x800, it.1, if it.0 == 0x608F { 4 * it.2 } else { it.2 })])
        .collect();
    answer(&mut double, &objects);
    let (_, robot) = drafted(&[double]);
    let axes: Vec<_> =
        robot.axes.iter().map(|it| (it.name.as_str(), it.drive_axis, it.counts_per_revolution)).collect();
    assert_eq!(axes, [("s-3000-axis-1", 0, 131_072.0), ("s-3000-axis-2", 1, 131_072.0)]);
}

// feature(program): `onbeat new`: a robot file from a bus, or from SII images
#[test]
fn pdos_for_the_mode_are_chosen_from_offered_ones() {
    let csp = drive(&SCALED).mapping;
    let velocity = || PdoMapping {
        outputs: vec![pdo(0x1601, &[(0x6040_0010, ""), (0x60FF_0020, "")])],
        ..csp.clone()
    };
    let with = |mapping: &PdoMapping, offered: &PdoMapping, coe_details| {
        let mut found =
            Found { mapping: mapping.clone(), offered: offered.clone(), coe_details, ..drive(&[]) };
        found.objects.clear();
        answer(&mut found, &SCALED);
        drafted(&[found])
    };
    let none = PdoMapping::default();
    let outputs =
        |robot: &RobotConfig| robot.bus.sub_devices[0].explicit_mapping().unwrap().outputs[0].clone();
    // CSP is offered, and preferred to what is in use.
    let (text, robot) = with(&velocity(), &csp, CoeDetails::SDO);
    assert_eq!(
        (robot.axes[0].mode.cyclic(), outputs(&robot).index),
        (CyclicMode::Position, 0x1600),
        "{text}"
    );
    assert!(text.contains("# assumed: it offers these PDOs"), "{text}");
    // A jog needs no other controller.
    assert!(text.contains("#   onbeat control jog s-3000 "), "{text}");
    assert!(!text.contains("control switch"), "{text}");
    // It is not: what is in use.
    let (text, robot) = with(&velocity(), &velocity(), CoeDetails::SDO);
    assert_eq!(
        (robot.axes[0].mode.cyclic(), outputs(&robot).index),
        (CyclicMode::Velocity, 0x1601),
        "{text}"
    );
    assert!(
        text.contains("kind = \"joint_velocity\"") && text.contains("onbeat control jog s-3000"),
        "{text}"
    );
    assert!(text.contains("# assumed: 0x60FF and 0x606C count position units"), "{text}");
    // PDOs that no assignment object has are left to the SII.
    let mut elsewhere = csp.clone();
    elsewhere.outputs[0].sync_manager = Some(4);
    let (text, robot) = with(&elsewhere, &none, CoeDetails::SDO);
    assert_eq!((robot.axes.len(), robot.bus.sub_devices[0].explicit_mapping()), (1, None), "{text}");
    // Nothing is known, but the drive takes a mapping.
    let (text, robot) = with(&none, &none, CoeDetails::SDO.with(CoeDetails::PDO_CONFIGURATION));
    assert_eq!(outputs(&robot).entries.iter().map(|it| it.index).collect::<Vec<_>>(), [0x6040, 0x607A]);
    assert!(text.contains("# assumed: the shortest PDOs"), "{text}");
    // Nothing is known, and it takes none.
    let (text, robot) = with(&none, &none, CoeDetails::SDO);
    assert!(robot.axes.is_empty() && text.contains("# unknown: PDOs of a cyclic mode"), "{text}");
    assert!(!text.contains("controller]") && !text.contains("control move"), "{text}");
}

// feature(program): `onbeat new`: a robot file from a bus, or from SII images
#[test]
fn channels_of_terminals_are_signals_by_name() {
    let terminal = |order: &str, inputs: Vec<Pdo>, outputs: Vec<Pdo>| Found {
        identity: Some(Identity::default()),
        order: order.to_owned(),
        mapping: PdoMapping { outputs, inputs },
        ..Found::default()
    };
    let named =
        |index, name: &str, entries: &[(u32, &str)]| Pdo { name: name.to_owned(), ..pdo(index, entries) };
    let mut analogue = terminal(
        "EL3002",
        vec![
            named(0x1A00, "AI TxPDO-Map Channel 1", &[(0x6000_0110, "Status"), (0x6000_1110, "Value")]),
            named(0x1A01, "AI TxPDO-Map Channel 2", &[(0x6010_0110, "Status"), (0x6010_1110, "Value")]),
        ],
        Vec::new(),
    );
    analogue.mapping.inputs[1].entries[1].data_type = 0x0003;
    let bits =
        terminal("EL1002", vec![named(0x1A00, "", &[(0x6000_0101, ""), (0x6000_0201, "")])], Vec::new());
    let both = terminal(
        "EL9",
        vec![pdo(0x1A00, &[(0x6000_0108, "Data")])],
        vec![pdo(0x1600, &[(0x7000_0108, "Data")])],
    );
    let text = draft(&[analogue.clone(), bits.clone(), both.clone()], &SETTING).unwrap();
    let robot = RobotConfig::parse(&text, "bench.toml").unwrap();
    let all = [analogue, bits, both];
    let signals = robot.signals(|position| all.get(position).map(|it| &it.mapping)).unwrap();
    let names: Vec<String> =
        signals.iter().take(6).map(|it| format!("{}: {}", it.name, it.value_type)).collect();
    let expected = [
        "el3002 Channel 1: int16",
        "el3002 Channel 2: int16",
        "el1002 input 1: bool",
        "el1002 input 2: bool",
        "el9 input Data: uint8",
        "el9 output Data: uint8",
    ];
    assert_eq!(names, expected, "{text}");
    assert_eq!(text.matches("type = \"int16\"").count(), 1, "what is not known is left out: {text}");
    assert_eq!(text.matches("writer = \"outside\"").count(), 1, "{text}");
}

// feature(program): `onbeat new`: a robot file from a bus, or from SII images
#[test]
fn a_clock_has_the_pulses_of_the_sii() {
    let mode = |assign_activate, sync0_shift, sync1_shift| DistributedClock {
        assign_activate,
        sync0_shift,
        sync1_shift,
        ..DistributedClock::default()
    };
    let of = |found: Found, clock_modes| {
        let (text, robot) = drafted(&[Found { clock_modes, ..found }]);
        let it = &robot.bus.sub_devices[0];
        assert_eq!(robot.bus.distributed_clocks, it.sync0.is_some(), "{text}");
        (it.sync0.map(|it| it.shift), it.sync1.is_some())
    };
    let micros = |micros| Some(Duration::from_micros(micros));
    let terminal = || Found { order: "EL1".to_owned(), ..Found::default() };
    assert_eq!(of(terminal(), vec![mode(0x300, 0, 0)]), (micros(250), false));
    assert_eq!(of(terminal(), vec![mode(0x700, 5_000, 10_000)]), (micros(5), true));
    assert_eq!(of(terminal(), vec![mode(0, 0, 0), mode(0x300, 0, 0)]), (None, false));
    // A drive in a cyclic mode takes the first mode with pulses, and no shift that is longer than
    // the period.
    assert_eq!(of(drive(&SCALED), vec![mode(0, 0, 0), mode(0x300, 2_000_000, 0)]), (micros(250), false));
    assert_eq!(of(drive(&SCALED), vec![]), (None, false));
    assert!(drafted(&[drive(&SCALED)]).0.contains("# assumed: no dc"));
}

// feature(program): `onbeat new`: a robot file from a bus, or from SII images
#[test]
fn whatever_a_sub_device_is_called_it_ends_no_comment() {
    let mut found = drive(&SCALED);
    found.name = "a\"\n[cycle]\nperiod = \"9s\"\u{202E}\\".repeat(5);
    found.order = "\n\n".to_owned();
    found.mapping.outputs[0].name = "\"]\n#".to_owned();
    found.mapping.inputs[0].entries[0].name = "\\u{0000}\"".repeat(40);
    found.problem = Some("one\ntwo".to_owned());
    found.objects.insert((0x6091, 1), Err("line\nfeed".to_owned()));
    let setting = Setting { name: "\u{0}", file: "a\nb", made_by: "c\nd", run: "e\nf", ..SETTING };
    let text = draft(&[found], &Setting { name: "a\"b", ..setting }).unwrap();
    let robot = RobotConfig::parse(&text, "").unwrap();
    assert_eq!((robot.name.as_str(), robot.cycle.period), ("a\"b", Duration::from_millis(1)));
    assert!(matches!(draft(&[], &SETTING), Err(DraftError::Empty)));
}

// feature(program): `onbeat new` writes `outage_time`, with the distance an axis moves without frames
#[test]
fn an_outage_has_its_distance() {
    let mut objects = SCALED.to_vec();
    // 2 rad/s^2 of the axis, which may turn at 1.2 rad/s.
    objects.push((0x6085, 0, (2.0 * 131_072.0 * 50.0 / TAU) as u32));
    let (text, robot) = drafted(&[drive(&objects)]);
    assert_eq!(robot.cycle.outage_time, Some(Duration::from_millis(50)));
    // 0.12 rad before the watchdog expires, then 0.36 rad.
    let sum = "#   s-3000: 1.2 * 0.1 + 1.2^2 / (2 * 1.99) = 0.48 rad\n";
    assert!(text.contains(sum) && text.contains("# assumed: 0x6085 counts position units/s^2\n"), "{text}");
    // The axis with the longest distance.
    let mut weak = objects.clone();
    weak[9].2 /= 2;
    let (text, _) = drafted(&[drive(&objects), drive(&weak), drive(&SCALED)]);
    assert!(text.contains("s-3000-2: 1.2 * 0.1 + 1.2^2 / (2 * 0.999) = 0.84 rad\n"), "{text}");
    assert!(text.contains("# One more axis with an unknown distance.\n"), "{text}");
    // Without 0x6085, or without position units.
    let (text, _) = drafted(&[drive(&SCALED)]);
    let unknown = "#   s-3000: 0.12 rad, and braking, which is not known: 0x6085 aborted, 0x06020000\n";
    assert!(text.contains(unknown), "{text}");
    objects.retain(|it| it.0 != 0x608F);
    let (text, _) = drafted(&[drive(&objects)]);
    assert!(text.contains("0x6085 is in position units, which are not known\n"), "{text}");
    // A longer period has a longer watchdog; without axes there is no outage of one.
    let setting = Setting { period: Duration::from_millis(50), ..SETTING };
    let text = draft(&[drive(&SCALED)], &setting).unwrap();
    assert!(text.contains("(200ms)") && text.contains("outage_time = \"100ms\""), "{text}");
    assert_eq!(RobotConfig::parse(&text, "bench.toml").unwrap().doubts(), [""; 0]);
    let terminal = Found { identity: Some(Identity::default()), ..Found::default() };
    assert!(!drafted(&[terminal]).0.contains("outage"));
}

// feature(program): `onbeat new` writes `encoder` as an assumption
#[test]
fn an_encoder_is_assumed_to_lose_its_position() {
    let (text, robot) = drafted(&[drive(&SCALED)]);
    assert_eq!(robot.axes[0].encoder, Some(crate::Encoder::Incremental));
    assert!(text.contains("# assumed: its position is lost without power"), "{text}");
    assert!(text.contains("\"multi_turn\" with encoder_range"), "{text}");
}

/// Numbers that look like chance, the same in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

fn any_image(chance: &mut Chance) -> Vec<u8> {
    const OBJECTS: [u16; 16] = [
        0, 0x6000, 0x6010, 0x7000, 0x6040, 0x6041, 0x6060, 0x6064, 0x607A, 0x6071, 0x60FF, 0x6840, 0x6841,
        0x6864, 0x687A, 0x1D09,
    ];
    const NAMES: [&str; 6] =
        ["", "Channel 1", "Input", "Value", "Servo\u{7}\"", "a name that is longer than most names are"];
    let number = |chance: &mut Chance| chance.below(9) as u32;
    let identity =
        Identity { vendor_id: number(chance), product_code: number(chance), revision: 1, serial: 0 };
    let mut builder = Builder::new(identity, NAMES[chance.below(6)]).order(NAMES[chance.below(6)]);
    if chance.below(3) > 0 {
        let mailbox =
            Mailbox { receive_offset: 0x1000, receive_size: 128, send_offset: 0x1080, send_size: 128 };
        let details = CoeDetails(chance.below(64) as u8);
        builder = builder.mailbox(mailbox, MailboxProtocols::COE).coe_details(details);
    }
    for direction in [Direction::Output, Direction::Input] {
        for _ in 0..chance.below(5) {
            let first = if direction == Direction::Output { MAPPING_OUTPUTS } else { MAPPING_INPUTS };
            let entry = |chance: &mut Chance| PdoEntry {
                index: OBJECTS[chance.below(OBJECTS.len())],
                sub_index: [0, 0, 1, 0x11][chance.below(4)],
                bit_length: [1, 1, 8, 16, 16, 32, 32, 64, 255, 0][chance.below(10)],
                data_type: chance.below(0x20) as u16,
                name: NAMES[chance.below(6)].to_owned(),
            };
            let mut entries: Vec<PdoEntry> = (0..chance.below(6)).map(|_| entry(chance)).collect();
            if chance.below(2) == 0 {
                let [word, target] = match direction {
                    Direction::Output => {
                        [0x6040_0010, [0x607A_0020, 0x60FF_0020, 0x6071_0010][chance.below(3)]]
                    }
                    Direction::Input => [0x6041_0010, 0x6064_0020],
                };
                entries.extend([word, target].map(PdoEntry::from_mapping_value));
            }
            let sync_manager = [None, Some(2), Some(3)][chance.below(3)];
            let name = NAMES[chance.below(6)].to_owned();
            let index = first + chance.below(4) as u16;
            let pdo = Pdo { index, sync_manager, fixed: chance.below(2) == 0, name, entries };
            builder =
                if direction == Direction::Output { builder.output(&pdo) } else { builder.input(&pdo) };
            if chance.below(12) == 0 {
                builder = builder.sample(index);
            }
        }
    }
    for _ in 0..chance.below(3) {
        let mode = DistributedClock {
            assign_activate: [0, 0x300, 0x700, 0xFFFF][chance.below(4)],
            sync0_shift: [0, 1, 999_999, u32::MAX][chance.below(4)],
            sync1_shift: [0, 1, 999_999, u32::MAX][chance.below(4)],
            ..DistributedClock::default()
        };
        builder = builder.distributed_clock("DC", mode);
    }
    let mut bytes = builder.build().emit();
    // Half of them are damaged behind the header.
    for _ in 0..chance.below(2) * chance.below(6) {
        let place = 128 + chance.below(256);
        bytes[place] = chance.below(256) as u8;
    }
    bytes[14] = crc8(&bytes[..14]);
    bytes
}

/// A draft is read, and runs: signals fit, axes have their objects.
// feature(program): `onbeat new`: a robot file from a bus, or from SII images
#[test]
fn whatever_an_sii_says_the_draft_is_read_or_refused() {
    let mut chance = Chance(0x9E37_79B9_7F4A_7C15);
    let (mut read, mut refused, mut axes) = (0, 0, 0);
    for _ in 0..500 {
        let images: Vec<Image> =
            (0..=chance.below(4)).filter_map(|_| Image::parse(&any_image(&mut chance)).ok()).collect();
        let found: Vec<Found> = images.iter().map(Found::of_image).collect();
        match draft(&found, &SETTING) {
            Ok(text) => {
                let robot = RobotConfig::parse(&text, "bench.toml").unwrap();
                assert_eq!(robot.bus.sub_devices.len(), found.len());
                axes += robot.axes.len();
                read += 1;
            }
            Err(DraftError::Empty) => assert!(found.is_empty()),
            Err(error) => {
                eprintln!("{error}");
                refused += 1;
            }
        }
    }
    assert!(read > 300 && axes > 20, "{read} read, {axes} axes");
    assert_eq!(refused, 0, "of {read}");
}
