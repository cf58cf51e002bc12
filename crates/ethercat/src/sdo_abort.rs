//! SDO abort codes: reasons for the end of an SDO transfer (ETG.1000.6, 5.6.2.7.2, Table 41; CiA
//! 301, 7.2.4.3.17).

use core::fmt;

use crate::table::codes;

/// The code of an abort SDO transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AbortCode(pub u32);

impl fmt::Display for AbortCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:08X}: {}", self.0, self.text())
    }
}

codes! {
    AbortCode, |_| "code not defined by the standard";
    TOGGLE_NOT_ALTERNATED = 0x0503_0000, "toggle bit not alternated";
    TIMEOUT = 0x0504_0000, "SDO protocol timed out";
    UNKNOWN_COMMAND = 0x0504_0001, "command specifier not valid or unknown";
    INVALID_BLOCK_SIZE = 0x0504_0002, "invalid block size";
    INVALID_SEQUENCE_NUMBER = 0x0504_0003, "invalid sequence number";
    CRC = 0x0504_0004, "CRC error";
    OUT_OF_MEMORY = 0x0504_0005, "out of memory";
    UNSUPPORTED_ACCESS = 0x0601_0000, "unsupported access to an object";
    WRITE_ONLY = 0x0601_0001, "attempt to read a write-only object";
    READ_ONLY = 0x0601_0002, "attempt to write a read-only object";
    SUB_INDEX_0_NOT_ZERO = 0x0601_0003, "sub-index cannot be written while sub-index 0 is not 0";
    NO_COMPLETE_ACCESS = 0x0601_0004, "complete access not supported for objects of variable length";
    EXCEEDS_MAILBOX = 0x0601_0005, "object length exceeds the mailbox size";
    MAPPED_TO_RX_PDO = 0x0601_0006, "object is mapped to an RxPDO, SDO download blocked";
    NO_OBJECT = 0x0602_0000, "object does not exist in the object dictionary";
    NOT_MAPPABLE = 0x0604_0041, "object cannot be mapped to the PDO";
    PDO_LENGTH_EXCEEDED = 0x0604_0042, "objects to be mapped would exceed the PDO length";
    PARAMETER_INCOMPATIBLE = 0x0604_0043, "general parameter incompatibility";
    INTERNAL_INCOMPATIBLE = 0x0604_0047, "general internal incompatibility in the device";
    HARDWARE = 0x0606_0000, "access failed because of a hardware error";
    LENGTH_MISMATCH = 0x0607_0010, "data type does not match, length of parameter does not match";
    TOO_LONG = 0x0607_0012, "data type does not match, length of parameter too high";
    TOO_SHORT = 0x0607_0013, "data type does not match, length of parameter too low";
    NO_SUB_INDEX = 0x0609_0011, "sub-index does not exist";
    VALUE_RANGE = 0x0609_0030, "value range of parameter exceeded";
    VALUE_TOO_HIGH = 0x0609_0031, "value of parameter written too high";
    VALUE_TOO_LOW = 0x0609_0032, "value of parameter written too low";
    MODULE_LIST_MISMATCH = 0x0609_0033, "detected module list does not match the configured one";
    MAXIMUM_BELOW_MINIMUM = 0x0609_0036, "maximum value is less than minimum value";
    RESOURCE_NOT_AVAILABLE = 0x060A_0023, "resource not available";
    GENERAL = 0x0800_0000, "general error";
    CANNOT_TRANSFER = 0x0800_0020, "data cannot be transferred or stored to the application";
    LOCAL_CONTROL = 0x0800_0021, "data cannot be transferred or stored because of local control";
    DEVICE_STATE = 0x0800_0022, "data cannot be transferred or stored in the present device state";
    NO_DICTIONARY = 0x0800_0023, "no object dictionary present, or its dynamic generation failed";
    NO_DATA_AVAILABLE = 0x0800_0024, "no data available";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_read_as_number_and_text() {
        let expected = "0x06020000: object does not exist in the object dictionary";
        assert_eq!(AbortCode(0x0602_0000).to_string(), expected);
        assert_eq!(AbortCode(7).to_string(), "0x00000007: code not defined by the standard");
    }
}
