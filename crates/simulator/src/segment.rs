//! Segment: SubDevices joined by cables, which answer frames.
//!
//! Every frame is forwarded, with any contents; the valid part is processed, up to the first
//! datagram that reaches past the end (ESC data sheet, section I, 3). The length in its EtherCAT
//! header is ignored.
//!
//! Simplifications: all datagrams of a frame carry the events at the arrival of the frame. The
//! circulating bit of an arriving frame is ignored. There is no frame check sequence: the part of a
//! broken frame that has passed takes effect. On a ring ([`Segment::close_ring`]) a frame is in one
//! place at a time: it passes all of its way before the next one begins. EtherCAT in UDP and behind
//! VLAN tags counts as another protocol.

mod dispatch;
mod stations;
mod topology;

use core::time::Duration;

use ethercat::link::{self, End};
use ethercat::register::dc::{self, LATCH_INPUTS};
use ethercat::register::dl::{DlStatus, PORTS};
use ethercat::time::Instant;
use ethercat::wire::datagram::HEADER_LENGTH;
use ethercat::wire::ethernet::{self, PROCESSED_BIT, SOURCE_OFFSET};
use ethercat::wire::frame::{DATAGRAMS_OFFSET, DatagramPlace, FrameError, checked_end, place_at, places};

pub use topology::{Attachment, CABLE_DELAY, TopologyError};

use crate::esc::Changes;
use crate::sub_device::SubDevice;
use stations::Schedule;
use topology::{Loop, Route, Topology};

/// SubDevices and the cables between them.
///
/// Time is a parameter: it begins with the first call, when all SubDevices get power. It never runs
/// backwards; an earlier instant counts as the latest one so far. Applications are stepped every
/// [`STEP`](crate::sub_device::STEP), with or without frames. A SubDevice without effective steps
/// rests until a frame or its own time wakes it.
pub struct Segment {
    devices: Vec<SubDevice>,
    topology: Topology,
    /// Path of the frames that are passing.
    route: Route,
    /// Path of frames that enter at the other end of a ring.
    other_route: Route,
    schedule: Schedule,
    /// Changes of SubDevices that have not been followed yet.
    changes: Changes,
    /// An ESC has an event mask.
    has_event_masks: bool,
    /// SubDevices that are plain logic, unless one may have been replaced since.
    logic: Option<Vec<usize>>,
    now: Option<Instant>,
    scratch: Box<[u8; link::MAXIMUM_FRAME_LENGTH]>,
}

impl Segment {
    /// A line: each SubDevice at port 1 of the previous one, with cables of [`CABLE_DELAY`].
    #[must_use]
    pub fn new(devices: Vec<SubDevice>) -> Self {
        Self::with_cable_delay(devices, CABLE_DELAY)
    }

    /// A line with cables of `delay`.
    #[must_use]
    pub fn with_cable_delay(devices: Vec<SubDevice>, delay: Duration) -> Self {
        let attachments: Vec<_> =
            (1..devices.len()).map(|child| Attachment::new(child - 1, 1).with_delay(delay)).collect();
        match Topology::new(devices.len(), 0, &attachments) {
            Ok(topology) => Self::join(devices, topology),
            Err(error) => unreachable!("a line is a topology: {error}"),
        }
    }

    /// A tree: `attachments` of all SubDevices but the first.
    ///
    /// Auto-increment positions follow the path of the frame (ports 3, 1, 2), not the order of the
    /// list; the two agree where SubDevices are listed in that order.
    ///
    /// # Errors
    /// [`TopologyError`]: a wrong number of attachments, a parent after its child, a port that does
    /// not exist or is in use.
    pub fn with_topology(
        devices: Vec<SubDevice>,
        attachments: &[Attachment],
    ) -> Result<Self, TopologyError> {
        Self::entered_at(0, devices, attachments)
    }

