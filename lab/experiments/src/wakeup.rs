//! Our pacer compared with `cyclictest`: at the same priority, CPU and period, alternating in one
//! run.

use std::time::Duration;

use report::{Report, Row, Section, Table};
use rt::probe::{ProbeConfiguration, wakeup_latencies};
use rt::profile::RealTimeProfile;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::distribution::{self, Durations};
use crate::peers::cyclictest::Cyclictest;
use crate::raw::{Raw, facts};
use crate::surroundings::Surroundings;
use crate::thread::{default_cpu, real_time, spinning};
use crate::{Context, Error};

/// Settings of the experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wakeup {
    /// Time between two releases; `cyclictest` takes whole microseconds.
    pub period: Duration,
    /// Number of cycles of each contender.
    pub samples: u64,
    /// Number of turns of each contender.
    pub rounds: u64,
    /// `SCHED_FIFO` priority.
    pub priority: u8,
    /// CPU of the measuring threads.
    pub cpu: usize,
    /// Time before a release at which the spinning sleep wakes up.
    pub spin_margin: Duration,
}

impl Default for Wakeup {
    fn default() -> Self {
        Self {
            period: Duration::from_millis(1),
            samples: 30_000,
            rounds: 10,
            priority: 80,
            cpu: default_cpu(),
            spin_margin: types::Profile::SPIN_MARGIN,
        }
    }
}

/// Contenders, in the order of the tables.
const NAMES: [&str; 3] = ["our pacer", "cyclictest", "our pacer with S (spinning sleep)"];
const OURS: usize = 0;
const PEER: usize = 1;
const SPINNING: usize = 2;

impl Wakeup {
    /// Runs the experiment.
    ///
    /// # Errors
    /// A thread cannot be started, or a file cannot be written.
    pub fn run(&self, context: &Context) -> Result<Report, Error> {
        let surroundings = Surroundings::begin(context);
        let mut found = WakeupFound::default();
        let mut raws = self.begin(context)?;
        let turn = self.period * u32::try_from(self.share()).unwrap_or(u32::MAX);
        context.progress.plan("wakeup", (0..self.rounds.max(1)).map(|_| turn * 3).collect());
        for round in 1..=self.rounds.max(1) {
            let name = format!("round-{round}");
            let turns = match context.kept::<Kept>(&name)? {
                Some(kept) => {
                    context.pass_over_cell(&name);
                    found.priority_refused |= kept.priority_refused;
                    found.overruns += kept.overruns;
                    kept.doubts.into_iter().for_each(|doubt| found.doubt(doubt));
                    kept.turns
                }
                None if context.stopped() => break,
                None => {
                    context.begin_cell(&name);
                    let before = found.overruns;
                    let turns = self.round(context, &mut found)?;
                    if context.stopped() {
                        turns
                    } else {
                        let overruns = found.overruns - before;
                        let (priority_refused, doubts) = (found.priority_refused, found.doubts.clone());
                        let kept = Kept { turns, overruns, priority_refused, doubts };
                        context.keep(&name, &kept)?;
                        kept.turns
                    }
                }
            };
            for (raw, latencies) in raws.iter_mut().zip(&turns) {
                raw.append(&[&vec![round; latencies.len()], latencies])?;
            }
            found.rounds.push(turns);
        }
        for raw in raws {
            raw.finish(facts([("priority_granted", (!found.priority_refused).into())]))?;
        }
        let mut report = self.report(&found);
        surroundings.end(&mut report);
        report.warnings.extend(found.doubts);
        Ok(report)
    }

    /// One turn of each contender.
    fn round(&self, context: &Context, found: &mut WakeupFound) -> Result<[Vec<u64>; 3], Error> {
        let plain = real_time(Some(self.priority), self.cpu);
        let spinning = spinning(plain, self.spin_margin);
        let ours = self.ours(plain, context, found)?;
        let peer = Cyclictest {
            // A priority refused to us is not given to the peer either.
            priority: (!found.priority_refused).then_some(self.priority),
            cpu: self.cpu,
            period: self.period,
            cycles: self.share(),
        };
        let peer = peer.run(context.stop).unwrap_or_else(|why| {
            found.doubt(why.to_string());
            Vec::new()
        });
        let spun = self.ours(spinning, context, found)?;
        Ok([ours, peer, spun])
    }

