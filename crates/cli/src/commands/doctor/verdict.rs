//! Verdict on a machine and a period, said with what is known.

use std::time::Duration;

use machine::check::{Finding, Severity};
use types::number::grouped;

use super::probe::{Probed, time};

/// Verdict on the machine and the period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) holds: bool,
    /// "holds with a margin of ...", "holds, but ...", "does not, because ...".
    pub(super) words: String,
    /// Strength of the verdict.
    pub(super) confidence: String,
    /// Advice to try next, if there is some.
    pub(super) advice: Option<String>,
}

impl Verdict {
    /// The margin is used up when a cycle starts after half of its period: the other half is for
    /// its work. The machine does not hold the cycle if one starts after the whole period.
    pub(super) fn new(probed: &Probed, findings: &[Finding]) -> Self {
        let Some(worst) = probed.latency.max_ns.filter(|_| probed.cycles > 0) else {
            return Self {
                holds: false,
                words: "does not, because nothing could be measured".to_owned(),
                confidence: "Nothing is known.".to_owned(),
                advice: None,
            };
        };
        let period = probed.period_ns;
        let late = format!("the worst of {} wake-ups came {} late", grouped(probed.cycles), time(worst));
        let (holds, words) = if worst >= period {
            (false, format!("does not, because {}", because(probed, late, findings)))
        } else if worst > period / 2 {
            let left = time(period - worst);
            (true, format!("holds, but just: {late}, which leaves {left} for the work of the cycle"))
        } else {
            (true, format!("holds with a margin of {}: {late}", time(period - worst)))
        };
        let advice = if worst > period / 2 { advice(probed, findings) } else { None };
        Self { holds, words, confidence: confidence(probed, holds), advice }
    }
}

impl Verdict {
    /// Sentence for a computer that does not hold this period.
    pub(super) fn warning(&self, period: Duration) -> Option<String> {
        let Self { holds, words, .. } = self;
        (!holds).then(|| {
            let period = types::duration::format(period);
            format!(
                "this computer does not hold a cycle of {period}: it {words}; `onbeat doctor --for {period}` says more"
            )
        })
    }
}

fn because(probed: &Probed, late: String, findings: &[Finding]) -> String {
    let missed = probed.missed;
    let mut reasons =
        vec![format!("{late}, more than a period ({} releases were missed)", grouped(missed))];
    if probed.steal > 0.0 {
        reasons.push(format!(
            "the hypervisor took {:.2} % of the CPU's time during the measurement",
            probed.steal * 100.0
        ));
    }
    if probed.busy > 0.5 {
        reasons.push(format!("the CPU was {:.0} % busy", probed.busy * 100.0));
    }
    reasons.extend(probed.refusals.iter().cloned());
    let mut worst: Vec<&Finding> = findings.iter().filter(|it| it.severity >= Severity::Warning).collect();
    let suspicion = |name| SUSPECTS.iter().position(|suspect| *suspect == name).unwrap_or(SUSPECTS.len());
    worst.sort_by_key(|finding| (std::cmp::Reverse(finding.severity), suspicion(finding.name)));
    let named = worst.iter().take(4).map(|finding| format!("{}: {}", finding.name, finding.found));
    let named: Vec<String> = named.collect();
    if !named.is_empty() {
        reasons.push(format!("the worst findings are {}", named.join("; ")));
    }
    reasons.join("; ")
}

/// Means at hand that were not used.
fn advice(probed: &Probed, findings: &[Finding]) -> Option<String> {
    let fixable = findings.iter().filter(|finding| finding.fixable).count();
    let fix = (fixable > 0).then(|| format!("--fix fixes {fixable} findings"));
    let more = (probed.profile != "PMCS").then(|| {
        format!(
            "--profile PMCS shields the CPU and spins before each release (this was {})",
            probed.profile
        )
    });
    let advice: Vec<String> = fix.into_iter().chain(more).collect();
    (!advice.is_empty()).then(|| format!("Try: {}.", advice.join("; ")))
}

/// Usual suspects for a late wake-up, the most frequent first.
const SUSPECTS: [&str; 8] = [
    "steal-time",
    "hypervisor",
    "firmware-interrupts",
    "preempt-rt",
    "preemption-model",
    "rival-threads",
    "isolated-cpu",
    "interrupts",
];

/// No event in n independent trials: with 95 % confidence its probability is below 3/n (the rule of
/// three).
fn confidence(probed: &Probed, holds: bool) -> String {
    let duration = seconds(probed.seconds);
    if !holds {
        return format!("This happened within {duration}: a longer probe can only find worse.");
    }
    let one_in = (probed.cycles / 3).max(1);
    format!(
        "Measured for {duration}, which says nothing about rarer events: a miss once in {} cycles could have stayed \
         unseen (95 % confidence, if cycles were independent), and load that was not there did not count. Put the \
         machine's real load on, and probe longer: --probe-time 12h.",
        grouped(one_in)
    )
}

/// Measurements, line by line.
pub(super) fn lines(probed: &Probed) -> Vec<String> {
    let at = |value: Option<u64>| value.map_or("-".to_owned(), time);
    let latency = &probed.latency;
    let mut lines = vec![
        format!("{} cycles in {}: {}", grouped(probed.cycles), seconds(probed.seconds), probed.granted),
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
        lines
            .push(format!("{} cycles were not counted: the machine was too busy", grouped(probed.dropped)));
    }
    lines
}

