//! Defects of a well-tuned machine, and the finding of the check for each.

use std::time::Duration;

use crate::machine::check::Severity::{self, Critical, Note, Ok, Warning};
use crate::machine::ethtool::{Coalescing, Offload, Queues};
use crate::tree::{KERNEL, Tree, USER};

pub(crate) struct Row {
    pub(crate) check: &'static str,
    pub(crate) spoil: fn(&mut Tree),
    pub(crate) severity: Severity,
    /// Part of the state found.
    pub(crate) found: &'static str,
    /// True if a fix exists.
    pub(crate) fixable: bool,
}

const fn row(check: &'static str, severity: Severity, found: &'static str, spoil: fn(&mut Tree)) -> Row {
    Row { check, spoil, severity, found, fixable: false }
}

const fn fixable(
    check: &'static str,
    severity: Severity,
    found: &'static str,
    spoil: fn(&mut Tree),
) -> Row {
    Row { check, spoil, severity, found, fixable: true }
}

/// Ordinary kernel, built with these options.
fn ordinary(tree: &mut Tree, config: &str) {
    tree.file("/proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC Debian 6.12.48-1\n");
    tree.file("/boot/config-6.12.48-rt-amd64", format!("CONFIG_HIGH_RES_TIMERS=y\n{config}"));
}

const CPU: &str = "/sys/devices/system/cpu/cpu3";
const NIC: &str = "/sys/class/net/eth0";

