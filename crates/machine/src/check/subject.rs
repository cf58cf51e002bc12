//! Machine examined by the checks: its files, the cycle's CPU and priority, the bus's interface.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::time::Duration;

use crate::cpus::Cpus;
use crate::ethtool::Ethtool;
use crate::root::Root;
use crate::task::Stat;

/// Machine under a cycle.
#[derive(Debug)]
pub struct Subject {
    pub(super) root: Root,
    pub(super) cpu: usize,
    pub(super) priority: u8,
    pub(super) interface: Option<String>,
    pub(super) ethtool: Ethtool,
    pub(super) interrupt_cpu: Option<usize>,
    pub(super) polling: Option<Duration>,
    config: OnceCell<KernelConfig>,
    threads: OnceCell<Vec<Thread>>,
}

impl Subject {
    /// Creates a subject for a cycle on `cpu`; `None` selects the first isolated CPU, or else the
    /// last that is online.
    #[must_use]
    pub fn new(root: Root, cpu: Option<usize>) -> Self {
        let cpu = cpu.unwrap_or_else(|| default_cpu(&root));
        Self {
            root,
            cpu,
            priority: 80,
            interface: None,
            ethtool: Ethtool::default(),
            interrupt_cpu: None,
            polling: None,
            config: OnceCell::new(),
            threads: OnceCell::new(),
        }
    }

    /// Sets the cycle's priority, 1 to 99 (default 80).
    #[must_use]
    pub fn with_priority(mut self, priority: u8) -> Self {
        self.priority = priority;
        self
    }

    /// Sets the bus's interface and its driver's settings.
    #[must_use]
    pub fn with_interface(mut self, interface: impl Into<String>, ethtool: Ethtool) -> Self {
        self.interface = Some(interface.into());
        self.ethtool = ethtool;
        self
    }

    /// Chooses the CPU of the interface's interrupts; without it they go to the cycle's, unless
    /// they are on one CPU already.
    #[must_use]
    pub fn with_interrupt_cpu(mut self, cpu: usize) -> Self {
        self.interrupt_cpu = Some(cpu);
        self
    }

    /// Says that a cycle of this period polls the interface's driver (busy poll), which needs no
    /// interrupts meanwhile.
    #[must_use]
    pub fn with_polling(mut self, period: Duration) -> Self {
        self.polling = Some(period);
        self
    }

    /// The bus's interface.
    #[must_use]
    pub fn interface(&self) -> Option<&str> {
        self.interface.as_deref()
    }

    /// CPU of the cycle.
    #[must_use]
    pub fn cpu(&self) -> usize {
        self.cpu
    }

    /// CPUs that are online; only the cycle's own if the machine does not list them.
    pub(super) fn online(&self) -> Cpus {
        online(&self.root).unwrap_or_else(|| Cpus::one(self.cpu))
    }

    /// Priority of what the cycle waits for: below its own, above what has the usual one of
    /// interrupt threads.
    pub(super) fn priority_below(&self) -> u8 {
        self.priority.saturating_sub(1).clamp(51, 98)
    }

    /// CPUs that are online except the cycle's, for everything else.
    pub(super) fn others(&self) -> Cpus {
        self.online().without(&Cpus::one(self.cpu))
    }

    /// Path of a file of the cycle's CPU.
    pub(super) fn of_cpu(&self, file: &str) -> String {
        format!("/sys/devices/system/cpu/cpu{}/{file}", self.cpu)
    }

    /// Word of the kernel's command line: `Some("")` for a flag, `Some(value)` for `name=value`.
    /// The last one counts, as for the kernel.
    pub(super) fn boot_word(&self, name: &str) -> Option<String> {
        let line = self.root.text("/proc/cmdline")?;
        line.split_ascii_whitespace().rev().find_map(|word| {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            (key == name).then(|| value.to_owned())
        })
    }

    /// Build options of the kernel, as far as known.
    pub(super) fn config(&self) -> &KernelConfig {
        self.config.get_or_init(|| KernelConfig::read(&self.root))
    }

    /// All visible threads of the machine.
    pub(super) fn threads(&self) -> &[Thread] {
        self.threads.get_or_init(|| read(&self.root))
    }

    /// True if the kernel runs interrupt handlers as threads.
    pub(super) fn has_interrupt_threads(&self) -> bool {
        crate::conditions::is_preempt_rt(&self.root) || self.boot_word("threadirqs").is_some()
    }

    /// True if the kernel keeps ordinary threads off the cycle's CPU.
    pub(super) fn is_isolated(&self) -> bool {
        isolated(&self.root).contains(self.cpu)
    }
}

/// CPUs isolated by `isolcpus`, or by an isolated partition of cgroup v2.
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

