//! Where the clamp, stops by steps, ways back, mode changes and unreferenced axes meet.

use super::*;

/// An axis that does what it is sent, in Operation enabled whatever its drive is asked for.
struct Stubborn {
    supervisor: Supervisor,
    feedback: AxisFeedback,
    seen: Seen,
}

impl Stubborn {
    fn new(settings: Settings) -> Self {
        let feedback = AxisFeedback {
            phase: AxisPhase::HoldingAt(Radians::ZERO),
            fresh: true,
            ..AxisFeedback::default()
        };
        let supervisor = Supervisor::new(settings, PERIOD).unwrap();
        let seen = Seen { enabled: true, ..Seen::default() };
        let mut it = Self { supervisor, feedback, seen };
        it.cycle(AxisSetpoint::default());
        it
    }

    fn cycle(&mut self, asked: AxisSetpoint) -> Supervised {
        self.seen.feedback = self.feedback;
        let supervised = self.supervisor.step(PERIOD, asked, &self.seen);
        let sent = supervised.setpoint;
        let before = self.feedback.position;
        match self.supervisor.settings().mode.cyclic() {
            CyclicMode::Position => self.feedback.position = sent.position,
            CyclicMode::Velocity => self.feedback.position += sent.velocity * PERIOD,
            CyclicMode::Torque => {}
        }
        self.feedback.velocity = (self.feedback.position - before) / PERIOD;
        self.feedback.phase = AxisPhase::Following;
        supervised
    }

    /// On at the same velocity.
    fn go_on(&mut self, velocity: f64) -> Supervised {
        let velocity = RadiansPerSecond(velocity);
        let position = self.feedback.position + velocity * PERIOD;
        self.cycle(AxisSetpoint { position, velocity, torque: NewtonMetres::ZERO })
    }
}

const CYCLIC: [CyclicMode; 2] = [CyclicMode::Position, CyclicMode::Velocity];

#[test]
fn a_set_point_right_after_a_quick_stop_is_judged() {
    for mode in CYCLIC {
        for (wild, reason) in [(f64::NAN, StopReason::NotFinite), (1.9, StopReason::Step)] {
            let mut axis =
                Stubborn::new(Settings { following_error: None, ..settings(mode, OnStale::Hold) });
            for _ in 0..100 {
                axis.go_on(2.0);
            }
            axis.seen.quick_stop = true;
            axis.go_on(2.0);
            axis.seen.quick_stop = false;
            let (position, velocity) = (Radians(wild), RadiansPerSecond(4.0 * wild));
            let sent = axis.cycle(AxisSetpoint { position, velocity, ..AxisSetpoint::default() });
            let reason =
                if mode == CyclicMode::Velocity && wild > 0.0 { StopReason::VelocityLimit } else { reason };
            assert_eq!(sent.reason, Some(reason), "{mode:?} {wild} {sent:?}");
            assert!(sent.setpoint.position.is_finite() && sent.setpoint.velocity.is_finite(), "{sent:?}");
        }
    }
}
