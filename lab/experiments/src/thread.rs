//! Real-time settings and processor time of an experiment's threads.

use std::time::Duration;

use rt::profile::{RealTimeProfile, Residency, Scheduling};
use rustix::thread::{CpuSet, sched_getaffinity};
use rustix::time::{ClockId, clock_gettime};

/// Profile of a `SCHED_FIFO` thread on one CPU with its memory locked.
pub(crate) fn real_time(priority: Option<u8>, cpu: usize) -> RealTimeProfile {
    RealTimeProfile {
        scheduling: priority.map(|priority| Scheduling::Fifo { priority }),
        memory: Some(Residency { heap: 1 << 20, stack: 64 << 10 }),
        cpu: Some(cpu),
        ..RealTimeProfile::ORDINARY
    }
}

/// The same profile, waking up `margin` before each release and spinning until then.
pub(crate) fn spinning(profile: RealTimeProfile, margin: Duration) -> RealTimeProfile {
    RealTimeProfile { spin: Some(margin), ..profile }
}

/// Default CPU of measurements: the last one this process may use, since the first serves most
/// interrupts.
#[must_use]
pub fn default_cpu() -> usize {
    let Ok(allowed) = sched_getaffinity(None) else { return 0 };
    (0..CpuSet::MAX_CPU).rev().find(|&cpu| allowed.is_set(cpu)).unwrap_or(0)
}

/// Processor time of the calling thread, ns.
pub(crate) fn thread_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
