//! Checks that the counts of a drive hold the positions of an axis and its set-points.

use motion::homing::FARTHEST;
use types::CyclicMode;

use super::Checked;
use crate::error::Problem;
use crate::field::Number;
use crate::model::Axis;
use crate::place::Place;

/// Checks the scale against limits, step and homing.
pub(super) fn check(axis: &Axis, entry: Place<'_>) -> Checked<()> {
    let counts = axis.scale.counts_per_radian().abs();
    let limits = &axis.limits;
    let scale = || entry.first_of(&["counts_per_revolution", "gear_ratio"]);
    let refuse = |found: String, expected: &'static str| {
        let remedy = "correct counts_per_revolution, gear_ratio or limits";
        Err(Problem::new(scale(), found, expected, remedy))
    };
    if let Some((lowest, highest)) = limits.position {
        let span = (highest - lowest).0 * counts;
        if !(1.0..MOST_COUNTS).contains(&span) {
            let found = format!("{} counts between the position limits", Number(span));
            return refuse(found, "1 to 4294967295, the counts that a target of 32 bits distinguishes");
        }
    }
    let step = limits.step.0 * counts;
    if step >= MOST_COUNTS / 2.0 {
        let found = format!("{} counts in a step of one cycle", Number(step));
        return refuse(found, "below 2147483648, so that 32 bits of counts show the direction");
    }
    let velocity = limits.velocity.0 * counts;
    if axis.mode.cyclic() == CyclicMode::Velocity && velocity >= MOST_COUNTS / 2.0 {
        let found = format!("{} counts/s at the velocity limit", Number(velocity));
        return refuse(found, "below 2147483648, the highest target velocity of 32 bits");
    }
    let given = axis.homing_settings.as_ref();
    let places =
        [("offset", given.and_then(|it| it.offset)), ("position", given.and_then(|it| it.position))];
    for (key, place) in places {
        let Some(place) = place.filter(|it| it.0.abs() > FARTHEST.0) else { continue };
        let found = format!("homing.{key} = {}", Number(place.0));
        let expected = "at most 1e8 rad from 0, where counts are still distinguished";
        return Err(Problem::new(entry.key("homing").key(key), found, expected, "correct it"));
    }
    Ok(())
}

/// Counts that 32 bits distinguish.
const MOST_COUNTS: f64 = 4_294_967_296.0;
