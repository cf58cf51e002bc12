//! EEPROM access through the ESC, as by a MainDevice (ESC data sheet, section II, 2.12), with the
//! images of real SubDevices where they are available.
//!
//! Applications built from the SII images of real devices.

use core::time::Duration;
use std::sync::{Arc, Mutex};

use bus::{Bus, sii};
use ethercat::al::AlState;
use ethercat::register::{self, Fmmu, FmmuDirection, sii_interface};
use ethercat::sdo_abort::AbortCode;
use ethercat::sii::Image;
use ethercat::time::Instant;
use ethercat::wire::{Address, Command};
use onbeat_simulator::application::{
    Application, GenericDevice, NoApplication, ProcessDataLengths, ServoDescription, ServoDrive,
    StateChange,
};
use onbeat_simulator::{EscDescription, SubDevice};

use crate::bus;
use crate::rig::real as parsed_image;

/// Runs one command and returns the status after it.
fn command(bus: &mut Bus, position: u16, address: u32, request: u16) -> u16 {
    let mut bytes = request.to_le_bytes().to_vec();
    bytes.extend(address.to_le_bytes());
    assert_eq!(bus.write(position, sii_interface::CONTROL, &bytes), 1);
    for _ in 0..100 {
        let status = bus.read_word(position, sii_interface::CONTROL);
        if status & sii_interface::STATUS_BUSY == 0 {
            return status;
        }
        assert_eq!(bus.write(position, sii_interface::ADDRESS, &[0xFF; 4]), 0, "busy: not written");
        bus.now = bus.now + Duration::from_micros(100);
    }
    panic!("the SII stays busy");
}

/// First `length` bytes, in as many reads as necessary.
fn bytes_over_the_bus(bus: &mut Bus, position: u16, length: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < length {
        let status = command(bus, position, (bytes.len() / 2) as u32, sii_interface::COMMAND_READ);
        let step = if status & sii_interface::STATUS_READS_8_BYTES != 0 { 8 } else { 4 };
        bytes.extend(bus.read(position, sii_interface::DATA, step).data);
    }
    bytes
}

/// Real images, or `None` with a message where they are not available.
fn real(name: &str) -> Option<Vec<u8>> {
    let path = format!("{}/../../../shared/real/sii/{name}.bin", env!("CARGO_MANIFEST_DIR"));
    let image = std::fs::read(&path).ok();
    if image.is_none() {
        testkit::skip!("needs the SII image {path}");
    }
    image
}

#[test]
fn words_are_written_and_read_back() {
    let mut bus = Bus::line(vec![SubDevice::from_sii(&sii(0, 0), Box::new(NoApplication))]);
    bus.write(0, sii_interface::DATA, &[0xCD, 0xAB]);
    let request = sii_interface::COMMAND_WRITE | sii_interface::CONTROL_WRITE_ENABLE;
    assert_eq!(command(&mut bus, 0, 4, request) & sii_interface::STATUS_MISSING_ACKNOWLEDGE, 0);
    command(&mut bus, 0, 4, sii_interface::COMMAND_READ);
    assert_eq!(bus.read_word(0, sii_interface::DATA), 0xABCD);
    assert_eq!(bus.read_word(0, register::STATION_ALIAS), 0, "taken over at power-on only");
    bus.segment.power_cycle(0);
    // The checksum was not corrected, so the configuration area is not taken over at all.
    let status = bus.read_word(0, sii_interface::CONTROL);
    assert_ne!(status & sii_interface::STATUS_CHECKSUM_ERROR, 0);
    assert_eq!(bus.read_word(0, register::STATION_ALIAS), 0);
    assert_eq!(bus.read_word(0, register::DL_STATUS) & 1, 0, "the PDI does not run");
}

#[test]
fn dl_status_follows_what_a_reload_finds() {
    let mut bus = Bus::line(vec![SubDevice::from_sii(&sii(0, 0), Box::new(NoApplication))]);
    assert_eq!(bus.read_word(0, register::DL_STATUS) & 1, 1);
    for (image, loaded) in [(vec![0xFF; 128], 0), (sii(0, 7), 1), (sii(0, 0)[..10].to_vec(), 0)] {
        bus.segment.sub_device_mut(0).unwrap().set_sii(image);
        command(&mut bus, 0, 0, sii_interface::COMMAND_RELOAD);
        assert_eq!(bus.read_word(0, register::DL_STATUS) & 1, loaded);
    }
}

