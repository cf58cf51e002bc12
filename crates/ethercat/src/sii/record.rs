//! The records that SII categories are made of (ETG.1000.6, 5.4, Tables 20 to 27; ETG.2010).
//!
//! Each parses from and emits to its fixed length; reserved bytes are kept so that a real device's
//! image re-emits byte for byte.

use alloc::string::String;
use alloc::vec::Vec;

use crate::pdo;
use crate::table::bit_set;
use crate::wire::read_u16;

/// Abilities of the CoE server (general category).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CoeDetails(pub u8);

impl CoeDetails {
    /// SDO transfers.
    pub const SDO: Self = Self(0x01);
    /// SDO information.
    pub const SDO_INFORMATION: Self = Self(0x02);
    /// PDO assignment (0x1C12, 0x1C13) may be written.
    pub const PDO_ASSIGNMENT: Self = Self(0x04);
    /// PDO mapping (0x1600 ff., 0x1A00 ff.) may be written.
    pub const PDO_CONFIGURATION: Self = Self(0x08);
    /// PDOs are uploaded at start-up.
    pub const UPLOAD_AT_STARTUP: Self = Self(0x10);
    /// SDO complete access.
    pub const COMPLETE_ACCESS: Self = Self(0x20);
}

bit_set!(CoeDetails);

/// The general category. String indices count from 1; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct General {
    /// Index of the group's name.
    pub group: u8,
    /// Index of the image's name.
    pub image: u8,
    /// Index of the order number.
    pub order: u8,
    /// Index of the device's name.
    pub name: u8,
    /// Abilities of the CoE server.
    pub coe_details: CoeDetails,
    /// File access is supported (bit 0).
    pub foe_details: u8,
    /// Ethernet is supported (bit 0).
    pub eoe_details: u8,
    /// Bit 0: safe operation; bit 1: LRW is not supported; others by ETG.2010.
    pub flags: u8,
    /// Current drawn from the E-bus in milliamperes; negative: supplied to it.
    pub current_on_ebus: i16,
    /// Physical kind of each port, four bits a port from port 0: 1 MII, 3 E-bus.
    pub physical_ports: u16,
    /// The other bytes of the image, with 0 for the fields above.
    reserved: [u8; General::LENGTH],
}

impl General {
    /// Bytes of the category.
    pub const LENGTH: usize = 32;

    /// General flag: the SubDevice does not take LRW.
    pub const FLAG_NO_LRW: u8 = 0x02;

    /// True if the MainDevice must use LRD and LWR instead of LRW.
    #[must_use]
    pub const fn refuses_lrw(&self) -> bool {
        self.flags & Self::FLAG_NO_LRW != 0
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let raw: [u8; Self::LENGTH] = *bytes.first_chunk()?;
        let mut reserved = raw;
        for field in [0..4, 5..8, 11..14, 16..18] {
            reserved[field].fill(0);
        }
        Some(Self {
            group: raw[0],
            image: raw[1],
            order: raw[2],
            name: raw[3],
            coe_details: CoeDetails(raw[5]),
            foe_details: raw[6],
            eoe_details: raw[7],
            flags: raw[11],
            current_on_ebus: i16::from_le_bytes([raw[12], raw[13]]),
            physical_ports: u16::from_le_bytes([raw[16], raw[17]]),
            reserved,
        })
    }

    pub(super) fn emit(&self) -> [u8; Self::LENGTH] {
        let mut bytes = self.reserved;
        bytes[..4].copy_from_slice(&[self.group, self.image, self.order, self.name]);
        bytes[5..8].copy_from_slice(&[self.coe_details.0, self.foe_details, self.eoe_details]);
        bytes[11] = self.flags;
        bytes[12..14].copy_from_slice(&self.current_on_ebus.to_le_bytes());
        bytes[16..18].copy_from_slice(&self.physical_ports.to_le_bytes());
        bytes
    }
}

/// Purpose of an FMMU (FMMU category).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FmmuUse {
    /// Nothing: 0x00 or 0xFF, kept apart.
    Unused(u8),
    /// Outputs.
    Outputs,
    /// Inputs.
    Inputs,
    /// The status of a mailbox SyncManager.
    MailboxStatus,
    /// A number the standard does not define.
    Unknown(u8),
}

