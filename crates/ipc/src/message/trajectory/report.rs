//! Reports on a trajectory.

use std::fmt;

use super::head;
use crate::message::codec::{self, Reader, no_number, unknown_kind};
use crate::message::{DecodeError, Found, NoRoom};
use types::codes;

/// Report on a trajectory. The code is the code of a [`Rejection`] or [`Abort`], else 0.
///
/// | bytes | what |
/// |---|---|
/// | 0..16 | head: kind 17 accepted, 18 rejected, 19 succeeded, 20 aborted, 21 canceled; code; id |
/// | 16..20 | axis concerned, u32; u32::MAX for none |
/// | 20..24 | point concerned, u32; u32::MAX for none |
/// | 24..32 | value found there, f64; 0 for none |
/// | 32..40 | value allowed there, f64; 0 for none |
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Report {
    /// Identifier of the trajectory.
    pub id: u64,
    /// Outcome.
    pub outcome: Outcome,
    /// Index of the axis concerned.
    pub axis: Option<u32>,
    /// Index of the point concerned.
    pub point: Option<u32>,
    /// Value found there.
    pub found: f64,
    /// Value allowed there.
    pub allowed: f64,
}

/// Bytes of every [`Report`].
pub const REPORT_SIZE: usize = 40;

/// Outcome of a trajectory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The trajectory is valid and will be followed from its start.
    Accepted,
    /// The trajectory was never started.
    Rejected(Rejection),
    /// The goal was reached within its tolerances.
    Succeeded,
    /// The trajectory was aborted; the axes stop.
    Aborted(Abort),
    /// The trajectory was canceled; the axes stop.
    Canceled,
}

codes! {
    /// Reason for a rejected trajectory.
    Rejection: u32 {
        /// A message cannot be read.
        Malformed = 1, "a message that cannot be read";
        /// No points, or more than there is space for. `found` of `allowed`.
        Points = 2, "no points, or more than there is room for";
        /// A point missing, twice, or of another number of axes.
        Incomplete = 3, "a point is missing, comes twice, or has another number of axes";
        /// Times do not increase from point to point.
        Times = 4, "times do not rise from point to point";
        /// A position is beyond the limits of its axis.
        PositionLimit = 5, "a position behind the limits of its axis";
        /// A velocity is above its axis's limit, at a point or between two.
        VelocityLimit = 6, "faster than its axis may be";
        /// An acceleration is above its axis's limit, at a point or between two.
        AccelerationLimit = 7, "harder accelerated than its axis may be";
        /// The last point has a velocity.
        EndsMoving = 8, "the last point has a velocity";
        /// An axis does not exist, or is named twice.
        NoSuchAxis = 9, "an axis that does not exist, or an axis named twice";
        /// An axis is not moved by the active controller.
        OtherAxis = 10, "an axis that the active controller does not move";
        /// The whole trajectory lies in the past.
        Past = 11, "all of it lies in the past";
        /// The active controller follows no trajectories.
        NotActive = 12, "the active controller follows no trajectories";
        /// A drive is not enabled, or in fault.
        NotEnabled = 13, "a drive is not enabled";
        /// The cycle is being stopped, or the controller is stopping.
        Stopping = 14, "the axes are being stopped";
        /// The id is not higher than all former ones.
        Id = 15, "an id that is not higher than the ids before it";
        /// Another begin came before its commit, or it was canceled.
        Interrupted = 16, "another begin came before its commit, or it was cancelled";
        /// The first point cannot be reached from the current positions in the time given.
        Start = 17, "the first point cannot be reached from where the axes are in the time given";
        /// Supervision has stopped an axis; its state has the reason.
        Held = 18, "an axis is held after a stop: fix the cause, then reset it";
    }
}

codes! {
    /// Reason for an aborted trajectory.
    Abort: u32 {
        /// An axis left its tolerance on the way.
        PathTolerance = 1, "an axis deviated too far during the motion";
        /// An axis was outside its goal tolerance when the goal time was over.
        GoalTolerance = 2, "an axis was still too far off when the time for reaching the goal was over";
        /// Another trajectory replaced it.
        Replaced = 3, "another trajectory took its place";
        /// A drive failed, or supervision stopped an axis.
        Fault = 4, "a drive fell out or an axis was stopped";
        /// The axes were stopped or disabled, or the controller was switched.
        Stopped = 5, "the axes were stopped";
        /// At its start, the first point could not be reached from the current positions in the
        /// time given.
        Unreachable = 6, "its first point could not be reached from where the axes were";
    }
}

