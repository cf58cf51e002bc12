//! In virtual time: the grid is kept for any cost of cycles.

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

/// With any cost of cycles and any period, every release is on the grid, in the future of the one
/// before, never earlier than the clock, and cycles run plus releases skipped is the whole grid.
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
        assert_eq!(clock.now(), before, "nobody sleeps while releases are missing");
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

/// With any cost of cycles, any period and any policy: every release is on the grid and after the
/// previous one, none is early, late ones follow without a gap unless the limit was reached, and
/// cycles run and releases skipped add up to the whole grid.
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
        assert_eq!((overruns.count, overruns.skipped, overruns.caught_up), (overran, skipped, caught_up));
        assert_eq!(overruns.first, first);
    }
}
