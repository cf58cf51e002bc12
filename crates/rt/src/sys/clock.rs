//! The monotonic clock and absolute sleep.

use std::ptr;
use std::time::Duration;

use types::Instant;

use super::timespec;

/// `CLOCK_MONOTONIC`: nanoseconds since an arbitrary start, slewed but never stepped. No system
/// call where the kernel's clock source is readable from user space (tsc on x86-64).
pub(crate) fn monotonic() -> Instant {
    Instant::from_nanos(read(libc::CLOCK_MONOTONIC))
}

/// `CLOCK_REALTIME`: nanoseconds since 1970-01-01 00:00 UTC.
pub fn realtime_nanos() -> u64 {
    read(libc::CLOCK_REALTIME)
}

/// Sleeps until `instant` of the monotonic clock; returns at once if that has passed. A signal does
/// not shorten the sleep: the end is absolute, so sleeping again loses nothing.
pub(crate) fn sleep_until(instant: Instant) {
    sleep(instant, ptr::null_mut());
}

/// The same, distinguished by [`RELEASE_MARK`] from every other sleep: the wait of a pacer.
pub(crate) fn sleep_until_release(instant: Instant) {
    sleep(instant, ptr::without_provenance_mut(RELEASE_MARK));
}

/// The fourth argument of the system call that is the wait of a pacer. Linux makes nothing of it
/// where the time is absolute (clock_nanosleep(2)), and a trace of the call shows it; no other code
/// has reason to pass it. It is the middle of the first page, which no process maps.
pub const RELEASE_MARK: usize = 0xB47;

fn sleep(instant: Instant, remaining: *mut libc::timespec) {
    let end = timespec(Duration::from_nanos(instant.as_nanos()));
    loop {
        // SAFETY: `end` is a valid timespec that outlives the call; with an absolute time the
        // kernel ignores `remaining`.
        let error = unsafe { clock_nanosleep(&end, remaining) };
        if error != libc::EINTR {
            return;
        }
    }
}

#[cfg(target_pointer_width = "64")]
unsafe fn clock_nanosleep(end: &libc::timespec, remaining: *mut libc::timespec) -> libc::c_int {
    // SAFETY: as the caller's.
    unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, end, remaining) }
}

/// Without the C library, because its conversion to 64-bit times would miss the mark. 32 bits last
/// for 68 years after the start of the machine.
#[cfg(target_pointer_width = "32")]
unsafe fn clock_nanosleep(end: &libc::timespec, remaining: *mut libc::timespec) -> libc::c_int {
    let (clock, flags) = (libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME);
    let end = [end.tv_sec as i32, end.tv_nsec as i32];
    // SAFETY: as the caller's; `end` is the kernel's `old_timespec32`.
    if unsafe { libc::syscall(libc::SYS_clock_nanosleep, clock, flags, &end, remaining) } == 0 {
        return 0;
    }
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid timespec to write to; both clocks exist on every Linux, so the call
    // cannot fail.
    unsafe { libc::clock_gettime(clock, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeping_until_an_instant_never_ends_before_it() {
        let end = monotonic() + Duration::from_millis(2);
        sleep_until(end);
        assert!(monotonic() >= end);
        sleep_until(Instant::EPOCH);
        let end = monotonic() + Duration::from_millis(2);
        sleep_until_release(end);
        assert!(monotonic() >= end);
        assert!(realtime_nanos() > 1_700_000_000_000_000_000);
    }
}
