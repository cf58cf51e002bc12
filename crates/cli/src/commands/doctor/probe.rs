//! Wake-up latency on the cycle's CPU, measured for a while.

use std::time::{Duration, Instant};

use machine::usage::{Shares, Usage};
use record::Statistics;
use rt::probe::{ProbeConfiguration, wakeup_latencies};
use rt::profile::RealTimeProfile;
use serde::Serialize;

use crate::failure::Failure;
use crate::stop::Stop;
use crate::words::live_line::LiveLine;

/// Measurements of a probe.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Probed {
    /// Time from release to release, ns.
    pub(super) period_ns: u64,
    /// Letters of the requested profile.
    pub(super) profile: String,
    /// Time it took, s.
    pub(super) seconds: f64,
    /// Releases that were measured.
    pub(super) cycles: u64,
    /// Cycles of these without a recorded latency.
    pub(super) dropped: u64,
    /// Releases that had passed before the probe woke up.
    pub(super) missed: u64,
    /// From release to wake-up, ns.
    pub(super) latency: Latency,
    /// Share of the time the CPU was busy.
    pub(super) busy: f64,
    /// Share of the time the hypervisor had taken it.
    pub(super) steal: f64,
    /// Requests that the system granted.
    pub(super) granted: String,
    /// Requests that it refused, each a sentence.
    pub(super) refusals: Vec<String>,
}

/// Wake-up latencies in nanoseconds; `None` without cycles.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Latency {
    pub(super) min_ns: Option<u64>,
    pub(super) average_ns: Option<f64>,
    pub(super) p50_ns: Option<u64>,
    pub(super) p99_ns: Option<u64>,
    pub(super) p99_9_ns: Option<u64>,
    pub(super) p99_99_ns: Option<u64>,
    pub(super) max_ns: Option<u64>,
}

/// Probes for `duration`, or until Ctrl-C: then what was measured so far counts.
pub(super) fn run(
    period: Duration,
    duration: Duration,
    profile: RealTimeProfile,
) -> Result<Probed, Failure> {
    let stop = Stop::listen()?;
    let (cpu, letters) = (profile.cpu.unwrap_or_default(), profile.letters().to_string());
    // A machine that is late at every cycle would take longer than it was given.
    stop.after(duration + duration / 20 + Duration::from_millis(500));
    let cycles = (duration.as_nanos() / period.as_nanos().max(1)).max(1);
    let configuration =
        ProbeConfiguration { period, cycles: u64::try_from(cycles).unwrap_or(u64::MAX), profile };
    let mut latencies = Statistics::new();
    let mut line = LiveLine::new();
    let started = Instant::now();
    let before = Usage::now();
    let probed = wakeup_latencies(&configuration, stop.flag(), |cycle, latency| {
        latencies.record(latency, cycle);
        line.show(|| {
            let worst = latencies.maximum().map_or(String::new(), time);
            let (past, all) = (started.elapsed().as_secs_f64(), duration.as_secs_f64());
            format!("probing CPU {cpu}: {past:.0} of {all:.0} s, worst wake-up so far {worst} late")
        });
    })?;
    line.finish();
    let seconds = started.elapsed().as_secs_f64();
    let shares = busy(cpu, before, Usage::now()).unwrap_or_default();
    let summary = latencies.summary();
    Ok(Probed {
        period_ns: types::time::nanoseconds(period),
        profile: letters,
        seconds,
        cycles: probed.cycles,
        dropped: probed.dropped,
        missed: probed.overruns.skipped,
        latency: Latency {
            min_ns: summary.minimum,
            average_ns: summary.average,
            p50_ns: summary.p50,
            p99_ns: summary.p99,
            p99_9_ns: summary.p99_9,
            p99_99_ns: summary.p99_99,
            max_ns: summary.maximum,
        },
        busy: shares.busy,
        steal: shares.steal,
        granted: probed.granted,
        refusals: probed.refusals,
    })
}

fn busy(cpu: usize, before: std::io::Result<Usage>, after: std::io::Result<Usage>) -> Option<Shares> {
    let busy = after.ok()?.since(&before.ok()?);
    busy.of(cpu)
}

/// A time for people: three digits are enough.
pub(super) fn time(ns: u64) -> String {
    let ns = ns as f64;
    match ns {
        ns if ns < 1e3 => format!("{ns} ns"),
        ns if ns < 1e6 => format!("{:.1} us", ns / 1e3),
        ns if ns < 1e9 => format!("{:.2} ms", ns / 1e6),
        ns => format!("{:.2} s", ns / 1e9),
    }
}
