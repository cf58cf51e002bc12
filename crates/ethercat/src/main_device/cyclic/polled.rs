//! SubDevices polled with each cycle, one at a time: for the difference of a clock, for mail.

use alloc::vec::Vec;

use super::super::MainDevice;
use super::super::sub_device::SubDevice;

/// SubDevices that are polled in turn.
#[derive(Debug, Default)]
pub(in super::super) struct Polled {
    positions: Vec<u16>,
    next: usize,
    /// Position of the SubDevice polled by the newest frame.
    pub(in super::super) asked: u16,
}

impl Polled {
    /// Polls these SubDevices from now on, at most `most`, in ascending order, continuing behind
    /// the one polled last. Allocates nothing if there was space for them before.
    fn set(&mut self, most: usize, positions: impl Iterator<Item = u16>) {
        self.positions.clear();
        self.positions.reserve(most);
        self.positions.extend(positions);
        self.next = self.positions.iter().position(|&it| it > self.asked).unwrap_or(0);
    }

    /// Position of the next one, which is polled.
    #[inline(always)]
    pub(super) fn turn(&mut self) -> Option<u16> {
        self.asked = *self.positions.get(self.next)?;
        self.next = if self.next + 1 < self.positions.len() { self.next + 1 } else { 0 };
        Some(self.asked)
    }
}

impl MainDevice {
    /// Polls the known SubDevices that have a clock, and the ones that have a mailbox.
    pub(in super::super) fn poll_all(&mut self) {
        let Self { cycle, sub_devices, .. } = self;
        let those = |has: fn(&SubDevice) -> bool| {
            sub_devices.iter().filter(move |it| has(it)).map(|it| it.position)
        };
        cycle.clocks.set(sub_devices.len(), those(|it| it.clock.is_some()));
        cycle.mailboxes.set(sub_devices.len(), those(|it| it.mailbox.is_some()));
    }
}
