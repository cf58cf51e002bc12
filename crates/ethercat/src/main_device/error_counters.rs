//! Error counters of an ESC (ETG.1000.4, 6.7): each stays at 255 and is cleared by a write.

/// Error counters of a SubDevice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErrorCounters {
    /// Of ports 0 to 3.
    pub ports: [PortErrors; 4],
    /// Frames with an error that the processing unit noticed.
    pub processing_unit: u8,
    /// Errors of the interface to the application.
    pub pdi: u8,
}

/// Error counters of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortErrors {
    /// Frames with a wrong check sequence, or cut short.
    pub invalid_frames: u8,
    /// Symbols with an error, within a frame or between frames.
    pub receive_errors: u8,
    /// Frames that an ESC before had marked as invalid.
    pub forwarded: u8,
    /// Times the link was lost.
    pub lost_links: u8,
}

impl ErrorCounters {
    /// Bytes from register 0x0300 on.
    pub(super) const LENGTH: usize = 0x14;

    pub(super) fn parse(data: &[u8]) -> Option<Self> {
        let data = data.first_chunk::<{ Self::LENGTH }>()?;
        let port = |port: usize| PortErrors {
            invalid_frames: data[port * 2],
            receive_errors: data[port * 2 + 1],
            forwarded: data[0x08 + port],
            lost_links: data[0x10 + port],
        };
        Some(Self { ports: [0, 1, 2, 3].map(port), processing_unit: data[0x0C], pdi: data[0x0D] })
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
        let port = PortErrors { invalid_frames: 4, receive_errors: 5, forwarded: 10, lost_links: 18 };
        assert_eq!((found.ports[2], found.processing_unit, found.pdi), (port, 12, 13));
        assert_eq!(ErrorCounters::parse(&data[1..]), None);
    }
}
