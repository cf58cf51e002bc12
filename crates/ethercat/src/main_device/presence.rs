//! SubDevices that may be absent: checks of their description, and their assignment to the
//! SubDevices found.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use crate::sii::Identity;

use super::bring_up;
use super::configuration::{ExpectedIdentity, Presence, ProcessDataSource, SubDeviceConfiguration};
use super::error::{BusError, SubDeviceError};
use super::sub_device::{Mark, SubDevice};

/// True of a hot-connect SubDevice that is identified alone: a single one, or the first of a group.
fn is_head(described: &[SubDeviceConfiguration], position: usize) -> bool {
    let it = &described[position];
    let before = position.checked_sub(1).map(|before| &described[before]);
    it.presence == Presence::HotConnect && !before.is_some_and(|before| it.is_plugged_with(before))
}

impl Mark {
    pub(super) fn of(described: &[SubDeviceConfiguration], position: usize) -> Self {
        let it = &described[position];
        let is_behind = it.presence == Presence::HotConnect && !is_head(described, position);
        let alias = it.alias.filter(|&alias| alias != 0);
        Self { presence: it.presence, identity: it.identity, alias, is_behind }
    }

    /// True if a SubDevice of this identity and alias is as described.
    pub(super) fn fits(&self, found: Identity, alias: u16) -> bool {
        let is_same = |it: ExpectedIdentity| {
            let revision = it.revision.is_none_or(|revision| revision == found.revision);
            (it.vendor_id, it.product_code) == (found.vendor_id, found.product_code) && revision
        };
        self.identity.is_none_or(is_same) && self.alias.is_none_or(|it| it == alias)
    }

    /// True of the first of a hot-connect group, or one alone, if this identity and alias name it.
    pub(super) fn names(&self, found: Identity, alias: u16) -> bool {
        self.presence == Presence::HotConnect && !self.is_behind && self.fits(found, alias)
    }
}

/// The described SubDevice that each found one is, in the order of the cable; `None` for unexpected
/// ones. Hot-connect groups first, at any place; then as many of the rest as possible, in order.
pub(super) fn assign(
    found: &[SubDevice],
    described: &[SubDeviceConfiguration],
) -> Result<Vec<Option<u16>>, BusError> {
    let marks: Vec<_> = (0..described.len()).map(|position| Mark::of(described, position)).collect();
    let mut assigned = vec![None; found.len()];
    for position in (0..marks.len()).filter(|&it| is_head(described, it)) {
        place_group(found, described, position, &marks, &mut assigned)?;
    }
    let places: Vec<_> = (0..found.len()).filter(|&place| assigned[place].is_none()).collect();
    let in_line: Vec<_> =
        (0..marks.len()).filter(|&it| marks[it].presence != Presence::HotConnect).collect();
    let alignment = Alignment::new(found, &marks, &places, &in_line);
    let Some(first) = alignment.pairs(true) else { return Err(missing(found, described, &alignment)) };
    let last = alignment.pairs(false).unwrap_or_default();
    if let Some((one, other)) = first.iter().zip(&last).find(|(one, other)| one != other) {
        return Err(ambiguous(found, described, *one, *other));
    }
    first.into_iter().for_each(|(place, position)| assigned[place] = Some(position as u16));
    if assigned.iter().all(Option::is_none) {
        let (found, identity) = (found.len(), found.first().map_or(Identity::default(), |it| it.identity));
        return Err(BusError::NobodyDescribed { found, identity });
    }
    check_upstream(found, described, &assigned)?;
    Ok(assigned)
}

/// Two pairs of which either can be.
fn ambiguous(
    found: &[SubDevice],
    described: &[SubDeviceConfiguration],
    (place, position): (usize, usize),
    (other_place, other): (usize, usize),
) -> BusError {
    let name = |position: usize| described[position].name.clone();
    if position == other {
        let (first, second) = (place as u16, other_place as u16);
        return BusError::TwoOfOne { position: position as u16, name: name(position), first, second };
    }
    BusError::Ambiguous {
        place: place as u16,
        identity: found[place].identity,
        position: position as u16,
        name: name(position),
        other: other as u16,
        other_name: name(other),
    }
}

