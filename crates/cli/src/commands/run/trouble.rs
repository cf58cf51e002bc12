//! How a run ended: who was lost, which drives are in fault, which axes were stopped, and what that means for the exit code.

use std::time::Duration;

use bridge::state::Stop;
use ethercat::al::{AlState, AlStatus};
use ethercat::cia402::{ErrorCode, State};
use ethercat::main_device::Stage;
use motion::AxisPhase;
use motion::supervision::StopReason;
use robot::{AfterOutage, InterlockKind, Robot};
use runtime::controller::AxisReport;
use runtime::cycle::Lost;
use runtime::status::{Status, SubDeviceStatus};

use super::outcome::state as outcome_state;
use crate::failure::Failure;
use crate::words::moment::span;

/// An axis ended in fault, or stopped by supervision.
const AXIS: u8 = 3;

/// The bus ended lost, or a SubDevice outside Op.
pub(super) const BUS: u8 = 4;

/// Cycles without an answer during the stop that are no lost frame.
const LOST_IN_THE_STOP: u16 = 3;

/// Time after which a drive that was asked to switch on and does not is named: a power stage needs a moment.
pub(super) const POWER_PATIENCE: Duration = Duration::from_secs(1);

/// Axes and SubDevices named one by one.
const MOST_NAMED: usize = 3;

/// How the SubDevices and the axes stood when the run came to its end.
pub(super) struct Standing<'a> {
    pub(super) robot: &'a Robot,
    /// Before the stop.
    pub(super) status: &'a Status,
    /// Whose process data did not come and go at the end, for so many cycles; in the order of positions.
    pub(super) lost_for: &'a [u64],
}

impl Standing<'_> {
    /// True if the drive of this axis answered.
    pub(super) fn answers(&self, axis: usize) -> bool {
        self.silent_for(self.robot.axes[axis].sub_device).is_none()
    }

    /// For how many cycles this SubDevice did not answer. One that was thrown out of Op exchanges no process data either, but
    /// tells its state.
    pub(super) fn silent_for(&self, position: usize) -> Option<u64> {
        let in_op = self.status.sub_devices.get(position)?.al_status == AlStatus::in_state(AlState::Op);
        self.lost_for.get(position).copied().filter(|&cycles| in_op && cycles > 0)
    }

    /// What is wrong, each a sentence with its exit code.
    pub(super) fn verdict(&self, ended: &How) -> Result<(), Failure> {
        let axes = (0..self.status.axes.len()).filter_map(|axis| self.axis(axis, ended)).collect();
        let axes = few(axes, "axes ended so").map(|sentence| Err(Failure::new(sentence).or_code(AXIS)));
        let devices = (0..self.status.sub_devices.len()).filter_map(|position| {
            self.sub_device(position, ended).or_else(|| self.lost_in_the_stop(position, ended))
        });
        let devices = few(devices.collect(), "SubDevices ended so");
        let bus = ended.lost.map(|lost| self.bus_lost(lost, ended)).into_iter().chain(devices);
        let bus = bus.map(|sentence| Err(Failure::new(sentence).or_code(BUS)));
        axes.chain(bus).fold(Ok(()), Failure::both)
    }

    fn axis(&self, axis: usize, ended: &How) -> Option<String> {
        let (name, report) = (&self.robot.axes[axis].name, &self.status.axes[axis]);
        let at_the_end = &ended.axes[axis];
        if let Some(fault) = [report, at_the_end].into_iter().find(|report| is_fault(report)) {
            let code = error_code(fault.error_code.max(at_the_end.error_code));
            return Some(format!(
                "axis \"{name}\" ended in {}: {code}; mend its cause, then reset the axis",
                outcome_state(fault)
            ));
        }
        let stopped = [report, ended.before_init.axes.get(axis).unwrap_or(report)];
        if let Some(stop) = stopped.into_iter().find_map(|report| self.stopped(report, ended)) {
            return Some(format!("supervision stopped axis \"{name}\": {}", stop_words(stop)));
        }
        let why = self.not_enabled(axis)?;
        Some(format!("axis \"{name}\" was asked to be enabled and was not: {why}"))
    }

    /// Why an axis is not enabled that its controller wants to be, with what to do; `None` of one that answers no more, that
    /// only lives on a stale command, or that may still be on its way.
    pub(super) fn not_enabled(&self, axis: usize) -> Option<String> {
        let report = &self.status.axes[axis];
        if report.waits == 0 || self.status.stage != Stage::Op || !self.answers(axis) {
            return None;
        }
        match report.stop {
            None if !report.statusword.voltage_enabled() || self.waits_long(report) => {
                kept_off(report).map(str::to_owned)
            }
            // A permission that came and went did its work.
            Some(StopReason::NotPermitted) if !report.was_enabled => Some(self.not_permitted(axis)),
            _ => None,
        }
    }

    fn waits_long(&self, report: &AxisReport) -> bool {
        self.robot.cycle.period.saturating_mul(report.waits) >= POWER_PATIENCE
    }

    fn not_permitted(&self, axis: usize) -> String {
        let for_it = self
            .robot
            .interlocks
            .iter()
            .filter(|it| it.kind == InterlockKind::Enable && it.axes.contains(&axis));
        let names: Vec<String> = for_it.map(|it| format!("\"{}\"", it.name)).collect();
        format!("its permission is missing: interlock {}", names.join(", "))
    }

    /// Why supervision has stopped an axis, where that is a failure.
    fn stopped(&self, report: &AxisReport, ended: &How) -> Option<StopReason> {
        let held_back = report.feedback.phase == AxisPhase::Following;
        let told_to = ended.hurried && report.stop == Some(StopReason::Ending);
        report.stop.filter(|stop| stop.is_latched() && !held_back && !told_to && !self.goes_on(report))
    }

    /// An axis that is heard of again after an outage, and was about to go on by itself.
    fn goes_on(&self, report: &AxisReport) -> bool {
        let resumes = self.robot.cycle.after_outage == AfterOutage::Resume;
        resumes && report.stop == Some(StopReason::Outage) && report.missed == 0
    }

    /// Who answered until the stop, and not while the axes were brought to rest.
    fn lost_in_the_stop(&self, position: usize, ended: &How) -> Option<String> {
        let it = ended.before_init.sub_devices.get(position).filter(|it| it.missed >= LOST_IN_THE_STOP)?;
        let name = self.robot.bus.sub_devices.get(position).map_or("?", |it| it.name.as_str());
        Some(format!(
            "SubDevice {position} \"{name}\" did not answer for {} cycles while all was brought to rest: its drive was left to its watchdog",
            it.missed
        ))
    }

    fn bus_lost(&self, lost: Lost, ended: &How) -> String {
        let lasted = span(lost.lasted);
        if let Some(trouble) = &ended.link_trouble {
            return format!("the bus ended lost after {lasted} without process data: {trouble}");
        }
        if lost.interface_gone {
            return "the network interface is gone: the bus ended lost; plug it in again, or name another"
                .to_owned();
        }
        let out = |it: &SubDeviceStatus| it.al_status != AlStatus::in_state(AlState::Op);
        // Those without process data stay in Op.
        if self.status.sub_devices.iter().filter(|it| !it.exchanges).all(out) {
            return format!(
                "all SubDevices with process data were out of Op for {lasted}: the bus ended lost; a restart brings them back"
            );
        }
        format!(
            "no SubDevice exchanged process data for {lasted}: the bus ended lost; check power and cables, `onbeat scan` shows who answers"
        )
    }

    fn sub_device(&self, position: usize, ended: &How) -> Option<String> {
        let it = &self.status.sub_devices[position];
        let name = self.robot.bus.sub_devices.get(position).map_or("?", |it| it.name.as_str());
        let place = format!("SubDevice {position} \"{name}\"");
        if let Some(cycles) = self.silent_for(position) {
            let lasted =
                span(self.robot.cycle.period.saturating_mul(u32::try_from(cycles).unwrap_or(u32::MAX)));
            let why = ended.link_trouble.as_deref().unwrap_or("check its power and the cable to it");
            return Some(format!("{place} did not answer in the last {cycles} cycles, {lasted}: {why}"));
        }
        let outside = self.status.stage == Stage::Op && it.al_status != AlStatus::in_state(AlState::Op);
        outside.then(|| {
            format!(
                "{place} ended in {}, expected Op: AL status code {}; a restart brings it back",
                it.al_status, it.al_status_code
            )
        })
    }
}

