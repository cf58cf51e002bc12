//! Trajectories by topic and by the action FollowJointTrajectory, through the port `trajectory`.
//!
//! There is one topic and one action for the active controller - `joint_trajectory`,
//! `follow_joint_trajectory` - and one of each for every controller that follows trajectories,
//! below its name, as MoveIt looks for them.

mod action;
mod path;
mod port;
mod state;

use ipc::channel::Channel;
use ipc::description::Description;
use ipc::message::trajectory::{Outcome, Report};

use self::action::Action;
use self::port::Orders;
use self::state::ControllerState;
use super::commands::attached;
use super::{Endpoints, Moment, Timer};
use crate::clock::WallClock;
use crate::dds::service::Service;
use crate::dds::{DdsError, Quality, Reader};
use crate::messages::basic::Time;
use crate::messages::trajectory::{FollowGoal, JointTrajectory, error_code};
use crate::robot::Robot;
use crate::trajectory::orders::{self, Invalid};
use types::ControllerKind;

/// Readers, actions and the port.
pub(crate) struct Trajectories {
    topics: Vec<(Addressee, Reader)>,
    actions: Vec<Action>,
    states: Vec<ControllerState>,
    orders: Orders,
    feedback: Timer,
    state_timer: Timer,
    /// Cycle that was published last.
    state_cycle: Option<u64>,
}

/// Controller that a trajectory is for; `None` for the active one.
pub(crate) type Addressee = Option<usize>;

impl Trajectories {
    pub(crate) fn new(endpoints: &mut Endpoints<'_>, robot: &Description) -> Result<Self, DdsError> {
        let controllers = robot.controllers.iter().enumerate();
        let mut names: Vec<(Addressee, String)> = controllers
            .filter(|(_, controller)| controller.kind == FOLLOWS)
            .map(|(index, controller)| (Some(index), format!("{}/", controller.name)))
            .collect();
        if !names.is_empty() {
            names.insert(0, (None, String::new()));
        }
        let (mut topics, mut actions, mut states) = (Vec::new(), Vec::new(), Vec::new());
        for (addressee, prefix) in names {
            let kind = "trajectory_msgs/JointTrajectory";
            let topic = format!("{prefix}joint_trajectory");
            topics.push((addressee, endpoints.subscribe(&topic, kind, Quality::Reliable)?));
            actions.push(Action::new(endpoints, addressee, &format!("{prefix}follow_joint_trajectory"))?);
            if let Some(controller) = addressee {
                states.push(ControllerState::new(endpoints, controller, prefix.trim_end_matches('/'))?);
            }
        }
        Ok(Self {
            topics,
            actions,
            states,
            orders: Orders::default(),
            feedback: Timer::default(),
            state_timer: Timer::default(),
            state_cycle: None,
        })
    }

    pub(crate) fn poll(&mut self, moment: &mut Moment<'_>, now_ns: u64) {
        for (addressee, reader) in &self.topics {
            // Each one counts, but each replaces the one before.
            while let Some(sample) = reader.take() {
                let goal = sample.decode::<JointTrajectory>().map(orders::bare);
                let goal = goal.map_err(|why| Invalid { code: error_code::INVALID_GOAL, why });
                let given = goal.and_then(|goal| give(&mut self.orders, &goal, *addressee, None, moment));
                if let Err(invalid) = given {
                    let why = invalid.why;
                    moment.voice.warn("joint_trajectory", format_args!("joint_trajectory: refused: {why}"));
                }
            }
        }
        for (index, action) in self.actions.iter_mut().enumerate() {
            action.poll(index, &mut self.orders, moment);
        }
        while let Some((action, report)) = self.orders.next(moment) {
            let text = report_text(&report, moment.robot.as_deref());
            match action.and_then(|index| self.actions.get_mut(index)) {
                Some(action) => action.receive(&report, &text, now()),
                None => say(&report, &text, moment),
            }
        }
        if let Some(robot) = moment.robot.as_deref_mut()
            && self.orders.is_running()
            && robot.refresh()
        {
            self.orders.look(robot.state());
        }
        let feedback = self.feedback.due(now_ns, moment.settings.feedback_rate);
        for action in &mut self.actions {
            if let Some(robot) = moment.robot.as_deref_mut().filter(|_| feedback) {
                action.give_feedback(robot, &self.orders);
            }
            action.tell_status();
        }
        self.tell_states(moment, now_ns);
    }

    /// Publishes the states of the controllers, and answers questions about their trajectories.
    fn tell_states(&mut self, moment: &mut Moment<'_>, now_ns: u64) {
        let due =
            !self.states.is_empty() && self.state_timer.due(now_ns, moment.settings.controller_state_rate);
        if let Some(robot) = moment.robot.as_deref_mut()
            && due
            && robot.refresh()
        {
            let cycle = Some(robot.state().cycle);
            if self.state_cycle != cycle {
                self.state_cycle = cycle;
                self.states.iter().for_each(|state| state.tell(robot, &self.orders));
            }
        }
        for state in &self.states {
            state.answer(moment.robot.as_deref(), &self.orders);
        }
    }

