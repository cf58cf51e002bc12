//! Text of a run: its conditions, the servo paper's table, percentiles, and the health of the bus.

use std::fmt;

use crate::conditions::RunConditions;
use crate::statistics::Statistics;
use crate::summary::{Occurrences, RunSummary};

/// A run as text, to be printed.
#[derive(Clone, Copy, Debug)]
pub struct RunTable<'a> {
    /// Conditions of the run.
    pub conditions: &'a RunConditions,
    /// Statistics of the run.
    pub summary: &'a RunSummary,
}

/// Definitions, for readers without the papers.
const MEASURED: &str =
    "start to start (T_period), how far that is off the period (T_jitter), work without waiting (T_exec)";
const GOOD: &str =
    "maxima of T_jitter and response time far below the period; nothing lost, overrun or skipped";

impl fmt::Display for RunTable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_conditions(f)?;
        writeln!(f)?;
        self.write_servo_table(f)?;
        writeln!(f)?;
        self.write_percentiles(f)?;
        writeln!(f)?;
        self.write_bus_health(f)
    }
}

impl RunTable<'_> {
    fn write_conditions(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let it = self.conditions;
        let mut line = |label: &str, text: &str| writeln!(f, "{label:<13}{text}");
        line("run", &format!("{} on {}, onbeat {}", it.common.began, it.common.host, it.common.version))?;
        let file = it.common.robot_file_sha256.as_deref().and_then(|digest| digest.get(..SHORT_DIGEST));
        let file = file.map(|digest| format!(", robot file sha256 {digest}...")).unwrap_or_default();
        line("robot", &format!("{}{file}", it.common.robot.as_deref().unwrap_or("-")))?;
        line("kernel", &it.common.kernel)?;
        let mut machine = format!("{} x {}", it.common.cpus, it.common.cpu_model);
        for (label, value) in [("governor", &it.common.governor), ("clock source", &it.common.clock_source)]
        {
            if let Some(value) = value {
                machine += &format!(", {label} {value}");
            }
        }
        line("processor", &machine)?;
        line("profile", &granted(it.profile.requested.clone(), it.profile.granted.clone()))?;
        if let Some(shield) = &it.shield {
            line("shield", shield)?;
        }
        let cpu = |cpu: Option<usize>| cpu.map_or_else(|| "any".to_owned(), |cpu| cpu.to_string());
        line("CPU", &granted(cpu(it.cpu.requested), cpu(it.cpu.granted)))?;
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
        let (priority, runtime) = (it.priority, it.deadline_runtime_ns);
        let (asked, got) =
            (policy(priority.requested, runtime.requested), policy(priority.granted, runtime.granted));
        line("scheduling", &granted(asked, got))?;
        let locked = |locked: bool| if locked { "locked" } else { "not locked" }.to_owned();
        line("memory", &granted(locked(it.memory_lock.requested), locked(it.memory_lock.granted)))?;
        let (out, into) = (it.output_bytes, it.input_bytes);
        let plural = if it.sub_devices == 1 { "" } else { "s" };
        line("bus", &format!("{} SubDevice{plural}, {out} bytes out, {into} bytes in", it.sub_devices))?;
        line("link", &format!("{}, {}", it.link, it.frame_order))?;
        if let Some(nic) = &it.nic {
            line("interface", nic)?;
        }
        let period = self.summary.period_ns() as f64 / NANOSECONDS_PER_MILLISECOND;
        line("period", &format!("{period} ms, {} samples", self.summary.cycles()))?;
        it.warnings.iter().try_for_each(|warning| line("warning", warning))?;
        line("measured", MEASURED)?;
        line("good", GOOD)
    }

    fn write_servo_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = [
            (&self.summary.actual_period, NANOSECONDS_PER_MILLISECOND, 6),
            (&self.summary.release_jitter, NANOSECONDS_PER_MICROSECOND, 3),
            (&self.summary.execution_time, NANOSECONDS_PER_MICROSECOND, 3),
        ];
        writeln!(f, "{:<20}{:>15}{:>15}{:>15}", "", "T_period (ms)", "T_jitter (us)", "T_exec (us)")?;
        let rows: [(&str, Figure); 4] = [
            ("average", Statistics::average),
            ("maximum", |it| it.maximum().map(|value| value as f64)),
            ("minimum", |it| it.minimum().map(|value| value as f64)),
            ("standard deviation", Statistics::standard_deviation),
        ];
        for (label, of) in rows {
            write!(f, "{label:<20}")?;
            for (statistics, unit, digits) in columns {
                write!(f, "{:>15}", number(of(statistics), unit, digits))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }

    fn write_percentiles(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // 80 columns, as terminals have.
        write!(f, "{:<15}", "us")?;
        for (label, _) in PERCENTILES {
            write!(f, "{label:>9}")?;
        }
        writeln!(f, "{:>11} at cycle", "maximum")?;
        let rows = [
            ("T_jitter", &self.summary.release_jitter),
            ("T_exec", &self.summary.execution_time),
            ("wakeup latency", &self.summary.wakeup_latency),
            ("response time", &self.summary.response_time),
        ];
        let simulation = ("simulation", &self.summary.simulation_time);
        let simulated = (simulation.1.count() > 0).then_some(simulation);
        for (label, statistics) in rows.into_iter().chain(simulated) {
            write!(f, "{label:<15}")?;
            for (_, quantile) in PERCENTILES {
                // A percentile with fewer samples than it needs would only repeat the maximum.
                let known = statistics.count() as f64 * (1.0 - quantile) >= 1.0 - 1e-9;
                let value = statistics.percentile(quantile).filter(|_| known);
                // From 10 ms on a digit less keeps it from the column before.
                let digits = if value.is_some_and(|value| value >= 10_000_000) { 0 } else { 3 };
                let value = value.map(|value| value as f64);
                write!(f, "{:>9}", number(value, NANOSECONDS_PER_MICROSECOND, digits))?;
            }
            let maximum = statistics.maximum().map(|value| value as f64);
            write!(f, "{:>11}", number(maximum, NANOSECONDS_PER_MICROSECOND, 3))?;
            writeln!(
                f,
                " {}",
                statistics.maximum_cycle().map_or_else(|| "-".to_owned(), |cycle| cycle.to_string())
            )?;
        }
        Ok(())
    }

    fn write_bus_health(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let it = self.summary;
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

fn granted(asked: String, granted: String) -> String {
    if asked == granted { granted } else { format!("{granted} (requested {asked})") }
}

fn number(nanoseconds: Option<f64>, unit: f64, digits: usize) -> String {
    nanoseconds.map_or_else(|| "-".to_owned(), |value| format!("{:.digits$}", value / unit))
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

/// Picks one number of a statistics.
type Figure = fn(&Statistics) -> Option<f64>;

/// Digits of the digest that fit into a line.
const SHORT_DIGEST: usize = 12;
const NANOSECONDS_PER_MILLISECOND: f64 = 1e6;
const NANOSECONDS_PER_MICROSECOND: f64 = 1e3;

const PERCENTILES: [(&str, f64); 5] =
    [("50 %", 0.5), ("99 %", 0.99), ("99.9 %", 0.999), ("99.99 %", 0.9999), ("99.999 %", 0.99999)];

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

    // feature(cycle): the servo paper's table
    #[test]
    fn a_run_prints_as_the_golden_table() {
        let text = RunTable { conditions: &conditions(), summary: &thousand_cycles() }.to_string();
        assert_eq!(text, include_str!("table.golden.txt"), "\n{text}");
    }

    #[test]
    fn a_run_without_a_cycle_prints_dashes() {
        let text = RunTable { conditions: &conditions(), summary: &RunSummary::new(250_000) }.to_string();
        assert!(text.contains("0.25 ms, 0 samples"), "{text}");
        assert!(text.lines().any(|line| line.split_whitespace().eq(["average", "-", "-", "-"])), "{text}");
    }
}
