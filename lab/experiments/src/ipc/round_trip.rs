//! Timing of two threads that take turns.

use std::io;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rt::clock::{Clock, MonotonicClock};
use rt::pacer::Pacer;
use rt::profile::{Granted, RealTimeProfile};
use types::time::nanoseconds;

use super::mechanism::{Mechanism, Role};
use crate::distribution::resident;

/// Settings of the turns.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    /// Number of round trips.
    pub(super) rounds: usize,
    /// Time between two round trips; both threads sleep in between, as between the releases of a
    /// cycle.
    pub(super) interval: Duration,
    /// Real-time profile of the calling thread.
    pub(super) caller: RealTimeProfile,
    /// Real-time profile of the answering thread.
    pub(super) callee: RealTimeProfile,
}

/// Results, round by round.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Taken {
    /// Times from before the caller gives its turn to after it has it back, ns.
    pub(super) round_trips: Vec<u64>,
    /// Times from before the caller gives its turn to after the callee has it, ns.
    pub(super) one_ways: Vec<u64>,
    /// Real-time settings the system refused to the two threads.
    pub(super) refusals: Vec<String>,
}

/// Runs two threads that take turns by `mechanism` until the rounds are done or `stop` is set.
///
/// # Errors
/// The mechanism fails, or a thread cannot be started.
pub(super) fn take_turns(mechanism: &dyn Mechanism, turns: &Turns, stop: &AtomicBool) -> io::Result<Taken> {
    let shared = RoundTripState {
        over: AtomicBool::new(false),
        given_ns: AtomicU64::new(0),
        ready: Barrier::new(2),
    };
    thread::scope(|scope| {
        let shared = &shared;
        let answering = start(scope, "callee", move || answer(mechanism, turns, shared))?;
        let asking = start(scope, "caller", move || ask(mechanism, turns, shared, stop));
        let asking = asking.inspect_err(|_| {
            // Sets the flag in place of a failed caller, so that the callee ends.
            shared.over.store(true, Ordering::Relaxed);
            shared.ready.wait();
        });
        let answered = join(answering);
        let (round_trips, mut refusals) = join(asking?)?;
        let (mut one_ways, theirs) = answered?;
        // The last arrival is the request to end.
        one_ways.truncate(round_trips.len());
        refusals.extend(theirs);
        refusals.sort();
        refusals.dedup();
        Ok(Taken { round_trips, one_ways, refusals })
    })
}

struct RoundTripState {
    /// End of the turns. Written before a turn is given, or before the barrier, and read after it;
    /// relaxed, because giving and taking a turn are a release and an acquire.
    over: AtomicBool,
    /// Time at which the caller gave its turn, ns of the monotonic clock; ordered as `over`.
    given_ns: AtomicU64,
    /// Both parties hold their initial mutexes.
    ready: Barrier,
}

/// Durations, and the settings refused.
type Side = io::Result<(Vec<u64>, Vec<String>)>;

fn ask(mechanism: &dyn Mechanism, turns: &Turns, shared: &RoundTripState, stop: &AtomicBool) -> Side {
    let granted = Granted::ask(&turns.caller);
    let party = mechanism.party(Role::Caller);
    if party.is_err() {
        shared.over.store(true, Ordering::Relaxed);
    }
    let mut durations = resident(turns.rounds);
    shared.ready.wait();
    let mut party = party?;
    let mut pacer = Pacer::new(MonotonicClock, turns.interval);
    while durations.len() < turns.rounds
        && !stop.load(Ordering::Relaxed)
        && !shared.over.load(Ordering::Relaxed)
    {
        pacer.wait();
        let given = MonotonicClock.now();
        shared.given_ns.store(given.as_nanos(), Ordering::Relaxed);
        let back = party.give().and_then(|()| party.take());
        let taken = MonotonicClock.now();
        if let Err(error) = back {
            shared.over.store(true, Ordering::Relaxed);
            let _ = party.give();
            return Err(error);
        }
        durations.push(nanoseconds(taken.since(given)));
    }
    if !shared.over.swap(true, Ordering::Relaxed) {
        party.give()?;
    }
    Ok((durations, granted.refusals().collect()))
}

fn answer(mechanism: &dyn Mechanism, turns: &Turns, shared: &RoundTripState) -> Side {
    let granted = Granted::ask(&turns.callee);
    let party = mechanism.party(Role::Callee);
    if party.is_err() {
        shared.over.store(true, Ordering::Relaxed);
    }
    let mut durations = resident(turns.rounds + 1);
    shared.ready.wait();
    let mut party = party?;
    if shared.over.load(Ordering::Relaxed) {
        return Ok((durations, Vec::new()));
    }
    // Every turn given is taken, also the last: nothing is left in the mechanism.
    loop {
        let taken = party.take();
        let now = MonotonicClock.now();
        durations.push(now.as_nanos().saturating_sub(shared.given_ns.load(Ordering::Relaxed)));
        let over = shared.over.load(Ordering::Relaxed);
        let given = taken.and_then(|()| if over { Ok(()) } else { party.give() });
        if let Err(error) = given {
            shared.over.store(true, Ordering::Relaxed);
            // The caller may sleep; it is woken if that is still possible.
            let _ = party.give();
            return Err(error);
        }
        if over {
            return Ok((durations, granted.refusals().collect()));
        }
    }
}

