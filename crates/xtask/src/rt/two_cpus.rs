//! Two emulated CPUs: the robot on a cable, its cycle alone on one of them, and a culprit beside it.

use std::path::Path;
use std::time::Duration;

use super::guest::{Boot, Image};

/// An emulated CPU is some twenty times slower than a real one.
const PERIOD: &str = "10ms";

/// Boots, runs, and judges what came out.
///
/// # Errors
/// What was expected and what was found.
pub(super) fn judge(root: &Path, image: &Image) -> Result<(), String> {
    let robot = root.join("examples/six-axis.toml");
    let robot = std::fs::read_to_string(&robot).map_err(|error| format!("{}: {error}", robot.display()))?;
    let robot = robot.replace("period = \"1ms\"", &format!("period = \"{PERIOD}\""));
    let results = image.boot(&Boot {
        name: "two-cpus",
        machine: &["-smp", "2", "-accel", "tcg,thread=multi"],
        parameters: "tsc=reliable mitigations=off",
        script: include_str!("two_cpus.sh"),
        files: &[("robot.toml", robot.as_bytes())],
        longest: Duration::from_secs(180),
    })?;
    println!("{}", results.section("kernel")?);
    equal("/sys/kernel/realtime", results.section("realtime")?, "1")?;
    equal("exit code of the run", results.section("run-exit")?, "0")?;
    let run = results.json("run")?;
    println!("{run}");
    Ok(())
}

fn equal(what: &str, found: &str, expected: &str) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{what}: expected {expected}, found {found}")) }
}
