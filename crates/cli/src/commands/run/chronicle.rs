//! Events on the bus and of the axes, a line each: time, cycle, place, and reason.

use std::time::Duration;

use control::bus::ring_end;
use control::observer::{CycleEvent, Happening};
use control::status::Status;
use control::verdict::{ENABLED_AFTER, LOST_AFTER};
use ethercat::al::{AlState, AlStatus};
use ethercat::al_status_code::AlStatusCode;
use ethercat::main_device::{BringUpPhase, Event};
use ethercat::time::Instant;
use motion::supervision::StopReason;
use onbeat::Notice;
use robot::{Interlock, InterlockKind, RobotConfig};
use types::LockState;

use super::interface::Interface;
use super::trouble::{self, MOST_TOLD};
use crate::words::live_line::Voice;
use crate::words::moment::{Moment, span};
use crate::words::sub_devices::place;

/// Tells what happens, until the measurement ends.
pub(super) struct Chronicle {
    voice: Voice,
    sub_devices: Vec<SubDevice>,
    axes: Vec<Axis>,
    interlocks: Vec<Interlock>,
    interface: Interface,
    period: Duration,
    op_since: Option<Instant>,
    /// True once the stop has begun.
    closed: bool,
}

struct SubDevice {
    name: String,
    lost: Option<Lost>,
}

/// Since when the process data of a SubDevice does not come and go.
#[derive(Clone, Copy)]
struct Lost {
    since: Instant,
    cycle: u64,
    told: bool,
}

struct Axis {
    name: String,
    /// Place of its drive, from 0.
    sub_device: usize,
    /// It was told that its drive does not switch on.
    told: bool,
}

impl Lost {
    fn is_long(&self, now: Instant) -> bool {
        now.since(self.since) >= LOST_AFTER
    }
}

impl Chronicle {
    pub(super) fn new(robot: &RobotConfig, interface: Option<String>, voice: Voice) -> Self {
        let sub_devices = robot.bus.sub_devices.iter();
        let axes = robot.axes.iter().map(|axis| Axis {
            name: axis.name.clone(),
            sub_device: axis.sub_device,
            told: false,
        });
        Self {
            voice,
            sub_devices: sub_devices.map(|it| SubDevice { name: it.name.clone(), lost: None }).collect(),
            axes: axes.collect(),
            interlocks: robot.interlocks.clone(),
            interface: Interface::new(interface),
            period: robot.cycle.period,
            op_since: None,
            closed: false,
        }
    }

    /// Begins the stop: SubDevices leave Op because they are told to.
    pub(super) fn close(&mut self) {
        self.closed = true;
        if self.lost() > 0 {
            self.voice.say(
                "not all SubDevices exchange process data: those that do are brought to rest; a second signal ends it within 2 s, or \
                 when the slowest brake holds",
            );
        }
    }

    /// Number of lost SubDevices; their drives' states are of the past.
    pub(super) fn lost(&self) -> usize {
        self.sub_devices.iter().filter(|it| it.lost.is_some_and(|lost| lost.told)).count()
    }

    /// Reason that the network interface carries no frames, if it is known to be at fault.
    pub(super) fn link_trouble(&self) -> Option<&str> {
        self.interface.trouble()
    }

