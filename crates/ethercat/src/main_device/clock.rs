//! Distributed clocks: from latched receive times to delays and offsets (ETG.1000.4, 6.11;
//! ETG.1000.6, 6.5).
//!
//! A broadcast write to 0x0900 latches, at every SubDevice, the local time at which the frame
//! passed each port. The frame's time beyond a port, less its time beyond the neighbour's far
//! ports, is twice the delay of the cable between them. Forwarding times inside an ESC are taken as
//! equal in both directions.

use alloc::vec::Vec;

use crate::register::DlStatus;
use crate::register::dl::PORTS;

use super::topology::{LatchedTimes, Upstream, port_before, walk};

/// One SubDevice in the calculation, in the order of the cable.
#[derive(Clone, Copy, Debug)]
pub struct ClockNode {
    /// Its ports.
    pub status: DlStatus,
    /// The port frames come in at.
    pub entry: u8,
    /// Its place in the order of processing.
    pub processed: u16,
    /// Place in the tree.
    pub upstream: Option<Upstream>,
    /// Times it latched, or `None` if it has no clock.
    pub latched: Option<LatchedTimes>,
}

/// Registers written to a SubDevice's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockSetting {
    /// Register 0x0920: system time less local time, ns, wrapping.
    pub offset: u64,
    /// Register 0x0928: time from the reference clock to here, ns.
    pub delay: u32,
}

/// The reference clock: the first SubDevice with a clock that processes a frame, as it hands its
/// time on.
#[must_use]
pub fn reference(nodes: &[ClockNode]) -> Option<usize> {
    let clocked = nodes.iter().enumerate().filter(|(_, node)| node.latched.is_some());
    clocked.min_by_key(|(_, node)| node.processed).map(|(position, _)| position)
}

/// The setting of every SubDevice with a clock, so that all show `system_time` for the instant at
/// which the reference clock processed the latching frame.
#[must_use]
pub fn settings(nodes: &[ClockNode], system_time: u64) -> Vec<Option<ClockSetting>> {
    // Twice the delays: halving at every hop of a long line would round away many ns.
    let mut entered: Vec<Option<u64>> = Vec::with_capacity(nodes.len());
    for node in nodes {
        entered.push(node.latched.map(|latched| twice_to_the_entry(nodes, &entered, node, &latched)));
    }
    let processed = |(node, entered): (&ClockNode, &Option<u64>)| {
        Some((*entered)? + 2 * u64::from(before_processing(node, &node.latched?)))
    };
    let twice: Vec<_> = nodes.iter().zip(&entered).map(processed).collect();
    let start = reference(nodes).and_then(|position| twice[position]).unwrap_or(0);
    let setting = |(node, twice): (&ClockNode, Option<u64>)| {
        let delay = u32::try_from(twice?.saturating_sub(start).div_ceil(2)).unwrap_or(u32::MAX);
        let here = system_time.wrapping_add(u64::from(delay));
        Some(ClockSetting { offset: here.wrapping_sub(node.latched?.processing_unit), delay })
    };
    nodes.iter().zip(twice).map(setting).collect()
}

/// The 64-bit time nearest to `about` with the low 32 bits `low`: a 32-bit clock wraps every 4.29
/// s.
pub(super) const fn nearest(about: u64, low: u32) -> u64 {
    about.wrapping_add_signed(low.wrapping_sub(about as u32) as i32 as i64)
}

/// The latest 64-bit time up to `latest` with the low 32 bits `low`.
pub(super) const fn latest(latest: u64, low: u32) -> u64 {
    latest.wrapping_sub((latest as u32).wrapping_sub(low) as u64)
}

/// Twice the time from the entry of the nearest upstream SubDevice with a clock to the entry of
/// this one, plus twice the upstream one's delay.
///
/// SubDevices without a clock in between count as cable; a branch at one is taken to be half way
/// round.
fn twice_to_the_entry(
    nodes: &[ClockNode],
    entered: &[Option<u64>],
    node: &ClockNode,
    latched: &LatchedTimes,
) -> u64 {
    let mut link = node.upstream;
    while let Some(upstream) = link {
        let ancestor = &nodes[usize::from(upstream.position)];
        let before = entered.get(usize::from(upstream.position)).copied().flatten();
        if let (Some(times), Some(twice)) = (ancestor.latched, before) {
            let (entry, port) = (usize::from(ancestor.entry), usize::from(upstream.port));
            let before = port_before(ancestor.status, entry, port);
            let beyond_port = times.ports[port].wrapping_sub(times.ports[before]);
            let there_and_back = beyond_port.saturating_sub(time_beyond(node, latched));
            let earlier_branches = times.ports[before].wrapping_sub(times.ports[entry]);
            return twice + 2 * u64::from(earlier_branches) + u64::from(there_and_back);
        }
        link = ancestor.upstream;
    }
    0
}

/// Delay of a SubDevice that frames pass next after another, whose delay is known: half of the
/// frame's time away from the other one, less its time behind this one. If it is not connected to
/// that one, but further upstream, the known delay is the best estimate. Both are entered at port
/// 0.
pub(super) fn delay_behind(before: (DlStatus, [u32; PORTS], u32), own: (DlStatus, [u32; PORTS])) -> u32 {
    let (status, times, delay) = before;
    let Some(port) = walk(0).skip(1).find(|&port| status.is_open(port)) else { return delay };
    let last = walk(0).filter(|&port| port == 0 || own.0.is_open(port)).last().unwrap_or(0);
    let (away, inside) = (times[port].wrapping_sub(times[0]), own.1[last].wrapping_sub(own.1[0]));
    delay.saturating_add(away.saturating_sub(inside).div_ceil(2))
}

