//! PDO mappings known only to the object dictionary, and mappings that differ from their
//! declaration.

use crate::rig;

use std::time::Duration;

use ethercat::main_device::{
    BringUpPhase, BusError, Configuration, ProcessDataSource, SubDeviceConfiguration, SubDeviceError,
};
use ethercat::pdo::{Pdo, PdoEntry, PdoMapping};
use onbeat_simulator::SubDevice;
use onbeat_simulator::application::servo::default_mapping;
use onbeat_simulator::application::sii::with_coe;
use onbeat_simulator::application::{ServoDescription, ServoDrive};
use onbeat_simulator::coe::DeviceDescription;

use rig::{DRIVE, Rig, described, drive, to_op};

/// A drive with the default mapping, which its SII omits.
fn undeclared() -> SubDevice {
    let image = with_coe(DRIVE, "drive", PdoMapping::default()).image();
    assert_eq!(image.default_mapping(), PdoMapping::default());
    let description = ServoDescription::new(DeviceDescription::from_sii(&image));
    SubDevice::from_sii(
        &image.emit(),
        Box::new(ServoDrive::new(&description).expect("the default mapping fits")),
    )
}

fn values(pdos: &[Pdo]) -> Vec<(u16, Vec<u32>)> {
    let of = |pdo: &Pdo| (pdo.index, pdo.entries.iter().map(PdoEntry::mapping_value).collect());
    pdos.iter().map(of).collect()
}

// feature(main-device): PDOs that only CoE knows are read and used
#[test]
fn pdos_known_only_to_coe_carry_process_data_in_op() {
    let mut rig = Rig::new(to_op(), vec![drive(0), undeclared()]);
    rig.run_up();
    let [declared, read] = rig.main_device.sub_devices() else { panic!("two") };
    assert_eq!(values(&read.mapping.outputs), values(&declared.mapping.outputs));
    assert_eq!(values(&read.mapping.inputs), values(&declared.mapping.inputs));
    assert_eq!(
        (read.output_bytes(), read.input_bytes()),
        (declared.output_bytes(), declared.input_bytes())
    );
    assert!(read.output_bytes() > 0);
    for _ in 0..100 {
        assert!(rig.cycle().all_fresh);
    }
    let statusword = rig.main_device.sub_devices()[1].mapping.input(0x6041, 0).expect("it is mapped");
    let inputs = rig.main_device.inputs(1);
    let inputs = &inputs[statusword.bit_offset / 8..];
    assert_ne!(inputs[0] & 0x6F, 0, "a statusword");
}

#[test]
fn tools_see_them_in_pre_op() {
    let mut rig = Rig::new(Configuration::default(), vec![undeclared()]);
    rig.pump_to(BringUpPhase::PreOp);
    let expected = default_mapping();
    let found = &rig.main_device.sub_devices()[0].mapping;
    assert_eq!((found.output_bits(), found.input_bits()), (expected.output_bits(), expected.input_bits()));
}

#[test]
fn unreadable_coe_pdos_block_neither_tools_nor_op() {
    let mute = |configuration| {
        let mut rig = Rig::new(configuration, vec![drive(0), undeclared()]);
        rig.segment.sub_device_mut(1).expect("two").set_mailbox_runs(false);
        rig.pump_to(BringUpPhase::PreOp);
        rig
    };
    let rig = mute(Configuration::default());
    assert!(rig.failure().is_none(), "{:?}", rig.events);
    let [whole, unknown] = rig.main_device.sub_devices() else { panic!("two") };
    assert_eq!((&whole.mapping_error, unknown.mapping.output_bits()), (&None, 0));
    let told = unknown.mapping_error.as_ref().map(ToString::to_string).unwrap_or_default();
    assert!(told.contains("SDO 0x1c12:00: no mailbox answer"), "{told}");

    let rig = mute(to_op());
    let told = rig.failure().map(ToString::to_string).unwrap_or_default();
    assert!(told.contains("SubDevice 1") && told.contains("SDO 0x1c12:00: no mailbox answer"), "{told}");
}

