//! Texts for the codes of a state, shared by everything that shows them: `onbeat top`, ROS 2 diagnostics,
//! Python.
//!
//! An unknown code gets a text, too: `code 9`.

use std::borrow::Cow;
use std::fmt;

use crate::description::Description;
use crate::state::{CommandState, Freshness, Refusal, Stop, TrajectoryStatus};

/// Text of a code.
pub type Words = Cow<'static, str>;

/// Text of the bus's bring-up phase ([`crate::state::Bus::stage`]).
#[must_use]
pub fn stage(code: u8) -> Words {
    const STAGES: [&str; 10] = [
        "Scan",
        "Clocks",
        "Configuration",
        "PreOp",
        "To SafeOp",
        "SafeOp",
        "To Op",
        "Op",
        "To Init",
        "Down",
    ];
    STAGES.get(usize::from(code)).map_or_else(|| unknown(code), |&words| words.into())
}

/// Text of a drive's state as CiA 402 spells it ([`crate::state::Axis::drive_state`]); 0 is `not known`.
#[must_use]
pub fn drive_state(code: u8) -> Words {
    const STATES: [&str; 9] = [
        "not known",
        "Not ready to switch on",
        "Switch on disabled",
        "Ready to switch on",
        "Switched on",
        "Operation enabled",
        "Quick stop active",
        "Fault reaction active",
        "Fault",
    ];
    STATES.get(usize::from(code)).map_or_else(|| unknown(code), |&words| words.into())
}

/// Text of an axis's phase ([`crate::state::Axis::phase`]).
#[must_use]
pub fn phase(code: u8) -> Words {
    const PHASES: [&str; 3] = ["not enabled", "holding", "following"];
    PHASES.get(usize::from(code)).map_or_else(|| unknown(code), |&words| words.into())
}

/// Text of the reason for a stop ([`crate::state::Axis::stop`]); `None` for an axis that is not stopped.
#[must_use]
pub fn stop(code: u8) -> Option<Words> {
    (code != 0).then(|| Stop::from_code(code).map_or_else(|| unknown(code), |stop| stop.words().into()))
}

/// Text of the reason for a refusal ([`crate::state::CommandState::last_refusal`]); `None` if there was
/// none.
#[must_use]
pub fn refusal(code: u8) -> Option<Words> {
    (code != 0).then(|| Refusal::from_code(code).map_or_else(|| unknown(code), |it| it.words().into()))
}

/// The last refusal with the name of its axis or signal, for a line of its own; `None` if there was none.
#[must_use]
pub fn last_refusal(command: &CommandState, description: &Description) -> Option<String> {
    let why = refusal(command.last_refusal)?;
    let axis = description.axes.get(usize::from(command.last_refused_axis)).map(|it| &it.name);
    let signal = description.signals.get(usize::from(command.last_refused_signal)).map(|it| &it.name);
    Some(axis.or(signal).map_or_else(|| why.to_string(), |name| format!("{name}: {why}")))
}

fn unknown(code: u8) -> Words {
    format!("code {code}").into()
}

impl Stop {
    /// Decodes a state's code; `None` for 0 and unknown codes.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::Stale,
            2 => Self::PositionLimit,
            3 => Self::VelocityLimit,
            4 => Self::Step,
            5 => Self::FollowingError,
            6 => Self::Fault,
            7 => Self::NotFinite,
            8 => Self::HomingError,
            9 => Self::HomingTimedOut,
            10 => Self::Outage,
            11 => Self::Interlock,
            12 => Self::NotPermitted,
            13 => Self::Ending,
            _ => return None,
        })
    }

    /// Text for a line of its own.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Stale => "the command, or the controller process, went stale",
            Self::PositionLimit => {
                "a set-point beyond the limits of position, or (in cst) an axis too fast to stop before them"
            }
            Self::VelocityLimit => {
                "a set-point beyond the limit of velocity, or (in cst) an axis that moves faster"
            }
            Self::Step => "a set-point stepped farther than it may",
            Self::FollowingError => "the axis did not follow",
            Self::Fault => "the drive is in fault",
            Self::NotFinite => "a set-point, or what the axis reports, was no number",
            Self::HomingError => "the drive did not find its home: it shows a homing error",
            Self::HomingTimedOut => "the drive did not find its home in time",
            Self::Outage => "the axis was not heard of (outage)",
            Self::Interlock => "a stop signal (interlock)",
            Self::NotPermitted => "the permission to enable is missing (interlock)",
            Self::Ending => "the cycle ends, and the controller did not bring the axis to rest",
        }
    }
}

impl Refusal {
    /// Decodes a state's code; `None` for 0 and unknown codes.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::NotFinite,
            2 => Self::Time,
            3 => Self::Axes,
            4 => Self::Mode,
            5 => Self::PositionLimit,
            6 => Self::VelocityLimit,
            7 => Self::EffortLimit,
            8 => Self::Torn,
            9 => Self::Signals,
            10 => Self::SignalType,
            11 => Self::SignalRange,
            12 => Self::Orientation,
            13 => Self::OutOfReach,
            14 => Self::Singular,
            _ => return None,
        })
    }

    /// Text for a line of its own.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::NotFinite => "a number is NaN or infinite",
            Self::Time => "its time stamp lies in the future, or its time-to-live is 0 or too long",
            Self::Axes => "another number of axes than the robot has",
            Self::Mode => "an axis is asked for what its mode cannot do",
            Self::PositionLimit => "beyond the limits of position",
            Self::VelocityLimit => "beyond the limit of velocity",
            Self::EffortLimit => "beyond the limit of torque",
            Self::Torn => "the region holds no whole command",
            Self::Signals => "another number of signals than are set from outside",
            Self::SignalType => {
                "a value of another kind than its signal: a number for a bit, or a bit for a number"
            }
            Self::SignalRange => "beyond the range of a signal",
            Self::Orientation => "an orientation that is no unit quaternion",
            Self::OutOfReach => {
                "a pose the tool cannot get to on a straight line within the limits of its joints"
            }
            Self::Singular => "a straight line through a singular pose, where a joint would have to jump",
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.words())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.words())
    }
}

impl fmt::Display for Freshness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Never => "never",
            Self::Fresh => "fresh",
            Self::Stale => "stale",
        })
    }
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
    use super::*;

    #[test]
    fn every_code_has_its_own_words_and_an_unknown_one_is_shown_as_it_is() {
        assert_eq!((stage(7).as_ref(), drive_state(5).as_ref()), ("Op", "Operation enabled"));
        assert_eq!((stop(0), refusal(0)), (None, None));
        let all = |words: &dyn Fn(u8) -> Words, codes: std::ops::RangeInclusive<u8>| {
            let mut found: Vec<Words> = codes.clone().map(words).collect();
            found.sort();
            found.dedup();
            assert_eq!(found.len(), codes.count());
        };
        all(&|code| stop(code).unwrap(), 1..=14);
        all(&|code| refusal(code).unwrap(), 1..=12);
        all(&stage, 0..=10);
        all(&drive_state, 0..=9);
        assert_eq!(stop(200).unwrap(), "code 200");
    }

    /// Codes are written by the enum and read by `from_code`: both must agree.
    #[test]
    fn codes_come_back_as_what_they_were() {
        for code in 0..=u8::MAX {
            assert!(Stop::from_code(code).is_none_or(|stop| stop as u8 == code), "{code}");
            assert!(Refusal::from_code(code).is_none_or(|refusal| refusal as u8 == code), "{code}");
        }
    }
}
