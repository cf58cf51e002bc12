//! Events of a cycle for users and other programs: message, severity and sentence, an arm each.
//!
//! | module | events |
//! |---|---|
//! | [`bus`] | of the MainDevice |
//! | [`axes`] | of axes and interlocks |
//! | [`requests`] | requests of clients that took place |
//! | [`signals`] | forced signals |

mod axes;
mod bus;
mod requests;
mod signals;

use ethercat::main_device::Event as BusEvent;
use ipc::bus::Severity::{Error, Ok as Good, Warning};
use ipc::bus::{CableEnd, Event, Happening as Reported, Severity};

use super::names::PartNames;
use crate::observer::{CycleEvent, Happening};

pub use axes::{error_code, stop_reason};
pub use bus::other_main_device;

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
        Happening::Bus(ref event) => return bus::described(event, cable, &all, names),
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
        Happening::ClockLock { state, phase_error_ns } => bus::clock_lock(state, phase_error_ns),
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
            axes::stopped(&all(axis), reason, with, because, names)
        }
        Happening::QuickStopIgnored { axis, step } => (
            Reported::QuickStopIgnored { axis, step: step.words().to_owned() },
            Error,
            format!("axis \"{}\": {}", names.axis(axis), step.sentence()),
        ),
        Happening::Overshoot { axis, by } => axes::overshoot(axis, by, names),
        Happening::AxisFreed { axis } => {
            (Reported::AxisFreed { axis }, Good, format!("{} released", names.axes_are(&all(axis))))
        }
        Happening::SetpointIgnored { axis, what } => axes::setpoint_ignored(axis, what, names),
        Happening::DriveFault { axis, position, code } => axes::drive_fault(axis, position, code, names),
        Happening::Interlock { interlock, allows, level } => {
            axes::interlock(interlock, allows, level, names)
        }
        Happening::PositionGiven { given, outcome, by } => {
            requests::position_given(given, outcome, by, names)
        }
        Happening::Requested { request } => requests::requested(request, names),
        Happening::SignalForced { ref signal, value, time, by } => signals::forced(signal, value, time, by),
        Happening::SignalReleased { ref signal, value, reason, after } => {
            signals::released((signal, value), reason, after, others, names)
        }
        Happening::Stalled { cycles } => (
            Reported::Stalled { cycles },
            Warning,
            format!("this computer stalled for {cycles} cycles: `onbeat explain` names the cause"),
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

#[cfg(test)]
mod tests;
