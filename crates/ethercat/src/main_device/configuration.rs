//! Settings of the MainDevice before it starts.

mod check;

pub use check::ConfigurationError;
pub(super) use check::check_period;

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::ops::RangeInclusive;
use core::time::Duration;

use crate::al::AlState;
use crate::cia402::object;
use crate::pdo::{PdoEntry, PdoMapping};
use crate::register::dc::LATCH_INPUTS;
use crate::wire::MacAddress;

/// Expected bus, and the state to bring it to.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// The SubDevices in the order of the cable, in which frames reach them, or `None` to take any.
    pub sub_devices: Option<Vec<SubDeviceConfiguration>>,
    /// The state to bring all of them to: [`AlState::PreOp`] for tools, [`AlState::Op`] to run.
    pub target: AlState,
    /// Time between two cycles, one of [`Configuration::PERIODS`].
    pub period: Duration,
    /// True if clocks are measured, set and kept together where SubDevices have them.
    pub distributed_clocks: bool,
    /// True if the reference clock is steered after this host's: it is sent the time in every
    /// cycle.
    pub steers_reference: bool,
    /// Source address of our frames; bit 1 of its first byte must be clear, it marks replies.
    pub source: MacAddress,
    /// Source address that distinguishes replies from frames on their way out.
    pub replies: Replies,
    /// Distributed clocks count ns since 2000-01-01 00:00 UTC; this is their value at
    /// [`crate::time::Instant::EPOCH`], wrapping. With 0 they show the time since that epoch.
    pub system_time_at_epoch: u64,
    /// Generation number the first frame comes after. MainDevices on one wire distinguish their
    /// frames by these: a random one for each start, except where a run must be repeatable.
    pub first_generation: u32,
    /// Time a bring-up or mailbox datagram may take before it counts as lost and is sent again. It
    /// has to be longer than any delay of a frame on its way out: a late frame undoes later ones.
    pub reply_timeout: Duration,
    /// True if SubDevices that leave Op, or vanish and return, are brought to Op again while the
    /// others stay there.
    pub recovery: bool,
    /// True if SubDevices with a few bits of outputs or inputs, less than a byte, share bytes of
    /// the datagrams; [`super::MainDevice::inputs`] and [`super::MainDevice::outputs_mut`] show the
    /// same in either case. SubDevices that may be absent do not share bytes, nor do any whose
    /// separate datagrams, for when one is missing, would not fit the period.
    pub packed: bool,
    /// Time a SubDevice may take for a change of state. ETG.1020 suggests 3 s to PreOp and 10 s to
    /// SafeOp and Op; the default is a second shorter, so that no wait lasts 10 s. A SubDevice that
    /// makes no progress in any other step is given up after the same time plus 500 ms.
    pub state_timeout: Duration,
    /// Time a mailbox answer may take (ETG.1020 suggests 2 s).
    pub mailbox_timeout: Duration,
    /// Time a whole mailbox transfer may take, for any number of answers, plus 2 ms for each byte
    /// transferred: long objects get more time, and SubDevices that send next to nothing do not. It
    /// is also the longest time without a further byte.
    pub transfer_timeout: Duration,
}

/// Time a bring-up or mailbox datagram may take before it is sent again, by default.
const REPLY: Duration = Duration::from_millis(20);

/// Default time of a change of state, a second below ETG.1020 (3 s to PreOp, 10 s to SafeOp and
/// Op).
const STATE: Duration = Duration::from_secs(9);

/// Time of a mailbox answer, by default (ETG.1020).
const MAILBOX: Duration = Duration::from_secs(2);

/// Time of a mailbox transfer, and in it without a further byte, by default.
const TRANSFER: Duration = Duration::from_secs(5);

impl Default for Configuration {
    /// Any SubDevices, to PreOp; 1 ms; distributed clocks.
    fn default() -> Self {
        Self {
            sub_devices: None,
            target: AlState::PreOp,
            period: Duration::from_millis(1),
            distributed_clocks: true,
            steers_reference: false,
            source: MacAddress::MAIN_DEVICE,
            replies: Replies::ProcessedSource,
            system_time_at_epoch: 0,
            first_generation: 0,
            reply_timeout: REPLY,
            recovery: true,
            packed: false,
            state_timeout: STATE,
            mailbox_timeout: MAILBOX,
            transfer_timeout: TRANSFER,
        }
    }
}

