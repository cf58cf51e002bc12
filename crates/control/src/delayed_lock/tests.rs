//! The rule by hand, by every interleaving, and by two threads.

use std::collections::HashSet;
use std::sync::atomic::AtomicBool;
use std::thread;

use super::*;
use crate::clock::VirtualClock;
use crate::pacer::Pacer;

fn at(microseconds: u64) -> Instant {
    Instant::from_nanos(microseconds * 1_000)
}

fn hold(microseconds: u64) -> Duration {
    Duration::from_micros(microseconds)
}

// feature(hold): delayed locking
#[test]
fn a_hold_that_ends_before_the_release_enters_and_another_waits_for_the_cycles_end() {
    let clock = VirtualClock::default();
    clock.advance(hold(1_000));
    let (mut cycle, others) = delayed_lock_by(7, clock.clone());
    drop(cycle.enter(at(2_000)).unwrap());
    clock.advance(hold(500));
    *others.enter(hold(499), Duration::ZERO).unwrap() += 1;
    let no = others.enter(hold(500), Duration::ZERO).unwrap_err();
    assert_eq!(no, NoWindow { longest_hold: hold(500), timeout: hold(0), longest_window: hold(500) });
    // While the cycle is on, and from its release on, nobody else comes in.
    clock.advance(hold(500));
    assert!(others.enter(hold(1), Duration::ZERO).is_err());
    let inside = cycle.enter(at(3_000)).unwrap();
    assert_eq!(*inside, 8);
    assert!(others.enter(hold(1), Duration::ZERO).is_err());
    drop(inside);
    assert!(others.enter(hold(1), Duration::ZERO).is_ok());
    assert_eq!((cycle.refused(), others.overstayed()), (0, 0));
}

#[test]
fn who_overstays_is_counted_on_both_sides_and_the_cycle_goes_on() {
    let clock = VirtualClock::default();
    clock.advance(hold(1_000));
    let (mut cycle, others) = delayed_lock_by(0, clock.clone());
    drop(cycle.enter(at(2_000)));
    let inside = others.enter(hold(100), Duration::ZERO).unwrap();
    clock.advance(hold(1_000));
    assert!(cycle.enter(at(3_000)).is_none());
    assert!(cycle.enter(at(3_000)).is_none());
    drop(inside);
    assert!(cycle.enter(at(3_000)).is_some());
    assert_eq!((cycle.refused(), others.overstayed()), (2, 1));
}

#[test]
fn without_a_cycle_nobody_is_delayed() {
    let (cycle, others) = delayed_lock_by((), VirtualClock::default());
    assert!(others.enter(Duration::from_secs(3_600), Duration::ZERO).is_ok());
    drop(cycle);
    assert!(others.enter(Duration::from_secs(3_600), Duration::ZERO).is_ok());
}

/// Every interleaving of a cycle and another task, step by step, in a time of whole ticks.
mod interleavings {
    use super::*;

    const PERIOD: u64 = 6;
    const HOLD: u64 = 2;
    const END: u64 = 3 * PERIOD;

