//! Checks of the controllers, and of their axes' ability to follow.

mod cartesian;
mod external;
mod sinusoid;

use std::ops::Range;

use ethercat::cia402::CyclicMode;
use toml::Spanned;

use self::cartesian::{cartesian, joints};
use self::external::{check_only, external};
use self::sinusoid::sinusoid;
use super::{Checked, number, readable_name};
use crate::error::Problem;
use crate::file::{self, ControllerKind as Kind};
use crate::model::{Arm, Axis, Base, BaseKind, Controller, ControllerKind, Cycle, JointTrajectory};
use crate::nearest::nearest;

/// Base and arm of the robot.
#[derive(Clone, Copy)]
pub(super) struct Bodies<'a> {
    pub(super) base: Option<&'a Base>,
    pub(super) arm: Option<&'a Arm>,
}

/// Controllers of the file; `hold` where it names none.
pub(super) fn controllers(
    entries: &[file::Controller],
    axes: &[Axis],
    bodies: Bodies<'_>,
    cycle: &Cycle,
) -> Checked<Vec<Controller>> {
    if entries.is_empty() {
        let axes = (0..axes.len()).collect();
        return Ok(vec![Controller { name: "hold".to_owned(), kind: ControllerKind::Hold, axes }]);
    }
    let mut controllers: Vec<Controller> = Vec::new();
    for entry in entries {
        let controller = controller(entry, axes, bodies, cycle)?;
        if controllers.iter().any(|other| other.name == controller.name) {
            let place = entry.name.as_ref().map_or(entry.kind.span(), Spanned::span);
            let found = format!("a second controller \"{}\"", controller.name);
            return Err(Problem::new(place, found, "every name once", "give it another name"));
        }
        check_only(entry, &controller, &controllers)?;
        controllers.push(controller);
    }
    Ok(controllers)
}

fn controller(
    entry: &file::Controller,
    axes: &[Axis],
    bodies: Bodies<'_>,
    cycle: &Cycle,
) -> Checked<Controller> {
    check_axis_names(entry, axes)?;
    check_keys(entry)?;
    let moved = moved(entry, axes, bodies)?;
    let kind = match entry.kind.get_ref() {
        Kind::Hold => ControllerKind::Hold,
        Kind::Sinusoid => {
            let swings = moved.iter().enumerate();
            let swings = swings.map(|(number, &axis)| sinusoid(entry, &axes[axis], number, cycle));
            ControllerKind::Sinusoid(swings.collect::<Checked<_>>()?)
        }
        Kind::JointTrajectory => ControllerKind::JointTrajectory(joint_trajectory(entry)?),
        Kind::JointPosition => ControllerKind::JointPosition,
        Kind::JointVelocity => ControllerKind::JointVelocity,
        Kind::JointEffort => ControllerKind::JointEffort,
        Kind::DiffDrive => ControllerKind::DiffDrive,
        Kind::OmniDrive => ControllerKind::OmniDrive,
        Kind::Cartesian => ControllerKind::Cartesian(cartesian(entry)?),
        Kind::External => ControllerKind::External(external(entry, cycle)?),
    };
    let name = match &entry.name {
        None => kind.name().to_owned(),
        Some(name) => {
            readable_name(name)?;
            name.get_ref().clone()
        }
    };
    Ok(Controller { name, kind, axes: moved })
}

