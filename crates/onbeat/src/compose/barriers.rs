//! The second barrier in the drives: the bounds that each axis has in its drive, in sentences.

use ethercat::cia402::object::{
    DISABLE_OPERATION_OPTION_CODE, FAULT_REACTION_OPTION_CODE, HALT_OPTION_CODE, QUICK_STOP_OPTION_CODE,
    SHUTDOWN_OPTION_CODE, of_first_axis,
};
use ethercat::main_device::{Barrier, BarrierState, BarrierTask, SubDevice};
use robot::{Axis, BarrierSource, DriveBarrier, RobotConfig};

/// A sentence for each group of axes with the same bounds: the objects of their drives with their
/// values, and the objects that are not written, with the reason. Without `found`, the SubDevices
/// as they are in PreOp, the objects that a run would write.
#[must_use]
pub fn sentences(robot: &RobotConfig, found: Option<&[SubDevice]>) -> Vec<String> {
    let barriers = robot.drive_barriers();
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for (number, axis) in robot.axes.iter().enumerate() {
        let own = barriers.iter().filter(|it| it.axis == number);
        let (mut held, mut lacking): (Vec<String>, Vec<(String, Vec<String>)>) = Default::default();
        for barrier in own {
            match standing(barrier, state(robot, barrier, found)) {
                Standing::Unbounded => {}
                Standing::Bounds(value) => held.push(format!("{} = {value}", object(barrier))),
                Standing::Lacks(reason) => match lacking.iter_mut().find(|(known, _)| *known == reason) {
                    Some((_, objects)) => objects.push(object(barrier)),
                    None => lacking.push((reason, vec![object(barrier)])),
                },
            }
        }
        let held = if held.is_empty() { "nothing".to_owned() } else { held.join(", ") };
        let lacking = lacking.iter().map(|(reason, objects)| format!("{} ({reason})", objects.join(", ")));
        let lacking: Vec<String> = lacking.collect();
        let without =
            if lacking.is_empty() { String::new() } else { format!("; not by {}", lacking.join(", ")) };
        let bounds = format!("{held}{without}");
        match groups.iter_mut().find(|(known, _)| *known == bounds) {
            Some((_, axes)) => axes.push(&axis.name),
            None => groups.push((bounds, vec![&axis.name])),
        }
    }
    groups
        .iter()
        .map(|(bounds, axes)| format!("{}: bounded in the drive by {bounds}", named(axes)))
        .collect()
}

/// The first names of a group of axes, and the number of the others.
fn named(axes: &[&str]) -> String {
    let first: Vec<String> = axes.iter().take(NAMED).map(|name| format!("\"{name}\"")).collect();
    let more = axes.len().saturating_sub(NAMED);
    let word = if axes.len() == 1 { "axis" } else { "axes" };
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{word} {}{more}", first.join(", "))
}

/// Axes of a group that are named.
const NAMED: usize = 4;

/// A sentence for each object of a drive that weakens a limit or prevents a stop.
#[must_use]
pub fn remarks(robot: &RobotConfig, found: &[SubDevice]) -> Vec<String> {
    let remark = |barrier: DriveBarrier| {
        let Axis { name: axis, holds_load, brake, .. } = &robot.axes[barrier.axis];
        let object = object(&barrier);
        match barrier.source {
            BarrierSource::Startup { value, limits: Some(limits) } => Some(format!(
                "axis \"{axis}\": startup writes {value} to {object}, expected {limits} as its limits say: the drive limits it less; \
                 correct or remove this startup object"
            )),
            _ => {
                let code = option_code(state(robot, &barrier, Some(found)))?;
                let first = of_first_axis(barrier.index);
                let needs_torque = *holds_load && brake.is_none();
                let (name, expected, effect) = contradiction(first, code, needs_torque)?;
                Some(format!(
                    "axis \"{axis}\": {name} {object} is {code}, expected {expected}: {effect}; write {} to it in startup",
                    usual(first, needs_torque)
                ))
            }
        }
    };
    robot.drive_barriers().into_iter().filter_map(remark).collect()
}

/// Value of the option code with this first-axis index of the drive of `axis`, if the drive
/// returned it.
pub(crate) fn option_code_of(
    robot: &RobotConfig,
    axis: usize,
    first: u16,
    found: &[SubDevice],
) -> Option<i16> {
    let barriers = robot.drive_barriers();
    let own = barriers.iter().find(|it| it.axis == axis && of_first_axis(it.index) == first)?;
    option_code(state(robot, own, Some(found)))
}

/// Effect of a barrier on its axis.
enum Standing {
    /// It is no limit.
    Unbounded,
    Bounds(String),
    Lacks(String),
}

