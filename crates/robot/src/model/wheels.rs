//! Kinematics of a base, from its file.

use motion::kinematics::{BaseError, DifferentialDrive, OmniBase, OmniWheel};
use motion::{Metres, Radians};

use super::{Base, BaseKind};

impl Base {
    /// Two driven wheels.
    ///
    /// # Errors
    /// A length that is not finite and above 0.
    pub fn two_wheels(&self) -> Result<DifferentialDrive, BaseError> {
        DifferentialDrive::new(Metres(self.wheel_radius), Metres(self.track))
    }

    /// Four wheels with rollers.
    ///
    /// # Errors
    /// A length that is not finite and above 0, or rollers that drive nothing.
    pub fn four_wheels(&self) -> Result<OmniBase, BaseError> {
        let (radius, track, wheelbase) =
            (Metres(self.wheel_radius), Metres(self.track), Metres(self.wheelbase));
        match self.kind {
            BaseKind::Mecanum => OmniBase::mecanum(radius, wheelbase, track, Radians(self.roller_angle)),
            BaseKind::Differential | BaseKind::Omni => OmniBase::new(self.corners()),
        }
    }

    /// Omni wheels at the corners: front left, front right, rear left, rear right. Each rolls along
    /// the diagonal of the other two, ahead where it turns forward.
    fn corners(&self) -> [OmniWheel; 4] {
        let wheel = |front: f64, left: f64| OmniWheel {
            x: Metres(front * self.wheelbase / 2.0),
            y: Metres(left * self.track / 2.0),
            direction: Radians(-front * left * std::f64::consts::FRAC_PI_4),
            roller: Radians::ZERO,
            radius: Metres(self.wheel_radius),
        };
        [wheel(1.0, 1.0), wheel(1.0, -1.0), wheel(-1.0, 1.0), wheel(-1.0, -1.0)]
    }
}
