//! Outputs that may hang: each has its own thread. Waiting for it ends when it makes no progress.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::scheduling;

/// A thread that writes to a terminal, a file or a pipe, and returns `R`.
///
/// A terminal that is stopped, a FIFO without a reader or a file server that is gone hold up this
/// thread alone: [`OutputThread::finish`] gives it up, and it ends with the process.
#[derive(Debug)]
pub struct OutputThread<R> {
    result: Receiver<R>,
    taken: Taken,
}

/// Things that an output has taken so far.
#[derive(Clone, Debug, Default)]
pub struct Taken(Arc<AtomicU64>);

impl Taken {
    /// Adds `more`.
    pub fn add(&self, more: u64) {
        // Relaxed: a count, which orders nothing.
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// All of them.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Reason that there is no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfinished {
    /// It took nothing for as long as it was waited for.
    Hangs,
    /// Its thread panicked.
    Panicked,
}

impl<R: Send + 'static> OutputThread<R> {
    /// Starts a thread of this name, of ordinary priority, also if a real-time thread starts it;
    /// `work` counts what its output took.
    ///
    /// # Errors
    /// The system cannot start another thread.
    pub fn start(name: &str, work: impl FnOnce(&Taken) -> R + Send + 'static) -> io::Result<Self> {
        let (tell, result) = mpsc::sync_channel(1);
        let taken = Taken::default();
        let counted = taken.clone();
        thread::Builder::new().name(name.to_owned()).spawn(move || {
            let _ = scheduling::set_ordinary();
            // After a time-out the receiver is gone.
            let _ = tell.send(work(&counted));
        })?;
        Ok(Self { result, taken })
    }

    /// Count its output has taken.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.taken.count()
    }

    /// Waits for the result as long as something is taken within each `limit`. Not for the
    /// real-time path.
    ///
    /// # Errors
    /// No result: the thread continues alone, or has panicked.
    pub fn finish(&self, limit: Duration) -> Result<R, Unfinished> {
        loop {
            let before = self.taken();
            match self.result.recv_timeout(limit) {
                Ok(result) => return Ok(result),
                Err(RecvTimeoutError::Disconnected) => return Err(Unfinished::Panicked),
                Err(RecvTimeoutError::Timeout) if self.taken() == before => return Err(Unfinished::Hangs),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_millis(20);

    #[test]
    fn blocked_output_is_abandoned_and_slow_output_is_awaited() {
        let (hold, held) = mpsc::channel::<()>();
        let hangs = OutputThread::start("hangs", move |taken| {
            taken.add(1);
            held.recv().is_err()
        });
        let hangs = hangs.unwrap();
        assert_eq!(hangs.finish(LIMIT), Err(Unfinished::Hangs));
        assert_eq!(hangs.taken(), 1);
        drop(hold);
        assert_eq!(hangs.finish(Duration::from_secs(60)), Ok(true));

        let slow = OutputThread::start("slow", |taken| {
            for _ in 0..50 {
                thread::sleep(LIMIT / 5);
                taken.add(1);
            }
            taken.count()
        });
        assert_eq!(slow.unwrap().finish(LIMIT * 10), Ok(50));
    }

    #[test]
    fn an_output_that_panics_has_no_result() {
        let panics = OutputThread::<()>::start("panics", |_| panic!("as the test wants it"));
        assert_eq!(panics.unwrap().finish(Duration::from_secs(60)), Err(Unfinished::Panicked));
    }
}
