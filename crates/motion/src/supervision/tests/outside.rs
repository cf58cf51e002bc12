//! Axes outside their position limits.

use super::*;

/// rad above the highest limit.
struct Outside {
    supervisor: Supervisor,
    seen: Seen,
}

impl Outside {
    fn new(mode: CyclicMode) -> Self {
        let settings = Settings { following_error: None, ..settings(mode, OnStale::Hold) };
        let supervisor = Supervisor::new(settings, PERIOD).unwrap().with_tolerance(Radians(0.05));
        let feedback = AxisFeedback { fresh: true, ..AxisFeedback::default() };
        Self { supervisor, seen: Seen { feedback, ..Seen::default() } }
    }

    fn at(&mut self, beyond: f64, velocity: f64) {
        self.seen.feedback.position = Radians(2.0 + beyond);
        self.seen.feedback.velocity = RadiansPerSecond(velocity);
        let asked = AxisSetpoint { position: self.seen.feedback.position, ..AxisSetpoint::default() };
        self.supervisor.step(PERIOD, asked, &self.seen);
    }
}

#[test]
fn far_outside_is_beyond_the_way_to_brake_and_the_tolerance() {
    let brakes = VELOCITY * VELOCITY / (2.0 * DECELERATION);
    let cases = [(-0.5, None), (brakes + 0.04, None), (brakes + 0.06, Some(StopReason::OutsideLimits))];
    for (beyond, reason) in cases {
        let mut axis = Outside::new(CyclicMode::Position);
        axis.at(beyond, 0.0);
        assert_eq!(axis.supervisor.unready(), reason, "{beyond} rad");
    }
}

#[test]
fn far_outside_ends_with_a_trusted_position_only() {
    let mut axis = Outside::new(CyclicMode::Position);
    axis.at(1.0, 0.0);
    axis.seen.feedback.fresh = false;
    axis.at(-0.5, 0.0);
    assert_eq!(axis.supervisor.unready(), Some(StopReason::OutsideLimits));
    axis.seen.feedback.fresh = true;
    axis.at(-0.5, 0.0);
    assert_eq!(axis.supervisor.unready(), None);
}

#[test]
fn the_farthest_way_beyond_a_limit_is_reported() {
    let mut axis = Outside::new(CyclicMode::Torque);
    axis.seen.enabled = true;
    axis.seen.feedback.phase = AxisPhase::Following;
    for (beyond, velocity) in [(-0.1, 1.0), (0.1, 1.0), (0.2, 1.0), (0.15, -1.0)] {
        axis.at(beyond, velocity);
    }
    let farthest = axis.supervisor.overshoot().unwrap().0;
    assert!((farthest - 0.2).abs() < 1e-9, "{farthest} rad");
    // Noise at the limit is the same one.
    axis.at(-STEP / 2.0, -0.1);
    axis.at(0.01, 0.1);
    let same = axis.supervisor.overshoot().map(|it| it.0);
    assert_eq!(same, Some(farthest), "near the limit");
    axis.at(-STEP * 2.0, -0.1);
    assert_eq!(axis.supervisor.overshoot(), None, "well within it");
}
