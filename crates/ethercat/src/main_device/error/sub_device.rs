//! Failures at one SubDevice.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use thiserror::Error;

use crate::al::{AlState, AlStatus};
use crate::al_status_code::AlStatusCode;
use crate::pdo::{ASSIGNMENT_INPUTS, ASSIGNMENT_OUTPUTS, PdoEntry};
use crate::sii::{Identity, SiiError};
use crate::time::span;

use super::super::configuration::ExpectedIdentity;
use super::super::request::MailboxError;
use super::plural;

/// Failure at one SubDevice.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SubDeviceError {
    /// It is another device.
    #[error(
        "found {found}, expected {}; check the order of the SubDevices and the robot file",
        describe(expected)
    )]
    Identity {
        /// Identity expected.
        expected: ExpectedIdentity,
        /// Identity found.
        found: Identity,
    },
    /// It has another alias.
    #[error(
        "found station alias {found}, expected {expected}; check the order of the SubDevices, or write the alias \
         to its SII"
    )]
    Alias {
        /// Value expected.
        expected: u16,
        /// Value found.
        found: u16,
    },
    /// A register access comes back unanswered.
    #[error(
        "register {register:#06x} does not answer after {attempts} {} within {} ms: check power and cable",
        plural(*attempts as usize, "attempt", "attempts"),
        within.as_millis()
    )]
    NoAnswer {
        /// First register.
        register: u16,
        /// Number of tries.
        attempts: u32,
        /// From the first attempt to the last.
        within: Duration,
    },
    /// Frames come back neither way.
    #[error(
        "{lost} {} lost within {} ms at register {register:#06x}: {}",
        plural(*lost as usize, "frame was", "frames in a row were"),
        within.as_millis(),
        why_lost(*late)
    )]
    Lost {
        /// First register.
        register: u16,
        /// Count.
        lost: u32,
        /// From the first loss noticed to the last.
        within: Duration,
        /// Replies that came too late meanwhile, to whomever.
        late: u64,
    },
    /// It answers now and then, and gets no further.
    #[error(
        "no progress for {}, waiting for {awaited}: check its power, the cable to it and what else is on the wire",
        span(*after)
    )]
    Stuck {
        /// Action that it waited for.
        awaited: Awaited,
        /// Time since it got further last.
        after: Duration,
    },
    /// The EEPROM does not answer.
    #[error(
        "SII does not answer at word {word_address:#06x}: the EEPROM is missing, too small for its contents, or \
         defective"
    )]
    SiiSilent {
        /// Word address.
        word_address: u32,
    },
    /// The EEPROM stays busy.
    #[error(
        "EEPROM busy: SII word {word_address:#06x} is not read after {} ms; restart it, or replace its EEPROM",
        within.as_millis()
    )]
    SiiBusy {
        /// Word address.
        word_address: u32,
        /// Time it was seen busy.
        within: Duration,
    },
    /// The SII cannot be read.
    #[error("{0}; write its SII again")]
    Sii(SiiError),
    /// It refuses a state.
    #[error("refuses {requested} and stays in {}: AL status code {code}{}", shown(*found), what_to_do(*code))]
    Refused {
        /// Requested.
        requested: AlState,
        /// Shown.
        found: AlStatus,
        /// Reason.
        code: AlStatusCode,
    },
    /// It takes too long.
    #[error("does not reach {requested} within {timeout:?}: it stays in {}{}", shown(*found), reason(*code))]
    StateTimeout {
        /// Requested.
        requested: AlState,
        /// Shown.
        found: AlStatus,
        /// Contents of the AL status code register.
        code: AlStatusCode,
        /// Time it was given.
        timeout: Duration,
    },
    /// A mailbox transfer of the bring-up failed.
    #[error("SDO {index:#06x}:{sub_index:02x}: {error}")]
    Sdo {
        /// Object.
        index: u16,
        /// Sub-index.
        sub_index: u8,
        /// Failure.
        error: MailboxError,
    },
    /// A drive keeps another value in an object that bounds its axis.
    #[error(
        "object {index:#06x}:{sub_index:02x} is {found} after {expected} was written to it, expected {expected}, as the \
         limits of its axis say: the drive keeps its own value; correct the limits, or write the value of the drive in \
         startup"
    )]
    Barrier {
        /// Object.
        index: u16,
        /// Sub-index.
        sub_index: u8,
        /// Value written.
        expected: i64,
        /// Value read back.
        found: i64,
    },
    /// The SubDevice maps something else than it is said to.
    #[error("{}", mapped_differently(*index, *sub_index, *expected, *found))]
    Mapping {
        /// Mapping or assignment object.
        index: u16,
        /// Sub-index.
        sub_index: u8,
        /// Mapping written, or said to be fixed.
        expected: u32,
        /// Mapping of the SubDevice.
        found: u32,
    },
    /// The SubDevice maps more than can be meant.
    #[error(
        "PDO {index:#06x} and the PDOs before it map more than {maximum} objects, expected fewer; \
         give its pdos yourself"
    )]
    TooManyEntries {
        /// The PDO being read.
        index: u16,
        /// Entries read at most.
        maximum: usize,
    },
    /// There are SDOs to write, but no mailbox with CoE.
    #[error("start-up SDOs are configured, but its SII declares no CoE mailbox; remove them")]
    NoCoe,
    /// A SubDevice that was never seen is not described well enough to keep its place.
    #[error(
        "it is absent, its process data is not in the robot file, and no SubDevice of the same \
         type is present; give its pdos, or plug it in for the first start"
    )]
    UnknownProcessData,
    /// A SubDevice of which nothing was said, and that was taken to have no process data, has some.
    #[error(
        "it has process data, expected none: it was absent at the start, and the robot file gives \
         no process data; give its pdos or its identity, or plug it in before the start"
    )]
    UnexpectedProcessData,
    /// PDOs are described that its SII does not have, and without CoE it has no others.
    #[error(
        "its {found} bits of process data are not the PDOs that are described, of {expected} bits, expected the same, as it has no \
         CoE to change them; give the indices, entries and SyncManagers of its SII"
    )]
    OtherPdos {
        /// Bits described.
        expected: usize,
        /// Bits of its SII's default mapping.
        found: usize,
    },
    /// Oversampling of a SubDevice whose SII does not mark the PDOs that hold samples, or has none
    /// of the name.
    #[error("{}", no_samples(*wanted, assigned))]
    NoSamples {
        /// PDO that is named and not assigned; `None`: none is marked.
        wanted: Option<u16>,
        /// PDOs that its SII assigns.
        assigned: Vec<u16>,
    },
    /// Oversampling of a SubDevice with PDOs assigned by CoE.
    #[error(
        "oversampling is configured, and its PDOs come from its SII, expected pdos in the robot \
         file, as it has CoE; give its pdos, with all samples"
    )]
    SamplesByCoe,
    /// A mailbox of an impossible size.
    #[error(
        "its SII declares a mailbox of {found} bytes at {address:#06x}, expected {minimum} to \
         {maximum}; write its SII again"
    )]
    MailboxLength {
        /// Its address.
        address: u16,
        /// Count.
        found: u16,
        /// At least.
        minimum: u16,
        /// At most.
        maximum: u16,
    },
    /// A PDO wants a SyncManager that is not there.
    #[error(
        "PDO {pdo:#06x} wants SyncManager {sync_manager}, its SII declares {count} of them; choose another"
    )]
    SyncManager {
        /// Index of the PDO.
        pdo: u16,
        /// Number of the SyncManager.
        sync_manager: u8,
        /// Number there are.
        count: usize,
    },
    /// An explicit mapping has a direction the SubDevice has no SyncManager for.
    #[error(
        "{direction} are mapped, but its SII declares no SyncManager for {direction}; remove these PDOs"
    )]
    NoSyncManager {
        /// "outputs" or "inputs".
        direction: &'static str,
    },
    /// More stretches of process data than FMMUs.
    #[error("its process data needs {needed} FMMUs, its ESC has {found}; map PDOs of one SyncManager only")]
    Fmmus {
        /// Number needed.
        needed: usize,
        /// Number there are.
        found: u8,
    },
    /// Process data at a SyncManager that the ESC does not have.
    #[error(
        "its process data is at SyncManager {number}, its ESC has {found}; its SII is that of another ESC"
    )]
    SyncManagers {
        /// Number of the SyncManager.
        number: u8,
        /// Number there are.
        found: u8,
    },
    /// A watchdog does not take its time.
    #[error(
        "its {name} watchdog is {}, expected {}: its ESC does not take that; set {key} to what it has",
        described(*found), described(*expected)
    )]
    Watchdog {
        /// "process data" or "PDI".
        name: &'static str,
        /// Name in a robot file.
        key: &'static str,
        /// Value written; `None` is off.
        expected: Option<Duration>,
        /// Value read back.
        found: Option<Duration>,
    },
    /// The SyncManager of its outputs does not take the setting of its watchdog.
    #[error(
        "its outputs do not feed its process data watchdog, expected that they do: its SyncManager does not take bit 6 of \
         its control byte; set process_data_watchdog to \"off\""
    )]
    WatchdogTrigger,
    /// SYNC0 is configured for a SubDevice without a clock.
    #[error("SYNC0 is configured, but its ESC has no distributed clock; remove its SYNC0")]
    NoClock,
    /// SYNC0 is configured on a bus without distributed clocks.
    #[error("SYNC0 is configured, but distributed clocks are off; switch them on or remove its SYNC0")]
    ClocksOff,
    /// Process data that takes more than one datagram, exchanged every few cycles.
    #[error(
        "its process data of {found} bytes takes more than one datagram, expected one, as it goes every {every} cycles; \
         remove every"
    )]
    TooLargeToWait {
        /// Cycles from one exchange to the next.
        every: u16,
        /// Bytes of its process data.
        found: usize,
    },
    /// Latch inputs are configured for a SubDevice without a clock.
    #[error("latch inputs are configured, but its ESC has no distributed clock; remove its latch inputs")]
    NoLatches,
    /// SYNC0 does not start.
    #[error("SYNC0 did not start in {tries} tries: {last}")]
    SyncMissed {
        /// Tries.
        tries: u32,
        /// Reason for the last one.
        last: SyncMiss,
    },
}

