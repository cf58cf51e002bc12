//! Limits of the drive itself, behind the MainDevice's: position (0x607D) and speed (0x607F).
//!
//! The drive follows no target beyond them: it moves to the limit and stays. A shaft that is beyond
//! a position limit is not driven farther out. Homing and the stops ignore them.

/// Limits in position units and seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct OwnLimits {
    lowest: f64,
    highest: f64,
    velocity: f64,
    /// Deceleration of a stop before a position limit: the quick stop's.
    deceleration: f64,
}

impl Default for OwnLimits {
    fn default() -> Self {
        Self {
            lowest: f64::NEG_INFINITY,
            highest: f64::INFINITY,
            velocity: f64::INFINITY,
            deceleration: 1.0,
        }
    }
}

impl OwnLimits {
    /// Position limits that are the whole range, or none between which there is a place, are off;
    /// so is the highest speed.
    pub(super) fn of((lowest, highest): (i64, i64), velocity: i64, deceleration: f64) -> Self {
        let is_off = lowest >= highest || (lowest, highest) == WHOLE_RANGE;
        let off = Self::default();
        let position = |value: i64, off: f64| if is_off { off } else { value as f64 };
        Self {
            lowest: position(lowest, off.lowest),
            highest: position(highest, off.highest),
            velocity: if velocity == i64::from(u32::MAX) { off.velocity } else { velocity as f64 },
            deceleration,
        }
    }

    /// Place that is demanded next, `seconds` after the shaft was to be at `before`, on the way to
    /// `target`.
    pub(super) fn place(&self, target: f64, before: f64, seconds: f64) -> f64 {
        let way = self.velocity * seconds;
        let target = target.clamp(self.lowest.min(before), self.highest.max(before));
        target.clamp(before - way, before + way)
    }

    /// A destination within the limits, of a shaft at `here`.
    pub(super) fn destination(&self, target: f64, here: f64) -> f64 {
        target.clamp(self.lowest.min(here), self.highest.max(here))
    }

    /// Velocity from which the shaft still stops before the limit.
    pub(super) fn velocity(&self, wanted: f64, position: f64) -> f64 {
        let up = self.stopping(self.highest - position).min(self.velocity);
        let down = self.stopping(position - self.lowest).min(self.velocity);
        wanted.clamp(-down, up)
    }

    /// True if a shaft of this velocity has to brake to stop before the limit.
    pub(super) fn brakes(&self, velocity: f64, position: f64) -> bool {
        velocity > self.stopping(self.highest - position)
            || -velocity > self.stopping(position - self.lowest)
    }

    /// True if the shaft is beyond the limit in this direction.
    pub(super) fn is_beyond(&self, direction: f64, position: f64) -> bool {
        direction > 0.0 && position >= self.highest || direction < 0.0 && position <= self.lowest
    }

    /// Deceleration of the stop before a position limit.
    pub(super) fn deceleration(&self) -> f64 {
        self.deceleration
    }

    /// Speed from which the shaft stops within `way`.
    fn stopping(&self, way: f64) -> f64 {
        (2.0 * self.deceleration * way.max(0.0)).sqrt()
    }
}

/// Values of 0x607D that are no limits.
pub(super) const WHOLE_RANGE: (i64, i64) = (i32::MIN as i64, i32::MAX as i64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_that_are_off_change_nothing() {
        for off in
            [OwnLimits::of(WHOLE_RANGE, u32::MAX.into(), 1.0), OwnLimits::of((0, 0), 0xFFFF_FFFF, 1.0)]
        {
            assert_eq!(off.place(1e12, 0.0, 1e-3), 1e12);
            assert_eq!(off.velocity(-1e12, 0.0), -1e12);
            assert!(!off.brakes(1e12, 1e12) && !off.is_beyond(1.0, 1e12));
        }
    }

    #[test]
    fn no_demand_leads_beyond_the_limits() {
        let limits = OwnLimits::of((-100, 200), 1000, 50.0);
        assert_eq!(limits.place(500.0, 199.5, 1e-3), 200.0);
        assert_eq!(limits.place(500.0, 0.0, 1e-3), 1.0, "at the highest speed");
        assert_eq!(limits.place(500.0, 300.0, 1e-3), 300.0, "from beyond only inwards");
        assert_eq!(limits.place(0.0, 300.0, 1e-3), 299.0);
        // 1 unit before the limit at 50 units/s^2: 10 units/s.
        assert_eq!(limits.velocity(1000.0, 199.0), 10.0);
        assert_eq!(limits.velocity(-5.0, 250.0), -5.0);
        assert!(limits.brakes(10.1, 199.0) && !limits.brakes(9.9, 199.0));
        assert!(limits.is_beyond(-1.0, -100.0) && !limits.is_beyond(1.0, -100.0));
    }
}
