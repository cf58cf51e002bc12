//! Visit of a SubDevice without one of our addresses: its identity is read from its SII, and an
//! address written.

use core::time::Duration;

use crate::register::sii_interface::{
    COMMAND_READ, CONFIGURATION, CONTROL, STATUS_BUSY, STATUS_MISSING_ACKNOWLEDGE,
};
use crate::register::{AL_STATUS, STATION_ADDRESS, STATION_ALIAS};
use crate::sii::Identity;
use crate::time::Instant;
use crate::wire::{Address, Command, read_u16, read_u32};

use crate::main_device::exchange::{Outgoing, Owner};
use crate::main_device::limits;

/// Words of the SII that hold vendor, product, revision and serial number (ETG.1000.6, Table 16).
const IDENTITY_WORD: u32 = 8;

/// Time a visit may take.
const LONGEST: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Its alias is read.
    Alias,
    /// The EEPROM is taken from the application, then ours.
    Take(u8),
    /// Send the read command.
    Command,
    /// Is it there?
    Fetch,
    /// Known, and to be addressed, or to be left.
    Known,
    /// Write its address, in a frame that counts the SubDevices it passes: one that joined or left
    /// since would have moved all behind it to other places.
    Write { position: u16, station: u16 },
    /// So many were passed by that frame.
    Written { position: u16, station: u16, passed: u16 },
    /// Another SubDevice may have received the address: the one that has it loses it.
    Withdraw { station: u16 },
}

/// A visit under way.
#[derive(Debug)]
pub(super) struct Visit {
    place: u16,
    /// The member that is visited at its station address, and that address; without one the device
    /// at `place`.
    member: Option<(u16, u16)>,
    step: Step,
    alias: u16,
    numbers: [u32; 4],
    read: usize,
    awaiting: bool,
    not_before: Instant,
    end: Instant,
}

/// Result of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Visited {
    GoesOn,
    /// No answer any more, or none with an identity.
    Left,
    /// Its identity and its alias.
    Identified(Identity, u16),
    /// It has the address of the SubDevice at this position.
    Addressed(u16),
}

impl Visit {
    pub(super) fn new(place: u16, now: Instant) -> Self {
        Self {
            place,
            member: None,
            step: Step::Alias,
            alias: 0,
            numbers: [0; 4],
            read: 0,
            awaiting: false,
            not_before: now,
            end: now + LONGEST,
        }
    }

    /// Of the member at this position, by its station address.
    pub(super) fn of_member(position: u16, station: u16, now: Instant) -> Self {
        Self { member: Some((position, station)), ..Self::new(0, now) }
    }

    /// The position of the member that is visited, if it is one.
    pub(super) fn member(&self) -> Option<u16> {
        self.member.map(|(position, _)| position)
    }

    pub(super) fn place(&self) -> u16 {
        self.place
    }

    /// SubDevices joined or left, which moves the ones behind them: false if the visit has ended,
    /// true if it still takes an address back. Also returns the number of its datagrams on their
    /// way, whose replies mean nothing any more.
    pub(super) fn give_up(&mut self) -> (bool, u8) {
        let on_their_way = u8::from(core::mem::take(&mut self.awaiting));
        match self.step {
            Step::Write { station, .. } => {
                self.step = Step::Withdraw { station };
                (true, 2 * on_their_way)
            }
            Step::Written { station, .. } => {
                self.step = Step::Withdraw { station };
                (true, on_their_way)
            }
            Step::Withdraw { .. } => (true, on_their_way),
            _ => (false, on_their_way),
        }
    }

    pub(super) fn due(&self) -> Option<Instant> {
        (!self.awaiting && self.step != Step::Known).then_some(self.not_before)
    }

    /// It is the SubDevice at `position`, and gets its address.
    pub(super) fn address(&mut self, position: u16, station: u16) {
        self.step = Step::Write { position, station };
    }

