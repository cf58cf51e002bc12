//! The controllers a robot file can name.

use control::{Hold, Sinusoid, SwingSettings};
use motion::Radians;
use robot::{ControllerKind, Robot};
use runtime::controller::Controller;

use crate::failure::Failure;

/// What moves the axes of `robot`.
pub(crate) fn controller(robot: &Robot) -> Result<Box<dyn Controller>, Failure> {
    // There is always one.
    let Some(controller) = robot.controllers.first() else { return Ok(Box::new(Hold)) };
    match &controller.kind {
        ControllerKind::Hold => Ok(Box::new(Hold)),
        ControllerKind::Sinusoid(swings) => {
            let swings = controller.axes.iter().zip(swings).map(|(&axis, swing)| SwingSettings {
                axis,
                sinusoid: swing.trajectory(),
                delay: swing.delay(),
                position_limits: position_limits(robot, axis),
            });
            Ok(Box::new(Sinusoid::new(&swings.collect::<Vec<_>>())))
        }
        other => Err(Failure::new(format!(
            "controller \"{}\": this version of onbeat runs hold and sinusoid, not yet {}",
            controller.name,
            other.name()
        ))),
    }
}

fn position_limits(robot: &Robot, axis: usize) -> Option<(Radians, Radians)> {
    let limits = robot.axes[axis].limits.position;
    limits.map(|(lowest, highest)| (Radians(lowest), Radians(highest)))
}
