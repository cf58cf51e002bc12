//! The numbers of a running task, for any reader.

use record::CycleRecord;
use types::Spread;

use crate::newest::{Reader, Writer, newest};

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
