//! Attribution of constructed events and cycles to their expected causes.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use onbeat_diagnose::trace::{Name, Symbols, Task, TraceEvent, What};
use onbeat_diagnose::{Cause, CycleTimes, Evidence, Kind, attribute};
use proptest::prelude::*;
use record::{CycleRecord, Phase};

const US: u64 = 1_000;
const RELEASE: u64 = 1_000_000 * US;
const PERIOD: u64 = 1_000 * US;
const CYCLE: i32 = 77;

/// Trace under construction: times in us after the release, on one CPU until another is selected.
struct Trace {
    cpu: usize,
    current: Task,
    events: Vec<TraceEvent>,
}

fn task(thread: i32, name: &str) -> Task {
    let priority = if thread == CYCLE || name == "culprit" { 19 } else { 120 };
    Task { thread, name: Name::from(name), priority }
}

fn cycle() -> Task {
    task(CYCLE, "cycle")
}

fn idle() -> Task {
    task(0, "swapper")
}

impl Trace {
    /// The cycle has gone to sleep, and this thread has run since then.
    fn with(current: Task) -> Self {
        let trace = Self { cpu: 1, current: cycle(), events: Vec::new() };
        trace.switch(-900, false, current)
    }

    fn on(mut self, cpu: usize, current: Task) -> Self {
        (self.cpu, self.current) = (cpu, current);
        self
    }

    fn at(mut self, us: i64, what: What) -> Self {
        let time_ns = RELEASE.checked_add_signed(us * US as i64).unwrap();
        self.events.push(TraceEvent { time_ns, cpu: self.cpu, current: self.current.thread, what });
        self
    }

    fn switch(self, us: i64, preempted: bool, next: Task) -> Self {
        let previous = self.current;
        let mut trace = self.at(us, What::Switch { previous, preempted, next });
        trace.current = next;
        trace
    }

    /// Timer interrupt in which the cycle's thread is woken.
    fn timer(self, from: i64, to: i64) -> Self {
        self.at(from, What::VectorEntry { name: "local_timer" })
            .at(from, What::TimerEntry { function: 0xABC })
            .at(to, What::Waking { thread: CYCLE })
            .at(to, What::TimerExit)
            .at(to, What::VectorExit)
    }

    fn irq(self, from: i64, to: i64) -> Self {
        self.at(from, What::IrqEntry { number: 24, name: Name::from("eth0") }).at(to, What::IrqExit)
    }

    fn blame(&self, cycle: &CycleTimes, evidence: &Evidence) -> Vec<(Kind, String, u64)> {
        let causes = attribute(&self.events, cycle, evidence, &Symbols::default());
        let sum: u64 = causes.iter().map(|cause| cause.ns).sum();
        assert_eq!(sum, cycle.lateness().1, "{causes:?}");
        causes.into_iter().map(|Cause { kind, name, ns }| (kind, name, ns / US)).collect()
    }
}

/// Cycle that started and ended this many us after its release, all of it in the controller's
/// phase.
fn one_cycle(start: u64, end: u64) -> CycleTimes {
    let mut record = CycleRecord::begin(48_213, RELEASE, RELEASE + start * US);
    record.finish(Phase::Update, RELEASE + end * US);
    let previous = Some((RELEASE - 950 * US, Phase::Update));
    CycleTimes { record, previous, period_ns: PERIOD, thread: CYCLE, waits_for_reply: false }
}

const BARE: Evidence =
    Evidence { virtual_machine: false, complete_since_ns: Some(0), steal_rise_ns: 0, all_cpus: false };
const GUEST: Evidence = Evidence { virtual_machine: true, ..BARE };

fn named(kind: Kind, name: &str, us: u64) -> (Kind, String, u64) {
    (kind, name.to_owned(), us)
}