impl Rejection {
    /// `error_code` in the result of ROS 2's FollowJointTrajectory (control_msgs).
    #[must_use]
    pub const fn result_code(self) -> i32 {
        match self {
            Self::NoSuchAxis | Self::OtherAxis => -2,
            Self::Past => -3,
            _ => -1,
        }
    }
}

impl Abort {
    /// `error_code` in the result of ROS 2's FollowJointTrajectory (control_msgs).
    #[must_use]
    pub const fn result_code(self) -> i32 {
        match self {
            Self::PathTolerance | Self::Fault => -4,
            Self::GoalTolerance => -5,
            Self::Replaced | Self::Stopped | Self::Unreachable => -1,
        }
    }
}

impl Report {
    /// Creates a report without axis and point.
    #[must_use]
    pub const fn new(id: u64, outcome: Outcome) -> Self {
        Self { id, outcome, axis: None, point: None, found: 0.0, allowed: 0.0 }
    }

    /// Encodes the report; returns its length.
    ///
    /// # Errors
    /// The buffer is shorter than [`REPORT_SIZE`].
    pub fn encode(&self, buffer: &mut [u8]) -> Result<usize, NoRoom> {
        let (kind, number) = match self.outcome {
            Outcome::Accepted => (17, 0),
            Outcome::Rejected(rejection) => (18, rejection as u32),
            Outcome::Succeeded => (19, 0),
            Outcome::Aborted(abort) => (20, abort as u32),
            Outcome::Canceled => (21, 0),
        };
        let mut writer = codec::begin(buffer, REPORT_SIZE, head(kind, number, self.id))?;
        writer.u32(self.axis.unwrap_or(u32::MAX));
        writer.u32(self.point.unwrap_or(u32::MAX));
        writer.f64(self.found);
        writer.f64(self.allowed);
        Ok(writer.finish())
    }

    /// Decodes a report.
    ///
    /// # Errors
    /// The first field that is not valid.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let (mut reader, head) = Reader::begin(bytes)?;
        let unknown =
            |expected| DecodeError { field: "code", expected, found: Found::Number(head.number.into()) };
        if matches!(head.kind, 17 | 19 | 21) {
            no_number(head)?;
        }
        let outcome = match head.kind {
            17 => Outcome::Accepted,
            18 => Outcome::Rejected(Rejection::from_code(head.number).ok_or(unknown("1 to 17"))?),
            19 => Outcome::Succeeded,
            20 => Outcome::Aborted(Abort::from_code(head.number).ok_or(unknown("1 to 6"))?),
            21 => Outcome::Canceled,
            _ => return Err(unknown_kind("17 to 21, a trajectory's report", head)),
        };
        let place = |number| (number != u32::MAX).then_some(number);
        let report = Self {
            id: head.id,
            outcome,
            axis: place(reader.u32("axis")?),
            point: place(reader.u32("point")?),
            found: reader.f64("found")?,
            allowed: reader.f64("allowed")?,
        };
        reader.finish()?;
        Ok(report)
    }
}

/// Outcome in words, with axis, point, found and allowed value where they are set.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.outcome {
            Outcome::Accepted => f.write_str("accepted")?,
            Outcome::Rejected(code) => write!(f, "rejected: {code}")?,
            Outcome::Succeeded => f.write_str("succeeded")?,
            Outcome::Aborted(code) => write!(f, "aborted: {code}")?,
            Outcome::Canceled => f.write_str("canceled")?,
        }
        if let Some(axis) = self.axis {
            write!(f, ", axis {axis}")?;
        }
        if let Some(point) = self.point {
            write!(f, ", point {point}")?;
        }
        if self.found != 0.0 || self.allowed != 0.0 {
            write!(f, ", found {}, allowed {}", self.found, self.allowed)?;
        }
        Ok(())
    }
}
