//! Checks of a jog: slow, and within the limits of its axis.

use motion::supervision::{JogLimits, Limits};
use motion::{NewtonMetres, RadiansPerSecond};

use super::Checked;
use crate::error::Problem;
use crate::field::Number;
use crate::model::JogKeys;
use crate::place::Place;

/// Limits of a jog of an axis with these limits.
pub(super) fn limits(keys: JogKeys, limits: &Limits, entry: Place<'_>) -> Checked<JogLimits> {
    let usual = JogLimits::usual(limits);
    let within = |key: &'static str, given: Option<f64>, usual: f64, most: f64, of: &str| match given {
        None => Ok(usual),
        Some(given) if given <= most => Ok(given),
        Some(given) => Err(Problem::new(
            entry.key(key),
            format!("{key} = {} of a jog", Number(given)),
            format!("at most the {of} limit of the axis, {}", Number(most)),
            format!("lower {key}"),
        )),
    };
    let velocity = keys.velocity.map(|it| it.0);
    let torque = keys.torque.map(|it| it.0);
    let velocity = within("velocity", velocity, usual.velocity.0, limits.velocity.0, "velocity")?;
    let torque = within("torque", torque, usual.torque.0, limits.torque.0, "torque")?;
    Ok(JogLimits { velocity: RadiansPerSecond(velocity), torque: NewtonMetres(torque) })
}
