//! How a run ended, in words: who was lost, which drives are in fault, which axes were stopped.

use std::time::Duration;

use ethercat::cia402::ErrorCode;
use ethercat::main_device::Stage;
use motion::supervision::StopReason;
use robot::{InterlockKind, Robot};
use runtime::cycle::Lost;
use runtime::status::{Status, stop_code};
use runtime::verdict::{Finding, KeptOff};

use crate::failure::Failure;
use crate::words::moment::span;
use crate::words::sub_devices::place;

/// Axes and SubDevices named one by one.
pub(super) const MOST_NAMED: usize = 3;

/// How the SubDevices and the axes stood when the run came to its end.
pub(super) struct Standing<'a> {
    pub(super) robot: &'a Robot,
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

    /// What is wrong, each a sentence with its exit code.
    pub(super) fn verdict(&self, findings: &[Finding]) -> Result<(), Failure> {
        let mut verdict = Ok(());
        let mut rest = findings;
        while let Some(first) = rest.first() {
            let (alike, others) =
                rest.split_at(rest.iter().take_while(|it| kind(it) == kind(first)).count());
            let sentences = alike.iter().map(|finding| self.sentence(finding)).collect();
            let code = first.exit_code();
            for sentence in few(sentences, kind(first)) {
                verdict = Failure::both(verdict, Err(Failure::new(sentence).or_code(code)));
            }
            rest = others;
        }
        verdict
    }

    /// One finding in words: where, what was expected, what was found, and what to do.
    fn sentence(&self, finding: &Finding) -> String {
        match *finding {
            Finding::Overrun { cycle } => format!(
                "cycle {cycle} ran past the next release, and overrun is \"stop\": the axes were brought to rest; \
                 --explain names what held it up, skip and catch-up go on"
            ),
            Finding::BusFailed { ref error, .. } => error.to_string(),
            Finding::AxisInFault { axis, state, error_code: code } => format!(
                "axis \"{}\" ended in {state}: {}; mend its cause, then reset the axis",
                self.robot.axes[axis].name,
                error_code(code)
            ),
            Finding::AxisStopped { axis, reason } => {
                format!(
                    "supervision stopped axis \"{}\": {}",
                    self.robot.axes[axis].name,
                    stop_words(reason)
                )
            }
            Finding::NotEnabled { axis, why } => format!(
                "axis \"{}\" was asked to be enabled and was not: {}",
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
                "{} ended in {status}, expected Op: AL status code {code}; a restart brings it back",
                self.place(position)
            ),
            Finding::LostInTheStop { position, cycles } => format!(
                "{} did not answer for {cycles} cycles while all was brought to rest: its drive was left to its watchdog",
                self.place(position)
            ),
        }
    }

    /// Why an axis is not enabled that its controller wants to be, with what to do.
    pub(super) fn not_enabled(&self, axis: usize) -> Option<String> {
        let why = self.status.axes[axis].kept_off(self.robot.cycle.period)?;
        (self.status.stage == Stage::Op).then(|| self.kept_off(axis, why))
    }

    fn kept_off(&self, axis: usize, why: KeptOff) -> String {
        let KeptOff::NotPermitted = why else { return kept_off_words(why).to_owned() };
        let for_it = self.robot.interlocks.iter();
        let for_it = for_it.filter(|it| it.kind == InterlockKind::Enable && it.axes.contains(&axis));
        let names: Vec<String> = for_it.map(|it| format!("\"{}\"", it.name)).collect();
        format!("{}: interlock {}", kept_off_words(why), names.join(", "))
    }

    fn bus_lost(&self, lost: Lost, all_out: bool) -> String {
        let lasted = span(lost.lasted);
        if let Some(trouble) = self.link_trouble {
            return format!("the bus ended lost after {lasted} without process data: {trouble}");
        }
        if lost.interface_gone {
            return "the network interface is gone: the bus ended lost; plug it in again, or name another"
                .to_owned();
        }
        if all_out {
            return format!(
                "all SubDevices with process data were out of Op for {lasted}: the bus ended lost; a restart brings them back"
            );
        }
        format!(
            "no SubDevice exchanged process data for {lasted}: the bus ended lost; check power and cables, `onbeat scan` shows who answers"
        )
    }

    fn place(&self, position: usize) -> String {
        let name = self.robot.bus.sub_devices.get(position).map_or("?", |it| it.name.as_str());
        place(position, name)
    }

    fn time_of(&self, cycles: u32) -> Duration {
        self.robot.cycle.period.saturating_mul(cycles)
    }
}

/// What several findings of its kind are called together.
fn kind(finding: &Finding) -> &'static str {
    match finding {
        Finding::Overrun { .. } | Finding::BusFailed { .. } | Finding::BusLost { .. } => "",
        Finding::AxisInFault { .. }
        | Finding::AxisStopped { .. }
        | Finding::NotEnabled { .. }
        | Finding::NotDisabled { .. } => "axes",
        Finding::Silent { .. } | Finding::OutsideOp { .. } | Finding::LostInTheStop { .. } => "SubDevices",
    }
}

/// The first of them, and how many more there are.
fn few(mut sentences: Vec<String>, of: &str) -> Vec<String> {
    let more = sentences.len().saturating_sub(MOST_NAMED);
    if more > 0 {
        sentences.truncate(MOST_NAMED);
        sentences.push(format!("{more} more {of} ended so: the table has them"));
    }
    sentences
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

/// Why supervision has an axis, in words.
pub(super) fn stop_words(reason: StopReason) -> &'static str {
    stop_code(reason).words()
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
