//! Events of a cycle as other programs are told of them.

use ethercat::main_device::Event as BusEvent;
use ipc::bus::{Bytes, Event, Happening as Reported};

use crate::observer::{CycleEvent, Happening};
use crate::status::stop_code;

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
        Happening::LinkFailed { code } => Reported::LinkFailed { code },
        Happening::LinkWorks { after } => Reported::LinkWorks { after },
        Happening::AxisStopped { axis, reason } => {
            Reported::AxisStopped { axis, reason: stop_code(reason).words().to_owned() }
        }
        Happening::AxisFreed { axis } => Reported::AxisFreed { axis },
        Happening::DriveFault { position, code } => Reported::DriveFault { position, error_code: code },
        Happening::Interlock { interlock, allows } => Reported::Interlock { interlock, allows },
        Happening::Stalled { cycles } => Reported::Stalled { cycles },
    })
}

fn of_bus(event: &BusEvent) -> Option<Reported> {
    Some(match *event {
        BusEvent::BringUpPhase { stage, .. } => Reported::Stage { stage: format!("{stage:?}") },
        BusEvent::Failed(ref error) => Reported::BusFailed { text: error.to_string() },
        BusEvent::StateChanged { position, status, code } => Reported::StateChanged {
            position: position.into(),
            state: status.to_string(),
            al_status_code: code.0,
            al_status_text: code.text().to_owned(),
        },
        BusEvent::Unreachable { position } => Reported::Unreachable { position: position.into() },
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
