//! Clocks of threads.

use rustix::time::{ClockId, clock_gettime};

/// Processor time of the calling thread, ns.
pub(crate) fn thread_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
