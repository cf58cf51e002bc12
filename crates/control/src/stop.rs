//! A request to stop, and the way from there to a bus in Init, one step a cycle.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ethercat::time::Instant;
use motion::supervision::Ending;

/// Requests a cycle to stop. Every clone is the same request; a cycle checks it in every cycle.
#[derive(Clone, Debug, Default)]
pub struct StopHandle(Arc<Flags>);

#[derive(Debug, Default)]
struct Flags {
    stop: AtomicBool,
    hurry: AtomicBool,
}

// Relaxed everywhere: nothing but the flags themselves is passed through them.
impl StopHandle {
    /// Nothing is asked yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks for an orderly stop: the controller brings the axes to rest, supervision sees to it.
    pub fn stop(&self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }

    /// Asks for a stop that takes no longer than it must: supervision brings the axes to rest at
    /// once, and all ends within two seconds, or when the slowest brake holds.
    pub fn hurry(&self) {
        self.0.hurry.store(true, Ordering::Relaxed);
        self.stop();
    }

    /// True if a stop was requested.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.flag().load(Ordering::Relaxed)
    }

    /// True if it was asked to hurry.
    #[must_use]
    pub fn is_hurried(&self) -> bool {
        self.0.hurry.load(Ordering::Relaxed)
    }

    /// The flag of [`StopHandle::stop`], for code that stops by a flag.
    #[must_use]
    pub fn flag(&self) -> &AtomicBool {
        &self.0.stop
    }
}

/// Phase of a cycle on its way to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShutdownPhase {
    /// The controller has the axes.
    Running,
    /// The controller brings its set-points to standstill, or supervision does.
    Ramping {
        since: Instant,
        /// Since when it hurries.
        hurried_since: Option<Instant>,
        /// Since when no set-point has moved, if none does.
        standing_since: Option<Instant>,
    },
    /// The drives take the torque off; drives that still move, by a quick stop.
    Disabling { since: Instant },
    /// Without torque, until the feedback of the brakes has shown whether they are closed.
    Closing { since: Instant },
    /// The SubDevices go to Init.
    ToInit { since: Instant },
    /// Over.
    Ended,
}

/// Inputs of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Situation {
    /// A stop was requested, or the requested number of cycles has run.
    pub(crate) requested: bool,
    /// It is asked to hurry.
    pub(crate) hurried: bool,
    /// For how long, by the host's clock: bus time passes more slowly on a busy host.
    pub(crate) hurried_on_host: Duration,
    /// The bus has failed: there is nothing to stop.
    pub(crate) failed: bool,
    /// Time supervision takes from here to bring the axes to rest.
    pub(crate) braking: Duration,
    /// All targets were constant in this cycle.
    pub(crate) standing: bool,
    /// A drive is still on its way down to Switch on disabled.
    pub(crate) powered: bool,
    /// A load falls once its drive is disabled: only a hurried stop does that.
    pub(crate) loaded: bool,
    /// Time the slowest brake takes: until it holds, its drive keeps the torque.
    pub(crate) brakes: Duration,
    /// The feedback of a brake may still show that it does not close without torque.
    pub(crate) pending: bool,
    /// Time that the feedback of the slowest brake takes to show it.
    pub(crate) showing: Duration,
    /// The bus is down.
    pub(crate) down: bool,
}