/// Indices of the axes that `entry` moves, rising.
fn moved(entry: &file::Controller, axes: &[Axis], bodies: Bodies<'_>) -> Checked<Vec<usize>> {
    let kind = *entry.kind.get_ref();
    if matches!(kind, Kind::DiffDrive | Kind::OmniDrive) {
        return wheels(entry, bodies.base);
    }
    if kind == Kind::Cartesian && entry.axes.is_none() {
        return joints(entry, axes, bodies.arm);
    }
    let modes = modes(kind);
    let Some(names) = &entry.axes else {
        let serves = |axis: &Axis| modes.contains(&axis.mode);
        let all: Vec<usize> = (0..axes.len()).filter(|&index| serves(&axes[index])).collect();
        if all.is_empty() && !matches!(kind, Kind::Hold | Kind::External) {
            let found = format!("{} without an axis to move", name_of(kind));
            let expected = format!("an [[axis]] in mode {}", list(modes));
            return Err(Problem::new(
                entry.kind.span(),
                found,
                expected,
                "describe one, or choose another kind",
            ));
        }
        return Ok(all);
    };
    if names.get_ref().is_empty() {
        let found = "a controller of no axis";
        return Err(Problem::new(
            names.span(),
            found,
            "names of axes",
            "name them, or remove axes for all",
        ));
    }
    let mut indices = Vec::new();
    for name in names.get_ref() {
        let index = axis_called(name, axes, "in a controller")?;
        let mode = axes[index].mode;
        if !modes.contains(&mode) {
            let found =
                format!("axis \"{}\" in mode {} for {}", name.get_ref(), mode.name(), name_of(kind));
            let expected = format!("mode {}", list(modes));
            return Err(Problem::new(name.span(), found, expected, "choose another kind or mode"));
        }
        if indices.contains(&index) {
            let found = format!("axis \"{}\" again", name.get_ref());
            return Err(Problem::new(name.span(), found, "every axis once", "remove it"));
        }
        indices.push(index);
    }
    indices.sort_unstable();
    if kind == Kind::Cartesian {
        cartesian::check(names, &indices, axes, joints(entry, axes, bodies.arm)?)?;
    }
    Ok(indices)
}

fn wheels(entry: &file::Controller, base: Option<&Base>) -> Checked<Vec<usize>> {
    let kind = *entry.kind.get_ref();
    if let Some(axes) = &entry.axes {
        let found = format!("axes of a {}", name_of(kind));
        return Err(Problem::new(axes.span(), found, "the wheels of [base]", "remove axes"));
    }
    let fits = base.is_some_and(|base| {
        matches!(base.kind, BaseKind::Differential { .. }) == (kind == Kind::DiffDrive)
    });
    match base {
        Some(base) if fits => {
            let mut wheels = base.wheels();
            wheels.sort_unstable();
            Ok(wheels)
        }
        _ => {
            let base = base.map_or("without a [base]".to_owned(), |base| {
                format!("for a base of kind {}", base.kind_name())
            });
            let expected =
                if kind == Kind::DiffDrive { "kind differential" } else { "kind mecanum or omni" };
            let found = format!("{} {base}", name_of(kind));
            let remedy = "describe such a [base], or choose another kind";
            Err(Problem::new(entry.kind.span(), found, expected, remedy))
        }
    }
}

/// Index of the axis with this name.
pub(super) fn axis_called(name: &Spanned<String>, axes: &[Axis], where_: &str) -> Checked<usize> {
    axes.iter().position(|axis| axis.name == *name.get_ref()).ok_or_else(|| {
        let remedy = nearest(name.get_ref(), axes.iter().map(|axis| axis.name.as_str()))
            .map_or("correct the name".to_owned(), |nearest| format!("did you mean \"{nearest}\"?"));
        let found = format!("the unknown axis \"{}\" {where_}", name.get_ref());
        Problem::new(name.span(), found, "the name of an [[axis]]", remedy)
    })
}

fn check_axis_names(controller: &file::Controller, axes: &[Axis]) -> Checked<()> {
    let unknown = controller.axis.keys().find(|name| axes.iter().all(|axis| axis.name != *name.get_ref()));
    unknown.map_or(Ok(()), |name| {
        let remedy = nearest(name.get_ref(), axes.iter().map(|axis| axis.name.as_str()))
            .map_or("correct the name".to_owned(), |nearest| format!("did you mean \"{nearest}\"?"));
        let found = format!("a movement for the unknown axis \"{}\"", name.get_ref());
        Err(Problem::new(name.span(), found, "the name of an [[axis]]", remedy))
    })
}

