//! Knowledge of one SubDevice.

pub(super) mod late;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use types::ErrorCounters;

use crate::al::{AlState, AlStatus};
use crate::al_status_code::AlStatusCode;
use crate::pdo::PdoMapping;
use crate::register::dl::PORTS;
use crate::register::{DlStatus, EscFeatures, SyncManager, Watchdogs};
use crate::sii::{self, CoeDetails, Identity};
use crate::wire::read_u16;

use super::barrier::BarrierState;
use super::clock::ClockSetting;
use super::configuration::{ExpectedIdentity, Presence, Watchdog};
use super::error::SubDeviceError;
use super::latches::Latches;
use super::topology::{LatchedTimes, Upstream};
use late::Late;

/// One SubDevice, as found and as configured.
#[derive(Clone, Debug)]
pub struct SubDevice {
    /// Place in the segment, from 0, in the order of the cable, in which frames reach the
    /// SubDevices.
    pub position: u16,
    /// Place in the order in which SubDevices process frames, which auto-increment addresses count.
    /// It differs from `position` only where a SubDevice's IN and OUT are swapped.
    pub processed: u16,
    /// Port by which frames come in: 0, unless its IN and OUT are swapped.
    pub entry_port: u8,
    /// Port in a closed ring with a receive time that does not follow the receive time of port 0.
    pub implausible_port: Option<u8>,
    /// Configured station address, 0x1001 and up.
    pub station_address: u16,
    /// Name from the configuration; else the SII's device name; else `SubDevice N`.
    pub name: String,
    /// Facts that the ESC states of itself.
    pub information: EscInformation,
    /// Links and loops.
    pub dl_status: DlStatus,
    /// Place in the tree; `None` for the first.
    pub upstream: Option<Upstream>,
    /// Identity.
    pub identity: Identity,
    /// Its SII, as read.
    pub sii: Option<sii::Image>,
    /// Reason that there is no SII; without an SII it has no mailbox and no process data, and stays
    /// in Init.
    pub sii_problem: Option<SubDeviceError>,
    /// Its mailbox, if it has one.
    pub mailbox: Option<Mailbox>,
    /// The PDOs in use.
    pub mapping: PdoMapping,
    /// Reason that its PDOs, which its SII does not list, could not be read; then it has no process
    /// data, and stays in PreOp.
    pub mapping_error: Option<SubDeviceError>,
    /// State it showed last.
    pub al_status: AlStatus,
    /// AL status code of its last error; 0 if it showed none.
    pub al_status_code: AlStatusCode,
    /// Registers written to its clock, if it has one.
    pub clock: Option<ClockSetting>,
    /// System time difference read last, ns, if it has a clock and was polled.
    pub clock_difference: Option<i32>,
    /// Error counters, if they were requested ([`super::MainDevice::read_error_counters`]) and it
    /// answered.
    pub error_counters: Option<ErrorCounters>,
    /// Links and loops as they were read with them, if it answered; `dl_status` is of the bring-up.
    pub links: Option<DlStatus>,
    /// Receive time of each port by the last frame of [`super::MainDevice::latch_receive_times`],
    /// local, ns, wrapping at 32 bits; [`Self::latched`] are the times of the bring-up.
    pub receive_times: Option<[u32; PORTS]>,
    /// Its latch inputs, if they were requested ([`super::MainDevice::read_latches`]) and it
    /// answered.
    pub latches: Option<Latches>,
    /// The same as it answered before.
    pub(super) latches_told: Option<Latches>,
    /// Emergencies received.
    pub emergencies: u64,
    /// Its watchdogs as they were read back, once its process data is set up.
    pub watchdogs: Option<Watchdogs>,
    /// States of the objects that bound its axes, as they are configured.
    pub(super) barriers: Vec<BarrierState>,
    /// Facts that it is known by where the bus may lack it.
    pub(super) mark: Mark,
    /// It is not on the bus, and need not be.
    pub(super) is_absent: bool,
    /// It has not been on the bus since that was brought up.
    pub(super) is_unseen: bool,
    /// Addresses of its process data, if its SII is read for them while the bus runs.
    pub(super) late: Option<Box<Late>>,
    /// Its upstream port is unknown: it joined after bring-up, or has not joined yet.
    pub(super) is_unplaced: bool,
    /// True if its outputs feed its process data watchdog, as their SyncManagers were read back.
    pub(super) feeds_watchdog: bool,
    /// Settings of its watchdogs, and their registers.
    pub(super) wanted_watchdog: Watchdog,
    pub(super) wanted_pdi_watchdog: Option<Watchdog>,
    pub(super) wanted_watchdogs: Watchdogs,
    pub(super) latched: LatchedTimes,
    pub(super) outputs: Range<usize>,
    pub(super) inputs: Range<usize>,
}

