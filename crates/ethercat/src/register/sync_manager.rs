//! SyncManagers: access rights and handover of process data memory (ETG.1000.4, 6.10, Table 58).

use crate::wire::read_u16;

/// Bytes of one SyncManager's registers.
pub const LENGTH: u16 = 8;

/// Offset of the status byte inside one SyncManager's registers.
pub const STATUS_OFFSET: u16 = 5;
/// Offset of the activate byte.
pub const ACTIVATE_OFFSET: u16 = 6;
/// Offset of the PDI control byte.
pub const PDI_CONTROL_OFFSET: u16 = 7;

/// Status bit: a mailbox holds a message not yet read.
pub const STATUS_MAILBOX_FULL: u8 = 0x08;

/// True if this status, as it was read, has [`STATUS_MAILBOX_FULL`].
#[must_use]
pub fn is_mailbox_full(status: &[u8]) -> bool {
    status.first().is_some_and(|status| status & STATUS_MAILBOX_FULL != 0)
}

/// Activate bit: repeat request; the MainDevice toggles it when it lost the reply of a mailbox read
/// (ETG.1000.4, 6.10).
pub const ACTIVATE_REPEAT: u8 = 0x02;
/// PDI control bit: the application has switched the SyncManager off, whatever its activate bit
/// says (ETG.1000.4, 6.10, Table 58): its memory is neither read nor written.
pub const PDI_CONTROL_DEACTIVATED: u8 = 0x01;
/// PDI control bit: repeat acknowledge; follows [`ACTIVATE_REPEAT`] when the message is there
/// again.
pub const PDI_CONTROL_REPEAT_ACK: u8 = 0x02;

/// Way in which the memory is handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SyncManagerMode {
    /// Three buffers, newest wins: process data.
    Buffered,
    /// One buffer, taken in turns: mailbox.
    Mailbox,
}

/// Direction of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SyncManagerDirection {
    /// The MainDevice reads: inputs.
    Read,
    /// The MainDevice writes: outputs.
    Write,
}

/// One SyncManager's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncManager {
    /// First physical address.
    pub physical_address: u16,
    /// Bytes.
    pub length: u16,
    /// The control byte (offset 4) as the SII gives it: mode in bits 0 and 1, direction in bits 2
    /// and 3, interrupts in bits 4 and 5, watchdog trigger in bit 6.
    pub control: u8,
    /// True if it is active (offset 6, bit 0).
    pub active: bool,
}

impl SyncManager {
    /// Control byte of the mailbox the MainDevice writes: mailbox, write, PDI interrupt.
    pub const CONTROL_MAILBOX_OUT: u8 = 0x26;
    /// Control byte of the mailbox the MainDevice reads: mailbox, read, PDI interrupt.
    pub const CONTROL_MAILBOX_IN: u8 = 0x22;
    /// Control byte of outputs: buffered, write, PDI interrupt, watchdog trigger.
    pub const CONTROL_OUTPUTS: u8 = 0x64;
    /// Control byte of inputs: buffered, read, PDI interrupt.
    pub const CONTROL_INPUTS: u8 = 0x20;

    /// Bit of the control byte: a write to it feeds the SyncManager watchdog.
    pub const CONTROL_WATCHDOG: u8 = 0x40;

    /// Way in which the memory is handed over, or `None` for the two modes the standard does not
    /// define.
    #[must_use]
    pub const fn mode(&self) -> Option<SyncManagerMode> {
        match self.control & 0x03 {
            0 => Some(SyncManagerMode::Buffered),
            2 => Some(SyncManagerMode::Mailbox),
            _ => None,
        }
    }

    /// Direction of the data, or `None` for the two the standard does not define.
    #[must_use]
    pub const fn direction(&self) -> Option<SyncManagerDirection> {
        match self.control >> 2 & 0x03 {
            0 => Some(SyncManagerDirection::Read),
            1 => Some(SyncManagerDirection::Write),
            _ => None,
        }
    }

    /// True if a write to it feeds the SyncManager watchdog.
    #[must_use]
    pub const fn triggers_watchdog(&self) -> bool {
        self.control & Self::CONTROL_WATCHDOG != 0
    }

    /// The register of SyncManager `number`.
    #[must_use]
    pub const fn register(number: u8) -> u16 {
        super::SYNC_MANAGER + number as u16 * LENGTH
    }

    /// The registers' bytes: address, length, control, status (0), activate, PDI control (0).
    #[must_use]
    pub fn emit(&self) -> [u8; LENGTH as usize] {
        let mut bytes = [0; LENGTH as usize];
        bytes[0..2].copy_from_slice(&self.physical_address.to_le_bytes());
        bytes[2..4].copy_from_slice(&self.length.to_le_bytes());
        bytes[4] = self.control;
        bytes[6] = u8::from(self.active);
        bytes
    }

    /// The SyncManager in the first 8 bytes, or `None` if there are fewer.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..usize::from(LENGTH))?;
        Some(Self {
            physical_address: read_u16(bytes, 0)?,
            length: read_u16(bytes, 2)?,
            control: bytes[4],
            active: bytes[6] & 1 != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_four_usual_control_bytes_decode() {
        let sync_manager =
            |control| SyncManager { physical_address: 0x1000, length: 128, control, active: true };
        use SyncManagerDirection::{Read, Write};
        use SyncManagerMode::{Buffered, Mailbox};
        for (control, mode, direction, watchdog) in [
            (SyncManager::CONTROL_MAILBOX_OUT, Mailbox, Write, false),
            (SyncManager::CONTROL_MAILBOX_IN, Mailbox, Read, false),
            (SyncManager::CONTROL_OUTPUTS, Buffered, Write, true),
            (SyncManager::CONTROL_INPUTS, Buffered, Read, false),
        ] {
            let it = sync_manager(control);
            assert_eq!(SyncManager::parse(&it.emit()), Some(it));
            assert_eq!((it.mode(), it.direction()), (Some(mode), Some(direction)));
            assert_eq!(it.triggers_watchdog(), watchdog);
        }
    }
}
