//! One emulated CPU whose clock counts its instructions (`-icount`): however busy the host is, a latency is the
//! number of instructions in the way, and the same on every run.

use std::time::Duration;

use super::guest::{Boot, Image};

/// Boots, runs, and judges what came out.
///
/// # Errors
/// What was expected and what was found.
pub(super) fn judge(image: &Image) -> Result<(), String> {
    let results = image.boot(&Boot {
        name: "virtual-time",
        // Two nanoseconds an instruction; a CPU that sleeps jumps to its next timer.
        machine: &["-icount", "shift=1,sleep=off"],
        parameters: "tsc=reliable mitigations=off",
        script: include_str!("virtual_time.sh"),
        files: &[],
        longest: Duration::from_secs(240),
    })?;
    println!("{}", results.section("kernel")?);
    Ok(())
}
