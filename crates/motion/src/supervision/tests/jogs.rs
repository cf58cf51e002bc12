//! Jogs, and axes that only a jog moves.

use super::*;

/// Limit of a jog with these settings.
const JOG: f64 = 0.25;

/// An axis that follows its set-points. A controller commands full speed all the time.
pub(super) struct Jogged {
    pub(super) supervisor: Supervisor,
    pub(super) feedback: AxisFeedback,
    pub(super) seen: Seen,
    /// Velocity that the controller commands.
    wanted: f64,
    at: f64,
    elapsed: Seconds,
}

impl Jogged {
    pub(super) fn new(mode: CyclicMode) -> Self {
        Self::of(settings(mode, OnStale::Hold))
    }

    fn of(settings: Settings) -> Self {
        Self::at(settings, 0.0)
    }

    fn at(settings: Settings, place: f64) -> Self {
        let position = Radians(place);
        let feedback = AxisFeedback {
            position,
            phase: AxisPhase::HoldingAt(position),
            fresh: true,
            ..AxisFeedback::default()
        };
        let supervisor = Supervisor::new(settings, PERIOD).unwrap().with_tolerance(Radians(0.02));
        let (seen, elapsed) = (Seen { enabled: true, ..Seen::default() }, PERIOD);
        let mut it = Self { supervisor, feedback, seen, wanted: 0.0, at: place, elapsed };
        it.cycle();
        it
    }

    pub(super) fn cycle(&mut self) -> Supervised {
        let shown = self.supervisor.phase(self.feedback.phase);
        self.at = match shown {
            AxisPhase::Following => self.at + self.wanted * self.elapsed.0,
            AxisPhase::HoldingAt(place) => place.0,
            AxisPhase::NotEnabled => self.feedback.position.0,
        };
        let asked = AxisSetpoint {
            position: Radians(self.at),
            velocity: RadiansPerSecond(self.wanted),
            ..AxisSetpoint::default()
        };
        self.seen.feedback = self.feedback;
        let supervised = self.supervisor.step(self.elapsed, asked, &self.seen);
        let (sent, before) = (supervised.setpoint, self.feedback.position);
        self.feedback.position = match self.supervisor.settings().mode.cyclic() {
            CyclicMode::Position => sent.position,
            _ => before + sent.velocity * self.elapsed,
        };
        self.feedback.velocity = sent.velocity;
        self.feedback.phase = match supervised.intervention {
            Some(Intervention::QuickStop | Intervention::Disable) => AxisPhase::NotEnabled,
            _ => AxisPhase::Following,
        };
        supervised
    }

    pub(super) fn cycles(&mut self, count: usize) -> Supervised {
        (0..count).map(|_| self.cycle()).last().unwrap()
    }

    pub(super) fn jog(&mut self, velocity: f64, count: usize) -> Supervised {
        self.seen.jog = Some(Jog { velocity: RadiansPerSecond(velocity), permitted: true });
        self.cycles(count)
    }

    /// Its controller moves it at this velocity.
    pub(super) fn move_at(&mut self, velocity: f64, count: usize) -> Supervised {
        self.wanted = velocity;
        self.cycles(count)
    }

    fn place(&self) -> f64 {
        self.feedback.position.0
    }
}

const MODES: [CyclicMode; 2] = [CyclicMode::Position, CyclicMode::Velocity];

#[test]
fn a_jog_moves_at_its_limit_and_stops_with_its_request() {
    for mode in MODES {
        for (asked, reached) in [(0.1, 0.1), (1e300, JOG), (f64::INFINITY, JOG), (-1e300, -JOG)] {
            let mut it = Jogged::new(mode);
            let sent = it.jog(asked, 2_000);
            assert_eq!(sent.reason, Some(StopReason::Jog), "{mode:?}");
            assert!((sent.setpoint.velocity.0 - reached).abs() < 1e-9, "{mode:?} {asked}: {sent:?}");
            it.seen.jog = None;
            let stopping = (0..1_000).take_while(|_| it.cycle().setpoint.velocity.0 != 0.0).count();
            assert!(stopping as f64 <= JOG / DECELERATION / PERIOD.0 + 2.0, "{mode:?}: {stopping}");
            it.cycle();
            assert_eq!(it.supervisor.stopped(), None, "{mode:?}: its controller has it again");
        }
        let mut it = Jogged::new(mode);
        it.jog(f64::NAN, 500);
        assert_eq!((it.place(), it.supervisor.stopped()), (0.0, None), "{mode:?}");
    }
}

