//! Thread that wakes the server for ports with a real-time side that makes no system call.

use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::thread::set_current_timer_slack;

use super::bell::Bell;
use super::counters::Counters;

/// Ordinary thread that polls ports while a client has one of them open, and sleeps otherwise. It
/// ends on drop.
#[derive(Debug)]
pub(crate) struct Helper {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Helper {
    /// Starts it for these ports; it pauses for `every` between two polls.
    pub(crate) fn start(ports: Vec<Arc<Counters>>, bell: Arc<Bell>, every: Duration) -> io::Result<Self> {
        let stop = Arc::<AtomicBool>::default();
        let stopping = Arc::clone(&stop);
        let thread = thread::Builder::new().name("onbeat-ipc-help".into());
        let thread = thread.spawn(move || run(&ports, &bell, every, &stopping))?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// A client has opened a port.
    pub(crate) fn opened(&self) {
        self.thread.iter().for_each(|thread| thread.thread().unpark());
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.opened();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn run(ports: &[Arc<Counters>], bell: &Bell, every: Duration, stop: &AtomicBool) {
    // Refused, each pause is 50 us longer.
    let _ = set_current_timer_slack(Some(NonZeroU64::MIN));
    let mut seen = vec![0; ports.len()];
    while !stop.load(Ordering::Relaxed) {
        let (mut open, mut more) = (false, false);
        for (counters, seen) in ports.iter().zip(&mut seen) {
            open |= counters.open.load(Ordering::Relaxed);
            // Partner: the Release store of `Port::send`, so that the server finds the counted
            // data.
            let sent = counters.sent.load(Ordering::Acquire);
            more |= std::mem::replace(seen, sent) != sent;
        }
        if more {
            bell.ring();
        }
        match (open, every.is_zero()) {
            (false, _) => thread::park(),
            (true, true) => thread::yield_now(),
            (true, false) => thread::sleep(every),
        }
    }
}
