//! A base with two driven wheels side by side.

use super::{BaseError, length};
use crate::base::{Displacement, Twist};
use crate::units::{Metres, MetresPerSecond, Radians, RadiansPerSecond};

/// Two driven wheels, left and right, on one axle; the base turns about the middle between them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DifferentialDrive {
    radius: f64,
    track: f64,
}

impl DifferentialDrive {
    /// Wheels of `wheel_radius`, `track` apart between the points where they touch the floor.
    ///
    /// # Errors
    /// A length that is not finite and above 0.
    pub fn new(wheel_radius: Metres, track: Metres) -> Result<Self, BaseError> {
        Ok(Self { radius: length("wheel radius", wheel_radius.0)?, track: length("track", track.0)? })
    }

    /// Velocities of the wheels, left and right, for a twist; both forward are positive. Its y is
    /// not possible and plays no part.
    #[must_use]
    pub fn wheels(&self, twist: Twist) -> [RadiansPerSecond; 2] {
        let turn = twist.yaw.0 * self.track / 2.0;
        [(twist.x.0 - turn) / self.radius, (twist.x.0 + turn) / self.radius].map(RadiansPerSecond)
    }

    /// The twist that the wheels, left and right, make.
    #[must_use]
    pub fn twist(&self, [left, right]: [RadiansPerSecond; 2]) -> Twist {
        let moved = self.displacement([Radians(left.0), Radians(right.0)]);
        Twist {
            x: MetresPerSecond(moved.x.0),
            y: MetresPerSecond::ZERO,
            yaw: RadiansPerSecond(moved.yaw.0),
        }
    }

    /// The arc along which the base moves while the wheels turn by these angles.
    #[must_use]
    pub fn displacement(&self, [left, right]: [Radians; 2]) -> Displacement {
        Displacement {
            x: Metres((left.0 + right.0) * self.radius / 2.0),
            y: Metres::ZERO,
            yaw: Radians((right.0 - left.0) * self.radius / self.track),
        }
    }
}
