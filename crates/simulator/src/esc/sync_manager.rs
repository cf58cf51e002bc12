//! SyncManagers: access control to ranges of memory (ETG.1000.4, 6.10; ESC data sheet, section I,
//! 8).
//!
//! Simplifications: accesses by the PDI are one step each, so it never holds a buffer while a frame
//! passes. A SyncManager reads and writes in its own direction only.

use core::ops::Range;

use ethercat::register::sync_manager::SyncManagerDirection::{Read, Write};
use ethercat::register::sync_manager::{
    self, LENGTH, STATUS_MAILBOX_FULL, STATUS_OFFSET, SyncManager, SyncManagerDirection, SyncManagerMode,
};
use ethercat::register::{PROCESS_DATA_MEMORY, SYNC_MANAGER};

use super::memory::{Combine, Memory};

/// One SyncManager: its settings and the state of its memory.
#[derive(Clone, Debug)]
pub(crate) struct SyncManagerUnit {
    register: u16,
    start: u16,
    length: u16,
    kind: Kind,
    /// True if the application has enabled it: PDI control bit 0 is 0.
    enabled: bool,
    watchdog_trigger: bool,
    /// True if the mailbox holds a message, or the buffers hold at least one complete set.
    full: bool,
    /// True if the fieldbus has begun an access at the first byte and not yet reached the last.
    open: bool,
    /// Buffer of the next write.
    writing: u8,
    /// Last buffer written completely.
    newest: u8,
    /// Buffer that the fieldbus reads, reserved for it until it has read the last byte.
    reading: Option<u8>,
    /// Latched when an access ends, cleared when the other side begins one (status bits 0 and 1).
    written: bool,
    read: bool,
}

/// Function of an active SyncManager; `Off` also covers settings that the standard does not define.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Off,
    Mailbox(SyncManagerDirection),
    Buffered(SyncManagerDirection),
}

impl Kind {
    pub(crate) const fn direction(self) -> Option<SyncManagerDirection> {
        match self {
            Self::Off => None,
            Self::Mailbox(direction) | Self::Buffered(direction) => Some(direction),
        }
    }
}

/// Result of an access by the fieldbus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// True if bytes were transferred; the working counter counts.
    pub(crate) granted: bool,
    /// True if the last byte was reached: the message or buffer is handed over.
    pub(crate) complete: bool,
}

impl SyncManagerUnit {
    pub(crate) fn new(number: u8) -> Self {
        Self {
            register: SYNC_MANAGER + u16::from(number) * LENGTH,
            start: 0,
            length: 0,
            kind: Kind::Off,
            enabled: true,
            watchdog_trigger: false,
            full: false,
            open: false,
            writing: 0,
            newest: 0,
            reading: None,
            written: false,
            read: false,
        }
    }

    /// Applies its registers; returns `true` if it was switched on or off.
    pub(crate) fn configure(&mut self, memory: &mut Memory) -> bool {
        let bytes: [u8; LENGTH as usize] = memory.array(self.register);
        let Some(settings) = SyncManager::parse(&bytes) else { return false };
        let kind = match (settings.active && settings.length > 0, settings.mode(), settings.direction()) {
            (true, Some(SyncManagerMode::Mailbox), Some(direction)) => Kind::Mailbox(direction),
            (true, Some(SyncManagerMode::Buffered), Some(direction)) => Kind::Buffered(direction),
            _ => Kind::Off,
        };
        let switched = (kind == Kind::Off) != (self.kind == Kind::Off);
        if switched {
            *self = Self {
                start: settings.physical_address,
                length: settings.length,
                kind,
                enabled: self.enabled,
                watchdog_trigger: settings.triggers_watchdog(),
                ..Self::new(self.number())
            };
        }
        self.show(memory);
        switched
    }

