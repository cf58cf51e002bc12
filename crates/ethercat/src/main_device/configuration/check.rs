//! Checks of a configuration before there is a bus.

use alloc::format;
use alloc::string::String;
use core::time::Duration;

use thiserror::Error;

use crate::pdo::Pdo;
use crate::wire::MacAddress;

use super::{
    Configuration, LONGEST_WATCHDOG, MAXIMUM_SUB_DEVICES, Presence, ProcessDataSource,
    SubDeviceConfiguration, Sync0, Sync1, Watchdog,
};

/// Reason that a configuration cannot be run.
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
    /// SYNC1 cannot be generated.
    #[error(
        "SubDevice {position} \"{name}\": SYNC1 every {:?} with a delay of {:?}, expected {}",
        found.cycle,
        found.delay,
        sync1_expected(sync0)
    )]
    Sync1 {
        /// Place in the segment, from 0.
        position: usize,
        /// Its name.
        name: String,
        /// Value given.
        found: Sync1,
        /// SYNC0 it would depend on.
        sync0: Option<Sync0>,
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
    /// A group whose SubDevices differ in their presence.
    #[error(
        "SubDevice {position} \"{name}\" is {found} in the group \"{group}\", expected {expected}, \
         as the first of that group: SubDevices that are plugged together have the same presence"
    )]
    MixedGroup {
        /// Position in the description, from 0.
        position: usize,
        /// Its name.
        name: String,
        /// Its group.
        group: String,
        /// Presence of the first of the group.
        expected: Presence,
        /// Presence given.
        found: Presence,
    },
    /// A hot-connect group with another SubDevice in it.
    #[error(
        "SubDevice {position} \"{name}\" is of the hot-connect group \"{group}\" behind a SubDevice that is not, expected all of a \
         group in a row, as they are plugged"
    )]
    SplitGroup {
        /// Position in the description, from 0.
        position: usize,
        /// Its name.
        name: String,
        /// Its group.
        group: String,
    },
    /// One alias for two SubDevices.
    #[error(
        "SubDevice {position} \"{name}\" has alias {alias}, expected every alias once: SubDevice {earlier} has it"
    )]
    SameAlias {
        /// Position in the description, from 0.
        position: usize,
        /// Its name.
        name: String,
        /// The alias.
        alias: u16,
        /// Place of the other.
        earlier: usize,
    },
    /// A SubDevice that may be absent, and that nothing distinguishes from others.
    #[error(
        "SubDevice {position} \"{name}\" is {presence} and has neither an alias nor an identity, \
         expected an alias or an identity, which identifies it among the others"
    )]
    Unidentified {
        /// Position in the description, from 0.
        position: usize,
        /// Its name.
        name: String,
        /// Presence given.
        presence: Presence,
    },
    /// A hot-connect SubDevice that nothing distinguishes from another.
    #[error(
        "SubDevice {position} \"{name}\" is hot_connect with the identity of SubDevice {other} and \
         no alias, expected an alias that distinguishes two alike"
    )]
    Alike {
        /// Position in the description, from 0.
        position: usize,
        /// Its name.
        name: String,
        /// Place of the other.
        other: usize,
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

impl ConfigurationError {
    /// Place of the SubDevice that it is about, from 0; `None` if it is about none.
    #[must_use]
    pub const fn position(&self) -> Option<usize> {
        match *self {
            Self::Sync0 { position, .. }
            | Self::Sync1 { position, .. }
            | Self::Watchdog { position, .. }
            | Self::MixedGroup { position, .. }
            | Self::SplitGroup { position, .. }
            | Self::SameAlias { position, .. }
            | Self::Unidentified { position, .. }
            | Self::Alike { position, .. }
            | Self::Pdo { position, .. } => Some(position),
            Self::Period { .. } | Self::Running | Self::Source { .. } | Self::TooManySubDevices { .. } => {
                None
            }
        }
    }
}

const MAXIMUM_PDO_BITS: usize = 1024 * 8;

impl Configuration {
    /// Runs all checks that need no bus.
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
        sub_devices.iter().enumerate().try_for_each(|(position, sub_device)| sub_device.check(position))?;
        check_presence(sub_devices)
    }
}

