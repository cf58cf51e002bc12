//! Texts for the codes of a state, shared by everything that shows them: `onbeat top`, ROS 2
//! diagnostics, Python.
//!
//! An unknown code gets a text, too: `code 9`.

mod process;
mod silence;

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use types::InterlockKind;

use crate::description::{Description, InterlockDescription, Referencing};
use crate::message::control;
use crate::reference;
use crate::state::{
    Axis, BringUpPhase, CommandState, DrivePhase, DriveState, InputLevel, Interlock, Limit, LockState,
    QuickStopStep, Refusal, State, StopReason, TrajectoryStatus,
};

use process::of_process;
pub use process::{awaits_answer, without_set_points};
use silence::has_stalled;
pub use silence::{drive, silence, silent_for, stall};

/// Text of a code.
pub type Words = Cow<'static, str>;

/// Text of the bus's bring-up phase ([`crate::state::Bus::phase`]).
#[must_use]
pub fn bus_phase(code: u8) -> Words {
    BringUpPhase::from_code(code).map_or_else(|| unknown(code), |phase| phase.words().into())
}

/// Text of the lock of the cycle to the reference clock ([`crate::state::Clock::lock`]).
#[must_use]
pub fn clock_lock(code: u8) -> Words {
    LockState::ALL.get(usize::from(code)).map_or_else(|| unknown(code), |lock| lock.name().into())
}

/// Text of a drive's state as CiA 402 spells it ([`crate::state::Axis::drive_state`]); 0 is
/// `not known`.
#[must_use]
pub fn drive_state(code: u8) -> Words {
    match DriveState::from_code(code) {
        Some(state) => state.words().into(),
        None if code == 0 => "not known".into(),
        None => unknown(code),
    }
}

/// Text of an axis's phase ([`crate::state::Axis::phase`]).
#[must_use]
pub fn phase(code: u8) -> Words {
    DrivePhase::from_code(code).map_or_else(|| unknown(code), |phase| phase.words().into())
}

/// Name of the mode that an axis's drive works in ([`crate::state::Axis::mode`]), as `csp` and
/// `hm`; `None` where it is not known.
#[must_use]
pub fn mode(code: i8) -> Option<Words> {
    Some(match code {
        0 => return None,
        1 => "pp".into(),
        2 => "vl".into(),
        3 => "pv".into(),
        4 => "tq".into(),
        6 => "hm".into(),
        7 => "ip".into(),
        8 => "csp".into(),
        9 => "csv".into(),
        10 => "cst".into(),
        other => format!("mode {other}").into(),
    })
}

/// Text of the reason for a stop ([`crate::state::Axis::stop`]); `None` for an axis that is not
/// stopped.
#[must_use]
pub fn stop(code: u8) -> Option<Words> {
    (code != 0)
        .then(|| StopReason::from_code(code).map_or_else(|| unknown(code), |stop| stop.words().into()))
}

/// Name of the axis that an axis was stopped with ([`Axis::stopped_with`]).
#[must_use]
pub fn stopped_with<'a>(axis: &Axis, description: &'a Description) -> Option<&'a str> {
    description.axes.get(usize::from(axis.stopped_with?)).map(|it| it.name.as_str())
}

/// The interlock that stopped an axis, or keeps it from being enabled, with the level of its input
/// now: `interlock "door" (inputs-1, channel 3) is low`.
#[must_use]
pub fn interlock_of(axis: &Axis, state: &State, description: &Description) -> Option<String> {
    let place = usize::from(axis.interlock?);
    let input = description.interlocks.get(place)?.words();
    let Some(interlock) = state.interlocks.get(place) else { return Some(input) };
    let level = InputLevel::from_code(interlock.level).unwrap_or(InputLevel::Unknown);
    let again = if interlock.permits { " again" } else { "" };
    Some(format!("{input} {level}{again}"))
}

/// Name of the interlock that stopped an axis, or keeps it from being enabled
/// ([`Axis::interlock`]).
#[must_use]
pub fn interlock_name<'a>(axis: &Axis, description: &'a Description) -> Option<&'a str> {
    description.interlocks.get(usize::from(axis.interlock?)).map(|it| it.name.as_str())
}

/// The input that shows the fault of an axis's brake, with its level then:
/// `input "released" (inputs-2, channel 1) is low`.
fn brake_input_of(axis: &Axis, description: &Description) -> Option<String> {
    let it = description.brake_inputs.get(usize::from(axis.brake_input?))?;
    let level = InputLevel::from_code(axis.brake_level)?;
    Some(format!("{} {level}", it.words()))
}

