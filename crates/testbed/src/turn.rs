//! One at a time: tests that change the whole machine.

use std::fs::{File, OpenOptions};
use std::io;

use rustix::fs::{FlockOperation, flock};

/// The turn of a test that changes the whole machine: interrupts, control groups. Others wait until it is dropped.
#[derive(Debug)]
pub struct Turn {
    _lock: File,
}

impl Turn {
    /// Waits for its turn, among the tests of all crates and processes.
    ///
    /// # Errors
    /// The lock file in the folder of temporary files cannot be opened.
    pub fn take() -> io::Result<Self> {
        let path = std::env::temp_dir().join("onbeat-test-turn");
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(Self { _lock: file })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn nobody_is_in_between() {
        let inside = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        let _turn = Turn::take().unwrap();
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        std::thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
    }
}
