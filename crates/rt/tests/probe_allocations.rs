//! A counting allocator sees the probe: from its twentieth cycle to its last but one it does not
//! allocate.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use onbeat_rt::probe::{ProbeConfiguration, wakeup_latencies};
use onbeat_rt::profile::RealTimeProfile;
use testkit::{CountingAllocator, allocations};

#[global_allocator]
static ALLOCATOR: CountingAllocator = allocations::COUNTED;

/// One test, so that no other test runs in parallel.
// feature(measure): the probe allocates nothing
#[test]
fn the_probe_neither_allocates_nor_frees() {
    allocations::exempt();
    let configuration = ProbeConfiguration {
        period: Duration::from_micros(250),
        cycles: u64::MAX,
        profile: RealTimeProfile::ORDINARY,
    };
    let stop = AtomicBool::new(false);
    let mut cycles = 0;
    let probed = wakeup_latencies(&configuration, &stop, |_, _| {
        cycles += 1;
        if cycles == 20 {
            allocations::watch_everybody(true);
        }
        if cycles == 1_500 {
            allocations::watch_everybody(false);
            stop.store(true, Ordering::Relaxed);
        }
    })
    .unwrap();
    assert!(probed.cycles >= 1_500, "{probed:?}");
    assert_eq!(allocations::calls(), 0, "allocator calls");

    // The count counts: the same allocator sees a box that a thread makes and drops.
    thread::spawn(|| {
        allocations::watch_everybody(true);
        std::hint::black_box(Box::new(7_u64));
        allocations::watch_everybody(false);
    })
    .join()
    .unwrap();
    assert_eq!(allocations::calls(), 2);
}
