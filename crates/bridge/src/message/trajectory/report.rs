//! What becomes of a trajectory.

use std::fmt;

use super::head;
use crate::message::codec::{self, Reader, no_number, unknown_kind};
use crate::message::{DecodeError, Found, NoRoom};

/// What becomes of a trajectory.
///
/// | bytes | what |
/// |---|---|
/// | 0..16 | head: kind 17 accepted, 18 rejected, 19 succeeded, 20 aborted, 21 canceled; the code of [`Rejection`] or [`Abort`], else 0; id |
/// | 16..20 | axis it concerns, u32; u32::MAX for none |
/// | 20..24 | point it concerns, u32; u32::MAX for none |
/// | 24..32 | what was found there, f64; 0 where nothing is to be told |
/// | 32..40 | what was allowed there, f64; 0 where nothing is to be told |
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Report {
    /// That of the trajectory.
    pub id: u64,
    /// What became of it.
    pub outcome: Outcome,
    /// Index of the axis it concerns.
    pub axis: Option<u32>,
    /// Index of the point it concerns.
    pub point: Option<u32>,
    /// What was found there.
    pub found: f64,
    /// What was allowed there.
    pub allowed: f64,
}

/// Bytes of every [`Report`].
pub const REPORT_SIZE: usize = 40;

/// What became of a trajectory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is well-formed and will be followed from its start on.
    Accepted,
    /// It was never begun.
    Rejected(Rejection),
    /// The goal was reached within its tolerances.
    Succeeded,
    /// It was given up on the way; the axes come to rest.
    Aborted(Abort),
    /// It was called off; the axes come to rest.
    Canceled,
}

macro_rules! codes {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $number:literal, $code:literal, $text:literal;)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u32)]
        pub enum $name {
            $($(#[$variant_doc])* $variant = $number,)+
        }

        impl $name {
            /// Every code.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// For people.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }

            /// `error_code` in the result of ROS 2's FollowJointTrajectory (control_msgs).
            #[must_use]
            pub const fn result_code(self) -> i32 {
                match self {
                    $(Self::$variant => $code,)+
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.text())
            }
        }
    };
}

codes! {
    /// Why a trajectory was not begun.
    Rejection {
        /// A message that cannot be read.
        Malformed = 1, -1, "a message that cannot be read";
        /// No points, or more than there is room for. `found` of `allowed`.
        Points = 2, -1, "no points, or more than there is room for";
        /// A point missing, twice, or of another number of axes.
        Incomplete = 3, -1, "a point is missing, comes twice, or has another number of axes";
        /// Times that do not rise from point to point.
        Times = 4, -1, "times do not rise from point to point";
        /// A position behind the limits of its axis.
        PositionLimit = 5, -1, "a position behind the limits of its axis";
        /// Faster than its axis may be, at a point or between two.
        VelocityLimit = 6, -1, "faster than its axis may be";
        /// Harder accelerated than its axis may be, at a point or between two.
        AccelerationLimit = 7, -1, "harder accelerated than its axis may be";
        /// The last point has a velocity.
        EndsMoving = 8, -1, "the last point has a velocity";
        /// An axis there is none of, or one named twice.
        NoSuchAxis = 9, -2, "an axis there is none of, or one named twice";
        /// An axis that the active controller does not move.
        OtherAxis = 10, -2, "an axis that the active controller does not move";
        /// All of it lies in the past.
        Past = 11, -3, "all of it lies in the past";
        /// The active controller follows no trajectories.
        NotActive = 12, -1, "the active controller follows no trajectories";
        /// A drive is not enabled, or in fault.
        NotEnabled = 13, -1, "a drive is not enabled";
        /// The cycle is being stopped, or the controller comes to rest.
        Stopping = 14, -1, "the axes are being stopped";
        /// An id that is not higher than those before it.
        Id = 15, -1, "an id that is not higher than those before it";
        /// Another begin came before its commit, or it was called off.
        Interrupted = 16, -1, "another begin came before its commit, or it was called off";
        /// The first point cannot be reached from where the axes are in the time given.
        Start = 17, -1, "the first point cannot be reached from where the axes are in the time given";
    }
}

codes! {
    /// Why a trajectory was given up.
    Abort {
        /// An axis was too far off on the way.
        PathTolerance = 1, -4, "an axis was too far off on the way";
        /// An axis was still too far off when the time for reaching the goal was over.
        GoalTolerance = 2, -5, "an axis was still too far off when the time for reaching the goal was over";
        /// Another trajectory took its place.
        Replaced = 3, 0, "another trajectory took its place";
        /// A drive fell out, or supervision stopped an axis.
        Fault = 4, -4, "a drive fell out or an axis was stopped";
        /// Stopped, disabled, or switched away from.
        Stopped = 5, 0, "the axes were stopped";
        /// When its start came, its first point could not be reached from where the axes were in the time given.
        Unreachable = 6, -1, "its first point could not be reached from where the axes were";
    }
}

impl Report {
    /// A report that concerns no axis and no point.
    #[must_use]
    pub const fn new(id: u64, outcome: Outcome) -> Self {
        Self { id, outcome, axis: None, point: None, found: 0.0, allowed: 0.0 }
    }

    /// Writes it; gives its length.
    ///
    /// # Errors
    /// Less room than [`REPORT_SIZE`].
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

    /// Reads it.
    ///
    /// # Errors
    /// The first field that is not as it should be.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let (mut reader, head) = Reader::begin(bytes)?;
        let unknown =
            |expected| DecodeError { field: "code", expected, found: Found::Number(head.number.into()) };
        if matches!(head.kind, 17 | 19 | 21) {
            no_number(head)?;
        }
        let outcome = match head.kind {
            17 => Outcome::Accepted,
            18 => {
                let rejection = Rejection::ALL.iter().find(|code| **code as u32 == head.number);
                Outcome::Rejected(*rejection.ok_or(unknown("1 to 17"))?)
            }
            19 => Outcome::Succeeded,
            20 => {
                let abort = Abort::ALL.iter().find(|code| **code as u32 == head.number);
                Outcome::Aborted(*abort.ok_or(unknown("1 to 6"))?)
            }
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

/// The outcome in words, with axis, point, what was found and what was allowed where they say something.
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
