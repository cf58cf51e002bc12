//! Panics of real-time threads, reported by a separate thread.
//!
//! The usual panic hook writes to standard error, which may hang, and with `RUST_BACKTRACE` it
//! looks up names in the program's debugging information, which takes longer than drives wait for
//! set-points. A cycle has axes to brake meanwhile.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::Cell;
use std::io::{self, Write};
use std::marker::PhantomData;
use std::panic::{self, PanicHookInfo};
use std::sync::Once;
use std::thread;

use crate::output::OutputThread;

thread_local! {
    static TOLD_ELSEWHERE: Cell<bool> = const { Cell::new(false) };
}

/// Puts a hook before the one of this process, for threads that are [marked](mark). Panics of all
/// others are reported as before. A hook that is set later replaces it. Not for the real-time path.
pub fn prepare() {
    static PREPARED: Once = Once::new();
    PREPARED.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if TOLD_ELSEWHERE.get() {
                tell(info);
            } else {
                before(info);
            }
        }));
    });
}

/// Marks the calling thread, after [`prepare`], as long as the mark lives: another thread reports
/// its panics.
#[must_use]
pub fn mark() -> Mark {
    Mark { before: TOLD_ELSEWHERE.replace(true), of_this_thread: PhantomData }
}

/// Mark of a thread.
#[derive(Debug)]
pub struct Mark {
    before: bool,
    of_this_thread: PhantomData<*const ()>,
}

impl Drop for Mark {
    fn drop(&mut self) {
        TOLD_ELSEWHERE.set(self.before);
    }
}

fn tell(info: &PanicHookInfo<'_>) {
    let thread = thread::current();
    let words = format!("thread '{}' {info}", thread.name().unwrap_or("without a name"));
    // Addresses alone: their names are looked up when it is written.
    let backtrace = Backtrace::capture();
    // If no thread can be started it is not reported.
    let _ = OutputThread::start("panic", move |_| {
        let mut error = io::stderr().lock();
        match backtrace.status() {
            BacktraceStatus::Captured => writeln!(error, "{words}\nstack backtrace:\n{backtrace}"),
            _ => writeln!(error, "{words}"),
        }
    });
}
