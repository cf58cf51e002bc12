//! A trajectory in reserved memory: filled point by point, and checked as it arrives.

use ipc::message::trajectory::{AxisTolerances, Begin, GoalTime, Point, Rejection};
use motion::spline::{Knot, Segment, velocity_between};

use super::TrajectorySettings;

/// A trajectory, complete or still arriving.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) id: u64,
    announced: usize,
    /// Start, CLOCK_MONOTONIC; `None` for at once.
    pub(super) start_ns: Option<u64>,
    /// Time after the last point within which the goal must be reached, s.
    pub(super) goal_time: Option<f64>,
    pub(super) rows: Vec<Row>,
    times_ns: Vec<u64>,
    /// Knots of each point, one for each row.
    knots: Vec<Knot>,
    /// True for each point that came with velocities.
    given: Vec<bool>,
}

/// One axis of a trajectory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    /// Index among the controller's axes.
    pub(super) axis: usize,
    pub(super) path_position: Option<f64>,
    pub(super) path_velocity: Option<f64>,
    pub(super) goal_position: Option<f64>,
    pub(super) goal_velocity: Option<f64>,
}

/// Reason for which a trajectory is refused, with place and amount.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Refused {
    pub(super) why: Rejection,
    /// Index among the robot's axes.
    pub(super) axis: Option<u32>,
    pub(super) point: Option<u32>,
    pub(super) found: f64,
    pub(super) allowed: f64,
}

impl Refused {
    pub(super) const fn plain(why: Rejection) -> Self {
        Self { why, axis: None, point: None, found: 0.0, allowed: 0.0 }
    }
}

impl Program {
    /// Allocates space for this many axes and points.
    pub(super) fn with_room(axes: usize, points: usize) -> Self {
        Self {
            id: 0,
            announced: 0,
            start_ns: None,
            goal_time: None,
            rows: Vec::with_capacity(axes),
            times_ns: Vec::with_capacity(points),
            knots: Vec::with_capacity(axes * points),
            given: Vec::with_capacity(points),
        }
    }

    /// Starts another trajectory.
    pub(super) fn begin(&mut self, begin: &Begin, settings: &TrajectorySettings) -> Result<(), Refused> {
        self.id = begin.id;
        self.announced = begin.points as usize;
        self.start_ns = begin.start_ns;
        self.goal_time = match begin.goal_time {
            GoalTime::Default => settings.goal_time.map(|time| time.0),
            GoalTime::Unlimited => None,
            GoalTime::Within(ns) => Some(ns as f64 * 1e-9),
        };
        self.rows.clear();
        self.times_ns.clear();
        self.knots.clear();
        self.given.clear();
        let (found, allowed) = (f64::from(begin.points), settings.points as f64);
        if self.announced == 0 || self.announced > settings.points {
            return Err(Refused { found, allowed, ..Refused::plain(Rejection::Points) });
        }
        for tolerances in begin.axes.iter() {
            let row = self.row(tolerances, settings)?;
            // At most one row for each axis of the controller.
            self.rows.push(row);
        }
        Ok(())
    }

    fn row(&self, tolerances: &AxisTolerances, settings: &TrajectorySettings) -> Result<Row, Refused> {
        let refused = |why| Refused { axis: Some(tolerances.axis), ..Refused::plain(why) };
        if tolerances.axis as usize >= settings.robot_axes {
            return Err(refused(Rejection::NoSuchAxis));
        }
        let ours = settings.axes.iter().position(|axis| axis.axis == tolerances.axis as usize);
        let axis = ours.ok_or(refused(Rejection::OtherAxis))?;
        if self.rows.iter().any(|row| row.axis == axis) {
            return Err(refused(Rejection::NoSuchAxis));
        }
        Ok(Row {
            axis,
            path_position: tolerances.path_position.or(settings.path_tolerance.map(|it| it.0)),
            path_velocity: tolerances.path_velocity.or(None),
            goal_position: tolerances.goal_position.or(settings.goal_tolerance.map(|it| it.0)),
            goal_velocity: tolerances.goal_velocity.or(None),
        })
    }