    fn ours(
        &self,
        profile: RealTimeProfile,
        context: &Context,
        found: &mut WakeupFound,
    ) -> Result<Vec<u64>, Error> {
        let cycles = self.share();
        let configuration = ProbeConfiguration { period: self.period, cycles, profile };
        let mut latencies = Vec::new();
        let probed = wakeup_latencies(&configuration, context.stop, |_, latency| latencies.push(latency))
            .map_err(|error| Error::other(format_args!("wakeup: the probe's thread: {error}")))?;
        if probed.dropped > 0 {
            found
                .doubt(format!("{} cycles of ours were dropped: the machine was too busy", probed.dropped));
        }
        found.priority_refused |= probed.refusals.iter().any(|refusal| refusal.starts_with("SCHED_FIFO"));
        found.overruns += probed.overruns.count;
        probed.refusals.into_iter().for_each(|refusal| found.doubt(refusal));
        Ok(latencies)
    }

    /// Number of cycles in each turn.
    fn share(&self) -> u64 {
        self.samples.div_ceil(self.rounds.max(1)).max(1)
    }

    /// Begins one recording for each contender.
    fn begin(&self, context: &Context) -> Result<Vec<Raw>, Error> {
        let begin = |(contender, name): (usize, &str)| {
            let margin = if contender == SPINNING { self.spin_margin } else { Duration::ZERO };
            let settings = facts([
                ("contender", NAMES[contender].into()),
                ("period_ns", (self.period.as_nanos() as u64).into()),
                ("priority", self.priority.into()),
                ("cpu", self.cpu.into()),
                ("spin_margin_ns", (margin.as_nanos() as u64).into()),
            ]);
            Raw::begin(context, name, "wakeup", &["round", "wakeup_latency_ns"], settings)
        };
        ["ours", "cyclictest", "ours-spinning"].into_iter().enumerate().map(begin).collect()
    }

    fn report(&self, found: &WakeupFound) -> Report {
        let mut report = Report {
            experiment: "wakeup".into(),
            title: "Wake-up latency compared with cyclictest".into(),
            source: Some("cyclictest (rt-tests), what the field measures by".into()),
            measured: "how long after its release, programmed as an absolute time, a thread with nothing else to do \
                       reads the clock: the same for both programs, which take turns"
                .into(),
            good: "our pacer no worse than cyclictest, in the median and in the tail; with the spinning sleep far \
                   below it"
                .into(),
            ..Report::default()
        };
        let policy = if found.priority_refused { " (refused: SCHED_OTHER for both)" } else { "" };
        report.condition("priority", format!("SCHED_FIFO {}{policy}, memory locked", self.priority));
        report.condition("CPU of the measuring threads", self.cpu.to_string());
        report.condition("period", format!("{} us", self.period.as_micros()));
        report.condition("spin margin of S", format!("{} us", self.spin_margin.as_micros()));
        let (rounds, share) = (self.rounds.max(1), self.share());
        report.condition("samples", format!("{rounds} turns of {share} cycles each, one after the other"));
        report.condition("overruns of ours", found.overruns.to_string());
        let all = found.all();
        report.sections.push(distribution::table("Wake-up latency, us", "", &all));
        report.sections.push(ratios(&all));
        report.sections.push(Section::Text(found.verdict()));
        report.sections.push(found.medians());
        report.sections.extend(distribution::plots("Wake-up latency", &all));
        let contender = |it: &Durations| json!({ "name": it.name, "wakeup_latency_ns": it.statistics() });
        report.values = facts([
            ("contenders", all.iter().map(contender).collect()),
            ("rounds", found.rounds.len().into()),
            ("rounds_not_worse", found.not_worse().map_or(Value::Null, Value::from)),
        ]);
        report
    }
}

#[derive(Default)]
struct WakeupFound {
    /// Latencies of each turn of each contender.
    rounds: Vec<[Vec<u64>; 3]>,
    priority_refused: bool,
    overruns: u64,
    doubts: Vec<String>,
}

/// One round, as it is kept.
#[derive(Serialize, Deserialize)]
struct Kept {
    turns: [Vec<u64>; 3],
    overruns: u64,
    priority_refused: bool,
    doubts: Vec<String>,
}

impl WakeupFound {
    fn doubt(&mut self, doubt: String) {
        if !self.doubts.contains(&doubt) {
            self.doubts.push(doubt);
        }
    }

    /// Each contender over all rounds; the peer only if it ran.
    fn all(&self) -> Vec<Durations> {
        let of = |contender: usize| {
            let turns = self.rounds.iter().flat_map(|turns| &turns[contender]);
            Durations::new(NAMES[contender], turns.copied().collect())
        };
        let all = [OURS, PEER, SPINNING].map(of).into_iter();
        all.filter(|it| it.name != NAMES[PEER] || !it.ns.is_empty()).collect()
    }