    /// Takes what the cycle tells, in order.
    pub(super) fn take(&mut self, events: impl Iterator<Item = CycleEvent>) {
        let mut events = events.peekable();
        while let Some(CycleEvent { cycle, at, what }) = events.next() {
            match what {
                Happening::SubDeviceLost { position } => {
                    self.sub_devices[position].lost = Some(Lost { since: at, cycle, told: false });
                }
                Happening::SubDeviceBack { position, after } => {
                    let mut positions = vec![position];
                    while let Some(CycleEvent { what: Happening::SubDeviceBack { position, .. }, .. }) =
                        events.next_if(|next| is_back_too(next, cycle, after))
                    {
                        positions.push(position);
                    }
                    self.tell_back(at, cycle, after, &positions);
                }
                Happening::LinkFailed { code } => {
                    if let Some(words) = self.interface.look(Some(code)).map(str::to_owned) {
                        self.say(at, cycle, &words);
                    }
                }
                Happening::LinkWorks { after } => {
                    self.interface.works();
                    let lasted = span(self.period.saturating_mul(u32::try_from(after).unwrap_or(u32::MAX)));
                    let name = self.interface.name();
                    self.say(
                        at,
                        cycle,
                        &format!("interface {name}: it takes frames again after {after} cycles, {lasted}"),
                    );
                }
                Happening::Bus(Event::BringUpPhase { phase: BringUpPhase::Op, at }) => {
                    self.op_since = Some(at)
                }
                what if self.closed => drop(what),
                Happening::AxisStopped { axis, reason, with } => {
                    let mut axes = vec![axis];
                    while let Some(CycleEvent { what: Happening::AxisStopped { axis, .. }, .. }) =
                        events.next_if(|next| is_stopped_too(next, cycle, (reason, with)))
                    {
                        axes.push(axis);
                    }
                    let (who, why) = (
                        self.axes_named(&axes),
                        trouble::stop_words(reason, with.map(|other| &*self.axes[other].name)),
                    );
                    self.say(at, cycle, &format!("{who} held: {why}"));
                }
                Happening::AxisFreed { axis } => {
                    let mut axes = vec![axis];
                    while let Some(CycleEvent { what: Happening::AxisFreed { axis }, .. }) =
                        events.next_if(|next| is_freed_too(next, cycle))
                    {
                        axes.push(axis);
                    }
                    self.say(at, cycle, &format!("{} let go", self.axes_named(&axes)));
                }
                Happening::Bus(Event::Joined { position }) => {
                    let mut positions = vec![usize::from(position)];
                    while let Some(CycleEvent {
                        what: Happening::Bus(Event::Joined { position }), ..
                    }) = events.next_if(|next| has_joined_too(next, cycle))
                    {
                        positions.push(position.into());
                    }
                    let have =
                        if positions.len() == 1 { "has joined and is" } else { "have joined and are" };
                    self.say(at, cycle, &format!("{} {have} in Op", self.places(&positions)));
                }
                what => {
                    if let Some(words) = self.words(at, cycle, what) {
                        self.say(at, cycle, &words);
                    }
                }
            }
        }
    }

