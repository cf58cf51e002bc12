//! Values that are allowed, and hardly meant: most are in another unit.

use motion::supervision::OUTAGE_CYCLES;
use motion::{RadiansPerSecond, RestartRule, Seconds};
use types::duration;

use types::AfterOutage;

use crate::{Axis, Base, Encoder, RobotConfig};

impl RobotConfig {
    /// A sentence for each unusual value: its place, the value, its consequence, and the probable
    /// intention.
    #[must_use]
    pub fn doubts(&self) -> Vec<String> {
        let of_parts = self.axes.iter().flat_map(of_axis).chain(self.base.iter().flat_map(of_base));
        of_parts.chain(of_outage(self)).chain(of_resume(self)).collect()
    }
}

/// An outage time after which the drives have left Op before the quick stop is commanded.
fn of_outage(robot: &RobotConfig) -> Option<String> {
    let cycle = &robot.cycle;
    let outage = cycle.outage_time.unwrap_or(cycle.period * OUTAGE_CYCLES);
    let watched = robot.axes.iter().filter_map(|axis| {
        let watchdog = robot.bus.sub_devices.get(axis.sub_device)?.process_data_watchdog.time()?;
        Some((watchdog, axis))
    });
    let (watchdog, axis) = watched.min_by_key(|(watchdog, _)| *watchdog)?;
    (outage >= watchdog).then(|| {
        let by_default = match cycle.outage_time {
            Some(_) => String::new(),
            None => format!(" ({OUTAGE_CYCLES} periods, the default)"),
        };
        format!(
            "cycle: outage_time = {}{by_default} is not below {}, the process_data_watchdog of axis \"{}\": its drive leaves Op \
             before the quick stop is commanded; choose a shorter outage_time, as \"{}\"",
            duration::format(outage),
            duration::format(watchdog),
            axis.name,
            duration::format((watchdog / 2).max(cycle.period)),
        )
    })
}

/// Axes of real drives that resume their motion by themselves.
fn of_resume(robot: &RobotConfig) -> Option<String> {
    let is_real = |axis: &&Axis| {
        robot.bus.sub_devices.get(axis.sub_device).is_some_and(|drive| drive.simulation.is_none())
    };
    let axis = robot.axes.iter().find(is_real)?;
    (robot.cycle.after_outage == AfterOutage::Resume).then(|| {
        format!(
            "cycle: after_outage = \"resume\", and the drive of axis \"{}\" is not simulated: after an outage on a wire its axis moves \
             without a start request; remove it, and type `onbeat control reset` after an outage",
            axis.name
        )
    })
}

fn of_axis(axis: &Axis) -> Vec<String> {
    let (name, limits) = (&axis.name, &axis.limits);
    let mut doubts = Vec::new();
    let velocity = limits.velocity.0;
    if velocity > FASTEST {
        let turns = velocity / std::f64::consts::TAU * 60.0;
        doubts.push(format!(
            "axis \"{name}\": limits.velocity = {velocity} rad/s is {turns:.0} turns a minute of the axis, behind its gear; are these counts, or degrees?"
        ));
    }
    let units = axis.scale.torque_units(limits.torque);
    let rated = units
        .map_or(0.0, |it| if it.saturated { f64::INFINITY } else { f64::from(it.value).abs() / 1000.0 });
    if rated > OVERLOAD {
        let times = if rated.is_finite() { format!("{rated:.0}") } else { "more than 32".to_owned() };
        doubts.push(format!(
            "axis \"{name}\": limits.torque = {} N m is {times} times the rated torque of its motor behind the gear; drives give three times \
             for a while (rated_torque, gear_ratio?)",
            limits.torque.0
        ));
    }
    if let Some((lowest, highest)) = limits.position
        && [lowest.0, highest.0].iter().any(|bound| DEGREES.contains(&bound.abs()))
    {
        doubts.push(format!(
            "axis \"{name}\": limits.position = [{}, {}] rad is {:.0} turns; are these degrees?",
            lowest.0,
            highest.0,
            (highest.0 - lowest.0) / std::f64::consts::TAU
        ));
    }
    doubts.extend(of_distances(axis));
    // Limits in another unit would be reported twice.
    if doubts.is_empty() {
        doubts.extend(of_encoder(axis));
    }
    doubts
}

