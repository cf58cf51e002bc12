//! Events of a running cycle, a line each, for those who attach to it.

use ethercat::time::Instant;
use ipc::bus::{Bytes, Event, Happening};
use ipc::description::Description;

use super::moment::Moment;
use super::sub_devices::place;

/// Time, cycle, and the event, with the names of the robot's parts.
pub(crate) fn line(event: &Event, robot: &Description) -> String {
    format!("{}: {}", Moment::of(Instant::from_nanos(event.at_ns), event.cycle), words(&event.what, robot))
}

fn words(what: &Happening, robot: &Description) -> String {
    let sub_device =
        |position: usize| place(position, robot.sub_devices.get(position).map_or("?", String::as_str));
    let axis = |axis: usize| robot.axes.get(axis).map_or("?", |it| it.name.as_str()).to_owned();
    match what {
        Happening::Stage { stage } => format!("the bus is in stage {stage}"),
        Happening::BusFailed { text } => format!("the bus failed: {text}"),
        Happening::StateChanged { position, state, al_status_code, al_status_text } => format!(
            "{} is in {state}, AL status code {al_status_code:#06x}: {al_status_text}",
            sub_device(*position)
        ),
        Happening::Unreachable { position } => {
            format!("{} does not answer any more", sub_device(*position))
        }
        Happening::SubDeviceLost { position } => format!("no process data of {}", sub_device(*position)),
        Happening::SubDeviceBack { position, after } => {
            format!("process data again of {} after {after} cycles", sub_device(*position))
        }
        Happening::Emergency { position, error_code, error_register, data: Bytes(data) } => format!(
            "{} sends an emergency: error code {error_code:#06x}, error register {error_register:#04x}, {data:02x?}",
            sub_device(*position)
        ),
        Happening::DriveFault { position, error_code } => {
            format!("{} is in fault: error code {error_code:#06x}", sub_device(*position))
        }
        Happening::AxisStopped { axis: place, reason } => {
            format!("axis \"{}\" is held: {reason}", axis(*place))
        }
        Happening::AxisFreed { axis: place } => format!("axis \"{}\" is let go", axis(*place)),
        Happening::Interlock { interlock, allows: true } => format!("interlock {interlock} allows again"),
        Happening::Interlock { interlock, allows: false } => {
            format!("interlock {interlock} does not allow")
        }
        Happening::LinkFailed { code } => {
            format!("the network interface fails: {}", std::io::Error::from_raw_os_error(*code))
        }
        Happening::LinkWorks { after } => format!("the network interface works again after {after} cycles"),
        Happening::OtherMainDevice { source, frames } => {
            format!("another MainDevice, source {source}, is on the wire: {frames} frames of it")
        }
        Happening::Stalled { cycles } => format!("the process or machine stood still for {cycles} cycles"),
    }
}