// feature(explain): threads, interrupts, timers, hypervisor, our own code
#[test]
fn busy_thread_and_nested_interrupt_are_blamed() {
    let trace = Trace::with(task(9, "kworker/1:2"))
        .timer(0, 0)
        .irq(10, 71)
        .switch(181, true, cycle())
        .at(220, What::IrqExit);
    let causes = trace.blame(&one_cycle(183, 220), &BARE);
    assert_eq!(
        causes,
        [
            named(Kind::Task, "kworker/1:2", 120),
            named(Kind::Irq, "24 eth0", 61),
            named(Kind::Unknown, "waking up", 2)
        ]
    );
}

#[test]
fn a_culprit_that_comes_between_waking_and_running_is_named() {
    let trace = Trace::with(idle())
        .timer(2, 4)
        .switch(6, false, task(5, "culprit"))
        .switch(406, false, cycle())
        .switch(500, false, idle());
    let causes = trace.blame(&one_cycle(407, 490), &GUEST);
    assert_eq!(causes[0], named(Kind::Task, "culprit", 400));
}

// feature(explain): threads, interrupts, timers, hypervisor, our own code
#[test]
fn idle_vm_with_late_timer_slept_in_the_hypervisor() {
    let trace = Trace::with(idle())
        .at(-890, What::IdleEntry { state: 1 })
        .at(3_390, What::IdleExit)
        .timer(3_391, 3_393)
        .switch(3_398, true, cycle());
    let causes = trace.blame(&one_cycle(3_400, 3_500), &GUEST);
    assert_eq!(causes[0], named(Kind::Steal, "hypervisor", 3_390));
    let causes = trace.blame(&one_cycle(3_400, 3_500), &BARE);
    assert_eq!(causes[0], named(Kind::Unknown, "leaving idle state 1", 3_390));
}

#[test]
fn late_timer_of_running_thread_is_masked_or_stolen() {
    let trace = Trace::with(task(9, "driver")).timer(300, 302).switch(303, true, cycle());
    assert_eq!(trace.blame(&one_cycle(304, 310), &BARE)[0], named(Kind::Task, "driver", 301));
    let unclear = trace.blame(&one_cycle(304, 310), &GUEST);
    assert_eq!(unclear[0], named(Kind::Unknown, "driver with interrupts off, or steal", 300));
    let counted = trace.blame(&one_cycle(304, 310), &Evidence { steal_rise_ns: 10_000_000, ..GUEST });
    assert_eq!(counted[0], named(Kind::Steal, "hypervisor", 300));
}

#[test]
fn long_timer_interrupt_is_steal_if_the_counter_rose() {
    let trace = Trace::with(idle())
        .at(1, What::VectorEntry { name: "local_timer" })
        .at(8_200, What::Waking { thread: CYCLE })
        .at(8_201, What::VectorExit)
        .switch(8_202, true, cycle());
    let blame = |steal_rise_ns| trace.blame(&one_cycle(8_203, 8_300), &Evidence { steal_rise_ns, ..GUEST });
    assert_eq!(blame(10_000_000)[0], named(Kind::Steal, "hypervisor", 8_199));
    assert_eq!(blame(0)[0], named(Kind::Timer, "local_timer", 8_200));
}

#[test]
fn uncharged_cpu_time_is_steal() {
    let culprit = task(5, "culprit");
    let trace = Trace::with(idle())
        .switch(-100, false, culprit)
        .timer(0, 2)
        .at(1_000, What::Charged { thread: 5, ran_ns: 400 * US })
        .switch(1_000, false, cycle());
    let causes = trace.blame(&one_cycle(1_001, 1_100), &GUEST);
    // 1 100 us passed, 400 us were charged: 698 us (without 2 us of interrupts) were stolen, in the
    // one long silence.
    assert_eq!(causes[0], named(Kind::Steal, "hypervisor", 698));
    assert_eq!(causes[1], named(Kind::Task, "culprit", 300));
}

