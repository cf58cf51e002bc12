//! Port `trajectory`: motions of several axes through points, as in ROS 2's action
//! FollowJointTrajectory.
//!
//! A client sends [`Begin`], then every [`Point`] in order, then [`Order::Commit`], all with one id
//! that it has not used before. The answers are [`Report`]s: *accepted* or *rejected* once, and
//! after *accepted* one of *succeeded*, *aborted* and *canceled*. A trajectory accepted while
//! another runs replaces it without a step; the other is reported as aborted, replaced.
//! [`Order::Cancel`] brings the axes to rest.
//!
//! The codes for the result of FollowJointTrajectory are [`Rejection::result_code`] and
//! [`Abort::result_code`].

use super::codec::{self, HEAD, Head, Reader, Rows, axes, no_number, unknown_kind};
use super::{DecodeError, Found, MOST_AXES, NoRoom};

mod report;

pub use report::{Abort, Outcome, REPORT_SIZE, Rejection, Report};

/// Name of the port.
pub const PORT: &str = "trajectory";

/// Bytes of the longest message for `axes` axes, at most [`MOST_AXES`]: the message size the port
/// needs.
#[must_use]
pub const fn size(axes: usize) -> usize {
    let axes = if axes > MOST_AXES { MOST_AXES } else { axes };
    BEGIN + axes * BEGIN_AXIS
}

/// Message of a client.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "they are decoded on the stack and not kept: a box would allocate"
)]
pub enum Order {
    /// Announces a trajectory.
    Begin(Begin),
    /// A point of the trajectory.
    Point(Point),
    /// All points were sent: check the trajectory and start it. Kind 3, number 0.
    Commit {
        /// Identifier of its begin.
        id: u64,
    },
    /// Brings the axes to rest. Kind 4, number 0. An id of 0 cancels any trajectory.
    Cancel {
        /// Identifier of its begin.
        id: u64,
    },
}

/// Announces a trajectory.
///
/// | bytes | what |
/// |---|---|
/// | 0..16 | head: kind 1, number of axes (1 to 64), id (not 0) |
/// | 16..20 | number of points, u32 |
/// | 20..24 | 0 |
/// | 24..32 | instant of time 0, ns of CLOCK_MONOTONIC, u64; 0 for the commit |
/// | 32..40 | time limit for the goal after the last point, ns, u64; as for a [`Tolerance`] |
/// | then of each axis | |
/// | +0..4 | its index, u32 |
/// | +4..8 | 0 |
/// | +8..16 | tolerance of position on the way, f64 |
/// | +16..24 | tolerance of velocity on the way, f64 |
/// | +24..32 | tolerance of position at the goal, f64 |
/// | +32..40 | tolerance of velocity at the goal, f64 |
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Begin {
    /// Identifier chosen by the client; not 0, and higher than that of every earlier trajectory.
    pub id: u64,
    /// Number of points that follow.
    pub points: u32,
    /// Instant of time 0, CLOCK_MONOTONIC; `None` for the commit.
    pub start_ns: Option<u64>,
    /// Time after the last point within which the goal must be reached.
    pub goal_time: GoalTime,
    /// Axes, in the order of the points' rows.
    pub axes: Rows<AxisTolerances>,
}

/// Time after the last point within which the goal must be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GoalTime {
    /// Value of the robot file.
    #[default]
    Default,
    /// No bound.
    Unlimited,
    /// This time, ns.
    Within(u64),
}

/// Tolerances of an axis of a trajectory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AxisTolerances {
    /// Index of the axis in the description.
    pub axis: u32,
    /// Tolerance of position on the way, rad.
    pub path_position: Tolerance,
    /// Tolerance of velocity on the way, rad/s.
    pub path_velocity: Tolerance,
    /// Tolerance of position at the goal, rad.
    pub goal_position: Tolerance,
    /// Tolerance of velocity at the goal, rad/s.
    pub goal_velocity: Tolerance,
}