impl ShutdownPhase {
    /// The phase after a cycle at `now`.
    pub(crate) fn step(self, now: Instant, situation: Situation) -> Self {
        let Situation { requested, hurried, failed, braking, standing, powered, brakes, down, .. } =
            situation;
        let Situation { pending, showing, .. } = situation;
        let (hurried_on_host, waits) = (situation.hurried_on_host, situation.loaded && !hurried);
        let disabled = HURRIED_RAMP.saturating_add(QUICK_STOP_TIMEOUT).saturating_add(brakes);
        let closed = disabled.saturating_add(showing);
        match self {
            Self::Ended => Self::Ended,
            _ if down => Self::Ended,
            Self::ToInit { .. } if hurried_on_host >= closed.saturating_add(HURRIED_INIT) => Self::Ended,
            Self::ToInit { since } if hurried && now.since(since) >= HURRIED_INIT => Self::Ended,
            Self::ToInit { since } if now.since(since) >= TO_INIT_TIMEOUT => Self::Ended,
            Self::ToInit { .. } => self,
            _ if failed => Self::ToInit { since: now },
            Self::Running if !requested => self,
            Self::Running => Self::Ramping { since: now, hurried_since: None, standing_since: None },
            Self::Ramping { since, hurried_since, standing_since } => {
                let standing_since = standing.then(|| standing_since.unwrap_or(now));
                let hurried_since = hurried_since.or(hurried.then_some(now));
                let rests = standing_since.is_some_and(|begin| now.since(begin) >= REST);
                let late = now.since(since) >= RAMP_TIMEOUT.saturating_add(braking)
                    || hurried_since.is_some_and(|since| now.since(since) >= HURRIED_RAMP)
                    || hurried_on_host >= HURRIED_RAMP;
                if (rests || !powered || late) && !waits {
                    Self::Disabling { since: now }
                } else {
                    Self::Ramping { since, hurried_since, standing_since }
                }
            }
            // A load waits for the request to hurry, and is then disabled in order.
            Self::Disabling { .. } if powered && waits => Self::Disabling { since: now },
            Self::Disabling { since } => {
                let timeout =
                    if hurried { QUICK_STOP_TIMEOUT } else { DISABLE_TIMEOUT }.saturating_add(brakes);
                let late = now.since(since) >= timeout || hurried_on_host >= disabled;
                match powered {
                    true if !late => self,
                    false if pending => Self::Closing { since: now },
                    _ => Self::ToInit { since: now },
                }
            }
            Self::Closing { since } => {
                let late = now.since(since) >= showing || hurried_on_host >= closed;
                if !pending || late { Self::ToInit { since: now } } else { self }
            }
        }
    }

    /// True if the controller is to stop.
    pub(crate) fn stops(self) -> bool {
        self != Self::Running
    }

    /// Ending of the cycle, for supervision.
    pub(crate) fn ending(self) -> Ending {
        match self {
            Self::Running => Ending::No,
            Self::Ramping { hurried_since: Some(_), .. } => Ending::Hurried,
            _ => Ending::Asked,
        }
    }

    /// The same for a request that stops the axes while the cycle continues.
    pub(crate) fn ending_with(self, rests: bool) -> Ending {
        match self.ending() {
            Ending::No if rests => Ending::Asked,
            ending => ending,
        }
    }

    /// True if axes that still move are brought to rest by their drives' quick stop; otherwise, all
    /// are without torque.
    pub(crate) fn stops_quickly(self, now: Instant) -> bool {
        matches!(self, Self::Disabling { since } if now.since(since) < QUICK_STOP_TIMEOUT)
    }
}

/// Time after which constant set-points count as stopped: the drives have caught up with them.
const REST: Duration = Duration::from_millis(50);

/// Axes that neither their controller ([`motion::supervision::END_TIME`]) nor supervision brings to
/// rest are not waited for any longer than this and the time that braking takes.
const RAMP_TIMEOUT: Duration = Duration::from_secs(6);

/// The same once it hurries.
const HURRIED_RAMP: Duration = Duration::from_millis(1200);

/// A drive that still moves has this long for its quick stop before its torque is taken off.
const QUICK_STOP_TIMEOUT: Duration = Duration::from_millis(400);

/// A drive that keeps its torque on while no brake closes is not waited for any longer: Init takes
/// it off.
const DISABLE_TIMEOUT: Duration = Duration::from_secs(1);

/// Going to Init takes a few frames; a dead bus never answers.
const TO_INIT_TIMEOUT: Duration = Duration::from_secs(2);

