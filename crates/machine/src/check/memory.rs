//! Checks of memory management: work of the kernel that delays the cycle.

use super::{Area, Check, Finding, Subject, some_of};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "vm-statistics",
        area: Area::Memory,
        wanted: "every 10 s or less often",
        why: "A worker on every CPU folds memory statistics together, each second by default.",
        look: statistics,
    },
    Check {
        name: "transparent-huge-pages",
        area: Area::Memory,
        wanted: "never, or only on request",
        why: "The kernel collects small pages into huge pages without notice: the page moves, and \
            a task that uses it waits. onbeat run switches it off for itself.",
        look: huge_pages,
    },
    Check {
        name: "same-page-merging",
        area: Area::Memory,
        wanted: "off",
        why: "KSM makes equal pages one; writing to such a page faults and copies it, even if it is locked.",
        look: same_pages,
    },
    Check {
        name: "numa-balancing",
        area: Area::Memory,
        wanted: "off",
        why: "The kernel unmaps pages for a moment to see which tasks use them: a page fault in \
            the middle of a cycle.",
        look: numa_balancing,
    },
    Check {
        name: "swap",
        area: Area::Memory,
        wanted: "none, or compressed in memory",
        why: "Pages of programs the cycle depends on, and of the kernel's callers, come back from disk after \
              milliseconds. The cycle's own are locked.",
        look: swap,
    },
    Check {
        name: "compaction",
        area: Area::Memory,
        wanted: "only on demand",
        why: "A background thread moves pages together and interrupts every CPU that has them mapped.",
        look: compaction,
    },
    Check {
        name: "compaction-of-locked",
        area: Area::Memory,
        wanted: "off",
        why: "Memory that is locked stays in memory, but the kernel may still move it, and a task \
            that uses it at that time waits. PREEMPT_RT kernels have this off.",
        look: compaction_of_locked,
    },
    Check {
        name: "zone-reclaim",
        area: Area::Memory,
        wanted: "off",
        why: "With it, a task that allocates memory may have to free some first, on this node.",
        look: zone_reclaim,
    },
    Check {
        name: "free-memory",
        area: Area::Memory,
        wanted: "a tenth or more available",
        why: "When memory runs short, every program that allocates a page must help to free some, \
            and the disk is busy.",
        look: free_memory,
    },
    Check {
        name: "oom-score",
        area: Area::Memory,
        wanted: "-1000 for each cycle that runs",
        why: "When memory runs out, the kernel kills the process with the highest score, and a robot in motion is no \
              better than any other.",
        look: oom_score,
    },
    Check {
        name: "memory-errors",
        area: Area::Memory,
        wanted: "none corrected since boot",
        why: "A corrected memory error is often reported by the firmware, which stops all CPUs to do so.",
        look: memory_errors,
    },
];

fn statistics(check: &Check, subject: &Subject) -> Finding {
    const FILE: &str = "/proc/sys/vm/stat_interval";
    match subject.root.number(FILE) {
        Some(seconds) if (0..10).contains(&seconds) => {
            check.note(format!("every {seconds} s"), "sysctl vm.stat_interval=120").writing(FILE, "120")
        }
        Some(seconds) => check.ok(format!("every {seconds} s")),
        None => check.ok("none to be seen"),
    }
}

fn huge_pages(check: &Check, subject: &Subject) -> Finding {
    const FILE: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
    match subject.root.chosen(FILE).as_deref() {
        Some("always") => check
            .note("always", format!("echo madvise > {FILE}, or boot with transparent_hugepage=never"))
            .writing(FILE, "madvise"),
        Some(chosen) => check.ok(chosen),
        None => check.ok("none"),
    }
}

fn same_pages(check: &Check, subject: &Subject) -> Finding {
    const FILE: &str = "/sys/kernel/mm/ksm/run";
    match subject.root.number(FILE) {
        // 0 is off; 2 is off, and all merged pages are separated again.
        Some(1) => check.warning("on", format!("echo 0 > {FILE}; stop ksmtuned")).writing(FILE, "0"),
        _ => check.ok("off"),
    }
}

fn numa_balancing(check: &Check, subject: &Subject) -> Finding {
    const FILE: &str = "/proc/sys/kernel/numa_balancing";
    match subject.root.number(FILE) {
        Some(on) if on != 0 => check.warning("on", "sysctl kernel.numa_balancing=0").writing(FILE, "0"),
        _ => check.ok("off"),
    }
}

