//! Checks of the controllers, and of their axes' ability to follow: also of a controller of the
//! arm's tool, and of axes that swing.

use std::time::Duration;

use types::AxisMode;

use super::body::{axis_called, is_streamed_position};
use super::cycle::within;
use super::{Checked, unknown_name};
use crate::error::Problem;
use crate::field::{Number, Place};
use crate::model::{
    Arm, Axis, AxisSwing, Base, BaseKind, Bus, Controller, ControllerKind as Kind, Cycle, Sinusoid,
};

/// Parts of the robot that controllers are about.
#[derive(Clone, Copy)]
pub(super) struct Parts<'a> {
    pub(super) axes: &'a [Axis],
    pub(super) base: Option<&'a Base>,
    pub(super) arm: Option<&'a Arm>,
    pub(super) cycle: &'a Cycle,
}

/// Completes and checks the controllers of the file; `hold` where it names none.
pub(super) fn controllers(
    controllers: &mut Vec<Controller>,
    parts: Parts<'_>,
    entries: Place<'_>,
) -> Checked<()> {
    if controllers.is_empty() {
        let axes = (0..parts.axes.len()).collect();
        controllers.push(Controller::of_kind(Kind::Hold, axes, parts.cycle.period));
        return Ok(());
    }
    for index in 0..controllers.len() {
        let entry = entries.item(index);
        let (others, it) = controllers.split_at_mut(index);
        let it = &mut it[0];
        complete(it, parts, entry)?;
        if others.iter().any(|other| other.name == it.name) {
            let found = format!("a second controller \"{}\"", it.name);
            let place = entry.first_of(&["name", "kind"]);
            return Err(Problem::new(place, found, "every name once", "give it another name"));
        }
        if it.kind == Kind::External && others.iter().any(|other| other.kind == Kind::External) {
            let found = format!("a second controller of kind external, \"{}\"", it.name);
            let remedy = "let one process control all of their axes";
            return Err(Problem::new(entry.key("kind"), found, "one at most", remedy));
        }
    }
    Ok(())
}

fn complete(it: &mut Controller, parts: Parts<'_>, entry: Place<'_>) -> Checked<()> {
    check_axis_names(it, parts.axes, entry.key("axis"))?;
    check_keys(it, entry)?;
    it.axes = moved(it, parts, entry)?;
    match it.kind {
        Kind::Sinusoid => {
            let swings = it.axes.iter().enumerate();
            let swing = |(number, &axis)| sinusoid(it, &parts.axes[axis], number, parts.cycle, entry);
            it.swings = swings.map(swing).collect::<Checked<_>>()?;
        }
        Kind::External => external(it, parts.cycle, entry)?,
        _ => {}
    }
    if !entry.has("name") {
        it.name = it.kind.name().to_owned();
    }
    Ok(())
}

/// Completes and checks the deadline of a controller process.
fn external(it: &mut Controller, cycle: &Cycle, entry: Place<'_>) -> Checked<()> {
    if !entry.has("deadline") {
        it.deadline = cycle.period / 2;
    }
    let range = SHORTEST_DEADLINE..=cycle.period * 3 / 4;
    let remedy = "leave the last quarter of the period to the frame, as \"500us\" of \"1ms\"";
    within(entry, "deadline", Some(it.deadline), range, remedy)
}

