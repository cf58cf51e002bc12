//! SubDevices that are asked something with each cycle, one at a time: the difference of a clock, mail.

use alloc::vec::Vec;

use super::super::MainDevice;
use super::super::sub_device::SubDevice;

/// SubDevices that are asked in turn.
#[derive(Debug, Default)]
pub(in super::super) struct Polled {
    positions: Vec<u16>,
    next: usize,
    /// Position of the one that the newest frame asks.
    pub(in super::super) asked: u16,
}

impl Polled {
    /// Asks these from now on, at most so many, in ascending order, and goes on behind the one asked last: nothing is allocated where there was room
    /// for them before.
    fn set(&mut self, most: usize, positions: impl Iterator<Item = u16>) {
        self.positions.clear();
        self.positions.reserve(most);
        self.positions.extend(positions);
        self.next = self.positions.iter().position(|&it| it > self.asked).unwrap_or(0);
    }

    /// Position of the next one, which is asked.
    #[inline(always)]
    pub(super) fn turn(&mut self) -> Option<u16> {
        self.asked = *self.positions.get(self.next)?;
        self.next = if self.next + 1 < self.positions.len() { self.next + 1 } else { 0 };
        Some(self.asked)
    }
}

impl MainDevice {
    /// Asks those that have a clock and a mailbox, as far as they are known.
    pub(in super::super) fn poll_all(&mut self) {
        let Self { cycle, sub_devices, .. } = self;
        let those = |has: fn(&SubDevice) -> bool| {
            sub_devices.iter().filter(move |it| has(it)).map(|it| it.position)
        };
        cycle.clocks.set(sub_devices.len(), those(|it| it.clock.is_some()));
        cycle.mailboxes.set(sub_devices.len(), those(|it| it.mailbox.is_some()));
    }
}
