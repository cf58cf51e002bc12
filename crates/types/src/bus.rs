//! Figures of a bus and positions on its cable, as read, reported and shown.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

/// Error counters of a SubDevice (ETG.1000.4, 6.7); each stays at [`ErrorCounters::FULL`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(default))]
pub struct ErrorCounters {
    /// Of ports 0 to 3.
    pub ports: [PortErrorCounters; 4],
    /// ECAT processing unit error counter: frames with an error that the processing unit noticed.
    pub processing_unit_errors: u8,
    /// PDI error counter: errors of the interface to the application.
    pub pdi_errors: u8,
}

/// Error counters of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(default))]
pub struct PortErrorCounters {
    /// Invalid frame counter: frames with a wrong check sequence, or cut short.
    pub invalid_frames: u8,
    /// RX error counter: symbols with an error, within a frame or between frames.
    pub rx_errors: u8,
    /// Forwarded RX error counter: frames that an ESC before had marked as invalid.
    pub forwarded_rx_errors: u8,
    /// Lost link counter: times the link was lost.
    pub lost_links: u8,
}

impl ErrorCounters {
    /// Count that a counter stays at.
    pub const FULL: u8 = u8::MAX;

    /// Errors counted since `before`. A counter that was at [`Self::FULL`] counts none.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            ports: core::array::from_fn(|port| self.ports[port].since(before.ports[port])),
            processing_unit_errors: counted(self.processing_unit_errors, before.processing_unit_errors),
            pdi_errors: counted(self.pdi_errors, before.pdi_errors),
        }
    }

    /// True if a counter is at [`Self::FULL`].
    #[must_use]
    pub fn is_full(&self) -> bool {
        let of_port = |it: &PortErrorCounters| {
            [it.invalid_frames, it.rx_errors, it.forwarded_rx_errors, it.lost_links]
        };
        let of_ports = self.ports.iter().flat_map(of_port);
        of_ports.chain([self.processing_unit_errors, self.pdi_errors]).any(|count| count == Self::FULL)
    }
}

impl PortErrorCounters {
    fn since(self, before: Self) -> Self {
        Self {
            invalid_frames: counted(self.invalid_frames, before.invalid_frames),
            rx_errors: counted(self.rx_errors, before.rx_errors),
            forwarded_rx_errors: counted(self.forwarded_rx_errors, before.forwarded_rx_errors),
            lost_links: counted(self.lost_links, before.lost_links),
        }
    }
}

/// Errors counted since a counter was at `before`. A lower count now means that it was cleared, or
/// lost its power.
fn counted(now: u8, before: u8) -> u8 {
    now.checked_sub(before).unwrap_or(now)
}

/// Working counter of a process data datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(default))]
pub struct WorkingCounter {
    /// Value with every SubDevice taking part.
    pub expected: u16,
    /// Value that came back; `None` if the frame was lost.
    pub received: Option<u16>,
}

impl WorkingCounter {
    /// True if every SubDevice took part.
    #[must_use]
    pub fn is_complete(self) -> bool {
        self.received == Some(self.expected)
    }
}

/// Working counters from one cycle on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(default))]
pub struct WorkingCounterChange {
    /// Number of the cycle.
    pub cycle: u64,
    /// Datagrams that are short from then on; 0: all are complete.
    pub short: u16,
    /// Place of the first of them among the datagrams of a cycle.
    pub datagram: u16,
    /// Value of that one with every SubDevice taking part.
    pub expected: u16,
    /// Value that came back; `None` if the frame was lost.
    pub received: Option<u16>,
}

/// Ring of SubDevices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize))]
pub struct RingStatus {
    /// Both ends of the cable at which it is open; `None` where it is closed.
    pub open: Option<[CableEnd; 2]>,
    /// Cycle since which it is so.
    pub since: u64,
}

/// One end of a cable, or a SubDevice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize))]
pub struct CableEnd {
    /// Position of the SubDevice; `None` is an interface of the MainDevice.
    pub position: Option<u16>,
    /// Its port, of the MainDevice 0 for the first interface and 1 for the second; `None` where it
    /// is not about one.
    pub port: Option<u8>,
}

impl CableEnd {
    /// The end in words; `sub_device` names a SubDevice.
    pub fn words(self, sub_device: impl Fn(usize) -> String) -> String {
        match (self.position.map(usize::from), self.port) {
            (Some(position), Some(port)) => format!("{} port {port}", sub_device(position)),
            (Some(position), None) => sub_device(position),
            (None, Some(0)) => "the first interface".to_owned(),
            (None, Some(_)) => "the second interface".to_owned(),
            (None, None) => "the last SubDevice".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_since_earlier_read_are_differences_unless_cleared() {
        let at = |invalid_frames, lost_links| {
            let port = PortErrorCounters { invalid_frames, lost_links, ..PortErrorCounters::default() };
            let [none, ..] = ErrorCounters::default().ports;
            ErrorCounters { ports: [none, port, none, none], ..ErrorCounters::default() }
        };
        assert_eq!(at(9, 255).since(at(4, 255)), at(5, 0));
        assert_eq!(at(3, 0).since(at(200, 1)), at(3, 0));
        assert!(at(9, 255).is_full() && !at(254, 0).is_full());
    }
}
