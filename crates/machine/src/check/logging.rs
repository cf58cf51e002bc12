//! Checks of logging and consoles while the cycle runs.

use super::{Area, Check, Finding, Subject, some_of};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "console-level",
        area: Area::Logging,
        wanted: "4 or less: errors only",
        why: "The kernel prints to the console itself, letter by letter: a line on a serial port takes milliseconds, \
              with interrupts off in an ordinary kernel.",
        look: console_level,
    },
    Check {
        name: "serial-console",
        area: Area::Logging,
        wanted: "none",
        why: "At 115 200 baud a line of 80 letters takes 7 ms, and the task that prints it waits.",
        look: serial_console,
    },
    Check {
        name: "boot-debugging",
        area: Area::Logging,
        wanted: "none",
        why: "Words on the kernel's command line that make it check or print more make it slower.",
        look: boot_debugging,
    },
    Check {
        name: "scheduler-statistics",
        area: Area::Logging,
        wanted: "off",
        why: "They add a clock reading and some counters to every switch of tasks.",
        look: scheduler_statistics,
    },
    Check {
        name: "journaling",
        area: Area::Logging,
        wanted: "none where nothing needs it",
        why: "The journal of a file system is written every few seconds, and a task that writes a \
            file at that time may wait for it. The cycle writes no files; recorders do.",
        look: journaling,
    },
];

fn console_level(check: &Check, subject: &Subject) -> Finding {
    const FILE: &str = "/proc/sys/kernel/printk";
    let Some(text) = subject.root.text(FILE) else { return check.ok("none to be seen") };
    let (level, rest) = text.split_once(|letter: char| letter.is_ascii_whitespace()).unwrap_or((&text, ""));
    let fix = "sysctl kernel.printk=\"4 4 1 7\", or boot with quiet";
    match level.parse::<u32>() {
        Ok(0..=4) => check.ok(level),
        Ok(_) => {
            let rest = rest.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
            check.warning(level, fix).writing(FILE, format!("4 {rest}").trim_end())
        }
        Err(_) => check.note(format!("not known: \"{}\"", level.escape_debug()), fix),
    }
}

fn serial_console(check: &Check, subject: &Subject) -> Finding {
    let active = subject.root.text("/sys/class/tty/console/active").unwrap_or_default();
    let serial =
        |name: &&str| ["ttyS", "ttyAMA", "ttymxc", "ttyPS", "ttyUSB"].iter().any(|it| name.starts_with(it));
    match active.split_ascii_whitespace().find(serial) {
        None => check.ok("none"),
        Some(name) => check.note(name, format!("Boot without console={name}, once the machine is in use.")),
    }
}

fn boot_debugging(check: &Check, subject: &Subject) -> Finding {
    const WORDS: [&str; 7] =
        ["debug", "ignore_loglevel", "initcall_debug", "slub_debug", "slab_debug", "kmemleak", "ftrace"];
    let off = |value: &str| ["off", "0", "-"].contains(&value);
    let words = WORDS.iter().filter(|word| subject.boot_word(word).is_some_and(|value| !off(&value)));
    let words: Vec<&str> = words.copied().collect();
    match words.is_empty() {
        true => check.ok("none"),
        false => check.note(words.join(", "), "Boot without these words."),
    }
}

fn journaling(check: &Check, subject: &Subject) -> Finding {
    // A folder for each journal of ext3 and ext4: `sda1-8`.
    let journals = subject.root.names("/proc/fs/jbd2").into_iter();
    let journals =
        journals.map(|it| it.rsplit_once('-').map_or(it.clone(), |(device, _)| device.to_owned()));
    let mounts = subject.root.text("/proc/mounts").unwrap_or_default();
    let others = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let device = words.next()?;
        (words.nth(1)? == "xfs").then(|| device.trim_start_matches("/dev/").to_owned())
    });
    let names: Vec<String> = journals.chain(others).collect();
    match names.is_empty() {
        true => check.ok("none"),
        false => check.note(
            format!("on {}", some_of(&names, 3)),
            "Keep it where no file may be lost. Elsewhere: ext2, or ext4 without a journal \
             (tune2fs -O ^has_journal on the unmounted device); record into memory (/dev/shm) or \
             onto another disk; noatime, and commit=60 for ext4.",
        ),
    }
}

fn scheduler_statistics(check: &Check, subject: &Subject) -> Finding {
    const FILE: &str = "/proc/sys/kernel/sched_schedstats";
    match subject.root.number(FILE) {
        Some(on) if on != 0 => check.note("on", "sysctl kernel.sched_schedstats=0").writing(FILE, "0"),
        _ => check.ok("off"),
    }
}
