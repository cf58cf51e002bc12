//! AL status codes: why a SubDevice refused a state or left one (ETG.1000.6, 5.3.3, Table 11;
//! ETG.1020, 5.2).

use core::fmt;

use crate::table::codes;

/// The AL status code register, 0x0134.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AlStatusCode(pub u16);

impl fmt::Display for AlStatusCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#06x}: {}", self.0, self.text())
    }
}

const FIRST_OF_VENDORS: u16 = 0x8000;

const fn undefined(code: u16) -> &'static str {
    if code >= FIRST_OF_VENDORS { "vendor-specific code" } else { "code not defined by the standard" }
}

codes! {
    AlStatusCode, undefined;
    NO_ERROR = 0x0000, "no error";
    UNSPECIFIED = 0x0001, "unspecified error";
    NO_MEMORY = 0x0002, "no memory";
    INVALID_DEVICE_SETUP = 0x0003, "invalid device setup";
    INVALID_REVISION = 0x0004, "mapping is not valid for this hardware or software revision";
    SII_MISMATCH = 0x0006, "SII does not match the firmware";
    FIRMWARE_UPDATE_FAILED = 0x0007, "firmware update not successful, the old firmware still runs";
    LICENSE = 0x000E, "license error";
    INVALID_REQUESTED_STATE_CHANGE = 0x0011, "invalid requested state change";
    UNKNOWN_REQUESTED_STATE = 0x0012, "unknown requested state";
    BOOTSTRAP_NOT_SUPPORTED = 0x0013, "Bootstrap not supported";
    NO_VALID_FIRMWARE = 0x0014, "no valid firmware";
    INVALID_MAILBOX_BOOTSTRAP = 0x0015, "invalid mailbox configuration for Bootstrap";
    INVALID_MAILBOX_PRE_OP = 0x0016, "invalid mailbox configuration for PreOp";
    INVALID_SYNC_MANAGER = 0x0017, "invalid SyncManager configuration";
    NO_VALID_INPUTS = 0x0018, "no valid inputs available";
    NO_VALID_OUTPUTS = 0x0019, "no valid outputs";
    SYNCHRONIZATION = 0x001A, "synchronization error";
    SYNC_MANAGER_WATCHDOG = 0x001B, "SyncManager watchdog expired";
    INVALID_SYNC_MANAGER_TYPES = 0x001C, "invalid SyncManager types";
    INVALID_OUTPUT_CONFIGURATION = 0x001D, "invalid output configuration";
    INVALID_INPUT_CONFIGURATION = 0x001E, "invalid input configuration";
    INVALID_WATCHDOG_CONFIGURATION = 0x001F, "invalid watchdog configuration";
    NEEDS_COLD_START = 0x0020, "SubDevice needs a cold start";
    NEEDS_INIT = 0x0021, "SubDevice needs Init";
    NEEDS_PRE_OP = 0x0022, "SubDevice needs PreOp";
    NEEDS_SAFE_OP = 0x0023, "SubDevice needs SafeOp";
    INVALID_INPUT_MAPPING = 0x0024, "invalid input mapping";
    INVALID_OUTPUT_MAPPING = 0x0025, "invalid output mapping";
    INCONSISTENT_SETTINGS = 0x0026, "inconsistent settings";
    FREE_RUN_NOT_SUPPORTED = 0x0027, "free run not supported";
    SYNCHRONIZATION_NOT_SUPPORTED = 0x0028, "synchronization not supported";
    FREE_RUN_NEEDS_THREE_BUFFERS = 0x0029, "free run needs three-buffer mode";
    BACKGROUND_WATCHDOG = 0x002A, "background watchdog";
    NO_VALID_INPUTS_AND_OUTPUTS = 0x002B, "no valid inputs and outputs";
    FATAL_SYNC = 0x002C, "fatal synchronization error";
    NO_SYNC = 0x002D, "no SYNC signal received";
    CYCLE_TIME_TOO_SMALL = 0x002E, "cycle time too small";
    INVALID_DC_SYNC_CONFIGURATION = 0x0030, "invalid DC SYNC configuration";
    INVALID_DC_LATCH_CONFIGURATION = 0x0031, "invalid DC latch configuration";
    PLL = 0x0032, "PLL error: not synchronized to the MainDevice";
    DC_SYNC_IO = 0x0033, "DC SYNC I/O error";
    DC_SYNC_TIMEOUT = 0x0034, "DC SYNC timeout";
    DC_INVALID_SYNC_CYCLE_TIME = 0x0035, "DC invalid SYNC cycle time";
    DC_INVALID_SYNC0_CYCLE_TIME = 0x0036, "DC SYNC0 cycle time does not fit the application";
    DC_INVALID_SYNC1_CYCLE_TIME = 0x0037, "DC SYNC1 cycle time does not fit the application";
    MAILBOX_AOE = 0x0041, "AoE mailbox error";
    MAILBOX_EOE = 0x0042, "EoE mailbox error";
    MAILBOX_COE = 0x0043, "CoE mailbox error";
    MAILBOX_FOE = 0x0044, "FoE mailbox error";
    MAILBOX_SOE = 0x0045, "SoE mailbox error";
    MAILBOX_VOE = 0x004F, "VoE mailbox error";
    EEPROM_NO_ACCESS = 0x0050, "EEPROM not assigned to the PDI";
    EEPROM_ERROR = 0x0051, "EEPROM access failed";
    EXTERNAL_HARDWARE_NOT_READY = 0x0052, "external hardware not ready";
    RESTARTED_LOCALLY = 0x0060, "SubDevice restarted locally";
    IDENTIFICATION_UPDATED = 0x0061, "device identification value updated";
    MODULE_LIST_MISMATCH = 0x0070, "detected module list does not match the configured one";
    SUPPLY_VOLTAGE_TOO_LOW = 0x0080, "supply voltage too low";
    SUPPLY_VOLTAGE_TOO_HIGH = 0x0081, "supply voltage too high";
    TEMPERATURE_TOO_LOW = 0x0082, "temperature too low";
    TEMPERATURE_TOO_HIGH = 0x0083, "temperature too high";
    APPLICATION_CONTROLLER_AVAILABLE = 0x00F0, "application controller available";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_read_as_number_and_text() {
        assert_eq!(AlStatusCode(0x1B).to_string(), "0x001b: SyncManager watchdog expired");
        assert_eq!(AlStatusCode(0x8001).to_string(), "0x8001: vendor-specific code");
        assert_eq!(AlStatusCode(0x0999).to_string(), "0x0999: code not defined by the standard");
    }
}
