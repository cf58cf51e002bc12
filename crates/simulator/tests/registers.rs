//! Registers of an ESC that reach beyond one access: write protection by frames, temporary loops,
//! PHYs and LEDs on a bus.
use crate::bus;

use core::time::Duration;

use bus::{Bus, sii};
use ethercat::al::AlState::{Op, PreOp, SafeOp};
use ethercat::register;
use ethercat::wire::{Address, Command};
use onbeat_simulator::SubDevice;
use onbeat_simulator::application::NoApplication;

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
