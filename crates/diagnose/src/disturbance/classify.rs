//! From the kernel's records of a thread to its disturbances: no I/O, no clock.

use std::collections::HashMap;
use std::sync::Arc;

use types::cause::{Disturbance, Kind};

use super::Window;
use super::report::{Counts, MOST_CAUSES};

/// Events of the kernel, in the order in which they happened.
#[derive(Clone, Debug)]
pub(super) enum Event {
    /// Switched out for the thread of this name. `interruptible`: asleep as in a call that a signal
    /// may end.
    Switch { preempted: bool, interruptible: bool, next: String },
    /// It enters a system call; `waits` if that is the wait of a pacer.
    Enter { number: i64, waits: bool },
    /// It leaves one.
    Exit,
    /// A page was missing.
    Fault { major: bool, address: u64 },
    /// A copy of the stack: right before or after the call or preemption it belongs to, some time
    /// before the fault.
    Stack { of: Source, stack: Arc<Stack> },
    /// Switched out; nothing else is known.
    Out { preempted: bool },
    /// Switched in, after [`Event::Out`].
    In,
    /// Seen in a system call from outside.
    Seen { number: i64 },
    /// Some events had no space.
    Lost(u64),
}

/// State of the thread when a copy of its stack was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Call,
    Preemption,
    Fault,
}

/// Registers, as [`crate::sys::perf`] has them, and the stack from the stack pointer on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Stack {
    pub(super) registers: Vec<u64>,
    pub(super) bytes: Vec<u8>,
}

/// One thread's disturbances, as they are found.
#[derive(Debug)]
pub(super) struct Classifier {
    window: Window,
    /// Numbers of the calls that are part of the thread's work.
    expected: Vec<i64>,
    call: Call,
    /// Stack that came before its event.
    early: Option<(Source, Arc<Stack>)>,
    /// First disturbance of a kind, waiting for its stack: its index, and the period of that stack.
    wanting: Option<(Source, usize, u64)>,
    /// Switched out by itself since.
    out: Option<u64>,
    seen: Option<i64>,
    tally: Tally,
}

/// Place of the thread, as far as that is known.
#[derive(Clone, Debug)]
enum Call {
    /// Nothing is known: events before this are missing.
    Unknown,
    /// In no system call, or in one that is expected.
    None,
    Wait,
    Expected,
    Unexpected {
        number: i64,
        slept: bool,
        stack: Option<Arc<Stack>>,
    },
}

impl Classifier {
    pub(super) fn new(window: Window, expected: Vec<i64>) -> Self {
        Self {
            window,
            expected,
            call: Call::Unknown,
            early: None,
            wanting: None,
            out: None,
            seen: None,
            tally: Tally::default(),
        }
    }

    pub(super) fn tally(&self) -> &Tally {
        &self.tally
    }

    pub(super) fn tally_mut(&mut self) -> &mut Tally {
        &mut self.tally
    }

    /// The next event, of the instant `at` in ns; `region` names the memory at an address.
    pub(super) fn take(&mut self, at: u64, event: Event, region: &mut dyn FnMut(u64) -> String) {
        if let Event::Stack { of, stack } = event {
            return self.stack(of, stack);
        }
        match event {
            Event::Switch { preempted: true, next, .. } => {
                self.count_at(at, Source::Preemption, Kind::Task, next);
            }
            Event::Switch { preempted: false, interruptible, .. } => self.sleeps(at, interruptible),
            Event::Enter { number, waits } => self.enter(at, number, waits),
            Event::Exit => self.call = Call::None,
            Event::Fault { major, address } if self.window.period_of(at).is_some() => {
                let kind = if major { Kind::MajorFault } else { Kind::MinorFault };
                self.count_at(at, Source::Fault, kind, region(address));
            }
            Event::Out { preempted: true } => self.count(at, Kind::Task, UNKNOWN.into(), None),
            Event::Out { preempted: false } => {
                self.out = Some(at);
                self.seen = None;
            }
            Event::In => self.comes_back(at),
            Event::Seen { number } => self.seen = Some(number),
            Event::Lost(count) => {
                self.tally.lost += count;
                self.call = Call::Unknown;
                (self.out, self.early, self.wanting) = (None, None, None);
            }
            Event::Fault { .. } => self.early = None,
            Event::Stack { .. } => {}
        }
    }

    fn enter(&mut self, at: u64, number: i64, waits: bool) {
        self.wanting = None;
        if waits {
            self.call = Call::Wait;
            return;
        }
        if self.expected.contains(&number) {
            self.call = Call::Expected;
            return;
        }
        let stack = self.early_of(Source::Call);
        self.call = Call::Unexpected { number, slept: false, stack: stack.clone() };
        self.count(at, Kind::SystemCall, call_name(number), stack);
        self.want(at, Source::Call, Kind::SystemCall);
    }

