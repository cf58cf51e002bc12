//! Set-points that are no motion in the mode of an axis.

use ethercat::cia402::{AxisMode, CyclicMode, Request};
use motion::{AxisFeedback, AxisPhase, AxisSetpoint, NewtonMetres, Radians, RadiansPerSecond};

use crate::controller::{AxisCommand, IgnoredSetpoint};

/// Notes a controller that gives an axis only a set-point that its mode does not take, for example
/// a position in CSV.
///
/// Numbers other than the number of the mode are no fault: a point of a trajectory has all three,
/// and they may equal the actual values of the axis. They are a fault if the number of the mode has
/// commanded no motion since the axis was released, and another number does for [`NOTED_AFTER`]
/// cycles.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ignored {
    /// Mode, and set-point, of the cycle before.
    mode: Option<AxisMode>,
    before: AxisSetpoint,
    /// The position was not that of the axis, or where that was held, when it was set.
    away: bool,
    /// The number of the mode has commanded a motion.
    moved: bool,
    cycles: u32,
    noted: Option<IgnoredSetpoint>,
}

impl Ignored {
    /// Checks the set-point of a cycle for an axis in this mode; its controller was shown
    /// `feedback`.
    pub(crate) fn look(
        &mut self,
        mode: AxisMode,
        feedback: &AxisFeedback,
        asked: &AxisCommand,
    ) -> Option<IgnoredSetpoint> {
        let phase = feedback.phase;
        let AxisSetpoint { position, velocity, torque } = asked.setpoint;
        let before = std::mem::replace(&mut self.before, asked.setpoint);
        if position != before.position {
            // Held, it need not stand where it is held.
            let here = match phase {
                AxisPhase::HoldingAt(place) => place,
                _ => feedback.position,
            };
            self.away = (position - here).abs() > NEAR;
        }
        if self.mode.replace(mode) != Some(mode) || phase == AxisPhase::NotEnabled {
            (self.moved, self.cycles, self.noted) = (false, 0, None);
        }
        if phase != AxisPhase::Following || asked.request != Request::Enable {
            (self.moved, self.cycles) = (false, 0);
            return self.noted;
        }
        let own = mode.cyclic();
        let moves = match own {
            CyclicMode::Position => position != before.position,
            CyclicMode::Velocity => velocity != RadiansPerSecond::ZERO,
            CyclicMode::Torque => torque != NewtonMetres::ZERO,
        };
        if moves || self.moved {
            (self.moved, self.noted) = (true, None);
            return None;
        }
        let others = [
            (CyclicMode::Position, self.away),
            (CyclicMode::Velocity, velocity != RadiansPerSecond::ZERO && velocity != feedback.velocity),
            (CyclicMode::Torque, torque != NewtonMetres::ZERO && torque != feedback.torque),
        ];
        let given = others.into_iter().find(|(kind, is_given)| *is_given && *kind != own);
        self.cycles = given.map_or(0, |_| self.cycles.saturating_add(1));
        if let Some((given, _)) = given.filter(|_| self.cycles == NOTED_AFTER) {
            self.noted = Some(IgnoredSetpoint { mode, given });
        }
        self.noted
    }
}

/// Consecutive cycles: a controller may be about to begin.
const NOTED_AFTER: u32 = 50;

