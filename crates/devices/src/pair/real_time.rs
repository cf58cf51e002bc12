//! Real-time task of a device.

use std::time::Duration;

use ipc::channel::Port;
use ipc::sensor::Head;
use types::time::nanoseconds;

use super::Datagram;

/// Computation of a real-time task. No method may allocate, wait, or make a system call.
pub trait Work: Send + 'static {
    /// Sample from the ordinary task.
    type Sample: Datagram + Default + Send;
    /// Request to the ordinary task.
    type Request: Datagram + Default + Send;
    /// Length of the longest published message, bytes.
    const PUBLISHED: usize;

    /// Takes a sample; returns the time of its measurement, CLOCK_MONOTONIC ns.
    fn take(&mut self, sample: &Self::Sample) -> u64;

    /// Takes a message of the port's client; false if it is invalid.
    fn receive(&mut self, bytes: &[u8], moment: &Moment) -> bool {
        let _ = (bytes, moment);
        false
    }

    /// Runs once a period, after all samples; returns true to send `request` to the ordinary task.
    fn step(&mut self, moment: &Moment, request: &mut Self::Request) -> bool;

    /// Encodes the message to publish; `None` for nothing.
    fn encode(&self, head: Head, bytes: &mut [u8]) -> Option<usize>;
}

/// Period of a real-time task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Release, CLOCK_MONOTONIC ns.
    pub release_ns: u64,
    /// Time between two releases, ns.
    pub period_ns: u64,
    /// True if the last sample is too old, or there is none.
    pub stale: bool,
}

/// Work of a device with its ports.
pub(crate) struct RealTimeTask<W: Work> {
    pub(crate) work: W,
    /// Port to the ordinary task.
    device: Port,
    /// Published port.
    world: Port,
    sample: W::Sample,
    request: W::Request,
    inbox: Box<[u8]>,
    outbox: Box<[u8]>,
    bound: bool,
    stale_after_ns: u64,
    stamp_ns: u64,
    sequence: u32,
}

/// Most messages taken in a period: a flood does not lengthen it.
const MOST_MESSAGES: usize = 16;

impl<W: Work> RealTimeTask<W> {
    /// Creates a task for which a sample older than `timeout` is stale.
    pub(crate) fn new(work: W, device: Port, world: Port, timeout: Duration) -> Self {
        let inbox = vec![0xff; W::Sample::LARGEST.max(LONGEST_RECEIVED)].into_boxed_slice();
        let outbox = vec![0xff; W::Request::LARGEST.max(W::PUBLISHED)].into_boxed_slice();
        Self {
            work,
            device,
            world,
            sample: W::Sample::default(),
            request: W::Request::default(),
            inbox,
            outbox,
            bound: false,
            stale_after_ns: nanoseconds(timeout),
            stamp_ns: 0,
            sequence: 0,
        }
    }

    /// Runs one period.
    pub(crate) fn job(&mut self, release_ns: u64, now_ns: u64, period: Duration) {
        if !self.bound {
            self.device.bind();
            self.world.bind();
            self.bound = true;
        }
        let period_ns = nanoseconds(period);
        for _ in 0..MOST_MESSAGES {
            let Some(length) = self.device.receive(&mut self.inbox) else { break };
            if self.sample.decode(&self.inbox[..length]) {
                self.stamp_ns = self.work.take(&self.sample).min(now_ns);
            }
        }
        let stale = self.stamp_ns == 0 || now_ns.saturating_sub(self.stamp_ns) > self.stale_after_ns;
        let moment = Moment { release_ns, period_ns, stale };
        for _ in 0..MOST_MESSAGES {
            let Some(length) = self.world.receive(&mut self.inbox) else { break };
            self.work.receive(&self.inbox[..length], &moment);
        }
        if self.work.step(&moment, &mut self.request) {
            let length = self.request.encode(&mut self.outbox);
            // The port is full: the ordinary task is behind, and the port has counted it.
            let _ = self.device.send(&self.outbox[..length]);
        }
        // Without a client, messages would only grow old in the ring.
        if self.world.is_open() {
            let head = Head { sequence: self.sequence, stamp_ns: self.stamp_ns, sent_ns: now_ns, stale };
            if let Some(length) = self.work.encode(head, &mut self.outbox) {
                self.sequence = self.sequence.wrapping_add(1);
                let _ = self.world.send(&self.outbox[..length]);
            }
        }
    }
}

/// Longest message of a port's client, bytes.
pub(crate) const LONGEST_RECEIVED: usize = 256;
