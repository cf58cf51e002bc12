//! Checks of the cycle's CPU and its isolation.

use super::subject::Thread;
use super::{Area, Change, Check, Finding, Subject, some_of};
use crate::cpus::Cpus;
use crate::journal::CpuFormat;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "cpu-online",
        area: Area::Cpus,
        wanted: "the cycle's CPU is there, and one more for everything else",
        why: "On a machine of one CPU everything else has to happen between two cycles.",
        look: online,
    },
    Check {
        name: "isolated-cpu",
        area: Area::Cpus,
        wanted: "isolated",
        why: "The scheduler puts ordinary tasks on every CPU that is not isolated. The cycle has a \
            higher priority, but finds its caches full of their data, and must wait for their \
            system calls.",
        look: isolated,
    },
    Check {
        name: "tickless-cpu",
        area: Area::Cpus,
        wanted: "in nohz_full",
        why: "The periodic tick interrupts a running cycle 100 to 1000 times a second, for a few microseconds each.",
        look: tickless,
    },
    Check {
        name: "rcu-callbacks",
        area: Area::Cpus,
        wanted: "offloaded from the cycle's CPU",
        why: "The kernel frees memory in batches (RCU callbacks) on the CPU that released it, in a \
            soft interrupt above the cycle, unless they are offloaded.",
        look: rcu_callbacks,
    },
    Check {
        name: "rcu-expedited",
        area: Area::Cpus,
        wanted: "off",
        why: "Expedited grace periods interrupt every CPU to hurry them along.",
        look: rcu_expedited,
    },
    Check {
        name: "kernel-threads",
        area: Area::Cpus,
        wanted: "no movable one on the cycle's CPU",
        why: "Kernel threads wake by themselves. Kernel threads that can run on any CPU need not run here.",
        look: kernel_threads,
    },
    Check {
        name: "workqueues",
        area: Area::Cpus,
        wanted: "unbound work kept off the cycle's CPU",
        why: "Drivers and file systems put work aside; the kernel's workers do it later, on any CPU of this mask.",
        look: workqueues,
    },
    Check {
        name: "smt-sibling",
        area: Area::Cpus,
        wanted: "no second thread on the cycle's core",
        why: "Two hardware threads share one core's units and first caches: a task on the other \
            thread makes the cycle up to twice as slow, at any time.",
        look: smt,
    },
    Check {
        name: "core-kind",
        area: Area::Cpus,
        wanted: "a fast core",
        why: "On a hybrid processor the small cores take about twice as long for the same cycle and wake later.",
        look: core_kind,
    },
    Check {
        name: "skewed-ticks",
        area: Area::Cpus,
        wanted: "skew_tick=1 on eight CPUs or more",
        why: "Ticks of all CPUs at the same instant meet at the same locks; the more CPUs, the longer the queue.",
        look: skewed_ticks,
    },
];

fn online(check: &Check, subject: &Subject) -> Finding {
    let online = subject.online();
    if !online.contains(subject.cpu) {
        return check.critical(
            format!("CPU {} is not online (online: {online})", subject.cpu),
            "Choose another with --cpu, or bring it online: echo 1 > /sys/devices/system/cpu/cpuN/online",
        );
    }
    match online.count() {
        1 => check.warning("1 CPU in all", "Give the machine a second CPU."),
        count => check.ok(format!("CPU {} of {count}", subject.cpu)),
    }
}

fn isolated(check: &Check, subject: &Subject) -> Finding {
    if subject.is_isolated() {
        return check.ok(format!("CPU {} is isolated", subject.cpu));
    }
    check.warning(
        format!("CPU {} is shared with everything", subject.cpu),
        format!(
            "Boot with isolcpus=managed_irq,domain,{cpu} nohz_full={cpu} rcu_nocbs={cpu}. Without a reboot: letter C \
             of the profile (onbeat run --profile PMC --cpu {cpu}) shields the CPU while the cycle runs.",
            cpu = subject.cpu
        ),
    )
}

fn tickless(check: &Check, subject: &Subject) -> Finding {
    // The kernel writes "(null)" for an empty set.
    let text = subject.root.text("/sys/devices/system/cpu/nohz_full").unwrap_or_default();
    let cpus: Cpus = text.parse().unwrap_or_default();
    match cpus.contains(subject.cpu) {
        true => check.ok(format!("CPU {} is in nohz_full", subject.cpu)),
        false => check.note(
            format!("CPU {} ticks", subject.cpu),
            format!("Boot with nohz_full={} (the kernel needs CONFIG_NO_HZ_FULL).", subject.cpu),
        ),
    }
}

fn rcu_callbacks(check: &Check, subject: &Subject) -> Finding {
    // The thread that runs a CPU's callbacks is called rcuop/N, rcuob/N or rcuos/N.
    let suffix = format!("/{}", subject.cpu);
    let offloaded = subject
        .threads()
        .iter()
        .any(|thread| thread.kernel && thread.name.starts_with("rcuo") && thread.name.ends_with(&suffix));
    let all = subject.boot_word("rcu_nocbs").is_some_and(|cpus| {
        cpus == "all" || cpus.parse::<Cpus>().is_ok_and(|cpus| cpus.contains(subject.cpu))
    });
    match offloaded || all {
        true => check.ok("offloaded"),
        false => check.note(
            format!("done on CPU {}", subject.cpu),
            format!("Boot with rcu_nocbs={} (nohz_full does it, too).", subject.cpu),
        ),
    }
}

