//! Conversion of the sensor's time stamps to the host's clock.

/// Tracks the sensor's clock, which counts milliseconds in 24 bits and wraps every 4.66 hours.
///
/// A stamp cannot have been made after it arrived, so the stamp with the shortest delay gives the
/// best estimate of the clocks' offset. The estimate follows downwards at once, and upwards by at
/// most [`DRIFT_PPM`] of the time passed, because the sensor's clock may be slow. A converted stamp
/// is exact except for the shortest delay, some milliseconds on a serial line, and the resolution
/// of one millisecond.
#[derive(Clone, Debug, Default)]
pub struct SensorClock {
    /// Estimate of the offset, at the last arrival.
    estimate: Option<Estimate>,
}

#[derive(Clone, Copy, Debug)]
struct Estimate {
    /// Host's time at the sensor's 0 of this wrap, ns; negative if the sensor ran longer than the
    /// host.
    offset_ns: i128,
    /// Arrival of the last stamp, host's clock, ns.
    arrival_ns: u64,
    /// Last stamp, ms, with wraps.
    sensor_ms: u64,
}

/// Largest drift of a sensor's clock, parts in a million.
pub const DRIFT_PPM: u64 = 200;

const ROUND_MS: u64 = 1 << 24;

impl SensorClock {
    /// Time on the host's clock of a stamp that arrived at `arrival_ns`; never later than that.
    pub fn host_ns(&mut self, stamp_ms: u32, arrival_ns: u64) -> u64 {
        let sensor_ms = self.unwrap(u64::from(stamp_ms) % ROUND_MS, arrival_ns);
        let sensor_ns = i128::from(sensor_ms) * 1_000_000;
        let newest = i128::from(arrival_ns) - sensor_ns;
        let offset_ns = match self.estimate {
            None => newest,
            Some(before) => {
                let passed = arrival_ns.saturating_sub(before.arrival_ns);
                let drift = u128::from(passed) * u128::from(DRIFT_PPM) / 1_000_000;
                newest.min(before.offset_ns + drift as i128)
            }
        };
        self.estimate = Some(Estimate { offset_ns, arrival_ns, sensor_ms });
        u64::try_from(sensor_ns + offset_ns).unwrap_or(0).min(arrival_ns)
    }

    /// Unwraps a stamp: the value nearest to the expected time of the sensor's clock.
    fn unwrap(&self, stamp_ms: u64, arrival_ns: u64) -> u64 {
        let Some(before) = self.estimate else { return stamp_ms };
        let expected = before.sensor_ms + arrival_ns.saturating_sub(before.arrival_ns) / 1_000_000;
        let round = expected / ROUND_MS * ROUND_MS;
        let candidates = [
            (round + stamp_ms).checked_sub(ROUND_MS),
            Some(round + stamp_ms),
            Some(round + ROUND_MS + stamp_ms),
        ];
        candidates.into_iter().flatten().min_by_key(|it| it.abs_diff(expected)).unwrap_or(stamp_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn shortest_delay_sets_the_clock_and_longer_ones_do_not() {
        let mut clock = SensorClock::default();
        // The sensor's 0 was at 1 000 ms of the host. Delays of 9, 3 and 20 ms.
        assert_eq!(clock.host_ns(100, 1_109 * MS), 1_109 * MS);
        assert_eq!(clock.host_ns(200, 1_203 * MS), 1_203 * MS);
        let third = clock.host_ns(300, 1_320 * MS);
        assert!((1_303 * MS..1_304 * MS).contains(&third), "{third}");
    }

    #[test]
    fn sensor_clock_may_wrap_during_silence() {
        let mut clock = SensorClock::default();
        let near = |found: u64, expected: u64| found.abs_diff(expected) <= 10 * MS;
        let last = ROUND_MS as u32 - 50;
        assert!(near(clock.host_ns(last, 7_000 * MS), 7_000 * MS));
        assert!(near(clock.host_ns(50, 7_100 * MS), 7_100 * MS));
        // An hour without stamps, and the next wrap after that.
        assert!(near(clock.host_ns(3_600_050, 3_607_100 * MS), 3_607_100 * MS));
        let round = u64::from(last) + 100;
        assert!(near(clock.host_ns(60, (7_010 + round) * MS), (7_010 + round) * MS));
    }

    #[test]
    fn a_slow_clock_is_followed_and_no_stamp_lies_in_the_future() {
        let mut clock = SensorClock::default();
        for second in 0..3_600_u64 {
            let arrival = (10 + second) * 1_000 * MS + 5 * MS;
            // The clock is 100 ppm slow.
            let stamp = (second * 1_000 - second / 10) as u32;
            let host = clock.host_ns(stamp, arrival);
            assert!(host <= arrival && arrival - host < 5 * MS, "{second}: {}", arrival - host);
        }
    }

    #[test]
    fn stamps_that_make_no_sense_do_not_break_it() {
        let mut clock = SensorClock::default();
        for (stamp, arrival) in [(u32::MAX, 0), (0, u64::MAX), (7, 3), (u32::MAX, 1), (5, u64::MAX)] {
            assert!(clock.host_ns(stamp, arrival) <= arrival);
        }
    }
}
