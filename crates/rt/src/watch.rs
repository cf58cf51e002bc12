//! Part of a thread's life in which it is watched from outside, and the period of an instant in it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use types::Instant;
use types::time::nanoseconds;

/// Thread to be watched.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Name of the thread.
    pub name: String,
    /// Thread id; a thread of this process.
    pub tid: i32,
    /// Releases in which it is watched.
    pub window: Window,
    /// Names of system calls that are part of its work in addition to the wait. Neither they nor
    /// their waits count.
    pub expected: Vec<&'static str>,
}

/// From its first release to its end: what a thread does before and after counts as no disturbance.
/// Clones are the same window.
#[derive(Clone, Debug)]
pub struct Window {
    shared: Arc<WatchCells>,
}

#[derive(Debug)]
struct WatchCells {
    /// From here on, ns; `u64::MAX` before it is opened.
    from: AtomicU64,
    /// Release 0, ns.
    first: AtomicU64,
    period: AtomicU64,
    /// Time before a release at which the thread wakes up to spin.
    spin: AtomicU64,
    /// ns; `u64::MAX` as long as it is open.
    end: AtomicU64,
    /// Voluntary and involuntary switches, minor and major faults of the thread when it was opened.
    before: [AtomicU64; 4],
    /// Waits for a release so far, where the thread counts them.
    waits: AtomicU64,
    /// True if `before` and `waits` are kept.
    counted: AtomicU64,
}

impl Default for Window {
    fn default() -> Self {
        let shared = WatchCells {
            from: AtomicU64::new(u64::MAX),
            first: AtomicU64::new(0),
            period: AtomicU64::new(1),
            spin: AtomicU64::new(0),
            end: AtomicU64::new(u64::MAX),
            before: Default::default(),
            waits: AtomicU64::new(0),
            counted: AtomicU64::new(0),
        };
        Self { shared: Arc::new(shared) }
    }
}

impl Window {
    /// Opens it: release 0 of the grid is at `first`, and what happens earlier does not count.
    /// `spin` is how long before a release the thread wakes up, see [`crate::pacer`].
    pub fn open(&self, first: Instant, period: Duration, spin: Duration) {
        self.open_from(first, first, period, spin);
    }

    /// The same for a grid that is older than the window: what happens before `from` does not
    /// count.
    pub fn open_from(&self, from: Instant, first: Instant, period: Duration, spin: Duration) {
        self.shared.first.store(first.as_nanos(), Ordering::Relaxed);
        self.shared.period.store(nanoseconds(period).max(1), Ordering::Relaxed);
        self.shared.spin.store(nanoseconds(spin), Ordering::Relaxed);
        // Partner: the Acquire load in `from`.
        self.shared.from.store(from.as_nanos(), Ordering::Release);
    }

    /// The same on the grid of another window; nothing as long as that one is not open.
    pub fn open_as(&self, other: &Self, from: Instant) {
        let load = |word: &AtomicU64| word.load(Ordering::Relaxed);
        if let Some(first) = other.first() {
            let (period, spin) = (load(&other.shared.period), load(&other.shared.spin));
            // A release to come is the first to count.
            let (first, from) = (Instant::from_nanos(first), from.max(Instant::from_nanos(first)));
            self.open_from(from, first, Duration::from_nanos(period), Duration::from_nanos(spin));
        }
    }

    /// Closes it: what happens after `end` does not count.
    pub fn close(&self, end: Instant) {
        // Relaxed: the number itself is all there is.
        self.shared.end.fetch_min(end.as_nanos(), Ordering::Relaxed);
    }

    /// Counters of the thread so far, which it reads itself when it opens the window: voluntary and
    /// involuntary switches, minor and major faults.
    pub fn count_from(&self, before: [u64; 4]) {
        for (to, from) in self.shared.before.iter().zip(before) {
            to.store(from, Ordering::Relaxed);
        }
        // Partner: the Acquire load in `counted`.
        self.shared.counted.store(1, Ordering::Release);
    }

    /// The thread begins its wait number `waits`, from 1.
    pub fn wait(&self, waits: u64) {
        self.shared.waits.store(waits, Ordering::Relaxed);
    }

