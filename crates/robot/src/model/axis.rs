use std::time::Duration;

use ethercat::cia402::object::MOST_AXES;
use motion::brake::{BrakeConfiguration, BrakeTimes};
use motion::homing::Homing;
use motion::supervision::{FollowingErrorLimit, JogLimits, Limits, Written};
use motion::{
    AxisScale, NewtonMetres, PositionSense, Radians, RadiansPerSecond, RadiansPerSecondCubed,
    RadiansPerSecondSquared, Seconds,
};
use serde::Deserialize;
use serde::de::Deserializer;
use sha2::{Digest, Sha256};
use types::{AxisMode, Encoder, EncoderSide, InterlockKind, OnStale};

use super::bus::{LARGEST_FIRST, MOST_SUB_DEVICES};
use super::usual;
use crate::error::{KEY, refused};
use crate::field::{
    LARGEST_LIMIT, Number, finite, limit, not_negative, not_zero, positive, readable, time_within, two,
    whole,
};

/// `[[axis]]`: a servo drive and the scale of its numbers.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// Name; unique in the robot.
    pub name: String,
    #[serde(default, deserialize_with = "whole::<_, _, 1, MOST_SUB_DEVICES>")]
    pub(crate) count: Option<u16>,
    #[serde(default, deserialize_with = "whole::<_, _, 0, LARGEST_FIRST>")]
    pub(crate) first: Option<u16>,
    #[serde(rename = "sub_device")]
    pub(crate) drive: String,
    #[serde(default, rename = "drive_axis", deserialize_with = "drive_axis")]
    pub(crate) first_axis: u8,
    /// CiA 402 mode of operation.
    pub mode: AxisMode,
    /// Further modes, in which controllers move it.
    #[serde(skip)]
    pub modes: Vec<AxisMode>,
    #[serde(deserialize_with = "positive")]
    pub(crate) counts_per_revolution: f64,
    #[serde(default = "usual_ratio", deserialize_with = "not_zero")]
    pub(crate) gear_ratio: f64,
    #[serde(deserialize_with = "positive")]
    pub(crate) rated_torque: NewtonMetres,
    /// Limits of the axis.
    #[serde(deserialize_with = "limits")]
    pub limits: Limits,
    #[serde(default, rename = "jog")]
    pub(crate) jog_keys: JogKeys,
    /// Supervision of the following error; `None` leaves it to the drive.
    #[serde(default, deserialize_with = "following_error")]
    pub following_error: Option<FollowingErrorLimit>,
    /// Speed above which its drive's positions are not plausible; `None`: ten times its limit of
    /// velocity.
    #[serde(default, deserialize_with = "positive")]
    pub feedback_velocity: Option<RadiansPerSecond>,
    /// Speed by which it may differ from its command in csv and cst; `None`: a quarter of its limit
    /// of velocity.
    #[serde(default, deserialize_with = "positive")]
    pub velocity_error: Option<RadiansPerSecond>,
    /// Knowledge of its encoder about the position after its drive was without power; `None` where
    /// the file does not say.
    #[serde(default)]
    pub encoder: Option<Encoder>,
    #[serde(default, deserialize_with = "limit")]
    pub(crate) encoder_range: Option<f64>,
    #[serde(default)]
    pub(crate) encoder_side: EncoderSide,
    #[serde(default, deserialize_with = "not_negative")]
    pub(crate) coast: Radians,
    #[serde(default, deserialize_with = "positive")]
    pub(crate) position_tolerance: Option<Radians>,
    /// Its position at standstill is kept over a restart of Onbeat, and compared.
    #[serde(default)]
    pub position_memory: bool,
    /// Reaction to a stale command.
    #[serde(default)]
    pub on_stale: OnStale,
    #[serde(default, rename = "stops")]
    pub(crate) to_stop: Vec<String>,
    /// Settings of its homing, if it has one.
    #[serde(rename = "homing")]
    pub homing_settings: Option<HomingSettings>,
    #[serde(rename = "brake")]
    pub(crate) brake_keys: Option<Brake>,
    /// It holds a load that falls without torque or brake.
    #[serde(default)]
    pub holds_load: bool,
    /// The limits are written to its drive as well.
    #[serde(default = "usual_drive_limits")]
    pub drive_limits: bool,
    /// Places of the axes that are stopped with it.
    #[serde(skip)]
    pub stops: Vec<usize>,
    /// Position on the bus of its drive.
    #[serde(skip)]
    pub sub_device: usize,
    /// Place among the axes of its drive, from 0.
    #[serde(skip)]
    pub drive_axis: u8,
    /// Conversion between the drive's numbers and SI.
    #[serde(skip)]
    pub scale: AxisScale,
    /// Limits of a jog; the usual ones where the file gives none.
    #[serde(skip)]
    pub jog: Option<JogLimits>,
    /// Source of its absolute position.
    #[serde(skip)]
    pub homing: Homing,
    /// No controller moves it before it is homed.
    #[serde(skip)]
    pub needs_homing: bool,
    /// Meaning of a restart of its drive for its position.
    #[serde(skip)]
    pub position_sense: PositionSense,
    /// Brake, if the cycle has to wait for one.
    #[serde(skip)]
    pub brake: Option<BrakeConfiguration>,
}

