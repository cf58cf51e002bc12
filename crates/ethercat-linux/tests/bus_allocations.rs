//! A counting allocator watches the cycle of a bus: from Op on it allocates nothing.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod support;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use onbeat_ethercat_linux::link::{Redundant, SimulatedLink};
use onbeat_ethercat_linux::{Bus, Configuration};
use simulator::application::Wires;
use support::{segment, servo, station};
use testkit::{CountingAllocator, allocations};

#[global_allocator]
static ALLOCATOR: CountingAllocator = allocations::COUNTED;

/// Allocator calls in the cycles of a run in Op, of which one leaks if it shall.
fn calls(leaks: bool) -> u64 {
    let (buttons, lamps) = (Wires::new(), Wires::new());
    let mut devices = station(&buttons, &lamps);
    devices.push(servo().0);
    let mut bus = Bus::simulated(segment(devices));
    bus.bring_up(&Configuration::scan()).unwrap();
    let button = bus.subdevice(1).input::<[bool; 4]>(0x6000, 1).unwrap();
    let lamp = bus.subdevice(2).output::<[bool; 4]>(0x7000, 1).unwrap();
    let (mut cycles, before) = (0, allocations::own_calls());
    let run = bus.run(Duration::from_millis(1), |io| {
        cycles += 1;
        // The first is still part of the bring-up.
        allocations::watch((2..500).contains(&cycles));
        io.set(lamp, io.get(button));
        if cycles == 100 && leaks {
            drop(std::hint::black_box(Box::new(cycles)));
        }
        if cycles == 500 {
            io.stop();
        }
    });
    allocations::watch(false);
    assert_eq!(run.unwrap().cycles, 500);
    allocations::own_calls() - before
}

// feature(bus): no allocation in Op
#[test]
fn a_bus_in_op_allocates_nothing() {
    assert_eq!(calls(false), 0);
    assert_eq!(calls(true), 2, "the counter counts");
}

/// Allocator calls in the cycles of a run in Op of a ring that breaks and heals; number of
/// incomplete datagrams.
fn calls_on_a_ring() -> (u64, u64) {
    let (buttons, lamps) = (Wires::new(), Wires::new());
    let mut devices = station(&buttons, &lamps);
    devices.push(servo().0);
    let last = devices.len() - 1;
    let mut ring = segment(devices);
    ring.close_ring(last, 1).unwrap();
    let (first, second) = SimulatedLink::ring(ring, None);
    let control = first.control();
    let mut bus = Bus::on(Redundant::new(first, second));
    bus.bring_up(&Configuration::scan()).unwrap();
    let button = bus.subdevice(1).input::<[bool; 4]>(0x6000, 1).unwrap();
    let lamp = bus.subdevice(2).output::<[bool; 4]>(0x7000, 1).unwrap();
    let cycles = AtomicU64::new(0);
    let before = allocations::own_calls();
    let run = std::thread::scope(|scope| {
        scope.spawn(|| {
            for (cycle, plugs) in [(100, false), (200, true), (300, false), (400, true)] {
                while cycles.load(Ordering::Relaxed) < cycle {
                    std::thread::sleep(Duration::from_millis(1));
                }
                assert_eq!(
                    control.run(move |ring| if plugs { ring.connect(1, 1) } else { ring.disconnect(1, 1) }),
                    Some(true)
                );
            }
        });
        let run = bus.run(Duration::from_millis(1), |io| {
            let cycle = cycles.fetch_add(1, Ordering::Relaxed) + 1;
            allocations::watch((2..500).contains(&cycle));
            io.set(lamp, io.get(button));
            if cycle == 500 {
                io.stop();
            }
        });
        allocations::watch(false);
        run.unwrap()
    });
    (allocations::own_calls() - before, run.working_counter_errors)
}

// feature(redundancy): no allocation in Op, while a ring breaks and heals
#[test]
fn a_ring_that_breaks_in_op_allocates_nothing() {
    let (calls, short) = calls_on_a_ring();
    assert_eq!(calls, 0);
    // Of each change the datagrams under way, out of 200 cycles with a break.
    assert!(short <= 16, "{short} datagrams");
}