fn seconds(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 120.0 => format!("{seconds:.0} s"),
        seconds if seconds < 7200.0 => format!("{:.0} minutes", seconds / 60.0),
        seconds => format!("{:.1} hours", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use machine::check::{self, Subject};
    use machine::root::Root;

    use super::*;
    use crate::commands::doctor::probe::Latency;

    /// A probe of 250 us in which the worst of 240 000 wake-ups came so late.
    fn probed(max_ns: u64) -> Probed {
        Probed {
            period_ns: 250_000,
            seconds: 60.0,
            cycles: 240_000,
            latency: Latency { max_ns: Some(max_ns), ..Latency::default() },
            ..Probed::default()
        }
    }

    #[test]
    fn it_holds_with_what_the_worst_wakeup_leaves() {
        let verdict = Verdict::new(&probed(69_700), &[]);
        assert!(verdict.holds);
        let words = "holds with a margin of 180.3 us: the worst of 240 000 wake-ups came 69.7 us late";
        assert_eq!(verdict.words, words);
        // The rule of three: 240 000 / 3.
        assert!(verdict.confidence.contains("once in 80 000 cycles"), "{}", verdict.confidence);
        assert!(verdict.confidence.contains("60 s"), "{}", verdict.confidence);
    }

    #[test]
    fn margins_end_at_half_a_period_and_at_a_whole_one() {
        let words = |max_ns| Verdict::new(&probed(max_ns), &[]).words;
        assert!(words(125_000).starts_with("holds with a margin of 125.0 us"), "{}", words(125_000));
        assert!(words(125_001).starts_with("holds, but just"), "{}", words(125_001));
        assert!(words(249_999).starts_with("holds, but just"), "{}", words(249_999));
        assert!(words(250_000).starts_with("does not, because"), "{}", words(250_000));
    }

    // feature(doctor): `--for` gives a measured verdict with its reasons
    #[test]
    fn the_reasons_are_measured_ones_then_the_worst_findings() {
        let probed = Probed {
            missed: 11,
            steal: 0.0123,
            refusals: vec!["SCHED_FIFO 80 was refused (EPERM)".to_owned()],
            ..probed(2_500_000)
        };
        let mut findings = check::all(&Subject::new(Root::at("/nowhere"), Some(0)));
        findings.iter_mut().for_each(|finding| finding.severity = Severity::Ok);
        let mut spoil = |name: &str, severity| {
            let finding = findings.iter_mut().find(|finding| finding.name == name).unwrap();
            (finding.severity, finding.found) = (severity, format!("bad {name}"));
        };
        spoil("turbo", Severity::Note);
        spoil("swap", Severity::Warning);
        spoil("preempt-rt", Severity::Warning);
        spoil("workqueues", Severity::Critical);
        let verdict = Verdict::new(&probed, &findings);
        assert!(!verdict.holds);
        assert_eq!(
            verdict.words,
            "does not, because the worst of 240 000 wake-ups came 2.50 ms late, more than a period \
             (11 releases were missed); the hypervisor took 1.23 % of the CPU's time during the \
             measurement; SCHED_FIFO 80 was refused (EPERM); the worst findings are workqueues: \
             bad workqueues; preempt-rt: bad preempt-rt; swap: bad swap"
        );
        assert!(verdict.confidence.contains("only find worse"), "{}", verdict.confidence);
    }

    #[test]
    fn what_was_not_tried_is_advised() {
        let findings = check::all(&Subject::new(Root::at("/nowhere"), Some(0)));
        assert!(findings.iter().all(|finding| !finding.fixable));
        let advice = |max_ns, profile: &str| {
            let probed = Probed { profile: profile.to_owned(), ..probed(max_ns) };
            Verdict::new(&probed, &findings).advice
        };
        assert_eq!(advice(1_000, "PM"), None);
        assert!(advice(200_000, "PM").is_some_and(|text| text.contains("(this was PM)")));
        assert_eq!(advice(2_000_000, "PMCS"), None);
    }

    // feature(program): a computer that does not hold the period is reported with the draft
    #[test]
    fn a_draft_warns_only_of_a_period_that_is_not_held() {
        let warning = |max_ns| Verdict::new(&probed(max_ns), &[]).warning(Duration::from_micros(250));
        assert_eq!(warning(200_000), None);
        let late = warning(2_500_000).unwrap();
        assert!(late.starts_with("this computer does not hold a cycle of 250us: "), "{late}");
        assert!(late.contains("2.50 ms late") && late.contains("`onbeat doctor --for 250us`"), "{late}");
    }

    #[test]
    fn nothing_measured_is_no_yes() {
        assert!(!Verdict::new(&Probed::default(), &[]).holds);
    }

    #[test]
    fn numbers_are_for_people() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1 000"), (1_234_567, "1 234 567")] {
            assert_eq!(grouped(number), text);
        }
        for (ns, text) in
            [(7, "7 ns"), (7_500, "7.5 us"), (2_550_000, "2.55 ms"), (3_000_000_000, "3.00 s")]
        {
            assert_eq!(time(ns), text);
        }
    }
}
