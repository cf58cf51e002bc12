//! Conditions that every measurement has.

use alloc::string::String;
use core::fmt;

/// Conditions that every measurement has, by these names in `run --json`, in recordings of both
/// forms and in reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Conditions {
    /// Begin: UTC, as RFC 3339.
    pub began: String,
    /// Version of Onbeat.
    pub version: String,
    /// Name of the machine in the network.
    pub host: String,
    /// Name of the robot, if there is one.
    pub robot: Option<String>,
    /// SHA-256 of the robot file's text, in hexadecimal, if there is one.
    pub robot_file_sha256: Option<String>,
    /// Kernel release and kind, as `6.12.0 PREEMPT_RT`.
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
    /// CPUs kept free of ordinary threads (`isolcpus`), in the kernel's list format; empty for
    /// none.
    pub isolated_cpus: String,
}

impl Conditions {
    /// The same of a robot of this name, with the digest of its file.
    #[must_use]
    pub fn of_robot(self, name: &str, file_sha256: Option<String>) -> Self {
        Self { robot: Some(name.into()), robot_file_sha256: file_sha256, ..self }
    }
}

/// The machine.
impl fmt::Display for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Linux {}, {} x {}", self.kernel, self.cpus, self.cpu_model)?;
        if let Some(governor) = &self.governor {
            write!(f, ", governor {governor}")?;
        }
        Ok(())
    }
}
