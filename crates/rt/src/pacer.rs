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
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;
    use crate::clock::VirtualClock;

    const PERIOD: Duration = Duration::from_millis(1);

    #[test]
    fn a_cycle_that_is_on_time_is_released_every_period() {
        let clock = VirtualClock::default();
        let mut pacer = Pacer::new(clock.clone(), PERIOD);
        for cycle in 0..1_000 {
            let release = pacer.wait();
            assert_eq!((release.cycle, release.skipped, release.after_overrun), (cycle, 0, false));
            assert_eq!(release.instant, pacer.grid().release(cycle));
            assert_eq!(clock.now(), release.instant);
            clock.advance(Duration::from_micros(cycle % 1_000));
        }
        assert_eq!(pacer.overruns(), Overruns::default());
    }

    #[test]
    fn an_overrun_is_counted_with_its_cycle_and_keeps_the_phase() {
        let clock = VirtualClock::default();
        let mut pacer = Pacer::new(clock.clone(), PERIOD);
        assert_eq!(pacer.wait().cycle, 0);
        assert_eq!(pacer.wait().cycle, 1);
        clock.advance(Duration::from_micros(2_500));
        let release = pacer.wait();
        assert_eq!((release.cycle, release.skipped), (4, 2));
        assert_eq!(release.instant, pacer.grid().release(4));
        assert_eq!(clock.now(), release.instant);
        assert_eq!(pacer.wait().cycle, 5);
        assert_eq!(
            pacer.overruns(),
            Overruns { count: 1, skipped: 2, caught_up: 0, first: Some(1), last: Some(1) }
        );
    }

    #[test]
    fn a_grid_that_slips_skips_no_number_and_keeps_the_phase() {
        let clock = VirtualClock::default();
        let mut pacer = Pacer::new(clock.clone(), PERIOD).with_policy(OverrunPolicy::CatchUp).with_slips();
        let first = pacer.wait().instant;
        for (cycle, took) in [(1, 0), (2, 2_500), (3, 999), (4, 2_000_000), (5, 1)] {
            clock.advance(Duration::from_micros(took));
            let before = clock.now();
            let release = pacer.wait();
            assert_eq!((release.cycle, release.skipped, release.caught_up), (cycle, 0, false));
            assert_eq!(release.instant.since(first).as_nanos() % PERIOD.as_nanos(), 0);
            assert!(release.instant >= before && clock.now() == release.instant);
            assert_eq!(release.after_overrun, took > 1_000);
        }
        assert_eq!(
            pacer.overruns(),
            Overruns { count: 2, skipped: 2 + 1_999, caught_up: 0, first: Some(1), last: Some(3) }
        );
    }

    #[test]
    fn cycle_ending_exactly_on_next_release_has_not_overrun() {
        let clock = VirtualClock::default();
        let mut pacer = Pacer::new(clock.clone(), PERIOD);
        pacer.wait();
        clock.advance(PERIOD);
        assert_eq!(pacer.wait().cycle, 1);
        clock.advance(PERIOD + Duration::from_nanos(1));
        assert_eq!(pacer.wait().cycle, 3);
        assert_eq!(pacer.overruns().first, Some(1));
    }

    /// With any cost of cycles and any period, every release is on the grid, in the future of the
    /// one before, never earlier than the clock, and cycles run plus releases skipped is the whole
    /// grid.
    // feature(cycle): a fixed grid of releases, whatever the execution time
    #[test]
    fn for_any_execution_times_every_release_is_on_the_grid() {
        let mut random = fastrand::Rng::with_seed(0x0B_EA7);
        for _ in 0..200 {
            let period = Duration::from_nanos(random.u64(1..5_000_000));
            let clock = VirtualClock::default();
            clock.advance(Duration::from_nanos(random.u64(0..1 << 50)));
            let start = clock.now() + period;
            let mut pacer = Pacer::new(clock.clone(), period);
            let (mut last, mut skipped, mut late) = (None, 0, 0);
            for ran in 0..500_u64 {
                let before = clock.now();
                let release = pacer.wait();
                assert_eq!(
                    release.instant.since(start).as_nanos(),
                    period.as_nanos() * u128::from(release.cycle)
                );
                assert!(release.instant >= before && clock.now() == release.instant);
                assert!(last.is_none_or(|last| release.cycle > last));
                skipped += release.skipped;
                late += u64::from(release.skipped > 0);
                assert_eq!(release.cycle, ran + skipped);
                last = Some(release.cycle);
                let cost = period.as_nanos() as u64 * random.u64(0..30) / 10;
                clock.advance(Duration::from_nanos(cost));
            }
            assert_eq!((pacer.overruns().count, pacer.overruns().skipped), (late, skipped));
        }
    }

    #[test]
    fn arithmetic_far_out_saturates() {
        let grid = Grid::new(Instant::from_nanos(5), Duration::from_secs(1 << 40));
        assert_eq!(grid.release(u64::MAX).as_nanos(), u64::MAX);
        assert_eq!(Grid::new(Instant::EPOCH, Duration::ZERO).next_index(Instant::from_nanos(7)), 7);
    }

    /// A virtual clock that remembers how it was waited for: slept and spun, ns, in one wait.
    #[derive(Clone, Debug, Default)]
    struct Witness {
        clock: VirtualClock,
        waits: Rc<RefCell<(u64, u64)>>,
    }

    impl Witness {
        /// Times the last wait slept and spun.
        fn take(&self) -> (u64, u64) {
            self.waits.take()
        }
    }

    impl Clock for Witness {
        fn now(&self) -> Instant {
            self.clock.now()
        }

        fn sleep_until(&self, instant: Instant) {
            self.waits.borrow_mut().0 += instant.since(self.clock.now()).as_nanos() as u64;
            self.clock.sleep_until(instant);
        }

        fn spin_until(&self, instant: Instant) {
            self.waits.borrow_mut().1 += instant.since(self.clock.now()).as_nanos() as u64;
            self.clock.spin_until(instant);
        }
    }

    // feature(hold): spinning sleep that always really sleeps
    #[test]
    fn a_spinning_sleep_wakes_up_a_margin_early() {
        let clock = Witness::default();
        let mut pacer = Pacer::new(clock.clone(), PERIOD).with_spin(Duration::from_micros(50));
        for _ in 0..10 {
            let release = pacer.wait();
            assert_eq!(clock.now(), release.instant);
            assert_eq!(clock.take(), (950_000, 50_000));
        }
    }

    /// With any cost of cycles, a wait begins with a sleep: of a tenth of the period, or of all the
    /// time left. The rest of the margin is spun.
    // feature(hold): spinning sleep that always really sleeps
    #[test]
    fn for_any_execution_times_a_spin_leaves_a_sleep() {
        let mut random = fastrand::Rng::with_seed(0x5_1EE9);
        for _ in 0..200 {
            let period = Duration::from_nanos(random.u64(10..5_000_000));
            let margin = Duration::from_nanos(random.u64(1..6_000_000));
            let clock = Witness::default();
            let mut pacer = Pacer::new(clock.clone(), period).with_spin(margin);
            for cycle in 0..200_u64 {
                let before = clock.now();
                let release = pacer.wait();
                let left = release.instant.since(before).as_nanos() as u64;
                let (slept, spun) = clock.take();
                let least = (period.as_nanos() as u64 / u64::from(SLEEP_SHARE)).min(left);
                assert!(slept >= least, "cycle {cycle}: {slept} ns slept of {left}, {spun} spun");
                assert_eq!(slept + spun, left);
                assert!(spun <= margin.as_nanos() as u64);
                assert_eq!(spun, left.saturating_sub(least).min(margin.as_nanos() as u64));
                assert_eq!(clock.now(), release.instant);
                let cost = period.as_nanos() as u64 * random.u64(0..25) / 10;
                clock.clock.advance(Duration::from_nanos(cost));
            }
        }
    }

    #[test]
    fn catch_up_runs_missed_releases_and_returns_to_the_grid() {
        let clock = VirtualClock::default();
        let mut pacer = Pacer::new(clock.clone(), PERIOD).with_policy(OverrunPolicy::CatchUp);
        assert_eq!(pacer.wait().cycle, 0);
        // Ends in the middle of cycle 3: releases 1, 2 and 3 have passed.
        clock.advance(Duration::from_micros(3_500));
        for cycle in 1..=3 {
            let before = clock.now();
            let release = pacer.wait();
            assert_eq!((release.cycle, release.skipped), (cycle, 0));
            assert!(release.caught_up && release.after_overrun, "{release:?}");
            assert_eq!(release.instant, pacer.grid().release(cycle));
            assert_eq!(clock.now(), before, "no sleep while releases are missing");
            clock.advance(Duration::from_micros(100));
        }
        let release = pacer.wait();
        assert_eq!((release.cycle, release.caught_up, release.after_overrun), (4, false, false));
        assert_eq!(clock.now(), pacer.grid().release(4));
        let overruns = pacer.overruns();
        assert_eq!((overruns.skipped, overruns.caught_up), (0, 3));
        assert_eq!((overruns.count, overruns.first, overruns.last), (3, Some(0), Some(2)));
    }

    #[test]
    fn a_machine_too_slow_for_its_period_sleeps_all_the_same() {
        let clock = Witness::default();
        let mut pacer = Pacer::new(clock.clone(), PERIOD).with_policy(OverrunPolicy::CatchUp);
        let mut hurried = 0;
        let mut slept = 0;
        for _ in 0..1_000 {
            let release = pacer.wait();
            hurried = if release.caught_up { hurried + 1 } else { 0 };
            assert!(hurried <= CATCH_UP_LIMIT, "{hurried} cycles without a sleep");
            slept += clock.take().0;
            clock.clock.advance(PERIOD * 3 / 2);
        }
        assert!(slept > 0);
        assert!(pacer.overruns().skipped > 0 && pacer.overruns().caught_up > 0);
    }

    /// With any cost of cycles, any period and any policy: every release is on the grid and after
    /// the previous one, none is early, late ones follow without a gap unless the limit was
    /// reached, and cycles run and releases skipped add up to the whole grid.
    // feature(hold): overrun policies skip, catch-up, stop
    #[test]
    fn grid_is_kept_for_any_policy_and_execution_times() {
        let mut random = fastrand::Rng::with_seed(0xCA7C);
        let policies = [OverrunPolicy::Skip, OverrunPolicy::CatchUp, OverrunPolicy::Stop];
        for round in 0..300 {
            let policy = policies[round % 3];
            let period = Duration::from_nanos(random.u64(1..5_000_000));
            let margin = Duration::from_nanos(if random.bool() { 0 } else { random.u64(1..100_000) });
            let clock = VirtualClock::default();
            clock.advance(Duration::from_nanos(random.u64(0..1 << 50)));
            let start = clock.now() + period;
            let mut pacer = Pacer::new(clock.clone(), period).with_policy(policy).with_spin(margin);
            let (mut last, mut skipped, mut caught_up, mut hurried) = (None, 0, 0, 0);
            let (mut overran, mut first) = (0, None);
            for ran in 0..400_u64 {
                let before = clock.now();
                let release = pacer.wait();
                let on_grid = period.as_nanos() * u128::from(release.cycle);
                assert_eq!(release.instant.since(start).as_nanos(), on_grid);
                assert!(clock.now() >= release.instant, "never early");
                assert!(last.is_none_or(|last| release.cycle > last));
                skipped += release.skipped;
                caught_up += u64::from(release.caught_up);
                assert_eq!(release.cycle, ran + skipped);
                if release.caught_up {
                    assert_eq!(policy, OverrunPolicy::CatchUp);
                    assert!(clock.now() == before && before > release.instant);
                    hurried += 1;
                } else {
                    assert!(release.instant >= before && clock.now() == release.instant);
                    hurried = 0;
                }
                assert!(hurried <= CATCH_UP_LIMIT);
                assert!(
                    policy != OverrunPolicy::CatchUp || release.skipped == 0 || release.after_overrun,
                    "nothing is skipped without an overrun: {release:?}"
                );
                // Overran: the cycle before was not done at its next release.
                if let Some(last) = last {
                    assert_eq!(release.after_overrun, before > pacer.grid().release(last + 1));
                }
                if release.after_overrun {
                    overran += 1;
                    first = first.or(last);
                }
                last = Some(release.cycle);
                clock.advance(Duration::from_nanos(period.as_nanos() as u64 * random.u64(0..40) / 10));
            }
            let overruns = pacer.overruns();
            assert_eq!(
                (overruns.count, overruns.skipped, overruns.caught_up),
                (overran, skipped, caught_up)
            );
            assert_eq!(overruns.first, first);
        }
    }
}
