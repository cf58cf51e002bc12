//! Communication load: groups of senders and receivers over socket pairs, with the defaults of
//! hackbench (rt-tests): ten groups of 20 senders and 20 receivers, messages of 100 bytes from
//! every sender to every receiver of its group. The paper's weight has 20 groups, restarted every 5
//! s, as the humanoid paper's `hackbench 20` is.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::{Done, LoadError, Weight};

/// Makes 400 threads send and receive until `stop` is set; of the paper's weight 800, which are
/// restarted every 5 s.
///
/// # Errors
/// The machine lacks resources for so many threads or sockets.
pub fn run(weight: Weight, stop: &AtomicBool) -> Result<Done, LoadError> {
    let mut count = 0;
    // Relaxed: the flag carries no other data.
    while !stop.load(Ordering::Relaxed) {
        count += round(weight, stop)?;
    }
    Ok(Done { count, what: "messages" })
}

/// Starts the groups, waits until they are to end, and returns the number of their messages.
fn round(weight: Weight, stop: &AtomicBool) -> Result<u64, LoadError> {
    let (number, longest) = match weight {
        Weight::Paper => (2 * GROUPS, ANEW),
        Weight::Light => (GROUPS, Duration::MAX),
    };
    let begin = Instant::now();
    let mut groups = Vec::new();
    for _ in 0..number {
        let threads = 2 * number * PAIRS;
        let group = Group::start(PAIRS);
        groups.push(group.map_err(|error| LoadError(format!("{threads} threads over sockets: {error}")))?);
    }
    while !stop.load(Ordering::Relaxed) && begin.elapsed() < longest {
        thread::sleep(Duration::from_millis(20));
    }
    Ok(groups.into_iter().map(Group::finish).sum())
}

/// Threads of one group; they send and receive until it is dropped.
struct Group {
    ends: Arc<Vec<UnixStream>>,
    received: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Group {
    fn start(pairs: usize) -> io::Result<Self> {
        let received = Arc::new(AtomicU64::new(0));
        let (mut ends, mut threads) = (Vec::new(), Vec::new());
        for _ in 0..pairs {
            let (end, mut mine) = UnixStream::pair()?;
            ends.push(end);
            let received = Arc::clone(&received);
            threads.push(small_thread(move || {
                let mut message = [0; MESSAGE];
                while mine.read_exact(&mut message).is_ok() {
                    // Relaxed: a plain count.
                    received.fetch_add(1, Ordering::Relaxed);
                }
            })?);
        }
        let mut group = Self { ends: Arc::new(ends), received, threads };
        for _ in 0..pairs {
            let ends = Arc::clone(&group.ends);
            group.threads.push(small_thread(move || {
                let message = [0; MESSAGE];
                while ends.iter().all(|end| (&mut &*end).write_all(&message).is_ok()) {}
            })?);
        }
        Ok(group)
    }

    /// Ends the threads; returns the number of messages that arrived.
    fn finish(mut self) -> u64 {
        self.shut();
        for thread in std::mem::take(&mut self.threads) {
            // The thread does not panic, and its count is kept even if it did.
            let _ = thread.join();
        }
        self.received.load(Ordering::Relaxed)
    }

    fn shut(&self) {
        for end in self.ends.iter() {
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.shut();
    }
}

fn small_thread(work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().stack_size(64 << 10).spawn(work)
}

const GROUPS: usize = 10;
const PAIRS: usize = 20;
const MESSAGE: usize = 100;

/// Time between two `killall hackbench` of the humanoid paper.
const ANEW: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sender_reaches_every_receiver_and_all_end() {
        let group = Group::start(3).unwrap();
        assert_eq!((group.ends.len(), group.threads.len()), (3, 6));
        let begin = Instant::now();
        while group.received.load(Ordering::Relaxed) < 1000 {
            assert!(begin.elapsed().as_secs() < 30, "{:?}", group.received);
            thread::yield_now();
        }
        assert!(group.finish() >= 1000);
    }
}
