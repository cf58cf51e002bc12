//! Settings of the MainDevice before it starts.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::RangeInclusive;
use core::time::Duration;

use thiserror::Error;

use crate::al::AlState;
use crate::pdo::{Pdo, PdoMapping};
use crate::wire::MacAddress;

use super::limits;

/// Expected bus, and the state to bring it to.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// The SubDevices in the order of the cable, that in which frames come to them first, or `None` to take whatever is there.
    pub sub_devices: Option<Vec<SubDeviceConfiguration>>,
    /// The state to bring all of them to: [`AlState::PreOp`] for tools, [`AlState::Op`] to run.
    pub target: AlState,
    /// Time between two cycles, one of [`Configuration::PERIODS`].
    pub period: Duration,
    /// True if clocks are measured, set and kept together where SubDevices have them.
    pub distributed_clocks: bool,
    /// Source address of our frames; bit 1 of its first byte must be clear, it tells replies.
    pub source: MacAddress,
    /// Source address that tells replies from frames on their way out.
    pub replies: Replies,
    /// Distributed clocks count ns since 2000-01-01 00:00 UTC; this is what they show at [`crate::time::Instant::EPOCH`],
    /// wrapping. With 0 they show the time since that epoch, whatever it is.
    pub system_time_at_epoch: u64,
    /// Generation number the first frame comes after. MainDevices on one wire tell their frames apart by these: a
    /// random one for each start, except where a run must be repeatable.
    pub first_generation: u32,
    /// Time a bring-up or mailbox datagram may take before it counts as lost and is sent again. Longer than
    /// any frame can be held up on its way out: one that arrives after what was sent later undoes that.
    pub reply_timeout: Duration,
    /// Time a SubDevice may take for a change of state. ETG.1020 suggests 3 s to PreOp and 10 s to SafeOp and Op; the default
    /// stays a second below, so that nothing is waited for in vain for 10 s. 500 ms more, and a SubDevice that gets no further
    /// with anything else is given up too.
    pub state_timeout: Duration,
    /// Time a mailbox answer may take (ETG.1020 suggests 2 s).
    pub mailbox_timeout: Duration,
    /// Time a whole mailbox transfer may take, however many answers it has; 2 ms more for each byte transferred, so
    /// that long objects are given their time and those who send next to nothing are not. Also the time it may go on
    /// without a further byte.
    pub transfer_timeout: Duration,
}

impl Default for Configuration {
    /// Whatever is there, to PreOp; 1 ms; distributed clocks.
    fn default() -> Self {
        Self {
            sub_devices: None,
            target: AlState::PreOp,
            period: Duration::from_millis(1),
            distributed_clocks: true,
            source: MacAddress::MAIN_DEVICE,
            replies: Replies::ProcessedSource,
            system_time_at_epoch: 0,
            first_generation: 0,
            reply_timeout: limits::REPLY,
            state_timeout: limits::STATE,
            mailbox_timeout: limits::MAILBOX,
            transfer_timeout: limits::TRANSFER,
        }
    }
}

/// Source address that tells replies from frames on their way out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replies {
    /// Bit 1 of the source address's first byte, which ESCs set (ESC data sheet, section I, 3.2).
    #[default]
    ProcessedSource,
    /// Working counters and positions: the segment, or something on the way, leaves our source address as it is.
    UnchangedSource,
}

/// One SubDevice as the robot file describes it.
#[derive(Clone, Debug, Default)]
pub struct SubDeviceConfiguration {
    /// Name people call it by; used in errors.
    pub name: String,
    /// Expected identity; a different one stops the start.
    pub identity: Option<ExpectedIdentity>,
    /// The station alias it must have, from its SII.
    pub alias: Option<u16>,
    /// Source of its PDO mapping.
    pub process_data: ProcessDataSource,
    /// SDO downloads in PreOp, in order, before the PDO mapping is written.
    pub startup: Vec<StartupSdo>,
    /// Its SYNC0 pulse, or `None` for free run.
    pub sync0: Option<Sync0>,
    /// SubDevices of the same group stand and fall together, such as two drives of one gantry beam: where one of
    /// them is missing, the inputs of none are fresh and the outputs of none count as taken. `None`: it stands alone.
    pub group: Option<String>,
    /// Time its outputs may stay away before it leaves Op by itself.
    pub process_data_watchdog: Watchdog,
    /// Time its application may be silent towards its ESC; `None` leaves 100 ms, what ESCs start with.
    pub pdi_watchdog: Option<Watchdog>,
}