    pub(super) fn emit(&mut self, now: Instant, outgoing: &mut Outgoing<'_>) {
        if self.due().is_none_or(|due| due > now) {
            return;
        }
        let mut command = [0; 6];
        command[..2].copy_from_slice(&COMMAND_READ.to_le_bytes());
        command[2..].copy_from_slice(&(IDENTITY_WORD + 2 * self.read as u32).to_le_bytes());
        let at = |register| match self.member {
            Some((_, station)) => Address::Station { station, register },
            None => Address::at_position(self.place, register),
        };
        let (read, written) = match self.member {
            Some(_) => (Command::Fprd, Command::Fpwr),
            None => (Command::Aprd, Command::Apwr),
        };
        let mut write = |register, data: &[u8]| {
            let place = outgoing.push(written, at(register), data.len(), Owner::Visit);
            place.map(|place| place.copy_from_slice(data)).is_some()
        };
        self.awaiting = match self.step {
            Step::Alias => outgoing.push(read, at(STATION_ALIAS), 2, Owner::Visit).is_some(),
            Step::Take(value) => write(CONFIGURATION, &[value]),
            Step::Command => write(CONTROL, &command),
            // Both or none: as the first of a frame they are a minimal one.
            Step::Write { .. } if outgoing.has_hardly_room() => false,
            Step::Write { station, .. } => {
                let counts = Address::Broadcast { register: AL_STATUS };
                outgoing.push(Command::Brd, counts, 2, Owner::Visit).is_some()
                    && outgoing
                        .push(Command::Apwr, at(STATION_ADDRESS), 2, Owner::Visit)
                        .map(|data| data.copy_from_slice(&station.to_le_bytes()))
                        .is_some()
            }
            Step::Withdraw { station } => {
                let address = Address::Station { station, register: STATION_ADDRESS };
                outgoing.push(Command::Fpwr, address, 2, Owner::Visit).map(|data| data.fill(0)).is_some()
            }
            Step::Fetch => outgoing.push(read, at(CONTROL), FETCH_LENGTH, Owner::Visit).is_some(),
            Step::Known | Step::Written { .. } => false,
        };
    }

    /// A reply came, with the number of SubDevices that answer on the bus.
    pub(super) fn answered(
        &mut self,
        now: Instant,
        (data, working_counter): (&[u8], u16),
        answering: u16,
    ) -> Visited {
        self.awaiting = false;
        if let Step::Write { position, station } = self.step {
            (self.step, self.awaiting) =
                (Step::Written { position, station, passed: working_counter }, true);
            return Visited::GoesOn;
        }
        if let Step::Written { position, station, passed } = self.step {
            if working_counter == 1 && passed == answering {
                return Visited::Addressed(position);
            }
            self.step = Step::Withdraw { station };
            return Visited::GoesOn;
        }
        if working_counter != 1 || now >= self.end {
            return Visited::Left;
        }
        self.step = match self.step {
            Step::Alias => {
                self.alias = read_u16(data, 0).unwrap_or(0);
                Step::Take(2)
            }
            Step::Take(2) => Step::Take(0),
            Step::Take(_) => Step::Command,
            Step::Command => Step::Fetch,
            Step::Fetch => return self.fetched(now, data),
            Step::Withdraw { .. } => return Visited::Left,
            step => step,
        };
        Visited::GoesOn
    }

    fn fetched(&mut self, now: Instant, data: &[u8]) -> Visited {
        let status = read_u16(data, 0).unwrap_or(STATUS_BUSY);
        if status & STATUS_BUSY != 0 {
            self.not_before = now + limits::PAUSE;
            return Visited::GoesOn;
        }
        self.step = Step::Command;
        let is_ours = read_u32(data, 2) == Some(IDENTITY_WORD + 2 * self.read as u32);
        if status & STATUS_MISSING_ACKNOWLEDGE != 0 || !is_ours {
            return Visited::GoesOn;
        }
        self.numbers[self.read] = read_u32(data, 6).unwrap_or(0);
        self.read += 1;
        if self.read < self.numbers.len() {
            return Visited::GoesOn;
        }
        self.step = Step::Known;
        let [vendor_id, product_code, revision, serial] = self.numbers;
        Visited::Identified(Identity { vendor_id, product_code, revision, serial }, self.alias)
    }

    /// The datagram on its way was lost: it is sent again.
    pub(super) fn lost(&mut self) {
        self.awaiting = false;
    }
}

/// EEPROM control, address, and the first four bytes of data.
const FETCH_LENGTH: usize = 10;