fn rcu_expedited(check: &Check, subject: &Subject) -> Finding {
    const FILE: &str = "/sys/kernel/rcu_expedited";
    match subject.root.number(FILE) {
        Some(expedited) if expedited != 0 => check
            .warning("on", format!("echo 0 > {FILE}, and boot without rcupdate.rcu_expedited"))
            .writing(FILE, "0"),
        _ => check.ok("off"),
    }
}

fn kernel_threads(check: &Check, subject: &Subject) -> Finding {
    // Interrupt threads follow their interrupt: see the checks of interrupts.
    let movable = |thread: &&Thread| {
        thread.kernel
            && !thread.bound
            && thread.cpus.contains(subject.cpu)
            && thread.cpus.count() > 1
            && !thread.name.starts_with("irq/")
    };
    let threads: Vec<&Thread> = subject.threads().iter().filter(movable).collect();
    if threads.is_empty() {
        return check.ok("none");
    }
    let others = subject.others();
    let names: Vec<String> = threads.iter().map(|thread| thread.name.clone()).collect();
    let found = format!("{}: {}", threads.len(), some_of(&names, 4));
    if others.is_empty() {
        return check.note(found, "There is no other CPU to move them to.");
    }
    let fix = format!(
        "Move them, kthreadd included so that new ones follow: taskset -pc {others} THREAD; or boot with \
         kthread_cpus={others}, where the kernel knows it."
    );
    let finding = check.note(found, fix);
    threads.iter().fold(finding, |finding, thread| {
        finding.changing(Change::Affinity {
            thread: thread.thread,
            name: thread.name.clone(),
            cpus: others.clone(),
        })
    })
}

fn workqueues(check: &Check, subject: &Subject) -> Finding {
    let files = ["/sys/devices/virtual/workqueue/cpumask", "/sys/bus/workqueue/devices/writeback/cpumask"];
    let on_cpu: Vec<&str> = files
        .into_iter()
        .filter(|file| {
            let mask = subject.root.text(file).and_then(|text| Cpus::from_mask(&text).ok());
            mask.is_some_and(|mask| mask.contains(subject.cpu))
        })
        .collect();
    if on_cpu.is_empty() {
        return check.ok("kept off");
    }
    let found = format!("may run on CPU {}", subject.cpu);
    let others = subject.others();
    if others.is_empty() {
        return check.note(found, "There is no other CPU for it.");
    }
    let fix = format!("echo {} > {}", others.mask(), on_cpu[0]);
    on_cpu.iter().fold(check.warning(found, fix), |finding, file| {
        finding.keeping_to(*file, CpuFormat::Mask, &others)
    })
}

fn smt(check: &Check, subject: &Subject) -> Finding {
    let siblings: Cpus = subject
        .root
        .text(subject.of_cpu("topology/thread_siblings_list"))
        .and_then(|text| text.parse().ok())
        .unwrap_or_default();
    let others: Cpus =
        siblings.iter().filter(|&cpu| cpu != subject.cpu && subject.online().contains(cpu)).collect();
    match others.is_empty() {
        true => check.ok("the core is the cycle's alone"),
        // Not made by a fix: version 1 cpusets forget a CPU that goes offline, so it could not be
        // undone.
        false => check.warning(
            format!("CPU {others} is on the same core"),
            format!(
                "Switch SMT off in the firmware or boot with nosmt; or take the sibling offline: \
                 echo 0 > /sys/devices/system/cpu/cpu{}/online",
                others.iter().next().unwrap_or_default()
            ),
        ),
    }
}

fn core_kind(check: &Check, subject: &Subject) -> Finding {
    let capacity =
        |cpu: usize| subject.root.number(format!("/sys/devices/system/cpu/cpu{cpu}/cpu_capacity"));
    let atoms: Cpus = subject
        .root
        .text("/sys/devices/cpu_atom/cpus")
        .and_then(|text| text.parse().ok())
        .unwrap_or_default();
    let most = subject.online().iter().filter_map(capacity).max();
    let slow = atoms.contains(subject.cpu)
        || capacity(subject.cpu)
            .zip(most)
            .is_some_and(|(own, most)| own.saturating_mul(10) < most.saturating_mul(9));
    match slow {
        true => {
            check.note(format!("CPU {} is a small core", subject.cpu), "Choose a fast core with --cpu.")
        }
        false => check.ok("as fast as any"),
    }
}

fn skewed_ticks(check: &Check, subject: &Subject) -> Finding {
    let count = subject.online().count();
    match (count, subject.boot_word("skew_tick").as_deref()) {
        (_, Some("1")) => check.ok("skewed"),
        (..8, _) => check.ok(format!("does not matter on {count} CPUs")),
        _ => check.note(format!("{count} CPUs tick together"), "Boot with skew_tick=1."),
    }
}