/// Checks that every key belongs to the kind.
fn check_keys(entry: &file::Controller) -> Checked<()> {
    fn place<T>(key: &'static str, value: &Option<Spanned<T>>) -> Option<(&'static str, Range<usize>)> {
        value.as_ref().map(|value| (key, value.span()))
    }
    let kind = *entry.kind.get_ref();
    let swings = [
        place("amplitude", &entry.amplitude),
        place("frequency", &entry.frequency),
        place("phase", &entry.phase),
        place("phase_step", &entry.phase_step),
        entry.axis.keys().next().map(|name| ("axis", name.span())),
    ];
    let follows = [
        place("path_tolerance", &entry.path_tolerance),
        place("goal_tolerance", &entry.goal_tolerance),
        place("goal_time", &entry.goal_time),
        place("points", &entry.points),
    ];
    let speeds = [
        place("linear_velocity", &entry.linear_velocity),
        place("angular_velocity", &entry.angular_velocity),
    ];
    let waits = [place("deadline", &entry.deadline), place("max_late", &entry.max_late)];
    let waits = waits.into_iter().filter(|_| kind != Kind::External).map(|it| (it, "external"));
    let speeds = speeds.into_iter().filter(|_| kind != Kind::Cartesian).map(|it| (it, "cartesian"));
    let swings = swings.into_iter().filter(|_| kind != Kind::Sinusoid).map(|it| (it, "sinusoid"));
    let follows =
        follows.into_iter().filter(|_| kind != Kind::JointTrajectory).map(|it| (it, "joint_trajectory"));
    let misplaced = swings
        .chain(follows)
        .chain(waits)
        .chain(speeds)
        .find_map(|(place, kind)| place.map(|place| (place, kind)));
    misplaced.map_or(Ok(()), |((key, span), belongs)| {
        let found = if kind == Kind::Hold && belongs == "sinusoid" {
            "a movement for a controller that holds still".to_owned()
        } else {
            format!("{key} for {}", name_of(kind))
        };
        let expected = format!("kind = \"{belongs}\"");
        Err(Problem::new(span, found, expected, "change kind or remove this"))
    })
}

fn joint_trajectory(entry: &file::Controller) -> Checked<JointTrajectory> {
    let tolerance = |key, value: &Option<Spanned<f64>>| {
        value.as_ref().map(|value| number::positive(key, value)).transpose()
    };
    let points = number::optional_whole("points", entry.points.as_ref(), 2..=MOST_POINTS)?;
    Ok(JointTrajectory {
        path_tolerance: tolerance("path_tolerance", &entry.path_tolerance)?,
        goal_tolerance: tolerance("goal_tolerance", &entry.goal_tolerance)?,
        goal_time: entry.goal_time.as_ref().map(|time| time.get_ref().0),
        points: points.map_or(USUAL_POINTS, |points| points as usize),
    })
}

/// Modes of the axes that a kind can move.
const fn modes(kind: Kind) -> &'static [CyclicMode] {
    match kind {
        // The check of the sinusoid selects those that can swing.
        Kind::Hold | Kind::Sinusoid | Kind::External => {
            &[CyclicMode::Position, CyclicMode::Velocity, CyclicMode::Torque]
        }
        Kind::JointTrajectory | Kind::JointPosition | Kind::Cartesian => &[CyclicMode::Position],
        Kind::JointVelocity | Kind::DiffDrive | Kind::OmniDrive => &[CyclicMode::Velocity],
        Kind::JointEffort => &[CyclicMode::Torque],
    }
}

fn list(modes: &[CyclicMode]) -> String {
    let names: Vec<_> = modes.iter().map(|mode| mode.name()).collect();
    names.join(" or ")
}

const fn name_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Hold => "hold",
        Kind::Sinusoid => "sinusoid",
        Kind::JointTrajectory => "joint_trajectory",
        Kind::JointPosition => "joint_position",
        Kind::JointVelocity => "joint_velocity",
        Kind::JointEffort => "joint_effort",
        Kind::DiffDrive => "diff_drive",
        Kind::OmniDrive => "omni_drive",
        Kind::Cartesian => "cartesian",
        Kind::External => "external",
    }
}

/// Default number of points of a trajectory, and the largest: memory is reserved for twice as many.
const USUAL_POINTS: usize = 1000;
const MOST_POINTS: i64 = 100_000;
