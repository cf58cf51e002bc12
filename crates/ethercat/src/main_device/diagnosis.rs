//! Judgement over error counters, links and the tree: where a fault is, in a sentence.
//!
//! A port that receives a damaged frame counts an invalid frame, and the ESC marks the frame. From
//! there on, every port it enters counts a forwarded RX error, and every processing unit it passes
//! counts a processing unit error (ESC data sheet, section II, 2.9: 0x0300 to 0x0313). So the fault
//! is on the cable to the port that counts invalid frames; forwarded RX errors do not locate it. An
//! ESC without forwarded RX error counters counts marked frames as invalid ones: only its invalid
//! frames beyond the number of earlier damaged frames are attributed to its cable. Symbols with an
//! error outside frames are never forwarded.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use types::{CableEnd, ErrorCounters, PortErrorCounters};

use crate::link::End;
use crate::register::DlStatus;
use crate::register::dl::PORTS;

use super::sub_device::SubDevice;
use super::topology::{Upstream, port_before, walk};

/// One SubDevice to diagnose, in the order of the cable.
#[derive(Clone, Copy, Debug)]
pub struct Examined<'a> {
    /// Its name.
    pub name: &'a str,
    /// Port by which frames come in.
    pub entry_port: u8,
    /// Place in the tree; `None` for the first.
    pub upstream: Option<Upstream>,
    /// It is not on the bus, and need not be.
    pub is_absent: bool,
    /// Links and loops as they are now; `None` if it did not answer.
    pub links: Option<DlStatus>,
    /// Error counters as they are now, if it answered.
    pub counters: Option<ErrorCounters>,
    /// Earlier error counters: only errors counted since then are evaluated.
    pub before: Option<ErrorCounters>,
}

impl<'a> From<&'a SubDevice> for Examined<'a> {
    fn from(it: &'a SubDevice) -> Self {
        Self {
            name: &it.name,
            entry_port: it.entry_port,
            upstream: it.upstream,
            is_absent: it.is_absent,
            links: it.links,
            counters: it.error_counters,
            before: None,
        }
    }
}

/// Kind of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Frames are damaged on a cable.
    DamagedFrames,
    /// A link was lost, and is there again or not.
    LostLinks,
    /// A link is not there now.
    NoLink,
    /// A port has a link, and no frames come back through it.
    NoCommunication,
    /// A SubDevice does not answer, and no cable before it is known to have no link.
    NoAnswer,
    /// Frames that no cable has damaged are wrong.
    ProcessingUnit,
    /// Errors between an ESC and its application.
    Pdi,
    /// Error counters that count no further.
    FullCounters,
}

impl Fault {
    /// Its name for programs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DamagedFrames => "damaged_frames",
            Self::LostLinks => "lost_links",
            Self::NoLink => "no_link",
            Self::NoCommunication => "no_communication",
            Self::NoAnswer => "no_answer",
            Self::ProcessingUnit => "processing_unit",
            Self::Pdi => "pdi",
            Self::FullCounters => "full_counters",
        }
    }
}

/// Count that a counter stays at.
const FULL: u8 = ErrorCounters::FULL;

/// The end of a ring at one of the MainDevice's interfaces.
const fn interface(end: End) -> CableEnd {
    CableEnd { position: None, port: Some(end as u8) }
}

impl SubDevice {
    /// Both ends of its upstream cable, first the end nearer to the MainDevice; `None` if its place
    /// in the tree is unknown, as it joined after bring-up and its upstream port was not measured.
    #[must_use]
    pub fn cable(&self) -> Option<[CableEnd; 2]> {
        let end = |position: u16, port: u8| CableEnd { position: Some(position), port: Some(port) };
        let upstream = self.upstream.map(|it| end(it.position, it.port));
        let before = match upstream {
            None if self.is_unplaced => return None,
            upstream => upstream.unwrap_or(interface(End::First)),
        };
        Some([before, end(self.position, self.entry_port)])
    }
}

