//! Delayed locking: data shared with the cycle by a task that is not real-time, without making the cycle wait.
//!
//! The humanoid paper's rule: a task that is not real-time may enter only if it will be out again before the next
//! release. It states its longest hold; where that does not fit in before the release it is delayed until the cycle is
//! over. The real-time side never waits. It tries, and a cycle that finds the other side inside is counted and does
//! without.
//!
//! ```
//! use std::time::Duration;
//! use onbeat_control::clock::{Clock, MonotonicClock};
//! use onbeat_control::delayed_lock::delayed_lock;
//!
//! let (mut cycle, others) = delayed_lock([0.0; 6]);
//! // In the controller, once a cycle:
//! let next_release = MonotonicClock.now() + Duration::from_millis(1);
//! if let Some(gains) = cycle.enter(next_release) {
//!     assert_eq!(gains[0], 0.0);
//! }
//! // In any other thread: in within a second, out after 100 us.
//! let mut gains = others.enter(Duration::from_micros(100), Duration::from_secs(1)).unwrap();
//! gains[0] = 1.5;
//! ```
//!
//! Guarantees and their limits: a task that keeps to the hold it has stated, and is not preempted inside, is never met
//! by the cycle. The rule cannot keep the scheduler from taking the CPU away from a task that is inside; the cycle then
//! does without for a cycle, where a lock that waits would have missed its deadline. Both sides count: [`RealTimeSide::refused`]
//! and [`OtherSide::overstayed`].

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use ethercat::time::Instant;
use thiserror::Error;

use crate::clock::{Clock, MonotonicClock};

/// Both sides of `value`.
#[must_use]
pub fn delayed_lock<T>(value: T) -> (RealTimeSide<T>, OtherSide<T>) {
    delayed_lock_by(value, MonotonicClock)
}

/// The same by another clock.
#[must_use]
pub fn delayed_lock_by<T, C: Clock>(value: T, clock: C) -> (RealTimeSide<T>, OtherSide<T, C>) {
    let shared = Arc::new(Shared {
        value: Mutex::new(value),
        window: AtomicU64::new(Window::NO_CYCLE.0),
        overstayed: AtomicU64::new(0),
    });
    (RealTimeSide { shared: Arc::clone(&shared), refused: 0 }, OtherSide { shared, clock })
}

/// The cycle's end. Dropping it leaves the data to the others.
#[derive(Debug)]
pub struct RealTimeSide<T> {
    shared: Arc<Shared<T>>,
    refused: u64,
}

impl<T> RealTimeSide<T> {
    /// Enters, or says at once that another is inside. Call it once a cycle: what is left after it until
    /// `next_release`, which is `cycle.release + cycle.period`, is the others'. No system call, nothing to wait for.
    pub fn enter(&mut self, next_release: Instant) -> Option<RealTimeGuard<'_, T>> {
        self.shared.set_window(Window::CYCLE);
        match self.shared.try_lock() {
            Some(value) => Some(RealTimeGuard { value: Some(value), shared: &self.shared, next_release }),
            None => {
                self.refused += 1;
                self.shared.set_window(Window::until(next_release));
                None
            }
        }
    }

    /// Cycles that found another inside.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }
}

impl<T> Drop for RealTimeSide<T> {
    fn drop(&mut self) {
        self.shared.set_window(Window::NO_CYCLE);
    }
}

/// The cycle is inside.
#[derive(Debug)]
pub struct RealTimeGuard<'a, T> {
    value: Option<MutexGuard<'a, T>>,
    shared: &'a Shared<T>,
    next_release: Instant,
}

impl<T> Drop for RealTimeGuard<'_, T> {
    fn drop(&mut self) {
        // Out first: nobody is let in while the cycle is inside.
        self.value = None;
        self.shared.set_window(Window::until(self.next_release));
    }
}

impl<T> Deref for RealTimeGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_deref().unwrap_or_else(|| unreachable!("taken by drop only"))
    }
}

impl<T> DerefMut for RealTimeGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_deref_mut().unwrap_or_else(|| unreachable!("taken by drop only"))
    }
}

/// The end of all others; clones are as good.
#[derive(Clone, Debug)]
pub struct OtherSide<T, C = MonotonicClock> {
    shared: Arc<Shared<T>>,
    clock: C,
}

