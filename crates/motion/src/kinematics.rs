//! From wheels and joints to bases and tools, and back.
//!
//! | module | part |
//! |---|---|
//! | [`differential`] | [`DifferentialDrive`]: two driven wheels |
//! | [`omni`] | [`OmniBase`]: four wheels with rollers, Mecanum or omni |
//! | [`arm`] | [`SerialArm`]: joints in a row, from URDF (feature `arm`) |

pub mod arm;
pub mod differential;
pub mod omni;

use thiserror::Error;

pub use self::arm::{
    ArmError, ArmJoint, InverseError, InverseSettings, JointKind, JointLimits, Line, LineError, LineSpeed,
    Reached, SerialArm, SpatialVector, Transform, Workspace,
};
pub use self::differential::DifferentialDrive;
pub use self::omni::{OmniBase, OmniWheel};
pub use types::ToolPose;

/// A base that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum BaseError {
    /// A length that is not finite and above 0.
    #[error("{name}: expected a finite number of metres above 0, found {found}")]
    Length {
        /// Name of the length.
        name: &'static str,
        /// Value given.
        found: f64,
    },
    /// An angle that is not finite.
    #[error("{name}: expected a finite number of radians, found {found}")]
    Angle {
        /// Name of the angle.
        name: &'static str,
        /// Value given.
        found: f64,
    },
    /// Rollers across the wheel's way: it would drive nothing.
    #[error(
        "wheel {wheel}: rollers at a right angle to its direction drive nothing; expected less \
         than 89 degrees"
    )]
    Rollers {
        /// Number of the wheel, from 0.
        wheel: usize,
    },
    /// The wheels leave a motion free.
    #[error("the four wheels cannot drive the base in x, y and yaw: they leave a motion free")]
    Free,
}

const fn length(name: &'static str, found: f64) -> Result<f64, BaseError> {
    if found.is_finite() && found > 0.0 { Ok(found) } else { Err(BaseError::Length { name, found }) }
}

const fn angle(name: &'static str, found: f64) -> Result<f64, BaseError> {
    if found.is_finite() { Ok(found) } else { Err(BaseError::Angle { name, found }) }
}
