//! Survey: the station addresses of all SubDevices there are, in the order in which frames are
//! processed.

use alloc::vec::Vec;

use crate::register;
use crate::wire::{Address, Command};

use crate::main_device::exchange::{Outgoing, Owner};

/// A survey, under way or complete.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// By place.
    stations: Vec<u16>,
    places: u16,
    next: u16,
    answered: u16,
    under_way: bool,
    /// Datagrams on their way that belong to a survey given up since.
    stale: u16,
}

impl Survey {
    /// Memory for twice as many places.
    pub(super) fn with_room(places: usize) -> Self {
        Self { stations: Vec::with_capacity(2 * places), ..Self::default() }
    }

    /// Restarts the survey; places beyond the capacity are left out.
    pub(super) fn start(&mut self, places: u16) {
        self.places = places.min(self.stations.capacity() as u16);
        self.stations.clear();
        self.stations.resize(usize::from(self.places), 0);
        (self.next, self.answered, self.under_way) = (0, 0, self.places > 0);
    }

    pub(super) fn stop(&mut self) {
        self.stale += if self.under_way { self.next - self.answered } else { 0 };
        self.under_way = false;
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.under_way || self.stale > 0
    }

    pub(super) fn is_due(&self) -> bool {
        self.under_way && self.stale == 0 && self.next < self.places
    }

    /// Appends the datagrams that fit.
    pub(super) fn emit(&mut self, outgoing: &mut Outgoing<'_>) {
        while self.is_due() {
            let address = Address::at_position(self.next, register::STATION_ADDRESS);
            if outgoing.push(Command::Aprd, address, 2, Owner::Survey(self.next)).is_none() {
                return;
            }
            self.next += 1;
        }
    }

    /// The SubDevice at `place` has this address; true if it was the last one.
    pub(super) fn answered(&mut self, place: u16, station: u16) -> bool {
        if self.stale > 0 {
            self.stale -= 1;
            return false;
        }
        if let Some(it) = self.stations.get_mut(usize::from(place)) {
            *it = station;
        }
        self.answered += 1;
        let is_complete = self.under_way && self.answered == self.places;
        self.under_way &= !is_complete;
        is_complete
    }

    /// A datagram was lost, or its place is empty now: the survey says nothing.
    pub(super) fn failed(&mut self) {
        match self.stale {
            0 => {
                self.answered += 1;
                self.stop();
            }
            _ => self.stale -= 1,
        }
    }

    /// The SubDevice at `place` gets this address.
    pub(super) fn set(&mut self, place: u16, station: u16) {
        if let Some(it) = self.stations.get_mut(usize::from(place)) {
            *it = station;
        }
    }

    /// Addresses by place.
    pub(super) fn stations(&self) -> &[u16] {
        &self.stations
    }
}
