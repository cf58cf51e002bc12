//! Checks of sleep states and frequencies: settings that save energy delay the wake-up.

use super::{Area, Check, Finding, Subject, some_of};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "sleep-states",
        area: Area::Power,
        wanted: "none that takes longer than 10 us to leave",
        why: "A CPU that sleeps deeply between two cycles takes 50 to 200 us to wake, and finds its caches empty.",
        look: sleep_states,
    },
    Check {
        name: "frequency-governor",
        area: Area::Power,
        wanted: "performance",
        why: "Other governors lower the clock of a CPU that is mostly idle, as that of a cycle is, and raise it only \
              after the work has begun.",
        look: governor,
    },
    Check {
        name: "energy-preference",
        area: Area::Power,
        wanted: "performance",
        why: "The processor itself chooses its clock by this hint; with any other it starts slow after each sleep.",
        look: energy_preference,
    },
    Check {
        name: "frequency-driver",
        area: Area::Power,
        wanted: "one that Linux commands, or a fixed clock",
        why: "Without a driver the firmware may change the clock at any time, and Linux cannot see it.",
        look: driver,
    },
    Check {
        name: "turbo",
        area: Area::Power,
        wanted: "off",
        why: "With turbo the clock depends on temperature and on what the other cores do; each change stops the core \
              for some microseconds. The price of switching it off is a slower machine.",
        look: turbo,
    },
    Check {
        name: "thermal-throttling",
        area: Area::Power,
        wanted: "never happened",
        why: "A processor that gets too hot halves its clock, or stops it now and then, without notice.",
        look: thermal,
    },
    Check {
        name: "pcie-power",
        area: Area::Power,
        wanted: "performance",
        why: "PCIe links that sleep (ASPM) take 2 to 100 us to wake when a frame is to be sent.",
        look: pcie,
    },
    Check {
        name: "power-daemons",
        area: Area::Power,
        wanted: "none running",
        why: "They change governors, frequencies and device power while the cycle runs, and undo what was set.",
        look: daemons,
    },
];

fn sleep_states(check: &Check, subject: &Subject) -> Finding {
    let folder = subject.of_cpu("cpuidle");
    let mut deep = Vec::new();
    let mut held = None;
    // A program that keeps this file open with 0, as `onbeat run` does, keeps every CPU awake. Four
    // bytes, us.
    if let Some([a, b, c, d, ..]) = subject.root.bytes("/dev/cpu_dma_latency").as_deref() {
        let microseconds = i32::from_ne_bytes([*a, *b, *c, *d]);
        held = (0..=10).contains(&microseconds).then_some(microseconds);
    }
    for state in subject.root.names(&folder).iter().filter(|name| name.starts_with("state")) {
        let number = |file: &str| subject.root.number(format!("{folder}/{state}/{file}"));
        let latency = number("latency").unwrap_or(0);
        if latency > 10 && number("disable") != Some(1) {
            let name = subject.root.text(format!("{folder}/{state}/name")).unwrap_or_else(|| state.clone());
            deep.push((format!("{name} ({latency} us)"), format!("{folder}/{state}/disable")));
        }
    }
    let names: Vec<String> = deep.iter().map(|(name, _)| name.clone()).collect();
    if deep.is_empty() {
        return check.ok("none");
    }
    if held.is_some() {
        return check.ok(format!("{}, but a program prevents them", some_of(&names, 4)));
    }
    let fix = format!(
        "onbeat run prevents them while it runs, if it may open /dev/cpu_dma_latency. For good: \
         boot with processor.max_cstate=1 intel_idle.max_cstate=1, or echo 1 > \
         {folder}/stateN/disable"
    );
    let may_hold = subject.root.exists("/dev/cpu_dma_latency");
    let finding = match may_hold {
        true => check.note(some_of(&names, 4), fix),
        false => check.warning(some_of(&names, 4), fix),
    };
    deep.into_iter().fold(finding, |finding, (_, file)| finding.writing(file, "1"))
}

