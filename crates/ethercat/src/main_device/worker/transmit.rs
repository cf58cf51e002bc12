//! The datagrams of a worker: the current action's next one.

use core::time::Duration;

use crate::register::{self, dc};
use crate::time::Instant;
use crate::wire::{Address, Command};

use super::{AL_STATUS_LENGTH, Latches, Look, ReferenceClock, Step, Worker};
use crate::main_device::barrier::{BarrierAccess, BarrierRequest};
use crate::main_device::coe_mapping::{Comparison, MappingReader};
use crate::main_device::configuration::Barrier;
use crate::main_device::configuration::StartupSdo;
use crate::main_device::error_counters;
use crate::main_device::exchange::{Outgoing, Owner};
use crate::main_device::plan::LONGEST_PART;
use crate::main_device::plan::{Action, Latched, Reading};
use crate::main_device::request::{MailboxRequest, MailboxService};
use crate::main_device::sii_reader::{SiiReader, SiiRequest};
use crate::main_device::state_change::{Ask, StateChange};
use crate::main_device::sub_device::SubDevice;
use crate::main_device::{clock, latches, receive_times, sync0};

impl Worker {
    /// Appends the next datagram; `false` if there is none, or no space.
    pub(in super::super) fn emit(
        &mut self,
        now: Instant,
        sub_device: &SubDevice,
        reference: ReferenceClock,
        outgoing: &mut Outgoing<'_>,
    ) -> bool {
        if self.due().is_none_or(|due| due > now) {
            return false;
        }
        // Otherwise a SubDevice without power would be noticed only when its mailbox request has
        // timed out.
        let status_first = self.is_done() && self.look_at_status;
        if !self.mailbox.is_idle() && !status_first {
            self.awaiting = self.mailbox.emit(self.station, Owner::Worker(self.position), outgoing);
            return self.awaiting;
        }
        self.awaiting = if self.is_done() {
            self.emit_look(outgoing)
        } else {
            self.emit_action(now, sub_device, reference, outgoing)
        };
        self.awaiting
    }

    fn emit_look(&mut self, outgoing: &mut Outgoing<'_>) -> bool {
        let status = self.look_at_status.then_some(Look::Status);
        let inputs = self.look_at_inputs.then_some(Look::Inputs);
        let Some(look) = status.or(inputs).or(self.times).or(self.look) else { return false };
        let (errors, length) = (register::RX_ERROR_COUNTERS, error_counters::LENGTH);
        let is_sent = match look {
            Look::Status => self.push_read(register::AL_STATUS, AL_STATUS_LENGTH, outgoing),
            Look::Clear => self.push_write(errors, &[0; error_counters::LENGTH], outgoing),
            Look::Errors => self.push_read(errors, length, outgoing),
            Look::Links => self.push_read(register::DL_STATUS, 2, outgoing),
            Look::Inputs => self.push_read(dc::LATCH_STATUS, latches::LENGTH, outgoing),
            Look::Latch => self.push_latch(outgoing),
            Look::Times => self.push_read(dc::RECEIVE_TIME, receive_times::LENGTH, outgoing),
        };
        self.looking = is_sent.then_some(look);
        is_sent
    }

