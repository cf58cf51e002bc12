//! Cables pulled and plugged, ports opened and closed (ETG.1000.4, 6.4 and 6.7).

use crate::bus;

use bus::{Bus, echo};
use ethercat::link::{End, Segment as _};
use ethercat::register::{self, DlStatus};
use ethercat::wire::{Address, Command};
use onbeat_simulator::Segment;
use onbeat_simulator::segment::Attachment;

const EVERYONE: Address = Address::Broadcast { register: register::DL_STATUS };

fn count(bus: &mut Bus) -> u16 {
    bus.send(Command::Brd, EVERYONE, &[0, 0]).working_counter
}

fn open_ports(bus: &mut Bus, position: u16) -> [bool; 4] {
    let status = DlStatus::from_bits(bus.read_word(position, register::DL_STATUS));
    [0, 1, 2, 3].map(|port| status.is_open(port))
}

#[test]
fn dl_status_shows_the_topology() {
    let devices = (0..4).map(|_| echo(1)).collect();
    let attachments = [Attachment::new(0, 3), Attachment::new(0, 1), Attachment::new(2, 1)];
    let mut bus = Bus::new(Segment::with_topology(devices, &attachments).unwrap());
    let ports: Vec<_> = (0..4).map(|position| open_ports(&mut bus, position)).collect();
    let expected = [
        [true, true, false, true],
        [true, false, false, false],
        [true, true, false, false],
        [true, false, false, false],
    ];
    assert_eq!(ports, expected);
    // As shown by a real coupler at the head of a line, with the PDI running.
    bus.wait(1);
    assert_eq!(bus.read_word(2, register::DL_STATUS), 0x5A33);
}

// feature(simulator): cables pulled, loops, lost-link counters
#[test]
fn pulled_cable_silences_the_rest_and_both_ends_count_link_loss() {
    let mut bus = Bus::line((0..4).map(|_| echo(1)).collect());
    assert_eq!(count(&mut bus), 4);
    assert!(bus.segment.disconnect(1, 1));
    assert!(!bus.segment.disconnect(2, 0), "it is the same cable");
    assert_eq!(count(&mut bus), 2);
    assert_eq!(open_ports(&mut bus, 1), [true, false, false, false]);
    assert_eq!(bus.read(1, register::LOST_LINK_COUNTERS, 4).data, [0, 1, 0, 0]);
    assert!(bus.segment.connect(2, 0));
    assert_eq!(count(&mut bus), 4);
    assert_eq!(bus.read(2, register::LOST_LINK_COUNTERS, 4).data, [1, 0, 0, 0]);
    assert_eq!(open_ports(&mut bus, 1), [true, true, false, false]);
}

/// The interfaces of a ring lose their carrier and regain it: each closes the port at its own end,
/// and the lost link is counted. Another cable pulled there stays out.
// feature(simulator): rings with two ends: frames in from either, breaks anywhere
#[test]
fn interface_without_carrier_closes_its_ring_port() {
    let mut segment = Bus::line((0..3).map(|_| echo(1)).collect()).segment;
    segment.close_ring(2, 1).unwrap();
    let ends = |segment: &Segment| {
        let open = |position: usize, port| {
            let mut status = [0; 2];
            segment.sub_devices()[position].peek(register::DL_STATUS, &mut status);
            DlStatus::from_bits(u16::from_le_bytes(status)).is_open(port)
        };
        assert!(open(0, 1) && open(2, 0), "the others are as they were");
        [open(0, 0), open(2, 1)]
    };
    assert_eq!(ends(&segment), [true, true]);
    segment.set_link(End::Second, false);
    assert_eq!(ends(&segment), [true, false]);
    let mut lost = [0; 4];
    segment.sub_devices()[2].peek(register::LOST_LINK_COUNTERS, &mut lost);
    assert_eq!(lost, [0, 1, 0, 0]);
    segment.set_link(End::Second, true);
    assert_eq!(ends(&segment), [true, true]);
    segment.disconnect(2, 1);
    segment.set_link(End::Second, false);
    segment.set_link(End::Second, true);
    assert_eq!(ends(&segment), [true, false], "pulled");
    segment.connect(2, 1);
    segment.set_link(End::First, false);
    assert_eq!(ends(&segment), [false, true]);
}

