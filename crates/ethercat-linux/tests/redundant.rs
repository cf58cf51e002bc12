//! Two interfaces at a ring: frames that make a reply, waits for a missing half, frames that are
//! passed on.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ethercat::link::{End, MAXIMUM_FRAME_LENGTH};
use ethercat::redundancy::{Ring, SECOND_BIT};
use ethercat::register::{self, dc};
use ethercat::wire::ethernet::{PROCESSED_BIT, SOURCE_OFFSET};
use ethercat::wire::{Address, Command, DatagramHeader, Frame, FrameBuilder, MacAddress};
use onbeat_ethercat_linux::link::{DirectEnd, Link, Redundant, RingError};
use onbeat_ethercat_linux::rt::clock::{Clock, VirtualClock};
use simulator::application::NoApplication;
use simulator::application::sii::coupler;
use simulator::{EscDescription, Segment, SubDevice};

const WAIT: Duration = Duration::from_micros(400);

/// Frames of an interface, sent and received.
#[derive(Clone, Default)]
struct Wire {
    shared: Arc<Mutex<Shared>>,
    clock: VirtualClock,
}

#[derive(Default)]
struct Shared {
    sent: Vec<Vec<u8>>,
    incoming: VecDeque<Vec<u8>>,
    is_down: bool,
    receives: usize,
}

impl Wire {
    fn come(&self, frame: Vec<u8>) {
        self.shared.lock().unwrap().incoming.push_back(frame);
    }

    fn sent(&self) -> Vec<u8> {
        self.shared.lock().unwrap().sent.pop().unwrap()
    }

    fn set_down(&self, is_down: bool) {
        self.shared.lock().unwrap().is_down = is_down;
    }
}

impl Link for Wire {
    fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
        let mut shared = self.shared.lock().unwrap();
        if shared.is_down {
            return Err(io::Error::from_raw_os_error(libc::ENETDOWN));
        }
        shared.sent.push(frame.to_vec());
        Ok(())
    }

    fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>> {
        let mut shared = self.shared.lock().unwrap();
        shared.receives += 1;
        if shared.incoming.is_empty() {
            self.clock.advance(timeout);
        }
        Ok(shared.incoming.pop_front().map(|frame| {
            buffer[..frame.len()].copy_from_slice(&frame);
            frame.len()
        }))
    }
}

struct Bench {
    first: Wire,
    second: Wire,
    clock: VirtualClock,
    link: Redundant<Wire, Wire, VirtualClock>,
    number: u32,
}

impl Bench {
    fn new() -> Self {
        let clock = VirtualClock::default();
        let wire = || Wire { clock: clock.clone(), ..Wire::default() };
        let (first, second) = (wire(), wire());
        let link = Redundant::with_clock(first.clone(), second.clone(), clock.clone()).with_wait(WAIT);
        Self { first, second, clock, link, number: 0 }
    }

    /// Sends a broadcast read and a logical one, and returns both copies.
    fn send(&mut self) -> [Vec<u8>; 2] {
        self.number += 1;
        let status = (Command::Brd, Address::Broadcast { register: register::AL_STATUS }, 2);
        let frame = frame(self.number, &[status, (Command::Lrd, Address::Logical(0x1_0000), 4)]);
        self.link.transmit(&frame).unwrap();
        let copies = [self.first.sent(), self.second.sent()];
        assert_eq!(copies[0], frame);
        copies
    }

    fn receive(&mut self, timeout: Duration) -> Option<Vec<u8>> {
        let mut buffer = [0; MAXIMUM_FRAME_LENGTH];
        self.link.receive(&mut buffer, timeout).unwrap().map(|length| buffer[..length].to_vec())
    }

    /// Opens the ring in front of the last of three, as a frame shows.
    fn open(&mut self) {
        let [first, second] = self.send();
        self.first.come(processed(&first, 2, 0));
        self.second.come(processed(&second, 1, 2));
        assert_eq!(counters(&self.receive(Duration::ZERO).unwrap()), [3, 3]);
        assert_eq!(self.link.ring(), Some(Ring::Open { before: 2 }));
    }
}

