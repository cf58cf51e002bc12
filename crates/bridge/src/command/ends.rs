//! The two ends of the regions of commands.
//!
//! Each holder of the lease writes into a region of its own, made for it: what an earlier holder still does to its own,
//! nobody reads any more ([`super::lease`]).

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicU64;

use rustix::time::{ClockId, clock_gettime};

use super::lease::{self, Hearing, Leases};
use super::{Command, words};
use crate::attach::Line;
use crate::cell;
use crate::region::{self, Region, RegionError, Written};
use crate::sys::mapping::Use;

/// The cycle's end. The peer may write anything at any time: nothing it does makes this wait, panic or read elsewhere.
#[derive(Debug)]
pub struct Reader {
    hearing: Hearing<Region>,
    scratch: Box<[u64]>,
    axes: usize,
}

/// What [`Reader::newest`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// Nobody has ever given a command.
    Nothing,
    /// The last one still is the newest.
    Same,
    /// A new one: it is in the command that was passed.
    New,
    /// Somebody wrote what is no whole command; the one that was passed is as it was. It is said once for each.
    Torn,
}

impl Reader {
    /// Looks for a newer command than the last one. On anything but [`Read::New`] `command` is as it was.
    ///
    /// Who gave the lease back, or lost it, is heard once more at most: the last command given until then.
    ///
    /// Every number of it is as the peer wrote it: not checked. There may be fewer axes than the robot has, never more.
    /// Never waits, makes no system call, and allocates nothing where `command` came from [`Reader::blank`].
    pub fn newest(&mut self, command: &mut Command) -> Read {
        self.hearing.newest(&mut self.scratch, |words| words::decode(words, command).is_some())
    }

    /// A command with room for every axis.
    #[must_use]
    pub fn blank(&self) -> Command {
        Command { axes: Vec::with_capacity(self.axes), ..Command::default() }
    }
}

/// The door's end: makes a region for each holder.
#[derive(Debug)]
pub(crate) struct Regions {
    leases: Leases<Region>,
    axes: usize,
}

impl Regions {
    /// Both ends, for a robot with this many axes.
    pub(crate) fn new(axes: usize) -> (Self, Reader) {
        let (leases, hearing) = lease::pair();
        (Self { leases, axes }, Reader { hearing, scratch: vec![0; words::length(axes)].into(), axes })
    }

    /// A new region, on its way to the cycle: its descriptor is for the holder. `None` while the cycle has not taken up
    /// those made before. The holder before is heard no more.
    pub(crate) fn make(&mut self) -> io::Result<Option<OwnedFd>> {
        if !self.leases.has_room() {
            return Ok(None);
        }
        let (region, file) = Region::make(words::REGION, words::length(self.axes), Written::ByPeer)?;
        let shape = region.shape();
        let granted = self.leases.grant(region::reader(region, shape)?, AtomicU64::new(0));
        Ok(granted.then_some(file))
    }

    /// The holder is heard no more.
    pub(crate) fn end(&mut self) {
        self.leases.end();
    }

    /// Unmaps what the cycle gave back.
    pub(crate) fn collect(&mut self) {
        self.leases.collect();
    }
}

impl Drop for Regions {
    /// The door is shut: holders are told that nobody reads any more.
    fn drop(&mut self) {
        self.end();
    }
}

/// The end of who holds the lease; dropping it gives the lease back.
#[derive(Debug)]
pub struct Writer {
    cell: cell::Writer<Region>,
    line: Line,
    scratch: Box<[u64]>,
    axes: usize,
    sequence: u64,
}

impl Writer {
    pub(crate) fn open(file: BorrowedFd<'_>, line: Line) -> Result<Self, RegionError> {
        let region = Region::open(words::REGION, file, Use::Store)?;
        let length = region.shape().words();
        let Some(axes) = words::axes(length) else {
            return Err(RegionError::Other(region::Other {
                region: words::REGION.name,
                what: "publication's words for no axis, and 2 more for each",
                expected: words::length(0) as u64,
                found: length as u64,
            }));
        };
        let scratch = vec![0; length].into();
        Ok(Self { cell: region::writer(region)?, line, scratch, axes, sequence: 0 })
    }

    /// Gives a command, in place of the one before, and returns its sequence number. `sequence` and `stamp_ns` are filled
    /// in here: counted up from 1, and now. An empty list of axes asks nothing of any axis.
    ///
    /// # Errors
    /// The cycle has ended, or the command is for another number of axes.
    pub fn send(&mut self, command: &Command) -> Result<u64, SendError> {
        let found = command.axes.len();
        if found != 0 && found != self.axes {
            return Err(SendError::Axes { expected: self.axes, found });
        }
        if self.line.has_ended() {
            return Err(SendError::Ended);
        }
        self.sequence += 1;
        words::encode(command, &mut self.scratch);
        self.scratch[0] = self.sequence;
        self.scratch[1] = now_ns();
        if found == 0 {
            // As many axes as there are, with nothing asked of each.
            self.scratch[7] = self.axes as u64;
            self.scratch[8..].fill(0);
        }
        self.cell.publish(&self.scratch);
        Ok(self.sequence)
    }

    /// Axes of the robot.
    #[must_use]
    pub fn axes(&self) -> usize {
        self.axes
    }
}

/// Why a command was not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The process that ran it is gone, or has closed its seam.
    #[error("the cycle has ended: nobody reads commands any more; attach again once it runs")]
    Ended,
    /// It is for another robot.
    #[error("the command is for {found} axes, the robot has {expected}: name each of them, or none")]
    Axes {
        /// Axes of the robot.
        expected: usize,
        /// Axes of the command.
        found: usize,
    },
}

/// CLOCK_MONOTONIC.
fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