impl SubDeviceError {
    /// Object between the SubDevice and its failure, or the statement about it.
    pub(super) fn joint(&self) -> &'static str {
        match self {
            Self::Refused { .. } | Self::StateTimeout { .. } => " ",
            _ => ": ",
        }
    }
}

/// Finding in place of the expected: a number of entries, an assigned PDO, a mapped object.
fn mapped_differently(index: u16, sub_index: u8, expected: u32, found: u32) -> String {
    let object = |value: u32| {
        let it = PdoEntry::from_mapping_value(value);
        format!("{:#06x}:{:02x} ({} bits)", it.index, it.sub_index, it.bit_length)
    };
    let assigns = matches!(index, ASSIGNMENT_OUTPUTS | ASSIGNMENT_INPUTS);
    let what = match (sub_index, assigns) {
        (0, true) => format!("has {found} PDOs, expected {expected}"),
        (0, false) => format!("has {found} entries, expected {expected}"),
        (_, true) => format!("assigns PDO {found:#06x}, expected {expected:#06x}"),
        (_, false) => format!("maps {}, expected {}", object(found), object(expected)),
    };
    format!("{index:#06x}:{sub_index:02x} {what}; correct the pdos it is given")
}

fn no_samples(wanted: Option<u16>, assigned: &[u16]) -> String {
    let assigned: Vec<String> = assigned.iter().map(|index| format!("{index:#06x}")).collect();
    let assigned = if assigned.is_empty() { "none".to_owned() } else { assigned.join(", ") };
    match wanted {
        Some(wanted) => {
            format!("PDO {wanted:#06x} is to hold samples, expected one that its SII assigns: {assigned}")
        }
        None => format!(
            "oversampling is configured, but its SII marks no PDO as a sample; name the PDOs that \
             hold a sample, of {assigned}"
        ),
    }
}

