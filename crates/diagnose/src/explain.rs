//! Explanation of a run in progress: which of its cycles are late, and the evidence of each.

use std::cmp::Reverse;
use std::thread;

use machine::cpus::Cpus;
use record::CycleRecord;
use rt::clock::now_ns;
use types::cause::Kind;
use types::late::LateCycle;

use crate::attribute::{CycleTimes, Evidence, attribute};
use crate::counters::Counters;
use crate::explanation::{Explained, Explanation, MOST_LATE, Tally};
use crate::recent::Recent;
use crate::steal::{StealCounter, is_virtual};
use crate::timeline::Timeline;
use crate::trace::{Recorder, Symbols, What};

/// Settings of an explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Lateness above which a cycle is explained, ns.
    pub late_above_ns: u64,
    /// Time between two releases, ns.
    pub period_ns: u64,
    /// True if a cycle transmits first and waits for its reply.
    pub waits_for_reply: bool,
    /// CPU the cycle is bound to; `None` for any.
    pub cpu: Option<usize>,
}

/// Explains the late cycles of a run.
#[derive(Debug)]
pub struct Explainer {
    settings: Settings,
    /// Thread id of the cycle, once known.
    thread: Option<i32>,
    source: Source,
    virtual_machine: bool,
    steal: StealCounter,
    functions: Symbols,
    previous: Option<CycleRecord>,
    /// Late cycles of the last look: by the next one, the events after their end have been
    /// recorded, too.
    pending: Vec<CycleTimes>,
    /// Late cycles that the last look explained.
    explained: Vec<LateCycle>,
    tally: Tally,
    recent: Recent,
    overwritten_cycles: u64,
    throttled_cycles: u64,
    failure: Option<String>,
}

#[derive(Debug)]
enum Source {
    Trace(Box<Recorder>),
    Counters { why: String, counters: Option<Counters> },
    Records(Option<Counters>),
}

impl Source {
    const fn name(&self) -> &'static str {
        match self {
            Self::Trace(_) => "trace",
            Self::Counters { .. } => "counters",
            Self::Records(_) => "records",
        }
    }
}

impl Explainer {
    /// Starts recording. Call it before the cycle begins: switching events on and off disturbs all
    /// CPUs.
    #[must_use]
    pub fn start(settings: Settings) -> Self {
        let cpus = settings.cpu.map_or_else(online_cpus, |cpu| vec![cpu]);
        match Recorder::start(&cpus) {
            Ok(recorder) => Self::new(settings, Source::Trace(Box::new(recorder))),
            Err(error) => Self::by_counters(settings, error.to_string()),
        }
    }

    /// Starts without the kernel's trace, for the reason `why`, with the counters available to
    /// every user.
    #[must_use]
    pub fn by_counters(settings: Settings, why: String) -> Self {
        Self::new(settings, Source::Counters { why, counters: None })
    }

    /// Starts for [`Self::recent`] alone, with the records of the cycle and the counters of its
    /// thread: cheap enough for every run.
    #[must_use]
    pub fn by_records(settings: Settings) -> Self {
        Self::new(settings, Source::Records(None))
    }

    fn new(settings: Settings, source: Source) -> Self {
        let mut steal = StealCounter::default();
        if !matches!(source, Source::Records(_)) {
            steal.sample(now_ns());
        }
        Self {
            recent: Recent::new(source.name(), settings.late_above_ns, settings.period_ns),
            settings,
            thread: None,
            source,
            virtual_machine: is_virtual(),
            steal,
            functions: Symbols::default(),
            previous: None,
            pending: Vec::new(),
            explained: Vec::new(),
            tally: Tally::default(),
            overwritten_cycles: 0,
            throttled_cycles: 0,
            failure: None,
        }
    }

    /// Sets the thread id of the cycle.
    pub fn follow(&mut self, thread: i32) {
        self.thread = Some(thread);
        let cpu = self.settings.cpu;
        match &mut self.source {
            Source::Trace(_) => {}
            Source::Counters { counters, .. } => *counters = Some(Counters::new(thread, cpu, true)),
            Source::Records(counters) => *counters = Some(Counters::new(thread, cpu, false)),
        }
    }

