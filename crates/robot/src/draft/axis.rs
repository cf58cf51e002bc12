//! An axis: its scale as the drive gives it, and low limits.

use std::f64::consts::TAU;

use ethercat::cia402::object::{
    FEED_CONSTANT, GEAR_RATIO, MOTOR_RATED_CURRENT, MOTOR_RATED_TORQUE, POSITION_ENCODER_RESOLUTION,
    SUPPORTED_DRIVE_MODES, of_axis,
};
use motion::{AxisScale, NewtonMetres};
use types::CyclicMode;

use super::found::Found;
use super::text::{number, rounded, row};

/// Highest speed of an axis, rad/s: about a turn a second.
const VELOCITY: f64 = 6.0;

/// Highest speed of its motor, rad/s.
const MOTOR_VELOCITY: f64 = 60.0;

/// Counts of a turn if unknown: few rather than many, so that the axis moves less than its command,
/// not more.
const FEW_COUNTS: f64 = 4096.0;

/// Least position units of a turn of the motor: a feed constant of less was hardly set.
const FEWEST_UNITS: f64 = 100.0;

/// Comment on the encoder: no object of a drive says whether it is absolute.
const ENCODER: &str = "assumed: its position is lost without power. Its data sheet";

/// The other encoders.
const OTHER_ENCODERS: &str =
    "# may say \"single_turn\", or \"multi_turn\" with encoder_range: the revolutions it distinguishes\n";

/// Rows of an `[[axis]]` behind its `sub_device`.
pub(super) fn rows(found: &Found, axis: u8, mode: CyclicMode) -> String {
    let Scale { counts, ratio, rows: scale, .. } = scale(found, axis);
    let (rated, torque) = rated_torque(found, axis, (counts, ratio));
    let velocity = velocity(ratio);
    let limits = format!(
        "limits = {{ velocity = {}, acceleration = {}, jerk = {}, torque = {} }}",
        number(velocity),
        number(rounded(velocity / 0.3)),
        number(rounded(velocity / 0.03)),
        number(rated * ratio),
    );
    let window = number(rounded(velocity / 12.0));
    let velocities = match mode {
        CyclicMode::Velocity => "# assumed: 0x60FF and 0x606C count position units a second\n",
        CyclicMode::Position | CyclicMode::Torque => "",
    };
    [
        mode_row(found, axis, mode),
        scale,
        velocities.to_owned(),
        torque,
        row("encoder = \"incremental\"", ENCODER),
        OTHER_ENCODERS.to_owned(),
        "# assumed: low limits for the first motion, in rad and N m at the shaft behind the gear; torque is the rated one\n"
            .to_owned(),
        limits + "\n",
        row(&format!("following_error = {{ window = {window}, time = \"50ms\" }}"), "assumed"),
    ]
    .concat()
}

/// Limit of the velocity, rad/s.
fn velocity(ratio: f64) -> f64 {
    rounded(VELOCITY.min(MOTOR_VELOCITY / ratio))
}

/// Limit of the velocity in rad/s, and position units a radian of the axis where the drive says
/// them.
pub(super) fn velocity_and_units(found: &Found, axis: u8) -> (f64, Option<f64>) {
    let Scale { counts, ratio, is_known, .. } = scale(found, axis);
    (velocity(ratio), is_known.then_some(counts * ratio / TAU))
}

fn mode_row(found: &Found, axis: u8, mode: CyclicMode) -> String {
    let index = of_axis(SUPPORTED_DRIVE_MODES, axis);
    let comment = match found.of_axis(axis, SUPPORTED_DRIVE_MODES, 0) {
        Some(modes) => {
            let names: Vec<&str> =
                MODES.into_iter().filter(|(bit, _)| modes >> bit & 1 == 1).map(|(_, name)| name).collect();
            let doubt =
                if names.contains(&mode.name()) { "" } else { "; unknown: whether it knows this one" };
            format!(
                "0x{index:04X}: {}{doubt}",
                if names.is_empty() { "none".to_owned() } else { names.join(", ") }
            )
        }
        None => format!(
            "assumed: 0x{index:04X}, supported modes, {}",
            found.why(axis, SUPPORTED_DRIVE_MODES, 0)
        ),
    };
    row(&format!("mode = \"{}\"", mode.name()), &comment)
}

/// Bits of the supported modes, and the modes' names.
const MODES: [(u8, &str); 9] =
    [(0, "pp"), (1, "vl"), (2, "pv"), (3, "tq"), (5, "hm"), (6, "ip"), (7, "csp"), (8, "csv"), (9, "cst")];

/// Scale of an axis.
struct Scale {
    /// Position units of a turn of the motor.
    counts: f64,
    /// Turns of the motor for one of the shaft.
    ratio: f64,
    /// False if one of them is a guess.
    is_known: bool,
    /// Their rows.
    rows: String,
}

