//! Topic `controller_state` and service `query_state` of a controller that follows trajectories, as
//! joint_trajectory_controller has them.

use ipc::description::Description;
use ipc::state::{Axis, State, TrajectoryStatus};
use motion::TrajectoryPoint;

use super::path::Path;
use super::port::Orders;
use crate::clock::WallClock;
use crate::dds::service::Service;
use crate::dds::{DdsError, Quality, Writer};
use crate::messages::basic::{Duration, Header};
use crate::messages::trajectory::{
    JointTrajectoryControllerState, JointTrajectoryPoint, QueryTrajectoryStateRequest,
    QueryTrajectoryStateResponse,
};
use crate::node::Endpoints;
use crate::robot::Robot;

/// Topic and service of one controller.
pub(super) struct ControllerState {
    controller: usize,
    topic: Writer,
    query: Service,
}

impl ControllerState {
    pub(super) fn new(
        endpoints: &mut Endpoints<'_>,
        controller: usize,
        name: &str,
    ) -> Result<Self, DdsError> {
        let kind = "control_msgs/JointTrajectoryControllerState";
        Ok(Self {
            controller,
            topic: endpoints.publish(&format!("{name}/controller_state"), kind, Quality::Reliable)?,
            query: endpoints
                .serve(&format!("{name}/query_state"), "control_msgs/srv/QueryTrajectoryState")?,
        })
    }

    /// Publishes the state while the controller is active.
    pub(super) fn tell(&self, robot: &Robot, orders: &Orders) {
        if self.is_active(robot) {
            let state = robot.state();
            let path = orders.path(state.control.trajectory);
            let message = message(state, robot.description(), self.controller, path);
            self.topic.send(&message);
        }
    }

    /// Answers requests for the state of a trajectory at a time.
    pub(super) fn answer(&self, robot: Option<&Robot>, orders: &Orders) {
        while let Some(request) = self.query.take() {
            if let Ok(asked) = request.decode::<QueryTrajectoryStateRequest>() {
                let response = self.respond(asked, robot, orders);
                self.query.reply(request.origin(), &response.unwrap_or_else(failed));
            }
        }
    }

    fn respond(
        &self,
        asked: QueryTrajectoryStateRequest,
        robot: Option<&Robot>,
        orders: &Orders,
    ) -> Result<QueryTrajectoryStateResponse, String> {
        let robot = robot.filter(|robot| self.is_active(robot)).ok_or("the controller is not active")?;
        let state = robot.state();
        if state.control.trajectory_status != TrajectoryStatus::Executing {
            return Err("there is no trajectory that is being followed".into());
        }
        let path = orders.path(state.control.trajectory);
        let path = path.ok_or("the trajectory that is being followed was given by another program")?;
        let instant = WallClock::now().instant(asked.time).unwrap_or(0);
        let points = path.sample(instant)?;
        let names = path.axes.iter().filter_map(|&axis| robot.description().axes.get(axis));
        Ok(QueryTrajectoryStateResponse {
            success: true,
            message: String::new(),
            name: names.map(|axis| axis.name.clone()).collect(),
            position: points.iter().map(|point| point.position.0).collect(),
            velocity: points.iter().map(|point| point.velocity.0).collect(),
            acceleration: points.iter().map(|point| point.acceleration.0).collect(),
        })
    }

    fn is_active(&self, robot: &Robot) -> bool {
        usize::from(robot.state().control.active) == self.controller
    }

    pub(super) fn service(&mut self) -> &mut Service {
        &mut self.query
    }
}

fn failed(message: String) -> QueryTrajectoryStateResponse {
    QueryTrajectoryStateResponse { message, ..QueryTrajectoryStateResponse::default() }
}