    /// Place, event and remedy; `None` for an event that is not worth a line.
    fn words(&self, at: Instant, cycle: u64, what: Happening) -> Option<String> {
        Some(match what {
            Happening::Bus(Event::StateChanged { position, status, code }) => {
                let lost = self.sub_devices.get(usize::from(position)).and_then(|it| it.lost);
                let without = lost.filter(|lost| lost.is_long(at)).map_or(String::new(), |lost| {
                    let (cycles, lasted) = (cycle.saturating_sub(lost.cycle), span(at.since(lost.since)));
                    format!("; {cycles} cycles, {lasted}, without process data before")
                });
                format!("{} is in {status}, AL status code {code}{without}", self.place(position.into()))
            }
            Happening::Bus(Event::Unreachable { position }) => format!(
                "{} does not answer any more: check its power and the cable to it",
                self.place(position.into())
            ),
            Happening::Bus(Event::Absent { position }) => {
                format!("{} is not on the bus; it joins when it comes", self.place(position.into()))
            }
            Happening::Bus(Event::Reconfiguring { position }) => {
                format!("{} is configured anew", self.place(position.into()))
            }
            Happening::Bus(Event::Recovered { position, .. }) => {
                format!("{} is in Op again", self.place(position.into()))
            }
            Happening::Bus(Event::NotRecovered { position, error, again_in }) => {
                let next = match again_in {
                    Some(pause) => format!("tried again in {}", span(pause)),
                    None => "left alone until it vanishes and comes again".to_owned(),
                };
                format!("{} could not be brought back to Op: {error}; {next}", self.place(position.into()))
            }
            Happening::Bus(Event::Stranger { place, identity, known: Some(position) }) => format!(
                "{} stands at place {place} of the bus, and not in its own: it is left in Init; put it back: {identity}",
                self.place(position.into())
            ),
            Happening::Bus(Event::Stranger { place, identity, known: None }) => format!(
                "a SubDevice that is none of those missing stands at place {place} of the bus, and is left in Init: {identity}"
            ),
            Happening::Bus(Event::SyncMissed { position, miss }) => {
                format!("SYNC0 of {} is started anew: {miss}", self.place(position.into()))
            }
            Happening::Bus(Event::Emergency { position, error_code, error_register, manufacturer }) => {
                format!(
                    "{} sends an emergency: {}, error register {error_register:#04x}, {manufacturer:02x?}",
                    self.place(position.into()),
                    trouble::error_code(error_code),
                )
            }
            Happening::Bus(Event::OtherMainDevice { source, frames }) => {
                Notice::OtherMainDevice { source, frames }.to_string()
            }
            Happening::DriveFault { axis, position, code } => {
                let name = self.axes.get(axis).map_or("?", |axis| axis.name.as_str());
                format!(
                    "axis \"{name}\" at {} is in fault: {}",
                    self.place(position),
                    trouble::error_code(code)
                )
            }
            Happening::ClockLock { state, phase_error_ns } => {
                let error = phase_error_ns as f64 / 1e3;
                match state {
                    LockState::Locked => {
                        format!("locked to the reference clock, phase error {error:.1} us")
                    }
                    _ => format!(
                        "not locked to the reference clock any more: it jumped, was not heard of, or this host stood still; phase error {error:.1} us"
                    ),
                }
            }
            Happening::RingOpen { between } => {
                let ends = between.map(|end| ring_end(end).words(|position| self.place(position)));
                format!("the ring is open between {}; it goes on from both ends", ends.join(" and "))
            }
            Happening::RingClosed { after } => {
                let lasted = span(self.period.saturating_mul(u32::try_from(after).unwrap_or(u32::MAX)));
                format!("the ring is closed again after {after} cycles, {lasted}")
            }
            Happening::Interlock { interlock, allows } => {
                let it = self.interlocks.get(interlock)?;
                let does = match (allows, it.kind) {
                    (true, _) => "allows again",
                    (false, InterlockKind::Stop) => "stops its axes",
                    (false, InterlockKind::Enable) => "does not permit its axes to be enabled",
                };
                format!("interlock \"{}\" at {} {does}", it.name, self.place(it.sub_device))
            }
            Happening::Stalled { cycles } if cycles >= STALL => {
                format!(
                    "this process or machine stood still for {cycles} cycles: run it with --explain to see why"
                )
            }
            // Failures end the cycle and come with it.
            _ => return None,
        })
    }

    /// Looks how the cycle stands: who is lost for long, which drives wait for power.
    pub(super) fn look(&mut self, status: &Status, now: Instant) {
        if self.closed {
            return;
        }
        self.tell_lost(status, now);
        if self.op_since.is_some_and(|since| now.since(since) >= ENABLED_AFTER) {
            self.tell_powerless(status, now);
        }
    }

