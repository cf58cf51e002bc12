//! Checks of the bus's interface: link, driver, interrupts, and delays of frames.

use std::time::Duration;

use super::subject::is_napi_of;
use super::{Area, Change, Check, Finding, Subject, irqs, some_of};
use crate::cpus::Cpus;
use crate::ethtool::{Coalescing, Setting};
use crate::journal::CpuFormat;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "nic-link",
        area: Area::Nic,
        wanted: "up, with a carrier",
        why: "Without a carrier no frame leaves: no cable, no power at the first SubDevice, or the interface is down.",
        look: link,
    },
    Check {
        name: "nic-speed",
        area: Area::Nic,
        wanted: "100 Mbit/s or more, full duplex",
        why: "EtherCAT runs at 100 Mbit/s in both directions at once. At half duplex replies collide with requests.",
        look: speed,
    },
    Check {
        name: "nic-driver",
        area: Area::Nic,
        wanted: "a PCIe card",
        why: "A card on USB is polled once in 125 us at best; a wireless one sends when the air is \
            free; a virtual one passes frames to another program.",
        look: driver,
    },
    Check {
        name: "nic-mtu",
        area: Area::Nic,
        wanted: "1500 bytes or more",
        why: "The largest EtherCAT frame carries 1500 bytes, like any Ethernet frame.",
        look: mtu,
    },
    Check {
        name: "nic-coalescing",
        area: Area::Nic,
        wanted: "off: 0 us",
        why: "The card delays its interrupt to raise fewer: each reply, and the frame after it, is \
            late by that much.",
        look: coalescing,
    },
    Check {
        name: "nic-offloads",
        area: Area::Nic,
        wanted: "gro and lro off",
        why: "They try to merge each frame with the next, and lro delays it in the card. EtherCAT \
            frames are never merged: the work is wasted.",
        look: offloads,
    },
    Check {
        name: "nic-energy-efficient",
        area: Area::Nic,
        wanted: "off",
        why: "Between two cycles the link falls asleep (EEE) and takes 17 to 30 us to wake, at each end of each cable.",
        look: energy_efficient,
    },
    Check {
        name: "nic-queues",
        area: Area::Nic,
        wanted: "one",
        why: "With several queues, each with an interrupt on a separate CPU, replies arrive \
            through any of these CPUs.",
        look: queues,
    },
    Check {
        name: "nic-interrupt",
        area: Area::Nic,
        wanted: "on one CPU; as a thread, between other interrupts and the cycle",
        why: "The reply reaches the cycle through this interrupt. At the priority all interrupt threads have by default \
              (50) it queues behind disks and other cards.",
        look: interrupt,
    },
    Check {
        name: "nic-threaded-napi",
        area: Area::Nic,
        wanted: "on with a real-time priority; off is as good where interrupts have threads",
        why: "An ordinary kernel takes frames from the card in a soft interrupt, which it leaves \
            to ksoftirqd, at ordinary priority, under load. A dedicated NAPI thread can be given a \
            priority.",
        look: threaded_napi,
    },
    Check {
        name: "nic-deferral",
        area: Area::Nic,
        wanted: "none",
        why: "gro_flush_timeout and napi_defer_hard_irqs keep the card's interrupt off and look for frames by a timer.",
        look: deferral,
    },
    Check {
        name: "nic-pause",
        area: Area::Nic,
        wanted: "off",
        why: "A pause frame makes the card delay its frames. SubDevices send none.",
        look: pause,
    },
    Check {
        name: "nic-power",
        area: Area::Nic,
        wanted: "always on",
        why: "With runtime power management the card may be put to sleep when it has had nothing to do.",
        look: power,
    },
    Check {
        name: "nic-errors",
        area: Area::Nic,
        wanted: "none",
        why: "A damaged frame is a lost cycle. Errors on an EtherCAT line mean a bad cable, plug or earth.",
        look: errors,
    },
    Check {
        name: "nic-memory-node",
        area: Area::Nic,
        wanted: "on the cycle's own NUMA node",
        why: "Frames to and from a card on the other processor's bus go through the link between the two.",
        look: memory_node,
    },
];

/// Path of a file of the bus's interface.
pub(super) fn file(subject: &Subject, name: &str) -> String {
    format!("/sys/class/net/{}/{name}", interface(subject))
}

pub(super) fn interface(subject: &Subject) -> &str {
    subject.interface.as_deref().unwrap_or_default()
}