/// Source address that distinguishes replies from frames on their way out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replies {
    /// Bit 1 of the source address's first byte, which ESCs set (ESC data sheet, section I, 3.2).
    #[default]
    ProcessedSource,
    /// Working counters and positions: the segment, or something on the way, leaves our source
    /// address as it is.
    UnchangedSource,
}

/// One SubDevice as the robot file describes it.
#[derive(Clone, Debug)]
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
    /// Objects that bound its axes: written after `startup` and read back in PreOp, or only read. A
    /// SubDevice without CoE has none.
    pub barriers: Vec<Barrier>,
    /// Its SYNC0 pulse, or `None` for free run.
    pub sync0: Option<Sync0>,
    /// Its SYNC1 pulse, which depends on SYNC0; `None`: none is generated.
    pub sync1: Option<Sync1>,
    /// Samples of a channel in one exchange of its process data; `None`: one. SYNC0 of the field
    /// above takes them, and its SYNC1 hands them over.
    pub oversampling: Option<Oversampling>,
    /// Edges that its two latch inputs hold; `None` leaves them as they are, which after power-on
    /// is the newest edge of each.
    pub latches: Option<[LatchMode; LATCH_INPUTS]>,
    /// Cycles from one exchange of its process data to the next; 0 and 1: in every cycle. In
    /// between, its inputs count as fresh if the inputs of the last exchange were; a failed
    /// exchange is repeated in the next cycle.
    pub every: u16,
    /// False to send outputs and inputs in separate datagrams (LWR and LRD) even where one for both
    /// (LRW) would do.
    pub lrw: bool,
    /// SubDevices of one group, such as two drives of one gantry beam, fail together: if one is
    /// missing, no inputs of the group are fresh and none of its outputs count as taken. `None`: no
    /// group.
    pub group: Option<String>,
    /// True if the bus may be without it. A group of [`Presence::HotConnect`] is plugged as a
    /// whole: the first is identified by its alias or identity, and the others by their places
    /// behind it.
    pub presence: Presence,
    /// Longest time without outputs before it leaves Op.
    pub process_data_watchdog: Watchdog,
    /// Time its application may not access its ESC; `None` leaves 100 ms, the default of an ESC.
    pub pdi_watchdog: Option<Watchdog>,
}

impl Default for SubDeviceConfiguration {
    /// Any SubDevice that is required, with the process data of its SII in one datagram (LRW),
    /// without clocks.
    fn default() -> Self {
        Self {
            name: String::new(),
            identity: None,
            alias: None,
            process_data: ProcessDataSource::default(),
            startup: Vec::new(),
            barriers: Vec::new(),
            sync0: None,
            sync1: None,
            oversampling: None,
            latches: None,
            every: 1,
            lrw: true,
            group: None,
            presence: Presence::default(),
            process_data_watchdog: Watchdog::default(),
            pdi_watchdog: None,
        }
    }
}

/// Need of a bus for a SubDevice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Presence {
    /// The bus is not brought up without it.
    #[default]
    Required,
    /// It may be absent, then and later; its place in the order of the cable is its own.
    Optional,
    /// May be absent, and may be plugged at any place: it is identified by its alias, or by its
    /// identity if that is unique.
    HotConnect,
}

impl fmt::Display for Presence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Required => "required",
            Self::Optional => "optional",
            Self::HotConnect => "hot_connect",
        })
    }
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
    /// Its time; `None` if it is off.
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
    /// Revision, if it matters.
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

/// Several samples of a channel in one exchange of process data, for a SubDevice without CoE whose
/// PDOs are in its SII; an explicit mapping lists all samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Oversampling {
    /// Samples of a channel; 0 and 1: one.
    pub samples: u8,
    /// PDOs that hold a sample, by their indices; empty: the PDOs marked in its SII
    /// ([`crate::sii::SiiPdo::FLAG_SAMPLE`]).
    pub pdos: Vec<u16>,
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

