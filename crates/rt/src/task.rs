//! Real-time tasks in addition to the cycle, each with its own period.
//!
//! | the papers (Xenomai) | here |
//! |---|---|
//! | `rt_task_create` | [`Settings::create`]: name, priority, stack, CPU; reports its grants |
//! | `rt_task_set_periodic` | [`Settings::every`] |
//! | `rt_task_start` | [`Task::start`], [`Task::start_at`] |
//! | `rt_task_wait_period` | [`Periods::wait_period`] |
//! | `rt_timer_read` | [`Periods::now`], [`crate::clock::MonotonicClock`] |
//! | `rt_task_delete` | [`Task::stop`], [`Task::join`] |
//! | the mode-switch counter, `SIGDEBUG` | [`Task::subject`], watched by `diagnose` |
//!
//! Releases are on the fixed grid of a [`crate::pacer`]. Every job leaves a
//! [`record::CycleRecord`], release, start and end, in a bounded [ring](Records) for a reader of
//! all of them, and a line of numbers, [`Live`], for an occasional reader. A task exchanges data
//! with others through `ipc`'s channels; it allocates nothing, takes no lock, and its one system
//! call is the sleep.
//!
//! ```
//! use std::time::Duration;
//! use onbeat_rt::task::Settings;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut position = 0.0;
//! let settings = Settings::every("actuator", Duration::from_millis(10)).with_priority(70);
//! let (task, _records) = settings.create(move |_job| position += 0.1)?;
//! println!("{}", task.grants());
//! task.start();
//! # std::thread::sleep(Duration::from_millis(30));
//! let ended = task.join()?;
//! println!("{} jobs", ended.live.jobs);
//! # Ok(())
//! # }
//! ```

mod live;
mod periods;

use std::fmt;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant as Elapsed};

pub use crate::watch::Subject;
use crate::watch::Window;
use thiserror::Error;
use types::Instant;

use crate::clock::{Clock, MonotonicClock};
use crate::pacer::{OverrunPolicy, Overruns};
use crate::profile::{Granted, Grants, RealTimeProfile, Residency, Scheduling};

pub use live::{Live, LiveReader};
pub use periods::{Job, Periods, Records};

/// Settings of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Its name; the kernel shows the first 15 bytes.
    pub name: String,
    /// Time from release to release.
    pub period: Duration,
    /// Requests of its thread to the system.
    pub profile: RealTimeProfile,
    /// Stack for the body, in bytes. All of it is touched before the first job if the profile
    /// requests residency.
    pub stack: usize,
    /// Policy for releases that a job ran past.
    pub overrun: OverrunPolicy,
    /// Records of jobs that wait to be read, at most; records beyond are dropped and counted.
    pub records: usize,
}

impl Settings {
    /// A task with this name and period: SCHED_FIFO 80, memory locked, 128 KiB of stack, any CPU.
    /// Missed releases are skipped. The ring holds the records of ten seconds, 8192 at most.
    #[must_use]
    pub fn every(name: impl Into<String>, period: Duration) -> Self {
        let ten_seconds = 10_000_000_000 / period.as_nanos().max(1);
        Self {
            name: name.into(),
            period,
            profile: RealTimeProfile::default(),
            stack: 128 << 10,
            overrun: OverrunPolicy::default(),
            records: usize::try_from(ten_seconds).unwrap_or(usize::MAX).clamp(64, 8192),
        }
    }

    /// The same with SCHED_FIFO at this priority, 1 to 99; higher wins.
    #[must_use]
    pub fn with_priority(mut self, priority: u8) -> Self {
        self.profile.scheduling = Some(Scheduling::Fifo { priority });
        self
    }

    /// The same on this CPU.
    #[must_use]
    pub fn on_cpu(mut self, cpu: usize) -> Self {
        self.profile.cpu = Some(cpu);
        self
    }

    /// The same with this many bytes of stack, 64 KiB or more.
    #[must_use]
    pub fn with_stack(mut self, bytes: usize) -> Self {
        self.stack = bytes;
        self
    }

    /// The same with another profile altogether.
    #[must_use]
    pub fn with_profile(mut self, profile: RealTimeProfile) -> Self {
        self.profile = profile;
        self
    }

    /// The same with another overrun policy.
    #[must_use]
    pub fn with_overrun(mut self, policy: OverrunPolicy) -> Self {
        self.overrun = policy;
        self
    }

