//! Conditions of a measurement: the machine it was made on.

use std::fmt;
use std::time::SystemTime;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::root::Root;

/// Version of Onbeat.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Time of now: UTC, as RFC 3339, to the millisecond.
#[must_use]
pub fn utc() -> String {
    humantime::format_rfc3339_millis(SystemTime::now()).to_string()
}

/// Properties of the machine needed to judge a number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Conditions {
    /// Name of the machine in the network.
    pub host: String,
    /// Release of the kernel, as printed by `uname -r`.
    pub kernel: String,
    /// True for a PREEMPT_RT kernel.
    pub preempt_rt: bool,
    /// Name of the processor.
    pub cpu_model: String,
    /// Number of CPUs.
    pub cpus: usize,
    /// Frequency governor of CPU 0, if it has one.
    pub governor: Option<String>,
    /// Clock source of the kernel: with most but `tsc`, reading the clock costs a system call.
    pub clock_source: Option<String>,
    /// CPUs kept free of ordinary threads (`isolcpus`), in the kernel's list format; empty for none.
    pub isolated_cpus: String,
}

impl Conditions {
    /// Reads the conditions from `/proc` and `/sys`; missing values stay empty.
    #[must_use]
    pub fn read() -> Self {
        Self::read_below(&Root::machine())
    }

    /// Facts of a recording that begins now: these, the time and the version, by their names.
    #[must_use]
    pub fn facts(&self) -> Map<String, Value> {
        let mut facts =
            Map::from_iter([("began".to_owned(), utc().into()), ("version".to_owned(), VERSION.into())]);
        if let Ok(Value::Object(these)) = serde_json::to_value(self) {
            facts.extend(these);
        }
        facts
    }

    fn read_below(root: &Root) -> Self {
        let read = |path: &str| root.text(path);
        let processors = read("proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| {
            let line = processors.lines().find(|line| line.split(':').next().map(str::trim) == Some(name));
            line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim().to_owned())
        };
        Self {
            host: read("proc/sys/kernel/hostname").unwrap_or_default(),
            kernel: read("proc/sys/kernel/osrelease").unwrap_or_default(),
            preempt_rt: is_preempt_rt(root),
            // ARM and RISC-V name the board, not the processor.
            cpu_model: field("model name")
                .or_else(|| read("proc/device-tree/model"))
                .or_else(|| field("Hardware"))
                .unwrap_or_default(),
            cpus: processors.lines().filter(|line| line.starts_with("processor")).count(),
            governor: read("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            clock_source: read("sys/devices/system/clocksource/clocksource0/current_clocksource"),
            isolated_cpus: read("sys/devices/system/cpu/isolated").unwrap_or_default(),
        }
    }
}

/// True for a PREEMPT_RT kernel. Kernels with the real-time patch have a file for it; mainline, which
/// merged PREEMPT_RT in 6.12, only has it in its version.
pub(crate) fn is_preempt_rt(root: &Root) -> bool {
    let version = root.text("proc/sys/kernel/version").or_else(|| root.text("proc/version"));
    root.number("sys/kernel/realtime") == Some(1)
        || version.is_some_and(|version| version.contains("PREEMPT_RT") || version.contains("PREEMPT RT"))
}

impl fmt::Display for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.preempt_rt { " PREEMPT_RT" } else { "" };
        write!(f, "Linux {}{kind}, {} x {}", self.kernel, self.cpus, self.cpu_model)?;
        if let Some(governor) = &self.governor {
            write!(f, ", governor {governor}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_kernel_and_a_cpu() {
        let conditions = Conditions::read();
        assert!(conditions.kernel.starts_with(|first: char| first.is_ascii_digit()), "{conditions:?}");
        assert!(conditions.cpus >= 1, "{conditions:?}");
    }

    #[test]
    fn a_machine_that_tells_nothing_is_no_error() {
        assert_eq!(Conditions::read_below(&Root::at("/nowhere")), Conditions::default());
    }
}
