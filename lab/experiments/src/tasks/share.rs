//! Means that two tasks share: in their jobs they take and give it back (controllers paper, Table
//! 4).

use std::io;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::sys::mutex::{PosixMutex, Protocol};
use crate::sys::semaphore::Semaphore;

/// Kind of the means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Share {
    /// Nothing is shared.
    Nothing,
    /// A binary semaphore.
    Semaphore,
    /// A mutex.
    Mutex(Protocol),
    /// Rings without locks from each task to the next, as the cycle and its far ends have them.
    Rings,
}

/// A task's part of it.
pub(crate) trait Shared: Send {
    /// Does the work of a critical section, between taking and giving back.
    fn within(&mut self, work: &mut dyn FnMut()) -> io::Result<()>;
}

impl Share {
    /// All of them.
    pub(crate) const ALL: [Self; 5] = [
        Self::Nothing,
        Self::Semaphore,
        Self::Mutex(Protocol::Plain),
        Self::Mutex(Protocol::Inherit),
        Self::Rings,
    ];

    /// Name in tables.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Semaphore => "semaphore",
            Self::Mutex(Protocol::Plain) => "mutex",
            Self::Mutex(Protocol::Inherit) => "mutex (priority inheritance)",
            Self::Rings => "our rings",
        }
    }

    /// Makes one, with a part for each task.
    pub(crate) fn make(self, tasks: usize) -> io::Result<Vec<Box<dyn Shared>>> {
        fn parts<S: Shared + Clone + 'static>(of: &S, tasks: usize) -> Vec<Box<dyn Shared>> {
            (0..tasks).map(|_| Box::new(of.clone()) as Box<dyn Shared>).collect()
        }
        Ok(match self {
            Self::Nothing => parts(&Nothing, tasks),
            Self::Semaphore => {
                let semaphore = Semaphore::new()?;
                semaphore.post()?;
                parts(&Binary(Arc::new(semaphore)), tasks)
            }
            Self::Mutex(protocol) => parts(&Locked(Arc::new(PosixMutex::new(protocol)?)), tasks),
            Self::Rings => rings(tasks),
        })
    }
}

#[derive(Clone)]
struct Nothing;

impl Shared for Nothing {
    fn within(&mut self, work: &mut dyn FnMut()) -> io::Result<()> {
        work();
        Ok(())
    }
}

#[derive(Clone)]
struct Binary(Arc<Semaphore>);

impl Shared for Binary {
    fn within(&mut self, work: &mut dyn FnMut()) -> io::Result<()> {
        self.0.wait()?;
        work();
        self.0.post()
    }
}

#[derive(Clone)]
struct Locked(Arc<PosixMutex>);

impl Shared for Locked {
    fn within(&mut self, work: &mut dyn FnMut()) -> io::Result<()> {
        let _held = self.0.lock()?;
        work();
        Ok(())
    }
}

/// A value from the task before and one to the task after.
struct ShareRing {
    from: rtrb::Consumer<[u64; 8]>,
    to: rtrb::Producer<[u64; 8]>,
}

/// Values that find room; a task that takes none makes the one before it drop.
const DEPTH: usize = 16;

fn rings(tasks: usize) -> Vec<Box<dyn Shared>> {
    let (producers, mut consumers): (Vec<_>, Vec<_>) =
        (0..tasks).map(|_| rtrb::RingBuffer::new(DEPTH)).unzip();
    consumers.rotate_right(1.min(tasks));
    let rings = producers.into_iter().zip(consumers).map(|(to, from)| ShareRing { from, to });
    rings.map(|ring| Box::new(ring) as Box<dyn Shared>).collect()
}

impl Shared for ShareRing {
    fn within(&mut self, work: &mut dyn FnMut()) -> io::Result<()> {
        let mut value = [0; 8];
        while let Ok(newer) = self.from.pop() {
            value = newer;
        }
        work();
        value[0] += 1;
        let _ = self.to.push(std::hint::black_box(value));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn one_task_at_a_time_is_within_a_semaphore_or_a_mutex() {
        for share in [Share::Semaphore, Share::Mutex(Protocol::Plain), Share::Mutex(Protocol::Inherit)] {
            let count = AtomicU64::new(0);
            std::thread::scope(|scope| {
                for mut part in share.make(3).unwrap() {
                    let count = &count;
                    scope.spawn(move || {
                        for _ in 0..2_000 {
                            let mut add = || {
                                let before = count.load(Ordering::Relaxed);
                                std::hint::spin_loop();
                                count.store(before + 1, Ordering::Relaxed);
                            };
                            part.within(&mut add).unwrap();
                        }
                    });
                }
            });
            assert_eq!(count.into_inner(), 6_000, "{share:?}");
        }
    }

    #[test]
    fn a_ring_goes_from_each_task_to_the_next() {
        let mut parts = Share::Rings.make(2).unwrap();
        let mut worked = 0;
        for _ in 0..3 * DEPTH {
            for part in &mut parts {
                part.within(&mut || worked += 1).unwrap();
            }
        }
        assert_eq!(worked, 6 * DEPTH);
    }
}
