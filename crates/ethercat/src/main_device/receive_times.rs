//! Receive times of the ports, latched again while the bus runs (ETG.1000.4, 6.8.5: registers
//! 0x0900 to 0x090F).

use crate::register::dl::PORTS;
use crate::wire::read_u32;

use super::MainDevice;
use super::worker::Worker;

/// Bytes of the registers.
pub(super) const LENGTH: usize = 4 * PORTS;

/// The registers.
pub(super) fn parse(data: &[u8]) -> Option<[u32; PORTS]> {
    let mut times = [0; PORTS];
    for (port, time) in times.iter_mut().enumerate() {
        *time = read_u32(data, 4 * port)?;
    }
    Some(times)
}

impl MainDevice {
    /// Latches the receive times of all SubDevices with one frame, and reads them from each one
    /// with a clock into [`super::SubDevice::receive_times`], in service frames; `None` there until
    /// it answers. The delays in use stay. A read that is already under way is finished first.
    /// False, and nothing latched, if there is no SubDevice, or while one is being brought up,
    /// which latches times too.
    pub fn latch_receive_times(&mut self) -> bool {
        if self.reads_receive_times() {
            return true;
        }
        self.sub_devices.iter_mut().for_each(|it| it.receive_times = None);
        let is_free = self.workers.are_done();
        let is_there = |place: &usize| !self.is_gone(*place as u16);
        let first = (0..self.sub_devices.len()).find(is_there).filter(|_| is_free);
        first.and_then(|place| self.workers.get_mut(place)).is_some_and(|it| it.look_at_times(true))
    }

    /// They are latched.
    pub(super) fn read_receive_times(&mut self) {
        for (worker, it) in self.workers.iter_mut().zip(&self.sub_devices) {
            if it.has_clock() {
                worker.look_at_times(false);
            }
        }
    }

    /// True until all of them have been read, or do not answer.
    #[must_use]
    pub fn reads_receive_times(&self) -> bool {
        self.workers.iter().any(Worker::looks_at_times)
    }
}
