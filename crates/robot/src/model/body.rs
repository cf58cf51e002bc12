//! Kinematics of a base, from its file.

use std::collections::BTreeMap;
use std::path::PathBuf;

use motion::kinematics::{BaseError, DifferentialDrive, OmniBase, OmniWheel};
use motion::{
    Metres, MetresPerSecond, MetresPerSecondCubed, MetresPerSecondSquared, Radians, RadiansPerSecond,
    RadiansPerSecondCubed, RadiansPerSecondSquared, TwistLimits,
};
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use types::BaseKind;

use super::usual;
use crate::error::{KEY, refused};
use crate::field::{Number, positive, readable};

/// `[base]`: mobile base of a robot.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Base {
    /// Arrangement of its wheels.
    pub kind: BaseKind,
    #[serde(default, deserialize_with = "positive")]
    pub(crate) wheel_diameter: Option<f64>,
    /// Radius of the wheels, in m.
    #[serde(default, deserialize_with = "positive")]
    pub wheel_radius: f64,
    /// Distance between the middles of the left and the right wheels, in m.
    #[serde(deserialize_with = "positive")]
    pub track: f64,
    /// Distance from the front axle, or the front wheels, to the rear one of a base with four
    /// wheels, in m.
    #[serde(default, deserialize_with = "positive")]
    pub wheelbase: f64,
    /// Angle between a roller's axle and the wheel's of a Mecanum base, in rad.
    #[serde(default = "usual_roller_angle", deserialize_with = "roller_angle")]
    pub roller_angle: f64,
    left: Option<String>,
    right: Option<String>,
    front_left: Option<String>,
    front_right: Option<String>,
    rear_left: Option<String>,
    rear_right: Option<String>,
    /// Limits of the base.
    #[serde(deserialize_with = "limits")]
    pub limits: TwistLimits,
    /// Fixed frame of odometry.
    #[serde(default = "usual_odometry_frame", deserialize_with = "readable")]
    pub odometry_frame: String,
    /// Frame of the base, which moves.
    #[serde(default = "usual_base_frame", deserialize_with = "readable")]
    pub base_frame: String,
    /// Indices of the wheels' axes: left, right; or front left, front right, rear left, rear right.
    /// A wheel's axis turns forward when the base moves ahead: a drive mounted in the opposite
    /// direction has a negative gear ratio.
    #[serde(skip)]
    pub wheels: Vec<usize>,
}

impl Base {
    /// Keys and names of two wheels, and of four.
    pub(crate) fn wheel_names(&self) -> [Vec<(&'static str, Option<&String>)>; 2] {
        let two = [("left", &self.left), ("right", &self.right)];
        let four = [
            ("front_left", &self.front_left),
            ("front_right", &self.front_right),
            ("rear_left", &self.rear_left),
            ("rear_right", &self.rear_right),
        ];
        [&two[..], &four[..]].map(|wheels| wheels.iter().map(|(key, name)| (*key, name.as_ref())).collect())
    }
}

/// `[arm]`: an arm, described by a URDF.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arm {
    /// Path of the URDF file.
    pub urdf: PathBuf,
    /// Reference link of poses; `None` for the root link.
    pub base: Option<String>,
    /// Link that moves to poses; `None` for the only end link.
    pub tool: Option<String>,
    #[serde(default, rename = "joints")]
    pub(crate) joint_of: BTreeMap<String, String>,
    /// Joint name of each axis, in the order of the axes; `None` for an axis that is not part of
    /// the arm.
    #[serde(skip)]
    pub joints: Vec<Option<String>>,
}

usual! {
    usual_roller_angle: f64 = core::f64::consts::FRAC_PI_4;
}

fn usual_odometry_frame() -> String {
    "odom".to_owned()
}

fn usual_base_frame() -> String {
    "base_link".to_owned()
}

/// Rollers across turn freely, rollers along have no effect; a base can be steered only in between.
fn roller_angle<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let (least, most) = (0.1, 1.47);
    let radians: f64 = positive(deserializer)?;
    if (least..=most).contains(&radians) {
        return Ok(radians);
    }
    let expected = format_args!("{least} to {most} rad");
    Err(refused(format_args!("{KEY} = {}", Number(radians)), expected, "give it in radians, as 0.7854"))
}

/// Limits; by default the full acceleration is there after 0.1 s.
fn limits<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TwistLimits, D::Error> {
    const USUAL_RISE: f64 = 0.1;
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Keys {
        #[serde(deserialize_with = "positive")]
        velocity: MetresPerSecond,
        #[serde(deserialize_with = "positive")]
        acceleration: MetresPerSecondSquared,
        #[serde(default, deserialize_with = "positive")]
        jerk: Option<MetresPerSecondCubed>,
        #[serde(deserialize_with = "positive")]
        yaw: RadiansPerSecond,
        #[serde(deserialize_with = "positive")]
        yaw_acceleration: RadiansPerSecondSquared,
        #[serde(default, deserialize_with = "positive")]
        yaw_jerk: Option<RadiansPerSecondCubed>,
    }
    let Keys { velocity, acceleration, jerk, yaw, yaw_acceleration, yaw_jerk } =
        Keys::deserialize(deserializer)?;
    Ok(TwistLimits {
        velocity,
        acceleration,
        jerk: jerk.unwrap_or(MetresPerSecondCubed(acceleration.0 / USUAL_RISE)),
        yaw_velocity: yaw,
        yaw_acceleration,
        yaw_jerk: yaw_jerk.unwrap_or(RadiansPerSecondCubed(yaw_acceleration.0 / USUAL_RISE)),
    })
}

/// `[[frame]]`: a place on the robot with a name, fixed to another.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Frame {
    /// Name; unique.
    #[serde(deserialize_with = "name")]
    pub name: String,
    /// Frame that it is fixed to; the base's frame by default.
    #[serde(default)]
    pub parent: String,
    /// Place in the parent, m: ahead, left, up.
    #[serde(default, deserialize_with = "three")]
    pub xyz: [f64; 3],
    /// Roll, pitch and yaw in the parent, rad: about its x, then its y, then its z, as in a URDF.
    #[serde(default, deserialize_with = "three")]
    pub rpy: [f64; 3],
}

/// A name that ROS 2 takes for a frame: no blanks, no slash before it (REP 105, tf2).
fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    if !name.is_empty() && !name.starts_with('/') && name.chars().all(|c| c.is_ascii_graphic()) {
        return Ok(name);
    }
    let expected = "letters, digits and signs without blanks, no slash first: a name that tf2 takes";
    Err(refused(format_args!("the frame \"{name}\""), expected, "rename it"))
}

fn three<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[f64; 3], D::Error> {
    let numbers = Vec::<f64>::deserialize(deserializer)?;
    let found = numbers.len();
    let numbers: [f64; 3] =
        numbers.try_into().map_err(|_| wrong::<D::Error>(format_args!("{KEY} of {found} numbers")))?;
    match numbers.iter().find(|number| !number.is_finite()) {
        Some(&number) => Err(wrong(format_args!("{KEY} with {}", Number(number)))),
        None => Ok(numbers),
    }
}

fn wrong<E: Error>(found: std::fmt::Arguments<'_>) -> E {
    refused(found, "three finite numbers", format_args!("correct {KEY}"))
}

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
