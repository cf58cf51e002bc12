//! Buses that differ from their description or refuse a request: one sentence with the place, the
//! value expected, the value found and the remedy, and all SubDevices back in Init.

use crate::rig;

use std::time::Duration;

use ethercat::al::AlState;
use ethercat::al_status_code::AlStatusCode;
use ethercat::link::MAXIMUM_FRAME_LENGTH;
use ethercat::main_device::{
    BringUpPhase, Configuration, Event, ExpectedIdentity, MainDevice, ProcessDataSource, Replies,
    StartupSdo, SubDeviceConfiguration, Sync0,
};
use ethercat::register::EscFeatures;
use ethercat::sii::Identity;
use ethercat::time::Instant;
use onbeat_simulator::application::servo::default_mapping;
use onbeat_simulator::application::sii::{SiiDescription, digital_outputs, with_coe};
use onbeat_simulator::application::{Application, GenericDevice, ProcessDataLengths, StateChange};
use onbeat_simulator::{EscDescription, SubDevice};

use rig::{DRIVE, Rig, described, drive, drives, to_op};

/// Brings the bus up as far as possible, and returns the error.
fn failure_of(configuration: Configuration, devices: Vec<SubDevice>) -> String {
    let mut rig = Rig::new(configuration, devices);
    rig.pump_to(BringUpPhase::PreOp);
    for _ in 0..12_000 {
        if rig.main_device.phase() == BringUpPhase::Down || rig.failure().is_some() {
            break;
        }
        rig.cycle();
    }
    rig.pump_to(BringUpPhase::Down);
    assert_eq!(rig.main_device.phase(), BringUpPhase::Down, "{:?}", rig.events);
    for (position, sub_device) in rig.segment.sub_devices().iter().enumerate() {
        let found = sub_device.al_status().al_state();
        assert_eq!(found, Some(AlState::Init), "SubDevice {position} at the end");
    }
    rig.failure().expect("it fails").to_string()
}

fn named(name: &str) -> SubDeviceConfiguration {
    let identity = ExpectedIdentity {
        vendor_id: DRIVE.vendor_id,
        product_code: DRIVE.product_code,
        revision: Some(DRIVE.revision),
    };
    SubDeviceConfiguration { name: name.into(), identity: Some(identity), ..Default::default() }
}

fn arm() -> Vec<SubDeviceConfiguration> {
    ["base", "shoulder", "elbow"].map(named).to_vec()
}

/// Three drives of which the middle one is configured by `change`.
fn shoulder_with(change: impl FnOnce(&mut SubDeviceConfiguration)) -> Configuration {
    let mut arm = arm();
    change(&mut arm[1]);
    described(arm)
}

/// Three drives of which the middle one is another SubDevice.
fn arm_with(shoulder: SubDevice) -> Vec<SubDevice> {
    vec![drive(0), shoulder, drive(2)]
}

fn generic(description: &SiiDescription) -> SubDevice {
    let image = description.image();
    let application = GenericDevice::from_sii(&image).expect("a mapping that fits");
    SubDevice::from_sii(&image.emit(), Box::new(application))
}

#[test]
fn empty_bus_is_reported() {
    assert_eq!(
        failure_of(to_op(), Vec::new()),
        "no SubDevice answers: check the cable, the power of the first SubDevice and the \
         interface; a closed ring does not answer at one end alone: name its second interface, too \
         (--second-iface)"
    );
}

// feature(main-device): replies with an unchanged source address: reported, or accepted on request; reflections reported
#[test]
fn unmarked_source_address_is_reported_and_can_be_allowed() {
    let mut rig = Rig::new(to_op(), drives(3));
    rig.unmark();
    rig.pump_to(BringUpPhase::Down);
    let sentence = rig.failure().expect("it fails").to_string();
    let (start, end) = (
        " frames came back that SubDevices have processed, but from our own source address ",
        ": if this segment leaves the address alone, set replies = \"unchanged_source\" in [bus] of the robot file",
    );
    assert!(sentence.contains(start) && sentence.ends_with(end), "{sentence}");

    let mut rig = Rig::new(Configuration { replies: Replies::UnchangedSource, ..to_op() }, drives(3));
    rig.unmark();
    rig.run_up();
    for _ in 0..100 {
        assert!(rig.cycle().all_fresh);
    }
}

