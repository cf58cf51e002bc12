//! Takes a CPU at the highest priority for a while, at random instants, and says when: a known culprit, by
//! which explanations of late beats are judged.
//!
//! ```text
//! culprit CPU SECONDS [MICROSECONDS]     takes CPU for 400 us, or so many, about thirty times a second
//! ```
//!
//! At the end it writes one line each time: when it began and when it was done, in nanoseconds of
//! CLOCK_MONOTONIC, as cycle records have them.

use std::process::ExitCode;
use std::time::Duration;

use onbeat_runtime::clock::{Clock, MonotonicClock};
use onbeat_runtime::profile::{RealTimeProfile, Scheduling};

fn main() -> ExitCode {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let (cpu, seconds, microseconds) = match numbers[..] {
        [cpu, seconds] => (cpu, seconds, 400),
        [cpu, seconds, microseconds] => (cpu, seconds, microseconds),
        _ => {
            eprintln!("culprit CPU SECONDS [MICROSECONDS]");
            return ExitCode::from(2);
        }
    };
    let profile = RealTimeProfile {
        scheduling: Some(Scheduling::Fifo { priority: 99 }),
        cpu: usize::try_from(cpu).ok(),
        ..RealTimeProfile::default()
    };
    let granted = profile.apply();
    eprintln!("culprit: {granted}");
    for (begin, end) in hits(Duration::from_secs(seconds), Duration::from_micros(microseconds)) {
        println!("{begin} {end}");
    }
    ExitCode::SUCCESS
}

/// Runs for `run` at a time, until `total` has gone by.
fn hits(total: Duration, run: Duration) -> Vec<(u64, u64)> {
    let clock = MonotonicClock;
    let over = clock.now() + total;
    let mut hits = Vec::with_capacity(10_000);
    let mut random = fastrand::Rng::with_seed(1);
    while clock.now() < over && hits.len() < hits.capacity() {
        std::thread::sleep(Duration::from_micros(random.u64(10_000..50_000)));
        let begin = clock.now();
        while clock.now().since(begin) < run {
            std::hint::spin_loop();
        }
        hits.push((begin.as_nanos(), clock.now().as_nanos()));
    }
    hits
}