    /// Switches it on or off by the application (PDI control bit 0): off, it denies access to its
    /// memory, and its contents are lost.
    pub(crate) fn set_enabled(&mut self, memory: &mut Memory, enabled: bool) {
        if enabled == self.enabled {
            return;
        }
        let &mut Self { start, length, kind, watchdog_trigger, .. } = self;
        *self = Self { start, length, kind, enabled, watchdog_trigger, ..Self::new(self.number()) };
        let address = self.register + sync_manager::PDI_CONTROL_OFFSET;
        let others = memory.byte(address) & !sync_manager::PDI_CONTROL_DEACTIVATED;
        let bit = if enabled { 0 } else { sync_manager::PDI_CONTROL_DEACTIVATED };
        memory.set_byte(address, others | bit);
        self.show(memory);
    }

    fn number(&self) -> u8 {
        ((self.register - SYNC_MANAGER) / LENGTH) as u8
    }

    /// True if the MainDevice has switched it on: its memory is guarded.
    pub(crate) fn is_active(&self) -> bool {
        self.kind != Kind::Off
    }

    /// True if both sides have switched it on: data moves.
    pub(crate) fn is_open(&self) -> bool {
        self.is_active() && self.enabled
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn start(&self) -> u16 {
        self.start
    }

    pub(crate) fn length(&self) -> usize {
        usize::from(self.length)
    }

    pub(crate) fn end(&self) -> u32 {
        u32::from(self.start) + u32::from(self.length)
    }

    /// All memory it uses, buffers included.
    pub(crate) fn memory(&self) -> Range<u32> {
        let buffers = if self.is_tripled() { u32::from(BUFFERS) } else { 1 };
        let start = u32::from(self.start);
        start..start + u32::from(self.length) * buffers
    }

    /// True if the MainDevice has switched it on with a mode or direction that the standard does
    /// not define.
    pub(crate) fn is_undefined(&self, memory: &Memory) -> bool {
        let settings = SyncManager::parse(&memory.array::<{ LENGTH as usize }>(self.register));
        settings.is_some_and(|it| it.active && (it.mode().is_none() || it.direction().is_none()))
    }

    pub(crate) fn triggers_watchdog(&self) -> bool {
        self.watchdog_trigger
    }

    pub(crate) fn is_full(&self) -> bool {
        self.full
    }

    /// Repeat request bit, which the MainDevice toggles.
    pub(crate) fn repeat_request(&self, memory: &Memory) -> bool {
        memory.byte(self.register + sync_manager::ACTIVATE_OFFSET) & sync_manager::ACTIVATE_REPEAT != 0
    }

    pub(crate) fn repeat_acknowledge(&self, memory: &Memory) -> bool {
        let control = memory.byte(self.register + sync_manager::PDI_CONTROL_OFFSET);
        control & sync_manager::PDI_CONTROL_REPEAT_ACK != 0
    }

    pub(crate) fn set_repeat_acknowledge(&self, memory: &mut Memory, acknowledge: bool) {
        let address = self.register + sync_manager::PDI_CONTROL_OFFSET;
        let others = memory.byte(address) & !sync_manager::PDI_CONTROL_REPEAT_ACK;
        let bit = if acknowledge { sync_manager::PDI_CONTROL_REPEAT_ACK } else { 0 };
        memory.set_byte(address, others | bit);
    }

    /// True if it signals an event to the fieldbus (ECAT event request bits 4 to 11).
    pub(crate) fn fieldbus_event(&self) -> bool {
        match self.kind.direction() {
            None => false,
            Some(Read) => self.written,
            Some(Write) => self.read,
        }
    }

    /// True if it signals an event to the application (AL event request bits 8 to 23).
    pub(crate) fn application_event(&self) -> bool {
        match self.kind.direction() {
            None => false,
            Some(Read) => self.read,
            Some(Write) => self.written,
        }
    }

    /// Reads `target.len()` bytes at `address`, all inside this SyncManager, for the fieldbus.
    pub(crate) fn fieldbus_read(
        &mut self,
        memory: &mut Memory,
        address: u16,
        target: &mut [u8],
        combine: Combine,
    ) -> Outcome {
        let readable = self.enabled && self.kind.direction() == Some(Read);
        if !readable || !(self.open || address == self.start && self.full) {
            return Outcome::default();
        }
        if !self.open {
            self.open = true;
            self.written = false;
            self.reading = Some(self.newest);
        }
        let buffer = self.reading.unwrap_or(self.newest);
        memory.transfer(self.buffer_address(buffer, address), target, combine);
        let complete = self.reaches_end(address, target.len());
        if complete {
            self.open = false;
            self.reading = None;
            self.read = true;
            if matches!(self.kind, Kind::Mailbox(_)) {
                self.full = false;
            }
        }
        self.show(memory);
        Outcome { granted: true, complete }
    }

    /// Writes `bytes` at `address`, all inside this SyncManager, for the fieldbus.
    pub(crate) fn fieldbus_write(&mut self, memory: &mut Memory, address: u16, bytes: &[u8]) -> Outcome {
        let mailbox = matches!(self.kind, Kind::Mailbox(_));
        let writable = self.enabled && self.kind.direction() == Some(Write);
        if !writable || mailbox && self.full || !(self.open || address == self.start) {
            return Outcome::default();
        }
        if !self.open {
            self.open = true;
            self.read = false;
        }
        memory.store(self.buffer_address(self.writing, address), bytes);
        let complete = self.reaches_end(address, bytes.len());
        if complete {
            self.open = false;
            self.hand_over();
        }
        self.show(memory);
        Outcome { granted: true, complete }
    }

    /// Byte that a fieldbus write at `address` would replace.
    pub(crate) fn byte_to_be_written(&self, memory: &Memory, address: u16) -> u8 {
        memory.byte(self.buffer_address(self.writing, address))
    }

    /// Copies the newest complete outputs, or the message in the mailbox, into `target` for the
    /// application; `false` if there is none. Outputs stay, messages are removed.
    pub(crate) fn application_read(&mut self, memory: &mut Memory, target: &mut [u8]) -> bool {
        if !self.full {
            return false;
        }
        memory.copy_to(self.buffer_address(self.newest, self.start), target);
        self.written = false;
        self.read = true;
        if matches!(self.kind, Kind::Mailbox(_)) {
            self.full = false;
        }
        self.show(memory);
        true
    }

    /// Takes inputs or a message from the application; `false` if the mailbox still holds one.
    pub(crate) fn application_write(&mut self, memory: &mut Memory, bytes: &[u8]) -> bool {
        if !self.enabled || matches!(self.kind, Kind::Mailbox(_)) && self.full {
            return false;
        }
        self.read = false;
        let bytes = &bytes[..bytes.len().min(self.length())];
        memory.store(self.buffer_address(self.writing, self.start), bytes);
        self.hand_over();
        self.show(memory);
        true
    }

    /// Restores the message that the fieldbus read last, for a repeat request.
    pub(crate) fn replace_message(&mut self, memory: &mut Memory, bytes: &[u8]) {
        self.full = false;
        self.open = false;
        self.reading = None;
        self.application_write(memory, bytes);
    }

    /// Makes the buffer just written the newest; the next write uses a buffer that is not being
    /// read.
    fn hand_over(&mut self) {
        self.newest = self.writing;
        self.full = true;
        self.written = true;
        if matches!(self.kind, Kind::Buffered(_)) {
            let free = |it: &u8| *it != self.newest && Some(*it) != self.reading;
            self.writing = (0..BUFFERS).find(free).unwrap_or(0);
        }
    }

    fn reaches_end(&self, address: u16, length: usize) -> bool {
        u32::from(address) + length as u32 == self.end()
    }

    fn is_tripled(&self) -> bool {
        matches!(self.kind, Kind::Buffered(_)) && self.start >= PROCESS_DATA_MEMORY
    }

    /// Address of `address` in buffer `number`. The three buffers are contiguous; registers
    /// (digital I/O) and mailboxes have one.
    fn buffer_address(&self, number: u8, address: u16) -> u16 {
        if self.is_tripled() {
            address.wrapping_add(self.length.wrapping_mul(u16::from(number)))
        } else {
            address
        }
    }

    /// Updates the status register.
    fn show(&self, memory: &mut Memory) {
        let status = match self.kind {
            Kind::Off => BUFFER_NONE,
            Kind::Mailbox(_) if self.full => BUFFER_NONE | STATUS_MAILBOX_FULL,
            Kind::Buffered(_) if self.full => self.newest << 4,
            _ => BUFFER_NONE,
        };
        let interrupts = u8::from(self.written) | u8::from(self.read) << 1;
        memory.set_byte(self.register + STATUS_OFFSET, status | interrupts);
    }
}

const BUFFERS: u8 = 3;

/// Status bits 4 and 5: no buffer was written yet.
const BUFFER_NONE: u8 = 0x30;

#[cfg(test)]
mod tests {
    use super::*;