    /// A tree with the MainDevice's cable in port `entry` of the first SubDevice, as where its IN
    /// and OUT are swapped.
    ///
    /// # Errors
    /// As [`Self::with_topology`], and an `entry` that is not a port.
    pub fn entered_at(
        entry: usize,
        devices: Vec<SubDevice>,
        attachments: &[Attachment],
    ) -> Result<Self, TopologyError> {
        let topology = Topology::new(devices.len(), entry, attachments)?;
        Ok(Self::join(devices, topology))
    }

    fn join(devices: Vec<SubDevice>, topology: Topology) -> Self {
        let scratch = Box::new([0; link::MAXIMUM_FRAME_LENGTH]);
        let (route, other_route) = (Route::default(), Route::default());
        let (schedule, changes) = (Schedule::new(devices.len()), Changes::ALL);
        let mut segment = Self {
            devices,
            topology,
            route,
            other_route,
            schedule,
            changes,
            has_event_masks: true,
            logic: None,
            now: None,
            scratch,
        };
        segment.links_changed();
        segment
    }

    /// Makes it a ring: a cable from `port` of the SubDevice at `position` to the MainDevice's
    /// second interface.
    ///
    /// # Errors
    /// [`TopologyError::RingEnd`]: the port does not exist or is in use, or there is a ring
    /// already.
    pub fn close_ring(&mut self, position: usize, port: usize) -> Result<(), TopologyError> {
        self.topology.close_ring(position, port)?;
        self.links_changed();
        Ok(())
    }

    /// SubDevices, in the order of their list.
    #[must_use]
    pub fn sub_devices(&self) -> &[SubDevice] {
        &self.devices
    }

    /// SubDevice at `position` of that list, for changes.
    pub fn sub_device_mut(&mut self, position: usize) -> Option<&mut SubDevice> {
        let device = self.devices.get_mut(position)?;
        device.wake(self.now.unwrap_or(Instant::EPOCH));
        self.schedule.set(position, Some(Instant::EPOCH));
        self.logic = None;
        Some(device)
    }

    /// True if a cable belongs in `port` of the SubDevice at `position`, plugged or not.
    #[must_use]
    pub fn has_cable(&self, position: usize, port: usize) -> bool {
        self.topology.cables.get(position).and_then(|ports| ports.get(port)).is_some_and(Option::is_some)
    }

    /// Disconnects the cable from `port` of the SubDevice at `position`. At the entry port of the
    /// first SubDevice it is the MainDevice's cable. Returns `true` if there was a cable.
    pub fn disconnect(&mut self, position: usize, port: usize) -> bool {
        let pulled = self.plug(position, port, false);
        if pulled {
            self.links_changed();
        }
        pulled
    }

    /// Connects the disconnected cable to `port` of the SubDevice at `position` again. Returns
    /// `true` if there was one.
    pub fn connect(&mut self, position: usize, port: usize) -> bool {
        let plugged = self.plug(position, port, true);
        if plugged {
            self.links_changed();
        }
        plugged
    }

    /// Switches the power of the SubDevice at `position` off and on at once: it is in Init, without
    /// a station address. Returns `true` if there is such a SubDevice.
    pub fn power_cycle(&mut self, position: usize) -> bool {
        self.power_off(position);
        self.power_on(position)
    }

    /// Switches off the power of the SubDevice at `position`: its neighbours lose their links to
    /// it, no frame passes it, and its time stops until [`power_on`](Self::power_on). Returns
    /// `true` if it had power.
    pub fn power_off(&mut self, position: usize) -> bool {
        if !self.topology.powered.get(position).is_some_and(|powered| *powered) {
            return false;
        }
        for cable in self.topology.cables[position].into_iter().flatten() {
            if let (Some(neighbour), true) = (cable.neighbour, cable.plugged) {
                self.devices[neighbour].esc_mut().count_lost_link(cable.port);
            }
        }
        self.topology.powered[position] = false;
        self.links_changed();
        true
    }

