//! Controllers of several tests.

use onbeat::motion::Radians;
use onbeat::{AxisPhase, Controller, CycleInfo, Io, Request};

/// Moves every axis on by positions, whatever its mode.
pub(crate) struct Positions;

impl Controller for Positions {
    fn update(&mut self, _: CycleInfo, io: &mut Io<'_>) {
        let (reports, commands) = io.split();
        for (report, command) in reports.iter().zip(commands) {
            command.request = Request::Enable;
            match report.feedback.phase {
                AxisPhase::HoldingAt(place) => command.setpoint.position = place,
                AxisPhase::Following => command.setpoint.position += Radians(1e-4),
                AxisPhase::NotEnabled => {}
            }
        }
    }
}
