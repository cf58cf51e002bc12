//! Events of a running cycle in words.

use super::{Bytes, Happening, RingEnd};
use crate::description::Description;

impl RingEnd {
    /// The end in words; `sub_device` names a SubDevice.
    pub fn words(self, sub_device: impl Fn(usize) -> String) -> String {
        match (self.position, self.port) {
            (Some(position), Some(port)) => format!("{} port {port}", sub_device(position)),
            (Some(position), None) => sub_device(position),
            (None, Some(0)) => "the first interface".to_owned(),
            (None, Some(_)) => "the second interface".to_owned(),
            (None, None) => "the last SubDevice".to_owned(),
        }
    }
}

impl Happening {
    /// The event in words, with the names of the robot's parts.
    #[must_use]
    pub fn sentence(&self, robot: &Description) -> String {
        let sub_device = |position: usize| {
            let name = robot.sub_devices.get(position).map_or("?", String::as_str);
            format!("SubDevice {position} \"{name}\"")
        };
        let axis = |axis: usize| robot.axes.get(axis).map_or("?", |it| it.name.as_str()).to_owned();
        match self {
            Self::Phase { phase } => format!("the bus is in phase {phase}"),
            Self::BusFailed { text } => format!("the bus failed: {text}"),
            Self::StateChanged { position, state, al_status_code, al_status_text } => format!(
                "{} is in {state}, AL status code {al_status_code:#06x}: {al_status_text}",
                sub_device(*position)
            ),
            Self::Unreachable { position } => {
                format!("{} does not answer any more", sub_device(*position))
            }
            Self::Absent { position } => format!("{} is not on the bus", sub_device(*position)),
            Self::Joined { position } => format!("{} has joined and is in Op", sub_device(*position)),
            Self::Reconfiguring { position } => format!("{} is configured anew", sub_device(*position)),
            Self::Recovered { position, .. } => format!("{} is in Op again", sub_device(*position)),
            Self::NotRecovered { position, text, again_in_ns } => {
                let next = match again_in_ns {
                    Some(pause) => format!("tried again in {} ms", pause / 1_000_000),
                    None => "left alone until it vanishes and comes again".to_owned(),
                };
                format!("{} could not be brought back to Op: {text}; {next}", sub_device(*position))
            }
            Self::Stranger { place, known: Some(position), serial, .. } => format!(
                "{} (serial {serial}) stands at place {place}, and not in its own: it is left in Init; put it back",
                sub_device(*position)
            ),
            Self::Stranger { place, known: None, vendor_id, product_code, revision, serial } => format!(
                "a SubDevice that is none of those missing stands at place {place}, and is left in Init: vendor {vendor_id:#010x}, product {product_code:#010x}, revision {revision:#010x}, serial {serial}"
            ),
            Self::SyncMissed { position, text } => {
                format!("SYNC0 of {} is started anew: {text}", sub_device(*position))
            }
            Self::SubDeviceLost { position } => format!("no process data of {}", sub_device(*position)),
            Self::SubDeviceBack { position, after } => {
                format!("process data again of {} after {after} cycles", sub_device(*position))
            }
            Self::Emergency { position, error_code, error_register, data: Bytes(data) } => format!(
                "{} sends an emergency: error code {error_code:#06x}, error register {error_register:#04x}, {data:02x?}",
                sub_device(*position)
            ),
            Self::DriveFault { axis: place, position, error_code } => format!(
                "axis \"{}\" at {} is in fault: error code {error_code:#06x}",
                axis(*place),
                sub_device(*position)
            ),
            Self::AxisStopped { axis: place, reason, stopped_with } => {
                let with = stopped_with.map(|other| format!(" (axis \"{}\")", axis(other)));
                format!("axis \"{}\" is held: {reason}{}", axis(*place), with.unwrap_or_default())
            }
            Self::AxisFreed { axis: place } => format!("axis \"{}\" is let go", axis(*place)),
            Self::Interlock { interlock, allows: true } => format!("interlock {interlock} allows again"),
            Self::Interlock { interlock, allows: false } => {
                format!("interlock {interlock} does not allow")
            }
            Self::ClockLock { state, phase_error_ns } => {
                format!("the cycle's lock to the reference clock: {state}, phase error {phase_error_ns} ns")
            }
            Self::LinkFailed { code } => {
                format!("the network interface fails: {}", std::io::Error::from_raw_os_error(*code))
            }
            Self::LinkWorks { after } => format!("the network interface works again after {after} cycles"),
            Self::RingOpen { between } => {
                let ends = between.map(|end| end.words(sub_device));
                format!("the ring is open between {}: it goes on from both ends", ends.join(" and "))
            }
            Self::RingClosed { after } => format!("the ring is closed again after {after} cycles"),
            Self::OtherMainDevice { source, frames } => {
                format!("another MainDevice, source {source}, is on the wire: {frames} frames of it")
            }
            Self::Stalled { cycles } => format!("the process or machine stood still for {cycles} cycles"),
            Self::Unknown => "an event that this version does not know".to_owned(),
        }
    }
}