/// Remedy at a fault of a brake.
#[must_use]
pub const fn brake_remedy(reason: StopReason) -> Option<&'static str> {
    match reason {
        StopReason::BrakeNotOpen => Some("check the brake, its power and this input"),
        StopReason::BrakeNotClosed => {
            Some("an enabled drive keeps its torque; secure the load, and check the brake and this input")
        }
        _ => None,
    }
}

/// Reason for which an axis is stopped, with its cause: the interlock with its input and level, the
/// axis that it was stopped with, the error code of the drive, the length of a stall. It names the
/// step that worked where the drive did not carry out its quick stop. `None` for an axis that is
/// not stopped.
#[must_use]
pub fn why_stopped(axis: &Axis, state: &State, description: &Description) -> Option<String> {
    let why = cause_of_stop(axis, state, description)?;
    Some(match QuickStopStep::from_code(axis.quick_stop) {
        Some(step) => format!("{why}; {}", step.sentence()),
        None => why,
    })
}

/// Axes of a state, before their reset, with drives that did not carry out a quick stop: the step
/// that worked, and the correction.
#[must_use]
pub fn ignored_quick_stops(state: &State, description: &Description) -> Vec<String> {
    let axes = state.axes.iter().zip(&description.axes);
    let steps =
        axes.filter_map(|(it, described)| Some((described, QuickStopStep::from_code(it.quick_stop)?)));
    let remedy = "correct its 0x605A or its firmware";
    steps.map(|(it, step)| format!("{}: reset; {}: {remedy}", it.name, step.sentence())).collect()
}

fn cause_of_stop(axis: &Axis, state: &State, description: &Description) -> Option<String> {
    let reason = stop(axis.stop)?;
    Some(match StopReason::from_code(axis.stop) {
        Some(StopReason::Interlock | StopReason::NotPermitted) => {
            interlock_of(axis, state, description).unwrap_or_else(|| reason.into_owned())
        }
        Some(it) if it.is_of_brake_feedback() => match brake_input_of(axis, description) {
            Some(input) => format!("{reason}: {input}"),
            None => reason.into_owned(),
        },
        Some(StopReason::Stale) if axis.ended => NO_COMMAND.to_owned(),
        Some(StopReason::SetUp | StopReason::AwaitsStart) => match interlock_of(axis, state, description) {
            Some(interlock) => format!("{reason} ({interlock})"),
            None => reason.into_owned(),
        },
        Some(StopReason::OtherAxis | StopReason::Chain) => {
            let with = axis.stopped_with.map(usize::from);
            let other = with.and_then(|it| Some((description.axes.get(it)?, state.axes.get(it)?)));
            let cause = other.filter(|(_, other)| other.stop != StopReason::OtherAxis as u8);
            let cause = cause.and_then(|(_, other)| cause_of_stop(other, state, description));
            let name = stopped_with(axis, description);
            let parts = [name.map(str::to_owned), cause].into_iter().flatten();
            parts.fold(reason.into_owned(), |text, part| format!("{text}: {part}"))
        }
        Some(StopReason::Fault) => {
            // The code arrives some cycles after the fault.
            let text = match axis.error_code {
                0 => reason.into_owned(),
                code => format!("{reason}, error code {code:#06x}"),
            };
            let period = Duration::from_nanos(description.period_ns);
            if has_stalled(axis) { format!("{text}: {}", stall(axis.stalled, period)) } else { text }
        }
        Some(StopReason::Outage) if has_stalled(axis) => {
            stall(axis.stalled, Duration::from_nanos(description.period_ns))
        }
        Some(StopReason::Outage) => silence::outage(reason, axis, description),
        _ => reason.into_owned(),
    })
}

/// Remedy for an axis of this name that waits for something other than a fix.
#[must_use]
pub fn waits_for(reason: StopReason, axis: &str) -> Option<String> {
    Some(match reason {
        StopReason::NotHomed => format!("type `onbeat control home {axis}`, or jog it"),
        StopReason::OutsideLimits => format!("jog it inwards: `onbeat control jog {axis}`"),
        StopReason::InwardsOnly => "command it inwards, or move it by hand".to_owned(),
        StopReason::Jog => "end the jog".to_owned(),
        StopReason::SetUp => format!("jog it, or end set-up mode, then `{RESET}`"),
        StopReason::AfterSetUp => format!("type `{RESET}`"),
        StopReason::Chain => "make that axis ready, or jog this one".to_owned(),
        _ => return None,
    })
}

