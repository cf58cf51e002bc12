//! Scheduling policy and priority of any thread: sched_setscheduler(2), by number, because musl's
//! functions refuse all.

use std::io;

/// Policy and real-time priority of a thread.
pub(crate) fn scheduler(tid: i32) -> io::Result<(i32, i32)> {
    // SAFETY: takes no pointer; the result is checked.
    let policy = check(unsafe { libc::syscall(libc::SYS_sched_getscheduler, tid) })?;
    // SAFETY: all-zero bytes are a valid `sched_param`: it holds integers only.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    // SAFETY: `parameters` is valid to write to and outlives the call; the kernel writes its one
    // integer.
    check(unsafe { libc::syscall(libc::SYS_sched_getparam, tid, &raw mut parameters) })?;
    Ok((policy as i32, parameters.sched_priority))
}

/// Schedules a thread by `policy`, at this real-time priority, 0 for the ordinary policies. The
/// nice value stays.
pub(crate) fn set_scheduler(tid: i32, policy: i32, priority: i32) -> io::Result<()> {
    // SAFETY: all-zero bytes are a valid `sched_param`: it holds integers only.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority;
    // SAFETY: `parameters` is valid and outlives the call, which only reads it.
    check(unsafe { libc::syscall(libc::SYS_sched_setscheduler, tid, policy, &raw const parameters) })
        .map(drop)
}

fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
