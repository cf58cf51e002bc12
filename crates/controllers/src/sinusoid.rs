//! Controller that swings axes.

use control::controller::{Controller, ControllerOutput, CycleInfo, Io};
use ethercat::cia402::Request;
use ipc::state::{Clamped, Limit};
use motion::{
    AxisPhase, Radians, RadiansPerSecondSquared, Seconds, SmoothSinusoid, StopProfile, TrajectoryPoint,
};

use crate::axis::{AxisSettings, clamped, elapsed};

/// Swings each axis about the position at which it was enabled, and stops it at the end.
#[derive(Clone, Debug)]
pub struct Sinusoid {
    swings: Vec<Swing>,
    clamped: Option<Clamped>,
}

/// Settings of the swing of one axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SwingSettings {
    /// The axis.
    pub axis: AxisSettings,
    /// Swing about its start.
    pub sinusoid: SmoothSinusoid,
    /// Delay of its start after the others.
    pub delay: Seconds,
}

impl Sinusoid {
    /// A swing for each of `settings`.
    #[must_use]
    pub fn new(settings: &[SwingSettings]) -> Self {
        Self { swings: settings.iter().copied().map(Swing::new).collect(), clamped: None }
    }
}

impl Controller for Sinusoid {
    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        let (reports, commands) = io.split();
        let elapsed = elapsed(&info);
        self.clamped = None;
        for swing in &mut self.swings {
            let axis = swing.settings.axis.axis;
            let (Some(report), Some(command)) = (reports.get(axis), commands.get_mut(axis)) else {
                continue;
            };
            command.request = Request::Enable;
            if let Some(point) = swing.advance(elapsed, info.stopping, report.feedback.phase) {
                command.setpoint = point.into();
            }
            self.clamped = self.clamped.or(swing.clamped);
        }
    }

    fn output(&self) -> ControllerOutput {
        ControllerOutput { clamped: self.clamped, ..ControllerOutput::default() }
    }
}

/// Swing of one axis.
#[derive(Clone, Debug)]
struct Swing {
    settings: SwingSettings,
    motion: Motion,
    clamped: Option<Clamped>,
}

#[derive(Clone, Copy, Debug)]
enum Motion {
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
    fn new(settings: SwingSettings) -> Self {
        Self { settings, motion: Motion::Waiting, clamped: None }
    }

    /// Next set-point, or `None` while there is none.
    fn advance(&mut self, elapsed: Seconds, stopping: bool, phase: AxisPhase) -> Option<TrajectoryPoint> {
        match phase {
            AxisPhase::NotEnabled => self.motion = Motion::Waiting,
            // Set-points were refused, or there were none yet: start again at the present position.
            AxisPhase::HoldingAt(position) => self.begin(position, stopping),
            AxisPhase::Following if stopping => self.stop(),
            AxisPhase::Following => {}
        }
        self.clamped = None;
        let point = match &mut self.motion {
            Motion::Waiting => return None,
            Motion::Swinging { since_begin, last } => {
                *since_begin += elapsed;
                let mut point = self.settings.sinusoid.at(*since_begin - self.settings.delay);
                let axis = &self.settings.axis;
                let inside = axis.within(point.position, last.position);
                self.clamped = clamped(Limit::Position, Some(axis.axis), point.position.0, inside.0);
                if inside != point.position {
                    point = TrajectoryPoint { position: inside, ..TrajectoryPoint::default() };
                }
                *last = point;
                point
            }
            Motion::Stopping { since_begin, profile } => {
                *since_begin += elapsed;
                profile.at(*since_begin)
            }
            Motion::Resting(position) => {
                TrajectoryPoint { position: *position, ..TrajectoryPoint::default() }
            }
        };
        Some(point)
    }

    fn begin(&mut self, position: Radians, stopping: bool) {
        self.settings.sinusoid = self.settings.sinusoid.starting_at(position);
        let last = TrajectoryPoint { position, ..TrajectoryPoint::default() };
        self.motion = if stopping {
            Motion::Resting(position)
        } else {
            Motion::Swinging { since_begin: Seconds(0.0), last }
        };
    }

