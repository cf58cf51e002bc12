//! Tree of SubDevices, from their DL status and their receive times.
//!
//! A frame visits an ESC's open ports in the order 0, 3, 1, 2, beginning at its entry port, and is
//! processed between ports 0 and 3 (ESC data sheet, section I, 3.2). If it enters at port 0, as
//! usual, the ESC processes it before all SubDevices behind. If IN and OUT are swapped it enters at
//! another port, and the SubDevices at port 0 and at the ports before it process it first. So
//! positions, which count processing, are neither the order of the cable nor enough to find it.
//! Receive times decide: the port that latched earliest is the entry port, and a SubDevice behind a
//! port spends less time than the frame was away from that port.

use alloc::vec;
use alloc::vec::Vec;

use crate::register::DlStatus;
use crate::register::dl::{FORWARDING_ORDER, PORTS};

/// Place of a SubDevice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Upstream {
    /// Position of the SubDevice before it in the tree.
    pub position: u16,
    /// Port of that SubDevice.
    pub port: u8,
}

/// The place of one SubDevice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its place in the order of processing.
    pub processed: u16,
    /// The port frames come in at.
    pub entry: u8,
    /// Its parent, by places in the order of the cable; `None` for the first, which is connected to
    /// the MainDevice.
    pub upstream: Option<Upstream>,
}

/// Facts of a SubDevice that show its place: links, and receive times if it has a clock.
pub type Shown = (DlStatus, Option<LatchedTimes>);

/// The places of all SubDevices in the order of the cable, in which frames reach them; `shown` is
/// in the order of processing.
///
/// SubDevices without a clock count as entered at port 0 if it is open, unless that leaves no tree
/// and another port of one of them does.
///
/// # Errors
/// The position of the first SubDevice without an open port to connect to: link states that
/// contradict the count, as while a cable is being plugged.
pub fn places(shown: &[Shown]) -> Result<Vec<Place>, u16> {
    let entries: Vec<_> = shown.iter().map(entry).collect();
    if entries.iter().any(|&entry| entry != 0) {
        if let Some(places) = with_entries(shown, &entries) {
            return Ok(places);
        }
    }
    let error = match upstream_neighbours(shown) {
        Ok(upstream) => return Ok(in_order(upstream)),
        Err(position) => position,
    };
    by_elimination(shown, entries).ok_or(error)
}

/// The places of all SubDevices by the entry ports that their times show, and nothing else; `None`
/// if that is no tree.
pub(super) fn tree(shown: &[Shown]) -> Option<Vec<Place>> {
    let entries: Vec<_> = shown.iter().map(entry).collect();
    with_entries(shown, &entries)
}

/// The open port by which the frame came in: the earliest latched.
pub(super) fn entry((status, latched): &Shown) -> usize {
    let mut open = (0..PORTS).filter(|&port| status.is_open(port));
    let Some(first) = open.next() else { return 0 };
    let Some(LatchedTimes { ports: times, .. }) = latched else { return first };
    let is_earlier = |port: usize, than: usize| (times[port].wrapping_sub(times[than]) as i32) < 0;
    open.fold(first, |earliest, port| if is_earlier(port, earliest) { port } else { earliest })
}

/// All ports in the order of forwarding, from `entry` on.
pub(super) fn walk(entry: usize) -> impl Iterator<Item = usize> + Clone {
    let place = FORWARDING_ORDER.iter().position(|&port| port == entry).unwrap_or(0);
    (0..PORTS).map(move |ahead| FORWARDING_ORDER[(place + ahead) % PORTS])
}

/// One SubDevice without a clock is entered at another port.
fn by_elimination(shown: &[Shown], mut entries: Vec<usize>) -> Option<Vec<Place>> {
    for (number, (status, _)) in shown.iter().enumerate().filter(|(_, (_, latched))| latched.is_none()) {
        let before = entries[number];
        for port in (0..PORTS).filter(|&port| port != before && status.is_open(port)) {
            entries[number] = port;
            if let Some(places) = with_entries(shown, &entries) {
                return Some(places);
            }
        }
        entries[number] = before;
    }
    None
}