/// Reason for which an axis cannot be moved, with the remedy. `None` for one that is enabled and is
/// not stopped.
#[must_use]
pub fn hindrance(place: usize, state: &State, description: &Description) -> Option<String> {
    let (described, axis) = (description.axes.get(place)?, state.axes.get(place)?);
    let name = &described.name;
    let drive = DriveState::from_code(axis.drive_state);
    let is_enabled = drive == Some(DriveState::OperationEnabled);
    let is_faulted = drive.is_some_and(DriveState::is_faulted);
    let reset = format!("then `{RESET}`");
    let stop = StopReason::from_code(axis.stop);
    let waits =
        matches!(stop, None | Some(StopReason::Stale | StopReason::AwaitsStart | StopReason::NotHomed));
    let silent = silent_for(axis, description).filter(|_| waits);
    let (why, remedy) = match (stop, why_stopped(axis, state, description)) {
        _ if silent.is_some() => {
            (silence(silent.unwrap_or_default()), silence::remedy(described, description, &reset))
        }
        (Some(StopReason::Stale), _) if is_enabled => match of_process(place, state, description) {
            Some(found) if awaits_answer(place, state, description) => found,
            _ => return None,
        },
        _ if waits && is_faulted => in_fault(axis),
        _ if waits && axis.memory_error != 0 => (
            format!("its position memory cannot be written ({})", system_error(axis.memory_error)),
            format!("correct the state directory, which `onbeat run` names, then `{ENABLE}`"),
        ),
        (Some(StopReason::NotHomed), Some(why)) if set_up(place, state, description).is_some() => {
            let cause = set_up(place, state, description).unwrap_or_default();
            (format!("{why}; {cause}"), waits_for(StopReason::SetUp, name).unwrap_or_default())
        }
        (Some(StopReason::Interlock | StopReason::NotPermitted), Some(why)) => {
            let it = axis.interlock.and_then(|it| state.interlocks.get(usize::from(it)));
            let kind = axis.interlock.and_then(|it| description.interlocks.get(usize::from(it)));
            let waits = axis.stop == StopReason::NotPermitted as u8;
            let remedy = match (it.is_some_and(|it| it.permits), kind.map(|it| it.kind)) {
                (true, _) => format!("type `{RESET}`"),
                _ if it.is_some_and(|it| it.level == InputLevel::Lost as u8) => {
                    format!("restore its process data, {reset}")
                }
                (false, Some(InterlockKind::Stop)) => format!("release it, {reset}"),
                _ if waits => format!("make it permit, then `{ENABLE}`"),
                _ => format!("make it permit, {reset}"),
            };
            (why, remedy)
        }
        (Some(StopReason::Stale), _) => {
            of_process(place, state, description).unwrap_or_else(|| not_enabled(axis))
        }
        (Some(StopReason::AwaitsStart), Some(why)) => (why, format!("type `{ENABLE}`")),
        (Some(reason), Some(_)) if reason.is_unreferenced() && axis.homed => {
            ("its position is known again".to_owned(), format!("type `{RESET}`, then `{ENABLE}`"))
        }
        (Some(reason), Some(why)) if reason.is_unreferenced() => {
            (why, make_ready(described.referencing, is_enabled))
        }
        (Some(reason), Some(why)) if brake_remedy(reason).is_some() => {
            (why, format!("{}, {reset}", brake_remedy(reason).unwrap_or_default()))
        }
        (Some(reason), Some(why)) if waits_for(reason, name).is_some() => {
            (why, waits_for(reason, name).unwrap_or_default())
        }
        (Some(_), Some(why)) if has_stalled(axis) => (why, format!("type `{RESET}`")),
        (Some(StopReason::Outage), Some(why)) => (why, silence::remedy(described, description, &reset)),
        (_, Some(why)) => (why, format!("correct that, {reset}")),
        _ if is_enabled => return None,
        _ => of_process(place, state, description).unwrap_or_else(|| not_enabled(axis)),
    };
    Some(format!("{name}: {why}; {remedy}"))
}

/// Cause and remedy of an axis with a drive that waits to be enabled.
fn not_enabled(axis: &Axis) -> (String, String) {
    (format!("its drive is in {}", drive_state(axis.drive_state)), format!("type `{ENABLE}`"))
}

/// Cause and remedy of an axis with a drive in fault.
fn in_fault(axis: &Axis) -> (String, String) {
    let code = match axis.error_code {
        0 => String::new(),
        code => format!(", error code {code:#06x}"),
    };
    let why = format!("its drive is in {}{code}", drive_state(axis.drive_state));
    (why, format!("correct that, then `{RESET}`"))
}

/// True if the reason of its stop says nothing about the fault of its drive.
fn is_of_another_cause(axis: &Axis) -> bool {
    StopReason::from_code(axis.stop).is_some_and(|it| {
        let waits = it == StopReason::OutsideLimits || it == StopReason::AfterSetUp;
        let with = matches!(it, StopReason::OtherAxis | StopReason::Chain | StopReason::SetUp);
        it.is_unreferenced() || waits || with
    })
}

