//! SubDevices by station address, and by the logical addresses that they map: found without asking each.

use core::ops::Range;

use super::topology::Hop;
use crate::sub_device::SubDevice;

/// Addresses of the SubDevices on a path, by place; they hold until one changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Addresses {
    /// Station addresses and aliases in use, in their order, and the place of each.
    by_station: Vec<(u16, usize)>,
    stations_known: bool,
    /// Logical addresses that FMMUs map, first to last, by place.
    spans: Vec<Range<u64>>,
    spans_known: bool,
}

impl Addresses {
    /// Room for so many SubDevices: finding them allocates nothing.
    pub(super) fn with_capacity(count: usize) -> Self {
        let (by_station, spans) = (Vec::with_capacity(2 * count), Vec::with_capacity(count));
        Self { by_station, spans, ..Self::default() }
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

    /// Looks up the logical addresses of all, unless they are known.
    pub(super) fn find_spans(&mut self, hops: &[Hop], devices: &[SubDevice]) {
        if !core::mem::replace(&mut self.spans_known, true) {
            self.spans.clear();
            self.spans.extend(hops.iter().map(|hop| devices[hop.device].esc().logical_span()));
        }
    }

    /// True if the FMMUs of the SubDevice at `place` may map a part of `length` bytes at `address`.
    pub(super) fn maps(&self, place: usize, address: u32, length: usize) -> bool {
        let (span, start) = (&self.spans[place], u64::from(address));
        start < span.end && start + length as u64 > span.start
    }
}
