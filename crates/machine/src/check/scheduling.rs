//! Checks of rights, limits, and rival threads.

use super::subject::{Policy, Thread};
use super::{Area, Check, Finding, Subject, some_of};
use crate::task;
use crate::task::{CAP_IPC_LOCK, CAP_SYS_NICE};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "real-time-priority",
        area: Area::Scheduling,
        wanted: "the right to the cycle's priority",
        why: "Without SCHED_FIFO every other program is the cycle's equal, and the scheduler lets it wait for \
              milliseconds.",
        look: priority_limit,
    },
    Check {
        name: "memory-lock",
        area: Area::Scheduling,
        wanted: "no limit, or at least 256 MiB",
        why: "Memory that is not locked can be taken away; touching it again costs a page fault, from a microsecond \
              to many milliseconds if it has to be read from disk.",
        look: memory_limit,
    },
    Check {
        name: "rt-group-sched",
        area: Area::Scheduling,
        wanted: "real-time tasks allowed in our control group",
        why: "Kernels with RT_GROUP_SCHED refuse SCHED_FIFO, whatever the limits say, to tasks of a control group \
              without a real-time budget, and a new group has none.",
        look: group_scheduling,
    },
    Check {
        name: "rt-throttling",
        area: Area::Scheduling,
        wanted: "95 % of the time or no limit",
        why: "When all real-time tasks of a CPU together have used up this share, they all stop \
            until the period ends, 50 ms by default. A cycle that sleeps never reaches this limit; \
            a cycle that spins does. The limit also protects a machine from a runaway real-time \
            task.",
        look: throttling,
    },
    Check {
        name: "fair-server",
        area: Area::Scheduling,
        wanted: "at most 5 % of the time",
        why: "When ordinary tasks of a CPU have had no CPU time for most of a second, the fair \
            server (Linux 6.12 and later) runs them before every SCHED_FIFO task, for its whole \
            budget at once. A cycle that sleeps leaves them time and is not affected.",
        look: fair_server,
    },
    Check {
        name: "rival-threads",
        area: Area::Scheduling,
        wanted: "no other task as urgent as the cycle on its CPU",
        why: "A task of higher priority, or one under SCHED_DEADLINE, interrupts the cycle; one of the same \
              priority makes it wait.",
        look: rivals,
    },
    Check {
        name: "task-migration",
        area: Area::Scheduling,
        wanted: "at most 8 tasks at once",
        why: "When a CPU takes tasks over from a busier one, it moves so many with interrupts off and both run queues \
              locked: 32 in an ordinary kernel, 8 in a PREEMPT_RT one.",
        look: migration,
    },
    Check {
        name: "graphical-target",
        area: Area::Scheduling,
        wanted: "no display server",
        why: "A desktop wakes up many times a second, fills caches, and its graphics driver delays \
            interrupts.",
        look: graphical,
    },
];

fn priority_limit(check: &Check, subject: &Subject) -> Finding {
    let wanted = format!("at least {}", subject.priority);
    let fix = format!(
        "As root, or with CAP_SYS_NICE, there is no limit. For a user: write \"@realtime - rtprio 98\" to \
         /etc/security/limits.d/realtime.conf, join the group realtime and log in again. For a systemd service: \
         LimitRTPRIO={}.",
        subject.priority
    );
    if has_capability(subject, CAP_SYS_NICE) {
        return check.ok("any: this process has CAP_SYS_NICE").wanting(wanted);
    }
    match limit(subject, "Max realtime priority") {
        Some(Limit::None) => check.ok("no limit"),
        Some(Limit::Of(most)) if most >= u64::from(subject.priority) => check.ok(format!("up to {most}")),
        Some(Limit::Of(0)) => check.critical("no right to any", fix),
        Some(Limit::Of(most)) => check.critical(format!("up to {most}"), fix),
        None => check.note("not known", fix),
    }
    .wanting(wanted)
}