/// Finds the hot-connect group that begins with the SubDevice at `position`, as far as it is there.
fn place_group(
    found: &[SubDevice],
    described: &[SubDeviceConfiguration],
    position: usize,
    marks: &[Mark],
    assigned: &mut [Option<u16>],
) -> Result<(), BusError> {
    let mut named = (0..found.len()).filter(|&place| {
        let it = &found[place];
        it.sii_problem.is_none() && marks[position].names(it.identity, it.information.alias)
    });
    let Some(place) = named.next() else { return Ok(()) };
    if let Some(second) = named.next() {
        return Err(ambiguous(found, described, (place, position), (second, position)));
    }
    assigned[place] = Some(position as u16);
    let behind = (position + 1..marks.len()).take_while(|&it| marks[it].is_behind);
    for (position, place) in behind.zip(place + 1..found.len()) {
        let it = &found[place];
        if assigned[place].is_some() || !marks[position].fits(it.identity, it.information.alias) {
            break;
        }
        assigned[place] = Some(position as u16);
    }
    Ok(())
}

/// Refuses a required SubDevice behind one that may be unplugged.
fn check_upstream(
    found: &[SubDevice],
    described: &[SubDeviceConfiguration],
    assigned: &[Option<u16>],
) -> Result<(), BusError> {
    let of = |place: usize| assigned[place].map(usize::from);
    for (place, it) in found.iter().enumerate() {
        let Some(position) = of(place).filter(|&it| described[it].presence == Presence::Required) else {
            continue;
        };
        let up = |it: &SubDevice| it.upstream.map(|up| usize::from(up.position));
        let mut above = core::iter::successors(up(it), |&place| up(&found[place])).filter_map(of);
        if let Some(before) = above.find(|&it| described[it].presence == Presence::HotConnect) {
            return Err(BusError::BehindHotConnect {
                position: position as u16,
                name: described[position].name.clone(),
                before: before as u16,
                before_name: described[before].name.clone(),
            });
        }
    }
    Ok(())
}

/// The first required SubDevice that no found one can be, after a match for all before it.
fn missing(
    found: &[SubDevice],
    described: &[SubDeviceConfiguration],
    alignment: &Alignment<'_>,
) -> BusError {
    let mut places = alignment.places.iter();
    let mut required = alignment.in_line.iter().filter(|&&it| described[it].presence == Presence::Required);
    let lacks = |&&position: &&usize| !places.any(|&place| alignment.can_be(place, position));
    let position = required.clone().find(lacks).or(required.next_back()).copied().unwrap_or(0);
    BusError::MissingRequired {
        position: position as u16,
        name: described[position].name.clone(),
        found: found.len(),
    }
}

/// The longest assignment of found SubDevices to described ones, both in order, with every required
/// one in it.
struct Alignment<'a> {
    found: &'a [SubDevice],
    marks: &'a [Mark],
    places: &'a [usize],
    in_line: &'a [usize],
    /// Most pairs from a place and a position on; `None` if a required one is left over.
    most: Vec<Option<u16>>,
}

impl<'a> Alignment<'a> {
    fn new(found: &'a [SubDevice], marks: &'a [Mark], places: &'a [usize], in_line: &'a [usize]) -> Self {
        let most = vec![Some(0); (places.len() + 1) * (in_line.len() + 1)];
        let mut alignment = Self { found, marks, places, in_line, most };
        for i in (0..=places.len()).rev() {
            for j in (0..in_line.len()).rev() {
                let it = [alignment.pair(i, j), alignment.without(i, j), alignment.stranger(i, j)];
                let at = alignment.at(i, j);
                alignment.most[at] = it.into_iter().flatten().max();
            }
        }
        alignment
    }

    fn at(&self, i: usize, j: usize) -> usize {
        i * (self.in_line.len() + 1) + j
    }

    /// The `i`th found is the `j`th described.
    fn pair(&self, i: usize, j: usize) -> Option<u16> {
        let is_it = i < self.places.len() && self.can_be(self.places[i], self.in_line[j]);
        is_it.then(|| self.most[self.at(i + 1, j + 1)]).flatten().map(|it| it + 1)
    }

