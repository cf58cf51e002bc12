//! Straight lines of the tool: joint positions along a line, and the speed at which it may be
//! followed.
//!
//! A line is planned completely before anything moves, a bounded part in each call. First come
//! joint positions at equal distances by [`SerialArm::inverse`], each found from the previous ones;
//! then a cubic spline through them for each joint; then the spline's own tool poses, which must
//! keep to the line. The splines' largest derivatives give the velocity, acceleration and jerk at
//! which the line may be followed so that no joint exceeds its limits. Near a singular pose the
//! joints move far for a short way of the tool: such a line is followed slowly, and a line that
//! needs a jump of a joint is refused.

use glam::{DQuat, DVec3};
use thiserror::Error;

use super::spline::{Extent, Spline};
use super::{InverseSettings, SerialArm, Transform, Workspace};
use crate::axis::TrajectoryPoint;
use crate::kinematics::ToolPose;
use crate::online::{AxisLimits, Place, ProgressLimits};
use crate::units::{Metres, MetresPerSecond, Radians, RadiansPerSecond, RadiansPerSecondSquared};

/// Limits of a joint, rad or m.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JointLimits {
    /// Lowest and highest position, in addition to the limits of the URDF.
    pub position: Option<(Radians, Radians)>,
    /// Velocity, acceleration and jerk.
    pub motion: AxisLimits,
}

/// Highest speeds of the tool; above 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LineSpeed {
    /// Along the line.
    pub linear: MetresPerSecond,
    /// Of its turn.
    pub angular: RadiansPerSecond,
}

/// Planner of an arm's lines; it holds one line.
#[derive(Clone, Debug)]
pub struct Line {
    arm: SerialArm,
    limits: Vec<AxisLimits>,
    speed: LineSpeed,
    workspace: Workspace,
    joints: Vec<Spline>,
    extents: Vec<Extent>,
    positions: Vec<f64>,
    from: Transform,
    to: Transform,
    /// Turn from `from` to `to` as axis times angle.
    turn: DVec3,
    stage: LineStage,
}

/// Progress of planning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineStage {
    Empty,
    /// The next knot.
    Knots(usize),
    /// The next joint.
    Splines(usize),
    /// The next segment.
    Check(usize),
    Planned,
}

impl Line {
    /// A planner for `arm`, with the limits of its joints, in their order.
    ///
    /// # Errors
    /// Another number of limits than joints, a limit or a speed that is not finite and above 0.
    pub fn new(mut arm: SerialArm, limits: &[JointLimits], speed: LineSpeed) -> Result<Self, LineError> {
        if limits.len() != arm.joints.len() {
            return Err(LineError::Joints { expected: arm.joints.len(), found: limits.len() });
        }
        let mut bounds = Vec::with_capacity(limits.len());
        for (joint, limits) in arm.joints.iter_mut().zip(limits) {
            if let Some((lowest, highest)) = limits.position {
                joint.limits = (joint.limits.0.max(lowest.0), joint.limits.1.min(highest.0));
            }
            let mut motion = limits.motion;
            if joint.velocity > 0.0 {
                motion.velocity.0 = motion.velocity.0.min(joint.velocity);
            }
            let numbers = [motion.velocity.0, motion.acceleration.0, motion.jerk.0];
            if !(joint.limits.0 < joint.limits.1) || !numbers.into_iter().all(positive) {
                return Err(LineError::Limits { joint: joint.name.clone() });
            }
            bounds.push(motion);
        }
        if !(positive(speed.linear.0) && positive(speed.angular.0)) {
            return Err(LineError::Speed);
        }
        let joints = limits.len();
        Ok(Self {
            workspace: arm.workspace(),
            arm,
            limits: bounds,
            speed,
            joints: vec![Spline::with_room(SEGMENTS); joints],
            extents: vec![Extent::default(); joints],
            positions: vec![0.0; joints],
            from: Transform::IDENTITY,
            to: Transform::IDENTITY,
            turn: DVec3::ZERO,
            stage: LineStage::Empty,
        })
    }

    /// The arm.
    #[must_use]
    pub fn arm(&self) -> &SerialArm {
        &self.arm
    }

