//! Drives with a halt that does not brake.

use super::*;

/// Means that slows the axis, at its deceleration.
#[derive(Clone, Copy, Debug, Default)]
struct Obeys {
    halt: bool,
    quick_stop: bool,
}

struct Drive {
    supervisor: Supervisor,
    obeys: Obeys,
    seen: Seen,
    /// Acceleration that the drive does not prevent, rad/s^2.
    pushed: f64,
    elapsed: Seconds,
}

impl Drive {
    /// An axis at 2 rad/s.
    fn moving(mode: AxisMode, halts: bool, obeys: Obeys) -> Self {
        let settings = settings(mode.cyclic(), OnStale::Hold);
        let limits = Limits { position: None, ..settings.limits };
        let means = StoppingMeans { halts, ..StoppingMeans::default() };
        let settings = Settings { mode, limits, following_error: None, ..settings };
        let supervisor = Supervisor::new(settings, PERIOD).unwrap().with_means(means);
        let velocity = RadiansPerSecond(2.0);
        let feedback =
            AxisFeedback { phase: AxisPhase::Following, fresh: true, velocity, ..AxisFeedback::default() };
        let seen = Seen { feedback, enabled: true, has_power: Some(true), asks: true, ..Seen::default() };
        let mut it = Self { supervisor, obeys, seen, pushed: 0.0, elapsed: PERIOD };
        (0..20).for_each(|_| assert_eq!(it.cycle(), None));
        it
    }

    fn cycle(&mut self) -> Option<Intervention> {
        let mut seen = self.seen;
        if seen.homing {
            seen.feedback.phase = AxisPhase::NotEnabled;
        }
        let position = seen.feedback.position + seen.feedback.velocity * PERIOD;
        let asked = AxisSetpoint { position, velocity: seen.feedback.velocity, torque: NewtonMetres::ZERO };
        let sent = self.supervisor.step(self.elapsed, asked, &seen);
        let feedback = &mut self.seen.feedback;
        let brakes = match sent.intervention {
            Some(Intervention::Halt) => self.obeys.halt,
            Some(Intervention::QuickStop) => {
                self.seen.enabled &= !self.obeys.quick_stop;
                self.obeys.quick_stop
            }
            // A homing is halted without an intervention.
            None => (self.seen.braking || self.seen.homing) && self.obeys.halt,
            _ => false,
        };
        let velocity = feedback.velocity.0;
        let slowed = velocity.signum() * (velocity.abs() - DECELERATION / 4.0 * PERIOD.0).max(0.0);
        feedback.velocity =
            RadiansPerSecond(if brakes { slowed } else { velocity } + self.pushed * PERIOD.0);
        feedback.position += feedback.velocity * PERIOD;
        if !self.seen.enabled {
            self.seen.homing = false;
            feedback.phase = AxisPhase::NotEnabled;
        }
        sent.intervention
    }

    fn stands(&self) -> bool {
        self.seen.feedback.velocity.0.abs() <= VELOCITY * STANDS
    }

    fn cycles(&mut self, cycles: usize) -> Vec<Option<Intervention>> {
        (0..cycles).map(|_| self.cycle()).collect()
    }
}

const HALTED: [AxisMode; 4] =
    [AxisMode::CyclicTorque, AxisMode::ProfileTorque, AxisMode::ProfilePosition, AxisMode::ProfileVelocity];

