//! Events on the bus and of the axes, a line each: time, cycle, place, and reason.

use std::time::Duration;

use control::bus::{PartNames, Repeated, Repeats, event, is_alike, place, sentence, span};
use control::observer::{CycleEvent, Happening};
use control::status::Status;
use control::verdict::{ENABLED_AFTER, LOST_AFTER};
use ethercat::al::{AlState, AlStatus};
use ethercat::al_status_code::AlStatusCode;
use ethercat::main_device::{BringUpPhase, CableEnd, Event};
use ethercat::time::Instant;
use ipc::bus::Severity;
use onbeat::compose::findings::kept_off_words;
use robot::RobotConfig;
use serde_json::json;

use super::interface::Interface;
use crate::journal::{self, Fields};
use crate::words::live_line::Voice;
use crate::words::moment::TimeOfDay;

/// Prints events, until the measurement ends.
pub(super) struct Chronicle {
    voice: Voice,
    times: TimeOfDay,
    names: PartNames,
    /// Losses of the SubDevices.
    lost: Vec<Option<Lost>>,
    axes: Vec<AxisLoss>,
    interface: Interface,
    period: Duration,
    op_since: Option<Instant>,
    /// Pairs of events that repeat.
    repeats: Repeats,
    /// True once the stop has begun.
    closed: bool,
}

/// Since when the process data of a SubDevice does not come and go.
#[derive(Clone, Copy)]
struct Lost {
    since: Instant,
    cycle: u64,
    cable: Option<[CableEnd; 2]>,
    reported: bool,
}

struct AxisLoss {
    /// Place of its drive, from 0.
    sub_device: usize,
    /// It was reported that its drive does not switch on.
    reported: bool,
}

impl Lost {
    fn is_long(&self, now: Instant) -> bool {
        now.since(self.since) >= LOST_AFTER
    }
}

impl Chronicle {
    pub(super) fn new(robot: &RobotConfig, names: PartNames, voice: Voice) -> Self {
        let axes = robot.axes.iter().map(|axis| AxisLoss { sub_device: axis.sub_device, reported: false });
        Self {
            voice,
            times: TimeOfDay::default(),
            interface: Interface::new(names.interface.clone()),
            names,
            lost: vec![None; robot.bus.sub_devices.len()],
            axes: axes.collect(),
            period: robot.cycle.period,
            op_since: None,
            repeats: Repeats::default(),
            closed: false,
        }
    }

    /// The same with instants of this clock.
    pub(super) fn with_times(self, times: TimeOfDay) -> Self {
        Self { times, ..self }
    }

    /// Begins the stop: SubDevices leave Op on request.
    pub(super) fn close(&mut self) {
        let rest = self.repeats.rest();
        self.tell_repeated(&rest);
        self.closed = true;
        if self.lost() > 0 {
            self.voice.tell(
                Severity::Warning,
                "not all SubDevices exchange process data: the axes of the others stop; a second \
                 signal ends the run within 2 s, or when the slowest brake shows that it is closed",
            );
        }
    }

    /// Number of lost SubDevices; their drives' states are of the past.
    pub(super) fn lost(&self) -> usize {
        self.lost.iter().filter(|it| it.is_some_and(|lost| lost.reported)).count()
    }

    /// Reason that the network interface carries no frames, if it is known to be at fault.
    pub(super) fn link_trouble(&self) -> Option<&str> {
        self.interface.trouble()
    }

    /// Takes the events of a cycle, in order. Similar events of a cycle share a line.
    pub(super) fn take(&mut self, events: impl Iterator<Item = CycleEvent>) {
        let mut repeats = std::mem::take(&mut self.repeats);
        let events = events.map(|event| (is_silent(&event.what) || repeats.passes(&event), event));
        let mut events = events.peekable();
        while let Some((passes, event)) = events.next() {
            let mut others = Vec::new();
            let is_one = |(also, next): &(bool, CycleEvent)| {
                *also == passes && next.cycle == event.cycle && is_alike(&event.what, &next.what)
            };
            while let Some((_, next)) = events.next_if(is_one) {
                others.push(next);
            }
            if let Some((severity, words)) = self.words(&event, &others).filter(|_| passes) {
                let fields = self.fields([&event].into_iter().chain(&others));
                self.tell(severity, event.at, event.cycle, &words, fields);
            }
        }
        drop(events);
        self.repeats = repeats;
    }