    /// Stops with no more acceleration than the swing has, within its jerk.
    fn stop(&mut self) {
        if let Motion::Swinging { last, .. } = &self.motion {
            // A stop from v that brakes at up to a has a jerk of (8 / 3) a^2 / v.
            let gentle = (last.velocity.0.abs() * self.settings.axis.jerk_limit.0 * 3.0 / 8.0).sqrt();
            let gentle = RadiansPerSecondSquared(gentle.max(f64::MIN_POSITIVE));
            let hardest = self.settings.sinusoid.maximum_acceleration();
            let deceleration = if gentle < hardest { gentle } else { hardest };
            self.motion = match StopProfile::new(last.position, last.velocity, deceleration) {
                Ok(profile) => Motion::Stopping { since_begin: Seconds(0.0), profile },
                Err(_) => Motion::Resting(last.position),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use motion::{Hertz, RadiansPerSecond, RadiansPerSecondCubed};

    use super::*;

    const CYCLE: Seconds = Seconds(1e-3);

    fn swing() -> Swing {
        let sinusoid = SmoothSinusoid::new(Radians(0.0), Radians(1.0), Hertz(0.5), Seconds(2.0)).unwrap();
        let axis = AxisSettings {
            axis: 3,
            profile: false,
            position_limits: None,
            velocity_limit: RadiansPerSecond(10.0),
            acceleration_limit: RadiansPerSecondSquared(50.0),
            jerk_limit: RadiansPerSecondCubed(500.0),
        };
        Swing::new(SwingSettings { axis, sinusoid, delay: Seconds(0.0) })
    }

    fn position(swing: &mut Swing, stopping: bool, phase: AxisPhase) -> f64 {
        swing.advance(CYCLE, stopping, phase).unwrap().position.0
    }

    #[test]
    fn positions_begin_at_the_axis_and_never_step() {
        let mut swing = swing();
        assert!(swing.advance(CYCLE, false, AxisPhase::NotEnabled).is_none());
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
    fn a_swing_ends_within_its_jerk() {
        for cycles in [10, 2_500, 3_000, 3_250, 3_499] {
            let mut swing = swing();
            swing.settings.axis.jerk_limit = RadiansPerSecondCubed(15.0);
            position(&mut swing, false, AxisPhase::HoldingAt(Radians(0.0)));
            for _ in 0..cycles {
                position(&mut swing, false, AxisPhase::Following);
            }
            let places: Vec<_> =
                (0..4_000).map(|_| position(&mut swing, true, AxisPhase::Following)).collect();
            let jerk = |it: &[f64]| (it[3] - 3.0 * it[2] + 3.0 * it[1] - it[0]) / CYCLE.0.powi(3);
            let highest = places.windows(4).map(|it| jerk(it).abs()).fold(0.0, f64::max);
            assert!(highest < 15.1, "{cycles}: {highest}");
            assert_eq!(places[3_998], places[3_999], "at standstill");
        }
    }

    #[test]
    fn an_axis_behind_its_limit_is_not_moved_any_farther_out() {
        let mut swing = swing();
        swing.settings.axis.position_limits = Some((Radians(-2.0), Radians(2.0)));
        position(&mut swing, false, AxisPhase::HoldingAt(Radians(2.5)));
        let farthest = (0..6_000).map(|_| position(&mut swing, false, AxisPhase::Following));
        assert!(farthest.fold(0.0, f64::max) <= 2.5);
    }

    #[test]
    fn axis_limit_on_the_swing_is_reported_while_it_applies() {
        let mut swing = swing();
        position(&mut swing, false, AxisPhase::HoldingAt(Radians(0.0)));
        assert!((0..6_000).all(|_| {
            position(&mut swing, false, AxisPhase::Following);
            swing.clamped.is_none()
        }));
        swing.settings.axis.position_limits = Some((Radians(-0.5), Radians(0.5)));
        let reported: Vec<_> = (0..2_000)
            .map(|_| (position(&mut swing, false, AxisPhase::Following), swing.clamped))
            .collect();
        let bounded = Some(Clamped { limit: Limit::Position, axis: Some(3) });
        assert!(reported.iter().any(|&(position, clamped)| position == 0.5 && clamped == bounded));
        assert!(reported.iter().all(|&(position, clamped)| clamped.is_none() || position.abs() == 0.5));
    }

    #[test]
    fn drive_that_drops_out_restarts_at_its_position() {
        let mut swing = swing();
        position(&mut swing, false, AxisPhase::HoldingAt(Radians(0.0)));
        (0..1_000).for_each(|_| {
            swing.advance(CYCLE, false, AxisPhase::Following);
        });
        assert!(swing.advance(CYCLE, false, AxisPhase::NotEnabled).is_none());
        let begin = position(&mut swing, false, AxisPhase::HoldingAt(Radians(3.0)));
        assert!((begin - 3.0).abs() < 1e-6, "{begin}");
    }
}