    /// Adds the next point, and checks the segment before it, as far as it is known.
    pub(super) fn add(&mut self, point: &Point, settings: &TrajectorySettings) -> Result<(), Refused> {
        let index = self.points();
        let at = |why| Refused { point: Some(point.index), ..Refused::plain(why) };
        let rows = self.rows.len();
        if point.index as usize != index || index >= self.announced || point.positions.len() != rows {
            return Err(at(Rejection::Incomplete));
        }
        if self.times_ns.last().is_some_and(|last| *last >= point.time_from_start_ns)
            || point.time_from_start_ns > LONGEST_NS
        {
            let seconds = |ns: u64| ns as f64 * 1e-9;
            let last = self.times_ns.last().copied().map_or(0.0, seconds);
            let found = seconds(point.time_from_start_ns);
            return Err(Refused { found, allowed: last, ..at(Rejection::Times) });
        }
        for row in 0..rows {
            let knot = Knot {
                position: point.positions[row],
                velocity: point.velocities.get(row).copied().unwrap_or(0.0),
                acceleration: point.accelerations.get(row).copied(),
            };
            self.check_knot(row, knot, settings)
                .map_err(|refused| Refused { point: Some(point.index), ..refused })?;
            self.knots.push(knot);
        }
        self.times_ns.push(point.time_from_start_ns);
        self.given.push(!point.velocities.is_empty());
        if index >= 2 {
            self.smooth(index - 1);
            // The segment to a first point without velocities is known only at the start.
            if index >= 3 || self.given[0] || self.times_ns[0] == 0 {
                self.check_segment(index - 1, settings)?;
            }
        }
        Ok(())
    }

    /// Checks that all points have arrived, and the end. `from` holds the present positions.
    pub(super) fn complete(
        &mut self,
        from: impl Fn(usize) -> f64,
        settings: &TrajectorySettings,
    ) -> Result<(), Refused> {
        let last = self.points().wrapping_sub(1);
        if self.points() != self.announced {
            let (found, allowed) = (self.points() as f64, self.announced as f64);
            return Err(Refused { found, allowed, ..Refused::plain(Rejection::Incomplete) });
        }
        for row in 0..self.rows.len() {
            let velocity = self.knot(last, row).velocity;
            if velocity != 0.0 {
                let axis = Some(self.robot_axis(row, settings));
                let refused = Refused::plain(Rejection::EndsMoving);
                return Err(Refused { axis, point: Some(last as u32), found: velocity, ..refused });
            }
        }
        let first_is_open = !self.given[0] && self.times_ns[0] > 0;
        if first_is_open && last > 0 {
            let time = self.times_ns[0] as f64 * 1e-9;
            let next = self.duration(1);
            for row in 0..self.rows.len() {
                let position = self.knot(0, row).position;
                let before = (position - from(self.rows[row].axis), time);
                let after = (self.knot(1, row).position - position, next);
                self.knots[row].velocity = velocity_between(before, after);
            }
            self.check_segment(1, settings)?;
        }
        if last > 0 && (last > 1 || !first_is_open) {
            self.check_segment(last, settings)?;
        }
        Ok(())
    }

    pub(super) fn points(&self) -> usize {
        self.times_ns.len()
    }

    /// Time of the last point; 0 where there is none.
    pub(super) fn end_ns(&self) -> u64 {
        self.times_ns.last().copied().unwrap_or(0)
    }

    pub(super) fn time_ns(&self, point: usize) -> u64 {
        self.times_ns[point]
    }

    pub(super) fn knot(&self, point: usize, row: usize) -> Knot {
        self.knots[point * self.rows.len() + row]
    }

    /// Segment of a row to `point` from the one before it.
    pub(super) fn segment(&self, point: usize, row: usize) -> Segment {
        Segment::between(self.knot(point - 1, row), self.knot(point, row), self.duration(point))
    }

