//! Requests that take more than a cycle.

use control::controller::AxisReport;
use ethercat::cia402::State;
use ipc::message::control::Refusal;
use motion::Seconds;
use motion::supervision::StopReason;

use super::{ControllerManager, HomedBy, is_in_fault, is_latched};

/// A request in progress.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Job {
    /// Id of the request.
    pub(super) id: u64,
    pub(super) doing: Doing,
    /// Cycles since the start of this step, and that time.
    pub(super) cycles: u32,
    pub(super) since: Seconds,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    Enabling,
    /// The axes come to rest before they are disabled.
    Disabling,
    /// The axes rest; the drives are being disabled.
    SteppingDown,
    Stopping,
    Resetting,
    /// `begun`: the drive has been seen homing.
    Homing {
        axis: usize,
        begun: bool,
    },
}

impl Doing {
    pub(super) const fn brings_to_rest(self) -> bool {
        matches!(self, Self::Stopping | Self::Disabling)
    }
}

impl ControllerManager {
    /// Advances the request in progress; replies when it is done.
    pub(super) fn pursue(&mut self, elapsed: Seconds, reports: &[AxisReport]) {
        let Some(mut job) = self.job else { return };
        job.cycles = job.cycles.saturating_add(1);
        job.since += elapsed;
        self.job = Some(job);
        let late = job.since > PATIENCE;
        // Requests to drives take effect some cycles later.
        let settled = job.cycles > ANSWER_CYCLES;
        let outcome = match job.doing {
            Doing::Enabling => {
                let all = reports.iter().all(|report| report.state == Some(State::OperationEnabled));
                let fault = settled && reports.iter().any(is_in_fault);
                if all { Some(Ok(())) } else { fault.then_some(Err(Refusal::Fault)) }
            }
            Doing::Disabling => {
                if self.stands() || late {
                    self.leave_trajectory();
                    self.enabled = false;
                    let next = Job { doing: Doing::SteppingDown, cycles: 0, since: Seconds::ZERO, ..job };
                    self.job = Some(next);
                }
                return;
            }
            Doing::SteppingDown => {
                let off = [State::NotReadyToSwitchOn, State::SwitchOnDisabled, State::Fault];
                let down = reports.iter().all(|it| it.state.is_none_or(|state| off.contains(&state)));
                (settled && down).then_some(Ok(()))
            }
            Doing::Stopping => self.stands().then(|| {
                self.leave_trajectory();
                self.turn_deaf();
                Ok(())
            }),
            Doing::Resetting => {
                let whole = !reports.iter().any(|report| is_in_fault(report) || is_latched(report));
                (settled && whole).then_some(Ok(()))
            }
            Doing::Homing { axis, begun } => {
                let Some(report) = reports.get(axis) else { return };
                let begun = begun || report.homing;
                self.job = Some(Job { doing: Doing::Homing { axis, begun }, ..job });
                if report.homing {
                    // The axis supervises the time of its drive.
                    return;
                }
                let begun = begun || self.axes[axis].homing == HomedBy::Hand;
                settled.then(|| homed(report, begun))
            }
        };
        let fault = job.doing == Doing::Resetting && reports.iter().any(is_in_fault);
        let too_late = if fault { Refusal::Fault } else { Refusal::TimedOut };
        if let Some(outcome) = outcome.or(late.then_some(Err(too_late))) {
            self.job = None;
            self.reply(job.id, outcome);
        }
    }

    /// Ignores the present command from now on.
    fn turn_deaf(&mut self) {
        self.deaf.clone_from(&self.command);
        self.is_deaf = true;
    }
}

/// Result of homing an axis.
fn homed(report: &AxisReport, begun: bool) -> Result<(), Refusal> {
    match report.stop {
        Some(StopReason::HomingTimedOut) => Err(Refusal::TimedOut),
        Some(StopReason::HomingError | StopReason::Fault) => Err(Refusal::Fault),
        _ if report.homed && begun => Ok(()),
        _ => Err(Refusal::NotPossible),
    }
}

/// Timeout of a request.
const PATIENCE: Seconds = Seconds(10.0);

/// Cycles until drives show the effect of a request.
const ANSWER_CYCLES: u32 = 8;