/// Distances that count as no motion, but exceed the axis's range, or a turn of its motor.
fn of_distances(axis: &Axis) -> Vec<String> {
    let Some((lowest, highest)) = axis.limits.position else { return Vec::new() };
    let span = (highest - lowest).0;
    let turn = std::f64::consts::TAU / axis.gear_ratio.abs();
    let sense = &axis.position_sense;
    let tolerance = ("position_tolerance", sense.tolerance.0, span.min(turn));
    // A load sinks by more than a turn of the motor.
    let distances = [tolerance, ("coast", sense.coast.0, span)];
    let far = distances.into_iter().filter(|(_, found, most)| found > most);
    let doubt = |(key, found, most): (&str, f64, f64)| {
        let what = if most < span { "one turn of its motor" } else { "the span of limits.position" };
        format!(
            "axis \"{}\": {key} = {found} rad is more than {what}, {most:.3} rad: a restart of its \
             drive may hide motion beyond the limits; is this another unit?",
            axis.name
        )
    };
    far.map(doubt).collect()
}

/// Effect of a restart of its drive on the position of an axis with limits, where the file leaves
/// it open or an encoder cannot keep it.
fn of_encoder(axis: &Axis) -> Option<String> {
    let engage = axis.brake.map_or(Seconds::ZERO, |brake| brake.times.engage);
    let rule = RestartRule::of(axis.position_sense, &axis.limits, engage)?;
    let name = &axis.name;
    let no_way_back = if rule.sense.has_way_back() {
        ""
    } else {
        ", and nothing makes it ready but a new start of `onbeat run`: no homing of it finds a switch"
    };
    if axis.encoder.is_none() {
        return Some(format!(
            "axis \"{name}\": limits.position without encoder: each restart of its drive leaves it unreferenced, as of an \
             incremental encoder{no_way_back}; add encoder = \"incremental\", \"single_turn\" or \"multi_turn\""
        ));
    }
    if !rule.sense.has_way_back() {
        return Some(format!(
            "axis \"{name}\": limits.position with an incremental encoder: each restart of its drive leaves it \
             unreferenced{no_way_back}; add homing with a switch, or correct encoder if it is absolute"
        ));
    }
    let (range, (lowest, highest)) = (rule.sense.range?, rule.limits);
    let always = (highest - lowest).0 + 2.0 * rule.allowed_change(RadiansPerSecond::ZERO).0 >= range.0;
    let change = rule.allowed_change(axis.limits.velocity);
    let kind = axis.encoder.map_or("", Encoder::name);
    if always {
        return Some(format!(
            "axis \"{name}\": its {kind} encoder distinguishes {:.3} rad, its limits span {:.3} rad: each restart of its drive leaves \
             it unreferenced; check encoder_range, encoder_side, gear_ratio and limits.position",
            range.0,
            (highest - lowest).0
        ));
    }
    (2.0 * change.0 >= range.0).then(|| {
        format!(
            "axis \"{name}\": at its limit of velocity it may move {:.3} rad while its drive is off, at least half of the {:.3} rad that \
             its {kind} encoder distinguishes: a restart in motion leaves it unreferenced",
            change.0, range.0
        )
    })
}

fn of_base(base: &Base) -> Vec<String> {
    let lengths = [
        ("wheel_diameter", 2.0 * base.wheel_radius, WHEEL),
        ("track", base.track, TRACK),
        ("wheelbase", base.wheelbase, TRACK),
    ];
    let lengths = lengths.into_iter().filter(|(_, found, most)| found > most);
    let mut doubts: Vec<String> =
        lengths.map(|(key, found, _)| format!("base: {key} = {found} m; are these millimetres?")).collect();
    let velocity = base.limits.velocity.0;
    if velocity > SPEED {
        doubts.push(format!(
            "base: velocity = {velocity} m/s is {:.0} km/h; is this another unit?",
            3.6 * velocity
        ));
    }
    doubts
}

/// Fastest axis, rad/s: 9 549 turns a minute.
const FASTEST: f64 = 1000.0;

/// Most that a limit of torque is of the rated one.
const OVERLOAD: f64 = 6.0;

/// Common angles in degrees.
const DEGREES: [f64; 6] = [45.0, 90.0, 120.0, 180.0, 270.0, 360.0];

/// Largest wheel, m.
const WHEEL: f64 = 2.0;

/// Largest distance of wheels, m.
const TRACK: f64 = 10.0;

/// Fastest base, m/s.
const SPEED: f64 = 20.0;
