//! Port `trajectory`: motions of several axes through points, as ROS 2's action FollowJointTrajectory knows them.
//!
//! A client sends [`Begin`], then every [`Point`] in order, then [`Order::Commit`], all with one id that it has not used
//! before. The answers are [`Report`]s: *accepted* or *rejected* once, and after *accepted* one of *succeeded*, *aborted*
//! and *canceled*. A trajectory that is accepted while another runs takes its place without a step; the other is aborted
//! as replaced. [`Order::Cancel`] brings the axes to rest.
//!
//! Codes for the result of FollowJointTrajectory are [`Rejection::result_code`] and [`Abort::result_code`].

use super::codec::{self, HEAD, Head, Reader, Rows, axes, no_number, unknown_kind};
use super::{DecodeError, Found, MOST_AXES, NoRoom};

mod report;

pub use report::{Abort, Outcome, REPORT_SIZE, Rejection, Report};

/// Name of the port.
pub const PORT: &str = "trajectory";

/// Bytes of the longest message that speaks of `axes` axes, [`MOST_AXES`] at most: what the port's messages need room
/// for.
#[must_use]
pub const fn size(axes: usize) -> usize {
    let axes = if axes > MOST_AXES { MOST_AXES } else { axes };
    BEGIN + axes * BEGIN_AXIS
}

/// Messages from a client.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "they are decoded on the stack and not kept: a box would allocate"
)]
pub enum Order {
    /// A trajectory follows.
    Begin(Begin),
    /// One of its points.
    Point(Point),
    /// All points were sent: check it, and go. Kind 3, number 0.
    Commit {
        /// That of its begin.
        id: u64,
    },
    /// Come to rest. Kind 4, number 0. An id of 0 cancels whatever runs.
    Cancel {
        /// That of its begin.
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
/// | 24..32 | when time 0 is, ns of CLOCK_MONOTONIC, u64; 0 for as soon as it is committed |
/// | 32..40 | how much later than its last point the goal may be reached, ns, u64; 0 and u64::MAX as for a [`Tolerance`] |
/// | then of each axis | |
/// | +0..4 | its index, u32 |
/// | +4..8 | 0 |
/// | +8..16 | tolerance of position on the way, f64 |
/// | +16..24 | tolerance of velocity on the way, f64 |
/// | +24..32 | tolerance of position at the goal, f64 |
/// | +32..40 | tolerance of velocity at the goal, f64 |
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Begin {
    /// Chosen by the client; not 0, and higher than that of every trajectory before it.
    pub id: u64,
    /// Points that follow.
    pub points: u32,
    /// When time 0 is, CLOCK_MONOTONIC; `None` for as soon as it is committed.
    pub start_ns: Option<u64>,
    /// How much later than its last point the goal may be reached, in ns.
    pub goal_time: GoalTime,
    /// The axes, in the order of the points' rows.
    pub axes: Rows<AxisTolerances>,
}

/// How much later than the last point the goal may be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GoalTime {
    /// As the robot file says.
    #[default]
    Default,
    /// No matter how much.
    Unlimited,
    /// This much, ns.
    Within(u64),
}

/// An axis of a trajectory, and how well it has to follow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AxisTolerances {
    /// Index of the axis in the description.
    pub axis: u32,
    /// Of position on the way, rad.
    pub path_position: Tolerance,
    /// Of velocity on the way, rad/s.
    pub path_velocity: Tolerance,
    /// Of position at the goal, rad.
    pub goal_position: Tolerance,
    /// Of velocity at the goal, rad/s.
    pub goal_velocity: Tolerance,
}

/// How far off is not too far. On the wire as ROS writes it: 0 the default, -1 unlimited, above 0 the tolerance.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Tolerance {
    /// As the robot file says.
    #[default]
    Default,
    /// Anything goes.
    Unlimited,
    /// This much either way; above 0.
    Within(f64),
}

/// One point.
///
/// | bytes | what |
/// |---|---|
/// | 0..16 | head: kind 2, index from 0, id |
/// | 16..20 | number of axes, u32: as the begin said |
/// | 20..24 | u32: bit 0 velocities are there, bit 1 accelerations are there (only beside velocities) |
/// | 24..32 | time from the start, ns, u64 |
/// | then | of each axis the position, f64; then of each the velocity; then of each the acceleration |
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// That of the begin.
    pub id: u64,
    /// From 0, without gaps.
    pub index: u32,
    /// ns.
    pub time_from_start_ns: u64,
    /// rad, one for each axis of the begin.
    pub positions: Rows<f64>,
    /// rad/s, one for each axis, or none at all.
    pub velocities: Rows<f64>,
    /// rad/s^2, one for each axis, or none at all; only beside velocities.
    pub accelerations: Rows<f64>,
}

impl Order {
    /// Writes it; gives its length.
    ///
    /// # Errors
    /// Less room than it takes; [`size`] is enough for each.
    pub fn encode(&self, buffer: &mut [u8]) -> Result<usize, NoRoom> {
        match self {
            Self::Begin(begin) => begin.encode(buffer),
            Self::Point(point) => point.encode(buffer),
            Self::Commit { id } => Ok(codec::begin(buffer, HEAD, head(3, 0, *id))?.finish()),
            Self::Cancel { id } => Ok(codec::begin(buffer, HEAD, head(4, 0, *id))?.finish()),
        }
    }

    /// Reads it.
    ///
    /// # Errors
    /// The first field that is not as it should be.
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
            // There is room for as many as `axes` allows.
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
    /// The tolerance in numbers, where `default` is the robot file's; `None` where there is no bound.
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

/// Bytes of a begin before its axes, and of each of them.
const BEGIN: usize = 40;
const BEGIN_AXIS: usize = 40;
/// Bytes of a point before its rows.
const POINT: usize = 32;

#[cfg(test)]
mod tests;
