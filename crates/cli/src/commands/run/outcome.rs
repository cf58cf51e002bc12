//! Outcome of a run, for people and for programs.

use std::fmt::Write as _;

use control::clock_lock::{LockReport, ReferenceReport};
use control::controller::AxisReport;
use control::cycle::HostStalls;
use control::observer::Cause;
use control::signal::Counters;
use diagnose::{Explanation, LateCycle};
use ethercat::cia402::State;
use ethercat::main_device::ReceptionCounters;
use ipc::bus::SubDeviceStatus;
use ipc::controller::ControllerCounters;
use ipc::diagnostics::TaskDiagnostics;
use onbeat::compose::names::part_names;
use onbeat::{SIMULATED, Summary};
use record::conditions::LATE_REPLIES;
use record::{RunConditions, RunSummary, RunTable};
use serde::Serialize;
use types::LockState;

use super::hold::{OverrunOutcome, ProfileOutcome};
use super::parts::{AxisOutcome, SubDeviceOutcome, axes_table, troubles};
use super::trouble::Standing;
use crate::failure::Failure;
use crate::words;

/// Outcome of a run.
#[derive(Serialize)]
pub(super) struct Outcome<'a> {
    #[serde(flatten)]
    summary: &'a RunSummary,
    axes: Vec<AxisOutcome<'a>>,
    sub_devices: Vec<SubDeviceOutcome<'a>>,
    signals: Vec<SignalOutcome<'a>>,
    signal_counters: SignalCounters,
    frames: Frames,
    /// Findings, each with its exit code; the highest counts, of these and of files that are not
    /// whole.
    findings: Vec<FindingOutcome>,
    /// Largest difference of a SubDevice's clock from the reference clock at the end.
    clock_difference_ns: u64,
    /// Lock of the cycle to the reference clock at the end.
    clock_lock: LockOutcome,
    conditions: &'a RunConditions,
    profile: ProfileOutcome,
    overrun: OverrunOutcome,
    /// Stalls of this computer; only where the simulated bus waited for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    host_stalls: Option<StallsOutcome>,
    /// Answers of the controller process; only in a run with one.
    #[serde(skip_serializing_if = "Option::is_none")]
    controller: Option<&'a ControllerCounters>,
    /// The cycle and the devices' tasks, as in the IPC's diagnostics.
    tasks: &'a [TaskDiagnostics],
    /// Cycles later than `--late-above`, with their causes; only with `--explain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    late: Option<&'a [LateCycle]>,
    /// Source of all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    explain: Option<&'a Explanation>,
}

/// Lock of the cycle to the reference clock, and that clock against this host's.
#[derive(Serialize)]
struct LockOutcome {
    #[serde(flatten)]
    lock: LockReport,
    /// The reference clock's time less this host's; `None` if its time was not received.
    difference_ns: Option<i64>,
    /// Time from SYNC0 without a shift to the passage of the cycle's frame at the reference clock.
    frame_phase_ns: Option<u64>,
}

impl LockOutcome {
    fn of(lock: LockReport, reference: ReferenceReport) -> Self {
        let ReferenceReport { fresh, difference_ns, frame_phase_ns } = reference;
        let is_known = fresh || frame_phase_ns != 0;
        Self {
            lock,
            difference_ns: is_known.then_some(difference_ns),
            frame_phase_ns: is_known.then_some(frame_phase_ns),
        }
    }

    fn line(&self) -> Option<String> {
        let LockReport { state, phase_error_ns, drift_ppb, .. } = self.lock;
        let (error, drift) = (phase_error_ns as f64 / 1e3, drift_ppb as f64 / 1e3);
        (state != LockState::Off).then(|| {
            format!(
                "{:<24}{}, phase error {error:.1} us, drift {drift:.2} ppm\n",
                "reference clock",
                state.name()
            )
        })
    }
}

