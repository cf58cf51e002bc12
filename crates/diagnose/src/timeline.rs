//! Activity of a CPU over time.

use std::collections::HashMap;

use crate::trace::{Name, Task, TraceEvent, What};

/// Kernel priorities below this are real-time.
pub(crate) const REAL_TIME: i32 = 100;

/// Interval of one activity of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Begin, ns.
    pub from_ns: u64,
    /// End, ns.
    pub to_ns: u64,
    /// Activity.
    pub doing: Doing,
}

impl Slice {
    /// Length, ns.
    #[must_use]
    pub fn length_ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }
}

/// Activity of a CPU: the innermost of nested ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// A thread.
    Task(Task),
    /// Idle, in this idle state if known.
    Idle(Option<u32>),
    /// An interrupt handler.
    Irq {
        /// Number of the interrupt.
        number: u32,
        /// Name of the interrupt.
        name: Name,
    },
    /// An interrupt of the CPU itself.
    Vector(&'static str),
    /// A softirq.
    Softirq(&'static str),
    /// The function of a timer, by its address.
    Timer(u64),
    /// Taken away by the hypervisor.
    Stolen,
    /// No recorded event.
    Unrecorded,
}

/// Activities of CPUs, rebuilt from events in order of time.
#[derive(Debug)]
pub struct Timeline<'a> {
    events: &'a [TraceEvent],
    names: HashMap<i32, Task>,
}

impl<'a> Timeline<'a> {
    /// Creates a timeline over these events, in order of time.
    #[must_use]
    pub fn new(events: &'a [TraceEvent]) -> Self {
        let mut names = HashMap::new();
        for event in events {
            if let What::Switch { previous, next, .. } = event.what {
                names.insert(previous.thread, previous);
                names.insert(next.thread, next);
            }
        }
        Self { events, names }
    }

    /// All events, in order of time.
    pub fn events(&self) -> impl Iterator<Item = &'a TraceEvent> + use<'a> {
        self.events.iter()
    }

    /// CPU on which this thread ran last, by the events up to `at_ns`.
    #[must_use]
    pub fn last_on(&self, thread: i32, at_ns: u64) -> Option<usize> {
        let runs = |event: &&TraceEvent| match event.what {
            What::Switch { previous, next, .. } => previous.thread == thread || next.thread == thread,
            _ => event.current == thread,
        };
        self.events
            .iter()
            .take_while(|event| event.time_ns <= at_ns)
            .filter(runs)
            .last()
            .map(|event| event.cpu)
    }

    /// True if a thread has a real-time priority, by its switches.
    #[must_use]
    pub fn is_real_time(&self, thread: i32) -> bool {
        self.names.get(&thread).is_some_and(|task| task.priority < REAL_TIME)
    }

    /// True if a runnable real-time thread was replaced by an ordinary one, or by the idle task:
    /// its run time was used up.
    #[must_use]
    pub fn was_throttled(&self, thread: i32, from_ns: u64, to_ns: u64) -> bool {
        self.events.iter().filter(|event| (from_ns..=to_ns).contains(&event.time_ns)).any(|event| {
            matches!(event.what, What::Switch { previous, preempted: true, next }
                if previous.thread == thread && previous.priority < REAL_TIME && next.priority >= REAL_TIME)
        })
    }

    /// CPU of the first event.
    #[must_use]
    pub fn any_cpu(&self) -> Option<usize> {
        self.events.first().map(|event| event.cpu)
    }

    /// All events of one CPU, in order of time.
    pub fn events_of(&self, cpu: usize) -> impl Iterator<Item = &'a TraceEvent> + use<'a> {
        self.events.iter().filter(move |event| event.cpu == cpu)
    }

    /// Activities of this CPU between two times: slices without gaps, in order.
    #[must_use]
    pub fn slices(&self, cpu: usize, from_ns: u64, to_ns: u64) -> Vec<Slice> {
        let mut slices = Vec::new();
        let mut state = State::before(self, cpu);
        let mut now = from_ns;
        for event in self.events_of(cpu) {
            if event.time_ns > now {
                let end = event.time_ns.min(to_ns);
                slices.push(Slice { from_ns: now, to_ns: end, doing: state.doing() });
                now = end;
            }
            if now >= to_ns {
                break;
            }
            state.step(event, &self.names);
        }
        if now < to_ns {
            slices.push(Slice { from_ns: now, to_ns, doing: state.doing() });
        }
        slices.retain(|slice| slice.from_ns < slice.to_ns);
        slices
    }

