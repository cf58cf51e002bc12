//! Search for returning SubDevices: a survey of all addresses, and a visit of each that is unknown,
//! or answers again.

use crate::al::{AlState, AlStatus};
use crate::main_device::MainDevice;
use crate::main_device::exchange::Outgoing;
use crate::main_device::report::Event;
use crate::main_device::sub_device::FIRST_STATION_ADDRESS;
use crate::sii::Identity;
use crate::time::Instant;
use crate::wire::read_u16;

use super::visit::{Visit, Visited};
use super::{CLOCK_KEPT, Recovery, STRANGERS, SURVEY_PAUSE, Standing, Stranger, Way, way_from};

impl Recovery {
    /// True if the search has something to send.
    pub(in crate::main_device) fn is_searching(&self, now: Instant) -> bool {
        self.survey.is_due() || self.visit.as_ref().and_then(Visit::due).is_some_and(|due| due <= now)
    }

    /// Appends the datagrams of the search.
    pub(in crate::main_device) fn emit(&mut self, now: Instant, outgoing: &mut Outgoing<'_>) {
        self.survey.emit(outgoing);
        if let Some(visit) = &mut self.visit {
            visit.emit(now, outgoing);
        }
    }

    /// A datagram of the visit was lost: it is sent again.
    pub(in crate::main_device) fn visit_lost(&mut self) {
        if self.stale_visits > 0 {
            self.stale_visits -= 1;
        } else if let Some(visit) = &mut self.visit {
            visit.lost();
        }
    }

    /// A datagram of the survey was lost.
    pub(in crate::main_device) fn survey_lost(&mut self) {
        self.survey.failed();
    }

    /// SubDevices that took part in the last broadcast.
    pub(in crate::main_device) fn answering(&self) -> u16 {
        self.answering
    }

    /// Notes how many took part in a broadcast.
    pub(in crate::main_device) fn note_answering(&mut self, count: u16) {
        if self.answering != count {
            self.answering = count;
            (self.visit_from, self.survey_at) = (0, Instant::EPOCH);
            self.strangers.clear();
            self.survey.stop();
            if let Some(visit) = &mut self.visit {
                let (goes_on, on_their_way) = visit.give_up();
                self.stale_visits += on_their_way;
                if !goes_on {
                    self.visit = None;
                }
            }
        }
    }
}

impl MainDevice {
    /// Searches for SubDevices that came back without an address, while more answer than are known.
    pub(in crate::main_device) fn search(&mut self, now: Instant) {
        let others = self.others.are_there(now);
        let recovery = &mut self.recovery;
        if others || recovery.visit.is_some() || recovery.stale_visits > 0 || recovery.survey.is_under_way()
        {
            return;
        }
        if let Some(position) = recovery.members.iter().position(|it| it.standing == Standing::Answers) {
            let station = self.sub_devices[position].station_address;
            recovery.visit = Some(Visit::of_member(position as u16, station, now));
            return;
        }
        let known = recovery.members.len() - recovery.lost();
        if known == recovery.members.len()
            || usize::from(recovery.answering) <= known
            || now < recovery.survey_at
        {
            return;
        }
        recovery.survey.start(recovery.answering);
    }

    /// A reply to a datagram of the survey.
    pub(in crate::main_device) fn survey_answered(
        &mut self,
        now: Instant,
        place: u16,
        data: &[u8],
        working_counter: u16,
    ) {
        let station = read_u16(data, 0).unwrap_or(0);
        if working_counter != 1 {
            self.recovery.survey.failed();
        } else if self.recovery.survey.answered(place, station) {
            self.surveyed(now);
        }
    }

    /// The survey is complete: visits the first place without one of our addresses that is not
    /// visited yet.
    fn surveyed(&mut self, now: Instant) {
        let recovery = &mut self.recovery;
        if recovery.moves && recovery.check_places() {
            recovery.take_order(&mut self.sub_devices);
        }
        let count = recovery.members.len() as u16;
        let is_ours = |station: u16| {
            station.checked_sub(FIRST_STATION_ADDRESS).is_some_and(|position| position < count)
        };
        let strangers = (0..).zip(recovery.survey.stations()).filter(|(_, station)| !is_ours(**station));
        let next = strangers.map(|(place, _)| place).find(|&place| place >= recovery.visit_from);
        match next {
            Some(_) if !recovery.check_places() => recovery.survey_at = now + SURVEY_PAUSE,
            Some(place) => {
                recovery.visit = Some(Visit::new(place, now));
                recovery.visit_from = place + 1;
            }
            None => (recovery.visit_from, recovery.survey_at) = (0, now + SURVEY_PAUSE),
        }
    }

