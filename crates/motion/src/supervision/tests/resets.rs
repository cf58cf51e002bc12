//! A reset is for what was, and not for what comes after it.

use super::*;

/// An axis at standstill.
struct Axis {
    supervisor: Supervisor,
    seen: Seen,
}

impl Axis {
    fn new() -> Self {
        let mut it = Self::off();
        it.seen.enabled = true;
        it.seen.feedback.phase = AxisPhase::Following;
        assert_eq!(it.cycles(5).reason, None);
        it
    }

    /// Its drive was not enabled yet.
    fn off() -> Self {
        let outage = Outage { time: None, after: AfterOutage::Resume };
        let settings = Settings { outage, ..settings(CyclicMode::Position, OnStale::Hold) };
        let feedback = AxisFeedback { fresh: true, ..AxisFeedback::default() };
        let seen = Seen { feedback, has_power: Some(true), asks: true, ..Seen::default() };
        let mut it = Self { supervisor: Supervisor::new(settings, PERIOD).unwrap(), seen };
        assert_eq!(it.cycles(5).reason, None);
        it
    }

    fn cycles(&mut self, count: usize) -> Supervised {
        let one = |_| self.supervisor.step(PERIOD, AxisSetpoint::default(), &self.seen);
        (0..count).map(one).last().unwrap()
    }

    fn disabled(&mut self) {
        self.seen.enabled = false;
        self.seen.feedback.phase = AxisPhase::NotEnabled;
    }

    /// So many cycles in a row without process data.
    fn miss(&mut self, cycles: u64) {
        self.seen.feedback.fresh = false;
        (self.seen.enabled, self.seen.has_power) = (false, None);
        for missed in 1..=cycles {
            self.seen.missed = missed;
            self.cycles(1);
        }
        // The cycle in which it ends.
        (self.seen.feedback.fresh, self.seen.has_power) = (true, Some(true));
        self.cycles(1);
        self.seen.missed = 0;
    }
}

#[test]
fn a_reset_before_a_loss_of_torque_is_no_start_request() {
    let mut axis = Axis::new();
    axis.supervisor.acknowledge();
    axis.cycles(10);
    axis.disabled();
    let stopped = axis.cycles(100);
    assert_eq!(stopped.reason, Some(StopReason::AwaitsStart));
    assert_eq!(stopped.intervention, Some(Intervention::Disable));
}

/// Its outage alone ends by itself.
#[test]
fn a_drive_that_was_without_power_waits_for_a_start_request() {
    let mut axis = Axis::off();
    axis.supervisor.lose_power();
    axis.miss(50);
    assert_eq!(axis.cycles(100).reason, Some(StopReason::AwaitsStart));
}

#[test]
fn an_outage_does_not_end_a_latched_stop() {
    let mut axis = Axis::new();
    axis.supervisor.stop_for(StopReason::Step);
    for missed in [3, 100] {
        axis.miss(missed);
        assert_eq!(axis.cycles(200).reason, Some(StopReason::Step), "{missed} cycles");
    }
}

#[test]
fn a_reset_before_an_axis_is_unreferenced_does_not_enable_it() {
    let mut axis = Axis::off();
    axis.supervisor.stop_for(StopReason::FollowingError);
    axis.supervisor.acknowledge();
    axis.supervisor.unreference(StopReason::UnreferencedCount);
    let held = axis.cycles(200);
    assert_eq!(held.reason, Some(StopReason::UnreferencedCount));
    assert_eq!(held.intervention, Some(Intervention::QuickStop), "it needs a reset");
}

#[test]
fn a_reset_in_an_outage_does_not_count_for_an_unreferenced_axis() {
    let mut axis = Axis::new();
    axis.supervisor.unreference(StopReason::UnreferencedCount);
    axis.disabled();
    axis.cycles(10);
    axis.seen.feedback.fresh = false;
    axis.supervisor.acknowledge();
    axis.cycles(1);
    axis.seen.feedback.fresh = true;
    assert_eq!(axis.cycles(200).intervention, Some(Intervention::QuickStop));
    axis.supervisor.acknowledge();
    assert_eq!(axis.cycles(2).intervention, None, "held, and may be enabled");
}

#[test]
fn a_fault_and_an_interlock_are_shown_before_a_lost_reference() {
    for fault in [true, false] {
        let mut axis = Axis::new();
        axis.seen.fault = fault;
        axis.seen.interlock = if fault { InterlockState::Clear } else { InterlockState::Stop };
        axis.cycles(2);
        axis.supervisor.unreference(StopReason::UnreferencedSensor);
        let shown = if fault { StopReason::Fault } else { StopReason::Interlock };
        assert_eq!(axis.supervisor.stopped(), Some(shown));
        assert_eq!(axis.supervisor.unreferenced(), Some(StopReason::UnreferencedSensor));
    }
}

#[test]
fn a_missing_permission_replaces_only_some_latched_stops() {
    for before in [StopReason::Step, StopReason::Runaway, StopReason::AwaitsStart] {
        let mut axis = Axis::off();
        let after = match before {
            StopReason::AwaitsStart => {
                axis.supervisor.require_start();
                StopReason::NotPermitted
            }
            latched => {
                axis.supervisor.stop_for(latched);
                latched
            }
        };
        axis.seen.interlock = InterlockState::NotPermitted;
        axis.seen.asks = true;
        assert_eq!(axis.cycles(10).reason, Some(after), "{before:?}");
    }
}

#[test]
fn no_axis_homes_in_set_up_mode_nor_after_it() {
    let mut axis = Axis::off();
    assert!(axis.supervisor.may_home());
    axis.seen.set_up = true;
    axis.cycles(2);
    assert!(!axis.supervisor.may_home(), "in set-up mode, disabled");
    axis.seen.enabled = true;
    axis.seen.feedback.phase = AxisPhase::Following;
    axis.cycles(2);
    axis.seen.set_up = false;
    axis.cycles(2);
    assert!(!axis.supervisor.may_home(), "before its reset");
}

#[test]
fn axis_without_torque_stops_others_until_a_reset() {
    let mut axis = Axis::off();
    axis.seen.feedback.fresh = false;
    axis.seen.missed = 100;
    axis.seen.feedback.phase = AxisPhase::Following;
    axis.cycles(1);
    assert_eq!(axis.supervisor.stop_for_others(), OtherAxis::Resumes, "an outage alone");
    axis.supervisor.lose_power();
    assert_eq!(axis.supervisor.stop_for_others(), OtherAxis::Stopped, "without power");
    let mut axis = Axis::new();
    axis.disabled();
    axis.cycles(2);
    assert_eq!(axis.supervisor.stopped(), Some(StopReason::AwaitsStart));
    assert_eq!(axis.supervisor.stop_for_others(), OtherAxis::Stopped, "its drive was disabled");
}

#[test]
fn a_reset_waits_for_the_standstill_of_an_axis_without_torque() {
    let mut axis = Axis::new();
    axis.supervisor.stop_for(StopReason::FollowingError);
    axis.cycles(3);
    axis.disabled();
    axis.seen.feedback.velocity = RadiansPerSecond(1.0);
    axis.supervisor.acknowledge();
    assert_eq!(axis.cycles(50).reason, Some(StopReason::FollowingError), "it turns");
    axis.seen.feedback.velocity = RadiansPerSecond::ZERO;
    assert_eq!(axis.cycles(1).reason, None);
}