/// The tree in which every SubDevice is entered at its port of `entries`, if there is one.
fn with_entries(shown: &[Shown], entries: &[usize]) -> Option<Vec<Place>> {
    let mut search = Search::new(shown, entries);
    let root = search.root()?;
    let mut behind = vec![[None; PORTS]; shown.len()];
    for (number, upstream) in search.upstream.iter().enumerate().filter(|(number, _)| *number != root) {
        let (parent, port) = (*upstream)?;
        behind[parent][port] = Some(number);
    }
    // The way of a frame, which enters the next branch when it has come back from the previous one.
    let mut places: Vec<Place> = Vec::with_capacity(shown.len());
    let mut to_visit = vec![(root, None)];
    while let Some((number, upstream)) = to_visit.pop() {
        let position = places.len() as u16;
        let entry = entries[number];
        places.push(Place { processed: number as u16, entry: entry as u8, upstream });
        let branches: Vec<_> = walk(entry).skip(1).collect();
        for port in branches.into_iter().rev() {
            let upstream = Some(Upstream { position, port: port as u8 });
            to_visit.extend(behind[number][port].map(|child| (child, upstream)));
        }
    }
    Some(places)
}

/// Searches the tree that is processed in the order of the numbers.
///
/// A complete branch either belongs to the SubDevice before it at its current port, or waits for a
/// later one that the frame reached earlier. Times decide: the frame was away from the right port
/// for longer than it spent in the branch, and from the other ports that it fits even longer. Where
/// times leave both possible, both are tried.
struct Search<'a> {
    shown: &'a [Shown],
    entries: &'a [usize],
    /// Open ports that are visited before processing, and behind it.
    ports: Vec<[Vec<usize>; 2]>,
    /// Numbers with ports that are visited before processing, and the time that the frame was away
    /// from each.
    waiting_ports: Vec<(usize, u32)>,
    /// Parents, by numbers. Entries of abandoned branches are overwritten, except the root's.
    upstream: Vec<Option<(usize, usize)>>,
    alternatives: Vec<Partial>,
    /// Steps that alternatives may still take.
    budget: usize,
}

/// A tree as far as it has been searched.
#[derive(Clone, Debug, Default)]
struct Partial {
    next: usize,
    stack: Vec<Item>,
    /// The complete branch connected to the topmost of the stack.
    hangs: Option<u16>,
}

#[derive(Clone, Copy, Debug)]
enum Item {
    /// Processed; number of its ports after processing that have their branch.
    Open(u16, u8),
    /// A complete branch that waits for its parent.
    Branch(u16),
}

/// Steps of all alternatives together: contradictory times end in a moment.
const BUDGET: usize = 1 << 26;

impl<'a> Search<'a> {
    fn new(shown: &'a [Shown], entries: &'a [usize]) -> Self {
        let ports: Vec<_> =
            shown.iter().zip(entries).map(|((status, _), &it)| ports(*status, it)).collect();
        let upstream = vec![None; shown.len()];
        let (alternatives, budget) = (vec![Partial::default()], BUDGET);
        let mut search =
            Self { shown, entries, ports, waiting_ports: Vec::new(), upstream, alternatives, budget };
        for number in 0..shown.len() {
            let away = |&port: &usize| (number, search.away(number, port).unwrap_or(u32::MAX));
            let ports: Vec<_> = search.ports[number][0].iter().map(away).collect();
            search.waiting_ports.extend(ports);
        }
        search
    }

    /// The SubDevice connected to the MainDevice, once `upstream` is found.
    fn root(&mut self) -> Option<usize> {
        while let Some(partial) = self.alternatives.pop() {
            if let Some(root) = self.follow(partial) {
                return Some(root);
            }
        }
        None
    }

    fn follow(&mut self, mut partial: Partial) -> Option<usize> {
        if let Some(branch) = partial.hangs.take() {
            self.complete(usize::from(branch), true, &mut partial)?;
        }
        while partial.next < self.shown.len() {
            let number = partial.next;
            partial.next += 1;
            let first = partial.stack.len().checked_sub(self.ports[number][0].len())?;
            for (place, item) in partial.stack.drain(first..).enumerate() {
                let Item::Branch(branch) = item else { return None };
                let port = self.ports[number][0][place];
                self.hang(usize::from(branch), number, port)?;
            }
            if self.ports[number][1].is_empty() {
                self.complete(number, false, &mut partial)?;
            } else {
                partial.stack.push(Item::Open(number as u16, 0));
            }
        }
        match partial.stack[..] {
            [Item::Branch(root)] => Some(usize::from(root)),
            _ => None,
        }
    }

