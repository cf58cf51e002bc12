//! Counters of the kernel available to every user: the fallback without its trace.
//!
//! Counters show how long a thread ran and waited for a CPU, its faults, interrupts and stolen
//! time, but not when. A late cycle gets the rise around it, up to its lateness. The remainder is
//! unknown, named after the counts around the cycle.

use std::collections::{BTreeMap, VecDeque};
use std::fs;

use machine::task::{self, RunTimes};
use record::Phase;
use types::cause::Kind;
use types::late::{Cause, Late};

use crate::attribute::{Causes, CycleTimes, phase_name};

/// Counters of the cycle's thread and CPU, sampled at each look.
#[derive(Debug)]
pub(crate) struct Counters {
    thread: i32,
    cpu: Option<usize>,
    /// Interrupts are counted, too: a large file on a computer with many CPUs.
    counts_interrupts: bool,
    samples: VecDeque<Sample>,
}

/// Longest time between two samples of a process that runs, ns.
const LOOK_WITHIN: u64 = 25_000_000;

/// Shortest lateness of a stall of the process, ns.
const STALLED: u64 = 1_000_000;

/// Number of samples kept.
const SAMPLES: usize = 256;

/// Number of interrupts named, the most frequent ones.
const NAMED: usize = 3;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Sample {
    time_ns: u64,
    times: Option<RunTimes>,
    switches: task::Counters,
    interrupts: BTreeMap<String, u64>,
}

impl Counters {
    pub(crate) fn new(thread: i32, cpu: Option<usize>, counts_interrupts: bool) -> Self {
        Self { thread, cpu, counts_interrupts, samples: VecDeque::new() }
    }

    pub(crate) fn sample(&mut self, time_ns: u64) {
        let interrupts = match self.counts_interrupts {
            true => fs::read_to_string("/proc/interrupts").unwrap_or_default(),
            false => String::new(),
        };
        self.samples.push_back(Sample {
            time_ns,
            times: RunTimes::read(self.thread),
            switches: task::Counters::read(self.thread).unwrap_or_default(),
            interrupts: interrupts_on(&interrupts, self.cpu),
        });
        if self.samples.len() > SAMPLES {
            self.samples.pop_front();
        }
    }

    /// Attributes a late cycle from the counts around it.
    pub(crate) fn attribute(&self, cycle: &CycleTimes, steal_rise_ns: u64) -> Vec<Cause> {
        let (late, late_ns) = cycle.lateness();
        let mut causes = Causes::default();
        let mut rest = late_ns;
        let mut take = |kind, name: &str, ns: u64| {
            let share = ns.min(rest);
            causes.add(kind, name, share);
            rest -= share;
        };
        take(Kind::Steal, crate::attribute::HYPERVISOR, steal_rise_ns);
        let around = self.around(cycle);
        let RunTimes { ran_ns, waited_ns } = around.as_ref().map(|it| it.times).unwrap_or_default();
        if late_ns >= STALLED {
            take(Kind::Stall, PROCESS, self.silence(cycle).saturating_sub(ran_ns + waited_ns));
        }
        take(Kind::Task, "another thread", waited_ns);
        let (phase, own_ns) = own(cycle, late);
        take(Kind::Own, phase_name(phase), own_ns.min(ran_ns));
        if let Some(faults) = around.as_ref().map(|it| it.major_faults).filter(|&faults| faults > 0) {
            take(Kind::MajorFault, &format!("({faults} around it)"), u64::MAX);
        }
        if rest > 0 {
            let name = around.map_or_else(|| "nothing counted".to_owned(), |it| it.name);
            causes.add(Kind::Unknown, &name, rest);
        }
        causes.adding_up_to(late_ns)
    }

