//! What is looked at: the machine's files, the cycle's CPU and priority, the bus's interface.

use std::cell::OnceCell;

use super::kernel_config::KernelConfig;
use super::threads::{self, Thread};
use crate::cpus::Cpus;
use crate::ethtool::Ethtool;
use crate::root::Root;

/// The machine under a cycle.
#[derive(Debug)]
pub struct Subject {
    pub(super) root: Root,
    pub(super) cpu: usize,
    pub(super) priority: u8,
    pub(super) interface: Option<String>,
    pub(super) ethtool: Ethtool,
    config: OnceCell<KernelConfig>,
    threads: OnceCell<Vec<Thread>>,
}

impl Subject {
    /// A cycle on `cpu`; `None` chooses the first isolated CPU, or else the last that is online.
    #[must_use]
    pub fn new(root: Root, cpu: Option<usize>) -> Self {
        let cpu = cpu.unwrap_or_else(|| default_cpu(&root));
        Self {
            root,
            cpu,
            priority: 80,
            interface: None,
            ethtool: Ethtool::default(),
            config: OnceCell::new(),
            threads: OnceCell::new(),
        }
    }

    /// The cycle's priority, 1 to 99 (80 unless said).
    #[must_use]
    pub fn with_priority(mut self, priority: u8) -> Self {
        self.priority = priority;
        self
    }

    /// The bus hangs on this interface, whose driver says this.
    #[must_use]
    pub fn with_interface(mut self, interface: impl Into<String>, ethtool: Ethtool) -> Self {
        self.interface = Some(interface.into());
        self.ethtool = ethtool;
        self
    }

    /// The cycle's CPU.
    #[must_use]
    pub fn cpu(&self) -> usize {
        self.cpu
    }

    /// The CPUs that are online; the cycle's own if the machine does not say.
    pub(super) fn online(&self) -> Cpus {
        online(&self.root).unwrap_or_else(|| Cpus::one(self.cpu))
    }

    /// The CPUs that are online and not the cycle's: where everything else can go.
    pub(super) fn others(&self) -> Cpus {
        self.online().without(&Cpus::one(self.cpu))
    }

    /// The path of a file of the cycle's CPU.
    pub(super) fn of_cpu(&self, file: &str) -> String {
        format!("/sys/devices/system/cpu/cpu{}/{file}", self.cpu)
    }

    /// A word of the kernel's command line: `Some("")` for a flag, `Some(value)` for `name=value`. The last one
    /// counts, as it does for the kernel.
    pub(super) fn boot_word(&self, name: &str) -> Option<String> {
        let line = self.root.text("/proc/cmdline")?;
        line.split_ascii_whitespace().rev().find_map(|word| {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            (key == name).then(|| value.to_owned())
        })
    }

    /// How the kernel was built, as far as it says.
    pub(super) fn config(&self) -> &KernelConfig {
        self.config.get_or_init(|| KernelConfig::read(&self.root))
    }

    /// Every thread of the machine that can be seen.
    pub(super) fn threads(&self) -> &[Thread] {
        self.threads.get_or_init(|| threads::read(&self.root))
    }

    /// Whether the kernel runs interrupt handlers as threads.
    pub(super) fn has_interrupt_threads(&self) -> bool {
        crate::conditions::is_preempt_rt(&self.root) || self.boot_word("threadirqs").is_some()
    }

    /// Whether the kernel keeps ordinary work away from the cycle's CPU.
    pub(super) fn is_isolated(&self) -> bool {
        isolated(&self.root).contains(self.cpu)
    }
}

/// CPUs that are isolated: by `isolcpus`, or by a cgroup v2 partition of that kind.
fn isolated(root: &Root) -> Cpus {
    let files = ["/sys/devices/system/cpu/isolated", "/sys/fs/cgroup/cpuset.cpus.isolated"];
    let sets = files.iter().filter_map(|file| root.text(file)?.parse().ok());
    sets.fold(Cpus::default(), |all, set| all.with(&set))
}

fn online(root: &Root) -> Option<Cpus> {
    let cpus: Cpus = root.text("/sys/devices/system/cpu/online")?.parse().ok()?;
    (!cpus.is_empty()).then_some(cpus)
}

fn default_cpu(root: &Root) -> usize {
    let isolated = isolated(root).iter().next();
    isolated.or_else(|| online(root)?.last()).unwrap_or(0)
}