#[test]
fn a_jog_takes_an_axis_at_standstill_only() {
    for mode in MODES {
        let mut it = Jogged::new(mode);
        it.wanted = 0.5;
        it.cycles(300);
        assert_eq!(it.jog(-0.2, 100).reason, None, "{mode:?}: its controller moves it");
        it.wanted = 0.0;
        it.seen.jog = None;
        it.cycles(3);
        let from = it.place();
        assert_eq!(it.jog(-0.2, 500).reason, Some(StopReason::Jog), "{mode:?}");
        assert!(it.place() < from - 0.05, "{mode:?}");
        // The controller's command meanwhile does not add to it.
        it.wanted = VELOCITY;
        let sent = it.cycles(100);
        assert!((sent.setpoint.velocity.0 + 0.2).abs() < 1e-9, "{mode:?}: {sent:?}");
    }
}

#[test]
fn a_jog_begins_once_set_points_have_rested_for_some_cycles() {
    for mode in MODES {
        let mut it = Jogged::new(mode);
        it.move_at(0.5, 300);
        it.wanted = 0.0;
        while it.cycle().setpoint.velocity.0 != 0.0 {}
        it.seen.jog = Some(Jog { velocity: RadiansPerSecond(0.2), permitted: true });
        let waits = (0..100).take_while(|_| it.cycle().reason != Some(StopReason::Jog)).count();
        assert_eq!(waits, 3, "{mode:?}: cycles of the rest, the one before included");
    }
}

#[test]
fn a_jog_against_an_obstacle_stops_by_its_following_error() {
    for (mode, expected) in MODES.into_iter().zip([Some(StopReason::FollowingError), Some(StopReason::Jog)])
    {
        let mut it = Jogged::new(mode);
        it.jog(JOG, 200);
        let blocked = it.feedback;
        for _ in 0..1_000 {
            it.cycle();
            it.feedback.position = blocked.position;
            it.feedback.velocity = RadiansPerSecond::ZERO;
        }
        assert_eq!(it.supervisor.stopped(), expected, "{mode:?}");
    }
}

#[test]
fn a_jog_that_lost_its_permission_has_to_begin_again() {
    for mode in MODES {
        let mut it = Jogged::new(mode);
        let request = |permitted| Some(Jog { velocity: RadiansPerSecond(0.2), permitted });
        it.seen.jog = request(false);
        it.cycles(100);
        assert_eq!(it.place(), 0.0, "{mode:?}");
        it.seen.jog = request(true);
        it.cycles(500);
        it.seen.jog = request(false);
        let stopping = (0..500).take_while(|_| it.cycle().setpoint.velocity.0 != 0.0).count();
        assert!(stopping as f64 <= 0.2 / DECELERATION / PERIOD.0 + 2.0, "{mode:?}: {stopping}");
        let rest = it.place();
        it.seen.jog = request(true);
        it.cycles(500);
        assert_eq!(it.place(), rest, "{mode:?}: the same request moves it again");
        it.seen.jog = None;
        it.cycle();
        it.seen.jog = request(true);
        it.cycles(500);
        assert!(it.place() > rest + 0.05, "{mode:?}");
    }
}

