//! Text of a run: its times, the health of the bus, and its conditions.

use std::fmt;

use crate::conditions::RunConditions;
use crate::summary::{Occurrences, RunSummary};

/// The times and counts of a run as text, to be printed: at most 80 columns.
#[derive(Clone, Copy, Debug)]
pub struct RunTable<'a>(pub &'a RunSummary);

impl fmt::Display for RunTable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_times(f)?;
        f.write_str(DEFINITIONS)?;
        writeln!(f)?;
        self.write_bus_health(f)
    }
}

/// Definitions, for readers without the papers.
const DEFINITIONS: &str = "\
T_period: start to start. T_jitter: its distance from the period. T_exec: work
without waiting. Response time: from the release to the end of the work.
";

impl RunTable<'_> {
    fn write_times(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<14}{:>8}", "us", "average")?;
        for (label, _) in PERCENTILES {
            write!(f, "{label:>8}")?;
        }
        writeln!(f, "{:>9} at cycle", "maximum")?;
        let it = self.0;
        let rows = [
            ("T_period", &it.actual_period),
            ("T_jitter", &it.release_jitter),
            ("T_exec", &it.execution_time),
            ("wakeup latency", &it.wakeup_latency),
            ("response time", &it.response_time),
        ];
        let simulation = ("simulation", &it.simulation_time);
        let simulated = (simulation.1.count() > 0).then_some(simulation);
        for (label, statistics) in rows.into_iter().chain(simulated) {
            write!(f, "{label:<14}{:>8}", microseconds(statistics.average()))?;
            for (_, quantile) in PERCENTILES {
                // A percentile with fewer samples than it needs would only repeat the maximum.
                let known = statistics.count() as f64 * (1.0 - quantile) >= 1.0 - 1e-9;
                let value = statistics.percentile(quantile).filter(|_| known);
                write!(f, "{:>8}", microseconds(value.map(|value| value as f64)))?;
            }
            let maximum = statistics.maximum().map(|value| value as f64);
            let at = statistics.maximum_cycle().map_or_else(|| "-".to_owned(), |cycle| cycle.to_string());
            writeln!(f, "{:>9} {at}", microseconds(maximum))?;
        }
        Ok(())
    }

    fn write_bus_health(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let it = self.0;
        let lines = [
            ("working-counter errors", it.working_counter_errors, true),
            ("lost frames", it.lost_frames, true),
            ("overruns", it.overruns, true),
            ("skipped releases", it.skipped_releases, false),
            ("dropped records", it.dropped_records, false),
        ];
        for (label, occurrences, always) in lines {
            if always || occurrences.count > 0 {
                writeln!(f, "{label:<24}{}", happened(occurrences))?;
            }
        }
        Ok(())
    }
}

/// The conditions as text: a line each, the warnings last. Lines may be longer than 80 columns.
impl fmt::Display for RunConditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = |label: &str, text: &str| writeln!(f, "{label:<13}{text}");
        let it = &self.common;
        line("measured", &format!("{} on {}, onbeat {}", it.began, it.host, it.version))?;
        let mut machine = format!("kernel {}, {} x {}", it.kernel, it.cpus, it.cpu_model);
        for (label, value) in [("governor", &it.governor), ("clock source", &it.clock_source)] {
            if let Some(value) = value {
                machine += &format!(", {label} {value}");
            }
        }
        line("computer", &machine)?;
        if let Some(digest) = it.robot_file_sha256.as_deref().and_then(|digest| digest.get(..SHORT_DIGEST))
        {
            line("robot file", &format!("sha256 {digest}..."))?;
        }
        line("profile", &self.profile_and_grants())?;
        if let Some(shield) = &self.shield {
            line("shield", shield)?;
        }
        let (out, into) = (self.output_bytes, self.input_bytes);
        let plural = if self.sub_devices == 1 { "" } else { "s" };
        let bus = format!("{} SubDevice{plural}, {out} bytes out, {into} bytes in", self.sub_devices);
        line("bus", &format!("{bus}, {}", self.frame_order))?;
        if let Some(nic) = &self.nic {
            line("interface", nic)?;
        }
        self.warnings.iter().try_for_each(|warning| line("warning", warning))
    }
}

impl RunConditions {
    /// The letters of the profile, and the grants of the system.
    fn profile_and_grants(&self) -> String {
        let cpu = |cpu: Option<usize>| cpu.map_or_else(|| "any CPU".to_owned(), |cpu| format!("CPU {cpu}"));
        let policy = |priority: Option<u8>, runtime: Option<u64>| match (priority, runtime) {
            (_, Some(runtime)) => {
                format!(
                    "SCHED_DEADLINE {} us in every period",
                    runtime as f64 / NANOSECONDS_PER_MICROSECOND
                )
            }
            (Some(priority), None) => format!("SCHED_FIFO {priority}"),
            (None, None) => "SCHED_OTHER".to_owned(),
        };
        let locked = |locked: bool| if locked { "memory locked" } else { "memory not locked" }.to_owned();
        let (priority, runtime) = (self.priority, self.deadline_runtime_ns);
        let scheduling = granted(
            policy(priority.requested, runtime.requested),
            policy(priority.granted, runtime.granted),
        );
        format!(
            "{}: {scheduling}, {}, {}",
            granted(self.profile.requested.clone(), self.profile.granted.clone()),
            granted(cpu(self.cpu.requested), cpu(self.cpu.granted)),
            granted(locked(self.memory_lock.requested), locked(self.memory_lock.granted))
        )
    }
}