/// Set-up mode of an axis, with the interlock that selects it.
fn set_up(place: usize, state: &State, description: &Description) -> Option<String> {
    let mut all = description.interlocks.iter().zip(&state.interlocks);
    let selects = |(described, it): &(&InterlockDescription, &Interlock)| {
        described.kind == InterlockKind::Automatic && !it.permits && described.axes.contains(&place)
    };
    let (described, it) = all.find(selects)?;
    let level = InputLevel::from_code(it.level).unwrap_or(InputLevel::Unknown);
    Some(format!("{} ({} {level})", StopReason::SetUp.words(), described.words()))
}

/// Text of a system error of [`Axis::memory_error`].
fn system_error(number: u8) -> String {
    match number {
        127 => "an error of the system".to_owned(),
        number => std::io::Error::from_raw_os_error(number.into()).to_string(),
    }
}

/// Reason for which a request was refused, with the cause at each axis of the request, else at all.
#[must_use]
pub fn refused(
    refusal: control::Refusal,
    what: control::Action,
    state: &State,
    description: &Description,
) -> String {
    use control::{Action, Refusal};
    if refusal == Refusal::NoProcessData {
        return silence::kept(refusal, state, description);
    }
    let axes = match what {
        Action::Home(axis) => axis as usize..axis as usize + 1,
        _ => 0..description.axes.len(),
    };
    // The axes that are the cause, before the axes that wait for them.
    let cause = |axis: &usize| {
        state.axes.get(*axis).is_some_and(|it| match refusal {
            Refusal::Fault => DriveState::from_code(it.drive_state).is_some_and(DriveState::is_faulted),
            Refusal::Interlock => {
                [StopReason::Interlock as u8, StopReason::NotPermitted as u8].contains(&it.stop)
            }
            Refusal::TimedOut => it.memory_error != 0,
            _ => false,
        })
    };
    let found = axes.clone().any(|axis| cause(&axis));
    let axes = axes.filter(|axis| !found || cause(axis));
    let causes: Vec<String> = match refusal {
        Refusal::Fault | Refusal::TimedOut | Refusal::NotEnabled | Refusal::Held | Refusal::Interlock => {
            let why = |axis: usize| match state.axes.get(axis) {
                Some(it) if refusal == Refusal::Fault && found && is_of_another_cause(it) => {
                    let (why, remedy) = in_fault(it);
                    Some(format!("{}: {why}; {remedy}", description.axes.get(axis)?.name))
                }
                // A request to enable is no remedy for itself.
                _ if refusal == Refusal::TimedOut => without_set_points(axis, state, description)
                    .or_else(|| hindrance(axis, state, description)),
                _ => hindrance(axis, state, description),
            };
            axes.filter_map(why).collect()
        }
        _ => Vec::new(),
    };
    match causes.len() {
        0 => refusal.words().to_owned(),
        1..=MOST_CAUSES => causes.join("; "),
        count => {
            let more = count - MOST_CAUSES;
            let axes = if more == 1 { "axis" } else { "axes" };
            format!("{}; and {more} more {axes}", causes[..MOST_CAUSES].join("; "))
        }
    }
}

/// Axes that a refusal names.
const MOST_CAUSES: usize = 3;

/// An axis at standstill after the end of the last command, as at the end of a jog.
pub const NO_COMMAND: &str = "no command: the last command has ended, and the axis is at standstill";

/// Remedy for an unreferenced axis with these ways to make it ready.
#[must_use]
pub const fn unreferenced(referencing: Option<Referencing>) -> &'static str {
    match referencing {
        Some(Referencing { by_switch: false, by_measurement: false }) => {
            reference::Refusal::NoWayBack.words()
        }
        Some(Referencing { by_switch: true, by_measurement: false }) => "home it on a switch",
        Some(Referencing { by_switch: false, by_measurement: true }) => {
            "measure its position and use `onbeat control accept-position`"
        }
        _ => "home it on a switch, or measure its position and use `onbeat control accept-position`",
    }
}

/// The same with the commands before, by whether its drive is enabled.
fn make_ready(referencing: Option<Referencing>, is_enabled: bool) -> String {
    let remedy = unreferenced(referencing);
    match referencing {
        Some(Referencing { by_switch: false, by_measurement: false }) => remedy.to_owned(),
        Some(Referencing { by_switch: false, .. }) if is_enabled => {
            format!("type `onbeat control disable`, then {remedy}")
        }
        Some(Referencing { by_measurement: false, .. }) if !is_enabled => {
            format!("type `{RESET}` and `{ENABLE}`, then {remedy}")
        }
        Some(Referencing { by_switch: true, by_measurement: true }) | None if is_enabled => {
            format!("{remedy} (`onbeat control disable` before)")
        }
        _ => remedy.to_owned(),
    }
}

