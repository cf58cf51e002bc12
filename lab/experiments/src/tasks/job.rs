//! Periodic task: jobs that are released on a grid, are busy for a given time, and are stamped.

use std::hint::black_box;
use std::io;
use std::time::Duration;

use rt::pacer::OverrunPolicy;
use rt::profile::RealTimeProfile;
use rt::task::{CreateError, Periods, Settings, Task};

use super::outside::Output;
use super::share::Shared;
use crate::clocks::thread_time;
use serde::{Deserialize, Serialize};

/// Release, start and end of a job on the monotonic clock, and its processor time; all ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) release: u64,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) execution: u64,
    /// Edges of its output up and down, stamped outside by a clock of their own; 0 for one that was
    /// not seen.
    #[serde(default)]
    pub(crate) outside: [u64; 2],
}

/// Way in which a job is busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Busy {
    /// In blocks of elapsed time of at most 0.1 ms, as the paper spins: a preempted block ends when
    /// so much time has passed.
    Blocks,
    /// Until its thread has used so much processor time.
    ProcessorTime,
}

impl Busy {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Blocks, Self::ProcessorTime];

    /// Name in tables.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Blocks => "blocks of elapsed time",
            Self::ProcessorTime => "processor time",
        }
    }

    /// Name in files.
    pub(crate) const fn slug(self) -> &'static str {
        match self {
            Self::Blocks => "blocks",
            Self::ProcessorTime => "processor-time",
        }
    }
}

/// Settings of a task's thread.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) period: Duration,
    pub(super) execution: Duration,
    pub(super) jobs: usize,
    pub(super) profile: RealTimeProfile,
    pub(super) busy: Busy,
    /// Its whole job is one critical section; else each block is.
    pub(super) shares_whole: bool,
}

/// A task that comes to its jobs.
pub(super) type Tasked = Task<io::Result<Vec<Job>>>;

/// Creates the task, ready to be started. A late job starts at once.
///
/// # Errors
/// The thread cannot be started.
pub(super) fn create(
    name: &str,
    plan: &Plan,
    mut share: Box<dyn Shared>,
    mut output: Box<dyn Output>,
) -> Result<Tasked, CreateError> {
    let settings =
        Settings::every(name, plan.period).with_profile(plan.profile).with_overrun(OverrunPolicy::CatchUp);
    let plan = plan.clone();
    // It keeps separate records, which include the processor time of a job.
    let (task, _) = Settings { records: 1, ..settings }
        .create_loop(move |periods| run(periods, &plan, &mut *share, &mut *output))?;
    Ok(task)
}

fn run(
    periods: &mut Periods,
    plan: &Plan,
    share: &mut dyn Shared,
    output: &mut dyn Output,
) -> io::Result<Vec<Job>> {
    let work = Work::calibrated();
    let mut jobs = vec![Job { release: u64::MAX, ..Job::default() }; plan.jobs];
    // Every page of it was just written.
    black_box(&mut jobs).clear();
    let (sections, length) = if plan.shares_whole { (1, plan.execution) } else { blocks(plan.execution) };
    while let Some(release) = periods.wait_period() {
        let (start, before) = (periods.now().as_nanos(), thread_time());
        output.set(jobs.len(), true)?;
        for _ in 0..sections {
            share.within(&mut || match plan.busy {
                Busy::Blocks => elapse_in_blocks(periods, length),
                Busy::ProcessorTime => work.execute(length),
            })?;
        }
        output.set(jobs.len(), false)?;
        let (execution, end) = (thread_time() - before, periods.now().as_nanos());
        jobs.push(Job { release: release.instant.as_nanos(), start, end, execution, outside: [0; 2] });
        if release.cycle + 1 >= plan.jobs as u64 {
            break;
        }
    }
    Ok(jobs)
}

/// Longest block of busy time: tau2's 1.5 ms are fifteen in the paper.
const BLOCK: Duration = Duration::from_micros(100);

/// Number of equal blocks of this time, and their length.
fn blocks(execution: Duration) -> (u32, Duration) {
    let count = u32::try_from(execution.as_nanos().div_ceil(BLOCK.as_nanos())).unwrap_or(u32::MAX).max(1);
    (count, execution / count)
}

/// Spins block after block until so much time has passed in each, whatever else ran meanwhile.
fn elapse_in_blocks(periods: &Periods, execution: Duration) {
    let (count, block) = blocks(execution);
    for _ in 0..count {
        let end = periods.now() + block;
        while periods.now() < end {
            std::hint::spin_loop();
        }
    }
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

    /// Uses the processor until the calling thread has had it for `budget`. It overshoots by about
    /// a microsecond.
    fn execute(self, budget: Duration) {
        let begin = thread_time();
        let budget = budget.as_nanos() as u64;
        loop {
            let used = thread_time() - begin;
            if used >= budget {
                return;
            }
            // Half of the remaining time, but at least a microsecond: few clock readings, and a
            // precise end.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::outside::Toggle;
    use crate::tasks::share::Share;

    #[test]
    fn a_job_uses_at_least_its_time_and_not_much_more() {
        let work = Work::calibrated();
        let mut shortest = u64::MAX;
        for _ in 0..20 {
            let before = thread_time();
            work.execute(Duration::from_micros(500));
            let used = thread_time() - before;
            assert!(used >= 500_000, "{used}");
            shortest = shortest.min(used);
        }
        // About a microsecond by construction; a machine under load may stretch some, not all
        // twenty.
        assert!(shortest < 1_000_000, "{shortest}");
    }

    #[test]
    fn blocks_are_equal_and_make_up_the_whole() {
        let us = Duration::from_micros;
        for (execution, expected) in
            [(us(1_500), (15, us(100))), (us(29), (1, us(29))), (us(432), (5, us(432) / 5))]
        {
            assert_eq!(blocks(execution), expected);
        }
        assert_eq!(blocks(Duration::ZERO), (1, Duration::ZERO));
    }

    #[test]
    fn jobs_are_released_on_the_grid_one_after_the_other() {
        let plan = Plan {
            period: Duration::from_millis(2),
            execution: Duration::from_micros(100),
            jobs: 30,
            profile: RealTimeProfile::ORDINARY,
            busy: Busy::ProcessorTime,
            shares_whole: true,
        };
        let share = || Share::Nothing.make(1).unwrap().remove(0);
        let output = || Toggle::Nothing.open(&[1]).unwrap().0.remove(0);
        let task = create("test", &plan, share(), output()).unwrap();
        assert!(task.grants().refusals().next().is_none());
        task.start();
        let begin = std::time::Instant::now();
        while !task.is_over() && begin.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(plan.period);
        }
        let ended = task.join().unwrap();
        let jobs = ended.value.unwrap();
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
        let never = create("never", &plan, share(), output()).unwrap().join().unwrap().value.unwrap();
        assert_eq!(never, [], "it was not started");
    }
}