    /// Table of the median of each turn.
    fn medians(&self) -> Section {
        let cell = |turn: &Vec<u64>| report::numbers::microseconds(median(turn).map(|ns| ns as f64));
        let row = |(place, turns): (usize, &[Vec<u64>; 3])| Row {
            name: (place + 1).to_string(),
            cells: turns.iter().map(cell).collect(),
            from_paper: false,
        };
        Section::Table(Table {
            caption: "Median of each turn, us: whether the machine changed meanwhile".into(),
            columns: distribution::heads("round", &NAMES),
            rows: self.rounds.iter().enumerate().map(row).collect(),
        })
    }

    /// Number of rounds in which our median was at most cyclictest's; `None` if that never ran.
    fn not_worse(&self) -> Option<usize> {
        let mut both = self
            .rounds
            .iter()
            .filter_map(|turns| median(&turns[OURS]).zip(median(&turns[PEER])))
            .peekable();
        both.peek()?;
        Some(both.filter(|(ours, peer)| ours <= peer).count())
    }

    fn verdict(&self) -> String {
        let Some(rounds) = self.not_worse() else {
            return "cyclictest did not run: there is nothing to compare with.".into();
        };
        format!(
            "In {rounds} of {} rounds the median of our pacer was at most cyclictest's.",
            self.rounds.len()
        )
    }
}

fn median(turn: &[u64]) -> Option<u64> {
    Durations::new("", turn.to_vec()).statistics().percentile(0.5)
}

/// Table of the ratios of ours to cyclictest's.
fn ratios(all: &[Durations]) -> Section {
    let marks = |it: &Durations| {
        let (statistics, count) = (it.statistics(), it.ns.len());
        let tail = |quantile: f64, least: usize| statistics.percentile(quantile).filter(|_| count >= least);
        let whole = [
            statistics.percentile(0.5),
            tail(0.9, 10),
            tail(0.99, 100),
            tail(0.999, 1_000),
            tail(0.9999, 10_000),
            statistics.maximum(),
        ];
        let mut marks: Vec<Option<f64>> = whole.map(|ns| ns.map(|ns| ns as f64)).into();
        marks.insert(1, statistics.average());
        marks
    };
    let peer = all.iter().find(|it| it.name == NAMES[PEER]).map(marks);
    let row = |it: &Durations| {
        let peer = peer.as_ref()?;
        let cell = |(ours, peer): (Option<f64>, &Option<f64>)| {
            let ratio = ours.zip(*peer).filter(|(_, peer)| *peer > 0.0).map(|(ours, peer)| ours / peer);
            ratio.map_or_else(|| "-".into(), |ratio| format!("{ratio:.3}"))
        };
        let cells = marks(it).into_iter().zip(peer).map(cell).collect();
        (it.name != NAMES[PEER]).then(|| Row { name: it.name.clone(), cells, from_paper: false })
    };
    Section::Table(Table {
        caption: "Ours over cyclictest's: below 1 is better".into(),
        columns: distribution::heads(
            "",
            &["median", "average", "90 %", "99 %", "99.9 %", "99.99 %", "maximum"],
        ),
        rows: all.iter().filter_map(row).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(rounds: &[[u64; 3]]) -> WakeupFound {
        let turn = |&latency: &u64| vec![latency; 20];
        let turns = |round: &[u64; 3]| [turn(&round[0]), turn(&round[1]), turn(&round[2])];
        WakeupFound { rounds: rounds.iter().map(turns).collect(), ..WakeupFound::default() }
    }

    #[test]
    fn rounds_are_compared_one_by_one() {
        let found = found(&[[10, 10, 1], [9, 10, 1], [11, 10, 1]]);
        assert_eq!(found.not_worse(), Some(2));
        assert!(found.verdict().starts_with("In 2 of 3 rounds"));
        let Section::Table(ratios) = ratios(&found.all()) else { panic!("a table") };
        assert_eq!(ratios.rows.len(), 2);
        assert_eq!(ratios.rows[0].cells[..2], ["1.000", "1.000"]);
        assert_eq!(ratios.rows[1].cells[0], "0.100");
        assert_eq!(ratios.rows[1].cells[3], "-", "60 samples have no 99 %");
    }

    #[test]
    fn without_cyclictest_our_result_remains() {
        let mut found = found(&[[10, 10, 1]]);
        found.rounds[0][PEER].clear();
        assert_eq!((found.all().len(), found.not_worse()), (2, None));
        let Section::Table(ratios) = ratios(&found.all()) else { panic!("a table") };
        assert_eq!(ratios.rows, []);
    }
}
