//! Omnidirectional robot that follows a planned path of the convolution-based generator.

use std::path::PathBuf;
use std::time::Duration;

use ethercat::time::Instant;
use ipc::client::Client;
use motion::base::{Pose, Twist};
use motion::{
    Metres, MetresPerSecond, MetresPerSecondCubed, MetresPerSecondSquared, RadiansPerSecond, Seconds,
};
use report::{Fact, Plot, Report, Row, Section, Series, Table};
use rt::clock::{Clock, MonotonicClock};
use rt::pacer::Grid;
use serde_json::json;

use crate::convolution::PathLimits;
use crate::navigation::log::{Log, Row as Step};
use crate::navigation::pilot;
use crate::onbeat_run::OnbeatRun;
use crate::paper::Paper;
use crate::path::{Heading, Path, PathMotion, Reference};
use crate::runner::robot_file;
use crate::surroundings::Surroundings;
use crate::{Context, Error, servo};
use types::BaseKind;

/// Settings of the experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Omni {
    /// Robot file of an omnidirectional base; `None` for the example.
    pub robot: Option<PathBuf>,
    /// Limits of the motion along the path.
    pub limits: PathLimits,
    /// Heading of the robot on the way.
    pub heading: Heading,
    /// Additional options of `onbeat run`: profile, priority, CPU.
    pub options: Vec<std::ffi::OsString>,
}

impl Omni {
    /// Settings of 0.5 m/s, 0.5 m/s^2, 2 m/s^3, with a constant heading.
    #[must_use]
    pub fn new(robot: Option<PathBuf>) -> Self {
        let limits = PathLimits {
            velocity: MetresPerSecond(0.5),
            acceleration: MetresPerSecondSquared(0.5),
            jerk: MetresPerSecondCubed(2.0),
        };
        Self { robot, limits, heading: Heading::Fixed(motion::Radians(0.0)), options: Vec::new() }
    }

    /// Runs the experiment.
    ///
    /// # Errors
    /// A run failed, the limits are invalid, or the robot has no such base.
    pub fn run(&self, context: &Context) -> Result<Report, Error> {
        let path = path().map_err(Error::other)?;
        let planned = PathMotion::new(path, self.limits, self.heading).map_err(Error::other)?;
        let seconds = planned.duration().0 + SETTLE.as_secs_f64();
        let longest = Duration::try_from_secs_f64(seconds).ok().filter(|&time| time <= LONGEST_PATH);
        let Some(longest) = longest else {
            return Err(Error::other(format_args!(
                "the robot takes {seconds:.1e} s along the path, expected {} h at most: raise the limits",
                LONGEST_PATH.as_secs() / 3600
            )));
        };
        let robot = robot_file(context, self.robot.as_deref(), "omni.toml", EXAMPLE)?;
        let surroundings = Surroundings::begin(context);
        context.say(format_args!("omni: {seconds:.1} s along the path"));
        let ipc = format!("omni-{}", std::process::id());
        let mut options = self.options.clone();
        options.extend(["--ipc".into(), ipc.clone().into()]);
        let run = OnbeatRun { robot: Some(robot.clone()), period: None, options };
        let mut running = run.start(context, &context.path("omni-cycles"), longest + LONGEST_START)?;
        let mut steps = Vec::new();
        if running.wait_until_measuring(context)? {
            steps = follow(context, &ipc, &planned)?;
        }
        let outcome = running.finish()?;
        let mut report = self.report(&robot, &planned, &steps);
        surroundings.end(&mut report);
        report.warnings.extend(servo::refusals(&outcome));
        Ok(report)
    }

