//! A counting allocator sees the probe: from its twentieth beat to its last but one it asks for no memory.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use onbeat_runtime::probe::{ProbeConfiguration, wakeup_latencies};
use onbeat_runtime::profile::RealTimeProfile;
use testbed::CountingAllocator;

static ON: AtomicBool = AtomicBool::new(false);
static CALLS: AtomicU64 = AtomicU64::new(0);
thread_local! {
    static EXEMPT: Cell<bool> = const { Cell::new(false) };
}

/// Counts what all threads but the exempt ask for and give back, while it is on.
fn count() {
    if ON.load(Ordering::Relaxed) && !EXEMPT.get() {
        CALLS.fetch_add(1, Ordering::Relaxed);
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator(count);

/// One test, so that nothing else runs beside it.
#[test]
fn the_probe_neither_allocates_nor_frees() {
    EXEMPT.set(true);
    let configuration = ProbeConfiguration {
        period: Duration::from_micros(250),
        beats: u64::MAX,
        profile: RealTimeProfile::ORDINARY,
    };
    let stop = AtomicBool::new(false);
    let mut beats = 0;
    let probed = wakeup_latencies(&configuration, &stop, |_, _| {
        beats += 1;
        if beats == 20 {
            ON.store(true, Ordering::Relaxed);
        }
        if beats == 1_500 {
            ON.store(false, Ordering::Relaxed);
            stop.store(true, Ordering::Relaxed);
        }
    })
    .unwrap();
    assert!(probed.beats >= 1_500, "{probed:?}");
    assert_eq!(CALLS.load(Ordering::Relaxed), 0, "allocator calls");

    // The count counts: the same allocator sees a box that a thread makes and drops.
    thread::spawn(|| {
        ON.store(true, Ordering::Relaxed);
        std::hint::black_box(Box::new(7_u64));
        ON.store(false, Ordering::Relaxed);
    })
    .join()
    .unwrap();
    assert_eq!(CALLS.load(Ordering::Relaxed), 2);
}
