//! Counters of the kernel available to every user: the fallback without its trace.
//!
//! Counters show preemptions of a thread, interrupts and stolen time, but neither their instants
//! nor their durations. Only steal is attributed to a late cycle, in ticks of 10 ms; the remainder
//! stays unknown, named after the counts around the cycle.

use std::collections::{BTreeMap, VecDeque};
use std::fs;

use machine::task;

use crate::late::{Cause, Causes, CycleTimes, Kind};

/// Counters of the cycle's thread and CPU, sampled at each look.
#[derive(Debug)]
pub(crate) struct Counters {
    thread: i32,
    cpu: Option<usize>,
    samples: VecDeque<Sample>,
}

/// Number of samples kept.
const SAMPLES: usize = 256;

/// Number of interrupts named, the most frequent ones.
const NAMED: usize = 3;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Sample {
    time_ns: u64,
    voluntary: u64,
    involuntary: u64,
    interrupts: BTreeMap<String, u64>,
}

impl Counters {
    pub(crate) fn new(thread: i32, cpu: Option<usize>) -> Self {
        Self { thread, cpu, samples: VecDeque::new() }
    }

    pub(crate) fn sample(&mut self, time_ns: u64) {
        let switches = task::Counters::read(self.thread).unwrap_or_default();
        let interrupts = fs::read_to_string("/proc/interrupts").unwrap_or_default();
        self.samples.push_back(Sample {
            time_ns,
            voluntary: switches.voluntary,
            involuntary: switches.involuntary,
            interrupts: interrupts_on(&interrupts, self.cpu),
        });
        if self.samples.len() > SAMPLES {
            self.samples.pop_front();
        }
    }

    /// Attributes a late cycle from the counts around it.
    pub(crate) fn attribute(&self, cycle: &CycleTimes, steal_rise_ns: u64) -> Vec<Cause> {
        let (_, late_ns) = cycle.lateness();
        let mut causes = Causes::default();
        let stolen = steal_rise_ns.min(late_ns);
        causes.add(Kind::Steal, crate::attribute::HYPERVISOR, stolen);
        causes.add(Kind::Unknown, &self.counted(cycle), late_ns - stolen);
        causes.adding_up_to(late_ns)
    }

    fn counted(&self, cycle: &CycleTimes) -> String {
        let (release, end) = (cycle.record.release_ns, cycle.record.end_ns);
        let before = self.samples.iter().rev().find(|it| it.time_ns <= release).or(self.samples.front());
        let after = self.samples.iter().find(|it| it.time_ns >= end).or(self.samples.back());
        let (Some(before), Some(after)) = (before, after) else { return "nothing counted".to_owned() };
        let risen = |from: u64, to: u64| to.saturating_sub(from);
        let span = risen(before.time_ns, after.time_ns) / 1_000_000;
        let mut interrupts: Vec<(u64, &String)> = after
            .interrupts
            .iter()
            .map(|(name, &count)| (risen(before.interrupts.get(name).copied().unwrap_or(0), count), name))
            .filter(|&(count, _)| count > 0)
            .collect();
        interrupts.sort_unstable_by(|a, b| b.cmp(a));
        let interrupts: Vec<String> =
            interrupts.iter().take(NAMED).map(|(count, name)| format!("{count} of {name}")).collect();
        format!(
            "in the {span} ms around it: {} preemptions, {} sleeps, interrupts: {}",
            risen(before.involuntary, after.involuntary),
            risen(before.voluntary, after.voluntary),
            if interrupts.is_empty() { "none".to_owned() } else { interrupts.join(", ") }
        )
    }
}

/// Counts of each interrupt on a CPU, or on all of them, by number and name, for example `24 eth0`.
fn interrupts_on(table: &str, cpu: Option<usize>) -> BTreeMap<String, u64> {
    let mut lines = table.lines();
    let cpus: Vec<usize> = lines
        .next()
        .unwrap_or_default()
        .split_ascii_whitespace()
        .filter_map(|name| name.strip_prefix("CPU")?.parse().ok())
        .collect();
    let mut counts = BTreeMap::new();
    for line in lines {
        let Some((number, rest)) = line.split_once(':') else { continue };
        let words: Vec<&str> = rest.split_ascii_whitespace().collect();
        let counted = words.iter().map_while(|word| word.parse::<u64>().ok()).take(cpus.len());
        let count =
            counted.zip(&cpus).filter(|(_, it)| cpu.is_none_or(|cpu| cpu == **it)).map(|(n, _)| n).sum();
        let number = number.trim();
        let name = match number.parse::<u32>() {
            Ok(_) => words.last().copied().unwrap_or_default().to_owned(),
            // "LOC: 1 2 Local timer interrupts"
            Err(_) => words.get(cpus.len()..).unwrap_or_default().join(" "),
        };
        counts.insert(format!("{number} {name}"), count);
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERRUPTS: &str = "           CPU0       CPU2       \n\
        \x20 24:          7          9  PCI-MSIX-0000:00:03.0   0-edge      eth0\n\
        \x20LOC:        100        200   Local timer interrupts\n\
        \x20ERR:          0\n";

    #[test]
    fn interrupts_are_counted_by_cpu_and_name() {
        let on = |cpu| interrupts_on(INTERRUPTS, cpu);
        assert_eq!(on(Some(2))["24 eth0"], 9);
        assert_eq!(on(Some(2))["LOC Local timer interrupts"], 200);
        assert_eq!(on(None)["24 eth0"], 16);
        assert!(interrupts_on("", None).is_empty());
    }

    #[test]
    fn late_cycle_has_counters_around_it() {
        let sample = |time_ns, involuntary, eth0| Sample {
            time_ns,
            voluntary: 5,
            involuntary,
            interrupts: BTreeMap::from([("24 eth0".to_owned(), eth0)]),
        };
        let samples = VecDeque::from([sample(0, 1, 1), sample(10_000_000, 2, 1), sample(30_000_000, 5, 8)]);
        let counters = Counters { thread: 1, cpu: None, samples };
        let record = record::CycleRecord::begin(4, 12_000_000, 27_000_000);
        let cycle =
            CycleTimes { record, previous: None, period_ns: 1_000_000, thread: 1, waits_for_reply: false };
        let causes = counters.attribute(&cycle, 10_000_000);
        assert_eq!((causes[0].kind, causes[0].ns), (Kind::Steal, 10_000_000));
        assert_eq!((causes[1].kind, causes[1].ns), (Kind::Unknown, 5_000_000));
        assert_eq!(
            causes[1].name,
            "in the 20 ms around it: 3 preemptions, 0 sleeps, interrupts: 7 of 24 eth0"
        );
    }
}