fn frame(number: u32, datagrams: &[(Command, Address, u16)]) -> Vec<u8> {
    let mut buffer = [0; MAXIMUM_FRAME_LENGTH];
    let mut builder = FrameBuilder::new(&mut buffer, MacAddress::MAIN_DEVICE);
    let index = (number % 64) as u8;
    let nop = DatagramHeader::new(Command::Nop, index, Address::Logical(0), 4);
    builder.push_data(nop, &number.to_le_bytes()).unwrap();
    for &(command, address, length) in datagrams {
        builder.push(DatagramHeader::new(command, index, address, length)).unwrap();
    }
    let length = builder.finish();
    buffer[..length].to_vec()
}

/// The reply of `count` SubDevices, each with a byte of the logical datagram from `place` on.
fn processed(sent: &[u8], count: u16, place: usize) -> Vec<u8> {
    let mut reply = sent.to_vec();
    reply[SOURCE_OFFSET] |= PROCESSED_BIT;
    for datagram in Frame::parse(sent).unwrap().places().skip(1) {
        let counter = datagram.working_counter();
        reply[counter..counter + 2].copy_from_slice(&count.to_le_bytes());
        if datagram.header.command == Command::Brd {
            reply[datagram.offset + 2..datagram.offset + 4].copy_from_slice(&count.to_le_bytes());
            reply[datagram.data()].copy_from_slice(&[8, 0]);
        } else {
            let start = datagram.data().start + place;
            reply[start..start + usize::from(count)].fill(0xA0 + place as u8);
        }
    }
    reply
}

fn counters(reply: &[u8]) -> Vec<u16> {
    Frame::parse(reply).unwrap().datagrams().skip(1).map(|it| it.working_counter).collect()
}

// feature(redundancy): one reply of the two copies of a frame; late, lost and foreign frames
#[test]
fn closed_ring_returns_only_the_first_copy() {
    let mut bench = Bench::new();
    for _ in 0..200 {
        let [first, second] = bench.send();
        assert_eq!(second[SOURCE_OFFSET], first[SOURCE_OFFSET] ^ SECOND_BIT);
        bench.second.come(processed(&first, 3, 0));
        bench.first.come(second);
        assert_eq!(bench.receive(Duration::ZERO), Some(processed(&first, 3, 0)));
        assert_eq!(bench.receive(Duration::ZERO), None);
    }
    assert_eq!(bench.link.ring(), Some(Ring::Closed));
}

#[test]
fn open_ring_splices_both_halves_in_any_order() {
    for is_first in [true, false] {
        let mut bench = Bench::new();
        let [first, second] = bench.send();
        let (one, other) = (processed(&first, 2, 0), processed(&second, 1, 2));
        if is_first {
            bench.first.come(one.clone())
        } else {
            bench.second.come(other.clone())
        }
        assert_eq!(bench.receive(Duration::ZERO), None, "the other half can still come");
        if is_first {
            bench.second.come(other)
        } else {
            bench.first.come(one)
        }
        let reply = bench.receive(Duration::from_micros(100)).unwrap();
        assert_eq!(counters(&reply), [3, 3]);
        let datagram = Frame::parse(&reply).unwrap().datagrams().nth(2).map(|it| it.data.to_vec());
        assert_eq!(datagram.unwrap(), [0xA0, 0xA0, 0xA2, 0]);
        assert_eq!(bench.link.ring(), Some(Ring::Open { before: 2 }));
        assert_eq!(bench.receive(WAIT * 2), None, "one reply a frame");
    }
}

#[test]
fn unmarked_source_address_is_spliced_too() {
    let mut bench = Bench::new();
    let [first, second] = bench.send();
    let unmarked = |mut reply: Vec<u8>| {
        reply[SOURCE_OFFSET] &= !PROCESSED_BIT;
        reply
    };
    bench.second.come(unmarked(processed(&second, 1, 2)));
    bench.first.come(unmarked(processed(&first, 2, 0)));
    let reply = bench.receive(Duration::ZERO).unwrap();
    assert_eq!((counters(&reply), reply[SOURCE_OFFSET]), (vec![3, 3], first[SOURCE_OFFSET]));
}

#[test]
fn lone_half_is_returned_late_and_later_at_once() {
    let mut bench = Bench::new();
    bench.open();
    for lost in 1..=5 {
        let [first, second] = bench.send();
        bench.first.come(processed(&first, 2, 0));
        let before = bench.clock.now();
        let reply = bench.receive(Duration::from_millis(5)).unwrap();
        assert_eq!(counters(&reply), [2, 2]);
        // Three in a row: that end is silent.
        let waited = bench.clock.now().since(before);
        assert_eq!(waited, if lost <= 3 { WAIT } else { Duration::ZERO }, "the {lost}th");
        // It comes late, after the reply was handed out.
        if lost == 5 {
            bench.second.come(processed(&second, 1, 2));
            assert_eq!(bench.receive(Duration::ZERO), None);
        }
    }
    // An end that sent a frame is waited for again.
    let [first, second] = bench.send();
    bench.first.come(processed(&first, 2, 0));
    assert_eq!(bench.receive(Duration::ZERO), None);
    bench.second.come(processed(&second, 1, 2));
    assert_eq!(counters(&bench.receive(Duration::ZERO).unwrap()), [3, 3]);
}

