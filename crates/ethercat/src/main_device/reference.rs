//! The reference clock while the bus runs: its time, and its replacement while it is gone.

use crate::time::Instant;
use crate::wire::{Command, read_u32, read_u64};

use super::MainDevice;
use super::clock;
use super::limits;
use super::phase::Phase;
use super::sub_device::SubDevice;
use super::sync0::{Sync, SyncPhase};
use super::worker::ReferenceClock;

impl MainDevice {
    /// The reference clock as far as it is known, with its time even if frames were lost for a
    /// while. On a bus that came up without any clock, the first to join is set from the host's
    /// clock, and becomes the reference clock.
    pub(super) fn reference_clock(&self, now: Instant) -> ReferenceClock {
        let there = self.reference.map(|position| &self.sub_devices[usize::from(position)]);
        ReferenceClock {
            time: match self.reference_time {
                Some(known) => Some(went_on(known, now)),
                None if self.phase == Phase::Running => Some(self.host_time(now)),
                None => None,
            },
            is_whole: there.is_some_and(|it| it.information.features.distributed_clocks_64_bit()),
            there: there.and_then(|it| Some((it.station_address, it.clock?))),
        }
    }

    /// Time of the bus as this host has it.
    pub(super) fn host_time(&self, now: Instant) -> u64 {
        now.as_nanos().wrapping_add(self.configuration.system_time_at_epoch)
    }

    /// The newest system time of the reference clock, in ns, and the send time of its frame; each
    /// returned once.
    pub fn take_reference_sample(&mut self) -> Option<(u64, Instant)> {
        self.reference_sample.take()
    }

    /// SYNC0 and SYNC1 of the SubDevice at `position` against the newest frame with the reference
    /// clock's time; `None` for a pulse that it does not have.
    #[must_use]
    pub fn sync_phases(&self, position: usize) -> [Option<SyncPhase>; 2] {
        let configured = self.configuration.sub_devices.as_ref().and_then(|it| it.get(position));
        let sync = configured.and_then(Sync::of);
        let there = self.sub_devices.get(position).filter(|it| !it.is_absent).and_then(|it| it.clock);
        let (Some(sync), Some(there), Some((passage, _))) = (sync, there, self.reference_time) else {
            return [None; 2];
        };
        let reference = self.reference.and_then(|it| self.sub_devices[usize::from(it)].clock);
        let before = reference.map_or(0, |it| it.delay);
        sync.phases(passage.wrapping_add(there.delay.into()).wrapping_sub(before.into()))
    }

    /// About the time of the bus, from its last reading or from the setting of the clocks.
    pub(super) fn bus_time(&self, now: Instant) -> Option<u64> {
        self.reference_time.or(self.clocks_set).map(|known| went_on(known, now))
    }

    /// Complete time of the reference clock in a reply; `None` if there was none. It was sent with
    /// zeroes, which only the reference clock replaces; a 32-bit clock shows zero for a moment at
    /// each wrap.
    fn told_time(&self, now: Instant, data: &[u8]) -> Option<u64> {
        if let Some(time) = read_u64(data, 0) {
            return (time != 0).then_some(time);
        }
        let (about, low) = (self.bus_time(now)?, read_u32(data, 0)?);
        let time = clock::nearest(about, low);
        (low != 0 || about.abs_diff(time) < AT_THE_WRAP).then_some(time)
    }

    /// The datagram that reads the reference clock's time came back. Without its time all others
    /// were sent zero: from then on it is read alone, until it answers, or is silent
    /// [`limits::REFERENCE_SILENT`] consecutive times and is given up. In an open ring one lost
    /// copy is enough for a zero.
    pub(super) fn take_reference_time(&mut self, now: Instant, data: &[u8]) {
        if let Some(time) = self.told_time(now, data) {
            self.note_reference_time(now, time);
        } else if self.phase == Phase::Running {
            self.cycle.expect_nothing();
            self.reference_silent += 1;
            if self.reference_silent >= limits::REFERENCE_SILENT {
                self.reference = None;
                self.reference_lost = Some(now);
            }
        }
    }

    /// The reference clock's time came `now`, whole.
    pub(super) fn note_reference_time(&mut self, now: Instant, time: u64) {
        self.reference_time = Some((time, now));
        self.reference_sample = Some((time, self.answered_sent_at));
        self.reference_silent = 0;
    }

    /// Command that reads the reference clock's time, and hands it on unless that clock is in
    /// doubt.
    pub(super) fn reference_command(&self) -> Command {
        if self.reference_silent == 0 { Command::Frmw } else { Command::Fprd }
    }

    /// Makes the first clock in the order of frames that is kept the reference clock: frames pass
    /// it first.
    pub(super) fn elect_reference(&mut self) {
        let kept = self
            .sub_devices
            .iter()
            .filter(|it| it.clock.is_some() && self.recovery.keeps_its_clock(it.position));
        self.reference = kept.min_by_key(|it| it.processed).map(|it| it.position);
        // A clock that frames pass before it, and that is on its way back, would receive zero as
        // the time.
        let first = self.reference.map(|it| self.sub_devices[usize::from(it)].processed);
        let comes = |it: &SubDevice| {
            self.recovery.is_under_way(it.position) && first.is_some_and(|first| it.processed < first)
        };
        self.reference_hands_on = !self.sub_devices.iter().any(comes);
        (self.reference_lost, self.reference_silent) = (None, 0);
    }
}

/// A time that was known then, by now.
fn went_on((time, at): (u64, Instant), now: Instant) -> u64 {
    time.wrapping_add(types::time::nanoseconds(now.since(at)))
}

/// ns around a wrap of 32 bits in which zero is a time as any other.
const AT_THE_WRAP: u64 = 1_000_000;
