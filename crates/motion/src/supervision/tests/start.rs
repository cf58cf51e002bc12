//! Start requests, at the edge of the supervisor.

use super::super::StopReason::{AwaitsStart, FollowingError, NotPermitted};
use super::*;

/// A drive that shows this state, and a controller with this request.
struct Drive {
    supervisor: Supervisor,
    seen: Seen,
    requests: Vec<Option<Intervention>>,
}

impl Drive {
    fn new() -> Self {
        let feedback = AxisFeedback { fresh: true, ..AxisFeedback::default() };
        let seen = Seen { feedback, has_power: Some(true), asks: true, ..Seen::default() };
        let supervisor = Supervisor::new(settings(CyclicMode::Position, OnStale::Hold), PERIOD).unwrap();
        let mut drive = Self { supervisor, seen, requests: Vec::new() };
        drive.cycles(10);
        drive.show(true);
        drive.cycles(10);
        drive
    }

    fn show(&mut self, enabled: bool) {
        self.seen.enabled = enabled;
        self.seen.feedback.phase = if enabled { AxisPhase::Following } else { AxisPhase::NotEnabled };
    }

    fn ask(&mut self, asks: bool) {
        (self.seen.asks, self.seen.disables) = (asks, !asks);
    }

    fn cycles(&mut self, count: usize) {
        for _ in 0..count {
            let supervised = self.supervisor.step(PERIOD, AxisSetpoint::default(), &self.seen);
            self.requests.push(supervised.intervention);
        }
    }

    fn stop(&self) -> Option<StopReason> {
        self.supervisor.stopped()
    }
}

#[test]
fn a_drive_that_leaves_operation_enabled_waits_for_a_start() {
    let mut drive = Drive::new();
    assert_eq!(drive.stop(), None);
    drive.show(false);
    drive.cycles(1);
    assert_eq!(drive.stop(), Some(AwaitsStart));
    assert_eq!(drive.requests.last(), Some(&Some(Intervention::Disable)));
    drive.cycles(20_000);
    assert_eq!(drive.stop(), Some(AwaitsStart), "time starts nothing");
    drive.supervisor.acknowledge();
    drive.cycles(1);
    assert_eq!((drive.stop(), drive.requests.last()), (None, Some(&None)));
}

#[test]
fn a_drive_that_was_asked_to_leave_needs_no_start() {
    let mut drive = Drive::new();
    drive.ask(false);
    drive.cycles(2);
    drive.ask(true);
    drive.cycles(5);
    drive.show(false);
    drive.cycles(5);
    assert_eq!(drive.stop(), None, "it answers the request to disable");
    drive.show(true);
    drive.cycles(5);
    drive.show(false);
    drive.cycles(1);
    assert_eq!(drive.stop(), Some(AwaitsStart), "this time it was not asked to");
}

// feature(axes): main power (statusword bit 4) that is gone in Operation enabled needs a start request
#[test]
fn main_power_that_is_gone_while_enabled_is_a_quick_stop() {
    let mut drive = Drive::new();
    for cycles in [1, 2] {
        drive.seen.has_power = Some(false);
        drive.cycles(cycles);
        drive.seen.has_power = Some(true);
        drive.cycles(1);
        assert_eq!(drive.stop(), None, "{cycles} replies");
    }
    drive.seen.has_power = Some(false);
    drive.cycles(3);
    assert_eq!(drive.stop(), Some(AwaitsStart));
    assert_eq!(drive.requests.last(), Some(&Some(Intervention::QuickStop)));
    drive.show(false);
    drive.seen.has_power = Some(true);
    drive.cycles(2_000);
    assert_eq!(drive.stop(), Some(AwaitsStart), "its return starts nothing");
    drive.ask(false);
    drive.cycles(1);
    drive.ask(true);
    drive.cycles(1);
    assert_eq!(drive.stop(), None, "a rising wish does");
}

#[test]
fn a_drive_that_never_shows_bit_4_is_no_loss_of_power() {
    let mut drive = Drive::new();
    let supervisor = Supervisor::new(settings(CyclicMode::Position, OnStale::Hold), PERIOD).unwrap();
    drive.supervisor = supervisor;
    drive.seen.has_power = Some(false);
    drive.cycles(1_000);
    assert_eq!(drive.stop(), None);
}

#[test]
fn late_main_power_starts_nothing() {
    for (without, stop) in [(2_900, None), (3_100, Some(AwaitsStart))] {
        let mut drive = Drive::new();
        drive.ask(false);
        drive.show(false);
        drive.seen.has_power = Some(false);
        drive.cycles(10);
        drive.ask(true);
        drive.cycles(without);
        drive.seen.has_power = Some(true);
        drive.cycles(2);
        assert_eq!(drive.stop(), stop, "{without} ms");
    }
}

#[test]
fn a_permission_that_returns_starts_nothing() {
    let mut drive = Drive::new();
    drive.seen.interlock = InterlockState::NotPermitted;
    drive.cycles(10);
    drive.show(false);
    drive.supervisor.acknowledge();
    drive.cycles(10);
    assert_eq!(drive.stop(), Some(NotPermitted));
    drive.seen.interlock = InterlockState::Clear;
    drive.cycles(10);
    assert_eq!(drive.stop(), Some(AwaitsStart), "the acknowledgement was before the return");
    assert_eq!(drive.supervisor.stop_for_others(), OtherAxis::Free);
    drive.supervisor.acknowledge();
    drive.cycles(1);
    assert_eq!(drive.stop(), None);
    // An input that has not been read yet is no missing permission.
    drive.seen.interlock = InterlockState::NotYet;
    drive.cycles(10);
    drive.seen.interlock = InterlockState::Clear;
    drive.cycles(10);
    assert_eq!(drive.stop(), None);
}

