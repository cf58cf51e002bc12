//! First lines of the end of a run: what ran, the verdict on its timing, and what to do next.

use std::fmt;
use std::time::Duration;

use control::cycle::{HostStalls, USUAL_WATCHDOG};
use onbeat::{SIMULATED, Summary};
use record::RunSummary;
use robot::RobotConfig;
use types::duration::format as period;

use crate::words::sub_device_count;

/// The first lines.
pub(super) struct Headline<'a> {
    pub(super) robot: &'a RobotConfig,
    pub(super) summary: &'a Summary,
    /// False if the run did not wait for the releases of its cycles.
    pub(super) has_timing: bool,
    /// Output files that cannot be written and that the summary does not list.
    pub(super) failed_files: usize,
}

/// Verdict on the timing, from the response times: from the release of a cycle to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timing {
    /// No cycle was measured.
    Unknown,
    /// So many cycles were not measured, and the measured ones were not late.
    Gaps(u64),
    /// Each cycle ended in the first half of its period.
    Good,
    /// Each cycle ended in its period, one in the second half.
    Tight,
    /// So many cycles ended after the next release, or releases were skipped.
    Late(u64),
}

/// Runs below this time are too short for a verdict on rare delays.
const SHORT: Duration = Duration::from_secs(60);

impl Timing {
    /// Verdict on a run with this timing, and with these delays of the host.
    fn of_run(timing: &RunSummary, stalls: Option<HostStalls>, worst: Option<Duration>) -> Self {
        let stalls = stalls.map_or(0, |stalls| stalls.count);
        let late = timing.overruns.count.max(timing.skipped_releases.count).max(stalls);
        let period = Duration::from_nanos(timing.period_ns());
        Self::of(late, timing.dropped_records.count, worst, period)
    }

    /// Verdict on `late` cycles, unmeasured cycles, and the worst response time of all others.
    fn of(late: u64, unmeasured: u64, worst: Option<Duration>, period: Duration) -> Self {
        match worst {
            None => Self::Unknown,
            Some(worst) if late > 0 || worst >= period => Self::Late(late.max(1)),
            Some(_) if unmeasured > 0 => Self::Gaps(unmeasured),
            Some(worst) if worst > period / 2 => Self::Tight,
            Some(_) => Self::Good,
        }
    }
}

impl Headline<'_> {
    fn period(&self) -> Duration {
        self.robot.cycle.period
    }

    fn worst(&self) -> Option<Duration> {
        self.summary.timing.response_time.maximum().map(Duration::from_nanos)
    }

    fn timing(&self) -> Timing {
        let worst = self.worst().filter(|_| self.has_timing);
        Timing::of_run(&self.summary.timing, self.summary.host_stalls, worst)
    }

    /// Robot, axes, cycles, link and number of failures.
    fn ran(&self) -> String {
        let Self { robot, summary, .. } = self;
        let parts = match robot.axes.len() {
            0 => sub_device_count(robot.bus.sub_devices.len()),
            1 => "1 axis".to_owned(),
            axes => format!("{axes} axes"),
        };
        let link = &summary.conditions.link;
        let on = if link.starts_with(SIMULATED) { link.clone() } else { format!("on {link}") };
        let files = summary.files.iter().filter(|file| file.is_err()).count() + self.failed_files;
        let failures = summary.findings.len() + files;
        let end = match failures {
            0 => "No failures.".to_owned(),
            1 => "1 failure.".to_owned(),
            many => format!("{many} failures."),
        };
        format!(
            "{}: {parts}, {} cycles of {}, {on}. {end}",
            robot.name,
            summary.cycles(),
            period(self.period())
        )
    }

    /// The verdict on the timing, with the figure that decides it.
    fn verdict(&self) -> String {
        let (period, worst) = (period(self.period()), self.worst().unwrap_or_default());
        let share = 100.0 * worst.as_secs_f64() / self.period().as_secs_f64();
        let within = format!("response times up to {} ({share:.0} %)", milliseconds(worst));
        let mut text = match self.timing() {
            Timing::Unknown if self.has_timing => {
                "Timing: unknown, no cycle in Op was measured.".to_owned()
            }
            Timing::Unknown => {
                "Timing: not measured, `--time fast` does not wait between cycles.".to_owned()
            }
            Timing::Good => format!("Timing: good for {period} on this computer: {within}."),
            Timing::Tight => format!("Timing: tight for {period} on this computer: {within}."),
            Timing::Gaps(cycles) => format!(
                "Timing: not known: {cycles} cycle{} not measured; {within}.",
                if cycles == 1 { " was" } else { "s were" }
            ),
            Timing::Late(late) => format!(
                "Timing: not good for {period} on this computer: {late} late cycle{}, the worst {}.",
                if late == 1 { "" } else { "s" },
                milliseconds(self.summary.host_stalls.map_or(worst, |stalls| worst.max(stalls.longest)))
            ),
        };
        let stops = self.summary.host_stalls.map_or(0, |stalls| stalls.beyond_watchdog);
        if stops > 0 {
            text += &format!(
                " On a wire, drives with a watchdog of {} ms would have stopped {stops} time{}.",
                USUAL_WATCHDOG.as_millis(),
                if stops == 1 { "" } else { "s" }
            );
        }
        text
    }

    /// Next step for the user; none after a long run on a wire without a failure.
    fn next(&self) -> Option<&'static str> {
        let Self { summary, .. } = self;
        let is_simulated = summary.conditions.link.starts_with(SIMULATED);
        let timing = &summary.timing;
        let lasted = self.period().saturating_mul(u32::try_from(summary.cycles()).unwrap_or(u32::MAX));
        Some(match self.timing() {
            _ if !summary.went_well() || self.failed_files > 0 => {
                "the last lines name each failure and its remedy."
            }
            Timing::Late(_) | Timing::Tight | Timing::Gaps(_) => {
                "`onbeat doctor` lists fixes; `onbeat run --explain` names each cause."
            }
            _ if !is_simulated && timing.lost_frames.count + timing.working_counter_errors.count > 0 => {
                "`onbeat diag` finds the cable or port that loses frames."
            }
            Timing::Good if lasted < SHORT => {
                "rare delays take longer to show: run under load with `--for 10min`."
            }
            _ if is_simulated => {
                "draft a file of your machine: `onbeat new --iface INTERFACE -o my-robot.toml`."
            }
            _ => return None,
        })
    }
}

