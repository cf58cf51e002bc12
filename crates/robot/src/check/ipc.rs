//! Checks of the shared-memory interface.

use super::Checked;
use crate::error::Problem;
use crate::model::{Ipc, PortKind, made_of};
use crate::place::Place;

pub(super) fn ipc(ipc: &mut Ipc, robot: &str, entry: Place<'_>) -> Checked<()> {
    if ipc.name.is_empty() {
        ipc.name = made_of(robot);
    }
    for (index, port) in ipc.ports.iter().enumerate() {
        let place = entry.key("port").item(index);
        if OURS.contains(&port.name.as_str()) || ipc.ports[..index].iter().any(|it| it.name == port.name) {
            let found = format!("a second port \"{}\"", port.name);
            return Err(Problem::new(place.key("name"), found, "every name once", "give it another name"));
        }
        if port.kind == PortKind::Stream && place.has("depth") {
            let (found, remedy) = ("a depth for a stream of bytes", "remove it; size is its capacity");
            return Err(Problem::new(place.key("depth"), found, "depth only of messages", remedy));
        }
        if let Some(expected) = port.kind.complaint(port.size, port.depth) {
            let found = format!("{} messages of {} bytes", port.depth, port.size);
            return Err(Problem::new(place.key("size"), found, expected, "lower size or depth"));
        }
    }
    Ok(())
}

/// Ports that every interface has.
pub(super) const OURS: [&str; 3] = ["control", "stop", "trajectory"];
