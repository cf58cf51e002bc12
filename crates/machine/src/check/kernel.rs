//! Checks of the kernel: its model, debug options and tracing.

use super::{Area, Check, Finding, Subject, some_of};
use crate::conditions::is_preempt_rt;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "preempt-rt",
        area: Area::Kernel,
        wanted: "PREEMPT_RT",
        why: "An ordinary kernel finishes what it is doing, interrupt handlers and whole lists of packets included, \
              before it lets the cycle run: now and then that takes hundreds of microseconds. PREEMPT_RT interrupts \
              almost all of it.",
        look: preempt_rt,
    },
    Check {
        name: "preemption-model",
        area: Area::Kernel,
        wanted: "full",
        why: "Without full preemption a system call of another program runs to its end, or to the next place that \
              yields, before a woken real-time task gets the CPU.",
        look: preemption_model,
    },
    Check {
        name: "interrupt-threads",
        area: Area::Kernel,
        wanted: "interrupt handlers run as threads",
        why: "A handler in a thread has a priority, and the cycle's can be higher. A handler \
            without a thread interrupts every task.",
        look: interrupt_threads,
    },
    Check {
        name: "dual-kernel",
        area: Area::Kernel,
        wanted: "none: Linux alone",
        why: "With a co-kernel (Xenomai, EVL, RTAI), Linux and the cycle run only when the \
            co-kernel is idle.",
        look: dual_kernel,
    },
    Check {
        name: "debug-options",
        area: Area::Kernel,
        wanted: "no lock, memory or preemption debugging built in",
        why: "Debugging kernels check every lock or memory access: code gets several times slower, \
            and some checks disable interrupts.",
        look: debug_options,
    },
    Check {
        name: "tracers",
        area: Area::Kernel,
        wanted: "no tracer running",
        why: "A running tracer adds work to every function or event it watches, on the cycle's path too.",
        look: tracers,
    },
    Check {
        name: "mitigations",
        area: Area::Kernel,
        wanted: "none active (where nothing untrusted runs)",
        why: "Mitigations of processor vulnerabilities make every system call, interrupt and task \
            switch slower by up to some microseconds. They do not make it less predictable.",
        look: mitigations,
    },
    Check {
        name: "kernel-trouble",
        area: Area::Kernel,
        wanted: "no warning, lockup or hardware error since boot",
        why: "A kernel that has warned of a lockup, a broken table of the firmware or a machine check has already \
              been late once, for a reason that is still there.",
        look: trouble,
    },
];

fn preempt_rt(check: &Check, subject: &Subject) -> Finding {
    if is_preempt_rt(&subject.root) {
        return check.ok("PREEMPT_RT");
    }
    let version = subject.root.text("/proc/sys/kernel/version").unwrap_or_default();
    let kind = version.split_ascii_whitespace().find(|word| word.starts_with("PREEMPT"));
    check.warning(
        kind.unwrap_or("no PREEMPT_RT"),
        "Install a PREEMPT_RT kernel: Debian has linux-image-rt-amd64 (or -arm64), Ubuntu its real-time kernel; \
         self-built: CONFIG_PREEMPT_RT=y, in mainline since Linux 6.12.",
    )
}

fn preemption_model(check: &Check, subject: &Subject) -> Finding {
    if is_preempt_rt(&subject.root) {
        return check.ok("PREEMPT_RT, which is more than full");
    }
    const CONTROL: &str = "/sys/kernel/debug/sched/preempt";
    // The kernel marks the selected one by parentheses: "none voluntary (full) lazy".
    let chosen = subject.root.text(CONTROL).and_then(|text| {
        let (_, rest) = text.split_once('(')?;
        Some(rest.split_once(')')?.0.to_owned())
    });
    let fix =
        "Boot with preempt=full, or for now: echo full > /sys/kernel/debug/sched/preempt (needs debugfs).";
    match chosen.as_deref() {
        Some("full") => check.ok("full"),
        Some(model) => check.warning(model, fix).writing(CONTROL, "full"),
        None => match model_by_build(subject) {
            Some("full") => check.ok("full"),
            Some(model) => check.warning(model, fix),
            None => check.note(
                "not known",
                "Mount debugfs and run this as root: mount -t debugfs none /sys/kernel/debug",
            ),
        },
    }
}

/// Preemption model by command line and build options, without debugfs.
fn model_by_build(subject: &Subject) -> Option<&'static str> {
    let config = subject.config();
    if config.has("PREEMPT_DYNAMIC") {
        let asked = subject.boot_word("preempt");
        let known = MODELS.iter().find(|(word, _)| asked.as_deref() == Some(word));
        if let Some((word, _)) = known {
            return Some(word);
        }
    }
    MODELS.iter().find(|(_, option)| config.has(option)).map(|&(word, _)| word)
}

const MODELS: [(&str, &str); 4] = [
    ("none", "PREEMPT_NONE"),
    ("voluntary", "PREEMPT_VOLUNTARY"),
    ("lazy", "PREEMPT_LAZY"),
    ("full", "PREEMPT"),
];

fn interrupt_threads(check: &Check, subject: &Subject) -> Finding {
    if is_preempt_rt(&subject.root) {
        return check.ok("yes, as in every PREEMPT_RT kernel");
    }
    match subject.has_interrupt_threads() {
        true => check.ok("yes, by threadirqs"),
        false => check.note("no", "Boot with threadirqs, or use a PREEMPT_RT kernel."),
    }
}