impl Axis {
    /// Turns of the motor that its encoder distinguishes without power; `None` if it is not
    /// absolute.
    #[must_use]
    pub fn encoder_turns(&self) -> Option<f64> {
        let revolution = std::f64::consts::TAU / self.gear_ratio.abs();
        self.position_sense.range.map(|range| range.0 / revolution)
    }

    /// SHA-256 of its scale and offset, in hexadecimal: with another one, a position in counts is
    /// another place.
    #[must_use]
    pub fn scale_sha256(&self) -> String {
        let offset = self.homing_settings.and_then(|it| it.offset).map_or(0.0, |it| it.0);
        let range = self.position_sense.range.map_or(0.0, |it| it.0);
        let numbers = [self.scale.counts_per_radian(), offset, range, f64::from(self.drive_axis)];
        let digest = Sha256::digest(numbers.map(f64::to_le_bytes).concat());
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// `jog` of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JogKeys {
    #[serde(default, deserialize_with = "positive")]
    pub(crate) velocity: Option<RadiansPerSecond>,
    #[serde(default, deserialize_with = "positive")]
    pub(crate) torque: Option<NewtonMetres>,
}

/// `homing` of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HomingSettings {
    /// Position of the axis where an absolute encoder's is zero.
    #[serde(default, deserialize_with = "finite")]
    pub offset: Option<Radians>,
    /// Position of the mark.
    #[serde(default, deserialize_with = "finite")]
    pub position: Option<Radians>,
    /// Homing method of the drive, 0x6098; `None` where it does not find the mark by itself.
    #[serde(default, deserialize_with = "homing_method")]
    pub method: Option<i8>,
    /// Speed of the drive towards a switch.
    #[serde(default, deserialize_with = "positive")]
    pub switch_velocity: RadiansPerSecond,
    /// Speed of the drive towards the mark itself.
    #[serde(default, deserialize_with = "positive")]
    pub zero_velocity: RadiansPerSecond,
    /// Acceleration of the drive.
    #[serde(default, deserialize_with = "positive")]
    pub acceleration: RadiansPerSecondSquared,
    /// Longest time of the drive's homing.
    #[serde(default = "usual_time_out", deserialize_with = "time_out")]
    pub time_out: Seconds,
    /// No controller moves the axis before it is homed; `None`: as [`Axis::needs_homing`] says.
    #[serde(default)]
    pub required: Option<bool>,
}

/// `brake` of an axis.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Brake {
    #[serde(deserialize_with = "short")]
    release: Seconds,
    #[serde(deserialize_with = "short")]
    engage: Seconds,
    pub(crate) output: Option<BrakeOutput>,
    pub(crate) feedback: Option<FeedbackKeys>,
}

/// `output` of a brake.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BrakeOutput {
    pub(crate) sub_device: String,
    pub(crate) channel: i64,
}

/// `feedback` of a brake.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FeedbackKeys {
    pub(crate) released: Option<FeedbackInputKeys>,
    pub(crate) closed: Option<FeedbackInputKeys>,
}

/// `released` and `closed` of the feedback of a brake.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FeedbackInputKeys {
    pub(crate) sub_device: String,
    pub(crate) channel: i64,
    #[serde(default)]
    pub(crate) inverted: bool,
}

impl Brake {
    /// Times of its mechanism.
    pub(crate) fn times(&self) -> BrakeTimes {
        BrakeTimes { release: self.release, engage: self.engage }
    }
}

