//! Time stolen by the hypervisor, as far as it is visible from inside the virtual machine.
//!
//! Three sources, from the most to the least reliable:
//!
//! 1. `sched_stat_runtime` charges a thread for its run time *without* stolen time (with
//!    `PARAVIRT_TIME_ACCOUNTING`). Time on the clock between two charges that was not charged was
//!    stolen.
//! 2. The steal counter of the CPU in `/proc/stat`, in ticks of 10 ms: an amount without instants.
//! 3. In a virtual machine: an idle CPU with a due timer and a long time without events. The host
//!    had not woken it.

use std::collections::{HashMap, VecDeque};
use std::fs;
use std::path::Path;

use crate::timeline::{REAL_TIME, Timeline};
use crate::trace::What;

/// Shortest time counted as steal, ns: charges are recorded some microseconds before or after the
/// events.
pub(crate) const STEAL_AT_LEAST: u64 = 20_000;

/// Interval in which a CPU was stolen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stolen {
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
}

/// Steal of a CPU by its charges.
#[derive(Debug, Default)]
pub(crate) struct Charges {
    /// Stolen intervals, in order.
    pub(crate) stolen: Vec<Stolen>,
    /// Intervals between two charges, in which the steal is known.
    accounted: Vec<Stolen>,
}

impl Charges {
    /// Evaluates the charges of threads on this CPU. Other CPUs may charge ordinary threads, and
    /// events of other CPUs are not visible here; charges of ordinary threads are used only if
    /// `ordinary` is true.
    pub(crate) fn of(timeline: &Timeline<'_>, cpu: usize, ordinary: bool) -> Self {
        let mut charges = Self::default();
        // Running thread, true if its charges are used, and the times of all events since the last
        // charge.
        let mut open: Option<(i32, bool, Vec<u64>)> = None;
        let mut interrupt: Option<u64> = None;
        let mut interrupted = 0;
        for event in timeline.events_of(cpu) {
            let now = event.time_ns;
            if let Some((_, _, times)) = &mut open {
                times.push(now);
            }
            match event.what {
                What::Switch { next, .. } => {
                    let believed = next.thread != 0 && (ordinary || next.priority < REAL_TIME);
                    open = Some((next.thread, believed, vec![now]));
                    (interrupt, interrupted) = (None, 0);
                }
                // Interrupts may be charged to no thread, which is not steal.
                What::IrqEntry { .. } | What::VectorEntry { .. } | What::SoftirqEntry { .. } => {
                    interrupt.get_or_insert(now);
                }
                What::IrqExit | What::VectorExit | What::SoftirqExit => {
                    interrupted += interrupt.take().map_or(0, |since| now.saturating_sub(since));
                }
                What::Charged { thread, ran_ns } => {
                    if let Some((current, true, times)) = &open
                        && *current == thread
                    {
                        let inside = interrupted + interrupt.map_or(0, |since| now.saturating_sub(since));
                        charges.take(times, ran_ns.saturating_add(inside));
                    }
                    if let Some((_, _, times)) = &mut open {
                        *times = vec![now];
                    }
                    interrupted = 0;
                    interrupt = interrupt.map(|_| now);
                }
                _ => {}
            }
        }
        charges
    }

    /// True if the steal between two times is known.
    pub(crate) fn cover(&self, from_ns: u64, to_ns: u64) -> bool {
        self.accounted.iter().any(|it| it.from_ns <= from_ns && to_ns <= it.to_ns)
    }

    /// Takes an interval from the first to the last of these events, of which only `known_ns` were
    /// not stolen. The rest is placed in the longest silences, each before the event that ended it:
    /// a stolen CPU records nothing.
    fn take(&mut self, times: &[u64], known_ns: u64) {
        let (Some(&from_ns), Some(&to_ns)) = (times.first(), times.last()) else { return };
        self.accounted.push(Stolen { from_ns, to_ns });
        let mut rest = to_ns.saturating_sub(from_ns).saturating_sub(known_ns);
        if rest < STEAL_AT_LEAST {
            return;
        }
        let mut silences: Vec<(u64, u64)> = times.windows(2).map(|pair| (pair[0], pair[1])).collect();
        silences.sort_by_key(|&(from, to)| std::cmp::Reverse(to.saturating_sub(from)));
        for (from, to) in silences {
            if rest < STEAL_AT_LEAST {
                break;
            }
            let taken = rest.min(to.saturating_sub(from));
            self.stolen.push(Stolen { from_ns: to - taken, to_ns: to });
            rest -= taken;
        }
        self.stolen.sort_by_key(|it| it.from_ns);
    }
}