/// A plug that reflects all frames, before the first SubDevice.
// feature(main-device): replies with an unchanged source address: reported, or accepted on request; reflections reported
#[test]
fn a_reflection_is_no_answer() {
    for replies in [Replies::ProcessedSource, Replies::UnchangedSource] {
        let mut main_device =
            MainDevice::new(Configuration { replies, ..to_op() }).expect("a configuration");
        let (mut now, mut buffer) = (Instant::from_nanos(1), [0; MAXIMUM_FRAME_LENGTH]);
        let start = now;
        while main_device.phase() != BringUpPhase::Down && now - start < Duration::from_secs(10) {
            while let Some(length) = main_device.poll_transmit(now, &mut buffer) {
                main_device.handle_frame(now, &buffer[..length]);
            }
            now = now + Duration::from_millis(1);
        }
        let failure = std::iter::from_fn(|| main_device.poll_event()).find_map(|event| match event {
            Event::Failed(error) => Some(error.to_string()),
            _ => None,
        });
        let sentence = failure.expect("it fails");
        assert!(
            sentence.starts_with("the frames come back unprocessed (")
                && now - start < Duration::from_secs(3)
        );
        assert!(
            sentence.ends_with(
                ": a loop or a switch sends them back; connect the interface to the first \
                                    SubDevice's IN"
            ),
            "{sentence}"
        );
    }
}

#[test]
fn one_where_two_are_described() {
    assert_eq!(
        failure_of(described(arm()[..2].to_vec()), drives(1)),
        "1 SubDevice answers, expected 2: the first missing is SubDevice 1 \"shoulder\"; check its power and the \
         cable to it"
    );
}

// feature(main-device): fewer, more, other SubDevices than described, each one sentence
#[test]
fn fewer_than_described() {
    assert_eq!(
        failure_of(described(arm()), drives(2)),
        "2 SubDevices answer, expected 3: the first missing is SubDevice 2 \"elbow\"; check its power and the \
         cable to it"
    );
}

// feature(main-device): fewer, more, other SubDevices than described, each one sentence
#[test]
fn more_than_described() {
    assert_eq!(
        failure_of(described(arm()), drives(4)),
        "4 SubDevices answer, expected 3: SubDevice 3 (vendor 0xffff0b01 product 0x00000402 revision 0x00000001) \
         is not described; add it to the robot file or unplug it"
    );
}

// feature(main-device): fewer, more, other SubDevices than described, each one sentence
#[test]
fn another_than_described() {
    let terminal = Identity { vendor_id: 2, product_code: 0x07D4_3052, revision: 7, serial: 0 };
    assert_eq!(
        failure_of(described(arm()), arm_with(generic(&digital_outputs(terminal, "EL2004", 4)))),
        "SubDevice 1 \"shoulder\": found vendor 0x00000002 product 0x07d43052 revision 0x00000007, expected \
         vendor 0xffff0b01 product 0x00000402 revision 0x00000001; check the order of the SubDevices and the \
         robot file"
    );
}

#[test]
fn another_revision_than_described() {
    let newer = Identity { revision: 2, ..DRIVE };
    assert_eq!(
        failure_of(described(arm()), arm_with(generic(&with_coe(newer, "drive", default_mapping())))),
        "SubDevice 1 \"shoulder\": found vendor 0xffff0b01 product 0x00000402 revision 0x00000002, expected \
         vendor 0xffff0b01 product 0x00000402 revision 0x00000001; check the order of the SubDevices and the \
         robot file"
    );
}

#[test]
fn another_alias_than_described() {
    let with_alias = SiiDescription { alias: 12, ..with_coe(DRIVE, "drive", default_mapping()) };
    assert_eq!(
        failure_of(shoulder_with(|it| it.alias = Some(7)), arm_with(generic(&with_alias))),
        "SubDevice 1 \"shoulder\": found station alias 12, expected 7; check the order of the SubDevices, or write \
         the alias to its SII"
    );
}