    /// The branch that begins with `root` is complete, and so may be the branches it belongs to;
    /// `hangs`: it is known not to wait.
    fn complete(&mut self, mut root: usize, mut hangs: bool, partial: &mut Partial) -> Option<()> {
        while let Some(&Item::Open(parent, done)) = partial.stack.last() {
            let (number, place) = (usize::from(parent), usize::from(done));
            let port = self.ports[number][1][place];
            let waiting = self.tightest_to_come(partial.next, root).filter(|_| !hangs);
            if let Some(waiting) = waiting {
                self.budget = self.budget.checked_sub(partial.stack.len() + self.shown.len())?;
                let mut other = partial.clone();
                if self.away(number, port).is_some_and(|now| waiting < now) {
                    other.hangs = Some(root as u16);
                    self.alternatives.push(other);
                    break;
                }
                other.stack.push(Item::Branch(root as u16));
                self.alternatives.push(other);
            }
            hangs = false;
            self.hang(root, number, port)?;
            partial.stack.pop();
            if place + 1 < self.ports[number][1].len() {
                partial.stack.push(Item::Open(parent, done + 1));
                return Some(());
            }
            root = number;
        }
        partial.stack.push(Item::Branch(root as u16));
        Some(())
    }

    /// The shortest time that the frame was away from a port visited before processing, among the
    /// SubDevices from `next` on that `branch` fits into.
    fn tightest_to_come(&self, next: usize, branch: usize) -> Option<u32> {
        let inside = self.inside(branch);
        let from = self.waiting_ports.partition_point(|(number, _)| *number < next);
        let away = self.waiting_ports[from..].iter().map(|&(_, away)| away);
        away.filter(|&away| fits(inside, Some(away))).min()
    }

    /// Connects `branch` to `port` of `parent`, unless the frame was away from there for less time
    /// than it spent in the branch.
    fn hang(&mut self, branch: usize, parent: usize, port: usize) -> Option<()> {
        self.upstream[branch] = Some((parent, port));
        fits(self.inside(branch), self.away(parent, port)).then_some(())
    }

    /// Time the frame was away from `port`, where there is a clock.
    fn away(&self, number: usize, port: usize) -> Option<u32> {
        away(&self.shown[number], self.entries[number], port)
    }

    /// Time the frame spent behind a SubDevice, where there is a clock.
    fn inside(&self, number: usize) -> Option<u32> {
        let ((status, latched), entry) = (self.shown[number], self.entries[number]);
        let last = walk(entry).filter(|&port| status.is_open(port)).last().unwrap_or(entry);
        latched.map(|latched| latched.ports[last].wrapping_sub(latched.ports[entry]))
    }
}

/// Time that the frame was away from `port` of a SubDevice with a clock that it entered at `entry`.
pub(super) fn away((status, latched): &Shown, entry: usize, port: usize) -> Option<u32> {
    let before = port_before(*status, entry, port);
    latched.map(|latched| latched.ports[port].wrapping_sub(latched.ports[before]))
}

/// True if a frame that was away for `away` can have spent `inside` in a branch; unknown times
/// always fit. Crystals differ by up to 200 ppm.
fn fits(inside: Option<u32>, away: Option<u32>) -> bool {
    inside.zip(away).is_none_or(|(inside, away)| away.saturating_add(away >> 12) >= inside)
}

/// The open ports that frames entering at `entry` visit before they are processed, and behind that.
fn ports(status: DlStatus, entry: usize) -> [Vec<usize>; 2] {
    let behind: Vec<_> = walk(entry).skip(1).collect();
    let before = behind.iter().position(|&port| port == 0).map_or(0, |place| place + 1);
    let (before, after) = behind.split_at(before);
    [before, after].map(|ports| ports.iter().copied().filter(|&port| status.is_open(port)).collect())
}

/// The open port by which the frame came back last before it left by `port`; at first the entry
/// port.
pub(super) fn port_before(status: DlStatus, entry: usize, port: usize) -> usize {
    let ahead = walk(entry).take_while(|&other| other != port);
    ahead.filter(|&other| other == entry || status.is_open(other)).last().unwrap_or(entry)
}