    /// Ends all goals, after the end of the cycle.
    pub(crate) fn lost(&mut self) {
        self.orders.clear();
        for action in &mut self.actions {
            action.lost();
            action.tell_status();
        }
    }

    /// Port, while it is open.
    pub(crate) fn channel(&self) -> Option<&Channel> {
        self.orders.channel()
    }

    /// True if orders wait for room.
    pub(crate) fn is_pressed(&self) -> bool {
        self.orders.is_pressed()
    }

    /// Time of the next feedback, if a goal executes, or state of a controller.
    pub(crate) fn next(&self) -> Option<u64> {
        let feedback = self.actions.iter().any(Action::is_active).then(|| self.feedback.next());
        let state = (!self.states.is_empty()).then(|| self.state_timer.next());
        feedback.into_iter().chain(state).min()
    }

    pub(crate) fn readers(&mut self) -> Vec<&mut Reader> {
        let mut readers: Vec<_> = self.topics.iter_mut().map(|(_, reader)| reader).collect();
        readers.extend(self.actions.iter_mut().flat_map(Action::services).map(Service::requests));
        readers.extend(self.states.iter_mut().map(ControllerState::service).map(Service::requests));
        readers
    }
}

/// Kind of the controllers that follow trajectories.
const FOLLOWS: Option<ControllerKind> = Some(ControllerKind::JointTrajectory);

/// Sends a trajectory to the cycle; returns its number at the port, and its axes in the order of
/// its joints. `action` is the action that gets its reports.
fn give(
    port: &mut Orders,
    goal: &FollowGoal,
    addressee: Addressee,
    action: Option<usize>,
    moment: &mut Moment<'_>,
) -> Result<(u64, Vec<usize>), Invalid> {
    let invalid = |why: String| Invalid { code: error_code::INVALID_GOAL, why };
    moment.lifecycle.may_move().map_err(invalid)?;
    let robot = attached(&mut moment.robot).map_err(invalid)?;
    robot.refresh();
    let start_ns = start(goal.trajectory.header.stamp)?;
    let description = robot.description();
    let active = usize::from(robot.state().control.active);
    let index = addressee.unwrap_or(active);
    let controller = description.controllers.get(index).filter(|controller| controller.kind == FOLLOWS);
    let controller =
        controller.ok_or_else(|| invalid("the active controller follows no trajectories".into()))?;
    if index != active {
        return Err(invalid(format!("controller `{}` is not active", controller.name)));
    }
    let id = port.next_id();
    let (orders, axes) = orders::of_goal(goal, id, start_ns, controller, description)?;
    port.give(id, &orders, action, robot).map_err(invalid)?;
    Ok((id, axes))
}

/// Start of a trajectory with this stamp; `None` for at once.
fn start(stamp: Time) -> Result<Option<u64>, Invalid> {
    if stamp == Time::default() {
        return Ok(None);
    }
    let old = || Invalid {
        code: error_code::OLD_HEADER_TIMESTAMP,
        why: "its time stamp is older than this machine's last start".into(),
    };
    WallClock::now().instant(stamp).map(Some).ok_or_else(old)
}

fn now() -> Time {
    WallClock::now().stamp(crate::clock::monotonic_ns())
}

fn say(report: &Report, text: &str, moment: &Moment<'_>) {
    match report.outcome {
        Outcome::Accepted | Outcome::Succeeded | Outcome::Canceled => {
            moment.voice.info("trajectory", format_args!("joint_trajectory: {text}"));
        }
        Outcome::Rejected(_) | Outcome::Aborted(_) => {
            moment.voice.warn("trajectory", format_args!("joint_trajectory: {text}"));
        }
    }
}

/// Text of a report.
fn report_text(report: &Report, robot: Option<&Robot>) -> String {
    let mut text = match report.outcome {
        Outcome::Accepted => "accepted".to_owned(),
        Outcome::Succeeded => "the goal is reached".to_owned(),
        Outcome::Canceled => "canceled".to_owned(),
        Outcome::Rejected(why) => format!("refused: {why}"),
        Outcome::Aborted(why) => format!("aborted: {why}"),
    };
    if let Some(point) = report.point {
        text += &format!(", point {point}");
    }
    let axes = robot.map(|robot| robot.description().axes.as_slice()).unwrap_or_default();
    if let Some(axis) = report.axis.and_then(|axis| axes.get(axis as usize)) {
        text += &format!(", joint {}", axis.name);
    }
    if report.found != 0.0 || report.allowed != 0.0 {
        text += &format!(", found {}, allowed {}", report.found, report.allowed);
    }
    text
}

#[cfg(test)]
mod tests;
