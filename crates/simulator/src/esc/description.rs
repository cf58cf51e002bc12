//! Kind of an ESC.

use ethercat::register::{EscFeatures, PROCESS_DATA_MEMORY};

use super::Oscillator;

/// Fixed properties of an ESC, as in its information registers (ETG.1000.4, 6.2).
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
    /// Process data memory from 0x1000 on, in KiB, 0 to 60. Accesses beyond it are refused.
    pub ram_kib: u8,
    /// Port types, two bits each: 0 absent, 2 E-bus, 3 MII (0x0007).
    pub port_descriptor: u8,
    /// Features (0x0008). The simulation respects the bits that disable a function: distributed
    /// clocks, LRW, BRW/APRW/FPRW.
    pub features: EscFeatures,
    /// True if the LEDs have registers (0x0138 and 0x0139).
    pub led_override: bool,
    /// Registers of its kind, from 0x0E00 on.
    pub specific: [u8; 16],
    /// True if an SII read yields 8 bytes; otherwise 4.
    pub sii_reads_8_bytes: bool,
    /// Oscillator of the clock.
    pub oscillator: Oscillator,
    /// Delay from a frame's arrival at one port to its departure at the next, in ns.
    pub forwarding_delay: u32,
}

impl EscDescription {
    /// Distributed clocks with 64 bits, and no function disabled.
    pub const FEATURES: EscFeatures = EscFeatures { bits: 1 << 2 | 1 << 3 };

    /// First address after the process data memory.
    pub(crate) fn memory_end(&self) -> u32 {
        u32::from(PROCESS_DATA_MEMORY) + u32::from(self.ram_kib.min(60)) * 1024
    }
}

impl Default for EscDescription {
    /// Eight FMMUs, eight SyncManagers, 8 KiB, four ports, distributed clocks with 64 bits: of no
    /// kind, and shows the type of an ET1100.
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
            led_override: true,
            specific: [0; 16],
            sii_reads_8_bytes: true,
            oscillator: Oscillator::default(),
            forwarding_delay: 300,
        }
    }
}