    /// Switches on the power of the SubDevice at `position`: it is in Init, and station address,
    /// SyncManagers, FMMUs, clocks and objects have their initial values. Returns `true` if it had
    /// no power.
    pub fn power_on(&mut self, position: usize) -> bool {
        if self.topology.powered.get(position) != Some(&false) {
            return false;
        }
        self.topology.powered[position] = true;
        self.devices[position].power_on(self.now.unwrap_or(Instant::EPOCH));
        self.turned_to(position);
        self.links_changed();
        true
    }

    /// True if the SubDevice at `position` has power. One without power keeps its last state for
    /// display.
    #[must_use]
    pub fn is_powered(&self, position: usize) -> bool {
        self.topology.powered.get(position) == Some(&true)
    }

    /// Jumps the local clock of the SubDevice at `position` by `by` ns, forward or back. Returns
    /// `true` if there is such a SubDevice.
    pub fn jump_clock(&mut self, position: usize, by: i64) -> bool {
        let now = self.now.unwrap_or(Instant::EPOCH);
        let Some(device) = self.devices.get_mut(position) else { return false };
        device.esc_mut().jump_clock(now, by);
        self.turned_to(position);
        true
    }

    /// Sets the level of a latch input, 0 or 1, of the SubDevice at `position`. Returns `true` if
    /// there is such an input.
    pub fn set_latch(&mut self, position: usize, input: usize, high: bool) -> bool {
        let now = self.now.unwrap_or(Instant::EPOCH);
        let Some(device) = self.devices.get_mut(position).filter(|_| input < LATCH_INPUTS) else {
            return false;
        };
        device.set_latch(now, input, high);
        device.esc().features().distributed_clocks()
    }

    /// Counts a frame that was damaged on the cable to `port` of the SubDevice at `position`: as
    /// invalid there, and as forwarded at every later port and by the processing units it passes
    /// (ESC data sheet, section II, 2.9). In a ring it is a frame from the end that enters at this
    /// port, the first end if both do.
    pub fn disturb(&mut self, position: usize, port: usize) {
        let Some(device) = self.devices.get_mut(position).filter(|_| port < PORTS) else { return };
        device.esc_mut().count_invalid_frame(port);
        let arrival = |route: &Route| {
            let mut hops = route.hops.iter().chain(&route.passed);
            hops.find(|hop| hop.device == position).and_then(|hop| hop.ports[port])
        };
        let mut routes = [&self.route, &self.other_route].into_iter();
        let Some((route, at)) = routes.find_map(|route| Some((route, arrival(route)?))) else { return };
        for hop in route.hops.iter().chain(&route.passed) {
            let esc = self.devices[hop.device].esc_mut();
            for (port, arrival) in hop.ports.iter().enumerate() {
                if arrival.is_some_and(|arrival| arrival > at) {
                    esc.count_forwarded_rx_error(port);
                }
            }
        }
        for hop in route.hops.iter().filter(|hop| hop.arrival >= at) {
            self.devices[hop.device].esc_mut().count_processing_unit_error();
        }
    }

    fn plug(&mut self, position: usize, port: usize, plugged: bool) -> bool {
        let was_linked =
            position < self.devices.len() && port < PORTS && self.topology.has_link(position, port);
        let Some(Some(cable)) =
            self.topology.cables.get_mut(position).and_then(|ports| ports.get_mut(port))
        else {
            return false;
        };
        if cable.plugged == plugged {
            return false;
        }
        cable.plugged = plugged;
        let other_end = (cable.neighbour, cable.port);
        let mut ends = vec![(position, port)];
        if let (Some(neighbour), there) = other_end {
            if let Some(cable) = &mut self.topology.cables[neighbour][there] {
                cable.plugged = plugged;
            }
            ends.push((neighbour, there));
        }
        if was_linked {
            ends.iter().for_each(|&(device, port)| self.devices[device].esc_mut().count_lost_link(port));
        }
        true
    }