fn link(check: &Check, subject: &Subject) -> Finding {
    let name = interface(subject);
    if !subject.root.exists(format!("/sys/class/net/{name}")) {
        return check.critical("there is no such interface", "See the names: ip link");
    }
    let flags = subject.root.text(file(subject, "flags")).unwrap_or_default();
    let flags = u32::from_str_radix(flags.trim_start_matches("0x"), 16).unwrap_or(0);
    // IFF_UP, linux/if.h.
    if flags & 1 == 0 {
        return check
            .critical("down", format!("ip link set {name} up"))
            .running(&format!("ip link set {name} up"), &format!("ip link set {name} down"));
    }
    match subject.root.number(file(subject, "carrier")) {
        Some(1) => check.ok("up, with a carrier"),
        _ => check.critical("no carrier", "Plug in the cable, switch on the first SubDevice."),
    }
}

fn speed(check: &Check, subject: &Subject) -> Finding {
    let duplex = subject.root.text(file(subject, "duplex")).unwrap_or_default();
    let fix =
        format!("ethtool -s {} speed 100 duplex full autoneg on; try another cable", interface(subject));
    match subject.root.number(file(subject, "speed")) {
        Some(speed) if speed > 0 => {
            let found = format!("{speed} Mbit/s, {duplex} duplex");
            match speed >= 100 && duplex != "half" {
                true => check.ok(found),
                false => check.critical(found, fix),
            }
        }
        _ => check.note("not known", "See nic-link; a virtual interface has no speed."),
    }
}

fn driver(check: &Check, subject: &Subject) -> Finding {
    let wireless = ["wireless", "phy80211"].iter().any(|it| subject.root.exists(file(subject, it)));
    let driver = subject.root.link_name(file(subject, "device/driver"));
    let bus = subject.root.link_name(file(subject, "device/subsystem"));
    let name = driver.clone().unwrap_or_else(|| "no device behind it".to_owned());
    match (wireless, bus.as_deref()) {
        (true, _) => check.critical(format!("{name}, wireless"), "Use a wired card."),
        (_, Some("usb")) => check.warning(
            format!("{name}, on USB"),
            "Use a card on PCIe; Intel's i210 and i225 are well proven.",
        ),
        (_, Some("virtio" | "vmbus" | "xen")) => {
            check.note(format!("{name}, virtual"), "For real SubDevices pass the host's card through.")
        }
        (_, None) => check.note(format!("{name}: a virtual interface"), "For real SubDevices use a card."),
        (_, Some(bus)) => check.ok(format!("{name}, on {bus}")),
    }
}

fn mtu(check: &Check, subject: &Subject) -> Finding {
    let path = file(subject, "mtu");
    match subject.root.number(&path) {
        Some(mtu) if mtu < 1500 => check
            .warning(format!("{mtu} bytes"), format!("ip link set {} mtu 1500", interface(subject)))
            .writing(path, "1500"),
        Some(mtu) => check.ok(format!("{mtu} bytes")),
        None => check.note("not known", "See nic-link."),
    }
}

fn coalescing(check: &Check, subject: &Subject) -> Finding {
    let Some(coalescing) = subject.ethtool.coalescing else { return check.ok("the driver has none") };
    let Coalescing { receive_us, transmit_us, adaptive_receive, adaptive_transmit } = coalescing;
    let found = match (adaptive_receive || adaptive_transmit, receive_us.max(transmit_us)) {
        (true, _) => "as the card likes (adaptive)".to_owned(),
        (false, 0) => return check.ok("off"),
        (false, _) => format!("{receive_us} us received, {transmit_us} us sent"),
    };
    // Only settings that are on are named: a driver refuses all of them for one word it does not
    // support.
    let settings = [
        (Setting::AdaptiveRx, "adaptive-rx off", adaptive_receive),
        (Setting::AdaptiveTx, "adaptive-tx off", adaptive_transmit),
        (Setting::RxUsecs, "rx-usecs 0", receive_us > 0),
        (Setting::TxUsecs, "tx-usecs 0", transmit_us > 0),
    ];
    let on: Vec<_> = settings.into_iter().filter(|(.., on)| *on).collect();
    let words = on.iter().map(|(_, words, _)| format!(" {words}")).collect::<String>();
    let off = on.iter().map(|(setting, ..)| (*setting, 0)).collect();
    check.warning(found, format!("ethtool -C {}{words}", interface(subject))).driving(subject, off)
}

fn offloads(check: &Check, subject: &Subject) -> Finding {
    let on = |name: &str| subject.ethtool.offloads.iter().any(|it| it.name == name && it.on);
    let on = [("gro", Setting::Gro), ("lro", Setting::Lro)].into_iter().filter(|(name, _)| on(name));
    let (names, settings): (Vec<&str>, Vec<Setting>) = on.unzip();
    if names.is_empty() {
        return check.ok("off");
    }
    let words = names.iter().map(|name| format!(" {name} off")).collect::<String>();
    let finding =
        check.note(format!("{} on", names.join(", ")), format!("ethtool -K {}{words}", interface(subject)));
    settings.into_iter().fold(finding, |finding, setting| finding.driving(subject, vec![(setting, 0)]))
}

