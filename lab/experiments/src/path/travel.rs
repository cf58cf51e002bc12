//! A base that follows a path: its set-points of position and velocity.

use super::{Path, PathError};
use crate::convolution::{ConvolutionProfile, PathLimits};
use motion::base::{Pose, Twist};
use motion::units::{Metres, MetresPerSecond, Radians, RadiansPerSecond, Seconds};

/// A path, travelled from rest to rest with the central velocity of a [`ConvolutionProfile`].
#[derive(Clone, Debug, PartialEq)]
pub struct PathMotion {
    path: Path,
    profile: ConvolutionProfile,
    heading: Heading,
}

/// Direction in which the base looks on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Heading {
    /// Along the path: all that a differential drive can.
    #[default]
    Along,
    /// Always to the same side: an omnidirectional base.
    Fixed(Radians),
    /// From one side to another, evenly along the way: an omnidirectional base.
    Turning {
        /// At the begin.
        from: Radians,
        /// At the end.
        to: Radians,
    },
}

/// Pose and motion of a base at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reference {
    /// Its place.
    pub pose: Pose,
    /// Its velocity in its own frame.
    pub twist: Twist,
}

impl PathMotion {
    /// `limits` hold along the path; the velocity is lowered further where the tightest bend asks
    /// for it, so that the base never accelerates to the side harder than along its way.
    ///
    /// # Errors
    /// Limits that mean nothing.
    pub fn new(path: Path, mut limits: PathLimits, heading: Heading) -> Result<Self, PathError> {
        let tightest = path.tightest();
        if tightest > 0.0 && limits.acceleration.0 > 0.0 {
            let bend = MetresPerSecond((limits.acceleration.0 / tightest).sqrt());
            if bend < limits.velocity {
                limits.velocity = bend;
            }
        }
        let profile = ConvolutionProfile::new(path.length(), limits)?;
        Ok(Self { path, profile, heading })
    }

    /// From its begin to rest.
    #[must_use]
    pub fn duration(&self) -> Seconds {
        self.profile.duration()
    }

    /// The central velocity over time.
    #[must_use]
    pub const fn profile(&self) -> &ConvolutionProfile {
        &self.profile
    }

    /// The way.
    #[must_use]
    pub const fn path(&self) -> &Path {
        &self.path
    }

    /// Pose and motion of the base `elapsed` after the begin.
    #[must_use]
    pub fn at(&self, elapsed: Seconds) -> Reference {
        let point = self.profile.at(elapsed);
        reference(&self.path, self.heading, point.distance, point.velocity)
    }
}

/// The central velocity at which the fastest wheel just reaches `limit` somewhere on the way;
/// `wheels` are the velocities of a base's wheels for a twist. Infinite if no wheel ever turns.
pub fn velocity_for_wheels<const WHEELS: usize>(
    path: &Path,
    heading: Heading,
    wheels: impl Fn(Twist) -> [RadiansPerSecond; WHEELS],
    limit: RadiansPerSecond,
) -> MetresPerSecond {
    let fastest = |sample: usize| {
        let distance = path.length() * (sample as f64 / SAMPLES as f64);
        let twist = reference(path, heading, distance, MetresPerSecond(1.0)).twist;
        wheels(twist).iter().map(|wheel| wheel.0.abs()).fold(0.0, f64::max)
    };
    MetresPerSecond(limit.0 / (0..=SAMPLES).map(fastest).fold(0.0, f64::max))
}

fn reference(path: &Path, heading: Heading, distance: Metres, velocity: MetresPerSecond) -> Reference {
    let station = path.at(distance);
    let (yaw, turning) = match heading {
        Heading::Along => (station.pose.yaw, station.curvature),
        Heading::Fixed(yaw) => (yaw, 0.0),
        Heading::Turning { from, to } => {
            (from + (to - from) * (distance / path.length()), (to - from).0 / path.length().0)
        }
    };
    let (sin, cos) = (station.pose.yaw - yaw).0.sin_cos();
    Reference {
        pose: Pose { yaw, ..station.pose },
        twist: Twist { x: velocity * cos, y: velocity * sin, yaw: RadiansPerSecond(velocity.0 * turning) },
    }
}

/// Places along the path at which the wheels are checked.
const SAMPLES: usize = 4096;