/// The same once it hurries.
const HURRIED_INIT: Duration = Duration::from_millis(300);

#[cfg(test)]
mod tests {
    use super::*;

    const CALM: Situation = Situation {
        requested: false,
        hurried: false,
        hurried_on_host: Duration::ZERO,
        failed: false,
        braking: Duration::ZERO,
        standing: false,
        powered: true,
        loaded: false,
        brakes: Duration::ZERO,
        pending: false,
        showing: Duration::ZERO,
        down: false,
    };

    fn at(milliseconds: u64) -> Instant {
        Instant::from_nanos(milliseconds * 1_000_000)
    }

    /// Steps once a millisecond until the phase is another; when, and which.
    fn until_changed(phase: ShutdownPhase, from: u64, situation: Situation) -> (u64, ShutdownPhase) {
        let kind = std::mem::discriminant(&phase);
        let mut phase = phase;
        for now in from..from + 10_000 {
            phase = phase.step(at(now), situation);
            if std::mem::discriminant(&phase) != kind {
                return (now, phase);
            }
        }
        panic!("{phase:?} never changes");
    }

    #[test]
    fn a_stop_ramps_disables_goes_to_init_and_ends() {
        assert_eq!(ShutdownPhase::Running.step(at(1), CALM), ShutdownPhase::Running);
        let asked = Situation { requested: true, ..CALM };
        let phase = ShutdownPhase::Running.step(at(1), asked);
        assert!(phase.stops());
        // Moving set-points restart the time at standstill.
        let mut ramping = phase;
        for now in 2..100 {
            ramping = ramping.step(at(now), Situation { standing: now % 40 != 0, ..asked });
            assert!(matches!(ramping, ShutdownPhase::Ramping { .. }), "{now}");
        }
        let (now, phase) = until_changed(ramping, 100, Situation { standing: true, ..asked });
        assert_eq!((now, phase), (131, ShutdownPhase::Disabling { since: at(131) }));
        let (now, phase) = until_changed(phase, 132, Situation { powered: false, ..asked });
        assert_eq!((now, phase), (132, ShutdownPhase::ToInit { since: at(132) }));
        let ended = until_changed(phase, 133, Situation { down: true, powered: false, ..asked });
        assert_eq!(ended, (133, ShutdownPhase::Ended));
    }

    #[test]
    fn every_wait_of_a_stop_ends() {
        let asked = Situation { requested: true, ..CALM };
        let (now, phase) = until_changed(ShutdownPhase::Running.step(at(0), asked), 1, asked);
        assert_eq!(now, 6_000);
        let (now, phase) = until_changed(phase, now, asked);
        assert_eq!(now, 7_000);
        assert_eq!(until_changed(phase, now, asked), (9_000, ShutdownPhase::Ended));
    }

    #[test]
    fn a_load_is_held_until_the_stop_hurries() {
        let asked = Situation { requested: true, loaded: true, standing: true, ..CALM };
        let mut ramping = ShutdownPhase::Running.step(at(0), asked);
        for now in 1..20_000 {
            ramping = ramping.step(at(now), asked);
            assert!(matches!(ramping, ShutdownPhase::Ramping { .. }), "{now}");
        }
        let hurried = Situation { hurried: true, ..asked };
        assert!(matches!(ramping.step(at(20_000), hurried), ShutdownPhase::Disabling { .. }));
    }

    #[test]
    fn a_load_that_no_brake_holds_waits_in_the_last_step_too() {
        let asked = Situation { requested: true, loaded: true, ..CALM };
        let mut disabling = ShutdownPhase::Disabling { since: at(0) };
        for now in 1..20_000 {
            disabling = disabling.step(at(now), asked);
            assert!(matches!(disabling, ShutdownPhase::Disabling { .. }), "{now}");
        }
        let hurried = Situation { hurried: true, ..asked };
        let (now, phase) = until_changed(disabling, 20_000, hurried);
        assert_eq!((now, phase), (20_399, ShutdownPhase::ToInit { since: at(20_399) }));
    }