    const START: u16 = 0x1100;
    const REGISTER: u16 = SYNC_MANAGER;

    fn active(control: u8, length: u16) -> (SyncManagerUnit, Memory) {
        let (mut unit, mut memory) = (SyncManagerUnit::new(0), Memory::up_to(0x1_0000));
        let settings = SyncManager { physical_address: START, length, control, active: true };
        memory.store(REGISTER, &settings.emit());
        assert!(unit.configure(&mut memory));
        (unit, memory)
    }

    fn read(
        unit: &mut SyncManagerUnit,
        memory: &mut Memory,
        offset: u16,
        length: usize,
    ) -> Option<Vec<u8>> {
        let mut target = vec![0; length];
        let outcome = unit.fieldbus_read(memory, START + offset, &mut target, Combine::Replace);
        outcome.granted.then_some(target)
    }

    // feature(simulator): SyncManagers, buffered and mailbox
    #[test]
    fn written_mailbox_stays_full_until_application_reads_it() {
        let (mut unit, mut memory) = active(SyncManager::CONTROL_MAILBOX_OUT, 4);
        // Not from the middle, and in several accesses only from the start on.
        assert!(!unit.fieldbus_write(&mut memory, START + 1, &[9]).granted);
        let first = unit.fieldbus_write(&mut memory, START, &[1, 2]);
        assert_eq!(first, Outcome { granted: true, complete: false });
        assert_eq!(memory.byte(REGISTER + STATUS_OFFSET) & STATUS_MAILBOX_FULL, 0);
        assert!(unit.fieldbus_write(&mut memory, START + 2, &[3, 4]).complete);
        assert_eq!(memory.byte(REGISTER + STATUS_OFFSET) & STATUS_MAILBOX_FULL, STATUS_MAILBOX_FULL);
        assert!(!unit.fieldbus_write(&mut memory, START, &[5, 6, 7, 8]).granted);
        let mut message = [0; 4];
        assert!(unit.application_read(&mut memory, &mut message));
        assert_eq!(message, [1, 2, 3, 4]);
        assert!(!unit.application_read(&mut memory, &mut message));
        assert!(unit.fieldbus_write(&mut memory, START, &[5, 6, 7, 8]).complete);
        // The other direction is closed.
        assert_eq!(read(&mut unit, &mut memory, 0, 4), None);
    }

