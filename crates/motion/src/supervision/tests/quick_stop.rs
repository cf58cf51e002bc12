//! Drives that do not carry out a quick stop, and are stopped by the next step that works.

use super::*;

/// Requests that the drive obeys while it stays in Operation enabled.
#[derive(Clone, Copy, Debug, Default)]
struct Obeys {
    setpoints_under_quick_stop: bool,
    setpoints: bool,
    halt: bool,
    /// Acceleration by a load that nothing holds, rad/s^2.
    load: f64,
}

struct Drive {
    supervisor: Supervisor,
    obeys: Obeys,
    feedback: AxisFeedback,
    missed: u64,
    trusted: bool,
    interlock: InterlockState,
    asked_for: Vec<Option<Intervention>>,
}

impl Drive {
    /// An axis at 2 rad/s with a quick-stop request of its controller.
    fn asked(mode: CyclicMode, means: StoppingMeans, obeys: Obeys) -> Self {
        let settings = Settings { following_error: None, ..settings(mode, OnStale::Hold) };
        let supervisor = Supervisor::new(settings, PERIOD).unwrap().with_means(means);
        let velocity = RadiansPerSecond(2.0);
        let feedback =
            AxisFeedback { phase: AxisPhase::NotEnabled, fresh: true, velocity, ..AxisFeedback::default() };
        let (interlock, asked_for) = (InterlockState::Clear, Vec::new());
        let mut it = Self { supervisor, obeys, feedback, missed: 0, trusted: true, interlock, asked_for };
        it.feedback.position = Radians(-0.5);
        it.cycle(false);
        (it.feedback.phase, it.feedback.velocity) = (AxisPhase::Following, velocity);
        for _ in 0..20 {
            it.cycle(false);
        }
        it
    }

    fn cycle(&mut self, quick_stop: bool) -> Option<Intervention> {
        let enabled = self.feedback.phase != AxisPhase::NotEnabled;
        let mut feedback = self.feedback;
        feedback.fresh = self.trusted && self.missed == 0;
        let seen = Seen {
            feedback,
            quick_stop,
            enabled: enabled && self.missed == 0,
            missed: self.missed,
            interlock: self.interlock,
            ..Seen::default()
        };
        let asked = AxisSetpoint {
            position: self.feedback.position + self.feedback.velocity * PERIOD,
            velocity: self.feedback.velocity,
            torque: NewtonMetres::ZERO,
        };
        let sent = self.supervisor.step(PERIOD, asked, &seen);
        let before = self.supervisor.settings().limits;
        assert!(sent.setpoint.velocity.abs() <= before.velocity, "{sent:?}");
        self.asked_for.push(sent.intervention);
        let follows = match sent.intervention {
            Some(Intervention::QuickStop) => self.obeys.setpoints_under_quick_stop,
            None | Some(Intervention::Follow) => self.obeys.setpoints,
            _ => false,
        };
        let (velocity, mode) = (self.feedback.velocity.0, self.supervisor.mode());
        let slowed = velocity.signum() * (velocity.abs() - DECELERATION * PERIOD.0).max(0.0);
        self.feedback.velocity = RadiansPerSecond(match sent.intervention {
            Some(Intervention::Halt) if self.obeys.halt => slowed,
            _ if follows && mode != CyclicMode::Torque => sent.setpoint.velocity.0,
            _ => velocity + self.obeys.load * PERIOD.0,
        });
        self.feedback.position += self.feedback.velocity * PERIOD;
        if matches!(sent.intervention, Some(Intervention::Disable | Intervention::CutOff)) {
            self.feedback.phase = AxisPhase::NotEnabled;
            self.feedback.velocity = RadiansPerSecond::ZERO;
        }
        sent.intervention
    }

    /// Cycles until the drive gets this request.
    fn until(&mut self, intervention: Intervention) -> usize {
        let found = (0..2_000).find(|_| self.cycle(true) == Some(intervention));
        found.unwrap_or_else(|| panic!("never {intervention:?}: {:?}", self.obeys))
    }

    fn step(&self) -> Option<QuickStopStep> {
        self.supervisor.quick_stop_step()
    }
}

const CYCLIC: [CyclicMode; 2] = [CyclicMode::Position, CyclicMode::Velocity];

// feature(axes): a drive that does not carry out a quick stop is stopped by other steps, without dropping a load
#[test]
fn setpoints_stop_a_drive_that_follows_them_under_quick_stop() {
    for mode in CYCLIC {
        let obeys = Obeys { setpoints_under_quick_stop: true, setpoints: true, ..Obeys::default() };
        let mut drive = Drive::asked(mode, StoppingMeans::default(), obeys);
        let cycles = drive.until(Intervention::Disable);
        // 2 rad/s at 20 rad/s^2, then 50 ms at standstill.
        assert!((140..170).contains(&cycles), "{cycles}");
        assert_eq!(drive.step(), Some(QuickStopStep::SetPoints));
        assert!(!drive.asked_for.contains(&Some(Intervention::Follow)));
    }
}