/// Both ends of the open cable of a ring, with `before` SubDevices in front of the break; the port
/// of a MainDevice's end is the number of its interface.
#[must_use]
pub fn ring_break(sub_devices: &[SubDevice], before: u16) -> [CableEnd; 2] {
    let end = |position: u16, port: u8| CableEnd { position: Some(position), port: Some(port) };
    if let Some(behind) = sub_devices.iter().find(|it| it.processed == before) {
        let upstream = behind.upstream.map(|it| end(it.position, it.port));
        return [upstream.unwrap_or(interface(End::First)), end(behind.position, behind.entry_port)];
    }
    // The port that has a link and no SubDevice behind it: there the ring continues.
    let is_taken = |it: &SubDevice, port: u8| {
        let here = Upstream { position: it.position, port };
        port == it.entry_port || sub_devices.iter().any(|other| other.upstream == Some(here))
    };
    let ports = |it: &SubDevice| {
        let free = (0..PORTS as u8).find(|&port| it.dl_status.is_open(port.into()) && !is_taken(it, port));
        free.map(|port| end(it.position, port))
    };
    let last = sub_devices.iter().rev().find_map(ports);
    [last.unwrap_or(CableEnd { position: None, port: None }), interface(End::Second)]
}

/// A fault and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Kind.
    pub fault: Fault,
    /// Both ends of a cable, that of the MainDevice's side first; or one port or SubDevice.
    pub ends: Vec<CableEnd>,
    /// Errors counted, if it is about a count; each counter stays at 255.
    pub count: u32,
    /// The same for people, with names.
    pub sentence: String,
}

/// Diagnoses all SubDevices of a bus.
///
/// Upstream places in a circle count as none; a SubDevice that was plugged elsewhere may be
/// connected to one behind it in the list.
#[must_use]
pub fn judge(examined: &[Examined<'_>]) -> Vec<Finding> {
    let mut judge = Judge::new(examined);
    judge.links();
    judge.lost_links();
    judge.damaged_frames();
    judge.devices();
    judge.findings
}

struct Judge<'a> {
    all: &'a [Examined<'a>],
    /// The SubDevice and port that each is connected to.
    parents: Vec<Option<(usize, usize)>>,
    /// Errors to evaluate.
    errors: Vec<ErrorCounters>,
    /// Children by port.
    behind: Vec<[Option<usize>; PORTS]>,
    /// All ports that frames come in at, in their order.
    path: Vec<(usize, usize)>,
    findings: Vec<Finding>,
}