fn swap(check: &Check, subject: &Subject) -> Finding {
    let text = subject.root.text("/proc/swaps").unwrap_or_default();
    let devices = text.lines().skip(1).filter_map(|line| line.split_ascii_whitespace().next());
    let on_disk: Vec<&str> = devices.filter(|device| !device.contains("zram")).collect();
    match on_disk.is_empty() {
        true => check.ok("none on a disk"),
        false => check.note(on_disk.join(", "), "swapoff -a, and take it out of /etc/fstab."),
    }
}

fn compaction(check: &Check, subject: &Subject) -> Finding {
    const FILE: &str = "/proc/sys/vm/compaction_proactiveness";
    match subject.root.number(FILE) {
        Some(degree) if degree > 0 => check
            .note(
                format!("in the background, degree {degree} of 100"),
                "sysctl vm.compaction_proactiveness=0",
            )
            .writing(FILE, "0"),
        _ => check.ok("only on demand"),
    }
}

fn compaction_of_locked(check: &Check, subject: &Subject) -> Finding {
    const FILE: &str = "/proc/sys/vm/compact_unevictable_allowed";
    match subject.root.number(FILE) {
        Some(allowed) if allowed != 0 => {
            check.note("on", "sysctl vm.compact_unevictable_allowed=0").writing(FILE, "0")
        }
        _ => check.ok("off"),
    }
}

fn zone_reclaim(check: &Check, subject: &Subject) -> Finding {
    const FILE: &str = "/proc/sys/vm/zone_reclaim_mode";
    match subject.root.number(FILE) {
        Some(mode) if mode != 0 => {
            check.note(format!("mode {mode}"), "sysctl vm.zone_reclaim_mode=0").writing(FILE, "0")
        }
        _ => check.ok("off"),
    }
}

fn free_memory(check: &Check, subject: &Subject) -> Finding {
    let text = subject.root.text("/proc/meminfo").unwrap_or_default();
    let kibibytes = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.split_ascii_whitespace().next()?.parse::<u64>().ok()
    };
    let Some((available, total)) = kibibytes("MemAvailable").zip(kibibytes("MemTotal")) else {
        return check.ok("none to be seen");
    };
    let found = format!("{} of {} MiB available", available >> 10, total >> 10);
    match available < total / 10 {
        true => check.warning(found, "Stop what needs so much, or add memory."),
        false => check.ok(found),
    }
}

fn oom_score(check: &Check, subject: &Subject) -> Finding {
    let file = |process: i32| format!("/proc/{process}/oom_score_adj");
    // The thread of a cycle has this name, whatever the program.
    let cycles = subject.threads().iter().filter(|it| !it.kernel && it.name == "cycle");
    let mut processes: Vec<i32> = cycles.map(|it| it.process).collect();
    processes.dedup();
    let fix = "For a systemd service: OOMScoreAdjust=-1000. By hand: choom -n -1000 -p PROCESS.";
    if processes.is_empty() {
        return match subject.root.number("/proc/self/oom_score_adj") {
            Some(score) if score > -1000 => {
                check.note(format!("no cycle runs; one that is started from here gets {score}"), fix)
            }
            _ => check.ok("no cycle runs"),
        };
    }
    let spared = |process: &i32| subject.root.number(file(*process)).is_none_or(|score| score <= -1000);
    let others: Vec<i32> = processes.into_iter().filter(|it| !spared(it)).collect();
    if others.is_empty() {
        return check.ok("-1000");
    }
    let names: Vec<String> = others
        .iter()
        .map(|&it| format!("{} of process {it}", subject.root.number(file(it)).unwrap_or_default()))
        .collect();
    let finding = check.note(some_of(&names, 3), fix);
    others.into_iter().fold(finding, |finding, process| finding.writing(file(process), "-1000"))
}

fn memory_errors(check: &Check, subject: &Subject) -> Finding {
    const FOLDER: &str = "/sys/devices/system/edac/mc";
    let counts = subject.root.names(FOLDER).into_iter();
    let counts = counts.filter_map(|name| subject.root.number(format!("{FOLDER}/{name}/ce_count")));
    match counts.fold(0_i64, i64::saturating_add) {
        0 => check.ok("none"),
        count => check.warning(
            format!("{count} since boot"),
            "Find the module (ras-mc-ctl, dmidecode) and replace it.",
        ),
    }
}
