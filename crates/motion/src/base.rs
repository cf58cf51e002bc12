//! Bases that move about on the floor, in the frames of REP 103: x ahead, y to the left, yaw
//! counter-clockwise.

pub use types::Twist;

use crate::units::{Metres, Radians, Seconds};

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

impl Pose {
    /// Origin of every base.
    pub const ORIGIN: Self = Self { x: Metres::ZERO, y: Metres::ZERO, yaw: Radians::ZERO };

    /// Pose of the base after it moved with one constant `twist` for `time`: an arc of a circle,
    /// exactly.
    #[must_use]
    pub fn after(self, twist: Twist, time: Seconds) -> Self {
        self.moved(Displacement { x: twist.x * time, y: twist.y * time, yaw: twist.yaw * time })
    }

    /// Pose after a displacement along one arc.
    #[must_use]
    pub fn moved(self, by: Displacement) -> Self {
        // The chord of the arc, seen from its begin.
        let (along, aside) = chord(by.yaw.0);
        let x = by.x.0 * along - by.y.0 * aside;
        let y = by.x.0 * aside + by.y.0 * along;
        let (sin, cos) = self.yaw.0.sin_cos();
        Self {
            x: Metres(self.x.0 + cos * x - sin * y),
            y: Metres(self.y.0 + sin * x + cos * y),
            yaw: self.yaw + by.yaw,
        }
    }

    /// Straight distance to another place.
    #[must_use]
    pub fn distance_to(self, other: Self) -> Metres {
        Metres((other.x - self.x).0.hypot((other.y - self.y).0))
    }
}

/// A short motion of a base in its own frame: a twist times the time it lasts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Displacement {
    /// Ahead, along the arc.
    pub x: Metres,
    /// To the left, along the arc.
    pub y: Metres,
    /// Counter-clockwise.
    pub yaw: Radians,
}

/// `sin a / a` and `(1 - cos a) / a`, without loss where `a` is small.
fn chord(angle: f64) -> (f64, f64) {
    if angle.abs() < 1e-4 {
        let square = angle * angle;
        return (1.0 - square / 6.0, angle / 2.0 * (1.0 - square / 12.0));
    }
    let half = (angle / 2.0).sin();
    (angle.sin() / angle, 2.0 * half * half / angle)
}
