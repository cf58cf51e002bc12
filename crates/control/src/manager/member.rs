//! A controller that a switch can activate.

use runtime::controller::{Controller, ControllerOutput};

use crate::drive::Drive;
use crate::trajectory::JointTrajectory;

/// A controller, and its axes.
pub struct Member {
    pub(super) mover: Mover,
    axes: Vec<usize>,
}

/// Kinds of controllers.
pub enum Mover {
    /// Any other controller.
    Plain(Box<dyn Controller>),
    /// Follows trajectories from port `trajectory`.
    Trajectory(Box<JointTrajectory>),
    /// Drives a base: its odometry continues while another controller is active.
    Drive(Box<Drive>),
}

impl Member {
    /// A controller of the axes with these indices; the switch holds the others.
    #[must_use]
    pub fn new(mover: Mover, axes: &[usize]) -> Self {
        Self { mover, axes: axes.to_vec() }
    }

    pub(super) fn moves(&self, axis: usize) -> bool {
        self.axes.contains(&axis)
    }

    pub(super) fn controller(&mut self) -> &mut dyn Controller {
        match &mut self.mover {
            Mover::Plain(controller) => &mut **controller,
            Mover::Trajectory(controller) => &mut **controller,
            Mover::Drive(controller) => &mut **controller,
        }
    }

    pub(super) fn output(&self) -> ControllerOutput {
        match &self.mover {
            Mover::Plain(controller) => controller.output(),
            Mover::Trajectory(controller) => controller.output(),
            Mover::Drive(controller) => controller.output(),
        }
    }

    pub(super) fn drive(&self) -> Option<&Drive> {
        match &self.mover {
            Mover::Drive(drive) => Some(drive),
            _ => None,
        }
    }
}

impl std::fmt::Debug for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Member").field("axes", &self.axes).finish_non_exhaustive()
    }
}