    /// Begin of the interrupt in which this CPU was at `at_ns`; `None` if it was in none.
    #[must_use]
    pub fn interrupt_began(&self, cpu: usize, at_ns: u64) -> Option<u64> {
        let mut state = State::before(self, cpu);
        for event in self.events_of(cpu).take_while(|event| event.time_ns <= at_ns) {
            state.step(event, &self.names);
        }
        state.nested.iter().find(|(doing, _)| !matches!(doing, Doing::Timer(_))).map(|&(_, began)| began)
    }
}

/// Current activity of a CPU.
#[derive(Debug)]
struct State {
    current: Option<Task>,
    idle_state: Option<u32>,
    /// Nested interrupts and timers, each with its begin.
    nested: Vec<(Doing, u64)>,
    /// Softirqs by thread: with PREEMPT_RT they can be preempted.
    softirqs: HashMap<i32, &'static str>,
}

impl State {
    /// State before the first event: the thread current at that event.
    fn before(timeline: &Timeline<'_>, cpu: usize) -> Self {
        let current = timeline.events_of(cpu).next().map(|event| match event.what {
            What::Switch { previous, .. } => previous,
            _ => named(event.current, &timeline.names),
        });
        Self { current, idle_state: None, nested: Vec::new(), softirqs: HashMap::new() }
    }

    fn doing(&self) -> Doing {
        if let Some(&(doing, _)) = self.nested.last() {
            return doing;
        }
        let Some(task) = self.current else { return Doing::Unrecorded };
        match self.softirqs.get(&task.thread) {
            Some(name) => Doing::Softirq(name),
            None if task.thread == 0 => Doing::Idle(self.idle_state),
            None => Doing::Task(task),
        }
    }

    fn step(&mut self, event: &TraceEvent, names: &HashMap<i32, Task>) {
        if self.current.is_none_or(|task| task.thread != event.current)
            && !matches!(event.what, What::Switch { .. })
        {
            // A switch was lost: every event names the current thread.
            self.current = Some(named(event.current, names));
            self.nested.clear();
        }
        let now = event.time_ns;
        match event.what {
            What::Switch { next, .. } => {
                // No switch happens within an interrupt: an exit was lost.
                self.nested.clear();
                self.current = Some(next);
                self.idle_state = None;
            }
            What::IrqEntry { number, name } => self.nested.push((Doing::Irq { number, name }, now)),
            What::IrqExit => self.leave(|doing| matches!(doing, Doing::Irq { .. })),
            What::VectorEntry { name } => self.nested.push((Doing::Vector(name), now)),
            What::VectorExit => self.leave(|doing| matches!(doing, Doing::Vector(_))),
            What::TimerEntry { function } => self.nested.push((Doing::Timer(function), now)),
            What::TimerExit => self.leave(|doing| matches!(doing, Doing::Timer(_))),
            What::SoftirqEntry { name } => {
                self.softirqs.insert(event.current, name);
            }
            What::SoftirqExit => {
                self.softirqs.remove(&event.current);
            }
            What::IdleEntry { state } => self.idle_state = Some(state),
            What::IdleExit => self.idle_state = None,
            What::Waking { .. } | What::Charged { .. } => {}
        }
    }

    /// Leaves the innermost activity of this kind and everything nested in it.
    fn leave(&mut self, kind: impl Fn(&Doing) -> bool) {
        if let Some(place) = self.nested.iter().rposition(|(doing, _)| kind(doing)) {
            self.nested.truncate(place);
        }
    }
}

fn named(thread: i32, names: &HashMap<i32, Task>) -> Task {
    names.get(&thread).copied().unwrap_or_else(|| Task {
        thread,
        name: Name::from(format!("thread {thread}").as_str()),
        priority: 120,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_time_thread_behind_ordinary_one_was_throttled() {
        let task = |thread, priority| Task { thread, name: Name::from("any"), priority };
        let gives_way = |preempted, priority, next_priority| {
            let what =
                What::Switch { previous: task(7, priority), preempted, next: task(0, next_priority) };
            let events = [TraceEvent { time_ns: 50, cpu: 0, current: 7, what }];
            Timeline::new(&events).was_throttled(7, 0, 100)
        };
        assert!(gives_way(true, 19, 120) && gives_way(true, -1, 120));
        assert!(!gives_way(false, 19, 120), "it sleeps");
        assert!(!gives_way(true, 19, 0), "a higher one comes");
        assert!(!gives_way(true, 120, 120), "an ordinary one");
    }
}