    // feature(axes): a stop is kept by supervision, in time and within the limits; hurried within two seconds
    #[test]
    fn a_hurried_stop_waits_two_seconds_at_most() {
        let hurried = Situation { requested: true, hurried: true, ..CALM };
        let ramping = ShutdownPhase::Running.step(at(0), Situation { requested: true, ..CALM });
        assert_eq!(ramping.ending(), Ending::Asked);
        let ramping = ramping.step(at(3_000), hurried);
        assert_eq!(ramping.ending(), Ending::Hurried);
        let (now, phase) = until_changed(ramping, 3_001, hurried);
        assert_eq!((now, phase), (4_200, ShutdownPhase::Disabling { since: at(4_200) }));
        assert!(phase.stops_quickly(at(4_300)));
        let (now, phase) = until_changed(phase, now, hurried);
        let (now, phase) = until_changed(phase, now, hurried);
        assert_eq!(phase, ShutdownPhase::Ended);
        assert!(now <= 5_000, "{now}");
    }

    #[test]
    fn a_slow_axis_is_waited_for_as_long_as_it_brakes() {
        let slow = Situation { requested: true, braking: Duration::from_secs(3), ..CALM };
        let (now, _) = until_changed(ShutdownPhase::Running.step(at(0), slow), 1, slow);
        assert_eq!(now, 9_000);
    }

    #[test]
    fn every_clone_of_a_handle_is_the_same_request() {
        let handle = StopHandle::new();
        let other = handle.clone();
        assert!(!handle.is_requested() && !handle.is_hurried());
        other.stop();
        assert!(handle.is_requested() && !handle.is_hurried());
        other.hurry();
        assert!(handle.is_hurried());
        assert!(!StopHandle::new().is_requested(), "one of its own");
    }

    #[test]
    fn a_drive_keeps_its_torque_until_the_slowest_brake_holds() {
        let closing = Situation { requested: true, brakes: Duration::from_secs(3), ..CALM };
        let disabling = ShutdownPhase::Disabling { since: at(0) };
        assert_eq!(
            until_changed(disabling, 1, closing),
            (4_000, ShutdownPhase::ToInit { since: at(4_000) })
        );
    }

    #[test]
    fn a_pending_brake_is_waited_for_without_torque() {
        let showing = Duration::from_millis(150);
        let asked = Situation { requested: true, powered: false, pending: true, showing, ..CALM };
        for hurried in [false, true] {
            let asked = Situation { hurried, ..asked };
            let closing = ShutdownPhase::Disabling { since: at(0) }.step(at(1), asked);
            assert_eq!(closing, ShutdownPhase::Closing { since: at(1) });
            let (now, phase) = until_changed(closing, 2, asked);
            assert_eq!((now, phase), (151, ShutdownPhase::ToInit { since: at(151) }));
            let shown = closing.step(at(60), Situation { pending: false, ..asked });
            assert_eq!(shown, ShutdownPhase::ToInit { since: at(60) });
            let failed = closing.step(at(60), Situation { failed: true, ..asked });
            assert_eq!(failed, ShutdownPhase::ToInit { since: at(60) });
        }
        let late = Situation { hurried_on_host: Duration::from_millis(1_750), ..asked };
        let closing = ShutdownPhase::Closing { since: at(0) };
        assert_eq!(closing.step(at(1), late), ShutdownPhase::ToInit { since: at(1) });
        assert!(!closing.stops_quickly(at(1)));
    }

    #[test]
    fn a_failed_bus_is_not_ramped() {
        let failed = Situation { failed: true, ..CALM };
        assert_eq!(ShutdownPhase::Running.step(at(3), failed), ShutdownPhase::ToInit { since: at(3) });
        assert_eq!(
            ShutdownPhase::Running.step(at(3), Situation { down: true, ..failed }),
            ShutdownPhase::Ended
        );
    }
}