    /// Begins to plan a line from the joints' positions to a pose of the tool; [`Line::plan`]
    /// continues.
    ///
    /// # Errors
    /// Numbers that are not finite, an orientation that is no unit quaternion, another number of
    /// positions than joints.
    pub fn aim(&mut self, from: impl Iterator<Item = Radians>, to: ToolPose) -> Result<(), LineError> {
        self.stage = LineStage::Empty;
        let mut found = 0;
        for position in from {
            found += 1;
            if let Some(place) = self.positions.get_mut(found - 1) {
                *place = position.0;
            }
        }
        if found != self.positions.len() {
            return Err(LineError::Joints { expected: self.positions.len(), found });
        }
        let target = isometry(to)?;
        if !self.positions.iter().all(|position| position.is_finite()) {
            return Err(LineError::NotFinite);
        }
        (self.from, self.to) = (self.arm.forward(&self.positions), target);
        self.turn = self.to.turn_since(&self.from);
        for (joint, position) in self.joints.iter_mut().zip(&self.positions) {
            joint.values[0] = *position;
        }
        self.stage = LineStage::Knots(1);
        Ok(())
    }

    /// Plans a bounded part; the limits of progress once all is planned. Allocates nothing.
    ///
    /// # Errors
    /// The line cannot be followed; nothing was begun.
    pub fn plan(&mut self) -> Result<Option<ProgressLimits>, LineError> {
        let part = self.part();
        if part.is_err() {
            self.stage = LineStage::Empty;
        }
        part
    }

    fn part(&mut self) -> Result<Option<ProgressLimits>, LineError> {
        self.stage = match self.stage {
            LineStage::Empty => return Err(LineError::Nothing),
            LineStage::Knots(knot) => self.find(knot)?,
            LineStage::Splines(joint) => {
                let spline = &mut self.joints[joint];
                spline.fit();
                self.extents[joint] = spline.extent();
                if joint + 1 < self.joints.len() {
                    LineStage::Splines(joint + 1)
                } else {
                    LineStage::Check(0)
                }
            }
            LineStage::Check(segment) => self.check(segment)?,
            LineStage::Planned => return self.bounds().map(Some),
        };
        Ok(None)
    }

    /// Finds joint positions from `knot` on, as many as a call may.
    fn find(&mut self, mut knot: usize) -> Result<LineStage, LineError> {
        let mut steps = 0;
        while steps < STEPS_A_CALL && knot <= SEGMENTS {
            let target = self.pose(knot as f64 / SEGMENTS as f64);
            // As far on as from the one before the last to the last.
            for (position, joint) in self.positions.iter_mut().zip(&self.joints) {
                let last = joint.values[knot - 1];
                *position = if knot > 1 { 2.0 * last - joint.values[knot - 2] } else { last };
            }
            let reached = self.arm.inverse(&target, &mut self.positions, &EXACT, &mut self.workspace);
            steps += reached.map_err(|_| LineError::OutOfReach)?.steps + 1;
            for (position, joint) in self.positions.iter().zip(&mut self.joints) {
                if !((position - joint.values[knot - 1]).abs() <= FARTHEST) {
                    return Err(LineError::Singular);
                }
                joint.values[knot] = *position;
            }
            knot += 1;
        }
        Ok(if knot <= SEGMENTS { LineStage::Knots(knot) } else { LineStage::Splines(0) })
    }

    /// Checks that the splines keep to the line between the knots, from `segment` on.
    fn check(&mut self, segment: usize) -> Result<LineStage, LineError> {
        let end = (segment + CHECKS_A_CALL).min(SEGMENTS);
        for segment in segment..end {
            let place = (segment as f64 + 0.5) / SEGMENTS as f64;
            for (position, joint) in self.positions.iter_mut().zip(&self.joints) {
                *position = joint.at(place).value;
            }
            let (is, wanted) = (self.arm.forward(&self.positions), self.pose(place));
            let away = (is.position - wanted.position).length();
            if !(away <= STRAIGHT && is.turn_since(&wanted).length() <= STRAIGHT_TURN) {
                return Err(LineError::Singular);
            }
        }
        Ok(if end < SEGMENTS { LineStage::Check(end) } else { LineStage::Planned })
    }

    /// Limits of progress at which neither the tool nor a joint exceeds its own.
    ///
    /// One half of a joint's acceleration is for the bend of its spline, one for the acceleration
    /// along it. Each of the three parts of the jerk gets a third.
    fn bounds(&self) -> Result<ProgressLimits, LineError> {
        let mut velocity = FASTEST.velocity;
        let (length, turn) = (self.to.position - self.from.position, self.turn);
        velocity = velocity.min(self.speed.linear.0 / length.length());
        velocity = velocity.min(self.speed.angular.0 / turn.length());
        for (number, (extent, limits)) in self.extents.iter().zip(&self.limits).enumerate() {
            // A joint outside its limits goes no farther out.
            let (lowest, highest) = self.arm.joints[number].limits;
            let start = self.joints[number].values[0];
            if extent.lowest < lowest.min(start) || extent.highest > highest.max(start) {
                return Err(LineError::OutOfReach);
            }
            velocity = velocity.min(limits.velocity.0 / extent.first);
            velocity = velocity.min((limits.acceleration.0 / 2.0 / extent.second).sqrt());
            velocity = velocity.min((limits.jerk.0 / 3.0 / extent.third).cbrt());
        }
        let (mut acceleration, mut jerk) = (FASTEST.acceleration, FASTEST.jerk);
        for (extent, limits) in self.extents.iter().zip(&self.limits) {
            acceleration = acceleration.min(limits.acceleration.0 / 2.0 / extent.first);
            acceleration = acceleration.min(limits.jerk.0 / 9.0 / (extent.second * velocity));
            jerk = jerk.min(limits.jerk.0 / 3.0 / extent.first);
        }
        if !(velocity >= SLOWEST && acceleration > 0.0 && jerk > 0.0) {
            return Err(LineError::Singular);
        }
        Ok(ProgressLimits { velocity, acceleration, jerk })
    }