/// Place in the forwarding order of the first port behind port 0.
const AFTER_ENTRY: usize = 1;

/// The upstream neighbour of every SubDevice if all are entered at port 0; `None` for the first. A
/// depth-first walk over open ports.
fn upstream_neighbours(shown: &[Shown]) -> Result<Vec<Option<Upstream>>, u16> {
    let mut upstream = Vec::with_capacity(shown.len());
    // SubDevices on the way back to the MainDevice, each with its next port to try in forwarding
    // order.
    let mut path: Vec<(u16, usize)> = Vec::new();
    for position in 0..shown.len() as u16 {
        let neighbour = next_open_port(shown, &mut path);
        if position > 0 && neighbour.is_none() {
            return Err(position);
        }
        upstream.push(neighbour);
        path.push((position, AFTER_ENTRY));
    }
    Ok(upstream)
}

/// Leaves every SubDevice whose ports are used up, and takes the next open port of the first that
/// has one.
fn next_open_port(shown: &[Shown], path: &mut Vec<(u16, usize)>) -> Option<Upstream> {
    while let Some((position, next)) = path.last_mut() {
        while let Some(&port) = FORWARDING_ORDER.get(*next) {
            *next += 1;
            if shown[usize::from(*position)].0.is_open(port) {
                return Some(Upstream { position: *position, port: port as u8 });
            }
        }
        path.pop();
    }
    None
}

fn in_order(upstream: Vec<Option<Upstream>>) -> Vec<Place> {
    (0..).zip(upstream).map(|(processed, upstream)| Place { processed, entry: 0, upstream }).collect()
}

/// Times that one SubDevice latched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatchedTimes {
    /// Registers 0x0900 to 0x090F: receive time of each port, local, ns, wrapping at 32 bits.
    pub ports: [u32; PORTS],
    /// Register 0x0918: receive time of the processing unit, local, ns.
    pub processing_unit: u64,
}