#[test]
fn silent_first_end_puts_all_behind_the_break() {
    let mut bench = Bench::new();
    for _ in 0..4 {
        let [_, second] = bench.send();
        bench.second.come(processed(&second, 3, 0));
        assert_eq!(counters(&bench.receive(Duration::from_millis(5)).unwrap()), [3, 3]);
    }
    assert_eq!(bench.link.ring(), Some(Ring::Open { before: 0 }));
    // Plugged again: the first copy comes out at the second end.
    let [first, second] = bench.send();
    bench.first.come(second);
    bench.second.come(processed(&first, 3, 0));
    assert_eq!(counters(&bench.receive(Duration::ZERO).unwrap()), [3, 3]);
    assert_eq!(bench.link.ring(), Some(Ring::Closed));
}

#[test]
fn refusing_interface_is_not_waited_for() {
    let mut bench = Bench::new();
    bench.second.set_down(true);
    let sent = frame(1, &[(Command::Lrd, Address::Logical(0), 4)]);
    bench.link.transmit(&sent).unwrap();
    bench.first.come(processed(&sent, 3, 0));
    assert_eq!(counters(&bench.receive(Duration::ZERO).unwrap()), [3]);
    bench.first.set_down(true);
    let error = bench.link.transmit(&frame(2, &[])).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENETDOWN));
}

#[test]
fn ring_change_between_copies_counts_none_twice() {
    let mut bench = Bench::new();
    // It broke behind the first copy: the SubDevices behind the break got both copies.
    let [first, second] = bench.send();
    bench.second.come(processed(&second, 1, 2));
    bench.second.come(processed(&first, 3, 0));
    assert_eq!(counters(&bench.receive(Duration::ZERO).unwrap()), [3, 3]);
    // It healed behind the first copy: some SubDevices got neither copy.
    for is_first in [true, false] {
        bench.open();
        let [first, second] = bench.send();
        let frames = [processed(&first, 2, 0), second];
        let order = if is_first { [0, 1] } else { [1, 0] };
        order.into_iter().for_each(|number| bench.first.come(frames[number].clone()));
        assert_eq!(counters(&bench.receive(Duration::ZERO).unwrap()), [2, 2]);
        assert_eq!(bench.receive(WAIT * 3), None);
    }
}

#[test]
fn only_foreign_frames_are_passed_on() {
    let mut bench = Bench::new();
    let foreign = frame(77, &[(Command::Brd, Address::Broadcast { register: 0 }, 1)]);
    let mut of_another = foreign.clone();
    of_another[SOURCE_OFFSET + 5] ^= 0x55;
    let mut no_ethercat = foreign.clone();
    no_ethercat[12..14].copy_from_slice(&[8, 0]);
    for bytes in [foreign, of_another, no_ethercat, vec![1, 2, 3]] {
        bench.second.come(bytes.clone());
        assert_eq!(bench.receive(Duration::ZERO), Some(bytes));
    }
    // A damaged half is as good as lost, and a first copy that comes twice is one.
    let [first, second] = bench.send();
    let mut damaged = processed(&second, 1, 2);
    damaged[33] ^= 0x01;
    bench.first.come(processed(&first, 2, 0));
    bench.first.come(processed(&first, 2, 0));
    bench.second.come(damaged);
    assert_eq!(bench.receive(Duration::ZERO), None);
    assert_eq!(counters(&bench.receive(WAIT * 2).unwrap()), [2, 2]);
    // An old second copy: the MainDevice never sees one.
    let [_, old] = bench.send();
    for _ in 0..64 {
        bench.send();
    }
    bench.second.come(processed(&old, 3, 0));
    assert_eq!(bench.receive(Duration::ZERO), None);
}

