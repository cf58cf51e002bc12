//! Late cycles: their records as attribution needs them, their causes once they are known, and the
//! sentence of both.

use std::fmt;

use record::{CycleRecord, Phase};
use serde::Serialize;
pub use types::cause::Kind;

/// Cycle with the end of the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CycleTimes {
    /// Record of the cycle.
    pub record: CycleRecord,
    /// End of the previous cycle, ns, and its longest phase; `None` if unknown.
    pub previous: Option<(u64, Phase)>,
    /// Time between two releases, ns.
    pub period_ns: u64,
    /// Thread id of the cycle.
    pub thread: i32,
    /// True if the cycle transmits first and waits for the reply.
    pub waits_for_reply: bool,
}

/// Late event of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Late {
    /// The start, by the wake-up latency.
    Start,
    /// The end, by the time since the next release.
    End,
}

impl CycleTimes {
    /// Lateness and its kind: of the start after the release, or of the end after the next release,
    /// whichever is greater.
    #[must_use]
    pub fn lateness(&self) -> (Late, u64) {
        let start = self.record.wakeup_latency();
        let end = self.record.end_ns.saturating_sub(self.record.release_ns.saturating_add(self.period_ns));
        if end > start { (Late::End, end) } else { (Late::Start, start) }
    }

    /// Longest phase, apart from the wait for the wire.
    #[must_use]
    pub fn longest_phase(record: &CycleRecord) -> Phase {
        let phases = Phase::ALL.into_iter().filter(|&phase| phase != Phase::Wait);
        phases.max_by_key(|&phase| record.duration(phase)).unwrap_or(Phase::Update)
    }

    /// Phases with their ends, in the order in which they are attributed. A phase in several pieces
    /// (receiving, between waits for the wire) is joined.
    pub(crate) fn phase_ends(&self) -> Vec<(Phase, u64)> {
        let order = if self.waits_for_reply { &TRANSMIT_FIRST } else { &Phase::ALL };
        let mut end = self.record.start_ns;
        order
            .iter()
            .map(|&phase| {
                end = end.saturating_add(self.record.duration(phase));
                if phase == Phase::Transmit {
                    // Simulated SubDevices answer as the frame is sent.
                    end = end.saturating_add(self.record.simulation_ns.into());
                }
                (phase, end)
            })
            .collect()
    }
}

const TRANSMIT_FIRST: [Phase; Phase::ALL.len()] = [
    Phase::Transmit,
    Phase::Wait,
    Phase::Receive,
    Phase::Read,
    Phase::Command,
    Phase::Update,
    Phase::Write,
    Phase::Publish,
];

/// Name of a phase in causes.
#[must_use]
pub fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Receive => "receive",
        Phase::Read => "read",
        Phase::Command => "command",
        Phase::Update => "controller",
        Phase::Write => "write",
        Phase::Transmit => "transmit",
        Phase::Wait => "wait for the reply",
        Phase::Publish => "publish",
    }
}

/// Late cycle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LateCycle {
    /// Number of the cycle.
    pub cycle: u64,
    /// Lateness, ns.
    pub late_ns: u64,
    /// Late event: its start, or its end.
    pub late: Late,
    /// Release, ns of `CLOCK_MONOTONIC`.
    pub release_ns: u64,
    /// Start, likewise.
    pub start_ns: u64,
    /// End, likewise.
    pub end_ns: u64,
    /// Causes, the largest first; they add up to `late_ns`.
    pub causes: Vec<Cause>,
}

impl Ord for LateCycle {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.late_ns, self.cycle).cmp(&(other.late_ns, other.cycle))
    }
}

impl PartialOrd for LateCycle {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for LateCycle {
    /// Writes for example "cycle 48 213 started 183 us late: kworker/1:2 ran 120 us, irq 24 eth0 61
    /// us".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.late {
            Late::Start => "started",
            Late::End => "ended",
        };
        write!(f, "cycle {} {what} {} late", grouped(self.cycle), Time(self.late_ns))?;
        // Causes of less than a hundredth are left out.
        let matters = |ns: u64| ns.saturating_mul(100) >= self.late_ns;
        let named = self.causes.iter().filter(|cause| matters(cause.ns)).take(NAMED).count();
        for (number, cause) in self.causes.iter().take(named).enumerate() {
            write!(f, "{} {cause}", if number == 0 { ":" } else { "," })?;
        }
        let rest: u64 = self.causes.iter().skip(named).map(|cause| cause.ns).sum();
        if rest > 0 { write!(f, ", others {}", Time(rest)) } else { Ok(()) }
    }
}

