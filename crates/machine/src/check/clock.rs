//! Checks of clocks, timers and watchdogs.

use super::{Area, Check, Finding, Subject};
use crate::cpus::Cpus;
use crate::journal::CpuFormat;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "clock-source",
        area: Area::Clock,
        wanted: "a clock that is read without a system call",
        why: "The program reads the clock several times a cycle. From tsc or an ARM counter that \
            takes 20 ns; from hpet or acpi_pm a system call and 1 to 5 us, and all CPUs queue for \
            it.",
        look: source,
    },
    Check {
        name: "high-resolution-timers",
        area: Area::Clock,
        wanted: "active",
        why: "Without them a sleep ends on the next tick: up to 10 ms late.",
        look: high_resolution,
    },
    Check {
        name: "timer-migration",
        area: Area::Clock,
        wanted: "off",
        why: "With it, timers of sleeping CPUs move to busy CPUs: the cycle's CPU may handle \
            timers of other CPUs.",
        look: migration,
    },
    Check {
        name: "nmi-watchdog",
        area: Area::Clock,
        wanted: "off",
        why: "It interrupts every CPU by a counter of cycles, with an interrupt that cannot be \
            masked, and occupies that counter.",
        look: nmi_watchdog,
    },
    Check {
        name: "soft-lockup-watchdog",
        area: Area::Clock,
        wanted: "not on the cycle's CPU",
        why: "Every four seconds a timer on each CPU wakes a thread of the highest priority there is.",
        look: soft_lockup,
    },
];

fn source(check: &Check, subject: &Subject) -> Finding {
    const FOLDER: &str = "/sys/devices/system/clocksource/clocksource0";
    let text = |file: &str| subject.root.text(format!("{FOLDER}/{file}"));
    let Some(current) = text("current_clocksource") else {
        return check.note("not known", "See whether /sys is mounted.");
    };
    let fast = [
        "tsc",
        "kvm-clock",
        "arch_sys_counter",
        "riscv_clocksource",
        "timebase",
        "hyperv_clocksource_tsc_page",
    ];
    if fast.contains(&current.as_str()) {
        return check.ok(current);
    }
    let available = text("available_clocksource").unwrap_or_default();
    let better = fast.iter().find(|fast| available.split_ascii_whitespace().any(|it| it == **fast));
    match better {
        Some(better) => check
            .warning(&current, format!("echo {better} > {FOLDER}/current_clocksource"))
            .writing(format!("{FOLDER}/current_clocksource"), *better),
        None => check.warning(
            &current,
            "See in dmesg why the kernel does not trust tsc. If it is wrong there: boot with tsc=reliable.",
        ),
    }
}

fn high_resolution(check: &Check, subject: &Subject) -> Finding {
    let timers = subject.root.text("/proc/timer_list").unwrap_or_default();
    let active = timers.lines().find_map(|line| line.trim().strip_prefix(".hres_active"));
    let active = active.and_then(|rest| rest.trim_start_matches([' ', ':']).trim().parse::<u32>().ok());
    let off = subject.boot_word("highres").as_deref() == Some("off");
    let fix = "Boot without highres=off and nohz=off; the kernel needs CONFIG_HIGH_RES_TIMERS and a clock source that \
               supports them.";
    match active {
        Some(0) => check.critical("not active", fix),
        Some(_) => check.ok("active"),
        None if off => check.critical("switched off (highres=off)", fix),
        None if !subject.config().is_known() => {
            check.note("not known: only root may read /proc/timer_list", "Run this as root.")
        }
        None if subject.config().has("HIGH_RES_TIMERS") => check.ok("built in"),
        None => check.critical("not built in", fix),
    }
}

fn migration(check: &Check, subject: &Subject) -> Finding {
    const FILE: &str = "/proc/sys/kernel/timer_migration";
    match subject.root.number(FILE) {
        Some(on) if on != 0 => check.note("on", "sysctl kernel.timer_migration=0").writing(FILE, "0"),
        _ => check.ok("off"),
    }
}

fn nmi_watchdog(check: &Check, subject: &Subject) -> Finding {
    const FILE: &str = "/proc/sys/kernel/nmi_watchdog";
    match subject.root.number(FILE) {
        Some(on) if on != 0 => check
            .warning("on", "sysctl kernel.nmi_watchdog=0, or boot with nmi_watchdog=0")
            .writing(FILE, "0"),
        _ => check.ok("off"),
    }
}

fn soft_lockup(check: &Check, subject: &Subject) -> Finding {
    const MASK: &str = "/proc/sys/kernel/watchdog_cpumask";
    let number = |name: &str| subject.root.number(format!("/proc/sys/kernel/{name}"));
    if number("soft_watchdog").or_else(|| number("watchdog")).unwrap_or(0) == 0 {
        return check.ok("off");
    }
    let cpus: Option<Cpus> = subject.root.text(MASK).and_then(|text| text.parse().ok());
    if cpus.is_some_and(|cpus| !cpus.contains(subject.cpu)) {
        return check.ok(format!("not on CPU {}", subject.cpu));
    }
    let others = subject.others();
    let fix = "sysctl kernel.soft_watchdog=0, or boot with nosoftlockup";
    match others.is_empty() {
        true => check.note("on", fix),
        false => check.note("on", format!("{fix}; or spare the CPU: echo {others} > {MASK}")).keeping_to(
            MASK,
            CpuFormat::List,
            &others,
        ),
    }
}
