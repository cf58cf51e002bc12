//! Machine made of files in a folder.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::machine::check::{Change, Subject};
use crate::machine::ethtool::{Coalescing, Ethtool, Offload, Queues, Setting};
use crate::machine::journal::CpuFormat;
use crate::machine::root::Root;

/// Files, removed on drop, and the settings of the driver of `eth0`.
pub(crate) struct Tree {
    folder: PathBuf,
    pub(crate) ethtool: Ethtool,
    /// CPU chosen for the interrupts of `eth0`.
    pub(crate) interrupt_cpu: Option<usize>,
    /// Period of a cycle that polls the driver.
    pub(crate) polling: Option<Duration>,
}

impl Tree {
    /// Creates a bare machine of four CPUs; CPU 3 is prepared for a cycle, and the bus is on
    /// `eth0`.
    pub(crate) fn tuned(name: &str) -> Self {
        // Thousands of small files: in memory if the machine has a folder for that.
        let parent = ["/dev/shm", env!("CARGO_TARGET_TMPDIR")].map(Path::new);
        let parent = parent.into_iter().find(|it| it.is_dir()).expect("a folder for files");
        let folder = parent.join(format!("onbeat-checks-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let coalescing = Some(Coalescing::default());
        let offloads = vec![Offload { name: "gro", on: false }, Offload { name: "tso", on: true }];
        let ethtool = Ethtool {
            coalescing,
            offloads,
            energy_efficient: Some(false),
            queues: Some(Queues { receive: 1, combined: 0 }),
            pause: Some(false),
        };
        let mut tree = Self { folder, ethtool, interrupt_cpu: None, polling: None };
        for (path, text) in TUNED {
            tree.file(path, text);
        }
        tree.link("/sys/class/net/eth0/device/driver", "../../../bus/pci/drivers/igb");
        tree.link("/sys/class/net/eth0/device/subsystem", "../../../bus/pci");
        tree.file("/dev/cpu_dma_latency", [0x00, 0x94, 0x35, 0x77]);
        // MSR_SMI_COUNT at 0x34 is zero.
        tree.file("/dev/cpu/3/msr", [0; 0x40]);
        tree.thread(1, "systemd", USER, 0, 0, "0-2");
        tree.thread(2, "kthreadd", KERNEL, 0, 0, "0-2");
        tree.thread(30, "migration/3", BOUND, 1, 99, "3");
        tree.thread(31, "rcuop/3", KERNEL, 0, 0, "0-2");
        tree.thread(40, "irq/24-eth0", BOUND, 1, 79, "3");
        tree.thread(41, "irq/25-nvme0q1", BOUND, 1, 50, "1");
        tree.thread(900, "sshd (deprecated)", USER, 0, 0, "0-2");
        tree
    }

    /// Subject for a cycle on CPU 3, priority 80, with the bus on `eth0`.
    pub(crate) fn subject(&self) -> Subject {
        let subject = Subject::new(self.root(), Some(3)).with_priority(80);
        let mut subject = subject.with_interface("eth0", self.ethtool.clone());
        if let Some(cpu) = self.interrupt_cpu {
            subject = subject.with_interrupt_cpu(cpu);
        }
        if let Some(period) = self.polling {
            subject = subject.with_polling(period);
        }
        subject
    }

    pub(crate) fn root(&self) -> Root {
        Root::at(&self.folder)
    }

    /// Writes a file, replacing whatever was there.
    pub(crate) fn file(&mut self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.clear(path);
        fs::write(path, content).expect("a file in the target folder");
    }

    pub(crate) fn link(&mut self, path: &str, target: &str) {
        let path = self.clear(path);
        symlink(target, path).expect("a link in the target folder");
    }

    pub(crate) fn remove(&mut self, path: &str) {
        let path = self.root().path(path);
        let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
    }

    /// Removes whatever is at the path, and makes the folders above it.
    pub(crate) fn clear(&mut self, path: &str) -> PathBuf {
        self.remove(path);
        let path = self.root().path(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders in the target folder");
        path
    }

    /// Adds a thread: flags as the kernel's, policy 0 (ordinary), 1 (FIFO) or 6 (deadline).
    pub(crate) fn thread(
        &mut self,
        number: i32,
        name: &str,
        flags: u32,
        policy: u32,
        priority: u32,
        cpus: &str,
    ) {
        let zeros = "0 ".repeat(30);
        // Fields 3 to 8, 9 (flags), 10 to 39, 40 (priority), 41 (policy).
        let stat = format!("{number} ({name}) S 1 1 1 0 -1 {flags} {zeros}{priority} {policy} 0 0");
        self.file(&format!("/proc/{number}/task/{number}/stat"), stat);
        let status = format!("Name:\t{name}\nCpus_allowed:\tf\nCpus_allowed_list:\t{cpus}\n");
        self.file(&format!("/proc/{number}/task/{number}/status"), status);
    }

    /// Makes a change as the machine would.
    pub(crate) fn make(&mut self, change: &Change) {
        match change {
            Change::Write { path, value } => {
                self.file(path, value);
                if path.ends_with("/disable_ipv6") {
                    self.file("/proc/net/if_inet6", "");
                }
            }
            Change::Cpus { path, format: CpuFormat::List, cpus } => {
                self.file(path, cpus.to_string());
                if path.ends_with("/smp_affinity_list") {
                    // A message-signalled interrupt reaches one of these CPUs.
                    let effective = path.replace("/smp_", "/effective_");
                    self.file(&effective, cpus.last().unwrap_or(0).to_string());
                }
            }
            Change::Cpus { path, format: CpuFormat::Mask, cpus } => self.file(path, cpus.mask()),
            Change::Affinity { thread, name, cpus } => {
                self.thread(*thread, name, KERNEL, 0, 0, &cpus.to_string());
            }
            Change::Priority { thread, name, priority } => {
                self.thread(*thread, name, BOUND, 1, (*priority).into(), "3");
            }
            Change::ThreadedNapi { interface, priority } => {
                self.file(&format!("/sys/class/net/{interface}/threaded"), "1\n");
                self.thread(42, &format!("napi/{interface}-8193"), KERNEL, 1, (*priority).into(), "0-2");
            }
            Change::Driver { interface, values } => {
                assert_eq!(interface, "eth0");
                values.iter().for_each(|(setting, value)| self.drive(*setting, *value));
            }
            Change::Run { command, undo } => {
                assert_eq!(command[..3], undo[..3], "both speak of the same");
                self.run(&command.join(" "));
            }
        }
    }

    /// Sets the driver of `eth0`.
    fn drive(&mut self, setting: Setting, value: u32) {
        let coalescing = self.ethtool.coalescing.get_or_insert_default();
        let mut switch = |name| {
            let offload = self.ethtool.offloads.iter_mut().find(|it| it.name == name);
            offload.expect("an offload of the card").on = value != 0;
        };
        match setting {
            Setting::AdaptiveRx => coalescing.adaptive_receive = value != 0,
            Setting::AdaptiveTx => coalescing.adaptive_transmit = value != 0,
            Setting::RxUsecs => coalescing.receive_us = value,
            Setting::TxUsecs => coalescing.transmit_us = value,
            Setting::Gro => switch("gro"),
            Setting::Lro => switch("lro"),
            Setting::Eee => self.ethtool.energy_efficient = Some(value != 0),
            Setting::PauseAutoneg => {}
            Setting::PauseRx | Setting::PauseTx => self.ethtool.pause = Some(value != 0),
            Setting::RxQueues => self.ethtool.queues.get_or_insert_default().receive = value,
            Setting::CombinedQueues => self.ethtool.queues.get_or_insert_default().combined = value,
        }
    }

    /// Simulates the effect of a program.
    fn run(&mut self, command: &str) {
        match command {
            "ip link set eth0 up" => self.file("/sys/class/net/eth0/flags", "0x1003\n"),
            _ => panic!("no such command: {command}"),
        }
    }

    /// All of its files.
    pub(crate) fn files(&self) -> Vec<String> {
        let mut files = Vec::new();
        let mut folders = vec![self.folder.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("a folder").flatten() {
                match entry.file_type().expect("a type").is_dir() {
                    true => folders.push(entry.path()),
                    false => {
                        let path = entry.path();
                        let path = path.strip_prefix(&self.folder).expect("below the folder");
                        files.push(format!("/{}", path.display()));
                    }
                }
            }
        }
        files.sort();
        files
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

pub(crate) const USER: u32 = 0x0040_0000;
pub(crate) const KERNEL: u32 = 0x0020_0000;
pub(crate) const BOUND: u32 = 0x0420_0000;

const TUNED: &[(&str, &str)] = &[
    ("/proc/sys/kernel/osrelease", "6.12.48-rt-amd64\n"),
    ("/proc/sys/kernel/version", "#1 SMP PREEMPT_RT Debian 6.12.48-1 (2025-09-20)\n"),
    (
        "/proc/cmdline",
        "BOOT_IMAGE=/vmlinuz root=/dev/sda1 quiet isolcpus=3 nohz_full=3 rcu_nocbs=3 mitigations=off\n",
    ),
    (
        "/boot/config-6.12.48-rt-amd64",
        "CONFIG_PREEMPT_RT=y\nCONFIG_HIGH_RES_TIMERS=y\n# CONFIG_KASAN is not set\n",
    ),
    ("/proc/sys/kernel/tainted", "0\n"),
    ("/sys/kernel/tracing/current_tracer", "nop\n"),
    ("/sys/kernel/tracing/events/enable", "0\n"),
    ("/sys/devices/system/cpu/vulnerabilities/meltdown", "Not affected\n"),
    ("/sys/devices/system/cpu/vulnerabilities/spectre_v2", "Vulnerable\n"),
    (
        "/proc/self/limits",
        "Limit                     Soft Limit           Hard Limit           Units     \n\
         Max locked memory         unlimited            unlimited            bytes     \n\
         Max realtime priority     98                   98                            \n",
    ),
    ("/proc/self/status", "Name:\tonbeat\nCapEff:\t0000000000000000\n"),
    ("/proc/self/cgroup", "0::/user.slice\n"),
    ("/proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
    ("/proc/sys/kernel/sched_rt_period_us", "1000000\n"),
    ("/sys/kernel/debug/sched/fair_server/cpu3/runtime", "50000000\n"),
    ("/sys/kernel/debug/sched/fair_server/cpu3/period", "1000000000\n"),
    ("/sys/kernel/debug/sched/preempt", "none voluntary (full) lazy\n"),
    ("/sys/devices/system/cpu/possible", "0-3\n"),
    ("/sys/devices/system/cpu/online", "0-3\n"),
    ("/sys/devices/system/cpu/isolated", "3\n"),
    ("/sys/devices/system/cpu/nohz_full", "3\n"),
    ("/sys/kernel/rcu_expedited", "0\n"),
    ("/sys/devices/virtual/workqueue/cpumask", "7\n"),
    ("/sys/bus/workqueue/devices/writeback/cpumask", "7\n"),
    ("/sys/devices/system/cpu/cpu3/topology/thread_siblings_list", "3\n"),
    ("/sys/devices/system/cpu/cpu2/cpu_capacity", "1024\n"),
    ("/sys/devices/system/cpu/cpu3/cpu_capacity", "1024\n"),
    ("/sys/devices/system/cpu/cpu3/node0/cpulist", "0-3\n"),
    (
        "/proc/interrupts",
        "            CPU0       CPU1       CPU2       CPU3       \n\
         \x20 24:          0          0          0        512  PCI-MSI 524288-edge      eth0\n\
         \x20 25:          0       7000          0          0  PCI-MSI 524289-edge      nvme0q1\n\
         NMI:          0          0          0          0   Non-maskable interrupts\n\
         ERR:          0\n",
    ),
    ("/proc/irq/24/effective_affinity_list", "3\n"),
    ("/proc/irq/24/smp_affinity_list", "3\n"),
    ("/proc/irq/25/effective_affinity_list", "1\n"),
    ("/proc/irq/25/smp_affinity_list", "0-2\n"),
    ("/proc/irq/default_smp_affinity", "7\n"),
    ("/sys/devices/system/machinecheck/machinecheck3/check_interval", "0\n"),
    ("/sys/devices/system/cpu/cpu3/cpuidle/state0/name", "POLL\n"),
    ("/sys/devices/system/cpu/cpu3/cpuidle/state0/latency", "0\n"),
    ("/sys/devices/system/cpu/cpu3/cpuidle/state1/name", "C1\n"),
    ("/sys/devices/system/cpu/cpu3/cpuidle/state1/latency", "2\n"),
    ("/sys/devices/system/cpu/cpu3/cpuidle/state1/disable", "0\n"),
    ("/sys/devices/system/cpu/cpu3/cpuidle/state2/name", "C6\n"),
    ("/sys/devices/system/cpu/cpu3/cpuidle/state2/latency", "133\n"),
    ("/sys/devices/system/cpu/cpu3/cpuidle/state2/disable", "1\n"),
    ("/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", "performance\n"),
    ("/sys/devices/system/cpu/cpu3/cpufreq/scaling_driver", "intel_pstate\n"),
    ("/sys/devices/system/cpu/cpu3/cpufreq/energy_performance_preference", "performance\n"),
    ("/sys/devices/system/cpu/intel_pstate/no_turbo", "1\n"),
    ("/sys/devices/system/cpu/cpu3/thermal_throttle/core_throttle_count", "0\n"),
    ("/sys/devices/system/cpu/cpu3/thermal_throttle/package_throttle_count", "0\n"),
    ("/sys/module/pcie_aspm/parameters/policy", "default [performance] powersave powersupersave\n"),
    ("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
    ("/sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet acpi_pm \n"),
    ("/proc/timer_list", "Timer List Version: v0.9\ncpu: 0\n  .hres_active    : 1\n"),
    ("/proc/sys/kernel/timer_migration", "0\n"),
    ("/proc/sys/kernel/nmi_watchdog", "0\n"),
    ("/proc/sys/kernel/soft_watchdog", "1\n"),
    ("/proc/sys/kernel/watchdog_cpumask", "0-2\n"),
    ("/proc/sys/vm/stat_interval", "120\n"),
    ("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
    ("/sys/kernel/mm/ksm/run", "0\n"),
    ("/proc/sys/kernel/numa_balancing", "0\n"),
    (
        "/proc/swaps",
        "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/zram0 partition 8388604 0 100\n",
    ),
    ("/proc/sys/vm/compaction_proactiveness", "0\n"),
    ("/proc/sys/vm/compact_unevictable_allowed", "0\n"),
    ("/proc/sys/vm/zone_reclaim_mode", "0\n"),
    (
        "/proc/meminfo",
        "MemTotal:       16000000 kB\nMemFree:         800000 kB\nMemAvailable:   12000000 kB\n",
    ),
    ("/sys/devices/system/edac/mc/mc0/ce_count", "0\n"),
    ("/proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu tsc msr constant_tsc\n"),
    ("/sys/class/dmi/id/product_name", "Industrial PC 3000\n"),
    ("/proc/stat", "cpu  100 0 100 9000 0 0 0 0 0 0\ncpu3 10 0 10 900 0 0 0 0 0 0\n"),
    ("/proc/uptime", "36000.00 140000.00\n"),
    ("/proc/sys/kernel/printk", "4\t4\t1\t7\n"),
    ("/sys/class/tty/console/active", "tty0\n"),
    ("/proc/sys/kernel/sched_schedstats", "0\n"),
    ("/sys/class/net/eth0/flags", "0x1003\n"),
    ("/sys/class/net/eth0/carrier", "1\n"),
    ("/sys/class/net/eth0/speed", "100\n"),
    ("/sys/class/net/eth0/duplex", "full\n"),
    ("/sys/class/net/eth0/mtu", "1500\n"),
    ("/sys/class/net/eth0/ifindex", "2\n"),
    ("/sys/class/net/eth0/threaded", "0\n"),
    ("/sys/class/net/eth0/gro_flush_timeout", "0\n"),
    ("/sys/class/net/eth0/napi_defer_hard_irqs", "0\n"),
    ("/sys/class/net/eth0/statistics/rx_crc_errors", "0\n"),
    ("/sys/class/net/eth0/statistics/rx_errors", "0\n"),
    ("/sys/class/net/eth0/device/msi_irqs/24", "msix\n"),
    ("/sys/class/net/eth0/device/power/control", "on\n"),
    ("/sys/class/net/eth0/device/numa_node", "0\n"),
    ("/sys/class/net/eth1/queues/rx-0/rps_cpus", "0\n"),
    ("/proc/net/route", "Iface\tDestination\tGateway\neth1\t00000000\t0101A8C0\n"),
    ("/proc/net/if_inet6", "fe80000000000000020000fffe000001 03 40 20 80     eth1\n"),
    (
        "/proc/net/packet",
        "sk       RefCnt Type Proto  Iface R Rmem   User   Inode\nffff 3 3 88cc 3 1 0 0 1\n",
    ),
    ("/run/NetworkManager/devices/2", "[device]\nmanaged=false\n"),
    ("/run/systemd/netif/links/2", "ADMIN_STATE=unmanaged\nOPER_STATE=carrier\n"),
];
