//! Measurements. None of them asserts a time: they print the result and its conditions, and save
//! every single number in `bench-results/`.

mod contestant;
mod explain;
mod recorded;
mod serve;
mod soak;
mod start;
mod wire;

use std::fs;
use std::path::Path;

use crate::report::Report;

/// Runs the measurement named by the arguments.
///
/// # Errors
/// The expected arguments, in one sentence.
pub(crate) fn run(root: &Path, words: &[&str], report: &mut Report) -> Result<(), String> {
    match words {
        ["clone"] => start::fresh_clone(root, report),
        ["wire"] => wire::measure(root, &wire::Options::default(), report),
        ["wire", "--rounds", rounds] => {
            let rounds = rounds.parse().map_err(|error| format!("--rounds `{rounds}`: {error}"))?;
            wire::measure(root, &wire::Options { rounds, ..wire::Options::default() }, report);
        }
        ["bring-up"] => wire::bring_up(root, report),
        ["explain"] => explain::measure(root, 20, report),
        ["explain", "--rounds", rounds] => {
            let rounds = rounds.parse().map_err(|error| format!("--rounds `{rounds}`: {error}"))?;
            explain::measure(root, rounds, report);
        }
        ["serve"] => serve::measure(root, 4, report),
        ["serve", "--rounds", rounds] => {
            let rounds = rounds.parse().map_err(|error| format!("--rounds `{rounds}`: {error}"))?;
            serve::measure(root, rounds, report);
        }
        ["soak", words @ ..] => soak::measure(root, soak::Options::parse(words)?, report),
        _ => {
            return Err(format!(
                "`bench {}`: there are `bench wire [--rounds N]`, `bench bring-up`, `bench explain [--rounds N]`, `bench serve [--rounds N]`, \
                 `bench soak [--seconds N] [--seed N]` and `bench clone`",
                words.join(" ")
            ));
        }
    }
    Ok(())
}

/// Kernel, processor, governor, load and the CPU share of FIFO tasks, one per line.
pub(crate) fn describe() -> String {
    let first = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let cpuinfo = first("/proc/cpuinfo");
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let governor = first("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    let governor = if governor.is_empty() { "not shown (virtual machine?)" } else { &governor };
    let virtual_machine = if cpuinfo.contains(" hypervisor") { "yes" } else { "no" };
    format!(
        "kernel      {}\nprocessor   {}, {cores} cores, virtual machine: {virtual_machine}\n\
         governor    {governor}\nload        {}\nRT budget   {} us of each {} us\n",
        first("/proc/version"),
        model.trim_start_matches([' ', '\t', ':']),
        first("/proc/loadavg"),
        first("/proc/sys/kernel/sched_rt_runtime_us"),
        first("/proc/sys/kernel/sched_rt_period_us"),
    )
}

/// Reasons to doubt this machine's numbers, each with its remedy.
pub(crate) fn doubts() -> Vec<String> {
    let mut doubts = Vec::new();
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let busy = load.split(' ').next().and_then(|load| load.parse::<f64>().ok()).unwrap_or(0.0);
    if busy > 0.5 {
        doubts.push(format!("the machine is busy (load {busy}): tails include other programs; stop them"));
    }
    if fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| text.contains(" hypervisor")) {
        doubts.push("a virtual machine: trust ratios and medians, not absolute times or tails".into());
    }
    doubts
}