    /// A reply to a datagram of the visit.
    pub(in crate::main_device) fn visit_answered(
        &mut self,
        now: Instant,
        data: &[u8],
        working_counter: u16,
    ) {
        let recovery = &mut self.recovery;
        if recovery.stale_visits > 0 {
            recovery.stale_visits -= 1;
            return;
        }
        let Some(visit) = &mut recovery.visit else { return };
        match visit.answered(now, (data, working_counter), recovery.answering) {
            Visited::GoesOn => {}
            Visited::Left => {
                let member = self.recovery.visit.take().and_then(|it| it.member());
                if let Some(position) = member {
                    self.recovery.set(position, Standing::Lost);
                }
            }
            Visited::Identified(identity, alias) => self.identified(now, identity, alias),
            Visited::Addressed(position) => {
                self.recovery.visit = None;
                self.tell(Event::Reconfiguring { position });
                self.begin_way(now, position, Way::Anew);
            }
        }
    }

    fn identified(&mut self, now: Instant, found: Identity, alias: u16) {
        let Some(visit) = &mut self.recovery.visit else { return };
        if let Some(position) = visit.member() {
            self.recovery.visit = None;
            return self.answered_by(now, position, found, alias);
        }
        let place = visit.place();
        if let Some(position) = self.recovery.candidate(place, (found, alias), &self.sub_devices) {
            if self.recovery.moves {
                self.recovery.move_to(place, position, &mut self.sub_devices);
            }
            self.sub_devices[usize::from(position)].note_identity(found, alias);
            let station = self.sub_devices[usize::from(position)].station_address;
            if let Some(visit) = &mut self.recovery.visit {
                visit.address(position, station);
            }
            return;
        }
        self.recovery.visit = None;
        // The SubDevices next to it are visited first.
        let in_doubt = self.recovery.may_be_absent(found, alias, &self.sub_devices);
        let expected = self.recovery.expected_at(place, &self.sub_devices);
        self.tell_of_stranger(place, found, expected, in_doubt);
    }

    /// A device of this identity answers to the address of the SubDevice at `position`: the same,
    /// with its power kept; or one of another bus, which stays out.
    fn answered_by(&mut self, now: Instant, position: u16, found: Identity, alias: u16) {
        let it = &self.sub_devices[usize::from(position)];
        let (status, has_clock, place) = (it.al_status, it.clock.is_some(), it.processed);
        let is_it = match it.is_unseen {
            true => it.mark.fits(found, alias),
            false => it.identity == found && it.mark.fits(found, alias),
        };
        if !is_it {
            self.recovery.set(position, Standing::Lost);
            return self.tell_of_stranger(place, found, Some(position), false);
        }
        self.sub_devices[usize::from(position)].note_identity(found, alias);
        let lasted = now.since(self.recovery.members[usize::from(position)].lost_since);
        if self.sub_devices[usize::from(position)].is_unseen {
            self.tell(Event::Reconfiguring { position });
            self.begin_way(now, position, Way::Anew);
        } else if status == AlStatus::in_state(AlState::Op) {
            self.is_back(now, position, false);
        } else if has_clock && lasted >= CLOCK_KEPT {
            self.begin_way(now, position, Way::Anew);
        } else {
            self.begin_way(now, position, way_from(status));
        }
    }

    /// Reported once, with the SubDevice that has this place; `in_doubt`: with the second visit.
    fn tell_of_stranger(&mut self, place: u16, identity: Identity, expected: Option<u16>, in_doubt: bool) {
        let strangers = &mut self.recovery.strangers;
        let is_full = strangers.len() == STRANGERS;
        let is_told = match strangers.iter_mut().find(|it| (it.place, it.identity) == (place, identity)) {
            Some(known) => core::mem::replace(&mut known.is_told, true),
            None if is_full => true,
            None => {
                strangers.push(Stranger { place, identity, is_told: !in_doubt });
                in_doubt
            }
        };
        if !is_told {
            let known = self.recovery.known(identity, &self.sub_devices);
            self.tell(Event::Stranger { place, identity, expected, known });
        }
    }
}