fn memory_limit(check: &Check, subject: &Subject) -> Finding {
    let fix = "For a user: write \"@realtime - memlock unlimited\" to /etc/security/limits.d/realtime.conf, join the \
               group realtime and log in again. For a systemd service: LimitMEMLOCK=infinity.";
    if has_capability(subject, CAP_IPC_LOCK) {
        return check.ok("no limit: this process has CAP_IPC_LOCK");
    }
    match limit(subject, "Max locked memory") {
        Some(Limit::None) => check.ok("no limit"),
        Some(Limit::Of(bytes)) if bytes >= 256 << 20 => check.ok(format!("{} MiB", bytes >> 20)),
        Some(Limit::Of(bytes)) => check.warning(format!("{} KiB", bytes >> 10), fix),
        None => check.note("not known", fix),
    }
}

enum Limit {
    None,
    Of(u64),
}

/// Soft limit of this process.
fn limit(subject: &Subject, name: &str) -> Option<Limit> {
    let limits = subject.root.text("/proc/self/limits")?;
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    match line.split_ascii_whitespace().next()? {
        "unlimited" => Some(Limit::None),
        number => number.parse().ok().map(Limit::Of),
    }
}

fn has_capability(subject: &Subject, bit: u32) -> bool {
    let status = subject.root.text("/proc/self/status").unwrap_or_default();
    task::is_effective(&status, bit)
}

fn group_scheduling(check: &Check, subject: &Subject) -> Finding {
    let root = &subject.root;
    if root.number(RT_RUNTIME) == Some(-1) {
        return check.ok("allowed: there is no real-time limit");
    }
    let groups = root.text("/proc/self/cgroup").unwrap_or_default();
    // "4:cpu,cpuacct:/user.slice" is version 1, "0::/user.slice" version 2.
    let group = |wanted: &str| {
        groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            controllers.split(',').any(|it| it == wanted).then(|| path.to_owned())
        })
    };
    let fix = "Let the program run in the root control group, or lift the limit: sysctl kernel.sched_rt_runtime_us=-1; \
               or boot with rt_group_sched=0 (Linux 6.16 and later).";
    if let Some(path) = group("cpu") {
        let mounts = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"];
        let budget = mounts.iter().find_map(|it| root.number(format!("{it}{path}/cpu.rt_runtime_us")));
        return match budget {
            Some(0) => {
                check.critical(format!("no budget in control group {path}"), fix).writing(RT_RUNTIME, "-1")
            }
            Some(budget) => check.ok(format!("{budget} us a period in control group {path}")),
            None => check.ok("allowed"),
        };
    }
    let built_in = subject.config().has("RT_GROUP_SCHED")
        && match subject.boot_word("rt_group_sched").as_deref() {
            Some("0") => false,
            Some(_) => true,
            None => !subject.config().has("RT_GROUP_SCHED_DEFAULT_DISABLED"),
        };
    match group("").filter(|_| built_in).and_then(|path| budget_group(subject, &path)) {
        Some(group) => {
            check.critical(format!("no budget in control group {group}"), fix).writing(RT_RUNTIME, "-1")
        }
        None => check.ok("allowed"),
    }
}

/// Version 2 group whose budget applies to a task of group `path`: the nearest ancestor under the
/// cpu controller, which has a file cpu.weight. The root group has no such file and no limit.
/// Version 2 has no file for the budget; other groups have none.
fn budget_group(subject: &Subject, path: &str) -> Option<String> {
    let mounts = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
    let mut path = path.trim_end_matches('/');
    loop {
        if mounts.iter().any(|mount| subject.root.exists(format!("{mount}{path}/cpu.weight"))) {
            return Some(if path.is_empty() { "/" } else { path }.to_owned());
        }
        path = &path[..path.rfind('/')?];
    }
}