/// Most causes named in one line; the rest is summed up.
const NAMED: usize = 5;

/// Number with grouped digits: 48213 as "48 213".
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// Share of a cycle's lateness.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// Kind of the cause.
    pub kind: Kind,
    /// Name: of the thread, number and name of the interrupt, or phase of the cycle.
    pub name: String,
    /// Share, ns.
    pub ns: u64,
}

impl fmt::Display for Cause {
    /// Writes for example "kworker/1:2 ran 120 us".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, time) = (&self.name, Time(self.ns));
        match self.kind {
            Kind::Task => write!(f, "{name} ran {time}"),
            Kind::Irq => write!(f, "irq {name} {time}"),
            Kind::Softirq => write!(f, "softirq {name} {time}"),
            Kind::Timer => write!(f, "timer {name} {time}"),
            Kind::Steal => write!(f, "asleep in the hypervisor {time}: steal"),
            Kind::Own => write!(f, "our own {name} took {time}"),
            Kind::Unknown => write!(f, "{name} {time}: unknown"),
            // Of threads that are watched; no trace of a late cycle shows them.
            watched @ (Kind::Sleep
            | Kind::MinorFault
            | Kind::MajorFault
            | Kind::SystemCall
            | Kind::BlockingCall) => write!(f, "{watched} {name} {time}"),
        }
    }
}

/// Duration for people: "183 us", "3.4 ms", "0.4 us".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time(pub u64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0 as f64;
        let text = match self.0 {
            0..=9_949 => format!("{:.1} us", ns / 1e3),
            9_950..=999_499 => format!("{:.0} us", ns / 1e3),
            999_500..=999_949_999 => format!("{:.1} ms", ns / 1e6),
            _ => format!("{:.1} s", ns / 1e9),
        };
        f.pad(&text)
    }
}

/// Sum of causes; shares of equal causes are added.
#[derive(Clone, Debug, Default)]
pub(crate) struct Causes(Vec<Cause>);

impl Causes {
    pub(crate) fn add(&mut self, kind: Kind, name: &str, ns: u64) {
        if ns == 0 {
            return;
        }
        match self.0.iter_mut().find(|cause| cause.kind == kind && cause.name == name) {
            Some(cause) => cause.ns = cause.ns.saturating_add(ns),
            None => self.0.push(Cause { kind, name: name.to_owned(), ns }),
        }
    }

    pub(crate) fn total(&self) -> u64 {
        self.0.iter().fold(0, |sum, cause| sum.saturating_add(cause.ns))
    }

    /// Causes, the largest first, adding up to exactly `total_ns`: a shortfall is added as unknown,
    /// an excess is taken from all in proportion.
    pub(crate) fn adding_up_to(mut self, total_ns: u64) -> Vec<Cause> {
        let sum = self.total();
        if sum > total_ns {
            for cause in &mut self.0 {
                let share = u128::from(cause.ns) * u128::from(total_ns) / u128::from(sum);
                // Rounded down, it is at most `total_ns`.
                cause.ns = share as u64;
            }
            self.0.sort_by_key(|cause| std::cmp::Reverse(cause.ns));
            let rounding = total_ns - self.total();
            if let Some(largest) = self.0.first_mut() {
                largest.ns += rounding;
            }
        } else {
            self.add(Kind::Unknown, NOT_RECORDED, total_ns - sum);
        }
        self.0.retain(|cause| cause.ns > 0);
        self.0.sort_by_key(|cause| std::cmp::Reverse(cause.ns));
        self.0
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Cause> {
        self.0.iter()
    }
}

/// Name of an unknown cause without events.
pub(crate) const NOT_RECORDED: &str = "nothing recorded";

#[cfg(test)]
mod tests;
