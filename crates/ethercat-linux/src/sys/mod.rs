//! The operating system: every unsafe block of this crate, each with its argument.
#![allow(unsafe_code)]

pub(crate) mod bpf;
pub(crate) mod packet_ring;
pub(crate) mod packet_socket;
mod xdp_ring;
pub(crate) mod xdp_socket;

use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;
use std::{io, ptr};

use rt::clock::timespec;

/// Waits until one of the entries has a requested event or an error, or `timeout` has passed; a
/// signal ends it early.
pub(crate) fn ppoll(entries: &mut [libc::pollfd], timeout: Duration) -> io::Result<()> {
    let timeout = timespec(timeout);
    let count = entries.len() as libc::nfds_t;
    // SAFETY: `count` valid entries and a timespec, all outliving the call; a null mask changes
    // none.
    let ready = unsafe { libc::ppoll(entries.as_mut_ptr(), count, &timeout, ptr::null()) };
    if ready >= 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    entries.iter_mut().for_each(|entry| entry.revents = 0);
    if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) }
}

/// Process and user at the other end of the socket; no process number if it has none in this
/// process's PID namespace. Not rustix's: there it is never zero.
pub(crate) fn peer(socket: BorrowedFd<'_>) -> io::Result<(Option<u32>, u32)> {
    let mut found = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of_val(&found) as libc::socklen_t;
    // SAFETY: the pointer is to a live ucred, and `length` is its size; the kernel writes integers
    // into it.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut found).cast(),
            &raw mut length,
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((u32::try_from(found.pid).ok().filter(|&process| process != 0), found.uid))
}
