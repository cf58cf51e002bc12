//! Faults on demand: changes to a segment while it runs.

use crate::bus;
use crate::rig;

use bus::{Bus, echo};
use ethercat::al::AlState::{Init, Op, PreOp, SafeOp};
use ethercat::al_status_code::AlStatusCode;
use ethercat::main_device::BringUpPhase;
use ethercat::register::{self, DlStatus, SyncManager, dc, sii_interface};
use ethercat::wire::{Address, Command};
use onbeat_simulator::SubDevice;
use onbeat_simulator::application::GenericDevice;
use onbeat_simulator::application::sii::with_coe;
use rig::wire::Faults;
use rig::{DRIVE, Rig, drives, to_op};

const EVERYONE: Address = Address::Broadcast { register: register::AL_STATUS };

fn count(bus: &mut Bus) -> u16 {
    bus.send(Command::Brd, EVERYONE, &[0, 0]).working_counter
}

/// Three SubDevices in Op.
fn in_op() -> Bus {
    let mut bus = Bus::line((0..3).map(|_| echo(4)).collect());
    for position in 0..3 {
        bus.write(position, register::STATION_ADDRESS, &[position as u8 + 1, 0x10]);
        bus.map_process_data(position, u32::from(position) * 4, 4);
        bus.request(position, PreOp);
        assert_eq!(bus.request(position, SafeOp), (4, 0));
    }
    exchange(&mut bus);
    for position in 0..3 {
        assert_eq!(bus.request(position, Op), (8, 0));
    }
    bus
}

fn exchange(bus: &mut Bus) -> u16 {
    bus.send(Command::Lrw, Address::Logical(0), &[7; 12]).working_counter
}

// feature(simulator): power loss, stuck mailbox, refused state, another EEPROM, watchdog, clock jump on demand
#[test]
fn power_cycled_sub_device_has_lost_its_state() {
    let mut bus = in_op();
    assert_eq!((count(&mut bus), exchange(&mut bus)), (3, 9));
    assert!(bus.segment.power_off(1) && !bus.segment.power_off(1) && !bus.segment.is_powered(1));
    assert!(!bus.segment.power_off(3));
    assert_eq!((count(&mut bus), exchange(&mut bus)), (1, 3), "whoever stands behind it is gone too");
    assert_eq!(bus.read(0, register::LOST_LINK_COUNTERS, 4).data, [0, 1, 0, 0]);
    bus.wait(50);
    assert!(bus.segment.power_on(1) && !bus.segment.power_on(1));
    assert_eq!((count(&mut bus), exchange(&mut bus)), (3, 6), "it takes no part in process data");
    bus.wait(1);
    assert_eq!(bus.al_status(1), (1, 0));
    assert_eq!(bus.read_word(1, register::STATION_ADDRESS), 0);
    assert_eq!(bus.read(1, SyncManager::register(2), 7).data, [0, 0, 0, 0, 0, 0x30, 0]);
    assert_eq!(bus.read(1, register::FMMU, 16).data, [0; 16]);
    let ports = DlStatus::from_bits(bus.read_word(1, register::DL_STATUS));
    assert!(ports.is_open(0) && ports.is_open(1));
    assert_eq!(bus.al_status(2), (8, 0), "its neighbour noticed a pause of 50 ms only");
    // The first one.
    bus.segment.power_off(0);
    assert_eq!(bus.try_send(Command::Brd, EVERYONE, &[0]), None);
}

#[test]
fn what_was_written_to_objects_is_gone_with_the_power() {
    let mut rig = Rig::new(to_op(), drives(2));
    rig.run_up();
    let mode = |rig: &mut Rig| {
        let drive = rig.segment.sub_device_mut(1).and_then(SubDevice::servo_mut).expect("a drive");
        let entry = drive.dictionary().find(0x6060, 0).expect("it has modes");
        let before = drive.dictionary().get(entry);
        drive.dictionary_mut().set(entry, 9);
        before
    };
    let at_first = mode(&mut rig);
    assert_eq!(mode(&mut rig), 9);
    rig.segment.power_cycle(1);
    assert_eq!(mode(&mut rig), at_first);
}