/// Name of a cause of a stop by a halt, and its effect.
type NamedCause = (&'static str, fn(&mut Drive));

fn causes() -> [NamedCause; 4] {
    [
        ("latched", |it| it.supervisor.stop_for(StopReason::NotFinite)),
        ("interlock", |it| it.seen.interlock = InterlockState::Stop),
        ("stale", |it| it.seen.stale = Some(Seconds::ZERO)),
        ("set-up", |it| it.seen.set_up = true),
    ]
}

// feature(axes): a halt that does not brake (0x605D other than 1 or 2) is replaced by the drive's quick stop
#[test]
fn a_halt_that_coasts_is_not_used() {
    let obeys = Obeys { quick_stop: true, ..Obeys::default() };
    for mode in HALTED {
        for (cause, stop) in causes() {
            let mut drive = Drive::moving(mode, false, obeys);
            stop(&mut drive);
            let requests = drive.cycles(1_000);
            assert_eq!(requests[0], Some(Intervention::QuickStop), "{mode:?} {cause}");
            assert!(!requests.contains(&Some(Intervention::Halt)), "{mode:?} {cause}");
            assert!(drive.stands(), "{mode:?} {cause}");
        }
    }
    // Homing is halted in every mode.
    let mut homing = Drive::moving(AxisMode::CyclicPosition, false, obeys);
    (homing.seen.homing, homing.seen.interlock) = (true, InterlockState::Stop);
    assert_eq!(homing.cycle(), Some(Intervention::QuickStop));
}

// feature(axes): an axis that its drive's halt does not slow gets the quick stop within 60 ms
#[test]
fn a_halt_that_is_ignored_is_followed_by_a_quick_stop() {
    let obeys = Obeys { quick_stop: true, ..Obeys::default() };
    let until_quick_stop = |mut drive: Drive, name: &str| {
        let requests = drive.cycles(1_500);
        let at = requests.iter().position(|&it| it == Some(Intervention::QuickStop));
        assert!(at.is_some_and(|it| (50..=60).contains(&it)), "{name}: {at:?}");
        assert!(drive.stands(), "{name}");
    };
    for mode in HALTED {
        for (cause, stop) in causes() {
            let mut drive = Drive::moving(mode, true, obeys);
            stop(&mut drive);
            until_quick_stop(drive, &format!("{mode:?} {cause}"));
        }
        let mut by_controller = Drive::moving(mode, true, obeys);
        (by_controller.seen.braking, by_controller.seen.asks) = (true, false);
        until_quick_stop(by_controller, &format!("{mode:?} by its controller"));
    }
    let mut homing = Drive::moving(AxisMode::CyclicPosition, true, obeys);
    (homing.seen.homing, homing.seen.interlock) = (true, InterlockState::Stop);
    until_quick_stop(homing, "homing");
}

#[test]
fn a_halt_that_slows_the_axis_continues() {
    let obeys = Obeys { halt: true, quick_stop: true };
    for mode in HALTED {
        let mut drive = Drive::moving(mode, true, obeys);
        drive.supervisor.stop_for(StopReason::NotFinite);
        // Its answer takes time, and replies are lost.
        drive.obeys.halt = false;
        drive.cycles(20);
        drive.obeys.halt = true;
        for cycle in 0..600 {
            let is_lost = cycle % 7 < 2;
            drive.seen.feedback.fresh = !is_lost;
            drive.seen.enabled = !is_lost;
            drive.seen.has_power = (!is_lost).then_some(true);
            drive.seen.missed = if is_lost { cycle % 7 + 1 } else { 0 };
            assert_eq!(drive.cycle(), Some(Intervention::Halt), "{mode:?} {cycle}");
        }
        assert_eq!(drive.seen.feedback.velocity.0, 0.0);
        // At standstill a person pushes it.
        (drive.seen.feedback.fresh, drive.seen.enabled, drive.seen.missed) = (true, true, 0);
        drive.seen.has_power = Some(true);
        drive.seen.feedback.velocity = RadiansPerSecond(0.1);
        drive.obeys.halt = false;
        assert!(drive.cycles(300).iter().all(|&it| it == Some(Intervention::Halt)), "{mode:?}");
    }
}

#[test]
fn an_outage_is_no_halt_that_is_ignored() {
    for mode in HALTED {
        let mut drive = Drive::moving(mode, true, Obeys { halt: true, quick_stop: true });
        drive.supervisor.stop_for(StopReason::NotFinite);
        drive.cycles(10);
        // Shorter than the outage time, again and again: it does not slow down meanwhile.
        for _ in 0..20 {
            drive.obeys.halt = false;
            for missed in 1..15 {
                drive.seen.missed = missed;
                (drive.seen.feedback.fresh, drive.seen.enabled, drive.seen.has_power) =
                    (false, false, None);
                assert_eq!(drive.cycle(), Some(Intervention::Halt), "{mode:?}");
            }
            (drive.seen.feedback.fresh, drive.seen.enabled, drive.seen.missed) = (true, true, 0);
            drive.seen.has_power = Some(true);
            drive.obeys.halt = true;
            assert!(drive.cycles(5).iter().all(|&it| it == Some(Intervention::Halt)), "{mode:?}");
        }
    }
}

impl Drive {
    /// An outage shorter than the outage time; the drive requests in it.
    fn outage(&mut self, cycles: u64) -> Vec<Option<Intervention>> {
        let requests = (1..=cycles).map(|missed| {
            (self.seen.missed, self.seen.has_power) = (missed, None);
            (self.seen.feedback.fresh, self.seen.enabled) = (false, false);
            self.cycle()
        });
        let requests = requests.collect();
        (self.seen.missed, self.seen.has_power) = (0, Some(true));
        (self.seen.feedback.fresh, self.seen.enabled) = (true, true);
        requests
    }
}

#[test]
fn an_ignored_halt_stays_ignored_over_an_outage() {
    for mode in HALTED {
        let mut drive = Drive::moving(mode, true, Obeys::default());
        (drive.seen.braking, drive.seen.asks) = (true, false);
        assert_eq!(drive.cycles(60)[59], Some(Intervention::QuickStop), "{mode:?}");
        let mut requests = drive.outage(6);
        requests.extend(drive.cycles(20));
        assert!(requests.iter().all(|&it| it == Some(Intervention::QuickStop)), "{mode:?} {requests:?}");
    }
}

#[test]
fn the_time_before_an_outage_does_not_count_for_a_halt() {
    for mode in HALTED {
        let mut drive = Drive::moving(mode, true, Obeys::default());
        drive.supervisor.stop_for(StopReason::NotFinite);
        drive.cycles(40);
        drive.outage(6);
        let requests = drive.cycles(40);
        assert!(requests.iter().all(|&it| it == Some(Intervention::Halt)), "{mode:?} {requests:?}");
    }
}

#[test]
fn an_axis_is_held_by_a_request_that_its_drive_carries_out() {
    use Intervention::{Follow, Halt, QuickStop};
    let (csp, csv, cst) = (AxisMode::CyclicPosition, AxisMode::CyclicVelocity, AxisMode::CyclicTorque);
    let profile = AxisMode::ProfilePosition;
    // Mode, halts, with the steps of an ignored quick stop; the request.
    let rows = [
        (csp, true, false, Halt),
        (csp, false, false, Follow),
        (csp, true, true, Follow),
        (csp, false, true, Follow),
        (csv, true, false, Halt),
        (csv, false, false, Follow),
        (csv, true, true, Follow),
        (cst, true, false, Halt),
        (cst, false, false, QuickStop),
        (cst, true, true, Halt),
        (cst, false, true, Halt),
        (profile, false, false, QuickStop),
        (profile, false, true, Halt),
    ];
    for (mode, halts, steps, expected) in rows {
        let mut drive = Drive::moving(mode, halts, Obeys::default());
        if steps {
            (drive.seen.quick_stop, drive.seen.braking, drive.seen.asks) = (true, true, false);
            drive.cycles(80);
        }
        assert_eq!(drive.supervisor.is_stopped_by_steps(), steps, "{mode:?} {halts}");
        assert_eq!(drive.supervisor.holds_by(), expected, "{mode:?}, halts {halts}, steps {steps}");
    }
}

#[test]
fn axis_without_halt_is_enabled_at_standstill_only() {
    let mut drive = Drive::moving(AxisMode::CyclicTorque, false, Obeys { quick_stop: true, halt: false });
    drive.seen.feedback.velocity = RadiansPerSecond::ZERO;
    drive.cycle();
    drive.seen.set_up = true;
    assert!(drive.cycles(100).iter().all(Option::is_none));
    // Its load pulls.
    drive.seen.feedback.velocity = RadiansPerSecond(0.5);
    drive.pushed = 1.0;
    assert_eq!(drive.cycle(), Some(Intervention::QuickStop));
}

#[test]
fn set_up_mode_ends_the_homing_of_an_axis_that_is_not_homed() {
    let obeys = Obeys { quick_stop: true, ..Obeys::default() };
    let mut drive = Drive::moving(AxisMode::CyclicPosition, false, obeys);
    (drive.seen.homing, drive.seen.not_homed) = (true, true);
    assert!(drive.cycles(100).iter().all(Option::is_none), "it is homed");
    drive.seen.set_up = true;
    assert_eq!(drive.cycles(2)[1], Some(Intervention::QuickStop));
}

#[test]
fn a_late_cycle_is_no_runaway_by_itself() {
    let mut drive = Drive::moving(AxisMode::ProfileVelocity, true, Obeys::default());
    drive.supervisor.stop_for(StopReason::NotFinite);
    drive.cycles(3);
    drive.seen.feedback.velocity = RadiansPerSecond(3.5);
    drive.elapsed = RUNAWAY_TIME * 2.0;
    drive.cycle();
    assert_eq!(drive.supervisor.stopped(), Some(StopReason::NotFinite), "one reply");
    // In cycles on time it is one.
    let mut drive = Drive::moving(AxisMode::ProfileVelocity, true, Obeys::default());
    drive.supervisor.stop_for(StopReason::NotFinite);
    drive.cycles(3);
    drive.seen.feedback.velocity = RadiansPerSecond(3.5);
    drive.cycles(49);
    assert_eq!(drive.supervisor.stopped(), Some(StopReason::NotFinite));
    drive.cycles(3);
    assert_eq!(drive.supervisor.stopped(), Some(StopReason::Runaway));
}

#[test]
fn a_homing_that_lost_its_torque_gets_no_quick_stop() {
    for mode in [AxisMode::CyclicPosition, AxisMode::CyclicVelocity] {
        let mut drive = Drive::moving(mode, false, Obeys::default());
        drive.seen.homing = true;
        drive.cycles(10);
        drive.supervisor.stop_for(StopReason::Runaway);
        let requests = drive.cycles(100);
        assert!(requests.iter().all(|&it| it == Some(Intervention::CutOff)), "{mode:?}");
    }
}