    #[test]
    fn a_mailbox_is_read_once_and_then_empty() {
        let (mut unit, mut memory) = active(SyncManager::CONTROL_MAILBOX_IN, 4);
        assert_eq!(read(&mut unit, &mut memory, 0, 4), None);
        assert!(unit.application_write(&mut memory, &[1, 2, 3, 4]));
        assert!(!unit.application_write(&mut memory, &[5, 6, 7, 8]));
        assert!(unit.fieldbus_event());
        assert_eq!(read(&mut unit, &mut memory, 0, 2), Some(vec![1, 2]));
        assert!(unit.is_full());
        assert_eq!(read(&mut unit, &mut memory, 2, 2), Some(vec![3, 4]));
        assert!(!unit.is_full());
        assert_eq!(read(&mut unit, &mut memory, 0, 4), None);
    }

    #[test]
    fn outputs_reach_the_application_whole_or_not_at_all() {
        let (mut unit, mut memory) = active(SyncManager::CONTROL_OUTPUTS, 4);
        let mut outputs = [0; 4];
        assert!(!unit.application_read(&mut memory, &mut outputs));
        assert!(unit.fieldbus_write(&mut memory, START, &[1, 1, 1, 1]).complete);
        assert!(!unit.fieldbus_write(&mut memory, START, &[2, 2]).complete);
        assert!(unit.application_read(&mut memory, &mut outputs));
        assert_eq!(outputs, [1; 4]);
        assert!(unit.fieldbus_write(&mut memory, START + 2, &[2, 2]).complete);
        assert!(unit.application_read(&mut memory, &mut outputs));
        assert_eq!(outputs, [2; 4]);
    }

