//! Axes without process data: what is known of them is old.

use std::time::Duration;

use types::state::is_communication_error;
use types::time::span;

use super::{Words, drive_state};
use crate::description::{AxisDescription, Description};
use crate::message::control::Refusal;
use crate::state::{Axis, State, StopReason};

/// Cycles without process data that a display leaves out: set-points continue for as long.
const UNNOTICED: u32 = types::cycle::BLIND_CYCLES as u32;

/// Time for which an axis has exchanged no process data: its state and its numbers are as old.
/// `None` while it exchanges them, before its first state, and of one that is absent.
#[must_use]
pub fn silent_for(axis: &Axis, description: &Description) -> Option<Duration> {
    let missed = axis.details.missed;
    let is_known = axis.drive_state != 0 && !axis.details.is_absent;
    (is_known && missed > UNNOTICED)
        .then(|| Duration::from_nanos(description.period_ns).saturating_mul(missed))
}

/// State of the drive of an axis, as [`drive_state`] has it; of an axis without process data the
/// time of that, and the last known state.
#[must_use]
pub fn drive(axis: &Axis, description: &Description) -> Words {
    let state = drive_state(axis.drive_state);
    match silent_for(axis, description) {
        Some(time) => format!("{}, before that in {state}", silence(time)).into(),
        None => state,
    }
}

/// A silence as a text: `no process data for 3.2 s`.
#[must_use]
pub fn silence(time: Duration) -> String {
    format!("no process data for {}", span(time))
}

/// The reason of an outage with its length, while it lasts.
pub(super) fn outage(reason: Words, axis: &Axis, description: &Description) -> String {
    match silent_for(axis, description) {
        Some(time) => format!("{reason}, for {}", span(time)),
        None => reason.into_owned(),
    }
}

/// Remedy for an axis without process data.
pub(super) fn remedy(axis: &AxisDescription, description: &Description, then: &str) -> String {
    let Some(at) = axis.sub_device else { return format!("correct that, {then}") };
    let name = description.sub_devices.get(at).map_or("", |it| it);
    format!("check the power of SubDevice {at} \"{name}\" and its cables, {then}")
}

/// A request to stop that is kept, with the axes without process data and what to do.
pub(super) fn kept(refusal: Refusal, state: &State, description: &Description) -> String {
    let axes = state.axes.iter().zip(&description.axes);
    let silent: Vec<_> = axes.filter_map(|(axis, it)| Some((silent_for(axis, description)?, it))).collect();
    let Some(&(time, first)) = silent.iter().rev().max_by_key(|(time, _)| *time) else {
        return refusal.to_string();
    };
    let mut names = silent.iter().map(|(_, it)| it.name.as_str()).take(MOST).collect::<Vec<_>>().join(", ");
    if silent.len() > MOST {
        names.push_str(&format!(" and {} more", silent.len() - MOST));
    }
    let remedy = remedy(first, description, "then `onbeat control reset`");
    format!("{refusal}; {names}: {}; {remedy}", silence(time))
}

/// Axes that are named.
const MOST: usize = 6;

/// True if a stall of the host has stopped an axis, or has its drive in fault.
pub(super) fn has_stalled(axis: &Axis) -> bool {
    axis.stalled > 0
        && match StopReason::from_code(axis.stop) {
            Some(StopReason::Outage) => true,
            Some(StopReason::Fault) => is_communication_error(axis.error_code),
            _ => false,
        }
}

/// A stall of the host as the cause of a stop.
#[must_use]
pub fn stall(cycles: u32, period: Duration) -> String {
    let lasted = span(period.saturating_mul(cycles));
    format!("this computer stalled for {cycles} cycles, {lasted} (`onbeat doctor` says why)")
}

#[cfg(test)]
mod tests {
    use super::super::{hindrance, refused, why_stopped};
    use super::*;
    use crate::message::control::Action;
    use crate::state::{AxisDetails, DriveState};

    fn robot() -> Description {
        let axis = |name| AxisDescription {
            sub_device: Some(0),
            ..AxisDescription::new(name, types::CyclicMode::Position, 1.0, 1.0)
        };
        Description {
            axes: vec![axis("x"), axis("y")],
            sub_devices: vec!["drive-1".into()],
            period_ns: 2_000_000,
            ..Description::default()
        }
    }

    fn silent(missed: u32, stop: u8) -> Axis {
        let details = AxisDetails { missed, ..AxisDetails::default() };
        Axis { drive_state: DriveState::OperationEnabled as u8, stop, details, ..Axis::default() }
    }

    // feature(ipc): an axis without process data is never shown as enabled
    #[test]
    fn old_state_of_a_drive_is_shown_as_old() {
        let robot = robot();
        let shown = |axis: &Axis| drive(axis, &robot).into_owned();
        let old = "no process data for 3.2 s, before that in Operation enabled";
        assert_eq!(shown(&silent(1600, 0)), old);
        assert_eq!(shown(&silent(2, 0)), "Operation enabled", "set-points continue");
        let mut absent = silent(1600, 0);
        absent.details.is_absent = true;
        assert_eq!(shown(&absent), "Operation enabled");
        assert_eq!(shown(&Axis { drive_state: 0, ..silent(1600, 0) }), "not known");
    }

    #[test]
    fn an_axis_without_process_data_has_a_cause_and_a_remedy() {
        let (robot, outage) = (robot(), StopReason::Outage as u8);
        let check =
            "check the power of SubDevice 0 \"drive-1\" and its cables, then `onbeat control reset`";
        let state = State { axes: vec![silent(1600, outage), silent(1600, 0)], ..State::default() };
        let why = "no process data of the axis (outage), for 3.2 s";
        assert_eq!(why_stopped(&state.axes[0], &state, &robot).as_deref(), Some(why));
        assert_eq!(hindrance(0, &state, &robot), Some(format!("x: {why}; {check}")));
        assert_eq!(hindrance(1, &state, &robot), Some(format!("y: no process data for 3.2 s; {check}")));
        let told = refused(Refusal::NoProcessData, Action::Stop, &state, &robot);
        let refusal = Refusal::NoProcessData;
        assert_eq!(told, format!("{refusal}; x, y: no process data for 3.2 s; {check}"));
    }
}
