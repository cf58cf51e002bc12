//! Clocks of SubDevices that join late: on a bus without any, and with latch inputs that are read.

use ethercat::main_device::{LatchMode, Latches};

use super::unlike::plain;
use super::*;

/// A coupler without a clock, and two drives that need one for SYNC0; the drives are off.
fn without_clocks() -> Rig {
    let hub = SubDeviceConfiguration { name: "hub".to_owned(), ..SubDeviceConfiguration::default() };
    let described_as = vec![hub, optional("first", 1), optional("second", 2)];
    let attachments = [(0, 3), (0, 1)].map(|(at, port)| Attachment::new(at, port));
    let devices = vec![plain(coupler(identity(9), "hub"), false), device(1, 0), device(2, 0)];
    let segment = Segment::with_topology(devices, &attachments).expect("a star");
    let rig = in_op(described(described_as), segment, &[1, 2]);
    assert_eq!(rig.main_device.clock().reference, None);
    rig
}

// feature(main-device): on a bus that came up without a clock the first one to join becomes the reference clock
#[test]
fn the_first_clock_to_join_becomes_the_reference() {
    for order in [&[1, 2][..], &[2, 1], &[2]] {
        for at_once in [true, false] {
            let mut rig = without_clocks();
            for &position in order {
                assert!(rig.segment.power_on(position));
                for _ in 0..if at_once { 0 } else { SOON } {
                    rig.cycle();
                }
            }
            for _ in 0..SOON {
                rig.cycle();
            }
            assert!(order.iter().all(|&it| rig.main_device.exchanged(it)), "{order:?}: {:?}", rig.events);
            assert_eq!(count(&rig, |it| matches!(it, Event::NotRecovered { .. })), 0, "{:?}", rig.events);
            assert_eq!(rig.main_device.clock().reference, order.iter().min().map(|&it| it as u16));
            let times: Vec<_> =
                order.iter().map(|&it| rig.segment.sub_devices()[it].system_time(rig.now)).collect();
            let apart = times.iter().max().unwrap() - times.iter().min().unwrap();
            assert!(apart < 5_000, "{apart} ns between the clocks, {order:?} at once: {at_once}");
        }
    }
}

#[test]
fn the_clock_of_one_that_is_gone_does_not_count() {
    let configuration = described(vec![required("first", 1), optional("last", 2)]);
    let mut rig = in_op(configuration, Segment::new(vec![device(1, 0), device(2, 0)]), &[]);
    assert!(rig.segment.jump_clock(1, 1_000_000));
    for _ in 0..4 {
        rig.cycle();
    }
    let far = rig.main_device.clock().largest_difference;
    assert!(far > Duration::from_micros(100), "{far:?}");
    assert!(rig.segment.power_off(1));
    for _ in 0..200 {
        rig.cycle();
    }
    let left = rig.main_device.clock().largest_difference;
    assert!(left < Duration::from_micros(5), "{left:?}");
}

/// Edges reported as new, of all that is read while the second of two is brought back to Op.
fn told(bring_down: impl Fn(&mut Rig)) -> usize {
    let latches = Some([LatchMode::SINGLE, LatchMode::default()]);
    let first = required("first", 1);
    let second = SubDeviceConfiguration { latches, ..required("second", 2) };
    let segment = Segment::new(vec![device(1, 0), device(2, 0)]);
    let mut rig = in_op(described(vec![first, second]), segment, &[]);
    assert!(rig.segment.set_latch(1, 0, true));
    rig.cycle();
    let new = |it: Latches| {
        it.inputs.iter().flat_map(|it| [it.rising, it.falling]).filter(|it| it.is_new).count()
    };
    let mut told = 0;
    for cycle in 0..300 {
        if cycle == 20 {
            bring_down(&mut rig);
        }
        if !rig.main_device.reads_latches(1) {
            told += rig.main_device.sub_devices()[1].latches.map_or(0, new);
            rig.main_device.read_latches(1);
        }
        rig.cycle();
    }
    told
}

#[test]
fn edge_is_reported_once_across_a_recovery() {
    assert_eq!(told(|_| ()), 1);
    assert_eq!(told(|rig| rig.segment.sub_device_mut(1).expect("it is there").expire_watchdog()), 1);
    assert_eq!(told(|rig| assert!(rig.segment.power_cycle(1))), 1, "a clock that starts anew has no edge");
}
