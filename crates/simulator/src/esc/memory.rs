//! Memory of an ESC: 64 KiB of addresses, of which the lowest four are registers (ETG.1000.4, 6.1).

/// First byte that SyncManagers may cover: the digital I/O output registers, 0x0F00.
pub(crate) const FIRST_SHARED: u16 = 0x0F00;

/// Bytes with little-endian access. Addresses wrap at the end, like address lines; where no memory
/// is, all is zero.
#[derive(Clone)]
pub(crate) struct Memory {
    bytes: Box<[u8]>,
}

impl Memory {
    /// Memory up to address `end`.
    pub(crate) fn up_to(end: u32) -> Self {
        Self { bytes: vec![0; end as usize].into_boxed_slice() }
    }

    pub(crate) fn byte(&self, address: u16) -> u8 {
        self.bytes.get(usize::from(address)).copied().unwrap_or(0)
    }

    pub(crate) fn set_byte(&mut self, address: u16, value: u8) {
        if let Some(byte) = self.bytes.get_mut(usize::from(address)) {
            *byte = value;
        }
    }

    pub(crate) fn word(&self, address: u16) -> u16 {
        u16::from_le_bytes(self.array(address))
    }

    pub(crate) fn double_word(&self, address: u16) -> u32 {
        u32::from_le_bytes(self.array(address))
    }

    pub(crate) fn quad_word(&self, address: u16) -> u64 {
        u64::from_le_bytes(self.array(address))
    }

    pub(crate) fn array<const N: usize>(&self, address: u16) -> [u8; N] {
        let mut array = [0; N];
        self.copy_to(address, &mut array);
        array
    }

    /// Stores `bytes` from `address` on.
    pub(crate) fn store(&mut self, address: u16, bytes: &[u8]) {
        let start = usize::from(address);
        match self.bytes.get_mut(start..start + bytes.len()) {
            Some(place) => place.copy_from_slice(bytes),
            None => {
                for (offset, byte) in bytes.iter().enumerate() {
                    self.set_byte(address.wrapping_add(offset as u16), *byte);
                }
            }
        }
    }

    pub(crate) fn copy_to(&self, address: u16, target: &mut [u8]) {
        self.transfer(address, target, Combine::Replace);
    }

    /// Copies the bytes from `address` on into `target`.
    pub(crate) fn transfer(&self, address: u16, target: &mut [u8], combine: Combine) {
        let start = usize::from(address);
        match (self.bytes.get(start..start + target.len()), combine) {
            (Some(source), Combine::Replace) => target.copy_from_slice(source),
            (Some(source), Combine::Or) => {
                target.iter_mut().zip(source).for_each(|(byte, source)| *byte |= source);
            }
            (None, _) => {
                for (offset, byte) in target.iter_mut().enumerate() {
                    let source = self.byte(address.wrapping_add(offset as u16));
                    *byte = if combine == Combine::Or { *byte | source } else { source };
                }
            }
        }
    }

    /// Increments a counter that saturates.
    pub(crate) fn count(&mut self, address: u16) {
        self.set_byte(address, self.byte(address).saturating_add(1));
    }
}

/// Combination of a read with the datagram: broadcast reads combine all SubDevices by OR.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Combine {
    Replace,
    Or,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_wraps_at_the_end_of_the_address_space() {
        let mut memory = Memory::up_to(0x1_0000);
        memory.store(0xFFFF, &[1, 2]);
        assert_eq!((memory.byte(0xFFFF), memory.byte(0)), (1, 2));
        assert_eq!(memory.word(0xFFFF), 0x0201);
        let mut target = [0x10; 2];
        memory.transfer(0xFFFF, &mut target, Combine::Or);
        assert_eq!(target, [0x11, 0x12]);
    }
}