#[test]
fn set_points_after_a_quick_stop_begin_at_the_place_of_the_axis() {
    let obeys = Obeys { setpoints: true, ..Obeys::default() };
    let means = StoppingMeans { quick_stops: false, keeps_torque: true, ..StoppingMeans::default() };
    let mut drive = Drive::asked(CyclicMode::Position, means, obeys);
    let begin = drive.feedback.position;
    (0..400).for_each(|_| assert_eq!(drive.cycle(true), Some(Intervention::Follow)));
    assert!(drive.feedback.position.0 - begin.0 > 10.0 * STEP && drive.feedback.velocity.0 == 0.0);
    for _ in 0..5 {
        drive.cycle(false);
        assert_eq!(drive.supervisor.stopped(), None);
    }
}

#[test]
fn setpoints_begin_where_a_drive_is_that_ran_on() {
    for mode in CYCLIC {
        let obeys = Obeys { setpoints: true, ..Obeys::default() };
        let mut drive = Drive::asked(mode, StoppingMeans::default(), obeys);
        let begins = drive.until(Intervention::Follow);
        assert!((45..55).contains(&begins), "{begins}");
        assert!(drive.feedback.velocity.0 > 1.999, "it ran on");
        drive.until(Intervention::Disable);
        assert_eq!(drive.step(), Some(QuickStopStep::SetPoints));
        assert!(!drive.asked_for.contains(&Some(Intervention::Halt)));
    }
}

#[test]
fn a_halt_stops_a_drive_that_follows_no_setpoints() {
    for mode in CyclicMode::ALL {
        let obeys = Obeys { halt: true, ..Obeys::default() };
        let mut drive = Drive::asked(mode, StoppingMeans::default(), obeys);
        drive.until(Intervention::Halt);
        drive.until(Intervention::Disable);
        assert_eq!(drive.step(), Some(QuickStopStep::Halt), "{mode:?}");
    }
}

#[test]
fn a_drive_that_obeys_nothing_or_gets_faster_is_cut_off() {
    for mode in CyclicMode::ALL {
        let mut drive = Drive::asked(mode, StoppingMeans::default(), Obeys::default());
        let cycles = drive.until(Intervention::CutOff);
        // 50 ms, and 2 v/a + 0.5 s.
        assert!((740..780).contains(&cycles), "{mode:?} {cycles}");
        assert_eq!(drive.step(), Some(QuickStopStep::CutOff));
        let falls = Obeys { load: 4.0, ..Obeys::default() };
        let cycles = Drive::asked(mode, StoppingMeans::default(), falls).until(Intervention::CutOff);
        assert!(cycles < 120, "{mode:?} {cycles}");
    }
}

#[test]
fn without_trusted_feedback_an_enabled_drive_is_cut_off() {
    let mut drive = Drive::asked(CyclicMode::Position, StoppingMeans::default(), Obeys::default());
    drive.trusted = false;
    let cycles = drive.until(Intervention::CutOff);
    assert!((45..55).contains(&cycles), "{cycles}");
    // Without any reply it is not known that the drive is enabled.
    let mut drive = Drive::asked(CyclicMode::Position, StoppingMeans::default(), Obeys::default());
    for missed in 1..500 {
        drive.missed = missed;
        assert_ne!(drive.cycle(true), Some(Intervention::CutOff));
    }
}

#[test]
fn a_drive_that_slows_down_by_itself_is_left_alone() {
    let mut drive = Drive::asked(
        CyclicMode::Velocity,
        StoppingMeans::default(),
        Obeys { load: -2.0, ..Obeys::default() },
    );
    for _ in 0..900 {
        assert_eq!(drive.cycle(true), Some(Intervention::QuickStop));
    }
}

// feature(axes): a load without a brake stays held by its drive at standstill, until a reset
#[test]
fn a_load_without_brake_stays_held_until_a_reset() {
    let means = StoppingMeans { keeps_torque: true, ..StoppingMeans::default() };
    let obeys = Obeys { setpoints_under_quick_stop: true, setpoints: true, ..Obeys::default() };
    let mut drive = Drive::asked(CyclicMode::Position, means, obeys);
    drive.supervisor.lose_drive();
    drive.until(Intervention::Follow);
    for _ in 0..500 {
        assert_eq!(drive.cycle(false), Some(Intervention::Follow));
        assert_eq!(drive.supervisor.stopped(), Some(StopReason::Outage));
    }
    drive.supervisor.acknowledge();
    drive.cycle(false);
    assert_eq!((drive.supervisor.stopped(), drive.cycle(false)), (None, None));
    assert_eq!(drive.step(), None);
}

