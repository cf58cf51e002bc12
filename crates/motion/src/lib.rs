//! Units and trajectories of moving things: pure numbers.
//!
//! | module | part |
//! |---|---|
//! | [`units`] | radians, metres, newton metres, seconds and their rates, as types |
//! | [`scale`] | [`AxisScale`]: a drive's counts and per milles to SI units, and back, checked |
//! | [`axis`] | report of an axis to a controller, and its answer |
//! | [`supervision`] | checks between controller and drive: limits, soft stops, following errors |
//! | [`homing`], [`brake`] | position of an axis in the world; its hold without a drive |
//! | [`restart`] | effect of a drive's restart on the position of an axis |
//! | [`base`] | bases that move about: pose and velocity |
//! | [`online`] | [`OnlineMotion`]: jerk-limited motion to targets that may change at any time |
//! | [`kinematics`] | wheels and joints to bases and tools, and back |
//! | [`odometry`] | [`Odometry`]: pose of a base, from its wheels |
//! | [`sinusoid`] | [`SmoothSinusoid`]: a sinusoid that starts from standstill |
//! | [`spline`] | [`spline::Segment`]: polynomials in time between the points of a trajectory |
//! | [`stop`] | [`StopProfile`]: a stop with bounded deceleration |
//!
//! Trajectories are functions of the time since they began: nothing is integrated, so nothing
//! drifts and a skipped cycle costs nothing.
#![forbid(unsafe_code)]
#![allow(clippy::neg_cmp_op_on_partial_ord, reason = "`!(a > b)` refuses NaN with the rest")]

pub mod axis;
pub mod base;
pub mod brake;
pub mod homing;
pub mod kinematics;
pub mod odometry;
pub mod online;
pub mod restart;
pub mod scale;
pub mod sinusoid;
pub mod spline;
pub mod stop;
pub mod supervision;

pub use axis::{AxisFeedback, AxisPhase, AxisSetpoint, TrajectoryPoint};
pub use kinematics::{DifferentialDrive, OmniBase, OmniWheel, SerialArm};
pub use odometry::{Odometry, OdometryError};
pub use online::{
    AxisLimits, OnlineError, OnlineMotion, OnlineTwist, Synchronisation, Target, TwistLimits,
};
pub use restart::{PositionSense, RestartRule};
pub use scale::{AxisScale, Converted, NotANumber, ScaleError};
pub use sinusoid::{SinusoidError, SmoothSinusoid};
pub use stop::{StopError, StopProfile};
pub use types::units;
pub use types::units::{
    Hertz, Metres, MetresPerSecond, MetresPerSecondCubed, MetresPerSecondSquared, NewtonMetres, Radians,
    RadiansPerSecond, RadiansPerSecondCubed, RadiansPerSecondSquared, Seconds,
};
