//! Pairs of events that repeat: after three of a kind within a second they are counted, and become
//! one event a second or less.
//!
//! A pair is a begin and its end, for example an axis that is held and released; a host stall is
//! both. Begins of one kind differ only in their cycle and in the length of a stall. Another cause
//! is another kind, and its first events pass. All other events always pass, among them a drive's
//! fault.

use std::collections::VecDeque;
use std::time::Duration;

use ethercat::main_device::CableEnd;
use ethercat::time::Instant;
use ipc::bus::{Event, Happening as Reported};
use types::LockState;
use types::state::{InputLevel, StopReason};
use types::time::span;

use super::events::{event, is_alike, place, sentence};
use super::names::PartNames;
use crate::observer::{Cause, CycleEvent, Happening};

/// Counts pairs of events that repeat.
#[derive(Debug, Default)]
pub struct Repeats {
    kinds: Vec<Kind>,
    /// Time of the newest event or look, on the clock of the events.
    now: Instant,
}

/// Pairs that were counted since the last event about them.
#[derive(Debug)]
pub struct Repeated {
    /// Begins of the newest pairs, which differ in nothing but their axis or SubDevice.
    pub begins: Vec<CycleEvent>,
    /// Pairs, of the axis or SubDevice with the most.
    pub count: u64,
    /// Cycles of the longest pair.
    pub longest: u64,
    /// Time in which they were counted.
    pub within: Duration,
    /// True if the last pair has not ended.
    pub lasts: bool,
}

impl Repeated {
    /// The event for other programs.
    #[must_use]
    pub fn event(&self, names: &PartNames) -> Option<Event> {
        let (first, others) = self.begins.split_first()?;
        let of = event(first, names)?;
        let (severity, sentence) = sentence(first, others, names)?;
        let now = if self.lasts { ", and lasts" } else { "" };
        let longest = names.cycles(self.longest);
        let sentence =
            format!("{sentence}: {} times in {}, longest {longest}{now}", self.count, span(self.within));
        let what = Reported::Repeated {
            others: others.iter().filter_map(|it| place(&it.what)).collect(),
            of: Box::new(of.what),
            count: self.count,
            longest: self.longest,
            within_ns: types::time::nanoseconds(self.within),
            lasts: self.lasts,
        };
        Some(Event { severity, sentence, what, ..of })
    }
}

/// Begins of one kind.
#[derive(Debug)]
struct Kind {
    begin: Begin,
    /// Times of the newest begins, [`PASS`] at most.
    times: VecDeque<Instant>,
    /// Cycle of the last begin, if it has not ended.
    open: Option<u64>,
    counted: Option<Counted>,
}

/// Pairs of a kind that are counted, and not passed on.
#[derive(Debug)]
struct Counted {
    since: Instant,
    /// Time between two events about them.
    every: Duration,
    newest: CycleEvent,
    count: u64,
    longest: u64,
}

/// Begin of a pair: of which axis, SubDevice or part, and why.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Begin {
    /// `because` without the length of a stall.
    Axis {
        axis: usize,
        reason: StopReason,
        with: Option<usize>,
        because: Cause,
    },
    SubDevice {
        position: usize,
    },
    Interlock {
        interlock: usize,
        level: InputLevel,
    },
    Clock,
    Link {
        code: i32,
    },
    Ring {
        between: [CableEnd; 2],
    },
    Stall,
}

impl Begin {
    fn of(what: &Happening) -> Option<Self> {
        Some(match *what {
            Happening::AxisStopped { axis, reason, with, because } => {
                let because = Cause { stalled: because.stalled.min(1), ..because };
                Self::Axis { axis, reason, with, because }
            }
            Happening::SubDeviceLost { position } => Self::SubDevice { position },
            Happening::Interlock { interlock, allows: false, level } => {
                Self::Interlock { interlock, level }
            }
            Happening::ClockLock { state, .. } if state != LockState::Locked => Self::Clock,
            Happening::LinkFailed { code } => Self::Link { code },
            Happening::RingOpen { between } => Self::Ring { between },
            Happening::Stalled { .. } => Self::Stall,
            _ => return None,
        })
    }

    /// True if this event is its end.
    fn ends_with(self, what: &Happening) -> bool {
        match (self, what) {
            (Self::Axis { axis, .. }, &Happening::AxisFreed { axis: other }) => axis == other,
            (Self::SubDevice { position }, &Happening::SubDeviceBack { position: other, .. }) => {
                position == other
            }
            (
                Self::Interlock { interlock, .. },
                &Happening::Interlock { interlock: other, allows: true, .. },
            ) => interlock == other,
            (Self::Clock, Happening::ClockLock { state: LockState::Locked, .. })
            | (Self::Link { .. }, Happening::LinkWorks { .. })
            | (Self::Ring { .. }, Happening::RingClosed { .. }) => true,
            _ => false,
        }
    }
}

impl Repeats {
    /// True if the event is to be passed on; otherwise it is counted.
    #[must_use]
    pub fn passes(&mut self, event: &CycleEvent) -> bool {
        self.now = self.now.max(event.at);
        if let Some(begin) = Begin::of(&event.what) {
            return self.begin(begin, event);
        }
        let mut ended = self.kinds.iter_mut().filter(|kind| kind.begin.ends_with(&event.what)).peekable();
        if ended.peek().is_none() {
            return true;
        }
        // Of a begin that was passed on, or of none that is known, the end is as well.
        let (mut passes, mut known) = (false, false);
        for kind in ended {
            let Some(begun) = kind.open.take() else { continue };
            known = true;
            match &mut kind.counted {
                Some(counted) => counted.longest = counted.longest.max(event.cycle.saturating_sub(begun)),
                None => passes = true,
            }
        }
        passes || !known
    }

