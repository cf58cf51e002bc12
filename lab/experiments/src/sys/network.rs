//! Network namespaces (network_namespaces(7)).

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
