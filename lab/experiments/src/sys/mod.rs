//! Operating system interface: every unsafe block of this crate, each with its argument. Safe
//! wrappers of libraries (pipes, futexes, timers) are used from there.
//!
//! | module | system calls for |
//! |---|---|
//! | [`cuda`] | graphics driver, loaded at run time |
//! | [`mutex`] | mutexes, plain and with priority inheritance |
//! | [`message_queue`] | POSIX message queues |
//! | [`posix_timer`] | timer that sends a signal to one thread |
//! | [`stamped`] | Ethernet frames with the kernel's receive time stamps |
#![allow(unsafe_code)]

pub(crate) mod cuda;
pub(crate) mod message_queue;
pub(crate) mod mutex;
pub(crate) mod posix_timer;
pub(crate) mod stamped;

use std::io;

/// Moves the calling thread into a new network namespace, which is removed with its last thread and
/// socket.
///
/// # Errors
/// EPERM without `CAP_SYS_ADMIN`; ENOSYS or EINVAL on a kernel without network namespaces.
pub(crate) fn own_network() -> io::Result<()> {
    // SAFETY: takes flags only; CLONE_NEWNET concerns the calling thread alone, which shares
    // nothing of it by then.
    let result = unsafe { libc::unshare(libc::CLONE_NEWNET) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Voluntary and involuntary context switches of the calling thread so far.
pub(crate) fn switches() -> [u64; 2] {
    // SAFETY: an all-zero rusage is valid: it holds integers only.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is valid to write to; with a known first argument the call cannot fail.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) };
    [usage.ru_nvcsw, usage.ru_nivcsw].map(|count| u64::try_from(count).unwrap_or(0))
}

#[cfg(test)]
mod tests {

    #[test]
    fn a_sleep_is_a_voluntary_switch() {
        let [before, _] = super::switches();
        std::thread::sleep(std::time::Duration::from_millis(1));
        let [after, _] = super::switches();
        assert!(after > before, "{before} {after}");
    }
}
