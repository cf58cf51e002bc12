//! The ESC's registers by group (ETG.1000.4, clause 6; names as in the ESC data sheets, section
//! II).
//!
//! Addresses are physical memory addresses; sizes are in bytes. Structured groups have modules:
//! [`fmmu`], [`sync_manager`], [`watchdog`], [`dl`], [`dc`], [`sii_interface`].

pub mod dc;
pub mod dl;
pub mod fmmu;
pub mod sii_interface;
pub mod sync_manager;
pub mod watchdog;

pub use dl::{DlStatus, EscFeatures};
pub use fmmu::{Fmmu, FmmuDirection};
pub use sync_manager::{SyncManager, SyncManagerDirection, SyncManagerMode};
pub use watchdog::Watchdogs;

/// First address of process data memory; registers lie below (ETG.1000.4, 6.1).
pub const PROCESS_DATA_MEMORY: u16 = 0x1000;

// ESC information (ETG.1000.4, 6.2, Table 31).

/// Type of the controller, 1 byte.
pub const TYPE: u16 = 0x0000;
/// Revision, 1 byte.
pub const REVISION: u16 = 0x0001;
/// Build, 2 bytes.
pub const BUILD: u16 = 0x0002;
/// Number of FMMUs, 1 byte.
pub const FMMU_COUNT: u16 = 0x0004;
/// Number of SyncManagers, 1 byte.
pub const SYNC_MANAGER_COUNT: u16 = 0x0005;
/// Process data memory in KiB, 1 byte.
pub const RAM_SIZE: u16 = 0x0006;
/// Port descriptor, two bits a port, 1 byte.
pub const PORT_DESCRIPTOR: u16 = 0x0007;
/// Features, 2 bytes: [`EscFeatures`].
pub const FEATURES: u16 = 0x0008;

// Station address (ETG.1000.4, 6.3).

/// Configured station address, 2 bytes.
pub const STATION_ADDRESS: u16 = 0x0010;
/// Configured station alias, 2 bytes; loaded from the SII.
pub const STATION_ALIAS: u16 = 0x0012;

// Write protection (ESC data sheet, section I, 17.3).

/// Write register enable, 1 byte: bit 0 opens protected registers until the frame ends.
pub const WRITE_REGISTER_ENABLE: u16 = 0x0020;
/// Write register protection, 1 byte: bit 0 protects the registers.
pub const WRITE_REGISTER_PROTECTION: u16 = 0x0021;
/// ESC write enable, 1 byte: bit 0 opens a protected ESC until the frame ends.
pub const ESC_WRITE_ENABLE: u16 = 0x0030;
/// ESC write protection, 1 byte: bit 0 protects registers and memory.
pub const ESC_WRITE_PROTECTION: u16 = 0x0031;

// Data link layer (ETG.1000.4, 6.4).

/// ESC reset: 'R', 'E', 'S' in turn, 1 byte.
pub const ESC_RESET: u16 = 0x0040;
/// DL control, 4 bytes: bit 1 takes the loop settings for about a second only.
pub const DL_CONTROL: u16 = 0x0100;
/// The byte of DL control with the loop settings, two bits a port: 0 opens and closes by the link,
/// 3 is closed.
pub const DL_CONTROL_LOOPS: u16 = 0x0101;
/// The byte of DL control whose bit 0 makes FPxx commands match the alias.
pub const DL_CONTROL_ALIAS: u16 = 0x0103;
/// Physical read/write offset, 2 bytes: APRW and FPRW write at the read address plus this offset.
pub const PHYSICAL_READ_WRITE_OFFSET: u16 = 0x0108;
/// DL status, 2 bytes: [`DlStatus`].
pub const DL_STATUS: u16 = 0x0110;

// Application layer (ETG.1000.6, 5.3).

/// AL control, 2 bytes: [`crate::al::AlControl`].
pub const AL_CONTROL: u16 = 0x0120;
/// AL status, 2 bytes: [`crate::al::AlStatus`].
pub const AL_STATUS: u16 = 0x0130;
/// AL status code, 2 bytes.
pub const AL_STATUS_CODE: u16 = 0x0134;
/// RUN LED, 1 byte: code of the LED, and bit 4 if it was written.
pub const RUN_LED: u16 = 0x0138;
/// ERR LED, 1 byte, likewise.
pub const ERR_LED: u16 = 0x0139;

