//! How the SubDevices hang together, and the way a frame takes through them.

use core::time::Duration;

use ethercat::register::dl::{FORWARDING_ORDER, PORTS};
use thiserror::Error;

/// Where a SubDevice's port 0 is plugged in.
///
/// Simplification: frames come in at port 0; a SubDevice plugged in the wrong way round is not simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// The SubDevice before it, by its place in the list; less than its own.
    pub parent: usize,
    /// That SubDevice's port, 1 to 3.
    pub port: usize,
    /// Propagation delay of the cable between them, one way.
    pub delay: Duration,
}

impl Attachment {
    /// At `port` of `parent`, with a cable of 20 m.
    #[must_use]
    pub const fn new(parent: usize, port: usize) -> Self {
        Self { parent, port, delay: CABLE_DELAY }
    }

    /// The same with another cable.
    #[must_use]
    pub const fn with_delay(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }
}

/// About 20 m at 5 ns a metre.
pub const CABLE_DELAY: Duration = Duration::from_nanos(100);

/// Why SubDevices cannot be joined as asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TopologyError {
    /// There is one attachment for each SubDevice but the first.
    #[error("{found} attachments, expected {expected}: one for each SubDevice but the first")]
    Count {
        /// Attachments needed.
        expected: usize,
        /// Attachments given.
        found: usize,
    },
    /// A SubDevice hangs on one that stands behind it in the list.
    #[error("SubDevice {child} is attached to SubDevice {parent}, expected one before it")]
    Parent {
        /// The SubDevice.
        child: usize,
        /// What it should be attached to.
        parent: usize,
    },
    /// A port that is none, or port 0, which leads to the SubDevice's own parent.
    #[error("SubDevice {child} is attached to port {port} of SubDevice {parent}, expected 1 to 3")]
    Port {
        /// The SubDevice.
        child: usize,
        /// What it should be attached to.
        parent: usize,
        /// The port.
        port: usize,
    },
    /// Two cables in one port.
    #[error(
        "port {port} of SubDevice {parent} is taken by SubDevice {first}, found SubDevice {second} there too"
    )]
    Taken {
        /// The SubDevice with the port.
        parent: usize,
        /// The port.
        port: usize,
        /// Who is plugged in.
        first: usize,
        /// Who should be as well.
        second: usize,
    },
}

/// What is plugged into a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cable {
    /// The SubDevice at the other end; `None`: the MainDevice.
    pub(super) neighbour: Option<usize>,
    /// The port there.
    pub(super) port: usize,
    /// One way, in ns.
    pub(super) delay: u64,
    pub(super) plugged: bool,
}

/// All cables, by SubDevice and port.
#[derive(Clone, Debug)]
pub(super) struct Topology {
    pub(super) cables: Vec<[Option<Cable>; PORTS]>,
    /// SubDevices that have power.
    pub(super) powered: Vec<bool>,
}

impl Topology {
    /// `attachments` of all SubDevices but the first, which hangs on the MainDevice.
    pub(super) fn new(count: usize, attachments: &[Attachment]) -> Result<Self, TopologyError> {
        let expected = count.saturating_sub(1);
        if attachments.len() != expected {
            return Err(TopologyError::Count { expected, found: attachments.len() });
        }
        let mut cables = vec![[None; PORTS]; count];
        if let Some(first) = cables.first_mut() {
            first[0] = Some(Cable { neighbour: None, port: 0, delay: 0, plugged: true });
        }
        for (child, attachment) in (1..).zip(attachments) {
            let Attachment { parent, port, delay } = *attachment;
            if parent >= child {
                return Err(TopologyError::Parent { child, parent });
            }
            if !(1..PORTS).contains(&port) {
                return Err(TopologyError::Port { child, parent, port });
            }
            if let Some(Cable { neighbour: Some(first), .. }) = cables[parent][port] {
                return Err(TopologyError::Taken { parent, port, first, second: child });
            }
            let delay = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX).min(LONGEST_DELAY);
            cables[parent][port] = Some(Cable { neighbour: Some(child), port: 0, delay, plugged: true });
            cables[child][0] = Some(Cable { neighbour: Some(parent), port, delay, plugged: true });
        }
        Ok(Self { cables, powered: vec![true; count] })
    }

    /// Whether there is a link at `port` of `device`.
    pub(super) fn has_link(&self, device: usize, port: usize) -> bool {
        self.link(device, port).is_some()
    }

    /// The cable at `port` of `device`, if it is plugged in and both ends have power.
    fn link(&self, device: usize, port: usize) -> Option<Cable> {
        let powered = |device: usize| self.powered[device];
        self.cables[device][port]
            .filter(|cable| cable.plugged && powered(device) && cable.neighbour.is_none_or(powered))
    }
}

