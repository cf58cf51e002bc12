//! Applications built from the SII images of real devices.

use crate::rig::real;

use ethercat::al::AlState;
use ethercat::sdo_abort::AbortCode;
use ethercat::time::Instant;
use onbeat_simulator::application::{
    Application, GenericDevice, ProcessDataLengths, ServoDescription, ServoDrive, StateChange,
};

use real::real;

fn lengths(outputs: usize, inputs: usize) -> ProcessDataLengths {
    ProcessDataLengths { outputs, inputs }
}

// feature(simulator): SubDevices from real SII images
#[test]
fn the_akd_drive_has_its_own_pdos_and_takes_another_assignment() {
    let Some(image) = real("akd.bin") else { return };
    let description = ServoDescription::from_sii(&image);
    let mut drive = ServoDrive::new(&description).expect("the servo drive has the AKD's objects");
    assert_eq!(drive.process_data_lengths(), lengths(6, 6));
    let assign = |drive: &mut ServoDrive, index, pdo: u16| {
        let [low, high] = pdo.to_le_bytes();
        drive.dictionary_mut().download_complete(index, 0, &[1, 0, low, high], AlState::PreOp)
    };
    // Target position, controlword, torque offset; and the cyclic inputs with ten objects.
    assert_eq!(assign(&mut drive, 0x1C12, 0x1724), Ok(()));
    assert_eq!(assign(&mut drive, 0x1C13, 0x1B20), Ok(()));
    assert_eq!(assign(&mut drive, 0x1C13, 0x1B27), Err(AbortCode::NO_OBJECT));
    assert_eq!(drive.process_data_lengths(), lengths(8, 32));
    let fixed = drive.dictionary_mut().download(0x1724, 0, &[0], AlState::PreOp);
    assert_eq!(fixed, Err(AbortCode::READ_ONLY));
    let dictionary = drive.dictionary_mut();
    assert_eq!(dictionary.value(0x1018, 2), Some(i64::from(image.header.identity().product_code)));
}

// feature(simulator): SubDevices from real SII images
#[test]
fn terminals_hold_what_their_images_map() {
    for (name, outputs) in [("ek1100.bin", 0), ("el2004.bin", 1), ("el2828.bin", 1), ("el2889.bin", 2)] {
        let Some(image) = real(name) else { return };
        let mut device = GenericDevice::from_sii(&image).expect("a terminal");
        assert_eq!(device.process_data_lengths(), lengths(outputs, 0), "{name}");
        let lengths = device.process_data_lengths();
        let change = StateChange { from: AlState::PreOp, to: AlState::SafeOp, lengths, sync0: None };
        device.enter(&change).expect("no terminal refuses");
        device.step(Instant::EPOCH, Some(&vec![0xA5; outputs]), &mut []);
        let values = image.outputs().into_iter().flat_map(|pdo| pdo.entries);
        let values = values.filter_map(|entry| device.dictionary().value(entry.index, entry.sub_index));
        let expected: Vec<_> = (0..8 * outputs).map(|bit| 0xA5 >> (bit % 8) & 1).collect();
        assert_eq!(values.collect::<Vec<i64>>()[..], expected[..image.default_mapping().output_bits()]);
    }
}
