//! Whether a machine holds a period, said with what is known.

use machine::check::{Finding, Severity};

use super::probe::Probed;

/// Whether the machine holds the period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) holds: bool,
    /// "holds with a margin of ...", "holds, but ...", "does not, because ...".
    pub(super) words: String,
    /// How much the words are worth.
    pub(super) confidence: String,
}

impl Verdict {
    /// A beat must start before half of its period is over: the other half is for its work. It does not hold when one
    /// starts after the whole of it.
    pub(super) fn new(probed: &Probed, findings: &[Finding]) -> Self {
        let Some(worst) = probed.latency.max_ns.filter(|_| probed.beats > 0) else {
            return Self {
                holds: false,
                words: "does not, because nothing could be measured".to_owned(),
                confidence: "Nothing is known.".to_owned(),
            };
        };
        let period = probed.period_ns;
        let late = format!("the worst of {} wake-ups came {} late", grouped(probed.beats), time(worst));
        let (holds, words) = if worst >= period {
            (false, format!("does not, because {}", because(probed, late, findings)))
        } else if worst > period / 2 {
            let left = time(period - worst);
            (true, format!("holds, but just: {late}, which leaves {left} for the work of the beat"))
        } else {
            (true, format!("holds with a margin of {}: {late}", time(period - worst)))
        };
        Self { holds, words, confidence: confidence(probed, holds) }
    }
}

fn because(probed: &Probed, late: String, findings: &[Finding]) -> String {
    let missed = probed.missed;
    let mut reasons =
        vec![format!("{late}, more than a period ({} releases were missed)", grouped(missed))];
    if probed.steal > 0.0 {
        reasons
            .push(format!("the hypervisor took {:.2} % of the CPU's time meanwhile", probed.steal * 100.0));
    }
    reasons.extend(probed.refusals.iter().cloned());
    let mut worst: Vec<&Finding> = findings.iter().filter(|it| it.severity >= Severity::Warning).collect();
    worst.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let named = worst.iter().take(4).map(|finding| format!("{}: {}", finding.name, finding.found));
    let named: Vec<String> = named.collect();
    if !named.is_empty() {
        reasons.push(format!("the worst findings are {}", named.join("; ")));
    }
    reasons.join("; ")
}

/// No event in n independent trials: with 95 % confidence its probability is below 3/n (the rule of three).
fn confidence(probed: &Probed, holds: bool) -> String {
    let duration = seconds(probed.seconds);
    if !holds {
        return format!("This happened within {duration}: a longer probe can only find worse.");
    }
    let one_in = (probed.beats / 3).max(1);
    format!(
        "Measured for {duration}, which says nothing about rarer events: a miss once in {} beats could have stayed \
         unseen (95 % confidence, if beats were independent), and load that was not there did not count. Put the \
         machine's real load on, and probe longer: --probe-time 12h.",
        grouped(one_in)
    )
}

/// What was measured, line by line.
pub(super) fn lines(probed: &Probed) -> Vec<String> {
    let at = |value: Option<u64>| value.map_or("-".to_owned(), time);
    let latency = &probed.latency;
    let mut lines = vec![
        format!("{} beats in {}: {}", grouped(probed.beats), seconds(probed.seconds), probed.granted),
        format!(
            "wake-up latency: least {}, half of them {}, 99.9 % {}, worst {}",
            at(latency.min_ns),
            at(latency.p50_ns),
            at(latency.p99_9_ns),
            at(latency.max_ns)
        ),
        format!(
            "the CPU over this time: {:.1} % busy, {:.2} % stolen",
            probed.busy * 100.0,
            probed.steal * 100.0
        ),
    ];
    lines.extend(probed.refusals.iter().map(|refusal| format!("refused: {refusal}")));
    if probed.dropped > 0 {
        lines.push(format!("{} beats were not counted: the machine was too busy", grouped(probed.dropped)));
    }
    lines
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

fn seconds(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 120.0 => format!("{seconds:.0} s"),
        seconds if seconds < 7200.0 => format!("{:.0} minutes", seconds / 60.0),
        seconds => format!("{:.1} hours", seconds / 3600.0),
    }
}

/// Digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let first = digits.len() % 3;
    let mut text = digits[..first].to_owned();
    for (index, digit) in digits[first..].chars().enumerate() {
        if index % 3 == 0 && !text.is_empty() {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}
