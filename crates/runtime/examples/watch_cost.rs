//! What the disturbance watch costs the thread it watches: processor time of a period in which nothing is done.
//!
//! `cargo run --release -p onbeat-runtime --example watch_cost`

use std::error::Error;
use std::time::Duration;

use onbeat_runtime::disturbance::{Detail, Means, Watch};
use onbeat_runtime::task::Settings;
use rustix::time::{ClockId, clock_gettime};

const PERIODS: u64 = 4_000;

fn main() -> Result<(), Box<dyn Error>> {
    let means = [None, Some(Means::Counters), Some(Means::SoftwareEvents), Some(Means::Tracepoints)];
    // Round and round: what the machine does meanwhile is the same for all.
    for _ in 0..3 {
        for means in means {
            let watch = Watch::start(Detail::Counts)?;
            let (task, _records) =
                Settings::every("idle", Duration::from_micros(500)).create_loop(|periods| {
                    periods.wait_period();
                    let begin = processor_time();
                    (0..PERIODS).for_each(|_| drop(periods.wait_period()));
                    processor_time() - begin
                })?;
            let watch = means.map(|means| watch.at_best(means));
            if let Some(watch) = &watch {
                watch.add(task.subject());
            }
            task.start();
            while !task.is_over() {
                std::thread::sleep(Duration::from_millis(10));
            }
            let used = task.join()?.value;
            let watched = means.map_or("not watched".to_owned(), |means| format!("{means:?}"));
            println!("{watched:16} {:6.0} ns a period", used.as_nanos() as f64 / PERIODS as f64);
        }
    }
    Ok(())
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