#[test]
fn a_permission_without_a_wish_leaves_no_stop() {
    let mut drive = Drive::new();
    drive.ask(false);
    drive.show(false);
    drive.seen.interlock = InterlockState::NotPermitted;
    drive.cycles(10);
    drive.seen.interlock = InterlockState::Clear;
    drive.cycles(2);
    assert_eq!(drive.stop(), None);
}

#[test]
fn a_latched_stop_keeps_its_reason_and_a_reset_starts() {
    let mut drive = Drive::new();
    drive.supervisor.stop_for(FollowingError);
    drive.seen.interlock = InterlockState::NotPermitted;
    drive.cycles(1);
    drive.seen.interlock = InterlockState::Clear;
    drive.show(false);
    drive.cycles(10);
    assert!(drive.stop().is_some());
    drive.supervisor.acknowledge();
    drive.cycles(2);
    assert_eq!(drive.stop(), None);
}

/// True if this request may enable a drive.
fn may_enable(request: &Option<Intervention>) -> bool {
    matches!(request, None | Some(Intervention::Follow))
}

#[test]
fn steps_of_a_quick_stop_enable_no_drive() {
    let coasting = StoppingMeans { quick_stops: false, ..StoppingMeans::default() };
    let keeping = StoppingMeans { keeps_torque: true, ..StoppingMeans::default() };
    for means in [coasting, keeping] {
        let mut drive = Drive::new();
        drive.supervisor = drive.supervisor.with_means(means);
        drive.seen.quick_stop = true;
        // Set-points, and then the load that they keep.
        drive.cycles(200);
        drive.show(false);
        drive.requests.clear();
        drive.cycles(2_000);
        assert!(!drive.requests.iter().any(may_enable), "{means:?}: {:?}", drive.requests[0]);
    }
}

#[test]
fn a_drive_that_brakes_by_itself_keeps_its_torque() {
    let mut drive = Drive::new();
    drive.show(false);
    (drive.seen.switched_on, drive.seen.feedback.velocity) = (true, RadiansPerSecond(2.0));
    drive.cycles(5);
    assert_eq!(drive.stop(), Some(AwaitsStart));
    assert_eq!(drive.requests.last(), Some(&Some(Intervention::QuickStop)));
}

#[test]
fn a_missing_permission_hides_no_latched_stop() {
    let mut drive = Drive::new();
    drive.supervisor.stop_for(FollowingError);
    drive.seen.interlock = InterlockState::NotPermitted;
    drive.cycles(10);
    assert_eq!(drive.stop(), Some(FollowingError));
    drive.show(false);
    drive.cycles(10);
    drive.seen.interlock = InterlockState::Clear;
    for asks in [true, false, true] {
        drive.ask(asks);
        drive.cycles(10);
        assert_eq!(drive.stop(), Some(FollowingError), "it needs a reset");
    }
    drive.supervisor.acknowledge();
    drive.cycles(5);
    assert_eq!(drive.stop(), None);
}

#[test]
fn an_axis_that_homes_is_stopped_with_another_axis() {
    let mut drive = Drive::new();
    (drive.seen.not_homed, drive.seen.homing) = (true, true);
    drive.cycles(5);
    assert_eq!(drive.stop(), Some(StopReason::NotHomed));
    assert!(drive.supervisor.stop_with(OtherAxis::Stopped));
    assert_eq!(drive.stop(), Some(StopReason::OtherAxis));
}

#[test]
fn the_end_of_set_up_mode_permits_no_homing_before_a_reset() {
    let mut drive = Drive::new();
    (drive.seen.not_homed, drive.seen.set_up) = (true, true);
    drive.cycles(5);
    drive.seen.set_up = false;
    drive.cycles(5);
    assert!(!drive.supervisor.may_home());
    drive.supervisor.acknowledge();
    drive.cycles(5);
    assert!(drive.supervisor.may_home());
}

// feature(axes): a start request that waits for the position memory lapses after 10 s
#[test]
fn a_request_that_is_held_back_lapses() {
    let mut drive = Drive::new();
    drive.ask(false);
    drive.show(false);
    drive.cycles(10);
    drive.ask(true);
    for _ in 0..9_990 {
        drive.cycles(1);
        drive.supervisor.hold_back(true);
    }
    assert_eq!(drive.stop(), None, "within 10 s it may still be sent");
    for _ in 0..20 {
        drive.cycles(1);
        drive.supervisor.hold_back(true);
    }
    assert_eq!(drive.stop(), Some(AwaitsStart));
    drive.cycles(100);
    assert!(drive.requests[drive.requests.len() - 100..].iter().all(|it| !may_enable(it)));
}

#[test]
fn a_disabled_axis_that_is_halted_does_not_lapse() {
    let settings = settings(CyclicMode::Torque, OnStale::Hold);
    let feedback = AxisFeedback { fresh: true, ..AxisFeedback::default() };
    let seen = Seen { feedback, has_power: Some(true), asks: true, not_homed: true, ..Seen::default() };
    let supervisor = Supervisor::new(settings, PERIOD).unwrap();
    let mut drive = Drive { supervisor, seen, requests: Vec::new() };
    drive.cycles(15_000);
    assert_eq!(drive.stop(), Some(StopReason::NotHomed));
}
