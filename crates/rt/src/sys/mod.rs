//! The operating system: every unsafe block of this crate, each with its argument.
#![allow(unsafe_code)]

pub(crate) mod clock;
pub mod doorbell;
#[cfg(feature = "threads")]
pub(crate) mod memory;
pub mod scheduling;

use std::mem;
use std::time::Duration;

/// `duration` as the kernel takes it; saturates far beyond any machine's life.
pub fn timespec(duration: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: duration.as_secs().try_into().unwrap_or(i32::MAX.into()),
        tv_nsec: libc::c_long::from(duration.subsec_nanos() as i32),
    }
}

/// Voluntary and involuntary context switches, minor and major page faults so far.
pub(crate) fn of_thread() -> [u64; 4] {
    // SAFETY: an all-zero rusage is valid: it holds integers only.
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    // SAFETY: `usage` is valid to write to; with a known first argument the call cannot fail.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) };
    [usage.ru_nvcsw, usage.ru_nivcsw, usage.ru_minflt, usage.ru_majflt].map(|count| count.max(0) as u64)
}
