//! Events of a cycle for users and other programs: message, severity and sentence, an arm each.

use ethercat::cia402::ErrorCode;
use ethercat::main_device::Event as BusEvent;
use ethercat::wire::MacAddress;
use ipc::bus::Severity::{Error, Ok as Good, Warning};
use ipc::bus::{Bytes, CableEnd, Event, Happening as Reported, Severity};
use ipc::force::Client;
use ipc::message::control::Action;
use ipc::reference::{Given, Purpose};
use ipc::words::stall;
use types::number::Rounded;
use types::signal::Value;
use types::state::StopReason;
use types::time::span;
use types::{InterlockKind, LockState};

use super::names::{MOST_NAMED, PartNames};
use crate::controller::{AcceptedRequest, BrakeInputCause, IgnoredSetpoint, InterlockCause};
use crate::observer::{Cause, CycleEvent, Happening};
use crate::signal::ReleaseReason;

/// An event for other programs; `None` for one that concerns the cycle alone.
#[must_use]
pub fn event(event: &CycleEvent, names: &PartNames) -> Option<Event> {
    let (what, severity, sentence) = described(event, &[], names)?;
    let between = match event.what {
        Happening::RingOpen { between } => Some(between),
        _ => event.cable,
    };
    Some(Event { cycle: event.cycle, at_ns: event.at.as_nanos(), severity, sentence, between, what })
}

/// Severity and sentence of an event that may concern several axes or SubDevices: `others` are
/// further events that are [alike](is_alike). `None` for an event that concerns the cycle alone.
#[must_use]
pub fn sentence(
    event: &CycleEvent,
    others: &[CycleEvent],
    names: &PartNames,
) -> Option<(Severity, String)> {
    described(event, others, names).map(|(_, severity, sentence)| (severity, sentence))
}

/// True if two events differ in nothing but their axis, SubDevice or signal, and have one sentence.
#[must_use]
pub fn is_alike(one: &Happening, other: &Happening) -> bool {
    match (one, other) {
        (Happening::SubDeviceLost { .. }, Happening::SubDeviceLost { .. })
        | (Happening::AxisFreed { .. }, Happening::AxisFreed { .. })
        | (Happening::Bus(BusEvent::Joined { .. }), Happening::Bus(BusEvent::Joined { .. })) => true,
        (Happening::SubDeviceBack { after, .. }, Happening::SubDeviceBack { after: other, .. }) => {
            after == other
        }
        (
            Happening::AxisStopped { reason, with, because, .. },
            Happening::AxisStopped { reason: other, with: other_with, because: other_cause, .. },
        ) => (reason, with, because) == (other, other_with, other_cause),
        (Happening::SignalReleased { reason, .. }, Happening::SignalReleased { reason: other, .. }) => {
            reason == other
        }
        _ => false,
    }
}

/// Place of the axis or SubDevice of an event that may be alike another.
#[must_use]
pub fn place(what: &Happening) -> Option<usize> {
    match *what {
        Happening::SubDeviceLost { position } | Happening::SubDeviceBack { position, .. } => Some(position),
        Happening::AxisStopped { axis, .. } | Happening::AxisFreed { axis } => Some(axis),
        Happening::Bus(BusEvent::Joined { position }) => Some(position.into()),
        _ => None,
    }
}

type Described = (Reported, Severity, String);

