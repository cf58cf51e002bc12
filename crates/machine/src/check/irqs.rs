//! Checks of interrupts on the cycle's CPU.

use super::subject::{Policy, Thread};
use super::{Area, Check, Finding, Subject, some_of};
use crate::cpus::Cpus;
use crate::journal::CpuFormat;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "interrupts",
        area: Area::Interrupts,
        wanted: "no device's on the cycle's CPU (but the bus's own)",
        why: "A device's interrupt takes the CPU from the cycle at any instant: 2 to 20 us for the handler, more for \
              the soft interrupt behind it.",
        look: interrupts,
    },
    Check {
        name: "new-interrupts",
        area: Area::Interrupts,
        wanted: "kept off the cycle's CPU",
        why: "A device that appears later puts its interrupts on the CPUs of this mask.",
        look: new_interrupts,
    },
    Check {
        name: "interrupt-priorities",
        area: Area::Interrupts,
        wanted: "below the cycle's",
        why: "An interrupt thread as urgent as the cycle, on its CPU, delays it as a handler would.",
        look: thread_priorities,
    },
    Check {
        name: "irqbalance",
        area: Area::Interrupts,
        wanted: "not running, or the CPU is isolated",
        why: "It moves interrupts between CPUs every ten seconds, onto the cycle's as well, and \
            undoes manual settings. It leaves isolated CPUs alone.",
        look: irqbalance,
    },
    Check {
        name: "packet-steering",
        area: Area::Interrupts,
        wanted: "no other interface sends its packets to the cycle's CPU",
        why: "Receive packet steering lets the CPUs of a mask do the network work of others, in soft interrupts.",
        look: packet_steering,
    },
    Check {
        name: "machine-check-poll",
        area: Area::Interrupts,
        wanted: "off, or rarely",
        why: "A timer of the kernel checks every CPU for corrected hardware errors; reading the \
            banks takes tens of microseconds on some machines.",
        look: machine_check_poll,
    },
];

/// Line of `/proc/interrupts` that belongs to a device.
pub(super) struct Interrupt {
    pub(super) number: u32,
    /// Name of its handler, for example `eth0-rx-0`.
    pub(super) name: String,
}

/// Interrupts with a handler.
pub(super) fn used(subject: &Subject) -> Vec<Interrupt> {
    let text = subject.root.text("/proc/interrupts").unwrap_or_default();
    let cpus = text.lines().next().map_or(0, |line| line.split_ascii_whitespace().count());
    let parse = |line: &str| {
        let (number, rest) = line.split_once(':')?;
        let words: Vec<&str> = rest.split_ascii_whitespace().skip(cpus).collect();
        // Controller, hardware number and trigger come before the names.
        let name = words.last().filter(|name| words.len() >= 3 && !OF_EACH_CPU.contains(name))?;
        Some(Interrupt { number: number.trim().parse().ok()?, name: (*name).to_owned() })
    };
    text.lines().skip(1).filter_map(parse).collect()
}

/// Per-CPU interrupts, which ARM and RISC-V number like device interrupts.
const OF_EACH_CPU: [&str; 7] =
    ["arch_timer", "vtimer", "ptimer", "arm-pmu", "riscv-timer", "riscv-pmu", "IPI"];

/// CPUs an interrupt may go to.
pub(super) fn cpus_of(subject: &Subject, interrupt: u32) -> Option<Cpus> {
    let read = |file: &str| -> Option<Cpus> {
        let cpus: Cpus = subject.root.text(format!("/proc/irq/{interrupt}/{file}"))?.parse().ok()?;
        (!cpus.is_empty()).then_some(cpus)
    };
    read("effective_affinity_list").or_else(|| read("smp_affinity_list"))
}

/// CPUs that an interrupt reaches, and CPUs that it may be moved to.
pub(super) fn place_of(subject: &Subject, interrupt: u32) -> (Cpus, Cpus) {
    let file = format!("/proc/irq/{interrupt}/smp_affinity_list");
    let allowed: Option<Cpus> = subject.root.text(file).and_then(|text| text.parse().ok());
    let at = cpus_of(subject, interrupt).unwrap_or_default();
    let allowed = allowed.unwrap_or_else(|| at.clone());
    (at, allowed)
}

/// Numbers of the interrupts of the bus's interface.
pub(super) fn of_interface(subject: &Subject) -> Vec<u32> {
    let Some(interface) = &subject.interface else { return Vec::new() };
    let device = format!("/sys/class/net/{interface}/device");
    // A virtio or USB card is a child of the device with the interrupts; a plain one has a single
    // interrupt.
    let folders = [format!("{device}/msi_irqs"), format!("{device}/../msi_irqs")];
    let mut numbers: Vec<u32> = folders
        .iter()
        .flat_map(|folder| subject.root.names(folder))
        .filter_map(|name| name.parse().ok())
        .chain(subject.root.number(format!("{device}/irq")).and_then(|number| u32::try_from(number).ok()))
        .filter(|&number| number > 0)
        .collect();
    let used = used(subject);
    let named = |name: &str| {
        let rest = name.strip_prefix(interface.as_str());
        rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_alphanumeric()))
    };
    numbers.extend(used.iter().filter(|it| named(&it.name)).map(|it| it.number));
    numbers.retain(|number| used.iter().any(|it| it.number == *number));
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

