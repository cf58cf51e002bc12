//! The task's own side: from release to release.

use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use record::{CycleRecord, Phase};
use rtrb::{Consumer, Producer, RingBuffer};
use types::{Instant, Spread};

use super::{Settings, TaskState};
use crate::clock::{Clock, MonotonicClock};
use crate::newest::{Reader, Writer, newest};
use crate::pacer::{OverrunPolicy, Overruns, Pacer, Release};
use crate::sys;

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
        shared.window.count_from(sys::of_thread());
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

/// Figures of a task: the last job, and all since the first. Times are ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// Jobs done.
    pub jobs: u64,
    /// Number of the last job: its place on the grid.
    pub cycle: u64,
    /// Release of the last job, CLOCK_MONOTONIC.
    pub release_ns: u64,
    /// Start to start.
    pub period: Spread,
    /// Release to start.
    pub wakeup_latency: Spread,
    /// Release to end.
    pub response: Spread,
    /// Start to end, including interruptions.
    pub execution: Spread,
    /// Jobs that ran past their next release.
    pub overruns: u64,
    /// Releases that were skipped.
    pub skipped: u64,
    /// Records dropped because the ring was full.
    pub dropped_records: u64,
}

/// Reads a task's numbers, from any thread.
#[derive(Clone, Debug)]
pub struct LiveReader {
    newest: Reader<Live>,
}

impl LiveReader {
    /// The newest, all of one job.
    #[must_use]
    pub fn read(&self) -> Live {
        self.newest.read()
    }
}

/// The task's end.
#[derive(Debug)]
pub(super) struct LiveWriter {
    newest: Writer<Live>,
    live: Live,
    last: Option<CycleRecord>,
    /// Sums of period, wake-up latency, response and execution; the first has one job less.
    sums: [u64; 4],
}

pub(super) fn live() -> (LiveWriter, LiveReader) {
    let (writer, reader) = newest(&Live::default());
    let writer = LiveWriter { newest: writer, live: Live::default(), last: None, sums: [0; 4] };
    (writer, LiveReader { newest: reader })
}

impl LiveWriter {
    /// One more job.
    pub(super) fn publish(&mut self, record: &CycleRecord, dropped_records: u64) {
        let live = &mut self.live;
        live.jobs += 1;
        live.cycle = record.cycle;
        live.release_ns = record.release_ns;
        live.overruns += u64::from(record.overrun);
        live.skipped += u64::from(record.skipped);
        live.dropped_records = dropped_records;
        if let Some(last) = &self.last {
            let period = record.start_ns.saturating_sub(last.start_ns);
            add(&mut live.period, &mut self.sums[0], live.jobs - 1, period);
        }
        add(&mut live.wakeup_latency, &mut self.sums[1], live.jobs, record.wakeup_latency());
        add(&mut live.response, &mut self.sums[2], live.jobs, record.response_time());
        add(&mut live.execution, &mut self.sums[3], live.jobs, record.end_ns - record.start_ns);
        self.last = Some(*record);
        self.newest.write(|newest| *newest = *live);
    }

    pub(super) fn live(&self) -> Live {
        self.live
    }
}

/// One more of `count` values.
fn add(spread: &mut Spread, sum: &mut u64, count: u64, value: u64) {
    *sum = sum.saturating_add(value);
    spread.last_ns = value;
    spread.minimum_ns = if count == 1 { value } else { spread.minimum_ns.min(value) };
    spread.maximum_ns = spread.maximum_ns.max(value);
    spread.mean_ns = *sum / count.max(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_match_the_jobs() {
        let (mut writer, reader) = live();
        assert_eq!(reader.read(), Live::default());
        for (cycle, start, end) in [(0, 1_010, 1_100), (1, 2_030, 2_090), (3, 4_000, 5_200)] {
            let mut record = CycleRecord::begin(cycle, 1_000 * (cycle + 1), start);
            record.end_ns = end;
            record.overrun = end > 1_000 * (cycle + 2);
            record.skipped = u32::from(cycle == 3);
            writer.publish(&record, cycle);
        }
        let read = reader.read();
        assert_eq!(read, writer.live());
        let spread =
            |last_ns, minimum_ns, maximum_ns, mean_ns| Spread { last_ns, minimum_ns, maximum_ns, mean_ns };
        let expected = Live {
            jobs: 3,
            cycle: 3,
            release_ns: 4_000,
            period: spread(1_970, 1_020, 1_970, 1_495),
            wakeup_latency: spread(0, 0, 30, 13),
            response: spread(1_200, 90, 1_200, 463),
            execution: spread(1_200, 60, 1_200, 450),
            overruns: 1,
            skipped: 1,
            dropped_records: 3,
        };
        assert_eq!(read, expected);
    }
}
