//! Findings about a run that has ended, and their exit codes.
//!
//! A pure function from the results of a cycle to [`Finding`]s. The program words them; tests
//! compare their codes with the states of simulated drives.

use std::time::Duration;

use ethercat::al::{AlState, AlStatus};
use ethercat::al_status_code::AlStatusCode;
use ethercat::cia402::State;
use ethercat::main_device::{BringUpPhase, BusError};
use motion::AxisPhase;
use motion::supervision::{QuickStopStep, StopReason};
use types::state::is_communication_error;

use crate::controller::AxisReport;
use crate::cycle::{Ended, Lost};
use crate::observer::Cause;
use crate::status::{Status, SubDeviceExchange};

/// Exit code: it could not run, or was ended by an overrun.
pub const COULD_NOT_RUN: u8 = 1;

/// Exit code: an axis ended in fault, or stopped by supervision.
pub const AXIS: u8 = 3;

/// Exit code: the bus ended lost, or a SubDevice outside Op.
pub const BUS: u8 = 4;

/// Time without process data after which a SubDevice counts as lost: a lost frame is not worth a
/// word, and a drive's watchdog has expired by then.
pub const LOST_AFTER: Duration = Duration::from_millis(100);

/// Time in Op after which a drive that was asked to be enabled should be: a power stage needs a
/// moment.
pub const ENABLED_AFTER: Duration = Duration::from_secs(1);

/// Time with process data after which an axis that resumes by itself is expected to have done so.
pub const RESUMED_AFTER: Duration = Duration::from_secs(5);

/// Cycles without an answer during the stop that are no lost frame.
const LOST_IN_THE_STOP: u32 = 3;

/// One thing that went wrong. SubDevices are named by their places in the segment, axes by theirs
/// among the axes, from 0.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// A cycle ran past the next release, under [`rt::pacer::OverrunPolicy::Stop`].
    Overrun {
        /// The cycle.
        cycle: u64,
    },
    /// The bus failed.
    BusFailed {
        /// Reason.
        error: BusError,
        /// It had been in Op.
        in_op: bool,
    },
    /// The drive of an axis is in fault.
    AxisInFault {
        /// Number of the axis, from 0.
        axis: usize,
        /// [`State::Fault`], or on its way there.
        state: State,
        /// Object 0x603F; 0 for none known.
        error_code: u16,
        /// Cycles for which the host stalled, where that is why the drive got no process data; 0
        /// for another cause.
        stalled: u32,
    },
    /// Supervision has stopped an axis.
    AxisStopped {
        /// Number of the axis, from 0.
        axis: usize,
        /// Reason.
        reason: StopReason,
        /// Place of the axis that it was stopped with ([`StopReason::OtherAxis`]).
        with: Option<usize>,
        /// Cause of that reason, where it is known.
        because: Cause,
    },
    /// The drive of an axis did not carry out a quick stop, and the axis has not been reset since.
    QuickStopIgnored {
        /// Number of the axis, from 0.
        axis: usize,
        /// Step that stopped it.
        step: QuickStopStep,
    },
    /// The controller process was gone, or gave no answers, when the stop began, and had not
    /// disabled its axes.
    ControllerLost,
    /// The command went stale while axes followed it, and was so until the stop began: supervision
    /// had brought them to rest.
    CommandLost,
    /// An axis was asked to be enabled, answered, and was not enabled.
    NotEnabled {
        /// Place of the axis.
        axis: usize,
        /// Cause.
        why: KeptOff,
    },
    /// An axis answered, and its drive did not give up its torque: it obeys no more.
    NotDisabled {
        /// Number of the axis, from 0.
        axis: usize,
        /// State of its drive.
        state: State,
    },
    /// The bus stayed lost, and that ended the run.
    BusLost {
        /// For how long, and whether its interface is gone.
        lost: Lost,
        /// All SubDevices with process data are out of Op; else they did not answer.
        all_out: bool,
    },
    /// A SubDevice did not answer at the end.
    Silent {
        /// Its position.
        position: usize,
        /// Number of cycles.
        cycles: u32,
    },
    /// A SubDevice has left Op.
    OutsideOp {
        /// Its position.
        position: usize,
        /// State of it.
        status: AlStatus,
        /// Reason.
        code: AlStatusCode,
    },
    /// A SubDevice that answered until the stop did not while the axes were brought to rest.
    LostInTheStop {
        /// Its position.
        position: usize,
        /// Number of cycles.
        cycles: u32,
    },
}

