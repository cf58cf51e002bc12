//! Both ends of the command regions.
//!
//! Each holder of the lease writes into a region of its own, made for it. Writes of a former holder to its
//! region have no effect any more ([`super::lease`]).

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicU64;

use rustix::time::{ClockId, clock_gettime};

use super::lease::{self, Hearing, Leases};
use super::{Command, words};
use crate::cell;
use crate::client::Line;
use crate::region::{self, Region, RegionError, Written};
use crate::state::words::Rows;
use crate::sys::mapping::Use;

/// The cycle's end. The peer may write anything at any time: none of it makes this wait, panic or read out
/// of bounds.
#[derive(Debug)]
pub struct Reader {
    hearing: Hearing<Region>,
    scratch: Box<[u64]>,
    rows: Rows,
}

/// Result of [`Reader::newest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// No command was ever given.
    Nothing,
    /// No command newer than the last one.
    Same,
    /// A new command; it is in the command that was passed.
    New,
    /// The region holds no whole command; the command that was passed is unchanged. Reported once for each.
    Torn,
}

impl Reader {
    /// Reads the newest command if it is newer than the last one. On any result but [`Read::New`] `command`
    /// is unchanged.
    ///
    /// Of a holder that gave the lease back or lost it, one more command at most is read: the last one
    /// given until then.
    ///
    /// All numbers are as the peer wrote them, unchecked. There may be fewer axes and signals than the robot
    /// has, never more. Never waits, makes no system call, and allocates nothing if `command` came from
    /// [`Reader::blank`].
    pub fn newest(&mut self, command: &mut Command) -> Read {
        let rows = self.rows;
        self.hearing.newest(&mut self.scratch, |words| words::decode(words, rows, command).is_some())
    }

    /// Creates a command with room for every axis and signal.
    #[must_use]
    pub fn blank(&self) -> Command {
        let Rows { axes, signals } = self.rows;
        Command {
            axes: Vec::with_capacity(axes),
            signals: Vec::with_capacity(signals),
            ..Command::default()
        }
    }
}

/// The server's end: makes a region for each holder.
#[derive(Debug)]
pub(crate) struct Regions {
    leases: Leases<Region>,
    rows: Rows,
}

impl Regions {
    /// Creates both ends for a robot with this many axes, and signals that are set from outside.
    pub(crate) fn new(rows: Rows) -> (Self, Reader) {
        let (leases, hearing) = lease::pair();
        (Self { leases, rows }, Reader { hearing, scratch: vec![0; words::length(rows)].into(), rows })
    }

    /// Makes a new region and queues it for the cycle; returns the descriptor for the holder. `None` while
    /// the cycle has not taken up the regions made before. Commands of the former holder are no longer
    /// read.
    pub(crate) fn make(&mut self) -> io::Result<Option<OwnedFd>> {
        if !self.leases.has_room() {
            return Ok(None);
        }
        let (region, file) = Region::make(words::REGION, words::length(self.rows), Written::ByPeer)?;
        let shape = region.shape();
        let granted = self.leases.grant(region::reader(region, shape)?, AtomicU64::new(0));
        Ok(granted.then_some(file))
    }

    /// Ends the current lease: commands of its holder are no longer read.
    pub(crate) fn end(&mut self) {
        self.leases.end();
    }

    /// Unmaps the regions that the cycle gave back.
    pub(crate) fn collect(&mut self) {
        self.leases.collect();
    }
}

impl Drop for Regions {
    /// Ends the current lease when the server closes: holders learn that no one reads any more.
    fn drop(&mut self) {
        self.end();
    }
}

/// The lease holder's end; dropping it gives the lease back.
#[derive(Debug)]
pub struct Writer {
    cell: cell::Writer<Region>,
    line: Line,
    scratch: Box<[u64]>,
    rows: Rows,
    sequence: u64,
}

impl Writer {
    pub(crate) fn open(file: BorrowedFd<'_>, line: Line, rows: Rows) -> Result<Self, RegionError> {
        let region = Region::open(words::REGION, file, Use::Store)?;
        let length = region.shape().words();
        if length != words::length(rows) {
            return Err(RegionError::Other(region::Other {
                region: words::REGION.name,
                what: "publication's words for the axes and signals of the description",
                expected: words::length(rows) as u64,
                found: length as u64,
            }));
        }
        let scratch = vec![0; length].into();
        Ok(Self { cell: region::writer(region)?, line, scratch, rows, sequence: 0 })
    }

    /// Sends a command in place of the former one and returns its sequence number. `sequence` and
    /// `stamp_ns` are filled in here: counted up from 1, and the current time. An empty list of axes or of
    /// signals commands nothing for any of them.
    ///
    /// # Errors
    /// The cycle has ended, or the command has another number of axes or signals.
    pub fn send(&mut self, command: &Command) -> Result<u64, SendError> {
        let Rows { axes, signals } = self.rows;
        let wrong = |found: usize, expected: usize| found != 0 && found != expected;
        if wrong(command.axes.len(), axes) {
            return Err(SendError::Axes { expected: axes, found: command.axes.len() });
        }
        if wrong(command.signals.len(), signals) {
            return Err(SendError::Signals { expected: signals, found: command.signals.len() });
        }
        if self.line.has_ended() {
            return Err(SendError::Ended);
        }
        self.sequence += 1;
        words::encode(command, self.rows, &mut self.scratch);
        self.scratch[0] = self.sequence;
        self.scratch[1] = now_ns();
        self.cell.publish(&self.scratch);
        Ok(self.sequence)
    }

    /// Number of axes of the robot.
    #[must_use]
    pub fn axes(&self) -> usize {
        self.rows.axes
    }

    /// Number of outputs that are set from outside.
    #[must_use]
    pub fn signals(&self) -> usize {
        self.rows.signals
    }
}

/// Reason for a command that was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The process that ran the cycle is gone, or has closed the interface.
    #[error("the cycle has ended: nobody reads commands any more; attach again once it runs")]
    Ended,
    /// The command has another number of axes than the robot.
    #[error("the command is for {found} axes, the robot has {expected}: name each of them, or none")]
    Axes {
        /// Axes of the robot.
        expected: usize,
        /// Axes of the command.
        found: usize,
    },
    /// The command has another number of signals than those set from outside.
    #[error(
        "the command is for {found} signals, the robot has {expected} that are set from outside: name each of them, or none"
    )]
    Signals {
        /// Signals of the robot that are set from outside.
        expected: usize,
        /// Signals of the command.
        found: usize,
    },
}

/// Current time of CLOCK_MONOTONIC, ns.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
