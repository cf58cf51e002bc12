//! Controller that follows trajectories through points.
//!
//! Orders arrive as [`ipc::message::trajectory::Order`]s, their results leave as [`Report`]s; the
//! [`crate::ControllerManager`] carries both. Memory for two trajectories is reserved: one is
//! followed while the next one arrives or waits for its start.
//!
//! Between points the path is a polynomial of degree five where both points give accelerations, of
//! degree three where they give velocities. Points that give neither are passed with velocities
//! derived from their neighbours so that an axis turns back only at points. The first segment leads
//! from the set-points at the start, with their velocity and acceleration, to the first point that
//! is still to come.

mod program;

use control::controller::{AxisReport, Controller, ControllerOutput, CycleInfo, Io};
use ethercat::cia402::Request;
use ipc::message::trajectory::{Abort, Begin, Order, Outcome, Rejection, Report};
use ipc::state::TrajectoryStatus;
use motion::online::{OnlineError, OnlineMotion, Synchronisation};
use motion::spline::Segment;
use motion::{AxisPhase, Radians, Seconds, TrajectoryPoint};

use self::program::{Program, Refused};
use crate::axis::{AxisSettings, elapsed};
use crate::joint::begin;
use crate::queue::Queue;

/// Settings of the trajectory controller.
#[derive(Clone, Debug, PartialEq)]
pub struct TrajectorySettings {
    /// Its axes, all in mode CSP.
    pub axes: Vec<AxisSettings>,
    /// Number of axes of the robot.
    pub robot_axes: usize,
    /// Largest number of points of a trajectory.
    pub points: usize,
    /// Default path tolerance.
    pub path_tolerance: Option<Radians>,
    /// Default goal tolerance.
    pub goal_tolerance: Option<Radians>,
    /// Default time after the last point within which the goal must be reached.
    pub goal_time: Option<Seconds>,
}

/// Axes in mode CSP that follow trajectories, one at a time, and hold in between.
#[derive(Clone, Debug)]
pub struct JointTrajectory {
    settings: TrajectorySettings,
    /// Set-points of the axes.
    points: Vec<TrajectoryPoint>,
    sources: Vec<TrajectorySource>,
    /// Feedback of the previous cycle.
    seen: Vec<AxisReport>,
    rest: OnlineMotion,
    next: Program,
    next_stage: TrajectoryStage,
    now: Program,
    course: Option<Execution>,
    /// First segment of each row of `now`.
    entry: Vec<Segment>,
    /// Report to send once the axes are at standstill.
    ending: Option<Report>,
    highest_id: u64,
    last_release_ns: u64,
    stopping: bool,
    reports: Queue<Report, 8>,
    reported: (u64, TrajectoryStatus, u64),
}

/// Source of an axis's set-points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TrajectorySource {
    /// None: its drive does not follow.
    Off,
    /// Holding, or stopping.
    Rest,
    /// The trajectory.
    Along,
}

/// State of the next trajectory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TrajectoryStage {
    Empty,
    Coming,
    /// Complete and accepted; its start, ns.
    Waiting(u64),
}

/// Progress of the current trajectory.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Execution {
    /// Time 0 of the trajectory, ns.
    start_ns: u64,
    /// Begin of its first segment, s of its time.
    begin: f64,
    /// Index of the next point.
    to: usize,
    /// Index of the first point.
    first: usize,
}

impl JointTrajectory {
    /// A controller with memory for two trajectories.
    ///
    /// # Errors
    /// A limit that is not finite and above 0.
    pub fn new(settings: TrajectorySettings) -> Result<Self, OnlineError> {
        let axes = settings.axes.len();
        let limits: Vec<_> = settings.axes.iter().map(AxisSettings::online).collect();
        Ok(Self {
            points: vec![TrajectoryPoint::default(); axes],
            sources: vec![TrajectorySource::Off; axes],
            seen: vec![AxisReport::default(); axes],
            rest: OnlineMotion::new(&limits, Synchronisation::Independent)?,
            next: Program::with_room(axes, settings.points),
            next_stage: TrajectoryStage::Empty,
            now: Program::with_room(axes, settings.points),
            course: None,
            entry: Vec::with_capacity(axes),
            ending: None,
            highest_id: 0,
            last_release_ns: 0,
            stopping: false,
            reports: Queue::new(),
            reported: (0, TrajectoryStatus::None, 0),
            settings,
        })
    }

