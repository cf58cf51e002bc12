//! A ring that is open when the bus comes up: two lines, of which the second is reached from its far end.
//!
//! SubDevices are processed in the order of the ring all the same: the second copy of a frame passes those behind the break from their far
//! end, and is processed on its way back. So the bus is taken as it will be when the ring is closed: the SubDevice in front of the
//! break and the one behind it are neighbours, and all are entered at port 0. Receive times of the second line tell how far its SubDevices are from the break,
//! and nothing of the cable that is open: that one is taken to be as long as the others are on average.
//!
//! Simplification: where IN and OUT of a SubDevice are swapped the ring has to be closed at the start.

use alloc::vec::Vec;

use crate::redundancy::Ring;
use crate::register::DlStatus;

use super::clock::{self, ClockNode, ClockSetting};
use super::sub_device::SubDevice;
use super::{MainDevice, topology};

/// The break, and the facts that closing it hides.
#[derive(Clone, Debug)]
pub(super) struct OpenRing {
    /// SubDevices in front of it.
    before: usize,
    /// Links of the SubDevice in front of it, as they are.
    links_before: Option<DlStatus>,
    /// Time of a frame from the entry of each SubDevice behind the break to the break and back, in the order of processing.
    to_the_break: Vec<u32>,
}

impl MainDevice {
    /// Takes the state of the ring from its link, before SubDevices are told by their places: the bus is brought up from both ends where it is
    /// open. [`crate::redundancy`] splices the replies.
    pub fn note_ring(&mut self, ring: Option<Ring>) {
        self.ring_open_behind = match ring {
            Some(Ring::Open { before }) => Some(before),
            Some(Ring::Closed) | None => None,
        };
    }
}

/// Closes the ring in what `found`, in the order of processing, show: as if the cable behind `before` of them were there.
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
        // The ring goes on behind the branches: as a rule at port 1, else at the first port that is free there.
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
    /// Settings of all clocks, and the reference clock: those in front of the break by their receive times, those behind it further away by
    /// the cables between them.
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
            // One on a branch is about as far as the one it hangs on.
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

/// OUT of an ESC with two ports.
const USUAL_OUT: usize = 1;

/// Port that the ESC has and the SII does not configure (0x0007).
const NOT_CONFIGURED: u8 = 1;
