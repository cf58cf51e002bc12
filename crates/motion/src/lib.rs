//! Units and trajectories of moving things: pure numbers.
//!
//! | module | what it holds |
//! |---|---|
//! | [`units`] | radians, metres, newton metres, seconds and their rates, as types |
//! | [`scale`] | [`AxisScale`]: a drive's counts and per milles to SI units at the axis, and back, checked |
//! | [`axis`] | what a controller is told of an axis, and what it answers |
//! | [`supervision`] | limits, soft stops, following errors and stale commands, between controller and drive |
//! | [`homing`], [`brake`] | where an axis is in the world; what holds it while its drive does not |
//! | [`base`] | bases that move about: where they are and how they move |
//! | [`sinusoid`] | [`SmoothSinusoid`]: a sinusoid that starts from rest |
//! | [`stop`] | [`StopProfile`]: to rest with bounded deceleration |
//!
//! Trajectories are functions of the time since they began: nothing is integrated, so nothing drifts and a
//! skipped beat costs nothing.
#![forbid(unsafe_code)]

pub mod axis;
pub mod base;
pub mod brake;
pub mod homing;
pub mod scale;
pub mod sinusoid;
pub mod stop;
pub mod supervision;
pub mod units;

pub use axis::{AxisFeedback, AxisPhase, AxisSetpoint, TrajectoryPoint};
pub use scale::{AxisScale, Converted, NotANumber, ScaleError};
pub use sinusoid::{SinusoidError, SmoothSinusoid};
pub use stop::{StopError, StopProfile};
pub use units::{
    Hertz, Metres, MetresPerSecond, NewtonMetres, Radians, RadiansPerSecond, RadiansPerSecondSquared,
    Seconds,
};