    /// Takes an order, before [`Controller::update`] of the same cycle.
    pub fn order(&mut self, order: &Order, info: &CycleInfo) {
        match order {
            Order::Begin(begin) => self.begin(begin),
            Order::Point(point) => {
                if self.next_stage == TrajectoryStage::Coming && self.next.id == point.id {
                    if let Err(refused) = self.next.add(point, &self.settings) {
                        self.refuse(refused);
                    }
                }
            }
            Order::Commit { id } => {
                if self.next_stage == TrajectoryStage::Coming && self.next.id == *id {
                    match self.commit(info) {
                        Ok(start_ns) => {
                            self.next_stage = TrajectoryStage::Waiting(start_ns);
                            self.reports.push(Report::new(*id, Outcome::Accepted));
                        }
                        Err(refused) => self.refuse(refused),
                    }
                }
            }
            Order::Cancel { id } => self.cancel(*id),
        }
    }

    /// Oldest report on a trajectory; to be called until it returns `None`.
    pub fn report(&mut self) -> Option<Report> {
        self.reports.pop()
    }

    /// Gives up the current trajectory and the waiting one: the axes stop.
    pub fn give_up(&mut self, why: Abort) {
        self.drop_next(Outcome::Aborted(why), Rejection::Stopping);
        if self.course.is_some() {
            self.leave(Report::new(self.now.id, Outcome::Aborted(why)));
        }
    }

    fn begin(&mut self, begin: &Begin) {
        self.drop_next(Outcome::Aborted(Abort::Replaced), Rejection::Interrupted);
        if begin.id <= self.highest_id {
            let found = begin.id as f64;
            let report = Report::new(begin.id, Outcome::Rejected(Rejection::Id));
            self.reports.push(Report { found, allowed: self.highest_id as f64 + 1.0, ..report });
            return;
        }
        self.highest_id = begin.id;
        match self.next.begin(begin, &self.settings) {
            Ok(()) => self.next_stage = TrajectoryStage::Coming,
            Err(refused) => self.refuse(refused),
        }
    }

    /// Checks the trajectory that has arrived; returns its start.
    fn commit(&mut self, info: &CycleInfo) -> Result<u64, Refused> {
        if info.stopping {
            return Err(Refused::plain(Rejection::Stopping));
        }
        let Self { next, points, settings, sources, seen, .. } = self;
        let off = next.rows.iter().position(|row| sources[row.axis] == TrajectorySource::Off);
        if let Some(row) = off {
            let axis = Some(next.robot_axis(row, settings));
            let is_enabled = seen[next.rows[row].axis].feedback.phase != AxisPhase::NotEnabled;
            let why = if is_enabled { Rejection::Held } else { Rejection::NotEnabled };
            return Err(Refused { axis, ..Refused::plain(why) });
        }
        next.complete(|axis| points[axis].position.0, settings)?;
        let release_ns = info.bus_time.as_nanos();
        let start_ns = next.start_ns.map_or(self.last_release_ns, |start| in_bus_time(start, info));
        let end_ns = start_ns.saturating_add(next.end_ns());
        if end_ns <= release_ns && (next.start_ns.is_some() || next.end_ns() == 0) {
            let found = release_ns.saturating_sub(end_ns) as f64 * 1e-9;
            let why = if next.start_ns.is_some() { Rejection::Past } else { Rejection::Times };
            return Err(Refused { found, ..Refused::plain(why) });
        }
        if start_ns <= release_ns {
            self.enter(start_ns, release_ns)?;
        }
        Ok(start_ns)
    }

    /// Finds the first segment of `next` from the present set-points, into `entry` of its rows;
    /// returns the progress there.
    fn enter(&mut self, start_ns: u64, release_ns: u64) -> Result<Execution, Refused> {
        let Self { next, points, settings, .. } = self;
        let since = release_ns.saturating_sub(start_ns);
        let begin = (self.last_release_ns as f64 - start_ns as f64) * 1e-9;
        let first = (0..next.points()).find(|point| next.time_ns(*point) > since);
        let first = first.ok_or(Refused::plain(Rejection::Past))?;
        let time = next.time_ns(first) as f64 * 1e-9;
        for row in 0..next.rows.len() {
            let from = points[next.rows[row].axis];
            let at = |refused: Refused, point: usize| {
                let axis = Some(next.robot_axis(row, settings));
                Refused { why: Rejection::Start, axis, point: Some(point as u32), ..refused }
            };
            if first > 0 && next.time_ns(first - 1) == 0 && since < ENTRY_NS {
                let away = (next.knot(first - 1, row).position - from.position.0).abs();
                if away > START_WINDOW {
                    let refused =
                        Refused { found: away, allowed: START_WINDOW, ..Refused::plain(Rejection::Start) };
                    return Err(at(refused, first - 1));
                }
            }
            let way = Segment::between(from.into(), next.knot(first, row), time - begin);
            next.check_way(row, &way, from.position.0, settings).map_err(|refused| at(refused, first))?;
        }
        Ok(Execution { start_ns, begin, to: first, first })
    }