impl FmmuUse {
    /// The number in the image.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Outputs => 1,
            Self::Inputs => 2,
            Self::MailboxStatus => 3,
            Self::Unused(number) | Self::Unknown(number) => number,
        }
    }

    /// The use with this number.
    #[must_use]
    pub const fn from_number(number: u8) -> Self {
        match number {
            1 => Self::Outputs,
            2 => Self::Inputs,
            3 => Self::MailboxStatus,
            0 | 0xFF => Self::Unused(number),
            other => Self::Unknown(other),
        }
    }
}

/// Purpose of a SyncManager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SyncManagerUse {
    /// Not used, or not known.
    Unused,
    /// Mailbox the MainDevice writes.
    MailboxOut,
    /// Mailbox the MainDevice reads.
    MailboxIn,
    /// Process data outputs.
    Outputs,
    /// Process data inputs.
    Inputs,
    /// A number the standard does not define.
    Unknown(u8),
}

impl SyncManagerUse {
    /// The number in the image.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Unused => 0,
            Self::MailboxOut => 1,
            Self::MailboxIn => 2,
            Self::Outputs => 3,
            Self::Inputs => 4,
            Self::Unknown(number) => number,
        }
    }

    /// The use with this number.
    #[must_use]
    pub const fn from_number(number: u8) -> Self {
        match number {
            0 => Self::Unused,
            1 => Self::MailboxOut,
            2 => Self::MailboxIn,
            3 => Self::Outputs,
            4 => Self::Inputs,
            other => Self::Unknown(other),
        }
    }
}

/// One SyncManager of the SyncManager category.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SiiSyncManager {
    /// First physical address.
    pub physical_address: u16,
    /// Bytes by default; process data SyncManagers are often 0 here and follow the PDOs.
    pub length: u16,
    /// The control byte, as in [`crate::register::SyncManager::control`].
    pub control: u8,
    /// Status byte; not used.
    pub status: u8,
    /// Bit 0: enabled; bit 1: fixed content; bit 2: virtual; bit 3: enabled in Op only.
    pub enable: u8,
    /// Its purpose.
    pub usage: SyncManagerUse,
}

impl SiiSyncManager {
    /// Bytes of one SyncManager.
    pub const LENGTH: usize = 8;

    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::LENGTH] = bytes.first_chunk()?;
        Some(Self {
            physical_address: read_u16(bytes, 0)?,
            length: read_u16(bytes, 2)?,
            control: bytes[4],
            status: bytes[5],
            enable: bytes[6],
            usage: SyncManagerUse::from_number(bytes[7]),
        })
    }

    pub(super) fn emit(&self) -> [u8; Self::LENGTH] {
        let [address_low, address_high] = self.physical_address.to_le_bytes();
        let [length_low, length_high] = self.length.to_le_bytes();
        let Self { control, status, enable, usage, .. } = *self;
        [address_low, address_high, length_low, length_high, control, status, enable, usage.number()]
    }
}

/// One PDO of the TxPDO or RxPDO category.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiiPdo {
    /// Index of the mapping object.
    pub index: u16,
    /// SyncManager it is assigned to by default; 0xFF: none.
    pub sync_manager: u8,
    /// Way in which it is synchronized to DC; 0 in practice.
    pub synchronization: u8,
    /// Index of its name.
    pub name: u8,
    /// Bit 0: mandatory; bit 2: a sample; bit 4: fixed content; others by ETG.2010.
    pub flags: u16,
    /// Its entries, at most 255.
    pub entries: Vec<SiiPdoEntry>,
}

impl SiiPdo {
    /// Bytes before the entries.
    pub const LENGTH: usize = 8;

    /// Flag: the mapping is fixed.
    pub const FLAG_FIXED: u16 = 0x0010;

    /// Flag: it holds a sample, and is repeated for each sample (ETG.2010, Table 14,
    /// PdoOversample).
    pub const FLAG_SAMPLE: u16 = 0x0004;

