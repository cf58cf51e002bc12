//! The end of a run: controllers that do not bring their axis to rest.

use super::*;

/// An endless axis in csv at this velocity.
struct Ended {
    supervisor: Supervisor,
    seen: Seen,
}

impl Ended {
    fn moving(velocity: f64) -> Self {
        let settings = settings(CyclicMode::Velocity, OnStale::Hold);
        let limits = Limits { position: None, ..settings.limits };
        let settings = Settings { limits, following_error: None, ..settings };
        let supervisor = Supervisor::new(settings, PERIOD).unwrap();
        let feedback = AxisFeedback {
            phase: AxisPhase::HoldingAt(Radians::ZERO),
            fresh: true,
            ..AxisFeedback::default()
        };
        let mut it = Self { supervisor, seen: Seen { feedback, enabled: true, ..Seen::default() } };
        assert_eq!(it.cycles(velocity, 10), None);
        it
    }

    /// A controller asks for this velocity; the reason of the last cycle.
    fn cycles(&mut self, velocity: f64, count: usize) -> Option<StopReason> {
        let velocity = RadiansPerSecond(velocity);
        let asked = AxisSetpoint { velocity, ..AxisSetpoint::default() };
        let mut reason = None;
        for _ in 0..count {
            let sent = self.supervisor.step(PERIOD, asked, &self.seen);
            self.seen.feedback.phase = AxisPhase::Following;
            self.seen.feedback.velocity = match self.seen.braking {
                true => RadiansPerSecond((self.seen.feedback.velocity.0 - 0.005).max(0.0)),
                false => sent.setpoint.velocity,
            };
            reason = sent.reason;
        }
        reason
    }
}

#[test]
fn slowed_axis_that_continues_is_stopped_later() {
    let mut axis = Ended::moving(2.0);
    axis.seen.ending = Ending::Asked;
    let heeded = (HEED_TIME.0 / PERIOD.0) as usize;
    assert_eq!(axis.cycles(1.0, heeded * 2), None, "it has slowed down");
    let left = (END_TIME.0 / PERIOD.0) as usize - heeded * 2;
    assert_eq!(axis.cycles(1.0, left + 2), Some(StopReason::Ending));
}

#[test]
fn braking_drive_has_time_to_reach_standstill() {
    let mut axis = Ended::moving(2.0);
    (axis.seen.ending, axis.seen.braking) = (Ending::Asked, true);
    let heeded = (HEED_TIME.0 / PERIOD.0) as usize;
    assert_eq!(axis.cycles(2.0, heeded * 2), None, "its drive brakes it");
    axis.seen.braking = false;
    assert_eq!(axis.cycles(2.0, 2), Some(StopReason::Ending));
}

#[test]
fn the_hurried_end_stops_an_axis_that_creeps() {
    let creeps = VELOCITY * STANDS / 2.0;
    for (velocity, reason) in [(creeps, Some(StopReason::Ending)), (0.0, None)] {
        let mut axis = Ended::moving(velocity);
        axis.seen.ending = Ending::Hurried;
        assert_eq!(axis.cycles(velocity, 1), reason, "{velocity} rad/s");
    }
}
