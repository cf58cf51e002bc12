//! Controllers that do not stop their axes, or move them again without a command.
//!
//! While a request stops the axes, supervision stops an axis that its controller does not slow down
//! ([`motion::supervision::Ending`]). Once all axes are slow, the manager holds them in place of
//! such a controller. After *stop* it holds them until *enable*, *reset faults* or a switch.
//!
//! Drives of unreferenced axes: a reset enables none of them. *Enable* does, to home or jog the
//! axis.

use control::controller::{AxisReport, CycleInfo};
use ethercat::cia402::{Request, State};
use motion::supervision::{END_TIME, STANDS, StopReason};
use motion::{AxisPhase, Seconds};

use super::{ControllerManager, MemberKind};

/// Hold of the axes in place of the active controller.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MemberHold {
    /// The axes are held.
    pub(super) holds: bool,
    /// During the request in progress, supervision had to stop an axis, or the time was over.
    ignored: bool,
}

impl ControllerManager {
    /// Holds the axes of a controller that does not stop them. Once begun, the hold stays.
    pub(super) fn watch_rest(&mut self, reports: &[AxisReport]) {
        match self.job.filter(|job| job.doing.brings_to_rest()) {
            Some(job) => {
                let is_stopped = |it: &AxisReport| it.stop == Some(StopReason::Ending);
                self.hold.ignored |= reports.iter().any(is_stopped) || job.since > REST_TIME;
                self.hold.holds |= self.hold.ignored && self.all_slow(reports);
            }
            None => self.hold.ignored = false,
        }
        // It is shown held axes as long as they are held, and once more.
        self.entering |= self.hold.holds;
    }

    /// After *stop*: holds axes at standstill if their controller would move them again without a
    /// command, and other axes, which their controller could not stop yet.
    pub(super) fn hold_after_stop(&mut self, stands: bool) {
        let Some(member) = self.members.get(self.active) else { return };
        // The others follow a command or a trajectory, which the stop has ended.
        let by_itself = matches!(member.kind, MemberKind::Plain(_)) && !member.output().commanded;
        let ignores = matches!(member.kind, MemberKind::Plain(_)) && (self.hold.ignored || !stands);
        self.hold.holds = by_itself || ignores;
    }

    fn all_slow(&self, reports: &[AxisReport]) -> bool {
        let slow = |(axis, report): (&super::ManagedAxis, &AxisReport)| {
            report.feedback.velocity.abs() <= axis.velocity_limit * STANDS
        };
        self.axes.iter().zip(reports).all(slow)
    }
}

/// True if the standstill of an axis is not known: it exchanges no process data, for longer than a
/// short outage takes.
pub(super) fn is_silent(report: &AxisReport, info: &CycleInfo) -> bool {
    let silent = Seconds(info.period.as_secs_f64() * f64::from(report.missed));
    report.missed > SILENT_CYCLES && silent >= SILENCE && report.feedback.phase != AxisPhase::NotEnabled
}

/// Cycles without process data after which the feedback of an axis is old.
const SILENT_CYCLES: u32 = 8;

/// Time that an outage is given to end: axes that move then still stop in order, and requests wait.
pub(super) const SILENCE: Seconds = Seconds(0.2);

/// Time within which a controller, or else supervision, stops the axes.
const REST_TIME: Seconds = END_TIME;

impl ControllerManager {
    /// A reset begins: the drive of an unreferenced axis stays as it is.
    pub(super) fn note_off(&mut self) {
        for (off, report) in self.off.iter_mut().zip(&self.shown) {
            *off = report.state != Some(State::OperationEnabled);
        }
    }

    /// Request in place of `wanted` that leaves the drive off. Only while its axis is unreferenced.
    pub(super) fn leave_off(off: &mut bool, report: &AxisReport, wanted: Request) -> Request {
        *off &= report.state != Some(State::OperationEnabled);
        let unreferenced = report.stop.is_some_and(StopReason::is_unreferenced);
        match (wanted, report.state) {
            (Request::Enable | Request::Halt, Some(state)) if *off && unreferenced => match state {
                // The drive still brakes.
                State::QuickStopActive => Request::QuickStop,
                _ => Request::Disable,
            },
            _ => wanted,
        }
    }
}