/// Stalls of this computer: a cycle began a period or more after it should have.
#[derive(Serialize)]
struct StallsOutcome {
    count: u64,
    longest_ns: u64,
    /// Stalls before which a watchdog of 100 ms would have expired on a wire.
    beyond_watchdog: u64,
}

impl StallsOutcome {
    fn of(stalls: HostStalls) -> Self {
        let HostStalls { count, longest, beyond_watchdog } = stalls;
        Self { count, longest_ns: types::time::nanoseconds(longest), beyond_watchdog }
    }
}

/// A signal in the last cycle before the stop.
#[derive(Serialize)]
struct SignalOutcome<'a> {
    name: &'a str,
    value: serde_json::Value,
    unit: &'a str,
    fresh: bool,
    forced: bool,
}

/// Values set to outputs that could not be.
#[derive(Serialize)]
struct SignalCounters {
    clamped: u64,
    refused: u64,
}

/// One thing that went wrong.
#[derive(Serialize)]
struct FindingOutcome {
    /// Exit code it makes.
    code: u8,
    /// As on standard error.
    sentence: String,
}

/// Frames since the start of the bring-up.
#[derive(Serialize)]
struct Frames {
    #[serde(flatten, with = "ReceptionFields")]
    reception: ReceptionCounters,
    /// Frames that the operating system failed to send or receive.
    link_errors: u64,
}

/// Fields of [`ReceptionCounters`] in JSON.
#[derive(Serialize)]
#[serde(remote = "ReceptionCounters")]
struct ReceptionFields {
    sent: u64,
    accepted: u64,
    lost: u64,
    late: u64,
    duplicate: u64,
    foreign: u64,
    other_main_device: u64,
    truncated: u64,
    mismatched: u64,
}

impl<'a> Outcome<'a> {
    pub(super) fn new(standing: &Standing<'a>, summary: &'a Summary) -> Self {
        let Standing { robot, status, .. } = *standing;
        let Counters { clamped, refused } = summary.signal_counters;
        let names = part_names(robot, None);
        let axes = robot.axes.iter().zip(&status.axes).enumerate().map(|(number, (axis, report))| {
            let in_fault = report.state.is_some_and(State::is_faulted);
            let with = report.stopped_with.map(|other| &*robot.axes[other].name);
            AxisOutcome {
                name: &axis.name,
                mode: axis.mode.name(),
                state: if standing.drive_answers(number) { state(report) } else { "no answer".to_owned() },
                stop: report.stop.filter(|_| !report.ended).map(|reason| {
                    let because = Cause::of(report);
                    control::bus::stop_reason(&[number], reason, report.stopped_with, because, &names)
                }),
                stopped_with: with,
                not_enabled: standing.not_enabled(number),
                error_code: in_fault.then_some(report.error_code),
                error: in_fault.then(|| control::bus::error_code(report.error_code)),
                position: report.feedback.position.0,
                velocity: report.feedback.velocity.0,
                torque: report.measures_torque.then_some(report.feedback.torque.0),
            }
        });
        let sub_devices = robot.bus.sub_devices.iter().zip(&status.sub_devices).enumerate();
        let sub_devices = sub_devices.map(|(position, (described, it))| {
            let phases = summary.sync_phases.get(position).copied().unwrap_or_default();
            let [sync0, sync1] = phases.map(|it| it.map(control::bus::sync_status));
            SubDeviceOutcome {
                name: &described.name,
                answers: standing.answers(position) && !it.absent,
                state: if it.absent {
                    SubDeviceStatus::ABSENT.to_owned()
                } else {
                    it.al_status.to_string()
                },
                al_status_code: it.al_status_code.0,
                sync0,
                sync1,
            }
        });
        let findings = summary
            .findings
            .iter()
            .map(|it| FindingOutcome { code: it.exit_code(), sentence: standing.sentence(it) });
        Self {
            summary: &summary.timing,
            axes: axes.collect(),
            sub_devices: sub_devices.collect(),
            signals: summary
                .signals
                .iter()
                .map(|(signal, state)| SignalOutcome {
                    name: &signal.name,
                    value: words::signals::value(state.value),
                    unit: &signal.unit,
                    fresh: state.fresh,
                    forced: state.forced,
                })
                .collect(),
            signal_counters: SignalCounters { clamped, refused },
            frames: Frames { reception: status.reception, link_errors: status.link_errors },
            findings: findings.collect(),
            clock_difference_ns: types::time::nanoseconds(status.clock_difference),
            clock_lock: LockOutcome::of(status.lock, status.reference),
            conditions: &summary.conditions,
            profile: ProfileOutcome::of(&summary.granted),
            overrun: OverrunOutcome::of(robot.cycle.overrun, summary.overruns, summary.stopped_by_overrun),
            host_stalls: summary.host_stalls.map(StallsOutcome::of),
            controller: summary.controller.as_ref(),
            tasks: &summary.tasks,
            late: summary.diagnosis.explanation.as_ref().map(|explanation| explanation.late.as_slice()),
            explain: summary.diagnosis.explanation.as_ref(),
        }
    }

