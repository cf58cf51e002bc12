//! End of a request: the state of the axes after the cycle has carried it out, for `onbeat
//! control`, ROS 2 and Python.

use std::time::Duration;

use types::state::{DrivePhase, DriveState, StopReason};

use crate::description::Description;
use crate::message::control::Action;
use crate::state::{Axis, ProcessState, State};
use crate::words;

/// Time after the reply before the state is read: the state of the cycle that replied follows the
/// reply.
pub const FIRST_LOOK: Duration = Duration::from_millis(50);

/// Time in which set-points may return after a request, and drives are enabled again.
pub const LAST_LOOK: Duration = Duration::from_millis(900);

/// Axes that a sentence names.
const MOST: usize = 3;

/// Looks at the axes at this time after the cycle has carried out a request to enable or to reset.
/// `None`: an axis is still stopped, and may be ready later; look again. Returns the axes that wait
/// for something else than this request, as for their homing ([`words::hindrance`]).
///
/// # Errors
/// The axes that the request did not make ready, with the reasons and the remedies.
pub fn remaining(
    what: Action,
    since: Duration,
    state: &State,
    description: &Description,
) -> Option<Result<Vec<usize>, String>> {
    let done = match what {
        Action::Enable => "enabled",
        Action::ResetFaults => "reset",
        _ => return Some(Ok(Vec::new())),
    };
    if since < FIRST_LOOK {
        return None;
    }
    let all = 0..description.axes.len().min(state.axes.len());
    let failed: Vec<String> =
        all.clone().filter_map(|axis| not_ready(what, axis, state, description)).collect();
    if !failed.is_empty() {
        let sentence = || format!("{done}, but not ready: {}", first(failed));
        // No process, no set-points: a later look finds the same.
        let is_final = since >= LAST_LOOK || state.control.process == ProcessState::Absent;
        return is_final.then(|| Err(sentence()));
    }
    let is_off = |it: &Axis| !state.control.enabled && !is_enabled(it);
    let waits = |axis: &usize| {
        let it = &state.axes[*axis];
        let waits = it.stop != 0 || is_off(it) || words::awaits_answer(*axis, state, description);
        waits && words::hindrance(*axis, state, description).is_some()
    };
    Some(Ok(all.filter(waits).collect()))
}

/// Sentence on the axes that [`remaining`] returns; empty without such an axis.
#[must_use]
pub fn sentence(axes: &[usize], state: &State, description: &Description) -> String {
    first(axes.iter().filter_map(|&axis| words::hindrance(axis, state, description)).collect())
}

/// The first sentences, and the number of the others.
fn first(sentences: Vec<String>) -> String {
    let more = sentences.len().saturating_sub(MOST);
    let mut text = sentences.into_iter().take(MOST).collect::<Vec<_>>().join("; ");
    if more > 0 {
        text.push_str(&format!("; and {more} more axes"));
    }
    text
}

/// Reason for which the request did not make an axis ready.
fn not_ready(what: Action, place: usize, state: &State, description: &Description) -> Option<String> {
    if let Some(why) = words::without_set_points(place, state, description) {
        return Some(why);
    }
    let axis = state.axes.get(place)?;
    let silent = words::silent_for(axis, description).is_some();
    let faulted = silent || DriveState::from_code(axis.drive_state).is_some_and(DriveState::is_faulted);
    let stopped = axis.phase != DrivePhase::Following as u8;
    let latched = stopped && StopReason::from_code(axis.stop).is_some_and(StopReason::is_latched);
    let fails = match what {
        // An attached process enables the axis by its answers.
        Action::Enable => {
            let is_ready = is_enabled(axis) || words::awaits_answer(place, state, description);
            faulted || latched || !is_ready
        }
        // A start request ends that stop, a reset does not.
        _ => faulted || (latched && !awaits_start(axis, state)),
    };
    fails.then(|| words::hindrance(place, state, description)).flatten()
}

/// True if an axis waits for a start request, or was stopped with one that does.
fn awaits_start(axis: &Axis, state: &State) -> bool {
    let waits = |it: &Axis| it.stop == StopReason::AwaitsStart as u8;
    let with = || axis.stopped_with.and_then(|it| state.axes.get(usize::from(it)));
    waits(axis) || (axis.stop == StopReason::OtherAxis as u8 && with().is_some_and(waits))
}

fn is_enabled(axis: &Axis) -> bool {
    axis.drive_state == DriveState::OperationEnabled as u8
}

#[cfg(test)]
mod tests {
    use types::{ControllerKind, CyclicMode};

    use super::*;
    use crate::description::{AxisDescription, ControllerDescription};

    fn description() -> Description {
        let axis = |name| AxisDescription::new(name, CyclicMode::Position, 1.0, 1.0);
        let process = ControllerDescription {
            name: "arm".to_owned(),
            kind: Some(ControllerKind::External),
            axes: vec![0, 1],
        };
        Description {
            axes: vec![axis("x"), axis("y")],
            controllers: vec![process],
            ..Description::default()
        }
    }

    fn with(y: Axis, enabled: bool) -> State {
        let x = enabled_axis();
        let mut state = State { axes: vec![x, y], ..State::default() };
        (state.control.enabled, state.control.active) = (enabled, 0);
        state
    }

    fn enabled_axis() -> Axis {
        let phase = DrivePhase::Holding as u8;
        Axis { drive_state: DriveState::OperationEnabled as u8, phase, ..Axis::default() }
    }

