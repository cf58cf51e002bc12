//! Bases that move about on the floor, in the frames of REP 103: x ahead, y to the left, yaw counter-clockwise.

use crate::units::{Metres, MetresPerSecond, Radians, RadiansPerSecond};

/// Velocity of a base in its own frame.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Twist {
    /// Ahead.
    pub x: MetresPerSecond,
    /// To the left.
    pub y: MetresPerSecond,
    /// Counter-clockwise.
    pub yaw: RadiansPerSecond,
}

/// Place of a base on the floor.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pose {
    /// East of the start, where the base looked east.
    pub x: Metres,
    /// North of it.
    pub y: Metres,
    /// Heading, counter-clockwise from east; not wrapped.
    pub yaw: Radians,
}
