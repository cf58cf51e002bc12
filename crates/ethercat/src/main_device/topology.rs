//! Who hangs on whom: the tree of SubDevices from their DL status.
//!
//! Frames enter an ESC at port 0 and leave by ports 3, 1 and 2 in turn (ESC data sheet, section I, 3.2).
//! The order of positions is the order in which frames pass processing units, so a depth-first walk
//! over open ports rebuilds the tree.

use crate::register::DlStatus;
use crate::register::dl::FORWARDING_ORDER;

/// Place in the forwarding order of the first port behind the entry.
const AFTER_ENTRY: usize = 1;

/// Where a SubDevice hangs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Upstream {
    /// Position of the SubDevice before it in the tree.
    pub position: u16,
    /// Port of that SubDevice, 1 to 3.
    pub port: u8,
}

/// The upstream neighbour of every SubDevice; `None` for the first, which hangs on the MainDevice.
///
/// # Errors
/// The position of the first SubDevice that no open port is left for: link states that contradict the
/// count, as while a cable is being plugged.
pub fn upstream_neighbours(statuses: &[DlStatus]) -> Result<Vec<Option<Upstream>>, u16> {
    let mut upstream = Vec::with_capacity(statuses.len());
    // SubDevices on the way back to the MainDevice, each with its next port to try in forwarding order.
    let mut path: Vec<(u16, usize)> = Vec::new();
    for position in 0..statuses.len() as u16 {
        let neighbour = next_open_port(statuses, &mut path);
        if position > 0 && neighbour.is_none() {
            return Err(position);
        }
        upstream.push(neighbour);
        path.push((position, AFTER_ENTRY));
    }
    Ok(upstream)
}

/// Leaves every SubDevice whose ports are used up, and takes the next open port of the one that remains.
fn next_open_port(statuses: &[DlStatus], path: &mut Vec<(u16, usize)>) -> Option<Upstream> {
    while let Some((position, next)) = path.last_mut() {
        while let Some(&port) = FORWARDING_ORDER.get(*next) {
            *next += 1;
            if statuses[usize::from(*position)].is_open(port) {
                return Some(Upstream { position: *position, port: port as u8 });
            }
        }
        path.pop();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(ports: &[usize]) -> DlStatus {
        let mut status = DlStatus::default();
        for &port in ports {
            status.communication[port] = true;
        }
        status
    }

    fn tree(ports: &[&[usize]]) -> Result<Vec<Option<(u16, u8)>>, u16> {
        let statuses: Vec<_> = ports.iter().map(|ports| open(ports)).collect();
        let neighbours = upstream_neighbours(&statuses)?;
        Ok(neighbours.iter().map(|it| it.map(|upstream| (upstream.position, upstream.port))).collect())
    }

    #[test]
    fn a_line_hangs_each_on_the_one_before() {
        let found = tree(&[&[0, 1], &[0, 1], &[0]]).unwrap();
        assert_eq!(found, [None, Some((0, 1)), Some((1, 1))]);
    }

    #[test]
    fn a_coupler_serves_port_3_before_port_1() {
        // A coupler with terminals on port 3 (two of them), then the line goes on at port 1.
        let found = tree(&[&[0, 1, 3], &[0, 1], &[0], &[0]]).unwrap();
        assert_eq!(found, [None, Some((0, 3)), Some((1, 1)), Some((0, 1))]);
    }

    #[test]
    fn a_junction_in_a_branch_returns_to_the_right_parent() {
        let found = tree(&[&[0, 1, 2, 3], &[0, 1, 3], &[0], &[0], &[0], &[0]]).unwrap();
        assert_eq!(found, [None, Some((0, 3)), Some((1, 3)), Some((1, 1)), Some((0, 1)), Some((0, 2))]);
    }

    #[test]
    fn one_subdevice_too_many_is_named() {
        assert_eq!(tree(&[&[0, 1], &[0], &[0]]), Err(2));
    }
}