    /// The `j`th described is absent.
    fn without(&self, i: usize, j: usize) -> Option<u16> {
        let may = self.marks[self.in_line[j]].presence != Presence::Required;
        may.then(|| self.most[self.at(i, j + 1)]).flatten()
    }

    /// The `i`th found SubDevice is unexpected.
    fn stranger(&self, i: usize, j: usize) -> Option<u16> {
        (i < self.places.len()).then(|| self.most[self.at(i + 1, j)]).flatten()
    }

    /// True if the one found at `place` can be the one described at `position`. Without an SII
    /// there is no evidence against it.
    fn can_be(&self, place: usize, position: usize) -> bool {
        let (it, mark) = (&self.found[place], &self.marks[position]);
        match it.sii_problem {
            Some(_) => mark.presence == Presence::Required,
            None => mark.fits(it.identity, it.information.alias),
        }
    }

    /// Places and positions, as far to the front as can be, or to the end.
    fn pairs(&self, to_the_front: bool) -> Option<Vec<(usize, usize)>> {
        let (mut i, mut j, mut pairs) = (0, 0, Vec::new());
        let mut left = self.most[0];
        left?;
        while i < self.places.len() && j < self.in_line.len() && left.is_some() {
            let (pair, without, stranger) = (self.pair(i, j), self.without(i, j), self.stranger(i, j));
            let otherwise = without == left || stranger == left;
            if pair == left && (to_the_front || !otherwise) {
                pairs.push((self.places[i], self.in_line[j]));
                (i, j) = (i + 1, j + 1);
            } else if without == left {
                j += 1;
            } else {
                i += 1;
            }
            left = self.most[self.at(i, j)];
        }
        Some(pairs)
    }
}

/// The unknown SubDevices between two known ones, with a place among them.
pub(super) struct Gap {
    /// Ranks between the two in the order of processing.
    pub(super) ranks: Range<usize>,
    /// Unknown SubDevices between the first of the two and the place.
    pub(super) earlier: usize,
    /// All unknown SubDevices between the two, with the one at the place.
    pub(super) there: usize,
}

impl Gap {
    /// The gap around `place` of `count`. `rank` is the rank of the known SubDevice at a place, in
    /// the order of processing; `all` is the number of ranks.
    pub(super) fn around(
        place: usize,
        count: usize,
        all: usize,
        rank: impl Fn(usize) -> Option<usize>,
    ) -> Self {
        let place = place.min(count);
        let first = (0..place).rev().find_map(&rank).map_or(0, |it| it + 1);
        let end = (place..count).find_map(&rank).unwrap_or(all);
        let earlier = (0..place).rev().take_while(|&it| rank(it).is_none()).count();
        let there = earlier + (place..count).take_while(|&it| rank(it).is_none()).count();
        Self { ranks: first..end, earlier, there }
    }

    /// The missing SubDevices of `order` between the two.
    pub(super) fn missing<'a, M: Fn(u16) -> bool>(
        &self,
        order: &'a [u16],
        is_missing: M,
    ) -> impl Iterator<Item = u16> + use<'a, M> {
        let between = order.get(self.ranks.clone()).unwrap_or(&[]);
        between.iter().copied().filter(move |&it| is_missing(it))
    }
}

/// A device on the bus that is not described.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stranger {
    /// Place in the order of processing.
    pub(super) place: u16,
    pub(super) identity: Identity,
    /// Position of the absent SubDevice of that place.
    pub(super) expected: Option<u16>,
}