/// A watchdog of an ESC (ETG.1000.4, 6.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watchdog {
    /// It never expires.
    Off,
    /// It expires after this time; up to [`LONGEST_WATCHDOG`].
    After(Duration),
}

impl Watchdog {
    /// Its time; `None` where it is off.
    #[must_use]
    pub fn time(self) -> Option<Duration> {
        match self {
            Self::Off => None,
            Self::After(time) => Some(time),
        }
    }
}

impl Default for Watchdog {
    /// 100 ms, as after a reset of the ESC.
    fn default() -> Self {
        Self::After(Duration::from_millis(100))
    }
}

/// Longest time of a watchdog: a little less than its registers can say.
pub const LONGEST_WATCHDOG: Duration = Duration::from_secs(120);

/// Expected identity of a SubDevice (SII words 0x0008 to 0x000D).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpectedIdentity {
    /// Vendor id.
    pub vendor_id: u32,
    /// Product code.
    pub product_code: u32,
    /// Revision, where it matters.
    pub revision: Option<u32>,
}

/// Source of a SubDevice's PDO mapping.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ProcessDataSource {
    /// The SubDevice's SII: the PDOs it assigns to its SyncManagers by default.
    #[default]
    Sii,
    /// This mapping, written to 0x1C12, 0x1C13 and the mapping objects by SDO.
    Explicit(PdoMapping),
}

/// One SDO download at start-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartupSdo {
    /// Object index.
    pub index: u16,
    /// Sub-index.
    pub sub_index: u8,
    /// True if all sub-indices from `sub_index` on are written at once.
    pub complete_access: bool,
    /// The value, little-endian.
    pub data: Vec<u8>,
}

/// A SYNC0 pulse (ETG.1000.6, 6.5; registers 0x0980 to 0x09A0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sync0 {
    /// Time between two pulses; 1 us to 4 s.
    pub cycle: Duration,
    /// Time from the bus-wide grid to the pulse.
    pub shift: Duration,
}

/// Why a configuration cannot be run.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConfigurationError {
    /// The period is out of range.
    #[error("period {found:?}, expected 50 us to 1 s")]
    Period {
        /// Value given.
        found: Duration,
    },
    /// The period cannot change any more.
    #[error("the period cannot change while process data flows: set it in PreOp")]
    Running,
    /// The source address looks like a reply's.
    #[error("source address {found} has bit 1 of its first byte set, which marks replies: clear it")]
    Source {
        /// Value given.
        found: MacAddress,
    },
    /// More SubDevices than station addresses.
    #[error("{found} SubDevices, expected at most {maximum}")]
    TooManySubDevices {
        /// Number given.
        found: usize,
        /// Number possible.
        maximum: usize,
    },
    /// A SYNC0 cycle is out of range.
    #[error("SubDevice {position} \"{name}\": SYNC0 cycle {found:?}, expected 1 us to 4 s")]
    Sync0 {
        /// Place in the segment, from 0.
        position: usize,
        /// Its name.
        name: String,
        /// Value given.
        found: Duration,
    },
    /// A watchdog's time is out of range.
    #[error("SubDevice {position} \"{name}\": watchdog of {found:?}, expected 1 us to 2 min, or none")]
    Watchdog {
        /// Place in the segment, from 0.
        position: usize,
        /// Its name.
        name: String,
        /// Value given.
        found: Duration,
    },
    /// A PDO's size cannot be mapped.
    #[error(
        "SubDevice {position} \"{name}\": PDO {index:#06x} has {found} bits and {entries} entries, expected at most \
         {maximum} bits and 254 entries"
    )]
    Pdo {
        /// Place in the segment, from 0.
        position: usize,
        /// Its name.
        name: String,
        /// Index of the PDO.
        index: u16,
        /// Its bits.
        found: usize,
        /// Its entries.
        entries: usize,
        /// Bits a PDO may have.
        maximum: usize,
    },
}