    /// Makes the task: its thread exists, with all grants, and waits for [`Task::start`]. `body` is
    /// then called once a period.
    ///
    /// # Errors
    /// Settings that no thread can have, or a thread that cannot be started. Requests of the
    /// profile that the system refuses are no error: see [`Task::grants`].
    pub fn create(
        self,
        mut body: impl FnMut(&Job<'_>) + Send + 'static,
    ) -> Result<(Task, Records), CreateError> {
        self.create_loop(move |periods| {
            while let Some(release) = periods.wait_period() {
                body(&Job { release, periods });
            }
        })
    }

    /// The same with a body that is called once and waits for its periods itself. Before its first
    /// [`Periods::wait_period`] it is not real-time yet: there it allocates and opens its
    /// resources. It returns when that gives `None`, or earlier.
    ///
    /// # Errors
    /// As for [`Settings::create`].
    pub fn create_loop<T: Send + 'static>(
        self,
        body: impl FnOnce(&mut Periods) -> T + Send + 'static,
    ) -> Result<(Task<T>, Records), CreateError> {
        self.check()?;
        crate::panic::prepare();
        let name = self.name.clone();
        let (start, starting) = mpsc::channel();
        let (granted, granting) = mpsc::channel();
        let shared = Arc::new(TaskState::default());
        let (periods, records, live) = Periods::new(&self, Arc::clone(&shared), starting);
        let profile = RealTimeProfile {
            memory: self.profile.memory.map(|memory| Residency { stack: self.stack, ..memory }),
            ..self.profile
        };
        let thread = thread::Builder::new()
            .name(name.clone())
            .stack_size(self.stack.saturating_add(STACK_BELOW_BODY))
            .spawn(move || run(&profile, periods, &granted, body))
            .map_err(|error| CreateError::Thread { name: name.clone(), error })?;
        let Ok((tid, grants)) = granting.recv() else {
            return Err(CreateError::Thread { name, error: io::Error::other("it ended at once") });
        };
        let task =
            Task { name, tid, period: self.period, grants, start, shared, live, thread: Some(thread) };
        Ok((task, records))
    }

    fn check(&self) -> Result<(), CreateError> {
        let wrong = |what| Err(CreateError::Settings { name: self.name.clone(), what });
        if self.name.is_empty() || self.name.contains('\0') {
            return wrong("a name without a zero byte, at least one letter long, is expected".to_owned());
        }
        if self.period.is_zero() {
            return wrong("its period is 0: more than that is expected".to_owned());
        }
        if !(LEAST_STACK..=MOST_STACK).contains(&self.stack) {
            let (least, most) = (LEAST_STACK >> 10, MOST_STACK >> 10);
            return wrong(format!(
                "its stack is {} bytes: {least} KiB to {most} KiB are expected",
                self.stack
            ));
        }
        Ok(())
    }
}

/// On the task's thread: profile, body, profile given back.
fn run<T>(
    profile: &RealTimeProfile,
    mut periods: Periods,
    granted: &mpsc::Sender<(i32, Grants)>,
    body: impl FnOnce(&mut Periods) -> T,
) -> Finished<T> {
    let _mark = crate::panic::mark();
    let mine = Granted::ask(profile);
    // The creator of the task waits for this.
    let _ = granted.send((machine::task::current(), mine.grants().clone()));
    periods.set_spin(mine.spin_margin());
    // Nothing of the body is looked at after a panic but the numbers of its periods.
    let value = panic::catch_unwind(AssertUnwindSafe(|| body(&mut periods)));
    let (live, overruns) = periods.end();
    let not_put_back = mine.release();
    Finished { value, live, overruns, not_put_back }
}

struct Finished<T> {
    value: thread::Result<T>,
    live: Live,
    overruns: Overruns,
    not_put_back: Vec<String>,
}

/// State that a task's thread and its handle share.
#[derive(Debug, Default)]
struct TaskState {
    stop: AtomicBool,
    /// The body has reached its first wait, or has ended.
    ready: AtomicBool,
    /// Records dropped because the ring was full.
    dropped: AtomicU64,
    /// From the first release to the end.
    window: Window,
}

/// A task. Dropped, it is stopped and waited for.
pub struct Task<T = ()> {
    name: String,
    tid: i32,
    period: Duration,
    grants: Grants,
    start: mpsc::Sender<Instant>,
    shared: Arc<TaskState>,
    live: LiveReader,
    thread: Option<JoinHandle<Finished<T>>>,
}

