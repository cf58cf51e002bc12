//! Ctrl-C, SIGTERM and their like ask for an orderly stop; asked again and again, the program ends
//! at once.

use std::process::exit;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use control::stop::StopHandle;
use rustix::process::Signal;
use signal_hook::consts::{
    SIGALRM, SIGHUP, SIGINT, SIGPROF, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU,
    SIGXFSZ,
};
use signal_hook::iterator::{Handle, Signals};

use crate::failure::Failure;
use crate::words::live_line::Voice;

/// Signals that request a stop. By default each of them ends a program at once, even while axes
/// move.
const ASKING: [i32; 11] = [
    SIGINT,
    SIGTERM,
    SIGHUP,
    SIGQUIT,
    SIGXCPU,
    SIGUSR1,
    SIGUSR2,
    SIGALRM,
    SIGVTALRM,
    SIGPROF,
    Signal::POWER.as_raw(),
];

/// Signals this close together are one request: `timeout` and process managers send each twice, and
/// a key may be held.
const ONE_WISH: Duration = Duration::from_millis(300);

/// A signal repeated after this time counts as a new request.
const PERSISTENT: Duration = Duration::from_secs(1);

/// Exit code of a program that was ended by force, as a shell reports one that Ctrl-C ended.
const BY_FORCE: i32 = 130;

/// Receives signals as long as it lives.
pub struct Stop {
    handle: StopHandle,
    signals: Handle,
}

impl Stop {
    /// The first signal asks for a stop, the second ends the program.
    pub fn listen() -> Result<Self, Failure> {
        let handle = StopHandle::new();
        let asked = handle.clone();
        let signals = listen(&ASKING, Wishes::default(), move |wish| {
            asked.stop();
            if wish.number > 1 {
                end_by_force();
            }
        })?;
        Ok(Self { handle, signals })
    }

    /// For a run: the first signal asks for a stop, the second hurries it, the third ends the
    /// program. What the next one would do is said.
    pub(crate) fn listen_for_a_run(voice: Voice) -> Result<Self, Failure> {
        let handle = StopHandle::new();
        let asked = handle.clone();
        let heard = [&ASKING[..], &[SIGTSTP]].concat();
        let signals = listen(&heard, Wishes::default(), move |wish| {
            if wish.signal == SIGTSTP {
                return voice.say(SUSPENDING);
            }
            // Set the request before printing: the printing thread may be stopped.
            match wish.number {
                1 => asked.stop(),
                2 => asked.hurry(),
                _ => end_by_force(),
            }
            voice.say(if wish.number == 1 { STOPPING } else { HURRYING });
        })?;
        Ok(Self { handle, signals })
    }

    /// Asks for a stop by itself after `duration`.
    pub fn after(&self, duration: Duration) {
        let handle = self.handle.clone();
        thread::spawn(move || {
            thread::sleep(duration);
            handle.stop();
        });
    }

    /// True if a stop was requested.
    pub fn is_requested(&self) -> bool {
        self.handle.is_requested()
    }

    /// The flag itself, for code that stops by flag.
    pub fn flag(&self) -> &AtomicBool {
        self.handle.flag()
    }

    /// The request itself, for a cycle, and for other threads that may stop it.
    pub fn handle(&self) -> &StopHandle {
        &self.handle
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        self.signals.close();
    }
}

const STOPPING: &str = "stopping: the axes stop, then the bus goes to Init; a second signal brakes \
    as fast as the limits allow and disables a drive that only holds its load, a third ends at once";
const HURRYING: &str = "hurrying: the run ends within 2 s, or when the slowest brake \
    shows that it is closed; a third signal ends at once, and the drives stop by their watchdogs";
const SUSPENDING: &str = "not suspended: a suspended cycle sends its axes no commands, and the \
    watchdogs of their drives would expire; Ctrl-C ends the run cleanly";