    /// Transform of the line at `place`, 0 to 1.
    fn pose(&self, place: f64) -> Transform {
        Transform {
            position: self.from.position + (self.to.position - self.from.position) * place,
            rotation: DQuat::from_scaled_axis(self.turn * place) * self.from.rotation,
        }
    }

    /// Set-point of a joint at a place of a line that is planned.
    #[must_use]
    pub fn joint(&self, joint: usize, place: Place) -> TrajectoryPoint {
        let point = self.joints[joint].at(place.progress);
        let bend = point.second * place.velocity * place.velocity;
        TrajectoryPoint {
            position: Radians(point.value),
            velocity: RadiansPerSecond(point.first * place.velocity),
            acceleration: RadiansPerSecondSquared(bend + point.first * place.acceleration),
        }
    }
}

fn isometry(pose: ToolPose) -> Result<Transform, LineError> {
    let [Metres(x), Metres(y), Metres(z)] = pose.position;
    let [i, j, k, w] = pose.orientation;
    if ![x, y, z, i, j, k, w].iter().all(|number| number.is_finite()) {
        return Err(LineError::NotFinite);
    }
    let quaternion = DQuat::from_xyzw(i, j, k, w);
    if !((quaternion.length() - 1.0).abs() <= ToolPose::UNIT) {
        return Err(LineError::Orientation);
    }
    Ok(Transform { position: DVec3::new(x, y, z), rotation: quaternion.normalize() })
}

fn positive(number: f64) -> bool {
    number.is_finite() && number > 0.0
}

/// Reason for a line that is not followed. Building one while the arm runs does not allocate.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum LineError {
    /// Another number of positions or limits than joints.
    #[error("expected one for each of {expected} joints, found {found}")]
    Joints {
        /// Joints of the arm.
        expected: usize,
        /// Found.
        found: usize,
    },
    /// Limits of a joint that mean nothing.
    #[error(
        "joint \"{joint}\": expected velocity, acceleration and jerk above 0, and positions that its axis and the URDF share"
    )]
    Limits {
        /// Its name.
        joint: String,
    },
    /// A speed of the tool that is not finite and above 0.
    #[error("expected speeds of the tool that are finite and above 0")]
    Speed,
    /// NaN or infinite.
    #[error("expected finite numbers in the pose and the joint positions")]
    NotFinite,
    /// An orientation that is no unit quaternion.
    #[error("expected a unit quaternion as orientation")]
    Orientation,
    /// No line was requested.
    #[error("no line is given")]
    Nothing,
    /// The tool cannot be everywhere on the line within the limits of the joints.
    #[error("the tool cannot reach it on a straight line within the limits of its joints")]
    OutOfReach,
    /// A joint would have to jump, or the line to be followed for longer than ten minutes.
    #[error("the straight line leads through a singular pose, where a joint would have to jump")]
    Singular,
}

/// Segments of a line.
const SEGMENTS: usize = 128;

/// Steps of inverse kinematics after which a call ends: some ten microseconds.
const STEPS_A_CALL: u32 = 16;

/// Segments checked in a call.
const CHECKS_A_CALL: usize = 16;

/// Accuracy of the knots: far below what a spline's third derivative would show.
const EXACT: InverseSettings =
    InverseSettings { distance: Metres(1e-9), angle: Radians(1e-9), steps: 24, longest_step: 0.2 };

/// Farthest way of a joint from knot to knot, rad or m: beyond it jumps.
const FARTHEST: f64 = 0.3;

/// Distance from the line between knots, m and rad.
const STRAIGHT: f64 = 1e-4;
const STRAIGHT_TURN: f64 = 5e-4;

/// Slowest progress, lines a second: ten minutes.
const SLOWEST: f64 = 1.0 / 600.0;

/// Fastest progress, for lines of no length.
const FASTEST: ProgressLimits = ProgressLimits { velocity: 1e2, acceleration: 1e4, jerk: 1e6 };