    /// Writes what was counted of events that repeat.
    fn tell_repeated(&self, repeated: &[Repeated]) {
        for event in repeated.iter().filter_map(|it| it.event(&self.names)) {
            let mut fields = Fields::new();
            journal::add(&mut fields, &serde_json::to_value(&event).unwrap_or_default());
            let at = Instant::from_nanos(event.at_ns);
            self.tell(event.severity, at, event.cycle, &event.sentence, fields);
        }
    }

    /// Severity and sentence of an event, with context from the course of the run; `None` if it is
    /// not worth a line here.
    fn words(&mut self, event: &CycleEvent, others: &[CycleEvent]) -> Option<(Severity, String)> {
        let (at, cycle) = (event.at, event.cycle);
        let mut behind = String::new();
        match &event.what {
            Happening::SubDeviceLost { .. } => {
                let lost = |cable| Some(Lost { since: at, cycle, cable, reported: false });
                self.exchange([event].into_iter().chain(others), lost);
                return None;
            }
            Happening::SubDeviceBack { .. } => {
                let was_told = self.exchange([event].into_iter().chain(others), |_| None);
                if !was_told {
                    return None;
                }
            }
            &Happening::LinkFailed { code } => {
                let trouble = self.interface.look(Some(code)).map(str::to_owned);
                self.names.interface = self.interface.name().map(str::to_owned);
                return Some((Severity::Error, trouble?));
            }
            Happening::LinkWorks { .. } => self.interface.works(),
            &Happening::Bus(Event::BringUpPhase { phase, .. }) => {
                // The event itself has the time of the bus.
                if phase == BringUpPhase::Op {
                    self.op_since = Some(at);
                }
                return None;
            }
            // It ends the cycle and comes with it.
            Happening::Bus(Event::Failed(_)) => return None,
            // `events`, the file of events and the history have it.
            Happening::Requested { .. } => return None,
            _ if self.closed => return None,
            &Happening::Stalled { cycles } if cycles < STALL => return None,
            Happening::Bus(Event::StateChanged { position, .. }) => {
                let lost = self.lost.get(usize::from(*position)).copied().flatten();
                if let Some(lost) = lost.filter(|lost| lost.is_long(at)) {
                    let (cycles, lasted) = (cycle.saturating_sub(lost.cycle), span(at.since(lost.since)));
                    behind = format!("; {cycles} cycles, {lasted}, without process data before");
                }
            }
            _ => {}
        }
        sentence(event, others, &self.names).map(|(severity, sentence)| (severity, sentence + &behind))
    }

