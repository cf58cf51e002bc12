//! Answers of a controller process that the cycle refuses.

use std::sync::Arc;

use ipc::controller::{ControllerCounters, Counters, Wrong};
use robot::RobotConfig;
use types::AxisMode;

use crate::Notice;

/// Counts of a controller process, and the reasons of refusals that were reported.
pub(super) struct Answers {
    counters: Arc<Counters>,
    /// Names and modes of the axes.
    axes: Vec<(String, AxisMode)>,
    reported: Vec<Wrong>,
}

impl Answers {
    pub(super) fn new(counters: Arc<Counters>, robot: &RobotConfig) -> Self {
        let axes = robot.axes.iter().map(|it| (it.name.clone(), it.mode)).collect();
        Self { counters, axes, reported: Vec::new() }
    }

    /// Report of a refusal for a reason that is new: a process that answers wrong does so in every
    /// cycle.
    pub(super) fn look(&mut self) -> Option<Notice> {
        let ControllerCounters { wrong, last_wrong, why_wrong, wrong_axis, .. } = self.counters.read();
        let why = u8::try_from(why_wrong).ok().and_then(Wrong::from_code).filter(|_| wrong > 0)?;
        if self.reported.contains(&why) {
            return None;
        }
        self.reported.push(why);
        let place = usize::try_from(wrong_axis).ok().and_then(|it| it.checked_sub(1));
        let axis = place.and_then(|it| self.axes.get(it)).cloned();
        Some(Notice::WrongAnswer { cycle: last_wrong, why, axis })
    }
}
