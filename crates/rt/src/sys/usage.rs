//! Counters of the kernel for the calling thread (getrusage(2)).

use std::mem;

/// Voluntary and involuntary context switches, minor and major page faults so far.
pub(crate) fn of_thread() -> [u64; 4] {
    // SAFETY: an all-zero rusage is valid: it holds integers only.
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    // SAFETY: `usage` is valid to write to; with a known first argument the call cannot fail.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) };
    [usage.ru_nvcsw, usage.ru_nivcsw, usage.ru_minflt, usage.ru_majflt].map(|count| count.max(0) as u64)
}
