//! Standard output of a command that must not wait for it: a stop ends the command all the same.

use std::io;
use std::sync::mpsc::{self, SyncSender, TrySendError};
use std::thread;
use std::time::Duration;

use rt::output::{OutputThread, Unfinished};

use crate::failure::Failure;
use crate::output::{LOOK, judged, shown, write};
use crate::stop::Stop;

/// Longest time an output may block after a stop was requested.
const AFTER_STOP: Duration = Duration::from_millis(500);

/// Prints until the user asks for a stop: an output that takes nothing does not keep the program
/// from stopping.
///
/// # Errors
/// As [`crate::output::print()`].
pub(crate) fn print_until_stop(text: String, stop: &Stop) -> Result<(), Failure> {
    let printer = Printer::start()?;
    printer.print(text, || false);
    printer.finish(stop)
}

/// Standard output of a program that has other work: a separate thread writes to it.
pub(crate) struct Printer {
    texts: SyncSender<String>,
    thread: OutputThread<io::Result<()>>,
}

impl Printer {
    pub(crate) fn start() -> Result<Self, Failure> {
        let (texts, given) = mpsc::sync_channel::<String>(1);
        let thread = OutputThread::start("print", move |_| {
            given.into_iter().try_for_each(|text| write(&shown(&text)))
        })?;
        Ok(Self { texts, thread })
    }

    /// Hands `text` over, and waits for room as long as `goes_on`; false if it was not taken.
    pub(crate) fn print(&self, mut text: String, goes_on: impl Fn() -> bool) -> bool {
        loop {
            match self.texts.try_send(text) {
                Ok(()) => return true,
                Err(TrySendError::Full(back)) if goes_on() => text = back,
                Err(_) => return false,
            }
            thread::sleep(LOOK);
        }
    }

    /// Waits until all is printed, or until a stop was requested and the output blocks.
    ///
    /// # Errors
    /// As [`crate::output::print()`].
    pub(crate) fn finish(self, stop: &Stop) -> Result<(), Failure> {
        drop(self.texts);
        loop {
            match self.thread.finish(AFTER_STOP) {
                Ok(outcome) => return judged(outcome),
                Err(Unfinished::Hangs) if stop.is_requested() => return Ok(()),
                Err(Unfinished::Hangs) => {}
                Err(Unfinished::Panicked) => return Err(Failure::new("standard output's thread panicked")),
            }
        }
    }
}