fn standing(barrier: &DriveBarrier, state: Option<BarrierState>) -> Standing {
    let of_limits = |it: &Barrier| match it.task {
        BarrierTask::Read => Standing::Unbounded,
        BarrierTask::Write(value) => Standing::Bounds(it.number(value).to_string()),
        BarrierTask::WriteInUnit(value) => match value.in_unit(0) {
            Some(value) => Standing::Bounds(format!("{value} or its value in the unit of the drive")),
            None => Standing::Lacks("only if the drive names its unit".to_owned()),
        },
    };
    match (&barrier.source, state) {
        (BarrierSource::None(reason), _) => Standing::Lacks((*reason).to_owned()),
        (BarrierSource::Startup { value, .. }, _) => Standing::Bounds(format!("{value} of startup")),
        (BarrierSource::ProcessData(value), _) => Standing::Bounds(format!("{value} in the process data")),
        (BarrierSource::Limits(_, it), _) if it.task == BarrierTask::Read => Standing::Unbounded,
        (BarrierSource::Limits(_, it), None) => of_limits(it),
        (BarrierSource::Limits(_, it), Some(state)) => match state {
            BarrierState::Active(value) | BarrierState::Read(value) => {
                Standing::Bounds(it.number(value).to_string())
            }
            BarrierState::Missing => Standing::Lacks("the drive does not have it".to_owned()),
            BarrierState::Refused(code) => Standing::Lacks(format!("the drive refuses it: {code}")),
            BarrierState::UnknownUnit(0) => Standing::Lacks("the drive does not name its unit".to_owned()),
            BarrierState::UnknownUnit(unit) => {
                Standing::Lacks(format!("its unit {unit:#010x} is not known"))
            }
            BarrierState::Unknown => Standing::Lacks("the drive is not there, or has no CoE".to_owned()),
        },
    }
}

/// State of a barrier in its drive.
fn state(robot: &RobotConfig, barrier: &DriveBarrier, found: Option<&[SubDevice]>) -> Option<BarrierState> {
    let BarrierSource::Limits(place, _) = barrier.source else { return None };
    let drive = found?.get(robot.axes[barrier.axis].sub_device)?;
    Some(drive.barriers().get(place).copied().unwrap_or_default())
}

fn option_code(state: Option<BarrierState>) -> Option<i16> {
    match state? {
        BarrierState::Read(value) => Some(value as u16 as i16),
        _ => None,
    }
}

/// Name of an option code, the values that a stop can rely on, and the effect of `code`; `None` if
/// that is one of them. `needs_torque`: without torque its load falls.
fn contradiction(
    first: u16,
    code: i16,
    needs_torque: bool,
) -> Option<(&'static str, &'static str, &'static str)> {
    let vendor = "its meaning is the vendor's";
    Some(match (first, code) {
        (QUICK_STOP_OPTION_CODE, 0..=4) if needs_torque => (
            "quick stop option code",
            "5 to 8",
            "after a quick stop the drive takes its torque off, and its load falls",
        ),
        (QUICK_STOP_OPTION_CODE, 0) => {
            ("quick stop option code", "1 to 8", "a quick stop takes the torque off, and the axis coasts")
        }
        (QUICK_STOP_OPTION_CODE, ..0 | 9..) => ("quick stop option code", "1 to 8", vendor),
        (SHUTDOWN_OPTION_CODE, ..0 | 2..) => ("shutdown option code", "0 or 1", vendor),
        (DISABLE_OPERATION_OPTION_CODE, ..0 | 2..) => ("disable operation option code", "0 or 1", vendor),
        (HALT_OPTION_CODE, ..1 | 3..) => {
            ("halt option code", "1 or 2", "Onbeat does not use the halt of this drive to brake")
        }
        (FAULT_REACTION_OPTION_CODE, 0) => (
            "fault reaction option code",
            "1 to 4",
            "in a fault the drive takes the torque off, and the axis coasts",
        ),
        (FAULT_REACTION_OPTION_CODE, ..0 | 5..) => ("fault reaction option code", "1 to 4", vendor),
        _ => return None,
    })
}

/// Value of an option code that a stop can rely on.
const fn usual(first: u16, needs_torque: bool) -> u8 {
    match first {
        QUICK_STOP_OPTION_CODE if needs_torque => 6,
        QUICK_STOP_OPTION_CODE | FAULT_REACTION_OPTION_CODE => 2,
        SHUTDOWN_OPTION_CODE => 0,
        _ => 1,
    }
}

fn object(barrier: &DriveBarrier) -> String {
    match barrier.sub_index {
        0 => format!("{:#06X}", barrier.index).replace("0X", "0x"),
        sub_index => format!("{:#06X}:{sub_index:02x}", barrier.index).replace("0X", "0x"),
    }
}
