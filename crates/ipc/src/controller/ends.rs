//! The cycle's end, and the server's.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::words::{self, Rows};
use super::{Answer, AxisAnswer, Counters, ExternalCommand, Request, Wrong};
use crate::cell::{self, Words, Writer};
use crate::command::Read;
use crate::command::lease::{self, Hearing, Leases};
use crate::region::{Region, Written};
use crate::state::{Axis, Signal};
use crate::sys::futex;

/// Regions of one holder: its answers, and the requests to it.
#[derive(Debug)]
struct Regions {
    answer: Region,
    request: Region,
}

impl Words for Regions {
    type Word = AtomicU64;

    fn words(&self) -> &[AtomicU64] {
        self.answer.words()
    }
}

/// The cycle's end. The process may write anything at any time: the cycle never panics, reads out
/// of bounds, or waits beyond the given time because of it.
#[derive(Debug)]
pub struct CycleEnd {
    hearing: Hearing<Regions>,
    outgoing: Box<[u64]>,
    incoming: Box<[u64]>,
    rows: Rows,
    counters: Arc<Counters>,
}

/// Result of [`CycleEnd::newest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// No answer newer than the last one.
    Nothing,
    /// A new answer; it is in the answer that was passed.
    Answer,
    /// A new but invalid answer. Reported once for each.
    Wrong(Wrong),
}

impl CycleEnd {
    /// A request with as many axes and signals as the description has.
    #[must_use]
    pub fn blank_request(&self) -> Request {
        let Rows { axes, signals, .. } = self.rows;
        Request {
            axes: vec![Axis::default(); axes],
            signals: vec![Signal::default(); signals],
            command: ExternalCommand { axes: vec![None; axes], ..ExternalCommand::default() },
            ..Request::default()
        }
    }

    /// An answer with space for all axes and outputs.
    #[must_use]
    pub fn blank_answer(&self) -> Answer {
        let Rows { axes, signals, .. } = self.rows;
        Answer {
            axes: vec![AxisAnswer::default(); axes],
            outputs: vec![None; signals],
            ..Answer::default()
        }
    }

    /// Reads the newest answer if it is newer than the last one, and goes over to the next holder.
    /// Only a [`Received::Answer`] is in `answer`; its codes are known and its numbers finite.
    ///
    /// Never waits, makes no system call, and allocates nothing.
    pub fn newest(&mut self, answer: &mut Answer) -> Received {
        let mut wrong = None;
        let rows = self.rows;
        let read = self.hearing.newest(&mut self.incoming, |words| {
            let decoded = words::decode_answer(words, rows, answer);
            wrong = decoded.err();
            wrong.is_none()
        });
        match read {
            Read::Nothing | Read::Same => Received::Nothing,
            Read::New => Received::Answer,
            Read::Torn => Received::Wrong(wrong.unwrap_or(Wrong::Torn)),
        }
    }

    /// Number of the process that holds the role, each another one, as of the last
    /// [`CycleEnd::newest`]; none while it is free.
    #[must_use]
    pub fn holder(&self) -> Option<u64> {
        self.hearing.holder()
    }

    /// Publishes a request and wakes the process: one system call. Nothing without a process.
    pub fn ask(&mut self, request: &Request) {
        let Some(Regions { request: region, .. }) = self.hearing.current() else { return };
        words::encode_request(request, self.rows, &mut self.outgoing);
        // It continues from the number in the region, which no other process can write to.
        if let Some(mut writer) = Writer::new(region, region.shape()) {
            writer.publish(&self.outgoing);
        }
        futex::wake(newest_of(region));
    }

    /// Waits for an unread answer, until `until_ns` of CLOCK_MONOTONIC: one system call. It may
    /// return early for no reason.
    pub fn wait(&self, until_ns: u64) {
        if let Some(Regions { answer, .. }) = self.hearing.current() {
            futex::wait(newest_of(answer), self.hearing.seen(), until_ns);
        }
    }

    /// Counts that others read.
    #[must_use]
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }
}

/// The server's end: makes the regions of each holder.
#[derive(Debug)]
pub(crate) struct Role {
    leases: Leases<Regions>,
    rows: Rows,
    counters: Arc<Counters>,
}

impl Role {
    /// Creates both ends for a robot with so many axes and signals.
    pub(crate) fn new(axes: usize, signals: usize) -> (Self, CycleEnd) {
        let (leases, hearing) = lease::pair();
        let rows = Rows { axes, signals, interlocks: 0 };
        let counters = Arc::new(Counters::default());
        let end = CycleEnd {
            hearing,
            outgoing: vec![0; words::request_length(rows)].into(),
            incoming: vec![0; words::answer_length(rows)].into(),
            rows,
            counters: Arc::clone(&counters),
        };
        (Self { leases, rows, counters }, end)
    }

    /// Makes the regions of a new holder and queues them for the cycle; returns the descriptors for
    /// the holder: requests, answers. `None` while the cycle has not taken up the previous regions.
    pub(crate) fn make(&mut self) -> io::Result<Option<[OwnedFd; 2]>> {
        if !self.leases.has_room() {
            return Ok(None);
        }
        let (request, requests) =
            Region::make(words::REQUEST, words::request_length(self.rows), Written::ByMaker)?;
        let (answer, answers) =
            Region::make(words::ANSWER, words::answer_length(self.rows), Written::ByPeer)?;
        let shape = answer.shape();
        let reader = cell::Reader::new(Regions { answer, request }, shape);
        let reader = reader.ok_or(io::ErrorKind::InvalidData)?;
        Ok(self.leases.grant(reader, AtomicU64::new(0)).then_some([requests, answers]))
    }

    /// Notes the process that holds the role.
    pub(crate) fn held_by(&self, process: u32) {
        self.counters.held_by(process);
    }

    /// Ends the role of its holder: its answers are no longer read.
    pub(crate) fn end(&mut self) {
        self.leases.end();
        self.counters.held_by(0);
    }

    /// Unmaps the regions that the cycle gave back.
    pub(crate) fn collect(&mut self) {
        self.leases.collect();
    }

    pub(crate) fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.counters)
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        self.end();
    }
}

/// Number of the newest publication, which the other side sleeps on.
pub(super) fn newest_of(region: &Region) -> &AtomicU64 {
    &region.words()[0]
}
