//! `SO_PEERGROUPS` (unix(7), Linux 4.13): supplementary groups a peer had when it connected.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Groups of the process that connected this socket.
pub(crate) fn peer_groups(socket: BorrowedFd<'_>) -> io::Result<Vec<u32>> {
    let mut groups = vec![0_u32; 64];
    loop {
        let mut length = (groups.len() * size_of::<u32>()) as libc::socklen_t;
        // SAFETY: `groups` has space for `length` bytes, both live past the call, and the kernel
        // writes whole group numbers, for which any bits are a valid `u32`. No pointer is kept.
        let done = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERGROUPS,
                groups.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        let found = length as usize / size_of::<u32>();
        if done == 0 {
            groups.truncate(found);
            return Ok(groups);
        }
        let error = io::Error::last_os_error();
        // ERANGE: too little space; the length says how much is needed.
        if error.raw_os_error() != Some(libc::ERANGE) || found <= groups.len() {
            return Err(error);
        }
        groups.resize(found, 0);
    }
}
