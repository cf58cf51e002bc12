//! End of a run in words: lost SubDevices, drives in fault, stopped axes.

use std::time::Duration;

use control::bus::{MOST_NAMED as MOST_TOLD, error_code, span, sub_device};
use control::cycle::Lost;
use control::observer::Cause;
use control::status::Status;
use control::verdict::{Finding, KeptOff};
use ethercat::main_device::BringUpPhase;
use motion::supervision::StopReason;
use onbeat::compose::names::part_names;
use robot::RobotConfig;

use crate::failure::Failure;

/// Most findings named after the listed causes.
const MOST_NAMED: usize = 12;

/// States of the SubDevices and the axes when the run came to its end.
pub(super) struct Standing<'a> {
    pub(super) robot: &'a RobotConfig,
    /// Before the stop.
    pub(super) status: &'a Status,
    /// Cause for which the link carried no frames at the end, if that is known.
    pub(super) link_trouble: Option<&'a str>,
}

impl Standing<'_> {
    /// True if the drive of this axis answered.
    pub(super) fn drive_answers(&self, axis: usize) -> bool {
        self.answers(self.robot.axes[axis].sub_device)
    }

    /// True if this SubDevice did.
    pub(super) fn answers(&self, position: usize) -> bool {
        let it = self.status.sub_devices.get(position);
        it.is_none_or(|it| it.silent_for(self.robot.cycle.period).is_none())
    }

    /// Findings, each a sentence with its exit code; of many alike the first, and the names of the
    /// rest.
    pub(super) fn verdict(&self, findings: &[Finding]) -> Result<(), Failure> {
        let mut verdict = Ok(());
        for alike in findings.chunk_by(|one, next| kind(one) == kind(next)) {
            let (told, rest) = alike.split_at(alike.len().min(MOST_TOLD));
            let rest =
                (!rest.is_empty()).then(|| Failure::new(self.names(rest)).or_code(rest[0].exit_code()));
            for failure in told.iter().map(|it| self.failure(it)).chain(rest) {
                verdict = Failure::both(verdict, Err(failure));
            }
        }
        verdict
    }

    fn failure(&self, finding: &Finding) -> Failure {
        Failure::new(self.sentence(finding)).or_code(finding.exit_code())
    }

    /// Positions of the findings that are not listed one by one.
    fn names(&self, rest: &[Finding]) -> String {
        let names: Vec<String> = rest.iter().filter_map(|it| self.place_of(it)).take(MOST_NAMED).collect();
        let more = match rest.len() - names.len() {
            0 => String::new(),
            more => format!("; and {more} more, which --json has in its findings"),
        };
        format!("nor did {} more end well: {}{more}", rest.len(), names.join(", "))
    }

    /// The axis or SubDevice that a finding is about.
    fn place_of(&self, finding: &Finding) -> Option<String> {
        match *finding {
            Finding::Overrun { .. }
            | Finding::BusFailed { .. }
            | Finding::BusLost { .. }
            | Finding::ControllerLost
            | Finding::CommandLost => None,
            Finding::AxisInFault { axis, .. }
            | Finding::AxisStopped { axis, .. }
            | Finding::QuickStopIgnored { axis, .. }
            | Finding::NotEnabled { axis, .. }
            | Finding::NotDisabled { axis, .. } => Some(format!("axis \"{}\"", self.robot.axes[axis].name)),
            Finding::Silent { position, .. }
            | Finding::OutsideOp { position, .. }
            | Finding::LostInTheStop { position, .. } => Some(self.place(position)),
        }
    }

    /// One finding in words: where, what was expected, what was found, and what to do.
    pub(super) fn sentence(&self, finding: &Finding) -> String {
        match *finding {
            Finding::Overrun { cycle } => format!(
                "cycle {cycle} ran past the next release, and overrun is \"stop\": the axes were \
                 stopped; --explain names the cause, overrun \"skip\" or \"catch-up\" continue \
                 instead"
            ),
            Finding::BusFailed { ref error, .. } => error.to_string(),
            Finding::AxisInFault { axis, state, error_code: code, stalled: cycles @ 1.. } => format!(
                "axis \"{}\" ended in {state}: {}, so its drive got no process data: {}. Prevent the stall, then `onbeat control reset`",
                self.robot.axes[axis].name,
                ipc::words::stall(cycles, self.robot.cycle.period),
                error_code(code)
            ),
            Finding::AxisInFault { axis, state, error_code: code, .. } => format!(
                "axis \"{}\" ended in {state}: {}; fix the cause, then `onbeat control reset`",
                self.robot.axes[axis].name,
                error_code(code)
            ),
            Finding::AxisStopped { axis, reason, with, because } => {
                let names = part_names(self.robot, None);
                let why = control::bus::stop_reason(&[axis], reason, with, because, &names);
                let quick_stop = self.status.axes[axis].quick_stop;
                let also = quick_stop.map_or(String::new(), |step| format!("; {}", step.sentence()));
                format!("supervision stopped axis \"{}\": {why}{also}", self.robot.axes[axis].name)
            }
            Finding::QuickStopIgnored { axis, step } => {
                format!("axis \"{}\": {}", self.robot.axes[axis].name, step.sentence())
            }
            Finding::ControllerLost => "the controller process ended, or did not answer, and its \
                axes were stopped: expected a process that answers until the cycle ends, or that \
                disables its axes before it ends; start it again"
                .to_owned(),
            Finding::CommandLost => "the command expired while axes followed it, the axes were \
                stopped, and no new command came: expected a program that commands until the run \
                ends, or that stops the axes before it ends"
                .to_owned(),
            Finding::NotEnabled { axis, why } => format!(
                "axis \"{}\" was not enabled: {}",
                self.robot.axes[axis].name,
                self.kept_off(axis, why)
            ),
            Finding::NotDisabled { axis, state } => format!(
                "axis \"{}\" was left in {state}: its drive does not obey, and was left to its watchdog",
                self.robot.axes[axis].name
            ),
            Finding::BusLost { lost, all_out } => self.bus_lost(lost, all_out),
            Finding::Silent { position, cycles } => {
                let lasted = span(self.time_of(cycles));
                format!(
                    "{} did not answer in the last {cycles} cycles, {lasted}: {}",
                    self.place(position),
                    self.link_trouble.unwrap_or("check its power and the cable to it")
                )
            }
            Finding::OutsideOp { position, status, code } => format!(
                "{} ended in {status}, expected Op: AL status code {code}; it did not come back to Op by itself",
                self.place(position)
            ),
            Finding::LostInTheStop { position, cycles } => format!(
                "{} did not answer for {cycles} cycles during the stop: its drive stops by its watchdog",
                self.place(position)
            ),
        }
    }

    /// Reason that an axis is not enabled that its controller wants to be, with what to do.
    pub(super) fn not_enabled(&self, axis: usize) -> Option<String> {
        let why = self.status.axes[axis].kept_off(self.robot.cycle.period)?;
        (self.status.phase == BringUpPhase::Op).then(|| self.kept_off(axis, why))
    }

    fn kept_off(&self, axis: usize, why: KeptOff) -> String {
        let because = Cause::of(&self.status.axes[axis]);
        match (why, because.interlock) {
            (KeptOff::NotPermitted, Some(_)) => {
                let names = part_names(self.robot, None);
                control::bus::stop_reason(&[axis], StopReason::NotPermitted, None, because, &names)
            }
            _ => kept_off_words(why).to_owned(),
        }
    }

    fn bus_lost(&self, lost: Lost, all_out: bool) -> String {
        let lasted = span(lost.lasted);
        if let Some(trouble) = self.link_trouble {
            return if lost.lasted.is_zero() {
                format!("the bus ended lost at once: {trouble}")
            } else {
                format!("the bus ended lost after {lasted} without process data: {trouble}")
            };
        }
        if lost.interface_gone {
            return "the network interface was removed: the bus ended lost; plug it in again, or \
                name another"
                .to_owned();
        }
        if all_out {
            return format!(
                "all SubDevices with process data were out of Op for {lasted}: the bus ended lost"
            );
        }
        format!(
            "no SubDevice exchanged process data for {lasted}: the bus ended lost; check power and \
             cables, `onbeat scan` shows which SubDevices answer"
        )
    }

    fn place(&self, position: usize) -> String {
        let name = self.robot.bus.sub_devices.get(position).map_or("?", |it| it.name.as_str());
        sub_device(position, name)
    }

    fn time_of(&self, cycles: u32) -> Duration {
        self.robot.cycle.period.saturating_mul(cycles)
    }
}

