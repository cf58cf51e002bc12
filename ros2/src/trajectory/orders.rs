//! Conversion of a JointTrajectory, or of the goal of FollowJointTrajectory, to orders of the port
//! `trajectory`.

use ipc::description::{ControllerDescription, Description};
use ipc::message::trajectory::{AxisTolerances, Begin, GoalTime, Order, Point, Tolerance};
use ipc::message::{MOST_AXES, Rows};

use crate::check;
use crate::messages::basic::Duration;
use crate::messages::trajectory::{
    FollowGoal, JointTolerance, JointTrajectory, JointTrajectoryPoint, error_code,
};

/// Reason for which there are no orders: a code of FollowJointTrajectory's result, and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Invalid {
    pub(crate) code: i32,
    pub(crate) why: String,
}

fn joints(why: String) -> Invalid {
    Invalid { code: error_code::INVALID_JOINTS, why }
}

fn goal(why: impl Into<String>) -> Invalid {
    Invalid { code: error_code::INVALID_GOAL, why: why.into() }
}

/// Orders of a goal, and the indices of its axes in the order of its points. `start_ns` is its
/// start, CLOCK_MONOTONIC; `None` for at once.
///
/// # Errors
/// A part of the goal that the robot cannot do.
pub(crate) fn of_goal(
    asked: &FollowGoal,
    id: u64,
    start_ns: Option<u64>,
    controller: &ControllerDescription,
    robot: &Description,
) -> Result<(Vec<Order>, Vec<usize>), Invalid> {
    if !asked.multi_dof_trajectory.joint_names.is_empty() || !asked.multi_dof_trajectory.points.is_empty() {
        return Err(goal("the robot has no joints of many degrees of freedom"));
    }
    let trajectory = &asked.trajectory;
    let axes = check::axes_by_name(&trajectory.joint_names, &robot.axes).map_err(joints)?;
    if let Some(&other) = axes.iter().find(|axis| !controller.axes.contains(axis)) {
        let (joint, controller) = (&robot.axes[other].name, &controller.name);
        return Err(joints(format!("joint `{joint}` is not one of controller `{controller}`")));
    }
    let mut rows = tolerances(&axes)?;
    let mut tell = |list: &[JointTolerance], set: fn(&mut AxisTolerances, Tolerance, Tolerance)| {
        list.iter().try_for_each(|tolerance| {
            let row = trajectory.joint_names.iter().position(|name| *name == tolerance.name);
            let row = row.ok_or_else(|| {
                joints(format!("a tolerance for `{}`, which is not in the trajectory", tolerance.name))
            })?;
            set(&mut rows[row], bound(tolerance.position)?, bound(tolerance.velocity)?);
            Ok(())
        })
    };
    tell(&asked.path_tolerance, |row, position, velocity| {
        (row.path_position, row.path_velocity) = (position, velocity);
    })?;
    tell(&asked.goal_tolerance, |row, position, velocity| {
        (row.goal_position, row.goal_velocity) = (position, velocity);
    })?;
    let goal_time = match asked.goal_time_tolerance.to_ns() {
        Some(0) => GoalTime::Default,
        Some(ns) => GoalTime::Within(ns),
        // As in ros2_controllers: a negative tolerance is none.
        None => GoalTime::Unlimited,
    };
    let begin = Begin {
        id,
        points: u32::try_from(trajectory.points.len()).map_err(|_| goal("it has too many points"))?,
        start_ns,
        goal_time,
        axes: Rows::from_slice(&rows).map_err(|error| joints(error.to_string()))?,
    };
    let mut orders = vec![Order::Begin(begin)];
    orders.extend(points(trajectory, id, &axes, robot)?);
    orders.push(Order::Commit { id });
    Ok((orders, axes))
}

/// Goal of a plain trajectory, without tolerances.
pub(crate) fn bare(trajectory: JointTrajectory) -> FollowGoal {
    FollowGoal { trajectory, ..FollowGoal::default() }
}

fn tolerances(axes: &[usize]) -> Result<Vec<AxisTolerances>, Invalid> {
    if axes.is_empty() || axes.len() > MOST_AXES {
        return Err(joints(format!("it names {} joints; expected 1 to {MOST_AXES}", axes.len())));
    }
    Ok(axes.iter().map(|&axis| AxisTolerances { axis: axis as u32, ..AxisTolerances::default() }).collect())
}

/// Tolerance in the notation of ROS: 0 for the robot's own, negative for none.
fn bound(number: f64) -> Result<Tolerance, Invalid> {
    check::finite("a tolerance", number).map_err(goal)?;
    Ok(if number == 0.0 {
        Tolerance::Default
    } else if number < 0.0 {
        Tolerance::Unlimited
    } else {
        Tolerance::Within(number)
    })
}

