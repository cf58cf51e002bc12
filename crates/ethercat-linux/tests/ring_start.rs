//! The start of a ring: open anywhere, without an interface, and with SubDevices with swapped
//! ports.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::io;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ethercat::link::{End, Segment as _};
use ethercat::main_device::{BusError, Configuration, MainDevice};
use ethercat::redundancy::Ring;
use ethercat::sii::Identity;
use onbeat_ethercat_linux::bring_up::{BringUpError, Pump};
use onbeat_ethercat_linux::link::{DirectEnd, Link, Redundant, RingError};
use onbeat_ethercat_linux::rt::clock::VirtualClock;
use simulator::application::NoApplication;
use simulator::application::sii::coupler;
use simulator::segment::Attachment;
use simulator::{EscDescription, Oscillator, Segment, SubDevice};

const COUNT: usize = 5;

/// Couplers that differ by their serial numbers.
fn devices() -> Vec<SubDevice> {
    let device = |serial| {
        let identity = Identity { vendor_id: 2, product_code: 3, revision: 1, serial };
        let sii = coupler(identity, &format!("coupler-{serial}")).image().emit();
        SubDevice::new(EscDescription::default(), sii, Box::new(NoApplication))
    };
    (0..COUNT as u32).map(device).collect()
}

/// A ring in which these SubDevices are entered at port 1 and left at port 0; `pulled`: number of
/// an unplugged cable, counted from the first interface.
fn ring(swapped: &[usize], pulled: Option<usize>) -> Segment {
    let way_in = |place: usize| usize::from(swapped.contains(&place));
    let attach = |child: usize| Attachment::new(child - 1, 1 - way_in(child - 1)).entered_at(way_in(child));
    let attachments: Vec<_> = (1..COUNT).map(attach).collect();
    let mut ring = Segment::entered_at(way_in(0), devices(), &attachments).unwrap();
    ring.close_ring(COUNT - 1, 1 - way_in(COUNT - 1)).unwrap();
    match pulled {
        None => {}
        Some(0) => assert!(ring.disconnect(0, way_in(0))),
        Some(cable) => assert!(ring.disconnect(cable - 1, 1 - way_in(cable - 1))),
    }
    ring
}

/// A ring that does not come up, and why.
#[derive(Debug)]
enum Refusal {
    Ring(RingError),
    Bus(BusError),
}

/// Serial numbers in the order found, and the state of the ring.
fn start<A: Link, B: Link>(first: A, second: B, clock: VirtualClock) -> Result<(Vec<u32>, Ring), Refusal> {
    let (main_device, ring) = brought_up(first, second, clock)?;
    Ok((main_device.sub_devices().iter().map(|it| it.identity.serial).collect(), ring))
}

fn brought_up<A: Link, B: Link>(
    first: A,
    second: B,
    clock: VirtualClock,
) -> Result<(MainDevice, Ring), Refusal> {
    let mut link = Redundant::with_clock(first, second, clock.clone());
    let ring = link.check(["one", "two"]).map_err(Refusal::Ring)?;
    let mut main_device = MainDevice::new(Configuration::scan()).unwrap();
    let stop = AtomicBool::new(false);
    let mut pump = Pump { main_device: &mut main_device, link: &mut link, clock: &clock, stop: &stop };
    match pump.bring_up(Duration::from_secs(20), |_| ()) {
        Ok(()) => {}
        Err(BringUpError::Bus(error)) => return Err(Refusal::Bus(error)),
        Err(error) => panic!("{error}"),
    }
    assert_eq!(link.ring(), Some(ring));
    Ok((main_device, ring))
}

fn started(segment: Segment) -> Result<(Vec<u32>, Ring), Refusal> {
    let clock = VirtualClock::default();
    let [first, second] = DirectEnd::ring(segment, clock.clone(), Duration::from_micros(50));
    start(first, second, clock)
}

// feature(redundancy): a start with the ring open at any cable, also at the interfaces
#[test]
fn ring_comes_up_with_any_cable_unplugged_and_reports_it() {
    let all: Vec<u32> = (0..COUNT as u32).collect();
    assert_eq!(started(ring(&[], None)).unwrap(), (all.clone(), Ring::Closed));
    for cable in 0..=COUNT {
        let found = started(ring(&[], Some(cable))).unwrap();
        assert_eq!(found, (all.clone(), Ring::Open { before: cable as u16 }));
    }
}

/// An interface that is down, or has no carrier: it takes no frame, and a receive fails.
struct Dead<L> {
    _end: L,
    error: i32,
}

impl<L> Link for Dead<L> {
    fn transmit(&mut self, _: &[u8]) -> io::Result<()> {
        Err(io::Error::from_raw_os_error(self.error))
    }

    fn receive(&mut self, _: &mut [u8], _: Duration) -> io::Result<Option<usize>> {
        Err(io::Error::from_raw_os_error(self.error))
    }
}

// feature(redundancy): a start without a carrier at one of both interfaces
#[test]
fn a_ring_comes_up_without_one_of_its_interfaces() {
    let all: Vec<u32> = (0..COUNT as u32).collect();
    for error in [libc::ENETDOWN, libc::ENOBUFS] {
        for dead in End::ALL {
            let clock = VirtualClock::default();
            let mut segment = ring(&[], None);
            segment.set_link(dead, false);
            let [first, second] = DirectEnd::ring(segment, clock.clone(), Duration::from_micros(50));
            let (found, before) = match dead {
                End::First => (start(Dead { _end: first, error }, second, clock), 0),
                End::Second => (start(first, Dead { _end: second, error }, clock), COUNT as u16),
            };
            assert_eq!(found.unwrap(), (all.clone(), Ring::Open { before }), "{dead:?}");
        }
    }
    let clock = VirtualClock::default();
    let [first, second] = DirectEnd::ring(ring(&[], None), clock.clone(), Duration::from_micros(50));
    let error = libc::ENETDOWN;
    let found = start(Dead { _end: first, error }, Dead { _end: second, error }, clock);
    assert!(matches!(found, Err(Refusal::Ring(RingError::System { .. }))), "{found:?}");
}

