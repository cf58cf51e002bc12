//! Absent and unexpected SubDevices: addresses during bring-up, reports, counts.

use alloc::vec::Vec;

use super::MainDevice;
use super::error::BusError;
use super::layout::Layout;
use super::phase::Phase;
use super::plan;
use super::presence;
use super::report::Event;
use super::sub_device::{SubDevice, station_address};
use super::worker::Worker;

impl MainDevice {
    /// Gives each SubDevice found the address of its description; unexpected ones have none.
    pub(super) fn begin_addresses(&mut self) -> Result<(), BusError> {
        let mut written = Vec::with_capacity(self.sub_devices.len());
        for (it, position) in self.sub_devices.iter_mut().zip(&self.assigned) {
            let station = position.map_or(0, station_address);
            written.push(it.station_address != station);
            it.station_address = station;
        }
        self.make_workers();
        for (worker, _) in self.workers.iter_mut().zip(written).filter(|(_, it)| *it) {
            worker.start(&mut plan::address());
        }
        self.phase = Phase::Address;
        Ok(())
    }

    /// Moves SubDevices, found and absent, to their positions of the description.
    pub(super) fn put_in_places(&mut self) -> Result<(), BusError> {
        let found = core::mem::take(&mut self.sub_devices);
        let reference = self.reference.and_then(|place| *self.assigned.get(usize::from(place))?);
        let Some(described) = self.configuration.may_lack() else {
            self.sub_devices = found;
            return self.begin_clocks();
        };
        (self.sub_devices, self.strangers) = presence::merge(found, &self.assigned, described);
        self.reference = reference;
        self.make_workers();
        self.check_siis()?;
        self.begin_clocks()
    }

    /// Reports described SubDevices that are absent, and present ones that are not described.
    pub(super) fn tell_who_is_absent(&mut self) {
        for position in 0..self.sub_devices.len() {
            if self.sub_devices[position].is_absent {
                self.tell(Event::Absent { position: position as u16 });
            }
        }
        for number in 0..self.strangers.len() {
            let presence::Stranger { place, identity, expected } = self.strangers[number];
            self.tell(Event::Stranger { place, identity, expected, known: None });
        }
    }

    /// True while the SubDevice at `position` is present and another of its group is absent: it
    /// exchanges nothing, and nothing waits for it.
    #[must_use]
    pub fn waits_for_its_group(&self, position: usize) -> bool {
        self.cycle.waits(position)
    }

    /// True if the optional SubDevice at `position` is on the bus and could not be brought to Op:
    /// it is tried again, or left alone ([`Event::NotRecovered`]). [`SubDevice::is_absent`] until
    /// it is in Op.
    #[must_use]
    pub fn could_not_join(&self, position: usize) -> bool {
        let is_absent = self.sub_devices.get(position).is_some_and(SubDevice::is_absent);
        is_absent && self.recovery.has_failed(position)
    }

    /// True if the SubDevice at `position` does not answer to its address ([`Event::Unreachable`]),
    /// or is not known to be on the bus. Lost frames prove nothing.
    #[must_use]
    pub fn does_not_answer(&self, position: u16) -> bool {
        let worker = self.workers.get(usize::from(position));
        self.is_gone(position) || worker.is_some_and(Worker::is_unanswered)
    }

    /// True if the SubDevice at `position` is not on the bus, as far as is known.
    pub(super) fn is_gone(&self, position: u16) -> bool {
        let is_absent = self.sub_devices.get(usize::from(position)).is_some_and(SubDevice::is_absent);
        is_absent || self.recovery.is_lost(position)
    }

    /// Takes over a layout; absent SubDevices are not counted.
    pub(super) fn lay_out(&mut self, layout: Layout, groups: &[Option<u16>]) {
        self.cycle.set_layout(layout, groups);
        self.cycle.set_period(self.configuration.period);
        for it in self.sub_devices.iter().filter(|it| it.is_absent) {
            self.cycle.count(it.position, false);
        }
        self.poll_all();
    }
}