impl<T, C: Clock> OtherSide<T, C> {
    /// Enters as soon as a hold of `longest_hold` ends before the next release. Sleeps until then; not for the
    /// real-time path.
    ///
    /// # Errors
    /// No such moment within `timeout`: the hold is longer than what cycles leave, or others are always inside.
    pub fn enter(
        &self,
        longest_hold: Duration,
        timeout: Duration,
    ) -> Result<OtherGuard<'_, T, C>, NoWindow> {
        let end = self.clock.now() + timeout;
        let mut longest = Duration::ZERO;
        loop {
            let now = self.clock.now();
            let again = match self.shared.window().admits(now, longest_hold) {
                Admission::Enter => match self.try_enter(longest_hold) {
                    Some(guard) => return Ok(guard),
                    None => now + LOOK_AGAIN,
                },
                Admission::NextCycle { release } => {
                    longest = longest.max(release.since(now));
                    release + LOOK_AGAIN
                }
                Admission::CycleInfo => now + LOOK_AGAIN,
            };
            if now >= end {
                return Err(NoWindow { longest_hold, timeout, longest_window: longest });
            }
            self.clock.sleep_until(again.min(end));
        }
    }

    /// Locks, and looks again: the time between the first look and the lock may have been long.
    fn try_enter(&self, longest_hold: Duration) -> Option<OtherGuard<'_, T, C>> {
        let value = self.shared.try_lock()?;
        let entered = self.clock.now();
        let still = self.shared.window().admits(entered, longest_hold) == Admission::Enter;
        still.then_some(OtherGuard { value, side: self, end: entered + longest_hold })
    }

    /// Times one was inside for longer than was stated.
    #[must_use]
    pub fn overstayed(&self) -> u64 {
        self.shared.overstayed.load(Ordering::Relaxed)
    }
}

/// Another is inside.
#[derive(Debug)]
pub struct OtherGuard<'a, T, C: Clock = MonotonicClock> {
    value: MutexGuard<'a, T>,
    side: &'a OtherSide<T, C>,
    end: Instant,
}

impl<T, C: Clock> Drop for OtherGuard<'_, T, C> {
    fn drop(&mut self) {
        if self.side.clock.now() > self.end {
            self.side.shared.overstayed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl<T, C: Clock> Deref for OtherGuard<'_, T, C> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T, C: Clock> DerefMut for OtherGuard<'_, T, C> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

/// No cycle left room for a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "no moment for a hold of {longest_hold:?} in {timeout:?}: the cycles left {longest_window:?} at most; hold it for less"
)]
pub struct NoWindow {
    /// The hold that was asked for.
    pub longest_hold: Duration,
    /// Time waited.
    pub timeout: Duration,
    /// The longest time before a release that was seen.
    pub longest_window: Duration,
}

#[derive(Debug)]
struct Shared<T> {
    /// Only ever tried, by both sides: no thread sleeps on it, so that unlocking it wakes none.
    value: Mutex<T>,
    window: AtomicU64,
    overstayed: AtomicU64,
}

impl<T> Shared<T> {
    fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.value.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(PoisonError::into_inner(poisoned)),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn window(&self) -> Window {
        // Relaxed: the window guards nothing, it says when to try. The mutex orders the data.
        Window(self.window.load(Ordering::Relaxed))
    }

    fn set_window(&self, window: Window) {
        self.window.store(window.0, Ordering::Relaxed);
    }
}

/// Until when others may be inside: nanoseconds of the clock, or one of two marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window(u64);

impl Window {
    /// The cycle is on.
    const CYCLE: Self = Self(0);
    /// There is no cycle, before its first cycle and after its last.
    const NO_CYCLE: Self = Self(u64::MAX);

    fn until(release: Instant) -> Self {
        Self(release.as_nanos().max(1))
    }

    fn admits(self, now: Instant, hold: Duration) -> Admission {
        let release = Instant::from_nanos(self.0);
        match self {
            Self::CYCLE => Admission::CycleInfo,
            Self::NO_CYCLE => Admission::Enter,
            // The release has passed and the cycle has not entered yet: it is about to.
            _ if now >= release => Admission::CycleInfo,
            _ if now + hold < release => Admission::Enter,
            _ => Admission::NextCycle { release },
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Admission {
    /// It will be out before the next release.
    Enter,
    /// It would not.
    NextCycle { release: Instant },
    /// The cycle is on, or about to be.
    CycleInfo,
}

/// Interval at which a cycle that is on is looked after.
const LOOK_AGAIN: Duration = Duration::from_micros(50);

#[cfg(test)]
mod tests;
