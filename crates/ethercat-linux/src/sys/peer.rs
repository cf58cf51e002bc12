//! The process at the other end of a Unix socket (SO_PEERCRED, unix(7)).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

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