fn dual_kernel(check: &Check, subject: &Subject) -> Finding {
    let kernels = [
        ("/proc/xenomai", "Xenomai"),
        ("/sys/devices/virtual/evl", "EVL (Xenomai 4)"),
        ("/proc/rtai", "RTAI"),
        ("/proc/ipipe", "an I-pipe kernel"),
    ];
    match kernels.iter().find(|(path, _)| subject.root.exists(path)) {
        None => check.ok("none"),
        Some((_, name)) => check.warning(
            *name,
            "Boot a PREEMPT_RT kernel without the co-kernel, or keep the cycle's CPU out of its set \
             (xenomai.supported_cpus).",
        ),
    }
}

fn debug_options(check: &Check, subject: &Subject) -> Finding {
    let config = subject.config();
    if !config.is_known() {
        return check.note(
            "not known: neither /proc/config.gz nor a file in /boot",
            "Look at your kernel's configuration for PROVE_LOCKING, KASAN and DEBUG_PREEMPT.",
        );
    }
    let set = |options: &[&str]| -> Vec<String> {
        options.iter().filter(|option| config.has(option)).map(|option| (*option).to_owned()).collect()
    };
    let (heavy, light) = (set(HEAVY), set(LIGHT));
    let fix = "Boot the distribution's ordinary (not debug) kernel, or build without these.";
    match (heavy.is_empty(), light.is_empty()) {
        (false, _) => check.warning(some_of(&[heavy, light].concat(), 6), fix),
        (true, false) => check.note(some_of(&light, 6), fix),
        (true, true) => check.ok("none"),
    }
}

/// Options that slow the kernel many times, or keep interrupts off.
const HEAVY: &[&str] = &[
    "PROVE_LOCKING",
    "LOCKDEP",
    "LOCK_STAT",
    "DEBUG_LOCK_ALLOC",
    "KASAN",
    "KCSAN",
    "KMSAN",
    "DEBUG_OBJECTS",
    "DEBUG_KMEMLEAK",
    "DEBUG_PAGEALLOC_ENABLE_DEFAULT",
    "SLUB_DEBUG_ON",
    "DEBUG_VM_PGTABLE",
    "PREEMPTIRQ_TRACEPOINTS",
];
/// Options that slow the kernel a little everywhere.
const LIGHT: &[&str] = &[
    "DEBUG_PREEMPT",
    "DEBUG_MUTEXES",
    "DEBUG_SPINLOCK",
    "DEBUG_RT_MUTEXES",
    "DEBUG_ATOMIC_SLEEP",
    "DEBUG_VM",
];

fn tracers(check: &Check, subject: &Subject) -> Finding {
    let folder = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"]
        .into_iter()
        .find(|folder| subject.root.exists(format!("{folder}/current_tracer")));
    let Some(folder) = folder else { return check.ok("none to be seen (tracefs is not mounted)") };
    let tracer = subject.root.text(format!("{folder}/current_tracer")).unwrap_or_default();
    if !tracer.is_empty() && tracer != "nop" {
        let file = format!("{folder}/current_tracer");
        return check
            .warning(format!("tracer {tracer}"), format!("echo nop > {file}"))
            .writing(file, "nop");
    }
    // "X" means that some events are on, "1" that all are.
    match subject.root.text(format!("{folder}/events/enable")).as_deref() {
        Some("X" | "1") => check.note(
            "events are traced",
            format!("End the tracing program (trace-cmd, perf), or: echo 0 > {folder}/events/enable"),
        ),
        _ => check.ok("none"),
    }
}

fn mitigations(check: &Check, subject: &Subject) -> Finding {
    const FOLDER: &str = "/sys/devices/system/cpu/vulnerabilities";
    let active = |name: &String| {
        subject.root.text(format!("{FOLDER}/{name}")).is_some_and(|text| text.contains("Mitigation"))
    };
    let active: Vec<String> = subject.root.names(FOLDER).into_iter().filter(active).collect();
    if active.is_empty() {
        return check.ok("none active");
    }
    check.note(
        format!("{} active: {}", active.len(), some_of(&active, 4)),
        "Only on a machine that runs nothing untrusted and is on no open network: boot with mitigations=off.",
    )
}

fn trouble(check: &Check, subject: &Subject) -> Finding {
    let Some(taint) = subject.root.number("/proc/sys/kernel/tainted") else {
        return check.ok("none to be seen");
    };
    // Bits of Documentation/admin-guide/tainted-kernels.rst.
    let bits = [
        (4, "a machine check (hardware error)"),
        (7, "a crash in the kernel (oops)"),
        (9, "a kernel warning"),
        (11, "a bug in the firmware worked around"),
        (14, "a soft lockup"),
    ];
    let found: Vec<String> =
        bits.iter().filter(|(bit, _)| taint >> bit & 1 == 1).map(|(_, text)| (*text).to_owned()).collect();
    match found.is_empty() {
        true => check.ok("none"),
        false => check.warning(
            found.join(", "),
            "Read the kernel's log (dmesg) for it; it is cleared by a reboot only.",
        ),
    }
}
