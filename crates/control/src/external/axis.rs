//! Set-points of one axis from answers that may be late.

use ethercat::cia402::{AxisMode, CyclicMode, Request};
use ipc::command::AxisTarget;
use ipc::controller::{AxisAnswer, Wrong};
use ipc::state;
use motion::{AxisPhase, AxisSetpoint, NewtonMetres, Radians, RadiansPerSecond};

use crate::controller::{AxisCommand, AxisReport};

/// An axis that a controller process moves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExternalAxis {
    /// Mode of its drive: the kind of set-points it takes.
    pub mode: AxisMode,
    /// Lowest and highest position; `None` for an axis that turns without limit.
    pub position: Option<(Radians, Radians)>,
}

/// Answers to an axis, and where they lead.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AxisTrack {
    request: Request,
    home: bool,
    ignored: Option<CyclicMode>,
    /// Set-point of the mode, for the cycle `of`.
    at: f64,
    of: u64,
    /// Change of a position from cycle to cycle, as it was answered last.
    change: f64,
    /// Change with which it continues without an answer.
    step: f64,
}

impl AxisTrack {
    /// Takes the answer to a cycle.
    pub(super) fn take(&mut self, cycle: u64, answer: &AxisAnswer) {
        if let Some(request) = answer.request {
            self.request = request;
        }
        (self.home, self.ignored) = (answer.home, answer.ignored);
        let (at, moves) = match answer.target {
            Some(target) => (target.number(), matches!(target, AxisTarget::Position(_))),
            None => (self.at, false),
        };
        let cycles = cycle.saturating_sub(self.of);
        let change = if moves && cycles > 0 { (at - self.at) / cycles as f64 } else { 0.0 };
        // The position after a reversal is unknown.
        self.step = if change * self.change < 0.0 { 0.0 } else { change };
        self.change = change;
        (self.at, self.of) = (at, cycle);
    }

    /// True unless its drive was last requested to be disabled, or never requested at all.
    pub(super) fn is_in_use(&self) -> bool {
        self.request != Request::Disable
    }

    /// Set-points stay where they are, for answers are missing.
    pub(super) fn freeze(&mut self, cycle: u64) {
        self.at = self.reached(cycle);
        (self.of, self.home, self.ignored) = (cycle, false, None);
        (self.step, self.change) = (0.0, 0.0);
        if self.request == Request::FaultReset {
            self.request = Request::Halt;
        }
    }

    /// The axis as the process is shown it; where it is held, set-points begin at that place.
    /// `enters`: another controller had it before.
    pub(super) fn shown(
        &mut self,
        cycle: u64,
        report: &AxisReport,
        command: &AxisCommand,
        enters: bool,
        settings: Option<&ExternalAxis>,
    ) -> state::Axis {
        let is_position = settings.is_some_and(|settings| settings.mode.cyclic() == CyclicMode::Position);
        let mut report = *report;
        if enters && report.feedback.phase == AxisPhase::Following {
            let place = if is_position { command.setpoint.position } else { report.feedback.position };
            report.feedback.phase = AxisPhase::HoldingAt(place);
        }
        let sent = match report.feedback.phase {
            AxisPhase::HoldingAt(position) => AxisSetpoint { position, ..AxisSetpoint::default() },
            AxisPhase::NotEnabled => {
                AxisSetpoint { position: report.feedback.position, ..AxisSetpoint::default() }
            }
            AxisPhase::Following => command.setpoint,
        };
        if report.feedback.phase != AxisPhase::Following {
            self.at = if is_position { sent.position.0 } else { 0.0 };
            (self.of, self.step, self.change) = (cycle, 0.0, 0.0);
        }
        report.shown(sent)
    }

    /// Command for the axis in this cycle.
    pub(super) fn command(&mut self, cycle: u64, settings: &ExternalAxis, command: &mut AxisCommand) {
        command.request = self.request;
        command.home = std::mem::take(&mut self.home);
        command.ignored = self.ignored;
        if settings.mode.is_profile() {
            // Its drive makes the way to a destination, which stays.
            self.step = 0.0;
        }
        let at = self.reached(cycle);
        let mut setpoint = AxisSetpoint { position: command.setpoint.position, ..AxisSetpoint::default() };
        match settings.mode.cyclic() {
            CyclicMode::Position => setpoint.position = Radians(self.within(at, cycle, settings)),
            CyclicMode::Velocity => setpoint.velocity = RadiansPerSecond(at),
            CyclicMode::Torque => setpoint.torque = NewtonMetres(at),
        }
        command.setpoint = setpoint;
    }

    fn reached(&self, cycle: u64) -> f64 {
        self.at + self.step * cycle.saturating_sub(self.of) as f64
    }

    /// Supervision checks an answer; an extrapolated position stays within the limits here.
    fn within(&self, at: f64, cycle: u64, settings: &ExternalAxis) -> f64 {
        match settings.position {
            Some((lowest, highest)) if cycle > self.of => {
                at.clamp(lowest.0.min(self.at), highest.0.max(self.at))
            }
            _ => at,
        }
    }
}

