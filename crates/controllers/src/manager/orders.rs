//! Trajectories for the active controller.
//!
//! Modes of operation of the axes, for the active controller, or the next one during a switch.

use control::controller::{AxisCommand, AxisReport, CycleInfo};
use ethercat::cia402::AxisMode;
use ipc::message::trajectory::{Abort, Order, Outcome, Rejection, Report};

use super::requests::Doing;
use super::{ControllerManager, ManagedAxis, Member, MemberKind, id_of};
use crate::hold::hold;
use crate::port::Port;

impl ControllerManager {
    /// Passes orders to the active controller, as many as a cycle has time for.
    pub(super) fn take_orders(&mut self, info: &CycleInfo) {
        let mut rows = 0;
        while rows < ROWS_A_CYCLE {
            let Some(port) = &mut self.trajectory else { return };
            let Some(length) = port.receive(&mut self.buffer) else { return };
            let bytes = &self.buffer[..length.min(self.buffer.len())];
            let order = match Order::decode(bytes) {
                Ok(order) => order,
                Err(_) => {
                    rows += 1;
                    let report = Report::new(id_of(bytes), Outcome::Rejected(Rejection::Malformed));
                    self.send_report(&report);
                    continue;
                }
            };
            rows += match &order {
                Order::Point(point) => point.positions.len(),
                Order::Begin(begin) => begin.axes.len(),
                // These check a whole row of segments.
                Order::Commit { .. } | Order::Cancel { .. } => ROWS_A_CYCLE,
            };
            match self.members.get_mut(self.active).map(|member| &mut member.kind) {
                Some(MemberKind::Trajectory(controller)) => controller.order(&order, info),
                _ => {
                    if let Order::Begin(begin) = order {
                        let outcome = Outcome::Rejected(Rejection::NotActive);
                        self.send_report(&Report::new(begin.id, outcome));
                    }
                }
            }
            self.send_reports();
        }
    }

    /// Sends reports on trajectories.
    pub(super) fn send_reports(&mut self) {
        let Some(member) = self.members.get_mut(self.active) else { return };
        let MemberKind::Trajectory(controller) = &mut member.kind else { return };
        while let Some(report) = controller.report() {
            send(&mut self.trajectory, &report);
        }
    }

    /// Makes the active controller abandon its trajectory.
    pub(super) fn leave_trajectory(&mut self) {
        if let Some(MemberKind::Trajectory(controller)) =
            self.members.get_mut(self.active).map(|it| &mut it.kind)
        {
            controller.give_up(Abort::Stopped);
        }
        self.send_reports();
    }

    fn send_report(&mut self, report: &Report) {
        send(&mut self.trajectory, report);
    }
}

fn send(port: &mut Option<Box<dyn Port>>, report: &Report) {
    let mut buffer = [0; ipc::message::trajectory::REPORT_SIZE];
    if let (Some(port), Ok(length)) = (port, report.encode(&mut buffer)) {
        // A full port counts the message; no client reads it.
        let _ = port.send(&buffer[..length]);
    }
}

/// Rows of points taken in one cycle: checking each takes about a microsecond.
const ROWS_A_CYCLE: usize = 24;

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