    /// Updates DL status and the path of frames after a change of links or loop settings.
    fn links_changed(&mut self) {
        let mut loops = Vec::with_capacity(self.devices.len());
        for (number, device) in self.devices.iter_mut().enumerate() {
            let link: [bool; PORTS] = core::array::from_fn(|port| self.topology.has_link(number, port));
            let ports = core::array::from_fn(|port| match (device.esc().loop_control(port), link[port]) {
                (0 | 1, true) | (2, _) => Loop::Open,
                _ => Loop::Closed,
            });
            let loop_closed = ports.map(|port| port == Loop::Closed);
            device.esc_mut().set_dl_status(DlStatus {
                link,
                loop_closed,
                communication: link,
                ..DlStatus::default()
            });
            loops.push(ports);
        }
        let delays: Vec<_> = self.devices.iter().map(|device| device.esc().forwarding_delay()).collect();
        let route = |end| Route::trace(&self.topology, end, &loops, &delays);
        (self.route, self.other_route) = (route(End::First), route(End::Second));
    }

    /// Advances time to `now`; returns the latest instant so far.
    fn pass_time(&mut self, now: Instant) -> Instant {
        let begins = self.now.is_none();
        let now = now.min(END_OF_TIME);
        let now = self.now.map_or(now, |before| before.max(now));
        self.now = Some(now);
        if begins {
            let powered =
                self.devices.iter_mut().zip(&self.topology.powered).filter(|(_, powered)| **powered);
            powered.for_each(|(device, _)| device.power_on(now));
            self.links_changed();
        }
        if self.schedule.has_come(now) {
            for device in 0..self.devices.len() {
                if self.schedule.is_due(device, now) {
                    if self.topology.powered[device] {
                        self.devices[device].advance(now);
                    }
                    self.turned_to(device);
                }
            }
            self.schedule.settle();
        }
        self.follow_changes();
        now
    }

    /// Updates the state of a SubDevice after a step or an access: its next due time, and its
    /// changes.
    fn turned_to(&mut self, device: usize) {
        self.devices[device].met(self.now.unwrap_or(Instant::EPOCH));
        let due = self.devices[device].due().filter(|_| self.topology.powered[device]);
        self.schedule.set(device, due);
        let changes = self.devices[device].esc_mut().take_changes();
        self.follow_addresses(changes);
        self.changes.add(changes);
    }

    /// Addresses count from the next datagram on.
    fn follow_addresses(&mut self, changes: Changes) {
        for route in [&mut self.route, &mut self.other_route] {
            if changes.stations {
                route.addresses.forget_stations();
            }
            if changes.fmmus {
                route.addresses.forget_spans();
            }
        }
    }

    /// Follows what has changed, between two frames.
    fn follow_changes(&mut self) {
        let changes = core::mem::take(&mut self.changes);
        if changes.protection {
            self.devices.iter_mut().for_each(|device| device.esc_mut().close_protection());
        }
        if changes.events {
            self.has_event_masks = self.devices.iter().any(|device| device.esc().has_event_mask());
        }
        if changes.links {
            self.links_changed();
        }
    }

    /// True if every SubDevice forwards frames of other protocols (0x0100 bit 0).
    fn forwards_others(&self) -> bool {
        self.route.hops.iter().all(|hop| !self.devices[hop.device].esc().destroys_others())
    }

    fn count_processing_unit_errors(&mut self) {
        for hop in &self.route.hops {
            self.devices[hop.device].esc_mut().count_processing_unit_error();
        }
    }

    /// Passes all datagrams through all SubDevices.
    fn process_datagrams(&mut self, now: Instant, frame: &mut [u8]) -> Result<(), FrameError> {
        let hops = self.route.hops.iter().filter(|_| self.has_event_masks);
        let interrupt = hops.fold(0, |bits, hop| bits | self.devices[hop.device].esc().interrupt());
        let mut offset = DATAGRAMS_OFFSET;
        loop {
            let place = place_at(frame, offset, frame.len())?;
            let mut header = place.header;
            let counter = place.working_counter();
            let mut working_counter = u16::from_le_bytes([frame[counter], frame[counter + 1]]);
            self.process_datagram(now, &mut header, &mut frame[place.data()], &mut working_counter);
            header.interrupt |= interrupt;
            header.circulating |= self.route.circulates;
            frame[offset..offset + HEADER_LENGTH].copy_from_slice(&header.emit());
            frame[counter..counter + 2].copy_from_slice(&working_counter.to_le_bytes());
            offset = place.end();
            if !header.more_follows {
                return Ok(());
            }
        }
    }
}

