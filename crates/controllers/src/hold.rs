//! Controller that keeps every axis in place.

use control::controller::{AxisCommand, AxisReport, Controller, CycleInfo, Io};
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
    hold_set_point(report, command);
}

/// Holds the position of axes that are shown as held, for any request to their drives.
pub(crate) fn hold_set_points(reports: &[AxisReport], commands: &mut [AxisCommand]) {
    reports.iter().zip(commands).for_each(|(report, command)| hold_set_point(report, command));
}

fn hold_set_point(report: &AxisReport, command: &mut AxisCommand) {
    if let AxisPhase::HoldingAt(position) = report.feedback.phase {
        command.setpoint = AxisSetpoint { position, ..AxisSetpoint::default() };
    }
}
