//! Position of an axis after a restart of its drive.
//!
//! The rules count for axes with position limits. Axes without limits restart their odometry.

use types::state::StopReason;

use crate::supervision::Limits;
use crate::units::{Radians, RadiansPerSecond, RadiansPerSecondSquared, Seconds};

/// Knowledge about the encoder of an axis, and about how far the axis moves while its drive is off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PositionSense {
    /// Distance over which its encoder knows the position without power, above 0: one revolution,
    /// or more of a multi-turn encoder. `None` for an incremental or unknown encoder.
    pub range: Option<Radians>,
    /// Distance the axis may move by itself while its drive is off, as a load that sinks; 0 or
    /// more.
    pub coast: Radians,
    /// Difference of positions that is no motion: noise, elasticity, play; 0 or more.
    pub tolerance: Radians,
    /// Time after which the drive stops by itself when it gets no process data; 0 or more.
    pub watchdog: Seconds,
    /// Its homing finds the position by a switch or an index: it makes an unreferenced axis ready.
    pub homes_on_a_switch: bool,
}

impl PositionSense {
    /// Largest default of [`Self::tolerance`].
    pub const TOLERANCE: Radians = Radians(0.02);

    /// Default of [`Self::tolerance`]: at most a quarter of a revolution of the motor, which is so
    /// far at the axis.
    #[must_use]
    pub fn usual_tolerance(motor_revolution: Radians) -> Radians {
        Radians(Self::TOLERANCE.0.min(motor_revolution.0 / 4.0))
    }

    /// True if something makes its axis ready while that is unreferenced: a homing on a switch, or
    /// a measurement that an absolute encoder confirms.
    #[must_use]
    pub const fn has_way_back(&self) -> bool {
        self.range.is_some() || self.homes_on_a_switch
    }
}

impl Default for PositionSense {
    /// An encoder that nothing is known of.
    fn default() -> Self {
        Self {
            range: None,
            coast: Radians::ZERO,
            tolerance: Self::TOLERANCE,
            watchdog: Seconds(0.1),
            homes_on_a_switch: false,
        }
    }
}

/// Rule by which a restart of the drive of an axis with position limits is evaluated.
#[derive(Clone, Copy, Debug)]
pub struct RestartRule {
    /// Its encoder.
    pub sense: PositionSense,
    /// Lowest and highest position.
    pub limits: (Radians, Radians),
    /// Deceleration of its stops.
    pub deceleration: RadiansPerSecondSquared,
    /// Time its brake takes to hold it.
    pub engage: Seconds,
}

impl RestartRule {
    /// Rule of an axis with this encoder, these limits and this time of its brake; `None` without
    /// position limits.
    #[must_use]
    pub fn of(sense: PositionSense, limits: &Limits, engage: Seconds) -> Option<Self> {
        Some(Self { sense, limits: limits.position?, deceleration: limits.deceleration, engage })
    }

    /// Distance that the axis can have moved since it was as fast as `speed`, while its drive was
    /// off.
    #[must_use]
    pub fn allowed_change(&self, speed: RadiansPerSecond) -> Radians {
        let PositionSense { coast, tolerance, watchdog, .. } = self.sense;
        let reaction = Seconds(watchdog.0 + self.engage.0 + REACTION.0);
        let braking = speed.0 * speed.0 / (2.0 * self.deceleration.0);
        Radians((speed * reaction).0 + braking) + coast + tolerance
    }

    /// Evaluates a restart after which the position reads `moved` farther than before. Returns the
    /// whole ranges of the encoder in that difference.
    ///
    /// # Errors
    /// The reason for which the position is not known.
    pub fn judge(&self, moved: Radians, speed: RadiansPerSecond) -> Result<Radians, StopReason> {
        let allowed = self.allowed_change(speed);
        let (lowest, highest) = self.limits;
        // Only one of the positions that read alike lies within the limits.
        let range = self
            .sense
            .range
            .filter(|range| (highest - lowest).0 + 2.0 * allowed.0 < range.0)
            .ok_or(StopReason::UnreferencedRestart)?;
        let ranges = Radians((moved.0 / range.0).round() * range.0);
        match (moved - ranges).abs() <= allowed {
            true => Ok(ranges),
            false => Err(StopReason::UnreferencedChange),
        }
    }

    /// Evaluates a position at the start of a run that is `moved` farther than the position kept by
    /// the run before, at standstill. Returns the whole encoder ranges by which the drive's count
    /// differs.
    ///
    /// # Errors
    /// The reason for which the position is not known.
    pub fn judge_kept(&self, moved: Radians) -> Result<Radians, StopReason> {
        let allowed = self.allowed_change(RadiansPerSecond::ZERO);
        if self.sense.range.is_none() {
            let stayed = moved.abs() <= allowed;
            return if stayed { Ok(Radians::ZERO) } else { Err(StopReason::UnreferencedMoved) };
        }
        self.judge(moved, RadiansPerSecond::ZERO).map_err(|reason| match reason {
            // The encoder reads alike at several positions within the limits.
            StopReason::UnreferencedRestart => StopReason::UnreferencedStart,
            _ => StopReason::UnreferencedMoved,
        })
    }

