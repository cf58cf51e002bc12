//! One of the four drives.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use record::{CycleRecord, cycles};

use super::course::Course;
use super::log::{self, Row};
use super::pilot::Stress;
use super::ros2::{Commands, FIRST_COMMAND, Ros2};
use super::{Navigation, Planner, pilot};
use crate::child::ChildProcess;
use crate::onbeat_run::OnbeatRun;
use crate::{Context, Error, runner, servo};

/// Process that holds control and drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Ordinary: without any real-time request to the system.
    Ordinary,
    /// With the robot file's profile, or the user's.
    RealTime,
}

/// Drive, with the actuator task's record.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) place: Place,
    pub(super) loaded: bool,
    pub(super) name: String,
    pub(super) key: String,
    pub(super) cycles: Vec<CycleRecord>,
    pub(super) drive: Vec<Row>,
    /// Commands of a planner that is a separate program.
    pub(super) commands: Option<Commands>,
    pub(super) doubts: Vec<String>,
}

impl Navigation {
    pub(super) fn cell(
        &self,
        context: &Context,
        robot: &Path,
        place: Place,
        loaded: bool,
    ) -> Result<Cell, Error> {
        let (name, key) = names(place, loaded);
        context.begin_cell(format_args!("{name}, {} s", self.duration.as_secs_f64()));
        let stress = if loaded { Some(Stress::start(context)?) } else { None };
        let recording = context.path(&format!("{key}-cycles"));
        let (mut doubts, commands) = self.drive(context, robot, place, &key, &recording)?;
        doubts.extend(stress.map(Stress::end).unwrap_or_default());
        let (_, mut cycles) = cycles::cycles(&runner::read(&recording)?)
            .map_err(|why| Error::other(format_args!("{}: {why}", recording.display())))?;
        let mut drive = log::read(&pilot::log_path(&context.directory, &key))?;
        // The robot waits for the first command: the planner's start is not part of the drive.
        if let Some(begin) = commands.as_ref().map(|it| it.begin_ns) {
            let drives = begin..begin + types::time::nanoseconds(self.duration);
            cycles.retain(|it| drives.contains(&it.release_ns));
            drive.retain(|it| drives.contains(&it.time_ns));
        }
        Ok(Cell { place, loaded, name, key, cycles, drive, commands, doubts })
    }

    fn drive(
        &self,
        context: &Context,
        robot: &Path,
        place: Place,
        key: &str,
        recording: &Path,
    ) -> Result<(Vec<String>, Option<Commands>), Error> {
        let ipc = format!("navigation-{}", std::process::id());
        let run = self.onbeat_run(robot, place, &ipc);
        let until = if self.planner == Planner::Ipc { Duration::ZERO } else { FIRST_COMMAND };
        let mut running = run.start(context, recording, self.duration + until)?;
        let mut commands = None;
        if running.wait_until_measuring(context)? {
            let mut command = Command::new(&context.programs.measure);
            command.args(["pilot", "--with-parent", "--ipc", &ipc, "--log", key, "--directory"]);
            command.arg(&context.directory).arg("--course").arg(self.course_words()?);
            let mut planner = match &self.planner {
                Planner::Ipc => None,
                Planner::Dds { python } | Planner::Ros { python } => {
                    command.arg("--only-log");
                    let as_node = matches!(self.planner, Planner::Ros { .. });
                    Some(Ros2::start(context, python, as_node, &ipc, &self.course)?)
                }
            };
            let mut pilot = ChildProcess::start(command)?;
            if let Some(planner) = &mut planner {
                planner.wait_for_command(context, &mut running)?;
            }
            let end = planner.as_ref().map(|_| Instant::now() + self.duration);
            // The pilot ends with the interface, a little before the run.
            while !running.is_over()
                && !pilot.is_over()
                && end.is_none_or(|end| Instant::now() < end)
                && context.wait(LOOK_EVERY)
            {
                let lost = planner.as_mut().and_then(|planner| planner.look().err());
                if let Some(error) = lost {
                    // At the end all processes end; before it, none may.
                    context.wait(END);
                    if !running.is_over() {
                        return Err(error);
                    }
                }
            }
            pilot.finish()?;
            commands = planner.map(Ros2::end);
        }
        let outcome = running.finish()?;
        Ok((servo::refusals(&outcome), commands))
    }

    fn course_words(&self) -> Result<String, Error> {
        serde_json::to_string(&self.course).map_err(Error::other)
    }

    fn onbeat_run(&self, robot: &Path, place: Place, ipc: &str) -> OnbeatRun {
        let mut options: Vec<OsString> = match place {
            Place::Ordinary => ["--profile".into(), "none".into()].into(),
            Place::RealTime => self.options.clone(),
        };
        options.extend(["--ipc".into(), ipc.into()]);
        OnbeatRun { robot: Some(robot.to_owned()), period: Some(self.period), options }
    }
}

impl Cell {
    /// Time of arrival at the goal, since the first step.
    pub(super) fn arrival(&self, course: &Course) -> Option<Duration> {
        let begin = self.drive.first()?.time_ns;
        let there = self.drive.iter().find(|row| course.is_reached(row.pose))?;
        Some(Duration::from_nanos(there.time_ns - begin))
    }

    /// Smallest clearance to the triangle and the boards, m.
    pub(super) fn least_room(&self) -> Option<f64> {
        self.drive.iter().map(|row| row.room).reduce(f64::min)
    }

    /// True if a drive that goes astray is a finding of the measurement: an ordinary process that
    /// the load holds up, or a planner that the load gives no time.
    pub(super) fn may_go_astray(&self, duration: Duration) -> bool {
        let starved = |it: &Commands| it.starved(duration);
        self.loaded && (self.place != Place::RealTime || self.commands.as_ref().is_some_and(starved))
    }

    /// Failure of the drive, if any.
    pub(super) fn astray(&self, course: &Course) -> Option<String> {
        match (self.arrival(course), self.least_room()) {
            (_, Some(room)) if room <= 0.0 => {
                Some(format!("{}: it touched the triangle or a board", self.name))
            }
            (Some(_), _) => None,
            (None, _) => {
                let left = self.drive.last().map_or(f64::NAN, |row| course.left(row.pose));
                let pause = self.cycles.windows(2).map(|pair| pair[1].start_ns - pair[0].start_ns).max();
                let pause = pause.unwrap_or(0) as f64 / 1e6;
                let why = if pause > WATCHDOG_MS {
                    format!(
                        "; once nothing was sent for {pause:.0} ms, and drives stop by themselves after {WATCHDOG_MS} ms"
                    )
                } else {
                    self.commands.as_ref().map(|it| format!("; {}", it.words())).unwrap_or_default()
                };
                Some(format!("{}: it did not arrive, {left:.2} m were left{why}", self.name))
            }
        }
    }
}

/// Default SyncManager watchdog of a SubDevice.
const WATCHDOG_MS: f64 = 100.0;

fn names(place: Place, loaded: bool) -> (String, String) {
    let (name, key) = match place {
        Place::Ordinary => ("ordinary process", "ordinary"),
        Place::RealTime => ("real-time cycle", "real-time"),
    };
    if loaded { (format!("{name}, under load"), format!("{key}-load")) } else { (name.into(), key.into()) }
}

const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Time for a run to end once its interface is closed.
const END: Duration = Duration::from_secs(2);
