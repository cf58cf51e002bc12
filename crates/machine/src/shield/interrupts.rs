//! Moving of interrupts, and of the kernel's unbound workers.

use std::fs;
use std::path::{Path, PathBuf};

use super::Left;
use crate::cpus::Cpus;
use crate::journal::{CpuFormat, Journal};

/// Result of moving interrupts.
pub(super) struct Moved {
    pub(super) moved: usize,
    pub(super) left: Vec<Left>,
}

/// Removes `cpu` from the masks of all interrupts, of interrupts set up later, and of the kernel's
/// unbound workers and watchdog.
pub(super) fn move_away(journal: &mut Journal, cpu: usize) -> Moved {
    for (path, format) in [
        ("/proc/irq/default_smp_affinity", CpuFormat::Mask),
        ("/sys/devices/virtual/workqueue/cpumask", CpuFormat::Mask),
        ("/proc/sys/kernel/watchdog_cpumask", CpuFormat::List),
    ] {
        // Not every kernel has each of them, and an unbound worker that stays is reported.
        let _ = take(journal, Path::new(path), format, cpu);
    }
    for path in workqueues() {
        let _ = take(journal, &path, CpuFormat::Mask, cpu);
    }
    let mut moved = 0;
    let mut left = Vec::new();
    for number in numbers() {
        let path = PathBuf::from(format!("/proc/irq/{number}/smp_affinity_list"));
        match take(journal, &path, CpuFormat::List, cpu) {
            TakenInterrupt::Moved => moved += 1,
            TakenInterrupt::NotThere => {}
            TakenInterrupt::Refused => left.push(name(number)),
        }
    }
    let why = "interrupts that the kernel does not move".to_owned();
    let left = if left.is_empty() { Vec::new() } else { vec![Left { what: left, why }] };
    Moved { moved, left }
}

enum TakenInterrupt {
    Moved,
    NotThere,
    Refused,
}

fn take(journal: &mut Journal, path: &Path, format: CpuFormat, cpu: usize) -> TakenInterrupt {
    let Ok(now) = format.read(path) else { return TakenInterrupt::NotThere };
    if !now.contains(cpu) {
        return TakenInterrupt::NotThere;
    }
    let fewer = now.without(&Cpus::one(cpu));
    let fewer = if fewer.is_empty() { Cpus::online().without(&Cpus::one(cpu)) } else { fewer };
    match journal.set_cpus(path, format, &fewer) {
        Ok(()) => TakenInterrupt::Moved,
        Err(_) => TakenInterrupt::Refused,
    }
}

/// Workqueues with a mask of their own.
fn workqueues() -> Vec<PathBuf> {
    let entries = fs::read_dir("/sys/devices/virtual/workqueue").into_iter().flatten().flatten();
    entries.map(|entry| entry.path().join("cpumask")).filter(|path| path.is_file()).collect()
}

fn numbers() -> Vec<u32> {
    let entries = fs::read_dir("/proc/irq").into_iter().flatten().flatten();
    let mut numbers: Vec<_> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

/// Number and handlers of an interrupt, such as `24 eth0`.
fn name(number: u32) -> String {
    let entries = fs::read_dir(format!("/proc/irq/{number}")).into_iter().flatten().flatten();
    let handlers = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let names = handlers.filter_map(|entry| entry.file_name().into_string().ok());
    std::iter::once(number.to_string()).chain(names).collect::<Vec<_>>().join(" ")
}