    /// Time around a late cycle in which no sample was taken, though one was due: the thread that
    /// takes them did not run either.
    fn silence(&self, cycle: &CycleTimes) -> u64 {
        let (release, end) = (cycle.record.release_ns, cycle.record.end_ns);
        let pairs = self.samples.iter().zip(self.samples.iter().skip(1));
        let silent = pairs.map(|(one, next)| (one.time_ns.saturating_add(LOOK_WITHIN), next.time_ns));
        silent.map(|(from, to)| to.min(end).saturating_sub(from.max(release))).sum()
    }

    fn around(&self, cycle: &CycleTimes) -> Option<Around> {
        let (release, end) = (cycle.record.release_ns, cycle.record.end_ns);
        let before = self.samples.iter().rev().find(|it| it.time_ns <= release).or(self.samples.front())?;
        let after = self.samples.iter().find(|it| it.time_ns >= end).or(self.samples.back())?;
        Some(Around {
            times: self.times(before, after),
            major_faults: after.switches.major_faults.saturating_sub(before.switches.major_faults),
            name: self.counted(before, after),
        })
    }

    /// Times between two samples; of the wait for a CPU what is more than usual.
    fn times(&self, before: &Sample, after: &Sample) -> RunTimes {
        let rise = |from: &Sample, to: &Sample| {
            let (from, to) = (from.times.unwrap_or_default(), to.times.unwrap_or_default());
            RunTimes {
                ran_ns: to.ran_ns.saturating_sub(from.ran_ns),
                waited_ns: to.waited_ns.saturating_sub(from.waited_ns),
            }
        };
        let (Some(first), Some(last)) = (self.samples.front(), self.samples.back()) else {
            return RunTimes::default();
        };
        let span = |from: &Sample, to: &Sample| u128::from(to.time_ns.saturating_sub(from.time_ns));
        let usual =
            u128::from(rise(first, last).waited_ns) * span(before, after) / span(first, last).max(1);
        let RunTimes { ran_ns, waited_ns } = rise(before, after);
        RunTimes { ran_ns, waited_ns: waited_ns.saturating_sub(u64::try_from(usual).unwrap_or(u64::MAX)) }
    }

    fn counted(&self, before: &Sample, after: &Sample) -> String {
        let risen = |from: u64, to: u64| to.saturating_sub(from);
        let span = risen(before.time_ns, after.time_ns) / 1_000_000;
        let mut counted = format!(
            "in the {span} ms around it: {} preemptions, {} sleeps",
            risen(before.switches.involuntary, after.switches.involuntary),
            risen(before.switches.voluntary, after.switches.voluntary),
        );
        if !self.counts_interrupts {
            return counted;
        }
        let mut interrupts: Vec<(u64, &String)> = after
            .interrupts
            .iter()
            .map(|(name, &count)| (risen(before.interrupts.get(name).copied().unwrap_or(0), count), name))
            .filter(|&(count, _)| count > 0)
            .collect();
        interrupts.sort_unstable_by(|a, b| b.cmp(a));
        let interrupts: Vec<String> =
            interrupts.iter().take(NAMED).map(|(count, name)| format!("{count} of {name}")).collect();
        counted += ", interrupts: ";
        counted + &if interrupts.is_empty() { "none".to_owned() } else { interrupts.join(", ") }
    }
}

/// Counts around a late cycle.
struct Around {
    times: RunTimes,
    major_faults: u64,
    /// The counts in words.
    name: String,
}

/// Name of the process in causes.
const PROCESS: &str = "process";