    /// Counters before the window, and waits so far, if the thread keeps them.
    #[must_use]
    pub fn counted(&self) -> Option<([u64; 4], u64)> {
        if self.shared.counted.load(Ordering::Acquire) == 0 {
            return None;
        }
        let before = [0, 1, 2, 3].map(|place| self.shared.before[place].load(Ordering::Relaxed));
        Some((before, self.shared.waits.load(Ordering::Relaxed)))
    }

    fn from(&self) -> Option<u64> {
        // Partner: the Release store in `open_from`.
        Some(self.shared.from.load(Ordering::Acquire)).filter(|&from| from != u64::MAX)
    }

    /// Release 0, if it has been opened.
    fn first(&self) -> Option<u64> {
        self.from().map(|_| self.shared.first.load(Ordering::Relaxed))
    }

    /// True if it has been opened.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.from().is_some()
    }

    /// True if it has been closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.end.load(Ordering::Relaxed) != u64::MAX
    }

    /// The period that an instant, in ns, lies in; `None` outside the window.
    #[must_use]
    pub fn period_of(&self, at: u64) -> Option<u64> {
        let from = self.from()?;
        let since = at.checked_sub(self.first()?)?;
        let period = self.shared.period.load(Ordering::Relaxed);
        (at >= from && at <= self.shared.end.load(Ordering::Relaxed)).then_some(since / period)
    }

    /// True if a release, or the awakening to spin for it, lies between these instants: a sleep
    /// that it ends.
    #[must_use]
    pub fn release_between(&self, from: u64, to: u64) -> bool {
        let Some(first) = self.first() else { return false };
        let period = self.shared.period.load(Ordering::Relaxed);
        let to = to.saturating_add(self.shared.spin.load(Ordering::Relaxed));
        // Releases at or before an instant.
        let releases = |at: u64| at.checked_sub(first).map_or(0, |since| since / period + 1);
        releases(to) > releases(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_belongs_to_the_period_of_its_last_release() {
        let window = Window::default();
        assert_eq!((window.period_of(5), window.is_open()), (None, false));
        window.open(Instant::from_nanos(1_000), Duration::from_nanos(100), Duration::ZERO);
        for (at, period) in [(999, None), (1_000, Some(0)), (1_099, Some(0)), (1_350, Some(3))] {
            assert_eq!(window.period_of(at), period, "{at}");
        }
        window.close(Instant::from_nanos(1_400));
        assert_eq!((window.period_of(1_400), window.period_of(1_401)), (Some(4), None));
    }

    #[test]
    fn a_window_may_be_younger_than_its_grid() {
        let window = Window::default();
        let (from, first) = (Instant::from_nanos(1_200), Instant::from_nanos(1_000));
        window.open_from(from, first, Duration::from_nanos(100), Duration::ZERO);
        assert_eq!((window.period_of(1_199), window.period_of(1_250)), (None, Some(2)));
    }

    #[test]
    fn later_window_on_same_grid_counts_the_same_periods() {
        let (grid, window) = (Window::default(), Window::default());
        window.open_as(&grid, Instant::from_nanos(5));
        assert!(!window.is_open(), "the other is not open yet");
        grid.open(Instant::from_nanos(1_000), Duration::from_nanos(100), Duration::from_nanos(10));
        window.open_as(&grid, Instant::from_nanos(1_250));
        assert_eq!((window.period_of(1_249), window.period_of(1_250)), (None, Some(2)));
        assert!(window.release_between(1_240, 1_291) && !window.is_closed());
        window.close(Instant::from_nanos(1_300));
        assert_eq!((window.period_of(1_301), grid.period_of(1_301)), (None, Some(3)));
    }

    #[test]
    fn release_sleep_is_distinguished_from_sleep_within_period() {
        let window = Window::default();
        window.open(Instant::from_nanos(1_000), Duration::from_nanos(100), Duration::from_nanos(10));
        for (from, to, waited) in
            [(950, 1_003, true), (1_040, 1_060, false), (1_040, 1_091, true), (1_100, 1_150, false)]
        {
            assert_eq!(window.release_between(from, to), waited, "{from} {to}");
        }
    }
}
