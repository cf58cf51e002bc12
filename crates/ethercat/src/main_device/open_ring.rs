//! A ring that is open when the bus comes up: two lines, of which the second is reached from its
//! far end.
//!
//! SubDevices are still processed in the order of the ring: the second copy of a frame passes the
//! SubDevices behind the break from their far end, and is processed on its way back. So the bus is
//! described as it will be when the ring is closed: the SubDevice in front of the break and the one
//! behind it are neighbours, and all are entered at port 0. Receive times of the second line show
//! the delays from its SubDevices to the break, but not the delay of the open cable: it is assumed
//! to be the average of the others.
//!
//! If IN and OUT of a SubDevice in the ring are swapped, the first copy of a frame passes it
//! unprocessed while the ring is closed, and auto-increment addresses count differently in a closed
//! and in an open ring. So the bus does not come up; the SubDevice is reported. Swapped SubDevices
//! on branches do no harm in a closed ring.
//!
//! Simplification: one without a clock is taken to be the right way round.

use alloc::vec;
use alloc::vec::Vec;

use crate::redundancy::Ring;
use crate::register::DlStatus;
use crate::register::dl::PORTS;

use super::clock::{self, ClockNode, ClockSetting};
use super::error::BusError;
use super::sub_device::SubDevice;
use super::topology::LatchedTimes;
use super::topology::{Place, Upstream};
use super::{MainDevice, topology};

/// The break, and the facts that closing it hides.
#[derive(Clone, Debug)]
pub(super) struct OpenRing {
    /// SubDevices in front of it.
    before: usize,
    /// Links of the SubDevice in front of it, as they are.
    links_before: Option<DlStatus>,
    /// Time of a frame from the entry of each SubDevice behind the break to the break and back, in
    /// the order of processing.
    to_the_break: Vec<u32>,
}

impl MainDevice {
    /// Takes the state of the ring from its link, before SubDevices are identified by their places:
    /// an open ring is brought up from both ends. [`crate::redundancy`] splices the replies.
    pub fn note_ring(&mut self, ring: Option<Ring>) {
        self.ring = ring;
    }

    /// SubDevices in front of the break, if its link is a ring that is open.
    pub(super) fn ring_open_behind(&self) -> Option<u16> {
        match self.ring? {
            Ring::Open { before } => Some(before),
            Ring::Closed | Ring::Turned => None,
        }
    }
}

/// Finds a SubDevice with swapped ports in an open ring; `found` is in the order of processing.
pub(super) fn check_open(found: &[SubDevice], before: u16) -> Result<(), BusError> {
    let Some((front, behind)) = found.split_at_checked(usize::from(before)) else { return Ok(()) };
    let swapped = |position: usize, it: &SubDevice| {
        Err(BusError::SwappedInRing { position: position as u16, name: it.name.clone() })
    };
    for (position, place) in line(front).iter().enumerate() {
        if place.entry != 0 {
            return swapped(position, &front[usize::from(place.processed)]);
        }
    }
    // Behind the break frames come from the other side: in at any port but 0, on at port 0.
    let line = line(behind);
    let mut sizes = vec![1; line.len()];
    for (number, place) in line.iter().enumerate().rev() {
        if let Some(upstream) = place.upstream {
            sizes[usize::from(upstream.position)] += sizes[number];
        }
    }
    let mut here = (!line.is_empty()).then_some(0);
    while let Some(number) = here {
        let place = line[number];
        let goes_on = |port: u8| {
            let upstream = Some(Upstream { position: number as u16, port });
            (0..line.len()).find(|&next| line[next].upstream == upstream)
        };
        if place.entry == 0 {
            // Behind it in the ring are the SubDevices nearer to the second interface, and its
            // branches.
            let onward = goes_on(USUAL_OUT as u8).map_or(0, |next| sizes[next]);
            let branches = sizes[number] - 1 - onward;
            return swapped(found.len() - 1 - number - branches, &behind[usize::from(place.processed)]);
        }
        here = goes_on(0);
    }
    Ok(())
}

/// Places of the SubDevices that frames reach as a line, if the times of all show them.
fn line(found: &[SubDevice]) -> Vec<Place> {
    let shown: Vec<_> = found.iter().map(|it| (it.dl_status, it.latched())).collect();
    match shown.iter().all(|(_, latched)| latched.is_some()) {
        true => topology::places(&shown).unwrap_or_default(),
        false => Vec::new(),
    }
}

