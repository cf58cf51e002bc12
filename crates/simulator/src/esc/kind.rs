//! Kinds of ESCs, as in their information registers (ESC data sheets, section III; frames of real
//! SubDevices for the LAN9252, the IP core and the ports and features of the ASICs).
//!
//! Kind of an ESC.

use ethercat::register::{EscFeatures, PROCESS_DATA_MEMORY, SyncManager, SyncManagerMode};
use ethercat::sii::{FmmuUse, Image};
use types::EscKind;

use super::Oscillator;

impl EscDescription {
    /// ESC of this kind.
    #[must_use]
    pub fn of_kind(kind: EscKind) -> Self {
        let it = Self { specific: specific(kind), ..EscDescription::default() };
        match kind {
            EscKind::Et1100 => EscDescription { led_override: false, ..it.with_features(0x00FC) },
            EscKind::Et1200 => EscDescription {
                controller_type: 0x12,
                revision: 1,
                fmmus: 3,
                sync_managers: 4,
                ram_kib: 1,
                port_descriptor: 0x4A,
                led_override: false,
                ..it.with_features(0x01FC)
            },
            EscKind::Lan9252 => EscDescription {
                controller_type: 0xC0,
                revision: 2,
                build: 0,
                fmmus: 3,
                sync_managers: 4,
                ram_kib: 4,
                port_descriptor: 0x1F,
                sii_reads_8_bytes: false,
                ..it.with_features(0x01CC)
            },
            EscKind::Esc10 | EscKind::Esc20 => EscDescription {
                controller_type: 0x02,
                build: 0,
                fmmus: if kind == EscKind::Esc10 { 2 } else { 4 },
                sync_managers: 4,
                ram_kib: 4,
                port_descriptor: 0x0F,
                led_override: false,
                sii_reads_8_bytes: false,
                ..it.with_features(if kind == EscKind::Esc10 { 0 } else { 0x0004 })
            },
            EscKind::IpCore => EscDescription {
                controller_type: 0x04,
                revision: 2,
                build: 0x0043,
                fmmus: 3,
                sync_managers: 4,
                ram_kib: 4,
                port_descriptor: 0x0F,
                sii_reads_8_bytes: false,
                ..it.with_features(0x0184)
            },
        }
    }

    /// Kind that `image` shows: E-bus ports exist on the two ASICs, some interfaces only on the
    /// LAN9252. `None` if several kinds fit.
    #[must_use]
    pub fn kind_of_image(image: &Image) -> Option<EscKind> {
        if LAN9252_INTERFACES.contains(&(image.header.pdi_control() as u8)) {
            return Some(EscKind::Lan9252);
        }
        let ports = port_types(image.general()?.physical_ports);
        if !ports.contains(&EBUS) {
            return None;
        }
        let small = Self::of_kind(EscKind::Et1200);
        let fits = ports.iter().filter(|&&it| it == MII).count() < 2
            && image.fmmus().iter().filter(|it| !matches!(it, FmmuUse::Unused(_))).count()
                <= usize::from(small.fmmus)
            && image.sync_managers().len() <= usize::from(small.sync_managers)
            && memory_end(image) <= small.memory_end();
        Some(if fits { EscKind::Et1200 } else { EscKind::Et1100 })
    }

    /// ESC behind `image`: of `kind`, or of the kind that the image shows, with the ports it
    /// declares.
    #[must_use]
    pub fn of(kind: Option<EscKind>, image: Option<&Image>) -> Self {
        let Some(kind) = kind.or_else(|| image.and_then(Self::kind_of_image)) else {
            return Self::default();
        };
        let description = Self::of_kind(kind);
        let ports = image.and_then(Image::general).map_or(0, |general| general.physical_ports);
        if ports == 0 {
            return description;
        }
        // Ports that the ASIC has and the image does not configure remain shown as not configured.
        let unused = if kind == EscKind::Et1200 { NOT_CONFIGURED << 6 } else { 0 };
        let declared = port_types(ports).into_iter().rev().fold(0, |bits, it| bits << 2 | it);
        Self {
            port_descriptor: if declared >> 6 == 0 { declared | unused } else { declared },
            ..description
        }
    }

    fn with_features(self, bits: u16) -> Self {
        Self { features: EscFeatures { bits }, ..self }
    }
}

/// Registers from 0x0E00 on (ESC data sheet, section II, 2.19): power-on values of the ASICs,
/// product and vendor of the others.
fn specific(kind: EscKind) -> [u8; 16] {
    // Four logical ports, all MII.
    const ET1100_POWER_ON: u16 = 0x003F;
    let [mut product, mut vendor] = [0_u64; 2];
    match kind {
        EscKind::Et1100 => product = ET1100_POWER_ON.into(),
        EscKind::Lan9252 => (product, vendor) = (0x9252_0001, 0x04D8),
        EscKind::Et1200 | EscKind::Esc10 | EscKind::Esc20 | EscKind::IpCore => {}
    }
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&product.to_le_bytes());
    bytes[8..].copy_from_slice(&vendor.to_le_bytes());
    bytes
}

/// Port types of the descriptor (0x0007).
const NOT_CONFIGURED: u8 = 1;

const EBUS: u8 = 2;

const MII: u8 = 3;

/// PDIs that only the LAN9252 has: its host bus interfaces.
const LAN9252_INTERFACES: core::ops::RangeInclusive<u8> = 0x82..=0x8D;

/// Types of the ports that a general category declares, four bits each: 1 MII, 3 E-bus.
fn port_types(declared: u16) -> [u8; 4] {
    core::array::from_fn(|port| match declared >> (4 * port) & 0xF {
        1 => MII,
        3 => EBUS,
        _ => 0,
    })
}

/// First address after the memory that the image's SyncManagers use.
fn memory_end(image: &Image) -> u32 {
    let ends = image.sync_managers().iter().map(|it| {
        let settings = SyncManager {
            physical_address: it.physical_address,
            length: it.length,
            control: it.control,
            active: true,
        };
        let buffers = if settings.mode() == Some(SyncManagerMode::Mailbox) { 1 } else { 3 };
        u32::from(it.physical_address) + buffers * u32::from(it.length)
    });
    ends.max().unwrap_or(u32::from(PROCESS_DATA_MEMORY))
}

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
