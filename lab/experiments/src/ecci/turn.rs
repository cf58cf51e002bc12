//! Turn of one cell: readers read without pause, one thread commands, and the cycle makes a request
//! in every cycle.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use rt::clock::{Clock, MonotonicClock};
use rt::pacer::Pacer;
use rt::profile::{Granted, RealTimeProfile};

use super::way::{
    CommandEnd, CycleEnd, Ends, ReadEnd, Way, command_of, is_whole, is_whole_command, stamped, state_of,
};
use crate::distribution::resident;

/// Settings of a turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn<'a> {
    pub(super) way: Way,
    pub(super) readers: usize,
    pub(super) axes: usize,
    /// Requests measured.
    pub(super) samples: usize,
    /// Requests before the measurement.
    pub(super) warm_up: usize,
    /// Time between two requests.
    pub(super) interval: Duration,
    /// Real-time profile of the cycle's thread.
    pub(super) profile: RealTimeProfile,
    /// Flag that ends it early.
    pub(super) stop: &'a AtomicBool,
}

/// Results of a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    /// Durations of the requests, ns.
    pub(super) requests: Vec<u64>,
    /// Whole states read by all readers together.
    pub(super) reads: u64,
    /// States and commands with parts of another cycle or command; must be 0.
    pub(super) torn: u64,
    /// Times that the cycle's thread slept within a request: each is a wait for the lock of the
    /// state.
    pub(super) waits: u64,
    /// Number of commands the cycle received.
    pub(super) commands: u64,
    /// Duration, including the warm-up.
    pub(super) elapsed: Duration,
    /// Real-time settings the system refused to the cycle's thread.
    pub(super) refusals: Vec<String>,
}

impl Turn<'_> {
    /// Runs the turn.
    ///
    /// # Errors
    /// The mechanism failed, or a thread cannot be started.
    pub(super) fn take(&self) -> io::Result<Taken> {
        let Ends { cycle, commander, readers, keep } = self.way.open(self.axes, self.readers)?;
        let shared = TurnState::default();
        let taken = thread::scope(|scope| {
            let shared = &shared;
            let ending = Ending(shared);
            let mut hammering = Vec::new();
            for reader in readers {
                let read = move || shared.fails(read(reader, self.axes, shared));
                hammering.push(thread::Builder::new().name("reader".into()).spawn_scoped(scope, read)?);
            }
            let command = move || shared.fails(send(commander, self.axes, shared));
            hammering.push(thread::Builder::new().name("commander".into()).spawn_scoped(scope, command)?);
            let info = move || shared.fails(self.one_cycle(cycle, shared));
            let cycle = thread::Builder::new().name("cycle".into()).spawn_scoped(scope, info)?;
            let taken = cycle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            drop(ending);
            for thread in hammering {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            }
            taken
        });
        drop(keep);
        let mut taken = taken?;
        taken.reads = shared.reads.load(Ordering::Relaxed);
        taken.torn += shared.torn.load(Ordering::Relaxed);
        Ok(taken)
    }

    /// Runs the cycle's thread.
    fn one_cycle(&self, mut end: Box<dyn CycleEnd>, shared: &TurnState) -> io::Result<Taken> {
        let granted = Granted::ask(&self.profile);
        let mut taken = Taken { requests: resident(self.samples), ..Taken::default() };
        taken.refusals = granted.refusals().collect();
        let (mut state, mut command) = (state_of(self.axes), command_of(self.axes, 0));
        let mut pacer = Pacer::new(MonotonicClock, self.interval);
        let begin = Instant::now();
        let (mut cycle, mut left, mut known) = (0, self.warm_up, 0);
        // A contended mutex can delay a request for very long.
        let longest =
            self.interval * u32::try_from(self.samples + self.warm_up).unwrap_or(u32::MAX) * 4 + TIMEOUT;
        while taken.requests.len() < self.samples && begin.elapsed() < longest && !self.is_over(shared) {
            pacer.wait();
            cycle += 1;
            stamped(&mut state, cycle);
            let slept = sleeps()?;
            let before = MonotonicClock.now();
            let whole = end.request(&state, &mut command)?;
            let after = MonotonicClock.now();
            let waits = sleeps()? - slept;
            taken.torn += u64::from(!whole || !is_whole_command(&command));
            taken.commands += u64::from(command.sequence != known);
            known = command.sequence;
            // The measurement begins once all readers have read: otherwise the first requests would
            // be of fewer readers.
            if left > 0 {
                left -= usize::from(shared.reading.load(Ordering::Relaxed) >= self.readers);
                continue;
            }
            taken.requests.push(types::time::nanoseconds(after.since(before)));
            taken.waits += waits;
        }
        taken.elapsed = begin.elapsed();
        Ok(taken)
    }

    fn is_over(&self, shared: &TurnState) -> bool {
        self.stop.load(Ordering::Relaxed) || shared.over.load(Ordering::Relaxed)
    }
}