#[test]
fn a_jog_stays_within_limits_and_leads_back_from_outside() {
    for (mode, written) in MODES.into_iter().flat_map(|it| [(it, false), (it, true)]) {
        let mut settings = settings(mode, OnStale::Hold);
        settings.limits.written = Written { acceleration: written, jerk: written };
        let mut it = Jogged::of(settings);
        it.jog(9.0, 20_000);
        assert!((1.9..=2.0 + 1e-9).contains(&it.place()), "{mode:?}: {}", it.place());
        it.jog(-9.0, 20_000);
        assert!((-1.0 - 1e-9..=-0.9).contains(&it.place()), "{mode:?}: {}", it.place());
        // Outside by more than the braking distance of 0.4 rad and the tolerance.
        let mut it = Jogged::at(settings, 3.0);
        it.wanted = -1.0;
        assert_eq!(it.cycles(100).reason, Some(StopReason::OutsideLimits), "{mode:?}");
        assert_eq!(it.place(), 3.0, "{mode:?}: a controller moves it");
        it.jog(0.2, 500);
        assert!((2.999..3.0 + 1e-9).contains(&it.place()), "{mode:?}: farther out: {}", it.place());
        it.jog(-0.2, 3_500);
        assert!(it.place() < 2.4, "{mode:?}: {}", it.place());
        it.seen.jog = None;
        it.cycles(400);
        assert!(it.place() < 2.3, "{mode:?}: near enough for its controller: {}", it.place());
    }
}

#[test]
fn an_axis_near_outside_goes_inwards_as_slowly_as_in_a_jog() {
    for (mode, written) in MODES.into_iter().flat_map(|it| [(it, false), (it, true)]) {
        let mut settings = settings(mode, OnStale::Hold);
        settings.limits.written = Written { acceleration: written, jerk: written };
        let mut it = Jogged::at(settings, 2.3);
        it.wanted = -1.0;
        let (mut fastest, mut outside) = (0.0_f64, 0);
        for _ in 0..3_000 {
            let before = it.place();
            let sent = it.cycle();
            assert_ne!(sent.reason, Some(StopReason::OutsideLimits), "{mode:?}");
            if before > 2.0 + 1e-6 {
                (fastest, outside) = (fastest.max(sent.setpoint.velocity.0.abs()), outside + 1);
            }
        }
        assert!(fastest <= JOG * 1.0001 && outside > 500, "{mode:?}: {fastest}, {outside} cycles");
        assert!(it.place() < 2.0, "{mode:?}: {}", it.place());
        let mut it = Jogged::at(settings, 2.3);
        it.wanted = 1.0;
        it.cycles(500);
        assert!((2.299..2.3 + 1e-9).contains(&it.place()), "{mode:?}: farther out: {}", it.place());
    }
}

#[test]
fn an_axis_that_is_not_homed_is_moved_by_a_jog_only() {
    for mode in MODES {
        let mut it = Jogged::new(mode);
        (it.wanted, it.seen.not_homed) = (1.0, true);
        let held = it.cycles(500);
        assert!(it.place() < 0.03, "{mode:?}: {}", it.place());
        let from = it.place();
        assert_eq!((held.reason, held.intervention), (Some(StopReason::NotHomed), None), "{mode:?}");
        assert!(it.supervisor.may_home() && it.supervisor.unready().is_some(), "{mode:?}");
        it.supervisor.acknowledge();
        it.cycles(100);
        assert_eq!(it.place(), from, "{mode:?}: a reset");
        it.jog(0.2, 500);
        assert!(it.place() > from + 0.05, "{mode:?}");
        it.seen.jog = None;
        assert_eq!(it.cycles(100).reason, Some(StopReason::NotHomed), "{mode:?}");
        it.seen.not_homed = false;
        it.cycles(100);
        assert_eq!(it.supervisor.stopped(), None, "{mode:?}: homed");
        assert!(it.supervisor.unready().is_none(), "{mode:?}");
    }
}

