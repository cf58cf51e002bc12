//! Topology of the SubDevices, and the path of a frame through them.

use core::time::Duration;

use ethercat::link::End;
use ethercat::register::dl::{FORWARDING_ORDER, PORTS};
use thiserror::Error;
use types::time::nanoseconds;

use super::stations::{Addresses, Hop};

/// Attachment of a SubDevice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// Index of the SubDevice before it in the list; less than its own.
    pub parent: usize,
    /// Port of that SubDevice.
    pub port: usize,
    /// Own port at the other end of the cable: 0, unless IN and OUT are swapped.
    pub entry: usize,
    /// Propagation delay of the cable between them, one way.
    pub delay: Duration,
}

impl Attachment {
    /// Attaches to `port` of `parent`, with a cable of 20 m.
    #[must_use]
    pub const fn new(parent: usize, port: usize) -> Self {
        Self { parent, port, entry: 0, delay: CABLE_DELAY }
    }

    /// Attaches by the SubDevice's port `entry` instead.
    #[must_use]
    pub const fn entered_at(self, entry: usize) -> Self {
        Self { entry, ..self }
    }

    /// Changes the delay of the cable.
    #[must_use]
    pub const fn with_delay(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }
}

/// Delay of a cable of 20 m, at 5 ns per metre.
pub const CABLE_DELAY: Duration = Duration::from_nanos(100);

/// Reason for which SubDevices cannot be joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// The number of attachments differs from one for each SubDevice but the first.
    #[error("{found} attachments, expected {expected}: one for each SubDevice but the first")]
    Count {
        /// Attachments needed.
        expected: usize,
        /// Attachments given.
        found: usize,
    },
    /// A SubDevice is attached to one that follows it in the list.
    #[error("SubDevice {child} is attached to SubDevice {parent}, expected one before it")]
    Parent {
        /// Index of the SubDevice.
        child: usize,
        /// Index of its parent.
        parent: usize,
    },
    /// The entry port of the first SubDevice does not exist.
    #[error("the first SubDevice is entered at port {port}, expected 0 to 3")]
    Entry {
        /// The port.
        port: usize,
    },
    /// A port that does not exist, or that leads to the SubDevice's own parent.
    #[error(
        "SubDevice {child} is attached with port {entry} to port {port} of SubDevice {parent}, expected ports 0 to 3 \
         and not that SubDevice's own way in"
    )]
    Port {
        /// Index of the SubDevice.
        child: usize,
        /// Index of its parent.
        parent: usize,
        /// Port of the parent.
        port: usize,
        /// Own port.
        entry: usize,
    },
    /// The second end of a ring is at a port that does not exist, or is in use; or there is one
    /// already.
    #[error(
        "the ring ends at port {port} of SubDevice {position}, expected a port 0 to 3 without a cable, and one such end"
    )]
    RingEnd {
        /// Index of the SubDevice.
        position: usize,
        /// Port.
        port: usize,
    },
    /// Two cables in one port.
    #[error(
        "port {port} of SubDevice {parent} is taken by SubDevice {first}, found SubDevice {second} there too"
    )]
    Taken {
        /// Index of the SubDevice with the port.
        parent: usize,
        /// The port.
        port: usize,
        /// Index of the SubDevice already connected.
        first: usize,
        /// Index of the second SubDevice.
        second: usize,
    },
}

/// Cable in a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cable {
    /// SubDevice at the other end; `None` is the MainDevice.
    pub(super) neighbour: Option<usize>,
    /// Port at the other end; of the MainDevice, the number of its interface.
    pub(super) port: usize,
    /// Delay one way, in ns.
    pub(super) delay: u64,
    pub(super) plugged: bool,
}

/// Cables, by SubDevice and port.
#[derive(Clone, Debug)]
pub(super) struct Topology {
    pub(super) cables: Vec<[Option<Cable>; PORTS]>,
    /// Power of each SubDevice.
    pub(super) powered: Vec<bool>,
    /// SubDevice and port that each interface of the MainDevice leads to.
    pub(super) ends: [Option<(usize, usize)>; 2],
    /// Link of each of these cables, where they are plugged.
    pub(super) linked: [bool; 2],
}