const RESET: &str = "onbeat control reset";
const ENABLE: &str = "onbeat control enable";

/// End of a [`hindrance`] whose remedy is this request.
#[must_use]
pub fn remedy_by(request: control::Action) -> Option<String> {
    let command = match request {
        control::Action::Enable => ENABLE,
        control::Action::ResetFaults => RESET,
        _ => return None,
    };
    Some(format!("; type `{command}`"))
}

/// Text of the reason for a refusal ([`crate::state::CommandState::last_refusal`]); `None` if there
/// was none.
#[must_use]
pub fn refusal(code: u8) -> Option<Words> {
    (code != 0).then(|| Refusal::from_code(code).map_or_else(|| unknown(code), |it| it.words().into()))
}

/// Text of the reason for the last refusal: for an axis with a request that its mode does not take,
/// also the requests that it takes. `None` if there was none.
#[must_use]
pub fn refusal_of(command: &CommandState, description: &Description) -> Option<Words> {
    let axis = description.axes.get(usize::from(command.last_refused_axis));
    match (Refusal::from_code(command.last_refusal), axis.and_then(|it| Some((it.mode, it.takes?)))) {
        (Some(Refusal::Mode), Some((mode, takes))) => {
            Some(format!("in {} it takes {takes}, not this command", mode.name()).into())
        }
        _ => refusal(command.last_refusal),
    }
}

/// The last refusal with the name of its axis or signal, as a separate line; `None` if there was
/// none.
#[must_use]
pub fn last_refusal(command: &CommandState, description: &Description) -> Option<String> {
    let why = refusal_of(command, description)?;
    let axis = description.axes.get(usize::from(command.last_refused_axis)).map(|it| &it.name);
    let signal = description.signals.get(usize::from(command.last_refused_signal)).map(|it| &it.name);
    Some(axis.or(signal).map_or_else(|| why.to_string(), |name| format!("{name}: {why}")))
}

/// Text of the limit that a clamped target was beyond ([`CommandState::last_clamp`]); `None` if
/// there was none.
#[must_use]
pub fn clamp(code: u8) -> Option<Words> {
    (code != 0).then(|| Limit::from_code(code).map_or_else(|| unknown(code), |limit| limit.words().into()))
}

/// The last clamp with the name of its axis, as a separate line; `None` if there was none.
#[must_use]
pub fn last_clamp(command: &CommandState, description: &Description) -> Option<String> {
    let what = clamp(command.last_clamp)?;
    let axis = description.axes.get(usize::from(command.last_clamped_axis));
    Some(axis.map_or_else(|| what.to_string(), |axis| format!("{}: {what}", axis.name)))
}

fn unknown(code: u8) -> Words {
    format!("code {code}").into()
}

impl fmt::Display for TrajectoryStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::None => "none",
            Self::Executing => "executing",
            Self::Succeeded => "succeeded",
            Self::Aborted => "aborted",
            Self::Canceled => "canceled",
        })
    }
}

#[cfg(test)]
mod tests {
    use types::{ControllerKind, CyclicMode, Takes};

    use super::*;
    use crate::description::{AxisDescription, BrakeInputDescription, ControllerDescription};

    #[test]
    fn every_code_has_a_text_and_unknown_codes_are_shown() {
        assert_eq!((bus_phase(7).as_ref(), drive_state(5).as_ref()), ("Op", "Operation enabled"));
        assert_eq!((stop(0), refusal(0)), (None, None));
        let all = |words: &dyn Fn(u8) -> Words, codes: std::ops::RangeInclusive<u8>| {
            let mut found: Vec<Words> = codes.clone().map(words).collect();
            found.sort();
            found.dedup();
            assert_eq!(found.len(), codes.count());
        };
        all(&|code| stop(code).unwrap(), 1..=14);
        all(&|code| refusal(code).unwrap(), 1..=13);
        all(&|code| clamp(code).unwrap(), 1..=4);
        all(&bus_phase, 0..=10);
        all(&clock_lock, 0..=4);
        assert!(LockState::ALL.iter().all(|&lock| clock_lock(lock as u8) == lock.name()));
        all(&drive_state, 0..=9);
        assert_eq!(stop(200).unwrap(), "code 200");
    }

