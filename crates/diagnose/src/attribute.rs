//! Attribution of a cycle's lateness to causes: a pure function of events. With it, the times of a
//! cycle that it reads, and the sum of causes.

use record::{CycleRecord, Phase};
use types::cause::Kind;
use types::late::{Cause, Late};

use crate::steal::{Charges, STEAL_AT_LEAST, TICK_NS};
use crate::timeline::{Doing, Slice, Timeline};
use crate::trace::{Symbols, TraceEvent, What};

/// Knowledge besides the events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// True on a virtual machine.
    pub virtual_machine: bool,
    /// Start of the recording without gaps, ns; `None` without events.
    pub complete_since_ns: Option<u64>,
    /// Rise of the kernel's steal counter for the cycle's CPU around the cycle, ns, in ticks of 10
    /// ms.
    pub steal_rise_ns: u64,
    /// True if events of all CPUs are recorded, not only events of the cycle's CPU.
    pub all_cpus: bool,
}

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

/// Attributes the lateness of a cycle; the shares add up to it exactly.
///
/// `events` are in order of time and reach from before the release (at best from before the end of
/// the previous cycle) to after the end. A late start is attributed moment by moment. A late end is
/// shared, in proportion, among everything that took time since the release besides the cycle
/// itself, if together that took more than the lateness; the remainder is the cycle's own, by
/// phase. Timers have the names of their `functions`.
#[must_use]
pub fn attribute(
    events: &[TraceEvent],
    cycle: &CycleTimes,
    evidence: &Evidence,
    functions: &Symbols,
) -> Vec<Cause> {
    let (late, late_ns) = cycle.lateness();
    let timeline = Timeline::new(events);
    let (causes, own) = (Causes::default(), Causes::default());
    let mut blame = Blame { timeline, cycle, evidence, functions, causes, own };
    blame.start();
    if late == Late::Start {
        let Blame { mut causes, own, .. } = blame;
        own.iter().for_each(|cause| causes.add(cause.kind, &cause.name, cause.ns));
        return causes.adding_up_to(late_ns);
    }
    blame.execution();
    let Blame { mut causes, own, .. } = blame;
    let rest = late_ns.saturating_sub(causes.total());
    own.adding_up_to(rest).iter().for_each(|cause| causes.add(cause.kind, &cause.name, cause.ns));
    causes.adding_up_to(late_ns)
}

/// Attribution in progress.
struct Blame<'a> {
    timeline: Timeline<'a>,
    cycle: &'a CycleTimes,
    evidence: &'a Evidence,
    functions: &'a Symbols,
    causes: Causes,
    own: Causes,
}

/// Stage of the cycle's thread, by what it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Its thread is still in the previous cycle.
    Before,
    /// Waits for the timer interrupt that is due.
    Timer,
    /// Waits for the CPU: its thread was woken, or is being woken.
    Cpu,
    /// Waits for nothing: its thread runs, up to the first time stamp.
    Stamp,
    /// Waits for nothing: the cycle itself.
    CycleTimes,
}