impl Topology {
    /// Topology of `attachments` of all SubDevices but the first, which is attached to the
    /// MainDevice by its port `first_entry`.
    pub(super) fn new(
        count: usize,
        first_entry: usize,
        attachments: &[Attachment],
    ) -> Result<Self, TopologyError> {
        if first_entry >= PORTS {
            return Err(TopologyError::Entry { port: first_entry });
        }
        let expected = count.saturating_sub(1);
        if attachments.len() != expected {
            return Err(TopologyError::Count { expected, found: attachments.len() });
        }
        let mut cables = vec![[None; PORTS]; count];
        if let Some(first) = cables.first_mut() {
            first[first_entry] = Some(Cable { neighbour: None, port: 0, delay: 0, plugged: true });
        }
        let mut entries = vec![first_entry];
        for (child, attachment) in (1..).zip(attachments) {
            let Attachment { parent, port, entry, delay } = *attachment;
            if parent >= child {
                return Err(TopologyError::Parent { child, parent });
            }
            if port >= PORTS || entry >= PORTS || port == entries[parent] {
                return Err(TopologyError::Port { child, parent, port, entry });
            }
            entries.push(entry);
            if let Some(Cable { neighbour: Some(first), .. }) = cables[parent][port] {
                return Err(TopologyError::Taken { parent, port, first, second: child });
            }
            let delay = nanoseconds(delay).min(LONGEST_DELAY);
            cables[parent][port] =
                Some(Cable { neighbour: Some(child), port: entry, delay, plugged: true });
            cables[child][entry] = Some(Cable { neighbour: Some(parent), port, delay, plugged: true });
        }
        let ends = [(count > 0).then_some((0, first_entry)), None];
        Ok(Self { cables, powered: vec![true; count], ends, linked: [true; 2] })
    }

    /// Joins `port` of the SubDevice at `position` to the MainDevice's second interface.
    pub(super) fn close_ring(&mut self, position: usize, port: usize) -> Result<(), TopologyError> {
        let error = TopologyError::RingEnd { position, port };
        let cable = self.cables.get_mut(position).and_then(|ports| ports.get_mut(port)).ok_or(error)?;
        if cable.is_some() || self.ends[End::Second as usize].is_some() {
            return Err(error);
        }
        let interface = End::Second as usize;
        *cable = Some(Cable { neighbour: None, port: interface, delay: 0, plugged: true });
        self.ends[interface] = Some((position, port));
        Ok(())
    }

    /// True if there is a link at `port` of `device`.
    pub(super) fn has_link(&self, device: usize, port: usize) -> bool {
        self.link(device, port).is_some()
    }

    /// Cable at `port` of `device`, if both ends are connected and have power.
    fn link(&self, device: usize, port: usize) -> Option<Cable> {
        self.cables[device][port].filter(|cable| {
            let there = match cable.neighbour {
                Some(neighbour) => self.powered[neighbour],
                None => self.linked[cable.port],
            };
            cable.plugged && self.powered[device] && there
        })
    }
}

/// Path of a frame through the segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Route {
    /// Hops in the order of processing, which is the order of auto-increment addresses.
    pub(super) hops: Vec<Hop>,
    /// SubDevices that it passes and is not processed by: on the way back round a ring.
    pub(super) passed: Vec<Hop>,
    /// End at which the frame comes out, if it does.
    pub(super) returns: Option<End>,
    /// True if the frame was processed behind a port 0 without a link, which marks it as
    /// circulating; a second such ESC destroys it (ESC data sheet, section I, 3.5).
    pub(super) circulates: bool,
    /// Addresses of the SubDevices that process it.
    pub(super) addresses: Addresses,
}

/// Treatment of frames that leave by a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loop {
    /// Returned inside the ESC.
    Closed,
    /// Sent, and lost if there is no link.
    Open,
}

