//! Cost of the disturbance watch to the thread it watches, for each event: the shortest time of a
//! hundred system calls, each of them two events with tracepoints, one when it begins and one when
//! it ends.
//!
//! `cargo run --release -p onbeat-control --example watch_cost`

use std::error::Error;
use std::time::Duration;

use diagnose::disturbance::{Detail, Means, Watch};
use rt::task::Settings;

const CALLS: u64 = 100;

fn main() -> Result<(), Box<dyn Error>> {
    let counts = |means| Some((Detail::Counts, means));
    let mut without = None;
    for watched in
        [None, counts(Means::Counters), counts(Means::SoftwareEvents), counts(Means::Tracepoints)]
    {
        let settings = Settings::every("caller", Duration::from_millis(2));
        let (task, _records) = settings.create_loop(|periods| {
            let mut shortest = Duration::MAX;
            for _ in 0..1_000 {
                periods.wait_period();
                let begin = periods.now();
                (0..CALLS).for_each(|_| _ = rustix::process::getppid());
                shortest = shortest.min(periods.now().since(begin));
            }
            shortest
        })?;
        let watch =
            watched.map(|(detail, means)| Ok::<_, std::io::Error>(Watch::start(detail)?.at_best(means)));
        let watch = watch.transpose()?;
        watch.iter().for_each(|watch| watch.add(task.subject()));
        task.start();
        while !task.is_over() {
            std::thread::sleep(Duration::from_millis(10));
        }
        let took = task.join()?.value.as_nanos() as f64 / CALLS as f64;
        let more = (took - *without.get_or_insert(took)) / 2.0;
        let means = watched.map_or("not watched".to_owned(), |(_, means)| format!("{means:?}"));
        println!("{means:16} {took:6.0} ns a call, {more:4.0} ns an event");
    }
    Ok(())
}