/// Times so far that this thread has given its CPU away to wait for something, as the kernel counts
/// them.
fn sleeps() -> io::Result<u64> {
    let usage = getrusage(UsageWho::RUSAGE_THREAD)?;
    Ok(u64::try_from(usage.voluntary_context_switches()).unwrap_or(0))
}

/// State shared by the threads. All accesses are relaxed: independent counts and a flag; threads
/// are joined before the counts are used.
#[derive(Default)]
struct TurnState {
    over: AtomicBool,
    /// Number of readers that have read once.
    reading: AtomicUsize,
    reads: AtomicU64,
    torn: AtomicU64,
}

impl TurnState {
    /// Ends the turn for all threads if `result` is an error.
    fn fails<T>(&self, result: io::Result<T>) -> io::Result<T> {
        if result.is_err() {
            self.over.store(true, Ordering::Relaxed);
        }
        result
    }
}

/// Ends the turn on drop, also if a thread cannot be started.
struct Ending<'a>(&'a TurnState);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::Relaxed);
    }
}

/// Runs a reader's thread, which never pauses.
fn read(mut end: Box<dyn ReadEnd>, axes: usize, shared: &TurnState) -> io::Result<()> {
    let mut state = state_of(axes);
    let (mut reads, mut torn) = (0, 0);
    while !shared.over.load(Ordering::Relaxed) {
        if end.read(&mut state)? {
            if reads == 0 {
                shared.reading.fetch_add(1, Ordering::Relaxed);
            }
            reads += 1;
            torn += u64::from(!is_whole(&state) || state.axes.len() != axes);
        }
    }
    shared.reads.fetch_add(reads, Ordering::Relaxed);
    shared.torn.fetch_add(torn, Ordering::Relaxed);
    Ok(())
}

/// Runs the commanding thread, which sends periodically like a planner.
fn send(mut end: Box<dyn CommandEnd>, axes: usize, shared: &TurnState) -> io::Result<()> {
    let mut mark = 0;
    while !shared.over.load(Ordering::Relaxed) {
        mark += 1;
        end.send(&command_of(axes, mark))?;
        thread::sleep(COMMAND_EVERY);
    }
    Ok(())
}

/// Period of the service robot's navigation.
const COMMAND_EVERY: Duration = Duration::from_millis(5);

/// Longest wait beyond four times the expected duration.
const TIMEOUT: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(way: Way, readers: usize, stop: &AtomicBool) -> Turn<'_> {
        let interval = Duration::from_micros(200);
        let profile = RealTimeProfile::ORDINARY;
        Turn { way, readers, axes: 59, samples: 400, warm_up: 20, interval, profile, stop }
    }

    // feature(papers): `measure ecci`: our IPC and two mutexes with 0, 1, 8, 64 readers
    #[test]
    fn sixty_four_readers_never_see_half_a_state_whatever_the_way() {
        for way in [Way::Ipc, Way::IpcUnread, Way::Inheriting, Way::Plain] {
            let stop = AtomicBool::new(false);
            let taken = turn(way, 64, &stop).take().unwrap();
            assert_eq!(taken.torn, 0, "{way:?}");
            assert!(taken.reads >= 64 && !taken.requests.is_empty(), "{way:?}: {taken:?}");
            assert!(taken.commands > 0, "{way:?}");
        }
    }

    // feature(papers): `measure ecci`: readers that the cycle waited for are counted, none of our IPC
    #[test]
    fn a_cycle_that_waits_for_readers_is_counted_and_ours_does_not() {
        let waits = |way| {
            let stop = AtomicBool::new(false);
            turn(way, 8, &stop).take().unwrap().waits
        };
        assert_eq!(waits(Way::Ipc), 0);
        // A reader holds the mutex nearly all the time.
        assert!((0..10).any(|_| waits(Way::Plain) > 0), "no request found the mutex taken");
    }

    /// The test for torn states detects one.
    #[test]
    fn a_state_of_two_cycles_is_seen() {
        let mut state = state_of(3);
        stamped(&mut state, 7);
        assert!(is_whole(&state));
        state.axes[2].effort = 8.0;
        assert!(!is_whole(&state));
        let mut command = command_of(3, 1);
        assert!(is_whole_command(&command));
        command.axes[1] = None;
        assert!(!is_whole_command(&command));
    }

    #[test]
    fn a_stop_ends_all_turns() {
        let stop = AtomicBool::new(true);
        let taken = turn(Way::Plain, 8, &stop).take().unwrap();
        assert!(taken.requests.is_empty());
    }
}