/// Indices of the axes that a controller moves, rising.
fn moved(it: &Controller, parts: Parts<'_>, entry: Place<'_>) -> Checked<Vec<usize>> {
    let (kind, axes) = (it.kind, parts.axes);
    if matches!(kind, Kind::DiffDrive | Kind::OmniDrive) {
        return wheels(it, parts.base, entry);
    }
    if kind == Kind::Cartesian && it.axis_names.is_none() {
        return joints(it, axes, parts.arm, entry);
    }
    let modes = kind.modes();
    check_mode(it, modes, entry)?;
    let Some(names) = &it.axis_names else {
        let serves = |axis: &Axis| modes.contains(&it.mode_of(axis));
        let all: Vec<usize> = (0..axes.len()).filter(|&index| serves(&axes[index])).collect();
        if all.is_empty() && !matches!(kind, Kind::Hold | Kind::External) {
            let found = format!("{} without an axis to move", kind.name());
            let expected = format!("an [[axis]] in mode {}", list(modes));
            let remedy = "describe one, or choose another kind";
            return Err(Problem::new(entry.key("kind"), found, expected, remedy));
        }
        return Ok(all);
    };
    let place = entry.key("axes");
    if names.is_empty() {
        let remedy = "name them, or remove axes for all";
        return Err(Problem::new(place, "a controller of no axis", "names of axes", remedy));
    }
    let mut indices = Vec::new();
    for (number, name) in names.iter().enumerate() {
        let place = place.item(number);
        let index = axis_called(name, axes, "in a controller", place)?;
        let mode = it.mode_of(&axes[index]);
        if !modes.contains(&mode) {
            let found = format!("axis \"{name}\" in mode {} for {}", mode.name(), kind.name());
            let expected = format!("mode {}", list(modes));
            return Err(Problem::new(place, found, expected, "choose another kind or mode"));
        }
        if indices.contains(&index) {
            return Err(Problem::new(
                place,
                format!("axis \"{name}\" again"),
                "every axis once",
                "remove it",
            ));
        }
        indices.push(index);
    }
    indices.sort_unstable();
    if kind == Kind::Cartesian {
        check_cartesian(names, &indices, axes, &joints(it, axes, parts.arm, entry)?, place)?;
    }
    Ok(indices)
}

/// Checks that a mode other than its axes' is possible for its kind.
fn check_mode(it: &Controller, modes: &[AxisMode], entry: Place<'_>) -> Checked<()> {
    let Some(mode) = it.mode else { return Ok(()) };
    let (kind, place) = (it.kind.name(), entry.key("mode"));
    if !CHANGE_MODES.contains(&it.kind) {
        let names: Vec<_> = CHANGE_MODES.iter().map(|kind| kind.name()).collect();
        let expected = format!("a kind of {}", names.join(", "));
        return Err(Problem::new(
            place,
            format!("mode for {kind}"),
            expected,
            "change kind or remove this",
        ));
    }
    if modes.contains(&mode) {
        return Ok(());
    }
    let (found, expected) = (format!("mode {} for {kind}", mode.name()), format!("mode {}", list(modes)));
    Err(Problem::new(place, found, expected, "choose another kind or mode"))
}

/// Gives axes the further modes of their controllers, and checks that their drives have them.
pub(super) fn modes_of_axes(
    axes: &mut [Axis],
    controllers: &[Controller],
    bus: &Bus,
    entries: Place<'_>,
) -> Checked<()> {
    for (number, it) in controllers.iter().enumerate() {
        for &index in &it.axes {
            let axis = &mut axes[index];
            let mode = it.mode_of(axis);
            if mode != axis.mode && !axis.modes.contains(&mode) {
                let drive = &bus.sub_devices[axis.sub_device];
                super::axis::check_further_mode(axis, mode, drive, entries.item(number).key("mode"))?;
                axis.modes.push(mode);
            }
        }
    }
    Ok(())
}

fn wheels(it: &Controller, base: Option<&Base>, entry: Place<'_>) -> Checked<Vec<usize>> {
    let kind = it.kind;
    if it.axis_names.is_some() {
        let found = format!("axes of a {}", kind.name());
        return Err(Problem::new(entry.key("axes"), found, "the wheels of [base]", "remove axes"));
    }
    let fits = |base: &&Base| (base.kind == BaseKind::Differential) == (kind == Kind::DiffDrive);
    if let Some(base) = base.filter(fits) {
        let mut wheels = base.wheels.clone();
        wheels.sort_unstable();
        return Ok(wheels);
    }
    let base = base
        .map_or("without a [base]".to_owned(), |base| format!("for a base of kind {}", base.kind.name()));
    let expected = if kind == Kind::DiffDrive { "kind differential" } else { "kind mecanum or omni" };
    let remedy = "describe such a [base], or choose another kind";
    Err(Problem::new(entry.key("kind"), format!("{} {base}", kind.name()), expected, remedy))
}