    /// Index among the robot's axes.
    pub(super) fn robot_axis(&self, row: usize, settings: &TrajectorySettings) -> u32 {
        settings.axes[self.rows[row].axis].axis as u32
    }

    /// Checks that a segment of a row from `from` respects the limits of its axis.
    pub(super) fn check_way(
        &self,
        row: usize,
        way: &Segment,
        from: f64,
        settings: &TrajectorySettings,
    ) -> Result<(), Refused> {
        let axis = &settings.axes[self.rows[row].axis];
        let refused = |why| Refused { axis: Some(axis.axis as u32), ..Refused::plain(why) };
        let (fastest, limit) = (way.fastest(), axis.velocity_limit.0);
        if !(fastest <= limit * ROUNDING) {
            return Err(Refused { found: fastest, allowed: limit, ..refused(Rejection::VelocityLimit) });
        }
        if let Some((lowest, highest)) = axis.position_limits {
            // An axis outside its limits may come in.
            let (lowest, highest) = (lowest.0.min(from), highest.0.max(from));
            let (low, high) = way.range();
            for (found, allowed, beyond) in
                [(low, lowest, low < lowest - SLACK), (high, highest, high > highest + SLACK)]
            {
                if beyond || !found.is_finite() {
                    return Err(Refused { found, allowed, ..refused(Rejection::PositionLimit) });
                }
            }
        }
        Ok(())
    }

    /// Duration of the segment to `point`, s.
    fn duration(&self, point: usize) -> f64 {
        (self.times_ns[point] - self.times_ns[point - 1]) as f64 * 1e-9
    }

    /// Sets the velocities of `point` if it came without.
    fn smooth(&mut self, point: usize) {
        if self.given[point] {
            return;
        }
        let rows = self.rows.len();
        let (time_in, time_out) = (self.duration(point), self.duration(point + 1));
        for row in 0..rows {
            let here = self.knot(point, row).position;
            let before = (here - self.knot(point - 1, row).position, time_in);
            let after = (self.knot(point + 1, row).position - here, time_out);
            self.knots[point * rows + row].velocity = velocity_between(before, after);
        }
    }

    fn check_segment(&self, point: usize, settings: &TrajectorySettings) -> Result<(), Refused> {
        for row in 0..self.rows.len() {
            let from = self.knot(point - 1, row).position;
            self.check_way(row, &self.segment(point, row), from, settings)
                .map_err(|refused| Refused { point: Some(point as u32), ..refused })?;
        }
        Ok(())
    }

    fn check_knot(&self, row: usize, knot: Knot, settings: &TrajectorySettings) -> Result<(), Refused> {
        let axis = &settings.axes[self.rows[row].axis];
        let beyond = |why, found: f64, allowed: f64| {
            Err(Refused { axis: Some(axis.axis as u32), found, allowed, ..Refused::plain(why) })
        };
        if let Some((lowest, highest)) = axis.position_limits {
            if knot.position < lowest.0 - SLACK {
                return beyond(Rejection::PositionLimit, knot.position, lowest.0);
            }
            if knot.position > highest.0 + SLACK {
                return beyond(Rejection::PositionLimit, knot.position, highest.0);
            }
        }
        let limit = axis.velocity_limit.0;
        if knot.velocity.abs() > limit * ROUNDING {
            return beyond(Rejection::VelocityLimit, knot.velocity, limit);
        }
        let limit = axis.acceleration_limit.0;
        match knot.acceleration {
            Some(acceleration) if acceleration.abs() > limit * ROUNDING => {
                beyond(Rejection::AccelerationLimit, acceleration, limit)
            }
            _ => Ok(()),
        }
    }
}

/// Allowance for rounding: planners use the full limit.
const ROUNDING: f64 = 1.000_001;
/// Tolerance of a position limit, rad.
const SLACK: f64 = 1e-6;

/// Longest trajectory, an hour: more is a mistake in units.
const LONGEST_NS: u64 = 3_600_000_000_000;
