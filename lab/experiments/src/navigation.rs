//! Differential-drive robot that drives 3 m round an obstacle: control and drives in an ordinary
//! process, and in the real-time cycle, the planner in another process in both (service-robot
//! paper, Figures 9 and 10).

mod cell;
pub mod course;
pub(crate) mod log;
pub mod pilot;
pub mod planner;
mod ros2;
mod tables;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use report::Report;

pub use self::course::Course;

use self::cell::{Cell, Place};
use crate::runner::robot_file;
use crate::surroundings::Surroundings;
use crate::{Context, Error};

/// Settings of the experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Navigation {
    /// Robot file of a differential drive; `None` for the example.
    pub robot: Option<PathBuf>,
    /// Period of the actuator task, which is the cycle.
    pub period: Duration,
    /// Duration of each of the four cells; the robot waits once it has arrived.
    pub duration: Duration,
    /// Course of the drive.
    pub course: Course,
    /// Planner in the other process.
    pub planner: Planner,
    /// Additional options of `onbeat run` for the real-time cells: profile, priority, CPU.
    pub options: Vec<OsString>,
}

/// Planner in the other process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Planner {
    /// Process of ours, attached to the shared-memory interface.
    #[default]
    Ipc,
    /// The same program as a node of ROS 2 itself.
    Ros {
        /// Python with `rclpy`.
        python: PathBuf,
    },
    /// Python program that uses DDS, as a ROS 2 node does, connected by `onbeat-ros2`.
    Dds {
        /// Python with `cyclonedds`.
        python: PathBuf,
    },
}

impl Navigation {
    /// The course for 20 s in each cell, commands every 50 ms and the actuator task every 10 ms, as
    /// in the paper.
    #[must_use]
    pub fn new(robot: Option<PathBuf>) -> Self {
        Self {
            robot,
            period: Duration::from_millis(10),
            duration: Duration::from_secs(20),
            course: Course::default(),
            planner: Planner::Ipc,
            options: Vec::new(),
        }
    }

    /// Runs the experiment. The report is saved in any case.
    ///
    /// # Errors
    /// A run failed; a planner in another program sent no command; or a robot does not arrive or
    /// touches the obstacle, other than under load with an ordinary process, or with a planner that
    /// the load gave no time.
    pub fn run(&self, context: &Context) -> Result<Report, Error> {
        self.check_duration()?;
        if let Planner::Ros { python } = &self.planner {
            ros2::check_rclpy(python)?;
        }
        let robot = robot_file(context, self.robot.as_deref(), "m4k.toml", EXAMPLE)?;
        let surroundings = Surroundings::begin(context).of_robot(Some(&robot));
        let mut cells = Vec::new();
        context.progress.plan("navigation", vec![self.duration; 4]);
        for loaded in [false, true] {
            for place in [Place::Ordinary, Place::RealTime] {
                if !context.stopped() {
                    cells.push(self.cell(context, &robot, place, loaded)?);
                }
            }
        }
        let mut report = self.report(&robot, &cells)?;
        surroundings.end(&mut report);
        cells.iter().flat_map(|cell| &cell.doubts).for_each(|doubt| report.warn(doubt));
        if context.stopped() {
            return Ok(report);
        }
        // The delay of the ordinary process is the object of the measurement; a real-time cycle
        // must not be affected, unless the load left the planner no time to plan.
        let (may, must): (Vec<&Cell>, Vec<&Cell>) =
            cells.iter().partition(|cell| cell.may_go_astray(self.duration));
        let astray = |cell: &Cell| cell.astray(&self.course);
        may.into_iter().filter_map(astray).for_each(|finding| report.warn(finding));
        let astray: Vec<String> = must.into_iter().filter_map(astray).collect();
        if astray.is_empty() {
            return Ok(report);
        }
        report::save(&report, &context.directory)
            .map_err(|error| Error::file(&context.directory, error))?;
        Err(Error::other(format_args!(
            "{}; expected the robot at the goal without a touch. The report and the logs are in {}",
            astray.join("; "),
            context.directory.display()
        )))
    }

    /// Refuses a time in which no robot can arrive: the planner's velocity all along a straight
    /// line.
    fn check_duration(&self) -> Result<(), Error> {
        let way = self.course.left(Course::start()) - self.course.tolerance;
        let velocity = self.course.velocity;
        let least = way / velocity;
        if self.duration.as_secs_f64() > least {
            return Ok(());
        }
        Err(Error::other(format_args!(
            "--duration {}: the robot cannot arrive in that, expected more than {least:.1} s for {way:.1} m at {velocity} m/s",
            types::duration::format(self.duration)
        )))
    }

    fn report(&self, robot: &Path, cells: &[Cell]) -> Result<Report, Error> {
        let period_us = self.period.as_micros();
        let mut report = Report {
            experiment: "navigation".into(),
            title: "Navigation round an obstacle: the actuator's period in an ordinary process and in a real-time cycle".into(),
            source: Some("the service-robot paper's navigation experiment, Figures 9 and 10".into()),
            measured: "for every cycle of the actuator task its actual period, from start to start, and how far that is \
                       from the nominal one; where the robot drove, and how fast"
                .into(),
            good: "in the real-time cycle a deviation of a few per cent of the period at most, under load as without, and a \
                   robot that arrives without touching the obstacle (otherwise the experiment fails)"
                .into(),
            found: Some(
                "under stress the period of the actuator task is off by up to 4.8 ms in ordinary Linux, and by 84 us through XDDP"
                    .into(),
            ),
            ..Report::default()
        };
        let Course {
            goal,
            obstacle,
            boards: [low, high],
            robot: [length, width],
            velocity,
            acceleration,
            ..
        } = self.course;
        let place = |[x, y]: [f64; 2]| format!("({x}, {y})");
        report.condition("robot file", robot.display().to_string());
        report.condition("outline", format!("{length} x {width} m"));
        report.condition(
            "course",
            format!(
                "to {} m round a triangle with corners at {} m, boards around from {} to {} m",
                place(goal),
                obstacle.map(place).join(", "),
                place(low),
                place(high)
            ),
        );
        report.condition("limits", format!("{velocity} m/s, {acceleration} m/s^2"));
        report.condition(
            "conditions",
            "control and drives in one process: ordinary (the paper's ROS), or a real-time cycle (its XDDP); the planner in \
             another process, through the IPC, in all four",
        );
        report.condition("actuator task", format!("every {period_us} us: one cycle of the bus"));
        report.condition("planner", format!("a dynamic window every 50 ms; {}", self.planner.words()));
        report.condition("load", pilot::words());
        report.condition("duration", format!("{} s each", self.duration.as_secs_f64()));
        tables::sections(self, cells, &mut report)?;
        Ok(report)
    }
}

/// Robot file of a base on two driven wheels.
const EXAMPLE: &str = include_str!("../../../examples/m4k.toml");

impl Planner {
    const fn words(&self) -> &'static str {
        match self {
            Self::Ipc => "a process of ours",
            Self::Ros { .. } => "a node of ROS 2 (rclpy), onbeat-ros2 between",
            Self::Dds { .. } => "over DDS by a Python program, onbeat-ros2 between",
        }
    }
}
