//! Progress of a run on standard error: the live line, and a line for each event.

use std::collections::BTreeMap;

use control::status::Status;
use ethercat::main_device::BringUpPhase;
use ipc::bus::Severity;
use onbeat::{CycleEvent, LateCycle, Notice, Phase, Progress, Reporter};
use record::RunSummary;
use robot::RobotConfig;

use super::chronicle::Chronicle;
use super::log::Log;
use super::service::Service;
use crate::words::live_line::LiveLine;
use crate::words::sub_device_count;

/// Reports a run on standard error, to event files and clients, and to the service manager that
/// started it.
pub(super) struct RunReporter<'a> {
    chronicle: Chronicle,
    live: &'a mut LiveLine,
    log: &'a mut Log,
    service: Option<Service>,
    /// The SubDevices are simulated, and no frame is lost on purpose: lost ones are this machine's.
    simulated: bool,
    /// Details are written as well.
    verbose: bool,
}

impl<'a> RunReporter<'a> {
    pub(super) fn new(
        robot: &RobotConfig,
        log: &'a mut Log,
        live: &'a mut LiveLine,
        (simulated, verbose): (bool, bool),
    ) -> Self {
        let chronicle = Chronicle::new(robot, log.names.clone(), live.voice()).with_times(log.times);
        Self { chronicle, live, log, service: Service::of_this_process(), simulated, verbose }
    }

    /// Cause for which the link carried no frames at the end, if that is known.
    pub(super) fn link_trouble(&self) -> Option<&str> {
        self.chronicle.link_trouble()
    }
}

impl Reporter for RunReporter<'_> {
    fn notice(&mut self, notice: &Notice) {
        if matches!(notice, Notice::Detail(_)) && !self.verbose {
            return;
        }
        let (severity, sentence) = (severity(notice), notice.to_string());
        self.live.tell(severity, &sentence);
        self.log.notice(severity, &sentence);
    }

    fn events(&mut self, events: Vec<CycleEvent>) {
        self.log.events(&events);
        self.chronicle.take(events.into_iter());
    }

    fn progress(&mut self, progress: &Progress<'_>) {
        self.chronicle.look(progress.status, progress.at);
        self.log.look(progress);
        let (lost, simulated) = (self.chronicle.lost(), self.simulated);
        let line = || line(progress.phase, progress.status, progress.timing, lost, simulated);
        match &mut self.service {
            // Its log is for what happens.
            Some(service) => service.progress(progress.phase, progress.status.cycle, || {
                let waits = if progress.status.waits_for_enable() { WAITS } else { "" };
                waits.to_owned() + &line()
            }),
            None => self.live.show(line),
        }
    }

    fn late(&mut self, late: &LateCycle) {
        self.log.late(late);
    }

    fn stopping(&mut self) {
        self.service.iter().for_each(Service::stopping);
        self.log.stopping();
        self.chronicle.close();
    }

    fn ended(&mut self) {
        self.live.finish();
    }
}

/// Beginning of the status of a service with axes that wait for an operator.
const WAITS: &str = "in Op, waits for enable (`onbeat control enable`) | ";

/// Severity of a notice.
fn severity(notice: &Notice) -> Severity {
    match notice {
        Notice::Squatter { .. }
        | Notice::OtherMainDevice { .. }
        | Notice::NoWatchdog { .. }
        | Notice::WeakDrive(_)
        | Notice::IpcElsewhere(_)
        | Notice::NoIpc(_)
        | Notice::NoTrace(_)
        | Notice::Recording(_)
        | Notice::Fault { .. }
        | Notice::WrongAnswer { .. }
        | Notice::HoldsLoad(..)
        | Notice::NotPutBack(_) => Severity::Warning,
        Notice::State(_) => Severity::Error,
        _ => Severity::Ok,
    }
}

