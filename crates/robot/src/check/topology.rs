//! Checks of the topology: a frame must reach the SubDevices in the order of the file.

use std::collections::HashMap;

use super::{Checked, unknown_name};
use crate::error::Problem;
use crate::model::Parent;
use crate::place::Place;

/// Ports by which a frame that arrives at port 0 leaves, in this order (ETG.1000.4, 4.6).
const PORTS_IN_ORDER: [u8; 3] = [3, 1, 2];

/// Port of the next SubDevice of a line.
const PORT_OF_A_LINE: u8 = 1;

/// Ports in use, along the path from the first SubDevice to the newest.
///
/// SubDevices are numbered in the order a frame reaches them. So a new one can only be attached to
/// the path from the first to the newest, and only after the ones already there.
#[derive(Debug, Default)]
pub(super) struct Topology {
    /// Position, and number of its [`PORTS_IN_ORDER`] that the frame has already left by.
    way: Vec<(usize, usize)>,
}

impl Topology {
    /// Attaches the SubDevice `position` to `port` of `parent`, or to the newest one.
    pub(super) fn attach(
        &mut self,
        parent: Option<&String>,
        port: Option<i64>,
        positions: &HashMap<String, usize>,
        position: usize,
        entry: Place<'_>,
    ) -> Checked<Option<Parent>> {
        let parent_position = match parent {
            Some(name) => Some(find(name, positions, position, entry)?),
            None => position.checked_sub(1),
        };
        let Some(parent_position) = parent_position else {
            self.way.push((position, 0));
            return match port {
                None => Ok(None),
                Some(_) => Err(Problem::new(
                    entry.key("port"),
                    "a port for the first SubDevice",
                    "none: it hangs on the MainDevice",
                    "remove port",
                )),
            };
        };
        let wanted = port.unwrap_or(i64::from(PORT_OF_A_LINE));
        let place = entry.first_of(&["port", "parent"]);
        let Some(order) = PORTS_IN_ORDER.iter().position(|&it| i64::from(it) == wanted) else {
            let expected = "1, 2 or 3: port 0 leads back to the MainDevice";
            return Err(Problem::new(place, format!("port {wanted}"), expected, "correct port"));
        };
        let on_the_way = self.way.iter().position(|&(it, _)| it == parent_position);
        let free = on_the_way.filter(|&depth| self.way[depth].1 <= order);
        let Some(depth) = free else {
            let found = format!("port {wanted} of SubDevice {parent_position} for SubDevice {position}");
            let expected = "the order in which a frame meets them: of each SubDevice port 3, then 1, then 2, \
                            each once and each with all that hangs on it";
            return Err(Problem::new(place, found, expected, "put the SubDevices into that order"));
        };
        self.way.truncate(depth + 1);
        self.way[depth].1 = order + 1;
        self.way.push((position, 0));
        Ok(Some(Parent { position: parent_position, port: PORTS_IN_ORDER[order] }))
    }
}

fn find(
    name: &str,
    positions: &HashMap<String, usize>,
    position: usize,
    entry: Place<'_>,
) -> Checked<usize> {
    if let Some(&found) = positions.get(name).filter(|&&found| found < position) {
        return Ok(found);
    }
    let earlier = positions.iter().filter(|&(_, &it)| it < position).map(|(name, _)| name.as_str());
    let expected = "a SubDevice described before this one";
    Err(unknown_name(entry.key("parent"), format!("parent \"{name}\""), expected, name, earlier, "parent"))
}