fn governor(check: &Check, subject: &Subject) -> Finding {
    let file = subject.of_cpu("cpufreq/scaling_governor");
    match subject.root.text(&file).as_deref() {
        None => check.ok("none: Linux does not choose the clock here"),
        Some("performance") => check.ok("performance"),
        Some(governor) => check
            .warning(
                governor,
                format!("echo performance > {file}, or cpupower frequency-set -g performance"),
            )
            .writing(file, "performance"),
    }
}

fn energy_preference(check: &Check, subject: &Subject) -> Finding {
    let file = subject.of_cpu("cpufreq/energy_performance_preference");
    let governor = subject.root.text(subject.of_cpu("cpufreq/scaling_governor"));
    let governed = governor.as_deref() == Some("performance");
    match subject.root.text(&file).as_deref() {
        None => check.ok("none: the processor takes no hint"),
        Some("performance" | "0") => check.ok("performance"),
        // The governor sets the hint, and the kernel refuses to restore an old hint under that
        // governor.
        Some(hint) if !governed => {
            check.warning(hint, "Comes with the governor performance: see frequency-governor.")
        }
        Some(hint) => {
            check.warning(hint, format!("echo performance > {file}")).writing(file, "performance")
        }
    }
}

fn driver(check: &Check, subject: &Subject) -> Finding {
    if let Some(driver) = subject.root.text(subject.of_cpu("cpufreq/scaling_driver")) {
        return check.ok(driver);
    }
    match super::virtualisation::hypervisor(&subject.root) {
        Some(_) => check.note("none: the host chooses", "Choose performance on the host."),
        None => check.note(
            "none",
            "Choose maximum performance, or control by the operating system, in the firmware.",
        ),
    }
}

fn turbo(check: &Check, subject: &Subject) -> Finding {
    const INTEL: &str = "/sys/devices/system/cpu/intel_pstate/no_turbo";
    const OTHERS: &str = "/sys/devices/system/cpu/cpufreq/boost";
    let fix = "Switch it off in the firmware, or";
    match (subject.root.number(INTEL), subject.root.number(OTHERS)) {
        (Some(0), _) => check.note("on", format!("{fix} echo 1 > {INTEL}")).writing(INTEL, "1"),
        (_, Some(1)) => check.note("on", format!("{fix} echo 0 > {OTHERS}")).writing(OTHERS, "0"),
        (Some(_), _) | (_, Some(_)) => check.ok("off"),
        (None, None) => check.ok("none to be seen"),
    }
}

fn thermal(check: &Check, subject: &Subject) -> Finding {
    let count = |kind: &str| {
        subject.root.number(subject.of_cpu(&format!("thermal_throttle/{kind}_throttle_count"))).unwrap_or(0)
    };
    match count("core").saturating_add(count("package")) {
        0 => check.ok("never"),
        times => check.warning(
            format!("{times} times since boot"),
            "Cool the machine better, or lower its highest clock.",
        ),
    }
}

fn pcie(check: &Check, subject: &Subject) -> Finding {
    const FILE: &str = "/sys/module/pcie_aspm/parameters/policy";
    match subject.root.chosen(FILE).as_deref() {
        None => check.ok("nothing to save here"),
        Some("performance") => check.ok("performance"),
        Some(policy) => check
            .note(policy, format!("Boot with pcie_aspm=off, or echo performance > {FILE}"))
            .writing(FILE, "performance"),
    }
}

fn daemons(check: &Check, subject: &Subject) -> Finding {
    const DAEMONS: [&str; 5] = ["tuned", "power-profiles-", "thermald", "tlp", "cpupower-gui"];
    let daemon = |name: &str| DAEMONS.iter().any(|daemon| name.starts_with(daemon));
    let mut running: Vec<String> = subject
        .threads()
        .iter()
        .filter(|thread| !thread.kernel && thread.process == thread.thread && daemon(&thread.name))
        .map(|thread| thread.name.clone())
        .collect();
    running.dedup();
    match running.is_empty() {
        true => check.ok("none"),
        false => check.note(
            running.join(", "),
            "systemctl disable --now NAME; tuned may stay with its profile realtime (tuned-adm profile realtime).",
        ),
    }
}