/// Durations of `batches` batches of `batch` calls each, ns, and the settings refused.
///
/// # Errors
/// A call fails, or a thread cannot be started.
pub(super) fn call_batches(
    calls: &mut (dyn FnMut(u32) -> io::Result<()> + Send),
    profile: &RealTimeProfile,
    batches: usize,
    batch: u32,
    stop: &AtomicBool,
) -> Side {
    thread::scope(|scope| {
        join(start(scope, "caller", move || {
            let granted = Granted::ask(profile);
            let mut durations = resident(batches);
            while durations.len() < batches && !stop.load(Ordering::Relaxed) {
                let before = MonotonicClock.now();
                calls(batch)?;
                durations.push(nanoseconds(MonotonicClock.now().since(before)));
            }
            Ok((durations, granted.refusals().collect()))
        })?)
    })
}

fn start<'scope, T: Send + 'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<thread::ScopedJoinHandle<'scope, T>> {
    thread::Builder::new().name(name.into()).spawn_scoped(scope, work)
}

fn join<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::super::{cell, mechanism};
    use super::*;
    use crate::sys::mutex::Protocol;

    fn turns(rounds: usize) -> Turns {
        let profile = RealTimeProfile::ORDINARY;
        let interval = Duration::from_micros(100);
        Turns { rounds, interval, caller: profile, callee: profile }
    }

    fn all() -> Vec<(&'static str, Box<dyn Mechanism>)> {
        vec![
            ("semaphore", Box::new(mechanism::semaphore().unwrap())),
            ("mutex", Box::new(mechanism::mutex(Protocol::Plain).unwrap())),
            ("inheriting", Box::new(mechanism::mutex(Protocol::Inherit).unwrap())),
            ("message queue", Box::new(mechanism::message_queue().unwrap())),
            ("pipe", Box::new(mechanism::pipe().unwrap())),
            ("futex", Box::new(mechanism::bare_futex())),
            ("eventfd", Box::new(mechanism::event().unwrap())),
        ]
    }

    /// Each round gives one answer, and the way there is a part of the way there and back.
    #[test]
    fn round_trips_alternate_mechanisms_and_include_the_way_there() {
        for (name, mechanism) in all() {
            let taken = take_turns(&*mechanism, &turns(150), &AtomicBool::new(false)).unwrap();
            assert_eq!((taken.round_trips.len(), taken.one_ways.len()), (150, 150), "{name}");
            for (round_trip, one_way) in taken.round_trips.iter().zip(&taken.one_ways) {
                assert!(one_way <= round_trip, "{name}: {one_way} there, {round_trip} there and back");
            }
            assert_eq!(taken.refusals, Vec::<String>::new());
            // Nothing was left in it: it can be used again, and called without a waiting thread.
            let again = take_turns(&*mechanism, &turns(3), &AtomicBool::new(false)).unwrap();
            assert_eq!(again.round_trips.len(), 3, "{name}");
            let profile = RealTimeProfile::ORDINARY;
            let mut calls = |times| mechanism.calls(times);
            let (batches, _) = call_batches(&mut calls, &profile, 20, 8, &AtomicBool::new(false)).unwrap();
            assert_eq!(batches.len(), 20, "{name}");
        }
    }

    #[test]
    fn our_own_ipc_is_called_batch_by_batch() {
        for (name, mut calls) in cell::ours().unwrap() {
            let profile = RealTimeProfile::ORDINARY;
            let (batches, _) =
                call_batches(&mut *calls, &profile, 50, 200, &AtomicBool::new(false)).unwrap();
            assert_eq!(batches.len(), 50, "{name}");
        }
    }

    #[test]
    fn both_sides_stop_before_the_first_round() {
        for (name, mechanism) in all() {
            let taken = take_turns(&*mechanism, &turns(150), &AtomicBool::new(true)).unwrap();
            assert_eq!(taken.round_trips.len() + taken.one_ways.len(), 0, "{name}");
        }
    }

    /// Fails after a while, like a queue that was removed.
    struct Breaking(mechanism::ThereAndBack<crate::sys::semaphore::Semaphore>, AtomicU64);

    impl Mechanism for Breaking {
        fn calls(&self, times: u32) -> io::Result<()> {
            self.0.calls(times)
        }
    }

    impl mechanism::Parties for Breaking {
        fn party(&self, role: Role) -> io::Result<Box<dyn mechanism::Party + '_>> {
            let party = mechanism::Parties::party(&self.0, role)?;
            Ok(if role == Role::Callee { Box::new(BreakingParty(party, &self.1)) } else { party })
        }
    }

    struct BreakingParty<'a>(Box<dyn mechanism::Party + 'a>, &'a AtomicU64);

    impl mechanism::Party for BreakingParty<'_> {
        fn give(&mut self) -> io::Result<()> {
            self.0.give()
        }

        fn take(&mut self) -> io::Result<()> {
            self.0.take()?;
            let left = self.1.fetch_sub(1, Ordering::Relaxed);
            if left == 0 { Err(io::Error::other("taken away")) } else { Ok(()) }
        }
    }

    #[test]
    fn when_one_side_fails_the_other_does_not_wait_for_ever() {
        let breaking = Breaking(mechanism::semaphore().unwrap(), AtomicU64::new(5));
        let error = take_turns(&breaking, &turns(150), &AtomicBool::new(false)).unwrap_err();
        assert_eq!(error.to_string(), "taken away");
    }
}
