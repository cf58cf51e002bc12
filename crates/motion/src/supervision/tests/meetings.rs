//! Where the clamp, stops by steps, ways back, mode changes and unreferenced axes meet.

use super::*;

/// An axis that follows its set-points, and stays in Operation enabled for any request.
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
fn a_set_point_right_after_a_quick_stop_is_checked() {
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
fn a_way_back_continues_where_a_quick_stop_left_the_axis() {
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
    // Also if its position is not known, and a reset has enabled its drive.
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
fn a_failed_homing_stops_an_unreferenced_axis() {
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

#[test]
fn ordinary_sources_survive_skipped_releases() {
    use crate::online::{AxisLimits, OnlineMotion, Synchronisation, Target};
    let mut rng = fastrand::Rng::with_seed(11);
    let mut stopped = Vec::new();
    for trial in 0..400 {
        let mode = if trial % 2 == 0 { CyclicMode::Velocity } else { CyclicMode::Position };
        let mut settings = Settings { following_error: None, ..settings(mode, OnStale::Hold) };
        settings.limits.written =
            [Written::ALL, Written { acceleration: true, jerk: false }][trial / 2 % 2];
        settings.limits.jerk = crate::units::RadiansPerSecondCubed(20.0 * 20_f64.powf(rng.f64()));
        settings.limits.position = None;
        let limits = settings.limits;
        let limits =
            AxisLimits { velocity: limits.velocity, acceleration: limits.acceleration, jerk: limits.jerk };
        let mut motion = OnlineMotion::new(&[limits], Synchronisation::Independent).unwrap();
        let mut supervisor = Supervisor::new(settings, PERIOD).unwrap();
        let mut feedback = AxisFeedback {
            phase: AxisPhase::HoldingAt(Radians::ZERO),
            fresh: true,
            ..AxisFeedback::default()
        };
        for cycle in 0..3_000 {
            if cycle % 300 == 0 {
                let to = rng.f64() * 8.0 - 4.0;
                let target = match mode {
                    CyclicMode::Position => Target::rest_at(Radians(to)),
                    _ => Target::Velocity(RadiansPerSecond(to)),
                };
                motion.aim_axis(0, target).unwrap();
            }
            let skipped = if rng.u32(..20) == 0 { 1 } else { 0 };
            let elapsed = PERIOD * f64::from(1 + skipped);
            let point = motion.advance(elapsed)[0];
            let asked: AxisSetpoint = point.into();
            let seen = Seen { feedback, missed: skipped as u64, ..Seen::default() };
            let sent = supervisor.step(elapsed, asked, &seen).setpoint;
            feedback.phase = AxisPhase::Following;
            match mode {
                CyclicMode::Position => feedback.position = sent.position,
                _ => feedback.position += sent.velocity * elapsed,
            }
            feedback.velocity = sent.velocity;
            if let Some(reason) = supervisor.stopped() {
                stopped.push((trial, cycle, mode, reason));
                break;
            }
        }
    }
    assert!(stopped.is_empty(), "{} {:?}", stopped.len(), &stopped[..stopped.len().min(8)]);
}

/// Set-points that are clamped, next to skipped releases: between two of them no more acceleration.
#[test]
fn a_skipped_release_does_not_end_a_clamp_at_once() {
    let mut rng = fastrand::Rng::with_seed(12);
    for trial in 0..200 {
        let mut settings =
            Settings { following_error: None, ..settings(CyclicMode::Position, OnStale::Hold) };
        settings.limits.written = Written::ALL;
        settings.limits.jerk = crate::units::RadiansPerSecondCubed(20.0 * 20_f64.powf(rng.f64()));
        settings.limits.step = Radians(VELOCITY * PERIOD.0 * [2.0, 1.2][trial % 2]);
        let mut supervisor = Supervisor::new(settings, PERIOD).unwrap();
        let mut feedback = AxisFeedback {
            phase: AxisPhase::HoldingAt(Radians::ZERO),
            fresh: true,
            ..AxisFeedback::default()
        };
        let (mut target, mut last, mut before) = (0.0, (0.0, PERIOD.0), 0.0);
        for cycle in 0..3_000 {
            if rng.u32(..60) == 0 {
                target += (rng.f64() - 0.5) * VELOCITY * PERIOD.0 * 2.0;
            }
            let skipped = if rng.u32(..20) == 0 { 1 } else { 0 };
            let elapsed = PERIOD * f64::from(1 + skipped);
            let asked = AxisSetpoint { position: Radians(target), ..AxisSetpoint::default() };
            let seen = Seen { feedback, missed: skipped as u64, ..Seen::default() };
            let sent = supervisor.step(elapsed, asked, &seen).setpoint.position.0;
            supervisor.acknowledge();
            let velocity = (sent - before) / elapsed.0;
            let change = (velocity - last.0) / f64::midpoint(last.1, elapsed.0);
            assert!(
                change.abs() < DECELERATION * 1.02 + 0.1,
                "{trial} {cycle}: {change} {velocity} {last:?}"
            );
            (last, before) = ((velocity, elapsed.0), sent);
            (feedback.phase, feedback.position) = (AxisPhase::Following, Radians(sent));
            feedback.velocity = RadiansPerSecond(velocity);
        }
    }
}

/// Up to two releases are skipped, and a largest step may hold the set-point back.
#[test]
fn speed_and_position_hold_next_to_skipped_releases() {
    for trial in 0..300_u64 {
        let mut rng = fastrand::Rng::with_seed(trial);
        let mode = CYCLIC[trial as usize % 2];
        let mut settings = Settings { following_error: None, ..settings(mode, OnStale::Hold) };
        settings.limits.written = [
            Written::ALL,
            Written { acceleration: true, jerk: false },
            Written { acceleration: false, jerk: true },
        ][rng.usize(..3)];
        settings.limits.jerk = crate::units::RadiansPerSecondCubed(20.0 * 20_f64.powf(rng.f64()));
        let mut it = Supervisor::new(settings, PERIOD).unwrap();
        let mut feedback = AxisFeedback {
            phase: AxisPhase::HoldingAt(Radians::ZERO),
            fresh: true,
            ..AxisFeedback::default()
        };
        let (mut speed, mut asked) = (0.0, 0.0_f64);
        for cycle in 0..4_000 {
            if rng.u32(..300) == 0 {
                speed = (rng.f64() * 2.0 - 1.0) * VELOCITY;
            }
            let skipped = if rng.u32(..20) == 0 { 1 + rng.u32(..2) } else { 0 };
            let elapsed = PERIOD * f64::from(1 + skipped);
            if let AxisPhase::HoldingAt(place) = it.phase(feedback.phase) {
                asked = place.0;
            }
            asked = (asked + speed * elapsed.0).clamp(-1.0, 2.0);
            let (position, velocity) = (Radians(asked), RadiansPerSecond(speed));
            it.acknowledge();
            let seen = Seen { feedback, missed: skipped.into(), ..Seen::default() };
            let sent = it
                .step(elapsed, AxisSetpoint { position, velocity, ..AxisSetpoint::default() }, &seen)
                .setpoint;
            let before = feedback.position;
            match mode {
                CyclicMode::Position => feedback.position = sent.position,
                _ => feedback.position += sent.velocity * elapsed,
            }
            feedback.velocity = (feedback.position - before) / elapsed;
            feedback.phase = AxisPhase::Following;
            assert!(feedback.velocity.abs().0 < VELOCITY * 1.000_1, "{trial} {cycle}: {feedback:?}");
            assert!(
                (-1.0 - SLACK..2.0 + SLACK).contains(&feedback.position.0),
                "{trial} {cycle}: {feedback:?}"
            );
        }
    }
}
