//! Kinds of ESCs: their registers and limits, and a MainDevice that gets to Op with each of them.
//!
//! Registers of an ESC that reach beyond one access: write protection by frames, temporary loops,
//! PHYs and LEDs on a bus.

use std::time::Duration;

use bus::{Bus, sii};
use ethercat::al::AlState::{Op, PreOp, SafeOp};
use ethercat::main_device::{Event, SubDeviceConfiguration, Sync0};
use ethercat::register::{self, dc, sii_interface};
use ethercat::wire::{Address, Command};
use onbeat_simulator::application::servo::default_mapping;
use onbeat_simulator::application::sii::with_coe;
use onbeat_simulator::application::{NoApplication, ServoDescription, ServoDrive};
use onbeat_simulator::coe::DeviceDescription;
use onbeat_simulator::{EscDescription, EscKind, Oscillator, SubDevice};
use rig::real;
use rig::{DRIVE, PERIOD, Rig, described};

use crate::{bus, rig};

fn plain(kind: EscKind) -> Bus {
    let device = SubDevice::new(EscDescription::of_kind(kind), sii(0, 0), Box::new(NoApplication));
    Bus::line(vec![device])
}

// feature(simulator): ESCs by kind: ET1100, ET1200, LAN9252, ESC10, ESC20, IP core
#[test]
fn each_kind_shows_its_own_registers() {
    for kind in EscKind::ALL {
        let expected: [u8; 10] = match kind {
            EscKind::Et1100 => [0x11, 0, 2, 0, 8, 8, 8, 0xFF, 0xFC, 0x00],
            EscKind::Et1200 => [0x12, 1, 2, 0, 3, 4, 1, 0x4A, 0xFC, 0x01],
            EscKind::Lan9252 => [0xC0, 2, 0, 0, 3, 4, 4, 0x1F, 0xCC, 0x01],
            EscKind::Esc10 => [0x02, 0, 0, 0, 2, 4, 4, 0x0F, 0x00, 0x00],
            EscKind::Esc20 => [0x02, 0, 0, 0, 4, 4, 4, 0x0F, 0x04, 0x00],
            // As an AKD servo drive has it.
            EscKind::IpCore => [0x04, 2, 0x43, 0, 3, 4, 4, 0x0F, 0x84, 0x01],
        };
        let mut bus = plain(kind);
        assert_eq!(bus.read(0, register::TYPE, 10).data, expected, "{kind:?}");
        let eight = bus.read_word(0, sii_interface::CONTROL) & sii_interface::STATUS_READS_8_BYTES != 0;
        assert_eq!(eight, matches!(kind, EscKind::Et1100 | EscKind::Et1200), "{kind:?}");
    }
    assert_eq!(plain(EscKind::Et1100).read_word(0, register::ESC_SPECIFIC), 0x003F);
    let product = plain(EscKind::Lan9252).read(0, register::ESC_SPECIFIC, 16).data;
    assert_eq!((product[2..4].to_vec(), product[8..10].to_vec()), (vec![0x52, 0x92], vec![0xD8, 0x04]));
}

// feature(simulator): ESCs by kind: ET1100, ET1200, LAN9252, ESC10, ESC20, IP core
#[test]
fn what_a_kind_does_not_have_takes_no_write() {
    for kind in EscKind::ALL {
        let (it, mut bus) = (EscDescription::of_kind(kind), plain(kind));
        for fmmu in 0..16 {
            let counted = bus.write(0, register::FMMU + 16 * fmmu, &[1; 16]);
            assert_eq!(counted, u16::from(fmmu < it.fmmus.into()), "{kind:?}, FMMU {fmmu}");
        }
        for number in 0..16 {
            let counted = bus.write(0, register::SYNC_MANAGER + 8 * number, &[0; 8]);
            assert_eq!(
                counted,
                u16::from(number < it.sync_managers.into()),
                "{kind:?}, SyncManager {number}"
            );
        }
        // One write over all registers counts once for the existing ones.
        assert_eq!(bus.write(0, register::FMMU, &[0; 256]), 1);
        let end = register::PROCESS_DATA_MEMORY + 1024 * u16::from(it.ram_kib);
        assert_eq!((bus.write(0, end - 1, &[7]), bus.write(0, end, &[7])), (1, 0), "{kind:?}");
        assert_eq!((bus.read(0, end - 1, 1).data, bus.read(0, end, 1).working_counter), (vec![7], 0));
        let clock = bus.write(0, dc::SYSTEM_TIME_OFFSET, &[0; 8]);
        assert_eq!(clock, u16::from(it.features.distributed_clocks()), "{kind:?}");
    }
}