fn throttling(check: &Check, subject: &Subject) -> Finding {
    let runtime = subject.root.number(RT_RUNTIME);
    let period = subject.root.number("/proc/sys/kernel/sched_rt_period_us");
    let (runtime, period) = match (runtime, period) {
        (Some(-1), _) => return check.ok("no limit"),
        (Some(runtime), Some(period)) if period > 0 => (runtime, period),
        _ => return check.ok("none to be seen"),
    };
    let found = format!("{runtime} us of each {period} us");
    let share = runtime as f64 / period as f64;
    let fix = "sysctl kernel.sched_rt_runtime_us=950000; -1 lifts the limit, and the rescue with it.";
    match share {
        share if share <= 0.0 => {
            check.critical("no time at all", fix).writing(RT_RUNTIME, (period / 20 * 19).to_string())
        }
        share if share < 0.95 => {
            check.warning(found, fix).writing(RT_RUNTIME, (period / 20 * 19).to_string())
        }
        _ => check.ok(found),
    }
}

const RT_RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";

fn fair_server(check: &Check, subject: &Subject) -> Finding {
    let folder = format!("/sys/kernel/debug/sched/fair_server/cpu{}", subject.cpu);
    let number = |name: &str| subject.root.number(format!("{folder}/{name}"));
    let Some((runtime, period)) = number("runtime").zip(number("period")).filter(|it| it.1 > 0) else {
        return check.ok("none to be seen (Linux before 6.12, or debugfs not mounted)");
    };
    let found = format!("{} ms of each {} ms", runtime / 1_000_000, period / 1_000_000);
    match runtime as f64 / period as f64 {
        share if share <= 0.05 => check.ok(found),
        _ => check
            .warning(found, format!("echo {} > {folder}/runtime", period / 20))
            .writing(format!("{folder}/runtime"), (period / 20).to_string()),
    }
}

fn migration(check: &Check, subject: &Subject) -> Finding {
    // Linux 5.13 moved it to debugfs.
    const FILES: [&str; 2] = ["/sys/kernel/debug/sched/nr_migrate", "/proc/sys/kernel/sched_nr_migrate"];
    let found = FILES.iter().find_map(|file| Some((*file, subject.root.number(file)?)));
    match found {
        None => check.ok("none to be seen (debugfs not mounted)"),
        Some((_, most)) if most <= MIGRATED => check.ok(format!("at most {most}")),
        Some((file, most)) => check
            .note(format!("up to {most}"), format!("echo {MIGRATED} > {file}"))
            .writing(file, MIGRATED.to_string()),
    }
}

/// Tasks that PREEMPT_RT kernels move at once.
const MIGRATED: i64 = 8;

fn graphical(check: &Check, subject: &Subject) -> Finding {
    const SERVERS: [&str; 9] =
        ["Xorg", "Xwayland", "gnome-shell", "kwin_wayland", "sway", "weston", "gdm", "sddm", "lightdm"];
    let running = |name: &&&str| subject.threads().iter().any(|it| !it.kernel && it.name == **name);
    let names: Vec<String> = SERVERS.iter().filter(running).map(|it| (*it).to_owned()).collect();
    match names.is_empty() {
        true => check.ok("none"),
        false => check.note(
            some_of(&names, 3),
            "systemctl set-default multi-user.target, and boot; for now systemctl isolate \
             multi-user.target, which ends the graphical sessions of all users.",
        ),
    }
}

fn rivals(check: &Check, subject: &Subject) -> Finding {
    let ours = i32::try_from(std::process::id()).unwrap_or(0);
    let rival = |thread: &&Thread| {
        let urgent = match thread.policy {
            Policy::Ordinary => false,
            Policy::Fixed(priority) => priority >= subject.priority,
            Policy::Deadline => true,
        };
        urgent && !thread.kernel && thread.process != ours && thread.cpus.contains(subject.cpu)
    };
    let rivals = subject.threads().iter().filter(rival).map(|thread| match thread.policy {
        Policy::Fixed(priority) => format!("{} ({}, priority {priority})", thread.name, thread.thread),
        _ => format!("{} ({}, SCHED_DEADLINE)", thread.name, thread.thread),
    });
    let rivals: Vec<String> = rivals.collect();
    match rivals.is_empty() {
        true => check.ok("none"),
        false => check.warning(
            some_of(&rivals, 3),
            format!(
                "Give them a lower priority (chrt -f -p PRIORITY THREAD) or another CPU (taskset -pc {} THREAD).",
                subject.others()
            ),
        ),
    }
}
