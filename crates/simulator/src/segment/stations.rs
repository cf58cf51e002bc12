//! SubDevices by station address, and by the logical addresses that they map: found without asking
//! each.
//!
//! Due times of SubDevices, side by side: at most frames none is due.

use core::ops::Range;

use ethercat::register::dl::PORTS;
use ethercat::time::Instant;

use crate::sub_device::SubDevice;

/// One SubDevice on the path of a frame: time of its processing, and of its arrival at each port,
/// in ns after its arrival at the first SubDevice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hop {
    pub(super) device: usize,
    pub(super) arrival: u64,
    pub(super) ports: [Option<u64>; PORTS],
}

/// Addresses of the SubDevices on a path, by place; they hold until one changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Addresses {
    /// Station addresses and aliases in use, in their order, and the place of each.
    by_station: Vec<(u16, usize)>,
    stations_known: bool,
    /// Logical addresses that FMMUs map, by their starts: start, end, and the place of the FMMU.
    spans: Vec<(u64, u64, usize)>,
    /// Length of the longest of them.
    longest: u64,
    spans_known: bool,
    /// Places that a datagram was found to reach.
    found: Vec<usize>,
}

impl Addresses {
    /// Space for `count` SubDevices, so that finding them does not allocate.
    pub(super) fn with_capacity(count: usize) -> Self {
        let (by_station, found) = (Vec::with_capacity(2 * count), Vec::with_capacity(USED_FMMUS * count));
        Self { by_station, spans: Vec::with_capacity(USED_FMMUS * count), found, ..Self::default() }
    }

    /// A station address or alias has changed.
    pub(super) fn forget_stations(&mut self) {
        self.stations_known = false;
    }

    /// FMMUs have changed.
    pub(super) fn forget_spans(&mut self) {
        self.spans_known = false;
    }

    /// Entries of [`Self::place`] with this station address, in the order of the path.
    pub(super) fn of_station(&mut self, station: u16, hops: &[Hop], devices: &[SubDevice]) -> Range<usize> {
        if !core::mem::replace(&mut self.stations_known, true) {
            self.by_station.clear();
            for (place, hop) in hops.iter().enumerate() {
                let addresses = devices[hop.device].esc().stations();
                self.by_station.extend(addresses.map(|address| (address, place)));
            }
            self.by_station.sort_unstable();
            self.by_station.dedup();
        }
        let first = self.by_station.partition_point(|(address, _)| *address < station);
        let count = self.by_station[first..].iter().take_while(|(address, _)| *address == station).count();
        first..first + count
    }

    /// Place on the path of an entry.
    pub(super) fn place(&self, entry: usize) -> usize {
        self.by_station[entry].1
    }

    /// Finds the positions of the FMMUs that map a part of `length` bytes at `address`, in the
    /// order of the path. Returns their count, for [`Self::found`].
    pub(super) fn find_logical(
        &mut self,
        address: u32,
        length: usize,
        hops: &[Hop],
        devices: &[SubDevice],
    ) -> usize {
        if !core::mem::replace(&mut self.spans_known, true) {
            self.spans.clear();
            for (place, hop) in hops.iter().enumerate() {
                let spans = devices[hop.device].esc().logical_spans();
                self.spans.extend(spans.map(|span| (span.start, span.end, place)));
            }
            self.spans.sort_unstable();
            self.longest = self.spans.iter().map(|(start, end, _)| end - start).max().unwrap_or(0);
        }
        let (start, end) = (u64::from(address), u64::from(address) + length as u64);
        let first = self.spans.partition_point(|(at, ..)| at + self.longest <= start);
        let near = self.spans[first..].iter().take_while(|(at, ..)| *at < end);
        self.found.clear();
        self.found.extend(near.filter(|(_, behind, _)| *behind > start).map(|(.., place)| *place));
        self.found.sort_unstable();
        self.found.dedup();
        self.found.len()
    }

    /// Position of the found station with this number.
    pub(super) fn found(&self, number: usize) -> usize {
        self.found[number]
    }
}

/// FMMUs that a SubDevice usually uses.
const USED_FMMUS: usize = 4;

/// Due times, by SubDevice.
#[derive(Debug)]
pub(super) struct Schedule {
    due: Vec<Instant>,
    /// Earliest time at which a SubDevice is due.
    next: Instant,
}

impl Schedule {
    /// All are due at once.
    pub(super) fn new(count: usize) -> Self {
        Self { due: vec![Instant::EPOCH; count], next: Instant::EPOCH }
    }

    /// True if one may be due by `now`.
    pub(super) fn has_come(&self, now: Instant) -> bool {
        self.next <= now
    }

    /// True if this SubDevice is due by `now`.
    pub(super) fn is_due(&self, device: usize, now: Instant) -> bool {
        self.due[device] <= now
    }

    /// Sets when this SubDevice is due; `None` is never.
    pub(super) fn set(&mut self, device: usize, due: Option<Instant>) {
        let due = due.unwrap_or(NEVER);
        self.due[device] = due;
        self.next = self.next.min(due);
    }

    /// Finds the next due SubDevice, after all due ones were served.
    pub(super) fn settle(&mut self) {
        self.next = self.due.iter().copied().min().unwrap_or(NEVER);
    }
}

/// Behind the end of simulated time.
const NEVER: Instant = Instant::from_nanos(u64::MAX);

#[cfg(test)]
mod tests {
    use super::*;

    /// Outputs and inputs of SubDevices, including long ones and an FMMU that covers all.
    #[test]
    fn stations_of_a_datagram_are_found_once_in_path_order() {
        let mut spans =
            vec![(0, 4, 0), (4, 4 + 20, 1), (24, 25, 2), (24, 25, 3), (40, 44, 0), (44, 45, 1), (2, 60, 4)];
        spans.sort_unstable();
        let longest = 58;
        let mut it = Addresses { spans: spans.clone(), longest, spans_known: true, ..Addresses::default() };
        for address in 0..70 {
            for length in 1..70 {
                let count = it.find_logical(address, length, &[], &[]);
                let found: Vec<usize> = (0..count).map(|number| it.found(number)).collect();
                let (start, end) = (u64::from(address), u64::from(address) + length as u64);
                let maps = |place: &usize| {
                    spans.iter().any(|(from, to, at)| at == place && *from < end && *to > start)
                };
                assert_eq!(found, (0..5).filter(maps).collect::<Vec<_>>(), "{length} bytes at {address}");
            }
        }
    }
}