/// How the cycle came to its end.
pub(super) struct How {
    /// The bus stayed lost.
    pub(super) lost: Option<Lost>,
    /// Somebody was in a hurry: supervision braked because it was told to.
    pub(super) hurried: bool,
    /// When Init was asked for.
    pub(super) before_init: Status,
    /// The axes when all was over.
    pub(super) axes: Vec<AxisReport>,
    /// Why the link carried no frames at the end, if that is known.
    pub(super) link_trouble: Option<String>,
}

/// The first of them, and how many more there are.
fn few(mut sentences: Vec<String>, more_did: &str) -> impl Iterator<Item = String> {
    let more = sentences.len().saturating_sub(MOST_NAMED);
    if more > 0 {
        sentences.truncate(MOST_NAMED);
        sentences.push(format!("{more} more {more_did}: the table has them"));
    }
    sentences.into_iter()
}

fn is_fault(report: &AxisReport) -> bool {
    matches!(report.state, Some(State::Fault | State::FaultReactionActive))
}

/// What keeps a drive that is asked to enable its axis from it, with what to do; `None` where it does, or is in fault.
pub(super) fn kept_off(report: &AxisReport) -> Option<&'static str> {
    match report.state? {
        State::OperationEnabled | State::Fault | State::FaultReactionActive => None,
        _ if !report.statusword.voltage_enabled() => {
            Some("its drive has no main power (statusword bit 4): switch that on")
        }
        _ => Some(
            "its drive does not switch on: check its enable input, its safe torque off (STO), and what it says",
        ),
    }
}

/// Why supervision has an axis, in words.
pub(super) fn stop_words(reason: StopReason) -> &'static str {
    let number = StopReason::ALL.iter().position(|&it| it == reason).map_or(0, |index| index as u8 + 1);
    Stop::from_code(number).map_or("for a reason unknown here", Stop::words)
}

/// A drive's error code, object 0x603F, in words, with what to do.
pub(super) fn error_code(code: u16) -> String {
    match code {
        0 => "it told no error code".to_owned(),
        code => match ErrorCode(code).remedy() {
            "" => ErrorCode(code).to_string(),
            remedy => format!("{} ({remedy})", ErrorCode(code)),
        },
    }
}
