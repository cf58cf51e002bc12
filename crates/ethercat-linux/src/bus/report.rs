//! Result of [`Bus::run`](super::Bus::run): counts, timing, and findings in words.

use std::fmt;
use std::time::Duration;

use rt::pacer::Overruns;

/// Counts and timing of one run, in Op. Its `Display` is a line, and a line for each finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunReport {
    /// Cycles in Op.
    pub cycles: u64,
    /// Time between two releases.
    pub period: Duration,
    /// Frames without a reply in time.
    pub frames_lost: u64,
    /// Datagrams with another working counter than expected.
    pub working_counter_errors: u64,
    /// Frames that the link did not take, and failures to receive.
    pub link_errors: u64,
    /// Cycles that ended after the next release.
    pub overruns: Overruns,
    /// Longest time from a release to the start of its cycle.
    pub worst_wakeup_latency: Duration,
    /// Number of that cycle, as in [`Io::cycle`](super::Io::cycle).
    pub worst_cycle: u64,
    /// SubDevices outside Op in the last cycle: only after
    /// [`Bus::continue_out_of_op`](super::Bus::continue_out_of_op), or in the first second.
    pub out_of_op: usize,
}

/// One thing that did not go well in a run. Its `Display` is a sentence with the remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunFinding {
    /// Cycles ended after the next release.
    Overruns(Overruns),
    /// A cycle started a period or more after its release.
    LateStart {
        /// Number of the cycle.
        cycle: u64,
        /// Time from its release to its start.
        wakeup_latency: Duration,
    },
    /// Frames came back too late, or not at all.
    FramesLost(u64),
    /// Datagrams had another working counter than expected.
    WorkingCounterErrors(u64),
    /// The link did not take frames, or failed to receive.
    LinkErrors(u64),
    /// SubDevices were outside Op in the last cycle.
    OutOfOp(usize),
}

impl RunReport {
    /// Counts the start of a cycle in Op.
    pub(super) fn cycle(&mut self, number: u64, latency: Duration) {
        self.cycles += 1;
        if latency > self.worst_wakeup_latency {
            (self.worst_wakeup_latency, self.worst_cycle) = (latency, number);
        }
    }

    /// Findings, of the timing first; none after a good run.
    pub fn findings(&self) -> impl Iterator<Item = RunFinding> {
        let late =
            RunFinding::LateStart { cycle: self.worst_cycle, wakeup_latency: self.worst_wakeup_latency };
        [
            (self.overruns.count > 0, RunFinding::Overruns(self.overruns)),
            (self.cycles > 0 && self.worst_wakeup_latency >= self.period, late),
            (self.frames_lost > 0, RunFinding::FramesLost(self.frames_lost)),
            (
                self.working_counter_errors > 0,
                RunFinding::WorkingCounterErrors(self.working_counter_errors),
            ),
            (self.link_errors > 0, RunFinding::LinkErrors(self.link_errors)),
            (self.out_of_op > 0, RunFinding::OutOfOp(self.out_of_op)),
        ]
        .into_iter()
        .filter_map(|(is_found, finding)| is_found.then_some(finding))
    }
}

impl fmt::Display for RunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} cycles of {} ms, worst wakeup latency {:.3} ms in cycle {}",
            self.cycles,
            milliseconds(self.period),
            milliseconds(self.worst_wakeup_latency),
            self.worst_cycle
        )?;
        self.findings().try_for_each(|finding| write!(f, "\n{finding}"))
    }
}

impl fmt::Display for RunFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Overruns(Overruns { count, skipped, .. }) => write!(
                f,
                "{count} cycles ended after the next release, {skipped} releases were skipped: give the \
                 thread a real-time priority, shorten the work, or choose a longer period"
            ),
            Self::LateStart { cycle, wakeup_latency } => write!(
                f,
                "cycle {cycle} started {:.3} ms after its release, a period or more: give the thread a \
                 real-time priority and a CPU; `onbeat doctor` lists other causes",
                milliseconds(wakeup_latency)
            ),
            Self::FramesLost(count) => {
                write!(
                    f,
                    "{count} frames had no reply in time: check cables, and the load of this computer"
                )
            }
            Self::WorkingCounterErrors(count) => write!(
                f,
                "{count} datagrams had a wrong working counter: a SubDevice did not exchange process data; check \
                 its power, its cable and its state"
            ),
            Self::LinkErrors(count) => {
                write!(f, "{count} frames failed in the network interface: check that it is up")
            }
            Self::OutOfOp(count) => {
                write!(f, "{count} SubDevices were outside Op at the end: read their AL status codes")
            }
        }
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: Duration = Duration::from_millis(1);

    // feature(library): the result of `Bus::run` has the worst wakeup latency, its cycle and findings with remedies
    #[test]
    fn a_report_names_its_worst_cycle_and_findings() {
        let mut report = RunReport { period: MILLISECOND, ..RunReport::default() };
        for (cycle, micros) in [(0, 40), (1, 250), (2, 30)] {
            report.cycle(cycle, Duration::from_micros(micros));
        }
        assert_eq!(report.findings().count(), 0);
        assert_eq!(report.to_string(), "3 cycles of 1 ms, worst wakeup latency 0.250 ms in cycle 1");

        report.cycle(7, MILLISECOND);
        report.out_of_op = 2;
        let late = RunFinding::LateStart { cycle: 7, wakeup_latency: MILLISECOND };
        assert_eq!(report.findings().collect::<Vec<_>>(), [late, RunFinding::OutOfOp(2)]);
        let text = report.to_string();
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(text.contains("\ncycle 7 started 1.000 ms after its release, "), "{text}");

        report.overruns.count = 1;
        (report.frames_lost, report.working_counter_errors, report.link_errors) = (1, 2, 3);
        assert_eq!(report.findings().count(), 6);
    }
}