impl SubDevice {
    pub(super) fn new(position: u16) -> Self {
        Self {
            position,
            processed: position,
            entry_port: 0,
            implausible_port: None,
            station_address: station_address(position),
            name: Self::name_at(position),
            information: EscInformation::default(),
            dl_status: DlStatus::default(),
            upstream: None,
            identity: Identity::default(),
            sii: None,
            sii_problem: None,
            mailbox: None,
            mapping: PdoMapping::default(),
            mapping_error: None,
            al_status: AlStatus::in_state(AlState::Init),
            al_status_code: AlStatusCode::default(),
            clock: None,
            clock_difference: None,
            error_counters: None,
            links: None,
            receive_times: None,
            latches: None,
            latches_told: None,
            emergencies: 0,
            watchdogs: None,
            barriers: Vec::new(),
            mark: Mark::default(),
            is_absent: false,
            is_unseen: false,
            late: None,
            is_unplaced: false,
            feeds_watchdog: false,
            wanted_watchdog: Watchdog::default(),
            wanted_pdi_watchdog: None,
            wanted_watchdogs: Watchdogs::default(),
            latched: LatchedTimes::default(),
            outputs: 0..0,
            inputs: 0..0,
        }
    }

    /// The default name of a SubDevice.
    pub(super) fn name_at(position: u16) -> String {
        format!("SubDevice {position}")
    }

    /// True while it is an optional SubDevice ([`super::Presence`]) that is not on the bus: its
    /// inputs are not fresh, and nothing waits for it.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        self.is_absent
    }

    /// True if its SII says that all of an object can be uploaded at once.
    pub(super) fn has_complete_access(&self) -> bool {
        let general = self.sii.as_ref().and_then(|sii| sii.general());
        general.is_some_and(|it| it.coe_details.contains(CoeDetails::COMPLETE_ACCESS))
    }

    /// States of the objects that bound its axes, in the order of
    /// [`super::SubDeviceConfiguration::barriers`].
    #[must_use]
    pub fn barriers(&self) -> &[BarrierState] {
        &self.barriers
    }

    /// True if its ESC has a distributed clock.
    #[must_use]
    pub fn has_clock(&self) -> bool {
        self.information.features.distributed_clocks()
    }

    /// Bytes of its system time on the wire. A 32-bit clock has only the low ones: 64-bit clocks
    /// compare all bytes, and would be sent zeroes as the upper ones.
    pub(super) fn system_time_length(&self) -> usize {
        if self.information.features.distributed_clocks_64_bit() { 8 } else { 4 }
    }

    /// Times its clock latched when the bus was brought up, if it has one.
    #[must_use]
    pub fn latched(&self) -> Option<LatchedTimes> {
        self.has_clock().then_some(self.latched)
    }

    /// The same, unless they are implausible.
    pub(super) fn plausible_times(&self) -> Option<LatchedTimes> {
        self.latched().filter(|_| self.implausible_port.is_none())
    }

    /// Remarks on faults that do not keep the bus from coming up, a sentence each.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let Self { position, name, entry_port, .. } = self;
        let swapped = (*entry_port != 0).then(|| {
            format!(
                "SubDevice {position} \"{name}\": frames enter at port {entry_port}, not at port 0: its IN and OUT \
                 are swapped"
            )
        });
        let implausible = self.implausible_port.map(|port| {
            format!(
                "SubDevice {position} \"{name}\": the receive time of its port {port} does not follow port 0, \
                 where frames enter, as the working counters show: its receive times are \
                 implausible, and its delay is estimated from its neighbours"
            )
        });
        let without_sii = self.sii_problem.as_ref().map(|problem| {
            format!("SubDevice {position} \"{name}\": {problem}; until then it stays in Init, unconfigured")
        });
        swapped.into_iter().chain(implausible).chain(without_sii).collect()
    }

    /// Bytes of outputs it takes from the process image.
    #[must_use]
    pub fn output_bytes(&self) -> usize {
        self.outputs.len()
    }

    /// Bytes of inputs it puts into the process image.
    #[must_use]
    pub fn input_bytes(&self) -> usize {
        self.inputs.len()
    }
}

