//! Changes of an ESC that its segment has to follow, and the ESC's rest, while nothing is in
//! progress in it.

use core::ops::Range;
use core::time::Duration;

use ethercat::register;
use ethercat::time::Instant;

use super::Esc;
use super::fmmu::FmmuUnit;

/// Changes of one ESC, or of several.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Changes {
    /// Loop settings were written, or power came back: links are checked again.
    pub(crate) links: bool,
    /// Station address, or the use of the alias.
    pub(crate) stations: bool,
    /// FMMUs.
    pub(crate) fmmus: bool,
    /// Mask of the events that it reports.
    pub(crate) events: bool,
    /// Write protection was opened for this frame.
    pub(crate) protection: bool,
}

impl Changes {
    /// All changes, for an ESC that was not looked at yet.
    pub(crate) const ALL: Self =
        Self { links: true, stations: true, fmmus: true, events: true, protection: true };

    /// Adds the changes of another.
    pub(crate) fn add(&mut self, other: Self) {
        self.links |= other.links;
        self.stations |= other.stations;
        self.fmmus |= other.fmmus;
        self.events |= other.events;
        self.protection |= other.protection;
    }
}

impl Esc {
    /// Notes a write of registers.
    pub(super) fn note_changes(&mut self, written: &Range<u32>) {
        let touches = |start: u16, length: u32| {
            written.start < u32::from(start) + length && written.end > u32::from(start)
        };
        let changes = &mut self.changes;
        changes.links |= touches(register::DL_CONTROL_LOOPS, 1);
        changes.stations |= touches(register::STATION_ADDRESS, 4) || touches(register::DL_CONTROL_ALIAS, 1);
        changes.fmmus |= touches(register::FMMU, 0x100);
        changes.events |= touches(register::ECAT_EVENT_MASK, 2);
        changes.protection |=
            touches(register::WRITE_REGISTER_ENABLE, 1) || touches(register::ESC_WRITE_ENABLE, 1);
    }

    /// Takes the changes since the last call.
    pub(crate) fn take_changes(&mut self) -> Changes {
        core::mem::take(&mut self.changes)
    }

    /// Addresses by which FPxx commands reach it: its own, and its alias where that is in use.
    pub(crate) fn stations(&self) -> impl Iterator<Item = u16> + use<> {
        let uses_alias = self.memory.byte(register::DL_CONTROL_ALIAS) & 1 != 0;
        let alias = uses_alias.then(|| self.memory.word(register::STATION_ALIAS));
        core::iter::once(self.memory.word(register::STATION_ADDRESS)).chain(alias)
    }

    /// Logical addresses that each FMMU maps.
    pub(crate) fn logical_spans(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.fmmus.iter().map(FmmuUnit::span).filter(|span| !span.is_empty())
    }

    /// True if the fieldbus enabled events.
    pub(crate) fn has_event_mask(&self) -> bool {
        self.memory.word(register::ECAT_EVENT_MASK) != 0
    }

    /// True if nothing is under way that further steps of `step` each would find, before a watchdog
    /// expires or an access.
    pub(crate) fn is_at_rest(&self, step: Duration) -> bool {
        let alive = self.watchdog_period(register::WATCHDOG_TIME_PDI);
        !self.state_requested
            && !self.sync_managers_switched
            && !self.reset_requested
            && !self.sii.is_writing()
            && !self.temporary_loops.are_set()
            && !self.process_data_watchdog.is_forced()
            && alive.is_none_or(|period| period >= step)
    }

    /// Time at which the process data watchdog expires, unless it is fed.
    pub(crate) fn watchdog_expiry(&self) -> Option<Instant> {
        self.process_data_watchdog.deadline()
    }

    /// Makes up for accesses of the application in steps that were skipped, `time` in all.
    pub(crate) fn skip(&mut self, time: Duration) {
        self.application_watchdog.postpone(time);
    }
}
