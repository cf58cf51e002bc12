//! The Ethernet header (IEEE 802.3, 3.1.1).

use core::fmt;

/// Bytes of destination, source and EtherType.
pub const HEADER_LENGTH: usize = 14;

/// EtherType of EtherCAT frames (ETG.1000.4, 5.3.1).
pub const ETHERCAT_ETHERTYPE: u16 = 0x88A4;

/// Offset of the source address in the frame.
pub const SOURCE_OFFSET: usize = 6;

/// Offset of the EtherType in the frame.
pub const ETHERTYPE_OFFSET: usize = 12;

/// Bit that the first ESC of a segment sets in the source address's first byte, which distinguishes
/// a reply from a request (ETG.1000.3, 4.7: the locally administered bit).
pub const PROCESSED_BIT: u8 = 0x02;

/// A MAC address.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// All stations.
    pub const BROADCAST: Self = Self([0xFF; 6]);

    /// The default source address of a MainDevice: locally administered, with [`PROCESSED_BIT`]
    /// clear so that replies can be distinguished from requests.
    pub const MAIN_DEVICE: Self = Self([0x10; 6]);

    /// True if an ESC has processed a frame with this source address.
    #[must_use]
    pub const fn is_processed(self) -> bool {
        self.0[0] & PROCESSED_BIT != 0
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