/// Samples of the steal counters of `/proc/stat`.
#[derive(Debug, Default)]
pub(crate) struct StealCounter {
    samples: VecDeque<(u64, HashMap<usize, u64>)>,
}

/// Number of samples kept: at one every 20 ms, some seconds.
const SAMPLES: usize = 256;

/// Tick of `/proc/stat`: 10 ms (`USER_HZ`, 100 on all current Linux systems).
pub(crate) const TICK_NS: u64 = 10_000_000;

impl StealCounter {
    pub(crate) fn sample(&mut self, now_ns: u64) {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        self.add(now_ns, steal_ticks(&stat));
    }

    fn add(&mut self, now_ns: u64, ticks: HashMap<usize, u64>) {
        self.samples.push_back((now_ns, ticks));
        if self.samples.len() > SAMPLES {
            // Keeps the first sample: it is the base for the whole run.
            self.samples.remove(1);
        }
    }

    /// Rise of this CPU's counter between the samples around two times, ns.
    pub(crate) fn rise(&self, cpu: usize, from_ns: u64, to_ns: u64) -> u64 {
        let before = self.samples.iter().rev().find(|(time, _)| *time <= from_ns).or(self.samples.front());
        let after = self.samples.iter().find(|(time, _)| *time >= to_ns).or(self.samples.back());
        let ticks = |sample: Option<&(u64, HashMap<usize, u64>)>| {
            sample.and_then(|(_, ticks)| ticks.get(&cpu).copied()).unwrap_or(0)
        };
        ticks(after).saturating_sub(ticks(before)) * TICK_NS
    }

    /// Rise of these CPUs' counters over the whole run, ns.
    pub(crate) fn whole(&self, cpus: &[usize]) -> u64 {
        cpus.iter().map(|&cpu| self.rise(cpu, 0, u64::MAX)).sum()
    }
}

/// Ticks stolen from each CPU so far: the eighth number of its line.
fn steal_ticks(stat: &str) -> HashMap<usize, u64> {
    let lines = stat.lines().filter_map(|line| {
        let mut words = line.strip_prefix("cpu")?.split_ascii_whitespace();
        Some((words.next()?.parse().ok()?, words.nth(7)?.parse().ok()?))
    });
    // The line for all CPUs together, "cpu  ", starts with a number of ticks: its name is empty.
    let all = stat.lines().next().is_some_and(|line| line.starts_with("cpu "));
    lines.skip(usize::from(all)).collect()
}

/// True on a virtual machine: by the CPU's flag, or because time was stolen from it.
pub(crate) fn is_virtual() -> bool {
    let flagged = fs::read_to_string("/proc/cpuinfo").is_ok_and(|info| {
        info.lines()
            .find(|line| line.starts_with("flags"))
            .is_some_and(|flags| flags.split_ascii_whitespace().any(|flag| flag == "hypervisor"))
    });
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    flagged
        || Path::new("/sys/hypervisor/type").exists()
        || steal_ticks(&stat).values().any(|&ticks| ticks > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steal_of_each_cpu_is_read() {
        let stat = "cpu  6 3 1 15 7 0 59 12 0 0\ncpu0 30 15 71 82 20 0 95 643 0 0\ncpu1 1 2 3 4 5 6 7 8 9 10\nintr 5\n";
        let ticks = steal_ticks(stat);
        assert_eq!((ticks.len(), ticks[&0], ticks[&1]), (2, 643, 8));
        assert!(steal_ticks("").is_empty() && steal_ticks("cpu0 1\n").is_empty());
    }

    #[test]
    fn a_rise_is_taken_between_the_samples_around() {
        let mut counter = StealCounter::default();
        for (time, ticks) in [(100, 5), (200, 5), (300, 7), (400, 8)] {
            counter.add(time, HashMap::from([(1, ticks)]));
        }
        assert_eq!(counter.rise(1, 210, 290), 2 * TICK_NS);
        assert_eq!(counter.rise(1, 110, 190), 0);
        assert_eq!(counter.rise(1, 350, 999), TICK_NS);
        assert_eq!(counter.whole(&[0, 1]), 3 * TICK_NS);
    }
}
