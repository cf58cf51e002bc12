//! Gains that a real-time task uses and an ordinary thread changes, without the task ever waiting for the thread.

use std::error::Error;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use onbeat_control::delayed_lock::delayed_lock;
use onbeat_control::task::Settings;

const PERIOD: Duration = Duration::from_millis(2);

/// Longest time the thread is inside.
const HOLD: Duration = Duration::from_micros(200);

/// Time the task is inside: the thread meets it now and then.
const WORK: Duration = Duration::from_micros(500);

/// A wait is longer than it takes to go in.
const WAITED: Duration = Duration::from_micros(50);

const CHANGES: u32 = 200;

/// Counts of a run.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Changes that the thread made.
    pub(crate) changes: u64,
    /// Changes before which it waited.
    pub(crate) waited: u64,
    /// Longest of these waits.
    pub(crate) longest: Duration,
    /// Changes that took longer than stated.
    pub(crate) overstayed: u64,
    /// Periods of the task.
    pub(crate) periods: u64,
    /// Periods that found the thread inside and did without.
    pub(crate) without: u64,
    /// Periods that saw one gain changed and the other not.
    pub(crate) half: u64,
}

#[derive(Clone, Copy, Default)]
struct Gains {
    proportional: f64,
    derivative: f64,
}

/// Runs the task while the thread changes its gains.
pub(crate) fn run() -> Result<Counts, Box<dyn Error>> {
    let (mut task_side, thread_side) = delayed_lock(Gains::default());
    let (done, counted) = mpsc::sync_channel(1);
    let (task, _) = Settings::every("law", PERIOD).with_priority(60).create_loop(move |periods| {
        let mut counts = Counts::default();
        while let Some(release) = periods.wait_period() {
            counts.periods += 1;
            // With somebody inside this period does without.
            if let Some(gains) = task_side.enter(release.instant + PERIOD) {
                counts.half += u64::from(gains.derivative != gains.proportional / 10.0);
                while periods.now().since(release.instant) < WORK {}
            }
        }
        counts.without = task_side.refused();
        // The thread may have given up.
        let _ = done.try_send(counts);
    })?;
    task.start();
    let (mut waited, mut longest) = (0, Duration::ZERO);
    for change in 0..CHANGES {
        let begin = Instant::now();
        let mut gains = thread_side.enter(HOLD, Duration::from_secs(10))?;
        longest = longest.max(begin.elapsed());
        waited += u64::from(begin.elapsed() > WAITED);
        let proportional = f64::from(change);
        *gains = Gains { proportional, derivative: proportional / 10.0 };
        drop(gains);
        std::thread::sleep(Duration::from_micros(700));
    }
    task.stop();
    let counts = counted.recv_timeout(Duration::from_secs(10))?;
    task.join()?;
    let (changes, overstayed) = (u64::from(CHANGES), thread_side.overstayed());
    Ok(Counts { changes, waited, longest, overstayed, ..counts })
}

#[allow(dead_code, reason = "the test calls `run`")]
fn main() -> Result<(), Box<dyn Error>> {
    let counts = run()?;
    println!("thread: {} changes, {} waited, {:?} at most", counts.changes, counts.waited, counts.longest);
    println!("        {} stayed longer than stated", counts.overstayed);
    println!("task: {} periods, {} did without", counts.periods, counts.without);
    Ok(())
}
