//! Write protection (ESC data sheet, section I, 17.3): of the registers (0x0020 and 0x0021), and of
//! the whole ESC (0x0030 and 0x0031). What is protected is written only in a frame that has set the
//! enable bit before. Of the registers, the fieldbus may write the ones of [`WriteAccess`].

use ethercat::register::{
    self, ESC_WRITE_ENABLE, ESC_WRITE_PROTECTION, WRITE_REGISTER_ENABLE, WRITE_REGISTER_PROTECTION, dc,
    fmmu, sii_interface, sync_manager,
};

use super::Esc;
use super::sync_manager::SyncManagerUnit;

/// User RAM: the first address behind the registers that the protection of registers covers.
const USER_RAM: u16 = 0x0F80;

impl Esc {
    /// True if a write to `address` is discarded at this moment of the frame.
    pub(super) fn is_protected(&self, address: u16) -> bool {
        let locked = |protection, enable| self.memory.byte(protection) & !self.memory.byte(enable) & 1 != 0;
        if matches!(address, WRITE_REGISTER_ENABLE | ESC_WRITE_ENABLE) {
            return false;
        }
        locked(ESC_WRITE_PROTECTION, ESC_WRITE_ENABLE)
            || address < USER_RAM && locked(WRITE_REGISTER_PROTECTION, WRITE_REGISTER_ENABLE)
    }

    /// Closes the write access that the ending frame had opened.
    pub(crate) fn close_protection(&mut self) {
        for enable in [WRITE_REGISTER_ENABLE, ESC_WRITE_ENABLE] {
            self.memory.set_byte(enable, 0);
        }
    }
}

/// Registers that the fieldbus may write on an ESC with these units, by the "ECAT" column of the
/// ESC data sheet's register tables (section II, 2).
pub(crate) struct WriteAccess<'a> {
    pub(crate) fmmus: usize,
    pub(crate) sync_managers: &'a [SyncManagerUnit],
    pub(crate) distributed_clocks: bool,
    /// True if the cyclic unit belongs to the PDI (0x0980 bit 0).
    pub(crate) cyclic_unit_taken: bool,
    /// True if the LEDs have registers.
    pub(crate) led_override: bool,
    /// True if PHYs can be managed.
    pub(crate) mii: bool,
}

impl WriteAccess<'_> {
    pub(crate) fn allows(&self, address: u16) -> bool {
        match address {
            // First those of many bytes, which each bring-up clears.
            0x0600..=0x07FF => self.is_fmmu(address - register::FMMU),
            0x0800..=0x08FF => self.is_sync_manager(address - register::SYNC_MANAGER),
            0x0010..=0x0011 | 0x0020..=0x0021 | 0x0030..=0x0031 | register::ESC_RESET => true,
            0x0100..=0x0103 | 0x0108..=0x0109 | 0x0120..=0x0121 => true,
            register::RUN_LED | register::ERR_LED => self.led_override,
            0x0200..=0x0201 | 0x0300..=0x030D | 0x0310..=0x0313 => true,
            0x0400..=0x0401 | 0x0410..=0x0411 | 0x0420..=0x0421 | 0x0442..=0x0443 => true,
            sii_interface::CONFIGURATION | 0x0502..=0x050F => true,
            register::MII_CONTROL..=0x0516 => self.mii,
            0x0900..=0x09FF if self.distributed_clocks => self.is_clock(address),
            0x0F80..=0x0FFF => true,
            _ => false,
        }
    }

    fn is_fmmu(&self, offset: u16) -> bool {
        usize::from(offset / fmmu::LENGTH) < self.fmmus
    }

    /// True for a SyncManager's address, length and control, which can be changed only while it is
    /// off.
    fn is_sync_manager(&self, offset: u16) -> bool {
        match self.sync_managers.get(usize::from(offset / sync_manager::LENGTH)) {
            Some(unit) => match offset % sync_manager::LENGTH {
                0..=4 => !unit.is_active(),
                sync_manager::ACTIVATE_OFFSET => true,
                _ => false,
            },
            None => false,
        }
    }

    fn is_clock(&self, address: u16) -> bool {
        match address {
            dc::RECEIVE_TIME..=0x0903 | dc::SYSTEM_TIME..=0x0917 => true,
            dc::SYSTEM_TIME_OFFSET..=0x092B | 0x0930..=0x0931 | 0x0934..=0x0935 => true,
            dc::CYCLIC_UNIT_CONTROL => true,
            dc::ACTIVATION | dc::START_TIME..=0x0997 | 0x09A0..=0x09A9 => !self.cyclic_unit_taken,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fieldbus_cannot_write_identity_and_status_registers() {
        let access = WriteAccess {
            fmmus: 3,
            sync_managers: &[],
            distributed_clocks: true,
            cyclic_unit_taken: true,
            led_override: false,
            mii: false,
        };
        for address in
            [0x0000, 0x0012, 0x0110, 0x0130, 0x0138, 0x0140, 0x0440, 0x0514, 0x0630, 0x0800, 0x0918, 0x0990]
        {
            assert!(!access.allows(address), "{address:#06x}");
        }
        for address in [0x0010, 0x0103, 0x0120, 0x0300, 0x0500, 0x0502, 0x062F, 0x0910, 0x0980] {
            assert!(access.allows(address), "{address:#06x}");
        }
    }
}