/// Tolerance of a value. On the wire as in ROS: 0 for the default, -1 for unlimited, above 0 the
/// tolerance.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Tolerance {
    /// Value of the robot file.
    #[default]
    Default,
    /// No bound.
    Unlimited,
    /// This deviation in either direction; above 0.
    Within(f64),
}

/// Point of a trajectory.
///
/// | bytes | what |
/// |---|---|
/// | 0..16 | head: kind 2, index from 0, id |
/// | 16..20 | number of axes, u32: as the begin said |
/// | 20..24 | u32: bit 0 set with velocities, bit 1 set with accelerations (only with velocities) |
/// | 24..32 | time from the start, ns, u64 |
/// | then | position of each axis, f64; then velocity of each; then acceleration of each |
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Identifier of the begin.
    pub id: u64,
    /// Index, from 0, without gaps.
    pub index: u32,
    /// Time from the start of the trajectory, ns.
    pub time_from_start_ns: u64,
    /// Positions, rad, one for each axis of the begin.
    pub positions: Rows<f64>,
    /// Velocities, rad/s, one for each axis, or none at all.
    pub velocities: Rows<f64>,
    /// Accelerations, rad/s^2, one for each axis, or none at all; only with velocities.
    pub accelerations: Rows<f64>,
}

impl Order {
    /// Encodes the message; returns its length.
    ///
    /// # Errors
    /// The buffer is too short; [`size`] bytes are enough for any message.
    pub fn encode(&self, buffer: &mut [u8]) -> Result<usize, NoRoom> {
        match self {
            Self::Begin(begin) => begin.encode(buffer),
            Self::Point(point) => point.encode(buffer),
            Self::Commit { id } => Ok(codec::begin(buffer, HEAD, head(3, 0, *id))?.finish()),
            Self::Cancel { id } => Ok(codec::begin(buffer, HEAD, head(4, 0, *id))?.finish()),
        }
    }

    /// Decodes a message.
    ///
    /// # Errors
    /// The first field that is not valid.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let (reader, head) = Reader::begin(bytes)?;
        match head.kind {
            1 => Begin::decode(reader, head).map(Self::Begin),
            2 => Point::decode(reader, head).map(Self::Point),
            3 | 4 => {
                no_number(head)?;
                reader.finish()?;
                Ok(if head.kind == 3 { Self::Commit { id: head.id } } else { Self::Cancel { id: head.id } })
            }
            _ => Err(unknown_kind("1 to 4, a trajectory's order", head)),
        }
    }
}

impl Begin {
    fn encode(&self, buffer: &mut [u8]) -> Result<usize, NoRoom> {
        let length = BEGIN + self.axes.len() * BEGIN_AXIS;
        let mut writer = codec::begin(buffer, length, head(1, self.axes.len() as u32, self.id))?;
        writer.u32(self.points);
        writer.u32(0);
        writer.u64(self.start_ns.unwrap_or(0));
        writer.u64(match self.goal_time {
            GoalTime::Default => 0,
            GoalTime::Unlimited => u64::MAX,
            GoalTime::Within(ns) => ns,
        });
        for axis in self.axes.iter() {
            writer.u32(axis.axis);
            writer.u32(0);
            axis.all().into_iter().for_each(|tolerance| writer.f64(tolerance.number()));
        }
        Ok(writer.finish())
    }

    fn decode(mut reader: Reader<'_>, head: Head) -> Result<Self, DecodeError> {
        let count = axes(head.number)?;
        if head.id == 0 {
            return Err(DecodeError { field: "id", expected: "any but 0", found: Found::Number(0) });
        }
        let points = reader.u32("number of points")?;
        zero(reader.u32("bytes 20..24")?)?;
        let start = reader.u64("start")?;
        let goal_time = match reader.u64("goal time tolerance")? {
            0 => GoalTime::Default,
            u64::MAX => GoalTime::Unlimited,
            ns => GoalTime::Within(ns),
        };
        let mut rows = Rows::new();
        for _ in 0..count {
            let axis = reader.u32("axis")?;
            zero(reader.u32("bytes after the axis")?)?;
            let mut tolerance = |field| Tolerance::read(&mut reader, field);
            let axis = AxisTolerances {
                axis,
                path_position: tolerance("path tolerance of position")?,
                path_velocity: tolerance("path tolerance of velocity")?,
                goal_position: tolerance("goal tolerance of position")?,
                goal_velocity: tolerance("goal tolerance of velocity")?,
            };
            // `axes` has bounded the number: a row has space for all.
            let _ = rows.push(axis);
        }
        reader.finish()?;
        Ok(Self { id: head.id, points, start_ns: (start != 0).then_some(start), goal_time, axes: rows })
    }
}