/// Finds a SubDevice with swapped ports in a closed ring, which frames passed as a line, there and
/// back; `found` is in the order of processing.
pub(super) fn check_turned(found: &[SubDevice]) -> Result<(), BusError> {
    let mut shown: Vec<_> = found.iter().map(|it| (it.dl_status, it.latched())).collect();
    match turned_in_ring(&mut shown) {
        Ok(Some((position, processed))) => {
            let name = found[processed].name.clone();
            Err(BusError::SwappedInRing { position: position as u16, name })
        }
        Ok(None) | Err(NoTree) => Ok(()),
    }
}

/// Notes the SubDevices of a closed ring with implausible receive times, which are not used. They
/// say that IN and OUT of the SubDevice are swapped, although working counters contradict, or that
/// a frame took longer than any frame can. `found` is in the order of processing.
///
/// On branches IN and OUT may be swapped. So the times of one SubDevice are left out first, then
/// all.
pub(super) fn note_implausible_times(found: &mut [SubDevice]) {
    for it in found.iter_mut() {
        it.implausible_port =
            it.latched().and_then(|times| stale(it.dl_status, &times)).map(|port| port as u8);
    }
    let mut shown: Vec<_> = found.iter().map(|it| (it.dl_status, it.plausible_times())).collect();
    if turned_in_ring(&mut shown) == Ok(None) {
        return;
    }
    let turned: Vec<_> = (0..shown.len()).filter(|&it| is_turned(&shown[it])).collect();
    let explains = |&it: &usize| {
        let mut others = shown.clone();
        others[it].1 = None;
        turned_in_ring(&mut others) == Ok(None)
    };
    let implausible = match turned.iter().copied().find(explains) {
        Some(one) => vec![one],
        None => turned,
    };
    for place in implausible {
        found[place].implausible_port = Some(topology::entry(&shown[place]) as u8);
    }
}

/// The open port with a receive time further from port 0 than any frame takes.
fn stale(status: DlStatus, times: &LatchedTimes) -> Option<usize> {
    let open = (1..PORTS).filter(|&port| status.is_open(0) && status.is_open(port));
    let apart = |&port: &usize| (times.ports[port].wrapping_sub(times.ports[0]) as i32).unsigned_abs();
    let mut stale = open.filter(|port| apart(port) > LONGEST_WAY);
    stale.next()
}

/// True if its receive times say that frames enter at another port than 0.
fn is_turned(shown: &topology::Shown) -> bool {
    shown.1.is_some() && topology::entry(shown) != 0
}

/// Receive times that contradict each other in any ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NoTree;

/// The first SubDevice in a closed ring, not on a branch, that is the wrong way round by its
/// receive times: its place in the ring, and in the order of processing. `shown` is unchanged in
/// the end.
fn turned_in_ring(shown: &mut [topology::Shown]) -> Result<Option<(usize, usize)>, NoTree> {
    if !shown.iter().any(is_turned) {
        return Ok(None);
    }
    // One of them has the ring's far end: an open port without a SubDevice. The frame was away from
    // that port for the shortest time of all in the ring. A shorter branch of another SubDevice
    // cannot be the far end.
    let ports = |(number, it): (usize, &topology::Shown)| {
        let (it, entry) = (*it, topology::entry(it));
        let others = (0..PORTS).filter(move |&port| port != entry && it.0.is_open(port));
        others.map(move |port| (topology::away(&it, entry, port), number, port))
    };
    let mut ends: Vec<_> = shown.iter().enumerate().flat_map(ports).collect();
    ends.sort_unstable();
    for (_, last, port) in ends {
        let status = shown[last].0;
        shown[last].0.loop_closed[port] = true;
        let line = topology::tree(shown);
        shown[last].0 = status;
        let Some(line) = line else { continue };
        // From the far end back to the first interface.
        let mut here = line.iter().position(|place| usize::from(place.processed) == last);
        let mut swapped = None;
        while let Some(number) = here {
            swapped = (line[number].entry != 0).then_some(number).or(swapped);
            here = line[number].upstream.map(|upstream| upstream.position.into());
        }
        return Ok(swapped.map(|position| (position, line[position].processed.into())));
    }
    Err(NoTree)
}