fn described(event: &CycleEvent, others: &[CycleEvent], names: &PartNames) -> Option<Described> {
    let places = || others.iter().filter_map(|it| place(&it.what));
    let all = |first: usize| [first].into_iter().chain(places()).collect::<Vec<_>>();
    let cable = common_cable(event, others).map(|ends| names.cable_to(ends));
    Some(match event.what {
        Happening::Bus(ref event) => return of_bus(event, cable, &all, names),
        Happening::SubDeviceLost { position } => (
            Reported::SubDeviceLost { position },
            Error,
            format!("no process data of {}{}", names.sub_devices(&all(position)), behind(cable)),
        ),
        Happening::SubDeviceBack { position, after } => (
            Reported::SubDeviceBack { position, after },
            Good,
            format!(
                "process data again of {}{} after {}",
                names.sub_devices(&all(position)),
                behind(cable),
                names.cycles(after)
            ),
        ),
        Happening::ClockLock { state, phase_error_ns } => {
            let error = phase_error_ns as f64 / 1e3;
            let (severity, sentence) = match state {
                LockState::Locked => (Good, "locked to the reference clock"),
                _ => (
                    Warning,
                    "no longer locked to the reference clock: it jumped, its time was not \
                     received, or this host stalled",
                ),
            };
            let separator = if severity == Good { ',' } else { ';' };
            (
                Reported::ClockLock { state: state.name().to_owned(), phase_error_ns },
                severity,
                format!("{sentence}{separator} phase error {error:.1} us"),
            )
        }
        Happening::LinkFailed { code } => (
            Reported::LinkFailed { code },
            Error,
            format!("{}: {}", names.interface(), std::io::Error::from_raw_os_error(code)),
        ),
        Happening::LinkWorks { after } => (
            Reported::LinkWorks { after },
            Good,
            format!("{}: it takes frames again after {}", names.interface(), names.cycles(after)),
        ),
        Happening::RingOpen { between } => {
            let between = names.cable(between);
            let sentence = format!("the ring is open between {between}; frames now travel from both ends");
            (Reported::RingOpen, Warning, sentence)
        }
        Happening::RingClosed { after } => (
            Reported::RingClosed { after },
            Good,
            format!("the ring is closed again after {}", names.cycles(after)),
        ),
        Happening::AxisStopped { axis, reason, with, because } => {
            let what = Reported::AxisStopped {
                axis,
                reason: reason.words().to_owned(),
                stopped_with: with,
                interlock: because.interlock.map(|it| it.interlock),
                stalled: because.stalled,
            };
            let why = stop_reason(&all(axis), reason, with, because, names);
            let severity = if because.ended { Good } else { Error };
            (what, severity, format!("{} held: {why}", names.axes_are(&all(axis))))
        }
        Happening::QuickStopIgnored { axis, step } => (
            Reported::QuickStopIgnored { axis, step: step.words().to_owned() },
            Error,
            format!("axis \"{}\": {}", names.axis(axis), step.sentence()),
        ),
        Happening::Overshoot { axis, by } => (
            Reported::Overshoot { axis, by: by.0 },
            Warning,
            format!(
                "axis \"{}\": was {:.4} rad beyond its position limit: in torque modes its drive brakes it; check \
                 stop_deceleration and 0x6084 of the drive",
                names.axis(axis),
                by.0
            ),
        ),
        Happening::AxisFreed { axis } => {
            (Reported::AxisFreed { axis }, Good, format!("{} released", names.axes_are(&all(axis))))
        }
        Happening::SetpointIgnored { axis, what: IgnoredSetpoint { mode, given } } => {
            let (given, takes) = (given.setpoint(), mode.cyclic().setpoint());
            let what = Reported::SetpointIgnored {
                axis,
                mode: mode.name().to_owned(),
                given: given.to_owned(),
                takes: takes.to_owned(),
            };
            let sentence = format!(
                "axis \"{}\" does not move: its controller sets {given} and no more, and in {} it takes {takes}",
                names.axis(axis),
                mode.name()
            );
            (what, Warning, sentence)
        }
        Happening::DriveFault { axis, position, code } => (
            Reported::DriveFault { axis, position, error_code: code },
            Error,
            format!(
                "axis \"{}\" at {} is in fault: {}",
                names.axis(axis),
                names.sub_device(position),
                error_code(code)
            ),
        ),
        Happening::Interlock { interlock, allows, level } => {
            let known = names.interlocks.get(interlock);
            let (severity, does) = match (allows, known.map(|it| it.kind)) {
                (true, Some(InterlockKind::Jog)) => (Good, "permits jogs"),
                (true, Some(InterlockKind::Automatic)) => (Good, "permits automatic motion again"),
                (false, Some(InterlockKind::Jog)) => (Good, "permits no jog"),
                (false, Some(InterlockKind::Automatic)) => {
                    (Warning, "puts its axes in set-up mode: only jogs move them")
                }
                (true, _) => (Good, "permits again"),
                (false, Some(InterlockKind::Stop)) => (Warning, "stops its axes"),
                (false, _) => (Warning, "does not permit its axes to be enabled"),
            };
            let sentence = format!("{} {level}: it {does}", names.interlock(interlock));
            let level = level.words().to_owned();
            (Reported::Interlock { interlock, allows, level }, severity, sentence)
        }
        Happening::PositionGiven { given, outcome, by } => {
            let Given { axis, position, purpose } = given;
            let accepted = purpose == Purpose::Accept;
            let Client { user, process } = by;
            let what = Reported::PositionGiven {
                axis,
                accepted,
                before: outcome.ok(),
                position,
                user,
                process,
                refused: outcome.err().map(|why| why.to_string()),
            };
            let (name, by, position) = (names.axis(axis), client(by), Rounded(position));
            let outcome = outcome.map(Rounded);
            match outcome {
                Ok(before) if accepted => {
                    let does = format!("position {position} rad accepted for axis \"{name}\" by {by}");
                    (what, Warning, format!("{does}: its drive reports {before} rad"))
                }
                Ok(before) => {
                    let does = format!("position of axis \"{name}\" set to {position} rad by {by}");
                    (what, Warning, format!("{does}: it was {before} rad"))
                }
                Err(why) => {
                    let verb = if accepted { "accepted" } else { "set" };
                    let does = format!("position {position} rad of axis \"{name}\" not {verb} for {by}");
                    (what, Warning, format!("{does}: {why}"))
                }
            }
        }
        Happening::Requested { request: AcceptedRequest { what, by } } => {
            let request = match what {
                Action::Enable => "enabling of the drives".to_owned(),
                Action::ResetFaults => "reset of faults".to_owned(),
                Action::Home(axis) => format!("homing of axis \"{}\"", names.axis(axis as usize)),
                other => format!("{other:?}"),
            };
            let of = by.map_or_else(|| "the program itself".to_owned(), client);
            let (user, process) = (by.map(|by| by.user), by.map(|by| by.process));
            let sentence = format!("{request} requested by {of}");
            (Reported::Requested { request, user, process }, Good, sentence)
        }
        Happening::SignalForced { ref signal, value, time, by } => {
            let Client { user, process } = by;
            let for_ns = types::time::nanoseconds(time);
            let what = Reported::SignalForced { signal: signal.to_string(), value, for_ns, user, process };
            let forced = match value {
                Value::Real(value) => Rounded(value).to_string(),
                value => value.to_string(),
            };
            let sentence =
                format!("signal \"{signal}\" is forced to {forced} for {}, by {}", span(time), client(by));
            (what, Warning, sentence)
        }
        Happening::SignalReleased { ref signal, reason, after } => {
            let by = match reason {
                ReleaseReason::Request(by) => Some(by),
                _ => None,
            };
            let (signals, are) = signals_are(signal, others);
            let lasted =
                if others.is_empty() { format!(" after {}", names.cycles(after)) } else { String::new() };
            let why = by.map_or_else(
                || reason.words().to_owned(),
                |by| format!("{} by {}", reason.words(), client(by)),
            );
            let what = Reported::SignalReleased {
                signal: signal.to_string(),
                reason: reason.words().to_owned(),
                after,
                user: by.map(|by| by.user),
                process: by.map(|by| by.process),
            };
            (what, Good, format!("{signals} {are} no longer forced{lasted}: {why}"))
        }
        Happening::Stalled { cycles } => (
            Reported::Stalled { cycles },
            Warning,
            format!("this computer stalled for {cycles} cycles: run with --explain to see why"),
        ),
    })
}

