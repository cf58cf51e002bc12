//! One change of state at one SubDevice (ETG.1000.6, 6.4.1): look, acknowledge, request, wait.
//!
//! Pure: AL registers in, the next access out.

use core::time::Duration;

use crate::al::{AlControl, AlState, AlStatus};
use crate::al_status_code::AlStatusCode;
use crate::time::Instant;

use super::error::SubDeviceError;
use super::limits;

/// Step to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// Read AL status and its code.
    Read,
    /// Write AL control.
    Write(AlControl),
}

/// Result of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StateProgress {
    /// Continue at once.
    Continue,
    /// Continue after a pause.
    Wait,
    /// The state is reached.
    Reached,
}

/// A change of state under way.
#[derive(Debug)]
pub(super) struct StateChange {
    requested: AlState,
    deadline: Instant,
    timeout: Duration,
    phase: Phase,
    looks: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Read the AL status.
    Look,
    /// Acknowledge an error that was shown before.
    Acknowledge,
    /// Write the request.
    Request,
    /// Wait for it.
    Poll,
}

impl StateChange {
    pub(super) fn new(requested: AlState, now: Instant, timeout: Duration) -> Self {
        Self { requested, deadline: now + timeout, timeout, phase: Phase::Look, looks: 0 }
    }

    /// A change that was requested already: only its end is awaited.
    pub(super) fn asked(requested: AlState, now: Instant, timeout: Duration) -> Self {
        Self { phase: Phase::Poll, ..Self::new(requested, now, timeout) }
    }

    /// Puts off when it is given up.
    pub(super) fn put_off(&mut self, by: Duration) {
        self.deadline = self.deadline + by;
    }

    /// Step to do next, given the state shown last.
    pub(super) fn ask(&self, shown: AlStatus) -> Ask {
        match self.phase {
            Phase::Look | Phase::Poll => Ask::Read,
            Phase::Acknowledge => {
                let (state, acknowledge) = (shown.state, true);
                Ask::Write(AlControl { state, acknowledge, request_identification: false })
            }
            Phase::Request => Ask::Write(AlControl::request(self.requested)),
        }
    }

    /// The access is done; `shown` is the value read, or the last one shown.
    pub(super) fn answered(
        &mut self,
        now: Instant,
        found: AlStatus,
        code: AlStatusCode,
    ) -> Result<StateProgress, SubDeviceError> {
        let requested = self.requested;
        let progress = match self.phase {
            Phase::Acknowledge => {
                self.phase = Phase::Look;
                StateProgress::Continue
            }
            Phase::Request => {
                self.phase = Phase::Poll;
                StateProgress::Continue
            }
            Phase::Look => self.looked(found),
            // Outputs were missing for longer than its watchdog time, as when this machine or a
            // switch stalled. They may flow again: Op is requested once more.
            Phase::Poll
                if found.error
                    && requested == AlState::Op
                    && code == AlStatusCode::SYNC_MANAGER_WATCHDOG
                    && now < self.deadline =>
            {
                (self.phase, self.looks) = (Phase::Look, 0);
                StateProgress::Wait
            }
            // Another process has died in the middle of a change of state, and its SubDevice
            // refuses that only now.
            Phase::Poll if found.error && requested == AlState::Init && now < self.deadline => {
                (self.phase, self.looks) = (Phase::Look, 0);
                StateProgress::Wait
            }
            Phase::Poll if found.error => {
                return Err(SubDeviceError::Refused { requested, found, code });
            }
            Phase::Poll if found.al_state() == Some(requested) => return Ok(StateProgress::Reached),
            Phase::Poll => StateProgress::Wait,
        };
        let timeout = self.timeout;
        let late = SubDeviceError::StateTimeout { requested, found, code, timeout };
        if now < self.deadline { Ok(progress) } else { Err(late) }
    }