    fn report(&self, robot: &std::path::Path, planned: &PathMotion, steps: &[Followed]) -> Report {
        let [rectangle, first, second] = planned.profile().windows();
        let mut report = Report {
            experiment: "omni".into(),
            title: "An omnidirectional robot on its path, by the convolution-based generator".into(),
            source: Some(
                "the controllers paper, Section 4.1 and Figure 9: path tracking from (0 m, 0 m) to (3 m, 1.5 m), with the generator of its \
                 reference (a rectangle of velocity, convolved with two boxes)"
                    .into(),
            ),
            measured: "where the robot is by the odometry of its four simulated wheels, and its \
                position on the path, at every command, and at the end"
                .into(),
            good: "an end-point error of a few millimetres, and a robot that is never more than a few centimetres from its \
                   reference"
                .into(),
            found: Some(
                "minimal error at the end point, without a number"
                    .into(),
            ),
            ..Report::default()
        };
        let PathLimits { velocity, acceleration, jerk } = self.limits;
        report.conditions.extend([
            fact("robot file", robot.display().to_string()),
            fact(
                "path",
                format!(
                    "a cubic Bezier curve of {:.3}; the curve between its ends is ours",
                    planned.path().length()
                ),
            ),
            fact("limits", format!("{velocity}, {acceleration}, {jerk}")),
            fact(
                "windows",
                format!("rectangle {rectangle:.3}, first box {first:.3}, second box {second:.3}"),
            ),
            fact("commands", format!("through the IPC, every {} ms", EVERY.as_millis())),
        ]);
        let Some(last) = steps.last() else {
            report.warn("the robot was not followed to the end of its path");
            return report;
        };
        let goal = planned.path().at(planned.path().length()).pose;
        let (end, off) = (last.step.pose, last.step.pose.distance_to(goal).0 * 1e3);
        let worst = steps.iter().map(Followed::off).fold(0.0, f64::max) * 1e3;
        let mean = steps.iter().map(Followed::off).sum::<f64>() / steps.len() as f64 * 1e3;
        let turned = (end.yaw - last.reference.pose.yaw).0.abs().to_degrees();
        let row =
            |name: &str, value: String| Row { name: name.into(), cells: vec![value], from_paper: false };
        report.sections.push(Section::Table(Table {
            caption: "End point and way".into(),
            columns: vec![String::new(), "value".into()],
            rows: vec![
                row("planned end", format!("({:.4} m, {:.4} m)", goal.x.0, goal.y.0)),
                row("actual end", format!("({:.4} m, {:.4} m)", end.x.0, end.y.0)),
                row("end-point error", format!("{off:.3} mm")),
                row("heading error at the end", format!("{turned:.3} degrees")),
                row("largest distance from the reference", format!("{worst:.1} mm")),
                row("mean distance from the reference", format!("{mean:.1} mm")),
                row("planned duration", format!("{:.3}", planned.duration())),
                row("peak central velocity", format!("{:.3}", planned.profile().peak_velocity())),
            ],
        }));
        report.sections.push(Section::Text(CURVE.into()));
        Paper::Controllers.append(&["Section 4.1"], &mut report);
        report.sections.extend(plots(steps));
        let values = [
            ("end_point_error_mm", json!(off)),
            ("largest_distance_mm", json!(worst)),
            ("mean_distance_mm", json!(mean)),
            ("heading_error_degrees", json!(turned)),
            ("planned_duration_s", json!(planned.duration().0)),
            ("commands", json!(steps.len())),
        ]
        .map(|(name, value)| (name.to_owned(), value));
        report.values.extend(values);
        report
    }
}

/// Path between the paper's end points, with zero slope at both.
fn path() -> Result<Path, crate::path::PathError> {
    let place = |x, y| [Metres(x), Metres(y)];
    Path::bezier([place(0.0, 0.0), place(1.5, 0.0), place(1.5, 1.5), place(3.0, 1.5)])
}

/// Command, with the results of the former ones.
#[derive(Clone, Debug)]
struct Followed {
    time: f64,
    reference: Reference,
    step: Step,
    /// Velocities of the wheels, rad/s.
    wheels: Vec<f64>,
}

impl Followed {
    /// Distance from the reference, m.
    fn off(&self) -> f64 {
        self.step.pose.distance_to(self.reference.pose).0
    }
}

/// Follows the path from the robot's position, and waits until it has come to rest.
fn follow(context: &Context, ipc: &str, planned: &PathMotion) -> Result<Vec<Followed>, Error> {
    let client = Client::named(ipc).map_err(Error::other)?;
    if client.description().base.as_ref().is_none_or(|base| base.kind == BaseKind::Differential) {
        return Err(Error::other(
            "measure omni: expected a robot with a [base] of kind mecanum or omni, found none: name such a robot file",
        ));
    }
    let mut commands = client.command().map_err(Error::other)?;
    let state = client.state();
    let mut log = Log::begin(context, "omni", &[])?;
    let (mut steps, begin) = (Vec::new(), MonotonicClock.now() + EVERY);
    let grid = Grid::new(begin, EVERY);
    let end = planned.duration().0 + SETTLE.as_secs_f64();
    for command in 0.. {
        MonotonicClock.sleep_until(grid.release(command));
        let now = MonotonicClock.now();
        let time = since(begin, now);
        if time > end || context.stopped() {
            break;
        }
        if client.has_ended() {
            return Err(Error::other("measure omni: the robot's run ended before the end of the path"));
        }
        let state = state.read().map_err(Error::other)?;
        let (pose, twist) = pilot::base(&state.base);
        let reference = planned.at(Seconds(time));
        let asked = correct(reference, pose);
        pilot::send(&mut commands, asked, now)?;
        let step = Step { time_ns: now.as_nanos(), pose, twist, asked, room: 0.0 };
        log.append(&step);
        let wheels = state.axes.iter().map(|axis| axis.velocity).collect();
        steps.push(Followed { time, reference, step, wheels });
    }
    pilot::send(&mut commands, Twist::default(), MonotonicClock.now())?;
    log.finish()?;
    Ok(steps)
}