/// SubDevices at most: station addresses are handed out from 0x1001 on, and a working counter of 16 bits
/// counts three for each.
pub const MAXIMUM_SUB_DEVICES: usize = 4096;

const MAXIMUM_PDO_BITS: usize = 1024 * 8;

impl Configuration {
    /// Periods that a bus is run at.
    pub const PERIODS: RangeInclusive<Duration> = Duration::from_micros(50)..=Duration::from_secs(1);

    /// Brings all SubDevices found to PreOp: for tools, and to look at a bus before it is run.
    #[must_use]
    pub fn scan() -> Self {
        Self::default()
    }

    /// Checks what can be checked without a bus.
    ///
    /// # Errors
    /// The first thing that cannot be run, with its place.
    pub fn check(&self) -> Result<(), ConfigurationError> {
        check_period(self.period)?;
        if self.source.is_processed() {
            return Err(ConfigurationError::Source { found: self.source });
        }
        let sub_devices = self.sub_devices.as_deref().unwrap_or_default();
        if sub_devices.len() > MAXIMUM_SUB_DEVICES {
            let found = sub_devices.len();
            return Err(ConfigurationError::TooManySubDevices { found, maximum: MAXIMUM_SUB_DEVICES });
        }
        sub_devices.iter().enumerate().try_for_each(|(position, sub_device)| sub_device.check(position))
    }
}

/// Refuses periods that no bus is run at.
pub(super) fn check_period(found: Duration) -> Result<(), ConfigurationError> {
    let possible = Configuration::PERIODS.contains(&found);
    if possible { Ok(()) } else { Err(ConfigurationError::Period { found }) }
}

impl Configuration {
    /// The groups of so many SubDevices by position, numbered from 0 on.
    pub(super) fn groups(&self, count: usize) -> Vec<Option<u16>> {
        let mut names: Vec<&str> = Vec::new();
        let mut groups = vec![None; count];
        for (number, it) in groups.iter_mut().zip(self.sub_devices.iter().flatten()) {
            let Some(group) = it.group.as_deref() else { continue };
            let known = names.iter().position(|&name| name == group);
            *number = Some(known.unwrap_or(names.len()) as u16);
            if known.is_none() {
                names.push(group);
            }
        }
        groups
    }
}

impl SubDeviceConfiguration {
    fn check(&self, position: usize) -> Result<(), ConfigurationError> {
        let name = || self.name.clone();
        if let Some(Sync0 { cycle, .. }) = self.sync0 {
            if !(Duration::from_micros(1)..=Duration::from_secs(4)).contains(&cycle) {
                return Err(ConfigurationError::Sync0 { position, name: name(), found: cycle });
            }
        }
        let watchdogs = [Some(self.process_data_watchdog), self.pdi_watchdog];
        let mut times = watchdogs.into_iter().flatten().filter_map(Watchdog::time);
        if let Some(found) =
            times.find(|time| !(Duration::from_micros(1)..=LONGEST_WATCHDOG).contains(time))
        {
            return Err(ConfigurationError::Watchdog { position, name: name(), found });
        }
        let ProcessDataSource::Explicit(mapping) = &self.process_data else {
            return Ok(());
        };
        let fits = |pdo: &Pdo| pdo.bit_length() <= MAXIMUM_PDO_BITS && pdo.entries.len() <= 254;
        match mapping.outputs.iter().chain(&mapping.inputs).find(|pdo| !fits(pdo)) {
            None => Ok(()),
            Some(pdo) => Err(ConfigurationError::Pdo {
                position,
                name: name(),
                index: pdo.index,
                found: pdo.bit_length(),
                entries: pdo.entries.len(),
                maximum: MAXIMUM_PDO_BITS,
            }),
        }
    }
}
