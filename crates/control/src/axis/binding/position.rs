//! Position of an axis: what is known of it at the start, after a restart of its drive and by a
//! homing.

use ethercat::cia402::{HomingProgress, Request, State, Statusword};
use motion::homing::Homing;
use motion::supervision::StopReason;
use motion::{Radians, RadiansPerSecond, RestartRule, Seconds};

use super::{Axis, Restarted};
use crate::controller::AxisReport;

impl Axis {
    /// Its drive may have been without power: the origin of its counts is unknown, unless its
    /// encoder is absolute.
    pub(in crate::axis) fn forget_place(&mut self) {
        if self.searching.take().is_some() {
            self.drive.abort_homing();
        }
        match self.restart_rule {
            // Evaluated once the drive reports its position.
            Some(_) => {
                let (speed, is_kept) = (self.speed, false);
                let here = self.counts.map(|counts| Restarted { counts, speed, is_kept });
                self.restarted = self.restarted.or(here);
            }
            None => self.home.forget(),
        }
        (self.input, self.counts) = (None, None);
        self.safety.anchor();
        self.safety.lose_power();
    }

    /// Its drive has left Op: after its return it is not enabled without a request.
    pub(in crate::axis) fn lose_drive(&mut self) {
        self.safety.lose_drive();
    }

    /// Its drive is absent: later it is not enabled without a start request.
    pub(in crate::axis) fn lose_power(&mut self) {
        self.safety.lose_power();
    }

    /// Its position, if its drive reports it in this cycle and no restart is still to be evaluated.
    pub(in crate::axis) fn reading(&self) -> Option<Radians> {
        let counts = self.counts.filter(|_| self.input.is_some() && self.restarted.is_none())?;
        Some(self.position(counts))
    }

    /// True if its drive may drive the motor.
    pub(in crate::axis) fn is_enabled(&self) -> bool {
        self.state().is_none_or(State::is_powered)
    }

    /// True if it moves faster than this share of its limit of velocity.
    pub(in crate::axis) fn is_faster_than(&self, share: f64) -> bool {
        self.safety.is_faster_than(self.feedback.velocity, share)
    }

    /// Rule for its position after a restart of its drive; `None` without position limits.
    pub(in crate::axis) fn restart_rule(&self) -> Option<RestartRule> {
        self.restart_rule
    }

    /// Way in which it learns its position.
    pub(in crate::axis) fn homing(&self) -> Homing {
        self.home.homing()
    }

    /// True if its position may be another one than reported.
    pub(in crate::axis) fn is_unreferenced(&self) -> bool {
        self.safety.unreferenced().is_some()
    }

    /// A person has measured that its position is right: a reset ends its stop.
    pub(in crate::axis) fn accept_position(&mut self) {
        self.home.accept();
        self.safety.reference();
    }

    /// It is at this position from now on, and not homed. False for a position that is too far.
    pub(in crate::axis) fn set_position(&mut self, position: Radians) -> bool {
        let counts = self.counts.unwrap_or(0);
        let is_set = self.home.place(self.drive_position(counts), position);
        if is_set {
            self.feedback.position = self.position(counts);
            self.safety.anchor();
        }
        is_set
    }

    /// True if a controller may take the actual position as home: not if the axis is unreferenced.
    pub(super) fn may_take_home(&self) -> bool {
        self.safety.unreferenced().is_none() && self.restarted.is_none()
    }

    /// True if a homing would take the actual position of an axis that is homed: its position
    /// limits would move along.
    pub(super) fn limits_would_move(&self) -> bool {
        self.home.is_homed() && self.restart_rule.is_some_and(|it| !it.sense.homes_on_a_switch)
    }

    /// Evaluates the position that the drive reports after its restart, once it has started up.
    pub(super) fn judge_restart(&mut self, image: &[u8]) {
        let Some((Restarted { counts: before, speed, is_kept }, rule)) =
            self.restarted.zip(self.restart_rule)
        else {
            return;
        };
        let state = Statusword(self.inputs.statusword.read(image) as u16).state();
        if !self.exchanged || !has_started_up(state) {
            return;
        }
        self.restarted = None;
        let counts = continued(before, self.inputs.position.read_signed(image) as i32);
        self.counts = Some(counts);
        let moved = self.position(counts) - self.position(before);
        match if is_kept { rule.judge_kept(moved) } else { rule.judge(moved, speed) } {
            Ok(ranges) => self.home.shift(ranges),
            Err(reason) => {
                let positions = [self.position(before), self.position(counts)];
                self.moved = is_kept.then_some(positions);
                self.unreference(reason);
            }
        }
        self.safety.anchor();
    }

