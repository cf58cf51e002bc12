//! Plausibility check of positions: a broken encoder, or bytes changed behind a right working
//! counter, gives positions that the axis cannot have reached.

use std::time::Duration;

use motion::{AxisScale, Radians, RadiansPerSecond};

/// Judgement of a position that a drive reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Belief {
    /// The axis is there.
    Here,
    /// It cannot have come there.
    Nowhere,
    /// It cannot have come there, but its drive has stayed with it: it counts from elsewhere.
    Elsewhere,
}

/// Plausibility check of the positions of one axis, in counts modulo 2^32.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plausibility {
    /// Counts per second.
    fastest: f64,
    /// Counts.
    tolerance: f64,
    doubted: Option<Doubted>,
    /// Consecutive implausible replies.
    in_a_row: u64,
    /// Of these, the last ones that each lie farther in one direction than the axis moves between
    /// them; below 0 for the other direction.
    leaps: i64,
}

/// The last implausible position, and the motion it is part of.
#[derive(Clone, Copy, Debug)]
struct Doubted {
    position: i32,
    /// Since it came.
    age: Duration,
    /// Time for which the drive has reported one motion, and the number of its replies.
    stays: Duration,
    replies: u32,
    /// That motion began where the axis can have moved while no position was plausible.
    is_near: bool,
    /// Time from the last plausible position to the first implausible one.
    first: Duration,
}

impl Plausibility {
    /// Of an axis that moves at most so fast, however it is moved.
    pub(super) fn new(fastest: RadiansPerSecond, scale: &AxisScale) -> Self {
        let counts = scale.counts_per_radian().abs();
        Self {
            fastest: fastest.0 * counts,
            tolerance: TOLERANCE.0 * counts + ROUNDING,
            doubted: None,
            in_a_row: 0,
            leaps: 0,
        }
    }

    /// Consecutive implausible replies, up to now.
    pub(super) const fn in_a_row(&self) -> u64 {
        self.in_a_row
    }

    /// Of these, the last ones that each lie farther in one direction than the axis moves.
    pub(super) const fn leaps(&self) -> u64 {
        self.leaps.unsigned_abs()
    }

    /// Advances the time, with or without a reply.
    pub(super) fn pass(&mut self, elapsed: Duration) {
        if let Some(doubted) = &mut self.doubted {
            doubted.age = doubted.age.saturating_add(elapsed);
        }
    }

    /// Checks a received position, `elapsed` after the axis was at `before`; a position that
    /// `may_jump` is accepted once another confirms it.
    pub(super) fn judge(
        &mut self,
        before: Option<i64>,
        reported: i32,
        elapsed: Duration,
        may_jump: bool,
    ) -> Belief {
        let Some(before) = before.map(|before| before as i32) else { return self.believe() };
        let first = self.doubted.map_or(elapsed, |it| it.first);
        if self.leads(before, reported, first) {
            return self.believe();
        }
        let last = self.doubted.map_or(before, |it| it.position);
        let way = i64::from(reported.wrapping_sub(last).signum());
        let (is_near, stays, replies) = match self.doubted {
            Some(last) if self.leads(last.position, reported, last.age) => {
                self.leaps = 0;
                (last.is_near, last.stays.saturating_add(last.age), last.replies.saturating_add(1))
            }
            _ => {
                self.leaps = if self.leaps.signum() == -way { way } else { self.leaps + way };
                let furthest = elapsed.min(first.saturating_add(STAYS));
                (may_jump || self.leads(before, reported, furthest), Duration::ZERO, 1)
            }
        };
        if is_near && replies > 1 {
            return self.believe();
        }
        self.in_a_row = self.in_a_row.saturating_add(1);
        if stays >= STAYS && replies >= REPLIES {
            self.doubted = None;
            return Belief::Elsewhere;
        }
        self.doubted =
            Some(Doubted { position: reported, age: Duration::ZERO, stays, replies, is_near, first });
        Belief::Nowhere
    }

    fn believe(&mut self) -> Belief {
        (self.doubted, self.in_a_row, self.leaps) = (None, 0, 0);
        Belief::Here
    }

    /// True if so much time leads from one position to the other.
    fn leads(&self, from: i32, to: i32, elapsed: Duration) -> bool {
        f64::from(to.wrapping_sub(from).unsigned_abs())
            <= self.fastest * elapsed.as_secs_f64() + self.tolerance
    }
}

/// Times its limit of velocity that an axis may be fast, if nothing is said: moved by hand, pushed,
/// or braked from a fall.
pub(super) const MARGIN: f64 = 10.0;

/// Distance that a position may lie farther: encoders are noisy, and drives do not sample at the
/// very same time in each cycle.
const TOLERANCE: Radians = Radians(0.1);
const ROUNDING: f64 = 16.0;

/// Time, and replies, after which a drive that reports one motion far from the last position of the
/// axis is accepted: it counts from another origin. Also the longest time for which an axis without
/// plausible positions is assumed to have moved at its fastest.
const STAYS: Duration = Duration::from_millis(100);
const REPLIES: u32 = 8;

#[cfg(test)]
mod tests {
    use motion::NewtonMetres;

    use super::*;

    const PERIOD: Duration = Duration::from_millis(1);

    /// Positions that leap in one direction after each of these, which come after 0.
    fn leaps(positions: &[i32]) -> Vec<u64> {
        let scale = AxisScale::new(10_000.0, 1.0, NewtonMetres(1.0)).unwrap();
        let mut it = Plausibility::new(RadiansPerSecond(1.0), &scale);
        let mut elapsed = Duration::ZERO;
        let judge = |&position: &i32| {
            elapsed += PERIOD;
            it.pass(PERIOD);
            it.judge(Some(0), position, elapsed, false);
            it.leaps()
        };
        positions.iter().map(judge).collect()
    }

    #[test]
    fn only_leaps_in_one_direction_add_up() {
        assert_eq!(leaps(&[5_000, 10_000, 15_000, 20_000]), [1, 2, 3, 4]);
        assert_eq!(leaps(&[-5_000, -10_000, -5_000, -10_000]), [1, 2, 1, 1]);
        assert_eq!(leaps(&[5_000, 5_000, 5_001, 10_000]), [1, 0, 0, 1], "at one place");
        assert_eq!(leaps(&[5_000, 10_000, 0, 5_000]), [1, 2, 0, 1], "back where it was");
    }
}