/// The cable to the SubDevice of an event; for several events the cable upstream of all of them, if
/// there is one.
fn common_cable(event: &CycleEvent, others: &[CycleEvent]) -> Option<[CableEnd; 2]> {
    let first = event.cable?;
    let is_one = |position| place(&event.what) == Some(position);
    let is_among = |position| is_one(position) || others.iter().any(|it| place(&it.what) == Some(position));
    let upstream = |it: &CycleEvent| it.cable.and_then(|ends| ends[0].position).map(usize::from);
    let is_behind = |it: &CycleEvent| it.cable == event.cable || upstream(it).is_some_and(is_among);
    others.iter().all(is_behind).then_some(first)
}

/// The cable behind which that is of which a sentence speaks.
fn behind(cable: Option<String>) -> String {
    cable.map_or_else(String::new, |cable| format!(", behind {cable}"))
}

fn of_bus(
    event: &BusEvent,
    cable: Option<String>,
    all: &dyn Fn(usize) -> Vec<usize>,
    names: &PartNames,
) -> Option<Described> {
    let who = |position: u16| names.sub_device(position.into());
    Some(match *event {
        BusEvent::BringUpPhase { phase, .. } => (
            Reported::Phase { phase: phase.words().to_owned() },
            Good,
            format!("the bus is in phase {phase}"),
        ),
        BusEvent::Failed(ref error) => {
            let text = error.to_string();
            (Reported::BusFailed { text: text.clone() }, Error, format!("the bus failed: {text}"))
        }
        BusEvent::StateChanged { position, status, code } => (
            Reported::StateChanged {
                position: position.into(),
                state: status.to_string(),
                al_status_code: code.0,
                al_status_text: code.text().to_owned(),
            },
            Error,
            format!("{} is in {status}, AL status code {code}", who(position)),
        ),
        BusEvent::Unreachable { position } => (
            Reported::Unreachable { position: position.into() },
            Error,
            format!(
                "{} does not answer any more: check its power and {}",
                who(position),
                cable.as_deref().unwrap_or("the cable to it")
            ),
        ),
        BusEvent::Absent { position } => (
            Reported::Absent { position: position.into() },
            Warning,
            format!("{} is not on the bus; it joins when it comes", who(position)),
        ),
        BusEvent::Joined { position } => {
            let all = all(position.into());
            let have = if all.len() == 1 { "has joined and is" } else { "have joined and are" };
            (
                Reported::Joined { position: position.into() },
                Good,
                format!("{} {have} in Op{}", names.sub_devices(&all), behind(cable)),
            )
        }
        BusEvent::Reconfiguring { position } => (
            Reported::Reconfiguring { position: position.into() },
            Warning,
            format!("{} is configured again{}", who(position), behind(cable)),
        ),
        BusEvent::Recovered { position, anew } => (
            Reported::Recovered { position: position.into(), anew },
            Good,
            format!("{} is in Op again{}", who(position), behind(cable)),
        ),
        BusEvent::NotRecovered { position, ref error, again_in } => {
            let text = error.to_string();
            let next = match again_in {
                Some(pause) => format!("tried again in {}", span(pause)),
                None => "left alone until it vanishes and comes again".to_owned(),
            };
            let cable = cable.map_or_else(String::new, |cable| format!(", behind {cable},"));
            let sentence =
                format!("{}{cable} could not be brought back to Op: {text}; {next}", who(position));
            let again_in_ns = again_in.map(types::time::nanoseconds);
            (Reported::NotRecovered { position: position.into(), text, again_in_ns }, Error, sentence)
        }
        BusEvent::Stranger { place, ref identity, expected, known } => {
            let found = format!("{identity} serial {}", identity.serial);
            let its = expected
                .map_or_else(String::new, |it| format!(", where {} is expected{}", who(it), behind(cable)));
            let sentence = match known {
                Some(position) => format!(
                    "{} is at position {place} of the bus{its}, and not at its own position: left \
                     in Init; put it back: {found}",
                    who(position)
                ),
                None => format!(
                    "unexpected SubDevice at position {place} of the bus{its}, left in Init: {found}"
                ),
            };
            let what = Reported::Stranger {
                place: place.into(),
                expected: expected.map(usize::from),
                known: known.map(usize::from),
                vendor_id: identity.vendor_id,
                product_code: identity.product_code,
                revision: identity.revision,
                serial: identity.serial,
            };
            (what, Warning, sentence)
        }
        BusEvent::SyncMissed { position, miss } => {
            let text = miss.to_string();
            let sentence = format!("SYNC0 of {} is restarted: {text}", who(position));
            (Reported::SyncMissed { position: position.into(), text }, Warning, sentence)
        }
        BusEvent::ClockUnsettled { position, difference } => (
            Reported::ClockUnsettled { position: position.into(), difference_ns: difference },
            Warning,
            format!(
                "the clock of {} is {:.1} us off the reference clock before the cycle begins, expected below 1 us: its SYNC0 and its \
                 times are off by as much until the cycle has brought it closer",
                who(position),
                f64::from(difference) / 1e3
            ),
        ),
        BusEvent::OtherMainDevice { source, frames } => (
            Reported::OtherMainDevice { source: source.to_string(), frames },
            Warning,
            other_main_device(source, frames),
        ),
        BusEvent::Emergency { position, error_code: code, error_register, manufacturer } => (
            Reported::Emergency {
                position: position.into(),
                error_code: code,
                error_register,
                data: Bytes(manufacturer.into()),
            },
            if code == 0 { Good } else { Error },
            format!(
                "{} sends an emergency: {}, error register {error_register:#04x}, {manufacturer:02x?}",
                who(position),
                if code == 0 { "its error is reset (0x0000)".to_owned() } else { error_code(code) }
            ),
        ),
        BusEvent::Mailbox(_) => return None,
    })
}