    /// Replaces the current trajectory by the waiting one.
    fn follow_next(&mut self, start_ns: u64, release_ns: u64) {
        let course = match self.enter(start_ns, release_ns) {
            Ok(course) => course,
            Err(refused) => {
                let outcome = Outcome::Aborted(Abort::Unreachable);
                let Refused { axis, point, found, allowed, .. } = refused;
                self.reports.push(Report {
                    axis,
                    point,
                    found,
                    allowed,
                    ..Report::new(self.next.id, outcome)
                });
                if self.course.is_none() {
                    self.reported = (self.next.id, TrajectoryStatus::Aborted, 0);
                }
                self.next_stage = TrajectoryStage::Empty;
                return;
            }
        };
        if self.course.is_some() {
            self.leave(Report::new(self.now.id, Outcome::Aborted(Abort::Replaced)));
        }
        if let Some(ending) = self.ending.take() {
            // The next trajectory takes over before standstill: the cancellation is reported now.
            self.reports.push(ending);
        }
        std::mem::swap(&mut self.now, &mut self.next);
        self.next_stage = TrajectoryStage::Empty;
        self.entry.clear();
        let time = self.now.time_ns(course.first) as f64 * 1e-9;
        for row in 0..self.now.rows.len() {
            let axis = self.now.rows[row].axis;
            let to = self.now.knot(course.first, row);
            self.entry.push(Segment::between(self.points[axis].into(), to, time - course.begin));
            self.sources[axis] = TrajectorySource::Along;
        }
        self.course = Some(course);
        self.reported = (self.now.id, TrajectoryStatus::Executing, 0);
    }

    /// Leaves the trajectory: its axes stop. Cancellation is reported at standstill, all else at
    /// once.
    fn leave(&mut self, report: Report) {
        self.course = None;
        for row in 0..self.now.rows.len() {
            let axis = self.now.rows[row].axis;
            if self.sources[axis] == TrajectorySource::Along {
                self.sources[axis] = TrajectorySource::Rest;
                if self.rest.begin(axis, self.points[axis]).is_err() {
                    // The motion ahead is unknown: the set-point is held, and the drive brakes.
                    begin(&mut self.rest, axis, self.points[axis].position);
                }
            }
        }
        self.reported.1 = match report.outcome {
            Outcome::Succeeded => TrajectoryStatus::Succeeded,
            Outcome::Canceled => TrajectoryStatus::Canceled,
            _ => TrajectoryStatus::Aborted,
        };
        if report.outcome == Outcome::Canceled {
            self.ending = Some(report);
        } else {
            self.reports.push(report);
        }
    }

    fn cancel(&mut self, id: u64) {
        if self.next_stage != TrajectoryStage::Empty && (id == 0 || id == self.next.id) {
            self.drop_next(Outcome::Canceled, Rejection::Interrupted);
        }
        if self.course.is_some() && (id == 0 || id == self.now.id) {
            self.leave(Report::new(self.now.id, Outcome::Canceled));
        }
    }

    /// Drops the trajectory that arrives or waits, and reports it.
    fn drop_next(&mut self, waiting: Outcome, coming: Rejection) {
        let outcome = match self.next_stage {
            TrajectoryStage::Empty => return,
            TrajectoryStage::Coming => Outcome::Rejected(coming),
            TrajectoryStage::Waiting(_) => waiting,
        };
        self.reports.push(Report::new(self.next.id, outcome));
        self.next_stage = TrajectoryStage::Empty;
    }

    fn refuse(&mut self, refused: Refused) {
        let Refused { why, axis, point, found, allowed } = refused;
        let outcome = Outcome::Rejected(why);
        self.reports.push(Report { axis, point, found, allowed, ..Report::new(self.next.id, outcome) });
        self.next_stage = TrajectoryStage::Empty;
    }

    /// Takes the feedback of the axes: their positions, and any axis that no longer follows.
    fn look(&mut self, reports: &[AxisReport]) {
        let mut fallen = None;
        for (index, settings) in self.settings.axes.iter().enumerate() {
            let Some(report) = reports.get(settings.axis) else { continue };
            self.seen[index] = *report;
            let place = match report.feedback.phase {
                AxisPhase::Following => continue,
                AxisPhase::NotEnabled => report.feedback.position,
                AxisPhase::HoldingAt(position) => position,
            };
            if self.sources[index] == TrajectorySource::Along {
                fallen = Some(settings.axis as u32);
            }
            self.points[index] = TrajectoryPoint { position: place, ..TrajectoryPoint::default() };
            begin(&mut self.rest, index, place);
            self.sources[index] = TrajectorySource::Off;
        }
        if let Some(axis) = fallen {
            let report = Report::new(self.now.id, Outcome::Aborted(Abort::Fault));
            self.leave(Report { axis: Some(axis), ..report });
        }
        for (index, source) in self.sources.iter_mut().enumerate() {
            if *source == TrajectorySource::Off && self.seen[index].feedback.phase == AxisPhase::Following {
                *source = TrajectorySource::Rest;
            }
        }
    }

