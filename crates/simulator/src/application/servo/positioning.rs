//! Set-points of profile position mode and their handshake (IEC 61800-7-201, profile position mode,
//! functional description).
//!
//! A rising edge of bit 4 of the controlword hands over the target position 0x607A. Bit 12 of the
//! statusword acknowledges it, and falls when bit 4 is low again and another set-point is accepted.
//! With bit 5 the new set-point replaces the earlier ones; without it, one set-point waits behind
//! the running one. Bit 6 makes it relative to the previous target. With bit 9 the axis passes the
//! running set-point at profile velocity if another one waits.

use core::time::Duration;

use ethercat::cia402::Controlword;

use super::CONTROL_PERIOD;
use super::profile::{Bounds, Profile};
use super::set_point::nearest;

/// Set-points of a drive: the running one, and the waiting one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct SetPoints {
    running: Option<f64>,
    waiting: Option<f64>,
    /// The running one has been reached.
    over: bool,
    acknowledged: bool,
    /// Bit 4 in the control period before.
    before: bool,
}

impl SetPoints {
    /// Forgets all of them: the drive has left the mode, or Operation enabled.
    pub(super) fn clear(&mut self, controlword: Controlword) {
        *self = Self { before: controlword.new_set_point(), ..Self::default() };
    }

    /// Runs the handshake for one control period. `position` is where the axis is, in position
    /// units.
    pub(super) fn step(&mut self, controlword: Controlword, target: i32, position: f64) {
        let new = controlword.new_set_point();
        if new && !self.before {
            self.hand_over(controlword, target, position);
        }
        self.acknowledged &= new || self.waiting.is_some();
        self.before = new;
    }

    fn hand_over(&mut self, controlword: Controlword, target: i32, position: f64) {
        let last = self.waiting.or(self.running).unwrap_or(position.floor());
        let target =
            if controlword.is_relative() { last + f64::from(target) } else { nearest(target, last) };
        if controlword.changes_set_immediately() || self.running.is_none() || self.over {
            (self.running, self.waiting, self.over) = (Some(target), None, false);
        } else if self.waiting.is_none() {
            self.waiting = Some(target);
        }
        self.acknowledged = true;
    }

    /// Advances `profile` by a control period towards the running set-point; it stops where there
    /// is none.
    pub(super) fn advance(
        &mut self,
        profile: &mut Profile,
        bounds: &Bounds,
        end_velocity: f64,
        change_on_set_point: bool,
    ) {
        let end_velocity = match self.waiting {
            Some(_) if change_on_set_point => bounds.velocity,
            _ => end_velocity.min(bounds.velocity),
        };
        match self.running {
            Some(target) if !self.over => {
                self.over = profile.approach(target, end_velocity, bounds, CONTROL_PERIOD);
            }
            // Past a target with an end velocity, it slows down behind it.
            _ => profile.turn(0.0, bounds, CONTROL_PERIOD),
        }
        if self.over && self.waiting.is_some() {
            (self.running, self.waiting, self.over) = (self.waiting, None, false);
        }
    }

    /// Bit 12 of the statusword.
    pub(super) fn is_acknowledged(&self) -> bool {
        self.acknowledged
    }

    /// Target of the last set-point, once no other waits.
    pub(super) fn last(&self) -> Option<f64> {
        self.running.filter(|_| self.waiting.is_none())
    }
}

/// Time for which a value has been inside its window (0x6068, 0x606E, 0x6070).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Dwell {
    time: Duration,
}

impl Dwell {
    /// Counts a control period; `true` once the value has been inside for `needed`.
    pub(super) fn step(&mut self, inside: bool, needed: Duration) -> bool {
        if !inside {
            self.time = Duration::ZERO;
            return false;
        }
        let elapsed = self.time >= needed;
        if !elapsed {
            self.time += CONTROL_PERIOD;
        }
        elapsed
    }
}
