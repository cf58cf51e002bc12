//! Absolute releases on a fixed grid.

use std::time::Duration;

use types::Instant;
pub use types::OverrunPolicy;

use crate::clock::Clock;

/// The ideal instants of a cycle: release k is `start + k * period`. Pure arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    start: Instant,
    period: Duration,
}

impl Grid {
    /// A grid with release 0 at `start`. A period of zero is taken as 1 ns.
    #[must_use]
    pub fn new(start: Instant, period: Duration) -> Self {
        Self { start, period: period.max(Duration::from_nanos(1)) }
    }

    /// Time between two releases.
    #[must_use]
    pub fn period(&self) -> Duration {
        self.period
    }

    /// Release number `index`.
    #[must_use]
    pub fn release(&self, index: u64) -> Instant {
        let nanoseconds = self
            .period
            .as_nanos()
            .saturating_mul(index.into())
            .saturating_add(self.start.as_nanos().into());
        Instant::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
    }

    /// Number of the first release at `now` or later.
    #[must_use]
    pub fn next_index(&self, now: Instant) -> u64 {
        let elapsed = now.since(self.start).as_nanos();
        u64::try_from(elapsed.div_ceil(self.period.as_nanos())).unwrap_or(u64::MAX)
    }
}

/// One release: the cycle with this number starts now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// Number of the cycle: its place on the grid, so that releases passed over leave a gap.
    pub cycle: u64,
    /// The ideal instant.
    pub instant: Instant,
    /// Releases passed over since the last one, because the cycle before ran past them.
    pub skipped: u64,
    /// It runs after its instant, to catch up with the grid, without a sleep before.
    pub caught_up: bool,
    /// The cycle just before it ran past its next release.
    pub after_overrun: bool,
}

/// Consecutive cycles without a sleep, at most: a machine that is too slow for its period must
/// still let others run.
pub const CATCH_UP_LIMIT: u64 = 10;

/// Cycles that ran past the next release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overruns {
    /// Number of cycles that overran.
    pub count: u64,
    /// Releases passed over because of them.
    pub skipped: u64,
    /// Releases run late because of them.
    pub caught_up: u64,
    /// Number of the first cycle that overran.
    pub first: Option<u64>,
    /// Number of the last cycle that overran.
    pub last: Option<u64>,
}

/// Sleeps from release to release.
///
/// A cycle that runs past the next release is an overrun. It is counted with its number, and the
/// [`OverrunPolicy`] decides on the missed releases. The grid never shifts.
///
/// With a *spinning sleep* the pacer wakes up a margin before the release and reads the clock until
/// it has come: the wake-up's own latency is spent before the release instead of after it. Spinning
/// takes the CPU from every thread of lower priority, so every wait is a real sleep first, of at
/// least a [`SLEEP_SHARE`] of the period or, if less than that is left, of all that is left without
/// a spin. A cycle that leaves its CPU any time at all so leaves lower tasks as much of it as it
/// would without the spin, up to that share. Cycles that are caught up with do not sleep; there are
/// at most [`CATCH_UP_LIMIT`] of them in a row.
#[derive(Debug)]
pub struct Pacer<C> {
    clock: C,
    grid: Grid,
    policy: OverrunPolicy,
    /// Releases that were passed over move the grid instead of being skipped.
    slips: bool,
    spin: Duration,
    next: u64,
    /// Releases run without a sleep since the last one.
    hurried: u64,
    overruns: Overruns,
}

/// Every wait sleeps for at least one part in this many of the period, if that is left.
pub const SLEEP_SHARE: u32 = 10;

impl<C: Clock> Pacer<C> {
    /// A grid with this period that starts one period from now.
    pub fn new(clock: C, period: Duration) -> Self {
        let grid = Grid::new(clock.now() + period, period);
        let (policy, spin) = (OverrunPolicy::Skip, Duration::ZERO);
        let overruns = Overruns::default();
        Self { clock, grid, policy, slips: false, spin, next: 0, hurried: 0, overruns }
    }