/// Position of the reported SubDevice, and the whole sentence.
fn told(refusal: &Refusal) -> (Option<usize>, String) {
    match refusal {
        Refusal::Ring(error) => match error {
            RingError::Swapped { position, .. } => (Some(usize::from(*position)), error.to_string()),
            _ => (None, error.to_string()),
        },
        Refusal::Bus(error @ BusError::SwappedInRing { position, name }) => {
            assert_eq!(name, &format!("coupler-{position}"));
            (Some(usize::from(*position)), error.to_string())
        }
        Refusal::Bus(error) => panic!("{error}"),
    }
}

/// A closed ring passes a SubDevice with swapped ports unprocessed, and places change with a break:
/// the bus does not come up, so that no axes are exchanged by mistake.
// feature(redundancy): IN and OUT swapped in a ring, open or closed: reported with the SubDevice and its port
#[test]
fn swapped_ports_are_reported_for_every_break() {
    for swapped in 0..COUNT {
        for cable in std::iter::once(None).chain((0..=COUNT).map(Some)) {
            let refusal = started(ring(&[swapped], cable)).unwrap_err();
            let (position, sentence) = told(&refusal);
            assert!(sentence.contains("swapped"), "{swapped}, cable {cable:?}: {sentence}");
            if let Some(position) = position {
                assert_eq!(position, swapped, "cable {cable:?}: {sentence}");
                assert!(
                    sentence.contains(&format!("SubDevice {swapped}")) && sentence.contains("its port 0")
                );
            } else {
                // Next to the break: the ring looks like two buses.
                let beside = cable == Some(swapped) || cable == Some(swapped + 1);
                assert!(beside, "{swapped}, cable {cable:?}: {sentence}");
            }
        }
    }
}

#[test]
fn one_of_several_swapped_sub_devices_is_reported() {
    for (swapped, cable) in
        [(&[1, 3][..], None), (&[1, 3], Some(2)), (&[0, 4], Some(2)), (&[3, 4], Some(1))]
    {
        let refusal = started(ring(swapped, cable)).unwrap_err();
        let (position, sentence) = told(&refusal);
        assert!(position.is_none_or(|it| swapped.contains(&it)), "{sentence}");
    }
    let all: Vec<_> = (0..COUNT).collect();
    let refusal = started(ring(&all, None)).unwrap_err();
    assert!(matches!(refusal, Refusal::Ring(RingError::Reversed { .. })), "{refusal:?}");
}

/// SubDevices of a closed ring in which port 1 of one latches no receive time; their clocks show
/// `local` at power-on.
fn with_stale_time(stale: Option<usize>, local: u64) -> MainDevice {
    let device = |serial| {
        let identity = Identity { vendor_id: 2, product_code: 3, revision: 1, serial };
        let sii = coupler(identity, &format!("coupler-{serial}")).image().emit();
        let oscillator = Oscillator { initial_time: local, ..Oscillator::default() };
        let esc = EscDescription { oscillator, ..EscDescription::default() };
        SubDevice::new(esc, sii, Box::new(NoApplication))
    };
    let mut ring = Segment::new((0..COUNT as u32).map(device).collect());
    ring.close_ring(COUNT - 1, 1).unwrap();
    if let Some(stale) = stale {
        ring.sub_device_mut(stale).unwrap().set_receive_time_latches(1, false);
    }
    let clock = VirtualClock::default();
    let [first, second] = DirectEnd::ring(ring, clock.clone(), Duration::from_micros(50));
    let (main_device, ring) = brought_up(first, second, clock).unwrap();
    assert_eq!(ring, Ring::Closed);
    main_device
}

// feature(redundancy): a closed ring is refused where working counters show a swapped SubDevice; implausible receive times are a remark
#[test]
fn a_closed_ring_starts_with_a_stale_receive_time() {
    let delays = |it: &MainDevice| -> Vec<i64> {
        it.sub_devices().iter().map(|it| i64::from(it.clock.unwrap().delay)).collect()
    };
    let expected = delays(&with_stale_time(None, 0));
    let cable = expected[1];
    assert!(cable > 0);
    // A stale time is earlier than the time of port 0, or, across the wrap of 32 bits, later.
    for (stale, local) in (0..COUNT).flat_map(|it| [(it, 1_000_000), (it, 3_000_000_000)]) {
        let main_device = with_stale_time(Some(stale), local);
        let remarks: Vec<_> = main_device.sub_devices().iter().flat_map(|it| it.remarks()).collect();
        let expected_remark = format!(
            "SubDevice {stale} \"coupler-{stale}\": the receive time of its port 1 does not follow port 0, \
             where frames enter, as the working counters show: its receive times are implausible, and its \
             delay is estimated from its neighbours"
        );
        assert_eq!(remarks, [expected_remark]);
        for (place, (found, expected)) in delays(&main_device).into_iter().zip(&expected).enumerate() {
            assert!((found - expected).abs() <= cable, "{place}, {stale} stale: {found}, {expected}");
        }
        assert_eq!(main_device.clock().reference, Some(0));
    }
}
