//! Ctrl-C and SIGTERM ask for an orderly stop; a second one ends the program at once.

use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::failure::Failure;

/// Signals this close together are one wish: `timeout` and process managers send theirs twice.
const ONE_WISH: Duration = Duration::from_millis(300);

/// Set when a signal arrives, read by whoever loops.
static ASKED: AtomicBool = AtomicBool::new(false);

/// From now on SIGINT, SIGTERM and SIGHUP raise the flag that [`asked`] reads.
pub(crate) fn listen() -> Result<(), Failure> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(|error| {
        Failure::new(format!("signals cannot be caught ({error}): run it where they can"))
    })?;
    thread::spawn(move || {
        let mut first = None;
        for signal in signals.forever() {
            ASKED.store(true, Ordering::Relaxed);
            if first.get_or_insert_with(Instant::now).elapsed() > ONE_WISH {
                // What was changed on the machine is put back even so.
                let _ = machine::journal::undo_own();
                // As a shell reports a program that a signal ended.
                exit(128 + signal);
            }
        }
    });
    Ok(())
}

/// Asks for a stop by itself after `duration`.
pub(crate) fn after(duration: Duration) {
    thread::spawn(move || {
        thread::sleep(duration);
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