    #[test]
    fn refused_request_names_the_mode_and_allowed_requests() {
        let axis = |takes| AxisDescription {
            takes,
            ..AxisDescription::new("left", CyclicMode::Velocity, 1.0, 1.0)
        };
        let told = |takes, why: Refusal| {
            let description = Description { axes: vec![axis(takes)], ..Description::default() };
            let command = CommandState {
                last_refusal: why as u8,
                last_refused_axis: 0,
                last_refused_signal: u16::MAX,
                ..CommandState::default()
            };
            last_refusal(&command, &description).unwrap()
        };
        let velocity = Takes { velocity: true, ..Takes::default() };
        let sentence = "left: in csv it takes velocities, not this command";
        assert_eq!(told(Some(velocity), Refusal::Mode), sentence);
        let sentence = "left: in csv it takes no targets, not this command";
        assert_eq!(told(Some(Takes::default()), Refusal::Mode), sentence);
        assert_eq!(told(None, Refusal::Mode), format!("left: {}", Refusal::Mode.words()));
        assert_eq!(told(Some(velocity), Refusal::NotFinite), "left: a number is NaN or infinite");
    }

    // feature(program): refusals name the axis that is the cause, and the command that helps
    #[test]
    fn a_refusal_names_the_cause_instead_of_the_axes_that_wait() {
        let axis = |name| AxisDescription::new(name, CyclicMode::Position, 1.0, 1.0);
        let mode = InterlockDescription {
            name: "auto".to_owned(),
            kind: InterlockKind::Automatic,
            sub_device: "in".to_owned(),
            channel: 4,
            inverted: false,
            axes: vec![0],
        };
        let description = Description {
            axes: vec![axis("x"), axis("y")],
            interlocks: vec![mode],
            ..Description::default()
        };
        let at = |drive: DriveState, stop: u8| Axis { drive_state: drive as u8, stop, ..Axis::default() };
        let waits = StopReason::AwaitsStart as u8;
        let state = |x, y, permits| {
            let interlocks = vec![Interlock { level: InputLevel::Low as u8, permits }];
            State { axes: vec![x, y], interlocks, ..State::default() }
        };
        let told = |refusal, what, state: &State| refused(refusal, what, state, &description);
        let enable = |refusal, state: &State| told(refusal, control::Action::Enable, state);
        let x = at(DriveState::SwitchOnDisabled, waits);
        for stop in [0, waits, StopReason::OtherAxis as u8, StopReason::UnreferencedSensor as u8] {
            let y = Axis { error_code: 0x7305, ..at(DriveState::Fault, stop) };
            let expected =
                "y: its drive is in Fault, error code 0x7305; correct that, then `onbeat control reset`";
            assert_eq!(enable(control::Refusal::Fault, &state(x, y, true)), expected, "{stop}");
        }
        let not_homed = at(DriveState::OperationEnabled, StopReason::NotHomed as u8);
        let home =
            |permits| told(control::Refusal::Held, control::Action::Home(0), &state(not_homed, x, permits));
        let expected = "set-up mode: only a jog moves it (interlock \"auto\" (in, channel 4) is low); \
                        jog it, or end set-up mode, then `onbeat control reset`";
        assert!(home(false).ends_with(expected), "{}", home(false));
        assert!(home(true).ends_with("type `onbeat control home x`, or jog it"), "{}", home(true));
        let y = Axis { memory_error: 28, ..at(DriveState::SwitchOnDisabled, 0) };
        let full = enable(control::Refusal::TimedOut, &state(x, y, true));
        let expected = "y: its position memory cannot be written (No space left on device (os error 28)); \
                        correct the state directory, which `onbeat run` names, then `onbeat control enable`";
        assert_eq!(full, expected);
    }

    // feature(program): a refusal names the commands that make an unreferenced axis ready, in their order
    #[test]
    fn an_unreferenced_axis_is_made_ready_step_by_step() {
        let told = |by_switch, by_measurement, drive: DriveState, homed| {
            let axis = AxisDescription {
                referencing: Some(Referencing { by_switch, by_measurement }),
                ..AxisDescription::new("x", CyclicMode::Position, 1.0, 1.0)
            };
            let description = Description { axes: vec![axis], ..Description::default() };
            let stop = StopReason::UnreferencedChange as u8;
            let axis = Axis { stop, homed, drive_state: drive as u8, ..Axis::default() };
            let state = State { axes: vec![axis], ..State::default() };
            hindrance(0, &state, &description).unwrap()
        };
        let (off, on) = (DriveState::SwitchOnDisabled, DriveState::OperationEnabled);
        let measured = "measure its position and use `onbeat control accept-position`";
        let ends = |text: String, end: &str| assert!(text.ends_with(end), "{text}");
        ends(told(false, true, on, false), &format!("; type `onbeat control disable`, then {measured}"));
        ends(told(false, true, off, false), &format!("; {measured}"));
        let enables = "; type `onbeat control reset` and `onbeat control enable`, then home it on a switch";
        ends(told(true, false, off, false), enables);
        ends(told(true, false, on, false), "; home it on a switch");
        ends(told(true, true, on, false), "accept-position` (`onbeat control disable` before)");
        let accepted =
            "x: its position is known again; type `onbeat control reset`, then `onbeat control enable`";
        assert_eq!(told(false, true, off, true), accepted);
    }