/// Kind of a finding; findings of one kind are named together.
fn kind(finding: &Finding) -> &'static str {
    match finding {
        Finding::Overrun { .. }
        | Finding::BusFailed { .. }
        | Finding::BusLost { .. }
        | Finding::ControllerLost
        | Finding::CommandLost => "",
        Finding::AxisInFault { .. }
        | Finding::AxisStopped { .. }
        | Finding::QuickStopIgnored { .. }
        | Finding::NotEnabled { .. }
        | Finding::NotDisabled { .. } => "axes",
        Finding::Silent { .. } | Finding::OutsideOp { .. } | Finding::LostInTheStop { .. } => "SubDevices",
    }
}

/// Cause that keeps an axis from being enabled, with what to do.
pub(super) fn kept_off_words(why: KeptOff) -> &'static str {
    match why {
        KeptOff::NoMainPower => "its drive has no main power (statusword bit 4): switch that on",
        KeptOff::NotPermitted => "its permission is missing",
        KeptOff::DriveRefuses => {
            "its drive does not switch on: check its enable input, its safe torque off (STO), what it says, and that no \
             other MainDevice commands it"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use robot::Overrides;

    fn told(findings: &[Finding]) -> Vec<String> {
        let robot = RobotConfig::read_or_built_in(None, Overrides::default()).unwrap();
        let status = Status::initial(6, 6);
        let standing = Standing { robot: &robot, status: &status, link_trouble: None };
        let verdict = standing.verdict(findings).unwrap_err().to_string();
        verdict.lines().map(str::to_owned).collect()
    }

    // feature(program): exit codes, from one verdict for program and fault matrix
    #[test]
    fn of_many_that_did_not_end_well_the_rest_is_named() {
        let lost = |position| Finding::LostInTheStop { position, cycles: 7 };
        let stopped = |axis| Finding::AxisStopped {
            axis,
            reason: StopReason::Stale,
            with: None,
            because: Cause::default(),
        };
        let findings: Vec<Finding> = (0..4).map(stopped).chain((0..5).map(lost)).collect();
        let few = told(&findings);
        assert_eq!(few.len(), 8, "{few:#?}");
        assert_eq!(few[3], "nor did 1 more end well: axis \"axis-4\"");
        assert!(few[4].starts_with("SubDevice 0 \"drive-1\" did not answer for 7 cycles"), "{few:#?}");
        assert_eq!(few[7], "nor did 2 more end well: SubDevice 3 \"drive-4\", SubDevice 4 \"drive-5\"");
        let last = told(&(0..20).map(lost).collect::<Vec<_>>()).pop().unwrap();
        assert!(last.starts_with("nor did 17 more end well: SubDevice 3 "), "{last}");
        assert!(last.ends_with("; and 5 more, which --json has in its findings"), "{last}");
    }
}
