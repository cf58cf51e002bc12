//! The EEPROM behind the ESC's SII interface (ESC data sheet, section II, 2.12; ETG.1000.4, 6.11).
//!
//! Simplification: an access takes a fixed time, at any address.

use core::time::Duration;

use ethercat::register::sii_interface as register;
use ethercat::register::{ESC_CONFIGURATION, PDI_CONFIGURATION, PDI_CONTROL, STATION_ALIAS};
use ethercat::sii::{CHECKSUM_DISABLED, crc8};
use ethercat::time::Instant;

use super::memory::Memory;

/// Time of an eight-byte read on the two-wire bus at 400 kHz.
const READ_TIME: Duration = Duration::from_micros(300);
/// Write cycle of an EEPROM.
const WRITE_TIME: Duration = Duration::from_millis(5);

/// EEPROM and its present operation.
#[derive(Clone, Debug)]
pub(crate) struct SiiInterface {
    image: Vec<u8>,
    reads_8_bytes: bool,
    running: Option<(Instant, SiiCommand)>,
    /// True if a word was written since the last query.
    written: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SiiCommand {
    Read,
    Write { word: u16 },
    Reload,
}

impl SiiInterface {
    pub(crate) fn new(image: Vec<u8>, reads_8_bytes: bool) -> Self {
        Self { image, reads_8_bytes, running: None, written: false }
    }

    pub(crate) fn image(&self) -> &[u8] {
        &self.image
    }

    /// Replaces the EEPROM; the configuration loaded from the previous one stays.
    pub(crate) fn set_image(&mut self, image: Vec<u8>) {
        self.image = image;
    }

    /// Loads the configuration area as after power-on; the alias is taken over only here.
    pub(crate) fn load(&mut self, memory: &mut Memory) {
        self.running = None;
        let mut status = 0;
        if self.reads_8_bytes {
            status |= register::STATUS_READS_8_BYTES;
        }
        if self.image.len() > ONE_ADDRESS_BYTE_LIMIT {
            status |= register::STATUS_TWO_ADDRESS_BYTES;
        }
        memory.store(register::CONTROL, &status.to_le_bytes());
        if self.load_configuration(memory) {
            memory.store(STATION_ALIAS, &self.word(4).to_le_bytes());
        }
    }

    /// True if the configuration area was read and its checksum is right.
    pub(crate) fn is_loaded(&self, memory: &Memory) -> bool {
        memory.word(register::CONTROL) & (register::STATUS_CHECKSUM_ERROR | register::STATUS_NOT_LOADED)
            == 0
    }

    /// Word `address` of the EEPROM; an erased EEPROM's bits are one.
    pub(crate) fn word(&self, address: usize) -> u16 {
        let byte = |offset| self.image.get(offset).copied().unwrap_or(0xFF);
        u16::from_le_bytes([byte(address * 2), byte(address * 2 + 1)])
    }

    /// Completes operations that end by `now`.
    pub(crate) fn settle(&mut self, memory: &mut Memory, now: Instant) {
        let Some((end, command)) = self.running else { return };
        if now < end {
            return;
        }
        self.running = None;
        let address = memory.double_word(register::ADDRESS) as usize;
        match command {
            SiiCommand::Read => {
                let words = if self.reads_8_bytes { 4 } else { 2 };
                for number in 0..words {
                    let value = self.word(address.saturating_add(number) & ADDRESS_MASK);
                    memory.store(register::DATA + 2 * number as u16, &value.to_le_bytes());
                }
            }
            SiiCommand::Write { word } => {
                let start = (address & ADDRESS_MASK) * 2;
                if let Some(place) = self.image.get_mut(start..start + 2) {
                    place.copy_from_slice(&word.to_le_bytes());
                    self.written = true;
                }
            }
            SiiCommand::Reload => {
                self.load_configuration(memory);
            }
        }
        let status = memory.word(register::CONTROL) & !(register::STATUS_BUSY | COMMANDS);
        memory.store(register::CONTROL, &status.to_le_bytes());
    }

    /// True if the fieldbus has written to it since the last call.
    pub(crate) fn take_written(&mut self) -> bool {
        core::mem::take(&mut self.written)
    }

    /// True while it is busy, when its registers cannot be written.
    pub(crate) fn is_busy(&self) -> bool {
        self.running.is_some()
    }

