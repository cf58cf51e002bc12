//! Attribution of a cycle's lateness to causes: a pure function of events.

use crate::late::{Cause, Causes, CycleTimes, Kind, Late, phase_name};
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

/// Delay of a timer interrupt, ns, above which it is attributed to the hypervisor in a virtual
/// machine: no kernel code keeps interrupts off for so long.
const NEVER_OFF: u64 = 1_000_000;

/// Vector of the CPU's timer interrupt.
const TIMER: &str = "local_timer";

/// Name of the cause of steal.
pub(crate) const HYPERVISOR: &str = "hypervisor";

/// Name of an unknown cause where the ring was overwritten.
pub(crate) const OVERWRITTEN: &str = "trace overwritten";
