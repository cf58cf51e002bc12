//! SubDevices with a blank, broken, stuck or endless EEPROM, among intact ones. The others come up
//! without delay, and the error names the SubDevice and its defect.

use crate::rig;

use std::time::Duration;

use ethercat::al::AlState;
use ethercat::main_device::{BringUpPhase, Configuration, ExpectedIdentity, SubDeviceConfiguration};
use ethercat::register::sii_interface;
use ethercat::sii::{Category, category_type, crc8};
use ethercat::time::Instant;
use ethercat::wire::{Command, frame};
use onbeat_simulator::SubDevice;
use onbeat_simulator::application::servo::default_mapping;
use onbeat_simulator::application::sii::with_coe;
use onbeat_simulator::application::{Application, ProcessDataLengths};

use rig::{DRIVE, Rig, described, drive, to_op};

/// An application without messages or process data.
struct Mute;

impl Application for Mute {
    fn process_data_lengths(&self) -> ProcessDataLengths {
        ProcessDataLengths::default()
    }

    fn step(&mut self, _now: Instant, _outputs: Option<&[u8]>, _inputs: &mut [u8]) {}
}

/// Three drives of which the middle one has this EEPROM.
fn among_others(image: &[u8]) -> Vec<SubDevice> {
    vec![drive(0), SubDevice::from_sii(image, Box::new(Mute)), drive(2)]
}

fn good_image() -> Vec<u8> {
    with_coe(DRIVE, "drive", default_mapping()).image().emit()
}

/// A header that announces 8 MiB, and behind it `category` repeated.
fn endless(category: &[u8]) -> Vec<u8> {
    let mut image = good_image()[..128].to_vec();
    image[0x3E * 2..][..2].copy_from_slice(&0xFFFF_u16.to_le_bytes());
    while image.len() < 1 << 20 {
        image.extend_from_slice(category);
    }
    image
}

/// A category of `words` words that begins with `data`.
fn category(kind: u16, words: u16, data: &[u8]) -> Vec<u8> {
    let mut bytes = [kind.to_le_bytes(), words.to_le_bytes()].concat();
    bytes.extend_from_slice(data);
    bytes.resize(4 + usize::from(words) * 2, 0);
    bytes
}

/// Brings the bus to PreOp like a tool: returns the error of the middle one, and the time taken.
/// The others are intact.
fn look_at(devices: Vec<SubDevice>, prepare: impl FnOnce(&mut Rig)) -> (String, Duration) {
    let mut rig = Rig::new(Configuration::default(), devices);
    prepare(&mut rig);
    let start = rig.now;
    rig.pump_to(BringUpPhase::PreOp);
    assert_eq!(rig.main_device.phase(), BringUpPhase::PreOp, "{:?}", rig.events);
    let took = rig.now - start;
    let states: Vec<_> = rig.segment.sub_devices().iter().map(|it| it.al_status().al_state()).collect();
    assert_eq!(states, [AlState::PreOp, AlState::Init, AlState::PreOp].map(Some));
    let found = rig.main_device.sub_devices();
    for well in [0, 2] {
        assert!(found[well].sii_problem.is_none() && found[well].mailbox.is_some(), "{well}");
        assert_eq!(found[well].identity.product_code, DRIVE.product_code);
    }
    assert!(found[1].sii.is_none() && found[1].mailbox.is_none());
    (found[1].sii_problem.as_ref().expect("a problem").to_string(), took)
}

// feature(main-device): one SubDevice without a readable SII: reported, and refused only where the SII is needed
#[test]
fn one_bad_sii_does_not_block_the_other_sub_devices() {
    let mut corrupt = good_image();
    corrupt[2] ^= 0x40;
    let truncated = good_image()[..0x90].to_vec();
    // As an EEPROM reads behind its end.
    let mut mailbox = good_image();
    mailbox[0x18 * 2..0x1C * 2].fill(0xFF);
    let cases = [
        (vec![0xFF; 2048], "SII checksum 0xff at byte 14, expected 0x"),
        (vec![0; 2048], "SII checksum 0x00 at byte 14, expected 0x"),
        (corrupt, "SII checksum 0x"),
        (mailbox, "its SII declares a mailbox of 65535 bytes at 0xffff, expected 16 to "),
        (truncated, "SII category 10 ends at byte 160 of itself"),
        (Vec::new(), "SII checksum 0xff at byte 14"),
    ];
    for (image, beginning) in cases {
        let (sentence, took) = look_at(among_others(&image), |_| ());
        assert!(sentence.starts_with(beginning), "{sentence}");
        assert!(took < Duration::from_secs(2), "{sentence}: {took:?}");
    }
}