// feature(simulator): power loss, stuck mailbox, refused state, another EEPROM, watchdog, clock jump on demand
#[test]
fn a_stuck_mailbox_takes_one_request_and_answers_none() {
    let image = with_coe(DRIVE, "device", rig::devices::stamped_mapping(1, 1)).image();
    let device = GenericDevice::from_sii(&image).expect("a mapping that fits");
    let mut bus = Bus::line(vec![SubDevice::from_sii(&image.emit(), Box::new(device))]);
    bus.sync_manager(0, 0, SyncManager::CONTROL_MAILBOX_OUT, 0x1000, 128);
    bus.sync_manager(0, 1, SyncManager::CONTROL_MAILBOX_IN, 0x1080, 128);
    assert_eq!(bus.request(0, PreOp), (2, 0));
    let mailbox = |bus: &mut Bus, runs| bus.segment.sub_device_mut(0).unwrap().set_mailbox_runs(runs);
    mailbox(&mut bus, false);
    let mut upload = vec![0; 128];
    // Upload of 0x1000:00, counter 1.
    upload[..16].copy_from_slice(&[10, 0, 0, 0, 0, 0x13, 0, 0x20, 0x40, 0x00, 0x10, 0, 0, 0, 0, 0]);
    assert_eq!(bus.write(0, 0x1000, &upload), 1);
    bus.wait(1000);
    assert_eq!(bus.write(0, 0x1000, &upload), 0, "it is full");
    assert_eq!(bus.read(0, 0x1080, 128).working_counter, 0);
    assert_eq!(bus.al_status(0), (2, 0), "the rest of it lives");
    mailbox(&mut bus, true);
    bus.wait(1);
    assert_eq!(bus.read(0, 0x1080, 128).working_counter, 1);
}

#[test]
fn refused_state_keeps_its_code_until_allowed_again() {
    let mut bus = in_op();
    bus.request(0, PreOp);
    let refuse = |bus: &mut Bus, refused| bus.segment.sub_device_mut(0).unwrap().refuse_state(refused);
    refuse(&mut bus, Some((SafeOp, AlStatusCode::NO_SYNC)));
    assert_eq!(bus.request(0, SafeOp), (0x12, AlStatusCode::NO_SYNC.0));
    refuse(&mut bus, Some((Init, AlStatusCode::NO_SYNC)));
    assert_eq!(bus.request(0, SafeOp), (4, 0));
    assert_eq!(bus.request(0, Init), (1, 0), "Init cannot be refused");
}

// feature(simulator): power loss, stuck mailbox, refused state, another EEPROM, watchdog, clock jump on demand
#[test]
fn another_eeprom_is_read_at_once_and_loaded_with_the_power() {
    for image in [vec![], vec![0xFF; 2048], vec![0; 10]] {
        let mut bus = in_op();
        bus.segment.sub_device_mut(1).unwrap().set_sii(image);
        let errors = sii_interface::STATUS_CHECKSUM_ERROR | sii_interface::STATUS_NOT_LOADED;
        assert_eq!(bus.read_word(1, sii_interface::CONTROL) & errors, 0, "what is loaded stays loaded");
        assert_eq!(bus.read_word(1, register::DL_STATUS) & 1, 1);
        bus.segment.power_cycle(1);
        bus.wait(1);
        assert_ne!(bus.read_word(1, sii_interface::CONTROL) & errors, 0);
        assert_eq!(bus.read_word(1, register::DL_STATUS) & 1, 0, "no PDI without its configuration");
    }
}

#[test]
fn a_watchdog_expires_on_demand_though_outputs_come() {
    let mut bus = in_op();
    bus.segment.sub_device_mut(2).unwrap().expire_watchdog();
    assert_eq!(exchange(&mut bus), 9);
    bus.wait(1);
    assert_eq!(bus.al_status(2), (0x14, AlStatusCode::SYNC_MANAGER_WATCHDOG.0));
    assert_eq!((bus.al_status(1), exchange(&mut bus)), ((8, 0), 7));
}

// feature(simulator): power loss, stuck mailbox, refused state, another EEPROM, watchdog, clock jump on demand
#[test]
fn a_clock_jumps_forward_and_back() {
    let mut bus = in_op();
    let time =
        |bus: &mut Bus| u64::from_le_bytes(bus.read(1, dc::SYSTEM_TIME, 8).data[..].try_into().unwrap());
    let start = time(&mut bus);
    assert!(bus.segment.jump_clock(1, 5_000_000) && !bus.segment.jump_clock(3, 1));
    assert_eq!(time(&mut bus) - start, 5_000_000);
    bus.segment.jump_clock(1, -6_000_000);
    assert_eq!(start - time(&mut bus), 1_000_000);
}

#[test]
fn each_direction_of_the_wire_has_separate_faults() {
    let mut rig = Rig::new(to_op(), drives(1));
    rig.run_up();
    rig.main_device.outputs_mut(0).fill(0);
    // Replies only: the drive still receives its outputs, so that it stays in Op.
    rig.wire.reply_faults = Some(Faults { truncated: 0.5, lost: 0.5, ..Faults::default() });
    let fresh = (0..400).filter(|_| rig.cycle().all_fresh).count();
    assert!((1..400).contains(&fresh), "{fresh}");
    assert_eq!(rig.segment.sub_devices()[0].al_status().al_state(), Some(Op));
    rig.wire.reply_faults = Some(Faults::default());
    rig.wire.faults = Faults { lost: 1.0, ..Faults::default() };
    for _ in 0..400 {
        rig.cycle();
    }
    assert_eq!(rig.segment.sub_devices()[0].al_status().al_state(), Some(SafeOp));
    assert_eq!(rig.main_device.phase(), BringUpPhase::Op);
}
