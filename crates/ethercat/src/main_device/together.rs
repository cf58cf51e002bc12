//! Changes of state of all SubDevices at once: one broadcast requests it, and the AL status of all
//! in every cycle answers.
//!
//! Used on large buses while process data flows: separate requests and reads would take many
//! cycles, as few frames fit next to its process data. A SubDevice that does not follow is examined
//! alone, as on a small bus, and is reported by name.

use core::time::Duration;

use crate::al::{AlControl, AlState, AlStatus};
use crate::al_status_code::AlStatusCode;
use crate::register;
use crate::time::Instant;

use super::MainDevice;
use super::bring_up::Broadcast;
use super::cyclic::SUB_DEVICES_A_SERVICE;

/// Time after which each SubDevice is read alone; most SubDevices wait no longer for outputs in a
/// change to Op.
const TIMEOUT: Duration = Duration::from_millis(250);

/// Progress of a change of state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Together {
    /// Each requests its state separately.
    #[default]
    Apart,
    /// Workers wait before the request for this state, since then all.
    Gather(AlState, Option<Instant>),
    /// Requested from all, at this time.
    Asked(AlState, Instant),
}

/// Datagram that requests a state from all.
const TO_SAFE_OP: [Broadcast; 1] = [ask(AlState::SafeOp)];
const TO_OP: [Broadcast; 1] = [ask(AlState::Op)];

const fn ask(state: AlState) -> Broadcast {
    Broadcast::Write(register::AL_CONTROL, AlControl::request(state).bits() as u64, 2)
}

impl Together {
    /// Puts off the time-out after which each continues alone.
    pub(super) fn put_off(&mut self, by: Duration) {
        if let Self::Gather(_, Some(since)) | Self::Asked(_, since) = self {
            *since = *since + by;
        }
    }
}

impl MainDevice {
    /// Makes the plans just started request `to` together at their end, if that saves time: a frame
    /// of a cycle has space for a few dozen requests. Not with an absent or unexpected SubDevice,
    /// or one without an SII.
    pub(super) fn gather(&mut self, to: AlState) {
        let all_take_part = self.strangers.is_empty()
            && self.sub_devices.iter().all(|it| !it.is_absent && it.sii_problem.is_none());
        if all_take_part && self.sub_devices.len() > SUB_DEVICES_A_SERVICE {
            self.workers.iter_mut().for_each(|worker| worker.hold());
            self.together = Together::Gather(to, None);
        }
    }

    /// Lets each continue alone if it takes too long.
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

    /// Takes the AL status of all and the number of SubDevices that show it: requests the state
    /// once all have gathered, or ends the change when all have made it.
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

    /// Takes the number of SubDevices that received the broadcast request.
    pub(super) fn asked_together(&mut self, working_counter: u16) {
        let is_asked = matches!(self.together, Together::Asked(..));
        if is_asked && usize::from(working_counter) != self.workers.len() {
            self.part(None);
        }
    }

    /// Each continues alone; the state was requested at `asked`, or each requests it.
    fn part(&mut self, asked: Option<Instant>) {
        self.together = Together::Apart;
        self.workers.iter_mut().for_each(|worker| worker.go_on(asked));
    }
}
