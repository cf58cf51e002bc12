//! Events of a cycle as other programs are told of them.

use bridge::bus::{Bytes, Event, Happening as Told};
use ethercat::main_device::Event as BusEvent;

use crate::observer::{CycleEvent, Happening};
use crate::status::stop_code;

/// An event for other programs; `None` for one that is nobody else's concern.
#[must_use]
pub fn event(event: &CycleEvent) -> Option<Event> {
    Some(Event { cycle: event.cycle, at_ns: event.at.as_nanos(), what: told(&event.what)? })
}

fn told(what: &Happening) -> Option<Told> {
    Some(match *what {
        Happening::Bus(ref event) => return of_bus(event),
        Happening::SubDeviceLost { position } => Told::SubDeviceLost { position },
        Happening::SubDeviceBack { position, after } => Told::SubDeviceBack { position, after },
        Happening::LinkFailed { code } => Told::LinkFailed { code },
        Happening::LinkWorks { after } => Told::LinkWorks { after },
        Happening::AxisStopped { axis, reason } => {
            Told::AxisStopped { axis, reason: stop_code(reason).words().to_owned() }
        }
        Happening::AxisFreed { axis } => Told::AxisFreed { axis },
        Happening::DriveFault { position, code } => Told::DriveFault { position, error_code: code },
        Happening::Interlock { interlock, allows } => Told::Interlock { interlock, allows },
        Happening::Stalled { cycles } => Told::Stalled { cycles },
    })
}

fn of_bus(event: &BusEvent) -> Option<Told> {
    Some(match *event {
        BusEvent::Stage { stage, .. } => Told::Stage { stage: format!("{stage:?}") },
        BusEvent::Failed(ref error) => Told::BusFailed { text: error.to_string() },
        BusEvent::StateChanged { position, status, code } => Told::StateChanged {
            position: position.into(),
            state: status.to_string(),
            al_status_code: code.0,
            al_status_text: code.text().to_owned(),
        },
        BusEvent::Unreachable { position } => Told::Unreachable { position: position.into() },
        BusEvent::OtherMainDevice { source, frames } => {
            Told::OtherMainDevice { source: source.to_string(), frames }
        }
        BusEvent::Emergency { position, error_code, error_register, manufacturer } => Told::Emergency {
            position: position.into(),
            error_code,
            error_register,
            data: Bytes(manufacturer.into()),
        },
        BusEvent::Mailbox(_) => return None,
    })
}