    /// Names those who are newly lost, in one line for each cause: a cable cut takes many.
    fn tell_lost(&mut self, status: &Status, now: Instant) {
        let newly = |it: &SubDevice| it.lost.is_some_and(|lost| !lost.told && lost.is_long(now));
        let mut positions: Vec<usize> =
            (0..self.sub_devices.len()).filter(|&position| newly(&self.sub_devices[position])).collect();
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

    /// Names some who are in the same state.
    fn tell_lost_for(&mut self, positions: &[usize], state: Option<(AlStatus, AlStatusCode)>) {
        let Some(first) = positions.first().and_then(|&first| self.sub_devices[first].lost) else { return };
        let who = self.places(positions);
        for &position in positions {
            if let Some(lost) = &mut self.sub_devices[position].lost {
                lost.told = true;
            }
        }
        let why = match state {
            Some((state, code)) if state != AlStatus::in_state(AlState::Op) => {
                format!("left Op for {state}, AL status code {code}")
            }
            _ => self.interface.look(None).unwrap_or("check power and cables").to_owned(),
        };
        self.say(first.since, first.cycle, &format!("no process data of {who}: {why}"));
    }

    /// Names the drives that were asked to switch on and do not.
    fn tell_powerless(&mut self, status: &Status, now: Instant) {
        for (number, report) in status.axes.iter().enumerate().take(self.axes.len()) {
            let axis = &mut self.axes[number];
            // A missing permission is told as what holds the axis.
            let waits = report.has_waited(self.period) && report.stop.is_none();
            let told = std::mem::replace(&mut axis.told, waits);
            let (true, false, Some(why), Some(state)) =
                (waits, told, report.kept_off(self.period), report.state)
            else {
                continue;
            };
            let (name, drive) = (axis.name.clone(), axis.sub_device);
            let why = trouble::kept_off_words(why);
            let words = format!("axis \"{name}\" at {} stays in {state}: {why}", self.place(drive));
            self.say(now, status.cycle, &words);
        }
    }

    /// Says that they are back, if they were told to be lost.
    fn tell_back(&mut self, at: Instant, cycle: u64, after: u64, positions: &[usize]) {
        let lost: Vec<_> = positions.iter().filter_map(|&it| self.sub_devices[it].lost.take()).collect();
        let Some(since) = lost.iter().filter(|lost| lost.told).map(|lost| lost.since).min() else { return };
        let (who, lasted) = (self.places(positions), span(at.since(since)));
        self.say(at, cycle, &format!("process data again of {who} after {after} cycles, {lasted}"));
    }

    /// A SubDevice, as people find it.
    fn place(&self, position: usize) -> String {
        place(position, self.sub_devices.get(position).map_or("?", |it| it.name.as_str()))
    }

    /// Several of them: a cable cut takes many.
    fn places(&self, positions: &[usize]) -> String {
        match positions.len() {
            all if all > MOST_TOLD && all == self.sub_devices.len() => format!("all {all} SubDevices"),
            many if many > MOST_TOLD => {
                format!("{many} SubDevices, the first {}", self.place(positions[0]))
            }
            _ => {
                let places: Vec<String> = positions.iter().map(|&position| self.place(position)).collect();
                places.join(", ")
            }
        }
    }

    /// Several axes, with their verb.
    fn axes_named(&self, axes: &[usize]) -> String {
        let name = |&axis: &usize| self.axes.get(axis).map_or("?", |it| it.name.as_str());
        match axes {
            [one] => format!("axis \"{}\" is", name(one)),
            all if all.len() > MOST_TOLD && all.len() == self.axes.len() => {
                format!("all {} axes are", all.len())
            }
            many if many.len() > MOST_TOLD => {
                format!("{} axes, the first \"{}\", are", many.len(), name(&many[0]))
            }
            few => format!(
                "axes {} are",
                few.iter().map(|it| format!("\"{}\"", name(it))).collect::<Vec<_>>().join(", ")
            ),
        }
    }

    fn say(&self, at: Instant, cycle: u64, words: &str) {
        self.voice.say(&format!("{}: {words}", Moment::of(at, cycle)));
    }
}

fn is_back_too(next: &CycleEvent, cycle: u64, after: u64) -> bool {
    next.cycle == cycle && matches!(next.what, Happening::SubDeviceBack { after: it, .. } if it == after)
}

fn is_stopped_too(next: &CycleEvent, cycle: u64, why: (StopReason, Option<usize>)) -> bool {
    let Happening::AxisStopped { reason, with, .. } = next.what else { return false };
    next.cycle == cycle && (reason, with) == why
}

fn is_freed_too(next: &CycleEvent, cycle: u64) -> bool {
    next.cycle == cycle && matches!(next.what, Happening::AxisFreed { .. })
}

fn has_joined_too(next: &CycleEvent, cycle: u64) -> bool {
    next.cycle == cycle && matches!(next.what, Happening::Bus(Event::Joined { .. }))
}

/// Cycles that did not take place, in a row, that are worth a line.
const STALL: u64 = 20;

#[cfg(test)]
mod tests {
    use super::*;
    use robot::Overrides;

