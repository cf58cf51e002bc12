//! Modes of operation of the axes, for the active controller, or the next one during a switch.

use control::controller::{AxisCommand, AxisReport};
use ethercat::cia402::AxisMode;

use super::requests::Doing;
use super::{ControllerManager, ManagedAxis, Member};
use crate::hold::hold;

impl ControllerManager {
    /// Mode of an axis with this member active.
    pub(super) fn mode_with(&self, member: usize, axis: usize) -> AxisMode {
        let own = self.axes.get(axis).map_or(AxisMode::CyclicPosition, |it| it.mode);
        mode_of(self.members.get(member), axis, own)
    }

    /// True if an axis shows another mode than with this member active. Modes without motion do not
    /// count: homing, or a drive that shows no mode.
    pub(super) fn shows_another(&self, member: usize, axis: usize, report: &AxisReport) -> bool {
        let shown = report.mode.and_then(|mode| mode.axis());
        shown.is_some_and(|mode| mode != self.mode_with(member, axis))
    }

    /// Requests the modes of the active or the next controller from the axes, and holds all of them
    /// meanwhile.
    pub(super) fn change_modes(&mut self, commands: &mut [AxisCommand]) {
        if !self.changes_modes {
            return;
        }
        let coming = match self.job.map(|job| job.doing) {
            Some(Doing::Switching { to }) => Some(to),
            _ => None,
        };
        let member = coming.unwrap_or(self.active);
        let mut changes = coming.is_some();
        for (axis, command) in commands.iter_mut().enumerate() {
            if self.shown.get(axis).is_some_and(|report| self.shows_another(member, axis, report)) {
                // Only when the set-points belong to a hold: these fit any mode.
                command.mode = self.shows_held.then(|| self.mode_with(member, axis));
                changes = true;
            }
        }
        if changes {
            self.shown.iter().zip(commands).for_each(|(report, command)| hold(report, command));
            self.entering = true;
        }
    }
}

/// True if one of these members has an axis in another mode than its own.
pub(super) fn changes_modes(axes: &[ManagedAxis], members: &[Member]) -> bool {
    let differs = |member: &Member| {
        let is_other = |(axis, it): (usize, &ManagedAxis)| mode_of(Some(member), axis, it.mode) != it.mode;
        axes.iter().enumerate().any(is_other)
    };
    members.iter().any(differs)
}

fn mode_of(member: Option<&Member>, axis: usize, own: AxisMode) -> AxisMode {
    member.filter(|member| member.moves(axis)).and_then(|member| member.mode).unwrap_or(own)
}
