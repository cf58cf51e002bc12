//! Controller that keeps every axis in place.

use control::controller::{AxisCommand, AxisReport, Controller, CycleInfo};
use control::signal::Io;
use ethercat::cia402::Request;
use motion::{AxisPhase, AxisSetpoint};

/// Enables every axis and keeps it in place.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hold;

impl Controller for Hold {
    fn update(&mut self, _: CycleInfo, io: &mut Io<'_>) {
        let (reports, commands) = io.split();
        for (report, command) in reports.iter().zip(commands) {
            hold(report, command);
        }
    }
}

/// Enables an axis and keeps it in place.
pub(crate) fn hold(report: &AxisReport, command: &mut AxisCommand) {
    command.request = Request::Enable;
    if let AxisPhase::HoldingAt(position) = report.feedback.phase {
        command.setpoint = AxisSetpoint { position, ..AxisSetpoint::default() };
    }
}