    /// Deviation of the other task from [`OtherSide::enter`].
    #[derive(Clone, Copy, PartialEq, Eq)]
    pub(super) enum Variant {
        /// Nothing.
        Right,
        /// It trusts its first look, however long ago that was.
        WithoutSecondLook,
        /// The scheduler takes its CPU for a tick or more while it is inside.
        Preempted,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    enum Other {
        Outside,
        /// Has looked, and found the window open.
        Admitted,
        /// Has the lock, and these ticks of its hold before it.
        Inside(u64),
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    struct State {
        now: u64,
        window: u64,
        /// Place of the cycle in its cycle: 0 waits for the release, 1 has closed the window, 2 is inside.
        cycle: u8,
        next: u64,
        other: Other,
        /// The cycle tried and found the other inside.
        refused: bool,
    }

    fn admits(state: &State) -> bool {
        Window(state.window).admits(Instant::from_nanos(state.now), Duration::from_nanos(HOLD))
            == Admission::Enter
    }

    /// All that can happen next.
    fn steps(state: State, variant: Variant) -> Vec<State> {
        let mut next = Vec::new();
        let inside = matches!(state.other, Other::Inside(_));
        // The cycle. At its release nothing else comes first: it has the highest priority.
        let due = state.cycle > 0 || state.now >= state.next;
        if due {
            next.push(match state.cycle {
                0 => State { cycle: 1, window: Window::CYCLE.0, ..state },
                1 if inside => State {
                    cycle: 0,
                    refused: true,
                    next: state.next + PERIOD,
                    window: state.next + PERIOD,
                    ..state
                },
                1 => State { cycle: 2, ..state },
                _ => State { cycle: 0, next: state.next + PERIOD, window: state.next + PERIOD, ..state },
            });
        }
        // The other task, on another CPU: any step of it may come between any two of the cycle's.
        let locked = state.cycle == 2;
        match state.other {
            Other::Outside if admits(&state) => next.push(State { other: Other::Admitted, ..state }),
            Other::Admitted if locked => next.push(State { other: Other::Outside, ..state }),
            Other::Admitted => {
                // Locking and the second look are one step: who is not preempted inside does both at once.
                let enters = variant == Variant::WithoutSecondLook || admits(&state);
                let other = if enters { Other::Inside(HOLD) } else { Other::Outside };
                next.push(State { other, ..state });
            }
            Other::Inside(0) => next.push(State { other: Other::Outside, ..state }),
            Other::Outside | Other::Inside(_) => {}
        }
        // A tick. Who is inside works on, unless preempted; who is done leaves before it; a release is not late by a
        // tick, for the cycle has the highest priority, and its cycle is over before the next one.
        let working = state.cycle == 2 && state.now + 1 < state.next + PERIOD;
        if (!due || working) && state.other != Other::Inside(0) && state.now < END {
            let now = state.now + 1;
            match state.other {
                Other::Inside(left) => {
                    next.push(State { now, other: Other::Inside(left - 1), ..state });
                    if variant == Variant::Preempted {
                        next.push(State { now, ..state });
                    }
                }
                _ => next.push(State { now, ..state }),
            }
        }
        next
    }

    /// True if the cycle can ever meet the other inside, and the number of states.
    pub(super) fn explore(variant: Variant) -> (bool, usize, bool) {
        let start =
            State { now: 1, window: PERIOD, cycle: 0, next: PERIOD, other: Other::Outside, refused: false };
        let mut seen = HashSet::from([start]);
        let mut open = vec![start];
        while let Some(state) = open.pop() {
            for next in steps(state, variant) {
                if seen.insert(next) {
                    open.push(next);
                }
            }
        }
        let met = seen.iter().any(|state| state.refused);
        let entered = seen.iter().any(|state| matches!(state.other, Other::Inside(_)));
        (met, seen.len(), entered)
    }
}

// feature(hold): delayed locking
#[test]
fn in_no_interleaving_does_the_cycle_meet_a_task_that_keeps_its_word() {
    use interleavings::{Variant, explore};
    let (met, states, entered) = explore(Variant::Right);
    assert!(entered && states > 100, "{states}");
    assert!(!met);
}

/// The explorer sees what it is there to see.
#[test]
fn a_task_that_looks_once_only_or_is_preempted_is_met() {
    use interleavings::{Variant, explore};
    assert!(explore(Variant::WithoutSecondLook).0);
    assert!(explore(Variant::Preempted).0);
}

#[test]
fn two_threads_share_without_a_torn_value() {
    let (mut cycle, others) = delayed_lock([0_u64; 64]);
    let (done, entered) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let cycles = scope.spawn(|| {
            let mut pacer = Pacer::new(MonotonicClock, Duration::from_millis(2));
            let mut refused = 0;
            while !done.load(Ordering::Relaxed) {
                let release = pacer.wait();
                match cycle.enter(release.instant + Duration::from_millis(2)) {
                    Some(value) => {
                        assert!(value.iter().all(|&it| it == value[0]), "torn");
                        entered.fetch_add(1, Ordering::Relaxed);
                    }
                    None => refused += 1,
                }
            }
            (refused, cycle.refused())
        });
        let mut round = 0;
        while entered.load(Ordering::Relaxed) < 50 {
            let Ok(mut value) = others.enter(hold(100), Duration::from_secs(20)) else {
                panic!("no cycle in 20 s left 100 us of 2 ms")
            };
            round += 1;
            value.iter_mut().for_each(|it| *it = round);
        }
        done.store(true, Ordering::Relaxed);
        let (refused, counted) = cycles.join().unwrap();
        assert_eq!(refused, counted);
    });
}