/// The released signal, and the signals of similar events.
fn signals_are(first: &str, others: &[CycleEvent]) -> (String, &'static str) {
    let names = others.iter().filter_map(|other| match &other.what {
        Happening::SignalReleased { signal, .. } => Some(&**signal),
        _ => None,
    });
    let quoted = |name: &str| format!("\"{name}\"");
    match others.len() {
        0 => (format!("signal {}", quoted(first)), "is"),
        more if more >= MOST_NAMED => {
            (format!("{} signals, the first {},", more + 1, quoted(first)), "are")
        }
        _ => {
            let all: Vec<String> = [first].into_iter().chain(names).map(quoted).collect();
            (format!("signals {}", all.join(", ")), "are")
        }
    }
}

/// A client in words.
fn client(Client { user, process }: Client) -> String {
    format!("process {process} of user {user}")
}

/// Another MainDevice on the wire, as a sentence.
#[must_use]
pub fn other_main_device(source: MacAddress, frames: u64) -> String {
    format!(
        "another MainDevice, source {source}, is on this wire: {frames} frames that are not ours; end one of the two"
    )
}

/// Reason that these axes are stopped for, in words; `with`: place of the axis that they were
/// stopped with.
#[must_use]
pub fn stop_reason(
    axes: &[usize],
    reason: StopReason,
    with: Option<usize>,
    because: Cause,
    names: &PartNames,
) -> String {
    match because {
        Cause { interlock: Some(InterlockCause { interlock, level, .. }), .. }
            if reason == StopReason::SetUp =>
        {
            format!("{reason} ({} {level})", names.interlock(interlock))
        }
        Cause { interlock: Some(InterlockCause { interlock, .. }), .. }
            if reason == StopReason::AwaitsStart =>
        {
            format!("{reason} ({})", names.interlock(interlock))
        }
        _ if reason == StopReason::AfterSetUp => reason.words().to_owned(),
        Cause { interlock: Some(InterlockCause { interlock, level, permits: false }), .. } => {
            format!("{} {level}", names.interlock(interlock))
        }
        Cause { interlock: Some(InterlockCause { interlock, .. }), .. } => {
            format!("{} has stopped it and permits again", names.interlock(interlock))
        }
        Cause { brake: Some(BrakeInputCause { place, level }), .. } if reason.is_of_brake_feedback() => {
            let (input, remedy) = (names.brake_input(place), ipc::words::brake_remedy(reason));
            let remedy =
                remedy.map_or_else(String::new, |it| format!("; {it}, then `onbeat control reset`"));
            format!("{}: {input} {level}{remedy}", reason.words())
        }
        Cause { ended: true, .. } => ipc::words::NO_COMMAND.to_owned(),
        Cause { stalled: 1.., .. } if reason == StopReason::Outage => stall(because.stalled, names.period),
        _ => {
            let axis = |other| format!(" (axis \"{}\")", names.axis(other));
            let with = with.map_or_else(String::new, axis);
            let name = match axes {
                [one] => names.axis(*one),
                _ => "AXIS",
            };
            let remedy = match ipc::words::waits_for(reason, name) {
                Some(remedy) => format!("; {remedy}"),
                None if reason.is_unreferenced() => format!("; {}", names.unreferenced(axes)),
                None if reason == StopReason::AwaitsStart => "; type `onbeat control enable`".to_owned(),
                None => String::new(),
            };
            let moved = because.moved.map_or_else(String::new, |[before, now]| {
                format!(", from {} to {} rad", Rounded(before.0), Rounded(now.0))
            });
            format!("{}{moved}{with}{remedy}", reason.words())
        }
    }
}