impl Route {
    /// Traces a frame that enters at `end` of `topology`; `loops` and `forwarding_delays` (ns) by
    /// SubDevice.
    pub(super) fn trace(
        topology: &Topology,
        end: End,
        loops: &[[Loop; PORTS]],
        forwarding_delays: &[u64],
    ) -> Self {
        let mut route = Self::default();
        let entry = topology.ends[end as usize];
        let Some((mut device, mut port)) = entry.filter(|&(device, port)| topology.has_link(device, port))
        else {
            return route;
        };
        let mut arrivals = vec![[None; PORTS]; topology.cables.len()];
        let mut order = Vec::with_capacity(topology.cables.len());
        let mut time = 0;
        loop {
            // The frame arrives at `port` of `device`.
            if arrivals[device] == [None; PORTS] {
                order.push((device, time));
            }
            arrivals[device][port] = Some(time);
            let (out, is_processed) = next_port(&loops[device], port);
            if is_processed {
                let passes_port_0 = port == 0;
                if !passes_port_0 && core::mem::replace(&mut route.circulates, true) {
                    break;
                }
                route.hops.push(Hop { device, arrival: time, ports: [None; PORTS] });
            }
            time += forwarding_delays[device];
            match topology.link(device, out) {
                Some(Cable { neighbour: Some(neighbour), port: entry, delay, .. }) => {
                    time += delay;
                    (device, port) = (neighbour, entry);
                }
                Some(Cable { port: interface, .. }) => {
                    route.returns = End::ALL.get(interface).copied();
                    break;
                }
                None => break,
            }
        }
        let is_processed = |device: usize| route.hops.iter().any(|hop| hop.device == device);
        order.retain(|&(device, _)| !is_processed(device));
        let hop = |(device, arrival)| Hop { device, arrival, ports: [None; PORTS] };
        route.passed = order.into_iter().map(hop).collect();
        route.addresses = Addresses::with_capacity(route.hops.len());
        let hops = route.hops.iter_mut().chain(&mut route.passed);
        hops.for_each(|hop| hop.ports = arrivals[hop.device]);
        route
    }
}

/// Port by which a frame that arrived at `port` leaves: the next open one, in the order 0, 3, 1, 2
/// and round again (ESC data sheet, section I, 3.2); and `true` if it is processed on its way,
/// behind port 0. If all others are closed it leaves by the same port.
fn next_port(loops: &[Loop; PORTS], port: usize) -> (usize, bool) {
    let place = FORWARDING_ORDER.iter().position(|&it| it == port).unwrap_or(0);
    let mut is_processed = port == 0;
    for ahead in 1..PORTS {
        let out = FORWARDING_ORDER[(place + ahead) % PORTS];
        if loops[out] == Loop::Open {
            return (out, is_processed);
        }
        is_processed |= out == 0;
    }
    (port, is_processed)
}