    /// Late cycles of the last minutes, for another thread.
    #[must_use]
    pub fn recent(&self) -> Recent {
        self.recent.clone()
    }

    /// Reason why the kernel's trace is not used; `None` if it is, or was not wanted.
    #[must_use]
    pub fn trace_is_missing(&self) -> Option<&str> {
        match &self.source {
            Source::Trace(_) | Source::Records(_) => None,
            Source::Counters { why, .. } => Some(why),
        }
    }

    /// Takes the cycles since the last look, in order. Call it some tens of times a second: the
    /// events of a late cycle are fetched at the next look. Returns the worst cycle so far if this
    /// look explained it.
    pub fn look(&mut self, records: &[CycleRecord]) -> Option<&LateCycle> {
        let worst = self.tally.worst().map(|it| it.late_ns);
        self.sample();
        self.explained.clear();
        self.explain_pending();
        let thread = self.thread.unwrap_or_default();
        let mut seen = Vec::with_capacity(records.len());
        for record in records {
            let previous = self.previous.replace(*record);
            let cycle = CycleTimes {
                record: *record,
                previous: previous.map(|it| (it.end_ns, CycleTimes::longest_phase(&it))),
                period_ns: self.settings.period_ns,
                thread,
                waits_for_reply: self.settings.waits_for_reply,
            };
            let (_, late_ns) = cycle.lateness();
            seen.push((record.cycle, record.release_ns, late_ns));
            if late_ns > self.settings.late_above_ns {
                self.pending.push(cycle);
            }
        }
        self.recent.count(seen.into_iter());
        self.tally.worst().filter(|it| Some(it.late_ns) > worst)
    }

    /// All late cycles that the last look explained, oldest first.
    #[must_use]
    pub fn explained(&self) -> &[LateCycle] {
        &self.explained
    }

    /// The newest late cycles that are explained, oldest first;
    /// [`NEWEST`](crate::explanation::NEWEST) at most.
    pub fn newest(&self) -> impl Iterator<Item = &LateCycle> {
        self.tally.newest.iter()
    }

    /// Late cycles so far.
    #[must_use]
    pub fn late_cycles(&self) -> u64 {
        self.tally.late_cycles
    }

    /// Lateness above which a cycle is late, ns.
    #[must_use]
    pub fn late_above_ns(&self) -> u64 {
        self.settings.late_above_ns
    }

    /// Ends the recording.
    #[must_use]
    pub fn finish(mut self) -> Explanation {
        self.look(&[]);
        self.explain_pending();
        let (notes, source) = (self.notes(), self.source.name());
        let cpus: Vec<usize> = self.settings.cpu.map_or_else(online_cpus, |cpu| vec![cpu]);
        let Tally { late, late_cycles, by_cause, worst, .. } = self.tally;
        let mut explanation = Explanation {
            source,
            late_above_ns: self.settings.late_above_ns,
            late_cycles,
            overwritten_cycles: self.overwritten_cycles,
            steal_ns: self.steal.whole(&cpus),
            late: late.into_iter().map(|Reverse(late)| late).collect(),
            by_cause: by_cause.sorted(),
            notes,
            worst,
        };
        explanation.late.sort_by_key(|late| late.cycle);
        explanation
    }

    fn sample(&mut self) {
        let now = now_ns();
        match &mut self.source {
            Source::Records(Some(counters)) => return counters.sample(now),
            Source::Counters { counters: Some(counters), .. } => counters.sample(now),
            _ => {}
        }
        self.steal.sample(now);
    }

    fn explain_pending(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        if let Source::Trace(recorder) = &mut self.source {
            if let Err(error) = recorder.drain() {
                self.failure = Some(format!("the trace could not be read on: {error}"));
            }
        }
        for cycle in std::mem::take(&mut self.pending) {
            self.explain(&cycle);
        }
        self.recent.note(self.notes());
    }