/// A watchdog's time.
fn described(watchdog: Option<Duration>) -> String {
    watchdog.map_or_else(|| "off".to_owned(), |time| format!("{time:?}"))
}

/// A dead cable returns nothing; late replies show that the cable works.
fn why_lost(late: u64) -> String {
    match late {
        0 => "check the cable".to_owned(),
        late => format!(
            "{late} {} came too late in that time; check what keeps this machine or the SubDevices busy",
            plural(late as usize, "reply", "replies")
        ),
    }
}

/// Remedy for the refusals that mappings and clocks cause.
fn what_to_do(code: AlStatusCode) -> &'static str {
    match code {
        AlStatusCode::INVALID_OUTPUT_CONFIGURATION
        | AlStatusCode::INVALID_INPUT_CONFIGURATION
        | AlStatusCode::INVALID_SYNC_MANAGER => "; check its PDO mapping",
        _ => "",
    }
}

/// The state without the error flag, which the code says better.
fn shown(status: AlStatus) -> AlStatus {
    AlStatus { error: false, ..status }
}

fn reason(code: AlStatusCode) -> String {
    match code {
        AlStatusCode::NO_ERROR => " without saying why; restart it".to_owned(),
        code => format!(", AL status code {code}{}", what_to_do(code)),
    }
}