    /// Finds the turn that the drive of an absolute encoder counts from: its position is the one
    /// within the limits. A zero that is set in the run has no such turn.
    pub(super) fn judge_start(&mut self) {
        let (Some(rule), Some(counts)) = (self.restart_rule.filter(|_| self.turn_is_open), self.counts)
        else {
            return;
        };
        if self.restarted.is_some() || !self.exchanged || !has_started_up(self.state()) {
            return;
        }
        self.turn_is_open = false;
        if !matches!(self.home.homing(), Homing::Absolute { .. } | Homing::Never) {
            return;
        }
        match rule.judge_start(self.position(counts)) {
            Ok(ranges) => self.home.shift(ranges),
            // Without an offset its position is not claimed to be known.
            Err(reason) if self.home.is_homed() => self.unreference(reason),
            Err(_) => {}
        }
        self.feedback.position = self.position(counts);
        self.safety.anchor();
    }

    /// Its position may be another one than reported.
    pub(super) fn unreference(&mut self, reason: StopReason) {
        self.home.distrust();
        self.safety.unreference(reason);
        // Its position may have got another name.
        self.safety.anchor();
        self.turn_is_open = true;
        self.judge_start();
    }

    /// The speed that counts if the drive is off after this cycle.
    pub(super) fn note_speed(&mut self, is_known: bool) {
        if is_known && self.restarted.is_none() {
            let sent = self.command.setpoint.velocity.abs();
            self.speed = RadiansPerSecond(self.feedback.velocity.abs().0.max(sent.0));
        }
    }

    /// After a fault of its position sensor a drive may count from another origin.
    pub(super) fn watch_sensor(&mut self, report: &AxisReport) {
        if report.state.is_some_and(State::is_faulted) {
            self.note_error(report.error_code);
        }
    }

    /// Its drive has reported this error code. It may come late, when the fault was reset already.
    pub(in crate::axis) fn note_error(&mut self, code: u16) {
        let failed = is_sensor_fault(code) && self.restart_rule.is_some();
        if failed && self.safety.unreferenced().is_none() {
            self.unreference(StopReason::UnreferencedSensor);
        }
    }

    /// Starts homing by the drive, if set-points go through to it and the axis is at standstill.
    pub(super) fn begin_homing(&mut self, request: Request) {
        let knows_better = self.restart_rule.is_some_and(|it| !it.sense.homes_on_a_switch);
        if knows_better && self.safety.unreferenced().is_some() {
            return;
        }
        let may = request == Request::Enable && self.stands && self.safety.may_home();
        if may && self.drive.home() {
            self.home.lose();
            self.searching = Some(Seconds::ZERO);
        }
    }

    /// Outcome of it.
    pub(super) fn watch_homing(&mut self, elapsed: Seconds) {
        let Some(since) = &mut self.searching else { return };
        *since += elapsed;
        let late = self.home.timeout().is_none_or(|timeout| *since > timeout);
        match (self.drive.homing(), self.input) {
            (HomingProgress::Running, _) if !late => return,
            (HomingProgress::Running, _) => {
                self.drive.abort_homing();
                self.safety.stop_for(StopReason::HomingTimedOut);
            }
            (HomingProgress::Failed, _) => self.safety.stop_for(StopReason::HomingError),
            // Where it counts from its home has to be seen.
            (HomingProgress::Attained, None) => return,
            (HomingProgress::Attained, Some(input)) => {
                self.home.found();
                let counts = i64::from(input.position);
                self.counts = Some(counts);
                self.feedback.position = self.position(counts);
                self.safety.anchor();
                if self.safety.unreferenced().is_some() {
                    self.safety.reference();
                    // It was enabled for its homing: it is held where it is, and needs no other
                    // reset.
                    self.safety.acknowledge();
                }
            }
            (HomingProgress::NotAsked | HomingProgress::Interrupted, _) => {}
        }
        self.searching = None;
    }
}

/// True of the error codes of position sensors (IEC 61800-7-201, 0x603F).
pub(in crate::axis) const fn is_sensor_fault(code: u16) -> bool {
    code >> 8 == 0x73
}

/// True once a drive reports the position of its encoder.
fn has_started_up(state: Option<State>) -> bool {
    !matches!(state, None | Some(State::NotReadyToSwitchOn))
}

/// The position next to `counts` that the 32 bits of `position` can mean.
pub(super) fn continued(counts: i64, position: i32) -> i64 {
    counts + i64::from(position.wrapping_sub(counts as i32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn position_continues_across_a_32_bit_wrap() {
        assert_eq!(continued(i64::from(i32::MAX), i32::MIN), i64::from(i32::MAX) + 1);
        assert_eq!(continued(i64::from(i32::MIN), i32::MAX), i64::from(i32::MIN) - 1);
        let mut counts = 0_i64;
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..10_000 {
            let next = counts + i64::from(random.i32(..));
            assert_eq!(continued(counts, next as i32), next);
            counts = next;
        }
    }
}