    pub(super) fn json(&self) -> Result<String, Failure> {
        Ok(serde_json::to_string_pretty(self)?)
    }

    pub(super) fn table(&self) -> String {
        let mut text = RunTable(self.summary).to_string();
        // A simulated bus has no other MainDevice: a foreign frame was altered on purpose.
        let others = self.frames.reception.other_main_device;
        if others > 0 && !self.conditions.link.starts_with(SIMULATED) {
            let _ = writeln!(text, "frames of others        {others} (of another MainDevice on this wire)");
        }
        if self.frames.link_errors > 0 {
            let _ = writeln!(text, "{:<24}{}", "frames refused by link", self.frames.link_errors);
        }
        let _ = write!(text, "{}", self.overrun);
        if self.summary.lost_frames.count > 0 && self.conditions.link == SIMULATED {
            text += &wrapped(LATE_REPLIES, "");
        }
        text += &self.clock_lock.line().unwrap_or_default();
        text += &self.controller.map(super::controller::table).unwrap_or_default();
        text += &axes_table(&self.axes);
        text += &wrapped(&troubles(&self.axes, &self.sub_devices), "    ");
        text += &super::tasks::table(self.tasks);
        if let Some(explanation) = self.explain {
            let _ = write!(text, "\n{explanation}");
        }
        let _ = write!(text, "\n{}", wrapped(&self.conditions.to_string(), BEHIND_LABEL));
        text
    }
}

/// Letters of a line that every terminal has.
const COLUMNS: usize = 80;

/// Column at which the conditions begin, behind their labels.
const BEHIND_LABEL: &str = "             ";

/// The same in lines of that many letters, where no word is longer.
pub(super) fn wrapped(text: &str, indent: &str) -> String {
    let options = textwrap::Options::new(COLUMNS).subsequent_indent(indent).break_words(false);
    let options = options.word_splitter(textwrap::WordSplitter::NoHyphenation);
    text.lines().map(|line| textwrap::fill(line, &options) + "\n").collect()
}

/// The state of an axis's drive, as CiA 402 spells it.
fn state(axis: &AxisReport) -> String {
    axis.state.map_or("no state".to_owned(), |state| state.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_column_wraps_and_lines_fit_the_terminal() {
        let line = "bus          6 SubDevices, 72 bytes out, 72 bytes in, reply_of_last_cycle, and so on";
        let expected = "bus          6 SubDevices, 72 bytes out, 72 bytes in, reply_of_last_cycle, and\n             so on\n";
        assert_eq!(wrapped(line, BEHIND_LABEL), expected);
        assert_eq!(wrapped("axis-1: not enabled", "    "), "axis-1: not enabled\n");
        assert!(wrapped(&"word ".repeat(90), "    ").lines().all(|line| line.len() <= COLUMNS));
    }
}
