//! Events of the bus, from the MainDevice, in words.

use std::time::Duration;

use ethercat::main_device::{Event as BusEvent, SubDeviceError};
use ethercat::sii::Identity;
use ethercat::wire::MacAddress;
use ipc::bus::Severity::{Error, Ok as Good, Warning};
use ipc::bus::{Bytes, Happening as Reported};
use types::LockState;
use types::time::span;

use super::axes::error_code;
use super::{Described, behind};
use crate::bus::names::PartNames;

/// The message; `None` for one that concerns the cycle alone. `all`: the SubDevices of alike
/// events.
pub(super) fn described(
    event: &BusEvent,
    cable: Option<String>,
    all: &dyn Fn(usize) -> Vec<usize>,
    names: &PartNames,
) -> Option<Described> {
    let named = |position: u16| names.sub_device(position.into());
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
            format!("{} is in {status}, AL status code {code}", named(position)),
        ),
        BusEvent::Unreachable { position } => (
            Reported::Unreachable { position: position.into() },
            Error,
            format!(
                "{} does not answer any more: check its power and {}",
                named(position),
                cable.as_deref().unwrap_or("the cable to it")
            ),
        ),
        BusEvent::Absent { position } => (
            Reported::Absent { position: position.into() },
            Warning,
            format!("{} is not on the bus; it joins when it comes", named(position)),
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
            format!("{} is configured again{}", named(position), behind(cable)),
        ),
        BusEvent::Recovered { position, anew } => (
            Reported::Recovered { position: position.into(), anew },
            Good,
            format!("{} is in Op again{}", named(position), behind(cable)),
        ),
        BusEvent::NotRecovered { position, ref error, again_in } => {
            not_recovered(position, error, again_in, cable, names)
        }
        BusEvent::Stranger { place, ref identity, expected, known } => {
            unexpected((place, identity), expected, known, cable, names)
        }
        BusEvent::SyncMissed { position, miss } => {
            let text = miss.to_string();
            let sentence = format!("SYNC0 of {} is restarted: {text}", named(position));
            (Reported::SyncMissed { position: position.into(), text }, Warning, sentence)
        }
        BusEvent::ClockUnsettled { position, difference } => clock_unsettled(position, difference, names),
        BusEvent::OtherMainDevice { source, frames } => (
            Reported::OtherMainDevice { source: source.to_string(), frames },
            Warning,
            other_main_device(source, frames),
        ),
        BusEvent::Emergency { position, error_code, error_register, manufacturer } => {
            emergency(position, error_code, error_register, manufacturer, names)
        }
        BusEvent::Mailbox(_) => return None,
    })
}

/// Another MainDevice on the wire, as a sentence.
#[must_use]
pub fn other_main_device(source: MacAddress, frames: u64) -> String {
    format!(
        "another MainDevice, source {source}, is on this wire: {frames} frames that are not ours; end one of the two"
    )
}

/// A try to bring a SubDevice back to Op failed.
fn not_recovered(
    position: u16,
    error: &SubDeviceError,
    again_in: Option<Duration>,
    cable: Option<String>,
    names: &PartNames,
) -> Described {
    let text = error.to_string();
    let next = match again_in {
        Some(pause) => format!("tried again in {}", span(pause)),
        None => "left alone until it vanishes and comes again".to_owned(),
    };
    let cable = cable.map_or_else(String::new, |cable| format!(", behind {cable},"));
    let sentence = format!(
        "{}{cable} could not be brought back to Op: {text}; {next}",
        names.sub_device(position.into())
    );
    let again_in_ns = again_in.map(types::time::nanoseconds);
    (Reported::NotRecovered { position: position.into(), text, again_in_ns }, Error, sentence)
}

/// An unexpected SubDevice is on the bus.
fn unexpected(
    (place, identity): (u16, &Identity),
    expected: Option<u16>,
    known: Option<u16>,
    cable: Option<String>,
    names: &PartNames,
) -> Described {
    let found = format!("{identity} serial {}", identity.serial);
    let its = expected.map_or_else(String::new, |it| {
        format!(", where {} is expected{}", names.sub_device(it.into()), behind(cable))
    });
    let sentence = match known {
        Some(position) => format!(
            "{} is at position {place} of the bus{its}, and not at its own position: left \
             in Init; put it back: {found}",
            names.sub_device(position.into())
        ),
        None => format!("unexpected SubDevice at position {place} of the bus{its}, left in Init: {found}"),
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

/// A SubDevice sent an emergency message.
fn emergency(
    position: u16,
    code: u16,
    error_register: u8,
    manufacturer: [u8; 5],
    names: &PartNames,
) -> Described {
    (
        Reported::Emergency {
            position: position.into(),
            error_code: code,
            error_register,
            data: Bytes(manufacturer.into()),
        },
        if code == 0 { Good } else { Error },
        format!(
            "{} sends an emergency: {}, error register {error_register:#04x}, {manufacturer:02x?}",
            names.sub_device(position.into()),
            if code == 0 { "its error is reset (0x0000)".to_owned() } else { error_code(code) }
        ),
    )
}

/// The clock of a SubDevice still differs from the reference clock.
fn clock_unsettled(position: u16, difference: i32, names: &PartNames) -> Described {
    (
        Reported::ClockUnsettled { position: position.into(), difference_ns: difference },
        Warning,
        format!(
            "the clock of {} is {:.1} us off the reference clock before the cycle begins, expected below 1 us: its SYNC0 and its \
                 times are off by as much until the cycle has brought it closer",
            names.sub_device(position.into()),
            f64::from(difference) / 1e3
        ),
    )
}

/// The lock of the cycle to the reference clock has changed.
pub(super) fn clock_lock(state: LockState, phase_error_ns: i64) -> Described {
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