#[test]
fn clocks_of_32_bits_wrap() {
    for (kind, wide) in [(EscKind::Et1100, true), (EscKind::Esc20, false), (EscKind::IpCore, false)] {
        let mut bus = plain(kind);
        bus.wait(0);
        bus.wait(5_000);
        let time = u64::from_le_bytes(bus.read(0, dc::SYSTEM_TIME, 8).data.try_into().unwrap());
        assert_eq!(time > u64::from(u32::MAX), wide, "{kind:?}: {time}");
    }
}

/// A servo drive behind `kind`.
fn drive(kind: EscKind) -> SubDevice {
    let image = with_coe(DRIVE, "drive", default_mapping()).image();
    let drive = ServoDrive::new(&ServoDescription::new(DeviceDescription::from_sii(&image))).unwrap();
    let oscillator = Oscillator { drift_ppm: 40.0, initial_time: 4_200_000_000, ..Oscillator::default() };
    let description = EscDescription { oscillator, ..EscDescription::of_kind(kind) };
    SubDevice::new(description, image.emit(), Box::new(drive))
}

// feature(simulator): ESCs by kind: ET1100, ET1200, LAN9252, ESC10, ESC20, IP core
#[test]
fn a_main_device_brings_every_kind_to_op_with_the_clock_it_has() {
    let sync0 = Sync0 { cycle: PERIOD, shift: Duration::from_micros(250) };
    let configurations = EscKind::ALL.map(|kind| SubDeviceConfiguration {
        sync0: EscDescription::of_kind(kind).features.distributed_clocks().then_some(sync0),
        ..SubDeviceConfiguration::default()
    });
    let mut rig = Rig::new(described(configurations.to_vec()), EscKind::ALL.map(drive).into());
    rig.run_up();
    for _ in 0..6_000 {
        assert!(rig.cycle().all_fresh);
    }
    let failed = rig.events.iter().find(|event| matches!(event, Event::Failed(_)));
    assert!(failed.is_none(), "{failed:?}");
    for (found, kind) in rig.main_device.sub_devices().iter().zip(EscKind::ALL) {
        assert_eq!(found.information.fmmu_count, EscDescription::of_kind(kind).fmmus);
        assert_eq!(found.information.features, EscDescription::of_kind(kind).features);
    }
    // SubDevices with clocks agree, over a wrap of 32 bits.
    let with_clock = |&kind: &EscKind| EscDescription::of_kind(kind).features.distributed_clocks();
    let times = rig.segment.sub_devices().iter().zip(EscKind::ALL).filter(|(_, kind)| with_clock(kind));
    let times: Vec<u32> = times.map(|(it, _)| it.system_time(rig.now) as u32).collect();
    let spread = times.iter().map(|time| time.wrapping_sub(times[0]) as i32).map(i32::unsigned_abs).max();
    assert!(spread < Some(1_000), "{times:?}");
}

// feature(simulator): the kind of ESC from the SII image, where it shows one
#[test]
fn real_images_show_their_esc_where_they_can() {
    for (name, kind, ports) in [
        ("ek1100", Some(EscKind::Et1100), 0x3B),
        ("el2004", Some(EscKind::Et1200), 0x4A),
        ("el2828", Some(EscKind::Et1200), 0x4A),
        ("akd", None, EscDescription::default().port_descriptor),
    ] {
        let Some(image) = real(name) else { return };
        assert_eq!(EscDescription::kind_of_image(&image), kind, "{name}");
        assert_eq!(EscDescription::of(None, Some(&image)).port_descriptor, ports, "{name}");
    }
    let Some(akd) = real("akd") else { return };
    let chosen = EscDescription::of(Some(EscKind::IpCore), Some(&akd));
    assert_eq!((chosen.controller_type, chosen.port_descriptor), (0x04, 0x0F));
}

fn two() -> Bus {
    Bus::line((0..2).map(|_| SubDevice::from_sii(&sii(0, 0), Box::new(NoApplication))).collect())
}

fn answering(bus: &mut Bus) -> u16 {
    bus.send(Command::Brd, Address::Broadcast { register: register::TYPE }, &[0]).working_counter
}

