//! Watchdogs of the SubDevices: their settings, and a check that they were taken (ETG.1000.4, 6.8).
//!
//! Two things make outputs watched: the time in register 0x0420, and the bit of their SyncManager's
//! control byte with which a write to it feeds the watchdog. Both are set, or neither: applications
//! refuse one without the other (AL status code 0x1F). Not every SII sets the bit for outputs (the
//! AKD drive's does not: 0x24), and some SIIs that set it have no time, so neither is taken from
//! the SII.

use core::time::Duration;

use crate::register::sync_manager::LENGTH;
use crate::register::{self, SyncManager, SyncManagerDirection, SyncManagerMode, Watchdogs};
use crate::wire::read_u16;

use super::configuration::Watchdog;
use super::error::SubDeviceError;
use super::sub_device::SubDevice;

impl SubDevice {
    /// The time without outputs after which it leaves Op; `None` if it never does. Known once its
    /// process data is set up.
    #[must_use]
    pub fn output_watchdog(&self) -> Option<Duration> {
        self.watchdogs.filter(|_| self.feeds_watchdog).and_then(|it| it.process_data_time())
    }

    /// True if it has outputs that stay as they are when no new ones come: its watchdog is off.
    #[must_use]
    pub fn has_unwatched_outputs(&self) -> bool {
        self.watchdogs.is_some() && self.mapping.output_bits() > 0 && self.output_watchdog().is_none()
    }

    /// Computes the register values of its watchdogs, once its mapping is known.
    pub(super) fn want_watchdogs(&mut self) -> Watchdogs {
        let default = Watchdog::default();
        let process_data = if self.mapping.output_bits() > 0 { self.wanted_watchdog } else { default };
        let pdi = self.wanted_pdi_watchdog.unwrap_or(default);
        self.wanted_watchdogs = Watchdogs::new(process_data.time(), pdi.time());
        self.wanted_watchdogs
    }
}

/// The control byte of a SyncManager: outputs feed the watchdog unless it is off.
pub(super) fn control(watchdog: Watchdog, sync_manager: &SyncManager) -> u8 {
    match (sync_manager.direction(), watchdog) {
        (Some(SyncManagerDirection::Write), Watchdog::After(_)) => {
            sync_manager.control | SyncManager::CONTROL_WATCHDOG
        }
        (Some(SyncManagerDirection::Write), Watchdog::Off) => {
            sync_manager.control & !SyncManager::CONTROL_WATCHDOG
        }
        _ => sync_manager.control,
    }
}

/// The watchdogs in the registers from the divider on.
pub(super) fn parse(registers: &[u8]) -> Option<Watchdogs> {
    let at = |address: u16| read_u16(registers, usize::from(address - register::WATCHDOG_DIVIDER));
    Some(Watchdogs {
        divider: at(register::WATCHDOG_DIVIDER)?,
        pdi: at(register::WATCHDOG_TIME_PDI)?,
        process_data: at(register::WATCHDOG_TIME_PROCESS_DATA)?,
    })
}

/// True if all of these SyncManagers that take outputs feed the watchdog.
pub(super) fn is_fed(registers: &[u8]) -> bool {
    let takes_outputs = |it: &SyncManager| {
        let buffered = it.mode() == Some(SyncManagerMode::Buffered);
        it.active && buffered && it.direction() == Some(SyncManagerDirection::Write)
    };
    let mut found = registers.chunks_exact(usize::from(LENGTH)).filter_map(SyncManager::parse);
    found.all(|it| !takes_outputs(&it) || it.triggers_watchdog())
}

/// Checks that the watchdogs took the written values.
pub(super) fn check(it: &SubDevice) -> Result<(), SubDeviceError> {
    let Some(found) = it.watchdogs else { return Ok(()) };
    let wanted = it.wanted_watchdogs;
    let same = |name, key, expected, found| match expected == found {
        true => Ok(()),
        false => Err(SubDeviceError::Watchdog { name, key, expected, found }),
    };
    if it.wanted_pdi_watchdog.is_some() {
        same("PDI", "pdi_watchdog", wanted.pdi_time(), found.pdi_time())?;
    }
    if it.mapping.output_bits() == 0 {
        return Ok(());
    }
    let expected = wanted.process_data_time();
    same("process data", "process_data_watchdog", expected, found.process_data_time())?;
    if expected.is_some() && !it.feeds_watchdog {
        return Err(SubDeviceError::WatchdogTrigger);
    }
    Ok(())
}
