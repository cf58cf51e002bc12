//! Drives of unreferenced axes: a reset enables none of them. *Enable* does, to home or jog the
//! axis.

use control::controller::AxisReport;
use ethercat::cia402::{Request, State};
use motion::supervision::StopReason;

use super::ControllerManager;

impl ControllerManager {
    /// A reset begins: the drive of an unreferenced axis stays as it is.
    pub(super) fn note_off(&mut self) {
        for (off, report) in self.off.iter_mut().zip(&self.shown) {
            *off = report.state != Some(State::OperationEnabled);
        }
    }

    /// Request in place of `wanted` that leaves the drive off. Only while its axis is unreferenced.
    pub(super) fn leave_off(off: &mut bool, report: &AxisReport, wanted: Request) -> Request {
        *off &= report.state != Some(State::OperationEnabled);
        let unreferenced = report.stop.is_some_and(StopReason::is_unreferenced);
        match (wanted, report.state) {
            (Request::Enable | Request::Halt, Some(state)) if *off && unreferenced => match state {
                // The drive still brakes.
                State::QuickStopActive => Request::QuickStop,
                _ => Request::Disable,
            },
            _ => wanted,
        }
    }
}
