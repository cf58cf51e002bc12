//! The datagrams of a worker: the current action's next one.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::register::{self, dc};
use crate::time::Instant;
use crate::wire::{Address, Command};

use super::{AL_STATUS_LENGTH, LONGEST_MAPPING_VALUE, Step, Worker};
use crate::main_device::coe_mapping::MappingReader;
use crate::main_device::configuration::StartupSdo;
use crate::main_device::error_counters::ErrorCounters;
use crate::main_device::exchange::{Outgoing, Owner};
use crate::main_device::plan::Action;
use crate::main_device::request::{MailboxRequest, MailboxService};
use crate::main_device::sii_reader::SiiRequest;
use crate::main_device::state_change::{Ask, StateChange};
use crate::main_device::sub_device::SubDevice;
use crate::main_device::sync0::sync0_start;

impl Worker {
    /// Appends the next datagram; `false` if there is none, or no room.
    pub(in super::super) fn emit(
        &mut self,
        now: Instant,
        sub_device: &SubDevice,
        reference_time: Option<u64>,
        outgoing: &mut Outgoing<'_>,
    ) -> bool {
        if self.due().is_none_or(|due| due > now) {
            return false;
        }
        if !self.mailbox.is_idle() {
            self.awaiting = self.mailbox.emit(self.station, Owner::Worker(self.position), outgoing);
            return self.awaiting;
        }
        self.awaiting = if self.is_done() {
            self.emit_look(outgoing)
        } else {
            self.emit_action(now, sub_device, reference_time, outgoing)
        };
        self.awaiting
    }

    fn emit_look(&mut self, outgoing: &mut Outgoing<'_>) -> bool {
        if self.look_at_status {
            return self.push_read(register::AL_STATUS, AL_STATUS_LENGTH, outgoing);
        }
        let (register, length) = (register::RECEIVE_ERROR_COUNTERS, ErrorCounters::LENGTH);
        self.reads_errors = self.look_at_errors && self.push_read(register, length, outgoing);
        self.reads_errors
    }

    fn emit_action(
        &mut self,
        now: Instant,
        sub_device: &SubDevice,
        reference_time: Option<u64>,
        outgoing: &mut Outgoing<'_>,
    ) -> bool {
        match &self.plan[self.next] {
            Action::AssignStationAddress => {
                let address = Address::at_position(self.position, register::STATION_ADDRESS);
                let station = self.station.to_le_bytes();
                push(Command::Apwr, address, &station, self.position, outgoing)
            }
            Action::Read(reading) => {
                let (register, length) = reading.registers();
                self.push_read(register, length, outgoing)
            }
            Action::Write(register, data) => self.push_write(*register, data, outgoing),
            Action::WriteSync0Start(sync0) => {
                // The reference clock's time is known from the first cycle on.
                let Some(reference_time) = reference_time else { return false };
                let start = sync0_start(reference_time, *sync0, self.limits.period).to_le_bytes();
                self.push_write(dc::START_TIME, &start, outgoing)
            }
            Action::StartSync0 => {
                self.push_write(dc::CYCLIC_UNIT_CONTROL, &[0, dc::ACTIVATE_SYNC0], outgoing)
            }
            Action::RequestState(state) => {
                if !matches!(self.step, Step::State(_)) {
                    self.step = Step::State(StateChange::new(*state, now, self.limits.state));
                }
                let Step::State(change) = &self.step else { return false };
                match change.ask(sub_device.al_status) {
                    Ask::Read => self.push_read(register::AL_STATUS, AL_STATUS_LENGTH, outgoing),
                    Ask::Write(control) => {
                        self.push_write(register::AL_CONTROL, &control.bits().to_le_bytes(), outgoing)
                    }
                }
            }
            Action::ReadSii => {
                if !matches!(self.step, Step::Sii(_)) {
                    self.step = Step::Sii(Box::default());
                }
                let Step::Sii(reader) = &self.step else { return false };
                match reader.request() {
                    SiiRequest::Command(bytes) => self.push_write(SiiRequest::REGISTER, &bytes, outgoing),
                    SiiRequest::Fetch => {
                        self.push_read(SiiRequest::REGISTER, SiiRequest::FETCH_LENGTH, outgoing)
                    }
                }
            }
            Action::Download(_) | Action::Verify { .. } | Action::ReadMapping(_) => {
                self.emit_request(now, outgoing)
            }
        }
    }

    fn emit_request(&mut self, now: Instant, outgoing: &mut Outgoing<'_>) -> bool {
        let upload = |(index, sub_index)| {
            let service = MailboxService::Upload { index, sub_index, complete_access: false };
            (service, Vec::with_capacity(LONGEST_MAPPING_VALUE))
        };
        let (service, data) = match &mut self.plan[self.next] {
            Action::Download(sdo) => {
                let StartupSdo { index, sub_index, complete_access, ref mut data } = *sdo;
                self.step = Step::Mailbox;
                (MailboxService::Download { index, sub_index, complete_access }, core::mem::take(data))
            }
            Action::Verify { index, sub_index, .. } => {
                self.step = Step::Mailbox;
                upload((*index, *sub_index))
            }
            Action::ReadMapping(directions) => {
                if !matches!(self.step, Step::Mapping(_)) {
                    self.step = Step::Mapping(MappingReader::new(*directions));
                }
                let Step::Mapping(reader) = &self.step else { return false };
                upload(reader.request())
            }
            _ => return false,
        };
        let request = MailboxRequest { position: self.position, service, data };
        // Plans with SDOs are only made for SubDevices with CoE, and any mailbox holds the first message.
        if self.mailbox.start(now, request).is_err() {
            return false;
        }
        self.mailbox.emit(self.station, Owner::Worker(self.position), outgoing)
    }

    fn push_read(&self, register: u16, length: usize, outgoing: &mut Outgoing<'_>) -> bool {
        let address = Address::Station { station: self.station, register };
        outgoing.push(Command::Fprd, address, length, Owner::Worker(self.position)).is_some()
    }

    fn push_write(&self, register: u16, data: &[u8], outgoing: &mut Outgoing<'_>) -> bool {
        let address = Address::Station { station: self.station, register };
        push(Command::Fpwr, address, data, self.position, outgoing)
    }
}

fn push(
    command: Command,
    address: Address,
    data: &[u8],
    position: u16,
    outgoing: &mut Outgoing<'_>,
) -> bool {
    match outgoing.push(command, address, data.len(), Owner::Worker(position)) {
        None => false,
        Some(place) => {
            place.copy_from_slice(data);
            true
        }
    }
}
