//! `outage_time`, with the distance that an axis moves without frames.

use std::time::Duration;

use ethercat::cia402::object::{QUICK_STOP_DECELERATION, of_axis};

use super::axis;
use super::found::Found;
use super::text::{number, rounded, row};
use crate::check::watchdog;
use crate::duration;

/// Rows of `[cycle]` for `axes`, with their names; none without axes.
pub(super) fn rows(axes: &[(String, &Found, u8)], period: Duration) -> String {
    let watchdog = watchdog::by_default(period);
    let stops = || axes.iter().map(|(name, found, axis)| (name, Stop::of(found, *axis)));
    let known = stops().filter_map(|(name, stop)| Some((name, stop.distance(watchdog)?, stop)));
    let longest = known.max_by(|(_, one, _), (_, other, _)| one.total_cmp(other));
    let distance = match longest {
        Some((name, distance, stop)) => {
            let without = stops().filter(|(_, stop)| stop.distance(watchdog).is_none()).count();
            stop.words(name, distance, watchdog)
                + &match without {
                    0 => String::new(),
                    1 => "# One more axis with an unknown distance.\n".to_owned(),
                    _ => format!("# {without} more axes with an unknown distance.\n"),
                }
        }
        None => match stops().next() {
            Some((name, stop)) => stop.words_without(name, watchdog),
            None => return String::new(),
        },
    };
    let expires = duration::format(watchdog);
    let outage = duration::format(watchdog / 2);
    [
        format!("# Without frames an axis moves on until the watchdog of its drive ({expires}) expires,\n"),
        "# and then brakes: v * watchdog + v^2 / (2 * 0x6085), from the limit of its velocity.\n"
            .to_owned(),
        distance,
        row(&format!("outage_time = \"{outage}\""), "assumed: half of the watchdog"),
    ]
    .concat()
}

/// Deceleration of an axis when frames stay away, as far as it is known.
struct Stop {
    /// Limit of its velocity, rad/s.
    velocity: f64,
    /// 0x6085 in rad/s^2, or the reason that it is not known.
    deceleration: Result<f64, String>,
    /// 0x6085, as that axis of the drive has it.
    index: u16,
}

impl Stop {
    fn of(found: &Found, axis: u8) -> Self {
        let (velocity, units) = axis::velocity_and_units(found, axis);
        let read = found.of_axis(axis, QUICK_STOP_DECELERATION, 0).filter(|it| *it > 0);
        let deceleration = match (read, units) {
            (Some(read), Some(units)) => Ok(read as f64 / units),
            (Some(_), None) => Err("is in position units, which are not known".to_owned()),
            (None, _) => Err(found.why(axis, QUICK_STOP_DECELERATION, 0)),
        };
        Self { velocity, deceleration, index: of_axis(QUICK_STOP_DECELERATION, axis) }
    }

    /// Distance from the limit of the velocity to standstill, in rad.
    fn distance(&self, watchdog: Duration) -> Option<f64> {
        let braking = self.velocity.powi(2) / (2.0 * self.deceleration.as_ref().ok()?);
        Some(self.before(watchdog) + braking)
    }

    /// Distance before the watchdog expires, in rad.
    fn before(&self, watchdog: Duration) -> f64 {
        self.velocity * watchdog.as_secs_f64()
    }

    fn words(&self, name: &str, distance: f64, watchdog: Duration) -> String {
        let Self { velocity, deceleration, index } = self;
        let shown = |value: f64| number(rounded(value));
        let deceleration = shown(deceleration.as_ref().copied().unwrap_or_default());
        let (velocity, watchdog) = (number(*velocity), number(watchdog.as_secs_f64()));
        format!(
            "#   {name}: {velocity} * {watchdog} + {velocity}^2 / (2 * {deceleration}) = {} rad\n\
             # assumed: 0x{index:04X} counts position units/s^2\n",
            shown(distance)
        )
    }

    fn words_without(&self, name: &str, watchdog: Duration) -> String {
        let why = self.deceleration.as_ref().err().map_or("", String::as_str);
        let before = number(rounded(self.before(watchdog)));
        let index = self.index;
        format!("#   {name}: {before} rad, and braking, which is not known: 0x{index:04X} {why}\n")
    }
}