impl Blame<'_> {
    /// Attributes the time from the release to the start.
    fn start(&mut self) {
        let record = &self.cycle.record;
        let (release, start) = (record.release_ns, record.start_ns.max(record.release_ns));
        let mut now = release;
        if let Some((end, _)) = self.cycle.previous {
            // The previous cycle ended after this release.
            self.follow(now, end.min(start), Stage::Before);
            now = now.max(end.min(start));
        }
        let Some((cpu, woken)) = self.woken(start) else {
            return self.follow(now, start, Stage::Stamp);
        };
        let interrupt = self.timeline.interrupt_began(cpu, woken).unwrap_or(woken);
        for (end, stage) in [(interrupt, Stage::Timer), (woken, Stage::Cpu)] {
            let end = end.clamp(now, start);
            self.take(cpu, now, end, stage);
            now = end;
        }
        let (ran, runs_on) = self.comes(woken).unwrap_or((start, cpu));
        let ran = ran.clamp(now, start);
        self.take(runs_on, now, ran, Stage::Cpu);
        self.follow(ran, start, Stage::Stamp);
    }

    /// Attributes the time from the start to the end.
    fn execution(&mut self) {
        let record = &self.cycle.record;
        self.follow(record.start_ns.max(record.release_ns), record.end_ns, Stage::CycleTimes);
    }

    /// Wake-up that led to the start: the first one since the thread went to sleep; with its CPU.
    fn woken(&self, start: u64) -> Option<(usize, u64)> {
        let thread = self.cycle.thread;
        let mut woken = None;
        for event in self.timeline.events().take_while(|event| event.time_ns <= start) {
            match event.what {
                What::Switch { previous, preempted: false, .. } if previous.thread == thread => {
                    woken = None
                }
                What::Waking { thread: it } if it == thread => {
                    woken.get_or_insert((event.cpu, event.time_ns));
                }
                _ => {}
            }
        }
        // A wake-up before the end of the previous cycle led to an earlier start.
        let after = self.cycle.previous.map_or(0, |(end, _)| end);
        woken.filter(|&(_, time)| time >= after)
    }

    /// Time at or after `from_ns` when the thread first gets a CPU, and that CPU.
    fn comes(&self, from_ns: u64) -> Option<(u64, usize)> {
        self.timeline.events().filter(|event| event.time_ns >= from_ns).find_map(|event| match event.what {
            What::Switch { next, .. } if next.thread == self.cycle.thread => {
                Some((event.time_ns, event.cpu))
            }
            _ => None,
        })
    }

    /// Attributes an interval in which the cycle's thread should run, following it across CPUs.
    fn follow(&mut self, from_ns: u64, to_ns: u64, stage: Stage) {
        let mut now = from_ns;
        let mut cpu = self.timeline.last_on(self.cycle.thread, from_ns);
        while now < to_ns {
            // The thread's CPU is its current one if it runs, otherwise the one it gets next.
            let next = self.comes(now.saturating_add(1)).filter(|&(time, _)| time < to_ns);
            let here = cpu.or(next.map(|(_, cpu)| cpu)).or(self.timeline.any_cpu());
            let end = next.map_or(to_ns, |(time, _)| time);
            match here {
                Some(here) => self.take(here, now, end, stage),
                None => self.causes.add(Kind::Unknown, OVERWRITTEN, end - now),
            }
            cpu = next.map(|(_, cpu)| cpu).or(cpu);
            now = end;
        }
    }

    /// Attributes an interval of one CPU.
    fn take(&mut self, cpu: usize, from_ns: u64, to_ns: u64, stage: Stage) {
        if from_ns >= to_ns {
            return;
        }
        let complete = self.evidence.complete_since_ns.unwrap_or(u64::MAX).clamp(from_ns, to_ns);
        self.causes.add(Kind::Unknown, OVERWRITTEN, complete - from_ns);
        // Ordinary threads may be charged on another CPU, whose events are not recorded. Their
        // charges are used if a timer interrupt is late, or if an ordinary thread keeps a woken
        // real-time cycle waiting: both indicate steal.
        let amiss =
            stage == Stage::Timer || stage == Stage::Cpu && self.timeline.is_real_time(self.cycle.thread);
        let believed = amiss || self.evidence.all_cpus || self.evidence.steal_rise_ns > 0;
        let charges = Charges::of(&self.timeline, cpu, believed);
        for slice in self.timeline.slices(cpu, complete, to_ns) {
            for piece in cut(slice, &charges) {
                self.blame(&piece, charges.cover(piece.from_ns, piece.to_ns), stage);
            }
        }
    }

    /// Attributes one slice.
    fn blame(&mut self, slice: &Slice, accounted: bool, stage: Stage) {
        let ns = slice.length_ns();
        match slice.doing {
            Doing::Irq { number, name } => self.causes.add(Kind::Irq, &format!("{number} {name}"), ns),
            // The CPU's own interrupts and timers are short.
            Doing::Vector(_) | Doing::Timer(_) if ns >= NEVER_OFF && self.stolen_by_counter(ns) => {
                self.causes.add(Kind::Steal, HYPERVISOR, ns);
            }
            Doing::Vector(TIMER) => self.causes.add(Kind::Timer, TIMER, ns),
            Doing::Vector(name) => self.causes.add(Kind::Irq, name, ns),
            Doing::Timer(function) => self.causes.add(Kind::Timer, &self.functions.name(function), ns),
            Doing::Stolen => self.causes.add(Kind::Steal, HYPERVISOR, ns),
            Doing::Unrecorded => self.causes.add(Kind::Unknown, OVERWRITTEN, ns),
            Doing::Softirq(_) if stage == Stage::Timer => self.silence(ns, "late timer interrupt"),
            Doing::Softirq(name) => self.causes.add(Kind::Softirq, name, ns),
            Doing::Idle(state) => {
                let state = state.map_or("idle".to_owned(), |state| format!("idle state {state}"));
                self.silence(ns, &format!("leaving {state}"));
            }
            Doing::Task(task) if task.thread == self.cycle.thread => self.own(slice, accounted, stage),
            Doing::Task(task) if stage == Stage::Timer => {
                self.masked(&task.name.to_string(), ns);
            }
            Doing::Task(task) => self.causes.add(Kind::Task, &task.name.to_string(), ns),
        }
    }

    /// Attributes a timer interrupt that was due but did not come while a thread ran: the kernel
    /// had interrupts off, or in a virtual machine the host delivered it late.
    fn masked(&mut self, name: &str, ns: u64) {
        let stolen = self.stolen_by_counter(ns) || ns >= NEVER_OFF;
        match () {
            () if ns < STEAL_AT_LEAST => self.causes.add(Kind::Unknown, "late timer interrupt", ns),
            () if !self.evidence.virtual_machine => self.causes.add(Kind::Task, name, ns),
            () if stolen => self.causes.add(Kind::Steal, HYPERVISOR, ns),
            () => self.causes.add(Kind::Unknown, &format!("{name} with interrupts off, or steal"), ns),
        }
    }

    /// Attributes a slice of the cycle's own thread.
    fn own(&mut self, slice: &Slice, accounted: bool, stage: Stage) {
        let ns = slice.length_ns();
        match stage {
            Stage::Before => {
                let phase = self.cycle.previous.map_or("code", |(_, phase)| phase_name(phase));
                self.own.add(Kind::Own, phase, ns);
            }
            Stage::Timer | Stage::Cpu | Stage::Stamp if accounted => self.own.add(Kind::Own, "wake-up", ns),
            Stage::Timer | Stage::Cpu | Stage::Stamp => self.silence(ns, "waking up"),
            Stage::CycleTimes if !accounted && self.stolen_by_counter(ns) => {
                self.causes.add(Kind::Steal, HYPERVISOR, ns);
            }
            Stage::CycleTimes => {
                let mut now = slice.from_ns;
                for (phase, end) in self.cycle.phase_ends() {
                    let end = end.clamp(now, slice.to_ns);
                    self.own.add(Kind::Own, phase_name(phase), end - now);
                    now = end;
                }
                self.own.add(Kind::Own, "code", slice.to_ns - now);
            }
        }
    }

    /// Attributes an interval in which something was due and no event came.
    fn silence(&mut self, ns: u64, name: &str) {
        if self.evidence.virtual_machine && ns >= STEAL_AT_LEAST {
            self.causes.add(Kind::Steal, HYPERVISOR, ns);
        } else {
            self.causes.add(Kind::Unknown, name, ns);
        }
    }

    /// True if the kernel's steal counter rose enough for a silence of this length, within the
    /// resolution of its ticks.
    fn stolen_by_counter(&self, ns: u64) -> bool {
        let rise = self.evidence.steal_rise_ns;
        ns >= STEAL_AT_LEAST && rise > 0 && rise + TICK_NS >= ns
    }
}

