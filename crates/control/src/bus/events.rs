//! Events of a cycle as other programs are told of them.

use ethercat::main_device::{Event as BusEvent, FindingEnd};
use ipc::bus::{Bytes, Event, Happening as Reported, RingEnd};

use crate::observer::{CycleEvent, Happening};

/// An event for other programs; `None` for one that is nobody else's concern.
#[must_use]
pub fn event(event: &CycleEvent) -> Option<Event> {
    Some(Event { cycle: event.cycle, at_ns: event.at.as_nanos(), what: told(&event.what)? })
}

fn told(what: &Happening) -> Option<Reported> {
    Some(match *what {
        Happening::Bus(ref event) => return of_bus(event),
        Happening::SubDeviceLost { position } => Reported::SubDeviceLost { position },
        Happening::SubDeviceBack { position, after } => Reported::SubDeviceBack { position, after },
        Happening::ClockLock { state, phase_error_ns } => {
            Reported::ClockLock { state: state.name().to_owned(), phase_error_ns }
        }
        Happening::LinkFailed { code } => Reported::LinkFailed { code },
        Happening::LinkWorks { after } => Reported::LinkWorks { after },
        Happening::RingOpen { between } => Reported::RingOpen { between: between.map(ring_end) },
        Happening::RingClosed { after } => Reported::RingClosed { after },
        Happening::AxisStopped { axis, reason, with } => {
            Reported::AxisStopped { axis, reason: reason.words().to_owned(), stopped_with: with }
        }
        Happening::AxisFreed { axis } => Reported::AxisFreed { axis },
        Happening::DriveFault { axis, position, code } => {
            Reported::DriveFault { axis, position, error_code: code }
        }
        Happening::Interlock { interlock, allows } => Reported::Interlock { interlock, allows },
        Happening::Stalled { cycles } => Reported::Stalled { cycles },
    })
}

/// The end of a cable of a ring for other programs.
#[must_use]
pub fn ring_end(end: FindingEnd) -> RingEnd {
    RingEnd { position: end.position.map(usize::from), port: end.port }
}

fn of_bus(event: &BusEvent) -> Option<Reported> {
    Some(match *event {
        BusEvent::BringUpPhase { phase, .. } => Reported::Phase { phase: format!("{phase:?}") },
        BusEvent::Failed(ref error) => Reported::BusFailed { text: error.to_string() },
        BusEvent::StateChanged { position, status, code } => Reported::StateChanged {
            position: position.into(),
            state: status.to_string(),
            al_status_code: code.0,
            al_status_text: code.text().to_owned(),
        },
        BusEvent::Unreachable { position } => Reported::Unreachable { position: position.into() },
        BusEvent::Absent { position } => Reported::Absent { position: position.into() },
        BusEvent::Joined { position } => Reported::Joined { position: position.into() },
        BusEvent::Reconfiguring { position } => Reported::Reconfiguring { position: position.into() },
        BusEvent::Recovered { position, anew } => Reported::Recovered { position: position.into(), anew },
        BusEvent::NotRecovered { position, ref error, again_in } => Reported::NotRecovered {
            position: position.into(),
            text: error.to_string(),
            again_in_ns: again_in.map(types::time::nanoseconds),
        },
        BusEvent::Stranger { place, ref identity, known } => Reported::Stranger {
            place: place.into(),
            known: known.map(usize::from),
            vendor_id: identity.vendor_id,
            product_code: identity.product_code,
            revision: identity.revision,
            serial: identity.serial,
        },
        BusEvent::SyncMissed { position, miss } => {
            Reported::SyncMissed { position: position.into(), text: miss.to_string() }
        }
        BusEvent::OtherMainDevice { source, frames } => {
            Reported::OtherMainDevice { source: source.to_string(), frames }
        }
        BusEvent::Emergency { position, error_code, error_register, manufacturer } => Reported::Emergency {
            position: position.into(),
            error_code,
            error_register,
            data: Bytes(manufacturer.into()),
        },
        BusEvent::Mailbox(_) => return None,
    })
}
