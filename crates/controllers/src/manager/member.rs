//! A controller that a switch can activate.

use control::controller::{Controller, ControllerOutput};

use crate::base::BaseController;
use crate::trajectory::JointTrajectory;

/// A controller, and its axes.
pub struct Member {
    pub(super) kind: MemberKind,
    axes: Vec<usize>,
}

/// Kinds of controllers.
pub enum MemberKind {
    /// Any other controller.
    Plain(Box<dyn Controller>),
    /// Follows trajectories from port `trajectory`.
    Trajectory(Box<JointTrajectory>),
    /// Drives a base: its odometry continues while another controller is active.
    Base(Box<BaseController>),
}

impl Member {
    /// A controller of the axes with these indices; the switch holds the others.
    #[must_use]
    pub fn new(kind: MemberKind, axes: &[usize]) -> Self {
        Self { kind, axes: axes.to_vec() }
    }

    pub(super) fn moves(&self, axis: usize) -> bool {
        self.axes.contains(&axis)
    }

    pub(super) fn controller(&mut self) -> &mut dyn Controller {
        match &mut self.kind {
            MemberKind::Plain(controller) => &mut **controller,
            MemberKind::Trajectory(controller) => &mut **controller,
            MemberKind::Base(controller) => &mut **controller,
        }
    }

    pub(super) fn output(&self) -> ControllerOutput {
        match &self.kind {
            MemberKind::Plain(controller) => controller.output(),
            MemberKind::Trajectory(controller) => controller.output(),
            MemberKind::Base(controller) => controller.output(),
        }
    }

    pub(super) fn drive(&self) -> Option<&BaseController> {
        match &self.kind {
            MemberKind::Base(drive) => Some(drive),
            _ => None,
        }
    }
}

impl std::fmt::Debug for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Member").field("axes", &self.axes).finish_non_exhaustive()
    }
}
