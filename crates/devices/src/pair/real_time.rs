//! The real-time task of a device.

use std::time::Duration;

use bridge::channel::Port;
use bridge::sensor::Head;

use super::Datagram;

/// What a real-time task does with numbers. Nothing here allocates, waits, or makes a system call.
pub trait Work: Send + 'static {
    /// What comes from the ordinary task.
    type Sample: Datagram + Default + Send;
    /// What goes to it.
    type Request: Datagram + Default + Send;
    /// Bytes of the longest message to the world.
    const TOLD: usize;

    /// A sample came. Gives when it was measured, CLOCK_MONOTONIC ns.
    fn take(&mut self, sample: &Self::Sample) -> u64;

    /// A message from the world; `false` if it is none.
    fn hear(&mut self, bytes: &[u8], moment: &Moment) -> bool {
        let _ = (bytes, moment);
        false
    }

    /// Once a period, after all samples: whether `request` shall go to the ordinary task.
    fn step(&mut self, moment: &Moment, request: &mut Self::Request) -> bool;

    /// What the world is told; `None` for nothing.
    fn tell(&self, head: Head, bytes: &mut [u8]) -> Option<usize>;
}

/// A period of a real-time task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Its release, CLOCK_MONOTONIC ns.
    pub release_ns: u64,
    /// Time between two releases, ns.
    pub period_ns: u64,
    /// The last sample is older than it may be, or there is none.
    pub stale: bool,
}

/// Work, and the ports it is joined to the rest by.
pub(crate) struct RealTimeTask<W: Work> {
    pub(crate) work: W,
    /// To the ordinary task.
    device: Port,
    /// To the world.
    world: Port,
    sample: W::Sample,
    request: W::Request,
    inbox: Box<[u8]>,
    outbox: Box<[u8]>,
    bound: bool,
    patience_ns: u64,
    stamp_ns: u64,
    sequence: u32,
}

/// Messages taken in one period at most: a flood does not make it longer.
const MOST_MESSAGES: usize = 16;

impl<W: Work> RealTimeTask<W> {
    /// A sample older than `patience` is stale.
    pub(crate) fn new(work: W, device: Port, world: Port, patience: Duration) -> Self {
        let inbox = vec![0xff; W::Sample::LARGEST.max(LONGEST_HEARD)].into_boxed_slice();
        let outbox = vec![0xff; W::Request::LARGEST.max(W::TOLD)].into_boxed_slice();
        Self {
            work,
            device,
            world,
            sample: W::Sample::default(),
            request: W::Request::default(),
            inbox,
            outbox,
            bound: false,
            patience_ns: u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX),
            stamp_ns: 0,
            sequence: 0,
        }
    }

    /// One period.
    pub(crate) fn job(&mut self, release_ns: u64, now_ns: u64, period: Duration) {
        if !self.bound {
            self.device.bind();
            self.world.bind();
            self.bound = true;
        }
        let period_ns = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
        for _ in 0..MOST_MESSAGES {
            let Some(length) = self.device.receive(&mut self.inbox) else { break };
            if self.sample.decode(&self.inbox[..length]) {
                self.stamp_ns = self.work.take(&self.sample).min(now_ns);
            }
        }
        let stale = self.stamp_ns == 0 || now_ns.saturating_sub(self.stamp_ns) > self.patience_ns;
        let moment = Moment { release_ns, period_ns, stale };
        for _ in 0..MOST_MESSAGES {
            let Some(length) = self.world.receive(&mut self.inbox) else { break };
            self.work.hear(&self.inbox[..length], &moment);
        }
        if self.work.step(&moment, &mut self.request) {
            let length = self.request.encode(&mut self.outbox);
            // No room: the ordinary task is behind, and the port has counted it.
            let _ = self.device.send(&self.outbox[..length]);
        }
        // Without a listener messages would only grow old in the ring.
        if self.world.is_open() {
            let head = Head { sequence: self.sequence, stamp_ns: self.stamp_ns, told_ns: now_ns, stale };
            if let Some(length) = self.work.tell(head, &mut self.outbox) {
                self.sequence = self.sequence.wrapping_add(1);
                let _ = self.world.send(&self.outbox[..length]);
            }
        }
    }
}

/// Longest message from the world.
pub(crate) const LONGEST_HEARD: usize = 256;
