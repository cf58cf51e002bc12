//! Reads and writes by the fieldbus: physical and logical (ETG.1000.4, 5.4 and 6.1).
//!
//! A datagram counts where at least one of its bytes or bits was read or written.
//!
//! Simplification: a logical read-write takes the outputs before it returns the inputs, so an FMMU
//! of both directions reads back the data it has just written.

use core::ops::Range;

use ethercat::al_status_code::AlStatusCode;
use ethercat::register::{self, SyncManagerDirection, dc, sii_interface};

use super::distributed_clock::DistributedClock;
use super::fmmu::{Mapping, copy_bits};
use super::memory::FIRST_SHARED;
use super::protection::WriteAccess;
use super::sync_manager::{Kind, Outcome};
use super::{Combine, Esc, Passage, TEMPORARY_LOOPS, led};

impl Esc {
    /// Copies the memory from `address` on into `target`; returns `true` if any of it could be
    /// read.
    pub(crate) fn read(
        &mut self,
        passage: &Passage,
        address: u16,
        target: &mut [u8],
        combine: Combine,
    ) -> bool {
        let registers = registers_of(address, target.len());
        let (low, high) = target.split_at_mut(registers);
        let mut granted = false;
        if !low.is_empty() {
            self.refresh(passage, &span(address, low.len()));
            self.memory.transfer(address, low, combine);
            self.registers_read(&span(address, low.len()));
            granted = true;
        }
        if !high.is_empty() {
            granted |= self.read_shared(address.wrapping_add(registers as u16), high, combine);
        }
        granted
    }

    /// Stores `bytes` from `address` on; returns `true` if any of them could be written.
    pub(crate) fn write(&mut self, passage: &Passage, address: u16, bytes: &[u8]) -> bool {
        let registers = registers_of(address, bytes.len());
        let (low, high) = bytes.split_at(registers);
        let mut granted = false;
        if !low.is_empty() {
            granted |= self.write_registers(passage, address, low);
        }
        if !high.is_empty() {
            granted |= self.write_shared(passage, address.wrapping_add(registers as u16), high);
        }
        granted
    }

    /// Writes the parts of `data` that the FMMUs map for writing.
    pub(crate) fn logical_write(&mut self, passage: &Passage, address: u32, data: &[u8]) -> bool {
        let mut granted = false;
        for number in 0..self.fmmus.len() {
            let unit = &self.fmmus[number];
            let mapping = if unit.writes() { unit.map(address, data.len()) } else { None };
            granted |= match mapping {
                None => false,
                Some(Mapping::Bytes { datagram, physical }) => {
                    self.write(passage, physical, &data[datagram])
                }
                Some(Mapping::Bits { datagram_bit, physical, physical_bit, bits }) => {
                    let mut bytes = [0; LONGEST_BITWISE];
                    let length = (physical_bit + bits).div_ceil(8).min(LONGEST_BITWISE);
                    let bytes = &mut bytes[..length];
                    self.bytes_to_be_written(physical, bytes);
                    let bits = bits.min(length * 8 - physical_bit);
                    copy_bits(data, datagram_bit, bytes, physical_bit, bits);
                    self.write(passage, physical, bytes)
                }
            };
        }
        granted
    }

    /// Fills the parts of `data` that the FMMUs map for reading.
    pub(crate) fn logical_read(&mut self, passage: &Passage, address: u32, data: &mut [u8]) -> bool {
        let mut granted = false;
        for number in 0..self.fmmus.len() {
            let unit = &self.fmmus[number];
            let mapping = if unit.reads() { unit.map(address, data.len()) } else { None };
            granted |= match mapping {
                None => false,
                Some(Mapping::Bytes { datagram, physical }) => {
                    self.read(passage, physical, &mut data[datagram], Combine::Replace)
                }
                Some(Mapping::Bits { datagram_bit, physical, physical_bit, bits }) => {
                    let mut bytes = [0; LONGEST_BITWISE];
                    let length = (physical_bit + bits).div_ceil(8).min(LONGEST_BITWISE);
                    let bytes = &mut bytes[..length];
                    let read = self.read(passage, physical, bytes, Combine::Replace);
                    if read {
                        let bits = bits.min(length * 8 - physical_bit);
                        copy_bits(bytes, physical_bit, data, datagram_bit, bits);
                    }
                    read
                }
            };
        }
        granted
    }