// Process data interface (ETG.1000.4, 6.5).

/// PDI control, 1 byte: kind of the interface to the application; 0x04 is digital I/O.
pub const PDI_CONTROL: u16 = 0x0140;
/// ESC configuration, 1 byte.
pub const ESC_CONFIGURATION: u16 = 0x0141;
/// PDI configuration, 2 bytes.
pub const PDI_CONFIGURATION: u16 = 0x0150;

// Interrupts (ETG.1000.4, 6.6).

/// ECAT event mask, 2 bytes.
pub const ECAT_EVENT_MASK: u16 = 0x0200;
/// AL event mask, 4 bytes.
pub const AL_EVENT_MASK: u16 = 0x0204;
/// ECAT event request, 2 bytes.
pub const ECAT_EVENT_REQUEST: u16 = 0x0210;
/// AL event request, 4 bytes.
pub const AL_EVENT_REQUEST: u16 = 0x0220;

// Error counters (ETG.1000.4, 6.7).

/// RX error counters: invalid frame counter and RX error counter, 2 bytes a port, 8 bytes. Writing
/// clears all.
pub const RX_ERROR_COUNTERS: u16 = 0x0300;
/// Forwarded RX error counters, 1 byte a port, 4 bytes.
pub const FORWARDED_RX_ERROR_COUNTERS: u16 = 0x0308;
/// ECAT processing unit error counter, 1 byte.
pub const PROCESSING_UNIT_ERROR_COUNTER: u16 = 0x030C;
/// PDI error counter, 1 byte.
pub const PDI_ERROR_COUNTER: u16 = 0x030D;
/// Lost link counters, 1 byte a port, 4 bytes.
pub const LOST_LINK_COUNTERS: u16 = 0x0310;

// Watchdogs (ETG.1000.4, 6.8).

/// Watchdog divider, 2 bytes: a watchdog tick is (divider + 2) * 40 ns.
pub const WATCHDOG_DIVIDER: u16 = 0x0400;
/// PDI watchdog time in ticks, 2 bytes; 0 switches it off.
pub const WATCHDOG_TIME_PDI: u16 = 0x0410;
/// SyncManager watchdog time in ticks, 2 bytes; 0 switches it off.
pub const WATCHDOG_TIME_PROCESS_DATA: u16 = 0x0420;
/// SyncManager watchdog status, 2 bytes: bit 0 is 0 when it has expired.
pub const WATCHDOG_STATUS: u16 = 0x0440;
/// SyncManager watchdog counter, 1 byte: how often it has expired.
pub const WATCHDOG_COUNTER_PROCESS_DATA: u16 = 0x0442;
/// PDI watchdog counter, 1 byte.
pub const WATCHDOG_COUNTER_PDI: u16 = 0x0443;

/// Divider after reset: 2498, a tick of 100 us (ESC data sheet, section II, 2.10).
pub const WATCHDOG_DIVIDER_DEFAULT: u16 = 0x09C2;
/// Both watchdog times after reset: 1000 ticks, 100 ms.
pub const WATCHDOG_TIME_DEFAULT: u16 = 0x03E8;

// MII management (ESC data sheet, section II, 2.13).

/// MII management control and status, 2 bytes.
pub const MII_CONTROL: u16 = 0x0510;
/// PHY address, 1 byte.
pub const MII_PHY_ADDRESS: u16 = 0x0512;
/// PHY register address, 1 byte.
pub const MII_PHY_REGISTER: u16 = 0x0513;
/// PHY data, 2 bytes.
pub const MII_PHY_DATA: u16 = 0x0514;

/// First address of the FMMUs, 16 bytes each (ETG.1000.4, 6.9).
pub const FMMU: u16 = 0x0600;
/// First address of the SyncManagers, 8 bytes each (ETG.1000.4, 6.10).
pub const SYNC_MANAGER: u16 = 0x0800;

/// Registers of the kind of ESC, 0x0E00 to 0x0EFF: power-on values, or product and vendor.
pub const ESC_SPECIFIC: u16 = 0x0E00;