usual! {
    usual_ratio: f64 = 1.0;
    usual_drive_limits: bool = true;
    usual_time_out: Seconds = Seconds(30.0);
    usual_time: Seconds = Seconds(0.05);
}

/// Axis of a drive: 1 and up in the file, 0 and up here.
fn drive_axis<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    const MOST: i64 = MOST_AXES as i64;
    whole::<_, u8, 1, MOST>(deserializer).map(|axis| axis - 1)
}

/// Limits; the limits of a step follow from the period.
fn limits<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Limits, D::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Keys {
        #[serde(default, deserialize_with = "positions")]
        position: Option<(Radians, Radians)>,
        #[serde(deserialize_with = "limit")]
        velocity: RadiansPerSecond,
        #[serde(default, deserialize_with = "limit")]
        acceleration: Option<RadiansPerSecondSquared>,
        #[serde(default, deserialize_with = "limit")]
        jerk: Option<RadiansPerSecondCubed>,
        #[serde(default, deserialize_with = "limit")]
        stop_deceleration: Option<RadiansPerSecondSquared>,
        #[serde(deserialize_with = "limit")]
        torque: NewtonMetres,
        #[serde(default, deserialize_with = "limit")]
        maximum_step: Option<Radians>,
    }
    let keys = Keys::deserialize(deserializer)?;
    let Keys { position, velocity, acceleration, jerk, stop_deceleration, torque, maximum_step } = keys;
    let written = Written { acceleration: acceleration.is_some(), jerk: jerk.is_some() };
    let acceleration = acceleration.unwrap_or_else(|| Limits::usual_acceleration(velocity));
    let deceleration = stop_deceleration.unwrap_or(acceleration);
    let jerk = jerk.unwrap_or_else(|| Limits::usual_jerk(acceleration));
    let step = maximum_step.unwrap_or_default();
    Ok(Limits { position, velocity, acceleration, deceleration, jerk, torque, step, written })
}

fn positions<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<(Radians, Radians)>, D::Error> {
    let (lowest, highest) = two::<_, f64>(deserializer)?;
    let found = format_args!("{KEY} = [{}, {}]", Number(lowest), Number(highest));
    let expected = match lowest.abs() <= LARGEST_LIMIT && highest.abs() <= LARGEST_LIMIT {
        true if lowest < highest => return Ok(Some((Radians(lowest), Radians(highest)))),
        true if lowest == highest => {
            "a lowest position below the highest, in rad; an axis without limits has no position"
        }
        true => "the lowest and the highest position in rad",
        false => "two positions between -1e12 and 1e12 rad",
    };
    Err(refused(found, expected, format_args!("correct {KEY}")))
}

fn following_error<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<FollowingErrorLimit>, D::Error> {
    #[derive(Deserialize)]
    #[serde(remote = "FollowingErrorLimit", deny_unknown_fields)]
    struct Keys {
        #[serde(rename = "window", deserialize_with = "limit")]
        distance: Radians,
        #[serde(rename = "time", default = "usual_time", deserialize_with = "short")]
        timeout: Seconds,
    }
    Keys::deserialize(deserializer).map(Some)
}

/// Time of a mechanism.
fn short<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Seconds, D::Error> {
    let range = Duration::ZERO..=Duration::from_secs(10);
    time_within(deserializer, range, &format!("shorten {KEY}"))
}

fn homing_method<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i8>, D::Error> {
    let method = i64::deserialize(deserializer)?;
    if let 1..=14 | 17..=30 | 33..=35 | 37 = method {
        return Ok(Some(method as i8));
    }
    let expected = "a homing method of CiA 402: 1 to 14, 17 to 30, 33 to 35, or 37";
    Err(refused(format_args!("{KEY} = {method}"), expected, format_args!("correct {KEY}")))
}

fn time_out<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Seconds, D::Error> {
    let range = Duration::from_millis(100)..=Duration::from_secs(600);
    time_within(deserializer, range, &format!("correct {KEY}"))
}

/// `[[interlock]]`
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InterlockKeys {
    #[serde(deserialize_with = "readable")]
    pub(crate) name: String,
    pub(crate) kind: InterlockKind,
    pub(crate) sub_device: String,
    pub(crate) channel: i64,
    #[serde(default)]
    pub(crate) inverted: bool,
    pub(crate) axes: Option<Vec<String>>,
}