fn sync1_expected(sync0: &Option<Sync0>) -> String {
    match sync0 {
        None => "a SYNC0 that it depends on".into(),
        Some(Sync0 { cycle, .. }) => {
            format!("a multiple of SYNC0's {cycle:?} up to 4 s, and a delay below SYNC0's")
        }
    }
}

/// Refuses periods that no bus is run at.
pub(in super::super) fn check_period(found: Duration) -> Result<(), ConfigurationError> {
    let possible = Configuration::PERIODS.contains(&found);
    if possible { Ok(()) } else { Err(ConfigurationError::Period { found }) }
}

impl SubDeviceConfiguration {
    fn check(&self, position: usize) -> Result<(), ConfigurationError> {
        let name = || self.name.clone();
        if let Some(Sync0 { cycle, .. }) = self.sync0 {
            if !Sync0::CYCLES.contains(&cycle) {
                return Err(ConfigurationError::Sync0 { position, name: name(), found: cycle });
            }
        }
        if let Some(found) = self.sync1 {
            let (cycle, delay) = (found.cycle.as_nanos(), found.delay);
            let fits = |sync0: Sync0| {
                let is_multiple = cycle > 0 && cycle % sync0.cycle.as_nanos() == 0;
                is_multiple && Sync0::CYCLES.contains(&found.cycle) && delay < sync0.cycle
            };
            if !self.sync0.is_some_and(fits) {
                let sync0 = self.sync0;
                return Err(ConfigurationError::Sync1 { position, name: name(), found, sync0 });
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

/// Refuses groups that contradict themselves, and SubDevices that cannot be distinguished from
/// others.
fn check_presence(described: &[SubDeviceConfiguration]) -> Result<(), ConfigurationError> {
    if described.iter().all(|it| it.presence == Presence::Required) {
        return Ok(());
    }
    for (position, it) in described.iter().enumerate() {
        let (name, before) = (it.name.clone(), &described[..position]);
        let alias = it.alias.filter(|&alias| alias != 0);
        if let (Some(alias), Some(earlier)) = (alias, before.iter().position(|one| one.alias == alias)) {
            return Err(ConfigurationError::SameAlias { position, name, alias, earlier });
        }
        let first = it.group.as_ref().and_then(|_| before.iter().find(|one| one.group == it.group));
        if let (Some(first), Some(group)) = (first, it.group.clone()) {
            let (expected, found) = (first.presence, it.presence);
            if expected != found {
                return Err(ConfigurationError::MixedGroup { position, name, group, expected, found });
            }
            if found == Presence::HotConnect && !it.is_plugged_with(&described[position - 1]) {
                return Err(ConfigurationError::SplitGroup { position, name, group });
            }
        }
        let stands_behind = it.presence == Presence::HotConnect && first.is_some();
        if it.presence == Presence::Required || stands_behind || alias.is_some() {
            continue;
        }
        let Some(identity) = it.identity else {
            return Err(ConfigurationError::Unidentified { position, name, presence: it.presence });
        };
        let is_alike = |other: usize| {
            other != position && described[other].identity.is_some_and(|it| are_alike(it, identity))
        };
        if it.presence == Presence::HotConnect {
            if let Some(other) = (0..described.len()).find(|&it| is_alike(it)) {
                return Err(ConfigurationError::Alike { position, name, other });
            }
        }
    }
    Ok(())
}

/// The same product, in a revision that both allow.
fn are_alike(one: super::ExpectedIdentity, other: super::ExpectedIdentity) -> bool {
    let revisions = one.revision.zip(other.revision);
    (one.vendor_id, one.product_code) == (other.vendor_id, other.product_code)
        && revisions.is_none_or(|(one, other)| one == other)
}