fn granted(asked: String, granted: String) -> String {
    if asked == granted { granted } else { format!("{granted} (requested {asked})") }
}

/// Microseconds in at most seven letters below ten seconds.
fn microseconds(nanoseconds: Option<f64>) -> String {
    let Some(value) = nanoseconds.map(|value| value / NANOSECONDS_PER_MICROSECOND) else {
        return "-".to_owned();
    };
    let digits = match value {
        ..100.0 => 3,
        ..1_000.0 => 2,
        ..10_000.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$}")
}

fn happened(it: Occurrences) -> String {
    match (it.first_cycle, it.last_cycle) {
        (Some(first), Some(last)) if first != last => {
            format!("{} (first in cycle {first}, last in cycle {last})", it.count)
        }
        (Some(first), _) => format!("{} (in cycle {first})", it.count),
        _ => it.count.to_string(),
    }
}

/// Digits of the digest that fit into a line.
const SHORT_DIGEST: usize = 12;
const NANOSECONDS_PER_MICROSECOND: f64 = 1e3;

const PERCENTILES: [(&str, f64); 5] =
    [("50%", 0.5), ("99%", 0.99), ("99.9%", 0.999), ("99.99%", 0.9999), ("99.999%", 0.99999)];

#[cfg(test)]
mod tests {
    use types::Conditions;

    use super::*;
    use crate::conditions::RequestedAndGranted;
    use crate::record::{CycleRecord, Phase};

    fn conditions() -> RunConditions {
        RunConditions {
            common: Conditions {
                began: "2026-11-21T07:40:27.123Z".into(),
                version: "0.1.0".into(),
                host: "bench-3".into(),
                robot: Some("six-axis".into()),
                robot_file_sha256: Some("0123456789abcdef".repeat(4)),
                kernel: "6.12.0 PREEMPT_RT".into(),
                cpu_model: "Example 3000".into(),
                cpus: 4,
                governor: Some("performance".into()),
                clock_source: Some("tsc".into()),
                ..Conditions::default()
            },
            profile: RequestedAndGranted { requested: "PMC".into(), granted: "MC".into() },
            shield: Some("CPU 3 by cpuset (cgroup v1): 40 threads and 7 interrupts moved, 5 left".into()),
            deadline_runtime_ns: RequestedAndGranted::default(),
            cpu: RequestedAndGranted { requested: Some(3), granted: Some(3) },
            priority: RequestedAndGranted { requested: Some(80), granted: None },
            memory_lock: RequestedAndGranted { requested: true, granted: true },
            sub_devices: 6,
            output_bytes: 72,
            input_bytes: 72,
            link: "simulated".into(),
            nic: Some("eth0: rx-usecs 0; 1 refused".into()),
            frame_order: "wait_for_reply".into(),
            warnings: vec!["no real-time priority: run as root or raise RLIMIT_RTPRIO".into()],
        }
    }

    fn thousand_cycles() -> RunSummary {
        let mut summary = RunSummary::new(1_000_000);
        for cycle in 0..1001_u64 {
            let release = cycle * 1_000_000;
            let start = release + 2_000 + cycle % 3 * 1_000;
            let mut record = CycleRecord::begin(cycle, release, start);
            record.finish(Phase::Receive, start + 4_000);
            record.finish(Phase::Update, start + 7_000 + cycle % 2 * 500);
            record.finish(Phase::Wait, start + 50_000);
            record.lost_frames = u32::from(cycle == 17 || cycle == 900);
            record.working_counter_ok = cycle != 18;
            summary.record(&record);
        }
        summary
    }

    // feature(cycle): average, percentiles and maximum of each time, with the cycle of the maximum
    #[test]
    fn a_run_prints_as_the_golden_table() {
        let text = format!("{}\n{}", RunTable(&thousand_cycles()), conditions());
        assert_eq!(text, include_str!("table.golden.txt"), "\n{text}");
    }

    #[test]
    fn a_run_without_a_cycle_prints_dashes() {
        let text = RunTable(&RunSummary::new(250_000)).to_string();
        let dashes = ["T_exec", "-", "-", "-", "-", "-", "-", "-", "-"];
        assert!(text.lines().any(|line| line.split_whitespace().eq(dashes)), "{text}");
    }

    #[test]
    fn times_of_seconds_keep_the_table_in_80_columns() {
        let mut summary = RunSummary::new(1_000_000_000);
        for cycle in 0..200_000_u64 {
            let release = cycle * 1_000_000_000;
            let mut record = CycleRecord::begin(cycle, release, release + cycle % 2 * 999_999_999);
            record.finish(Phase::Receive, release + 1_999_999_999);
            record.simulation_ns = 999_999_999;
            summary.record(&record);
        }
        let text = RunTable(&summary).to_string();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let columns = text.lines().map(|line| line.split_whitespace().count());
        assert!(columns.skip(1).take(6).all(|columns| columns >= 9), "{text}");
    }
}
