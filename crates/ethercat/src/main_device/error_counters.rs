//! Error counters of an ESC (ETG.1000.4, 6.7): each stays at 255 and is cleared by a write.
//!
//! A write to any of 0x0300 to 0x030B clears these twelve, one to 0x030C or 0x030D clears that
//! register, one to any of 0x0310 to 0x0313 clears these four (ESC data sheet, section II, 2.9). A
//! write of all of them clears all.

use types::{ErrorCounters, PortErrorCounters};

use super::MainDevice;
use super::worker::Worker;

/// Bytes from register 0x0300 on.
pub(super) const LENGTH: usize = 0x14;

/// Counters in the bytes from register 0x0300 on; `None` if they are cut short.
pub(super) fn parse(data: &[u8]) -> Option<ErrorCounters> {
    let data = data.first_chunk::<LENGTH>()?;
    let port = |port: usize| PortErrorCounters {
        invalid_frames: data[port * 2],
        rx_errors: data[port * 2 + 1],
        forwarded_rx_errors: data[0x08 + port],
        lost_links: data[0x10 + port],
    };
    Some(ErrorCounters {
        ports: [0, 1, 2, 3].map(port),
        processing_unit_errors: data[0x0C],
        pdi_errors: data[0x0D],
    })
}

impl MainDevice {
    /// Reads the error counters and links of all SubDevices in service frames into
    /// [`SubDevice::error_counters`](super::SubDevice::error_counters) and
    /// [`SubDevice::links`](super::SubDevice::links); both are `None` while a SubDevice is being
    /// brought up.
    pub fn read_error_counters(&mut self) {
        self.look_at_errors(false);
    }

    /// The same for one SubDevice; its values stay until it answers or does not. False if there is
    /// none, or it is being brought up.
    pub fn read_error_counters_of(&mut self, position: usize) -> bool {
        self.workers.get_mut(position).is_some_and(|worker| worker.look_at_errors(false))
    }

    /// The same, once the counters were cleared.
    pub fn clear_error_counters(&mut self) {
        self.look_at_errors(true);
    }

    fn look_at_errors(&mut self, clear: bool) {
        for (worker, it) in self.workers.iter_mut().zip(&mut self.sub_devices) {
            if !worker.look_at_errors(clear) {
                (it.error_counters, it.links) = (None, None);
            }
        }
    }

    /// True until all of them have been read, or do not answer.
    #[must_use]
    pub fn reads_error_counters(&self) -> bool {
        self.workers.iter().any(Worker::looks_at_errors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // feature(running-bus): `scan` of a running robot: states, working counters, clock differences, error counters
    #[test]
    fn every_counter_comes_from_its_register() {
        let data: [u8; LENGTH] = core::array::from_fn(|offset| offset as u8);
        let found = parse(&data).unwrap();
        let port =
            PortErrorCounters { invalid_frames: 4, rx_errors: 5, forwarded_rx_errors: 10, lost_links: 18 };
        assert_eq!((found.ports[2], found.processing_unit_errors, found.pdi_errors), (port, 12, 13));
        assert_eq!(parse(&data[1..]), None);
    }
}