impl<T> Task<T> {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kernel's number of its thread.
    #[must_use]
    pub fn tid(&self) -> i32 {
        self.tid
    }

    /// Time from release to release.
    #[must_use]
    pub fn period(&self) -> Duration {
        self.period
    }

    /// Requests of its thread to the system, and the grants.
    #[must_use]
    pub fn grants(&self) -> &Grants {
        &self.grants
    }

    /// Releases it for the first time one period from now. A task that was started is not started
    /// again.
    pub fn start(&self) {
        self.start_at(MonotonicClock.now() + self.period);
    }

    /// Releases it for the first time at `first`: several tasks with the same one are released
    /// together.
    pub fn start_at(&self, first: Instant) {
        // A task that has ended does not listen.
        let _ = self.start.send(first);
    }

    /// Waits until the body is in its first [`Periods::wait_period`], or has ended; `false` if that
    /// takes longer than `timeout`.
    #[must_use]
    pub fn wait_until_ready(&self, timeout: Duration) -> bool {
        let begin = Elapsed::now();
        // Partner: the Release store in `Periods`.
        while !self.shared.ready.load(Ordering::Acquire) {
            if begin.elapsed() > timeout {
                return false;
            }
            thread::sleep(LOOK_AGAIN);
        }
        true
    }

    /// Its figures, now.
    #[must_use]
    pub fn live(&self) -> Live {
        self.live.read()
    }

    /// Its figures, for any number of threads.
    #[must_use]
    pub fn live_reader(&self) -> LiveReader {
        self.live.clone()
    }

    /// It, to be watched: see [`crate::watch`].
    #[must_use]
    pub fn subject(&self) -> Subject {
        let window = self.shared.window.clone();
        Subject { name: self.name.clone(), tid: self.tid, window, expected: Vec::new() }
    }

    /// True if it has ended by itself.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Requests its end: its next [`Periods::wait_period`] returns `None`.
    pub fn stop(&self) {
        // Relaxed: the flag carries nothing but itself; the channel below orders itself.
        self.shared.stop.store(true, Ordering::Relaxed);
        let _ = self.start.send(Instant::EPOCH);
    }

    /// Requests its end, and waits for it: a period at most, if the body keeps to its waits.
    ///
    /// # Errors
    /// Panic of its body.
    pub fn join(mut self) -> Result<Ended<T>, Panicked> {
        self.stop();
        let thread = self.thread.take().expect("only `join` and `drop` take it");
        // The thread catches what its body panics with.
        let finished = thread.join().unwrap_or_else(|panic| panic::resume_unwind(panic));
        let Finished { value, live, overruns, not_put_back } = finished;
        let value = value.map_err(|panic| Panicked { name: self.name.clone(), message: words(&*panic) })?;
        Ok(Ended { value, live, overruns, not_put_back })
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl<T> fmt::Debug for Task<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, tid, period, .. } = self;
        f.debug_struct("Task").field("name", name).field("tid", tid).field("period", period).finish()
    }
}

/// Outcome of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended<T> {
    /// Return value of its body.
    pub value: T,
    /// Its last numbers.
    pub live: Live,
    /// Jobs that ran past their next release.
    pub overruns: Overruns,
    /// Grants to its thread that could not be given back, each a sentence.
    pub not_put_back: Vec<String>,
}

/// Reason that there is no task.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CreateError {
    /// No thread can be like this.
    #[error("task `{name}`: {what}")]
    Settings {
        /// The task.
        name: String,
        /// The difference, as expected and found.
        what: String,
    },
    /// The system starts no thread.
    #[error("task `{name}`: its thread does not start: {error}")]
    Thread {
        /// The task.
        name: String,
        /// The system's error.
        error: io::Error,
    },
}

/// A task's body panicked.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("task `{name}` panicked: {message}")]
pub struct Panicked {
    /// The task.
    pub name: String,
    /// Its message.
    pub message: String,
}

/// Message of a panic.
#[must_use]
pub fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a word".into())
}

/// Frames of a call stack below the body: the start of a thread, and the profile.
const STACK_BELOW_BODY: usize = 96 << 10;
const LEAST_STACK: usize = 64 << 10;
/// All of it is locked into memory.
const MOST_STACK: usize = 64 << 20;
const LOOK_AGAIN: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests;