    /// An ESC that emulates its application shows the acknowledge bit as an error until the next
    /// request: so the state is requested in the end.
    fn looked(&mut self, found: AlStatus) -> StateProgress {
        self.looks += 1;
        self.phase = match found.error {
            true if self.looks == 1 => Phase::Acknowledge,
            true if self.looks <= limits::ACKNOWLEDGE_LOOKS => Phase::Look,
            _ => Phase::Request,
        };
        if self.phase == Phase::Look { StateProgress::Wait } else { StateProgress::Continue }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(1);

    fn shown(state: AlState, error: bool) -> AlStatus {
        AlStatus { error, ..AlStatus::in_state(state) }
    }

    fn answer(change: &mut StateChange, found: AlStatus) -> Result<StateProgress, SubDeviceError> {
        change.answered(Instant::EPOCH, found, AlStatusCode(0x1B))
    }

    #[test]
    fn error_is_acknowledged_before_a_request() {
        let fallen = shown(AlState::SafeOp, true);
        let mut change = StateChange::new(AlState::Init, Instant::EPOCH, LIMIT);
        assert_eq!(change.ask(fallen), Ask::Read);
        answer(&mut change, fallen).unwrap();
        assert_eq!(change.ask(fallen), Ask::Write(AlControl::acknowledge(AlState::SafeOp)));
        answer(&mut change, fallen).unwrap();
        assert_eq!(change.ask(fallen), Ask::Read);
        answer(&mut change, shown(AlState::SafeOp, false)).unwrap();
        assert_eq!(change.ask(fallen), Ask::Write(AlControl::request(AlState::Init)));
        answer(&mut change, fallen).unwrap();
        assert_eq!(answer(&mut change, shown(AlState::SafeOp, false)), Ok(StateProgress::Wait));
        assert_eq!(answer(&mut change, shown(AlState::Init, false)), Ok(StateProgress::Reached));
    }

    #[test]
    fn persistent_emulated_error_does_not_block_the_request() {
        let stubborn = shown(AlState::Init, true);
        let mut change = StateChange::new(AlState::Init, Instant::EPOCH, LIMIT);
        for _ in 0..100 {
            if change.ask(stubborn) == Ask::Write(AlControl::request(AlState::Init)) {
                return;
            }
            answer(&mut change, stubborn).unwrap();
        }
        panic!("never asked");
    }

    #[test]
    fn op_without_outputs_is_requested_until_time_out() {
        let fallen = shown(AlState::SafeOp, true);
        let op = AlControl::request(AlState::Op);
        let mut change = StateChange::new(AlState::Op, Instant::EPOCH, LIMIT);
        let mut asked = 0;
        for _ in 0..100 {
            let is_request = change.ask(fallen) == Ask::Write(op);
            asked += usize::from(is_request);
            let found = if is_request { shown(AlState::SafeOp, false) } else { fallen };
            answer(&mut change, found).unwrap();
        }
        assert!(asked > 3, "{asked}");
        while change.ask(fallen) != Ask::Write(op) {
            answer(&mut change, fallen).unwrap();
        }
        answer(&mut change, fallen).unwrap();
        let code = AlStatusCode::SYNC_MANAGER_WATCHDOG;
        let refused = change.answered(Instant::EPOCH + LIMIT, fallen, code).unwrap_err();
        assert!(matches!(refused, SubDeviceError::Refused { requested: AlState::Op, .. }), "{refused}");
    }

    #[test]
    fn error_during_init_is_acknowledged_until_time_out() {
        let (well, left_over) = (shown(AlState::Init, false), shown(AlState::Init, true));
        let init = AlControl::request(AlState::Init);
        let mut change = StateChange::new(AlState::Init, Instant::EPOCH, LIMIT);
        answer(&mut change, shown(AlState::PreOp, false)).unwrap();
        assert_eq!(change.ask(well), Ask::Write(init));
        answer(&mut change, well).unwrap();
        assert_eq!(answer(&mut change, left_over), Ok(StateProgress::Wait));
        answer(&mut change, left_over).unwrap();
        assert_eq!(change.ask(left_over), Ask::Write(AlControl::acknowledge(AlState::Init)));
        answer(&mut change, left_over).unwrap();
        answer(&mut change, well).unwrap();
        assert_eq!(change.ask(well), Ask::Write(init));
        answer(&mut change, well).unwrap();
        let late = change.answered(Instant::EPOCH + LIMIT, left_over, AlStatusCode(0x16)).unwrap_err();
        assert!(matches!(late, SubDeviceError::Refused { code: AlStatusCode(0x16), .. }), "{late}");
    }

    #[test]
    fn a_refusal_and_a_late_answer_are_errors_that_show_the_code() {
        let mut change = StateChange::new(AlState::SafeOp, Instant::EPOCH, LIMIT);
        answer(&mut change, shown(AlState::PreOp, false)).unwrap();
        answer(&mut change, shown(AlState::PreOp, false)).unwrap();
        let late = change.answered(Instant::EPOCH + LIMIT, shown(AlState::PreOp, false), AlStatusCode(0));
        assert!(matches!(late, Err(SubDeviceError::StateTimeout { timeout: LIMIT, .. })));
        let refused = answer(&mut change, shown(AlState::PreOp, true)).unwrap_err();
        assert!(matches!(refused, SubDeviceError::Refused { code: AlStatusCode(0x1B), .. }));
    }
}