impl AxisTolerances {
    fn all(&self) -> [Tolerance; 4] {
        [self.path_position, self.path_velocity, self.goal_position, self.goal_velocity]
    }
}

impl Tolerance {
    /// Tolerance as a number, with the robot file's `default`; `None` for no bound.
    #[must_use]
    pub fn or(self, default: Option<f64>) -> Option<f64> {
        match self {
            Self::Default => default,
            Self::Unlimited => None,
            Self::Within(tolerance) => Some(tolerance),
        }
    }

    fn number(self) -> f64 {
        match self {
            Self::Default => 0.0,
            Self::Unlimited => -1.0,
            Self::Within(tolerance) => tolerance,
        }
    }

    fn read(reader: &mut Reader<'_>, field: &'static str) -> Result<Self, DecodeError> {
        let number = reader.f64(field)?;
        if number == 0.0 {
            Ok(Self::Default)
        } else if number == -1.0 {
            Ok(Self::Unlimited)
        } else if number > 0.0 {
            Ok(Self::Within(number))
        } else {
            let expected = "0 (default), -1 (unlimited) or above 0";
            Err(DecodeError { field, expected, found: Found::Real(number) })
        }
    }
}

impl Point {
    fn encode(&self, buffer: &mut [u8]) -> Result<usize, NoRoom> {
        let rows = [&self.positions, &self.velocities, &self.accelerations];
        let length = POINT + rows.iter().map(|row| row.len() * 8).sum::<usize>();
        let mut writer = codec::begin(buffer, length, head(2, self.index, self.id))?;
        let flags = u32::from(!self.velocities.is_empty()) | u32::from(!self.accelerations.is_empty()) << 1;
        writer.u32(self.positions.len() as u32);
        writer.u32(flags);
        writer.u64(self.time_from_start_ns);
        rows.into_iter().flat_map(|row| row.iter()).for_each(|number| writer.f64(*number));
        Ok(writer.finish())
    }

    fn decode(mut reader: Reader<'_>, head: Head) -> Result<Self, DecodeError> {
        let count = axes(reader.u32("number of axes")?)?;
        let flags = reader.u32("flags")?;
        if !matches!(flags, 0 | 1 | 3) {
            let found = Found::Number(flags.into());
            return Err(DecodeError { field: "flags", expected: "0, 1 or 3", found });
        }
        let time_from_start_ns = reader.u64("time from start")?;
        let positions = reader.row("position", count)?;
        let velocities = reader.row("velocity", if flags & 1 != 0 { count } else { 0 })?;
        let accelerations = reader.row("acceleration", if flags & 2 != 0 { count } else { 0 })?;
        reader.finish()?;
        Ok(Self {
            id: head.id,
            index: head.number,
            time_from_start_ns,
            positions,
            velocities,
            accelerations,
        })
    }
}

fn head(kind: u16, number: u32, id: u64) -> Head {
    Head { kind, number, id }
}

fn zero(found: u32) -> Result<(), DecodeError> {
    let found_number = Found::Number(found.into());
    let wrong = DecodeError { field: "reserved bytes", expected: "0", found: found_number };
    if found == 0 { Ok(()) } else { Err(wrong) }
}

/// Bytes of a begin before its axes, and of each axis.
const BEGIN: usize = 40;
const BEGIN_AXIS: usize = 40;
/// Bytes of a point before its rows.
const POINT: usize = 32;

#[cfg(test)]
mod tests;