impl StartupSdo {
    /// True for a drive's digital outputs (0x60FE:1) if `startup` writes their mask (0x60FE:2)
    /// without bit 0, the drive's own brake, and `mapping` has no mask that would change it.
    #[must_use]
    pub fn leave_the_brake_alone(startup: &[Self], entry: &PdoEntry, mapping: &PdoMapping) -> bool {
        let outputs = object::of_first_axis(entry.index) == object::DIGITAL_OUTPUTS && entry.sub_index == 1;
        let mask = startup.iter().rfind(|sdo| (sdo.index, sdo.sub_index) == (entry.index, 2));
        let without_brake = mask.and_then(|sdo| sdo.data.first()).is_some_and(|first| first & 1 == 0);
        outputs && without_brake && mapping.output(entry.index, 2).is_none()
    }
}

/// A SYNC0 pulse (ETG.1000.6, 6.5; registers 0x0980 to 0x09A0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sync0 {
    /// Time between two pulses, one of [`Sync0::CYCLES`].
    pub cycle: Duration,
    /// Time from the bus-wide grid to the pulse.
    pub shift: Duration,
}

impl Sync0 {
    /// Possible times between two pulses; of SYNC1 too. Their registers count 32 bits of ns.
    pub const CYCLES: RangeInclusive<Duration> = Duration::from_micros(1)..=Duration::from_secs(4);
}

/// A SYNC1 pulse: it depends on SYNC0 (ESC data sheet, section I, 9.2.3.5; register 0x09A4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sync1 {
    /// Time between two pulses: a multiple of SYNC0's; 4 s at most.
    pub cycle: Duration,
    /// Time from a SYNC0 pulse to a SYNC1 pulse, less than SYNC0's cycle: SYNC1 occurs at multiples
    /// of its cycle in the time of the bus, plus SYNC0's shift, plus this delay.
    pub delay: Duration,
}

/// Edges that a latch input holds (registers 0x09A8, 0x09A9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatchMode {
    /// Of rising edges the first one, until its time is read; else the newest.
    pub single_rising: bool,
    /// The same of falling edges.
    pub single_falling: bool,
}

impl LatchMode {
    /// Of rising and falling edges the first one each, until its time is read.
    pub const SINGLE: Self = Self { single_rising: true, single_falling: true };

    pub(super) const fn register(self) -> u8 {
        self.single_rising as u8 | (self.single_falling as u8) << 1
    }
}

/// Most SubDevices of a bus: station addresses are assigned from 0x1001 on, and a 16-bit working
/// counter counts three for each.
pub const MAXIMUM_SUB_DEVICES: usize = 4096;

impl Configuration {
    /// Periods that a bus is run at.
    pub const PERIODS: RangeInclusive<Duration> = Duration::from_micros(50)..=Duration::from_secs(1);

    /// Brings all SubDevices found to PreOp: for tools, and to inspect a bus before it is run.
    #[must_use]
    pub fn scan() -> Self {
        Self::default()
    }
}

impl Configuration {
    /// The groups of `count` SubDevices by position, numbered from 0 on.
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

    /// The SubDevices described, where the bus may be without some of them.
    pub(super) fn may_lack(&self) -> Option<&[SubDeviceConfiguration]> {
        let described = self.sub_devices.as_deref()?;
        described.iter().any(|it| it.presence != Presence::Required).then_some(described)
    }
}

impl SubDeviceConfiguration {
    /// True if it and `before`, the one described before it, are of one hot-connect group.
    pub(super) fn is_plugged_with(&self, before: &Self) -> bool {
        let is_hot = [self, before].iter().all(|it| it.presence == Presence::HotConnect);
        is_hot && self.group.is_some() && self.group == before.group
    }
}

/// An object that bounds an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Barrier {
    /// Object index.
    pub index: u16,
    /// Sub-index.
    pub sub_index: u8,
    /// Bytes of its value: 2 or 4.
    pub length: u8,
    /// Access to it.
    pub task: BarrierTask,
}

/// Access to an object that bounds an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarrierTask {
    /// Its value is read.
    Read,
    /// This value is written and read back; negative ones in two's complement.
    Write(u32),
    /// A speed or an acceleration is written in the unit that the drive names, and read back.
    WriteInUnit(UnitValue),
}

/// A speed or an acceleration in a unit that the drive names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitValue {
    /// Object that names the unit (0x60A9, 0x60AA).
    pub unit: u16,
    /// Thousandths of a count per second, or per second squared.
    pub milli_counts: u64,
    /// Thousandths of a count per revolution of the motor.
    pub milli_counts_per_revolution: u64,
    /// True if a drive that names no unit is taken to count in counts.
    pub assumes_counts: bool,
}