    // feature(program): an axis that a lost controller process leaves stopped is not ready
    #[test]
    fn an_axis_without_set_points_names_its_source() {
        let controller =
            |kind| ControllerDescription { name: "c".to_owned(), kind: Some(kind), axes: vec![0] };
        let told = |kind, drive: DriveState, stop: StopReason| {
            let description = Description {
                axes: vec![AxisDescription::new("x", CyclicMode::Position, 1.0, 1.0)],
                controllers: vec![controller(kind)],
                ..Description::default()
            };
            let axis = Axis { stop: stop as u8, drive_state: drive as u8, ..Axis::default() };
            let mut state = State { axes: vec![axis], ..State::default() };
            (state.control.enabled, state.control.active) = (true, 0);
            without_set_points(0, &state, &description)
        };
        let (off, on) = (DriveState::SwitchOnDisabled, DriveState::OperationEnabled);
        let of_process = told(ControllerKind::External, on, StopReason::Stale).unwrap();
        assert!(of_process.ends_with("; start the controller process again, or look at its messages"));
        assert_eq!(told(ControllerKind::JointPosition, on, StopReason::Stale), None);
        let off = told(ControllerKind::JointPosition, off, StopReason::Stale).unwrap();
        assert!(off.ends_with("; its drive is enabled with the next command"), "{off}");
        assert_eq!(told(ControllerKind::External, on, StopReason::NotHomed), None);
        let description = Description {
            axes: vec![AxisDescription::new("x", CyclicMode::Position, 1.0, 1.0)],
            controllers: vec![controller(ControllerKind::External)],
            ..Description::default()
        };
        let axis = Axis { stop: StopReason::Stale as u8, drive_state: 2, ..Axis::default() };
        let mut state = State { axes: vec![axis], ..State::default() };
        (state.control.enabled, state.control.active) = (true, 0);
        let why = refused(control::Refusal::TimedOut, control::Action::Enable, &state, &description);
        assert!(why.ends_with("start the controller process again, or look at its messages"), "{why}");
    }