    /// True while its contents, or what is loaded of them, are about to change, or have changed
    /// since the last look.
    pub(crate) fn is_writing(&self) -> bool {
        self.written || self.running.is_some_and(|(_, command)| command != SiiCommand::Read)
    }

    /// Applies a write of `request` to the control register; `before` is its previous value.
    pub(crate) fn control_written(&mut self, memory: &mut Memory, now: Instant, before: u16, request: u16) {
        const ERRORS: u16 = register::STATUS_MISSING_ACKNOWLEDGE | register::STATUS_WRITE_ENABLE_ERROR;
        let mut status = before & !(COMMANDS | register::CONTROL_WRITE_ENABLE);
        let owned_by_application = memory.byte(register::CONFIGURATION) & 1 != 0;
        let address = memory.double_word(register::ADDRESS) as usize;
        let outside = address.saturating_mul(2) >= self.image.len();
        let command = match request & COMMANDS {
            0 => {
                // Without a command: acknowledges errors.
                memory.store(register::CONTROL, &(status & !ERRORS).to_le_bytes());
                return;
            }
            register::COMMAND_READ => Ok((READ_TIME, SiiCommand::Read)),
            register::COMMAND_WRITE if request & register::CONTROL_WRITE_ENABLE == 0 => {
                Err(register::STATUS_WRITE_ENABLE_ERROR)
            }
            register::COMMAND_WRITE if outside => Err(register::STATUS_MISSING_ACKNOWLEDGE),
            register::COMMAND_WRITE => {
                Ok((WRITE_TIME, SiiCommand::Write { word: memory.word(register::DATA) }))
            }
            register::COMMAND_RELOAD => Ok((READ_TIME * 2, SiiCommand::Reload)),
            _ => Err(register::STATUS_MISSING_ACKNOWLEDGE),
        };
        status &= !ERRORS;
        match command {
            Ok((time, command)) if !owned_by_application => {
                self.running = Some((now + time, command));
                status |= register::STATUS_BUSY | request & COMMANDS;
            }
            Ok(_) => status |= register::STATUS_MISSING_ACKNOWLEDGE,
            Err(error) => status |= error,
        }
        memory.store(register::CONTROL, &status.to_le_bytes());
    }

    /// Copies words 0 to 7 to their registers, unless the checksum is wrong (ETG.1000.6, 5.4, Table
    /// 16).
    fn load_configuration(&mut self, memory: &mut Memory) -> bool {
        let status = memory.word(register::CONTROL)
            & !(register::STATUS_CHECKSUM_ERROR | register::STATUS_NOT_LOADED);
        let error = match self.image.get(..16) {
            None => register::STATUS_NOT_LOADED,
            Some(area) if crc8(&area[..14]) != area[14] && self.word(7) != CHECKSUM_DISABLED => {
                register::STATUS_CHECKSUM_ERROR | register::STATUS_NOT_LOADED
            }
            Some(_) => 0,
        };
        memory.store(register::CONTROL, &(status | error).to_le_bytes());
        if error == 0 {
            let [pdi_control, esc_configuration] = self.word(0).to_le_bytes();
            memory.set_byte(PDI_CONTROL, pdi_control);
            memory.set_byte(ESC_CONFIGURATION, esc_configuration);
            memory.store(PDI_CONFIGURATION, &self.word(1).to_le_bytes());
            memory.store(SYNC_PULSE_LENGTH, &self.word(2).to_le_bytes());
            memory.store(PDI_CONFIGURATION + 2, &self.word(3).to_le_bytes());
        }
        error == 0
    }
}

const COMMANDS: u16 = register::COMMAND_READ | register::COMMAND_WRITE | register::COMMAND_RELOAD;

/// Size of 16 Kibit: EEPROMs up to it are addressed with one byte and the device select code.
const ONE_ADDRESS_BYTE_LIMIT: usize = 2048;

/// Word addresses of two address bytes.
const ADDRESS_MASK: usize = 0xFFFF;

/// Length of the SYNC pulses in 10 ns.
const SYNC_PULSE_LENGTH: u16 = 0x0982;

#[cfg(test)]
mod tests {
    use super::*;

    fn image() -> Vec<u8> {
        let mut image: Vec<u8> = (0..64).collect();
        image[8..10].copy_from_slice(&0x1234_u16.to_le_bytes());
        image[14] = crc8(&image[..14]);
        image
    }

