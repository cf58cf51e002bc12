//! Operating system interface: every unsafe block of this crate, each with its argument.
#![allow(unsafe_code)]

use std::io;

/// Gives the calling thread `SCHED_FIFO` at `priority` (1 to 99).
///
/// # Errors
/// EPERM without `CAP_SYS_NICE` or a sufficient `RLIMIT_RTPRIO`, and inside a cgroup without real-time run time;
/// EINVAL outside 1 to 99.
pub(crate) fn set_fifo(priority: u8) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: i32::from(priority) };
    // SAFETY: `parameters` is valid and outlives the call; 0 names the calling thread.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
