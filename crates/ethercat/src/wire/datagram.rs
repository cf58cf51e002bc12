//! EtherCAT datagrams (ETG.1000.4, 5.4): commands, addresses and the ten-byte header.

/// Bytes of a datagram header.
pub const HEADER_LENGTH: usize = 10;

/// Bytes of the working counter that ends a datagram.
pub const WORKING_COUNTER_LENGTH: usize = 2;

/// Command of a datagram to the SubDevices it passes (ETG.1000.4, 5.4, Table 11 ff.).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// No operation.
    Nop,
    /// Auto-increment physical read.
    Aprd,
    /// Auto-increment physical write.
    Apwr,
    /// Auto-increment physical read-write.
    Aprw,
    /// Configured-address physical read.
    Fprd,
    /// Configured-address physical write.
    Fpwr,
    /// Configured-address physical read-write.
    Fprw,
    /// Broadcast read.
    Brd,
    /// Broadcast write.
    Bwr,
    /// Broadcast read-write.
    Brw,
    /// Logical read.
    Lrd,
    /// Logical write.
    Lwr,
    /// Logical read-write.
    Lrw,
    /// Auto-increment physical read, multiple write.
    Armw,
    /// Configured-address physical read, multiple write.
    Frmw,
    /// A command number the standard does not define; SubDevices ignore it.
    Unknown(u8),
}

impl Command {
    /// Every command the standard defines, in the order of their numbers.
    pub const ALL: [Self; 15] = [
        Self::Nop,
        Self::Aprd,
        Self::Apwr,
        Self::Aprw,
        Self::Fprd,
        Self::Fpwr,
        Self::Fprw,
        Self::Brd,
        Self::Bwr,
        Self::Brw,
        Self::Lrd,
        Self::Lwr,
        Self::Lrw,
        Self::Armw,
        Self::Frmw,
    ];

    /// The command's number on the wire.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Nop => 0,
            Self::Aprd => 1,
            Self::Apwr => 2,
            Self::Aprw => 3,
            Self::Fprd => 4,
            Self::Fpwr => 5,
            Self::Fprw => 6,
            Self::Brd => 7,
            Self::Bwr => 8,
            Self::Brw => 9,
            Self::Lrd => 10,
            Self::Lwr => 11,
            Self::Lrw => 12,
            Self::Armw => 13,
            Self::Frmw => 14,
            Self::Unknown(number) => number,
        }
    }

    /// The command with this number.
    #[must_use]
    pub fn from_number(number: u8) -> Self {
        Self::ALL.get(usize::from(number)).copied().unwrap_or(Self::Unknown(number))
    }

    /// True if SubDevices put data into the datagram.
    #[must_use]
    pub const fn reads(self) -> bool {
        use Command::{Aprd, Aprw, Armw, Brd, Brw, Fprd, Fprw, Frmw, Lrd, Lrw};
        matches!(self, Aprd | Aprw | Fprd | Fprw | Brd | Brw | Lrd | Lrw | Armw | Frmw)
    }

    /// True if SubDevices take data from the datagram.
    #[must_use]
    pub const fn writes(self) -> bool {
        use Command::{Aprw, Apwr, Armw, Brw, Bwr, Fprw, Fpwr, Frmw, Lrw, Lwr};
        matches!(self, Apwr | Aprw | Fpwr | Fprw | Bwr | Brw | Lwr | Lrw | Armw | Frmw)
    }

    /// True if the address is a logical one.
    #[must_use]
    pub const fn is_logical(self) -> bool {
        matches!(self, Self::Lrd | Self::Lwr | Self::Lrw)
    }
}

/// The four address bytes of a datagram, as its command reads them (ETG.1000.4, 5.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// `position` 0 addresses the SubDevice that receives 0: each one adds one in passing.
    /// `register` is the physical memory address (ADP and ADO).
    AutoIncrement {
        /// Two's complement of the SubDevice's place in the segment, as sent.
        position: u16,
        /// Physical memory address, 0x0000 to 0xFFFF.
        register: u16,
    },
    /// The SubDevice with the configured station address (register 0x0010) `station`.
    Station {
        /// Configured station address, or the alias where enabled.
        station: u16,
        /// Physical memory address, 0x0000 to 0xFFFF.
        register: u16,
    },
    /// Every SubDevice.
    Broadcast {
        /// Physical memory address, 0x0000 to 0xFFFF.
        register: u16,
    },
    /// An address of the 4 GiB logical space that FMMUs map.
    Logical(u32),
}

impl Address {
    /// The auto-increment address of the SubDevice at `position`, counted from 0.
    #[must_use]
    pub const fn at_position(position: u16, register: u16) -> Self {
        Self::AutoIncrement { position: position.wrapping_neg(), register }
    }