fn interrupts(check: &Check, subject: &Subject) -> Finding {
    let own = of_interface(subject);
    let here = |it: &Interrupt| {
        !own.contains(&it.number)
            && cpus_of(subject, it.number).is_some_and(|cpus| cpus.contains(subject.cpu))
    };
    let here: Vec<Interrupt> = used(subject).into_iter().filter(here).collect();
    if here.is_empty() {
        return check.ok("none");
    }
    let names: Vec<String> = here.iter().map(|it| format!("{} ({})", it.number, it.name)).collect();
    let found = format!("{}: {}", here.len(), some_of(&names, 4));
    let others = subject.others();
    if others.is_empty() {
        return check.note(found, "There is no other CPU to send them to.");
    }
    let fix = format!(
        "echo {others} > /proc/irq/NUMBER/smp_affinity_list. This fails for interrupts that the \
         kernel manages itself: boot with isolcpus=managed_irq,{} to move them.",
        subject.cpu
    );
    here.iter().fold(check.warning(found, fix), |finding, it| {
        finding.keeping_to(format!("/proc/irq/{}/smp_affinity_list", it.number), CpuFormat::List, &others)
    })
}

fn new_interrupts(check: &Check, subject: &Subject) -> Finding {
    const FILE: &str = "/proc/irq/default_smp_affinity";
    let mask = subject.root.text(FILE).and_then(|text| Cpus::from_mask(&text).ok()).unwrap_or_default();
    let others = subject.others();
    match mask.contains(subject.cpu) {
        false => check.ok("kept off"),
        true if others.is_empty() => check.note("all on the one CPU", "There is no other CPU."),
        true => check
            .note(
                format!("may come to CPU {}", subject.cpu),
                format!("echo {} > {FILE}, or boot with irqaffinity={others}", others.mask()),
            )
            .keeping_to(FILE, CpuFormat::Mask, &others),
    }
}

fn thread_priorities(check: &Check, subject: &Subject) -> Finding {
    let on_cpu = |thread: &&Thread| thread.name.starts_with("irq/") && thread.cpus.contains(subject.cpu);
    let threads: Vec<&Thread> = subject.threads().iter().filter(on_cpu).collect();
    let wanted = format!("below the cycle's {}", subject.priority);
    let urgent = |thread: &&&Thread| match thread.policy {
        Policy::Fixed(priority) => priority >= subject.priority,
        Policy::Deadline => true,
        Policy::Ordinary => false,
    };
    let urgent: Vec<String> = threads
        .iter()
        .filter(urgent)
        .map(|thread| match thread.policy {
            Policy::Fixed(priority) => format!("{} at {priority}", thread.name),
            _ => thread.name.clone(),
        })
        .collect();
    if urgent.is_empty() {
        let found = match threads.len() {
            0 => format!("no interrupt threads on CPU {}", subject.cpu),
            count => format!("{count} on CPU {}, all below", subject.cpu),
        };
        return check.ok(found).wanting(wanted);
    }
    check
        .warning(
            some_of(&urgent, 4),
            "Give the cycle a higher priority, or the thread a lower: chrt -f -p 50 THREAD",
        )
        .wanting(wanted)
}

fn irqbalance(check: &Check, subject: &Subject) -> Finding {
    let running = subject.threads().iter().any(|thread| !thread.kernel && thread.name == "irqbalance");
    match (running, subject.is_isolated()) {
        (false, _) => check.ok("not running"),
        (true, true) => check.ok("running, but leaves the isolated CPU alone"),
        (true, false) => check.warning(
            "running",
            format!(
                "systemctl disable --now irqbalance, or IRQBALANCE_BANNED_CPULIST={} in /etc/default/irqbalance.",
                subject.cpu
            ),
        ),
    }
}

fn packet_steering(check: &Check, subject: &Subject) -> Finding {
    let mut files = Vec::new();
    for interface in subject.root.names("/sys/class/net") {
        if subject.interface.as_ref() == Some(&interface) {
            continue;
        }
        let queues = format!("/sys/class/net/{interface}/queues");
        for queue in subject.root.names(&queues) {
            let file = format!("{queues}/{queue}/rps_cpus");
            let mask = subject.root.text(&file).and_then(|text| Cpus::from_mask(&text).ok());
            if let Some(mask) = mask.filter(|mask| mask.contains(subject.cpu)) {
                files.push((interface.clone(), file, mask.without(&Cpus::one(subject.cpu))));
            }
        }
    }
    let Some((interface, file, mask)) = files.first() else { return check.ok("none") };
    let finding = check.note(format!("{interface} does"), format!("echo {} > {file}", mask.mask()));
    files.iter().fold(finding, |finding, (_, file, mask)| finding.keeping_to(file, CpuFormat::Mask, mask))
}

fn machine_check_poll(check: &Check, subject: &Subject) -> Finding {
    let file = format!("/sys/devices/system/machinecheck/machinecheck{}/check_interval", subject.cpu);
    // Seconds; some kernel versions write it in hexadecimal: 12c is five minutes.
    match subject.root.text(&file).as_deref() {
        None => check.ok("none"),
        Some("0") => check.ok("off"),
        Some(_) => {
            check.note("on", format!("echo 0 > {file}, or boot with mce=ignore_ce.")).writing(file, "0")
        }
    }
}