fn energy_efficient(check: &Check, subject: &Subject) -> Finding {
    match subject.ethtool.energy_efficient {
        Some(true) => check
            .warning("on", format!("ethtool --set-eee {} eee off", interface(subject)))
            .driving(subject, vec![(Setting::Eee, 0)]),
        Some(false) => check.ok("off"),
        None => check.ok("the driver has none"),
    }
}

fn queues(check: &Check, subject: &Subject) -> Finding {
    let name = interface(subject);
    let Some(queues) = subject.ethtool.queues else { return check.ok("the driver has one") };
    if queues.count() <= 1 {
        return check.ok("one receives");
    }
    let (words, one) = match queues.combined {
        0 => ("rx 1", vec![(Setting::RxQueues, 1)]),
        _ if queues.receive == 0 => ("combined 1", vec![(Setting::CombinedQueues, 1)]),
        _ => ("combined 1 rx 0", vec![(Setting::CombinedQueues, 1), (Setting::RxQueues, 0)]),
    };
    let fix =
        format!("ethtool -L {name} {words}; the link is lost for a moment, with many drivers for seconds");
    check.note(format!("{} receive", queues.count()), fix).driving(subject, one)
}

fn interrupt(check: &Check, subject: &Subject) -> Finding {
    let numbers = irqs::of_interface(subject);
    if numbers.is_empty() {
        return check.ok("none: a virtual interface");
    }
    let chosen = Cpus::one(subject.interrupt_cpu.unwrap_or(subject.cpu));
    let priority = subject.priority_below();
    let mut places = Vec::new();
    let (mut fixes, mut changes) = (Vec::new(), Vec::new());
    for &number in &numbers {
        let (at, allowed) = irqs::place_of(subject, number);
        // An interrupt that is already limited to one CPU is well placed, unless a CPU was chosen.
        let stays = allowed == chosen || allowed.count() == 1 && subject.interrupt_cpu.is_none();
        if !stays {
            let path = format!("/proc/irq/{number}/smp_affinity_list");
            fixes.push(format!("echo {chosen} > {path}"));
            changes.push(Change::Cpus { path, format: CpuFormat::List, cpus: chosen.clone() });
        }
        let of = if at == allowed { String::new() } else { format!(" of {allowed}") };
        let prefix = format!("irq/{number}-");
        let threads = subject.threads().iter().filter(|it| it.name.starts_with(&prefix));
        let threads = threads.filter_map(|it| it.policy.fixed().map(|priority| (it, priority)));
        let mut words = String::new();
        for (thread, found) in threads {
            words = format!(", priority {found}");
            if found <= USUAL {
                fixes.push(format!("chrt -f -p {priority} {}", thread.thread));
                changes.push(Change::Priority {
                    thread: thread.thread,
                    name: thread.name.clone(),
                    priority,
                });
            }
        }
        places.push(format!("{number} on CPU {at}{of}{words}"));
    }
    let found = some_of(&places, 3);
    let finding = match changes.is_empty() {
        true => check.ok(found),
        false => check.note(found, some_of(&fixes, 4)),
    };
    let wanted = match subject.interrupt_cpu {
        Some(cpu) => format!("on CPU {cpu}; as a thread, between other interrupts and the cycle"),
        None => check.wanted.to_owned(),
    };
    changes.into_iter().fold(finding.wanting(wanted), Finding::changing)
}

/// Default priority of interrupt threads.
const USUAL: u8 = 50;

fn threaded_napi(check: &Check, subject: &Subject) -> Finding {
    let path = file(subject, "threaded");
    let Some(on) = subject.root.number(&path).map(|it| it != 0) else {
        return check.ok("the kernel has none");
    };
    let name = interface(subject);
    let priority = subject.priority_below();
    let threads: Vec<_> = subject.threads().iter().filter(|it| is_napi_of(&it.name, name)).collect();
    let least = threads.iter().map(|it| it.policy.fixed()).min().flatten();
    let is_card = subject.root.exists(file(subject, "device"));
    let fix = format!("chrt -f -p {priority} $(pgrep napi/{name}-)");
    match (on, least) {
        (true, Some(priority)) => check.ok(format!("on, priority {priority}")),
        (true, None) if threads.is_empty() => check.note("on, its threads are not to be seen", fix),
        (true, None) => {
            let ordinary = threads.into_iter().filter(|it| it.policy.fixed().is_none());
            ordinary.fold(check.warning("on, at ordinary priority", fix), |finding, it| {
                let (thread, name) = (it.thread, it.name.clone());
                finding.changing(Change::Priority { thread, name, priority })
            })
        }
        (false, _) if subject.has_interrupt_threads() => check.ok("off: the interrupt's thread does it"),
        (false, _) if !is_card => check.ok("off: a virtual interface"),
        (false, _) => check
            .note("off", format!("echo 1 > {path}, then {fix}"))
            .changing(Change::ThreadedNapi { interface: name.to_owned(), priority }),
    }
}

