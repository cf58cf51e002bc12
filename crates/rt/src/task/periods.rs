//! The task's own side: from release to release.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

use record::{CycleRecord, Phase};
use rtrb::{Consumer, Producer, RingBuffer};
use types::Instant;

use super::live::{Live, LiveReader, LiveWriter, live};
use super::{Settings, TaskState};
use crate::clock::{Clock, MonotonicClock};
use crate::pacer::{OverrunPolicy, Overruns, Pacer, Release};
use crate::sys::usage;

/// The periods of a task, on its own thread.
#[derive(Debug)]
pub struct Periods {
    pacer: Pacer<MonotonicClock>,
    stops_on_overrun: bool,
    /// Says when the first release is; taken by the first wait.
    starting: Option<mpsc::Receiver<Instant>>,
    /// The job that runs.
    job: Option<CycleRecord>,
    records: Producer<CycleRecord>,
    dropped: u64,
    /// Waits for a release so far.
    waits: u64,
    live: LiveWriter,
    shared: Arc<TaskState>,
}

impl Periods {
    pub(super) fn new(
        settings: &Settings,
        shared: Arc<TaskState>,
        starting: mpsc::Receiver<Instant>,
    ) -> (Self, Records, LiveReader) {
        let (mut producer, mut consumer) = RingBuffer::new(settings.records.max(1));
        // Every page is touched: the first round faults none in.
        while producer.push(CycleRecord::begin(0, 0, 0)).is_ok() {}
        while consumer.pop().is_ok() {}
        let (writer, reader) = live();
        let periods = Self {
            pacer: Pacer::new(MonotonicClock, settings.period).with_policy(settings.overrun),
            stops_on_overrun: settings.overrun == OverrunPolicy::Stop,
            starting: Some(starting),
            job: None,
            records: producer,
            dropped: 0,
            waits: 0,
            live: writer,
            shared: Arc::clone(&shared),
        };
        (periods, Records { ring: consumer, shared }, reader)
    }

    pub(super) fn set_spin(&mut self, margin: Duration) {
        self.pacer.set_spin(margin);
    }

    /// Ends the job, if one runs, and waits for the next release; the first time, for
    /// [`super::Task::start`]. `None`: the end of the task was requested, or it has overrun and its
    /// policy is [`OverrunPolicy::Stop`].
    ///
    /// It allocates nothing, takes no lock, and sleeps by its one system call.
    pub fn wait_period(&mut self) -> Option<Release> {
        self.end_job();
        if let Some(starting) = self.starting.take() {
            // Partner: the Acquire load in `Task::wait_until_ready`.
            self.shared.ready.store(true, Ordering::Release);
            let first = starting.recv().ok()?;
            self.pacer.restart_at(first);
            self.open_window(first);
        }
        // Relaxed: the flag carries nothing but itself.
        if self.shared.stop.load(Ordering::Relaxed) {
            return self.over();
        }
        self.waits += 1;
        self.shared.window.wait(self.waits);
        let release = self.pacer.wait();
        let over = self.stops_on_overrun && release.after_overrun;
        if over || self.shared.stop.load(Ordering::Relaxed) {
            return self.over();
        }
        let now = self.now().as_nanos();
        let record = CycleRecord::begin(release.cycle, release.instant.as_nanos(), now);
        let skipped = u32::try_from(release.skipped).unwrap_or(u32::MAX);
        self.job = Some(CycleRecord { skipped, ..record });
        Some(release)
    }

    /// Now, on the clock of the releases: CLOCK_MONOTONIC.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.pacer.clock().now()
    }

    /// Time from release to release.
    #[must_use]
    pub fn period(&self) -> Duration {
        self.pacer.grid().period()
    }

    /// The overruns so far.
    #[must_use]
    pub fn overruns(&self) -> Overruns {
        self.pacer.overruns()
    }

    /// Requests the task's end after this job.
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }

    /// The last system calls before the first release.
    fn open_window(&self, first: Instant) {
        let Self { pacer, shared, .. } = self;
        shared.window.count_from(usage::of_thread());
        shared.window.open(first, pacer.grid().period(), pacer.spin());
    }

    /// There will be no more periods.
    fn over(&self) -> Option<Release> {
        self.shared.window.close(self.now());
        None
    }

    fn end_job(&mut self) {
        let Some(mut record) = self.job.take() else { return };
        let now = self.now();
        record.finish(Phase::Update, now.as_nanos());
        record.overrun = now > self.pacer.grid().release(record.cycle.saturating_add(1));
        if self.records.push(record).is_err() {
            self.dropped += 1;
            self.shared.dropped.store(self.dropped, Ordering::Relaxed);
        }
        self.live.publish(&record, self.dropped);
    }

    /// The body has returned.
    pub(super) fn end(mut self) -> (Live, Overruns) {
        self.end_job();
        self.over();
        self.shared.ready.store(true, Ordering::Release);
        (self.live.live(), self.pacer.overruns())
    }
}

/// Argument of a task's body.
#[derive(Debug)]
pub struct Job<'a> {
    /// Its release.
    pub release: Release,
    pub(super) periods: &'a Periods,
}

impl Job<'_> {
    /// Now, on the clock of the releases: CLOCK_MONOTONIC.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.periods.now()
    }

    /// Time from release to release.
    #[must_use]
    pub fn period(&self) -> Duration {
        self.periods.period()
    }

    /// Requests the task's end after this job.
    pub fn stop(&self) {
        self.periods.stop();
    }
}

/// The records of a task's jobs, for a thread that is not real-time.
#[derive(Debug)]
pub struct Records {
    ring: Consumer<CycleRecord>,
    shared: Arc<TaskState>,
}

impl Records {
    /// The next job's, oldest first: its execution is the phase [`Phase::Update`].
    pub fn next_record(&mut self) -> Option<CycleRecord> {
        self.ring.pop().ok()
    }

    /// Records that were dropped because others were not taken.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// True if the task has ended: no records will follow the present ones.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.ring.is_abandoned()
    }
}