/// Longest delay of a cable, one second: longer than any cable around the world.
const LONGEST_DELAY: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(topology: &Topology) -> Route {
        trace_from(End::First, topology)
    }

    fn trace_from(end: End, topology: &Topology) -> Route {
        let count = topology.cables.len();
        let open = |device, port| if topology.has_link(device, port) { Loop::Open } else { Loop::Closed };
        let loops: Vec<_> =
            (0..count).map(|device| core::array::from_fn(|port| open(device, port))).collect();
        Route::trace(topology, end, &loops, &vec![10; count])
    }

    #[test]
    fn a_line_goes_there_and_back() {
        let attachments = [1, 2].map(|child| Attachment::new(child - 1, 1));
        let route = trace(&Topology::new(3, 0, &attachments).unwrap());
        assert_eq!(route.returns, Some(End::First));
        let arrivals: Vec<_> =
            route.hops.iter().map(|hop| (hop.device, hop.arrival, hop.ports[1])).collect();
        assert_eq!(arrivals, [(0, 0, Some(440)), (1, 110, Some(330)), (2, 220, None)]);
    }

    #[test]
    fn branches_are_visited_in_the_order_of_ports_three_one_two() {
        let attachments = [1, 2, 3].map(|port| Attachment::new(0, port));
        let route = trace(&Topology::new(4, 0, &attachments).unwrap());
        let order: Vec<_> = route.hops.iter().map(|hop| hop.device).collect();
        assert_eq!(order, [0, 3, 1, 2]);
        // Each branch takes two cables and two passages of an ESC.
        assert_eq!(route.hops[0].ports, [Some(0), Some(440), Some(660), Some(220)]);
    }

    #[test]
    fn behind_a_swapped_subdevice_others_are_processed_first() {
        let attachments = [Attachment::new(0, 1).entered_at(1), Attachment::new(1, 0)];
        let route = trace(&Topology::new(3, 0, &attachments).unwrap());
        let hops: Vec<_> = route.hops.iter().map(|hop| (hop.device, hop.arrival)).collect();
        assert_eq!(hops, [(0, 0), (2, 220), (1, 330)]);
        assert_eq!(route.hops[2].ports, [Some(330), Some(110), None, None]);
        assert!(route.returns.is_some() && !route.circulates);
        let first = [Attachment::new(0, 0), Attachment::new(1, 1)];
        let route = trace(&Topology::new(3, 1, &first).unwrap());
        let order: Vec<_> = route.hops.iter().map(|hop| hop.device).collect();
        assert_eq!((order, route.returns), (vec![1, 2, 0], Some(End::First)));
    }

    #[test]
    fn frame_is_processed_behind_at_most_one_linkless_port_0() {
        let last = [Attachment::new(0, 1), Attachment::new(1, 1).entered_at(1)];
        let route = trace(&Topology::new(3, 0, &last).unwrap());
        assert_eq!((route.hops.len(), route.returns, route.circulates), (3, Some(End::First), true));
        let two = [Attachment::new(0, 3).entered_at(1), Attachment::new(0, 1).entered_at(2)];
        let route = trace(&Topology::new(3, 0, &two).unwrap());
        assert_eq!((route.hops.len(), route.returns), (2, None));
    }

    fn ring(count: usize) -> Topology {
        let attachments: Vec<_> = (1..count).map(|child| Attachment::new(child - 1, 1)).collect();
        let mut topology = Topology::new(count, 0, &attachments).unwrap();
        topology.close_ring(count - 1, 1).unwrap();
        topology
    }

    fn devices(hops: &[Hop]) -> Vec<usize> {
        hops.iter().map(|hop| hop.device).collect()
    }

    #[test]
    fn round_a_closed_ring_frames_are_processed_in_one_direction() {
        let topology = ring(3);
        let there = trace(&topology);
        assert_eq!((devices(&there.hops), there.returns), (vec![0, 1, 2], Some(End::Second)));
        let back = trace_from(End::Second, &topology);
        assert_eq!((devices(&back.hops), devices(&back.passed)), (vec![], vec![2, 1, 0]));
        assert_eq!((back.returns, back.circulates), (Some(End::First), false));
        assert_eq!(back.passed[2].ports, [None, Some(220), None, None]);
    }

    // feature(simulator): rings with two ends: frames in from either, breaks anywhere
    #[test]
    fn frames_turn_back_at_a_break_and_each_part_processes_its_own() {
        let mut topology = ring(4);
        topology.cables[1][1].as_mut().unwrap().plugged = false;
        topology.cables[2][0].as_mut().unwrap().plugged = false;
        let first = trace(&topology);
        assert_eq!(
            (devices(&first.hops), first.returns, first.circulates),
            (vec![0, 1], Some(End::First), false)
        );
        let second = trace_from(End::Second, &topology);
        assert_eq!((devices(&second.hops), second.returns), (vec![2, 3], Some(End::Second)));
        assert!(second.circulates && second.passed.is_empty());
        assert_eq!(second.hops[1].ports, [Some(220), Some(0), None, None]);
    }

    #[test]
    fn a_ring_ends_at_one_free_port() {
        let mut topology = ring(2);
        for (position, port) in [(1, 1), (1, 2), (0, 0), (0, 4), (2, 1)] {
            let error = TopologyError::RingEnd { position, port };
            assert_eq!(topology.close_ring(position, port), Err(error));
        }
    }

    #[test]
    fn impossible_joints_are_errors_that_name_both_ends() {
        let error = |count, attachments: &[Attachment]| Topology::new(count, 0, attachments).unwrap_err();
        assert_eq!(error(3, &[Attachment::new(0, 1)]), TopologyError::Count { expected: 2, found: 1 });
        assert_eq!(error(2, &[Attachment::new(1, 1)]), TopologyError::Parent { child: 1, parent: 1 });
        let port = TopologyError::Port { child: 1, parent: 0, port: 0, entry: 0 };
        assert_eq!(error(2, &[Attachment::new(0, 0)]), port);
        let taken = TopologyError::Taken { parent: 0, port: 1, first: 1, second: 2 };
        assert_eq!(error(3, &[Attachment::new(0, 1), Attachment::new(0, 1)]), taken);
    }
}