fn describe(expected: &ExpectedIdentity) -> String {
    let ExpectedIdentity { vendor_id, product_code, revision } = expected;
    match revision {
        Some(revision) => {
            format!("vendor {vendor_id:#010x} product {product_code:#010x} revision {revision:#010x}")
        }
        None => format!("vendor {vendor_id:#010x} product {product_code:#010x}"),
    }
}

/// Action that is waited for, and the register it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// The action.
    pub what: AwaitedAction,
    /// The register.
    pub register: u16,
}

/// Action that is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AwaitedAction {
    /// Its station address is written.
    StationAddress,
    /// A register is read or written.
    Answer,
    /// Its SII is read.
    Eeprom,
    /// SYNC0 is started.
    Sync0,
    /// Its clock is set.
    Clock,
    /// It changes to this state.
    State(AlState),
    /// An object is written, or read and compared: index and sub-index.
    Sdo(u16, u8),
    /// Its PDO mapping is read by SDO.
    Mapping,
}

impl fmt::Display for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.what {
            AwaitedAction::StationAddress => f.write_str("its station address"),
            AwaitedAction::Answer => f.write_str("an answer"),
            AwaitedAction::Eeprom => f.write_str("its EEPROM"),
            AwaitedAction::Sync0 => f.write_str("the start of SYNC0"),
            AwaitedAction::Clock => f.write_str("its clock"),
            AwaitedAction::State(state) => write!(f, "state {state}"),
            AwaitedAction::Sdo(index, sub_index) => write!(f, "SDO {index:#06x}:{sub_index:02x}"),
            AwaitedAction::Mapping => f.write_str("its PDO mapping by SDO"),
        }?;
        write!(f, ", register {:#06x}", self.register)
    }
}

/// Reason that SYNC0 does not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncMiss {
    /// Its start time had passed when it was activated; it was read back so much later.
    Late(Duration),
    /// Its ESC does not take the activation.
    NotTaken,
}

impl fmt::Display for SyncMiss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Late(by) => write!(f, "its start time had passed when it was activated, {} before it was read back", span(*by)),
            Self::NotTaken => f.write_str(
                "its ESC does not take the activation, register 0x0981: its application may keep the SYNC unit, register 0x0980",
            ),
        }
    }
}