    fn stopped(reason: StopReason) -> Axis {
        Axis { stop: reason as u8, ..enabled_axis() }
    }

    fn at_end(what: Action, y: Axis) -> Result<Vec<usize>, String> {
        remaining(what, LAST_LOOK, &with(y, true), &description()).expect("an answer at the last look")
    }

    // feature(program): enable and reset do not report success while an axis is still stopped
    #[test]
    fn a_request_fails_at_an_axis_that_stays_stopped() {
        let off = Axis { drive_state: DriveState::SwitchOnDisabled as u8, phase: 0, ..enabled_axis() };
        let fault = Axis { drive_state: DriveState::Fault as u8, error_code: 0x7305, ..off };
        let forbidden = Axis { stop: StopReason::NotPermitted as u8, ..off };
        let both = [Action::Enable, Action::ResetFaults];
        for (what, done) in both.into_iter().zip(["enabled", "reset"]) {
            for y in [stopped(StopReason::Stale), stopped(StopReason::FollowingError), fault] {
                let why = at_end(what, y).unwrap_err();
                assert!(why.starts_with(&format!("{done}, but not ready: y: ")), "{why}");
            }
            assert_eq!(at_end(what, enabled_axis()), Ok(vec![]));
            assert_eq!(at_end(what, Axis { ended: true, ..stopped(StopReason::Stale) }), Ok(vec![]));
            // It waits for something else than the request.
            assert_eq!(at_end(what, stopped(StopReason::NotHomed)), Ok(vec![1]));
        }
        assert!(at_end(Action::Enable, fault).unwrap_err().contains("error code 0x7305"));
        for y in [off, forbidden, stopped(StopReason::AwaitsStart)] {
            assert!(at_end(Action::Enable, y).is_err(), "{y:?}");
            assert!(at_end(Action::ResetFaults, y).is_ok(), "{y:?}");
        }
        let process_lost = at_end(Action::Enable, stopped(StopReason::Stale)).unwrap_err();
        assert!(process_lost.contains("start the controller process again"), "{process_lost}");
    }

    // feature(program): a program attaches as the controller process, and enables or resets then
    #[test]
    fn an_attached_process_without_an_answer_may_enable() {
        let off = Axis { drive_state: DriveState::SwitchOnDisabled as u8, phase: 0, ..enabled_axis() };
        let look = |what, y: Axis, process, since| {
            let mut state = with(y, y.drive_state != off.drive_state);
            state.control.process = process;
            remaining(what, since, &state, &description())
                .map(|it| it.map(|waits| sentence(&waits, &state, &description())))
        };
        let waits =
            "y: the controller process has not answered yet; it enables and moves the axis by its answers";
        for what in [Action::Enable, Action::ResetFaults] {
            for y in [stopped(StopReason::Stale), off, Axis { stop: StopReason::Stale as u8, ..off }] {
                let found = look(what, y, ProcessState::Attached, FIRST_LOOK).expect("an answer");
                let found = found.expect("a process that answers next");
                assert!(found.ends_with(waits), "{found}");
            }
            // Its answers are late or wrong, or it has ended: the axis has no set-points.
            let stale = stopped(StopReason::Stale);
            let failing = look(what, stale, ProcessState::Failing, LAST_LOOK).expect("an answer");
            assert!(failing.unwrap_err().contains("start the controller process again"));
            let absent = look(what, stale, ProcessState::Absent, FIRST_LOOK).expect("at once");
            assert!(absent.unwrap_err().contains("start the controller process again"));
            for y in [stopped(StopReason::FollowingError), Axis { drive_state: 8, ..off }] {
                let found = look(what, y, ProcessState::Attached, LAST_LOOK).expect("an answer");
                assert!(found.is_err(), "{what:?} {y:?}");
            }
        }
        let reset = look(Action::ResetFaults, off, ProcessState::Absent, FIRST_LOOK);
        let expected = "y: no controller process is attached; start it, then `onbeat control enable`";
        assert_eq!(reset, Some(Ok(expected.to_owned())));
    }

    #[test]
    fn an_axis_that_may_be_ready_later_is_looked_at_again() {
        let (late, description) = (with(stopped(StopReason::Stale), true), description());
        let look = |since, state: &State| remaining(Action::Enable, since, state, &description);
        assert_eq!(look(LAST_LOOK - Duration::from_millis(1), &late), None);
        let ready = with(enabled_axis(), true);
        assert_eq!(look(FIRST_LOOK, &ready), Some(Ok(vec![])));
        assert_eq!(look(Duration::ZERO, &ready), None, "its state may be of the cycle before");
        assert_eq!(remaining(Action::Stop, Duration::ZERO, &late, &description), Some(Ok(vec![])));
    }

    #[test]
    fn a_reset_of_disabled_drives_names_the_next_request() {
        let off = Axis { drive_state: DriveState::SwitchOnDisabled as u8, phase: 0, ..enabled_axis() };
        let (state, description) = (with(off, false), description());
        let found = remaining(Action::ResetFaults, LAST_LOOK, &state, &description);
        assert_eq!(found, Some(Ok(vec![1])));
        let shown = sentence(&[1], &state, &description);
        assert_eq!(shown, "y: its drive is in Switch on disabled; type `onbeat control enable`");
        let five = vec!["a".to_owned(); 5];
        assert_eq!(first(five), "a; a; a; and 2 more axes");
    }
}