/// One SubDevice on a frame's way: when the frame comes in at port 0, and when it comes back at the
/// others, in ns after it came in at the first SubDevice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hop {
    pub(super) device: usize,
    pub(super) arrival: u64,
    pub(super) ports: [Option<u64>; PORTS],
}

/// A frame's way through the segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Route {
    /// In the order of processing, which is that of auto-increment addresses.
    pub(super) hops: Vec<Hop>,
    /// Whether the frame comes back at all.
    pub(super) returns: bool,
}

/// How a port treats frames that want to go out there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loop {
    /// They turn back inside the ESC.
    Closed,
    /// They go out, and are lost if nothing is there.
    Open,
}

impl Route {
    /// Walks `topology`; `loops` and `forwarding_delays` (ns) by SubDevice.
    pub(super) fn trace(topology: &Topology, loops: &[[Loop; PORTS]], forwarding_delays: &[u64]) -> Self {
        let mut route = Self::default();
        if topology.cables.is_empty() || !topology.has_link(0, 0) {
            return route;
        }
        // Where in `hops` each SubDevice stands that the frame is in.
        let mut places = vec![None; topology.cables.len()];
        let (mut device, mut port, mut time) = (0, 0, 0);
        loop {
            // The frame comes in at `port` of `device`.
            let place = *places[device].get_or_insert_with(|| {
                route.hops.push(Hop { device, arrival: time, ports: [None; PORTS] });
                route.hops.len() - 1
            });
            route.hops[place].ports[port] = Some(time);
            time += forwarding_delays[device];
            let out = next_port(&loops[device], port);
            match topology.link(device, out) {
                Some(Cable { neighbour: Some(neighbour), port: entry, delay, .. }) => {
                    time += delay;
                    (device, port) = (neighbour, entry);
                }
                Some(_) => {
                    route.returns = true;
                    return route;
                }
                None => return route,
            }
        }
    }
}

/// The port at which a frame that came in at `port` goes out: the next one that is open, in the order
/// 0, 3, 1, 2 (ESC data sheet, section I, 3.2). Port 0 is the way out when all others are closed.
fn next_port(loops: &[Loop; PORTS], port: usize) -> usize {
    let place = FORWARDING_ORDER.iter().position(|&it| it == port).unwrap_or(0);
    let behind = FORWARDING_ORDER[place + 1..].iter().copied();
    behind.into_iter().find(|&out| loops[out] == Loop::Open).unwrap_or(0)
}

/// A second would be a cable around the world.
const LONGEST_DELAY: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(topology: &Topology) -> Route {
        let count = topology.cables.len();
        let open = |device, port| if topology.has_link(device, port) { Loop::Open } else { Loop::Closed };
        let loops: Vec<_> =
            (0..count).map(|device| core::array::from_fn(|port| open(device, port))).collect();
        Route::trace(topology, &loops, &vec![10; count])
    }

    #[test]
    fn a_line_goes_there_and_back() {
        let attachments = [1, 2].map(|child| Attachment::new(child - 1, 1));
        let route = trace(&Topology::new(3, &attachments).unwrap());
        assert!(route.returns);
        let arrivals: Vec<_> =
            route.hops.iter().map(|hop| (hop.device, hop.arrival, hop.ports[1])).collect();
        assert_eq!(arrivals, [(0, 0, Some(440)), (1, 110, Some(330)), (2, 220, None)]);
    }

    #[test]
    fn branches_are_visited_in_the_order_of_ports_three_one_two() {
        let attachments = [1, 2, 3].map(|port| Attachment::new(0, port));
        let route = trace(&Topology::new(4, &attachments).unwrap());
        let order: Vec<_> = route.hops.iter().map(|hop| hop.device).collect();
        assert_eq!(order, [0, 3, 1, 2]);
        // Each branch takes two cables and two ways through an ESC.
        assert_eq!(route.hops[0].ports, [Some(0), Some(440), Some(660), Some(220)]);
    }

    #[test]
    fn impossible_joints_are_errors_that_name_both_ends() {
        let error = |count, attachments: &[Attachment]| Topology::new(count, attachments).unwrap_err();
        assert_eq!(error(3, &[Attachment::new(0, 1)]), TopologyError::Count { expected: 2, found: 1 });
        assert_eq!(error(2, &[Attachment::new(1, 1)]), TopologyError::Parent { child: 1, parent: 1 });
        let port = TopologyError::Port { child: 1, parent: 0, port: 0 };
        assert_eq!(error(2, &[Attachment::new(0, 0)]), port);
        let taken = TopologyError::Taken { parent: 0, port: 1, first: 1, second: 2 };
        assert_eq!(error(3, &[Attachment::new(0, 1), Attachment::new(0, 1)]), taken);
    }
}