/// Time the frame spent behind a SubDevice: from its entry to its return from the last open port.
fn time_beyond(node: &ClockNode, latched: &LatchedTimes) -> u32 {
    let entry = usize::from(node.entry);
    let last = walk(entry).filter(|&port| port == entry || node.status.is_open(port)).last();
    latched.ports[last.unwrap_or(entry)].wrapping_sub(latched.ports[entry])
}

/// Time from a SubDevice's entry until it processed the frame: none where that is port 0, behind
/// which the processing unit lies.
pub(super) fn before_processing(node: &ClockNode, latched: &LatchedTimes) -> u32 {
    let entry = usize::from(node.entry);
    let came_back = match node.status.is_open(0) {
        true => 0,
        false => port_before(node.status, entry, 0),
    };
    match entry {
        0 => 0,
        _ => latched.ports[came_back].wrapping_sub(latched.ports[entry]),
    }
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

    fn node(ports: &[usize], upstream: Option<(u16, u8)>, times: Option<([u32; 4], u64)>) -> ClockNode {
        ClockNode {
            status: open(ports),
            entry: 0,
            processed: 0,
            upstream: upstream.map(|(position, port)| Upstream { position, port }),
            latched: times.map(|(ports, processing_unit)| LatchedTimes { ports, processing_unit }),
        }
    }

    #[test]
    fn line_of_three_with_wrapping_local_clocks() {
        // Cables of 100 ns and 40 ns. Beyond port 1 of the first lie 2 * (100 + 40), of the second
        // 2 * 40.
        let wrap = u32::MAX - 10;
        let nodes = [
            node(&[0, 1], None, Some(([1000, 1280, 0, 0], 1000))),
            node(&[0, 1], Some((0, 1)), Some(([wrap, wrap.wrapping_add(80), 0, 0], 7))),
            node(&[0], Some((1, 1)), Some(([5, 0, 0, 0], 5))),
        ];
        let found = settings(&nodes, 50_000);
        let delays: Vec<_> = found.iter().map(|it| it.unwrap().delay).collect();
        assert_eq!(delays, [0, 100, 140]);
        // Every clock then shows the reference's time plus the delay at its own latch instant.
        let shown = found[2].unwrap().offset.wrapping_add(5);
        assert_eq!(shown, 50_140);
    }

    #[test]
    fn second_branch_waits_for_the_first() {
        // A coupler: branch on port 3 takes 600 ns there and back (cable 300), then port 1: cable
        // 50.
        let nodes = [
            node(&[0, 1, 3], None, Some(([0, 700, 0, 600], 0))),
            node(&[0], Some((0, 3)), Some(([9, 0, 0, 0], 9))),
            node(&[0], Some((0, 1)), Some(([4, 0, 0, 0], 4))),
        ];
        let delays: Vec<_> = settings(&nodes, 0).iter().map(|it| it.unwrap().delay).collect();
        assert_eq!(delays, [0, 300, 650]);
    }

    /// The low 32 bits of a time give the whole time if it is known roughly: over wraps in either
    /// direction.
    #[test]
    fn a_time_of_32_bits_is_the_nearest_or_the_latest_of_64() {
        let wrap = 7_u64 << 32;
        for (about, time) in
            [(wrap + 5, wrap - 5), (wrap - 5, wrap + 5), (wrap + 5, wrap + 900), (wrap, wrap)]
        {
            assert_eq!(nearest(about, time as u32), time);
        }
        assert_eq!(nearest(3, u32::MAX), u64::MAX, "before the beginning");
        for (now, time) in [(wrap + 5, wrap - 5), (wrap + 5, wrap + 5), (wrap - 1, wrap - 4_000_000_000)] {
            assert_eq!(latest(now, time as u32), time);
        }
    }

    /// Cables of 100 ns and 40 ns; the one in the middle is entered at port 1, and comes last.
    #[test]
    fn swapped_in_mid_line() {
        let mut nodes = [
            node(&[0, 1], None, Some(([1000, 1280, 0, 0], 1000))),
            node(&[0, 1], Some((0, 1)), Some(([580, 500, 0, 0], 580))),
            node(&[0], Some((1, 0)), Some(([5, 0, 0, 0], 5))),
        ];
        (nodes[1].entry, nodes[1].processed, nodes[2].processed) = (1, 2, 1);
        let delays: Vec<_> = settings(&nodes, 0).iter().map(|it| it.unwrap().delay).collect();
        assert_eq!(delays, [0, 180, 140]);
    }

    /// The same at the beginning: the reference clock is the second on the cable.
    #[test]
    fn swapped_at_the_beginning() {
        let mut nodes = [
            node(&[0, 1], None, Some(([1280, 1000, 0, 0], 1280))),
            node(&[0, 1], Some((0, 0)), Some(([500, 580, 0, 0], 500))),
            node(&[0], Some((1, 1)), Some(([5, 0, 0, 0], 5))),
        ];
        (nodes[0].entry, nodes[0].processed, nodes[1].processed, nodes[2].processed) = (1, 2, 0, 1);
        assert_eq!(reference(&nodes), Some(1));
        let delays: Vec<_> = settings(&nodes, 0).iter().map(|it| it.unwrap().delay).collect();
        assert_eq!(delays, [180, 0, 40]);
    }

    #[test]
    fn a_subdevice_without_a_clock_counts_as_cable() {
        let nodes = [
            node(&[0, 1], None, Some(([0, 500, 0, 0], 0))),
            node(&[0, 1], Some((0, 1)), None),
            node(&[0], Some((1, 1)), Some(([0, 0, 0, 0], 0))),
        ];
        assert_eq!(reference(&nodes), Some(0));
        assert_eq!(settings(&nodes, 0)[2].unwrap().delay, 250);
        assert_eq!(settings(&nodes, 0)[1], None);
    }
}