/// State of a controller: positions of `reference` and `output` are the values sent to the drives;
/// velocities are taken from the path, as far as this node knows it.
fn message(
    state: &State,
    description: &Description,
    controller: usize,
    path: Option<&Path>,
) -> JointTrajectoryControllerState {
    let mut message = JointTrajectoryControllerState { speed_scaling_factor: 1.0, ..Default::default() };
    message.header = Header { stamp: WallClock::now().stamp(state.release_ns), ..Header::default() };
    if state.control.trajectory_status == TrajectoryStatus::Executing {
        let elapsed = Duration::from_ns(state.control.trajectory_elapsed_ns);
        message.reference.time_from_start = elapsed;
    }
    let way = Way::new(state, path);
    let axes = description.controllers.get(controller).map_or(&[][..], |it| &it.axes);
    for &index in axes {
        let (Some(axis), Some(about)) = (state.axes.get(index), description.axes.get(index)) else {
            continue;
        };
        message.joint_names.push(about.name.clone());
        let points = [&mut message.reference, &mut message.feedback, &mut message.error];
        way.push(index, axis, points);
        message.output.positions.push(axis.target_position);
    }
    message
}

/// Velocities and accelerations of the axes on their way; none where another program has given it.
pub(super) struct Way(Option<Vec<(usize, TrajectoryPoint)>>);

impl Way {
    /// Values of a cycle. `path` belongs to its trajectory.
    pub(super) fn new(state: &State, path: Option<&Path>) -> Self {
        if state.control.trajectory_status != TrajectoryStatus::Executing {
            return Self(Some(Vec::new()));
        }
        Self(path.map(|path| {
            // At its end it rests.
            let points = path.sample(state.release_ns).unwrap_or_default();
            path.axes.iter().copied().zip(points).collect()
        }))
    }

    /// Adds an axis to the points that say what it is to do, what it does, and the difference.
    pub(super) fn push(
        &self,
        index: usize,
        axis: &Axis,
        [desired, actual, error]: [&mut JointTrajectoryPoint; 3],
    ) {
        desired.positions.push(axis.target_position);
        actual.positions.push(axis.position);
        actual.velocities.push(axis.velocity);
        error.positions.push(axis.target_position - axis.position);
        if let Some(way) = &self.0 {
            let point = way.iter().find(|(it, _)| *it == index).map(|(_, point)| *point);
            let TrajectoryPoint { velocity, acceleration, .. } = point.unwrap_or_default();
            desired.velocities.push(velocity.0);
            desired.accelerations.push(acceleration.0);
            error.velocities.push(velocity.0 - axis.velocity);
        }
    }
}

#[cfg(test)]
mod tests {
    use ipc::description::{AxisDescription, ControllerDescription};
    use ipc::state::Control;
    use types::CyclicMode;

    use super::*;

    #[test]
    fn the_error_of_a_controller_is_what_was_asked_less_what_is() {
        let axis = |name: &str| AxisDescription::new(name, CyclicMode::Position, 2.0, 5.0);
        let controller = ControllerDescription { name: "arm".into(), kind: None, axes: vec![1] };
        let description = Description {
            axes: ["a", "b"].map(axis).to_vec(),
            controllers: vec![controller],
            ..Description::default()
        };
        let b = Axis { position: 1.0, velocity: -0.5, target_position: 1.25, ..Axis::default() };
        let control = Control { trajectory_elapsed_ns: 2_500_000_000, ..Control::default() };
        let mut state = State { axes: vec![Axis::default(), b], control, ..State::default() };
        let resting = message(&state, &description, 0, None);
        state.control.trajectory_status = TrajectoryStatus::Executing;
        let foreign = message(&state, &description, 0, None);
        assert_eq!(foreign.reference.velocities, [0.0; 0], "another program knows them");
        assert_eq!(foreign.reference.time_from_start, Duration { sec: 2, nanosec: 500_000_000 });
        let message = resting;
        assert_eq!(message.joint_names, ["b"]);
        let numbers = |point: &JointTrajectoryPoint| (point.positions[0], point.velocities[0]);
        assert_eq!(numbers(&message.reference), (1.25, 0.0));
        assert_eq!(numbers(&message.feedback), (1.0, -0.5));
        assert_eq!(numbers(&message.error), (0.25, 0.5));
        assert_eq!((&message.output.positions[..], message.speed_scaling_factor), (&[1.25][..], 1.0));
        assert_eq!(message.reference.time_from_start, Duration::default());
    }
}