fn check_axis_names(it: &Controller, axes: &[Axis], entry: Place<'_>) -> Checked<()> {
    let known = axes.iter().map(|axis| axis.name.as_str());
    let unknown = it.swing_of.keys().find(|name| known.clone().all(|known| known != *name));
    unknown.map_or(Ok(()), |name| {
        let found = format!("a movement for the unknown axis \"{name}\"");
        let place = entry.name_of(name);
        Err(unknown_name(place, found, "the name of an [[axis]]", name, known, "the name"))
    })
}

/// Checks that every key belongs to the kind.
fn check_keys(it: &Controller, entry: Place<'_>) -> Checked<()> {
    let keys: [(&[&str], _); 4] = [
        (&["amplitude", "frequency", "phase", "phase_step", "axis"], Kind::Sinusoid),
        (&["path_tolerance", "goal_tolerance", "goal_time", "points"], Kind::JointTrajectory),
        (&["deadline", "max_late"], Kind::External),
        (&["linear_velocity", "angular_velocity"], Kind::Cartesian),
    ];
    for (keys, belongs) in keys.into_iter().filter(|&(_, belongs)| belongs != it.kind) {
        let Some(key) = keys.iter().find(|key| entry.has(key)) else { continue };
        let found = match (it.kind, belongs) {
            (Kind::Hold, Kind::Sinusoid) => {
                "a movement for a controller that holds its position".to_owned()
            }
            _ => format!("{key} for {}", it.kind.name()),
        };
        let expected = format!("kind = \"{}\"", belongs.name());
        return Err(Problem::new(entry.key(key), found, expected, "change kind or remove this"));
    }
    Ok(())
}

/// Kinds that move axes in other modes than their own.
const CHANGE_MODES: [Kind; 5] =
    [Kind::Sinusoid, Kind::JointTrajectory, Kind::JointPosition, Kind::JointVelocity, Kind::JointEffort];

fn list(modes: &[AxisMode]) -> String {
    let names: Vec<_> = modes.iter().map(|mode| mode.name()).collect();
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => names.concat(),
    }
}

const SHORTEST_DEADLINE: Duration = Duration::from_micros(10);

/// Indices of the axes that are joints of the arm, all in mode csp.
fn joints(it: &Controller, axes: &[Axis], arm: Option<&Arm>, entry: Place<'_>) -> Checked<Vec<usize>> {
    let place = entry.key("kind");
    let Some(arm) = arm else {
        let remedy = "describe one, or choose another kind";
        return Err(Problem::new(place, "cartesian without an [arm]", "an [arm] with its urdf", remedy));
    };
    let joints: Vec<usize> = (0..axes.len()).filter(|&index| arm.joints[index].is_some()).collect();
    if it.axis_names.is_some() {
        return Ok(joints);
    }
    if joints.is_empty() {
        let found = "cartesian without an axis to move";
        return Err(Problem::new(place, found, "axes in [arm.joints]", "name the joints of the arm"));
    }
    if let Some(axis) = joints.iter().map(|&index| &axes[index]).find(|it| !is_streamed_position(it.mode)) {
        let found = format!("axis \"{}\" in mode {} for cartesian", axis.name, axis.mode.name());
        let remedy = "change the mode, or name the joints between base and tool in axes";
        return Err(Problem::new(place, found, "mode csp or ip", remedy));
    }
    Ok(joints)
}

/// Checks that each of `indices` is one of the arm's `joints`.
fn check_cartesian(
    names: &[String],
    indices: &[usize],
    axes: &[Axis],
    joints: &[usize],
    place: Place<'_>,
) -> Checked<()> {
    let other = indices.iter().find(|index| !joints.contains(index));
    other.map_or(Ok(()), |&index| {
        let name = &axes[index].name;
        let found = format!("axis \"{name}\" for cartesian, which is no joint of the [arm]");
        let number = names.iter().position(|it| it == name).unwrap_or(0);
        let remedy = "remove it, or name its joint";
        Err(Problem::new(place.item(number), found, "axes in [arm.joints]", remedy))
    })
}

