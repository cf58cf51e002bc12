//! Action server of FollowJointTrajectory.

use ipc::message::trajectory::{Abort, Outcome, Report};

use super::state::Way;
use super::{Addressee, Endpoints, Moment, Orders, give, now};
use crate::dds::service::{Origin, Request, Service};
use crate::dds::{DdsError, Quality, Writer};
use crate::messages::action::{
    CancelGoalRequest, FeedbackMessage, GetResultRequest, GetResultResponse, SendGoalRequest,
    SendGoalResponse, Status,
};
use crate::messages::basic::{Duration, Header, Time};
use crate::messages::trajectory::{FollowFeedback, FollowGoal, FollowResult, error_code};
use crate::robot::Robot;
use crate::trajectory::goals::{Answer, Goals};

/// Three services, two topics, and the goals.
pub(crate) struct Action {
    addressee: Addressee,
    send_goal: Service,
    cancel_goal: Service,
    get_result: Service,
    feedback: Writer,
    status: Writer,
    goals: Goals,
}

impl Action {
    pub(crate) fn new(
        endpoints: &mut Endpoints<'_>,
        addressee: Addressee,
        name: &str,
    ) -> Result<Self, DdsError> {
        let name = endpoints.action(name);
        let of = |part: &str| format!("{name}/_action/{part}");
        let kind = |part: &str| format!("control_msgs/action/FollowJointTrajectory_{part}");
        Ok(Self {
            addressee,
            send_goal: endpoints.serve(&of("send_goal"), &kind("SendGoal"))?,
            cancel_goal: endpoints.serve(&of("cancel_goal"), "action_msgs/CancelGoal")?,
            get_result: endpoints.serve(&of("get_result"), &kind("GetResult"))?,
            feedback: endpoints.publish(&of("feedback"), &kind("FeedbackMessage"), Quality::Reliable)?,
            status: endpoints.publish(&of("status"), "action_msgs/GoalStatusArray", Quality::Latched)?,
            goals: Goals::default(),
        })
    }

    pub(crate) fn poll(&mut self, index: usize, orders: &mut Orders, moment: &mut Moment<'_>) {
        while let Some(request) = self.send_goal.take() {
            if let Err(why) = self.take_up(&request, index, orders, moment) {
                moment.voice.warn("goal", format_args!("follow_joint_trajectory: goal refused: {why}"));
                self.send_goal.reply(request.origin(), &SendGoalResponse { accepted: false, stamp: now() });
            }
        }
        while let Some(request) = self.cancel_goal.take() {
            if let Ok(asked) = request.decode::<CancelGoalRequest>() {
                let (response, canceled) = self.goals.cancel(&asked);
                self.cancel_goal.reply(request.origin(), &response);
                canceled.into_iter().for_each(|order| orders.cancel(order));
            }
        }
        while let Some(request) = self.get_result.take() {
            if let Ok(asked) = request.decode::<GetResultRequest>()
                && let Answer::Now(status, result) = self.goals.want_result(asked.goal_id, request.origin())
            {
                self.tell_result(&[request.origin()], status, result);
            }
        }
    }

    /// Passes a goal on; the client is answered when the cycle has accepted or refused it.
    fn take_up(
        &mut self,
        request: &Request,
        index: usize,
        orders: &mut Orders,
        moment: &mut Moment<'_>,
    ) -> Result<(), String> {
        let asked = request.decode::<SendGoalRequest<FollowGoal>>()?;
        if self.goals.knows(asked.goal_id) {
            return Err("a goal of that id was given before".into());
        }
        let given = give(orders, &asked.goal, self.addressee, Some(index), moment);
        let (order, axes) = given.map_err(|invalid| invalid.why)?;
        self.goals.add(asked.goal_id, order, axes, request.origin());
        Ok(())
    }