/// Phase that delayed a cycle most, and the time by which the phases delayed it at most: the
/// previous cycle's after the release, or the cycle's own.
fn own(cycle: &CycleTimes, late: Late) -> (Phase, u64) {
    match (late, cycle.previous) {
        (Late::Start, Some((end, phase))) => (phase, end.saturating_sub(cycle.record.release_ns)),
        (Late::Start, None) => (Phase::Update, 0),
        (Late::End, _) => {
            let phases = Phase::ALL.into_iter().filter(|&phase| phase != Phase::Wait);
            let own = phases.map(|phase| cycle.record.duration(phase)).sum();
            (CycleTimes::longest_phase(&cycle.record), own)
        }
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
            times: None,
            switches: task::Counters { involuntary, voluntary: 5, ..task::Counters::default() },
            interrupts: BTreeMap::from([("24 eth0".to_owned(), eth0)]),
        };
        let samples = VecDeque::from([sample(0, 1, 1), sample(10_000_000, 2, 1), sample(30_000_000, 5, 8)]);
        let counters = Counters { thread: 1, cpu: None, counts_interrupts: true, samples };
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

    const MS: u64 = 1_000_000;

    /// Samples of a thread, each at this time with what it ran and waited since the one before.
    fn sampled(samples: &[(u64, u64, u64)]) -> Counters {
        let mut times = RunTimes::default();
        let samples = samples.iter().map(|&(time_ms, ran_us, waited_us)| {
            times.ran_ns += ran_us * 1_000;
            times.waited_ns += waited_us * 1_000;
            Sample { time_ns: time_ms * MS, times: Some(times), ..Sample::default() }
        });
        Counters { thread: 1, cpu: None, counts_interrupts: false, samples: samples.collect() }
    }

    /// Late cycle: released and started at these times in us, with a controller of this duration.
    fn late_cycle(release: u64, start: u64, update: u64) -> CycleTimes {
        let mut record = record::CycleRecord::begin(4, release * 1_000, start * 1_000);
        record.finish(Phase::Update, (start + update) * 1_000);
        CycleTimes { record, previous: None, period_ns: MS, thread: 1, waits_for_reply: false }
    }

    /// The thread that takes the samples was silent, too, and the cycle neither ran nor waited.
    // feature(explain): without a trace a stall of the process, other threads and the phases of the cycle are distinguished
    #[test]
    fn a_stopped_process_is_a_stall() {
        let counters = sampled(&[(0, 0, 0), (20, 100, 40), (330, 100, 40), (350, 100, 40)]);
        let causes = counters.attribute(&late_cycle(31_000, 329_900, 20), 0);
        assert_eq!((causes[0].kind, causes[0].name.as_str()), (Kind::Stall, "process"));
        assert!(causes[0].ns > 280 * MS, "{causes:?}");
        assert_eq!(causes.iter().map(|it| it.ns).sum::<u64>(), 298_900_000);
    }

    #[test]
    fn a_wait_for_the_cpu_is_another_thread() {
        let counters = sampled(&[(0, 0, 0), (20, 100, 40), (40, 100, 540), (60, 100, 40), (80, 100, 40)]);
        let causes = counters.attribute(&late_cycle(30_000, 30_400, 20), 0);
        assert_eq!((causes[0].kind, causes[0].ns), (Kind::Task, 375_000), "{causes:?}");
        assert_eq!(causes[1].kind, Kind::Unknown);
        // A wait as usual delays none.
        let counters = sampled(&[(0, 0, 0), (20, 100, 40), (40, 100, 40), (60, 100, 40), (80, 100, 40)]);
        let causes = counters.attribute(&late_cycle(30_000, 30_400, 20), 0);
        assert!(causes.iter().all(|it| it.kind == Kind::Unknown), "{causes:?}");
    }

    #[test]
    fn a_long_phase_is_our_own_if_the_thread_ran() {
        let ran = sampled(&[(0, 0, 0), (20, 100, 0), (40, 5_000, 0), (60, 100, 0)]);
        let causes = ran.attribute(&late_cycle(30_000, 30_010, 4_000), 0);
        assert_eq!((causes[0].kind, causes[0].name.as_str()), (Kind::Own, "controller"));
        assert_eq!(causes[0].ns, 3_010_000);
        let slept = sampled(&[(0, 0, 0), (20, 100, 0), (40, 100, 0), (60, 100, 0)]);
        let causes = slept.attribute(&late_cycle(30_000, 30_010, 4_000), 0);
        assert_eq!(causes[0].kind, Kind::Unknown, "{causes:?}");
    }
}