/// Error of a bring-up with this explicit mapping of a drive.
fn refused(mapping: PdoMapping) -> Option<BusError> {
    let process_data = ProcessDataSource::Explicit(mapping);
    let configuration = SubDeviceConfiguration { process_data, ..SubDeviceConfiguration::default() };
    let mut rig = Rig::new(described(vec![configuration]), vec![drive(0)]);
    let start = rig.now;
    rig.pump_to(BringUpPhase::PreOp);
    assert!(rig.now.since(start) < Duration::from_secs(5));
    rig.failure().cloned()
}

fn fixed() -> PdoMapping {
    let mut mapping = default_mapping();
    mapping.outputs.iter_mut().chain(&mut mapping.inputs).for_each(|pdo| pdo.fixed = true);
    mapping
}

#[test]
fn a_fixed_mapping_that_is_the_drives_is_taken() {
    assert_eq!(refused(fixed()), None);
    assert_eq!(refused(default_mapping()), None);
}

// feature(main-device): PDO mappings are read back, `fixed` ones too
#[test]
fn different_fixed_mapping_is_refused_with_the_difference() {
    let mut swapped = fixed();
    let first = swapped.outputs[0].entries[0].clone();
    swapped.outputs[0].entries[0].index = 0x6060;
    let error = refused(swapped).expect("another object");
    let found = first.mapping_value();
    let BusError::SubDevice {
        error: SubDeviceError::Mapping { index, sub_index, expected, found: read },
        ..
    } = &error
    else {
        panic!("{error}")
    };
    let pdo = default_mapping().outputs[0].index;
    assert_eq!((*index, *sub_index, *read), (pdo, 1, found));
    assert_eq!(*expected >> 16, 0x6060);
    let sentence = error.to_string();
    let place = format!("{pdo:#06x}:01 maps {:#06x}:00", first.index);
    for part in ["SubDevice 0", &place, "expected 0x6060:00", "correct the pdos"] {
        assert!(sentence.contains(part), "{sentence}");
    }
}

// feature(main-device): PDO mappings are read back, `fixed` ones too
#[test]
fn fixed_mapping_with_other_count_or_lengths_is_refused() {
    let mut fewer = fixed();
    let count = fewer.inputs[0].entries.len();
    fewer.inputs[0].entries.pop();
    let sentence = refused(fewer).expect("fewer objects").to_string();
    assert!(sentence.contains(&format!("has {count} entries, expected {}", count - 1)), "{sentence}");

    let mut longer = fixed();
    longer.inputs[0].entries[0].bit_length = 32;
    let sentence = refused(longer).expect("another length").to_string();
    assert!(sentence.contains("(16 bits), expected") && sentence.contains("(32 bits)"), "{sentence}");
}

/// Frames until PreOp for a drive with this description of process data, and its process data
/// there.
fn frames_to(mapping: PdoMapping) -> (u64, PdoMapping) {
    let process_data = ProcessDataSource::Explicit(mapping);
    let configuration = described(vec![SubDeviceConfiguration { process_data, ..Default::default() }]);
    let mut rig = Rig::new(configuration, vec![drive(0)]);
    rig.pump_to(BringUpPhase::PreOp);
    assert_eq!(rig.failure(), None);
    let frames = rig.main_device.reception().sent;
    rig.cycle_to(BringUpPhase::Op, 2000);
    assert!((0..100).all(|_| rig.cycle().all_fresh));
    (frames, rig.main_device.sub_devices()[0].mapping.clone())
}

// feature(main-device): a PDO mapping that a SubDevice holds already is read, all of an object at once, and not written
#[test]
fn a_mapping_that_is_there_already_is_not_written() {
    let mut rig = Rig::new(to_op(), vec![drive(0)]);
    rig.pump_to(BringUpPhase::PreOp);
    let undescribed = rig.main_device.reception().sent;
    let (as_it_is, mapping) = frames_to(default_mapping());
    assert_eq!(values(&mapping.outputs), values(&default_mapping().outputs));
    let mut turned = default_mapping();
    turned.outputs[0].entries.reverse();
    let (written, mapping) = frames_to(turned.clone());
    assert_eq!(values(&mapping.outputs), values(&turned.outputs));
    let (read, written) = (as_it_is - undescribed, written - undescribed);
    assert!(read * 3 < written, "{read} frames to read what is there, {written} to write outputs");
}
