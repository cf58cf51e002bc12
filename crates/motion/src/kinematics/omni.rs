//! A base on four wheels with rollers: it moves ahead, aside and about.

use glam::{DMat3, DVec3};

use super::{BaseError, angle, length};
use crate::base::{Displacement, Twist};
use crate::units::{Metres, MetresPerSecond, Radians, RadiansPerSecond};

/// Four wheels with rollers: Mecanum, omni, or any mixture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OmniBase {
    /// Twist to wheels, a row each.
    inverse: [DVec3; 4],
    /// Wheels to twist, a column each: the least squares of `inverse`.
    forward: [DVec3; 4],
}

/// A wheel with rollers around its rim.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OmniWheel {
    /// Point of contact with the floor, ahead of the middle of the base.
    pub x: Metres,
    /// Point of contact with the floor, to the left of it.
    pub y: Metres,
    /// Direction it drives to when it turns forward, counter-clockwise from ahead.
    pub direction: Radians,
    /// Axis of the roller on the floor, counter-clockwise from `direction`: 0 for an omni wheel,
    /// +-45 degrees for most Mecanum wheels.
    pub roller: Radians,
    /// Half of its diameter over the rollers.
    pub radius: Metres,
}

impl OmniBase {
    /// Four wheels as they are.
    ///
    /// # Errors
    /// A number that is not finite, a radius that is not above 0, rollers that drive nothing,
    /// wheels that leave a motion of the base free.
    pub fn new(wheels: [OmniWheel; 4]) -> Result<Self, BaseError> {
        let mut inverse = [DVec3::ZERO; 4];
        for (number, (wheel, row)) in wheels.iter().zip(&mut inverse).enumerate() {
            let radius = length("wheel radius", wheel.radius.0)?;
            let roller = angle("angle of the rollers", wheel.roller.0)?;
            let direction = angle("direction of a wheel", wheel.direction.0)?;
            if !(wheel.x.is_finite() && wheel.y.is_finite()) {
                return Err(BaseError::Length { name: "place of a wheel", found: f64::NAN });
            }
            if roller.cos().abs() < LEAST_GRIP {
                return Err(BaseError::Rollers { wheel: number });
            }
            // The roller is free across its axis; along it the wheel and the floor move alike: (v +
            // yaw x place) . axis = radius * turning * cos(roller).
            let (sin, cos) = (direction + roller).sin_cos();
            let grip = radius * roller.cos();
            let about = wheel.x.0 * sin - wheel.y.0 * cos;
            *row = DVec3::new(cos, sin, about) / grip;
        }
        // Columns of one size, so that the test for a free motion does not depend on metres and
        // radians.
        let sizes = inverse.iter().map(|row| row * row).sum::<DVec3>().map(f64::sqrt);
        if !(sizes.cmpgt(DVec3::ZERO).all()) {
            return Err(BaseError::Free);
        }
        let even = inverse.map(|row| row / sizes);
        let square: DMat3 =
            even.iter().map(|row| DMat3::from_cols(row * row.x, row * row.y, row * row.z)).sum();
        // Of columns of length 1: no motion is driven by less than `FREE` unless the inverse is as
        // large.
        let back = square.inverse();
        let largest = back.to_cols_array().iter().fold(0.0, |most: f64, number| most.max(number.abs()));
        if !(square.determinant() != 0.0 && largest < 1.0 / (FREE * FREE)) {
            return Err(BaseError::Free);
        }
        let forward = even.map(|row| back * row / sizes);
        Ok(Self { inverse, forward })
    }

    /// Mecanum wheels at the corners of a rectangle, all driving ahead: front left, front right,
    /// rear left, rear right. `wheelbase` is between front and rear axles, `track` between left and
    /// right wheels; `roller` is the angle between the axles of roller and wheel, 45 degrees for
    /// most. Seen from above the rollers point to the middle of the base (an "X"); the rollers on
    /// the floor lie across.
    ///
    /// # Errors
    /// As [`OmniBase::new`].
    pub fn mecanum(
        wheel_radius: Metres,
        wheelbase: Metres,
        track: Metres,
        roller: Radians,
    ) -> Result<Self, BaseError> {
        let half = length("wheelbase", wheelbase.0)? / 2.0;
        let aside = length("track", track.0)? / 2.0;
        let wheel = |front: f64, left: f64| OmniWheel {
            x: Metres(front * half),
            y: Metres(left * aside),
            direction: Radians::ZERO,
            roller: (Radians(core::f64::consts::FRAC_PI_2) - roller) * (-front * left),
            radius: wheel_radius,
        };
        Self::new([wheel(1.0, 1.0), wheel(1.0, -1.0), wheel(-1.0, 1.0), wheel(-1.0, -1.0)])
    }

    /// Omni wheels on a circle of `arm` about the middle, a quarter turn apart, each driving
    /// counter-clockwise around it. The first is at `first`, counter-clockwise from ahead (45
    /// degrees for a base with a wheel at each corner).
    ///
    /// # Errors
    /// As [`OmniBase::new`].
    pub fn omni(wheel_radius: Metres, arm: Metres, first: Radians) -> Result<Self, BaseError> {
        let arm = length("distance of the wheels from the middle", arm.0)?;
        let wheel = |number: f64| {
            let at = first + Radians(number * core::f64::consts::FRAC_PI_2);
            let (sin, cos) = at.0.sin_cos();
            OmniWheel {
                x: Metres(arm * cos),
                y: Metres(arm * sin),
                direction: at + Radians(core::f64::consts::FRAC_PI_2),
                roller: Radians::ZERO,
                radius: wheel_radius,
            }
        };
        Self::new([wheel(0.0), wheel(1.0), wheel(2.0), wheel(3.0)])
    }

    /// Velocities of the wheels for a twist, in their order.
    #[must_use]
    pub fn wheels(&self, twist: Twist) -> [RadiansPerSecond; 4] {
        let twist = DVec3::new(twist.x.0, twist.y.0, twist.yaw.0);
        self.inverse.map(|row| RadiansPerSecond(row.dot(twist)))
    }

    /// The twist nearest to the wheels' velocities: four wheels can contradict each other.
    #[must_use]
    pub fn twist(&self, wheels: [RadiansPerSecond; 4]) -> Twist {
        let moved = self.displacement(wheels.map(|wheel| Radians(wheel.0)));
        Twist {
            x: MetresPerSecond(moved.x.0),
            y: MetresPerSecond(moved.y.0),
            yaw: RadiansPerSecond(moved.yaw.0),
        }
    }

    /// The arc along which the base moves while the wheels turn by these angles.
    #[must_use]
    pub fn displacement(&self, wheels: [Radians; 4]) -> Displacement {
        let moved: DVec3 = self.forward.iter().zip(wheels).map(|(column, wheel)| column * wheel.0).sum();
        Displacement { x: Metres(moved.x), y: Metres(moved.y), yaw: Radians(moved.z) }
    }

    /// Contradiction of the wheels: their velocities minus the nearest twist. It grows when a wheel
    /// slips.
    #[must_use]
    pub fn slip(&self, wheels: [RadiansPerSecond; 4]) -> RadiansPerSecond {
        let made = self.wheels(self.twist(wheels));
        let square: f64 = wheels.iter().zip(made).map(|(is, made)| (is.0 - made.0).powi(2)).sum();
        RadiansPerSecond(square.sqrt())
    }
}

/// Cosine of the steepest rollers: 89 degrees.
const LEAST_GRIP: f64 = 0.017;

/// Smallest part of the largest singular value, squared in the least squares, that still drives a
/// motion.
const FREE: f64 = 1e-6;