// feature(main-device): SII cut short or with a wrong checksum
#[test]
fn sii_with_a_wrong_checksum() {
    let mut image = with_coe(DRIVE, "drive", default_mapping()).image().emit();
    image[2] ^= 0x40;
    let broken = SubDevice::from_sii(&image, Box::new(Plain::default()));
    let sentence = failure_of(described(arm()), arm_with(broken));
    let (start, end) =
        ("SubDevice 1 \"shoulder\": SII checksum 0x", " over bytes 0 to 13; write its SII again");
    assert!(sentence.starts_with(start) && sentence.ends_with(end), "{sentence}");
}

// feature(main-device): SII cut short or with a wrong checksum
#[test]
fn sii_cut_short() {
    let mut image = with_coe(DRIVE, "drive", default_mapping()).image().emit();
    image.truncate(0x90);
    let broken = SubDevice::from_sii(&image, Box::new(Plain::default()));
    assert_eq!(
        failure_of(described(arm()), arm_with(broken)),
        "SubDevice 1 \"shoulder\": SII category 10 ends at byte 160 of itself, inside a record \
         that needs 274; write its SII again"
    );
}

#[test]
fn sii_that_was_never_written() {
    let broken = SubDevice::from_sii(&[0xFF; 2048], Box::new(Plain::default()));
    let sentence = failure_of(described(arm()), arm_with(broken));
    assert!(sentence.starts_with("SubDevice 1 \"shoulder\": SII checksum 0xff at byte 14, expected 0x"));
}

// feature(main-device): a start-up SDO that is aborted, with code and text
#[test]
fn a_startup_sdo_that_is_aborted() {
    let sdo = |index, data: &[u8]| StartupSdo {
        index,
        sub_index: 0,
        complete_access: false,
        data: data.to_vec(),
    };
    let configuration = shoulder_with(|it| it.startup = vec![sdo(0x6060, &[8]), sdo(0x5FFF, &[1])]);
    assert_eq!(
        failure_of(configuration, drives(3)),
        "SubDevice 1 \"shoulder\": SDO 0x5fff:00: aborted, 0x06020000: object does not exist in the object \
         dictionary"
    );
}

#[test]
fn a_mapping_the_drive_does_not_take() {
    let mut mapping = default_mapping();
    mapping.outputs[0].entries[0].index = 0x5FFE;
    let configuration = shoulder_with(|it| it.process_data = ProcessDataSource::Explicit(mapping));
    let sentence = failure_of(configuration, drives(3));
    assert!(sentence.starts_with("SubDevice 1 \"shoulder\": SDO 0x1600:01: aborted, 0x06"), "{sentence}");
}

#[test]
fn safe_op_refused_for_a_wrong_length() {
    let image = with_coe(DRIVE, "drive", default_mapping()).image().emit();
    let lengths = ProcessDataLengths { outputs: 14, inputs: 12 };
    let other = SubDevice::from_sii(&image, Box::new(Plain { lengths, refuses: None }));
    assert_eq!(
        failure_of(described(arm()), arm_with(other)),
        "SubDevice 1 \"shoulder\" refuses SafeOp and stays in PreOp: AL status code 0x001d: invalid output \
         configuration; check its PDO mapping"
    );
}

// feature(main-device): a refused state, with AL status code and text
#[test]
fn op_refused_by_the_application() {
    let image = with_coe(DRIVE, "drive", default_mapping()).image().emit();
    let lengths = ProcessDataLengths { outputs: 12, inputs: 12 };
    let refuses = Some((AlState::Op, AlStatusCode::NO_SYNC));
    let other = SubDevice::from_sii(&image, Box::new(Plain { lengths, refuses }));
    let sentence = failure_of(described(arm()), arm_with(other));
    assert!(
        sentence
            .starts_with("SubDevice 1 \"shoulder\" refuses Op and stays in SafeOp: AL status code 0x002d")
    );
}

