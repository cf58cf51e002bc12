//! The torque limit of a drive during a jog and in set-up mode.

use super::jogs::Jogged;
use super::*;

/// 30 % of the torque limit of these settings, as the drive takes it.
const LIMIT: NewtonMetres = NewtonMetres(0.899);

const MODES: [CyclicMode; 2] = [CyclicMode::Position, CyclicMode::Velocity];

fn bench(mode: CyclicMode) -> Jogged {
    let mut it = Jogged::new(mode);
    it.supervisor = it.supervisor.clone().with_drive_torque(LIMIT);
    it
}

/// Jogs for `cycles`: whenever it is sent a velocity, the limit is low.
fn jogged_low(it: &mut Jogged, cycles: usize) {
    let mut moved = false;
    for _ in 0..cycles {
        let sent = it.jog(0.2, 1).setpoint.velocity.0;
        assert!(sent == 0.0 || it.supervisor.has_low_torque(), "{sent} rad/s with the usual torque");
        moved |= sent != 0.0;
    }
    assert!(moved);
}

#[test]
fn a_jog_waits_for_the_low_limit_and_ends_with_it() {
    for mode in MODES {
        let mut it = bench(mode);
        // Its torque is known some time after it was enabled.
        jogged_low(&mut it, 400);
        it.seen.jog = None;
        it.cycles(300);
        assert!(it.supervisor.stopped().is_none() && !it.supervisor.has_low_torque(), "{mode:?}");
    }
}

#[test]
fn a_load_above_the_limit_of_a_jog_keeps_the_torque() {
    for mode in MODES {
        for torque in [0.85, 0.95] {
            let mut it = bench(mode);
            it.feedback.torque = NewtonMetres(torque);
            it.cycles(200);
            for _ in 0..300 {
                it.jog(0.2, 1);
                assert!(!it.supervisor.has_low_torque(), "{mode:?} {torque}: the load falls");
            }
            let stops = torque > 0.9;
            assert_eq!(it.supervisor.stopped() == Some(StopReason::JogTorque), stops, "{mode:?} {torque}");
            it.feedback.torque = NewtonMetres(0.0);
            it.cycle();
            assert!(!it.supervisor.has_low_torque(), "{mode:?} {torque}: a moment says nothing");
            // In set-up mode, too.
            let mut it = bench(mode);
            (it.seen.set_up, it.feedback.torque) = (true, NewtonMetres(torque));
            for _ in 0..500 {
                it.cycle();
                assert!(!it.supervisor.has_low_torque(), "{mode:?} {torque}: the load falls");
            }
        }
    }
}

#[test]
fn a_jog_that_presses_at_the_limit_is_stopped_and_keeps_it() {
    for mode in MODES {
        let mut it = bench(mode);
        jogged_low(&mut it, 300);
        it.feedback.torque = LIMIT;
        it.jog(0.2, 49);
        assert_eq!(it.supervisor.stopped(), Some(StopReason::Jog), "{mode:?}");
        it.jog(0.2, 3);
        assert_eq!(it.supervisor.stopped(), Some(StopReason::JogTorque), "{mode:?}");
        it.cycles(500);
        assert!(it.supervisor.has_low_torque(), "{mode:?}: the drive would press with its full torque");
        it.supervisor.acknowledge();
        it.cycles(2);
        assert!(it.supervisor.stopped().is_none() && !it.supervisor.has_low_torque(), "{mode:?}");
    }
}

#[test]
fn set_up_mode_has_the_low_limit_only_while_enabled() {
    for mode in MODES {
        let mut it = bench(mode);
        it.seen.set_up = true;
        it.cycles(300);
        assert!(it.supervisor.has_low_torque(), "{mode:?}");
        it.feedback.phase = AxisPhase::NotEnabled;
        it.cycle();
        assert!(!it.supervisor.has_low_torque(), "{mode:?}: its next load is unknown");
        it.cycles(300);
        assert!(it.supervisor.has_low_torque(), "{mode:?}");
        it.seen.set_up = false;
        it.cycle();
        assert!(!it.supervisor.has_low_torque(), "{mode:?}");
    }
}

#[test]
fn the_limit_is_not_lowered_before_the_axis_has_settled() {
    for mode in MODES {
        let mut it = bench(mode);
        it.seen.set_up = true;
        for cycle in 0..90 {
            it.cycle();
            assert!(!it.supervisor.has_low_torque(), "{mode:?}: in cycle {cycle}");
        }
        it.cycles(30);
        assert!(it.supervisor.has_low_torque(), "{mode:?}");
    }
}

/// An axis at speed brakes with its full torque.
#[test]
fn the_limit_is_not_lowered_while_the_axis_moves() {
    let mut it = bench(CyclicMode::Velocity);
    it.move_at(VELOCITY / 2.0, 300);
    it.seen.set_up = true;
    let first = it.cycle();
    assert_eq!(first.reason, Some(StopReason::SetUp));
    // Its drive is slow to obey.
    for cycle in 0..200 {
        it.feedback.velocity = RadiansPerSecond(1.0);
        it.cycle();
        assert!(!it.supervisor.has_low_torque(), "in cycle {cycle}");
    }
}