    /// Applies a report to its goal.
    pub(crate) fn receive(&mut self, report: &Report, text: &str, now: Time) {
        let result = |error_code| FollowResult { error_code, error_string: text.to_owned() };
        let (status, result) = match report.outcome {
            Outcome::Accepted => {
                if let Some(asked) = self.goals.accept(report.id, now) {
                    self.send_goal.reply(asked, &SendGoalResponse { accepted: true, stamp: now });
                }
                return;
            }
            Outcome::Rejected(_) => {
                if let Some(asked) = self.goals.reject(report.id) {
                    self.send_goal.reply(asked, &SendGoalResponse { accepted: false, stamp: now });
                }
                return;
            }
            Outcome::Succeeded => (Status::Succeeded, result(error_code::SUCCESSFUL)),
            Outcome::Canceled => (Status::Canceled, result(error_code::SUCCESSFUL)),
            Outcome::Aborted(why @ Abort::Replaced) => (Status::Canceled, preempted(why)),
            Outcome::Aborted(why) => (Status::Aborted, result(why.result_code())),
        };
        let waiting = self.goals.finish(report.id, status, result.clone());
        self.tell_result(&waiting, status, result);
    }

    /// Ends the goals after the end of the cycle: refuses goals not yet accepted, aborts the
    /// others.
    pub(crate) fn lost(&mut self) {
        let orders: Vec<u64> = self.goals.active().map(|goal| goal.order).collect();
        for order in orders {
            if let Some(asked) = self.goals.reject(order) {
                self.send_goal.reply(asked, &SendGoalResponse { accepted: false, stamp: now() });
                continue;
            }
            let error_string = "the cycle has ended".to_owned();
            let result = FollowResult { error_code: error_code::INVALID_GOAL, error_string };
            let waiting = self.goals.finish(order, Status::Aborted, result.clone());
            self.tell_result(&waiting, Status::Aborted, result);
        }
    }

    pub(crate) fn is_active(&self) -> bool {
        self.goals.active().next().is_some()
    }

    /// Publishes feedback of the executing goals.
    pub(super) fn give_feedback(&self, robot: &mut Robot, orders: &Orders) {
        if !self.is_active() || !robot.refresh() {
            return;
        }
        let state = robot.state();
        let way = Way::new(state, orders.path(state.control.trajectory));
        for goal in self.goals.active().filter(|goal| goal.order == state.control.trajectory) {
            let mut feedback = FollowFeedback {
                header: Header { stamp: now(), ..Header::default() },
                ..Default::default()
            };
            let elapsed = Duration::from_ns(state.control.trajectory_elapsed_ns);
            for point in [&mut feedback.desired, &mut feedback.actual, &mut feedback.error] {
                point.time_from_start = elapsed;
            }
            for &index in &goal.axes {
                let (Some(axis), Some(about)) =
                    (state.axes.get(index), robot.description().axes.get(index))
                else {
                    continue;
                };
                feedback.joint_names.push(about.name.clone());
                let points = [&mut feedback.desired, &mut feedback.actual, &mut feedback.error];
                way.push(index, axis, points);
            }
            self.feedback.send(&FeedbackMessage { goal_id: goal.goal_id, feedback });
        }
    }

    /// Publishes the status topic, if a status changed.
    pub(crate) fn tell_status(&mut self) {
        if let Some(status) = self.goals.changed_status() {
            self.status.send(&status);
        }
    }

    pub(crate) fn services(&mut self) -> [&mut Service; 3] {
        [&mut self.send_goal, &mut self.cancel_goal, &mut self.get_result]
    }

    fn tell_result(&self, to: &[Origin], status: Status, result: FollowResult) {
        let response = GetResultResponse { status: status as i8, result };
        for &origin in to {
            self.get_result.reply(origin, &response);
        }
    }
}

/// Result of a goal replaced by another, as joint_trajectory_controller has it; the status is
/// *canceled*.
fn preempted(why: Abort) -> FollowResult {
    let error_string = "Current goal cancelled due to new incoming action.".to_owned();
    FollowResult { error_code: why.result_code(), error_string }
}
