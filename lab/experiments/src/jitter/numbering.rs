//! Assignment of frames to cycles.

use super::Arrival;

/// Reason for which a frame gets no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unnumbered {
    /// It carries the number of the previous frame.
    Repeated,
}

/// Numbers cycles by a counter that the frames carry and that wraps after `modulus`.
///
/// The time that passed since the previous frame gives the number of wraps, which is right as long
/// as no frame is late by half of `modulus` periods.
#[derive(Clone, Copy, Debug)]
pub struct ByCounter {
    period_ns: u64,
    modulus: u64,
    last: Option<(u64, Arrival)>,
}

impl ByCounter {
    /// A counter of `modulus` values (at least 2) that counts up once in `period_ns`.
    #[must_use]
    pub const fn new(period_ns: u64, modulus: u64) -> Self {
        let modulus = if modulus < 2 { 2 } else { modulus };
        let period_ns = if period_ns == 0 { 1 } else { period_ns };
        Self { period_ns, modulus, last: None }
    }

    /// Number of the frame that arrived at `at_ns` with `counter`. Numbers begin with the first
    /// frame's counter.
    ///
    /// # Errors
    /// [`Unnumbered::Repeated`]: the counter is that of the previous frame, and not a whole round later.
    pub fn number(&mut self, counter: u64, at_ns: i64) -> Result<Arrival, Unnumbered> {
        let counter = counter % self.modulus;
        let cycle = match self.last {
            None => counter,
            Some((before, last)) => {
                let step = (counter + self.modulus - before) % self.modulus;
                let elapsed = at_ns.saturating_sub(last.at_ns).max(0).unsigned_abs();
                let periods = elapsed.saturating_add(self.period_ns / 2) / self.period_ns;
                // Number of wraps that brings the step nearest to the time that passed.
                let rounds = (periods.saturating_sub(step) + self.modulus / 2) / self.modulus;
                match step + rounds * self.modulus {
                    0 => return Err(Unnumbered::Repeated),
                    cycles => last.cycle + cycles,
                }
            }
        };
        let arrival = Arrival { cycle, at_ns };
        self.last = Some((counter, arrival));
        Ok(arrival)
    }
}

/// Numbers cycles by time alone, for frames without a number: each belongs to the nearest point of
/// a grid that follows them.
///
/// A frame late by more than half a period is first taken for one of the next cycle; when that
/// cycle's own frame arrives, the late one gets its number back. So a frame's number is known when
/// the next has arrived.
#[derive(Clone, Copy, Debug)]
pub struct ByTime {
    period_ns: i64,
    /// Expected arrival of the frame of `pending` on the grid.
    grid_ns: i64,
    before: Option<u64>,
    pending: Option<Arrival>,
}

impl ByTime {
    /// A grid with this period.
    #[must_use]
    pub fn new(period_ns: u64) -> Self {
        let period_ns = i64::try_from(period_ns).unwrap_or(i64::MAX).max(1);
        Self { period_ns, grid_ns: 0, before: None, pending: None }
    }

    /// Takes the next frame; returns the previous one with its number.
    pub fn push(&mut self, at_ns: i64) -> Option<Arrival> {
        let Some(mut last) = self.pending else {
            self.grid_ns = at_ns;
            self.pending = Some(Arrival { cycle: 0, at_ns });
            return None;
        };
        let away = at_ns.saturating_sub(self.grid_ns);
        let mut periods = (away.saturating_add(self.period_ns / 2)).div_euclid(self.period_ns);
        if periods < 1 && last.cycle > self.before.map_or(0, |before| before + 1) {
            // The previous frame was a late one, not one of a later cycle.
            last.cycle -= 1;
            self.grid_ns -= self.period_ns;
            periods += 1;
        }
        let periods = periods.max(1);
        let cycle = last.cycle + periods.unsigned_abs();
        self.grid_ns = self.grid_ns.saturating_add(periods.saturating_mul(self.period_ns));
        // The grid follows slowly, and no single frame moves it far.
        let error = at_ns.saturating_sub(self.grid_ns).clamp(-self.period_ns / 4, self.period_ns / 4);
        self.grid_ns += error / 64;
        self.before = Some(last.cycle);
        self.pending = Some(Arrival { cycle, at_ns });
        Some(last)
    }

    /// Last frame.
    #[must_use]
    pub fn finish(self) -> Option<Arrival> {
        self.pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_time(times: &[i64]) -> Vec<u64> {
        let mut numbering = ByTime::new(1000);
        let mut cycles: Vec<u64> =
            times.iter().filter_map(|&at| numbering.push(at)).map(|arrival| arrival.cycle).collect();
        cycles.extend(numbering.finish().map(|arrival| arrival.cycle));
        cycles
    }

    #[test]
    fn a_counter_numbers_through_its_end_and_over_whole_rounds() {
        let mut numbering = ByCounter::new(1000, 256);
        let mut at =
            |counter: u64, at_ns: i64| numbering.number(counter, at_ns).map(|arrival| arrival.cycle);
        assert_eq!(at(254, 0), Ok(254));
        assert_eq!(at(255, 1_000), Ok(255));
        assert_eq!(at(0, 2_010), Ok(256));
        assert_eq!(at(0, 2_100), Err(Unnumbered::Repeated));
        assert_eq!(at(3, 5_000), Ok(259), "two are missing");
        assert_eq!(at(4, 105_000), Ok(260), "late by a hundred periods, and yet the next");
        assert_eq!(at(110, 112_000), Ok(366), "releases that were skipped");
        assert_eq!(at(110, 112_000 + 512_100), Ok(366 + 512), "two whole rounds later");
    }

    #[test]
    fn time_numbers_frames_that_are_early_late_and_lost() {
        assert_eq!(by_time(&[0, 1_020, 1_990, 3_200, 3_900]), [0, 1, 2, 3, 4]);
        assert_eq!(by_time(&[0, 1_000, 4_000, 5_000]), [0, 1, 4, 5], "two are lost");
        assert_eq!(
            by_time(&[0, 1_000, 2_700, 3_000, 4_000]),
            [0, 1, 2, 3, 4],
            "one is late by 0.7 periods"
        );
        assert_eq!(by_time(&[]), [0; 0]);
    }

    #[test]
    fn time_follows_an_oscillator_that_differs() {
        let times: Vec<i64> = (0..100_000).map(|cycle| cycle * 1_001 + (cycle % 7) * 20).collect();
        let cycles = by_time(&times);
        assert!(cycles.iter().enumerate().all(|(number, &cycle)| cycle == number as u64));
    }
}