    /// Notes the loss of SubDevices by their cables, or with none their return; true if a loss was
    /// reported before.
    fn exchange<'a>(
        &mut self,
        of: impl Iterator<Item = &'a CycleEvent>,
        lost: impl Fn(Option<[CableEnd; 2]>) -> Option<Lost>,
    ) -> bool {
        let mut told = false;
        for (position, event) in of.filter_map(|it| Some((place(&it.what)?, it))) {
            let Some(it) = self.lost.get_mut(position) else { continue };
            told |= std::mem::replace(it, lost(event.cable)).is_some_and(|lost| lost.reported);
        }
        told
    }

    /// Evaluates the state of the cycle: SubDevices lost for long, drives waiting for power.
    pub(super) fn look(&mut self, status: &Status, now: Instant) {
        if self.closed {
            return;
        }
        let due = self.repeats.due(now);
        self.tell_repeated(&due);
        self.tell_lost(status, now);
        if self.op_since.is_some_and(|since| now.since(since) >= ENABLED_AFTER) {
            self.tell_powerless(status, now);
        }
    }

    /// Names newly lost SubDevices, in one line for each cause: a cable cut affects many.
    fn tell_lost(&mut self, status: &Status, now: Instant) {
        let is_new = |it: &&Lost| !it.reported;
        let mut new = self.lost.iter().flatten().filter(is_new);
        if !new.any(|it| it.is_long(now)) {
            return;
        }
        // The loss of a SubDevice without process data is found later than the loss of its
        // successors.
        let mut positions: Vec<usize> = (0..self.lost.len())
            .filter(|&position| self.lost[position].as_ref().is_some_and(|it| is_new(&it)))
            .collect();
        while let Some(&first) = positions.first() {
            let state = |position: usize| {
                status.sub_devices.get(position).map(|it| (it.al_status, it.al_status_code))
            };
            let (alike, others): (Vec<_>, Vec<_>) =
                positions.into_iter().partition(|&position| state(position) == state(first));
            self.tell_lost_for(&alike, state(first));
            positions = others;
        }
    }

    /// Names lost SubDevices in the same state.
    fn tell_lost_for(&mut self, positions: &[usize], state: Option<(AlStatus, AlStatusCode)>) {
        let Some(first) = positions.first().and_then(|&first| self.lost[first]) else { return };
        for &position in positions {
            if let Some(lost) = &mut self.lost[position] {
                lost.reported = true;
            }
        }
        let why = match state {
            Some((state, code)) if state != AlStatus::in_state(AlState::Op) => match code {
                AlStatusCode::NO_ERROR => {
                    format!("in {state} without an AL status code, as after a loss of power")
                }
                code => format!("left Op for {state}, AL status code {code}"),
            },
            _ => self.interface.look(None).unwrap_or("check power and cables").to_owned(),
        };
        let event = |&position: &usize| {
            let Lost { since: at, cycle, cable, .. } = self.lost[position].unwrap_or(first);
            CycleEvent { cycle, at, cable, what: Happening::SubDeviceLost { position } }
        };
        let lost: Vec<_> = positions.iter().map(event).collect();
        if let Some((severity, sentence)) = sentence(&lost[0], &lost[1..], &self.names) {
            let fields = self.fields(&lost);
            self.tell(severity, first.since, first.cycle, &format!("{sentence}: {why}"), fields);
        }
    }

    /// Names the drives that were asked to switch on and do not.
    fn tell_powerless(&mut self, status: &Status, now: Instant) {
        for (number, report) in status.axes.iter().enumerate().take(self.axes.len()) {
            let axis = &mut self.axes[number];
            // A missing permission is reported as the stop of the axis.
            let waits = report.has_waited(self.period) && report.stop.is_none();
            let told = std::mem::replace(&mut axis.reported, waits);
            let (true, false, Some(why), Some(state)) =
                (waits, told, report.kept_off(self.period), report.state)
            else {
                continue;
            };
            let (name, drive) = (self.names.axis(number), self.names.sub_device(axis.sub_device));
            let why = kept_off_words(why);
            let words = format!("axis \"{name}\" at {drive} remains in {state}: {why}");
            let what = json!({ "event": "not_enabled", "cycle": status.cycle, "at_ns": now.as_nanos(), "axis": number });
            let mut fields = Fields::new();
            journal::add(&mut fields, &what);
            self.tell(Severity::Error, now, status.cycle, &words, fields);
        }
    }

    fn tell(&self, severity: Severity, at: Instant, cycle: u64, words: &str, fields: Fields) {
        self.voice.tell_with(severity, &format!("{}: {words}", self.times.moment(at, cycle)), fields);
    }

    /// Fields that the journal keeps of events that are one line.
    fn fields<'a>(&self, events: impl IntoIterator<Item = &'a CycleEvent>) -> Fields {
        let mut fields = Fields::new();
        for event in events.into_iter().filter_map(|it| event(it, &self.names)) {
            journal::add(&mut fields, &serde_json::to_value(event).unwrap_or_default());
        }
        fields
    }
}

/// True of an event without a line here: losses have one once they are long, short stalls never.
fn is_silent(what: &Happening) -> bool {
    match *what {
        Happening::SubDeviceLost { .. } | Happening::SubDeviceBack { .. } => true,
        Happening::Stalled { cycles } => cycles < STALL,
        _ => false,
    }
}

/// Cycles that did not take place, in a row, that are worth a line.
const STALL: u64 = 20;

#[cfg(test)]
mod tests {
    use control::observer::Cause;

    use super::*;
    use motion::supervision::StopReason;
    use onbeat::compose::names::part_names;
    use robot::Overrides;

    fn at(milliseconds: u64) -> Instant {
        Instant::from_nanos((1_000_000 + milliseconds) * 1_000_000)
    }

    fn event(cycle: u64, what: Happening) -> CycleEvent {
        CycleEvent { cycle, at: at(cycle), cable: None, what }
    }

    /// Lines written, without the wall time.
    fn said(heard: &mut impl FnMut() -> Vec<String>) -> Vec<String> {
        heard().iter().map(|line| line.split_once(' ').expect("a time").1.to_owned()).collect()
    }

