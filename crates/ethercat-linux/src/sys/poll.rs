//! Waiting for descriptors (ppoll(2)).

use std::io;
use std::ptr;
use std::time::Duration;

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
