//! `[device.NAME]`: common properties of the SubDevices of one type.
//!
//! `outage_time`, with the distance that an axis moves without frames.

use std::time::Duration;

use ethercat::cia402::object::{INTERPOLATION_TIME_PERIOD, QUICK_STOP_DECELERATION, of_axis};
use ethercat::pdo::PdoMapping;
use ethercat::sii::DistributedClock;
use types::CyclicMode;
use types::duration;

use super::axis;
use super::found::Found;
use super::process_data::{Chosen, chosen, comments, rows};
use super::text::{long, number, one_line, rounded, row, shown};
use crate::check::bus;

/// A SubDevice, described.
pub(super) struct Device {
    /// Its axes, from 0, of a drive.
    pub(super) axes: Vec<u8>,
    /// Mode of its axes.
    pub(super) mode: Option<CyclicMode>,
    /// True if it needs pulses of its clock.
    pub(super) has_clock: bool,
    /// Name given by its maker.
    pub(super) title: String,
    /// Its table below `[device.NAME]`, equal for all SubDevices of its type. [`KEY`] is the
    /// placeholder of the name.
    pub(super) table: String,
}

/// Placeholder of the type's name in its table.
pub(super) const KEY: &str = "\u{0}";

/// DC activation (register 0x0980): SYNC0 is there.
const SYNC0: u16 = 0x0200;

/// The same: SYNC1 is there.
const SYNC1: u16 = 0x0400;

/// Samples of a channel in a cycle, for terminals with several.
const SAMPLES: u8 = 10;

pub(super) fn described(found: &Found, period: Duration) -> Device {
    let axes = found.axes();
    let chosen = if axes.is_empty() { Chosen::default() } else { chosen(found, &axes) };
    let clock = clock(found, !axes.is_empty(), period);
    let mut table = identity(found);
    table += clock.as_deref().unwrap_or_default();
    if found.has_untold_clock && found.mapping != PdoMapping::default() {
        table += "# unknown: dc, whether it uses its clock; the SII says so, a running cycle does \
            not (onbeat new --iface)\n";
    }
    if chosen.mode == Some(CyclicMode::Position) {
        table += &startup(found, &axes, period);
    }
    if !axes.is_empty() && clock.is_none() && !found.has_untold_clock {
        table += "# assumed: no dc, as its SII lists no mode with SYNC0\n";
    }
    let shortest = found.shortest_cycle().map(Duration::from_nanos).filter(|it| *it > period);
    if let Some(shortest) = shortest {
        let shortest = duration::format(shortest);
        table += &format!(
            "# unknown: whether it keeps up; 0x1C32:05 requires {shortest} at least: raise period \
             of [cycle]\n"
        );
    }
    if let Some(problem) = &found.problem {
        table += &format!("# unknown: {}\n", one_line(problem));
    }
    if !axes.is_empty() && chosen.mode.is_none() {
        table += "# unknown: PDOs of a cyclic mode (CSP, CSV, CST), so that it has no axis here; its manual or its ESI file has them\n";
    }
    match &chosen.mapping {
        Some(mapping) => {
            let assumed = chosen.assumed.map_or(String::new(), |it| format!("# assumed: {it}\n"));
            table += &format!("\n{assumed}[device.{KEY}.pdos]\n{}", rows(mapping));
        }
        None => table += &comments(&found.mapping),
    }
    Device { axes, mode: chosen.mode, has_clock: clock.is_some(), title: title(found), table }
}

fn title(found: &Found) -> String {
    let (name, order) = (shown(&found.name), shown(&found.order));
    match (order.as_str(), name.starts_with(&order)) {
        ("", _) | (_, true) => name,
        (order, false) => format!("{order}, {name}").trim_end_matches([',', ' ']).to_owned(),
    }
}

fn identity(found: &Found) -> String {
    let Some(identity) = found.identity else {
        return "# unknown: identity; its SII could not be read\n".to_owned();
    };
    let (vendor, product) = (long(identity.vendor_id), long(identity.product_code));
    let revision = long(identity.revision);
    row(
        &format!("identity = {{ vendor_id = {vendor}, product_code = {product} }}"),
        &format!("found with revision = {revision}; add it to take no other"),
    )
}