    #[test]
    fn a_cable_cut_has_a_line_at_its_start_and_one_at_its_end() {
        let robot = RobotConfig::read_or_built_in(None, Overrides::default()).unwrap();
        let (voice, mut heard) = Voice::overheard();
        let mut chronicle = Chronicle::new(&robot, part_names(&robot, None), voice);
        let mut status = Status::initial(6, 6);
        status.sub_devices.iter_mut().for_each(|it| it.al_status = AlStatus::in_state(AlState::Op));
        let end = |position: usize, port| CableEnd { position: Some(position as u16), port: Some(port) };
        let lost = |position: usize| CycleEvent {
            cable: Some([end(position - 1, 1), end(position, 0)]),
            ..event(500, Happening::SubDeviceLost { position })
        };
        chronicle.take((4..6).map(lost));
        chronicle.look(&status, at(599));
        assert_eq!(said(&mut heard), [""; 0], "a moment is not worth a word");
        chronicle.look(&status, at(600));
        chronicle.look(&status, at(700));
        let expected = "cycle 500: no process data of SubDevice 4 \"drive-5\", SubDevice 5 \"drive-6\", behind the cable between SubDevice 3 \"drive-4\" \
                        port 1 and SubDevice 4 \"drive-5\" port 0: check power and cables";
        assert_eq!(said(&mut heard), [expected]);
        assert_eq!(chronicle.lost(), 2);
        chronicle
            .take((4..6).map(|position| event(750, Happening::SubDeviceBack { position, after: 252 })));
        let expected = "cycle 750: process data again of SubDevice 4 \"drive-5\", SubDevice 5 \"drive-6\" after 252 cycles, 252 ms";
        assert_eq!(said(&mut heard), [expected]);
        assert_eq!(chronicle.lost(), 0);
    }

    // feature(program): events that repeat are one line a second or less, with count and longest duration
    #[test]
    fn pairs_that_repeat_are_counted_and_a_fault_is_not_buried() {
        let robot = RobotConfig::read_or_built_in(None, Overrides::default()).unwrap();
        let (voice, mut heard) = Voice::overheard();
        let mut chronicle = Chronicle::new(&robot, part_names(&robot, None), voice);
        let status = Status::initial(6, 6);
        for number in 0..100 {
            let held = |axis| Happening::AxisStopped {
                axis,
                reason: StopReason::Stale,
                with: None,
                because: Cause::default(),
            };
            let now = 1_000 + number * 40;
            chronicle.take((0..6).map(|axis| event(now, held(axis))));
            if number == 50 {
                let fault = Happening::DriveFault { axis: 1, position: 1, code: 0x7500 };
                chronicle.take([event(now, fault)].into_iter());
            }
            chronicle.take((0..6).map(|axis| event(now + 12, Happening::AxisFreed { axis })));
            chronicle.look(&status, at(now + 20));
        }
        chronicle.close();
        let said = said(&mut heard);
        let lines = |words: &str| said.iter().filter(|line| line.contains(words)).count();
        assert!(said.len() <= 3 + 3 + 4 + 1 + 1, "{said:#?}");
        assert_eq!((lines("0x7500"), lines("released")), (1, 3), "{said:#?}");
        assert!(lines(" times in ") >= 2 && lines("longest 12 cycles") == lines(" times in "), "{said:#?}");
    }

    #[test]
    fn a_group_that_joins_is_one_line() {
        let robot = RobotConfig::read_or_built_in(None, Overrides::default()).unwrap();
        let (voice, mut heard) = Voice::overheard();
        let mut chronicle = Chronicle::new(&robot, part_names(&robot, None), voice);
        let joined = |(cycle, position)| event(cycle, Happening::Bus(Event::Joined { position }));
        chronicle.take([(7, 4), (7, 5), (8, 3)].into_iter().map(joined));
        let expected = [
            "cycle 7: SubDevice 4 \"drive-5\", SubDevice 5 \"drive-6\" have joined and are in Op",
            "cycle 8: SubDevice 3 \"drive-4\" has joined and is in Op",
        ];
        assert_eq!(said(&mut heard), expected);
    }

    #[test]
    fn events_of_all_axes_are_one_line_and_a_stop_is_silent() {
        let robot = RobotConfig::read_or_built_in(None, Overrides::default()).unwrap();
        let (voice, mut heard) = Voice::overheard();
        let mut chronicle = Chronicle::new(&robot, part_names(&robot, None), voice);
        let stopped = |axis, reason| {
            event(9, Happening::AxisStopped { axis, reason, with: None, because: Cause::default() })
        };
        let events = (0..6).map(|axis| stopped(axis, StopReason::Outage));
        chronicle.take(events.chain([stopped(2, StopReason::Fault)]));
        let expected = [
            "cycle 9: all 6 axes are held: no process data of the axis (outage)",
            "cycle 9: axis \"axis-3\" is held: the drive is in fault",
        ];
        assert_eq!(said(&mut heard), expected);
        chronicle.close();
        chronicle.take([stopped(1, StopReason::Ending)].into_iter());
        assert_eq!(said(&mut heard), [""; 0]);
    }
}
