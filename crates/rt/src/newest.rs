//! Newest value of a thread of this process, for any number of readers.
//!
//! Each read is consistent, and the writer never waits. Of three slots the readers, one at a time,
//! hold at most one, and the newest value is in another. So one slot is free.

use std::array;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;

/// A writer and a reader, which begin with `initial`.
pub fn newest<T: Clone + Send>(initial: &T) -> (Writer<T>, Reader<T>) {
    let slots = array::from_fn(|_| Mutex::new(initial.clone()));
    let shared = Arc::new(NewestCells { slots, newest: AtomicUsize::new(0), reading: Mutex::new(()) });
    (Writer(Arc::clone(&shared)), Reader(shared))
}

#[derive(Debug)]
struct NewestCells<T> {
    /// Locked by attempts only, so that no thread waits for a lock and none has to be woken.
    slots: [Mutex<T>; 3],
    /// Slot of the newest value.
    newest: AtomicUsize,
    /// Held by the current reader.
    reading: Mutex<()>,
}

impl<T> NewestCells<T> {
    fn attempt(&self, slot: usize) -> Option<MutexGuard<'_, T>> {
        match self.slots[slot].try_lock() {
            Ok(value) => Some(value),
            Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// The only writer.
#[derive(Debug)]
pub struct Writer<T>(Arc<NewestCells<T>>);

impl<T: Send> Writer<T> {
    /// Replaces the value: `put` gets an older one, and overwrites it completely.
    pub fn write(&mut self, put: impl FnOnce(&mut T)) {
        let newest = self.0.newest.load(Ordering::Relaxed);
        let free =
            (1..3).map(|step| (newest + step) % 3).find_map(|slot| Some((slot, self.0.attempt(slot)?)));
        if let Some((slot, mut value)) = free {
            put(&mut value);
            drop(value);
            self.0.newest.store(slot, Ordering::Release);
        }
    }
}

/// A reader, for any thread. Readers wait for each other, never for the writer.
#[derive(Debug)]
pub struct Reader<T>(Arc<NewestCells<T>>);

impl<T> Clone for Reader<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Clone + Send> Reader<T> {
    /// The newest value.
    pub fn read(&self) -> T {
        let _turn = self.0.reading.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            // A slot that is locked is not the newest any more. One that was locked meanwhile holds
            // a value that is not yet published.
            let slot = self.0.newest.load(Ordering::Acquire);
            if let Some(value) = self.0.attempt(slot)
                && self.0.newest.load(Ordering::Acquire) == slot
            {
                return value.clone();
            }
            thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_get_whole_values_and_the_last_one() {
        const LAST: u64 = 20_000;
        let (mut writer, reader) = newest(&[0_u64; 64]);
        let readers: Vec<_> = (0..3)
            .map(|_| {
                let reader = reader.clone();
                thread::spawn(move || {
                    let mut last = 0;
                    while last < LAST {
                        let read = reader.read();
                        assert!(read.iter().all(|&it| it == read[0]) && read[0] >= last, "{read:?}");
                        last = read[0];
                    }
                })
            })
            .collect();
        for number in 1..=LAST {
            writer.write(|value| value.fill(number));
        }
        for thread in readers {
            thread.join().unwrap();
        }
    }
}
