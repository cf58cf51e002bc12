//! Write protection (ESC data sheet, section I, 17.3): of the registers (0x0020 and 0x0021), and of
//! the whole ESC (0x0030 and 0x0031). What is protected is written only in a frame that has set the
//! enable bit before.

use ethercat::register::{
    ESC_WRITE_ENABLE, ESC_WRITE_PROTECTION, WRITE_REGISTER_ENABLE, WRITE_REGISTER_PROTECTION,
};

use super::Esc;

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