#[test]
fn latching_frame_passes_the_ring_as_a_line() {
    let mut bench = Bench::new();
    let latch = (Command::Bwr, Address::Broadcast { register: dc::RECEIVE_TIME }, 4);
    let sent = frame(1, &[latch]);
    bench.link.transmit(&sent).unwrap();
    assert_eq!(bench.first.sent(), sent);
    assert!(bench.second.shared.lock().unwrap().sent.is_empty());
    let there = processed(&sent, 3, 0);
    bench.second.come(there.clone());
    assert_eq!(bench.receive(Duration::ZERO), None);
    assert_eq!(bench.second.sent(), there, "sent back as it came");
    bench.first.come(there.clone());
    assert_eq!(bench.receive(Duration::ZERO), Some(there));
    // At a break each copy turns back.
    bench.open();
    let sent = frame(100, &[latch]);
    bench.link.transmit(&sent).unwrap();
    bench.first.come(processed(&sent, 2, 0));
    let second = bench.second.sent();
    bench.second.come(processed(&second, 1, 0));
    assert_eq!(counters(&bench.receive(Duration::ZERO).unwrap()), [3]);
}

#[test]
fn a_flood_takes_a_bounded_number_of_looks() {
    let mut bench = Bench::new();
    let [_, second] = bench.send();
    for _ in 0..10_000 {
        bench.first.come(second.clone());
    }
    assert_eq!(bench.receive(Duration::ZERO), None);
    assert!(bench.first.shared.lock().unwrap().receives <= 256);
}

fn segment(count: usize) -> Segment {
    let identity = ethercat::sii::Identity { vendor_id: 2, product_code: 3, revision: 1, serial: 0 };
    let device = |_| {
        SubDevice::new(
            EscDescription::default(),
            coupler(identity, "it").image().emit(),
            Box::new(NoApplication),
        )
    };
    Segment::new((0..count).map(device).collect())
}

// feature(redundancy): what is no ring, in a sentence at the start
#[test]
fn interface_mistakes_have_distinct_errors() {
    let checked = |change: &dyn Fn(&mut Segment), is_swapped: bool| {
        let clock = VirtualClock::default();
        let mut ring = segment(5);
        ring.close_ring(4, 1).unwrap();
        change(&mut ring);
        let [mut first, mut second] = DirectEnd::ring(ring, clock.clone(), Duration::from_micros(50));
        if is_swapped {
            std::mem::swap(&mut first, &mut second);
        }
        Redundant::with_clock(first, second, clock).check(["one", "two"])
    };
    assert_eq!(checked(&|_| (), false).unwrap(), Ring::Closed);
    let pull = |position, port| move |ring: &mut Segment| assert!(ring.disconnect(position, port));
    let error = |change: &dyn Fn(&mut Segment), is_swapped| checked(change, is_swapped).unwrap_err();
    assert!(matches!(error(&|_| (), true), RingError::Reversed { .. }));
    assert_eq!(checked(&pull(2, 1), false).unwrap(), Ring::Open { before: 3 });
    assert!(matches!(error(&pull(2, 1), true), RingError::Reversed { .. }));
    // The cable at an interface is one of the ring.
    assert_eq!(checked(&pull(4, 1), false).unwrap(), Ring::Open { before: 5 });
    assert_eq!(checked(&pull(0, 0), false).unwrap(), Ring::Open { before: 0 });
    let found = error(&pull(4, 1), true);
    assert_eq!(
        found.to_string(),
        "interface one: no frame comes back on it, and SubDevice 0, next to it, has its port 0 towards two, expected towards one: \
         its IN and OUT are swapped, or the ring is named from its end; swap its cables, or the interfaces"
    );
    let found = error(&pull(0, 0), true);
    assert!(matches!(&found, RingError::Swapped { silent, position: 4, .. } if silent == "two"), "{found}");
    let both = |ring: &mut Segment| {
        pull(0, 0)(ring);
        pull(4, 1)(ring);
    };
    assert!(matches!(error(&both, false), RingError::Silent { .. }));
    // Two buses, each with an interface.
    let clock = VirtualClock::default();
    let end = |count| {
        let [end, _] = DirectEnd::ring(segment(count), clock.clone(), Duration::from_micros(50));
        end
    };
    let found = Redundant::with_clock(end(3), end(2), clock.clone()).check(["one", "two"]).unwrap_err();
    assert!(matches!(found, RingError::TwoBuses { before: 3, behind: 2, .. }), "{found}");
    assert_eq!(End::ALL.map(End::other), [End::Second, End::First]);
}