/// The live line of a run with so many SubDevices lost, on a simulated bus or not.
fn line(phase: Phase, status: &Status, timing: &RunSummary, lost: usize, simulated: bool) -> String {
    let states = match lost {
        0 => states(status),
        lost => format!("{} without process data, {}", sub_device_count(lost), states(status)),
    };
    match phase {
        Phase::Stopping => format!("stopping, bus in phase {}: {states}", status.phase),
        Phase::Measuring if status.phase == BringUpPhase::Op => {
            let jitter = timing.release_jitter.maximum().unwrap_or(0) as f64 / 1e3;
            let lost = timing.lost_frames.count;
            // What counts most comes first: a narrow terminal cuts the rest.
            format!(
                "{} cycles, {lost} lost, {} overruns, {} WKC errors | {states} | jitter <= {jitter:.0} us{}",
                timing.cycles(),
                timing.overruns.count,
                timing.working_counter_errors.count,
                if simulated && lost > 0 { " | lost: machine was late" } else { "" },
            )
        }
        Phase::BringUp | Phase::Measuring => format!("bus in phase {}: {states}", status.phase),
    }
}

/// Number of axes in each state: "5 axes in Operation enabled, 1 in Fault".
fn states(status: &Status) -> String {
    let mut counts = BTreeMap::new();
    for axis in &status.axes {
        let state = axis.state.map_or("without a state".to_owned(), |state| format!("in {state}"));
        *counts.entry(state).or_insert(0_usize) += 1;
    }
    if counts.is_empty() {
        return "no axes".to_owned();
    }
    let noun = |place: usize, count: usize| match (place, count) {
        (0, 1) => " axis",
        (0, _) => " axes",
        _ => "",
    };
    let counts = counts.iter().enumerate();
    let counts = counts.map(|(place, (state, &count))| format!("{count}{} {state}", noun(place, count)));
    counts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use ethercat::cia402::State;
    use record::CycleRecord;

    use super::*;

    /// The live line says in which phase the bus is, and how many axes are in which state of CiA
    /// 402.
    // feature(program): the live line of `run` names the phase of the bus and the states of the axes
    #[test]
    fn the_line_says_what_is_in_which_state() {
        let mut timing = RunSummary::new(1_000_000);
        let mut status = Status::initial(6, 6);
        status.phase = BringUpPhase::ToSafeOp;
        let of =
            |phase, status: &Status, lost| line(phase, status, &RunSummary::new(1_000_000), lost, true);
        assert_eq!(of(Phase::BringUp, &status, 0), "bus in phase To SafeOp: 6 axes without a state");
        status.axes.iter_mut().for_each(|it| it.state = Some(State::SwitchOnDisabled));
        assert_eq!(of(Phase::BringUp, &status, 0), "bus in phase To SafeOp: 6 axes in Switch on disabled");
        status.phase = BringUpPhase::Op;
        status.axes[1].state = Some(State::Fault);
        let states = "1 axis in Fault, 5 in Switch on disabled";
        let expected = format!("stopping, bus in phase Op: 2 SubDevices without process data, {states}");
        assert_eq!(of(Phase::Stopping, &status, 2), expected);
        let expected = format!("0 cycles, 0 lost, 0 overruns, 0 WKC errors | {states} | jitter <= 0 us");
        assert_eq!(of(Phase::Measuring, &status, 0), expected);
        timing.record(&CycleRecord { lost_frames: 2, ..CycleRecord::begin(1, 0, 0) });
        let simulated = |it| line(Phase::Measuring, &status, &timing, 0, it);
        let told = format!("1 cycles, 2 lost, 0 overruns, 0 WKC errors | {states} | jitter <= 0 us");
        assert_eq!(simulated(false), told);
        assert_eq!(simulated(true), told + " | lost: machine was late");
    }

    /// A terminal of 40 columns shows 38 letters of it, and a mark.
    #[test]
    fn frames_lost_and_overruns_fit_on_a_narrow_terminal() {
        let mut status = Status::initial(6, 6);
        status.phase = BringUpPhase::Op;
        let mut timing = RunSummary::new(1_000_000);
        for cycle in 1..=20_000 {
            let lost_frames = u32::from(cycle % 1_000 == 0);
            timing.record(&CycleRecord {
                lost_frames,
                overrun: cycle % 5_000 == 0,
                ..CycleRecord::begin(cycle, 0, 0)
            });
        }
        for simulated in [false, true] {
            let line = line(Phase::Measuring, &status, &timing, 0, simulated);
            let seen: String = line.chars().take(38).collect();
            assert!(seen.starts_with("20000 cycles, 20 lost, 4 overruns"), "{seen}");
        }
    }
}