fn points(
    trajectory: &JointTrajectory,
    id: u64,
    axes: &[usize],
    robot: &Description,
) -> Result<Vec<Order>, Invalid> {
    if trajectory.points.is_empty() {
        return Err(goal("it has no points"));
    }
    let mut orders = Vec::with_capacity(trajectory.points.len());
    let mut before = None;
    for (index, point) in trajectory.points.iter().enumerate() {
        let at = |why: String| goal(format!("point {index}: {why}"));
        let time = checked_time(point.time_from_start, before).map_err(at)?;
        before = Some(time);
        check_point(point, axes, robot).map_err(at)?;
        let row = |numbers: &[f64]| Rows::from_slice(numbers).map_err(|error| at(error.to_string()));
        orders.push(Order::Point(Point {
            id,
            index: index as u32,
            time_from_start_ns: time,
            positions: row(&point.positions)?,
            velocities: row(&point.velocities)?,
            accelerations: row(&point.accelerations)?,
        }));
    }
    Ok(orders)
}

fn checked_time(time: Duration, before: Option<u64>) -> Result<u64, String> {
    let ns = time.to_ns().ok_or_else(|| format!("its time is {} s {} ns", time.sec, time.nanosec))?;
    match before {
        Some(before) if ns <= before => Err("its time is not later than that of the point before".into()),
        _ => Ok(ns),
    }
}

