//! Use of the CPUs between two instants: busy, idle, or stolen by the hypervisor.
//!
//! ```
//! use onbeat_machine::usage::Usage;
//!
//! let before = Usage::now()?;
//! // ... a measurement ...
//! let busy = Usage::now()?.since(&before);
//! println!("{busy}");
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! The source is `/proc/stat` (proc_stat(5)): counters in clock ticks, usually 10 ms, so that
//! shares over less than a second are coarse.

use std::fmt;
use std::fs;
use std::io;

use serde::{Deserialize, Serialize};

/// Counters of the kernel at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    whole: Ticks,
    cpus: Vec<(usize, Ticks)>,
    context_switches: u64,
    interrupts: u64,
}

impl Usage {
    /// Reads `/proc/stat`.
    ///
    /// # Errors
    /// The operating system's error, and [`io::ErrorKind::InvalidData`] if the file has no line of
    /// CPU times.
    pub fn now() -> io::Result<Self> {
        let text = fs::read_to_string("/proc/stat")?;
        Self::parse(&text).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "/proc/stat: expected a line \"cpu\" of tick counts, found none",
            )
        })
    }

    /// Parses the text of a `/proc/stat`; `None` without a line for the whole machine.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut usage = Self::default();
        let mut found = false;
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            let name = words.next().unwrap_or_default();
            match name {
                "cpu" => {
                    usage.whole = Ticks::parse(words)?;
                    found = true;
                }
                "ctxt" => usage.context_switches = words.next().and_then(|it| it.parse().ok()).unwrap_or(0),
                "intr" => usage.interrupts = words.next().and_then(|it| it.parse().ok()).unwrap_or(0),
                _ => {
                    let cpu = name.strip_prefix("cpu").and_then(|number| number.parse().ok());
                    if let Some((cpu, ticks)) = cpu.zip(Ticks::parse(words)) {
                        usage.cpus.push((cpu, ticks));
                    }
                }
            }
        }
        found.then_some(usage)
    }

    /// Use from boot until now.
    #[must_use]
    pub fn since_boot(&self) -> Busy {
        let cpus = self.cpus.iter().map(|&(cpu, _)| (cpu, Ticks::default())).collect();
        self.since(&Self { cpus, ..Self::default() })
    }

    /// Use from `before` until now.
    #[must_use]
    pub fn since(&self, before: &Self) -> Busy {
        let cpus = self.cpus.iter().map(|(cpu, now)| {
            let then = before.cpus.iter().find(|(other, _)| other == cpu);
            let shares = then.map_or(Shares::default(), |(_, then)| now.since(then));
            CpuShares { cpu: *cpu, shares }
        });
        Busy {
            whole: self.whole.since(&before.whole),
            cpus: cpus.collect(),
            context_switches: self.context_switches.saturating_sub(before.context_switches),
            interrupts: self.interrupts.saturating_sub(before.interrupts),
        }
    }
}

/// Use of the CPUs over an interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Busy {
    /// Shares of all CPUs together.
    #[serde(flatten)]
    pub whole: Shares,
    /// Shares of each CPU that was online at the end.
    pub cpus: Vec<CpuShares>,
    /// Context switches of all CPUs.
    pub context_switches: u64,
    /// Interrupts of all CPUs.
    pub interrupts: u64,
}

impl Busy {
    /// Shares of one CPU, if it is online.
    #[must_use]
    pub fn of(&self, cpu: usize) -> Option<Shares> {
        self.cpus.iter().find(|it| it.cpu == cpu).map(|it| it.shares)
    }
}

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.whole.fmt(f)
    }
}

/// Use of one CPU over an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuShares {
    /// Number of the CPU.
    pub cpu: usize,
    /// Shares of its time.
    #[serde(flatten)]
    pub shares: Shares,
}

/// Shares of the time, each from 0 to 1; together 1, or all 0 if no tick passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Shares {
    /// Share of running: user, nice, system, hard and soft interrupts.
    pub busy: f64,
    /// Share of idling, including waits for a disk.
    pub idle: f64,
    /// Share stolen: ready to run while the hypervisor ran something else.
    pub steal: f64,
}

impl fmt::Display for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| share * 100.0;
        write!(
            f,
            "{:.1} % busy, {:.1} % idle, {:.1} % stolen",
            percent(self.busy),
            percent(self.idle),
            percent(self.steal)
        )
    }
}