/// Cause that keeps an axis, which its controller wants enabled, from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptOff {
    /// Its drive has no main power (statusword bit 4).
    NoMainPower,
    /// The permission of an interlock never came.
    NotPermitted,
    /// Its drive does not switch on: its enable input, its safe torque off, or commands of another
    /// MainDevice.
    DriveRefuses,
}

impl AxisReport {
    /// Cause for which the axis is not enabled though its controller requests it; `None` for a
    /// controller that no longer responds, that only follows a stale command, or that may still be
    /// starting.
    #[must_use]
    pub fn kept_off(&self, period: Duration) -> Option<KeptOff> {
        if self.waits == 0 || self.missed != 0 {
            return None;
        }
        match self.stop {
            // A permission that came and went did its work.
            Some(StopReason::NotPermitted) if !self.was_enabled => Some(KeptOff::NotPermitted),
            // Its request to be enabled has lapsed.
            None | Some(StopReason::AwaitsStart) => {
                if matches!(self.state, Some(State::OperationEnabled)) || in_fault(self).is_some() {
                    None
                } else if !self.statusword.voltage_enabled() {
                    Some(KeptOff::NoMainPower)
                } else {
                    self.has_waited(period).then_some(KeptOff::DriveRefuses)
                }
            }
            Some(_) => None,
        }
    }

    /// True if its drive was asked to be enabled for longer than a power stage needs.
    #[must_use]
    pub fn has_waited(&self, period: Duration) -> bool {
        at_least(self.waits, ENABLED_AFTER, period)
    }
}

impl Finding {
    /// The exit code it makes; of several findings the highest counts.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Overrun { .. } | Self::BusFailed { in_op: false, .. } => COULD_NOT_RUN,
            Self::AxisInFault { .. }
            | Self::AxisStopped { .. }
            | Self::QuickStopIgnored { .. }
            | Self::ControllerLost
            | Self::CommandLost
            | Self::NotEnabled { .. }
            | Self::NotDisabled { .. } => AXIS,
            Self::BusFailed { .. }
            | Self::BusLost { .. }
            | Self::Silent { .. }
            | Self::OutsideOp { .. }
            | Self::LostInTheStop { .. } => BUS,
        }
    }
}

/// Conditions of a verdict besides the state that the cycle left behind.
#[derive(Clone, Copy, Debug)]
pub struct Circumstances {
    /// The cycle's period.
    pub period: Duration,
    /// The stop was hurried: supervision braked on request.
    pub hurried: bool,
    /// Axes resume after an outage without a reset ([`motion::supervision::AfterOutage::Resume`]).
    pub resumes: bool,
}

impl<L> Ended<L> {
    /// All that went wrong: axes first, then the bus. Of a bus that failed on its way to Op that is
    /// all.
    #[must_use]
    pub fn findings(&self, circumstances: Circumstances) -> Vec<Finding> {
        let in_op = self.cycles_in_op > 0;
        let overrun = self.stopped_by_overrun.map(|cycle| Finding::Overrun { cycle });
        let failed = self.failure.clone().map(|error| Finding::BusFailed { error, in_op });
        if !in_op && failed.is_some() {
            return failed.into_iter().collect();
        }
        let reports = &self.before_stop.axes;
        let controller = self.controller_lost.then_some(Finding::ControllerLost);
        let command = self.command_lost.then_some(Finding::CommandLost);
        let axes = (0..reports.len()).filter_map(|axis| self.axis(axis, circumstances));
        // SubDevices without process data stay in Op.
        let silent =
            self.before_stop.sub_devices.iter().filter(|it| !it.exchanges && !it.absent && !it.waits);
        let all_out = silent.clone().count() > 0 && silent.clone().all(SubDeviceExchange::is_outside_op);
        let lost = self.lost.map(|lost| Finding::BusLost { lost, all_out });
        let sub_devices = (0..self.before_stop.sub_devices.len()).filter_map(|position| {
            sub_device(&self.before_stop, position, circumstances.period)
                .or_else(|| self.lost_in_the_stop(position))
        });
        overrun
            .into_iter()
            .chain(failed)
            .chain(controller)
            .chain(command)
            .chain(axes)
            .chain(lost)
            .chain(sub_devices)
            .collect()
    }