/// The SubDevices of a bus by the described positions, found and absent; and the unexpected ones.
pub(super) fn merge(
    found: Vec<SubDevice>,
    assigned: &[Option<u16>],
    described: &[SubDeviceConfiguration],
) -> (Vec<SubDevice>, Vec<Stranger>) {
    let count = found.len();
    let parents: Vec<_> = found.iter().map(|it| it.upstream).collect();
    let mut processed: Vec<(u16, u16)> = Vec::new();
    let (mut there, mut strangers) = (vec![None; described.len()], Vec::new());
    for (it, position) in found.into_iter().zip(assigned) {
        let Some(position) = *position else {
            strangers.push(Stranger { place: it.processed, identity: it.identity, expected: None });
            continue;
        };
        // Strangers on the way there count as cable.
        let known = |up: &super::topology::Upstream| assigned[usize::from(up.position)].is_some();
        let mut ways = core::iter::successors(it.upstream, |up| parents[usize::from(up.position)]);
        let upstream = ways.find(known).and_then(|up| {
            let position = assigned[usize::from(up.position)]?;
            Some(super::topology::Upstream { position, ..up })
        });
        processed.push((it.processed, position));
        there[usize::from(position)] = Some(SubDevice { position, upstream, ..it });
    }
    processed.sort_unstable();
    let mut order: Vec<u16> = processed.iter().map(|&(_, position)| position).collect();
    let mut all = Vec::with_capacity(described.len());
    for (position, (it, configuration)) in (0..).zip(there.into_iter().zip(described)) {
        let is_there = it.is_some();
        if !is_there {
            insert_behind(&mut order, position);
        }
        let mark = Mark::of(described, usize::from(position));
        let it = it.unwrap_or_else(|| absent(position, &mark));
        let mut it =
            SubDevice { mark, is_absent: !is_there, is_unseen: !is_there, is_unplaced: !is_there, ..it };
        if !configuration.name.is_empty() {
            it.name.clone_from(&configuration.name);
        }
        all.push(it);
    }
    for (place, &position) in (0..).zip(&order) {
        all[usize::from(position)].processed = place;
    }
    let rank = |place: usize| {
        let at = processed.iter().find(|(it, _)| usize::from(*it) == place);
        at.map(|&(_, position)| usize::from(all[usize::from(position)].processed))
    };
    let stays_away = |position: u16| {
        let it = &all[usize::from(position)];
        it.is_absent && it.mark.presence != Presence::HotConnect
    };
    for it in &mut strangers {
        let gap = Gap::around(it.place.into(), count, order.len(), rank);
        it.expected = gap.missing(&order, stays_away).nth(gap.earlier);
    }
    (all, strangers)
}

/// Inserts a position into an order of processing, behind the previous position.
pub(super) fn insert_behind(order: &mut Vec<u16>, position: u16) {
    let before = position.checked_sub(1).and_then(|before| order.iter().position(|&it| it == before));
    order.insert(before.map_or(0, |before| before + 1), position);
}

/// One that is not there.
fn absent(position: u16, mark: &Mark) -> SubDevice {
    let identity = mark.identity.map(|it| Identity {
        vendor_id: it.vendor_id,
        product_code: it.product_code,
        revision: it.revision.unwrap_or_default(),
        serial: 0,
    });
    SubDevice { identity: identity.unwrap_or_default(), ..SubDevice::new(position) }
}

/// Gives absent SubDevices without described process data the mapping of another of their kind. An
/// alias alone may mean a coupler: it counts as one without process data until it joins.
pub(super) fn take_mappings(
    sub_devices: &mut [SubDevice],
    described: &[SubDeviceConfiguration],
) -> Result<(), BusError> {
    for position in 0..sub_devices.len() {
        let it = &sub_devices[position];
        if !it.is_absent || described[position].process_data != ProcessDataSource::Sii {
            continue;
        }
        if it.mark.identity.is_none() {
            continue;
        }
        let kind = Mark { alias: None, ..it.mark };
        let samples = &described[position].oversampling;
        let is_twin = |one: &&SubDevice| {
            let is_alike =
                described.get(usize::from(one.position)).is_some_and(|it| it.oversampling == *samples);
            !one.is_absent && is_alike && kind.fits(one.identity, 0)
        };
        let Some(twin) = sub_devices.iter().find(is_twin) else {
            return Err(bring_up::at(it, SubDeviceError::UnknownProcessData));
        };
        sub_devices[position].mapping = twin.mapping.clone();
    }
    Ok(())
}