    /// It goes to sleep by itself.
    fn sleeps(&mut self, at: u64, interruptible: bool) {
        self.wanting = None;
        match &mut self.call {
            Call::Unknown | Call::Expected => {}
            Call::Wait if interruptible => {}
            Call::Wait | Call::None => self.count(at, Kind::Sleep, IN_KERNEL.into(), None),
            Call::Unexpected { number, slept, stack } => {
                let (name, stack, first) =
                    (call_name(*number), stack.clone(), !std::mem::replace(slept, true));
                self.count(at, Kind::Sleep, name.clone(), stack.clone());
                if first {
                    self.count(at, Kind::BlockingCall, name, stack);
                }
            }
        }
    }

    /// It was switched out by itself and is in again: did a release wake it up?
    fn comes_back(&mut self, at: u64) {
        let Some(out) = self.out.take() else { return };
        if self.window.release_between(out, at) {
            return;
        }
        match self.seen.take() {
            Some(number) => {
                self.count(out, Kind::Sleep, call_name(number), None);
                self.count(out, Kind::SystemCall, call_name(number), None);
                self.count(out, Kind::BlockingCall, call_name(number), None);
            }
            None => self.count(out, Kind::Sleep, UNKNOWN.into(), None),
        }
    }

    fn stack(&mut self, of: Source, stack: Arc<Stack>) {
        let wanting = self.wanting.take().filter(|(source, ..)| *source == of);
        if let Some((_, place, period)) = wanting {
            self.tally.firsts[place].stack = Some((period, Arc::clone(&stack)));
        }
        match &mut self.call {
            Call::Unexpected { stack: mine @ None, .. } if of == Source::Call => *mine = Some(stack),
            _ if wanting.is_none() => self.early = Some((of, stack)),
            _ => {}
        }
    }

    fn early_of(&mut self, source: Source) -> Option<Arc<Stack>> {
        self.early.take_if(|(of, _)| *of == source).map(|(_, stack)| stack)
    }

    /// Counts one disturbance that may have its own stack.
    fn count_at(&mut self, at: u64, source: Source, kind: Kind, name: String) {
        self.wanting = None;
        let stack = self.early_of(source);
        self.count(at, kind, name, stack);
        self.want(at, source, kind);
    }

    /// The first of this kind takes the stack that comes next, if it has none yet.
    fn want(&mut self, at: u64, source: Source, kind: Kind) {
        let lacks = |first: &Raw| first.kind == kind && first.stack.is_none();
        let place = self.tally.firsts.iter().position(lacks);
        self.wanting = place.zip(self.window.period_of(at)).map(|(place, period)| (source, place, period));
    }

    fn count(&mut self, at: u64, kind: Kind, name: String, stack: Option<Arc<Stack>>) {
        let Some(period) = self.window.period_of(at) else { return };
        self.tally.add(kind, name, 1, period, at, stack);
    }
}

/// Findings.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) counts: Counts,
    causes: HashMap<(Kind, String), Disturbance>,
    pub(super) firsts: Vec<Raw>,
    pub(super) lost: u64,
}

/// The first of a kind, before its stack is read.
#[derive(Clone, Debug)]
pub(super) struct Raw {
    pub(super) kind: Kind,
    pub(super) name: String,
    pub(super) period: u64,
    pub(super) at_ns: u64,
    /// Its period and its stack, or the period and stack of the first one with a stack.
    pub(super) stack: Option<(u64, Arc<Stack>)>,
}

impl Tally {
    /// `count` more.
    pub(super) fn add(
        &mut self,
        kind: Kind,
        name: String,
        count: u64,
        period: u64,
        at_ns: u64,
        stack: Option<Arc<Stack>>,
    ) {
        if let Some(counted) = self.counts.of_mut(kind) {
            *counted += count;
        }
        let stack = stack.map(|stack| (period, stack));
        match self.firsts.iter_mut().find(|first| first.kind == kind) {
            None => self.firsts.push(Raw { kind, name: name.clone(), period, at_ns, stack }),
            Some(first) if first.stack.is_none() => first.stack = stack,
            Some(_) => {}
        }
        let others = self.causes.keys().filter(|(other, _)| *other == kind).count() >= MOST_CAUSES - 1;
        let known = self.causes.contains_key(&(kind, name.clone()));
        let name = if others && !known { OTHERS.to_owned() } else { name };
        let cause =
            Disturbance { kind, name: name.clone(), count: 0, first_period: period, last_period: 0 };
        let cause = self.causes.entry((kind, name)).or_insert(cause);
        cause.count += count;
        cause.last_period = period;
    }

