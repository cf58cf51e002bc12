//! The SII's EEPROM through the ESC (ETG.1000.4, 6.11 "SII interface"; ESC data sheet, section II,
//! 2.12).

/// SII access configuration, 1 byte: bit 0 gives the EEPROM to the PDI, bit 1 takes it back.
pub const CONFIGURATION: u16 = 0x0500;
/// SII access state of the PDI, 1 byte.
pub const PDI_ACCESS: u16 = 0x0501;
/// SII control and status, 2 bytes.
pub const CONTROL: u16 = 0x0502;
/// SII word address, 4 bytes.
pub const ADDRESS: u16 = 0x0504;
/// SII data, 4 or 8 bytes by [`STATUS_READS_8_BYTES`].
pub const DATA: u16 = 0x0508;

/// Control: allow one write. In the low byte; also reads back.
pub const CONTROL_WRITE_ENABLE: u16 = 0x0001;
/// Status: a read yields 8 bytes; otherwise 4.
pub const STATUS_READS_8_BYTES: u16 = 0x0040;
/// Status: two address bytes (EEPROMs above 16 Kibit); otherwise one.
pub const STATUS_TWO_ADDRESS_BYTES: u16 = 0x0080;
/// Control: start a read.
pub const COMMAND_READ: u16 = 0x0100;
/// Control: start a write.
pub const COMMAND_WRITE: u16 = 0x0200;
/// Control: load the ESC configuration area again.
pub const COMMAND_RELOAD: u16 = 0x0400;
/// Status: the checksum over the configuration area is wrong.
pub const STATUS_CHECKSUM_ERROR: u16 = 0x0800;
/// Status: the EEPROM was not loaded.
pub const STATUS_NOT_LOADED: u16 = 0x1000;
/// Status: the EEPROM did not acknowledge, or the command was not valid.
pub const STATUS_MISSING_ACKNOWLEDGE: u16 = 0x2000;
/// Status: a write without write enable.
pub const STATUS_WRITE_ENABLE_ERROR: u16 = 0x4000;
/// Status: busy.
pub const STATUS_BUSY: u16 = 0x8000;