    fn loaded(image: Vec<u8>) -> (SiiInterface, Memory) {
        let (mut sii, mut memory) = (SiiInterface::new(image, true), Memory::up_to(0x1_0000));
        sii.load(&mut memory);
        (sii, memory)
    }

    fn command(
        sii: &mut SiiInterface,
        memory: &mut Memory,
        now: Instant,
        address: u32,
        request: u16,
    ) -> u16 {
        memory.store(register::ADDRESS, &address.to_le_bytes());
        let before = memory.word(register::CONTROL);
        sii.control_written(memory, now, before, request);
        memory.word(register::CONTROL)
    }

    #[test]
    fn loading_brings_the_alias_only_if_the_checksum_is_right() {
        let (sii, memory) = loaded(image());
        assert!(sii.is_loaded(&memory));
        assert_eq!((memory.word(STATION_ALIAS), memory.byte(PDI_CONTROL)), (0x1234, 0));
        let mut wrong = image();
        wrong[14] ^= 1;
        let (sii, memory) = loaded(wrong);
        assert!(!sii.is_loaded(&memory));
        let status = memory.word(register::CONTROL);
        assert_ne!(status & register::STATUS_CHECKSUM_ERROR, 0);
        assert_eq!(memory.word(STATION_ALIAS), 0);
        assert!(!loaded(vec![0; 10]).0.is_loaded(&loaded(vec![0; 10]).1));
    }

    #[test]
    fn a_read_is_busy_and_then_shows_eight_bytes() {
        let (mut sii, mut memory) = loaded(image());
        let start = Instant::from_nanos(1_000);
        let status = command(&mut sii, &mut memory, start, 8, register::COMMAND_READ);
        assert_ne!(status & register::STATUS_BUSY, 0);
        sii.settle(&mut memory, start + READ_TIME / 2);
        assert_ne!(memory.word(register::CONTROL) & register::STATUS_BUSY, 0);
        sii.settle(&mut memory, start + READ_TIME);
        assert_eq!(memory.word(register::CONTROL), register::STATUS_READS_8_BYTES);
        assert_eq!(memory.array(register::DATA), [16, 17, 18, 19, 20, 21, 22, 23]);
        // Beyond the end reads return an erased EEPROM.
        command(&mut sii, &mut memory, start, 31, register::COMMAND_READ);
        sii.settle(&mut memory, start + READ_TIME);
        assert_eq!(memory.array(register::DATA), [62, 63, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]);
    }

    #[test]
    fn a_write_needs_its_enable_bit_in_the_same_access() {
        let (mut sii, mut memory) = loaded(image());
        memory.store(register::DATA, &[0xAB, 0xCD]);
        let now = Instant::EPOCH;
        let status = command(&mut sii, &mut memory, now, 20, register::COMMAND_WRITE);
        assert_ne!(status & register::STATUS_WRITE_ENABLE_ERROR, 0);
        assert_eq!(command(&mut sii, &mut memory, now, 20, 0) & register::STATUS_WRITE_ENABLE_ERROR, 0);
        let request = register::COMMAND_WRITE | register::CONTROL_WRITE_ENABLE;
        command(&mut sii, &mut memory, now, 20, request);
        sii.settle(&mut memory, now + WRITE_TIME);
        assert_eq!(sii.word(20), 0xCDAB);
    }

    #[test]
    fn refused_commands_say_so() {
        let (mut sii, mut memory) = loaded(image());
        let both = register::COMMAND_READ | register::COMMAND_WRITE;
        let status = command(&mut sii, &mut memory, Instant::EPOCH, 0, both);
        assert_ne!(status & register::STATUS_MISSING_ACKNOWLEDGE, 0);
        memory.set_byte(register::CONFIGURATION, 1);
        let status = command(&mut sii, &mut memory, Instant::EPOCH, 0, register::COMMAND_READ);
        assert_eq!(status & register::STATUS_BUSY, 0, "the EEPROM belongs to the application");
        assert_ne!(status & register::STATUS_MISSING_ACKNOWLEDGE, 0);
    }

    #[test]
    fn a_reload_sees_a_repaired_image() {
        let mut broken = image();
        broken[14] ^= 1;
        let (mut sii, mut memory) = loaded(broken);
        sii.image[14] ^= 1;
        command(&mut sii, &mut memory, Instant::EPOCH, 0, register::COMMAND_RELOAD);
        sii.settle(&mut memory, Instant::EPOCH + Duration::from_millis(1));
        assert!(sii.is_loaded(&memory));
    }
}
