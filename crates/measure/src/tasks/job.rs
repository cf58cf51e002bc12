//! One periodic task: jobs that are released on a grid, use the processor for a given time, and are stamped.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ethercat::time::Instant;
use runtime::clock::{Clock, MonotonicClock};
use runtime::pacer::Grid;
use runtime::profile::RealTimeProfile;
use rustix::time::{ClockId, clock_gettime};

/// When a job was released, started and ended, on the monotonic clock, and what it used of the processor; all ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) release: u64,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) execution: u64,
}

/// What a task's thread does.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) period: Duration,
    pub(super) execution: Duration,
    pub(super) jobs: usize,
    pub(super) profile: RealTimeProfile,
}

/// Runs the jobs of a task on the calling thread; a job that is late starts at once, none is skipped. `meet` is asked
/// when all is ready, and says when the first is released, or that there will be none. Says what the system refused, too.
pub(super) fn run(
    plan: &Plan,
    meet: impl FnOnce() -> Option<Instant>,
    stop: &AtomicBool,
) -> (Vec<Job>, Vec<String>) {
    let granted = plan.profile.apply();
    let work = Work::calibrated();
    let mut jobs = vec![Job { release: u64::MAX, ..Job::default() }; plan.jobs];
    // Every page of it was just written.
    black_box(&mut jobs).clear();
    let Some(first) = meet() else { return (jobs, Vec::new()) };
    let grid = Grid::new(first, plan.period);
    let mut index = 0;
    while jobs.len() < plan.jobs && !stop.load(Ordering::Relaxed) {
        let release = grid.release(index);
        index += 1;
        MonotonicClock.sleep_until(release);
        let begin = MonotonicClock.now();
        let execution = work.execute(plan.execution);
        let end = MonotonicClock.now();
        jobs.push(Job {
            release: release.as_nanos(),
            start: begin.as_nanos(),
            end: end.as_nanos(),
            execution,
        });
    }
    (jobs, granted.refusals().collect())
}

/// A busy loop, and how many turns of it take a microsecond.
#[derive(Clone, Copy, Debug)]
struct Work {
    turns_a_microsecond: u64,
}

impl Work {
    /// Measures the loop, on the processor time of the calling thread.
    fn calibrated() -> Self {
        let mut turns = 1_000;
        loop {
            let before = thread_time();
            spin(turns);
            let took = thread_time() - before;
            // Long enough for the clock's own reading not to count.
            if took > CALIBRATION_NS {
                return Self { turns_a_microsecond: (turns * 1_000 / took).max(1) };
            }
            turns *= 2;
        }
    }

    /// Uses the processor until the calling thread has had it for `budget`; says for how long it had it, ns. It
    /// overshoots by about a microsecond.
    fn execute(self, budget: Duration) -> u64 {
        let begin = thread_time();
        let budget = budget.as_nanos() as u64;
        loop {
            let used = thread_time() - begin;
            if used >= budget {
                return used;
            }
            // Half of what is left, and not less than a microsecond: few readings of the clock, and a sharp end.
            let piece = ((budget - used) / 2).clamp(1_000, LONGEST_PIECE_NS);
            spin(piece * self.turns_a_microsecond / 1_000);
        }
    }
}

const CALIBRATION_NS: u64 = 200_000;
const LONGEST_PIECE_NS: u64 = 50_000;

#[inline(never)]
fn spin(turns: u64) {
    for turn in 0..turns {
        black_box(turn);
    }
}

/// What the calling thread has had of the processor, ns.
fn thread_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_uses_at_least_its_time_and_not_much_more() {
        let work = Work::calibrated();
        let mut shortest = u64::MAX;
        for _ in 0..20 {
            let used = work.execute(Duration::from_micros(500));
            assert!(used >= 500_000, "{used}");
            shortest = shortest.min(used);
        }
        // By construction about a microsecond; a machine under load may stretch some, not all twenty.
        assert!(shortest < 1_000_000, "{shortest}");
    }

    #[test]
    fn jobs_are_released_on_the_grid_one_after_the_other() {
        let plan = Plan {
            period: Duration::from_millis(2),
            execution: Duration::from_micros(100),
            jobs: 30,
            profile: RealTimeProfile::ORDINARY,
        };
        let (jobs, refusals) = run(&plan, || Some(MonotonicClock.now()), &AtomicBool::new(false));
        assert_eq!((jobs.len(), refusals.len()), (30, 0));
        for pair in jobs.windows(2) {
            assert_eq!(pair[1].release - pair[0].release, 2_000_000);
            assert!(pair[0].end <= pair[1].start, "one job at a time");
        }
        assert!(jobs.iter().all(|job| job.release <= job.start && job.start < job.end));
        assert_eq!(run(&plan, || None, &AtomicBool::new(false)).0, []);
    }
}
