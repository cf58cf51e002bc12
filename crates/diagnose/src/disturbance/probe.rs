//! The kernel's events of one thread: opened, and read into [`classify::Event`]s.

use std::io;
use std::sync::Arc;

use rt::clock::RELEASE_MARK;
use types::cause::Kind;

use super::classify::{Event, Source, Stack};
use super::report::Means;
use crate::sys;
use crate::sys::{Ring, Wanted};
use crate::trace::format::EventFormat;
use crate::trace::tracefs::Tracefs;

/// Events of a thread, and the ring they fall into.
#[derive(Debug)]
pub(super) struct Probe {
    events: Vec<Opened>,
    ring: Ring,
    tracepoints: Option<Tracepoints>,
}

/// An event, what it is for, and how often it has happened since it was switched on.
#[derive(Debug)]
struct Opened {
    role: Role,
    event: sys::Event,
    asked: Subscription,
    happened: libc::c_int,
}

/// Way to open an event.
#[derive(Clone, Debug)]
struct Subscription {
    tid: i32,
    source: sys::Source,
    wanted: Wanted,
    /// Empty for none.
    filter: String,
}

impl Subscription {
    fn open(&self) -> io::Result<sys::Event> {
        let event = sys::Event::open(self.tid, self.source, self.wanted)?;
        if !self.filter.is_empty() {
            event.filter(&self.filter)?;
        }
        Ok(event)
    }
}

impl Opened {
    fn new(role: Role, asked: Subscription) -> io::Result<Self> {
        Ok(Self { role, event: asked.open()?, asked, happened: 0 })
    }

    fn switch_on(&self) -> io::Result<()> {
        match self.role {
            // Many at once would fill the ring, and cost the thread much.
            Role::Stack(_) => self.event.enable_for(STACKS_AT_ONCE),
            _ => self.event.enable(),
        }
    }

    /// Opens it again, into the ring of `first`. Linux 6.18 would leave a tracepoint that has
    /// switched itself off stopped.
    fn again(&mut self, first: &sys::Event) -> io::Result<()> {
        self.event = self.asked.open()?;
        self.happened = 0;
        self.event.redirect_to(first)?;
        self.switch_on()
    }
}

/// Purpose of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Switch,
    Enter,
    Exit,
    Fault {
        major: bool,
    },
    Stack(Source),
    /// Carries records that are no samples.
    Carrier,
}

impl Probe {
    /// With tracepoints: all there is to know. `stacks`: with a copy of the stack at each
    /// unexpected event.
    pub(super) fn with_tracepoints(
        tid: i32,
        tracepoints: Tracepoints,
        expected: &[i64],
        stacks: bool,
    ) -> Result<Self, io::Error> {
        let plain = Wanted { kernel: true, fields: true, ..Wanted::default() };
        let bare = Wanted { fields: false, ..plain };
        let mut events = Vec::new();
        let mut open = |role, source, wanted, filter: &str| -> io::Result<()> {
            events
                .push(Opened::new(role, Subscription { tid, source, wanted, filter: filter.to_owned() })?);
            Ok(())
        };
        let point = |id: u16| sys::Source::Tracepoint(id.into());
        let sleep = super::WAIT;
        open(Role::Switch, point(tracepoints.switch.id), plain, "")?;
        open(Role::Enter, point(tracepoints.enter.id), plain, "")?;
        // The wait's own return is not worth an event in every period.
        open(Role::Exit, point(tracepoints.exit.id), plain, &format!("id != {sleep}"))?;
        open(Role::Fault { major: false }, sys::Source::MinorFaults, bare, "")?;
        open(Role::Fault { major: true }, sys::Source::MajorFaults, bare, "")?;
        if stacks && sys::REGISTER_COUNT > 0 {
            let stack = Wanted { stack: STACK_BYTES, ..bare };
            let others: String = expected.iter().map(|call| format!(" && id != {call}")).collect();
            let filter = format!("id != {sleep}{others}");
            open(Role::Stack(Source::Call), point(tracepoints.enter.id), stack, &filter)?;
            if let Some(sleep) = &tracepoints.sleep {
                let filter = format!("rmtp != {RELEASE_MARK}");
                open(Role::Stack(Source::Call), point(sleep.id), stack, &filter)?;
            }
            // As sched_switch shows it, a thread that could have run is in state 0, or in the state
            // behind all others.
            let filter = format!("prev_state == 0 || prev_state == {PREEMPTED}");
            open(Role::Stack(Source::Preemption), point(tracepoints.switch.id), stack, &filter)?;
            // Not a second event of the two above: Linux gives both records the id of one
            // (perf_swevent shares the sample).
            open(Role::Stack(Source::Fault), sys::Source::Faults, stack, "")?;
        }
        Self::begin(events, if stacks { ORDER_WITH_STACKS } else { ORDER }, Some(tracepoints))
    }