    /// The four bytes as one number: ADP in the low half, ADO in the high half.
    #[must_use]
    pub const fn raw(self) -> u32 {
        match self {
            Self::AutoIncrement { position: adp, register } | Self::Station { station: adp, register } => {
                adp as u32 | (register as u32) << 16
            }
            Self::Broadcast { register } => (register as u32) << 16,
            Self::Logical(address) => address,
        }
    }
}

/// The ten bytes before a datagram's data (ETG.1000.4, 5.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramHeader {
    /// Command.
    pub command: Command,
    /// The MainDevice's own mark; SubDevices leave it alone.
    pub index: u8,
    /// ADP in the low half and ADO in the high half, or the logical address.
    pub address: u32,
    /// Bytes of data, 0 to 2047 (11 bits; an Ethernet frame holds fewer).
    pub length: u16,
    /// The three reserved bits behind the length, kept so that a frame re-emits byte for byte.
    pub reserved: u8,
    /// Set by an ESC whose port 0 is closed on a frame that has already passed it once.
    pub circulating: bool,
    /// Another datagram follows in this frame.
    pub more_follows: bool,
    /// The event request registers (0x0210) of all SubDevices passed, combined by OR.
    pub interrupt: u16,
}

impl DatagramHeader {
    /// A header for `length` bytes, last of its frame, everything else clear.
    #[must_use]
    pub const fn new(command: Command, index: u8, address: Address, length: u16) -> Self {
        Self {
            command,
            index,
            address: address.raw(),
            length,
            reserved: 0,
            circulating: false,
            more_follows: false,
            interrupt: 0,
        }
    }

    /// ADP: station address, or auto-increment position.
    #[must_use]
    pub const fn adp(&self) -> u16 {
        (self.address & 0xFFFF) as u16
    }

    /// ADO: physical memory address.
    #[must_use]
    pub const fn ado(&self) -> u16 {
        (self.address >> 16) as u16
    }

    /// The header in the first ten bytes of `bytes`, or `None` if there are fewer.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let &[command, index, a0, a1, a2, a3, f0, f1, i0, i1] = bytes.first_chunk::<HEADER_LENGTH>()?;
        let flags = u16::from_le_bytes([f0, f1]);
        Some(Self {
            command: Command::from_number(command),
            index,
            address: u32::from_le_bytes([a0, a1, a2, a3]),
            length: flags & LENGTH_MASK,
            reserved: ((flags >> RESERVED_SHIFT) & 0b111) as u8,
            circulating: flags & CIRCULATING != 0,
            more_follows: flags & MORE_FOLLOWS != 0,
            interrupt: u16::from_le_bytes([i0, i1]),
        })
    }

    /// The header's bytes on the wire.
    #[must_use]
    pub fn emit(&self) -> [u8; HEADER_LENGTH] {
        let flags = (self.length & LENGTH_MASK)
            | u16::from(self.reserved & 0b111) << RESERVED_SHIFT
            | u16::from(self.circulating) << CIRCULATING.trailing_zeros()
            | u16::from(self.more_follows) << MORE_FOLLOWS.trailing_zeros();
        let [a0, a1, a2, a3] = self.address.to_le_bytes();
        let [f0, f1] = flags.to_le_bytes();
        let [i0, i1] = self.interrupt.to_le_bytes();
        [self.command.number(), self.index, a0, a1, a2, a3, f0, f1, i0, i1]
    }
}

const LENGTH_MASK: u16 = 0x07FF;
const RESERVED_SHIFT: u32 = 11;
const CIRCULATING: u16 = 1 << 14;
const MORE_FOLLOWS: u16 = 1 << 15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_number_survives_the_round_trip() {
        for number in 0..=u8::MAX {
            assert_eq!(Command::from_number(number).number(), number);
        }
    }

    #[test]
    fn headers_re_emit_bit_for_bit() {
        // Every bit of the flags word, one at a time, and a few mixtures.
        for flags in (0..16).map(|bit| 1_u16 << bit).chain([0, 0xFFFF, 0x8123]) {
            let mut bytes = [12, 7, 1, 2, 3, 4, 0, 0, 0xAD, 0xDE];
            bytes[6..8].copy_from_slice(&flags.to_le_bytes());
            assert_eq!(DatagramHeader::parse(&bytes).unwrap().emit(), bytes);
        }
    }

    #[test]
    fn positions_count_down_so_that_the_addressed_device_sees_zero() {
        assert_eq!(Address::at_position(0, 0x10).raw(), 0x0010_0000);
        assert_eq!(Address::at_position(1, 0x10).raw(), 0x0010_FFFF);
        assert_eq!(Address::at_position(3, 0x10).raw(), 0x0010_FFFD);
    }
}
