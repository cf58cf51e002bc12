//! Conditions of a measurement: the machine it was made on.

use std::time::SystemTime;

use serde_json::{Map, Value};
pub use types::Conditions;

use crate::root::Root;

/// Version of Onbeat.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Time of now: UTC, as RFC 3339, to the millisecond.
#[must_use]
pub fn utc() -> String {
    humantime::format_rfc3339_millis(SystemTime::now()).to_string()
}

/// Conditions of a measurement that begins now, without a robot; what `/proc` and `/sys` do not
/// tell stays empty.
#[must_use]
pub fn read() -> Conditions {
    Conditions { began: utc(), version: VERSION.to_owned(), ..read_below(&Root::machine()) }
}

/// Conditions by their names.
#[must_use]
pub fn facts(conditions: &Conditions) -> Map<String, Value> {
    match serde_json::to_value(conditions) {
        Ok(Value::Object(facts)) => facts,
        _ => Map::new(),
    }
}

fn read_below(root: &Root) -> Conditions {
    let read = |path: &str| root.text(path);
    let processors = read("proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = processors.lines().find(|line| line.split(':').next().map(str::trim) == Some(name));
        line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim().to_owned())
    };
    let preempt_rt = is_preempt_rt(root);
    let kind = if preempt_rt { " PREEMPT_RT" } else { "" };
    Conditions {
        host: read("proc/sys/kernel/hostname").unwrap_or_default(),
        kernel: read("proc/sys/kernel/osrelease").unwrap_or_default() + kind,
        preempt_rt,
        // ARM and RISC-V name the board, not the processor.
        cpu_model: field("model name")
            .or_else(|| read("proc/device-tree/model"))
            .or_else(|| field("Hardware"))
            .unwrap_or_default(),
        cpus: processors.lines().filter(|line| line.starts_with("processor")).count(),
        governor: read("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        clock_source: read("sys/devices/system/clocksource/clocksource0/current_clocksource"),
        isolated_cpus: read("sys/devices/system/cpu/isolated").unwrap_or_default(),
        ..Conditions::default()
    }
}

/// True for a PREEMPT_RT kernel. Kernels with the real-time patch have a file for it; mainline,
/// which merged PREEMPT_RT in 6.12, only has it in its version.
pub(crate) fn is_preempt_rt(root: &Root) -> bool {
    let version = root.text("proc/sys/kernel/version").or_else(|| root.text("proc/version"));
    root.number("sys/kernel/realtime") == Some(1)
        || version.is_some_and(|version| version.contains("PREEMPT_RT") || version.contains("PREEMPT RT"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_kernel_and_a_cpu() {
        let conditions = read();
        assert!(conditions.kernel.starts_with(|first: char| first.is_ascii_digit()), "{conditions:?}");
        assert!(conditions.cpus >= 1, "{conditions:?}");
    }

    #[test]
    fn unreadable_machine_is_no_error() {
        assert_eq!(read_below(&Root::at("/nowhere")), Conditions::default());
    }
}