/// Positions are in position units: increments of the encoder (0x608F), unless a feed constant
/// (0x6092) gives the units of a turn of the shaft behind the gear (0x6091).
fn scale(found: &Found, axis: u8) -> Scale {
    let of = |index| Ratio::of(found, axis, index);
    let (encoder, gear, feed) = (of(POSITION_ENCODER_RESOLUTION), of(GEAR_RATIO), of(FEED_CONSTANT));
    let ratio = gear.map_or(1.0, Ratio::value);
    let by_feed = feed.map(|feed| feed.value() / ratio).filter(|it| *it >= FEWEST_UNITS);
    let increments = encoder.map(Ratio::value);
    let [resolution, gears, constant] =
        [POSITION_ENCODER_RESOLUTION, GEAR_RATIO, FEED_CONSTANT].map(|index| of_axis(index, axis));
    let (counts, comment) = match (increments, by_feed) {
        (Some(increments), Some(units)) if increments != units => {
            let encoder = number(increments);
            (
                units,
                format!(
                    "0x{constant:04X}: position units; 0x{resolution:04X}: {encoder} increments of the encoder"
                ),
            )
        }
        (None, Some(units)) => (units, format!("0x{constant:04X}: position units of a turn of the motor")),
        (Some(increments), _) => {
            (increments, format!("0x{resolution:04X}: increments of a turn of the motor"))
        }
        (None, None) => {
            let why = found.why(axis, POSITION_ENCODER_RESOLUTION, 1);
            let comment = format!(
                "unknown: 0x{resolution:04X} {why}; its manual has the counts of a turn, 4096 moves too little"
            );
            (FEW_COUNTS, comment)
        }
    };
    if AxisScale::new(counts, ratio, NewtonMetres(1.0)).is_err() {
        let comment = format!("unknown: 0x{resolution:04X} and 0x{gears:04X} are no scale of an axis");
        let rows = counts_row(FEW_COUNTS, &comment) + "gear_ratio = 1.0\n";
        return Scale { counts: FEW_COUNTS, ratio: 1.0, is_known: false, rows };
    }
    let gear_comment = match gear {
        Some(Ratio { numerator, denominator }) => {
            format!(
                "0x{gears:04X}: {numerator} of the motor for {denominator} of the shaft; negative turns the other way"
            )
        }
        None => format!(
            "unknown: 0x{gears:04X} {}; turns of the motor for one of the shaft",
            found.why(axis, GEAR_RATIO, 1)
        ),
    };
    let rows =
        counts_row(counts, &comment) + &row(&format!("gear_ratio = {}", number(ratio)), &gear_comment);
    let is_known = gear.is_some() && (increments.is_some() || by_feed.is_some());
    Scale { counts, ratio, is_known, rows }
}

fn counts_row(counts: f64, comment: &str) -> String {
    row(&format!("counts_per_revolution = {}", number(counts)), comment)
}

/// Rated torque of the motor in N m, and its row.
fn rated_torque(found: &Found, axis: u8, (counts, ratio): (f64, f64)) -> (f64, String) {
    let [torque, current] = [MOTOR_RATED_TORQUE, MOTOR_RATED_CURRENT].map(|index| of_axis(index, axis));
    let current = match found.of_axis(axis, MOTOR_RATED_CURRENT, 0).filter(|it| *it > 0) {
        Some(milliamperes) => {
            format!("; 0x{current:04X}: rated current {} A", number(milliamperes as f64 / 1e3))
        }
        None => String::new(),
    };
    let read = found.of_axis(axis, MOTOR_RATED_TORQUE, 0).map(|it| it as f64 / 1e3);
    let is_torque = |it: &f64| *it > 0.0 && AxisScale::new(counts, ratio, NewtonMetres(*it)).is_ok();
    let (rated, comment) = match read.filter(is_torque) {
        Some(rated) => (rated, format!("0x{torque:04X}: N m of the motor{current}")),
        None => {
            let why = found.why(axis, MOTOR_RATED_TORQUE, 0);
            (1.0, format!("unknown: 0x{torque:04X} {why}; the motor's plate has it, N m{current}"))
        }
    };
    (rated, row(&format!("rated_torque = {}", number(rated)), &comment))
}

/// An object with a numerator as first entry and a denominator as second.
#[derive(Clone, Copy, Debug)]
struct Ratio {
    numerator: u64,
    denominator: u64,
}

impl Ratio {
    /// Value of a drive's object; `None` if there is none, or it is 0.
    fn of(found: &Found, axis: u8, index: u16) -> Option<Self> {
        let part = |sub_index| found.of_axis(axis, index, sub_index).filter(|it| *it > 0);
        // A second entry that is not there is one turn.
        Some(Self { numerator: part(1)?, denominator: part(2).unwrap_or(1) })
    }

    fn value(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }
}
