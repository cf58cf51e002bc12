//! Texts for axes that wait for their controller process.

use types::ControllerKind;

use super::why_stopped;
use crate::description::Description;
use crate::state::{DriveState, ProcessState, State, StopReason};

/// Cause and remedy at an axis of a controller process that gives it no set-points.
pub(super) fn of_process(
    place: usize,
    state: &State,
    description: &Description,
) -> Option<(String, String)> {
    let (why, remedy) = match process_of(place, state, description)? {
        ProcessState::InCycle | ProcessState::Answering => return None,
        ProcessState::Absent => ("no controller process is attached", START_PROCESS),
        ProcessState::Attached => {
            ("the controller process has not answered yet", "it enables and moves the axis by its answers")
        }
        ProcessState::Failing => ("answers of the controller process are late or wrong", RESTART_PROCESS),
    };
    Some((why.to_owned(), remedy.to_owned()))
}

/// State of the active controller process, if this is one of its axes.
fn process_of(place: usize, state: &State, description: &Description) -> Option<ProcessState> {
    let active = description.controllers.get(usize::from(state.control.active))?;
    let is_its = active.kind == Some(ControllerKind::External) && active.axes.contains(&place);
    is_its.then_some(state.control.process)
}

/// True if a controller process is attached that has not answered yet for this axis.
#[must_use]
pub fn awaits_answer(place: usize, state: &State, description: &Description) -> bool {
    process_of(place, state, description) == Some(ProcessState::Attached)
}

/// Reason for which an axis that nothing else stops gets no set-points, with what to do.
#[must_use]
pub fn without_set_points(place: usize, state: &State, description: &Description) -> Option<String> {
    let (described, axis) = (description.axes.get(place)?, state.axes.get(place)?);
    if axis.stop != StopReason::Stale as u8 || axis.ended {
        return None;
    }
    let is_enabled = axis.drive_state == DriveState::OperationEnabled as u8;
    let why = why_stopped(axis, state, description)?;
    let remedy = match process_of(place, state, description) {
        Some(ProcessState::Attached) => return None,
        Some(_) => RESTART_PROCESS,
        None if state.control.enabled && !is_enabled => "its drive is enabled with the next command",
        None => return None,
    };
    Some(format!("{}: {why}; {remedy}", described.name))
}

const START_PROCESS: &str = "start it, then `onbeat control enable`";
const RESTART_PROCESS: &str = "start the controller process again, or look at its messages";