fn deferral(check: &Check, subject: &Subject) -> Finding {
    let value = |name: &str| subject.root.number(file(subject, name));
    if let Some(period) = subject.polling {
        return deferral_of_polling(check, subject, period);
    }
    let on: Vec<&str> =
        DEFERRAL.into_iter().filter(|name| value(name).is_some_and(|value| value != 0)).collect();
    if on.is_empty() {
        return check.ok("none");
    }
    let finding = check.warning(on.join(", "), format!("echo 0 > {}", file(subject, on[0])));
    on.iter().fold(finding, |finding, name| finding.writing(file(subject, name), "0"))
}

/// Of a driver that the cycle polls: interrupts are kept off while it does.
fn deferral_of_polling(check: &Check, subject: &Subject, period: Duration) -> Finding {
    let wanted = "on, below the period: the cycle polls the driver";
    let values = DEFERRAL.map(|name| subject.root.number(file(subject, name)));
    let [Some(timeout), Some(times)] = values else {
        let found = check.note("the kernel has none", "Linux 5.11 or later.");
        return found.wanting(wanted);
    };
    let found = format!("{} = {timeout} ns, {} = {times}", DEFERRAL[0], DEFERRAL[1]);
    let below = i64::try_from(period.as_nanos()).unwrap_or(i64::MAX);
    if times > 0 && timeout > 0 && timeout < below {
        return check.ok(found).wanting(wanted);
    }
    let timeout = (below / 2).min(LONGEST_DEFERRAL).to_string();
    let [of_timeout, of_times] = DEFERRAL.map(|name| file(subject, name));
    check
        .warning(found, format!("echo {timeout} > {of_timeout}; echo {DEFERRED} > {of_times}"))
        .wanting(wanted)
        .writing(of_timeout, timeout)
        .writing(of_times, DEFERRED)
}

/// Files that keep a card's interrupts off.
const DEFERRAL: [&str; 2] = ["gro_flush_timeout", "napi_defer_hard_irqs"];
/// Empty polls after which its interrupts are on again.
const DEFERRED: &str = "2";
/// Time after which a timer polls a driver that has no poller, ns.
const LONGEST_DEFERRAL: i64 = 200_000;

fn pause(check: &Check, subject: &Subject) -> Finding {
    match subject.ethtool.pause {
        Some(true) => check
            .note("on", format!("ethtool -A {} autoneg off rx off tx off", interface(subject)))
            .driving(
                subject,
                vec![(Setting::PauseAutoneg, 0), (Setting::PauseRx, 0), (Setting::PauseTx, 0)],
            ),
        Some(false) => check.ok("off"),
        None => check.ok("the driver has none"),
    }
}

fn power(check: &Check, subject: &Subject) -> Finding {
    let path = file(subject, "device/power/control");
    match subject.root.text(&path).as_deref() {
        Some("auto") => check.note("managed", format!("echo on > {path}")).writing(path, "on"),
        Some(_) => check.ok("always on"),
        None => check.ok("no power management"),
    }
}

fn errors(check: &Check, subject: &Subject) -> Finding {
    let kinds = ["rx_crc_errors", "rx_errors", "tx_errors", "tx_carrier_errors"];
    let count = |kind: &str| subject.root.number(file(subject, &format!("statistics/{kind}"))).unwrap_or(0);
    let found: Vec<String> = kinds
        .into_iter()
        .filter(|kind| count(kind) > 0)
        .map(|kind| format!("{} {kind}", count(kind)))
        .collect();
    match found.is_empty() {
        true => check.ok("none"),
        false => check.warning(
            found.join(", "),
            "Try another cable; onbeat scan shows which SubDevice counts errors.",
        ),
    }
}

fn memory_node(check: &Check, subject: &Subject) -> Finding {
    let node = subject.root.number(file(subject, "device/numa_node")).filter(|node| *node >= 0);
    let Some(node) = node else { return check.ok("one node in all") };
    match subject.root.exists(subject.of_cpu(&format!("node{node}"))) {
        true => check.ok(format!("node {node}, as CPU {}", subject.cpu)),
        false => check.note(
            format!("node {node}; CPU {} is on another", subject.cpu),
            format!("Choose a CPU of node {node}: cat /sys/devices/system/node/node{node}/cpulist"),
        ),
    }
}