/// Station address of the first SubDevice.
pub(super) const FIRST_STATION_ADDRESS: u16 = 0x1001;

/// Station address of the SubDevice at a position, once all have theirs.
pub(super) fn station_address(position: u16) -> u16 {
    FIRST_STATION_ADDRESS + position
}

/// Registers 0x0000 to 0x0013 (ETG.1000.4, 6.2 and 6.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EscInformation {
    /// Type of the controller: 0x11 is an ET1100, 0x04 an IP core.
    pub controller_type: u8,
    /// Its revision.
    pub revision: u8,
    /// Its build.
    pub build: u16,
    /// FMMUs it has.
    pub fmmu_count: u8,
    /// SyncManagers it has.
    pub sync_manager_count: u8,
    /// Process data memory, KiB.
    pub ram_kib: u8,
    /// Ports, two bits each: 0 none, 1 not configured, 2 EBUS, 3 MII.
    pub port_descriptor: u8,
    /// Abilities and refusals.
    pub features: EscFeatures,
    /// Station alias, loaded from the SII; 0 is none.
    pub alias: u16,
}

impl EscInformation {
    /// True if it has this port.
    #[must_use]
    pub fn has_port(&self, port: usize) -> bool {
        const CONFIGURED: u8 = 2;
        self.port_descriptor >> (2 * port) & 0b11 >= CONFIGURED
    }

    /// From the registers' first 20 bytes.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let alias = read_u16(bytes, 0x12)?;
        Some(Self {
            controller_type: bytes[0],
            revision: bytes[1],
            build: read_u16(bytes, 2)?,
            fmmu_count: bytes[4],
            sync_manager_count: bytes[5],
            ram_kib: bytes[6],
            port_descriptor: bytes[7],
            features: EscFeatures { bits: read_u16(bytes, 8)? },
            alias,
        })
    }
}

/// A mailbox's two stretches of memory (SII words 0x0018 to 0x001C).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mailbox {
    /// Physical address the MainDevice writes to.
    pub out_address: u16,
    /// Bytes there.
    pub out_length: u16,
    /// Physical address the MainDevice reads from.
    pub in_address: u16,
    /// Bytes there.
    pub in_length: u16,
    /// True if CoE is spoken.
    pub coe: bool,
}

/// Bytes a mailbox has at most here: one datagram of one frame, besides the generation number.
pub(super) const MAXIMUM_MAILBOX_LENGTH: u16 = 1470;

impl Mailbox {
    /// Its SyncManagers, 0 and 1.
    #[must_use]
    pub fn sync_managers(&self) -> [[u8; 8]; 2] {
        let sync_manager = |physical_address, length, control| {
            SyncManager { physical_address, length, control, active: true }.emit()
        };
        [
            sync_manager(self.out_address, self.out_length, SyncManager::CONTROL_MAILBOX_OUT),
            sync_manager(self.in_address, self.in_length, SyncManager::CONTROL_MAILBOX_IN),
        ]
    }
}

/// Facts that a SubDevice is known by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) presence: Presence,
    pub(super) identity: Option<ExpectedIdentity>,
    /// Not 0.
    pub(super) alias: Option<u16>,
    /// It is plugged behind the SubDevice of the position before, as one group.
    pub(super) is_behind: bool,
}
