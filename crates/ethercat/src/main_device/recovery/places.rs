//! Places in which SubDevices without an address stand, by a survey.

use crate::main_device::configuration::Presence;
use crate::main_device::presence::{self, Gap};
use crate::main_device::sub_device::{FIRST_STATION_ADDRESS, SubDevice};
use crate::main_device::topology::{self, Upstream, walk};
use crate::main_device::worker::{Before, Junction, MayHangOn};
use crate::register::DlStatus;
use crate::sii::Identity;

use super::{Member, Recovery, Standing};

impl Recovery {
    /// The lost member between its neighbours that a device of this identity at `place` is, by the
    /// survey. It is the one with the same serial number, if that is unique; else the one whose
    /// place it is in, if that is certain: all missing ones are there, or the absent ones can only
    /// be reached through it. A mistaken identity would move the wrong axis.
    pub(super) fn candidate(
        &self,
        place: u16,
        (found, alias): (Identity, u16),
        sub_devices: &[SubDevice],
    ) -> Option<u16> {
        if let Some(position) = self.plugged(place, (found, alias), sub_devices) {
            return Some(position).filter(|&it| self.is_lost(it));
        }
        let known = |position: u16| &sub_devices[usize::from(position)];
        let can_be = |it: u16| known(it).can_be(found, alias);
        // Other SubDevices without an address, between the same neighbours: the missing ones are
        // assigned in order.
        let gap = self.gap(place, sub_devices);
        let Gap { earlier, there, .. } = gap;
        let missing = || self.missing(&gap, sub_devices);
        let is_beyond = |far: u16, near: u16| {
            let upstream = |it: u16| known(it).upstream.map(|it| it.position);
            core::iter::successors(upstream(far), |&it| upstream(it)).any(|it| it == near)
        };
        // Some makers give all their devices one serial number.
        let mut same = sub_devices.iter().filter(|it| found.serial != 0 && it.identity == found);
        if let (Some(same), None) = (same.next(), same.next()) {
            // If all missing ones are there, each is in its place, or two have changed places.
            let is_in_place = there != missing().count() || missing().nth(earlier) == Some(same.position);
            let stays_out = !is_in_place && same.mark.presence == Presence::Required;
            return missing().find(|&it| it == same.position && !stays_out);
        }
        // Of the optional ones others may be absent, as long as their kinds differ, and unexpected
        // ones may be next to it.
        let mut alike = missing().filter(|&it| can_be(it));
        let others = self.strangers.iter().filter(|it| !is_alike(it.identity, found)).count();
        if let (Some(one), None) = (alike.next(), alike.next()) {
            let is_the_only_one = there.saturating_sub(others) <= missing().count();
            if self.members[usize::from(one)].may_leave && is_the_only_one {
                return Some(one);
            }
        }
        let is_chain = || missing().zip(missing().skip(1)).all(|(near, far)| is_beyond(far, near));
        // A SubDevice reached from behind an absent one shows that the cable now takes another way.
        let far = || {
            self.survey
                .stations()
                .iter()
                .skip(place.into())
                .filter_map(|it| it.checked_sub(FIRST_STATION_ADDRESS))
                .filter(|it| usize::from(*it) < sub_devices.len())
        };
        let goes_round = || far().any(|far| missing().any(|near| is_beyond(far, near)));
        let is_certain =
            there == missing().count() || there < missing().count() && is_chain() && !goes_round();
        missing().nth(earlier).filter(|&it| is_certain && can_be(it))
    }

    /// Position of the missing SubDevice whose place is `place` of the survey, if another is there.
    pub(super) fn expected_at(&self, place: u16, sub_devices: &[SubDevice]) -> Option<u16> {
        let gap = self.gap(place, sub_devices);
        self.missing(&gap, sub_devices).nth(gap.earlier)
    }

    /// The SubDevices without an address around `place` of the survey.
    fn gap(&self, place: u16, sub_devices: &[SubDevice]) -> Gap {
        let stations = self.survey.stations();
        Gap::around(place.into(), stations.len(), self.order.len(), |place| {
            let position = stations[place].checked_sub(FIRST_STATION_ADDRESS)?;
            sub_devices.get(usize::from(position)).map(|it| usize::from(it.processed))
        })
    }

