//! The disturbance watch: what keeps a real-time thread from doing nothing but its work and its
//! wait.
//!
//! A real-time thread sleeps once a period, until its next release. Whatever else the kernel does
//! with it is a disturbance, counted by [`Kind`], named, and placed in its period: a preemption by
//! the thread that was preferred, a sleep and a system call by the call, a page fault by the
//! memory. It is what Xenomai's mode-switch counter and `SIGDEBUG` are for programs of an ordinary
//! kernel, and shows more: there every switch is one number.
//!
//! | means | needs | shows |
//! |---|---|---|
//! | [`Means::Tracepoints`] | CAP_PERFMON and tracefs: root | everything |
//! | [`Means::SoftwareEvents`] | perf_event_paranoid 2 or less | switches and faults, in their period; few names |
//! | [`Means::Counters`] | nothing | how many switches and faults, in about which periods |
//!
//! The best there is is taken; [`Disturbances::missing`] says what it lacks. The kernel writes a
//! record of each event into a ring that a thread of the watch reads: the real-time thread pays for
//! the writing, two records a period, and for nothing else. Its wait is distinguished from any
//! other sleep by the pacer's mark on the call. With [`Detail::Backtraces`] the kernel also copies
//! the stack at some unexpected events, until there is one of each kind; it is read, unwound and
//! named by the watch.
//!
//! | module | part |
//! |---|---|
//! | `report` | findings |
//! | `of_cycle` | the watch of a bus cycle |
//! | `classify` | from events to disturbances: pure |
//! | `probe` | the kernel's events of one thread |
//! | `tracepoints` | their numbers and fields |
//! | `counters` | counts, where the kernel gives no events |
//! | `backtrace` | from a copied stack to names |

mod backtrace;
mod classify;
mod of_cycle;
mod probe;
mod report;

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use self::backtrace::Regions;
use self::classify::{Classifier, Event};
use self::probe::Probe;
use crate::sys;
use of_cycle::Counted;
use probe::Tracepoints;

pub use of_cycle::CycleWatch;
pub use report::{Counts, Disturbances, First, Frame, MOST_CAUSES, Means};
use rt::watch::{Subject, Window};
pub use types::cause::{Disturbance, Kind};

/// The system call that a pacer waits in; of 64 bits, as the kernel's trace has it.
#[allow(clippy::unnecessary_cast, reason = "32 bits on 32-bit machines")]
const WAIT: i64 = libc::SYS_clock_nanosleep as i64;

/// Bounds of what is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Numbers, names and periods.
    #[default]
    Counts,
    /// A backtrace of the first of each kind too: for debugging, for the thread pays for copies of
    /// its stack.
    Backtraces,
}

/// Watches real-time threads from one that is not, until it is dropped.
#[derive(Debug)]
pub struct Watch {
    detail: Detail,
    best: Means,
    watched: Arc<Mutex<Vec<Watched>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Starts it, with no thread to watch yet.
    ///
    /// # Errors
    /// The error of starting a thread.
    pub fn start(detail: Detail) -> io::Result<Self> {
        let (watched, stop) = (Arc::default(), Arc::new(AtomicBool::new(false)));
        let thread = thread::Builder::new().name("watch".into()).spawn({
            let (watched, stop) = (Arc::clone(&watched), Arc::clone(&stop));
            move || {
                // Relaxed: the flag carries nothing but itself.
                while !stop.load(Ordering::Relaxed) {
                    all(&watched).iter_mut().for_each(Watched::look);
                    thread::park_timeout(LOOK_AGAIN);
                }
            }
        })?;
        Ok(Self { detail, best: Means::Tracepoints, watched, stop, thread: Some(thread) })
    }

    /// Limits threads added from now on to these means or worse ones. Each costs the threads less
    /// than the one before; [`Means::Counters`] costs nothing.
    #[must_use]
    pub fn at_best(mut self, means: Means) -> Self {
        self.best = means;
        self
    }

    /// Watches one more thread by the best available means; the report names the missing ones. Add
    /// it before its first release.
    pub fn add(&self, subject: Subject) {
        let watched = Watched::new(subject, self.detail, self.best);
        all(&self.watched).push(watched);
    }