    /// Checks path and goal tolerances.
    fn judge(&mut self) {
        let Some(course) = self.course else { return };
        let time = (self.last_release_ns as f64 - course.start_ns as f64) * 1e-9;
        let end = self.now.end_ns() as f64 * 1e-9;
        let over = time >= end;
        let mut worst = None;
        for (row, settings) in self.now.rows.iter().enumerate() {
            let feedback = self.seen[settings.axis].feedback;
            if !feedback.fresh {
                // Without fresh feedback the goal is not known to be reached.
                worst = worst.or(over.then_some((row, 0.0, 0.0)));
                continue;
            }
            let point = self.points[settings.axis];
            let (position, velocity) = if over {
                (settings.goal_position, settings.goal_velocity)
            } else {
                (settings.path_position, settings.path_velocity)
            };
            let away = (point.position - feedback.position).abs().0;
            let off = (point.velocity - feedback.velocity).abs().0;
            for (found, allowed) in [(away, position), (off, velocity)] {
                if let Some(allowed) = allowed.filter(|allowed| !(found <= *allowed)) {
                    worst = worst.or(Some((row, found, allowed)));
                }
            }
        }
        let outcome = match (worst, over) {
            (None, false) => return,
            (None, true) => Outcome::Succeeded,
            (Some(_), false) => Outcome::Aborted(Abort::PathTolerance),
            (Some(_), true) if self.now.goal_time.is_none_or(|allowed| time <= end + allowed) => return,
            (Some(_), true) => Outcome::Aborted(Abort::GoalTolerance),
        };
        let report = Report::new(self.now.id, outcome);
        self.leave(worst.map_or(report, |(row, found, allowed)| {
            let axis = Some(self.now.robot_axis(row, &self.settings));
            Report { axis, found, allowed, ..report }
        }));
    }

    /// Advances the trajectory to this cycle.
    fn advance(&mut self, release_ns: u64) {
        let Some(course) = &mut self.course else { return };
        let since = release_ns.saturating_sub(course.start_ns);
        self.reported.2 = since;
        while course.to < self.now.points() && self.now.time_ns(course.to) <= since {
            course.to += 1;
        }
        let (to, time) = (course.to, since as f64 * 1e-9);
        for (row, settings) in self.now.rows.iter().enumerate() {
            self.points[settings.axis] = if to == self.now.points() {
                let position = Radians(self.now.knot(to - 1, row).position);
                TrajectoryPoint { position, ..TrajectoryPoint::default() }
            } else if to == course.first {
                self.entry[row].at(time - course.begin)
            } else {
                self.now.segment(to, row).at(time - self.now.time_ns(to - 1) as f64 * 1e-9)
            };
        }
    }
}

/// Bus time of a client's time.
fn in_bus_time(host_ns: u64, info: &CycleInfo) -> u64 {
    host_ns.saturating_add(info.bus_time.as_nanos()).saturating_sub(info.release.as_nanos())
}

impl Controller for JointTrajectory {
    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        let (reports, commands) = io.split();
        let release_ns = info.bus_time.as_nanos();
        self.look(reports);
        if info.stopping && !self.stopping {
            self.give_up(Abort::Stopped);
        }
        self.stopping = info.stopping;
        self.judge();
        self.rest.advance(elapsed(&info));
        if let TrajectoryStage::Waiting(start_ns) = self.next_stage {
            if start_ns <= release_ns {
                self.follow_next(start_ns, release_ns);
            }
        }
        self.advance(release_ns);
        for (index, settings) in self.settings.axes.iter().enumerate() {
            if self.sources[index] == TrajectorySource::Rest {
                self.points[index] = self.rest.points()[index];
            }
            if let Some(command) = commands.get_mut(settings.axis) {
                command.request = Request::Enable;
                command.setpoint = self.points[index].into();
            }
        }
        if self.rest.arrived() {
            if let Some(ending) = self.ending.take() {
                self.reports.push(ending);
            }
        }
        self.last_release_ns = release_ns;
    }

    fn output(&self) -> ControllerOutput {
        let mut output = ControllerOutput::default();
        let (trajectory, status, elapsed_ns) = self.reported;
        output.control.trajectory = trajectory;
        output.control.trajectory_status = status;
        output.control.trajectory_elapsed_ns = elapsed_ns;
        output
    }
}

/// Largest distance of the axes from a trajectory's point at time 0, rad: the plan assumes them
/// there.
const START_WINDOW: f64 = 0.05;

/// Delay up to which a late trajectory still has to begin at the present positions.
const ENTRY_NS: u64 = 100_000_000;
