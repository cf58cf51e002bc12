//! Checks of layers below the kernel and invisible to it: hypervisor and firmware.

use std::os::unix::fs::FileExt;

use super::{Area, Check, Finding, Subject};
use crate::root::Root;
use crate::usage::Usage;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "hypervisor",
        area: Area::Virtualisation,
        wanted: "none",
        why: "A hypervisor takes the CPU away whenever the host or another virtual machine needs \
            it, for milliseconds, whatever the priority inside this virtual machine.",
        look: hypervisor_check,
    },
    Check {
        name: "steal-time",
        area: Area::Virtualisation,
        wanted: "none",
        why: "Stolen time is time in which this virtual machine was ready to run and the \
            hypervisor did not run it.",
        look: steal,
    },
    Check {
        name: "container",
        area: Area::Virtualisation,
        wanted: "none, or one with real-time rights",
        why: "Inside a container the host's settings cannot be changed, often not even read, and \
            its limits apply.",
        look: container,
    },
    Check {
        name: "firmware-interrupts",
        area: Area::Virtualisation,
        wanted: "none",
        why: "The firmware stops all CPUs for its own work (SMI: fan control, USB keyboards, \
            memory errors), for 10 us to milliseconds, and no kernel can see or prevent it.",
        look: firmware_interrupts,
    },
];

/// Name of the hypervisor, if one is found.
pub(super) fn hypervisor(root: &Root) -> Option<String> {
    let name = |path: &str| root.text(path);
    let products =
        ["KVM", "VMware", "VirtualBox", "QEMU", "Virtual Machine", "Bochs", "OpenStack", "Google Compute"];
    let product = name("/sys/class/dmi/id/product_name")
        .filter(|product| products.iter().any(|known| product.contains(known)));
    let flag = name("/proc/cpuinfo").is_some_and(|text| {
        let flags = text.lines().find(|line| line.starts_with("flags"));
        flags.is_some_and(|flags| flags.split_ascii_whitespace().any(|flag| flag == "hypervisor"))
    });
    // On ARM the device tree has a node for it.
    let node = root.exists("/proc/device-tree/hypervisor");
    name("/sys/hypervisor/type")
        .or(product)
        .or_else(|| (flag || node).then(|| "a virtual machine".to_owned()))
}

fn hypervisor_check(check: &Check, subject: &Subject) -> Finding {
    match hypervisor(&subject.root) {
        None => check.ok("none to be seen"),
        Some(name) => check.warning(
            name,
            "Run the cycle on the machine itself. If it must be virtual: on a PREEMPT_RT host, one \
             isolated host CPU for each virtual CPU, memory locked, no overcommitment.",
        ),
    }
}

fn steal(check: &Check, subject: &Subject) -> Finding {
    let stat = subject.root.text("/proc/stat").and_then(|text| Usage::parse(&text));
    let Some(since_boot) = stat.map(|usage| usage.since_boot()) else { return check.ok("none to be seen") };
    let shares = since_boot.of(subject.cpu).unwrap_or(since_boot.whole);
    let found = format!("{:.2} % of the time of CPU {} since boot", shares.steal * 100.0, subject.cpu);
    let fix = "Ask the host's administrator for a dedicated CPU; see also: hypervisor.";
    match shares.steal {
        share if share > 0.01 => check.critical(found, fix),
        share if share > 0.0 => check.warning(found, fix),
        _ => check.ok("none since boot"),
    }
}

fn container(check: &Check, subject: &Subject) -> Finding {
    let kind = if subject.root.exists("/.dockerenv") {
        Some("Docker".to_owned())
    } else if subject.root.exists("/run/.containerenv") {
        Some("Podman".to_owned())
    } else {
        subject.root.text("/run/systemd/container")
    };
    match kind {
        None => check.ok("none to be seen"),
        Some(kind) => check.note(
            kind,
            "Prepare the host itself; start the container with --cap-add SYS_NICE --cap-add IPC_LOCK --cap-add NET_RAW \
             --ulimit rtprio=98 --ulimit memlock=-1 --device /dev/cpu_dma_latency.",
        ),
    }
}

fn firmware_interrupts(check: &Check, subject: &Subject) -> Finding {
    let cpuinfo = subject.root.text("/proc/cpuinfo").unwrap_or_default();
    if !cpuinfo.contains("GenuineIntel") || hypervisor(&subject.root).is_some() {
        return check.ok("not counted on this processor");
    }
    match smi_count(subject) {
        None => check.note(
            "not known",
            "As root, with the module msr (modprobe msr), they are counted here; hwlatdetect and rtla hwnoise measure \
             what they cost.",
        ),
        Some(0) => check.ok("none since boot"),
        Some(count) => {
            let fix = "In the firmware: switch off USB legacy support, fan and power control by SMI, and memory error \
                       logging. Ask the maker. Measure with rtla hwnoise.";
            let hours = uptime_hours(subject).max(0.1);
            let found = format!("{count} since boot, {:.1} an hour", f64::from(count) / hours);
            // Some occur at boot on every machine.
            match f64::from(count) / hours {
                rate if rate > 1.0 => check.warning(found, fix),
                _ => check.note(found, fix),
            }
        }
    }
}

/// `MSR_SMI_COUNT`: 32 bits, on Intel processors since Nehalem (Intel SDM volume 4).
fn smi_count(subject: &Subject) -> Option<u32> {
    const MSR_SMI_COUNT: u64 = 0x34;
    let file = std::fs::File::open(subject.root.path(format!("/dev/cpu/{}/msr", subject.cpu))).ok()?;
    let mut value = [0; 8];
    file.read_exact_at(&mut value, MSR_SMI_COUNT).ok()?;
    Some((u64::from_le_bytes(value) & 0xffff_ffff) as u32)
}

fn uptime_hours(subject: &Subject) -> f64 {
    let text = subject.root.text("/proc/uptime").unwrap_or_default();
    let seconds = text.split_ascii_whitespace().next().and_then(|it| it.parse::<f64>().ok());
    seconds.filter(|it| it.is_finite()).unwrap_or(0.0) / 3600.0
}