    /// The PDO with names looked up in `string`, which takes an index counted from 1.
    pub(super) fn to_pdo(&self, string: impl Fn(u8) -> String) -> pdo::Pdo {
        let entry = |entry: &SiiPdoEntry| pdo::PdoEntry {
            index: entry.index,
            sub_index: entry.sub_index,
            bit_length: entry.bit_length,
            data_type: entry.data_type.into(),
            name: string(entry.name),
        };
        pdo::Pdo {
            index: self.index,
            sync_manager: (self.sync_manager != 0xFF).then_some(self.sync_manager),
            fixed: self.flags & Self::FLAG_FIXED != 0,
            name: string(self.name),
            entries: self.entries.iter().map(entry).collect(),
        }
    }
}

/// One entry of a PDO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SiiPdoEntry {
    /// Object index; 0: padding.
    pub index: u16,
    /// Sub-index.
    pub sub_index: u8,
    /// Index of its name.
    pub name: u8,
    /// Data type, the low byte of its index in the object dictionary.
    pub data_type: u8,
    /// Bits.
    pub bit_length: u8,
    /// Reserved.
    pub flags: u16,
}

impl SiiPdoEntry {
    /// Bytes of one entry.
    pub const LENGTH: usize = 8;

    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::LENGTH] = bytes.first_chunk()?;
        Some(Self {
            index: read_u16(bytes, 0)?,
            sub_index: bytes[2],
            name: bytes[3],
            data_type: bytes[4],
            bit_length: bytes[5],
            flags: read_u16(bytes, 6)?,
        })
    }

    pub(super) fn emit(&self) -> [u8; Self::LENGTH] {
        let [index_low, index_high] = self.index.to_le_bytes();
        let [flags_low, flags_high] = self.flags.to_le_bytes();
        let Self { sub_index, name, data_type, bit_length, .. } = *self;
        [index_low, index_high, sub_index, name, data_type, bit_length, flags_low, flags_high]
    }
}

/// One operation mode of the distributed clocks category.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DistributedClock {
    /// SYNC0 cycle in nanoseconds; 0: the MainDevice's cycle.
    pub sync0_cycle: u32,
    /// SYNC0 shift in nanoseconds.
    pub sync0_shift: u32,
    /// SYNC1 shift in nanoseconds.
    pub sync1_shift: u32,
    /// SYNC1 cycle as a multiple (positive) or fraction (negative) of SYNC0's.
    pub sync1_cycle_factor: i16,
    /// Value of the DC activation register, 0x0980; 0: DC off.
    pub assign_activate: u16,
    /// SYNC0 cycle as a multiple (positive) or fraction (negative) of the MainDevice's.
    pub sync0_cycle_factor: i16,
    /// Index of the mode's name.
    pub name: u8,
    /// Index of its description.
    pub description: u8,
    /// The last four bytes, reserved.
    pub reserved: [u8; 4],
}

impl DistributedClock {
    /// Bytes of one mode.
    pub const LENGTH: usize = 24;

    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::LENGTH] = bytes.first_chunk()?;
        let double_word =
            |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Some(Self {
            sync0_cycle: double_word(0),
            sync0_shift: double_word(4),
            sync1_shift: double_word(8),
            sync1_cycle_factor: i16::from_le_bytes([bytes[12], bytes[13]]),
            assign_activate: u16::from_le_bytes([bytes[14], bytes[15]]),
            sync0_cycle_factor: i16::from_le_bytes([bytes[16], bytes[17]]),
            name: bytes[18],
            description: bytes[19],
            reserved: [bytes[20], bytes[21], bytes[22], bytes[23]],
        })
    }

    pub(super) fn emit(&self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        bytes[0..4].copy_from_slice(&self.sync0_cycle.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.sync0_shift.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.sync1_shift.to_le_bytes());
        bytes[12..14].copy_from_slice(&self.sync1_cycle_factor.to_le_bytes());
        bytes[14..16].copy_from_slice(&self.assign_activate.to_le_bytes());
        bytes[16..18].copy_from_slice(&self.sync0_cycle_factor.to_le_bytes());
        (bytes[18], bytes[19]) = (self.name, self.description);
        bytes[20..24].copy_from_slice(&self.reserved);
        bytes
    }
}