/// The SubDevice and port that each is connected to; a circle is cut.
pub(super) fn parents(
    upstreams: impl ExactSizeIterator<Item = Option<Upstream>>,
) -> Vec<Option<(usize, usize)>> {
    let count = upstreams.len();
    let parent = |upstream: Option<Upstream>| {
        let upstream = upstream?;
        let (position, port) = (usize::from(upstream.position), usize::from(upstream.port));
        (position < count && port < PORTS).then_some((position, port))
    };
    let mut parents: Vec<_> = upstreams.map(parent).collect();
    // By SubDevice, the last walk upwards that came by.
    let mut walked = vec![None; count];
    for start in 0..count {
        let mut here = start;
        while walked[here].is_none() {
            walked[here] = Some(start);
            let Some((above, _)) = parents[here] else { break };
            if walked[above] == Some(start) {
                parents[here] = None;
                break;
            }
            here = above;
        }
    }
    parents
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(ports: &[usize]) -> DlStatus {
        let mut status = DlStatus::default();
        for &port in ports {
            status.communication[port] = true;
        }
        status
    }

    fn without_clock(ports: &[usize]) -> Shown {
        (open(ports), None)
    }

    /// With a clock: each open port, and when the frame came in there.
    fn clocked(ports: &[(usize, u32)]) -> Shown {
        let numbers: Vec<_> = ports.iter().map(|&(port, _)| port).collect();
        // What a closed port holds is of another day.
        let mut times = [0; PORTS];
        ports.iter().for_each(|&(port, time)| times[port] = time);
        (open(&numbers), Some(LatchedTimes { ports: times, processing_unit: 0 }))
    }

    fn tree(ports: &[&[usize]]) -> Result<Vec<Option<(u16, u8)>>, u16> {
        let shown: Vec<_> = ports.iter().map(|ports| without_clock(ports)).collect();
        let places = places(&shown)?;
        assert!(places.iter().zip(0..).all(|(it, number)| (it.processed, it.entry) == (number, 0)));
        Ok(places.iter().map(|it| it.upstream.map(|upstream| (upstream.position, upstream.port))).collect())
    }

    /// Number and entry of each in the order of the cable.
    fn cable(shown: &[Shown]) -> Vec<(u16, u8)> {
        places(shown).unwrap().iter().map(|it| (it.processed, it.entry)).collect()
    }

    #[test]
    fn line_connects_each_to_its_predecessor() {
        let found = tree(&[&[0, 1], &[0, 1], &[0]]).unwrap();
        assert_eq!(found, [None, Some((0, 1)), Some((1, 1))]);
    }

    #[test]
    fn a_coupler_serves_port_3_before_port_1() {
        // A coupler with terminals on port 3 (two of them); then the line continues at port 1.
        let found = tree(&[&[0, 1, 3], &[0, 1], &[0], &[0]]).unwrap();
        assert_eq!(found, [None, Some((0, 3)), Some((1, 1)), Some((0, 1))]);
    }

    // feature(main-device): tree from DL status
    #[test]
    fn a_junction_in_a_branch_returns_to_the_right_parent() {
        let found = tree(&[&[0, 1, 2, 3], &[0, 1, 3], &[0], &[0], &[0], &[0]]).unwrap();
        assert_eq!(found, [None, Some((0, 3)), Some((1, 3)), Some((1, 1)), Some((0, 1)), Some((0, 2))]);
    }

    #[test]
    fn one_subdevice_too_many_is_named() {
        assert_eq!(tree(&[&[0, 1], &[0], &[0]]), Err(2));
    }

    /// The same links, the same order of processing: only the times show which cable it is.
    #[test]
    fn swapped_in_mid_line_and_swapped_at_the_beginning() {
        let wrap = u32::MAX - 50;
        let last = clocked(&[(0, 7)]);
        let middle =
            [clocked(&[(0, 100), (1, 900)]), last, clocked(&[(0, wrap.wrapping_add(300)), (1, wrap)])];
        assert_eq!(cable(&middle), [(0, 0), (2, 1), (1, 0)]);
        let first =
            [clocked(&[(0, 100), (1, 400)]), last, clocked(&[(0, wrap.wrapping_add(800)), (1, wrap)])];
        assert_eq!(cable(&first), [(2, 1), (0, 0), (1, 0)]);
        let upstream: Vec<_> = places(&first).unwrap().iter().map(|it| it.upstream).collect();
        let at = |position, port| Some(Upstream { position, port });
        assert_eq!(upstream, [None, at(0, 0), at(1, 1)]);
    }

    #[test]
    fn last_of_a_line_is_found_swapped_without_a_clock() {
        let shown = [without_clock(&[0, 1]), without_clock(&[1])];
        assert_eq!(cable(&shown), [(0, 0), (1, 1)]);
    }

    #[test]
    fn one_without_a_clock_is_found_by_elimination() {
        // It is certain which one is swapped; its place would need times.
        let shown = [&[0, 1][..], &[0, 1], &[0], &[0, 1]].map(without_clock);
        assert_eq!(cable(&shown), [(3, 1), (0, 0), (1, 0), (2, 0)]);
    }

    /// A long line in which every tenth is swapped.
    #[test]
    fn long_lines_are_put_in_order() {
        const COUNT: usize = 1500;
        let is_swapped = |place: usize| place % 10 == 4;
        let hop = 400;
        let beyond = |place: usize| 2 * hop * (COUNT - 1 - place) as u32;
        let shown = |place: usize| match (place == COUNT - 1, is_swapped(place)) {
            (true, _) => clocked(&[(0, 3)]),
            (false, false) => clocked(&[(0, 50), (1, 50 + beyond(place))]),
            (false, true) => clocked(&[(1, 50), (0, 50 + beyond(place))]),
        };
        let straight = (0..COUNT).filter(|&place| !is_swapped(place));
        let back = (0..COUNT).rev().filter(|&place| is_swapped(place));
        let processed: Vec<_> = straight.chain(back).collect();
        let all: Vec<_> = processed.iter().map(|&place| shown(place)).collect();
        let found = places(&all).unwrap();
        let order: Vec<_> = found.iter().map(|it| processed[usize::from(it.processed)]).collect();
        assert_eq!(order, (0..COUNT).collect::<Vec<_>>());
    }

    #[test]
    fn times_without_a_tree_are_ignored() {
        let shown = [clocked(&[(0, 900), (1, 100)]), clocked(&[(0, 5), (1, 1)]), without_clock(&[0])];
        assert_eq!(cable(&shown), [(0, 0), (1, 0), (2, 0)]);
    }
}