/// Distance at which a position is another than that of the axis.
const NEAR: Radians = Radians(1e-3);

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Radians = Radians(5.0);

    fn shown(phase: AxisPhase) -> AxisFeedback {
        let (velocity, torque) = (RadiansPerSecond(0.01), NewtonMetres(0.02));
        AxisFeedback { position: PLACE, velocity, torque, phase, fresh: true }
    }

    /// Kind noted at the end of cycles in which this is asked of an axis that follows at its place.
    fn noted(mode: AxisMode, cycles: u32, setpoint: impl Fn(u32) -> AxisSetpoint) -> Option<CyclicMode> {
        let mut ignored = Ignored::default();
        let mut look = |phase, setpoint| {
            let asked = AxisCommand { request: Request::Enable, setpoint, ..AxisCommand::default() };
            ignored.look(mode, &shown(phase), &asked)
        };
        look(AxisPhase::NotEnabled, AxisSetpoint::default());
        look(AxisPhase::HoldingAt(PLACE), setpoint(0));
        let last = (1..=cycles).fold(None, |_, cycle| look(AxisPhase::Following, setpoint(cycle)));
        assert!(last.is_none_or(|it| it.mode == mode));
        last.map(|it| it.given)
    }

    fn point(position: f64, velocity: f64, torque: f64) -> AxisSetpoint {
        AxisSetpoint {
            position: Radians(position),
            velocity: RadiansPerSecond(velocity),
            torque: NewtonMetres(torque),
        }
    }

    /// A controller that begins later than others stays where the axis was held, which need not be
    /// its actual position.
    #[test]
    fn a_position_at_which_the_axis_was_held_is_no_motion() {
        for (held, expected) in [(5.01, None), (5.02, Some(CyclicMode::Position))] {
            let mut ignored = Ignored::default();
            let asked = AxisCommand {
                request: Request::Enable,
                setpoint: point(5.01, 0.0, 0.0),
                ..AxisCommand::default()
            };
            let mut look = |phase| ignored.look(AxisMode::CyclicVelocity, &shown(phase), &asked);
            look(AxisPhase::HoldingAt(Radians(held)));
            let last = (0..2 * NOTED_AFTER).fold(None, |_, _| look(AxisPhase::Following));
            assert_eq!(last.map(|it| it.given), expected, "held at {held}");
        }
    }

    #[test]
    fn setpoint_of_another_mode_is_noted_if_alone() {
        use AxisMode::{CyclicPosition, CyclicTorque, CyclicVelocity, ProfilePosition};
        let rows = [
            (CyclicVelocity, point(6.0, 0.0, 0.0), CyclicMode::Position),
            (CyclicVelocity, point(0.0, 0.0, -0.1), CyclicMode::Torque),
            (CyclicTorque, point(6.0, 0.0, 0.0), CyclicMode::Position),
            (CyclicTorque, point(0.0, 0.1, 0.0), CyclicMode::Velocity),
            (CyclicPosition, point(5.0, 0.1, 0.0), CyclicMode::Velocity),
            (CyclicPosition, point(5.0, 0.0, 0.1), CyclicMode::Torque),
            (ProfilePosition, point(5.0, 0.1, 0.0), CyclicMode::Velocity),
        ];
        for (mode, asked, given) in rows {
            assert_eq!(noted(mode, NOTED_AFTER, |_| asked), Some(given), "{mode:?} {asked:?}");
            assert_eq!(noted(mode, NOTED_AFTER - 1, |_| asked), None, "{mode:?} {asked:?}: not yet");
        }
        let swing = |cycle: u32| point(5.0 + 0.1 * (f64::from(cycle) * 0.1).sin(), 0.0, 0.0);
        assert_eq!(noted(CyclicVelocity, 200, swing), Some(CyclicMode::Position));
    }

    #[test]
    fn further_numbers_of_a_setpoint_are_not_noted() {
        use AxisMode::{CyclicPosition, CyclicTorque, CyclicVelocity};
        for mode in [CyclicPosition, CyclicVelocity, CyclicTorque] {
            // No set-point, the position of the axis, and one close to it.
            assert_eq!(noted(mode, 500, |_| AxisSetpoint::default()), None);
            assert_eq!(noted(mode, 500, |_| point(5.0, 0.0, 0.0)), None);
            assert_eq!(noted(mode, 500, |_| point(5.000_9, 0.0, 0.0)), None);
            // The actual values of the axis, except for the number that would move it.
            let (velocity, torque) = (f64::from(mode != CyclicVelocity), f64::from(mode != CyclicTorque));
            assert_eq!(noted(mode, 500, |_| point(5.0, velocity * 0.01, torque * 0.02)), None);
            // All three, which move.
            assert_eq!(noted(mode, 500, |cycle| point(5.0 + 0.01 * f64::from(cycle), 10.0, 0.3)), None);
            // All three, at the end: the axis is not where the trajectory ends.
            let ended = |cycle: u32| {
                point(
                    5.0 + 0.01 * f64::from(cycle.min(100)),
                    f64::from(cycle < 100),
                    f64::from(cycle < 100),
                )
            };
            assert_eq!(noted(mode, 500, ended), None);
        }
    }

    #[test]
    fn it_is_noted_until_the_axis_is_moved_in_its_mode_or_disabled() {
        let mut ignored = Ignored::default();
        let mut look = |phase, setpoint| {
            let asked = AxisCommand { request: Request::Enable, setpoint, ..AxisCommand::default() };
            ignored.look(AxisMode::CyclicVelocity, &shown(phase), &asked).is_some()
        };
        let wrong = point(6.0, 0.0, 0.0);
        let follow = AxisPhase::Following;
        assert!((0..NOTED_AFTER).fold(false, |_, _| look(follow, wrong)));
        assert!(look(AxisPhase::HoldingAt(PLACE), wrong), "held by supervision");
        assert!(!look(follow, point(6.0, 0.1, 0.0)));
        assert!(!(0..500).fold(false, |_, _| look(follow, wrong)), "it has been moved");
        assert!(!look(AxisPhase::NotEnabled, wrong));
        assert!((0..NOTED_AFTER).fold(false, |_, _| look(follow, wrong)), "let go anew");
    }
}