/// Pulses of the clock: of the default mode in the SII; for a drive, of the first mode that has
/// any.
fn clock(found: &Found, is_drive: bool, period: Duration) -> Option<String> {
    let pulses = |mode: &&DistributedClock| mode.assign_activate & SYNC0 != 0;
    let mode = match is_drive {
        true => found.clock_modes.iter().find(pulses),
        false => found.clock_modes.first().filter(pulses),
    }?;
    let wanted = Duration::from_nanos(mode.sync0_shift.into());
    // The outputs that a drive takes at SYNC0 have arrived by then.
    let (shift, comment) = match wanted {
        it if it.is_zero() || it >= period => {
            (period / 4, "assumed: SYNC0 a quarter of the period behind the frame")
        }
        it => (it, "SYNC0 as its SII says"),
    };
    let shift = format!("shift = \"{}\"", duration::format(shift));
    Some(if !found.samples.is_empty() {
        row(&format!("dc = {{ oversampling = {SAMPLES} }}"), "assumed: samples of a channel in each cycle")
    } else if mode.assign_activate & SYNC1 != 0 {
        let delay = Duration::from_nanos(mode.sync1_shift.into());
        let delay = if delay < period { delay } else { Duration::ZERO };
        row(&format!("dc = {{ {shift}, sync1_delay = \"{}\" }}", duration::format(delay)), comment)
    } else {
        row(&format!("dc = {{ {shift} }}"), comment)
    })
}

/// Interpolation time period: how far apart set-points are, which some drives want to know in CSP.
fn startup(found: &Found, axes: &[u8], period: Duration) -> String {
    let Some((value, exponent)) = interpolation(period) else { return String::new() };
    let has = |axis: &&u8| {
        let index = of_axis(INTERPOLATION_TIME_PERIOD, **axis);
        [1, 2].into_iter().all(|sub_index| {
            let is_there = found.of_axis(**axis, INTERPOLATION_TIME_PERIOD, sub_index).is_some();
            is_there && !found.read_only.contains(&(index, sub_index))
        })
    };
    let objects = |axis: &u8| {
        let index = of_axis(INTERPOLATION_TIME_PERIOD, *axis);
        let period =
            format!("    {{ index = 0x{index:04X}, sub_index = 1, type = \"uint8\", value = {value} }},");
        row(&period, "interpolation time period, that of the cycle:")
            + &row(
                &format!(
                    "    {{ index = 0x{index:04X}, sub_index = 2, type = \"int8\", value = {exponent} }},"
                ),
                &format!("{value} * 10^{exponent} s"),
            )
    };
    let all: String = axes.iter().filter(has).map(objects).collect();
    if all.is_empty() { all } else { format!("startup = [\n{all}]\n") }
}

/// A time as an 8-bit number and a power of ten in seconds; `None` if it has more digits.
fn interpolation(period: Duration) -> Option<(u8, i8)> {
    let (mut value, mut exponent) = (period.as_nanos(), -9);
    while value > 0 && value % 10 == 0 {
        (value, exponent) = (value / 10, exponent + 1);
    }
    u8::try_from(value).ok().filter(|it| *it > 0).map(|value| (value, exponent))
}

/// Rows of `[cycle]` for `axes`, with their names; none without axes.
pub(super) fn outage_rows(axes: &[(String, &Found, u8)], period: Duration) -> String {
    let watchdog = bus::by_default(period);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_is_a_number_and_a_power_of_ten() {
        let of = |nanoseconds| interpolation(Duration::from_nanos(nanoseconds));
        assert_eq!(
            [of(1_000_000), of(250_000), of(2_000_000_000)],
            [Some((1, -3)), Some((25, -5)), Some((2, 0))]
        );
        assert_eq!([of(0), of(1_234_567)], [None, None]);
    }
}