    fn read_shared(&mut self, address: u16, target: &mut [u8], combine: Combine) -> bool {
        let access = span(address, target.len());
        let (mut granted, mut covered) = (false, 0);
        for unit in self.sync_managers.iter_mut().filter(|unit| unit.is_active()) {
            let Some((start, part)) = overlap(&access, unit.start(), unit.end()) else { continue };
            covered += part.len();
            granted |= unit.fieldbus_read(&mut self.memory, start, &mut target[part], combine).granted;
        }
        if covered == 0 && access.end <= self.memory_end() {
            self.memory.transfer(address, target, combine);
            return true;
        }
        if covered < target.len() {
            for (offset, byte) in target.iter_mut().enumerate() {
                let place = access.start + offset as u32;
                if place < self.memory_end() && !self.is_guarded(place) {
                    self.memory.transfer(place as u16, core::slice::from_mut(byte), combine);
                    granted = true;
                }
            }
        }
        granted
    }

    fn write_shared(&mut self, passage: &Passage, address: u16, bytes: &[u8]) -> bool {
        if self.is_protected(address.max(register::PROCESS_DATA_MEMORY)) {
            return false;
        }
        let access = span(address, bytes.len());
        let (mut granted, mut covered, mut fed) = (false, 0, false);
        let mut is_first = true;
        for unit in self.sync_managers.iter_mut().filter(|unit| unit.is_active()) {
            let is_output = unit.kind() == Kind::Buffered(SyncManagerDirection::Write);
            let counts = is_first && is_output;
            is_first &= !is_output;
            let Some((start, part)) = overlap(&access, unit.start(), unit.end()) else { continue };
            covered += part.len();
            let Outcome { granted: written, complete } =
                unit.fieldbus_write(&mut self.memory, start, &bytes[part]);
            granted |= written;
            fed |= complete && unit.triggers_watchdog();
            if complete && counts {
                self.output_events = (self.output_events.0.saturating_add(1), passage.now);
            }
        }
        if fed {
            self.feed_process_data_watchdog(passage.now);
        }
        if covered < bytes.len() {
            for (offset, byte) in bytes.iter().enumerate() {
                let place = access.start + offset as u32;
                let register = place < u32::from(register::PROCESS_DATA_MEMORY);
                let free = !register
                    || self.write_access().allows(place as u16) && !self.is_protected(place as u16);
                if place < self.memory_end() && free && !self.is_guarded(place) {
                    self.memory.set_byte(place as u16, *byte);
                    granted = true;
                }
            }
        }
        granted
    }

    fn write_registers(&mut self, passage: &Passage, address: u16, bytes: &[u8]) -> bool {
        if address == dc::SYSTEM_TIME && bytes.len() <= 8 && self.features().distributed_clocks() {
            // In every cycle, at every SubDevice.
            let is_protected = self.is_protected(address);
            if !is_protected {
                self.memory.store(address, bytes);
                self.clock.system_time_written(&mut self.memory, passage.now, bytes);
            }
            return !is_protected;
        }
        let access = span(address, bytes.len());
        let fmmus = u32::from(register::FMMU)..u32::from(register::SYNC_MANAGER);
        if fmmus.contains(&access.start) && access.end <= fmmus.end {
            return self.write_fmmus(passage, address, bytes);
        }
        let sii = access.start < 0x0510 && access.end > u32::from(sii_interface::CONTROL);
        if sii {
            self.sii.settle(&mut self.memory, passage.now);
        }
        let sii_control = self.memory.word(sii_interface::CONTROL);
        let sii_busy = sii && self.sii.is_busy();
        self.mii.settle(&mut self.memory, passage.now);
        let loops = self.memory.byte(register::DL_CONTROL_LOOPS);
        let mut granted = false;
        for (offset, byte) in bytes.iter().enumerate() {
            let place = address + offset as u16;
            let locked = sii_busy && (sii_interface::CONTROL..0x0510).contains(&place)
                || self.mii.is_busy() && (register::MII_CONTROL..0x0516).contains(&place);
            if self.write_access().allows(place) && !locked && !self.is_protected(place) {
                self.memory.set_byte(place, *byte);
                granted = true;
            }
        }
        if granted {
            self.registers_written(passage, &access, bytes);
            self.loops_written(passage, &access, loops);
            if sii && !sii_busy {
                let request = self.memory.word(sii_interface::CONTROL);
                self.sii_written(passage, &access, sii_control, request);
            }
        }
        granted
    }

