//! When something happened, for people: time of day and the number of the cycle.

use std::fmt;
use std::time::SystemTime;

use ethercat::time::Instant;
use onbeat::SimulatedTime;
use rt::clock::{Clock, MonotonicClock};

/// Clock of the instants of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum TimeOfDay {
    /// The computer's monotonic clock.
    #[default]
    Host,
    /// Bus time of a run that does not wait: the time of day at the start of the run, and bus time
    /// then.
    Bus(SystemTime, Instant),
}

impl TimeOfDay {
    /// Time of day of a run that starts now.
    pub(crate) fn of_run(time: SimulatedTime) -> Self {
        time.start().map_or(Self::Host, |start| Self::Bus(SystemTime::now(), start))
    }

    /// Bus time at the start of a run that does not wait.
    pub(crate) fn start(self) -> Option<Instant> {
        if let Self::Bus(_, start) = self { Some(start) } else { None }
    }

    /// This instant, in this cycle.
    pub(crate) fn moment(self, at: Instant, cycle: u64) -> Moment {
        match self {
            Self::Host => Moment::of(at, cycle),
            Self::Bus(wall, start) => Moment { wall: wall + at.since(start), cycle },
        }
    }
}

/// Displays as `2026-11-21T22:43:33.123Z cycle 1234`: UTC, RFC 3339.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    wall: SystemTime,
    cycle: u64,
}

impl Moment {
    /// This instant of the monotonic clock, in this cycle.
    pub(crate) fn of(at: Instant, cycle: u64) -> Self {
        // Asked each time: the wall clock is set now and then.
        Self { wall: SystemTime::now() - MonotonicClock.now().since(at), cycle }
    }

    /// The time alone.
    pub(crate) fn time(&self) -> String {
        humantime::format_rfc3339_millis(self.wall).to_string()
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cycle {}", humantime::format_rfc3339_millis(self.wall), self.cycle)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    // feature(program): what happens has UTC, cycle, place and cause; a drive in fault or without main power is named; a lost bus says for how long
    #[test]
    fn a_moment_is_utc_to_the_millisecond_and_a_cycle() {
        let wall = SystemTime::UNIX_EPOCH + Duration::from_millis(1_795_246_827_123);
        let moment = Moment { wall, cycle: 1234 };
        assert_eq!(moment.to_string(), "2026-11-21T07:40:27.123Z cycle 1234");
    }

    #[test]
    fn a_moment_in_bus_time_is_the_start_and_bus_time() {
        let start = SimulatedTime::Fast.start().unwrap();
        let TimeOfDay::Bus(wall, _) = TimeOfDay::of_run(SimulatedTime::Fast) else { panic!("the host's") };
        let moment = TimeOfDay::Bus(wall, start).moment(start + Duration::from_secs(20), 7);
        assert_eq!(moment.wall, wall + Duration::from_secs(20));
    }

    #[test]
    fn an_earlier_instant_is_an_earlier_time() {
        let now = MonotonicClock.now();
        let before = Moment::of(Instant::from_nanos(now.as_nanos() - 1_000_000_000), 0);
        let ago = SystemTime::now().duration_since(before.wall).unwrap();
        assert!(ago >= Duration::from_millis(999), "{ago:?}");
    }
}