    #[test]
    fn a_hindrance_names_the_cause_and_the_next_command() {
        let interlock = |name: &str, kind| InterlockDescription {
            name: name.to_owned(),
            kind,
            sub_device: "inputs-1".to_owned(),
            channel: 3,
            inverted: false,
            axes: vec![0],
        };
        let axis = |name| AxisDescription::new(name, CyclicMode::Position, 1.0, 1.0);
        let brake_input = |name: &str| BrakeInputDescription {
            axis: 0,
            name: name.to_owned(),
            sub_device: "inputs-2".to_owned(),
            channel: 4,
            inverted: false,
        };
        let description = Description {
            period_ns: 1_000_000,
            axes: vec![axis("x"), axis("y")],
            interlocks: vec![
                interlock("door", InterlockKind::Enable),
                interlock("e-stop", InterlockKind::Stop),
            ],
            brake_inputs: ["released", "closed"].map(brake_input).to_vec(),
            ..Description::default()
        };
        let state = |x: Axis, permits| {
            let level = if permits { InputLevel::High } else { InputLevel::Low } as u8;
            let y = Axis { drive_state: DriveState::OperationEnabled as u8, ..Axis::default() };
            let interlocks = vec![Interlock { level, permits }; 2];
            State { axes: vec![x, y], interlocks, ..State::default() }
        };
        let told = |x: Axis, permits| hindrance(0, &state(x, permits), &description);
        let stopped = |stop: StopReason, interlock| Axis { stop: stop as u8, interlock, ..Axis::default() };
        let door = stopped(StopReason::NotPermitted, Some(0));
        let expected = "x: interlock \"door\" (inputs-1, channel 3) is low; make it permit, then \
                        `onbeat control enable`";
        assert_eq!(told(door, false).as_deref(), Some(expected));
        let stop = stopped(StopReason::Interlock, Some(1));
        let expected =
            "x: interlock \"e-stop\" (inputs-1, channel 3) is high again; type `onbeat control reset`";
        assert_eq!(told(stop, true).as_deref(), Some(expected));
        let mut lost = state(stop, false);
        lost.interlocks[1].level = InputLevel::Lost as u8;
        let told_lost = hindrance(0, &lost, &description).expect("a hindrance");
        let expected = "; restore its process data, then `onbeat control reset`";
        assert!(told_lost.ends_with(expected), "{told_lost}");
        // While it waits, `enable` does not name itself as the remedy.
        let off = Axis { drive_state: DriveState::SwitchOnDisabled as u8, ..Axis::default() };
        let expected = remedy_by(control::Action::Enable).expect("a remedy");
        assert!(told(off, true).is_some_and(|it| it.ends_with(&expected)));
        let fault = Axis { error_code: 0x7500, ..stopped(StopReason::Fault, None) };
        let expected =
            "x: the drive is in fault, error code 0x7500; correct that, then `onbeat control reset`";
        assert_eq!(told(fault, true).as_deref(), Some(expected));
        let brake = Axis {
            brake_input: Some(1),
            brake_level: InputLevel::Low as u8,
            ..stopped(StopReason::BrakeNotClosed, None)
        };
        let expected = "x: its brake is not closed, as its feedback shows: input \"closed\" (inputs-2, channel 4) \
                        is low; an enabled drive keeps its torque; secure the load, and check the brake and this \
                        input, then `onbeat control reset`";
        assert_eq!(told(brake, true).as_deref(), Some(expected));
        let stalled = Axis { stalled: 5, ..stopped(StopReason::Outage, None) };
        let expected = "x: this computer stalled for 5 cycles, 5 ms (`onbeat doctor` says why); type \
                        `onbeat control reset`";
        assert_eq!(told(stalled, true).as_deref(), Some(expected));
        let starved = Axis { stalled: 150, ..fault };
        let expected = "x: the drive is in fault, error code 0x7500: this computer stalled for 150 cycles, 150 ms \
                        (`onbeat doctor` says why); type `onbeat control reset`";
        assert_eq!(told(starved, true).as_deref(), Some(expected));
        let mut of_drive = description.clone();
        (of_drive.axes[0].sub_device, of_drive.sub_devices) = (Some(0), vec!["drive-1".to_owned()]);
        let lost = Axis { stalled: 0, ..stalled };
        let expected = "x: no process data of the axis (outage); check the power of SubDevice 0 \"drive-1\" and its \
                        cables, then `onbeat control reset`";
        assert_eq!(hindrance(0, &state(lost, true), &of_drive).as_deref(), Some(expected));
        let early = Axis { error_code: 0, ..starved };
        assert!(told(early, true).is_some_and(|it| it.contains("in fault: this computer stalled for")));
        let other = Axis { error_code: 0x8611, ..starved };
        assert!(told(other, true).is_some_and(|it| !it.contains("stalled")));
        assert_eq!(hindrance(1, &state(door, false), &description), None);
        let step = QuickStopStep::Halt as u8;
        let by_halt = Axis { quick_stop: step, ..stopped(StopReason::JogTorque, None) };
        let expected = "x: its torque was above the limit of a jog; its drive does not carry out the \
                        quick stop, it was stopped by a halt; correct that, then `onbeat control reset`";
        assert_eq!(told(by_halt, true).as_deref(), Some(expected));
        let resets = ignored_quick_stops(&state(by_halt, true), &description);
        let expected = "x: reset; its drive does not carry out the quick stop, it was stopped by a \
                        halt: correct its 0x605A or its firmware";
        assert_eq!(resets, [expected]);
        let with = Axis { stopped_with: Some(0), ..stopped(StopReason::OtherAxis, None) };
        let mut both = state(door, false);
        both.axes[1] = with;
        let why = why_stopped(&with, &both, &description).unwrap();
        assert!(why.ends_with("with it: x: interlock \"door\" (inputs-1, channel 3) is low"), "{why}");
        let refusal = |what| refused(control::Refusal::Held, what, &both, &description);
        assert!(refusal(control::Action::Enable).contains("; y: another axis"));
        assert!(refusal(control::Action::Home(0)).starts_with("x: interlock"));
        assert_eq!(
            refused(control::Refusal::Busy, control::Action::Enable, &both, &description),
            control::Refusal::Busy.words()
        );
    }

    /// Codes are written by the enum and read by `from_code`: both must agree.
    #[test]
    fn codes_come_back_as_what_they_were() {
        for code in 0..=u8::MAX {
            assert!(StopReason::from_code(code).is_none_or(|stop| stop as u8 == code), "{code}");
            assert!(Refusal::from_code(code).is_none_or(|refusal| refusal as u8 == code), "{code}");
            assert!(Limit::from_code(code).is_none_or(|limit| limit as u8 == code), "{code}");
        }
    }
}
