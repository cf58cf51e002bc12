//! A run as it goes on, on standard error: the live line, and a line for each thing that happens.

use std::collections::BTreeMap;

use control::status::Status;
use ethercat::main_device::BringUpPhase;
use onbeat::{CycleEvent, LateCycle, Notice, Phase, Progress, Reporter};
use robot::RobotConfig;

use super::chronicle::Chronicle;
use super::outcome;
use crate::words::live_line::LiveLine;

/// Reports a run on standard error.
pub(super) struct RunReporter<'a> {
    chronicle: Chronicle,
    live: &'a mut LiveLine,
}

impl<'a> RunReporter<'a> {
    pub(super) fn new(robot: &RobotConfig, interface: Option<String>, live: &'a mut LiveLine) -> Self {
        Self { chronicle: Chronicle::new(robot, interface, live.voice()), live }
    }

    /// Cause for which the link carried no frames at the end, if that is known.
    pub(super) fn link_trouble(&self) -> Option<&str> {
        self.chronicle.link_trouble()
    }
}

impl Reporter for RunReporter<'_> {
    fn notice(&mut self, notice: &Notice) {
        self.live.say(&notice.to_string());
    }

    fn events(&mut self, events: Vec<CycleEvent>) {
        self.chronicle.take(events.into_iter());
    }

    fn progress(&mut self, progress: &Progress<'_>) {
        self.chronicle.look(progress.status, progress.at);
        let lost = self.chronicle.lost();
        self.live.show(|| line(progress, lost));
    }

    fn late(&mut self, late: &LateCycle) {
        self.live.say(&late.to_string());
    }

    fn stopping(&mut self) {
        self.chronicle.close();
    }

    fn ended(&mut self) {
        self.live.finish();
    }
}

/// The live line of a run with so many SubDevices lost.
fn line(progress: &Progress<'_>, lost: usize) -> String {
    let (status, timing) = (progress.status, progress.timing);
    let states = match lost {
        0 => states(status),
        lost => format!("{lost} without process data, {}", states(status)),
    };
    match progress.phase {
        Phase::Stopping => format!("stopping: {states} ({})", status.phase),
        Phase::Measuring if status.phase == BringUpPhase::Op => {
            let jitter = timing.release_jitter.maximum().unwrap_or(0) as f64 / 1e3;
            // The parts that fit on a narrow terminal come first.
            format!(
                "{} cycles, {} lost, {} overruns, {} WKC errors | {states} | jitter <= {jitter:.0} us",
                timing.cycles(),
                timing.lost_frames.count,
                timing.overruns.count,
                timing.working_counter_errors.count,
            )
        }
        Phase::BringUp | Phase::Measuring => format!("{states} ({})", status.phase),
    }
}

/// Number of axes in each state.
fn states(status: &Status) -> String {
    let mut counts = BTreeMap::new();
    for axis in &status.axes {
        *counts.entry(outcome::state(axis)).or_insert(0_usize) += 1;
    }
    if counts.is_empty() {
        return "no axes".to_owned();
    }
    let counts: Vec<String> = counts.iter().map(|(state, count)| format!("{count} {state}")).collect();
    counts.join(", ")
}
