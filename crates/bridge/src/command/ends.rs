//! The two ends of the regions of commands.
//!
//! Each holder of the lease writes into a region of its own, made for it: what an earlier holder still does to its own,
//! nobody reads any more. The door hands a new one over through a ring, and gets the old one back through another.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rtrb::{Consumer, Producer, RingBuffer};
use rustix::time::{ClockId, clock_gettime};

use super::{Command, words};
use crate::attach::Line;
use crate::cell::{self, Found};
use crate::region::{self, Region, RegionError, Written};
use crate::sys::mapping::Use;

/// The cycle's end. The peer may write anything at any time: nothing it does makes this wait, panic or read elsewhere.
#[derive(Debug)]
pub struct Reader {
    current: Option<cell::Reader<Region>>,
    fresh: Consumer<cell::Reader<Region>>,
    retired: Producer<cell::Reader<Region>>,
    scratch: Box<[u64]>,
    axes: usize,
    /// Number of the last publication of the current region that was looked at.
    seen: u64,
    taken: bool,
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
    /// Every number of it is as the peer wrote it: not checked. There may be fewer axes than the robot has, never more.
    /// Never waits, makes no system call, and allocates nothing where `command` came from [`Reader::blank`].
    pub fn newest(&mut self, command: &mut Command) -> Read {
        let read = self.look(command);
        // The holder before is heard out first; whoever follows is heard in this beat or the next.
        if read == Read::New || !self.go_over() {
            return read;
        }
        match self.look(command) {
            Read::Nothing | Read::Same => read,
            other => other,
        }
    }

    /// A command with room for every axis.
    #[must_use]
    pub fn blank(&self) -> Command {
        Command { axes: Vec::with_capacity(self.axes), ..Command::default() }
    }

    fn look(&mut self, command: &mut Command) -> Read {
        let nothing_new = if self.taken { Read::Same } else { Read::Nothing };
        let Some(cell) = &self.current else { return nothing_new };
        if cell.newest() == self.seen {
            return nothing_new;
        }
        match cell.read(&mut self.scratch, ATTEMPTS) {
            Found::Nothing => nothing_new,
            Found::Torn(number) => {
                self.seen = number;
                Read::Torn
            }
            Found::Whole(number) => {
                self.seen = number;
                match words::decode(&self.scratch, command) {
                    Some(()) => {
                        self.taken = true;
                        Read::New
                    }
                    None => Read::Torn,
                }
            }
        }
    }

    /// Whether there was a new region to go over to.
    fn go_over(&mut self) -> bool {
        if self.retired.is_full() {
            return false;
        }
        let Ok(fresh) = self.fresh.pop() else { return false };
        if let Some(old) = self.current.replace(fresh) {
            // There was room a moment ago, and nobody else fills it.
            let _ = self.retired.push(old);
        }
        self.seen = 0;
        true
    }
}

/// The door's end: makes a region for each holder.
#[derive(Debug)]
pub(crate) struct Regions {
    fresh: Producer<cell::Reader<Region>>,
    retired: Consumer<cell::Reader<Region>>,
    axes: usize,
}

impl Regions {
    /// Both ends, for a robot with this many axes.
    pub(crate) fn new(axes: usize) -> (Self, Reader) {
        let (fresh_in, fresh) = RingBuffer::new(WAITING);
        let (retired, retired_out) = RingBuffer::new(WAITING);
        let reader = Reader {
            current: None,
            fresh,
            retired,
            scratch: vec![0; words::length(axes)].into(),
            axes,
            seen: 0,
            taken: false,
        };
        (Self { fresh: fresh_in, retired: retired_out, axes }, reader)
    }

    /// A new region, on its way to the cycle: its descriptor is for the holder. `None` while the cycle has not taken up
    /// those made before.
    pub(crate) fn make(&mut self) -> io::Result<Option<OwnedFd>> {
        self.collect();
        if self.fresh.is_full() {
            return Ok(None);
        }
        let (region, file) = Region::make(words::REGION, words::length(self.axes), Written::ByPeer)?;
        let shape = region.shape();
        let pushed = self.fresh.push(region::reader(region, shape)?);
        Ok(pushed.is_ok().then_some(file))
    }

    /// Unmaps what the cycle gave back.
    pub(crate) fn collect(&mut self) {
        while self.retired.pop().is_ok() {}
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

/// Attempts of one beat: the writer laps only who is three commands behind within one copy.
const ATTEMPTS: u32 = 4;

/// Holders that may follow each other before the cycle has looked once.
const WAITING: usize = 16;
