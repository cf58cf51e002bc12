//! The controllers a robot file can name.

use ethercat::cia402::Request;
use motion::{AxisPhase, AxisSetpoint, Radians, Seconds, SmoothSinusoid, StopProfile, TrajectoryPoint};
use robot::{Axis, Robot, Sinusoid};
use runtime::controller::{AxisCommand, AxisReport, Beat, Controller};

/// The controller of `robot`.
pub(crate) fn controller(robot: &Robot) -> Box<dyn Controller> {
    match &robot.controller {
        robot::Controller::Hold => Box::new(Hold),
        robot::Controller::Sinusoid(swings) => {
            let swings = robot.axes.iter().zip(swings).map(|(axis, sinusoid)| Swing::new(axis, sinusoid));
            Box::new(Swings { swings: swings.collect() })
        }
    }
}

/// Every axis is enabled and stays where it is.
struct Hold;

impl Controller for Hold {
    fn update(&mut self, _: Beat, reports: &[AxisReport], commands: &mut [AxisCommand]) {
        for (report, command) in reports.iter().zip(commands) {
            command.request = Request::Enable;
            if let AxisPhase::HoldingAt(position) = report.feedback.phase {
                command.setpoint = AxisSetpoint { position, ..AxisSetpoint::default() };
            }
        }
    }
}

/// Every axis swings about the position it was enabled at, and comes to rest when asked to.
struct Swings {
    swings: Vec<Swing>,
}

impl Controller for Swings {
    fn update(&mut self, beat: Beat, reports: &[AxisReport], commands: &mut [AxisCommand]) {
        let elapsed = Seconds(beat.period.as_secs_f64() * beat.periods as f64);
        for ((swing, report), command) in self.swings.iter_mut().zip(reports).zip(commands) {
            command.request = Request::Enable;
            if let Some(point) = swing.advance(elapsed, beat.stopping, report.feedback.phase) {
                command.setpoint = point.into();
            }
        }
    }
}

/// One axis's swing.
struct Swing {
    sinusoid: SmoothSinusoid,
    /// How much later than the others it begins.
    delay: Seconds,
    limits: Option<(f64, f64)>,
    course: Course,
}

enum Course {
    /// The drive is not enabled, or has not been since the last fault.
    Waiting,
    Swinging {
        since_begin: Seconds,
        last: TrajectoryPoint,
    },
    Stopping {
        since_begin: Seconds,
        profile: StopProfile,
    },
    Resting(Radians),
}

impl Swing {
    fn new(axis: &Axis, sinusoid: &Sinusoid) -> Self {
        Self {
            sinusoid: sinusoid.trajectory(),
            delay: sinusoid.delay(),
            limits: axis.limits.position,
            course: Course::Waiting,
        }
    }

    /// The next set-point, or `None` while there is none to give.
    fn advance(&mut self, elapsed: Seconds, stopping: bool, phase: AxisPhase) -> Option<TrajectoryPoint> {
        match phase {
            AxisPhase::NotEnabled => self.course = Course::Waiting,
            // Set-points were refused, or there were none yet: begin anew where it stands.
            AxisPhase::HoldingAt(position) => self.begin(position, stopping),
            AxisPhase::Following if stopping => self.stop(),
            AxisPhase::Following => {}
        }
        let point = match &mut self.course {
            Course::Waiting => return None,
            Course::Swinging { since_begin, last } => {
                *since_begin += elapsed;
                let mut point = self.sinusoid.at(*since_begin - self.delay);
                if let Some((lowest, highest)) = self.limits {
                    // An axis that stands outside its limits is not moved any farther out.
                    let (lowest, highest) = (lowest.min(last.position.0), highest.max(last.position.0));
                    let inside = Radians(point.position.0.clamp(lowest, highest));
                    if inside != point.position {
                        point = TrajectoryPoint { position: inside, ..TrajectoryPoint::default() };
                    }
                }
                *last = point;
                point
            }
            Course::Stopping { since_begin, profile } => {
                *since_begin += elapsed;
                profile.at(*since_begin)
            }
            Course::Resting(position) => {
                TrajectoryPoint { position: *position, ..TrajectoryPoint::default() }
            }
        };
        Some(point)
    }

    fn begin(&mut self, position: Radians, stopping: bool) {
        self.sinusoid = self.sinusoid.starting_at(position);
        let last = TrajectoryPoint { position, ..TrajectoryPoint::default() };
        self.course = if stopping {
            Course::Resting(position)
        } else {
            Course::Swinging { since_begin: Seconds(0.0), last }
        };
    }

    /// Comes to rest no harder than it swings.
    fn stop(&mut self) {
        if let Course::Swinging { last, .. } = &self.course {
            let deceleration = self.sinusoid.maximum_acceleration();
            self.course = match StopProfile::new(last.position, last.velocity, deceleration) {
                Ok(profile) => Course::Stopping { since_begin: Seconds(0.0), profile },
                Err(_) => Course::Resting(last.position),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEAT: Seconds = Seconds(1e-3);

    fn swing() -> Swing {
        let text = include_str!("../../../../examples/six-axis.toml");
        let robot = Robot::parse(text, "six-axis.toml").unwrap();
        let sinusoid = Sinusoid::new(1.0, 0.5, 0.0).unwrap();
        Swing::new(&robot.axes[0], &sinusoid)
    }

    fn position(swing: &mut Swing, stopping: bool, phase: AxisPhase) -> f64 {
        swing.advance(BEAT, stopping, phase).unwrap().position.0
    }

    #[test]
    fn positions_begin_where_the_axis_stands_and_never_step() {
        let mut swing = swing();
        assert!(swing.advance(BEAT, false, AxisPhase::NotEnabled).is_none());
        let mut last = position(&mut swing, false, AxisPhase::HoldingAt(Radians(5.0)));
        assert!((last - 5.0).abs() < 1e-6);
        let (mut fastest, mut farthest) = (0.0_f64, 0.0_f64);
        for _ in 0..6_000 {
            let next = position(&mut swing, false, AxisPhase::Following);
            fastest = fastest.max((next - last).abs());
            farthest = farthest.max((next - 5.0).abs());
            last = next;
        }
        assert!(fastest < 5e-3 && farthest > 0.99 && farthest < 1.001, "{fastest} {farthest}");
        for _ in 0..2_000 {
            let next = position(&mut swing, true, AxisPhase::Following);
            assert!((next - last).abs() < 5e-3);
            last = next;
        }
        assert_eq!(position(&mut swing, true, AxisPhase::Following), last, "at rest");
    }

    #[test]
    fn an_axis_behind_its_limit_is_not_moved_any_farther_out() {
        let mut swing = swing();
        swing.limits = Some((-2.0, 2.0));
        position(&mut swing, false, AxisPhase::HoldingAt(Radians(2.5)));
        let farthest = (0..6_000).map(|_| position(&mut swing, false, AxisPhase::Following));
        assert!(farthest.fold(0.0, f64::max) <= 2.5);
    }

    #[test]
    fn a_drive_that_falls_out_begins_anew_where_it_stands() {
        let mut swing = swing();
        position(&mut swing, false, AxisPhase::HoldingAt(Radians(0.0)));
        (0..1_000).for_each(|_| {
            swing.advance(BEAT, false, AxisPhase::Following);
        });
        assert!(swing.advance(BEAT, false, AxisPhase::NotEnabled).is_none());
        let begin = position(&mut swing, false, AxisPhase::HoldingAt(Radians(3.0)));
        assert!((begin - 3.0).abs() < 1e-6, "{begin}");
    }
}
