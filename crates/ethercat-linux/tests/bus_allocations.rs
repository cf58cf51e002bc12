//! A counting allocator sees the cycle of a bus: from Op on it asks for nothing.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod support;

use std::time::Duration;

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
        // The first is on the way up still.
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