    /// Writes registers of FMMUs, as many as there are, in one piece.
    fn write_fmmus(&mut self, passage: &Passage, address: u16, bytes: &[u8]) -> bool {
        let end = register::FMMU + self.fmmus.len() as u16 * register::fmmu::LENGTH;
        let there = bytes.len().min(end.saturating_sub(address).into());
        let granted = there > 0 && !self.is_protected(address);
        if granted {
            self.memory.store(address, &bytes[..there]);
            self.registers_written(passage, &span(address, bytes.len()), bytes);
        }
        granted
    }

    fn sii_written(&mut self, passage: &Passage, access: &Range<u32>, before: u16, request: u16) {
        let control = u32::from(sii_interface::CONTROL);
        if access.start < control + 2 && access.end > control {
            // A write of the low byte alone carries no command.
            let commands = if access.end > control + 1 { 0xFFFF } else { 0x00FF };
            self.sii.control_written(&mut self.memory, passage.now, before, request & commands);
        }
    }

    fn loops_written(&mut self, passage: &Passage, access: &Range<u32>, before: u8) {
        let control = u32::from(register::DL_CONTROL);
        if access.start < control + 2 && access.end > control {
            let temporary = self.memory.byte(register::DL_CONTROL) & TEMPORARY_LOOPS != 0;
            self.temporary_loops.written(passage.now, temporary, before);
        }
    }

    fn registers_written(&mut self, passage: &Passage, access: &Range<u32>, bytes: &[u8]) {
        let touches = |start: u16, length: u32| {
            access.start < u32::from(start) + length && access.end > u32::from(start)
        };
        match access.start {
            0x0000..=0x00FF if touches(register::ESC_RESET, 1) => self.reset_written(),
            0x0100..=0x01FF if touches(register::AL_CONTROL, 2) => self.state_control_written(),
            0x0100..=0x01FF if touches(register::RUN_LED, 2) && self.description.led_override => {
                let code = AlStatusCode(self.memory.word(register::AL_STATUS_CODE));
                let status = self.al_status();
                led::written(&mut self.memory, status, code);
            }
            0x0300..=0x03FF => self.clear_error_counters(access),
            0x0400..=0x04FF if touches(register::WATCHDOG_COUNTER_PROCESS_DATA, 2) => {
                self.memory.store(register::WATCHDOG_COUNTER_PROCESS_DATA, &[0; 2]);
            }
            0x0900..=0x09FF => self.clock_written(passage, access, bytes),
            _ => {}
        }
        self.note_changes(access);
        if touches(register::MII_CONTROL, 2) {
            self.mii.control_written(&mut self.memory, passage.now);
        }
        if touches(register::FMMU, 0x100) {
            self.configure_fmmus();
        }
        if touches(register::SYNC_MANAGER, 0x80) {
            for (number, unit) in self.sync_managers.iter_mut().enumerate() {
                if touches(register::SyncManager::register(number as u8), 8) {
                    self.sync_managers_switched |= unit.configure(&mut self.memory);
                }
            }
        }
    }

    /// Writing any counter of a group clears the group (ESC data sheet, section II, 2.9).
    fn clear_error_counters(&mut self, access: &Range<u32>) {
        for group in [0x0300..0x030C, 0x030C..0x030D, 0x030D..0x030E, 0x0310..0x0314_u16] {
            if access.start < u32::from(group.end) && access.end > u32::from(group.start) {
                group.for_each(|counter| self.memory.set_byte(counter, 0));
            }
        }
    }

