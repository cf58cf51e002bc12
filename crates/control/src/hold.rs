//! Every axis stays where it is.

use ethercat::cia402::Request;
use motion::{AxisPhase, AxisSetpoint};
use runtime::controller::{AxisCommand, AxisReport, Beat, Controller};

/// Every axis is enabled and stays where it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hold;

impl Controller for Hold {
    fn update(&mut self, _: Beat, reports: &[AxisReport], commands: &mut [AxisCommand]) {
        for (report, command) in reports.iter().zip(commands) {
            hold(report, command);
        }
    }
}

/// An axis is enabled and stays where it is.
pub(crate) fn hold(report: &AxisReport, command: &mut AxisCommand) {
    command.request = Request::Enable;
    if let AxisPhase::HoldingAt(position) = report.feedback.phase {
        command.setpoint = AxisSetpoint { position, ..AxisSetpoint::default() };
    }
}
