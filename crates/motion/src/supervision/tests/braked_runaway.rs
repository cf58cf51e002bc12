//! Axes that run away while their drives brake them, and axes that only seem so.

use super::*;

/// rad/s: a quarter of the limit.
const ERROR: f64 = VELOCITY * VELOCITY_ERROR;

/// Speed at the request, rad/s.
const BEFORE: f64 = 2.0;

/// Reply of a cycle.
#[derive(Clone, Copy)]
enum Reply {
    /// Trusted, with this velocity.
    Velocity(f64),
    /// Implausible, the last of this many positions that jump in one direction.
    Leaps(u64),
    Lost,
}

/// An axis at [`BEFORE`] in Operation enabled.
struct Axis {
    supervisor: Supervisor,
    seen: Seen,
}

impl Axis {
    fn new(mode: CyclicMode, keeps_torque: bool) -> Self {
        let settings = settings(mode, OnStale::Hold);
        let limits = Limits { position: None, ..settings.limits };
        let settings = Settings { limits, following_error: None, ..settings };
        let means = StoppingMeans { keeps_torque, ..StoppingMeans::default() };
        let supervisor = Supervisor::new(settings, PERIOD).unwrap().with_means(means);
        let feedback = AxisFeedback { phase: AxisPhase::Following, ..AxisFeedback::default() };
        let seen = Seen { feedback, enabled: true, has_power: Some(true), asks: true, ..Seen::default() };
        let mut axis = Self { supervisor, seen };
        (0..20).for_each(|_| assert_eq!(axis.cycle(Reply::Velocity(BEFORE)), None));
        axis
    }

    /// The same with a quick-stop request of its controller, and in Quick stop active from its
    /// answer on.
    fn stopped_quickly(mode: CyclicMode, keeps_torque: bool) -> Self {
        let mut axis = Self::new(mode, keeps_torque);
        axis.seen.quick_stop = true;
        assert_eq!(axis.cycle(Reply::Velocity(BEFORE)), Some(Intervention::QuickStop));
        axis.brakes();
        axis
    }

    fn brakes(&mut self) {
        (self.seen.enabled, self.seen.brakes) = (false, true);
        self.seen.feedback.phase = AxisPhase::NotEnabled;
    }

    fn cycle(&mut self, reply: Reply) -> Option<Intervention> {
        let mut seen = self.seen;
        seen.feedback.fresh = matches!(reply, Reply::Velocity(_));
        match reply {
            Reply::Velocity(velocity) => seen.feedback.velocity = RadiansPerSecond(velocity),
            Reply::Leaps(leaps) => {
                (seen.implausible, seen.leaps) = (self.seen.implausible + 1, leaps);
                seen.missed += 1;
            }
            Reply::Lost => {
                (seen.brakes, seen.enabled, seen.has_power) = (false, false, None);
                seen.missed += 1;
            }
        }
        let velocity = seen.feedback.velocity;
        let asked = AxisSetpoint { velocity, ..AxisSetpoint::default() };
        let supervised = self.supervisor.step(PERIOD, asked, &seen);
        let trusted = seen.feedback.fresh;
        (self.seen.missed, self.seen.implausible) =
            if trusted { (0, 0) } else { (seen.missed, seen.implausible) };
        self.seen.feedback.velocity = velocity;
        supervised.intervention
    }

    /// Cycles of this until the axis loses its torque at once; `None` within 0.4 s.
    fn until_cut_off(&mut self, reply: impl Fn(u64) -> Reply) -> Option<u64> {
        (1..=400).find(|&cycle| self.cycle(reply(cycle)) == Some(Intervention::CutOff))
    }
}

/// Faster in each cycle by this acceleration, in rad/s^2.
fn faster(acceleration: f64) -> impl Fn(u64) -> Reply {
    move |cycle| Reply::Velocity(BEFORE + acceleration * cycle as f64 * PERIOD.0)
}

// feature(axes): an axis that gets faster under a halt or a quick stop loses its torque
#[test]
fn an_axis_that_gets_faster_under_a_halt_is_cut_off() {
    for by_controller in [false, true] {
        let halted = || {
            let mut axis = Axis::new(CyclicMode::Torque, false);
            if by_controller {
                (axis.seen.braking, axis.seen.asks) = (true, false);
            } else {
                axis.supervisor.stop_for(StopReason::VelocityLimit);
            }
            axis
        };
        let mut axis = halted();
        let cycles = axis.until_cut_off(faster(1_000.0)).unwrap();
        assert!((50..=54).contains(&cycles), "{cycles}");
        assert_eq!(axis.supervisor.stopped(), Some(StopReason::Runaway));
        // Slower, it gets the quick stop first, which has as long to slow it down.
        let mut axis = halted();
        for cycle in 1..=54 {
            assert_ne!(axis.cycle(faster(50.0)(cycle)), Some(Intervention::CutOff));
        }
        axis.brakes();
        let cycles = axis.until_cut_off(|cycle| faster(50.0)(54 + cycle)).unwrap();
        assert!((45..=55).contains(&cycles), "{cycles}");
        // At standstill a person pushes it.
        let mut axis = halted();
        for cycle in 1..=100 {
            axis.cycle(Reply::Velocity((BEFORE - 20.0 * f64::from(cycle) * PERIOD.0).max(0.0)));
        }
        assert_eq!(axis.until_cut_off(|_| Reply::Velocity(ERROR)), None);
    }
}