/// Error code of a drive, object 0x603F, as words with a remedy.
#[must_use]
pub fn error_code(code: u16) -> String {
    match (code, ErrorCode(code), ErrorCode(code).remedy()) {
        (0, ..) => "no error code reported".to_owned(),
        (_, error, "") => error.to_string(),
        (_, error, remedy) => format!("{error} ({remedy})"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use ethercat::cia402::{AxisMode, CyclicMode};
    use ethercat::main_device::BringUpPhase;
    use ethercat::sii::Identity;
    use ethercat::time::Instant;
    use ipc::description::Referencing;
    use motion::supervision::StopReason;
    use types::Value;

    use super::*;

    fn names() -> PartNames {
        let names = |count| (1..=count).map(|it| format!("drive-{it}")).collect::<Vec<_>>();
        PartNames {
            sub_devices: names(3),
            axes: names(3),
            period: Duration::from_millis(2),
            ..PartNames::default()
        }
    }

    fn of(what: Happening) -> Event {
        let at = Instant::from_nanos(70);
        event(&CycleEvent { cycle: 7, at, cable: None, what }, &names()).expect("an event for others")
    }

    /// Every phase of the bus has a different name in an event, and is found by it.
    #[test]
    fn every_phase_round_trips_by_name() {
        for phase in BringUpPhase::ALL {
            let told = of(Happening::Bus(BusEvent::BringUpPhase { phase, at: Instant::from_nanos(1) }));
            let line = serde_json::to_string(&told).unwrap();
            let Reported::Phase { phase: name } = serde_json::from_str::<Event>(&line).unwrap().what else {
                panic!("{line}");
            };
            assert_eq!(BringUpPhase::from_words(&name), Some(phase), "{line}");
            assert_eq!(told.sentence, format!("the bus is in phase {name}"));
        }
        assert_eq!(BringUpPhase::from_words("op"), None);
    }

    /// An event has message, severity and sentence with its cycle.
    #[test]
    fn an_event_has_its_sentence_and_its_severity() {
        let told = of(Happening::RingClosed { after: 3 });
        assert_eq!((told.cycle, told.at_ns, told.severity), (7, 70, Good));
        assert_eq!(told.sentence, "the ring is closed again after 3 cycles, 6 ms");
        let told = of(Happening::Bus(BusEvent::Unreachable { position: 1 }));
        let expected =
            "SubDevice 1 \"drive-2\" does not answer any more: check its power and the cable to it";
        assert_eq!((told.severity, told.sentence.as_str()), (Error, expected));
        let (error_register, manufacturer) = (0, [0; 5]);
        let reset = BusEvent::Emergency { position: 1, error_code: 0, error_register, manufacturer };
        let told = of(Happening::Bus(reset));
        let expected = "SubDevice 1 \"drive-2\" sends an emergency: its error is reset (0x0000), ";
        assert!(told.severity == Good && told.sentence.starts_with(expected), "{}", told.sentence);
        let told = of(Happening::DriveFault { axis: 0, position: 0, code: 0x2310 });
        let start = "axis \"drive-1\" at SubDevice 0 \"drive-1\" is in fault: 0x2310: ";
        assert!(told.sentence.starts_with(start), "{}", told.sentence);
        let what = IgnoredSetpoint { mode: AxisMode::CyclicVelocity, given: CyclicMode::Position };
        let told = of(Happening::SetpointIgnored { axis: 1, what });
        let expected = "axis \"drive-2\" does not move: its controller sets a position and no more, and in csv it takes a velocity";
        assert_eq!((told.severity, told.sentence.as_str()), (Warning, expected));
    }

    // feature(program): `run` and `events` name only remedies that an unreferenced axis has
    #[test]
    fn an_unreferenced_axis_is_sent_only_where_it_has_a_way() {
        let way = |by_switch, by_measurement| Referencing { by_switch, by_measurement };
        let referencing = vec![way(true, false), way(false, true), way(false, false)];
        let names = PartNames { referencing, ..names() };
        let why = |axes: &[usize]| {
            stop_reason(axes, StopReason::UnreferencedRestart, None, Cause::default(), &names)
        };
        assert!(why(&[0]).ends_with("; home it on a switch"), "{}", why(&[0]));
        assert!(why(&[1]).ends_with("`onbeat control accept-position`"), "{}", why(&[1]));
        assert!(!why(&[1]).contains("switch"), "{}", why(&[1]));
        assert!(why(&[2]).contains("add `homing` with a switch"), "{}", why(&[2]));
        assert!(!why(&[2]).contains("accept-position"), "{}", why(&[2]));
        assert!(why(&[0, 1]).contains("home it on a switch, or"), "{}", why(&[0, 1]));
        let homed = stop_reason(&[1], StopReason::NotHomed, None, Cause::default(), &names);
        assert!(homed.contains("`onbeat control home drive-2`"), "{homed}");
    }

    /// A force and its end have the signal, the value, the client and the reason.
    #[test]
    fn a_forced_signal_has_its_sentence_and_its_fields() {
        let by = Client { user: 1000, process: 77 };
        let (time, signal) = (Duration::from_secs(600), Arc::from("lamp green"));
        let told = of(Happening::SignalForced { signal, value: Value::Bool(true), time, by });
        let expected = "signal \"lamp green\" is forced to true for 600.0 s, by process 77 of user 1000";
        assert_eq!((told.severity, told.sentence.as_str()), (Warning, expected));
        let what = Reported::SignalForced {
            signal: "lamp green".into(),
            value: Value::Bool(true),
            for_ns: 600_000_000_000,
            user: 1000,
            process: 77,
        };
        assert_eq!(told.what, what);
        let released = |name: &str, reason, after| Happening::SignalReleased {
            signal: Arc::from(name),
            reason,
            after,
        };
        let told = of(released("lamp green", ReleaseReason::Request(by), 50));
        let expected = "signal \"lamp green\" is no longer forced after 50 cycles, 100 ms: \
            released by process 77 of user 1000";
        assert_eq!((told.severity, told.sentence.as_str()), (Good, expected));
        let over = |name, after| released(name, ReleaseReason::TimeOver, after);
        let one = over("a", 3);
        assert!(!is_alike(&one, &released("b", ReleaseReason::Stop, 3)));
        assert!(is_alike(&one, &over("b", 4)));
        let event = |what| CycleEvent { cycle: 7, at: Instant::EPOCH, cable: None, what };
        let one = event(one);
        let told = |others: &[CycleEvent]| sentence(&one, others, &names()).unwrap().1;
        assert_eq!(
            told(&[event(over("b", 4))]),
            "signals \"a\", \"b\" are no longer forced: its time has expired"
        );
        let many: Vec<CycleEvent> = (0..3).map(|_| event(over("b", 4))).collect();
        assert_eq!(told(&many), "4 signals, the first \"a\", are no longer forced: its time has expired");
    }

    /// The cable to a SubDevice is named by both of its ends, in words and in JSON; several lost
    /// ones have one where they hang on each other.
    // feature(running-bus): losses and returns name the cable to the SubDevice by both its ends, in words and in JSON
    #[test]
    fn losses_and_returns_name_the_cable_by_both_its_ends() {
        let end = |position: Option<u16>, port| CableEnd { position, port: Some(port) };
        let to_third = [end(Some(1), 1), end(Some(2), 0)];
        let told = |cable, what| {
            let event = CycleEvent { cycle: 7, at: Instant::EPOCH, cable: Some(cable), what };
            super::event(&event, &names()).expect("an event for others")
        };
        let cable = "the cable between SubDevice 1 \"drive-2\" port 1 and SubDevice 2 \"drive-3\" port 0";
        let gone = told(to_third, Happening::Bus(BusEvent::Unreachable { position: 2 }));
        let expected =
            format!("SubDevice 2 \"drive-3\" does not answer any more: check its power and {cable}");
        assert_eq!(gone.sentence, expected);
        let ends = serde_json::json!([{ "position": 1, "port": 1 }, { "position": 2, "port": 0 }]);
        assert_eq!(serde_json::to_value(&gone).unwrap()["between"], ends);
        let again_in = Some(Duration::from_millis(100));
        let error = ethercat::main_device::SubDeviceError::NoClock;
        for what in [
            Happening::SubDeviceLost { position: 2 },
            Happening::SubDeviceBack { position: 2, after: 5 },
            Happening::Bus(BusEvent::Joined { position: 2 }),
            Happening::Bus(BusEvent::Reconfiguring { position: 2 }),
            Happening::Bus(BusEvent::Recovered { position: 2, anew: false }),
            Happening::Bus(BusEvent::NotRecovered { position: 2, error, again_in }),
        ] {
            let told = told(to_third, what);
            assert!(told.sentence.contains(&format!(", behind {cable}")), "{}", told.sentence);
            assert!(told.between.is_some(), "{}", told.sentence);
        }
        let to_first = [end(None, 0), end(Some(0), 0)];
        let first = told(to_first, Happening::SubDeviceLost { position: 0 });
        let expected = "no process data of SubDevice 0 \"drive-1\", behind the cable between the network interface and SubDevice 0 \
                        \"drive-1\" port 0";
        assert_eq!(first.sentence, expected);

        // Several: for SubDevices behind each other the first cable, for others none.
        let lost = |position: u16, upstream: u16| CycleEvent {
            cycle: 7,
            at: Instant::EPOCH,
            cable: Some([end(Some(upstream), 1), end(Some(position), 0)]),
            what: Happening::SubDeviceLost { position: position.into() },
        };
        let all_of = |others: &[CycleEvent]| sentence(&lost(1, 0), others, &names()).unwrap().1;
        let cable =
            "behind the cable between SubDevice 0 \"drive-1\" port 1 and SubDevice 1 \"drive-2\" port 0";
        assert!(all_of(&[lost(2, 1)]).ends_with(cable), "{}", all_of(&[lost(2, 1)]));
        assert!(!all_of(&[lost(2, 0)]).contains("cable"), "{}", all_of(&[lost(2, 0)]));
    }

    /// An unexpected device is reported with the SubDevice that is expected at its position.
    // feature(main-device): a SubDevice that is none of those missing is told with its place and with the one whose place that is
    #[test]
    fn unexpected_device_is_reported_with_the_expected_one() {
        let told = |expected, known| {
            let identity = Identity { vendor_id: 1, product_code: 2, revision: 3, serial: 4 };
            of(Happening::Bus(BusEvent::Stranger { place: 1, identity, expected, known })).sentence
        };
        let start = "unexpected SubDevice at position 1 of the bus, where SubDevice 1 \"drive-2\" \
            is expected, left in Init: ";
        assert!(told(Some(1), None).starts_with(start), "{}", told(Some(1), None));
        let start = "unexpected SubDevice at position 1 of the bus, left in Init: ";
        assert!(told(None, None).starts_with(start), "{}", told(None, None));
        let start = "SubDevice 2 \"drive-3\" is at position 1 of the bus, where SubDevice 1 \
            \"drive-2\" is expected, and not at its own position: left in Init; put it back: ";
        assert!(told(Some(1), Some(2)).starts_with(start), "{}", told(Some(1), Some(2)));
    }

    /// If the missing SubDevice is connected by a known cable, the unexpected one is reported with
    /// it.
    // feature(main-device): a SubDevice that is none of those missing is told with its place and with the one whose place that is
    #[test]
    fn unexpected_device_is_reported_with_its_cable() {
        let identity = Identity { vendor_id: 1, product_code: 2, revision: 3, serial: 4 };
        let what =
            Happening::Bus(BusEvent::Stranger { place: 1, identity, expected: Some(1), known: None });
        let end = |position, port| CableEnd { position: Some(position), port: Some(port) };
        let cable = Some([end(0, 1), end(1, 0)]);
        let told = event(&CycleEvent { cycle: 7, at: Instant::EPOCH, cable, what }, &names()).unwrap();
        let place = "where SubDevice 1 \"drive-2\" is expected, behind the cable between SubDevice \
            0 \"drive-1\" port 1 and SubDevice 1 \"drive-2\" port 0, left in Init: ";
        assert!(told.sentence.contains(place), "{}", told.sentence);
        assert_eq!(told.between, cable);
    }

    /// Events that differ in their axis alone are one sentence.
    #[test]
    fn events_that_are_alike_have_one_sentence() {
        let stopped =
            |axis, reason| Happening::AxisStopped { axis, reason, with: None, because: Cause::default() };
        let (first, second) = (stopped(0, StopReason::Outage), stopped(2, StopReason::Outage));
        assert!(is_alike(&first, &second) && !is_alike(&first, &stopped(2, StopReason::Fault)));
        let at = Instant::EPOCH;
        let [first, second] = [first, second].map(|what| CycleEvent { cycle: 7, at, cable: None, what });
        let (severity, told) = sentence(&first, &[second], &names()).unwrap();
        assert_eq!(severity, Error);
        assert!(told.starts_with("axes \"drive-1\", \"drive-3\" are held: "), "{told}");
    }
}