impl<'a> Judge<'a> {
    fn new(all: &'a [Examined<'a>]) -> Self {
        let since = |it: &Examined<'_>| {
            let now = it.counters.unwrap_or_default();
            it.before.map_or(now, |before| now.since(before))
        };
        let parents = parents(all);
        let mut behind = vec![[None; PORTS]; all.len()];
        for (number, parent) in parents.iter().enumerate() {
            if let Some((parent, port)) = *parent {
                behind[parent][port] = Some(number);
            }
        }
        let errors = all.iter().map(since).collect();
        let mut judge = Self { all, parents, errors, behind, path: Vec::new(), findings: Vec::new() };
        judge.path = judge.path();
        judge
    }

    fn path(&self) -> Vec<(usize, usize)> {
        let mut path = Vec::with_capacity(2 * self.all.len());
        let roots = (0..self.all.len()).filter(|&number| self.parents[number].is_none());
        for root in roots {
            // Comes in at a port; with `true` for the first time.
            let mut to_visit = vec![(root, self.entry(root), true)];
            while let Some((number, port, is_new)) = to_visit.pop() {
                path.push((number, port));
                if !is_new {
                    continue;
                }
                let ports: Vec<_> = walk(port).skip(1).collect();
                for port in ports.into_iter().rev() {
                    if let Some(child) = self.behind[number][port] {
                        to_visit.extend([(number, port, false), (child, self.entry(child), true)]);
                    }
                }
            }
        }
        path
    }

    fn entry(&self, number: usize) -> usize {
        usize::from(self.all[number].entry_port) % PORTS
    }

    /// The cable at a port, by the SubDevice it leads to.
    fn cable(&self, number: usize, port: usize) -> Option<usize> {
        if port == self.entry(number) { Some(number) } else { self.behind[number][port] }
    }

    /// Ports without a cable to a SubDevice that is known.
    fn uncabled(&self, number: usize) -> Vec<usize> {
        (0..PORTS).filter(|&port| self.cable(number, port).is_none()).collect()
    }

    /// Both ends of the cable to `number`; the first is the MainDevice's where no SubDevice is
    /// before it.
    fn ends(&self, number: usize) -> [Option<(usize, usize)>; 2] {
        [self.parents[number], Some((number, self.entry(number)))]
    }

    fn open(&self, end: Option<(usize, usize)>) -> Option<bool> {
        let (number, port) = end?;
        Some(self.all[number].links?.is_open(port))
    }

    /// Links that are not there, and SubDevices that do not answer although theirs are.
    fn links(&mut self) {
        let count = self.all.len();
        // By SubDevice, the cable before it that is broken.
        let mut broken: Vec<Option<usize>> = vec![None; count];
        let first_times = self.path.iter().filter(|&&(number, port)| port == self.entry(number));
        for &(number, _) in first_times {
            let above = self.parents[number].and_then(|(parent, _)| broken[parent]);
            let is_broken = self.ends(number).into_iter().any(|end| self.open(end) == Some(false));
            broken[number] = above.or_else(|| is_broken.then_some(number));
        }
        let silent = self.silent();
        for number in 0..count {
            if self.all[number].is_absent {
                continue;
            }
            match broken[number] {
                Some(cable) if cable == number => {
                    let cut =
                        (0..count).filter(|&it| broken[it] == Some(number) && self.all[it].links.is_none());
                    let cut = match cut.count() {
                        0 => String::new(),
                        1 => "; 1 SubDevice does not answer".to_owned(),
                        cut => format!("; {cut} SubDevices do not answer"),
                    };
                    let cause = "a cable that is out or broken, or a SubDevice without power";
                    self.find_cable(Fault::NoLink, number, 0, |between| {
                        format!("no link between {between}: {cause}{cut}")
                    });
                }
                None if silent[number] == Some(number) => {
                    let behind = silent.iter().filter(|it| **it == Some(number)).count() - 1;
                    self.no_answer(number, behind);
                }
                _ => {}
            }
            for port in self.uncabled(number) {
                let links = self.all[number].links.unwrap_or_default();
                if links.link[port] && !links.is_open(port) {
                    let place = self.place(number, port);
                    let sentence = format!("{place} has a link, and no frames come back through it");
                    self.find(Fault::NoCommunication, (number, Some(port)), 0, sentence);
                }
            }
        }
    }

    /// By SubDevice that does not answer, the first one towards the MainDevice that does not.
    fn silent(&self) -> Vec<Option<usize>> {
        let mut silent = vec![None; self.all.len()];
        let first_times = self.path.iter().filter(|&&(number, port)| port == self.entry(number));
        for &(number, _) in first_times.filter(|&&(number, _)| self.all[number].links.is_none()) {
            let above = self.parents[number].and_then(|(parent, _)| silent[parent]);
            silent[number] = above.or_else(|| (!self.all[number].is_absent).then_some(number));
        }
        silent
    }

    /// Names cable and power of a SubDevice that does not answer; `behind` more are behind it.
    fn no_answer(&mut self, number: usize, behind: usize) {
        let has_link = if self.parents[number].is_some() { ", but has a link" } else { "" };
        let behind = match behind {
            0 => String::new(),
            1 => "; 1 SubDevice behind it does not answer either".to_owned(),
            behind => format!("; {behind} SubDevices behind it do not answer either"),
        };
        let name = self.name(number);
        self.find_cable(Fault::NoAnswer, number, 0, |between| {
            format!(
                "{name} does not answer{has_link}: check its power, and the cable between {between}{behind}"
            )
        });
    }

    fn lost_links(&mut self) {
        let lost = |judge: &Self, end: Option<(usize, usize)>| {
            end.map_or(0, |(number, port)| judge.errors[number].ports[port].lost_links)
        };
        for number in 0..self.all.len() {
            let count = self.ends(number).into_iter().map(|end| lost(self, end)).max().unwrap_or(0);
            if count > 0 {
                let cause = "a loose or damaged cable, or power that went away";
                self.find_cable(Fault::LostLinks, number, count.into(), |between| {
                    format!("the link between {between} was lost {}: {cause}", times(count))
                });
            }
            for port in self.uncabled(number) {
                let count = lost(self, Some((number, port)));
                if count > 0 {
                    let place = self.place(number, port);
                    let sentence =
                        format!("at {place} a link was lost {}; no SubDevice is known there", times(count));
                    self.find(Fault::LostLinks, (number, Some(port)), count.into(), sentence);
                }
            }
        }
    }

    /// Frames damaged on a cable: the one before the port that first receives them.
    fn damaged_frames(&mut self) {
        // Counts of their own, of the upstream end and the other, by cable.
        let mut own = vec![[PortErrorCounters::default(); 2]; self.all.len()];
        let mut marked = 0;
        for &(number, port) in &self.path {
            let found = self.own_errors(number, port, marked);
            marked += u32::from(found.invalid_frames);
            if let Some(cable) = self.cable(number, port) {
                own[cable][usize::from(port == self.entry(number))] = found;
            }
        }
        for (cable, ends) in own.into_iter().enumerate() {
            let seen = self.ends(cable).into_iter().zip(ends);
            let words: Vec<_> = seen.filter_map(|(end, seen)| self.counted(end?, seen)).collect();
            if words.is_empty() {
                continue;
            }
            let count = ends.map(|it| u32::from(it.invalid_frames) + u32::from(it.rx_errors));
            let words = words.join(", ");
            self.find_cable(Fault::DamagedFrames, cable, count.iter().sum(), |between| {
                format!("the fault is between {between}: {words}; check this cable and its connectors")
            });
        }
        for number in 0..self.all.len() {
            for port in self.uncabled(number) {
                let seen = self.errors[number].ports[port];
                let count = u32::from(seen.invalid_frames) + u32::from(seen.rx_errors);
                if let Some(words) = self.counted((number, port), seen) {
                    let sentence = format!("{words}; no SubDevice is known there now");
                    self.find(Fault::DamagedFrames, (number, Some(port)), count, sentence);
                }
            }
        }
    }

    /// Errors of the cable to this port, with `marked` frames damaged before.
    fn own_errors(&self, number: usize, port: usize, marked: u32) -> PortErrorCounters {
        let found = self.errors[number].ports[port];
        let counts_forwarded = self.errors[number].ports.iter().any(|it| it.forwarded_rx_errors > 0);
        if counts_forwarded || found.rx_errors > 0 {
            return found;
        }
        let marked = u8::try_from(marked).unwrap_or(FULL);
        PortErrorCounters { invalid_frames: found.invalid_frames.saturating_sub(marked), ..found }
    }

    fn counted(&self, (number, port): (usize, usize), seen: PortErrorCounters) -> Option<String> {
        let invalid = (seen.invalid_frames, "invalid frame");
        let counts = [invalid, (seen.rx_errors, "RX error")];
        let words: Vec<_> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|&(count, what)| plural(count, what))
            .collect();
        (!words.is_empty()).then(|| format!("{} at {}", words.join(" and "), self.place(number, port)))
    }

    /// Errors inside a SubDevice, and full counters.
    fn devices(&mut self) {
        // A frame that is wrong is so at everybody behind, too.
        let mut before = 0;
        for (number, _) in self.path.clone() {
            let unexplained = self.unexplained(number);
            if unexplained > before {
                before = unexplained;
                let sentence = format!(
                    "{} is the first with {} that its processing unit counts and no port does: \
                     frames that are not EtherCAT frames, sent from the MainDevice's side",
                    self.name(number),
                    plural(unexplained, "wrong frame"),
                );
                self.find(Fault::ProcessingUnit, (number, None), unexplained.into(), sentence);
            }
        }
        for number in 0..self.all.len() {
            let (pdi, name) = (self.errors[number].pdi_errors, self.name(number));
            if pdi > 0 {
                let errors = plural(pdi, "error");
                let sentence = format!("{name} counts {errors} between its ESC and its application (PDI)");
                self.find(Fault::Pdi, (number, None), pdi.into(), sentence);
            }
            if self.all[number].before.is_some_and(|before| before.is_full()) {
                let sentence = format!(
                    "{name} has error counters that have reached {FULL}, their highest value: clear them"
                );
                self.find(Fault::FullCounters, (number, None), 0, sentence);
            }
        }
    }

    /// Errors of a processing unit beyond the errors of the port before it.
    fn unexplained(&self, number: usize) -> u8 {
        let errors = self.errors[number];
        let links = self.all[number].links.unwrap_or_default();
        let entry = self.entry(number);
        let before = if entry == 0 || links.is_open(0) { 0 } else { port_before(links, entry, 0) };
        let port = errors.ports[before];
        errors
            .processing_unit_errors
            .saturating_sub(port.invalid_frames.saturating_add(port.forwarded_rx_errors))
    }

    fn name(&self, number: usize) -> String {
        format!("SubDevice {number} \"{}\"", self.all[number].name)
    }

    fn place(&self, number: usize, port: usize) -> String {
        format!("{} port {port}", self.name(number))
    }

    fn find_cable(&mut self, fault: Fault, cable: usize, count: u32, words: impl FnOnce(&str) -> String) {
        let end = |end: &Option<(usize, usize)>| CableEnd {
            position: end.map(|(number, _)| number as u16),
            port: end.map(|(_, port)| port as u8),
        };
        let place = |end: Option<(usize, usize)>| {
            end.map_or_else(|| "the MainDevice".to_owned(), |(number, port)| self.place(number, port))
        };
        let ends = self.ends(cable);
        let sentence = words(&ends.map(place).join(" and "));
        self.findings.push(Finding { fault, ends: ends.iter().map(end).collect(), count, sentence });
    }

    fn find(&mut self, fault: Fault, (number, port): (usize, Option<usize>), count: u32, sentence: String) {
        let end = CableEnd { position: Some(number as u16), port: port.map(|port| port as u8) };
        self.findings.push(Finding { fault, ends: vec![end], count, sentence });
    }
}

/// The SubDevice and port that each is connected to; a circle is cut.
fn parents(all: &[Examined<'_>]) -> Vec<Option<(usize, usize)>> {
    let parent = |it: &Examined<'_>| {
        let upstream = it.upstream?;
        let (position, port) = (usize::from(upstream.position), usize::from(upstream.port));
        (position < all.len() && port < PORTS).then_some((position, port))
    };
    let mut parents: Vec<_> = all.iter().map(parent).collect();
    // By SubDevice, the last walk upwards that came by.
    let mut walked = vec![None; all.len()];
    for start in 0..all.len() {
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

fn plural(count: u8, what: &str) -> String {
    let least = if count == FULL { "at least " } else { "" };
    let plural = if count == 1 { "" } else { "s" };
    format!("{least}{count} {what}{plural}")
}

fn times(count: u8) -> String {
    match count {
        1 => "once".to_owned(),
        FULL => format!("at least {FULL} times"),
        count => format!("{count} times"),
    }
}

#[cfg(test)]
mod tests;