    fn explain(&mut self, info: &CycleTimes) {
        let CycleRecord { cycle, release_ns, start_ns, end_ns, .. } = info.record;
        let steal_rise_ns = match self.settings.cpu {
            Some(cpu) => self.steal.rise(cpu, release_ns, end_ns),
            None => online_cpus()
                .into_iter()
                .map(|cpu| self.steal.rise(cpu, release_ns, end_ns))
                .max()
                .unwrap_or(0),
        };
        let (causes, events) = match &self.source {
            Source::Trace(recorder) => {
                // From before the previous cycle's sleep to after this one's.
                let from = info.previous.map_or(release_ns, |(end, _)| end.min(release_ns));
                let margin = info.period_ns.clamp(1_000_000, 10_000_000);
                let from = from.saturating_sub(margin);
                let events = recorder.events(from, end_ns.saturating_add(margin));
                let complete_since_ns = recorder.complete_since(release_ns.max(start_ns));
                if complete_since_ns.is_none_or(|since| since > release_ns) {
                    self.overwritten_cycles += 1;
                }
                let throttled = Timeline::new(&events).was_throttled(info.thread, release_ns, end_ns);
                self.throttled_cycles += u64::from(throttled);
                let evidence = Evidence {
                    virtual_machine: self.virtual_machine,
                    complete_since_ns,
                    steal_rise_ns,
                    all_cpus: self.settings.cpu.is_none(),
                };
                let timers = events.iter().filter_map(|event| match event.what {
                    What::TimerEntry { function } => Some(function),
                    _ => None,
                });
                self.functions.look_up(timers);
                (attribute(&events, info, &evidence, &self.functions), events)
            }
            Source::Counters { counters, .. } | Source::Records(counters) => {
                let causes = counters.as_ref().map(|counters| counters.attribute(info, steal_rise_ns));
                (causes.unwrap_or_default(), Vec::new())
            }
        };
        let (late, late_ns) = info.lateness();
        let late = LateCycle { cycle, late_ns, late, release_ns, start_ns, end_ns, causes };
        let has_trace = matches!(self.source, Source::Trace(_));
        self.recent.take(&late, has_trace);
        if matches!(self.source, Source::Records(_)) {
            return;
        }
        self.explained.push(late.clone());
        self.tally.take(Explained { late, cycle: *info, events }, has_trace);
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        match &self.source {
            Source::Counters { why, .. } => notes.push(format!(
                "no trace: {why}; context switches, interrupts and steal were counted instead, which name no culprit"
            )),
            Source::Trace(recorder) if !recorder.missing().is_empty() => {
                notes.push(format!("this kernel has no {}: their share is unknown", recorder.missing().join(", ")));
            }
            Source::Trace(_) | Source::Records(_) => {}
        }
        notes.extend(self.failure.clone());
        if self.overwritten_cycles > 0 {
            notes.push(format!(
                "of {} late cycles the kernel's ring had been overwritten before it was read, at least in part",
                self.overwritten_cycles
            ));
        }
        if self.throttled_cycles > 0 {
            notes.push(format!(
                "in {} late cycles the cycle had to give way to ordinary threads, or to none: RT throttling \
                 (kernel.sched_rt_runtime_us, a cgroup's cpu.rt_runtime_us) or a SCHED_DEADLINE runtime too small",
                self.throttled_cycles
            ));
        }
        let Tally { late_cycles, by_cause, .. } = &self.tally;
        if *late_cycles > MOST_LATE as u64 {
            notes.push(format!("{late_cycles} cycles were late; the worst {MOST_LATE} are listed"));
        }
        if by_cause.has(Kind::Steal) {
            notes.push(
                "steal is inferred: time in which a thread had the CPU and was not charged for it, an idle CPU that \
                 slept past its timer in a virtual machine, or the kernel's steal counter rising around the cycle"
                    .to_owned(),
            );
        }
        notes
    }
}

/// CPUs that are online.
fn online_cpus() -> Vec<usize> {
    let cpus: Vec<usize> = Cpus::online().iter().collect();
    if cpus.is_empty() {
        (0..thread::available_parallelism().map_or(1, usize::from)).collect()
    } else {
        cpus
    }
}
