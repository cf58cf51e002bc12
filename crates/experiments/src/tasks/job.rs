//! Periodic task: jobs that are released on a grid, use the processor for a given time, and are stamped.

use std::hint::black_box;
use std::time::Duration;

use control::pacer::OverrunPolicy;
use control::profile::RealTimeProfile;
use control::task::{CreateError, Periods, Settings, Task};
use rustix::time::{ClockId, clock_gettime};

/// Release, start and end of a job on the monotonic clock, and its processor time; all ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) release: u64,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) execution: u64,
}

/// Settings of a task's thread.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) period: Duration,
    pub(super) execution: Duration,
    pub(super) jobs: usize,
    pub(super) profile: RealTimeProfile,
}

/// Creates the task, ready to be started. A late job starts at once.
///
/// # Errors
/// The thread cannot be started.
pub(super) fn create(name: &str, plan: &Plan) -> Result<Task<Vec<Job>>, CreateError> {
    let settings =
        Settings::every(name, plan.period).with_profile(plan.profile).with_overrun(OverrunPolicy::CatchUp);
    let Plan { execution, jobs, .. } = *plan;
    // It keeps records of its own, which include the processor time of a job.
    let (task, _) =
        Settings { records: 1, ..settings }.create_loop(move |periods| run(periods, execution, jobs))?;
    Ok(task)
}

fn run(periods: &mut Periods, execution: Duration, count: usize) -> Vec<Job> {
    let work = Work::calibrated();
    let mut jobs = vec![Job { release: u64::MAX, ..Job::default() }; count];
    // Every page of it was just written.
    black_box(&mut jobs).clear();
    while let Some(release) = periods.wait_period() {
        let start = periods.now().as_nanos();
        let execution = work.execute(execution);
        let end = periods.now().as_nanos();
        jobs.push(Job { release: release.instant.as_nanos(), start, end, execution });
        if release.cycle + 1 >= count as u64 {
            break;
        }
    }
    jobs
}

/// Busy loop, and its iterations per microsecond.
#[derive(Clone, Copy, Debug)]
struct Work {
    turns_a_microsecond: u64,
}

impl Work {
    /// Measures the loop by the processor time of the calling thread.
    fn calibrated() -> Self {
        let mut turns = 1_000;
        loop {
            let before = thread_time();
            spin(turns);
            let took = thread_time() - before;
            // Long enough for the cost of reading the clock to be negligible.
            if took > CALIBRATION_NS {
                return Self { turns_a_microsecond: (turns * 1_000 / took).max(1) };
            }
            turns *= 2;
        }
    }

    /// Uses the processor until the calling thread has had it for `budget`; returns the time used, ns. It
    /// overshoots by about a microsecond.
    fn execute(self, budget: Duration) -> u64 {
        let begin = thread_time();
        let budget = budget.as_nanos() as u64;
        loop {
            let used = thread_time() - begin;
            if used >= budget {
                return used;
            }
            // Half of the remaining time, but at least a microsecond: few clock readings, and a precise
            // end.
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

/// Processor time of the calling thread, ns.
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
        // About a microsecond by construction; a machine under load may stretch some, not all twenty.
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
        let task = create("test", &plan).unwrap();
        assert!(task.grants().refusals().next().is_none());
        task.start();
        let begin = std::time::Instant::now();
        while !task.is_over() && begin.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(plan.period);
        }
        let ended = task.join().unwrap();
        let jobs = ended.value;
        // A machine that stalls may make it skip past the thirtieth.
        let last = (jobs[jobs.len() - 1].release - jobs[0].release) / 2_000_000;
        assert!(last >= 29, "{last}");
        assert_eq!(jobs.len() as u64 + ended.overruns.skipped, last + 1);
        for pair in jobs.windows(2) {
            let apart = pair[1].release - pair[0].release;
            assert!(apart > 0 && apart % 2_000_000 == 0, "{apart}");
            assert!(pair[0].end <= pair[1].start, "one job at a time");
        }
        assert!(jobs.iter().all(|job| job.release <= job.start && job.start < job.end));
        assert_eq!(create("never", &plan).unwrap().join().unwrap().value, [], "it was not started");
    }
}
