//! Pilot: detects the obstacle, plans, and keeps a log, in a separate process attached to the
//! cycle.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ethercat::time::Instant;
use ipc::client::Client;
use ipc::command::{self, Command};
use ipc::description::Description;
use ipc::state::State;
use motion::base::{Pose, Twist};
use motion::{Metres, MetresPerSecond, Radians, RadiansPerSecond};
use rt::clock::{Clock, MonotonicClock};
use rt::pacer::Grid;

use super::course::Course;
use super::log::{Log, Row};
use super::planner::DynamicWindow;
use crate::{Context, Error};

/// Pilot that drives a base along a course.
#[derive(Debug)]
pub struct Pilot {
    course: Course,
    planner: DynamicWindow,
    log: Log,
    plan_every: u64,
    next_plan: u64,
    asked: Twist,
    /// True once it has arrived; it then stays.
    arrived: bool,
}

impl Pilot {
    /// Creates a pilot that plans every 50 ms, and logs every step into the file of this name.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn begin(context: &Context, name: &str, course: Course) -> Result<Self, Error> {
        let planner = DynamicWindow::of(&course);
        let facts = [("course", serde_json::to_value(course).map_err(Error::other)?)];
        Ok(Self {
            course,
            planner,
            log: Log::begin(context, name, &facts)?,
            plan_every: (planner.period * 1e9) as u64,
            next_plan: 0,
            asked: Twist::default(),
            arrived: false,
        })
    }

    /// Takes the pose of the base at an instant; returns a command if there is a new plan.
    pub fn step(&mut self, now_ns: u64, pose: Pose, twist: Twist) -> Option<Twist> {
        let plans = now_ns >= self.next_plan;
        if plans {
            // On its own grid, unless it was delayed for longer than a planning period.
            self.next_plan = (self.next_plan + self.plan_every).max(now_ns.saturating_sub(self.plan_every));
            self.arrived |= self.course.is_reached(pose);
            self.asked = if self.arrived {
                Twist::default()
            } else {
                let points: Vec<[f64; 2]> = self.course.scan(pose).into_iter().flatten().collect();
                self.planner.plan(twist, self.course.goal_from(pose), &points)
            };
        }
        self.observe(now_ns, pose, twist, self.asked);
        plans.then_some(self.asked)
    }

    /// Logs a step of a base that is led by `asked`.
    pub fn observe(&mut self, now_ns: u64, pose: Pose, twist: Twist, asked: Twist) {
        let room = self.course.room(pose);
        self.log.append(&Row { time_ns: now_ns, pose, twist, asked, room });
    }

    /// Finishes the log.
    ///
    /// # Errors
    /// The file could not be written.
    pub fn finish(mut self) -> Result<(), Error> {
        self.log.finish()
    }
}

/// Drives the running cycle `ipc` from another process, until the user or the cycle's process ends
/// it. With `another_leads` it only observes and keeps the log, with the velocity that the wheels
/// are sent as the reference.
///
/// # Errors
/// The interface cannot be attached to, or a file cannot be written.
pub fn drive(
    context: &Context,
    ipc: &str,
    name: &str,
    course: Course,
    another_leads: bool,
) -> Result<(), Error> {
    let client = Client::named(ipc).map_err(Error::other)?;
    let mut commands = if another_leads { None } else { Some(client.command().map_err(Error::other)?) };
    let state = client.state();
    let mut pilot = Pilot::begin(context, name, course)?;
    let grid = Grid::new(MonotonicClock.now() + LOOK_EVERY, LOOK_EVERY);
    for look in 0.. {
        MonotonicClock.sleep_until(grid.release(look));
        if context.stopped() || client.has_ended() {
            break;
        }
        let state = state.read().map_err(Error::other)?;
        let (pose, twist) = base(&state.base);
        let now = MonotonicClock.now();
        let Some(commands) = commands.as_mut() else {
            pilot.observe(state.release_ns, pose, twist, sent_to_wheels(&state, client.description()));
            continue;
        };
        if let Some(asked) = pilot.step(state.release_ns, pose, twist) {
            match send(commands, asked, now) {
                Err(_) if client.has_ended() => break,
                sent => sent?,
            }
        }
    }
    pilot.finish()
}

/// Commands a twist of the base.
pub(crate) fn send(commands: &mut command::Writer, asked: Twist, now: Instant) -> Result<(), Error> {
    let command = Command {
        stamp_ns: now.as_nanos(),
        time_to_live_ns: TIME_TO_LIVE.as_nanos() as u64,
        twist: Some(asked),
        axes: vec![None; commands.axes()],
        ..Command::default()
    };
    commands.send(&command).map(drop).map_err(Error::other)
}

/// Pose and twist of the base, with their units.
pub(crate) fn base(base: &ipc::state::Base) -> (Pose, Twist) {
    let [x, y, yaw] = base.pose;
    let pose = Pose { x: Metres(x), y: Metres(y), yaw: Radians(yaw) };
    let [x, y, yaw] = base.twist;
    let twist = Twist { x: MetresPerSecond(x), y: MetresPerSecond(y), yaw: RadiansPerSecond(yaw) };
    (pose, twist)
}

/// Velocity of the base that its wheels are sent.
fn sent_to_wheels(state: &State, description: &Description) -> Twist {
    let wheels = description.base.iter().flat_map(|base| &base.wheels);
    let sent = wheels.filter_map(|it| Some((it.twist, state.axes.get(it.axis)?.target_velocity)));
    let [x, y, yaw] = sent.fold([0.0; 3], |sum, (twist, velocity)| {
        std::array::from_fn(|part| sum[part] + twist[part] * velocity)
    });
    Twist { x: MetresPerSecond(x), y: MetresPerSecond(y), yaw: RadiansPerSecond(yaw) }
}

/// Path of a log of this name.
#[must_use]
pub fn log_path(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.mcap"))
}

/// Interval between two reads of the pose: the actuator task's period.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Time-to-live of a command: four planning periods.
const TIME_TO_LIVE: Duration = Duration::from_millis(200);