#[test]
fn an_axis_that_gets_faster_in_quick_stop_active_is_cut_off() {
    for mode in CyclicMode::ALL {
        let mut axis = Axis::stopped_quickly(mode, false);
        let cycles = axis.until_cut_off(faster(1_000.0)).unwrap();
        assert!((50..=54).contains(&cycles), "{mode:?} {cycles}");
        assert_eq!(axis.supervisor.quick_stop_step(), Some(QuickStopStep::CutOff));
    }
}

#[test]
fn an_axis_that_its_drive_brakes_keeps_the_torque() {
    for mode in CyclicMode::ALL {
        // Its load pulls it until the torque of the drive has risen, or it is no faster by the
        // error.
        let pulled = |cycle: u64| match cycle {
            0..=45 => BEFORE + 60.0 * cycle as f64 * PERIOD.0,
            _ => (BEFORE + 2.7 - 10.0 * (cycle - 45) as f64 * PERIOD.0).max(0.0),
        };
        let mut axis = Axis::stopped_quickly(mode, false);
        assert_eq!(axis.until_cut_off(|cycle| Reply::Velocity(pulled(cycle))), None, "{mode:?}");
        let mut axis = Axis::stopped_quickly(mode, false);
        assert_eq!(axis.until_cut_off(|_| Reply::Velocity(BEFORE + ERROR)), None, "{mode:?}");
        // Without its torque this load would fall.
        let mut axis = Axis::stopped_quickly(mode, true);
        assert_eq!(axis.until_cut_off(faster(50.0)), None, "{mode:?}");
        // A late cycle.
        let mut axis = Axis::stopped_quickly(mode, false);
        let seen = Seen { feedback: axis.seen.feedback, ..axis.seen };
        let late = AxisFeedback { velocity: RadiansPerSecond(4.0), fresh: true, ..seen.feedback };
        let supervised =
            axis.supervisor.step(Seconds(0.3), AxisSetpoint::default(), &Seen { feedback: late, ..seen });
        assert_eq!(supervised.intervention, Some(Intervention::QuickStop), "{mode:?}");
    }
}

// feature(axes): positions that leap in one direction in Quick stop active take the torque, an outage does not
#[test]
fn leaps_in_one_direction_in_quick_stop_active_are_a_runaway() {
    for mode in CyclicMode::ALL {
        let mut axis = Axis::stopped_quickly(mode, false);
        let cycles = axis.until_cut_off(Reply::Leaps).unwrap();
        assert!((50..=54).contains(&cycles), "{mode:?} {cycles}");
        // Lost replies among them end nothing, and do not count.
        let mut axis = Axis::stopped_quickly(mode, false);
        let every_second =
            |cycle: u64| if cycle % 2 == 0 { Reply::Lost } else { Reply::Leaps(cycle / 2 + 1) };
        let cycles = axis.until_cut_off(every_second).unwrap();
        assert!((100..=108).contains(&cycles), "{mode:?} {cycles}");
    }
}

#[test]
fn an_outage_in_quick_stop_active_takes_no_torque() {
    for mode in CyclicMode::ALL {
        let quickly = || Axis::stopped_quickly(mode, false);
        assert_eq!(quickly().until_cut_off(|_| Reply::Lost), None, "{mode:?}");
        // It ends, and the axis got faster meanwhile; then its drive brakes softly.
        let returned = |cycle: u64| match cycle {
            0..=100 => Reply::Lost,
            _ => Reply::Velocity(BEFORE + 1.5 * ERROR - 0.5 * (cycle - 100) as f64 * PERIOD.0),
        };
        assert_eq!(quickly().until_cut_off(returned), None, "{mode:?}");
        // A broken encoder: in both directions, or at one place.
        assert_eq!(quickly().until_cut_off(|_| Reply::Leaps(1)), None, "{mode:?}");
        assert_eq!(quickly().until_cut_off(|cycle| Reply::Leaps(1 + cycle % 40)), None, "{mode:?}");
        assert_eq!(quickly().until_cut_off(|_| Reply::Leaps(0)), None, "{mode:?}");
    }
}

#[test]
fn a_runaway_still_counts_while_positions_are_implausible() {
    let mut axis = Axis::new(CyclicMode::Velocity, false);
    // 30 ms faster than it was sent.
    for _ in 0..30 {
        let feedback = AxisFeedback {
            velocity: RadiansPerSecond(BEFORE + 2.0 * ERROR),
            fresh: true,
            ..axis.seen.feedback
        };
        let asked = AxisSetpoint { velocity: RadiansPerSecond(BEFORE), ..AxisSetpoint::default() };
        axis.supervisor.step(PERIOD, asked, &Seen { feedback, ..axis.seen });
    }
    (1..=3).for_each(|leaps| _ = axis.cycle(Reply::Leaps(leaps)));
    assert_eq!(axis.supervisor.stopped(), Some(StopReason::Implausible));
    axis.brakes();
    let cycles = axis.until_cut_off(|cycle| Reply::Leaps(cycle + 3)).unwrap();
    assert!((17..=20).contains(&cycles), "{cycles}");
}
