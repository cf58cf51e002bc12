//! Commands to the cycle from outside, the newest of which counts: their form, their words in
//! shared memory, and both ends.
//!
//! Each holder of the lease writes into a separate region, made for it. Writes of a former holder
//! to its region have no effect any more ([`lease`]). `docs/ipc.md` has the table of words for
//! other languages.

pub mod lease;

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicU64;

use types::units::{Metres, NewtonMetres, Radians, RadiansPerSecond};

use crate::cell;
use crate::client::Line;
use crate::region::{self, Kind, Region, RegionError, Written, magic};
use crate::state::region::Rows;
use crate::sys::mapping::Use;
use crate::sys::now_ns;
use crate::value;
use lease::{Hearing, Leases};

pub use types::{AxisTarget, ToolPose, Twist};

/// One command as its writer sent it. The real-time side checks every number before anything moves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Command {
    /// Sequence number, one higher with every command of a writer.
    pub sequence: u64,
    /// Time of sending, CLOCK_MONOTONIC.
    pub stamp_ns: u64,
    /// Time-to-live, counted from the stamp; after it the axes stop as the robot file says.
    pub time_to_live_ns: u64,
    /// Velocity of the base.
    pub twist: Option<Twist>,
    /// Pose of the arm's tool.
    pub pose: Option<ToolPose>,
    /// Target of each axis, in the order of [`crate::description::Description::axes`]; `None`
    /// commands nothing for it.
    pub axes: Vec<Option<AxisTarget>>,
    /// Value of each output that is set from outside, in the order of
    /// [`crate::description::Description::commanded`]; `None` leaves it as it is.
    pub signals: Vec<Option<types::Value>>,
}

/// The cycle's end. The peer may write anything at any time: the cycle never waits, panics or reads
/// out of bounds because of it.
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
    /// The region holds no whole command; the command that was passed is unchanged. Reported once
    /// for each.
    Torn,
}

impl Reader {
    /// Reads the newest command if it is newer than the last one. On any result but [`Read::New`]
    /// `command` is unchanged.
    ///
    /// Of a holder that gave the lease back or lost it, one more command at most is read: the last
    /// one given until then.
    ///
    /// All numbers are as the peer wrote them, unchecked. There may be fewer axes and signals than
    /// the robot has, never more. Never waits, makes no system call, and allocates nothing if
    /// `command` came from [`Reader::blank`].
    #[inline]
    pub fn newest(&mut self, command: &mut Command) -> Read {
        let rows = self.rows;
        self.hearing.newest(&mut self.scratch, |words| decode(words, rows, command).is_some())
    }

    /// Creates a command with space for every axis and signal.
    #[must_use]
    pub fn blank(&self) -> Command {
        let Rows { axes, signals, .. } = self.rows;
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
        (Self { leases, rows }, Reader { hearing, scratch: vec![0; length(rows)].into(), rows })
    }

    /// Makes a new region and queues it for the cycle; returns the descriptor for the holder.
    /// `None` while the cycle has not taken up the regions made before. Commands of the former
    /// holder are no longer read.
    pub(crate) fn make(&mut self) -> io::Result<Option<OwnedFd>> {
        if !self.leases.has_room() {
            return Ok(None);
        }
        let (region, file) = Region::make(REGION, length(self.rows), Written::ByPeer)?;
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
        let region = Region::open(REGION, file, Use::Store)?;
        let found = region.shape().words();
        if found != length(rows) {
            return Err(RegionError::Other(region::Other {
                region: REGION.name,
                what: "publication's words for the axes and signals of the description",
                expected: length(rows) as u64,
                found: found as u64,
            }));
        }
        let scratch = vec![0; found].into();
        Ok(Self { cell: region::writer(region)?, line, scratch, rows, sequence: 0 })
    }

    /// Sends a command in place of the former one and returns its sequence number. `sequence` and
    /// `stamp_ns` are filled in here: counted up from 1, and the current time. An empty list of
    /// axes or of signals commands nothing for any of them.
    ///
    /// # Errors
    /// The cycle has ended, or the command has another number of axes or signals.
    pub fn send(&mut self, command: &Command) -> Result<u64, SendError> {
        self.send_at(command, now_ns())
    }

