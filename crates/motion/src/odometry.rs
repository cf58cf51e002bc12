//! Pose of a base, from how far its wheels have turned.

use thiserror::Error;

use crate::base::{Displacement, Pose};
use crate::kinematics::{DifferentialDrive, OmniBase};
use crate::units::Radians;

/// A base with a displacement that follows from its wheels.
pub trait Rolling<const WHEELS: usize> {
    /// The arc along which the base moves while the wheels turn by these angles.
    fn displacement(&self, wheels: [Radians; WHEELS]) -> Displacement;
}

impl Rolling<2> for DifferentialDrive {
    fn displacement(&self, wheels: [Radians; 2]) -> Displacement {
        self.displacement(wheels)
    }
}

impl Rolling<4> for OmniBase {
    fn displacement(&self, wheels: [Radians; 4]) -> Displacement {
        self.displacement(wheels)
    }
}

/// Pose of a base, summed over arcs: between two updates the wheels are taken to turn evenly, and
/// then the arc is exact.
#[derive(Clone, Debug, PartialEq)]
pub struct Odometry<B, const WHEELS: usize> {
    base: B,
    pose: Pose,
    last: Option<[Radians; WHEELS]>,
}

impl<B: Rolling<WHEELS>, const WHEELS: usize> Odometry<B, WHEELS> {
    /// At the origin, looking along x.
    #[must_use]
    pub const fn new(base: B) -> Self {
        Self { base, pose: Pose::ORIGIN, last: None }
    }

    /// The wheels stand at these positions now: the pose after it. The first positions are where
    /// they begin.
    ///
    /// # Errors
    /// A position that is not finite: nothing changes.
    pub fn update(&mut self, wheels: [Radians; WHEELS]) -> Result<Pose, OdometryError> {
        if let Some(wheel) = wheels.iter().position(|position| !position.is_finite()) {
            return Err(OdometryError { wheel, found: wheels[wheel].0 });
        }
        if let Some(last) = self.last {
            let turned = core::array::from_fn(|wheel| wheels[wheel] - last[wheel]);
            self.pose = self.pose.moved(self.base.displacement(turned));
        }
        self.last = Some(wheels);
        Ok(self.pose)
    }

    /// Pose of the base.
    #[must_use]
    pub const fn pose(&self) -> Pose {
        self.pose
    }

    /// Sets the pose of the base; the wheels continue from their positions.
    pub const fn place(&mut self, pose: Pose) {
        self.pose = pose;
    }

    /// The wheels jumped without the base (a drive was homed, a counter restarted): the next
    /// positions are the new start.
    pub const fn restart(&mut self) {
        self.last = None;
    }

    /// The base.
    pub const fn base(&self) -> &B {
        &self.base
    }
}

/// A wheel's position that means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[error("wheel {wheel}: expected a finite number of radians, found {found}")]
pub struct OdometryError {
    /// Number of the wheel, from 0.
    pub wheel: usize,
    /// Number found.
    pub found: f64,
}
