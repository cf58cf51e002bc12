//! What a cycle is asked to do from outside: newest wins.

mod ends;
pub mod lease;
pub(crate) mod words;

pub(crate) use ends::Regions;
pub use ends::{Read, Reader, SendError, Writer};

/// One command, as its writer meant it. The real-time side checks every number before anything moves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Command {
    /// Counts up with every command of one writer.
    pub sequence: u64,
    /// When it was given, CLOCK_MONOTONIC.
    pub stamp_ns: u64,
    /// How long it holds from then on; when it is over the axes stop as the robot file says.
    pub time_to_live_ns: u64,
    /// Velocity of the base.
    pub twist: Option<Twist>,
    /// Target of each axis, in the order of [`crate::description::Description::axes`]; `None` asks nothing of it.
    pub axes: Vec<Option<AxisTarget>>,
}

/// Velocity of a base in its own frame: x ahead, y to the left, yaw counter-clockwise (REP 103).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Twist {
    /// m/s ahead.
    pub x: f64,
    /// m/s to the left; a differential drive cannot.
    pub y: f64,
    /// rad/s counter-clockwise.
    pub yaw: f64,
}

/// What an axis shall do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AxisTarget {
    /// To this position, rad (m for a linear axis).
    Position(f64),
    /// At this velocity, rad/s.
    Velocity(f64),
    /// With this torque at the axis, N m.
    Effort(f64),
}
