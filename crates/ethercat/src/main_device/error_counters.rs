//! Error counters of an ESC (ETG.1000.4, 6.7): each stays at 255 and is cleared by a write.
//!
//! A write to any of 0x0300 to 0x030B clears these twelve, one to 0x030C or 0x030D that one, one to any of 0x0310 to 0x0313
//! these four (ESC data sheet, section II, 2.9). A write of all of them clears all.

use crate::register::dl::PORTS;

use super::MainDevice;
use super::worker::Worker;

/// Error counters of a SubDevice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErrorCounters {
    /// Of ports 0 to 3.
    pub ports: [PortErrors; PORTS],
    /// ECAT processing unit error counter: frames with an error that the processing unit noticed.
    pub processing_unit_errors: u8,
    /// PDI error counter: errors of the interface to the application.
    pub pdi_errors: u8,
}

/// Error counters of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortErrors {
    /// Invalid frame counter: frames with a wrong check sequence, or cut short.
    pub invalid_frames: u8,
    /// RX error counter: symbols with an error, within a frame or between frames.
    pub rx_errors: u8,
    /// Forwarded RX error counter: frames that an ESC before had marked as invalid.
    pub forwarded_rx_errors: u8,
    /// Lost link counter: times the link was lost.
    pub lost_links: u8,
}

impl PortErrors {
    /// Errors counted since `before`.
    fn since(self, before: Self) -> Self {
        Self {
            invalid_frames: counted(self.invalid_frames, before.invalid_frames),
            rx_errors: counted(self.rx_errors, before.rx_errors),
            forwarded_rx_errors: counted(self.forwarded_rx_errors, before.forwarded_rx_errors),
            lost_links: counted(self.lost_links, before.lost_links),
        }
    }
}

/// Errors counted since a counter stood at `before`; where it stands lower now it was cleared, or lost its power.
fn counted(now: u8, before: u8) -> u8 {
    now.checked_sub(before).unwrap_or(now)
}

impl ErrorCounters {
    /// Errors counted since `before`. A counter that stood at 255 counts none.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            ports: core::array::from_fn(|port| self.ports[port].since(before.ports[port])),
            processing_unit_errors: counted(self.processing_unit_errors, before.processing_unit_errors),
            pdi_errors: counted(self.pdi_errors, before.pdi_errors),
        }
    }

    /// True if a counter stands at 255, where it stays.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let of_port =
            |it: &PortErrors| [it.invalid_frames, it.rx_errors, it.forwarded_rx_errors, it.lost_links];
        let of_ports = self.ports.iter().flat_map(of_port);
        of_ports.chain([self.processing_unit_errors, self.pdi_errors]).any(|count| count == FULL)
    }

    /// Bytes from register 0x0300 on.
    pub(super) const LENGTH: usize = 0x14;

    pub(super) fn parse(data: &[u8]) -> Option<Self> {
        let data = data.first_chunk::<{ Self::LENGTH }>()?;
        let port = |port: usize| PortErrors {
            invalid_frames: data[port * 2],
            rx_errors: data[port * 2 + 1],
            forwarded_rx_errors: data[0x08 + port],
            lost_links: data[0x10 + port],
        };
        Some(Self {
            ports: [0, 1, 2, 3].map(port),
            processing_unit_errors: data[0x0C],
            pdi_errors: data[0x0D],
        })
    }
}

/// Count that a counter stays at.
pub(super) const FULL: u8 = u8::MAX;

impl MainDevice {
    /// Has the error counters and links of all SubDevices read, in service frames, into [`SubDevice::error_counters`](super::SubDevice::error_counters) and
    /// [`SubDevice::links`](super::SubDevice::links); both are `None` where a SubDevice is being brought up.
    pub fn read_error_counters(&mut self) {
        self.look_at_errors(false);
    }

    /// The same for one SubDevice, whose values stay until it answers or does not. False where none is there, or it is being brought up.
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
        let data: [u8; ErrorCounters::LENGTH] = core::array::from_fn(|offset| offset as u8);
        let found = ErrorCounters::parse(&data).unwrap();
        let port = PortErrors { invalid_frames: 4, rx_errors: 5, forwarded_rx_errors: 10, lost_links: 18 };
        assert_eq!((found.ports[2], found.processing_unit_errors, found.pdi_errors), (port, 12, 13));
        assert_eq!(ErrorCounters::parse(&data[1..]), None);
    }

    #[test]
    fn counts_since_another_look_are_differences_unless_they_were_cleared_between() {
        let at = |invalid_frames, lost_links| {
            let port = PortErrors { invalid_frames, lost_links, ..PortErrors::default() };
            ErrorCounters {
                ports: [PortErrors::default(), port, PortErrors::default(), PortErrors::default()],
                ..ErrorCounters::default()
            }
        };
        assert_eq!(at(9, 255).since(at(4, 255)), at(5, 0));
        assert_eq!(at(3, 0).since(at(200, 1)), at(3, 0));
        assert!(at(9, 255).is_full() && !at(254, 0).is_full());
    }
}
