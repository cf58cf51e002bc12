//! Trajectories for tests, and a controller that follows them.
//!
//! A controller that ignores `stopping`.

use control::controller::{Controller, CycleInfo, Io};
use ethercat::cia402::Request;
use ipc::message::Rows;
use ipc::message::trajectory::{AxisTolerances, Begin, GoalTime, Point};
use motion::{AxisPhase, Radians, RadiansPerSecond, Seconds};
use onbeat_controllers::{JointTrajectory, Member, MemberKind, TrajectorySettings};

use super::{CYCLE, settings};

/// Axes of the robot, all of them the controller's.
pub const AXES: usize = 3;

pub fn trajectory_settings() -> TrajectorySettings {
    TrajectorySettings {
        axes: (0..AXES).map(settings).collect(),
        robot_axes: AXES,
        points: 50,
        path_tolerance: Some(Radians(0.1)),
        goal_tolerance: Some(Radians(0.005)),
        goal_time: Some(Seconds(0.5)),
    }
}

pub fn member() -> Member {
    let controller = JointTrajectory::new(trajectory_settings()).unwrap();
    Member::new(MemberKind::Trajectory(Box::new(controller)), &[0, 1, 2])
}

pub fn begin(id: u64, axes: &[u32], points: usize) -> Begin {
    let axes: Vec<_> =
        axes.iter().map(|axis| AxisTolerances { axis: *axis, ..Default::default() }).collect();
    Begin {
        id,
        points: points as u32,
        start_ns: None,
        goal_time: GoalTime::Default,
        axes: Rows::from_slice(&axes).unwrap(),
    }
}

pub fn point(id: u64, index: usize, seconds: f64, positions: &[f64], velocities: &[f64]) -> Point {
    Point {
        id,
        index: index as u32,
        time_from_start_ns: (seconds * 1e9) as u64,
        positions: Rows::from_slice(positions).unwrap(),
        velocities: Rows::from_slice(velocities).unwrap(),
        accelerations: Rows::new(),
    }
}

/// Positions only.
pub fn points(id: u64, rows: &[(f64, &[f64])]) -> Vec<Point> {
    rows.iter().enumerate().map(|(index, (time, row))| point(id, index, *time, row, &[])).collect()
}

/// Speed of its axes.
pub const SPEED: f64 = 0.1;

/// Moves its axes whenever they follow, as the example of a controller process does.
pub struct Headstrong {
    /// It holds its axes while `stopping` is set.
    pub obeys: bool,
}

impl Headstrong {
    pub fn member(obeys: bool, axes: usize) -> Member {
        Member::new(MemberKind::Plain(Box::new(Self { obeys })), &(0..axes).collect::<Vec<_>>())
    }
}

impl Controller for Headstrong {
    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        let (reports, commands) = io.split();
        for (report, command) in reports.iter().zip(commands) {
            command.request = Request::Enable;
            let follows = report.feedback.phase == AxisPhase::Following;
            let speed = if follows && !(info.stopping && self.obeys) { SPEED } else { 0.0 };
            if let AxisPhase::HoldingAt(place) = report.feedback.phase {
                command.setpoint.position = place;
            }
            command.setpoint.position += Radians(speed * CYCLE);
            command.setpoint.velocity = RadiansPerSecond(speed);
        }
    }
}