pub(crate) const ROWS: &[Row] = &[
    row("preempt-rt", Warning, "PREEMPT_DYNAMIC", |tree| ordinary(tree, "")),
    row("preempt-rt", Ok, "PREEMPT_RT", |tree| {
        ordinary(tree, "");
        tree.file("/sys/kernel/realtime", "1\n");
    }),
    fixable("preemption-model", Warning, "voluntary", |tree| {
        ordinary(tree, "");
        tree.file("/sys/kernel/debug/sched/preempt", "none (voluntary) full\n");
    }),
    row("preemption-model", Ok, "full", |tree| ordinary(tree, "")),
    row("preemption-model", Warning, "lazy", |tree| {
        ordinary(tree, "CONFIG_PREEMPT_NONE=y\nCONFIG_PREEMPT_DYNAMIC=y\n");
        tree.remove("/sys/kernel/debug");
        tree.file("/proc/cmdline", "quiet preempt=full preempt=lazy");
    }),
    row("preemption-model", Warning, "none", |tree| {
        ordinary(tree, "CONFIG_PREEMPT_NONE=y\n");
        tree.remove("/sys/kernel/debug");
        tree.file("/proc/cmdline", "preempt=full");
    }),
    row("preemption-model", Note, "not known", |tree| {
        ordinary(tree, "");
        tree.remove("/sys/kernel/debug");
    }),
    row("interrupt-threads", Note, "no", |tree| ordinary(tree, "")),
    row("interrupt-threads", Ok, "threadirqs", |tree| {
        ordinary(tree, "");
        tree.file("/proc/cmdline", "quiet threadirqs");
    }),
    row("dual-kernel", Warning, "Xenomai", |tree| tree.file("/proc/xenomai/version", "3.2\n")),
    row("dual-kernel", Warning, "EVL", |tree| tree.file("/sys/devices/virtual/evl/control/abi", "1\n")),
    row("debug-options", Warning, "KASAN", |tree| {
        ordinary(tree, "CONFIG_KASAN=y\nCONFIG_DEBUG_PREEMPT=y\n");
    }),
    row("debug-options", Note, "DEBUG_PREEMPT", |tree| ordinary(tree, "CONFIG_DEBUG_PREEMPT=y\n")),
    row("debug-options", Note, "not known", |tree| tree.remove("/boot")),
    fixable("tracers", Warning, "function_graph", |tree| {
        tree.file("/sys/kernel/tracing/current_tracer", "function_graph\n");
    }),
    row("tracers", Note, "events", |tree| tree.file("/sys/kernel/tracing/events/enable", "X\n")),
    row("mitigations", Note, "meltdown", |tree| {
        tree.file("/sys/devices/system/cpu/vulnerabilities/meltdown", "Mitigation: PTI\n");
    }),
    row("kernel-trouble", Warning, "soft lockup", |tree| tree.file("/proc/sys/kernel/tainted", "16896\n")),
    row("kernel-trouble", Ok, "none", |tree| tree.file("/proc/sys/kernel/tainted", "12289\n")),
    row("real-time-priority", Critical, "no right", |tree| {
        tree.file("/proc/self/limits", "Max realtime priority     0      0\n");
    }),
    row("real-time-priority", Critical, "up to 79", |tree| {
        tree.file("/proc/self/limits", "Max realtime priority     79      99\n");
    }),
    row("real-time-priority", Ok, "CAP_SYS_NICE", |tree| {
        tree.file("/proc/self/limits", "Max realtime priority     0      0\n");
        tree.file("/proc/self/status", "CapEff:\t0000000000800000\n");
    }),
    row("memory-lock", Warning, "8192 KiB", |tree| {
        tree.file("/proc/self/limits", "Max locked memory   8388608   8388608   bytes\n");
    }),
    row("memory-lock", Ok, "CAP_IPC_LOCK", |tree| {
        tree.file("/proc/self/limits", "Max locked memory   8388608   8388608   bytes\n");
        tree.file("/proc/self/status", "CapEff:\t0000000000004000\n");
    }),
    fixable("rt-group-sched", Critical, "/system.slice", |tree| {
        tree.file("/proc/self/cgroup", "2:cpu,cpuacct:/system.slice\n0::/system.slice\n");
        tree.file("/sys/fs/cgroup/cpu,cpuacct/system.slice/cpu.rt_runtime_us", "0\n");
    }),
    fixable("rt-group-sched", Critical, "group /user.slice", |tree| {
        ordinary(tree, "CONFIG_RT_GROUP_SCHED=y\n");
        tree.file("/proc/self/cgroup", "0::/user.slice/session.scope\n");
        tree.file("/sys/fs/cgroup/user.slice/cpu.weight", "100\n");
    }),
    fixable("rt-group-sched", Critical, "group /", |tree| {
        ordinary(tree, "CONFIG_RT_GROUP_SCHED=y\n");
        tree.file("/proc/self/cgroup", "0::/\n");
        tree.file("/sys/fs/cgroup/unified/cpu.weight", "100\n");
    }),
    row("rt-group-sched", Ok, "allowed", |tree| ordinary(tree, "CONFIG_RT_GROUP_SCHED=y\n")),
    row("rt-group-sched", Ok, "allowed", |tree| {
        ordinary(tree, "CONFIG_RT_GROUP_SCHED=y\nCONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED=y\n");
        tree.file("/sys/fs/cgroup/user.slice/cpu.weight", "100\n");
    }),
    row("rt-group-sched", Ok, "no real-time limit", |tree| {
        ordinary(tree, "CONFIG_RT_GROUP_SCHED=y\n");
        tree.file("/sys/fs/cgroup/user.slice/cpu.weight", "100\n");
        tree.file("/proc/sys/kernel/sched_rt_runtime_us", "-1\n");
    }),
    fixable("rt-throttling", Warning, "500000 us", |tree| {
        tree.file("/proc/sys/kernel/sched_rt_runtime_us", "500000\n");
    }),
    fixable("rt-throttling", Critical, "no time", |tree| {
        tree.file("/proc/sys/kernel/sched_rt_runtime_us", "0\n");
    }),
    row("rt-throttling", Ok, "no limit", |tree| tree.file("/proc/sys/kernel/sched_rt_runtime_us", "-1\n")),
    fixable("fair-server", Warning, "200 ms of each 1000 ms", |tree| {
        tree.file("/sys/kernel/debug/sched/fair_server/cpu3/runtime", "200000000\n");
    }),
    row("rival-threads", Warning, "jackd", |tree| tree.thread(5000, "jackd", USER, 1, 80, "0-3")),
    row("rival-threads", Warning, "SCHED_DEADLINE", |tree| tree.thread(5000, "servo", USER, 6, 0, "3")),
    row("rival-threads", Ok, "none", |tree| tree.thread(5000, "pipewire", USER, 1, 79, "0-3")),
    row("cpu-online", Critical, "not online", |tree| tree.file("/sys/devices/system/cpu/online", "0-2\n")),
    row("cpu-online", Warning, "1 CPU", |tree| tree.file("/sys/devices/system/cpu/online", "3\n")),
    row("isolated-cpu", Warning, "shared", |tree| tree.file("/sys/devices/system/cpu/isolated", "\n")),
    row("isolated-cpu", Ok, "isolated", |tree| {
        tree.file("/sys/devices/system/cpu/isolated", "\n");
        tree.file("/sys/fs/cgroup/cpuset.cpus.isolated", "3\n");
    }),
    row("tickless-cpu", Note, "ticks", |tree| tree.file("/sys/devices/system/cpu/nohz_full", "(null)\n")),
    row("rcu-callbacks", Note, "CPU 3", |tree| {
        tree.remove("/proc/31");
        tree.file("/proc/cmdline", "rcu_nocbs=0-2");
    }),
    row("rcu-callbacks", Ok, "offloaded", |tree| {
        tree.remove("/proc/31");
        tree.file("/proc/cmdline", "rcu_nocbs=all");
    }),
    fixable("rcu-expedited", Warning, "on", |tree| tree.file("/sys/kernel/rcu_expedited", "1\n")),
    fixable("kernel-threads", Note, "kthreadd", |tree| tree.thread(2, "kthreadd", KERNEL, 0, 0, "0-3")),
    fixable("workqueues", Warning, "CPU 3", |tree| {
        tree.file("/sys/devices/virtual/workqueue/cpumask", "f\n")
    }),
    fixable("workqueues", Warning, "CPU 3", |tree| {
        tree.file("/sys/bus/workqueue/devices/writeback/cpumask", "00000000,0000000f\n");
    }),
    row("smt-sibling", Warning, "CPU 1", |tree| {
        tree.file(&format!("{CPU}/topology/thread_siblings_list"), "1,3\n")
    }),
    row("smt-sibling", Ok, "alone", |tree| {
        tree.file(&format!("{CPU}/topology/thread_siblings_list"), "1,3\n");
        tree.file("/sys/devices/system/cpu/online", "0,2-3\n");
    }),
    row("core-kind", Note, "small", |tree| tree.file(&format!("{CPU}/cpu_capacity"), "446\n")),
    row("core-kind", Note, "small", |tree| tree.file("/sys/devices/cpu_atom/cpus", "2-3\n")),
    row("skewed-ticks", Note, "16 CPUs", |tree| tree.file("/sys/devices/system/cpu/online", "0-15\n")),
    fixable("interrupts", Warning, "25 (nvme0q1)", |tree| {
        tree.remove("/proc/irq/25/effective_affinity_list");
        tree.file("/proc/irq/25/smp_affinity_list", "0-3\n");
    }),
    row("interrupts", Ok, "none", |tree| {
        let table =
            "  CPU0 CPU1 CPU2 CPU3\n 11: 9 9 9 9 GICv3 27 Level arch_timer\nIPI0: 1 1 1 1 Rescheduling\n";
        tree.file("/proc/interrupts", table);
        tree.file("/proc/irq/11/smp_affinity_list", "0-3\n");
    }),
    fixable("interrupts", Warning, "12 (eth1)", |tree| {
        let table = "  CPU0 CPU1 CPU2 CPU3\n 12: 9 9 9 9 GICv3 44 Level eth1\n";
        tree.file("/proc/interrupts", table);
        tree.file("/proc/irq/12/smp_affinity_list", "0-3\n");
    }),
    fixable("new-interrupts", Note, "CPU 3", |tree| tree.file("/proc/irq/default_smp_affinity", "f\n")),
    row("interrupt-priorities", Warning, "irq/25-nvme0q1 at 95", |tree| {
        tree.thread(41, "irq/25-nvme0q1", KERNEL, 1, 95, "0-3");
    }),
    row("irqbalance", Warning, "running", |tree| {
        tree.thread(700, "irqbalance", USER, 0, 0, "0-2");
        tree.file("/sys/devices/system/cpu/isolated", "\n");
    }),
    row("irqbalance", Ok, "isolated", |tree| tree.thread(700, "irqbalance", USER, 0, 0, "0-2")),
    fixable("packet-steering", Note, "eth1", |tree| {
        tree.file("/sys/class/net/eth1/queues/rx-0/rps_cpus", "f\n");
    }),
    fixable("machine-check-poll", Note, "on", |tree| {
        tree.file("/sys/devices/system/machinecheck/machinecheck3/check_interval", "12c\n");
    }),
    fixable("sleep-states", Note, "C6 (133 us)", |tree| {
        tree.file(&format!("{CPU}/cpuidle/state2/disable"), "0\n");
    }),
    fixable("sleep-states", Warning, "C6 (133 us)", |tree| {
        tree.file(&format!("{CPU}/cpuidle/state2/disable"), "0\n");
        tree.remove("/dev/cpu_dma_latency");
    }),
    row("sleep-states", Ok, "prevents them", |tree| {
        tree.file(&format!("{CPU}/cpuidle/state2/disable"), "0\n");
        tree.file("/dev/cpu_dma_latency", [0, 0, 0, 0]);
    }),
    fixable("frequency-governor", Warning, "powersave", |tree| {
        tree.file(&format!("{CPU}/cpufreq/scaling_governor"), "powersave\n");
    }),
    fixable("energy-preference", Warning, "balance_power", |tree| {
        tree.file(&format!("{CPU}/cpufreq/energy_performance_preference"), "balance_power\n");
    }),
    row("energy-preference", Warning, "balance_power", |tree| {
        tree.file(&format!("{CPU}/cpufreq/scaling_governor"), "powersave\n");
        tree.file(&format!("{CPU}/cpufreq/energy_performance_preference"), "balance_power\n");
    }),
    row("frequency-driver", Note, "none", |tree| tree.remove(&format!("{CPU}/cpufreq"))),
    fixable("turbo", Note, "on", |tree| tree.file("/sys/devices/system/cpu/intel_pstate/no_turbo", "0\n")),
    fixable("turbo", Note, "on", |tree| {
        tree.remove("/sys/devices/system/cpu/intel_pstate");
        tree.file("/sys/devices/system/cpu/cpufreq/boost", "1\n");
    }),
    row("thermal-throttling", Warning, "12 times", |tree| {
        tree.file(&format!("{CPU}/thermal_throttle/core_throttle_count"), "12\n");
    }),
    fixable("pcie-power", Note, "default", |tree| {
        tree.file("/sys/module/pcie_aspm/parameters/policy", "[default] performance powersave\n");
    }),
    row("power-daemons", Note, "tuned", |tree| tree.thread(800, "tuned", USER, 0, 0, "0-2")),
    fixable("clock-source", Warning, "hpet", |tree| {
        tree.file("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n");
    }),
    row("clock-source", Warning, "acpi_pm", |tree| {
        tree.file("/sys/devices/system/clocksource/clocksource0/current_clocksource", "acpi_pm\n");
        tree.file("/sys/devices/system/clocksource/clocksource0/available_clocksource", "hpet acpi_pm\n");
    }),
    row("high-resolution-timers", Critical, "not active", |tree| {
        tree.file("/proc/timer_list", "  .hres_active    : 0\n");
    }),
    row("high-resolution-timers", Critical, "highres=off", |tree| {
        tree.remove("/proc/timer_list");
        tree.file("/proc/cmdline", "highres=off");
    }),
    row("high-resolution-timers", Ok, "built in", |tree| tree.remove("/proc/timer_list")),
    row("high-resolution-timers", Note, "not known", |tree| {
        tree.remove("/proc/timer_list");
        tree.remove("/boot");
    }),
    fixable("timer-migration", Note, "on", |tree| tree.file("/proc/sys/kernel/timer_migration", "1\n")),
    fixable("nmi-watchdog", Warning, "on", |tree| tree.file("/proc/sys/kernel/nmi_watchdog", "1\n")),
    fixable("soft-lockup-watchdog", Note, "on", |tree| {
        tree.file("/proc/sys/kernel/watchdog_cpumask", "0-3\n")
    }),
    row("soft-lockup-watchdog", Ok, "off", |tree| {
        tree.file("/proc/sys/kernel/watchdog_cpumask", "0-3\n");
        tree.file("/proc/sys/kernel/soft_watchdog", "0\n");
    }),
    fixable("vm-statistics", Note, "every 1 s", |tree| tree.file("/proc/sys/vm/stat_interval", "1\n")),
    fixable("transparent-huge-pages", Note, "always", |tree| {
        tree.file("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n");
    }),
    fixable("same-page-merging", Warning, "on", |tree| tree.file("/sys/kernel/mm/ksm/run", "1\n")),
    fixable("numa-balancing", Warning, "on", |tree| tree.file("/proc/sys/kernel/numa_balancing", "1\n")),
    row("swap", Note, "/dev/sda2", |tree| {
        tree.file("/proc/swaps", "Filename Type Size Used Priority\n/dev/sda2 partition 8388604 0 -2\n");
    }),
    fixable("compaction", Note, "degree 20", |tree| {
        tree.file("/proc/sys/vm/compaction_proactiveness", "20\n")
    }),
    fixable("compaction-of-locked", Note, "on", |tree| {
        tree.file("/proc/sys/vm/compact_unevictable_allowed", "1\n");
    }),
    fixable("zone-reclaim", Note, "mode 1", |tree| tree.file("/proc/sys/vm/zone_reclaim_mode", "1\n")),
    row("free-memory", Warning, "of 15625 MiB", |tree| {
        tree.file("/proc/meminfo", "MemTotal:       16000000 kB\nMemAvailable:   1000000 kB\n");
    }),
    row("memory-errors", Warning, "7 since boot", |tree| {
        tree.file("/sys/devices/system/edac/mc/mc1/ce_count", "7\n")
    }),
    row("hypervisor", Warning, "virtual machine", |tree| {
        tree.file("/proc/cpuinfo", "vendor_id : GenuineIntel\nflags : fpu hypervisor tsc\n");
    }),
    row("hypervisor", Warning, "VMware", |tree| tree.file("/sys/class/dmi/id/product_name", "VMware7,1\n")),
    row("steal-time", Critical, "of CPU 3", |tree| {
        tree.file("/proc/stat", "cpu 1 0 1 98 0 0 0 2 0 0\ncpu3 1 0 1 98 0 0 0 2 0 0\n");
    }),
    row("steal-time", Warning, "0.10 %", |tree| {
        tree.file("/proc/stat", "cpu 1 0 1 998 0 0 0 0 0 0\ncpu3 0 0 0 999 0 0 0 1 0 0\n");
    }),
    row("container", Note, "Docker", |tree| tree.file("/.dockerenv", "")),
    row("container", Note, "lxc", |tree| tree.file("/run/systemd/container", "lxc\n")),
    row("firmware-interrupts", Warning, "100 since boot, 10.0 an hour", |tree| {
        let mut registers = [0; 0x40];
        registers[0x34] = 100;
        tree.file("/dev/cpu/3/msr", registers);
    }),
    row("firmware-interrupts", Note, "5 since boot", |tree| {
        let mut registers = [0; 0x40];
        registers[0x34] = 5;
        tree.file("/dev/cpu/3/msr", registers);
    }),
    row("firmware-interrupts", Note, "not known", |tree| tree.remove("/dev/cpu/3/msr")),
    row("nic-link", Critical, "no such interface", |tree| tree.remove(NIC)),
    fixable("nic-link", Critical, "down", |tree| tree.file(&format!("{NIC}/flags"), "0x1002\n")),
    row("nic-link", Critical, "no carrier", |tree| tree.file(&format!("{NIC}/carrier"), "0\n")),
    row("nic-speed", Critical, "10 Mbit/s", |tree| tree.file(&format!("{NIC}/speed"), "10\n")),
    row("nic-speed", Critical, "half", |tree| tree.file(&format!("{NIC}/duplex"), "half\n")),
    row("nic-speed", Note, "not known", |tree| tree.file(&format!("{NIC}/speed"), "-1\n")),
    row("nic-driver", Critical, "wireless", |tree| tree.file(&format!("{NIC}/wireless/link"), "0\n")),
    row("nic-driver", Warning, "USB", |tree| {
        tree.link(&format!("{NIC}/device/subsystem"), "../../bus/usb")
    }),
    row("nic-driver", Note, "virtual", |tree| tree.remove(&format!("{NIC}/device"))),
    fixable("nic-mtu", Warning, "576", |tree| tree.file(&format!("{NIC}/mtu"), "576\n")),
    row("nic-mtu", Ok, "9000", |tree| tree.file(&format!("{NIC}/mtu"), "9000\n")),
    fixable("nic-coalescing", Warning, "3 us received, 0 us sent", |tree| {
        tree.ethtool.coalescing = Some(Coalescing { receive_us: 3, ..Coalescing::default() });
    }),
    fixable("nic-coalescing", Warning, "adaptive", |tree| {
        tree.ethtool.coalescing = Some(Coalescing { adaptive_receive: true, ..Coalescing::default() });
    }),
    fixable("nic-offloads", Note, "gro", |tree| {
        tree.ethtool.offloads = vec![Offload { name: "gro", on: true }];
    }),
    fixable("nic-offloads", Note, "gro, lro", |tree| {
        tree.ethtool.offloads = ["gro", "lro"].map(|name| Offload { name, on: true }).to_vec();
    }),
    fixable("nic-energy-efficient", Warning, "on", |tree| tree.ethtool.energy_efficient = Some(true)),
    fixable("nic-queues", Note, "4 receive", |tree| {
        tree.ethtool.queues = Some(Queues { receive: 0, combined: 4 });
    }),
    fixable("nic-queues", Note, "2 receive", |tree| {
        tree.ethtool.queues = Some(Queues { receive: 2, combined: 0 });
    }),
    fixable("nic-interrupt", Note, "priority 50", |tree| {
        tree.thread(40, "irq/24-eth0", KERNEL, 1, 50, "3")
    }),
    fixable("nic-interrupt", Note, "24 on CPU 3 of 0-3", |tree| {
        tree.file("/proc/irq/24/smp_affinity_list", "0-3\n")
    }),
    fixable("nic-interrupt", Note, "24 on CPU 3, priority 79", |tree| tree.interrupt_cpu = Some(1)),
    row("nic-interrupt", Ok, "24 on CPU 3", |tree| tree.interrupt_cpu = Some(3)),
    row("nic-interrupt", Ok, "virtual", |tree| {
        tree.remove(&format!("{NIC}/device"));
        tree.remove("/proc/interrupts");
    }),
    fixable("nic-threaded-napi", Note, "off", |tree| ordinary(tree, "")),
    row("nic-threaded-napi", Note, "not to be seen", |tree| tree.file(&format!("{NIC}/threaded"), "1\n")),
    fixable("nic-threaded-napi", Warning, "ordinary priority", |tree| {
        tree.file(
            &format!("{NIC}/threaded"),
            "1
",
        );
        tree.thread(42, "napi/eth0-1", KERNEL, 0, 0, "0-2");
    }),
    row("nic-threaded-napi", Ok, "priority 50", |tree| {
        tree.file(
            &format!("{NIC}/threaded"),
            "1
",
        );
        tree.thread(42, "napi/eth0-1", KERNEL, 1, 50, "0-2");
    }),
    fixable("nic-deferral", Warning, "gro_flush_timeout", |tree| {
        tree.file(&format!("{NIC}/gro_flush_timeout"), "20000\n");
    }),
    fixable("nic-deferral", Warning, "gro_flush_timeout = 0 ns, napi_defer_hard_irqs = 0", |tree| {
        tree.polling = Some(Duration::from_millis(1));
    }),
    fixable("nic-deferral", Warning, "gro_flush_timeout = 200000 ns", |tree| {
        tree.polling = Some(Duration::from_micros(200));
        tree.file(&format!("{NIC}/gro_flush_timeout"), "200000\n");
        tree.file(&format!("{NIC}/napi_defer_hard_irqs"), "2\n");
    }),
    row("nic-deferral", Ok, "napi_defer_hard_irqs = 2", |tree| {
        tree.polling = Some(Duration::from_millis(1));
        tree.file(&format!("{NIC}/gro_flush_timeout"), "200000\n");
        tree.file(&format!("{NIC}/napi_defer_hard_irqs"), "2\n");
    }),
    row("nic-deferral", Note, "the kernel has none", |tree| {
        tree.polling = Some(Duration::from_millis(1));
        tree.remove(&format!("{NIC}/napi_defer_hard_irqs"));
    }),
    fixable("nic-pause", Note, "on", |tree| tree.ethtool.pause = Some(true)),
    fixable("nic-power", Note, "managed", |tree| {
        tree.file(&format!("{NIC}/device/power/control"), "auto\n")
    }),
    row("nic-errors", Warning, "3 rx_crc_errors", |tree| {
        tree.file(&format!("{NIC}/statistics/rx_crc_errors"), "3\n");
    }),
    row("nic-memory-node", Note, "node 1", |tree| tree.file(&format!("{NIC}/device/numa_node"), "1\n")),
    row("nic-addresses", Warning, "10.0.0.0", |tree| {
        let network = u32::from_ne_bytes([10, 0, 0, 0]);
        tree.file("/proc/net/route", format!("Iface Destination Gateway\neth0 {network:08X} 00000000\n"));
    }),
    fixable("nic-ipv6", Warning, "2 addresses", |tree| {
        let of_link = "02 40 20 80     eth0\n";
        tree.file("/proc/net/if_inet6", format!("fe80::1 {of_link}fe80::2 {of_link}"));
    }),
    row("nic-ipv6", Warning, "an address", |tree| {
        tree.file("/proc/net/if_inet6", "fd000000000000000000000000000002 02 40 00 80     eth0\n");
    }),
    row("nic-network-manager", Warning, "NetworkManager", |tree| {
        tree.file("/run/NetworkManager/devices/2", "[device]\nmanaged=true\n");
    }),
    row("nic-network-manager", Warning, "systemd-networkd", |tree| {
        tree.file("/run/systemd/netif/links/2", "ADMIN_STATE=configured\n");
    }),
    row("nic-bridge", Critical, "br0", |tree| tree.link(&format!("{NIC}/master"), "../br0")),
    row("nic-other-sockets", Warning, "2 raw sockets", |tree| {
        tree.file(
            "/proc/net/packet",
            "sk RefCnt Type Proto Iface R\na 3 3 0003 2 1 0\nb 3 3 0003 0 1 0\nc 3 3 3 9 1 0\n",
        );
    }),
    fixable("console-level", Warning, "7", |tree| tree.file("/proc/sys/kernel/printk", "7\t4\t1\t7\n")),
    row("console-level", Note, "not known", |tree| tree.file("/proc/sys/kernel/printk", "loud\n")),
    row("serial-console", Note, "ttyS0", |tree| tree.file("/sys/class/tty/console/active", "tty0 ttyS0\n")),
    row("boot-debugging", Note, "debug, slub_debug", |tree| {
        tree.file("/proc/cmdline", "debug slub_debug=FZ kmemleak=off")
    }),
    fixable("scheduler-statistics", Note, "on", |tree| {
        tree.file("/proc/sys/kernel/sched_schedstats", "1\n")
    }),
    row("journaling", Note, "on sda1, nvme0n1p2", |tree| {
        tree.file("/proc/fs/jbd2/sda1-8/info", "");
        tree.file("/proc/mounts", "/dev/nvme0n1p2 /data xfs rw 0 0\n/dev/sda1 / ext4 rw 0 0\n");
    }),
    fixable("task-migration", Note, "up to 32", |tree| {
        tree.file("/sys/kernel/debug/sched/nr_migrate", "32\n")
    }),
    fixable("task-migration", Note, "up to 64", |tree| {
        tree.remove("/sys/kernel/debug");
        tree.file("/proc/sys/kernel/sched_nr_migrate", "64\n");
    }),
    row("graphical-target", Note, "Xorg, gdm", |tree| {
        tree.thread(901, "gdm", USER, 0, 0, "0-3");
        tree.thread(902, "Xorg", USER, 0, 0, "0-3");
    }),
    fixable("oom-score", Note, "0 of process 902", |tree| {
        tree.thread(902, "cycle", USER, 1, 79, "0");
        tree.file("/proc/902/oom_score_adj", "0\n");
    }),
    row("oom-score", Note, "no cycle runs; one that is started from here gets 300", |tree| {
        tree.file("/proc/self/oom_score_adj", "300\n")
    }),
];
