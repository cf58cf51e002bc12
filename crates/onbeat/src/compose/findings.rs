//! Findings of a run in words: lost SubDevices, drives in fault, stopped axes.

use std::time::Duration;

use ::robot::RobotConfig;
use control::bus::{error_code, span, sub_device};
use control::cycle::Lost;
use control::observer::Cause;
use control::status::Status;
use control::verdict::{Finding, KeptOff};
use ethercat::main_device::BringUpPhase;
use motion::supervision::StopReason;

use super::names::part_names;

/// Facts that the sentences need.
#[derive(Clone, Copy, Debug)]
pub struct FindingWords<'a> {
    /// The robot, for names and the period.
    pub robot: &'a RobotConfig,
    /// The status before the stop.
    pub status: &'a Status,
    /// Reason for which the link carried no frames at the end, if it is known.
    pub link_trouble: Option<&'a str>,
}

impl FindingWords<'_> {
    /// The axis or SubDevice that a finding is about.
    #[must_use]
    pub fn place_of(&self, finding: &Finding) -> Option<String> {
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
    #[must_use]
    pub fn sentence(&self, finding: &Finding) -> String {
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
    #[must_use]
    pub fn not_enabled(&self, axis: usize) -> Option<String> {
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

/// Cause that keeps an axis from being enabled, with what to do.
#[must_use]
pub fn kept_off_words(why: KeptOff) -> &'static str {
    match why {
        KeptOff::NoMainPower => "its drive has no main power (statusword bit 4): switch that on",
        KeptOff::NotPermitted => "its permission is missing",
        KeptOff::DriveRefuses => {
            "its drive does not switch on: check its enable input, its safe torque off (STO), what it says, and that no \
             other MainDevice commands it"
        }
    }
}