    fn at(milliseconds: u64) -> Instant {
        Instant::from_nanos((1_000_000 + milliseconds) * 1_000_000)
    }

    fn event(cycle: u64, what: Happening) -> CycleEvent {
        CycleEvent { cycle, at: at(cycle), what }
    }

    /// Lines written, without the wall time.
    fn said(heard: &mut impl FnMut() -> Vec<String>) -> Vec<String> {
        heard().iter().map(|line| line.split_once(' ').expect("a time").1.to_owned()).collect()
    }

    #[test]
    fn a_cut_of_the_cable_is_one_line_with_its_begin_and_one_with_how_long_it_was() {
        let robot = RobotConfig::read_or_built_in(None, Overrides::default()).unwrap();
        let (voice, mut heard) = Voice::overheard();
        let mut chronicle = Chronicle::new(&robot, None, voice);
        let mut status = Status::initial(6, 6);
        status.sub_devices.iter_mut().for_each(|it| it.al_status = AlStatus::in_state(AlState::Op));
        let lost = |position| event(500, Happening::SubDeviceLost { position });
        chronicle.take((4..6).map(lost));
        chronicle.look(&status, at(599));
        assert_eq!(said(&mut heard), [""; 0], "a moment is not worth a word");
        chronicle.look(&status, at(600));
        chronicle.look(&status, at(700));
        let expected = "cycle 500: no process data of SubDevice 4 \"drive-5\", SubDevice 5 \"drive-6\": check power and cables";
        assert_eq!(said(&mut heard), [expected]);
        assert_eq!(chronicle.lost(), 2);
        chronicle
            .take((4..6).map(|position| event(750, Happening::SubDeviceBack { position, after: 252 })));
        let expected = "cycle 750: process data again of SubDevice 4 \"drive-5\", SubDevice 5 \"drive-6\" after 252 cycles, 250 ms";
        assert_eq!(said(&mut heard), [expected]);
        assert_eq!(chronicle.lost(), 0);
    }

    #[test]
    fn a_group_that_joins_is_one_line() {
        let robot = RobotConfig::read_or_built_in(None, Overrides::default()).unwrap();
        let (voice, mut heard) = Voice::overheard();
        let mut chronicle = Chronicle::new(&robot, None, voice);
        let joined = |(cycle, position)| event(cycle, Happening::Bus(Event::Joined { position }));
        chronicle.take([(7, 4), (7, 5), (8, 3)].into_iter().map(joined));
        let expected = [
            "cycle 7: SubDevice 4 \"drive-5\", SubDevice 5 \"drive-6\" have joined and are in Op",
            "cycle 8: SubDevice 3 \"drive-4\" has joined and is in Op",
        ];
        assert_eq!(said(&mut heard), expected);
    }

    #[test]
    fn what_happens_to_all_axes_in_a_cycle_is_one_line_and_nothing_is_said_of_the_stop() {
        let robot = RobotConfig::read_or_built_in(None, Overrides::default()).unwrap();
        let (voice, mut heard) = Voice::overheard();
        let mut chronicle = Chronicle::new(&robot, None, voice);
        let stopped = |axis, reason| event(9, Happening::AxisStopped { axis, reason, with: None });
        let events = (0..6).map(|axis| stopped(axis, StopReason::Outage));
        chronicle.take(events.chain([stopped(2, StopReason::Fault)]));
        let expected = [
            "cycle 9: all 6 axes are held: the axis was not heard of (outage)",
            "cycle 9: axis \"axis-3\" is held: the drive is in fault",
        ];
        assert_eq!(said(&mut heard), expected);
        chronicle.close();
        chronicle.take([stopped(1, StopReason::Ending)].into_iter());
        assert_eq!(said(&mut heard), [""; 0]);
    }
}