/// Velocity of the reference plus a correction proportional to the error, in the robot's own frame.
fn correct(reference: Reference, pose: Pose) -> Twist {
    let (sin, cos) = (reference.pose.yaw - pose.yaw).0.sin_cos();
    let (x, y) = (reference.twist.x.0, reference.twist.y.0);
    let (dx, dy) = ((reference.pose.x - pose.x).0, (reference.pose.y - pose.y).0);
    let (own_sin, own_cos) = pose.yaw.0.sin_cos();
    Twist {
        x: MetresPerSecond(cos * x - sin * y + GAIN * (own_cos * dx + own_sin * dy)),
        y: MetresPerSecond(sin * x + cos * y + GAIN * (own_cos * dy - own_sin * dx)),
        yaw: RadiansPerSecond(reference.twist.yaw.0 + GAIN * (reference.pose.yaw - pose.yaw).0),
    }
}

fn since(begin: Instant, now: Instant) -> f64 {
    now.as_nanos().saturating_sub(begin.as_nanos()) as f64 / 1e9
}

fn plots(steps: &[Followed]) -> [Section; 4] {
    let series = |name: &str, of: &dyn Fn(&Followed) -> (f64, f64)| Series {
        name: name.into(),
        points: steps.iter().map(of).collect(),
    };
    let over = |caption: &str, unit: &str, series: Vec<Series>| {
        Section::Curve(Plot { caption: caption.into(), x: "s".into(), y: unit.into(), series })
    };
    let wheels = steps.first().map_or(0, |step| step.wheels.len());
    let wheel = |wheel: usize| {
        series(&format!("wheel {}", wheel + 1), &|it| {
            (it.time, it.wheels.get(wheel).copied().unwrap_or(f64::NAN))
        })
    };
    let central = |twist: &Twist| twist.x.0.hypot(twist.y.0);
    [
        Section::Map(Plot {
            caption: "Trajectory of the middle of the robot".into(),
            x: "x, m".into(),
            y: "y, m".into(),
            series: vec![
                series("planned", &|it| (it.reference.pose.x.0, it.reference.pose.y.0)),
                series("driven", &|it| (it.step.pose.x.0, it.step.pose.y.0)),
            ],
        }),
        over(
            "Velocities of the robot",
            "m/s",
            vec![
                series("planned, central", &|it| (it.time, central(&it.reference.twist))),
                series("driven, central", &|it| (it.time, central(&it.step.twist))),
                series("driven, ahead", &|it| (it.time, it.step.twist.x.0)),
                series("driven, to the left", &|it| (it.time, it.step.twist.y.0)),
            ],
        ),
        over("Velocities of the wheels", "rad/s", (0..wheels).map(wheel).collect()),
        over(
            "Distance from the reference",
            "mm",
            vec![series("distance", &|it| (it.time, it.off() * 1e3))],
        ),
    ]
}

fn fact(name: &str, value: String) -> Fact {
    Fact { name: name.into(), value }
}

/// Robot file of a base on four Mecanum wheels.
const EXAMPLE: &str = include_str!("../../../examples/omni.toml");

/// Time between two commands.
const EVERY: Duration = Duration::from_millis(10);

/// Gain of the correction, 1/s.
const GAIN: f64 = 3.0;

/// Longest time along the path.
const LONGEST_PATH: Duration = Duration::from_secs(24 * 3600);

/// Time to come to rest at the end.
const SETTLE: Duration = Duration::from_secs(2);

/// Time that the run continues after the path, for a slow start.
const LONGEST_START: Duration = Duration::from_secs(30);

const CURVE: &str = "The path begins and ends at the paper's places; the curve between them, the velocities and the limits are ours.";
