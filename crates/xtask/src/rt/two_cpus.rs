//! Two emulated CPUs: the robot on a cable, its cycle alone on one of them, and a culprit that
//! disturbs it.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::culprit::{self, Judged};
use super::guest::{Boot, Image, Results};

/// Period: an emulated CPU is some twenty times slower than a real one, and stops whenever the
/// host's does.
const PERIOD: &str = "10ms";

/// Boots, runs, and evaluates the results.
///
/// # Errors
/// The expected and the found result.
pub(super) fn judge(root: &Path, image: &Image) -> Result<(), String> {
    // A host stall must not leave drives in fault.
    let robot = super::robot(root, PERIOD)?
        .replacen("[bus]", "[bus]\nprocess_data_watchdog = \"5s\"", 1)
        .replacen("outage_time = \"80ms\"", "outage_time = \"2s\"", 1);
    let boot = Boot {
        name: "two-cpus",
        machine: &["-smp", "2", "-accel", "tcg,thread=multi"],
        parameters: super::QUICK,
        script: include_str!("two_cpus.sh"),
        files: &[("robot.toml", robot.as_bytes())],
        longest: Duration::from_secs(120),
    };
    // The emulated kernel stalls now and then when a run begins: both CPUs in it, with interrupts
    // off.
    let results = image.boot(&boot).or_else(|why| {
        println!("booted again: {why}");
        image.boot(&boot)
    })?;
    println!("{}", results.section("kernel")?);
    doctor(&results)?;
    run(&results)?;
    partition(&results)?;
    let judged = culprit::judge(&results)?;
    println!("{judged}");
    judged.names_the_culprit()
}

/// Checks that `onbeat doctor` recognises its kernel.
pub(super) fn doctor(results: &Results) -> Result<(), String> {
    let report = results.json("doctor")?;
    let checks = report["checks"].as_array().ok_or("the doctor's JSON has no `checks`")?;
    let exit = results.section("doctor-exit")?;
    println!("onbeat doctor: {} checks, exit code {exit}", checks.len());
    let preemption = checks.iter().find(|check| {
        check["found"].as_str().is_some_and(|found| found.contains("PREEMPT_RT"))
            && check["severity"] == "ok"
    });
    if preemption.is_none() {
        return Err(format!("no check of the doctor finds PREEMPT_RT and is fine with it: {report}"));
    }
    if checks.len() < 40 {
        Err(format!("the doctor made {} checks, expected 40", checks.len()))
    } else {
        Ok(())
    }
}

/// Checks that the robot ran in Op, with all four letters granted.
pub(super) fn run(results: &Results) -> Result<(), String> {
    let said = results.section("run-said")?;
    let exit = results.section("run-exit")?;
    // The emulated wire is sometimes late, for longer than an axis may go without inputs: it then
    // stops, as it must.
    let held = matches!(exit, "3" | "4")
        && ["(outage)", "this computer stalled"].iter().any(|it| said.contains(it));
    if exit != "0" && !held {
        return Err(format!("exit code of the run: expected 0, found {exit}: {said}"));
    }
    let run = results.json("run")?;
    let profile = &run["conditions"]["profile"];
    println!(
        "onbeat run: {} cycles, profile {} asked, {} granted; {}",
        run["cycles"], profile["requested"], profile["granted"], run["conditions"]["shield"]
    );
    if profile["granted"] != "PMCS" {
        return Err(format!("profile: expected PMCS granted, found {profile}: {said}"));
    }
    if run["cycles"].as_u64().is_none_or(|cycles| cycles < 100) {
        return Err(format!("cycles: expected 100 at least, found {}: {said}", run["cycles"]));
    }
    let is_real_time =
        |run: &Value| run["conditions"]["kernel"].as_str().is_some_and(|it| it.contains("PREEMPT_RT"));
    if is_real_time(&run) {
        Ok(())
    } else {
        Err(format!("the run's kernel: {}", run["conditions"]["kernel"]))
    }
}

/// Checks that the partition existed, kept all other threads out, and was removed.
fn partition(results: &Results) -> Result<(), String> {
    equal("partition and its CPUs", results.section("partition")?, "isolated\n1")?;
    equal("CPUs of all other tasks", results.section("outside")?, "0")?;
    let (before, after) = (results.section("before")?, results.section("after")?);
    let differences: Vec<String> = difference(before, after);
    if differences.is_empty() {
        println!("isolated partition of CPU 1 made and undone: {} facts as before", before.lines().count());
        return Ok(());
    }
    Err(format!("the machine is not as it was before the run:\n{}", differences.join("\n")))
}

/// Lines in only one of two texts.
fn difference(before: &str, after: &str) -> Vec<String> {
    let only = |sign: char, these: &str, those: &str| -> Vec<String> {
        let missing = these.lines().filter(|line| !those.lines().any(|other| other == *line));
        missing.map(|line| format!("{sign} {line}")).collect()
    };
    [only('-', before, after), only('+', after, before)].concat()
}

fn equal(what: &str, found: &str, expected: &str) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{what}: expected {expected}, found {found}")) }
}

impl Judged {
    fn names_the_culprit(&self) -> Result<(), String> {
        if self.delayed < 20 {
            return Err(format!("the culprit delayed {} cycles only, expected 20", self.delayed));
        }
        if self.named * 100 < self.delayed * 95 {
            return Err(format!("{self}; expected 95 %; the first one not: {}", self.first_unnamed));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_lines_of_one_side() {
        assert_eq!(difference("a\nb", "b\nc"), ["- a", "+ c"]);
        assert!(difference("a\nb", "b\na").is_empty());
    }
}
