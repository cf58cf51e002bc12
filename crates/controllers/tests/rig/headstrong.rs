//! A controller that ignores `stopping`.

use control::controller::{Controller, CycleInfo};
use control::signal::Io;
use ethercat::cia402::Request;
use motion::{AxisPhase, Radians, RadiansPerSecond};
use onbeat_controllers::{Member, MemberKind};

use super::CYCLE;

/// Speed of its axes.
pub const SPEED: f64 = 0.1;

/// Moves its axes whenever they follow, as the example of a controller process does.
pub struct Headstrong {
    /// It holds its axes while `stopping` is set.
    pub obeys: bool,
}

impl Headstrong {
    pub fn member(obeys: bool, axes: usize) -> Member {
        Member::new(MemberKind::Plain(Box::new(Self { obeys })), &(0..axes).collect::<Vec<_>>())
    }
}

impl Controller for Headstrong {
    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        let (reports, commands) = io.split();
        for (report, command) in reports.iter().zip(commands) {
            command.request = Request::Enable;
            let follows = report.feedback.phase == AxisPhase::Following;
            let speed = if follows && !(info.stopping && self.obeys) { SPEED } else { 0.0 };
            if let AxisPhase::HoldingAt(place) = report.feedback.phase {
                command.setpoint.position = place;
            }
            command.setpoint.position += Radians(speed * CYCLE);
            command.setpoint.velocity = RadiansPerSecond(speed);
        }
    }
}