    fn emit_action(
        &mut self,
        now: Instant,
        sub_device: &SubDevice,
        reference: ReferenceClock,
        outgoing: &mut Outgoing<'_>,
    ) -> bool {
        if !self.concerns(sub_device) {
            self.action_done();
            return false;
        }
        match &self.plan[self.next] {
            Action::AssignStationAddress => {
                let address = Address::at_position(self.place, register::STATION_ADDRESS);
                let station = self.station.to_le_bytes();
                push(Command::Apwr, address, &station, self.position, outgoing)
            }
            Action::Read(reading) => {
                let (register, length) = reading.registers();
                self.push_read(register, length, outgoing)
            }
            Action::Write(register, data) => self.push_write(*register, data, outgoing),
            Action::WriteSyncStart(sync) => {
                // The reference clock's time is known from the first cycle on.
                let Some(reference_time) = reference.time else { return false };
                let start = sync.start(reference_time, self.lead()).to_le_bytes();
                self.push_write(dc::START_TIME, &start, outgoing)
            }
            Action::StartSync(sync) => {
                self.push_write(dc::CYCLIC_UNIT_CONTROL, &[0, sync.activation()], outgoing)
            }
            Action::CheckSync(_) => self.push_read(dc::SYSTEM_TIME, sync0::STATE_LENGTH, outgoing),
            Action::Latch => self.push_latch(outgoing),
            Action::ReadLatch(whose) => {
                let other = reference.there.filter(|(station, _)| *station != self.station);
                let station = match (whose, other) {
                    (Latched::Own, _) | (_, None) => self.station,
                    (_, Some((station, _))) => station,
                };
                let address = Address::Station { station, register: dc::RECEIVE_TIME_PROCESSING_UNIT };
                outgoing.push(Command::Fprd, address, 8, Owner::Worker(self.position)).is_some()
            }
            Action::ReadBefore(reading) => {
                let Some(before) = self.before else { return false };
                let (register, length) = reading.registers();
                let address = Address::Station { station: before.station, register };
                outgoing.push(Command::Fprd, address, length, Owner::Worker(self.position)).is_some()
            }
            Action::FindPlace => {
                let Some(junction) = self.may_hang_on.iter().flatten().next() else { return false };
                let (register, length) = Reading::DlStatus.registers();
                let address = Address::Station { station: junction.station, register };
                outgoing.push(Command::Fprd, address, length, Owner::Worker(self.position)).is_some()
            }
            Action::Part(part) => {
                let mut data = [0; LONGEST_PART];
                let (register, length) = part.write(sub_device, &mut data);
                self.push_write(register, &data[..length], outgoing)
            }
            Action::WriteOffset => {
                let delay = sub_device.clock.map_or(0, |it| it.delay);
                self.latches.offset = self.offset(now, delay, reference);
                let mut data = [0; 12];
                data[..8].copy_from_slice(&self.latches.offset.to_le_bytes());
                data[8..].copy_from_slice(&delay.to_le_bytes());
                self.push_write(dc::SYSTEM_TIME_OFFSET, &data, outgoing)
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
            Action::LearnSii => {
                if !matches!(self.step, Step::Sii(_)) {
                    self.step = Step::Sii(SiiReader::of_outline());
                }
                self.emit_sii(outgoing)
            }
            Action::ReadSii => {
                if !matches!(self.step, Step::Sii(_)) {
                    self.step = Step::Sii(SiiReader::default());
                }
                self.emit_sii(outgoing)
            }
            Action::Download(_)
            | Action::Verify { .. }
            | Action::SkipIfMapped { .. }
            | Action::Bound { .. }
            | Action::ReadMapping(_) => self.emit_request(now, outgoing),
        }
    }

    /// True if the next action concerns this SubDevice.
    fn concerns(&self, sub_device: &SubDevice) -> bool {
        let action = &self.plan[self.next];
        let is_possible = match action {
            Action::ReadBefore(_) => self.before.is_some(),
            Action::FindPlace => self.may_hang_on.iter().any(Option::is_some),
            _ => true,
        };
        is_possible && sub_device.is_concerned(action)
    }

    /// Time between the write of a SYNC0 start and the start.
    pub(super) fn lead(&self) -> Duration {
        sync0::lead(self.limits.period, self.limits.sub_devices, self.sync_misses)
    }

    fn emit_sii(&self, outgoing: &mut Outgoing<'_>) -> bool {
        let Step::Sii(reader) = &self.step else { return false };
        match reader.request() {
            SiiRequest::Command(bytes) => self.push_write(SiiRequest::REGISTER, &bytes, outgoing),
            SiiRequest::Fetch => self.push_read(SiiRequest::REGISTER, SiiRequest::FETCH_LENGTH, outgoing),
        }
    }

    fn emit_request(&mut self, now: Instant, outgoing: &mut Outgoing<'_>) -> bool {
        let spare = &mut self.spare;
        let mut upload = |(index, sub_index), complete_access| {
            let service = MailboxService::Upload { index, sub_index, complete_access };
            (service, core::mem::take(spare))
        };
        let (service, data) = match &mut self.plan[self.next] {
            Action::Download(sdo) => {
                let StartupSdo { index, sub_index, complete_access, ref mut data } = *sdo;
                self.step = Step::Mailbox;
                (MailboxService::Download { index, sub_index, complete_access }, core::mem::take(data))
            }
            Action::Verify { index, sub_index, .. } => {
                self.step = Step::Mailbox;
                upload((*index, *sub_index), false)
            }
            Action::ReadMapping(directions) => {
                if !matches!(self.step, Step::Mapping(_)) {
                    self.step = Step::Mapping(MappingReader::new(*directions));
                }
                let Step::Mapping(reader) = &self.step else { return false };
                upload(reader.request(), false)
            }
            Action::Bound { barrier, .. } => {
                if !matches!(self.step, Step::Barrier(_)) {
                    self.step = Step::Barrier(BarrierAccess::new(barrier));
                }
                let Step::Barrier(access) = &self.step else { return false };
                match access.request(barrier) {
                    BarrierRequest::Upload(index, sub_index) => upload((index, sub_index), false),
                    BarrierRequest::Download(bytes) => {
                        let Barrier { index, sub_index, length, .. } = *barrier;
                        let (_, mut data) = upload((index, sub_index), false);
                        data.clear();
                        data.extend_from_slice(&bytes[..usize::from(length).min(bytes.len())]);
                        (MailboxService::Download { index, sub_index, complete_access: false }, data)
                    }
                }
            }
            Action::SkipIfMapped { objects, at_once, .. } => {
                if !matches!(self.step, Step::Comparison(_)) {
                    self.step = Step::Comparison(Comparison::default());
                }
                let Step::Comparison(comparison) = &self.step else { return false };
                upload(comparison.request(objects), *at_once)
            }
            _ => return false,
        };
        let request = MailboxRequest { position: self.position, service, data };
        // Plans with SDOs are only made for SubDevices with CoE, and any mailbox holds the first
        // message.
        if let Err(outcome) = self.mailbox.start(now, request) {
            self.keep(outcome.request.data);
            return false;
        }
        self.mailbox.emit(self.station, Owner::Worker(self.position), outgoing)
    }

    /// Offset that makes its clock show the reference clock's time; approximate if its clock is the
    /// reference.
    fn offset(&self, now: Instant, delay: u32, reference: ReferenceClock) -> u64 {
        let Latches { reference: latched, own, at, .. } = self.latches;
        let since = types::time::nanoseconds(now.since(at));
        let then = reference.time.map(|time| time.wrapping_sub(since));
        let shown = match reference.there {
            Some((station, setting)) if station != self.station => {
                let further = u64::from(delay).wrapping_sub(setting.delay.into());
                let shown = latched.wrapping_add(setting.offset).wrapping_add(further);
                // A reference clock of 32 bits has wrapped since its offset was set.
                if reference.is_whole { shown } else { clock::nearest(then.unwrap_or(shown), shown as u32) }
            }
            _ => then.unwrap_or(0),
        };
        shown.wrapping_sub(own)
    }

    /// Receive times of all SubDevices are latched by the same frame.
    fn push_latch(&self, outgoing: &mut Outgoing<'_>) -> bool {
        let address = Address::Broadcast { register: dc::RECEIVE_TIME };
        push(Command::Bwr, address, &[0; 4], self.position, outgoing)
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