/// Closes the ring in the data of `found`, in the order of processing: as if the cable behind
/// `before` of them were there.
pub(super) fn close(found: &mut [SubDevice], before: u16) -> Option<OpenRing> {
    let before = usize::from(before);
    let behind = found.get(before..)?;
    let turned = |it: &SubDevice| {
        let entry = topology::entry(&(it.dl_status, it.latched()));
        let node = ClockNode { entry: entry as u8, ..node(it) };
        it.latched().map_or(0, |latched| clock::before_processing(&node, &latched))
    };
    let to_the_break = behind.iter().map(turned).collect();
    if let Some(first) = found.get_mut(before) {
        first.dl_status = opened(first.dl_status, 0);
    }
    let links_before = before.checked_sub(1).map(|last| {
        let it = &mut found[last];
        let links = it.dl_status;
        // The ring continues behind the branches: usually at port 1, else at the first free port.
        let exists = |port: &usize| it.information.port_descriptor >> (2 * port) & 0b11 > NOT_CONFIGURED;
        let free: Vec<_> = topology::walk(0).skip(1).filter(exists).collect();
        let behind = free.iter().rposition(|&port| links.is_open(port)).map_or(0, |place| place + 1);
        let usual = free[behind..].iter().find(|&&port| port == USUAL_OUT);
        let out = usual.or(free.get(behind)).copied().unwrap_or(USUAL_OUT);
        it.dl_status = opened(links, out);
        links
    });
    Some(OpenRing { before, links_before, to_the_break })
}

impl OpenRing {
    /// Settings of all clocks, and the reference clock: in front of the break by receive times,
    /// behind it by the delays of the cables between the SubDevices.
    pub(super) fn clocks(
        &self,
        found: &[SubDevice],
        system_time: u64,
        is_stranger: impl Fn(usize) -> bool,
    ) -> (Vec<Option<ClockSetting>>, Option<usize>) {
        let has_clock = |place: usize| found[place].latched().filter(|_| !is_stranger(place));
        let in_front = |place: usize| has_clock(place).filter(|_| place < self.before);
        let mut nodes: Vec<_> = found.iter().map(node).collect();
        nodes.iter_mut().enumerate().for_each(|(place, node)| node.latched = in_front(place));
        if let (Some(links), Some(last)) = (self.links_before, self.before.checked_sub(1)) {
            nodes[last].status = links;
        }
        let mut settings = clock::settings(&nodes, system_time);
        let known: Vec<_> = settings.iter().flatten().map(|it| it.delay).collect();
        let last = known.iter().copied().max().unwrap_or(0);
        let behind: Vec<_> = (self.before..found.len()).filter(|&it| has_clock(it).is_some()).collect();
        let nearest = behind.first().copied();
        let start = nearest.map_or(0, |place| self.to_the_break[place - self.before]);
        let all =
            behind.iter().map(|&place| self.to_the_break[place - self.before].saturating_sub(start)).max();
        let cables = known.len().saturating_sub(1) + behind.len().saturating_sub(1);
        let hop = (last + all.unwrap_or(0) / 2).checked_div(cables as u32).unwrap_or(0);
        let base = if known.is_empty() { 0 } else { last + hop };
        let mut furthest = 0;
        for (place, setting) in settings.iter_mut().enumerate().skip(self.before) {
            // A SubDevice on a branch is about as far away as the one it is connected to.
            furthest = self.to_the_break[place - self.before].saturating_sub(start).max(furthest);
            *setting = has_clock(place).map(|latched| {
                let delay = base + furthest.div_ceil(2);
                let here = system_time.wrapping_add(delay.into());
                ClockSetting { offset: here.wrapping_sub(latched.processing_unit), delay }
            });
        }
        (settings, clock::reference(&nodes).or(nearest))
    }
}

fn node(it: &SubDevice) -> ClockNode {
    let SubDevice { dl_status: status, entry_port: entry, processed, upstream, .. } = *it;
    ClockNode { status, entry, processed, upstream, latched: it.latched() }
}

fn opened(mut status: DlStatus, port: usize) -> DlStatus {
    (status.communication[port], status.loop_closed[port]) = (true, false);
    status
}

/// Nanoseconds after which no frame returns: it was lost long before.
const LONGEST_WAY: u32 = 500_000_000;

/// OUT of an ESC with two ports.
const USUAL_OUT: usize = 1;

/// Port that the ESC has and the SII does not configure (0x0007).
const NOT_CONFIGURED: u8 = 1;