// feature(simulator): write protection, of the registers and of the ESC
#[test]
fn a_frame_opens_protected_registers_for_itself_alone() {
    let mut bus = two();
    assert_eq!(bus.write(0, register::WRITE_REGISTER_PROTECTION, &[1]), 1);
    assert_eq!(bus.write(0, register::WRITE_REGISTER_ENABLE, &[1]), 1);
    // The next frame finds them closed again; the neighbour was never protected.
    assert_eq!([0, 1].map(|position| bus.write(position, register::STATION_ADDRESS, &[1, 0x10])), [0, 1]);
    // A frame that unlocks and writes removes the protection.
    assert_eq!(bus.write(0, register::WRITE_REGISTER_ENABLE, &[1, 0]), 1);
    assert_eq!(bus.write(0, register::STATION_ADDRESS, &[1, 0x10]), 1);
}

// feature(simulator): temporary loop settings
#[test]
fn a_port_closed_for_a_while_opens_by_itself() {
    let mut bus = two();
    assert_eq!(answering(&mut bus), 2);
    // Port 1 is closed, with bit 1: for a second.
    assert_eq!(bus.write(0, register::DL_CONTROL, &[0b11, 0b1100]), 1);
    assert_eq!(answering(&mut bus), 1);
    bus.wait(900);
    assert_eq!(answering(&mut bus), 1);
    bus.wait(150);
    assert_eq!(answering(&mut bus), 2);
    // Without it the port stays closed.
    assert_eq!(bus.write(0, register::DL_CONTROL, &[0b01, 0b1100]), 1);
    bus.wait(5_000);
    assert_eq!(answering(&mut bus), 1);
}

// feature(simulator): PHY registers by MII management
#[test]
fn the_phy_of_a_port_shows_its_link() {
    let mut bus = two();
    let status = |bus: &mut Bus, port: u8| {
        assert_eq!(bus.write(1, register::MII_PHY_ADDRESS, &[port, 1]), 1);
        assert_eq!(bus.write(1, register::MII_CONTROL, &[0, 1]), 1);
        assert_eq!(bus.write(1, register::MII_PHY_ADDRESS, &[9, 9]), 0, "busy");
        bus.now = bus.now + Duration::from_micros(50);
        assert_eq!(bus.read_word(1, register::MII_CONTROL) & 0xE000, 0);
        bus.read_word(1, register::MII_PHY_DATA) & 1 << 2 != 0
    };
    assert!(status(&mut bus, 0) && !status(&mut bus, 1), "the last one of the line");
}

// feature(simulator): registers of the LEDs, with their override
#[test]
fn the_run_led_follows_the_state() {
    let mut bus = two();
    let led = |bus: &mut Bus| bus.read(0, register::RUN_LED, 1).data[0];
    let mut shown = vec![led(&mut bus)];
    for state in [PreOp, SafeOp, Op] {
        bus.request(0, state);
        shown.push(led(&mut bus));
    }
    assert_eq!(shown, [0x0, 0xD, 0x1, 0xF]);
    assert_eq!(bus.write(0, register::RUN_LED, &[0x1E]), 1);
    assert_eq!(led(&mut bus), 0x1E);
    bus.request(0, PreOp);
    assert_eq!(led(&mut bus), 0xD);
}

// feature(simulator): physical read/write offset (0x0108): APRW and FPRW read at one address and write at another
#[test]
fn physical_read_write_writes_at_the_offset() {
    const READ_AT: u16 = 0x1000;
    const WRITTEN_AT: u16 = 0x1400;
    let mut bus = two();
    bus.write(1, READ_AT, &[1, 2]);
    bus.write(1, WRITTEN_AT, &[3, 4]);
    let address = Address::at_position(1, READ_AT);
    // Without an offset both are one.
    let reply = bus.send(Command::Aprw, address, &[5, 6]);
    assert_eq!((&reply.data[..], reply.working_counter), (&[1, 2][..], 3));
    assert_eq!(bus.read(1, READ_AT, 2).data, [5, 6]);
    let offset = (WRITTEN_AT - READ_AT).to_le_bytes();
    assert_eq!(bus.write(1, register::PHYSICAL_READ_WRITE_OFFSET, &offset), 1);
    let reply = bus.send(Command::Aprw, address, &[7, 8]);
    assert_eq!((&reply.data[..], reply.working_counter), (&[5, 6][..], 3));
    assert_eq!((bus.read(1, READ_AT, 2).data, bus.read(1, WRITTEN_AT, 2).data), (vec![5, 6], vec![7, 8]));
    // Other commands know of none.
    bus.write(1, READ_AT, &[9, 9]);
    assert_eq!((bus.read(1, READ_AT, 2).data, bus.read(1, WRITTEN_AT, 2).data), (vec![9, 9], vec![7, 8]));
}