/// Latest time, 292 years after the epoch: time stops there, so that sums of times do not overflow.
const END_OF_TIME: Instant = Instant::from_nanos(u64::MAX / 2);

impl Segment {
    /// Passes a frame along the path.
    fn pass_frame(&mut self, end: End, now: Instant, frame: &mut [u8]) -> Option<End> {
        let first = self.route.hops.first().or(self.route.passed.first())?.device;
        if !(ethernet::HEADER_LENGTH..=link::MAXIMUM_FRAME_LENGTH).contains(&frame.len()) {
            // Not an Ethernet frame: its receiver drops it.
            self.devices[first].esc_mut().count_invalid_frame(0);
            return None;
        }
        self.latch_passing(end, now, frame);
        if self.route.hops.is_empty() {
            return self.route.returns;
        }
        frame[SOURCE_OFFSET] |= PROCESSED_BIT;
        match checked_end(frame) {
            Err(FrameError::NotEtherCat { .. }) if !self.forwards_others() => return None,
            Err(FrameError::NotEtherCat { .. } | FrameError::WrongType { .. }) => {}
            Err(FrameError::TooShort { .. }) => self.count_processing_unit_errors(),
            _ if self.process_datagrams(now, frame).is_err() => self.count_processing_unit_errors(),
            _ => {}
        }
        self.route.returns
    }

    /// Lets SubDevices latch that a latching frame passes without being processed. This happens to
    /// a frame that was processed on its way there, because an ESC cannot distinguish it from its
    /// own returning frame. It also happens to a frame from the first end that is processed on its
    /// way back, where IN and OUT are swapped.
    fn latch_passing(&mut self, end: End, now: Instant, frame: &[u8]) {
        let latches = |place: DatagramPlace| {
            let header = place.header;
            header.command.writes() && !header.command.is_logical() && header.ado() == dc::RECEIVE_TIME
        };
        if self.route.passed.is_empty()
            || end == End::Second && frame[SOURCE_OFFSET] & PROCESSED_BIT == 0
            || !places(frame).any(latches)
        {
            return;
        }
        for hop in &self.route.passed {
            self.devices[hop.device].esc_mut().latch_ports(&dispatch::passage(now, hop));
        }
    }
}

impl link::Segment for Segment {
    fn process_frame(&mut self, now: Instant, frame: &mut [u8]) -> bool {
        self.process_frame_at(End::First, now, frame) == Some(End::First)
    }

    fn process_frame_at(&mut self, end: End, now: Instant, frame: &mut [u8]) -> Option<End> {
        let now = self.pass_time(now);
        let is_second = end == End::Second;
        if is_second {
            core::mem::swap(&mut self.route, &mut self.other_route);
        }
        let returns = self.pass_frame(end, now, frame);
        if is_second {
            core::mem::swap(&mut self.route, &mut self.other_route);
        }
        // In the order of the cable: inputs see the outputs before them.
        let devices = &mut self.devices;
        let find = || (0..devices.len()).filter(|&it| devices[it].is_logic()).collect();
        for &position in &*self.logic.get_or_insert_with(find) {
            if self.topology.powered[position] {
                devices[position].follow(now);
            }
        }
        // Loop settings written by a frame take effect from the next frame on.
        self.follow_changes();
        returns
    }

    fn set_link(&mut self, end: End, linked: bool) {
        let place = self.topology.ends[end as usize];
        let lost = place.filter(|&(device, port)| !linked && self.topology.has_link(device, port));
        self.topology.linked[end as usize] = linked;
        if let Some((device, port)) = lost {
            self.devices[device].esc_mut().count_lost_link(port);
        }
        self.links_changed();
    }

    fn advance(&mut self, now: Instant) {
        self.pass_time(now);
    }
}