#[test]
fn an_unreferenced_axis_is_jogged_once_it_was_reset() {
    for mode in MODES {
        let mut it = Jogged::new(mode);
        it.wanted = 1.0;
        it.supervisor.unreference(StopReason::UnreferencedChange);
        it.cycles(10);
        assert_eq!(it.jog(0.2, 500).reason, Some(StopReason::UnreferencedChange), "{mode:?}");
        assert_eq!(it.place(), 0.0, "{mode:?}: not reset");
        it.seen.jog = None;
        it.supervisor.acknowledge();
        it.cycles(10);
        it.jog(0.2, 500);
        assert!(it.place() > 0.05, "{mode:?}: {:?}", it.supervisor.stopped());
        let others = it.supervisor.stop_for_others();
        assert_eq!(others, OtherAxis::Stopped, "{mode:?}: a jog makes it no known position");
        it.seen.jog = None;
        let held = it.cycles(200);
        let expected = (Some(StopReason::UnreferencedChange), None);
        assert_eq!((held.reason, held.intervention), expected, "{mode:?}: it stays enabled");
        let rest = it.place();
        it.supervisor.acknowledge();
        it.cycles(100);
        assert_eq!(it.place(), rest, "{mode:?}");
    }
}

#[test]
fn set_up_mode_leaves_jogs_alone_and_its_end_moves_nothing() {
    for mode in MODES {
        let mut it = Jogged::new(mode);
        it.wanted = 1.0;
        it.cycles(200);
        it.seen.set_up = true;
        it.supervisor.acknowledge();
        it.cycles(200);
        let rest = it.place();
        assert_eq!(it.cycles(50).reason, Some(StopReason::SetUp), "{mode:?}");
        assert!(!it.supervisor.may_home(), "{mode:?}");
        it.supervisor.acknowledge();
        it.jog(-9.0, 500);
        assert!(it.place() < rest - 0.05, "{mode:?}");
        it.seen.jog = None;
        it.cycles(100);
        it.supervisor.acknowledge();
        it.cycles(5);
        let rest = it.place();
        it.seen.set_up = false;
        let held = it.cycles(500);
        assert_eq!((held.reason, it.place()), (Some(StopReason::AfterSetUp), rest), "{mode:?}");
        it.supervisor.acknowledge();
        it.cycles(100);
        assert_eq!(it.supervisor.stopped(), None, "{mode:?}");
        assert!(it.place() > rest, "{mode:?}");
    }
}

#[test]
fn a_chain_with_an_axis_that_is_not_ready_is_held_and_jogged() {
    for mode in MODES {
        let mut it = Jogged::new(mode);
        it.wanted = 0.5;
        it.cycles(200);
        let chained = |it: &mut Jogged, held, count| {
            (0..count).for_each(|_| {
                it.cycle();
                it.supervisor.hold_with_chain(held);
            });
        };
        chained(&mut it, true, 300);
        assert_eq!(it.supervisor.stopped(), Some(StopReason::Chain), "{mode:?}");
        let rest = it.place();
        it.seen.jog = Some(Jog { velocity: RadiansPerSecond(-0.2), permitted: true });
        chained(&mut it, true, 500);
        assert!(it.place() < rest - 0.05, "{mode:?}");
        it.seen.jog = None;
        chained(&mut it, true, 100);
        assert_eq!(it.supervisor.stopped(), Some(StopReason::Chain), "{mode:?}");
        chained(&mut it, false, 100);
        assert_eq!(it.supervisor.stopped(), None, "{mode:?}");
    }
}