#[test]
fn a_subdevice_that_never_gets_to_a_state() {
    let devices = drives(3);
    let mut rig =
        Rig::new(Configuration { state_timeout: Duration::from_secs(1), ..described(arm()) }, devices);
    rig.segment.sub_device_mut(1).expect("three").set_application_runs(false);
    rig.pump_to(BringUpPhase::PreOp);
    assert_eq!(
        rig.failure().expect("it fails").to_string(),
        "SubDevice 1 \"shoulder\" does not reach PreOp within 1s: it stays in Init without saying why; restart it"
    );
    rig.pump_to(BringUpPhase::Down);
    assert_eq!(rig.main_device.phase(), BringUpPhase::Down);
}

#[test]
fn explicit_pdos_without_coe() {
    let terminal = digital_outputs(DRIVE, "terminal", 4);
    let configuration =
        shoulder_with(|it| it.process_data = ProcessDataSource::Explicit(default_mapping()));
    assert_eq!(
        failure_of(configuration, arm_with(generic(&terminal))),
        "SubDevice 1 \"shoulder\": its 4 bits of process data are not the PDOs that are described, of 192 bits, expected the \
         same, as it has no CoE to change them; give the indices, entries and SyncManagers of its SII"
    );
}

#[test]
fn sync0_without_a_clock() {
    let esc = EscDescription { features: EscFeatures { bits: 0 }, ..EscDescription::default() };
    let description = with_coe(DRIVE, "drive", default_mapping()).image();
    let application = GenericDevice::from_sii(&description).expect("a mapping that fits");
    let without_clock = SubDevice::new(esc, description.emit(), Box::new(application));
    let sync0 = Sync0 { cycle: Duration::from_millis(1), shift: Duration::ZERO };
    assert_eq!(
        failure_of(shoulder_with(|it| it.sync0 = Some(sync0)), arm_with(without_clock)),
        "SubDevice 1 \"shoulder\": SYNC0 is configured, but its ESC has no distributed clock; remove its SYNC0"
    );
}

#[test]
fn sync0_with_clocks_off() {
    let sync0 = Sync0 { cycle: Duration::from_millis(1), shift: Duration::ZERO };
    let configuration =
        Configuration { distributed_clocks: false, ..shoulder_with(|it| it.sync0 = Some(sync0)) };
    assert_eq!(
        failure_of(configuration, drives(3)),
        "SubDevice 1 \"shoulder\": SYNC0 is configured, but distributed clocks are off; switch them on or remove \
         its SYNC0"
    );
}

#[test]
fn process_data_at_a_sync_manager_that_the_esc_lacks() {
    let esc = EscDescription { sync_managers: 3, ..EscDescription::default() };
    let image = with_coe(DRIVE, "drive", default_mapping()).image();
    let application = GenericDevice::from_sii(&image).expect("a mapping that fits");
    let three = SubDevice::new(esc, image.emit(), Box::new(application));
    assert_eq!(
        failure_of(described(arm()), arm_with(three)),
        "SubDevice 1 \"shoulder\": its process data is at SyncManager 3, its ESC has 3; its SII is that of another ESC"
    );
}

#[test]
fn more_process_data_than_fmmus() {
    let esc = EscDescription { fmmus: 1, ..EscDescription::default() };
    let image = with_coe(DRIVE, "drive", default_mapping()).image();
    let application = GenericDevice::from_sii(&image).expect("a mapping that fits");
    let one_fmmu = SubDevice::new(esc, image.emit(), Box::new(application));
    assert_eq!(
        failure_of(described(arm()), arm_with(one_fmmu)),
        "SubDevice 1 \"shoulder\": its process data needs 2 FMMUs, its ESC has 1; map PDOs of one SyncManager only"
    );
}

/// An application with process data of these lengths that refuses one state.
#[derive(Debug, Default)]
struct Plain {
    lengths: ProcessDataLengths,
    refuses: Option<(AlState, AlStatusCode)>,
}

impl Application for Plain {
    fn process_data_lengths(&self) -> ProcessDataLengths {
        self.lengths
    }

    fn enter(&mut self, change: &StateChange) -> Result<(), AlStatusCode> {
        match self.refuses {
            Some((state, code)) if state == change.to => Err(code),
            _ => Ok(()),
        }
    }

    fn step(&mut self, _now: Instant, _outputs: Option<&[u8]>, _inputs: &mut [u8]) {}
}