    /// Without: what a user may know of threads of his own.
    pub(super) fn with_software_events(tid: i32) -> Result<Self, io::Error> {
        let wanted = Wanted::default();
        let switches = Wanted { switches: true, ..wanted };
        let open = |role, source, wanted| {
            Opened::new(role, Subscription { tid, source, wanted, filter: String::new() })
        };
        let events = vec![
            open(Role::Carrier, sys::Source::Dummy, switches)?,
            open(Role::Fault { major: false }, sys::Source::MinorFaults, wanted)?,
            open(Role::Fault { major: true }, sys::Source::MajorFaults, wanted)?,
        ];
        Self::begin(events, ORDER, None)
    }

    fn begin(events: Vec<Opened>, order: u32, tracepoints: Option<Tracepoints>) -> Result<Self, io::Error> {
        let first = &events[0].event;
        let ring = Ring::of(first, order)?;
        events[1..].iter().try_for_each(|other| other.event.redirect_to(first))?;
        events.iter().try_for_each(Opened::switch_on)?;
        Ok(Self { events, ring, tracepoints })
    }

    pub(super) fn means(&self) -> Means {
        if self.tracepoints.is_some() { Means::Tracepoints } else { Means::SoftwareEvents }
    }

    /// Requests more stacks if the received ones were not the first of a kind; `has` returns true
    /// for a kind that has one.
    pub(super) fn ask_for_stacks(&mut self, has: impl Fn(Kind) -> bool) {
        let Some((first, others)) = self.events.split_first_mut() else { return };
        for opened in others.iter_mut().filter(|opened| opened.happened >= STACKS_AT_ONCE) {
            let enough = match opened.role {
                Role::Stack(Source::Call) => has(Kind::SystemCall) && has(Kind::BlockingCall),
                Role::Stack(Source::Preemption) => has(Kind::Task),
                Role::Stack(Source::Fault) => has(Kind::MinorFault) && has(Kind::MajorFault),
                _ => true,
            };
            if !enough {
                // Without it, counting continues.
                let _ = opened.again(&first.event);
            }
        }
    }

    /// Events, oldest first: the instant in ns of CLOCK_MONOTONIC, and the event.
    pub(super) fn drain(&mut self, mut each: impl FnMut(u64, Event)) {
        let Self { events, ring, tracepoints } = self;
        ring.drain(|kind, misc, record| {
            let told = match kind {
                sys::RECORD_SAMPLE => sample(events, tracepoints.as_ref(), record),
                sys::RECORD_SWITCH => switch(misc, record),
                sys::RECORD_LOST => lost(record),
                _ => None,
            };
            if let Some((at, event)) = told {
                each(at, event);
            }
        });
    }
}

/// PERF_RECORD_SAMPLE with the parts of [`perf::SAMPLE_BYTES`], then the tracepoint's fields or
/// registers and stack.
fn sample(events: &mut [Opened], tracepoints: Option<&Tracepoints>, record: &[u8]) -> Option<(u64, Event)> {
    let id = word(record, 0)?;
    let opened = events.iter_mut().find(|opened| opened.event.id() == id)?;
    opened.happened = opened.happened.saturating_add(1);
    let at = word(record, 24)?;
    let rest = record.get(sys::SAMPLE_BYTES..)?;
    // A 32-bit length precedes the fields.
    let fields = rest.get(4..).unwrap_or_default();
    let event = match opened.role {
        Role::Switch => {
            let tracepoint = &tracepoints?.switch;
            let state = tracepoint.field("prev_state")?.number(fields)?;
            let name = tracepoint.field("next_comm")?.text(fields)?;
            Event::Switch {
                preempted: state & STATES == 0,
                interruptible: state & INTERRUPTIBLE != 0,
                next: String::from_utf8_lossy(name).into_owned(),
            }
        }
        Role::Enter => {
            let tracepoint = &tracepoints?.enter;
            let number = tracepoint.field("id")?.number(fields)?;
            let arguments = tracepoint.field("args")?.bytes(fields)?;
            let fourth = arguments.chunks_exact(arguments.len() / 6).nth(3)?;
            let marked = word(fourth, 0) == Some(RELEASE_MARK as u64);
            Event::Enter { number, waits: number == super::WAIT && marked }
        }
        Role::Exit => Event::Exit,
        Role::Fault { major } => Event::Fault { major, address: word(record, 32)? },
        Role::Stack(of) => Event::Stack { of, stack: Arc::new(stack(rest)?) },
        Role::Carrier => return None,
    };
    Some((at, event))
}

