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

#[test]
fn a_ramp_does_not_speed_up_again_after_a_quick_stop() {
    for mode in CYCLIC {
        let mut axis = Stubborn::new(Settings { following_error: None, ..settings(mode, OnStale::Ramp) });
        for _ in 0..100 {
            axis.go_on(2.0);
        }
        axis.seen.stale = Some(Seconds(0.5));
        axis.go_on(2.0);
        axis.seen.quick_stop = true;
        for _ in 0..80 {
            axis.go_on(2.0);
        }
        axis.seen.quick_stop = false;
        let before = axis.feedback.velocity;
        let sent = axis.go_on(2.0).setpoint;
        assert!(sent.velocity <= before + RadiansPerSecond(SLACK), "{mode:?}: {before:?} then {sent:?}");
    }
}

#[test]
fn a_way_back_goes_on_where_a_quick_stop_left_the_axis() {
    let mut settings = settings(CyclicMode::Position, OnStale::Hold);
    (settings.following_error, settings.outage.after) = (None, AfterOutage::Resume);
    let mut axis = Stubborn::new(settings);
    for _ in 0..100 {
        axis.go_on(3.0);
    }
    // The axis runs on for four cycles.
    axis.seen.missed = 4;
    axis.feedback.position += RadiansPerSecond(3.0) * PERIOD * 1.0;
    axis.go_on(3.0);
    axis.seen.missed = 0;
    for _ in 0..5 {
        axis.go_on(3.0);
    }
    axis.seen.quick_stop = true;
    for _ in 0..20 {
        axis.go_on(3.0);
    }
    axis.seen.quick_stop = false;
    let before = axis.feedback;
    let sent = axis.go_on(3.0).setpoint;
    let velocity = (sent.position - before.position) / PERIOD;
    assert!((0.0..=before.velocity.0 + SLACK).contains(&velocity.0), "{before:?} then {sent:?}");
}

#[test]
fn a_stopped_axis_keeps_its_torque_in_another_mode() {
    let mut axis = Stubborn::new(settings(CyclicMode::Position, OnStale::Hold));
    axis.supervisor.stop_for(StopReason::Step);
    for _ in 0..10 {
        axis.go_on(0.0);
    }
    axis.supervisor.change_mode(CyclicMode::Torque, &axis.feedback);
    assert_eq!(axis.go_on(0.0).intervention, Some(Intervention::Halt));
    // Also where its position is not known, and a reset has let its drive be enabled.
    let mut axis = Stubborn::new(settings(CyclicMode::Position, OnStale::Hold));
    axis.supervisor.unreference(StopReason::UnreferencedChange);
    axis.feedback.phase = AxisPhase::NotEnabled;
    axis.go_on(0.0);
    axis.supervisor.acknowledge();
    axis.feedback.phase = AxisPhase::NotEnabled;
    axis.go_on(0.0);
    axis.feedback.phase = AxisPhase::HoldingAt(Radians::ZERO);
    axis.go_on(0.0);
    axis.supervisor.change_mode(CyclicMode::Torque, &axis.feedback);
    assert_eq!(axis.go_on(0.0).intervention, Some(Intervention::Halt));
}

#[test]
fn an_unreferenced_axis_whose_homing_fails_is_stopped() {
    for reason in [StopReason::HomingError, StopReason::HomingTimedOut, StopReason::Brake] {
        let mut axis = Stubborn::new(settings(CyclicMode::Position, OnStale::Hold));
        axis.supervisor.unreference(StopReason::UnreferencedChange);
        axis.feedback.phase = AxisPhase::NotEnabled;
        axis.go_on(0.0);
        axis.supervisor.acknowledge();
        axis.feedback.phase = AxisPhase::NotEnabled;
        axis.go_on(0.0);
        assert!(axis.supervisor.may_home());
        axis.supervisor.stop_for(reason);
        let sent = axis.go_on(0.0);
        assert_eq!(sent.reason, Some(reason));
        assert!(!axis.supervisor.may_home(), "{reason:?}");
        if reason != StopReason::Brake {
            assert_eq!(sent.intervention, Some(Intervention::QuickStop));
        }
        // A reset takes it back to where only a homing moves it.
        axis.supervisor.acknowledge();
        axis.feedback.phase = AxisPhase::NotEnabled;
        axis.feedback.velocity = RadiansPerSecond::ZERO;
        assert_eq!(axis.go_on(0.0).reason, Some(StopReason::UnreferencedChange));
        assert!(axis.supervisor.may_home());
    }
}

#[test]
fn lost_replies_do_not_keep_a_quick_stop_from_its_steps() {
    let mut axis = Stubborn::new(settings(CyclicMode::Position, OnStale::Hold));
    for _ in 0..100 {
        axis.go_on(2.0);
    }
    axis.seen.quick_stop = true;
    let mut asked = Vec::new();
    for cycle in 0..400 {
        let lost = cycle % 2 == 1;
        axis.seen.enabled = !lost;
        axis.seen.missed = if lost { 1 } else { 0 };
        axis.feedback.fresh = !lost;
        let before = axis.feedback.position;
        asked.push(axis.go_on(2.0).intervention);
        // It follows nothing.
        (axis.feedback.position, axis.feedback.velocity) =
            (before + Radians(0.000_1), RadiansPerSecond(2.0));
    }
    assert!(asked.contains(&Some(Intervention::Follow)), "{:?}", asked.last());
    assert!(asked.contains(&Some(Intervention::CutOff)) || asked.contains(&Some(Intervention::Halt)));
}