/// Each of them would take hours to read.
// feature(main-device): an EEPROM that stays busy, or has no end; repeated categories
#[test]
fn an_eeprom_without_an_end_is_soon_given_up() {
    let pdo = |kind| category(kind, 200, &[0x00, 0x1A, 49, 3, 0, 0, 0, 0]);
    let cases = [
        (category(0x0801, 0, &[]), "SII has more than 64 categories"),
        (category(category_type::STRINGS, 0, &[]), "SII has more than 64 categories"),
        (category(category_type::STRINGS, 1, &[0]), "SII has more than 64 categories"),
        (category(category_type::STRINGS, 300, &[1, 1]), "SII has more than 64 categories"),
        (category(category_type::SYNC_MANAGERS, 256, &[]), "SII has more than 64 categories"),
        (category(category_type::TX_PDOS, 0, &[]), "SII has more than 64 categories"),
        (pdo(category_type::TX_PDOS), "SII categories to be read take 16400 bytes"),
        ([pdo(category_type::RX_PDOS), pdo(category_type::TX_PDOS)].concat(), "SII categories to be read"),
        (category(category_type::RX_PDOS, 2000, &[]), "SII categories to be read take 20000 bytes"),
        (category(category_type::GENERAL, 0xFFFF, &[]), "SII categories to be read take 131070 bytes"),
    ];
    for (category, beginning) in cases {
        let (sentence, took) = look_at(among_others(&endless(&category)), |_| ());
        assert!(sentence.starts_with(beginning), "{sentence}");
        assert!(took < Duration::from_secs(3), "{sentence}: {took:?}");
    }
}

/// Sets the busy bit in all replies of the SubDevice with this station address about its EEPROM.
fn keep_busy(rig: &mut Rig, station: u16) {
    rig.tamper = Some(Box::new(move |bytes| {
        let end = frame::checked_end(bytes).expect("a frame");
        let mut offset = frame::DATAGRAMS_OFFSET;
        while let Ok(place) = frame::place_at(bytes, offset, end) {
            let header = place.header;
            if header.command == Command::Fprd
                && (header.adp(), header.ado()) == (station, sii_interface::CONTROL)
            {
                bytes[place.data()][1] |= (sii_interface::STATUS_BUSY >> 8) as u8;
            }
            if !header.more_follows {
                return;
            }
            offset = place.end();
        }
    }));
}

// feature(main-device): an EEPROM that stays busy, or has no end; repeated categories
#[test]
fn an_eeprom_that_stays_busy_costs_a_second() {
    let (sentence, took) = look_at(among_others(&good_image()), |rig| keep_busy(rig, 0x1002));
    assert!(sentence.starts_with("EEPROM busy: SII word 0x0000 is not read after 1000 ms"), "{sentence}");
    assert!(took > Duration::from_secs(1) && took < Duration::from_secs(2), "{took:?}");
}

// feature(main-device): one SubDevice without a readable SII: reported, and refused only where the SII is needed
#[test]
fn run_is_refused_only_where_it_needs_the_sii() {
    let identity =
        ExpectedIdentity { vendor_id: DRIVE.vendor_id, product_code: DRIVE.product_code, revision: None };
    let drive = |name: &str| SubDeviceConfiguration {
        name: name.into(),
        identity: Some(identity),
        ..SubDeviceConfiguration::default()
    };
    let mut described_all = vec![drive("base"), drive("shoulder"), drive("elbow")];
    let mut rig = Rig::new(described(described_all.clone()), among_others(&[0xFF; 2048]));
    rig.pump_to(BringUpPhase::Down);
    let sentence = rig.failure().expect("it needs its identity").to_string();
    assert!(sentence.starts_with("SubDevice 1 \"shoulder\": SII checksum 0xff at byte 14"), "{sentence}");

    described_all[1] = SubDeviceConfiguration { name: "shoulder".into(), ..Default::default() };
    for configuration in [described(described_all), to_op()] {
        let mut rig = Rig::new(configuration, among_others(&[0xFF; 2048]));
        rig.run_up();
        for _ in 0..200 {
            rig.cycle();
        }
        assert_eq!(rig.main_device.phase(), BringUpPhase::Op, "{:?}", rig.events);
        assert!(rig.main_device.inputs_fresh(0) && rig.main_device.inputs_fresh(2));
        rig.main_device.request_state(AlState::Init);
        rig.pump_to(BringUpPhase::Down);
    }
}

/// As in other MainDevices: the first category of its kind counts (SOEM stops there), PDOs add up
/// (IgH).
// feature(main-device): an EEPROM that stays busy, or has no end; repeated categories
#[test]
fn a_second_category_behind_a_good_one_does_no_harm() {
    let mut image = with_coe(DRIVE, "drive", default_mapping()).image();
    let other = |kind, data: &[u8]| Category::Other { kind, data: data.to_vec() };
    let strings: Vec<u8> = [&[1, 5][..], b"other"].concat();
    let garbage = [(category_type::GENERAL, &[1; 4][..]), (category_type::SYNC_MANAGERS, &[7; 10])];
    image.categories.push(other(category_type::STRINGS, &strings));
    image.categories.extend(garbage.map(|(kind, data)| other(kind, data)));
    // TxPDO 0x1A05 with one entry, 0x2000:01 of 32 bits, without an assignment.
    let pdo = [0x05, 0x1A, 1, 0xFF, 0, 0, 0, 0, 0x00, 0x20, 1, 0, 7, 32, 0, 0];
    image.categories.push(other(category_type::TX_PDOS, &pdo));
    let emitted = image.emit();
    assert_eq!(emitted[14], crc8(&emitted[..14]));
    let mut rig = Rig::new(Configuration::default(), among_others(&emitted));
    rig.pump_to(BringUpPhase::PreOp);
    let found = &rig.main_device.sub_devices()[1];
    assert_eq!(found.sii_problem, None);
    assert_eq!((found.name.as_str(), &found.mapping), ("drive", &default_mapping()));
    let sii = found.sii.as_ref().expect("an SII");
    assert_eq!(sii.inputs().last().expect("PDOs").index, 0x1A05, "PDO categories add up");
    assert_eq!(sii.sync_managers().len(), 4);
}