    /// Evaluates the position that the drive reports at the start of a run, when the turn it counts
    /// from is not known. Returns the whole encoder ranges between that position and the position
    /// within the limits that reads alike.
    ///
    /// # Errors
    /// No such position is within the limits, and the axis may be beyond either limit.
    pub fn judge_start(&self, position: Radians) -> Result<Radians, StopReason> {
        let Some(range) = self.sense.range else { return Ok(Radians::ZERO) };
        let (lowest, highest) = self.limits;
        let allowed = self.allowed_change(RadiansPerSecond::ZERO);
        let span = (highest - lowest).0;
        let middle = lowest + (highest - lowest) * 0.5;
        // Where two of them may lie within the limits, the file says which: its offset.
        let is_unique = span + 2.0 * allowed.0 < range.0;
        let turns = if is_unique { ((position - middle).0 / range.0).round() } else { 0.0 };
        let ranges = range * turns;
        let outside = (position - ranges - middle).abs().0 - span / 2.0;
        // From each place within the limits it is less than half a range away: on this side.
        let is_near = 2.0 * (span + outside) < range.0;
        match outside <= allowed.0 || is_near {
            true => Ok(ranges),
            false => Err(StopReason::UnreferencedStart),
        }
    }
}

/// Time that a drive takes to notice the loss of its power, and to de-energise its brake.
const REACTION: Seconds = Seconds(0.1);

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use super::*;

    fn rule(range: Option<f64>) -> RestartRule {
        RestartRule {
            sense: PositionSense { range: range.map(Radians), ..PositionSense::default() },
            limits: (Radians(-1.2), Radians(1.2)),
            deceleration: RadiansPerSecondSquared(10.0),
            engage: Seconds(0.05),
        }
    }

    #[test]
    fn allowed_change_grows_with_the_speed() {
        let rule = rule(None);
        assert_eq!(rule.allowed_change(RadiansPerSecond::ZERO), Radians(0.02));
        // 2 * (0.1 + 0.05 + 0.1) + 4 / 20 + 0.02
        assert!((rule.allowed_change(RadiansPerSecond(2.0)).0 - 0.72).abs() < 1e-12);
    }

    #[test]
    fn an_incremental_encoder_knows_nothing_after_a_restart() {
        let judged = rule(None).judge(Radians::ZERO, RadiansPerSecond::ZERO);
        assert_eq!(judged, Err(StopReason::UnreferencedRestart));
    }

    #[test]
    fn a_position_within_the_allowed_change_is_kept() {
        let (rule, still) = (rule(Some(TAU)), RadiansPerSecond::ZERO);
        assert_eq!(rule.judge(Radians(0.019), still), Ok(Radians::ZERO));
        assert_eq!(rule.judge(Radians(0.021), still), Err(StopReason::UnreferencedChange));
        assert_eq!(rule.judge(Radians(TAU - 0.019), still), Ok(Radians(TAU)), "the same angle");
        assert_eq!(rule.judge(Radians(-3.0 * TAU), still), Ok(Radians(-3.0 * TAU)));
        assert_eq!(rule.judge(Radians(TAU / 2.0), still), Err(StopReason::UnreferencedChange));
        assert_eq!(rule.judge(Radians(f64::NAN), still), Err(StopReason::UnreferencedChange));
    }

    #[test]
    fn a_kept_position_is_compared_with_any_encoder() {
        for (range, moved, judged) in [
            (None, 0.019, Some(0.0)),
            (None, 0.021, None),
            (None, TAU, None),
            (Some(TAU), 0.019, Some(0.0)),
            (Some(TAU), TAU + 0.01, Some(TAU)),
            (Some(TAU), 0.3, None),
            (Some(TAU), f64::NAN, None),
            (None, f64::NAN, None),
        ] {
            let judged = judged.map(Radians).ok_or(StopReason::UnreferencedMoved);
            assert_eq!(rule(range).judge_kept(Radians(moved)), judged, "{range:?} {moved}");
        }
    }

    #[test]
    fn a_run_starts_at_the_position_within_the_limits() {
        let wide = |range| RestartRule { limits: (Radians(0.0), Radians(5.5)), ..rule(range) };
        for (rule, position, turns) in [
            (wide(Some(TAU)), 5.45 - TAU, Some(-1.0)),
            (wide(Some(TAU)), 0.5, Some(0.0)),
            (wide(Some(TAU)), 0.5 + 3.0 * TAU, Some(3.0)),
            (wide(Some(TAU)), -0.01, Some(0.0)),
            (wide(Some(TAU)), 5.51 - TAU, Some(-1.0)),
            // Beyond the lower limit, or beyond the upper one.
            (wide(Some(TAU)), -0.1, None),
            (wide(Some(TAU)), 5.6, None),
            (wide(Some(TAU)), f64::NAN, None),
            // It cannot have come round to the other side.
            (rule(Some(TAU)), 1.5, Some(0.0)),
            (rule(Some(TAU)), -1.5 - TAU, Some(-1.0)),
            (rule(Some(TAU)), 2.2, None),
            (wide(Some(4096.0 * TAU)), 300.0, Some(0.0)),
            (wide(Some(4096.0 * TAU)), 4096.0 * TAU + 1.0, Some(1.0)),
            // Several places within the limits read alike: the one of the offset counts.
            (wide(Some(2.0)), 4.5, Some(0.0)),
            (wide(Some(2.0)), 5.6, None),
            (wide(None), -9.0, Some(0.0)),
        ] {
            let range = rule.sense.range.unwrap_or_default();
            let judged = turns.map(|it| range * it).ok_or(StopReason::UnreferencedStart);
            assert_eq!(rule.judge_start(Radians(position)), judged, "{range:?} {position}");
        }
    }

    #[test]
    fn a_range_no_longer_than_the_limits_says_nothing() {
        for (range, kept) in [(2.40, false), (2.44, false), (2.45, true)] {
            let judged = rule(Some(range)).judge(Radians::ZERO, RadiansPerSecond::ZERO);
            assert_eq!(judged.is_ok(), kept, "{range}");
        }
        let fast = rule(Some(TAU)).judge(Radians::ZERO, RadiansPerSecond(6.0));
        assert_eq!(fast, Err(StopReason::UnreferencedRestart), "it may have moved by half the range");
    }
}