#[test]
fn without_the_first_cable_no_frame_comes_back() {
    let mut bus = Bus::line(vec![echo(1)]);
    assert!(bus.segment.disconnect(0, 0));
    assert_eq!(bus.try_send(Command::Brd, EVERYONE, &[0]), None);
    assert!(bus.segment.connect(0, 0));
    assert_eq!(count(&mut bus), 1);
    assert!(!bus.segment.disconnect(0, 2) && !bus.segment.disconnect(9, 0), "nothing is there");
}

#[test]
fn a_loop_can_be_closed_and_opened_by_hand() {
    let mut bus = Bus::line((0..3).map(|_| echo(1)).collect());
    let loops = register::DL_CONTROL + 1;
    bus.write(0, loops, &[3 << 2]); // port 1 closed
    assert_eq!(count(&mut bus), 1);
    bus.write(0, loops, &[0]);
    assert_eq!(count(&mut bus), 3);
    // Open without a link: frames leave and do not come back.
    bus.write(2, loops, &[2 << 2]);
    assert_eq!(bus.try_send(Command::Brd, EVERYONE, &[0]), None);
}

#[test]
fn after_a_power_cycle_a_sub_device_has_forgotten_its_address() {
    let mut bus = Bus::line(vec![echo(1), echo(1)]);
    for position in 0..2 {
        bus.write(position, register::STATION_ADDRESS, &[0x11, 0x22]);
    }
    bus.request(1, ethercat::al::AlState::PreOp);
    assert!(bus.segment.power_cycle(1));
    assert_eq!(bus.read_word(0, register::STATION_ADDRESS), 0x2211);
    assert_eq!(bus.read_word(1, register::STATION_ADDRESS), 0);
    assert_eq!(bus.al_status(1), (1, 0));
    assert_eq!(open_ports(&mut bus, 1), [true, false, false, false]);
}

#[test]
fn disturbances_are_counted_at_their_port() {
    let mut bus = Bus::line(vec![echo(1)]);
    bus.wait(0);
    bus.segment.disturb(0, 1);
    bus.segment.disturb(0, 7);
    assert_eq!(bus.read(0, register::RX_ERROR_COUNTERS, 8).data, [0, 0, 1, 0, 0, 0, 0, 0]);
}

/// A frame that is damaged on the cable is counted on the path of frames to that port: in a ring
/// from either end, and in an open ring on both parts.
// feature(simulator): faults of frames on both ways round a ring, closed and open
#[test]
fn a_damaged_frame_is_counted_on_either_way_round_a_ring() {
    let counted = |open: bool, (position, port): (usize, usize)| {
        let mut bus = Bus::line((0..4).map(|_| echo(1)).collect());
        bus.segment.close_ring(3, 1).unwrap();
        bus.wait(0);
        assert!(!open || bus.segment.disconnect(1, 1));
        bus.segment.disturb(position, port);
        let peek = |position: usize, register| {
            let mut counters = [0; 2];
            bus.segment.sub_devices()[position].peek(register, &mut counters);
            counters
        };
        let forwarded = [0, 1, 2, 3].map(|it| peek(it, register::FORWARDED_RX_ERROR_COUNTERS));
        let units = [0, 1, 2, 3].map(|it| peek(it, register::PROCESSING_UNIT_ERROR_COUNTER)[0]);
        (forwarded, units)
    };
    // From the first end frames come in at port 0, from the second at port 1.
    assert_eq!(counted(false, (1, 0)), ([[0, 0], [0, 0], [1, 0], [1, 0]], [0, 1, 1, 1]));
    assert_eq!(counted(false, (2, 1)), ([[0, 1], [0, 1], [0, 0], [0, 0]], [0; 4]));
    // Open behind SubDevice 1: its frames turn back there, frames of the second end at SubDevice 2.
    assert_eq!(counted(true, (1, 0)), ([[0, 1], [0, 0], [0, 0], [0, 0]], [0, 1, 0, 0]));
    assert_eq!(counted(true, (3, 1)), ([[0, 0], [0, 0], [0, 1], [1, 0]], [0, 0, 1, 1]));
}