impl fmt::Display for Headline<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n{}", self.ran(), self.verdict())?;
        self.next().map_or(Ok(()), |next| writeln!(f, "Next: {next}"))
    }
}

/// Milliseconds with three significant digits.
fn milliseconds(time: Duration) -> String {
    let value = time.as_secs_f64() * 1e3;
    let digits = match value {
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$} ms")
}

#[cfg(test)]
mod tests {
    use super::*;

    // feature(program): the end of `run` begins with a verdict on the timing
    #[test]
    fn the_slowest_cycle_decides_the_timing() {
        let period = Duration::from_millis(1);
        let gaps = |late, gaps, worst| Timing::of(late, gaps, Some(Duration::from_micros(worst)), period);
        let of = |late, worst| gaps(late, 0, worst);
        assert_eq!(Timing::of(0, 0, None, period), Timing::Unknown);
        assert_eq!((gaps(0, 7, 20), gaps(2, 7, 20)), (Timing::Gaps(7), Timing::Late(2)));
        assert_eq!((of(0, 500), of(0, 501), of(0, 999)), (Timing::Good, Timing::Tight, Timing::Tight));
        assert_eq!(
            (of(0, 1000), of(3, 20), of(3, 2000)),
            (Timing::Late(1), Timing::Late(3), Timing::Late(3))
        );
    }

    #[test]
    fn every_count_of_a_run_decides_its_timing() {
        let timing = |change: &dyn Fn(&mut RunSummary), stalls| {
            let mut summary = RunSummary::new(1_000_000);
            change(&mut summary);
            let stalls = HostStalls { count: stalls, ..HostStalls::default() };
            Timing::of_run(&summary, Some(stalls), Some(Duration::from_micros(20)))
        };
        assert_eq!(timing(&|_| {}, 0), Timing::Good);
        assert_eq!(timing(&|it| it.dropped_records.count = 7, 0), Timing::Gaps(7));
        assert_eq!(timing(&|it| it.overruns.count = 3, 0), Timing::Late(3));
        assert_eq!(timing(&|it| it.skipped_releases.count = 2, 0), Timing::Late(2));
        assert_eq!(timing(&|it| it.dropped_records.count = 7, 4), Timing::Late(4));
    }

    #[test]
    fn milliseconds_have_three_digits() {
        let shown = [49, 1_257, 19_465, 250_000].map(|micros| milliseconds(Duration::from_micros(micros)));
        assert_eq!(shown, ["0.05 ms", "1.26 ms", "19.5 ms", "250 ms"]);
    }
}
