//! Soft stops: the highest speed from which an axis still comes to rest before its limit.

use crate::units::{Radians, RadiansPerSecond, RadiansPerSecondSquared, Seconds};

/// The highest speed towards a limit `distance` away: after `reaction` at this speed, braking at `deceleration` ends
/// at the limit. 0 at the limit and behind it.
///
/// It solves `v T + v^2 / 2a = d`. An axis that keeps to it from cycle to cycle (`T` a cycle or longer) never brakes
/// harder than `a`: from `v` the next distance is at least `v^2 / 2a`, and that allows `v - aT` or more.
pub(super) fn highest_speed(
    distance: Radians,
    deceleration: RadiansPerSecondSquared,
    reaction: Seconds,
) -> RadiansPerSecond {
    let lost = deceleration.0 * reaction.0;
    let distance = distance.0.max(0.0);
    // The root as a quotient: no small difference of large numbers.
    let root = (lost * lost + 2.0 * deceleration.0 * distance).sqrt();
    RadiansPerSecond(if root > 0.0 { 2.0 * deceleration.0 * distance / (root + lost) } else { 0.0 })
}

/// `velocity`, slowed down so far that an axis at `position` comes to rest between `bounds`.
pub(super) fn slowed(
    velocity: RadiansPerSecond,
    position: Radians,
    bounds: Option<(Radians, Radians)>,
    deceleration: RadiansPerSecondSquared,
    reaction: Seconds,
) -> RadiansPerSecond {
    let Some((lowest, highest)) = bounds else { return velocity };
    let up = highest_speed(highest - position, deceleration, reaction);
    let down = highest_speed(position - lowest, deceleration, reaction);
    RadiansPerSecond(velocity.0.clamp(-down.0, up.0))
}