    /// The same at another time than the current one: a cycle in virtual time has a host clock of
    /// its own.
    ///
    /// # Errors
    /// Those of [`Self::send`].
    #[doc(hidden)]
    pub fn send_at(&mut self, command: &Command, stamp_ns: u64) -> Result<u64, SendError> {
        let Rows { axes, signals, .. } = self.rows;
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
        encode(command, self.rows, &mut self.scratch);
        self.scratch[0] = self.sequence;
        self.scratch[1] = stamp_ns;
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
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The process that ran the cycle is gone, or has closed the interface.
    #[error("the cycle has ended and reads no more commands; attach again once it runs")]
    Ended,
    /// The command has another number of axes than the robot.
    #[error("the command is for {found} axes, the robot has {expected}: name each of them, or none")]
    Axes {
        /// Axes of the robot.
        expected: usize,
        /// Axes of the command.
        found: usize,
    },
    /// The number of signals in the command differs from the number of signals set from outside.
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

types::debug_is_sentence!(SendError);

/// Region of a holder's commands.
pub(crate) const REGION: Kind = Kind { name: "onbeat-command", magic: magic(*b"CO"), version: 3, slots: 4 };

/// Words of a command with these rows.
pub(crate) const fn length(rows: Rows) -> usize {
    FIXED + rows.axes * AXIS + rows.signals * SIGNAL
}

/// Encodes a command into words of these rows; axes and signals without a row are left out, missing
/// ones are zeros.
pub(crate) fn encode(command: &Command, rows: Rows, words: &mut [u64]) {
    let head = [command.sequence, command.stamp_ns, command.time_to_live_ns];
    let fixed = head.into_iter().chain(twist_words(command.twist)).chain(pose_words(command.pose));
    let fixed = fixed.chain([rows.axes as u64, rows.signals as u64]);
    let axes = command.axes.iter().flat_map(|&axis| target_words(axis));
    let axes = axes.chain(std::iter::repeat(0)).take(rows.axes * AXIS);
    let signals = command.signals.iter().flat_map(|&signal| value::encode(signal));
    let all = fixed.chain(axes).chain(signals).chain(std::iter::repeat(0));
    for (word, value) in words.iter_mut().zip(all) {
        *word = value;
    }
}

/// Decodes a command from words with any content. Numbers are not checked: they may be NaN or
/// infinite. `None` if the words are no command; then `command` is unchanged.
///
/// Does not allocate if `command` has space for these rows.
#[inline]
pub(crate) fn decode(words: &[u64], rows: Rows, command: &mut Command) -> Option<()> {
    let (fixed, rest) = words.split_at_checked(FIXED)?;
    let &[sequence, stamp_ns, time_to_live_ns, ref fixed @ .., axes, signals] = fixed else { return None };
    let (twist_words, pose_words) = fixed.split_first_chunk()?;
    let (twist, pose) = (twist(twist_words)?, pose(pose_words.first_chunk()?)?);
    let count = |told: u64, most: usize| usize::try_from(told).ok().filter(|&count| count <= most);
    let (axis_rows, signal_rows) = rest.split_at_checked(rows.axes * AXIS)?;
    let axes = axis_rows.chunks_exact(AXIS).take(count(axes, rows.axes)?);
    let signals = signal_rows.chunks_exact(SIGNAL).take(count(signals, rows.signals)?);
    let signals = signals.map(|row| value::decode(row[0], row[1]));
    if axes.clone().any(|axis| target(axis[0], axis[1]).is_none())
        || signals.clone().any(|signal| signal.is_err())
    {
        return None;
    }
    command.sequence = sequence;
    command.stamp_ns = stamp_ns;
    command.time_to_live_ns = time_to_live_ns;
    command.twist = twist;
    command.pose = pose;
    command.axes.clear();
    command.axes.extend(axes.map(|axis| target(axis[0], axis[1]).flatten()));
    command.signals.clear();
    command.signals.extend(signals.map(|signal| signal.unwrap_or_default()));
    Some(())
}

/// Words of a twist: its presence, and its numbers.
pub(crate) fn twist_words(twist: Option<Twist>) -> [u64; 4] {
    let Twist { x, y, yaw } = twist.unwrap_or_default();
    [twist.is_some().into(), x.0.to_bits(), y.0.to_bits(), yaw.0.to_bits()]
}

/// Twist of such words, unchecked; `None` if they are none.
#[inline]
pub(crate) fn twist(&[has, x, y, yaw]: &[u64; 4]) -> Option<Option<Twist>> {
    let [x, y, yaw] = [x, y, yaw].map(f64::from_bits);
    (has <= 1).then(|| (has == 1).then_some(Twist::new(x, y, yaw)))
}

/// Words of a pose: its presence, and its numbers.
pub(crate) fn pose_words(pose: Option<ToolPose>) -> [u64; 8] {
    let ToolPose { position: [px, py, pz], orientation: [qx, qy, qz, qw] } =
        pose.unwrap_or(ToolPose { position: [Metres::ZERO; 3], orientation: [0.0; 4] });
    let [px, py, pz] = [px, py, pz].map(|metres| metres.0.to_bits());
    let [qx, qy, qz, qw] = [qx, qy, qz, qw].map(f64::to_bits);
    [pose.is_some().into(), px, py, pz, qx, qy, qz, qw]
}

/// ToolPose of such words, unchecked; `None` if they are none.
#[inline]
pub(crate) fn pose(&[has, px, py, pz, qx, qy, qz, qw]: &[u64; 8]) -> Option<Option<ToolPose>> {
    let position = [px, py, pz].map(|bits| Metres(f64::from_bits(bits)));
    let orientation = [qx, qy, qz, qw].map(f64::from_bits);
    (has <= 1).then(|| (has == 1).then_some(ToolPose { position, orientation }))
}

/// Words of a target: its kind, 0 for none, and its number.
pub(crate) fn target_words(target: Option<AxisTarget>) -> [u64; 2] {
    match target {
        None => [0, 0],
        Some(AxisTarget::Position(number)) => [1, number.0.to_bits()],
        Some(AxisTarget::Velocity(number)) => [2, number.0.to_bits()],
        Some(AxisTarget::Effort(number)) => [3, number.0.to_bits()],
        Some(AxisTarget::Jog(number)) => [4, number.0.to_bits()],
    }
}

/// Target of such words, unchecked; `None` if they are none.
#[inline]
pub(crate) fn target(kind: u64, bits: u64) -> Option<Option<AxisTarget>> {
    let number = f64::from_bits(bits);
    Some(match kind {
        0 => None,
        1 => Some(AxisTarget::Position(Radians(number))),
        2 => Some(AxisTarget::Velocity(RadiansPerSecond(number))),
        3 => Some(AxisTarget::Effort(NewtonMetres(number))),
        4 => Some(AxisTarget::Jog(RadiansPerSecond(number))),
        _ => return None,
    })
}

/// Longest time-to-live of a command with a jog: an axis stops when its key is released.
pub const JOG_TIME_TO_LIVE: std::time::Duration = std::time::Duration::from_millis(300);

/// Words before the axes.
const FIXED: usize = 17;

/// Words of an axis.
const AXIS: usize = 2;

/// Words of a signal.
const SIGNAL: usize = 2;

#[cfg(test)]
mod tests;