    fn axis(&self, axis: usize, circumstances: Circumstances) -> Option<Finding> {
        let [before_stop, before_init, last] =
            [&self.before_stop, &self.before_init, &self.status].map(|status| &status.axes[axis]);
        if before_stop.absent {
            return None;
        }
        if let Some((report, state)) =
            [before_stop, last].into_iter().find_map(|it| Some((it, in_fault(it)?)))
        {
            // The drive may tell its code later than its state.
            let error_code = if report.error_code == 0 { last.error_code } else { report.error_code };
            let stalled =
                if is_communication_error(error_code) { report.stalled.max(last.stalled) } else { 0 };
            return Some(Finding::AxisInFault { axis, state, error_code, stalled });
        }
        let in_op = self.before_stop.phase == BringUpPhase::Op;
        if let Some(why) = before_stop.kept_off(circumstances.period).filter(|_| in_op) {
            return Some(Finding::NotEnabled { axis, why });
        }
        let reports = [&self.before_stop.axes, &self.before_init.axes];
        if let Some((reason, report)) = reports.into_iter().find_map(|it| stopped(it, axis, circumstances))
        {
            let (with, because) = (report.stopped_with, Cause::of(report));
            return Some(Finding::AxisStopped { axis, reason, with, because });
        }
        let powered = |state| matches!(state, State::OperationEnabled | State::QuickStopActive);
        if let Some(state) = last.state.filter(|&state| powered(state) && before_init.missed == 0) {
            return Some(Finding::NotDisabled { axis, state });
        }
        let step = before_stop.quick_stop.or(before_init.quick_stop)?;
        Some(Finding::QuickStopIgnored { axis, step })
    }

    /// A SubDevice that answered until the stop, and not while the axes were brought to rest.
    fn lost_in_the_stop(&self, position: usize) -> Option<Finding> {
        let it = &self.before_init.sub_devices[position];
        (it.missed >= LOST_IN_THE_STOP && !it.absent).then(|| match it.is_outside_op() {
            true => Finding::OutsideOp { position, status: it.al_status, code: it.al_status_code },
            false => Finding::LostInTheStop { position, cycles: it.missed },
        })
    }
}

/// State of a drive in fault.
fn in_fault(report: &AxisReport) -> Option<State> {
    report.state.filter(|state| state.is_faulted())
}

/// True if so many cycles take at least this time.
fn at_least(cycles: u32, time: Duration, period: Duration) -> bool {
    cycles > 0 && period.saturating_mul(cycles) >= time
}

/// Reason that supervision has stopped an axis, where that is a failure.
fn stopped(
    reports: &[AxisReport],
    axis: usize,
    circumstances: Circumstances,
) -> Option<(StopReason, &AxisReport)> {
    let report = &reports[axis];
    // The phase of an axis that is stopped in this very cycle, after a stall, is still that of
    // before.
    let lost = at_least(report.missed, LOST_AFTER, circumstances.period);
    let is_held = report.stop != Some(StopReason::InwardsOnly);
    let held_back = report.feedback.phase == AxisPhase::Following && !lost && is_held;
    let told_to = circumstances.hurried && report.stop == Some(StopReason::Ending);
    // Process data are back, and it is about to resume by itself; one that stays stopped is not.
    let is_back = |it: &AxisReport| {
        let stays = at_least(it.held, RESUMED_AFTER, circumstances.period);
        it.stop == Some(StopReason::Outage) && it.missed == 0 && !stays
    };
    let origin = report.stopped_with.and_then(|other| reports.get(other)).unwrap_or(report);
    let goes_on = circumstances.resumes && is_back(origin);
    let enabled = report.state == Some(State::OperationEnabled);
    let fails = |stop: &StopReason| match stop {
        // Its operator has not given it back to its controller.
        StopReason::AfterSetUp => false,
        StopReason::NotHomed | StopReason::OutsideLimits => enabled,
        StopReason::InwardsOnly => enabled || report.overshoot.is_some(),
        _ => stop.is_latched(),
    };
    let stop = report.stop.filter(|stop| fails(stop) && !held_back && !told_to && !goes_on)?;
    Some((stop, report))
}