#[test]
fn a_broadcast_command_starts_all_of_them() {
    let device = |alias| SubDevice::from_sii(&sii(0, alias), Box::new(NoApplication));
    let mut bus = Bus::line((1..=3).map(device).collect());
    let address = Address::Broadcast { register: sii_interface::CONTROL };
    assert_eq!(bus.send(Command::Bwr, address, &[0, 1, 4, 0, 0, 0]).working_counter, 3);
    bus.wait(1);
    for position in 0..3 {
        assert_eq!(bus.read_word(position, sii_interface::DATA), position + 1);
    }
}

#[test]
fn real_images_come_over_the_bus_as_they_are() {
    for name in ["akd", "ek1100", "el2004", "el2828", "el2889"] {
        let Some(bytes) = real(name) else { return };
        for reads_8_bytes in [false, true] {
            let description =
                EscDescription { sii_reads_8_bytes: reads_8_bytes, ..EscDescription::default() };
            let device = SubDevice::new(description, bytes.clone(), Box::new(NoApplication));
            let mut bus = Bus::line(vec![device]);
            assert!(bytes_over_the_bus(&mut bus, 0, bytes.len()) == bytes, "{name}");
        }
    }
}

/// Four digital outputs that publish their levels.
struct Lamps(Arc<Mutex<Option<u8>>>);

impl Application for Lamps {
    fn process_data_lengths(&self) -> ProcessDataLengths {
        ProcessDataLengths { outputs: 1, inputs: 0 }
    }

    fn step(&mut self, _now: Instant, outputs: Option<&[u8]>, _inputs: &mut [u8]) {
        *self.0.lock().unwrap() = outputs.map(|outputs| outputs[0]);
    }
}

#[test]
fn an_el2004_behind_an_ek1100_shows_its_outputs_in_op() {
    let (Some(ek1100), Some(el2004)) = (real("ek1100"), real("el2004")) else { return };
    let shown = Arc::new(Mutex::new(None));
    let mut bus = Bus::line(vec![
        SubDevice::from_sii(&ek1100, Box::new(NoApplication)),
        SubDevice::from_sii(&el2004, Box::new(Lamps(Arc::clone(&shown)))),
    ]);
    let image = Image::parse(&bytes_over_the_bus(&mut bus, 1, el2004.len())).unwrap();
    let from_sii = image.sync_managers()[0];
    bus.sync_manager(1, 0, 0x44, from_sii.physical_address, 1);
    let bits = Fmmu {
        logical_start_bit: 2,
        logical_end_bit: 5,
        ..Fmmu::bytes(0, 0x0F00, 1, FmmuDirection::Write)
    };
    bus.fmmu(1, 0, bits);
    for state in [AlState::PreOp, AlState::SafeOp, AlState::Op] {
        for position in 0..2 {
            bus.write(position, register::AL_CONTROL, &[state.number(), 0]);
            assert_eq!(bus.al_status(position), (state.number().into(), 0));
        }
    }
    assert_eq!(bus.send(Command::Lwr, Address::Logical(0), &[0b0001_0111]).working_counter, 1);
    bus.wait(1);
    assert_eq!(*shown.lock().unwrap(), Some(0b0101));
    // Without frames the watchdog clears the outputs, while AL status stays.
    bus.wait(110);
    assert_eq!(*shown.lock().unwrap(), None);
    assert_eq!(bus.al_status(1), (8, 0));
}

fn lengths(outputs: usize, inputs: usize) -> ProcessDataLengths {
    ProcessDataLengths { outputs, inputs }
}

// feature(simulator): SubDevices from real SII images
#[test]
fn the_akd_drive_has_its_own_pdos_and_takes_another_assignment() {
    let Some(image) = parsed_image("akd.bin") else { return };
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
        let Some(image) = parsed_image(name) else { return };
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