/// Thread of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Thread {
    pub(super) process: i32,
    pub(super) thread: i32,
    pub(super) name: String,
    /// True for a thread of the kernel.
    pub(super) kernel: bool,
    /// True if the kernel lets no process change its CPUs.
    pub(super) bound: bool,
    pub(super) policy: Policy,
    /// CPUs it may run on.
    pub(super) cpus: Cpus,
}

/// Scheduling policy of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    Ordinary,
    /// SCHED_FIFO or SCHED_RR, with its priority.
    Fixed(u8),
    Deadline,
}

impl Policy {
    /// Its fixed priority, if it has one.
    pub(super) fn fixed(self) -> Option<u8> {
        match self {
            Self::Fixed(priority) => Some(priority),
            Self::Ordinary | Self::Deadline => None,
        }
    }
}

/// All visible threads, without threads that end meanwhile.
pub(super) fn read(root: &Root) -> Vec<Thread> {
    let processes = root.names("/proc").into_iter().filter_map(|name| name.parse::<i32>().ok());
    let mut threads = Vec::new();
    for process in processes {
        for thread in root.names(format!("/proc/{process}/task")) {
            threads.extend(thread.parse().ok().and_then(|thread| read_thread(root, process, thread)));
        }
    }
    threads
}

/// True for a thread of a NAPI instance of `interface`, by its name: older kernels show 15 letters
/// of it.
pub(super) fn is_napi_of(name: &str, interface: &str) -> bool {
    let whole = format!("napi/{interface}-");
    name.starts_with(&whole) || name.len() == SHORT && whole.starts_with(name)
}

/// Length of a thread's short name.
const SHORT: usize = 15;

fn read_thread(root: &Root, process: i32, thread: i32) -> Option<Thread> {
    let folder = format!("/proc/{process}/task/{thread}");
    let text = root.text(format!("{folder}/stat"))?;
    let stat = Stat::parse(&text)?;
    let status = root.text(format!("{folder}/status"))?;
    let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(Thread {
        process,
        thread,
        name: super::printable(stat.name),
        kernel: stat.of_kernel(),
        bound: stat.bound(),
        policy: match stat.number(41)? {
            1 | 2 => Policy::Fixed(stat.number(40)?),
            6 => Policy::Deadline,
            _ => Policy::Ordinary,
        },
        cpus: cpus.parse().ok()?,
    })
}

/// Options of the kernel that are set, if the machine provides them.
#[derive(Debug, Default)]
pub(super) struct KernelConfig(HashMap<String, String>);

impl KernelConfig {
    pub(super) fn read(root: &Root) -> Self {
        let built_in = root.bytes("/proc/config.gz").and_then(|bytes| unpacked(&bytes));
        let of_release = || {
            let release = root.text("/proc/sys/kernel/osrelease")?;
            root.text(format!("/boot/config-{release}"))
                .or_else(|| root.text(format!("/lib/modules/{release}/config")))
        };
        Self::parse(&built_in.or_else(of_release).unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let options = text.lines().filter_map(|line| line.strip_prefix("CONFIG_")?.split_once('='));
        Self(options.map(|(name, value)| (name.to_owned(), value.trim_matches('"').to_owned())).collect())
    }

    /// True if the options are known.
    pub(super) fn is_known(&self) -> bool {
        !self.0.is_empty()
    }

    /// True if an option (without `CONFIG_`) is built in.
    pub(super) fn has(&self, option: &str) -> bool {
        self.0.get(option).is_some_and(|value| value == "y")
    }
}

/// Text that gzip has packed; a file that unpacks to more than the limit is no kernel
/// configuration.
#[cfg(feature = "check")]
fn unpacked(bytes: &[u8]) -> Option<String> {
    use std::io::Read;

    let mut text = Vec::new();
    flate2::read::GzDecoder::new(bytes).take(crate::root::LIMIT).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// Without the feature the distribution's file is read.
#[cfg(not(feature = "check"))]
fn unpacked(_: &[u8]) -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn we_are_among_the_threads() {
        let threads = read(&Root::machine());
        let me = threads.iter().find(|it| it.process == std::process::id() as i32).expect("this process");
        assert!(!me.kernel && !me.bound && !me.cpus.is_empty(), "{me:?}");
    }

    #[test]
    fn options_are_read() {
        let config =
            KernelConfig::parse("# CONFIG_KASAN is not set\nCONFIG_PREEMPT_RT=y\nCONFIG_X=m\nrubbish");
        assert!(config.has("PREEMPT_RT") && config.is_known());
        assert!(!config.has("KASAN") && !config.has("X"));
        assert!(!KernelConfig::parse("").is_known());
    }
}
