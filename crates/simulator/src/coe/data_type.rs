//! Basic data types of the object dictionary (ETG.1000.6, 5.6.7.3, Table 64; ETG.1020 for the bit
//! types).

/// Type of one entry of the object dictionary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataType {
    /// One bit, one byte in an SDO.
    Boolean,
    /// Two's complement of this many bits: 8, 16, 24, 32, 40, 48, 56 or 64.
    Integer(u8),
    /// Unsigned of this many bits: 8, 16, 24, 32, 40, 48, 56 or 64.
    Unsigned(u8),
    /// 1 to 8 bits, one byte in an SDO: BIT1 to BIT8.
    Bits(u8),
    /// IEEE 754 single precision.
    Real32,
    /// IEEE 754 double precision.
    Real64,
    /// Characters 0x20 to 0x7E, of at most the entry's length.
    VisibleString,
    /// Any bytes, of at most the entry's length.
    OctetString,
}

impl DataType {
    /// 8-bit unsigned.
    pub const U8: Self = Self::Unsigned(8);
    /// 16-bit unsigned.
    pub const U16: Self = Self::Unsigned(16);
    /// 32-bit unsigned.
    pub const U32: Self = Self::Unsigned(32);
    /// 8-bit signed.
    pub const I8: Self = Self::Integer(8);
    /// 16-bit signed.
    pub const I16: Self = Self::Integer(16);
    /// 32-bit signed.
    pub const I32: Self = Self::Integer(32);

    /// Index of the type in the object dictionary, as in entry descriptions; 0 for a number of bits
    /// without one.
    #[must_use]
    pub const fn code(self) -> u16 {
        match self {
            Self::Boolean => 0x0001,
            Self::Integer(8) => 0x0002,
            Self::Integer(16) => 0x0003,
            Self::Integer(24) => 0x0010,
            Self::Integer(32) => 0x0004,
            Self::Integer(40) => 0x0012,
            Self::Integer(48) => 0x0013,
            Self::Integer(56) => 0x0014,
            Self::Integer(64) => 0x0015,
            Self::Unsigned(8) => 0x0005,
            Self::Unsigned(16) => 0x0006,
            Self::Unsigned(24) => 0x0016,
            Self::Unsigned(32) => 0x0007,
            Self::Unsigned(40) => 0x0018,
            Self::Unsigned(48) => 0x0019,
            Self::Unsigned(56) => 0x001A,
            Self::Unsigned(64) => 0x001B,
            Self::Bits(bits @ 1..=8) => 0x0030 + bits as u16 - 1,
            Self::Real32 => 0x0008,
            Self::Real64 => 0x0011,
            Self::VisibleString => 0x0009,
            Self::OctetString => 0x000A,
            Self::Integer(_) | Self::Unsigned(_) | Self::Bits(_) => 0,
        }
    }

    /// Bits of a value, or `None` where each entry has its own length.
    #[must_use]
    pub const fn bit_length(self) -> Option<u16> {
        match self {
            Self::Boolean => Some(1),
            Self::Integer(bits) | Self::Unsigned(bits) | Self::Bits(bits) => Some(bits as u16),
            Self::Real32 => Some(32),
            Self::Real64 => Some(64),
            Self::VisibleString | Self::OctetString => None,
        }
    }

    /// Plain type of a process data entry of which only the number of bits is known.
    #[must_use]
    pub const fn of_bit_length(bits: u8) -> Self {
        match bits {
            1 => Self::Boolean,
            2..=7 => Self::Bits(bits),
            8 | 16 | 24 | 32 | 40 | 48 | 56 | 64 => Self::Unsigned(bits),
            _ => Self::OctetString,
        }
    }

    /// True if values are two's complement.
    #[must_use]
    pub const fn is_signed(self) -> bool {
        matches!(self, Self::Integer(_))
    }

    /// True if a value may be shorter than the entry.
    #[must_use]
    pub const fn is_string(self) -> bool {
        matches!(self, Self::VisibleString | Self::OctetString)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_match_the_standard() {
        for (data_type, code, bits) in [
            (DataType::Boolean, 0x01, Some(1)),
            (DataType::I32, 0x04, Some(32)),
            (DataType::U16, 0x06, Some(16)),
            (DataType::Real32, 0x08, Some(32)),
            (DataType::VisibleString, 0x09, None),
            (DataType::Real64, 0x11, Some(64)),
            (DataType::Integer(64), 0x15, Some(64)),
            (DataType::Unsigned(64), 0x1B, Some(64)),
            (DataType::Bits(8), 0x37, Some(8)),
        ] {
            assert_eq!((data_type.code(), data_type.bit_length()), (code, bits), "{data_type:?}");
        }
        assert_eq!(DataType::Bits(0).code(), 0);
        assert_eq!(DataType::Bits(9).code(), 0);
    }

    #[test]
    fn every_process_data_length_has_a_type() {
        for bits in 1..=u8::MAX {
            let data_type = DataType::of_bit_length(bits);
            assert_ne!(data_type.code(), 0, "{bits} bits");
            assert!(data_type.bit_length().is_none_or(|length| length == u16::from(bits)));
        }
    }
}
