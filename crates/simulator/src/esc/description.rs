//! What kind of ESC it is.

use ethercat::register::EscFeatures;

use super::Oscillator;

/// The fixed properties of an ESC, as its information registers show them (ETG.1000.4, 6.2).
#[derive(Clone, Debug, PartialEq)]
pub struct EscDescription {
    /// Type (0x0000).
    pub controller_type: u8,
    /// Revision (0x0001).
    pub revision: u8,
    /// Build (0x0002).
    pub build: u16,
    /// FMMUs, 0 to 16.
    pub fmmus: u8,
    /// SyncManagers, 0 to 16.
    pub sync_managers: u8,
    /// Process data memory from 0x1000 on, in KiB, 0 to 60. Accesses behind it are refused.
    pub ram_kib: u8,
    /// Two bits a port: 0 not there, 2 E-bus, 3 MII (0x0007).
    pub port_descriptor: u8,
    /// Features (0x0008); those that switch something off are obeyed: distributed clocks, LRW,
    /// BRW/APRW/FPRW.
    pub features: EscFeatures,
    /// Whether an SII read yields 8 bytes; otherwise 4.
    pub sii_reads_8_bytes: bool,
    /// The clock.
    pub oscillator: Oscillator,
    /// From a frame's coming in at one port to its going out at the next, in ns.
    pub forwarding_delay: u32,
}

impl EscDescription {
    /// Distributed clocks with 64 bits, and nothing refused.
    pub const FEATURES: EscFeatures = EscFeatures { bits: 1 << 2 | 1 << 3 };
}

impl Default for EscDescription {
    /// Eight FMMUs, eight SyncManagers, 8 KiB, four ports, distributed clocks with 64 bits: what an
    /// ET1100 offers.
    fn default() -> Self {
        Self {
            controller_type: 0x11,
            revision: 0,
            build: 2,
            fmmus: 8,
            sync_managers: 8,
            ram_kib: 8,
            port_descriptor: 0xFF,
            features: Self::FEATURES,
            sii_reads_8_bytes: true,
            oscillator: Oscillator::default(),
            forwarding_delay: 300,
        }
    }
}