fn sub_device(before_stop: &Status, position: usize, period: Duration) -> Option<Finding> {
    let it = &before_stop.sub_devices[position];
    if it.absent || it.waits {
        return None;
    }
    if let Some(cycles) = it.silent_for(period) {
        return Some(Finding::Silent { position, cycles });
    }
    // On the way up all are outside Op, but none with an error, not even an acknowledged one.
    let outside = match before_stop.phase {
        BringUpPhase::Op => it.is_outside_op(),
        _ => it.al_status.error || it.al_status_code != AlStatusCode::NO_ERROR,
    };
    outside.then_some(Finding::OutsideOp { position, status: it.al_status, code: it.al_status_code })
}

impl SubDeviceExchange {
    /// Cycles for which it did not answer, if longer than [`LOST_AFTER`]. A SubDevice that left Op
    /// exchanges no process data either, but has its state.
    #[must_use]
    pub fn silent_for(&self, period: Duration) -> Option<u32> {
        let long = at_least(self.missed, LOST_AFTER, period);
        Some(self.missed).filter(|_| long && !self.is_outside_op())
    }

    fn is_outside_op(&self) -> bool {
        self.al_status != AlStatus::in_state(AlState::Op)
    }
}

#[cfg(test)]
mod tests {
    use ethercat::main_device::{Configuration, MainDevice};
    use rt::pacer::Overruns;

    use super::*;

    /// A cycle with its only drive in fault before the stop, and after it.
    fn in_fault_with(before_stop: u16, last: u16) -> Ended<()> {
        let status = |error_code| {
            let mut status = Status::initial(0, 1);
            status.axes[0] = AxisReport { state: Some(State::Fault), error_code, ..AxisReport::default() };
            status
        };
        Ended {
            signal_counters: crate::signal::Counters::default(),
            failure: None,
            stopped_by_overrun: None,
            lost: None,
            overruns: Overruns::default(),
            host_stalls: None,
            controller_lost: false,
            controller_panic: None,
            command_lost: false,
            cycles_in_op: 1,
            status: status(last),
            before_stop: status(before_stop),
            before_init: status(last),
            signals: Vec::new(),
            main_device: MainDevice::new(Configuration::default()).unwrap(),
            link: (),
        }
    }

    // feature(axes): an axis that stays stopped after an outage until the end is no success
    #[test]
    fn an_axis_held_after_an_outage_fails_unless_it_just_returned() {
        let circumstances =
            Circumstances { period: Duration::from_millis(1), hurried: false, resumes: true };
        let held_for = |held| {
            let mut ended = in_fault_with(0, 0);
            for status in [&mut ended.before_stop, &mut ended.before_init, &mut ended.status] {
                status.axes[0] =
                    AxisReport { stop: Some(StopReason::Outage), held, ..AxisReport::default() };
            }
            ended.findings(circumstances)
        };
        assert_eq!(held_for(100), []);
        let stopped = Finding::AxisStopped {
            axis: 0,
            reason: StopReason::Outage,
            with: None,
            because: Cause::default(),
        };
        assert_eq!(held_for(5_000), std::slice::from_ref(&stopped));
        assert_eq!(stopped.exit_code(), AXIS);
    }

    #[test]
    fn a_stall_is_the_cause_of_a_fault_for_want_of_process_data() {
        let circumstances =
            Circumstances { period: Duration::from_millis(1), hurried: false, resumes: false };
        for (error_code, cause) in [(0x7500, 500), (0x8130, 500), (0, 500), (0x8611, 0)] {
            let mut ended = in_fault_with(error_code, error_code);
            ended.before_stop.axes[0].stalled = 500;
            let state = State::Fault;
            let fault = Finding::AxisInFault { axis: 0, state, error_code, stalled: cause };
            assert_eq!(ended.findings(circumstances), [fault], "{error_code:#06x}");
        }
    }

    #[test]
    fn finding_has_the_first_error_code_of_a_fault() {
        let circumstances =
            Circumstances { period: Duration::from_millis(1), hurried: false, resumes: false };
        for (before_stop, last, told) in
            [(0x2310, 0x8611, 0x2310), (0, 0x8611, 0x8611), (0x2310, 0, 0x2310)]
        {
            let findings = in_fault_with(before_stop, last).findings(circumstances);
            let state = State::Fault;
            let fault = Finding::AxisInFault { axis: 0, state, error_code: told, stalled: 0 };
            assert_eq!(findings, [fault], "{before_stop:#06x} {last:#06x}");
        }
    }
}