/// Clock ticks since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ticks {
    busy: u64,
    idle: u64,
    steal: u64,
}

impl Ticks {
    /// Parses user nice system idle iowait irq softirq steal; guest times are included in user and
    /// nice.
    fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Option<Self> {
        let ticks: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
        let at = |index: usize| ticks.get(index).copied().unwrap_or(0);
        let sum = |indices: &[usize]| indices.iter().fold(0, |sum: u64, &it| sum.saturating_add(at(it)));
        (ticks.len() >= 4).then(|| Self { busy: sum(&[0, 1, 2, 5, 6]), idle: sum(&[3, 4]), steal: at(7) })
    }

    /// Shares since `before`. The kernel's idle counters can step back by a tick or two: a
    /// difference is at least 0.
    fn since(&self, before: &Self) -> Shares {
        let busy = self.busy.saturating_sub(before.busy) as f64;
        let idle = self.idle.saturating_sub(before.idle) as f64;
        let steal = self.steal.saturating_sub(before.steal) as f64;
        let all = busy + idle + steal;
        if all == 0.0 {
            return Shares::default();
        }
        Shares { busy: busy / all, idle: idle / all, steal: steal / all }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "cpu 10 0 10 100 0 0 0 0 0 0\ncpu0 10 0 10 50 0 0 0 0 0 0\ncpu1 0 0 0 50 0 0 0 0 0 0\n\
                          intr 500 1 2 3\nctxt 1000\n";
    const AFTER: &str = "cpu 30 0 20 150 5 3 2 10 9 0\ncpu0 30 0 20 50 5 3 2 10 9 0\ncpu1 0 0 0 100 0 0 0 0 0 0\n\
                         intr 700 1 2 3\nctxt 1300\n";

    #[test]
    fn shares_of_the_machine_and_of_each_cpu() {
        let (before, after) = (Usage::parse(BEFORE).unwrap(), Usage::parse(AFTER).unwrap());
        let busy = after.since(&before);
        assert_eq!(busy.whole, Shares { busy: 0.35, idle: 0.55, steal: 0.1 });
        assert_eq!(busy.of(0), Some(Shares { busy: 0.7, idle: 0.1, steal: 0.2 }));
        assert_eq!(busy.of(1), Some(Shares { busy: 0.0, idle: 1.0, steal: 0.0 }));
        assert_eq!(busy.of(2), None);
        assert_eq!((busy.context_switches, busy.interrupts), (300, 200));
        assert_eq!(busy.to_string(), "35.0 % busy, 55.0 % idle, 10.0 % stolen");
    }

    #[test]
    fn no_time_and_time_backwards_are_no_shares() {
        let (before, after) = (Usage::parse(BEFORE).unwrap(), Usage::parse(AFTER).unwrap());
        assert_eq!(before.since(&before).whole, Shares::default());
        assert_eq!(before.since(&after).whole, Shares::default());
    }

    #[test]
    fn a_cpu_that_came_online_in_between_has_no_shares_yet() {
        let before = Usage::parse("cpu 1 0 0 1\ncpu0 1 0 0 1\n").unwrap();
        let after = Usage::parse("cpu 5 0 0 5\ncpu0 3 0 0 3\ncpu1 2 0 0 2\n").unwrap();
        assert_eq!(after.since(&before).of(1), Some(Shares::default()));
    }

    #[test]
    fn a_file_that_lies_is_no_panic() {
        for text in ["", "cpu", "cpu x y z", "cpu0 1 2 3 4", "cpu 1 2 3", "\0\0\0"] {
            assert_eq!(Usage::parse(text), None, "{text:?}");
        }
        let most = u64::MAX;
        let huge = Usage::parse(&format!("cpu {most} {most} {most} {most} {most}\nctxt -\n")).unwrap();
        let _ = huge.since(&Usage::default());
    }

    #[test]
    fn this_machine_says_what_it_does() {
        let before = Usage::now().unwrap();
        while Usage::now().unwrap().since(&before).whole == Shares::default() {
            std::hint::spin_loop();
        }
        let busy = Usage::now().unwrap().since(&before);
        let sum = busy.whole.busy + busy.whole.idle + busy.whole.steal;
        assert!((sum - 1.0).abs() < 1e-9, "{busy:?}");
        assert!(!busy.cpus.is_empty());
    }
}
