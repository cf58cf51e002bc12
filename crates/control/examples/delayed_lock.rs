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

/// Changes after which it ends though none has waited.
const MOST: u32 = 10 * CHANGES;

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
    let (mut changes, mut waited, mut longest) = (0, 0, Duration::ZERO);
    while changes < CHANGES || (waited == 0 && changes < MOST) {
        let begin = Instant::now();
        let mut gains = thread_side.enter(HOLD, Duration::from_secs(10))?;
        longest = longest.max(begin.elapsed());
        waited += u64::from(begin.elapsed() > WAITED);
        let proportional = f64::from(changes);
        *gains = Gains { proportional, derivative: proportional / 10.0 };
        drop(gains);
        std::thread::sleep(pause(changes));
        changes += 1;
    }
    task.stop();
    let counts = counted.recv_timeout(Duration::from_secs(10))?;
    task.join()?;
    let (changes, overstayed) = (u64::from(changes), thread_side.overstayed());
    Ok(Counts { changes, waited, longest, overstayed, ..counts })
}

/// Time until the next change: each another, from 0.3 to 1.8 ms, so that changes fall everywhere in the task's period. With
/// one time they fall into step with it, above all where both share a CPU: then the thread wakes up when the task
/// goes to sleep, and never has to wait.
fn pause(change: u32) -> Duration {
    Duration::from_micros(300 + u64::from(change * 7 % 16) * 100)
}

#[allow(dead_code, reason = "the test calls `run`")]
fn main() -> Result<(), Box<dyn Error>> {
    let counts = run()?;
    let Counts { changes, waited, longest, overstayed, periods, without, .. } = counts;
    match waited {
        0 => {
            println!("thread: {changes} changes, each of them between two periods of the task: none waited")
        }
        _ => println!("thread: {changes} changes, {waited} waited for the task, {longest:?} at most"),
    }
    println!("        {overstayed} stayed longer than the {HOLD:?} stated");
    println!("task: {periods} periods, none waited; {without} found the thread inside and did without");
    Ok(())
}