/// Checks an answer against the axis.
pub(super) fn check(answer: &AxisAnswer, settings: Option<&ExternalAxis>) -> Result<(), Wrong> {
    let is_right = match (settings, answer.target) {
        (None, target) => target.is_none() && answer.request.is_none() && !answer.home,
        (Some(_), None) => true,
        (Some(settings), Some(target)) => matches!(
            (settings.mode.cyclic(), target),
            (CyclicMode::Position, AxisTarget::Position(_))
                | (CyclicMode::Velocity, AxisTarget::Velocity(_))
                | (CyclicMode::Torque, AxisTarget::Effort(_))
        ),
    };
    let is_finite = answer.target.is_none_or(|target| target.number().is_finite());
    match (is_right, is_finite) {
        (true, true) => Ok(()),
        (true, false) => Err(Wrong::NotFinite),
        (false, _) => Err(Wrong::Axis),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSP: ExternalAxis =
        ExternalAxis { mode: AxisMode::CyclicPosition, position: Some((Radians(-1.0), Radians(1.0))) };

    fn position(track: &mut AxisTrack, cycle: u64) -> f64 {
        let mut command = AxisCommand::default();
        track.command(cycle, &CSP, &mut command);
        command.setpoint.position.0
    }

    fn to(position: f64) -> AxisAnswer {
        AxisAnswer { target: Some(AxisTarget::Position(Radians(position))), ..AxisAnswer::default() }
    }

    // feature(ipc): a controller in a separate process: an answer in time is used in its cycle, a late one in the next and counted, in both orders of frames
    #[test]
    fn missing_answers_extrapolate_positions_within_limits() {
        let mut track = AxisTrack { of: 9, ..AxisTrack::default() };
        track.take(10, &to(0.0));
        track.take(11, &to(0.25));
        let close = |found: f64, wanted: f64| assert!((found - wanted).abs() < 1e-12, "{found} {wanted}");
        close(position(&mut track, 11), 0.25);
        close(position(&mut track, 12), 0.5);
        // The answer to 12 comes in 13: there it is where it would have been.
        track.take(12, &to(0.5));
        close(position(&mut track, 13), 0.75);
        close(position(&mut track, 15), 1.0);
        track.freeze(13);
        close(position(&mut track, 15), 0.75);
        // Without a set-point it stays.
        track.take(16, &AxisAnswer::default());
        close(position(&mut track, 17), 0.75);
        // A reversal is not extrapolated.
        track.take(17, &to(0.9));
        track.take(18, &to(0.8));
        close(position(&mut track, 19), 0.8);
        track.take(19, &to(0.9));
        close(position(&mut track, 20), 0.9);
        // Supervision checks what the process itself answered.
        track = AxisTrack { of: 16, ..AxisTrack::default() };
        track.take(17, &to(2.0));
        close(position(&mut track, 17), 2.0);
        close(position(&mut track, 18), 2.0);
    }

    #[test]
    fn a_request_stays_until_another_one_and_home_is_asked_once() {
        let mut track = AxisTrack::default();
        let answer = |request| AxisAnswer { request, home: true, ..AxisAnswer::default() };
        track.take(1, &answer(Some(Request::FaultReset)));
        let mut command = AxisCommand::default();
        track.command(1, &CSP, &mut command);
        assert_eq!((command.request, command.home), (Request::FaultReset, true));
        track.command(2, &CSP, &mut command);
        assert_eq!((command.request, command.home), (Request::FaultReset, false));
        track.freeze(3);
        track.command(3, &CSP, &mut command);
        assert_eq!(command.request, Request::Halt, "nobody resets for ever");
        track.take(4, &answer(None));
        track.command(4, &CSP, &mut command);
        assert_eq!((command.request, command.home), (Request::Halt, true));
    }

    #[test]
    fn a_set_point_is_of_the_axis_and_of_its_mode() {
        let csv = ExternalAxis { mode: AxisMode::CyclicVelocity, ..CSP };
        let cst = ExternalAxis { mode: AxisMode::CyclicTorque, ..CSP };
        let answer = |target| AxisAnswer { target: Some(target), ..AxisAnswer::default() };
        let targets = [
            AxisTarget::Position(Radians(1.0)),
            AxisTarget::Velocity(RadiansPerSecond(1.0)),
            AxisTarget::Effort(NewtonMetres(1.0)),
        ]
        .map(answer);
        for (own, settings) in [CSP, csv, cst].iter().enumerate() {
            for (kind, answer) in targets.iter().enumerate() {
                let expected = if own == kind { Ok(()) } else { Err(Wrong::Axis) };
                assert_eq!(check(answer, Some(settings)), expected);
            }
        }
        assert_eq!(check(&to(f64::NAN), Some(&CSP)), Err(Wrong::NotFinite));
        assert_eq!(check(&AxisAnswer::default(), None), Ok(()));
        assert_eq!(check(&AxisAnswer { home: true, ..AxisAnswer::default() }, None), Err(Wrong::Axis));
    }
}
