//! Ctrl-C and SIGTERM ask for an orderly stop; a second one ends the program at once.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Set by the signal handler, read by whoever loops.
static ASKED: AtomicBool = AtomicBool::new(false);

/// From now on SIGINT and SIGTERM only raise the flag that [`asked`] reads.
pub(crate) fn listen() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: an all-zero sigaction is valid: integers, an empty signal set and null pointers.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = raise_flag as *const () as libc::sighandler_t;
        // SA_RESETHAND: the second signal finds the default action, which ends the program.
        action.sa_flags = libc::SA_RESTART | libc::SA_RESETHAND;
        // SAFETY: `action` is valid and outlives the call; the handler only stores to an atomic, which is
        // async-signal-safe (POSIX.1-2017, 2.4.3).
        unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) };
    }
}

/// Asks for a stop by itself after `duration`.
pub(crate) fn after(duration: Duration) {
    std::thread::spawn(move || {
        std::thread::sleep(duration);
        ASKED.store(true, Ordering::Relaxed);
    });
}

/// Whether the user has asked for a stop.
pub(crate) fn asked() -> bool {
    // Relaxed: the flag carries nothing but itself.
    ASKED.load(Ordering::Relaxed)
}

/// The flag itself, for code that stops by flag.
pub(crate) fn flag() -> &'static AtomicBool {
    &ASKED
}

extern "C" fn raise_flag(_signal: libc::c_int) {
    ASKED.store(true, Ordering::Relaxed);
}
