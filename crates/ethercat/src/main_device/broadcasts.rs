//! Broadcasts: the part of bring-up that is sent to all SubDevices at once.

use core::time::Duration;

use crate::al::AlState;
use crate::time::Instant;

use super::MainDevice;
use super::bring_up::Broadcast;
use super::error::BusError;
use super::limits::{self, Limits};
use super::phase::Phase;
use super::retry::RetryCounter;

/// Broadcasts being sent one after the other.
#[derive(Debug)]
pub(super) struct Broadcasts {
    pub(super) list: &'static [Broadcast],
    pub(super) next: usize,
    pub(super) awaiting: bool,
    /// The reply on its way belongs to a broadcast that was given up.
    stale: bool,
    lost: RetryCounter,
    /// SubDevices that answered the count.
    pub(super) counted: Option<u16>,
    /// Rounds of opening ports in a row that found no more.
    pub(super) without_more: u32,
    /// Since when this phase's have been under way.
    pub(super) since: Option<Instant>,
}

impl Broadcasts {
    pub(super) fn new(list: &'static [Broadcast]) -> Self {
        Self {
            list,
            next: 0,
            awaiting: false,
            stale: false,
            lost: RetryCounter::default(),
            counted: None,
            without_more: 0,
            since: None,
        }
    }

    pub(super) fn start(&mut self, list: &'static [Broadcast]) {
        let Self { counted, without_more, awaiting, since, .. } = *self;
        *self = Self { counted, without_more, stale: awaiting, awaiting, since, ..Self::new(list) };
    }

    pub(super) fn is_done(&self) -> bool {
        self.next == self.list.len()
    }

    /// First register of the broadcast in progress.
    pub(super) fn awaited(&self) -> Option<u16> {
        self.list.get(self.next).map(|broadcast| broadcast.register())
    }

    /// Puts off when they are given up.
    pub(super) fn put_off(&mut self, by: Duration) {
        self.since = self.since.map(|since| since + by);
        self.lost.put_off(by);
    }

    /// When there is one to send.
    pub(super) fn due(&self) -> Option<Instant> {
        (!self.is_done() && !self.awaiting).then_some(Instant::EPOCH)
    }
}

impl MainDevice {
    /// Each broadcast is answered or given up soon; a loop of port openings, or of single lost
    /// frames, could last for ever.
    pub(super) fn expire_broadcasts(&mut self, now: Instant) {
        let Some(register) = self.broadcasts.awaited() else { return };
        let after = now.since(*self.broadcasts.since.get_or_insert(now));
        if after < Limits::of(&self.configuration).stuck() {
            return;
        }
        if self.phase.is_going_down() {
            return self.phase = Phase::Down;
        }
        let found = self.broadcasts.counted.unwrap_or(0);
        self.fail(BusError::Unsettled { register, after, found });
    }

    pub(super) fn broadcast_answered(&mut self, working_counter: u16) {
        let broadcasts = &mut self.broadcasts;
        broadcasts.awaiting = false;
        if core::mem::take(&mut broadcasts.stale) {
            return;
        }
        broadcasts.lost = RetryCounter::default();
        let answered = broadcasts.list.get(broadcasts.next).copied();
        broadcasts.next = (broadcasts.next + 1).min(broadcasts.list.len());
        if answered != Some(Broadcast::Count) {
            self.asked_together(working_counter);
            return;
        }
        match broadcasts.counted {
            None => broadcasts.counted = Some(working_counter),
            Some(before) if self.phase == Phase::OpenPorts && before <= working_counter => {
                broadcasts.without_more =
                    if before == working_counter { broadcasts.without_more + 1 } else { 0 };
                broadcasts.counted = Some(working_counter);
            }
            Some(expected) if expected != working_counter => {
                let state = AlState::Init;
                self.fail(BusError::Incomplete { expected, found: working_counter, state });
            }
            Some(_) => {}
        }
        if working_counter == 0 {
            self.fail(self.nobody());
        }
    }

    pub(super) fn broadcast_lost(&mut self, now: Instant) {
        self.broadcasts.awaiting = false;
        if core::mem::take(&mut self.broadcasts.stale) {
            return;
        }
        self.broadcasts.lost.count(now);
        if self.phase.is_going_down() {
            if self.broadcasts.lost.exhausts(limits::LOST_BROADCASTS_DOWN) {
                self.broadcasts.next = self.broadcasts.list.len();
                self.phase = Phase::Down;
            }
        } else if self.broadcasts.lost.exhausts(limits::LOST_BROADCASTS) {
            self.fail(self.nobody());
        }
    }

    /// Reason that no broadcast was answered.
    fn nobody(&self) -> BusError {
        match (self.exchange.unchanged_source, self.exchange.reflected) {
            (found @ 1.., _) if !self.exchange.takes_unchanged_source => {
                BusError::UnchangedSource { found, source_address: self.configuration.source }
            }
            (_, found @ 1..) => BusError::Reflected { found },
            _ => BusError::Empty,
        }
    }
}
