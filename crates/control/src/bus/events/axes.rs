//! Events of axes and interlocks, in words.

use ethercat::cia402::ErrorCode;
use ipc::bus::Happening as Reported;
use ipc::bus::Severity::{Error, Ok as Good, Warning};
use ipc::words::stall;
use motion::Radians;
use types::InterlockKind;
use types::number::Rounded;
use types::state::{InputLevel, StopReason};

use super::Described;
use crate::bus::names::PartNames;
use crate::controller::{BrakeInputCause, IgnoredSetpoint, InterlockCause};
use crate::observer::Cause;

/// The axes of alike events stopped, the first of them in the message.
pub(super) fn stopped(
    axes: &[usize],
    reason: StopReason,
    with: Option<usize>,
    because: Cause,
    names: &PartNames,
) -> Described {
    let axis = axes[0];
    let what = Reported::AxisStopped {
        axis,
        reason: reason.words().to_owned(),
        stopped_with: with,
        interlock: because.interlock.map(|it| it.interlock),
        stalled: because.stalled,
    };
    let why = stop_reason(axes, reason, with, because, names);
    let severity = if because.ended { Good } else { Error };
    (what, severity, format!("{} held: {why}", names.axes_are(axes)))
}

/// An axis in a torque mode stopped beyond a position limit.
pub(super) fn overshoot(axis: usize, by: Radians, names: &PartNames) -> Described {
    (
        Reported::Overshoot { axis, by: by.0 },
        Warning,
        format!(
            "axis \"{}\": was {:.4} rad beyond its position limit: in torque modes its drive brakes it; check \
                 stop_deceleration and 0x6084 of the drive",
            names.axis(axis),
            by.0
        ),
    )
}

/// A drive is in fault.
pub(super) fn drive_fault(axis: usize, position: usize, code: u16, names: &PartNames) -> Described {
    (
        Reported::DriveFault { axis, position, error_code: code },
        Error,
        format!(
            "axis \"{}\" at {} is in fault: {}",
            names.axis(axis),
            names.sub_device(position),
            error_code(code)
        ),
    )
}

/// The mode of an axis does not take the set-point that its controller gives.
pub(super) fn setpoint_ignored(
    axis: usize,
    IgnoredSetpoint { mode, given }: IgnoredSetpoint,
    names: &PartNames,
) -> Described {
    let (given, takes) = (given.setpoint(), mode.cyclic().setpoint());
    let what = Reported::SetpointIgnored {
        axis,
        mode: mode.name().to_owned(),
        given: given.to_owned(),
        takes: takes.to_owned(),
    };
    let sentence = format!(
        "axis \"{}\" does not move: its controller sets {given} and no more, and in {} it takes {takes}",
        names.axis(axis),
        mode.name()
    );
    (what, Warning, sentence)
}

/// The input of an interlock changed.
pub(super) fn interlock(interlock: usize, allows: bool, level: InputLevel, names: &PartNames) -> Described {
    let known = names.interlocks.get(interlock);
    let (severity, does) = match (allows, known.map(|it| it.kind)) {
        (true, Some(InterlockKind::Jog)) => (Good, "permits jogs"),
        (true, Some(InterlockKind::Automatic)) => (Good, "permits automatic motion again"),
        (false, Some(InterlockKind::Jog)) => (Good, "permits no jog"),
        (false, Some(InterlockKind::Automatic)) => {
            (Warning, "puts its axes in set-up mode: only jogs move them")
        }
        (true, _) => (Good, "permits again"),
        (false, Some(InterlockKind::Stop)) => (Warning, "stops its axes"),
        (false, _) => (Warning, "does not permit its axes to be enabled"),
    };
    let sentence = format!("{} {level}: it {does}", names.interlock(interlock));
    let level = level.words().to_owned();
    (Reported::Interlock { interlock, allows, level }, severity, sentence)
}

/// Reason that these axes are stopped for, in words; `with`: place of the axis that they were
/// stopped with.
#[must_use]
pub fn stop_reason(
    axes: &[usize],
    reason: StopReason,
    with: Option<usize>,
    because: Cause,
    names: &PartNames,
) -> String {
    match because {
        Cause { interlock: Some(InterlockCause { interlock, level, .. }), .. }
            if reason == StopReason::SetUp =>
        {
            format!("{reason} ({} {level})", names.interlock(interlock))
        }
        Cause { interlock: Some(InterlockCause { interlock, .. }), .. }
            if reason == StopReason::AwaitsStart =>
        {
            format!("{reason} ({})", names.interlock(interlock))
        }
        _ if reason == StopReason::AfterSetUp => reason.words().to_owned(),
        Cause { interlock: Some(InterlockCause { interlock, level, permits: false }), .. } => {
            format!("{} {level}", names.interlock(interlock))
        }
        Cause { interlock: Some(InterlockCause { interlock, .. }), .. } => {
            format!("{} has stopped it and permits again", names.interlock(interlock))
        }
        Cause { brake: Some(BrakeInputCause { place, level }), .. } if reason.is_of_brake_feedback() => {
            let (input, remedy) = (names.brake_input(place), ipc::words::brake_remedy(reason));
            let remedy =
                remedy.map_or_else(String::new, |it| format!("; {it}, then `onbeat control reset`"));
            format!("{}: {input} {level}{remedy}", reason.words())
        }
        Cause { ended: true, .. } => ipc::words::NO_COMMAND.to_owned(),
        Cause { stalled: 1.., .. } if reason == StopReason::Outage => stall(because.stalled, names.period),
        _ => {
            let axis = |other| format!(" (axis \"{}\")", names.axis(other));
            let with = with.map_or_else(String::new, axis);
            let name = match axes {
                [one] => names.axis(*one),
                _ => "AXIS",
            };
            let remedy = match ipc::words::waits_for(reason, name) {
                Some(remedy) => format!("; {remedy}"),
                None if reason.is_unreferenced() => format!("; {}", names.unreferenced(axes)),
                None if reason == StopReason::AwaitsStart => "; type `onbeat control enable`".to_owned(),
                None => String::new(),
            };
            let moved = because.moved.map_or_else(String::new, |[before, now]| {
                format!(", from {} to {} rad", Rounded(before.0), Rounded(now.0))
            });
            format!("{}{moved}{with}{remedy}", reason.words())
        }
    }
}

/// Error code of a drive, object 0x603F, as words with a remedy.
#[must_use]
pub fn error_code(code: u16) -> String {
    match (code, ErrorCode(code), ErrorCode(code).remedy()) {
        (0, ..) => "no error code reported".to_owned(),
        (_, error, "") => error.to_string(),
        (_, error, remedy) => format!("{error} ({remedy})"),
    }
}