    /// The same with another overrun policy.
    #[must_use]
    pub fn with_policy(self, policy: OverrunPolicy) -> Self {
        Self { policy, ..self }
    }

    /// The same with a grid that moves by whole periods after missed releases: no number is
    /// skipped, and no cycle is caught up. For a bus in bus time.
    #[must_use]
    pub fn with_slips(self) -> Self {
        Self { slips: true, ..self }
    }

    /// The same with a spinning sleep that wakes up `margin` before each release; zero is none.
    #[must_use]
    pub fn with_spin(self, margin: Duration) -> Self {
        Self { spin: margin, ..self }
    }

    /// Spins from now on, see [`Pacer::with_spin`].
    pub fn set_spin(&mut self, margin: Duration) {
        self.spin = margin;
    }

    /// Time before a release at which it wakes up to spin; zero without.
    pub fn spin(&self) -> Duration {
        self.spin
    }

    /// Restarts: the grid starts one period from now, and overruns are cleared.
    pub fn restart(&mut self) {
        self.restart_at(self.clock.now() + self.grid.period);
    }

    /// Restarts: the grid starts at `first`, and overruns are cleared.
    pub fn restart_at(&mut self, first: Instant) {
        self.grid = Grid::new(first, self.grid.period);
        self.next = 0;
        self.hurried = 0;
        self.overruns = Overruns::default();
    }

    /// Waits for the next release.
    pub fn wait(&mut self) -> Release {
        let now = self.clock.now();
        // The first cycle cannot be late for itself: the grid keeps its start.
        let ahead = match self.next {
            0 => 0,
            next => next.max(self.grid.next_index(now)),
        };
        let missed = ahead - self.next;
        if missed > 0 {
            self.overrun(self.next - 1);
        }
        let (index, skipped, caught_up) = if self.slips {
            self.grid.start = self.grid.release(missed);
            self.overruns.skipped += missed;
            (self.next, 0, false)
        } else {
            let index = ahead - self.to_catch_up(missed);
            self.overruns.skipped += index - self.next;
            (index, index - self.next, index < ahead)
        };
        self.overruns.caught_up += u64::from(caught_up);
        self.next = index.saturating_add(1);
        let instant = self.grid.release(index);
        if caught_up {
            self.hurried += 1;
        } else {
            self.hurried = 0;
            self.sleep(now, instant);
        }
        Release { cycle: index, instant, skipped, caught_up, after_overrun: missed > 0 }
    }

    /// Number of the `missed` releases still to be run.
    fn to_catch_up(&self, missed: u64) -> u64 {
        match self.policy {
            OverrunPolicy::CatchUp => missed.min(CATCH_UP_LIMIT - self.hurried),
            OverrunPolicy::Skip | OverrunPolicy::Stop => 0,
        }
    }

    fn overrun(&mut self, cycle: u64) {
        self.overruns.count += 1;
        self.overruns.first.get_or_insert(cycle);
        self.overruns.last = Some(cycle);
    }

    /// Sleeps, and spins what is left.
    fn sleep(&self, now: Instant, release: Instant) {
        if self.spin.is_zero() {
            return self.clock.sleep_until_release(release);
        }
        let left = release.since(now);
        let least = self.grid.period / SLEEP_SHARE;
        self.clock.sleep_until_release(now + left.saturating_sub(self.spin).max(least).min(left));
        self.clock.spin_until(release);
    }

    /// The clock it sleeps by.
    pub fn clock(&self) -> &C {
        &self.clock
    }

    /// The grid of its releases.
    pub fn grid(&self) -> Grid {
        self.grid
    }

    /// Moves all releases from now on by `nanoseconds`, later or earlier.
    pub fn shift(&mut self, nanoseconds: i64) {
        let start = self.grid.start.as_nanos().saturating_add_signed(nanoseconds);
        self.grid.start = Instant::from_nanos(start);
    }

    /// Counts overruns from now on; the releases do not change.
    pub fn forget_overruns(&mut self) {
        self.overruns = Overruns::default();
    }

    /// The overruns so far.
    pub fn overruns(&self) -> Overruns {
        self.overruns
    }
}

#[cfg(test)]
mod tests;
