//! From a request to stop to a bus in Init, one step a beat.

use std::time::Duration;

use ethercat::time::Instant;

/// How far a cycle is on its way to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Course {
    /// The controller has the axes.
    Running,
    /// The controller brings its set-points to rest.
    Ramping {
        since: Instant,
        /// Since when no set-point has moved, if none does.
        standing_since: Option<Instant>,
    },
    /// The drives take the torque off.
    Disabling { since: Instant },
    /// The SubDevices go to Init.
    ToInit { since: Instant },
    /// Over.
    Ended,
}

/// What a step looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Situation {
    /// Somebody asked for a stop, or the asked-for number of beats has run.
    pub(crate) asked: bool,
    /// The bus has failed: there is nobody to stop.
    pub(crate) failed: bool,
    /// All targets have stood still on this beat.
    pub(crate) standing: bool,
    /// A drive is still on its way down to Switch on disabled.
    pub(crate) powered: bool,
    /// How long the slowest brake takes: until it holds, its drive keeps the torque.
    pub(crate) brakes: Duration,
    /// The bus is down.
    pub(crate) down: bool,
}

impl Course {
    /// The course after a beat at `now`.
    pub(crate) fn step(self, now: Instant, situation: Situation) -> Self {
        let Situation { asked, failed, standing, powered, brakes, down } = situation;
        match self {
            Self::Ended => Self::Ended,
            _ if down => Self::Ended,
            Self::ToInit { since } if now.since(since) >= TO_INIT_PATIENCE => Self::Ended,
            Self::ToInit { .. } => self,
            _ if failed => Self::ToInit { since: now },
            Self::Running if !asked => self,
            Self::Running => Self::Ramping { since: now, standing_since: None },
            Self::Ramping { since, standing_since } => {
                let standing_since = standing.then(|| standing_since.unwrap_or(now));
                let rests = standing_since.is_some_and(|begin| now.since(begin) >= REST);
                if rests || !powered || now.since(since) >= RAMP_PATIENCE {
                    Self::Disabling { since: now }
                } else {
                    Self::Ramping { since, standing_since }
                }
            }
            Self::Disabling { since } => {
                let patience = DISABLE_PATIENCE.saturating_add(brakes);
                if !powered || now.since(since) >= patience { Self::ToInit { since: now } } else { self }
            }
        }
    }

    /// Whether the controller is told to come to rest.
    pub(crate) fn stops(self) -> bool {
        self != Self::Running
    }
}

/// Set-points that stand this long have come to rest, and the drives have caught up with them.
const REST: Duration = Duration::from_millis(50);

/// A controller that does not come to rest is not waited for any longer.
const RAMP_PATIENCE: Duration = Duration::from_secs(5);

/// A drive that keeps its torque on while no brake closes is not waited for any longer: Init takes it off.
const DISABLE_PATIENCE: Duration = Duration::from_secs(1);

/// Going to Init takes a few frames; a dead bus never answers.
const TO_INIT_PATIENCE: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    const CALM: Situation = Situation {
        asked: false,
        failed: false,
        standing: false,
        powered: true,
        brakes: Duration::ZERO,
        down: false,
    };

    fn at(milliseconds: u64) -> Instant {
        Instant::from_nanos(milliseconds * 1_000_000)
    }

    /// Steps once a millisecond until the course is another; when, and which.
    fn until_changed(course: Course, from: u64, situation: Situation) -> (u64, Course) {
        let kind = std::mem::discriminant(&course);
        let mut course = course;
        for now in from..from + 10_000 {
            course = course.step(at(now), situation);
            if std::mem::discriminant(&course) != kind {
                return (now, course);
            }
        }
        panic!("{course:?} never changes");
    }

    #[test]
    fn a_stop_ramps_disables_goes_to_init_and_ends() {
        assert_eq!(Course::Running.step(at(1), CALM), Course::Running);
        let asked = Situation { asked: true, ..CALM };
        let course = Course::Running.step(at(1), asked);
        assert!(course.stops());
        // Moving set-points begin the rest anew.
        let mut ramping = course;
        for now in 2..100 {
            ramping = ramping.step(at(now), Situation { standing: now % 40 != 0, ..asked });
            assert!(matches!(ramping, Course::Ramping { .. }), "{now}");
        }
        let (now, course) = until_changed(ramping, 100, Situation { standing: true, ..asked });
        assert_eq!((now, course), (131, Course::Disabling { since: at(131) }));
        let (now, course) = until_changed(course, 132, Situation { powered: false, ..asked });
        assert_eq!((now, course), (132, Course::ToInit { since: at(132) }));
        let ended = until_changed(course, 133, Situation { down: true, powered: false, ..asked });
        assert_eq!(ended, (133, Course::Ended));
    }

    #[test]
    fn nobody_is_waited_for_for_ever() {
        let asked = Situation { asked: true, ..CALM };
        let (now, course) = until_changed(Course::Running.step(at(0), asked), 1, asked);
        assert_eq!(now, 5_000);
        let (now, course) = until_changed(course, now, asked);
        assert_eq!(now, 6_000);
        assert_eq!(until_changed(course, now, asked), (8_000, Course::Ended));
    }

    #[test]
    fn a_drive_keeps_its_torque_until_the_slowest_brake_holds() {
        let closing = Situation { asked: true, brakes: Duration::from_secs(3), ..CALM };
        let disabling = Course::Disabling { since: at(0) };
        assert_eq!(until_changed(disabling, 1, closing), (4_000, Course::ToInit { since: at(4_000) }));
    }

    #[test]
    fn a_failed_bus_is_not_ramped() {
        let failed = Situation { failed: true, ..CALM };
        assert_eq!(Course::Running.step(at(3), failed), Course::ToInit { since: at(3) });
        assert_eq!(Course::Running.step(at(3), Situation { down: true, ..failed }), Course::Ended);
    }
}
