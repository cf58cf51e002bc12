//! An axis that is stopped with another one, and its drive's own following error.

use super::*;

/// One cycle in which another axis is stopped like this.
fn with_other(bench: &mut Bench, other: OtherAxis, asked: f64) -> Supervised {
    let asked = AxisSetpoint { position: Radians(asked), ..AxisSetpoint::default() };
    let stale = bench.stale.then(|| bench.supervisor.ramp_time());
    let seen = Seen { feedback: bench.feedback, fault: bench.fault, stale, ..Seen::default() };
    bench.supervisor.judge(PERIOD, asked, &seen);
    bench.supervisor.stop_with(other);
    let supervised = bench.supervisor.send(PERIOD, asked, &seen);
    bench.feedback.phase = AxisPhase::Following;
    bench.feedback.position = supervised.setpoint.position;
    bench.feedback.velocity = supervised.setpoint.velocity;
    supervised
}

/// Holds its position for `cycles`.
fn hold(bench: &mut Bench, other: OtherAxis, cycles: usize) {
    for _ in 0..cycles {
        let here = bench.feedback.position.0;
        with_other(bench, other, here);
    }
}

#[test]
fn axis_is_released_once_the_other_is_and_after_a_reset() {
    for reset_first in [true, false] {
        let mut bench = Bench::position(OnStale::Hold);
        bench.cruise(2.0, 100);
        let first = with_other(&mut bench, OtherAxis::Stopped, 0.2);
        assert_eq!(first.reason, Some(StopReason::OtherAxis));
        hold(&mut bench, OtherAxis::Stopped, 500);
        if reset_first {
            bench.supervisor.acknowledge();
            hold(&mut bench, OtherAxis::Stopped, 10);
            assert_eq!(bench.supervisor.stopped(), Some(StopReason::OtherAxis), "the other one is stopped");
            hold(&mut bench, OtherAxis::Free, 2);
        } else {
            hold(&mut bench, OtherAxis::Free, 100);
            assert_eq!(bench.supervisor.stopped(), Some(StopReason::OtherAxis), "nobody has reset it");
            bench.supervisor.acknowledge();
            hold(&mut bench, OtherAxis::Free, 1);
        }
        assert_eq!(bench.supervisor.stopped(), None);
        assert_eq!(bench.supervisor.stop_for_others(), OtherAxis::Free);
    }
}

#[test]
fn resuming_axis_releases_the_other_unless_it_is_latched() {
    for for_good in [false, true] {
        let mut bench = Bench::position(OnStale::Hold);
        bench.cruise(2.0, 100);
        hold(&mut bench, OtherAxis::Resumes, 50);
        if for_good {
            hold(&mut bench, OtherAxis::Stopped, 50);
        }
        hold(&mut bench, OtherAxis::Resumes, 200);
        hold(&mut bench, OtherAxis::Free, 2);
        assert_eq!(bench.supervisor.stopped(), for_good.then_some(StopReason::OtherAxis));
    }
}

/// Its own stop gives the reason; the other axis's stop follows.
#[test]
fn own_stop_has_priority_and_stale_command_has_not() {
    let mut bench = Bench::position(OnStale::Ramp);
    bench.cruise(2.0, 100);
    bench.stale = true;
    bench.ask(0.2);
    assert_eq!(bench.supervisor.stopped(), Some(StopReason::Stale));
    assert_eq!(bench.supervisor.stop_for_others(), OtherAxis::Free, "whom that concerns it stops itself");
    hold(&mut bench, OtherAxis::Stopped, 500);
    bench.stale = false;
    hold(&mut bench, OtherAxis::Stopped, 10);
    assert_eq!(bench.supervisor.stopped(), Some(StopReason::OtherAxis));
    bench.fault = true;
    hold(&mut bench, OtherAxis::Stopped, 1);
    assert_eq!(bench.supervisor.stopped(), Some(StopReason::Fault));
    assert_eq!(bench.supervisor.stop_for_others(), OtherAxis::Stopped);
    bench.fault = false;
    bench.supervisor.acknowledge();
    bench.feedback.phase = AxisPhase::NotEnabled;
    hold(&mut bench, OtherAxis::Stopped, 2);
    assert_eq!(bench.supervisor.stopped(), Some(StopReason::OtherAxis));
}

#[test]
fn the_larger_of_both_following_errors_counts() {
    let stops = |computed: f64, own: Option<f64>| {
        let mut bench = Bench::position(OnStale::Hold);
        let feedback =
            AxisFeedback { phase: AxisPhase::Following, position: Radians(-computed), ..bench.feedback };
        let seen = Seen { feedback, following_error: own.map(Radians), ..Seen::default() };
        (0..12).for_each(|_| _ = bench.supervisor.step(PERIOD, AxisSetpoint::default(), &seen));
        bench.supervisor.stopped() == Some(StopReason::FollowingError)
    };
    // The window is 0.1 rad.
    for (computed, own, expected) in [
        (0.0, None, false),
        (0.11, None, true),
        (0.0, Some(0.11), true),
        (0.0, Some(-0.11), true),
        (0.09, Some(0.09), false),
        (0.11, Some(0.0), true),
    ] {
        assert_eq!(stops(computed, own), expected, "{computed} {own:?}");
    }
}

proptest! {
    /// Stopped with another axis at any moment and for any time, with any command, also stale ones.
    #[test]
    fn stop_by_another_axis_keeps_set_points_within_limits(
        asked in wild(), absolute in any::<bool>(), stale_at in 0..600_usize, acknowledges in 1..50_usize,
        others in prop::collection::vec((1..80_usize, 0..3_usize), 1..20),
    ) {
        let mut bench = Bench::position(OnStale::Ramp);
        let mut others = others
            .into_iter()
            .flat_map(|(cycles, kind)| {
                let other = [OtherAxis::Free, OtherAxis::Resumes, OtherAxis::Stopped][kind];
                std::iter::repeat_n(other, cycles)
            });
        let (mut last, mut velocity) = (0.0, 0.0_f64);
        for (cycle, &number) in asked.iter().enumerate() {
            bench.stale = cycle > stale_at && cycle < stale_at + 100;
            if cycle % acknowledges == 0 {
                bench.supervisor.acknowledge();
            }
            let here = bench.feedback.position.0;
            let other = others.next().unwrap_or_default();
            let supervised = with_other(&mut bench, other, if absolute { number } else { here + number });
            let sent = supervised.setpoint;
            prop_assert!(sent.position.is_finite() && sent.velocity.is_finite() && sent.torque.is_finite());
            prop_assert!((-1.0 - SLACK..=2.0 + SLACK).contains(&sent.position.0), "{}", sent.position);
            let moved = sent.position.0 - last;
            prop_assert!(moved.abs() <= VELOCITY * PERIOD.0 + SLACK * 1e-3, "{moved}");
            if other != OtherAxis::Free {
                prop_assert!(supervised.reason.is_some(), "a stop is always heard");
                prop_assert!(sent.velocity.0.abs() <= velocity.abs() + 1e-9, "it turns back or speeds up");
                prop_assert!((sent.velocity.0 - velocity).abs() <= DECELERATION * PERIOD.0 * (1.0 + 1e-6) + 1e-9);
            }
            (last, velocity) = (sent.position.0, sent.velocity.0);
        }
    }
}
