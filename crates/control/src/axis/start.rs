//! Start of a run: faults that a crash has left are reset (`reset_faults`), and nothing is enabled
//! by that.

use ethercat::cia402::{Request, State};
use motion::Seconds;

/// Behaviour of an axis at the start of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AxisStart {
    /// Error code of a fault that its drive had in PreOp, and that is reset in Op.
    pub reset: Option<u16>,
    /// It waits for a start request.
    pub waits: bool,
}

/// The start in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct StartUp {
    start: AxisStart,
    left: Seconds,
}

/// Action of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StartStep {
    /// None.
    Nothing,
    /// The drive gets the request for a fault reset.
    Reset,
    /// The axis waits for a start request from now on.
    Wait,
}

impl StartUp {
    pub(super) const fn new(start: AxisStart) -> Self {
        Self { start, left: RESET_TIME }
    }

    /// One cycle in Op, in which the drive shows this state and error code (0: not known yet), and
    /// its controller asks for this.
    pub(super) fn step(
        &mut self,
        elapsed: Seconds,
        state: Option<State>,
        error_code: u16,
        asked: Request,
    ) -> StartStep {
        if !state.is_some_and(State::is_faulted) {
            let waits = self.start.waits && state.is_some();
            if state.is_some() {
                self.start = AxisStart::default();
            }
            return if waits { StartStep::Wait } else { StartStep::Nothing };
        }
        let Some(code) = self.start.reset else {
            // A client that resets the fault has seen it: that is a start request.
            self.start.waits &= asked != Request::FaultReset;
            return StartStep::Nothing;
        };
        self.left = Seconds(self.left.0 - elapsed.0);
        if self.left.0 <= 0.0 || (error_code != 0 && error_code != code) {
            // A fault other than in PreOp, or a lasting one.
            self.start.reset = None;
            return StartStep::Nothing;
        }
        let is_known = error_code == code && state == Some(State::Fault);
        if is_known { StartStep::Reset } else { StartStep::Nothing }
    }
}

/// Time within which a fault is reset.
const RESET_TIME: Seconds = Seconds(2.0);

#[cfg(test)]
mod tests {
    use super::*;

    const CYCLE: Seconds = Seconds(1e-3);

    fn step(start: &mut StartUp, state: State, code: u16) -> StartStep {
        start.step(CYCLE, Some(state), code, Request::Enable)
    }

    #[test]
    fn the_fault_of_pre_op_is_reset_and_the_axis_waits() {
        let mut start = StartUp::new(AxisStart { reset: Some(0x7500), waits: true });
        assert_eq!(start.step(CYCLE, None, 0, Request::Enable), StartStep::Nothing);
        assert_eq!(step(&mut start, State::Fault, 0), StartStep::Nothing, "its code is not known yet");
        assert_eq!(step(&mut start, State::Fault, 0x7500), StartStep::Reset);
        assert_eq!(step(&mut start, State::SwitchOnDisabled, 0), StartStep::Wait);
        assert_eq!(step(&mut start, State::SwitchOnDisabled, 0), StartStep::Nothing, "once");
        assert_eq!(
            step(&mut start, State::Fault, 0x7500),
            StartStep::Nothing,
            "a later fault is not reset"
        );
    }

    #[test]
    fn another_fault_and_one_that_stays_are_not_reset() {
        let mut start = StartUp::new(AxisStart { reset: Some(0x7500), waits: true });
        assert_eq!(step(&mut start, State::Fault, 0x7305), StartStep::Nothing);
        assert_eq!(step(&mut start, State::Fault, 0x7500), StartStep::Nothing, "it was another one");
        let mut start = StartUp::new(AxisStart { reset: Some(0x7500), waits: true });
        let resets = (0..5_000).filter(|_| step(&mut start, State::Fault, 0x7500) == StartStep::Reset);
        assert!((1_990..2_001).contains(&resets.count()));
    }

    #[test]
    fn a_reset_by_a_person_is_a_start() {
        let mut start = StartUp::new(AxisStart { reset: None, waits: true });
        assert_eq!(step(&mut start, State::Fault, 0x2310), StartStep::Nothing);
        start.step(CYCLE, Some(State::Fault), 0x2310, Request::FaultReset);
        assert_eq!(step(&mut start, State::SwitchOnDisabled, 0), StartStep::Nothing);
    }
}