/// Swing of `axis`, the `number`th that swings.
fn sinusoid(
    controller: &Controller,
    axis: &Axis,
    number: usize,
    cycle: &Cycle,
    entry: Place<'_>,
) -> Checked<Sinusoid> {
    let own = controller.swing_of.get(&axis.name).cloned().unwrap_or_default();
    let AxisSwing { amplitude, frequency, phase } = own;
    let missing = |key: &str| {
        let found = format!("no {key} for axis \"{}\"", axis.name);
        Problem::new(entry.key("kind"), found, format!("{key} in [controller]"), "add it")
    };
    let of_axis = entry.key("axis").key(&axis.name);
    let place = if amplitude.is_some() { of_axis } else { entry }.key("amplitude");
    let amplitude = amplitude.or(controller.amplitude).ok_or_else(|| missing("amplitude"))?;
    let frequency = frequency.or(controller.frequency).ok_or_else(|| missing("frequency"))?;
    let phase = phase.unwrap_or(controller.phase + controller.phase_step * number as f64);
    let sinusoid = Sinusoid::new(amplitude, frequency, phase)
        .map_err(|error| Problem::new(place, error.to_string(), "a swing of a real axis", "correct it"))?;
    check_speed(&sinusoid, axis, place)?;
    check_acceleration(&sinusoid, axis, place)?;
    check_jerk(&sinusoid, axis, place)?;
    if frequency * cycle.period.as_secs_f64() > 0.1 {
        let found = format!("a swing of axis \"{}\" at {} Hz", axis.name, Number(frequency));
        let expected = "at least ten periods a swing";
        return Err(Problem::new(place, found, expected, "lower frequency or period"));
    }
    Ok(sinusoid)
}

/// Checks that the sinusoid does not exceed the velocity limit of the axis.
fn check_speed(sinusoid: &Sinusoid, axis: &Axis, place: Place<'_>) -> Checked<()> {
    let speed = sinusoid.trajectory().maximum_velocity().0;
    if speed <= axis.limits.velocity.0 {
        return Ok(());
    }
    let found = format!("a swing of axis \"{}\" at up to {:.3} rad/s", axis.name, Number(speed));
    let expected = format!("at most its velocity limit, {} rad/s", Number(axis.limits.velocity.0));
    Err(Problem::new(place, found, expected, "lower amplitude or frequency"))
}

/// Checks that the sinusoid does not exceed the acceleration limit of the axis, where that is
/// written: it would be clamped.
fn check_acceleration(sinusoid: &Sinusoid, axis: &Axis, place: Place<'_>) -> Checked<()> {
    let (found, limit) = (sinusoid.trajectory().maximum_acceleration().0, axis.limits.acceleration.0);
    if found <= limit || !axis.limits.written.acceleration {
        return Ok(());
    }
    let found = format!("a swing of axis \"{}\" with up to {:.3} rad/s\u{b2}", axis.name, Number(found));
    let expected = format!("at most its acceleration limit, {} rad/s\u{b2}", Number(limit));
    Err(Problem::new(place, found, expected, "lower amplitude or frequency"))
}

/// Checks that the sinusoid does not exceed the jerk limit of the axis, where that is written: it
/// would be clamped.
fn check_jerk(sinusoid: &Sinusoid, axis: &Axis, place: Place<'_>) -> Checked<()> {
    let (found, limit) = (sinusoid.trajectory().maximum_jerk().0, axis.limits.jerk.0);
    if found <= limit || !axis.limits.written.jerk {
        return Ok(());
    }
    let found = format!("a swing of axis \"{}\" with up to {:.3} rad/s\u{b3}", axis.name, Number(found));
    let expected = format!("at most its jerk limit, {} rad/s\u{b3}", Number(limit));
    Err(Problem::new(place, found, expected, "lower amplitude or frequency"))
}