/// From now on a file that may not grow any more (RLIMIT_FSIZE) is an error of writing it, and no
/// death, also for a program that handles no signals.
pub(crate) fn survive_file_limits() {
    // Where signals cannot be caught everybody dies of them, as before.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
}

/// Handles these signals on a thread of their own until the handle closes it.
fn listen(
    which: &[i32],
    mut wishes: Wishes,
    act: impl Fn(Wish) + Send + 'static,
) -> Result<Handle, Failure> {
    let cannot = |error| Failure::new(format!("signals cannot be caught ({error}): run it where they can"));
    // A file that may not grow any more (RLIMIT_FSIZE) is an error of writing it, and no death.
    let caught = which.iter().copied().chain([SIGXFSZ]);
    let mut signals = Signals::new(caught).map_err(cannot)?;
    let handle = signals.handle();
    let listen = move || {
        for signal in signals.forever().filter(|&signal| signal != SIGXFSZ) {
            wishes.take(signal, Instant::now()).into_iter().for_each(&act);
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(listen).map_err(cannot)?;
    Ok(handle)
}

/// Ends the program, all else undone: what was changed on the machine is put back even so.
fn end_by_force() {
    let _ = machine::journal::undo_own();
    exit(BY_FORCE);
}

/// Signals of a person.
#[derive(Default)]
struct Wishes {
    last: Option<(i32, Instant)>,
    /// When the wish began that the last signal belongs to.
    begun: Option<Instant>,
    stops: u32,
}

/// A signal that was meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wish {
    signal: i32,
    /// Number of signals so far that ask for a stop, with this one.
    number: u32,
}

impl Wishes {
    /// A signal has come; `None` if it belongs to the one before.
    fn take(&mut self, signal: i32, now: Instant) -> Option<Wish> {
        let suspends = signal == SIGTSTP;
        let close = self.last.is_some_and(|(last, at)| {
            (last == SIGTSTP) == suspends && now.saturating_duration_since(at) <= ONE_WISH
        });
        // A user who keeps pressing means it.
        let fresh = self.begun.is_some_and(|begun| now.saturating_duration_since(begun) < PERSISTENT);
        self.last = Some((signal, now));
        if close && fresh {
            return None;
        }
        self.begun = Some(now);
        self.stops += u32::from(!suspends);
        Some(Wish { signal, number: self.stops })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // feature(program): SIGQUIT, SIGXCPU, SIGUSR1 and others that would end it stop in order, as SIGTERM does; a second one hurries, a third ends, signals close together are one; Ctrl-Z suspends nothing
    #[test]
    fn close_signals_count_once_and_ctrl_z_not_at_all() {
        let mut wishes = Wishes::default();
        let begin = Instant::now();
        let mut at = |milliseconds, signal| {
            wishes.take(signal, begin + Duration::from_millis(milliseconds)).map(|wish| wish.number)
        };
        assert_eq!(at(0, SIGTSTP), Some(0));
        assert_eq!(at(10, SIGTERM), Some(1));
        // `timeout` sends another, and a held key many.
        assert_eq!(at(20, SIGINT), None);
        assert_eq!((1..20).filter_map(|time| at(20 + time * 30, SIGINT)).count(), 0);
        assert_eq!(at(1_000, SIGTSTP), Some(1));
        assert_eq!(at(1_010, SIGINT), Some(2));
        assert_eq!(at(2_000, SIGHUP), Some(3));
        // Pressed again and again.
        let heard: Vec<_> = (1..=12).filter_map(|time| at(2_000 + time * 200, SIGINT)).collect();
        assert_eq!(heard, [4, 5]);
    }

    #[test]
    fn a_new_listener_has_no_pending_stop() {
        let first = Stop::listen().unwrap();
        first.after(Duration::ZERO);
        while !first.is_requested() {
            thread::yield_now();
        }
        drop(first);
        assert!(!Stop::listen().unwrap().is_requested());
    }
}