// feature(axes): an ignored quick stop is reported until a reset, also while the controller continues
#[test]
fn an_ignored_quick_stop_is_reported_until_a_reset() {
    let obeys = Obeys { setpoints_under_quick_stop: true, setpoints: true, ..Obeys::default() };
    let mut drive = Drive::asked(CyclicMode::Position, StoppingMeans::default(), obeys);
    // A reset of before does not count.
    drive.supervisor.acknowledge();
    drive.until(Intervention::Disable);
    for _ in 0..100 {
        assert_eq!(drive.cycle(false), None);
        assert_eq!(drive.step(), Some(QuickStopStep::SetPoints));
    }
    drive.supervisor.acknowledge();
    drive.cycle(false);
    assert_eq!(drive.step(), None);
}

// feature(axes): an interlock does not take the torque from a load that only its drive holds
#[test]
fn an_interlock_drops_no_load_that_is_held() {
    let means = StoppingMeans { keeps_torque: true, ..StoppingMeans::default() };
    let obeys = Obeys { setpoints_under_quick_stop: true, setpoints: true, ..Obeys::default() };
    for interlock in [InterlockState::Stop, InterlockState::NotPermitted] {
        for by_controller in [true, false] {
            let mut drive = Drive::asked(CyclicMode::Position, means, obeys);
            if !by_controller {
                drive.supervisor.lose_drive();
            }
            drive.until(Intervention::Follow);
            drive.interlock = interlock;
            for cycle in 0..500 {
                // Neither the controller nor a reset ends it while the input forbids.
                drive.supervisor.acknowledge();
                let asks = by_controller && cycle < 100;
                assert_eq!(drive.cycle(asks), Some(Intervention::Follow), "{interlock:?} {cycle}");
            }
            drive.interlock = InterlockState::Clear;
            for _ in 0..100 {
                assert_eq!(drive.cycle(false), Some(Intervention::Follow), "{interlock:?}");
            }
            drive.supervisor.acknowledge();
            drive.cycle(false);
            assert_eq!((drive.supervisor.stopped(), drive.cycle(false)), (None, None), "{interlock:?}");
        }
    }
}

/// An axis at -2 rad/s without quick stop and halt, which gets a request for a quick stop.
fn without_means(mode: AxisMode) -> (Supervisor, Seen) {
    let settings = Settings { mode, following_error: None, ..settings(mode.cyclic(), OnStale::Hold) };
    let means = StoppingMeans { halts: false, quick_stops: false, keeps_torque: false };
    let mut supervisor = Supervisor::new(settings, PERIOD).unwrap().with_means(means);
    let (phase, velocity) = (AxisPhase::Following, RadiansPerSecond(-2.0));
    let feedback = AxisFeedback { phase, velocity, fresh: true, ..AxisFeedback::default() };
    let mut seen = Seen { feedback, enabled: true, has_power: Some(true), asks: true, ..Seen::default() };
    let asked = AxisSetpoint { velocity, ..AxisSetpoint::default() };
    assert_eq!(supervisor.step(PERIOD, asked, &seen).intervention, None);
    (seen.quick_stop, seen.asks) = (true, false);
    (supervisor, seen)
}

#[test]
fn a_drive_on_its_way_is_led_to_where_it_can_stop() {
    let (mut supervisor, seen) = without_means(AxisMode::ProfilePosition);
    let sent = supervisor.step(PERIOD, AxisSetpoint::default(), &seen);
    assert_eq!(sent.intervention, Some(Intervention::Follow));
    let way = sent.setpoint.position.0;
    assert!((way + 2.0 * 2.0 / (2.0 * DECELERATION)).abs() < 1e-9, "{way} rad, in its direction");
}

#[test]
fn no_step_enables_a_drive_that_shows_that_it_is_off() {
    let (mut supervisor, mut seen) = without_means(AxisMode::CyclicVelocity);
    let mut step = |seen: &Seen| supervisor.step(PERIOD, AxisSetpoint::default(), seen).intervention;
    assert_eq!(step(&seen), Some(Intervention::Follow));
    seen.enabled = false;
    assert_eq!(step(&seen), Some(Intervention::QuickStop));
}

#[test]
fn steps_of_an_unconnected_axis_end_with_its_torque() {
    let (mut supervisor, mut seen) = without_means(AxisMode::CyclicVelocity);
    let mut step = |seen: &Seen| supervisor.step(PERIOD, AxisSetpoint::default(), seen).intervention;
    assert_eq!(step(&seen), Some(Intervention::Follow));
    (seen.enabled, seen.has_power, seen.feedback.fresh) = (false, None, false);
    for missed in 1..=BLIND_CYCLES {
        seen.missed = missed;
        assert_eq!(step(&seen), Some(Intervention::Follow), "{missed}");
    }
    seen.missed += 1;
    assert_eq!(step(&seen), Some(Intervention::CutOff));
}