    /// The most frequent first.
    pub(super) fn causes(&self) -> Vec<Disturbance> {
        let mut causes: Vec<Disturbance> = self.causes.values().cloned().collect();
        causes.sort_by(|a, b| (b.count, a.kind, &a.name).cmp(&(a.count, b.kind, &b.name)));
        causes
    }
}

/// The name of a system call by its number.
pub(super) fn call_name(number: i64) -> String {
    let known = usize::try_from(number).ok().and_then(syscalls::Sysno::new);
    known.map_or_else(|| format!("system call {number}"), |call| call.name().to_owned())
}

/// The number of a system call by its name.
pub(super) fn call_number(name: &str) -> Option<i64> {
    name.parse::<syscalls::Sysno>().ok().map(|call| i64::from(call.id()))
}

/// The kernel does not say.
pub(super) const UNKNOWN: &str = "unknown";
/// Asleep outside of system calls, or where a wait would not sleep.
pub(super) const IN_KERNEL: &str = "page fault or kernel lock";
const OTHERS: &str = "others";

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use types::Instant;

    use super::*;

    const READ: i64 = libc::SYS_read;
    const WAIT: Event = Event::Enter { number: crate::disturbance::WAIT, waits: true };
    const ASLEEP: Event = Event::Switch { preempted: false, interruptible: true, next: String::new() };

    fn preempted_by(next: &str) -> Event {
        Event::Switch { preempted: true, interruptible: false, next: next.into() }
    }

    /// Periods of 100 ns from 1000 ns; each event 10 ns after the one before.
    fn classified(events: impl IntoIterator<Item = Event>) -> Classifier {
        let window = Window::default();
        window.open(Instant::from_nanos(1_000), Duration::from_nanos(100), Duration::ZERO);
        let mut classifier = Classifier::new(window, vec![libc::SYS_sendto]);
        for (number, event) in (0..).zip(events) {
            classifier.take(1_000 + 10 * number, event, &mut |address| format!("at {address}"));
        }
        classifier
    }

    fn counted(events: impl IntoIterator<Item = Event>) -> Vec<(Kind, String, u64)> {
        let mut counted: Vec<_> = classified(events)
            .tally()
            .causes()
            .into_iter()
            .map(|cause| (cause.kind, cause.name, cause.count))
            .collect();
        counted.sort();
        counted
    }

    #[test]
    fn waiting_for_the_period_is_no_disturbance() {
        assert_eq!(counted([WAIT, ASLEEP, WAIT, ASLEEP, WAIT, WAIT, ASLEEP]), []);
        // Nor what comes before anything is known of it.
        assert_eq!(counted([ASLEEP, WAIT, ASLEEP]), []);
    }

    #[test]
    fn read_is_a_call_and_sleeping_read_is_three() {
        let read = Event::Enter { number: READ, waits: false };
        assert_eq!(
            counted([WAIT, ASLEEP, read.clone(), Event::Exit, WAIT, ASLEEP]),
            [(Kind::SystemCall, "read".into(), 1)]
        );
        let name = || "read".to_owned();
        assert_eq!(
            counted([WAIT, ASLEEP, read, ASLEEP, ASLEEP, Event::Exit, WAIT, ASLEEP]),
            [(Kind::Sleep, name(), 2), (Kind::SystemCall, name(), 1), (Kind::BlockingCall, name(), 1)]
        );
    }

    #[test]
    fn extra_sleep_differs_from_the_wait() {
        let own = Event::Enter { number: crate::disturbance::WAIT, waits: false };
        let name = || "clock_nanosleep".to_owned();
        assert_eq!(
            counted([WAIT, ASLEEP, own, ASLEEP, WAIT, ASLEEP]),
            [(Kind::Sleep, name(), 1), (Kind::SystemCall, name(), 1), (Kind::BlockingCall, name(), 1)]
        );
    }

    #[test]
    fn expected_calls_do_not_count() {
        let send = Event::Enter { number: libc::SYS_sendto, waits: false };
        assert_eq!(counted([send, ASLEEP, Event::Exit, WAIT, ASLEEP]), []);
    }

    #[test]
    fn sleeping_outside_of_calls_is_the_kernels() {
        let deep = Event::Switch { preempted: false, interruptible: false, next: String::new() };
        let kernel = (Kind::Sleep, IN_KERNEL.to_owned(), 2);
        assert_eq!(counted([WAIT, deep.clone(), ASLEEP, Event::Exit, deep]), [kernel]);
    }

    #[test]
    fn preemptions_and_faults_are_counted_by_name_and_period() {
        let fault = |major, address| Event::Fault { major, address };
        let mut events = vec![preempted_by("high"), fault(false, 7), fault(true, 8)];
        events.extend((0..10).map(|_| WAIT));
        events.push(preempted_by("high"));
        let classifier = classified(events);
        let tally = classifier.tally();
        let high = Disturbance {
            kind: Kind::Task,
            name: "high".into(),
            count: 2,
            first_period: 0,
            last_period: 1,
        };
        assert_eq!(tally.causes()[0], high);
        assert_eq!((tally.counts.minor_faults, tally.counts.major_faults), (1, 1));
        let kinds: Vec<_> = tally.firsts.iter().map(|first| (first.kind, first.name.as_str())).collect();
        assert_eq!(kinds, [(Kind::Task, "high"), (Kind::MinorFault, "at 7"), (Kind::MajorFault, "at 8")]);
    }

    #[test]
    fn nothing_outside_the_window_counts() {
        let window = Window::default();
        let mut classifier = Classifier::new(window.clone(), Vec::new());
        let mut take = |at, event| classifier.take(at, event, &mut |_| String::new());
        take(5, preempted_by("early"));
        window.open(Instant::from_nanos(1_000), Duration::from_nanos(100), Duration::ZERO);
        take(999, preempted_by("early"));
        window.close(Instant::from_nanos(2_000));
        take(2_001, Event::Fault { major: false, address: 1 });
        take(2_002, Event::Enter { number: READ, waits: false });
        assert_eq!(classifier.tally().counts, Counts::default());
    }

    /// Before its event or after it: the kernel may record either first.
    #[test]
    fn a_stack_finds_its_event() {
        let stack = |byte| Arc::new(Stack { registers: vec![], bytes: vec![byte] });
        let copy = |of, byte| Event::Stack { of, stack: stack(byte) };
        let read = Event::Enter { number: READ, waits: false };
        for events in [
            [copy(Source::Call, 1), read.clone(), ASLEEP, preempted_by("x"), copy(Source::Preemption, 2)],
            [read, copy(Source::Call, 1), ASLEEP, copy(Source::Preemption, 2), preempted_by("x")],
        ] {
            let classifier = classified(events);
            let stacks: Vec<_> =
                classifier.tally().firsts.iter().map(|it| (it.kind, it.stack.clone())).collect();
            let expected = [
                (Kind::SystemCall, Some((0, stack(1)))),
                (Kind::Sleep, Some((0, stack(1)))),
                (Kind::BlockingCall, Some((0, stack(1)))),
                (Kind::Task, Some((0, stack(2)))),
            ];
            assert_eq!(stacks, expected);
        }
    }

    /// The kernel copies some stacks, and no more until it is asked again.
    #[test]
    fn a_first_without_a_stack_takes_the_next_of_its_kind() {
        let mut events = vec![preempted_by("x")];
        events.extend((0..12).map(|_| WAIT));
        let stack = Arc::new(Stack { registers: vec![], bytes: vec![7] });
        events.extend([
            Event::Stack { of: Source::Preemption, stack: Arc::clone(&stack) },
            preempted_by("y"),
        ]);
        let classifier = classified(events);
        let first = &classifier.tally().firsts[0];
        assert_eq!((first.name.as_str(), first.period), ("x", 0));
        assert_eq!(first.stack, Some((1, stack)));
    }

    #[test]
    fn without_tracepoints_sleep_without_release_is_unexpected() {
        let (out, back) = (Event::Out { preempted: false }, Event::In);
        // From 1000 to 1010, and from 1020 to 1040 with a glimpse of a call; then over the release
        // at 1100.
        let mut events = vec![out.clone(), back.clone(), out.clone(), Event::Seen { number: READ }, back];
        events.extend([Event::Out { preempted: true }, Event::In]);
        let mut classifier = classified(events);
        classifier.take(1_090, out, &mut |_| String::new());
        classifier.take(1_101, Event::In, &mut |_| String::new());
        let counts = classifier.tally().counts;
        let expected =
            Counts { preemptions: 1, sleeps: 2, system_calls: 1, blocking_calls: 1, ..Counts::default() };
        assert_eq!(counts, expected);
    }

    #[test]
    fn after_a_loss_nothing_is_assumed() {
        let read = Event::Enter { number: READ, waits: false };
        let classifier = classified([WAIT, read, Event::Lost(5), ASLEEP, WAIT, ASLEEP]);
        assert_eq!((classifier.tally().lost, classifier.tally().counts.sleeps), (5, 0));
    }

    #[test]
    fn causes_past_the_last_place_are_others() {
        let events = (0..40).map(|number| preempted_by(&format!("thread {number}")));
        let causes = classified(events).tally().causes();
        assert_eq!(causes.len(), MOST_CAUSES);
        assert_eq!((causes[0].name.as_str(), causes[0].count), (OTHERS, 25));
    }
}
