//! Axes, for people and for programs.

use ipc::description::AxisDescription;
use ipc::state::Axis;
use types::CyclicMode;

/// Set-point that an axis was sent, and its distance from that (the following error), where it is
/// known: in the unit of its mode.
pub(crate) fn target_and_error(axis: &Axis, described: &AxisDescription) -> (f64, Option<f64>) {
    let (target, actual) = match described.mode.cyclic() {
        CyclicMode::Position => (axis.target_position, Some(axis.position)),
        CyclicMode::Velocity => (axis.target_velocity, Some(axis.velocity)),
        CyclicMode::Torque => (axis.target_effort, described.measures_effort.then_some(axis.effort)),
    };
    (target, actual.map(|actual| target - actual))
}

/// Unit of what an axis of this mode is sent.
pub(crate) const fn unit(mode: CyclicMode) -> &'static str {
    match mode {
        CyclicMode::Position => "rad",
        CyclicMode::Velocity => "rad/s",
        CyclicMode::Torque => "N m",
    }
}
