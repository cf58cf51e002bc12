//! Axes that are ahead of their set-points, near a position limit.

use super::*;

/// rad by which the axis is ahead, and the limits of its position.
const LEAD: f64 = 0.05;
const LIMITS: (f64, f64) = (-1.0, 2.0);

/// Farthest actual position, and hardest braking of the set-points, of an axis that leads on its
/// way to a limit.
fn farthest(written: Written, side: f64, lead: f64) -> (f64, f64, Option<StopReason>) {
    let settings = settings(CyclicMode::Position, OnStale::Hold);
    let limits = Limits { written, ..settings.limits };
    let mut supervisor =
        Supervisor::new(Settings { limits, following_error: None, ..settings }, PERIOD).unwrap();
    let mut seen = Seen { enabled: true, ..Seen::default() };
    seen.feedback =
        AxisFeedback { phase: AxisPhase::HoldingAt(Radians::ZERO), fresh: true, ..AxisFeedback::default() };
    let (limit, mut asked) = (if side > 0.0 { LIMITS.1 } else { LIMITS.0 }, 0.0_f64);
    let (mut farthest, mut hardest, mut before) = (0.0_f64, 0.0_f64, 0.0_f64);
    let mut velocity = 0.0_f64;
    for cycle in 0..3000 {
        let acceleration = 10.0 * PERIOD.0;
        velocity = (velocity + acceleration).min(2.0);
        asked = (asked + side * velocity * PERIOD.0).clamp(LIMITS.0, LIMITS.1);
        let setpoint = AxisSetpoint { position: Radians(asked), ..AxisSetpoint::default() };
        let supervised = supervisor.step(PERIOD, setpoint, &seen);
        let sent = supervised.setpoint;
        let speed = side * sent.velocity.0;
        hardest = hardest.max((before - speed) / PERIOD.0);
        before = speed;
        let ahead = lead * (f64::from(cycle) / 100.0).clamp(0.0, 1.0);
        seen.feedback.phase = AxisPhase::Following;
        seen.feedback.velocity = sent.velocity;
        seen.feedback.position = sent.position + Radians(side * ahead);
        farthest = farthest.max(side * (seen.feedback.position.0 - limit));
    }
    (farthest, hardest, supervisor.stopped())
}

// feature(axes): the look-ahead in csp begins at the worse of set-point and actual position
#[test]
fn an_axis_ahead_of_its_set_point_brakes_earlier() {
    for written in [Written::default(), Written { acceleration: true, jerk: false }, Written::ALL] {
        for side in [1.0, -1.0] {
            let (beyond, hardest, _) = farthest(written, side, LEAD);
            assert!(beyond < 1e-3, "{beyond} rad beyond, {written:?}");
            assert!(hardest < DECELERATION * 1.05, "{hardest} rad/s^2, {written:?}");
            let (beyond, _, stopped) = farthest(written, side, 0.0);
            assert!(beyond.abs() < 1e-6, "without a lead it reaches its limit: {beyond}");
            assert!(written != Written::default() || stopped.is_none());
        }
    }
}

/// A lead that comes at once near a limit: no set-point brakes harder than a stop.
#[test]
fn a_sudden_lead_is_braked_no_harder_than_a_stop() {
    for side in [1.0, -1.0] {
        let settings = Settings { following_error: None, ..settings(CyclicMode::Position, OnStale::Hold) };
        let limit = if side > 0.0 { LIMITS.1 } else { LIMITS.0 };
        let mut asked = limit - side * 0.5;
        let mut seen = Seen { enabled: true, ..Seen::default() };
        seen.feedback = AxisFeedback {
            position: Radians(asked),
            phase: AxisPhase::HoldingAt(Radians(asked)),
            fresh: true,
            ..AxisFeedback::default()
        };
        let mut supervisor = Supervisor::new(settings, PERIOD).unwrap();
        let mut before = 0.0;
        for cycle in 0..250 {
            asked += side * 2.0 * PERIOD.0;
            let asked = AxisSetpoint { position: Radians(asked), ..AxisSetpoint::default() };
            let sent = supervisor.step(PERIOD, asked, &seen).setpoint;
            let speed = side * sent.velocity.0;
            assert!(before - speed <= DECELERATION * PERIOD.0 * 1.05, "{speed} rad/s in cycle {cycle}");
            before = speed;
            let lead = if cycle > 50 { 0.4 } else { 0.0 };
            seen.feedback.phase = AxisPhase::Following;
            seen.feedback.velocity = sent.velocity;
            seen.feedback.position = sent.position + Radians(side * lead);
        }
        assert!(before < 0.1, "it has come to rest: {before} rad/s");
    }
}