#[test]
fn other_stops_end_a_jog_until_its_next_request() {
    type Cause = fn(&mut Jogged);
    let causes: [(&str, Cause, StopReason); 6] = [
        ("fault", |it| it.seen.fault = true, StopReason::Fault),
        ("stop signal", |it| it.seen.interlock = InterlockState::Stop, StopReason::Interlock),
        ("torque", |it| it.feedback.torque = NewtonMetres(-0.91), StopReason::JogTorque),
        ("lost", |it| it.supervisor.lose_drive(), StopReason::Outage),
        ("brake", |it| it.supervisor.stop_for(StopReason::Brake), StopReason::Brake),
        ("other", |it| assert!(it.supervisor.stop_with(OtherAxis::Stopped)), StopReason::OtherAxis),
    ];
    for (mode, (name, cause, reason)) in MODES.into_iter().flat_map(|it| causes.map(|c| (it, c))) {
        let mut it = Jogged::new(mode);
        it.jog(0.2, 500);
        cause(&mut it);
        it.cycles(60);
        assert_eq!(it.supervisor.stopped(), Some(reason), "{mode:?} {name}");
        (it.seen.fault, it.seen.interlock, it.feedback.torque) =
            (false, InterlockState::Clear, NewtonMetres::ZERO);
        it.supervisor.stop_with(OtherAxis::Free);
        let rest = it.place();
        for _ in 0..100 {
            it.supervisor.acknowledge();
            it.cycle();
        }
        assert_eq!((it.place(), it.supervisor.stopped()), (rest, None), "{mode:?} {name}");
        it.seen.jog = None;
        it.cycle();
        it.jog(0.2, 500);
        assert!(it.place() > rest + 0.05, "{mode:?} {name}");
    }
}

#[test]
fn the_end_of_the_cycle_and_of_the_drive_end_a_jog() {
    for mode in MODES {
        let mut it = Jogged::new(mode);
        it.jog(0.2, 500);
        it.seen.ending = Ending::Asked;
        let stopping = (0..500).take_while(|_| it.cycle().setpoint.velocity.0 != 0.0).count();
        assert!(stopping <= 12, "{mode:?}: {stopping}");
        let mut it = Jogged::new(mode);
        it.jog(0.2, 500);
        it.feedback.phase = AxisPhase::NotEnabled;
        let place = it.place();
        it.cycles(2);
        assert!((it.place() - place).abs() < 1e-3, "{mode:?}");
    }
}

#[test]
fn profile_mode_axis_is_not_jogged() {
    for mode in [AxisMode::ProfilePosition, AxisMode::ProfileVelocity, AxisMode::CyclicTorque] {
        let settings = Settings { mode, ..settings(CyclicMode::Position, OnStale::Hold) };
        let mut it = Jogged::of(settings);
        it.jog(0.2, 100);
        assert_eq!(it.supervisor.stopped(), None, "{mode:?}");
        assert!(!it.supervisor.takes_jogs(), "{mode:?}");
    }
}

#[test]
fn jog_limits_are_within_axis_limits() {
    let it = Jogged::new(CyclicMode::Position).supervisor;
    let wide = JogLimits { velocity: RadiansPerSecond(100.0), torque: NewtonMetres(100.0) };
    let limits = it.with_jog(wide).unwrap().jog_limits();
    assert_eq!((limits.velocity.0, limits.torque.0), (VELOCITY, 3.0));
}

/// A condition that ends a jog.
type End = (&'static str, fn(&mut Seen, bool));

#[test]
fn what_ends_a_jog_ends_it_until_its_next_request() {
    let ends: [End; 5] = [
        ("a missed cycle", |seen, on| seen.missed = on.into()),
        ("a homing", |seen, on| seen.homing = on),
        ("a halt", |seen, on| seen.braking = on),
        ("no torque requested", |seen, on| seen.disables = on),
        ("a quick stop", |seen, on| seen.quick_stop = on),
    ];
    for (name, end) in ends {
        let mut it = Jogged::new(CyclicMode::Velocity);
        let before = it.jog(0.2, 500).setpoint.velocity;
        assert!((before.0 - 0.2).abs() < 1e-9, "{name}");
        end(&mut it.seen, true);
        it.jog(0.2, 1);
        end(&mut it.seen, false);
        let stopping = (0..500).take_while(|_| it.jog(0.2, 1).setpoint.velocity.0 != 0.0).count();
        assert!(stopping as f64 <= 0.2 / DECELERATION / PERIOD.0 + 2.0, "{name}: {stopping}");
        let rest = it.place();
        it.jog(0.2, 500);
        assert_eq!(it.place(), rest, "{name}: the same request");
    }
}
