//! Data link layer status and the features of an ESC (ETG.1000.4, 6.2 and 6.4).

/// Ports of an ESC.
pub const PORTS: usize = 4;

/// Order in which a frame visits an ESC's ports after entering at port 0 (ESC data sheet, section
/// I, 3.2).
pub const FORWARDING_ORDER: [usize; PORTS] = [0, 3, 1, 2];

/// The DL status register, 0x0110 (ETG.1000.4, 6.4, Table 36).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DlStatus {
    /// The application side runs and the SII was loaded.
    pub pdi_operational: bool,
    /// The PDI watchdog has not expired.
    pub pdi_watchdog_ok: bool,
    /// Enhanced link detection is on.
    pub enhanced_link_detection: bool,
    /// A physical link per port.
    pub link: [bool; PORTS],
    /// The port's loop is closed: frames turn back here.
    pub loop_closed: [bool; PORTS],
    /// Frames can come in at the port: there is stable communication.
    pub communication: [bool; PORTS],
}

impl DlStatus {
    /// As read from the register.
    #[must_use]
    pub fn from_bits(bits: u16) -> Self {
        let bit = |number: usize| bits >> number & 1 != 0;
        Self {
            pdi_operational: bit(0),
            pdi_watchdog_ok: bit(1),
            enhanced_link_detection: bit(2),
            link: core::array::from_fn(|port| bit(4 + port)),
            loop_closed: core::array::from_fn(|port| bit(8 + 2 * port)),
            communication: core::array::from_fn(|port| bit(9 + 2 * port)),
        }
    }

    /// Register value.
    #[must_use]
    pub fn bits(self) -> u16 {
        let bit = |set: bool, number: usize| u16::from(set) << number;
        let mut bits = bit(self.pdi_operational, 0)
            | bit(self.pdi_watchdog_ok, 1)
            | bit(self.enhanced_link_detection, 2);
        for port in 0..PORTS {
            bits |= bit(self.link[port], 4 + port)
                | bit(self.loop_closed[port], 8 + 2 * port)
                | bit(self.communication[port], 9 + 2 * port);
        }
        bits
    }

    /// True if frames leave and come back at `port`: something is connected there.
    #[must_use]
    pub fn is_open(self, port: usize) -> bool {
        self.communication[port] && !self.loop_closed[port]
    }
}

/// The features register, 0x0008 (ETG.1000.4, 6.2, Table 31).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EscFeatures {
    /// The register as read.
    pub bits: u16,
}

impl EscFeatures {
    /// FMMUs map whole bytes only, except for digital I/O.
    #[must_use]
    pub const fn fmmu_bytes_only(self) -> bool {
        self.bits & 1 << 0 != 0
    }

    /// Distributed clocks are there.
    #[must_use]
    pub const fn distributed_clocks(self) -> bool {
        self.bits & 1 << 2 != 0
    }

    /// The clock counts 64 bits; otherwise 32.
    #[must_use]
    pub const fn distributed_clocks_64_bit(self) -> bool {
        self.bits & 1 << 3 != 0
    }

    /// Logical read-write commands are refused.
    #[must_use]
    pub const fn refuses_lrw(self) -> bool {
        self.bits & 1 << 9 != 0
    }

    /// BRW, APRW and FPRW are refused.
    #[must_use]
    pub const fn refuses_physical_read_write(self) -> bool {
        self.bits & 1 << 10 != 0
    }

    /// FMMUs and SyncManagers are fixed.
    #[must_use]
    pub const fn fixed_fmmu_and_sync_managers(self) -> bool {
        self.bits & 1 << 11 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dl_status_keeps_every_bit_but_the_reserved_one() {
        for bit in (0..16).filter(|&bit| bit != 3) {
            assert_eq!(DlStatus::from_bits(1 << bit).bits(), 1 << bit);
        }
    }

    #[test]
    fn port_is_open_if_frames_return_through_it() {
        // A coupler's: ports 0 and 1 connected, 2 and 3 closed.
        let status = DlStatus::from_bits(0x5A33);
        assert_eq!([0, 1, 2, 3].map(|port| status.is_open(port)), [true, true, false, false]);
    }
}
