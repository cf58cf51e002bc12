//! Segment: SubDevices joined by cables, which answer frames.
//!
//! Every frame is forwarded, with any contents; the valid part is processed, up to the first datagram that
//! reaches past the end (ESC data sheet, section I, 3). The length in its EtherCAT header is ignored.
//!
//! Simplifications: all datagrams of a frame carry the events at the arrival of the frame. The circulating
//! bit of an arriving frame is ignored. There is no frame check sequence: the part of a broken frame that
//! has passed takes effect. EtherCAT in UDP and behind VLAN tags counts as another protocol.

mod dispatch;
mod topology;

use core::time::Duration;

use ethercat::link;
use ethercat::register::dl::{DlStatus, PORTS};
use ethercat::time::Instant;
use ethercat::wire::datagram::HEADER_LENGTH;
use ethercat::wire::ethernet::{self, PROCESSED_BIT, SOURCE_OFFSET};
use ethercat::wire::frame::{DATAGRAMS_OFFSET, FrameError, checked_end, place_at};

pub use topology::{Attachment, CABLE_DELAY, TopologyError};

use crate::sub_device::SubDevice;
use topology::{Loop, Route, Topology};

/// SubDevices and the cables between them.
///
/// Time is a parameter: it begins with the first call, at which all SubDevices get power. It never goes
/// back; an earlier instant counts as the latest one so far. Applications are stepped every
/// [`STEP`](crate::sub_device::STEP), with or without frames.
pub struct Segment {
    devices: Vec<SubDevice>,
    topology: Topology,
    route: Route,
    now: Option<Instant>,
    scratch: Box<[u8; link::MAXIMUM_FRAME_LENGTH]>,
}

impl Segment {
    /// A line: each SubDevice at port 1 of the one before it, with cables of [`CABLE_DELAY`].
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
    /// Auto-increment positions follow the path of the frame (ports 3, 1, 2), not the order of the list;
    /// the two agree where SubDevices are listed in that order.
    ///
    /// # Errors
    /// [`TopologyError`]: a wrong number of attachments, a parent behind its child, a port that does not
    /// exist or is in use.
    pub fn with_topology(
        devices: Vec<SubDevice>,
        attachments: &[Attachment],
    ) -> Result<Self, TopologyError> {
        Self::entered_at(0, devices, attachments)
    }

    /// A tree with the MainDevice's cable in port `entry` of the first SubDevice, as where its IN and OUT
    /// are swapped.
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
        let mut segment = Self { devices, topology, route: Route::default(), now: None, scratch };
        segment.links_changed();
        segment
    }

    /// SubDevices, in the order of their list.
    #[must_use]
    pub fn sub_devices(&self) -> &[SubDevice] {
        &self.devices
    }

    /// SubDevice at `position` of that list, for changes.
    pub fn sub_device_mut(&mut self, position: usize) -> Option<&mut SubDevice> {
        self.devices.get_mut(position)
    }

    /// Disconnects the cable from `port` of the SubDevice at `position`; at the entry port of the first one
    /// that is the MainDevice's cable. Returns `true` if there was one.
    pub fn disconnect(&mut self, position: usize, port: usize) -> bool {
        let pulled = self.plug(position, port, false);
        if pulled {
            self.links_changed();
        }
        pulled
    }

    /// Connects the disconnected cable to `port` of the SubDevice at `position` again. Returns `true` if
    /// there was one.
    pub fn connect(&mut self, position: usize, port: usize) -> bool {
        let plugged = self.plug(position, port, true);
        if plugged {
            self.links_changed();
        }
        plugged
    }

    /// Switches the power of the SubDevice at `position` off and on at once: it is in Init, without a
    /// station address. Returns `true` if there is such a SubDevice.
    pub fn power_cycle(&mut self, position: usize) -> bool {
        self.power_off(position);
        self.power_on(position)
    }

    /// Switches off the power of the SubDevice at `position`: its neighbours lose their links to it, no
    /// frame passes it, and its time stands still until [`power_on`](Self::power_on). Returns `true` if it
    /// had power.
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
    /// SyncManagers, FMMUs, clocks and objects have their initial values. Returns `true` if it had no
    /// power.
    pub fn power_on(&mut self, position: usize) -> bool {
        if self.topology.powered.get(position) != Some(&false) {
            return false;
        }
        self.topology.powered[position] = true;
        self.devices[position].power_on(self.now.unwrap_or(Instant::EPOCH));
        self.links_changed();
        true
    }

    /// True if the SubDevice at `position` has power. One without power keeps its last state for display.
    #[must_use]
    pub fn is_powered(&self, position: usize) -> bool {
        self.topology.powered.get(position) == Some(&true)
    }

    /// Jumps the local clock of the SubDevice at `position` by `by` ns, forward or back. Returns `true` if
    /// there is such a SubDevice.
    pub fn jump_clock(&mut self, position: usize, by: i64) -> bool {
        let now = self.now.unwrap_or(Instant::EPOCH);
        let Some(device) = self.devices.get_mut(position) else { return false };
        device.esc_mut().jump_clock(now, by);
        true
    }

    /// Counts a receive error at `port` of the SubDevice at `position`, as a disturbance on the cable there
    /// causes.
    pub fn disturb(&mut self, position: usize, port: usize) {
        if let Some(device) = self.devices.get_mut(position).filter(|_| port < PORTS) {
            device.esc_mut().count_receive_error(port);
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
        self.route = Route::trace(&self.topology, &loops, &delays);
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
        let mut links_changed = false;
        for (device, _) in
            self.devices.iter_mut().zip(&self.topology.powered).filter(|(_, powered)| **powered)
        {
            device.advance(now);
            links_changed |= device.esc_mut().take_links_changed();
        }
        if links_changed {
            self.links_changed();
        }
        now
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
        let hops = self.route.hops.iter();
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

/// Latest time, 292 years after the epoch: time stands still from there on, so that sums of times do not
/// overflow.
const END_OF_TIME: Instant = Instant::from_nanos(u64::MAX / 2);

impl link::Segment for Segment {
    fn process_frame(&mut self, now: Instant, frame: &mut [u8]) -> bool {
        let now = self.pass_time(now);
        let Some(first) = self.route.hops.first() else { return false };
        if !(ethernet::HEADER_LENGTH..=link::MAXIMUM_FRAME_LENGTH).contains(&frame.len()) {
            // Not an Ethernet frame: its receiver drops it.
            self.devices[first.device].esc_mut().count_receive_error(0);
            return false;
        }
        frame[SOURCE_OFFSET] |= PROCESSED_BIT;
        match checked_end(frame) {
            Err(FrameError::NotEtherCat { .. }) => return self.route.returns && self.forwards_others(),
            Err(FrameError::WrongType { .. }) => return self.route.returns,
            Err(FrameError::TooShort { .. }) => self.count_processing_unit_errors(),
            _ if self.process_datagrams(now, frame).is_err() => self.count_processing_unit_errors(),
            _ => {}
        }
        // Loop settings written by a frame take effect from the next frame on.
        let returns = self.route.returns;
        let mut links_changed = false;
        for device in &mut self.devices {
            links_changed |= device.esc_mut().take_links_changed();
        }
        if links_changed {
            self.links_changed();
        }
        returns
    }

    fn advance(&mut self, now: Instant) {
        self.pass_time(now);
    }
}