    /// Findings so far, of each thread in the order in which they were added.
    #[must_use]
    pub fn read(&self) -> Vec<Disturbances> {
        let mut watched = all(&self.watched);
        watched.iter_mut().for_each(Watched::look);
        watched.iter_mut().map(Watched::report).collect()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

fn all(watched: &Mutex<Vec<Watched>>) -> MutexGuard<'_, Vec<Watched>> {
    watched.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One thread under watch.
#[derive(Debug)]
struct Watched {
    subject: Subject,
    missing: Vec<String>,
    classifier: Classifier,
    eye: Eye,
    /// Backtraces read so far.
    backtraces: HashMap<Kind, Vec<Frame>>,
}

/// By what it is watched.
#[derive(Debug)]
enum Eye {
    Probe(Box<Probe>),
    Counters(Counted),
}

impl Watched {
    fn new(subject: Subject, detail: Detail, best: Means) -> Self {
        let mut missing = Vec::new();
        let mut expected = Vec::new();
        for name in &subject.expected {
            match classify::call_number(name) {
                Some(number) => expected.push(number),
                None => missing.push(format!("this machine has no system call `{name}`")),
            }
        }
        if detail == Detail::Backtraces && sys::REGISTER_COUNT == 0 {
            missing.push("backtraces are there on x86-64 and aarch64 only".to_owned());
        }
        let classifier = Classifier::new(subject.window.clone(), expected.clone());
        let eye = Self::eye(&subject, &expected, (detail, best), &mut missing);
        Self { subject, missing, classifier, eye, backtraces: HashMap::new() }
    }

    /// The best there is, up to `best`.
    fn eye(
        subject: &Subject,
        expected: &[i64],
        (detail, best): (Detail, Means),
        missing: &mut Vec<String>,
    ) -> Eye {
        let stacks = detail == Detail::Backtraces;
        let full = || {
            let tracepoints = Tracepoints::read()?;
            let probe = Probe::with_tracepoints(subject.tid, tracepoints, expected, stacks);
            probe.map_err(|error| {
                format!("the kernel's tracepoints cannot be had ({error}): they need root, or CAP_PERFMON")
            })
        };
        let partial = || {
            let probe = Probe::with_software_events(subject.tid);
            probe.map_err(|error| {
                format!(
                    "the kernel's software events cannot be had ({error}): they need perf_event_paranoid 2 or less"
                )
            })
        };
        if best == Means::Tracepoints {
            match full() {
                Ok(probe) => return Eye::Probe(Box::new(probe)),
                Err(refused) => missing.push(refused),
            }
        }
        if stacks {
            missing.push("without tracepoints there are no backtraces".to_owned());
        }
        if best != Means::Counters {
            match partial() {
                Ok(probe) => {
                    missing.push(WITHOUT_TRACEPOINTS.to_owned());
                    return Eye::Probe(Box::new(probe));
                }
                Err(refused) => missing.push(refused),
            }
        }
        missing.push(WITHOUT_EVENTS.to_owned());
        Eye::Counters(Counted::default())
    }

    /// Takes what has happened since the last look.
    fn look(&mut self) {
        let Self { subject, classifier, eye, .. } = self;
        match eye {
            Eye::Counters(counted) => counted.look(subject, classifier.tally_mut()),
            Eye::Probe(probe) => {
                let software = probe.means() == Means::SoftwareEvents;
                let glimpse = software.then(|| of_cycle::system_call(subject.tid)).flatten();
                let mut regions = Regions::default();
                let mut region = |address| regions.name(address);
                probe.drain(|at, event| classifier.take(at, event, &mut region));
                if let Some(number) = glimpse {
                    classifier.take(0, Event::Seen { number }, &mut region);
                }
                let firsts = &classifier.tally().firsts;
                let seen = |kind| firsts.iter().any(|first| first.kind == kind && first.stack.is_some());
                probe.ask_for_stacks(seen);
            }
        }
    }

    fn report(&mut self) -> Disturbances {
        let tally = self.classifier.tally();
        let first = |raw: &classify::Raw| {
            let backtrace = match &raw.stack {
                None => Vec::new(),
                Some((_, stack)) => {
                    self.backtraces.entry(raw.kind).or_insert_with(|| backtrace::backtrace(stack)).clone()
                }
            };
            First {
                kind: raw.kind,
                name: raw.name.clone(),
                period: raw.period,
                at_ns: raw.at_ns,
                backtrace,
                backtrace_period: raw.stack.as_ref().map(|(period, _)| *period),
            }
        };
        Disturbances {
            name: self.subject.name.clone(),
            tid: self.subject.tid,
            means: match &self.eye {
                Eye::Probe(probe) => probe.means(),
                Eye::Counters(_) => Means::Counters,
            },
            missing: self.missing.clone(),
            counts: tally.counts,
            causes: tally.causes(),
            firsts: tally.firsts.iter().map(first).collect(),
            lost: tally.lost,
        }
    }
}

/// Interval at which the rings are read.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
const WITHOUT_TRACEPOINTS: &str = "without tracepoints a system call that does not sleep is not seen, nor a page fault \
                                   inside one; a sleep has a name only if it is long, and one that lasts beyond the next \
                                   release is taken for the wait: it shows as an overrun";
const WITHOUT_EVENTS: &str = "without events the thread's counters are read now and then: system calls are not seen, and a \
                              period is that of the look";
