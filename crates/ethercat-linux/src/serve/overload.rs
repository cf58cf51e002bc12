//! Distinguishes a computer that is too slow for a simulation from a single stall.

use std::time::Duration;

use ethercat::time::Instant;

/// Looks whether a segment keeps up: it does while the thread has time left to wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overload {
    /// When the thread last had time left.
    caught_up: Instant,
    /// Rounds since then.
    rounds: u32,
    is_reported: bool,
}

impl Overload {
    pub(super) fn new(now: Instant) -> Self {
        Self { caught_up: now, rounds: 0, is_reported: false }
    }

    /// The thread has time left before the segment is due again.
    pub(super) fn has_time_left(&mut self, now: Instant) {
        (self.caught_up, self.rounds) = (now, 0);
    }

    /// A round ends: true once the segment has fallen behind for good, the first time.
    pub(super) fn begins(&mut self, now: Instant) -> bool {
        self.rounds = self.rounds.saturating_add(1);
        // A computer that stalled makes a single long round.
        let is_behind = self.rounds >= ROUNDS && now.since(self.caught_up) >= LASTING;
        is_behind && !std::mem::replace(&mut self.is_reported, true)
    }
}

/// Time without any left after which a segment does not keep up, and rounds in that time.
const LASTING: Duration = Duration::from_secs(1);
const ROUNDS: u32 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of this length: number of reports of an overload.
    fn reports(rounds: u32, milliseconds: u64, time_left_each: u32) -> u32 {
        let mut now = Instant::EPOCH;
        let mut overload = Overload::new(now);
        let mut reports = 0;
        for round in 1..=rounds {
            now = now + Duration::from_millis(milliseconds);
            if round % time_left_each == 0 {
                overload.has_time_left(now);
            }
            reports += u32::from(overload.begins(now));
        }
        reports
    }

    #[test]
    fn a_segment_that_never_has_time_left_is_reported_once() {
        assert_eq!(reports(1_000, 20, u32::MAX), 1);
    }

    #[test]
    fn a_stall_or_a_burst_is_no_overload() {
        assert_eq!(reports(3, 5_000, u32::MAX), 0);
        assert_eq!(reports(1_000, 20, 40), 0);
    }
}
