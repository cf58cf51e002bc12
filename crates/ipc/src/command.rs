//! Commands to the cycle from outside; the newest one counts.

mod ends;
pub mod lease;
pub(crate) mod words;

pub use ends::{Read, Reader, SendError, Writer};
pub(crate) use ends::{Regions, now_ns};

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
    pub pose: Option<Pose>,
    /// Target of each axis, in the order of [`crate::description::Description::axes`]; `None` commands
    /// nothing for it.
    pub axes: Vec<Option<AxisTarget>>,
    /// Value of each output that is set from outside, in the order of
    /// [`crate::description::Description::commanded`]; `None` leaves it as it is.
    pub signals: Vec<Option<types::Value>>,
}

/// Velocity of a base in its own frame: x ahead, y to the left, yaw counter-clockwise (REP 103).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Twist {
    /// Forward velocity, m/s.
    pub x: f64,
    /// Velocity to the left, m/s; a differential drive cannot follow it.
    pub y: f64,
    /// Yaw rate, rad/s, counter-clockwise.
    pub yaw: f64,
}

/// Pose of an arm's tool in the frame of its base link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pose {
    /// x, y, z, m.
    pub position: [f64; 3],
    /// Unit quaternion: x, y, z, w.
    pub orientation: [f64; 4],
}

/// Target of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AxisTarget {
    /// Position, rad (m for a linear axis).
    Position(f64),
    /// Velocity, rad/s.
    Velocity(f64),
    /// Torque at the axis, N m.
    Effort(f64),
}