    // feature(simulator): SyncManagers, buffered and mailbox
    #[test]
    fn a_reader_keeps_its_buffer_while_newer_inputs_come() {
        let (mut unit, mut memory) = active(SyncManager::CONTROL_INPUTS, 4);
        assert_eq!(read(&mut unit, &mut memory, 0, 4), None, "nothing was written yet");
        unit.application_write(&mut memory, &[1; 4]);
        assert_eq!(read(&mut unit, &mut memory, 0, 2), Some(vec![1, 1]));
        for value in 2..7 {
            unit.application_write(&mut memory, &[value; 4]);
        }
        assert_eq!(read(&mut unit, &mut memory, 2, 2), Some(vec![1, 1]));
        assert_eq!(read(&mut unit, &mut memory, 0, 4), Some(vec![6; 4]));
        // Buffered data can be read repeatedly.
        assert_eq!(read(&mut unit, &mut memory, 0, 4), Some(vec![6; 4]));
        assert!(!unit.fieldbus_write(&mut memory, START, &[0; 4]).granted);
    }

    #[test]
    fn active_sync_manager_keeps_settings_and_disabling_empties_it() {
        let (mut unit, mut memory) = active(SyncManager::CONTROL_MAILBOX_OUT, 4);
        unit.fieldbus_write(&mut memory, START, &[0; 4]);
        memory.set_byte(REGISTER + sync_manager::ACTIVATE_OFFSET, 0);
        assert!(unit.configure(&mut memory));
        assert!(!unit.is_active() && !unit.is_full());
        assert_eq!(memory.byte(REGISTER + STATUS_OFFSET) & STATUS_MAILBOX_FULL, 0);
    }

    #[test]
    fn the_application_switches_it_off_and_what_it_held_is_gone() {
        let (mut unit, mut memory) = active(SyncManager::CONTROL_INPUTS, 4);
        assert!(unit.application_write(&mut memory, &[1; 4]));
        unit.set_enabled(&mut memory, false);
        assert_eq!(memory.byte(REGISTER + sync_manager::PDI_CONTROL_OFFSET), 1);
        assert!(unit.is_active() && !unit.is_open());
        assert_eq!(read(&mut unit, &mut memory, 0, 4), None);
        assert!(!unit.application_write(&mut memory, &[2; 4]));
        // The MainDevice's own switch does not override it.
        memory.set_byte(REGISTER + sync_manager::ACTIVATE_OFFSET, 0);
        unit.configure(&mut memory);
        memory.set_byte(REGISTER + sync_manager::ACTIVATE_OFFSET, 1);
        unit.configure(&mut memory);
        assert!(!unit.is_open());
        unit.set_enabled(&mut memory, true);
        assert_eq!(memory.byte(REGISTER + sync_manager::PDI_CONTROL_OFFSET), 0);
        assert_eq!(read(&mut unit, &mut memory, 0, 4), None, "nothing was handed over since");
        assert!(unit.application_write(&mut memory, &[3; 4]));
        assert_eq!(read(&mut unit, &mut memory, 0, 4), Some(vec![3; 4]));
    }
}
