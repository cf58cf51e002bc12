//! The conversation with `cargo xtask bench wire`.

use std::fmt::Write as _;
use std::io::{self, BufRead, Write};

/// Says that everything is ready, then runs a round of cycles for each line of standard input. `cycle` gets the instant at which it began, in
/// ns of CLOCK_MONOTONIC.
///
/// # Errors
/// A line that is no number of cycles, or what a cycle says.
pub async fn serve_async(
    frame_length: usize,
    mut cycle: impl AsyncFnMut(u64) -> Result<(), String>,
) -> Result<(), String> {
    println!("ready {frame_length}");
    let mut durations = Vec::new();
    for line in io::stdin().lock().lines() {
        let line = line.map_err(|error| error.to_string())?;
        let cycles: usize = line.trim().parse().map_err(|error| format!("`{line}`: {error}"))?;
        durations.clear();
        durations.resize(cycles, 0);
        let cpu = nanoseconds(libc::CLOCK_PROCESS_CPUTIME_ID);
        for duration in &mut durations {
            let start = nanoseconds(libc::CLOCK_MONOTONIC);
            cycle(start).await?;
            *duration = nanoseconds(libc::CLOCK_MONOTONIC) - start;
        }
        let cpu = nanoseconds(libc::CLOCK_PROCESS_CPUTIME_ID) - cpu;
        let mut answer = cpu.to_string();
        for duration in &durations {
            let _ = write!(answer, " {duration}");
        }
        answer.push('\n');
        io::stdout().write_all(answer.as_bytes()).map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn nanoseconds(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the answer, and both clocks exist on every Linux.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