#[test]
fn ordinary_charges_count_if_a_real_time_cycle_waits() {
    let ordinary = task(9, "ordinary");
    let trace = Trace::with(ordinary)
        .at(-1, What::Charged { thread: 9, ran_ns: 899 * US })
        .timer(0, 1)
        .at(801, What::Charged { thread: 9, ran_ns: 301 * US })
        .switch(802, true, cycle());
    let causes = trace.blame(&one_cycle(803, 900), &GUEST);
    assert_eq!(causes[..2], [named(Kind::Steal, "hypervisor", 500), named(Kind::Task, "ordinary", 301)]);
    // An ordinary cycle regularly waits for others, which may be charged on a CPU that is not
    // recorded.
    let mut trace = trace;
    for event in &mut trace.events {
        if let What::Switch { previous, next, .. } = &mut event.what {
            (previous.priority, next.priority) = (120, 120);
        }
    }
    assert_eq!(trace.blame(&one_cycle(803, 900), &GUEST)[0], named(Kind::Task, "ordinary", 801));
}

// feature(explain): threads, interrupts, timers, hypervisor, our own code
#[test]
fn our_own_controller_that_ran_past_the_next_release() {
    let trace = Trace::with(idle()).timer(0, 1).switch(4, true, cycle()).switch(1_500, false, idle());
    let causes = trace.blame(&one_cycle(5, 1_412), &BARE);
    assert_eq!(causes[0].0, Kind::Own);
    assert_eq!(causes[0].1, "controller");
    assert!((405..=412).contains(&causes[0].2), "{causes:?}");
}

#[test]
fn interrupter_is_blamed_before_own_code() {
    let trace = Trace::with(idle())
        .timer(0, 1)
        .switch(4, true, cycle())
        .switch(300, true, task(5, "culprit"))
        .switch(700, false, cycle());
    // 200 us late: without the culprit's 400 us it would have been on time, however long its own
    // code takes.
    let causes = trace.blame(&one_cycle(5, 1_200), &BARE);
    assert_eq!(causes[0], named(Kind::Task, "culprit", 197), "{causes:?}");
    assert!(causes.iter().all(|(kind, ..)| *kind != Kind::Own));
    // 600 us late: the culprit's 400 us do not explain all of it.
    let causes = trace.blame(&one_cycle(5, 1_600), &BARE);
    assert_eq!(causes[..2], [named(Kind::Task, "culprit", 400), named(Kind::Own, "controller", 195)]);
}

#[test]
fn a_release_in_the_middle_of_the_cycle_before_is_our_own_fault() {
    let previous = Some((RELEASE + 400 * US, Phase::Update));
    let late = CycleTimes { previous, ..one_cycle(405, 450) };
    let trace = Trace { cpu: 1, current: idle(), events: Vec::new() }
        .switch(-990, false, cycle())
        .at(402, What::VectorEntry { name: "local_timer" })
        .at(403, What::VectorExit);
    let causes = trace.blame(&late, &BARE);
    assert_eq!(causes[0], named(Kind::Own, "controller", 400));
}

#[test]
fn a_cycle_that_moves_is_followed_from_cpu_to_cpu() {
    // Woken on CPU 1, which a culprit occupies, it runs on CPU 0 after another thread there.
    let mut trace = Trace::with(task(5, "elsewhere")).timer(0, 1);
    trace = trace
        .on(0, task(8, "here"))
        .at(-50, What::SoftirqEntry { name: "NET_RX" })
        .at(40, What::SoftirqExit)
        .switch(90, true, cycle());
    trace.events.sort_by_key(|event| event.time_ns);
    let causes = trace.blame(&one_cycle(91, 120), &Evidence { all_cpus: true, ..BARE });
    assert_eq!(causes[..2], [named(Kind::Task, "here", 50), named(Kind::Softirq, "NET_RX", 39)]);
}

#[test]
fn what_was_overwritten_is_unknown_and_said_to_be() {
    let trace = Trace::with(task(5, "culprit")).timer(0, 1).switch(400, true, cycle());
    let evidence = Evidence { complete_since_ns: Some(RELEASE + 300 * US), ..BARE };
    let causes = trace.blame(&one_cycle(401, 450), &evidence);
    assert_eq!(
        causes[..2],
        [named(Kind::Unknown, "trace overwritten", 300), named(Kind::Task, "culprit", 100)]
    );
    let nothing = Trace { cpu: 1, current: idle(), events: Vec::new() };
    let causes = nothing.blame(&one_cycle(401, 450), &Evidence { complete_since_ns: None, ..BARE });
    assert_eq!(causes, [named(Kind::Unknown, "trace overwritten", 401)]);
}