/// Cuts the stolen intervals out of a slice of a thread.
fn cut(slice: Slice, charges: &Charges) -> Vec<Slice> {
    let mut pieces = Vec::new();
    let mut now = slice.from_ns;
    if matches!(slice.doing, Doing::Task(_)) {
        for stolen in &charges.stolen {
            let (from_ns, to_ns) =
                (stolen.from_ns.clamp(now, slice.to_ns), stolen.to_ns.clamp(now, slice.to_ns));
            if from_ns < to_ns {
                pieces.push(Slice { from_ns: now, to_ns: from_ns, ..slice });
                pieces.push(Slice { from_ns, to_ns, doing: Doing::Stolen });
                now = to_ns;
            }
        }
    }
    pieces.push(Slice { from_ns: now, ..slice });
    pieces.retain(|piece| piece.from_ns < piece.to_ns);
    pieces
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

/// Delay of a timer interrupt, ns, above which it is attributed to the hypervisor in a virtual
/// machine: no kernel code keeps interrupts off for so long.
const NEVER_OFF: u64 = 1_000_000;

/// Vector of the CPU's timer interrupt.
const TIMER: &str = "local_timer";

/// Name of the cause of steal.
pub(crate) const HYPERVISOR: &str = "hypervisor";

/// Name of an unknown cause where the ring was overwritten.
pub(crate) const OVERWRITTEN: &str = "trace overwritten";

/// Name of an unknown cause without events.
pub(crate) const NOT_RECORDED: &str = "nothing recorded";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_is_late_by_its_start_or_by_its_end() {
        let cycle = |start, end| CycleTimes {
            record: CycleRecord { end_ns: end, ..CycleRecord::begin(1, 1_000, start) },
            previous: None,
            period_ns: 1_000,
            thread: 7,
            waits_for_reply: false,
        };
        assert_eq!(cycle(1_050, 1_900).lateness(), (Late::Start, 50));
        assert_eq!(cycle(1_050, 2_040).lateness(), (Late::Start, 50));
        assert_eq!(cycle(1_050, 2_300).lateness(), (Late::End, 300));
        assert_eq!(cycle(1_000, 1_000).lateness(), (Late::Start, 0));
    }

    fn causes(shares: &[(Kind, &str, u64)]) -> Causes {
        let mut causes = Causes::default();
        for &(kind, name, ns) in shares {
            causes.add(kind, name, ns);
        }
        causes
    }

    #[test]
    fn what_is_missing_is_unknown_and_what_is_too_much_is_shared() {
        let few =
            causes(&[(Kind::Task, "a", 30), (Kind::Irq, "b", 10), (Kind::Task, "a", 20)]).adding_up_to(100);
        assert_eq!(few.iter().map(|it| it.ns).collect::<Vec<_>>(), [50, 40, 10]);
        assert_eq!((few[1].kind, few[1].name.as_str()), (Kind::Unknown, NOT_RECORDED));
        let many = causes(&[(Kind::Task, "a", 100), (Kind::Steal, "b", 200), (Kind::Irq, "c", 1)])
            .adding_up_to(150);
        assert_eq!(
            many.iter().map(|it| (it.name.as_str(), it.ns)).collect::<Vec<_>>(),
            [("b", 101), ("a", 49)]
        );
        assert!(causes(&[(Kind::Task, "a", 5)]).adding_up_to(0).is_empty());
    }
}