fn check_point(point: &JointTrajectoryPoint, axes: &[usize], robot: &Description) -> Result<(), String> {
    let joints = axes.len();
    let complete = |name: &str, numbers: &[f64]| {
        if numbers.is_empty() || numbers.len() == joints {
            Ok(())
        } else {
            Err(format!("it has {} {name} for {joints} joints", numbers.len()))
        }
    };
    if point.positions.len() != joints {
        return Err(format!("it has {} positions for {joints} joints", point.positions.len()));
    }
    complete("velocities", &point.velocities)?;
    complete("accelerations", &point.accelerations)?;
    if point.velocities.is_empty() && !point.accelerations.is_empty() {
        return Err("it has accelerations, but no velocities".into());
    }
    for (row, &axis) in axes.iter().enumerate() {
        let name = &robot.axes[axis].name;
        let number = |what: &str, number: Option<&f64>| {
            number.map_or(Ok(()), |&number| check::finite(&format!("{what} of {name}"), number))
        };
        number("position", point.positions.get(row))?;
        number("velocity", point.velocities.get(row))?;
        number("acceleration", point.accelerations.get(row))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use types::{ControllerKind, CyclicMode};

    use super::*;
    use ipc::description::AxisDescription;

    fn robot() -> Description {
        let axis = |name: &str| AxisDescription {
            position_limits: Some((-1.0, 1.0)),
            ..AxisDescription::new(name, CyclicMode::Position, 2.0, 5.0)
        };
        let controller = ControllerDescription {
            name: "arm".into(),
            kind: Some(ControllerKind::JointTrajectory),
            axes: vec![0, 1],
        };
        Description {
            axes: ["a", "b", "c"].map(axis).to_vec(),
            controllers: vec![controller],
            ..Description::default()
        }
    }

    fn point(ms: u32, positions: &[f64]) -> JointTrajectoryPoint {
        let time_from_start = Duration { sec: 0, nanosec: ms * 1_000_000 };
        JointTrajectoryPoint { positions: positions.to_vec(), time_from_start, ..Default::default() }
    }

    fn asked(names: &[&str], points: Vec<JointTrajectoryPoint>) -> FollowGoal {
        let joint_names = names.iter().map(|&name| name.to_owned()).collect();
        bare(JointTrajectory { joint_names, points, ..JointTrajectory::default() })
    }

    fn orders(goal: &FollowGoal) -> Result<(Vec<Order>, Vec<usize>), Invalid> {
        let robot = robot();
        of_goal(goal, 7, None, &robot.controllers[0], &robot)
    }

    #[test]
    fn a_goal_becomes_begin_points_and_commit() {
        let mut goal = asked(&["b", "a"], vec![point(100, &[0.1, 0.2]), point(200, &[0.3, 0.4])]);
        goal.goal_tolerance.push(JointTolerance { name: "a".into(), position: 0.01, ..Default::default() });
        goal.path_tolerance.push(JointTolerance { name: "b".into(), position: -1.0, ..Default::default() });
        let (orders, axes) = orders(&goal).unwrap();
        assert_eq!(axes, [1, 0]);
        let Order::Begin(begin) = &orders[0] else { panic!("{:?}", orders[0]) };
        assert_eq!((begin.points, begin.axes[0].axis, begin.axes[1].axis), (2, 1, 0));
        assert_eq!(begin.axes[1].goal_position, Tolerance::Within(0.01));
        assert_eq!(begin.axes[0].path_position, Tolerance::Unlimited);
        let Order::Point(last) = &orders[2] else { panic!("{:?}", orders[2]) };
        assert_eq!(
            (last.index, last.time_from_start_ns, &last.positions[..]),
            (1, 200_000_000, &[0.3, 0.4][..])
        );
        assert_eq!(orders[3], Order::Commit { id: 7 });
        let mut buffer = [0; 4096];
        for order in orders {
            let length = order.encode(&mut buffer).unwrap();
            assert_eq!(Order::decode(&buffer[..length]), Ok(order), "the other side reads it");
        }
    }

    #[test]
    fn lateness_of_a_goal_is_reported_as_in_ros() {
        for (sec, goal_time) in
            [(0, GoalTime::Default), (2, GoalTime::Within(2_000_000_000)), (-1, GoalTime::Unlimited)]
        {
            let mut goal = asked(&["a"], vec![point(100, &[0.1])]);
            goal.goal_time_tolerance = Duration { sec, nanosec: 0 };
            let Order::Begin(begin) = &orders(&goal).unwrap().0[0] else { panic!("no begin") };
            assert_eq!(begin.goal_time, goal_time, "{sec} s");
        }
    }

    #[test]
    fn impossible_goals_are_refused_with_the_code_of_ros() {
        let refused = |goal: FollowGoal, code: i32, word: &str| {
            let invalid = orders(&goal).unwrap_err();
            assert!(invalid.code == code && invalid.why.contains(word), "{invalid:?}");
        };
        let (no_joints, no_goal) = (error_code::INVALID_JOINTS, error_code::INVALID_GOAL);
        refused(asked(&[], vec![point(1, &[])]), no_joints, "0 joints");
        refused(asked(&["x"], vec![point(1, &[0.0])]), no_joints, "no joint `x`");
        refused(asked(&["c"], vec![point(1, &[0.0])]), no_joints, "not one of controller `arm`");
        refused(asked(&["a"], vec![]), no_goal, "no points");
        refused(asked(&["a"], vec![point(1, &[0.0, 0.0])]), no_goal, "2 positions for 1 joints");
        assert!(orders(&asked(&["a"], vec![point(1, &[1.01])])).is_ok(), "limits are the cycle's");
        refused(asked(&["a"], vec![point(1, &[f64::NAN])]), no_goal, "point 0: position of a is NaN");
        refused(asked(&["a"], vec![point(5, &[0.0]), point(5, &[0.1])]), no_goal, "point 1: its time");
        let mut fast = point(1, &[0.0]);
        fast.velocities = vec![f64::NEG_INFINITY];
        refused(asked(&["a"], vec![fast]), no_goal, "velocity of a is -inf");
        let mut odd = point(1, &[0.0]);
        odd.accelerations = vec![1.0];
        refused(asked(&["a"], vec![odd]), no_goal, "no velocities");
        let mut bent = point(1, &[0.0]);
        bent.velocities = vec![0.0];
        bent.accelerations = vec![1.0, 1.0];
        refused(asked(&["a"], vec![bent.clone()]), no_goal, "2 accelerations for 1 joints");
        bent.accelerations = vec![f64::INFINITY];
        refused(asked(&["a"], vec![bent]), no_goal, "acceleration of a is inf");
        let mut short = point(1, &[0.0]);
        short.velocities = vec![0.0, 0.0];
        refused(asked(&["a"], vec![short]), no_goal, "2 velocities for 1 joints");
        let mut negative = point(1, &[0.0]);
        negative.time_from_start.sec = -1;
        refused(asked(&["a"], vec![negative]), no_goal, "-1 s");
        let mut goal = asked(&["a"], vec![point(1, &[0.0])]);
        goal.goal_tolerance.push(JointTolerance { name: "b".into(), ..Default::default() });
        refused(goal.clone(), no_joints, "tolerance for `b`");
        goal.goal_tolerance[0] =
            JointTolerance { name: "a".into(), position: f64::NAN, ..Default::default() };
        refused(goal.clone(), no_goal, "tolerance is NaN");
        goal.goal_tolerance.clear();
        goal.multi_dof_trajectory.joint_names.push("base".into());
        refused(goal, no_goal, "many degrees");
    }
}