#[test]
fn a_switch_that_was_lost_is_made_up_by_the_events_after_it() {
    let mut trace = Trace::with(idle()).timer(0, 1);
    trace.current = task(5, "culprit");
    let causes = trace.irq(10, 20).switch(300, false, cycle()).blame(&one_cycle(301, 350), &BARE);
    assert_eq!(causes[0], named(Kind::Task, "culprit", 280));
}

fn any_what() -> impl Strategy<Value = What> {
    let any_task = || (0..4_i32).prop_map(|thread| task(if thread == 3 { CYCLE } else { thread }, "any"));
    prop_oneof![
        (any_task(), any::<bool>(), any_task()).prop_map(|(previous, preempted, next)| What::Switch {
            previous,
            preempted,
            next
        }),
        (0..80_i32).prop_map(|thread| What::Waking { thread }),
        Just(What::Waking { thread: CYCLE }),
        (0..4_i32, any::<u64>()).prop_map(|(thread, ran_ns)| What::Charged { thread, ran_ns }),
        (0..3_000_000_u64).prop_map(|ran_ns| What::Charged { thread: CYCLE, ran_ns }),
        Just(What::IrqEntry { number: 7, name: Name::from("any") }),
        Just(What::IrqExit),
        Just(What::VectorEntry { name: "local_timer" }),
        Just(What::VectorExit),
        Just(What::SoftirqEntry { name: "RCU" }),
        Just(What::SoftirqExit),
        Just(What::TimerEntry { function: 1 }),
        Just(What::TimerExit),
        Just(What::IdleEntry { state: 0 }),
        Just(What::IdleExit),
    ]
}

proptest! {
    /// With any trace, the shares add up to the lateness exactly, and none is empty or duplicated.
    // feature(explain): `late` in JSON, shares that add up
    #[test]
    fn shares_add_up_whatever_the_trace_says(
        whats in prop::collection::vec((0_u64..4_000_000, 0_usize..2, 0_i32..4, any_what()), 0..60),
        start in 0_u64..3_000_000, length in 0_u64..3_000_000, update in 0_u32..3_000_000,
        previous in prop::option::of(0_u64..3_000_000),
        virtual_machine: bool, all_cpus: bool, steal_rise_ns in 0_u64..30_000_000,
        complete in prop::option::of(0_u64..4_000_000),
    ) {
        let origin = RELEASE - 1_000_000;
        let mut events: Vec<TraceEvent> = whats
            .into_iter()
            .map(|(time, cpu, current, what)| TraceEvent { time_ns: origin + time, cpu, current, what })
            .collect();
        events.sort_by_key(|event| event.time_ns);
        let mut record = CycleRecord::begin(1, RELEASE, RELEASE + start);
        record.finish(Phase::Update, RELEASE + start + u64::from(update));
        record.finish(Phase::Publish, RELEASE + start + length);
        let previous = previous.map(|end| (origin + end, Phase::Read));
        let cycle = CycleTimes { record, previous, period_ns: PERIOD, thread: CYCLE, waits_for_reply: all_cpus };
        let complete_since_ns = complete.map(|since| origin + since);
        let evidence = Evidence { virtual_machine, complete_since_ns, steal_rise_ns, all_cpus };
        let causes = attribute(&events, &cycle, &evidence, &Symbols::default());
        prop_assert_eq!(causes.iter().map(|cause| cause.ns).sum::<u64>(), cycle.lateness().1);
        prop_assert!(causes.iter().all(|cause| cause.ns > 0 && !cause.name.is_empty()));
        prop_assert!(causes.is_sorted_by(|a, b| a.ns >= b.ns));
        for (place, cause) in causes.iter().enumerate() {
            prop_assert!(!causes[..place].iter().any(|it| it.kind == cause.kind && it.name == cause.name));
        }
    }
}