    /// Updates registers that change by themselves before they are read.
    fn refresh(&mut self, passage: &Passage, access: &Range<u32>) {
        let touches = |start: u16, length: u32| {
            access.start < u32::from(start) + length && access.end > u32::from(start)
        };
        if touches(register::ECAT_EVENT_REQUEST, 2) {
            let events = self.fieldbus_events().to_le_bytes();
            self.memory.store(register::ECAT_EVENT_REQUEST, &events);
        }
        if touches(register::AL_EVENT_REQUEST, 4) {
            let events = self.application_events().to_le_bytes();
            self.memory.store(register::AL_EVENT_REQUEST, &events);
        }
        if touches(sii_interface::CONTROL, 14) || touches(register::DL_STATUS, 2) {
            self.sii.settle(&mut self.memory, passage.now);
            let others = self.memory.byte(register::DL_STATUS) & !PDI_OPERATIONAL;
            let bit = if self.sii_loaded() { PDI_OPERATIONAL } else { 0 };
            self.memory.set_byte(register::DL_STATUS, others | bit);
        }
        if touches(register::MII_CONTROL, 6) {
            self.mii.settle(&mut self.memory, passage.now);
        }
        if touches(dc::SYSTEM_TIME, 0x90) && self.features().distributed_clocks() {
            self.clock.refresh(&mut self.memory, passage.now);
        }
    }

    /// Clears the events that reading their source clears (ESC data sheet, section II, 2.8).
    fn registers_read(&mut self, access: &Range<u32>) {
        let touches = |start: u16| access.start < u32::from(start) + 2 && access.end > u32::from(start);
        if touches(register::DL_STATUS) {
            self.dl_status_changed = false;
        }
        if touches(register::AL_STATUS) {
            self.al_status_changed = false;
        }
        if access.end > u32::from(dc::LATCH_TIMES) && self.features().distributed_clocks() {
            let was_read = |register: u16| access.contains(&u32::from(register));
            DistributedClock::latch_times_read(&mut self.memory, was_read);
        }
    }

    /// Bytes that a write would replace, for writes that change only some bits of them.
    fn bytes_to_be_written(&self, address: u16, bytes: &mut [u8]) {
        for (offset, byte) in bytes.iter_mut().enumerate() {
            let place = address.wrapping_add(offset as u16);
            let inside = |start: u16, end: u32| (u32::from(start)..end).contains(&u32::from(place));
            let mut active = self.sync_managers.iter().filter(|unit| unit.is_active());
            *byte = match active.find(|unit| inside(unit.start(), unit.end())) {
                Some(unit) => unit.byte_to_be_written(&self.memory, place),
                None => self.memory.byte(place),
            };
        }
    }

    fn is_guarded(&self, place: u32) -> bool {
        let mut active = self.sync_managers.iter().filter(|unit| unit.is_active());
        active.any(|unit| (u32::from(unit.start())..unit.end()).contains(&place))
    }

    /// First address after the process data memory.
    pub(crate) fn memory_end(&self) -> u32 {
        self.description.memory_end()
    }

    fn write_access(&self) -> WriteAccess<'_> {
        WriteAccess {
            fmmus: self.fmmus.len(),
            sync_managers: &self.sync_managers,
            distributed_clocks: self.features().distributed_clocks(),
            cyclic_unit_taken: self.memory.byte(dc::CYCLIC_UNIT_CONTROL) & 1 != 0,
            led_override: self.description.led_override,
            mii: self.mii.exists(),
        }
    }
}

/// DL status bit 0: the EEPROM was loaded and the PDI works.
const PDI_OPERATIONAL: u8 = 0x01;

/// Longest memory range that one FMMU maps bit by bit: the capacity of an Ethernet frame.
const LONGEST_BITWISE: usize = 1500;

/// Memory addresses of an access; the end may lie behind the last one.
fn span(address: u16, length: usize) -> Range<u32> {
    u32::from(address)..u32::from(address) + length as u32
}

/// Number of the `length` bytes from `address` on that are registers no SyncManager can cover.
fn registers_of(address: u16, length: usize) -> usize {
    length.min(usize::from(FIRST_SHARED.saturating_sub(address)))
}

/// Intersection of an access and a SyncManager's area: the first address, and the bytes of the
/// access.
fn overlap(access: &Range<u32>, start: u16, end: u32) -> Option<(u16, Range<usize>)> {
    let first = access.start.max(u32::from(start));
    let last = access.end.min(end);
    (first < last).then(|| (first as u16, (first - access.start) as usize..(last - access.start) as usize))
}

#[cfg(test)]
mod tests;