/// Mask of the registers, the registers, the space for the stack, the stack, and how much of it was
/// filled.
fn stack(bytes: &[u8]) -> Option<Stack> {
    if word(bytes, 0)? == 0 {
        return None;
    }
    let registers: Option<Vec<u64>> = (0..sys::REGISTER_COUNT).map(|it| word(bytes, 8 + 8 * it)).collect();
    let rest = bytes.get(8 + 8 * sys::REGISTER_COUNT..)?;
    let room = usize::try_from(word(rest, 0)?).ok()?;
    let filled = usize::try_from(word(rest, 8 + room)?).ok()?;
    Some(Stack { registers: registers?, bytes: rest.get(8..8 + filled.min(room))?.to_vec() })
}

fn switch(misc: u16, record: &[u8]) -> Option<(u64, Event)> {
    let event = match misc & sys::MISC_SWITCH_OUT {
        0 => Event::In,
        _ => Event::Out { preempted: misc & sys::MISC_SWITCH_OUT_PREEMPT != 0 },
    };
    Some((time_of(record)?, event))
}

fn lost(record: &[u8]) -> Option<(u64, Event)> {
    Some((time_of(record)?, Event::Lost(word(record, 8)?)))
}

/// Records that are no samples end with thread, time and id.
fn time_of(record: &[u8]) -> Option<u64> {
    word(record, record.len().checked_sub(16)?)
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// 2^6 pages: 64 KiB are 20 ms of a thread with 500 events a millisecond.
const ORDER: u32 = 6;
/// 1 MiB: the stacks of all kinds at once.
const ORDER_WITH_STACKS: u32 = 8;
/// Stacks of a kind between two looks: the first that come may not be the first that count.
const STACKS_AT_ONCE: libc::c_int = 8;
/// Of the stack, from its end: enough for some dozen calls.
const STACK_BYTES: u32 = 24 << 10;

// States of a thread in sched_switch (include/linux/sched.h, __trace_sched_switch_state).
const STATES: i64 = 0xFF;
const INTERRUPTIBLE: i64 = 1;
const PREEMPTED: i64 = 0x100;

/// Formats of the tracepoints; their ids are what perf_event_open(2) knows them by.
#[derive(Clone, Debug)]
pub(super) struct Tracepoints {
    /// The thread is switched out.
    pub(super) switch: EventFormat,
    /// It enters a system call.
    pub(super) enter: EventFormat,
    /// It comes back from one.
    pub(super) exit: EventFormat,
    /// It enters `clock_nanosleep`; a kernel without `CONFIG_FTRACE_SYSCALLS` has none.
    pub(super) sleep: Option<EventFormat>,
}

impl Tracepoints {
    /// Reads them.
    ///
    /// # Errors
    /// tracefs cannot be opened, or a tracepoint is missing: a sentence.
    pub(super) fn read() -> Result<Self, String> {
        let tracefs = Tracefs::open().map_err(|error| error.to_string())?;
        let read = |event: &str, fields: &[&str]| {
            let text = tracefs.read(&format!("events/{event}/format"));
            let text = text.map_err(|error| format!("the kernel's tracepoint {event}: {error}"))?;
            let format = EventFormat::parse(&text);
            let format = format.ok_or_else(|| format!("the format of {event} is not understood"))?;
            match fields.iter().find(|name| format.field(name).is_none()) {
                None => Ok(format),
                Some(name) => Err(format!("tracepoint {event} has no field {name}")),
            }
        };
        Ok(Self {
            switch: read("sched/sched_switch", &["prev_state", "next_comm"])?,
            enter: read("raw_syscalls/sys_enter", &["id", "args"])?,
            exit: read("raw_syscalls/sys_exit", &["id"])?,
            sleep: read("syscalls/sys_enter_clock_nanosleep", &[]).ok(),
        })
    }
}