    fn begin(&mut self, begin: Begin, event: &CycleEvent) -> bool {
        let place = self.kinds.iter().position(|kind| kind.begin == begin).unwrap_or_else(|| {
            self.kinds.push(Kind { begin, times: VecDeque::new(), open: None, counted: None });
            self.kinds.len() - 1
        });
        let kind = &mut self.kinds[place];
        let is_first = kind.times.len() < PASS || event.at.since(kind.times[0]) > WITHIN;
        if kind.times.len() == PASS {
            kind.times.pop_front();
        }
        kind.times.push_back(event.at);
        let stall = if let Happening::Stalled { cycles } = event.what { Some(cycles) } else { None };
        kind.open = if stall.is_none() { Some(event.cycle) } else { None };
        if kind.counted.is_none() && is_first {
            return true;
        }
        let Some(newest) = copy(event) else { return true };
        let longest = stall.unwrap_or(0);
        match &mut kind.counted {
            Some(counted) => {
                counted.newest = newest;
                counted.count += 1;
                counted.longest = counted.longest.max(longest);
            }
            None => {
                let (since, every) = (event.at, WITHIN);
                kind.counted = Some(Counted { since, every, newest, count: 1, longest });
            }
        }
        false
    }

    /// Reports that are due of the pairs that are counted; `now` on the clock of the events.
    #[must_use]
    pub fn due(&mut self, now: Instant) -> Vec<Repeated> {
        self.now = self.now.max(now);
        let mut due = Vec::new();
        for kind in &mut self.kinds {
            let is_over = kind.times.back().is_none_or(|&last| now.since(last) > WITHIN);
            let Some(counted) = &mut kind.counted else { continue };
            // A pair is waited for, if it ends soon.
            let wait = if kind.open.is_some() { 2 * counted.every } else { counted.every }.min(LONGEST);
            if !is_over && now.since(counted.since) < wait {
                continue;
            }
            add(&mut due, counted.take(now, kind.open.is_some()));
            // The end of a pair that was reported to last is reported as well.
            if is_over || kind.open.is_some() {
                kind.counted = None;
            }
        }
        // Of kinds that do not repeat nothing has to be known any more.
        let is_known = |kind: &Kind| {
            let is_new = kind.times.back().is_some_and(|&last| now.since(last) <= WITHIN);
            is_new || kind.open.is_some() || kind.counted.is_some()
        };
        self.kinds.retain(is_known);
        due
    }

    /// The same at the end of all events.
    #[must_use]
    pub fn rest(&mut self) -> Vec<Repeated> {
        let now = self.now;
        let mut rest = Vec::new();
        for kind in &mut self.kinds {
            let lasts = kind.open.is_some();
            if let Some(counted) = kind.counted.as_mut().filter(|it| it.count > 0) {
                add(&mut rest, counted.take(now, lasts));
            }
        }
        self.kinds.clear();
        rest
    }
}

impl Counted {
    /// The count so far; the next interval begins, twice as long.
    fn take(&mut self, now: Instant, lasts: bool) -> Option<Repeated> {
        let (count, longest) = (std::mem::take(&mut self.count), std::mem::take(&mut self.longest));
        let within = now.since(self.since);
        self.since = now;
        self.every = (2 * self.every).min(LONGEST);
        let begins = vec![copy(&self.newest)?];
        (count > 0).then_some(Repeated { begins, count, longest, within, lasts })
    }
}

/// Adds pairs; alike pairs of another axis or SubDevice become one event.
fn add(all: &mut Vec<Repeated>, one: Option<Repeated>) {
    let Some(mut one) = one else { return };
    let alike = all.iter_mut().find(|it| is_alike(&it.begins[0].what, &one.begins[0].what));
    match alike {
        None => all.push(one),
        Some(it) => {
            it.begins.append(&mut one.begins);
            it.count = it.count.max(one.count);
            it.longest = it.longest.max(one.longest);
            it.lasts |= one.lasts;
        }
    }
}

/// A begin once more; `None` for an event that is none.
fn copy(event: &CycleEvent) -> Option<CycleEvent> {
    let what = match event.what {
        Happening::AxisStopped { axis, reason, with, because } => {
            Happening::AxisStopped { axis, reason, with, because }
        }
        Happening::SubDeviceLost { position } => Happening::SubDeviceLost { position },
        Happening::Interlock { interlock, allows, level } => {
            Happening::Interlock { interlock, allows, level }
        }
        Happening::ClockLock { state, phase_error_ns } => Happening::ClockLock { state, phase_error_ns },
        Happening::LinkFailed { code } => Happening::LinkFailed { code },
        Happening::RingOpen { between } => Happening::RingOpen { between },
        Happening::Stalled { cycles } => Happening::Stalled { cycles },
        _ => return None,
    };
    Some(CycleEvent { cycle: event.cycle, at: event.at, cable: event.cable, what })
}

/// Begins of a kind that are passed on within [`WITHIN`].
const PASS: usize = 3;

/// Time in which more than [`PASS`] begins are a repetition, and after which one has ended.
const WITHIN: Duration = Duration::from_secs(1);

/// Longest time between two events about pairs that repeat.
const LONGEST: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests;