    /// Lost members that have their places in a gap.
    fn missing<'a>(
        &'a self,
        gap: &Gap,
        sub_devices: &'a [SubDevice],
    ) -> impl Iterator<Item = u16> + use<'a> {
        gap.missing(&self.order, |it| {
            self.is_lost(it) && sub_devices[usize::from(it)].mark.presence != Presence::HotConnect
        })
    }

    /// Position of the one SubDevice missing that has this identity.
    pub(super) fn known(&self, found: Identity, sub_devices: &[SubDevice]) -> Option<u16> {
        let mut missing = sub_devices.iter().map(|it| it.position).filter(|&it| self.is_lost(it));
        let mut alike = missing.by_ref().filter(|&it| sub_devices[usize::from(it)].identity == found);
        let one = alike.next();
        one.filter(|_| alike.next().is_none())
    }

    /// True if a device of this identity and alias may be an absent one, once it is known which
    /// others are there.
    pub(super) fn may_be_absent(&self, found: Identity, alias: u16, sub_devices: &[SubDevice]) -> bool {
        let is_lost =
            |it: &&SubDevice| self.members[usize::from(it.position)].may_leave && self.is_lost(it.position);
        sub_devices.iter().filter(is_lost).any(|it| it.can_be(found, alias))
    }

    /// The member that a device of this identity and alias is by these alone, at any place: the
    /// next of the hot-connect group that ends before it, or the first of a group.
    fn plugged(
        &self,
        place: u16,
        (found, alias): (Identity, u16),
        sub_devices: &[SubDevice],
    ) -> Option<u16> {
        let before = place.checked_sub(1).and_then(|it| self.survey.stations().get(usize::from(it)));
        let next = before.and_then(|station| (station + 1).checked_sub(FIRST_STATION_ADDRESS));
        let next = next.and_then(|it| sub_devices.get(usize::from(it)));
        let behind = next.filter(|it| it.mark.is_behind && it.can_be(found, alias));
        let named = || sub_devices.iter().find(|it| it.mark.names(found, alias));
        behind.or_else(named).map(|it| it.position)
    }

    /// Takes the order of processing from the survey: groups may be plugged elsewhere than before.
    /// An absent SubDevice is put behind the one of the previous position.
    pub(super) fn take_order(&mut self, sub_devices: &mut [SubDevice]) {
        let count = self.members.len() as u16;
        let position = |station: &u16| station.checked_sub(FIRST_STATION_ADDRESS).filter(|it| *it < count);
        let places = self.survey.stations().iter().filter_map(position);
        let processed = places.clone().map(|it| sub_devices[usize::from(it)].processed);
        if processed.is_sorted() {
            return;
        }
        self.order.clear();
        self.order.extend(places);
        for position in 0..count {
            if !self.order.contains(&position) {
                presence::insert_behind(&mut self.order, position);
            }
        }
        for (place, &position) in (0..).zip(&self.order) {
            sub_devices[usize::from(position)].processed = place;
        }
    }

    /// The SubDevice at `position` is at `place` of the survey.
    pub(super) fn move_to(&mut self, place: u16, position: u16, sub_devices: &mut [SubDevice]) {
        self.survey.set(place, sub_devices[usize::from(position)].station_address);
        self.take_order(sub_devices);
    }

    /// The nearest clock in Op that frames pass before the SubDevice at `position`.
    pub(super) fn clock_before(&self, position: u16, sub_devices: &[SubDevice]) -> Option<Before> {
        let place = sub_devices[usize::from(position)].processed;
        let is_before =
            |it: &&SubDevice| it.processed < place && it.clock.is_some() && self.is_in_op(it.position);
        let before = sub_devices.iter().filter(is_before).max_by_key(|it| it.processed)?;
        let delay = before.clock?.delay;
        Some(Before { station: before.station_address, delay, links: DlStatus::default() })
    }

    /// The SubDevices that the one at `position` may be connected to, by their places: the one that
    /// frames pass next before it, and the ones upstream of that with a port left. One that is
    /// entered at another port than 0 ends the list.
    pub(super) fn may_hang_on(&self, position: u16, sub_devices: &[SubDevice]) -> MayHangOn {
        let mut found = MayHangOn::default();
        let mut room = found.iter_mut();
        let place = sub_devices[usize::from(position)].processed;
        let is_before = |it: &&SubDevice| it.processed < place && !self.is_lost(it.position);
        let before = sub_devices.iter().filter(is_before).max_by_key(|it| it.processed);
        let mut next = before.map(|it| (it, 0));
        while let Some((it, behind)) = next.filter(|(it, _)| it.entry_port == 0) {
            let mut ports = walk(0).skip_while(|&port| port != usize::from(behind)).skip(1);
            if ports.any(|port| it.information.has_port(port)) {
                let Some(room) = room.next() else { break };
                *room = Some(Junction { position: it.position, station: it.station_address, behind });
            }
            next = it.upstream.map(|up| (&sub_devices[usize::from(up.position)], up.port));
        }
        found
    }

    /// Counts the members that the survey found. True if the place of each is known: each member is
    /// lost, or was found once by the survey.
    pub(super) fn check_places(&mut self) -> bool {
        self.found.fill(0);
        for station in self.survey.stations() {
            let position = station.checked_sub(FIRST_STATION_ADDRESS).map(usize::from);
            if let Some(found) = position.and_then(|it| self.found.get_mut(it)) {
                *found = found.saturating_add(1);
            }
        }
        let is_known = |(found, member): (&u8, &Member)| match found {
            0 => member.standing == Standing::Lost,
            found => *found == 1,
        };
        self.found.iter().zip(&self.members).all(is_known)
    }
}

impl SubDevice {
    /// True if a device of this identity and alias can be it, at the right place: the same product
    /// and revision; the serial number may differ. A member never seen has the identity of its
    /// description.
    fn can_be(&self, found: Identity, alias: u16) -> bool {
        self.mark.fits(found, alias) && (self.is_unseen || is_alike(self.identity, found))
    }

    /// It has this identity and alias.
    pub(super) fn note_identity(&mut self, found: Identity, alias: u16) {
        if self.mark.presence != Presence::Required {
            self.identity = found;
            self.information.alias = alias;
        }
    }
}

/// Stores the upstream port of the SubDevice at `position`, which has joined while the bus runs;
/// the SubDevices that were connected there are behind it now.
pub(super) fn take_place(position: u16, upstream: Option<Upstream>, sub_devices: &mut [SubDevice]) {
    let own = &mut sub_devices[usize::from(position)];
    let entry = topology::entry(&(own.dl_status, own.plausible_times()));
    (own.upstream, own.entry_port, own.is_unplaced) = (upstream, entry as u8, upstream.is_none());
    let beyond = walk(entry).skip(1).find(|&port| own.dl_status.is_open(port));
    let (Some(_), Some(port)) = (upstream, beyond) else { return };
    let is_behind = |it: &&mut SubDevice| it.upstream == upstream && it.position != position;
    for it in sub_devices.iter_mut().filter(is_behind) {
        it.upstream = Some(Upstream { position, port: port as u8 });
    }
}

/// The same product in the same revision; the serial number may be another.
fn is_alike(one: Identity, other: Identity) -> bool {
    Identity { serial: 0, ..one } == Identity { serial: 0, ..other }
}
