//! Changes of state of all SubDevices at once: one broadcast asks, and the AL status of all that comes with every cycle answers.
//!
//! A bus of many is asked that way while process data flows, as requests and looks one by one would take many cycles: few frames
//! fit beside its process data. One that is not seen to follow is examined alone, as on a bus of few, and is reported by name.

use core::time::Duration;

use crate::al::{AlControl, AlState, AlStatus};
use crate::al_status_code::AlStatusCode;
use crate::register;
use crate::time::Instant;

use super::MainDevice;
use super::bring_up::Broadcast;
use super::cyclic::SUB_DEVICES_A_SERVICE;

/// Time after which each is looked at alone; a change to Op waits no longer for outputs in most SubDevices.
const TIMEOUT: Duration = Duration::from_millis(250);

/// Progress of a change of state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Together {
    /// Each asks for itself, if at all.
    #[default]
    Apart,
    /// Workers wait before the request for this state, since then all.
    Gather(AlState, Option<Instant>),
    /// All are asked, since then.
    Asked(AlState, Instant),
}

/// Datagram that asks all for a state.
const TO_SAFE_OP: [Broadcast; 1] = [ask(AlState::SafeOp)];
const TO_OP: [Broadcast; 1] = [ask(AlState::Op)];

const fn ask(state: AlState) -> Broadcast {
    Broadcast::Write(register::AL_CONTROL, AlControl::request(state).bits() as u64, 2)
}

impl Together {
    /// Puts off when each goes on alone.
    pub(super) fn put_off(&mut self, by: Duration) {
        if let Self::Gather(_, Some(since)) | Self::Asked(_, since) = self {
            *since = *since + by;
        }
    }
}

impl MainDevice {
    /// Has the plans just started ask for `to` together at their end, where that is worth it: in a frame of a cycle there is
    /// room for a few dozen. Who is absent, a stranger or without an SII is not to be asked.
    pub(super) fn gather(&mut self, to: AlState) {
        let all_take_part = self.strangers.is_empty()
            && self.sub_devices.iter().all(|it| !it.is_absent && it.sii_problem.is_none());
        if all_take_part && self.sub_devices.len() > SUB_DEVICES_A_SERVICE {
            self.workers.iter_mut().for_each(|worker| worker.hold());
            self.together = Together::Gather(to, None);
        }
    }

    /// Goes on alone where it takes too long.
    pub(super) fn expire_together(&mut self, now: Instant) {
        match self.together {
            Together::Gather(to, None) if self.workers.are_held() && !self.workers.pause(now) => {
                self.together = Together::Gather(to, Some(now));
            }
            Together::Gather(_, Some(since)) if now.since(since) >= TIMEOUT => self.part(None),
            Together::Asked(_, since) if now.since(since) >= TIMEOUT => self.part(Some(now)),
            _ => {}
        }
    }

    /// The AL status of all, as so many of them show it: asks once they have gathered, or ends what all have done.
    pub(super) fn see_together(&mut self, now: Instant, shown: AlStatus, working_counter: u16) {
        let all = usize::from(working_counter) == self.workers.len();
        let are_in = |state| all && shown == AlStatus::in_state(state);
        match self.together {
            Together::Gather(AlState::SafeOp, Some(_)) if are_in(AlState::PreOp) => {
                self.broadcasts.start(&TO_SAFE_OP);
                self.together = Together::Asked(AlState::SafeOp, now);
            }
            Together::Gather(AlState::Op, Some(_)) if are_in(AlState::SafeOp) => {
                self.broadcasts.start(&TO_OP);
                self.together = Together::Asked(AlState::Op, now);
            }
            Together::Gather(_, Some(_)) => self.part(None),
            Together::Asked(to, _) if self.broadcasts.is_done() && are_in(to) => {
                self.together = Together::Apart;
                for (place, it) in self.sub_devices.iter_mut().enumerate() {
                    (it.al_status, it.al_status_code) = (shown, AlStatusCode::NO_ERROR);
                    self.workers[place].arrived();
                }
            }
            Together::Asked(..) if self.broadcasts.is_done() && (shown.error || !all) => {
                self.part(Some(now));
            }
            _ => {}
        }
    }

    /// The broadcast that asks was taken by so many.
    pub(super) fn asked_together(&mut self, working_counter: u16) {
        let is_asked = matches!(self.together, Together::Asked(..));
        if is_asked && usize::from(working_counter) != self.workers.len() {
            self.part(None);
        }
    }

    /// Each goes on alone; it was `asked` already, or asks.
    fn part(&mut self, asked: Option<Instant>) {
        self.together = Together::Apart;
        self.workers.iter_mut().for_each(|worker| worker.go_on(asked));
    }
}
