//! What the threads of an experiment ask of the system.

use std::time::Duration;

use runtime::profile::{RealTimeProfile, Residency, Scheduling};
use rustix::thread::{CpuSet, sched_getaffinity};

/// A `SCHED_FIFO` thread on one CPU with its memory locked.
pub(crate) fn real_time(priority: Option<u8>, cpu: usize) -> RealTimeProfile {
    RealTimeProfile {
        scheduling: priority.map(|priority| Scheduling::Fifo { priority }),
        memory: Some(Residency { heap: 1 << 20, stack: 64 << 10 }),
        cpu: Some(cpu),
        ..RealTimeProfile::ORDINARY
    }
}

/// The same, waking up `margin` before each release and spinning until it has come.
pub(crate) fn spinning(profile: RealTimeProfile, margin: Duration) -> RealTimeProfile {
    RealTimeProfile { spin: Some(margin), ..profile }
}

/// The CPU measured on where none is named: the last this process may use, for the first serves most interrupts.
#[must_use]
pub fn default_cpu() -> usize {
    let Ok(allowed) = sched_getaffinity(None) else { return 0 };
    (0..CpuSet::MAX_CPU).rev().find(|&cpu| allowed.is_set(cpu)).unwrap_or(0)
}
