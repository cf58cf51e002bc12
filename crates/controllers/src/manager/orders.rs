//! Trajectories for the active controller.

use control::controller::CycleInfo;
use ipc::message::trajectory::{Abort, Order, Outcome, Rejection, Report};

use super::{ControllerManager, MemberKind, id_of};
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
