//! Goals of one action: accepted, executing, canceling, done, as in the state machine of ROS 2
//! actions.

use crate::dds::service::Origin;
use crate::messages::action::{
    CancelCode, CancelGoalRequest, CancelGoalResponse, GoalId, GoalInfo, GoalStatus, GoalStatusArray,
    Status,
};
use crate::messages::basic::Time;
use crate::messages::trajectory::FollowResult;

/// A goal.
#[derive(Clone, Debug)]
pub(crate) struct Goal {
    pub(crate) goal_id: GoalId,
    /// Number of its trajectory at the port.
    pub(crate) order: u64,
    /// Its axes, in the order of its joints.
    pub(crate) axes: Vec<usize>,
    pub(crate) status: Status,
    pub(crate) result: FollowResult,
    accepted: Time,
    /// Request for acceptance that waits for its reply.
    asked: Option<Origin>,
    /// Requests for the result that wait for their replies.
    waiting: Vec<Origin>,
}

/// Goals that are remembered, in their order of arrival.
#[derive(Default)]
pub(crate) struct Goals {
    goals: Vec<Goal>,
    changed: bool,
}

/// Finished goals that are remembered: clients request a result soon or never.
const MOST_DONE: usize = 32;

/// Clients that may wait for one result.
const MOST_WAITING: usize = 64;

/// Answer to a request for a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Answer at once.
    Now(Status, FollowResult),
    /// Answer when the goal is done.
    Later,
}

impl Goals {
    /// True if a goal with this id is known: an id is used once.
    pub(crate) fn knows(&self, goal_id: GoalId) -> bool {
        self.goals.iter().any(|goal| goal.goal_id == goal_id)
    }

    /// Adds a goal after its orders were sent; `asked` is answered when they are accepted or
    /// refused.
    pub(crate) fn add(&mut self, goal_id: GoalId, order: u64, axes: Vec<usize>, asked: Origin) {
        let done = self.goals.iter().filter(|goal| goal.status.is_final()).count();
        let oldest = self.goals.iter().position(|goal| goal.status.is_final());
        if let Some(oldest) = oldest.filter(|_| done >= MOST_DONE) {
            self.goals.remove(oldest);
        }
        self.goals.push(Goal {
            goal_id,
            order,
            axes,
            status: Status::Unknown,
            result: FollowResult::default(),
            accepted: Time::default(),
            asked: Some(asked),
            waiting: Vec::new(),
        });
    }

    /// Marks the goal as accepted and executing; returns the client to be answered.
    pub(crate) fn accept(&mut self, order: u64, now: Time) -> Option<Origin> {
        let goal = self.goals.iter_mut().find(|goal| goal.order == order)?;
        let asked = goal.asked.take()?;
        (goal.status, goal.accepted) = (Status::Executing, now);
        self.changed = true;
        Some(asked)
    }

    /// Forgets a goal that was not accepted; returns the client to be answered.
    pub(crate) fn reject(&mut self, order: u64) -> Option<Origin> {
        let index = self.goals.iter().position(|goal| goal.order == order && goal.asked.is_some())?;
        self.goals.remove(index).asked
    }

    /// Marks the goal as done; returns the clients that wait for the result.
    pub(crate) fn finish(&mut self, order: u64, status: Status, result: FollowResult) -> Vec<Origin> {
        let active =
            |goal: &&mut Goal| goal.order == order && !goal.status.is_final() && goal.asked.is_none();
        let Some(goal) = self.goals.iter_mut().find(active) else {
            return Vec::new();
        };
        (goal.status, goal.result) = (status, result);
        self.changed = true;
        std::mem::take(&mut goal.waiting)
    }

    /// Registers a request for a result.
    pub(crate) fn want_result(&mut self, goal_id: GoalId, from: Origin) -> Answer {
        match self.goals.iter_mut().find(|goal| goal.goal_id == goal_id) {
            None => Answer::Now(Status::Unknown, FollowResult::default()),
            Some(goal) if goal.status.is_final() => Answer::Now(goal.status, goal.result.clone()),
            Some(goal) if goal.waiting.len() >= MOST_WAITING => {
                Answer::Now(Status::Unknown, FollowResult::default())
            }
            Some(goal) => {
                goal.waiting.push(from);
                Answer::Later
            }
        }
    }

    /// Cancels goals: returns the response, and the orders to cancel. A zero id means all goals, a
    /// time all that were accepted until then (action_msgs/CancelGoal).
    pub(crate) fn cancel(&mut self, request: &CancelGoalRequest) -> (CancelGoalResponse, Vec<u64>) {
        let GoalInfo { goal_id, stamp } = request.goal_info;
        let (any_id, any_time) = (goal_id == GoalId::default(), stamp == Time::default());
        let mut response = CancelGoalResponse::default();
        let mut orders = Vec::new();
        for goal in self.goals.iter_mut().filter(|goal| goal.asked.is_none()) {
            let named = !any_id && goal.goal_id == goal_id;
            let by_time = !any_time && goal.accepted.to_ns() <= stamp.to_ns();
            if !(named || by_time || any_id && any_time) || goal.status != Status::Executing {
                continue;
            }
            goal.status = Status::Canceling;
            self.changed = true;
            orders.push(goal.order);
            response.goals_canceling.push(GoalInfo { goal_id: goal.goal_id, stamp: goal.accepted });
        }
        let known = self.goals.iter().find(|goal| goal.goal_id == goal_id);
        let code = if !orders.is_empty() {
            CancelCode::None
        } else if any_id {
            CancelCode::Rejected
        } else {
            known.map_or(CancelCode::UnknownGoal, |goal| {
                if goal.status.is_final() { CancelCode::GoalTerminated } else { CancelCode::Rejected }
            })
        };
        response.return_code = code as i8;
        (response, orders)
    }

    /// Goals that are not done.
    pub(crate) fn active(&self) -> impl Iterator<Item = &Goal> {
        self.goals.iter().filter(|goal| !goal.status.is_final())
    }

    /// Status of all goals, if it changed since the last call.
    pub(crate) fn changed_status(&mut self) -> Option<GoalStatusArray> {
        std::mem::take(&mut self.changed).then(|| {
            let told = self.goals.iter().filter(|goal| goal.asked.is_none());
            let status = told.map(|goal| GoalStatus {
                goal_info: GoalInfo { goal_id: goal.goal_id, stamp: goal.accepted },
                status: goal.status as i8,
            });
            GoalStatusArray { status_list: status.collect() }
        })
    }
}

#[cfg(test)]
mod tests {
    use rustdds::GUID;

    use super::*;

    fn from(number: u8) -> Origin {
        Origin::Cyclone { client: GUID::default(), header: [number; 16] }
    }

    fn executing(goals: &mut Goals, number: u8) {
        goals.add([number; 16], number.into(), vec![0], from(number));
        assert_eq!(
            goals.accept(number.into(), Time { sec: number.into(), nanosec: 0 }),
            Some(from(number))
        );
    }

    fn cancel(goals: &mut Goals, goal_id: GoalId, sec: i32) -> (i8, Vec<u64>) {
        let goal_info = GoalInfo { goal_id, stamp: Time { sec, nanosec: 0 } };
        let (response, orders) = goals.cancel(&CancelGoalRequest { goal_info });
        assert_eq!(response.goals_canceling.len(), orders.len());
        (response.return_code, orders)
    }

    #[test]
    fn a_result_reaches_waiting_and_later_clients() {
        let mut goals = Goals::default();
        executing(&mut goals, 1);
        assert_eq!(goals.changed_status().unwrap().status_list[0].status, Status::Executing as i8);
        assert!(goals.changed_status().is_none());
        assert_eq!(goals.want_result([1; 16], from(8)), Answer::Later);
        assert_eq!(goals.want_result([1; 16], from(9)), Answer::Later);
        let result = FollowResult { error_code: 0, error_string: "there".into() };
        assert_eq!(goals.finish(1, Status::Succeeded, result.clone()), [from(8), from(9)]);
        assert_eq!(goals.want_result([1; 16], from(7)), Answer::Now(Status::Succeeded, result));
        assert_eq!(goals.finish(1, Status::Aborted, FollowResult::default()), [], "it is done once");
        assert_eq!(
            goals.want_result([2; 16], from(7)),
            Answer::Now(Status::Unknown, FollowResult::default())
        );
        assert_eq!(goals.active().count(), 0);
    }

    #[test]
    fn a_goal_that_is_rejected_leaves_no_trace() {
        let mut goals = Goals::default();
        goals.add([1; 16], 1, vec![], from(1));
        assert!(goals.knows([1; 16]));
        assert_eq!(cancel(&mut goals, GoalId::default(), 0).1, [0_u64; 0], "it is none yet");
        assert_eq!(goals.reject(1), Some(from(1)));
        assert!(!goals.knows([1; 16]));
        assert_eq!(goals.reject(1), None);
        assert!(goals.changed_status().is_none());
    }

    #[test]
    fn cancel_follows_the_rules_of_its_definition() {
        let mut goals = Goals::default();
        for number in 1..=4 {
            executing(&mut goals, number);
        }
        assert_eq!(cancel(&mut goals, [9; 16], 0), (CancelCode::UnknownGoal as i8, vec![]));
        assert_eq!(cancel(&mut goals, [4; 16], 0), (CancelCode::None as i8, vec![4]));
        assert_eq!(
            cancel(&mut goals, [4; 16], 0),
            (CancelCode::Rejected as i8, vec![]),
            "it is canceling already"
        );
        assert_eq!(
            cancel(&mut goals, GoalId::default(), 1),
            (CancelCode::None as i8, vec![1]),
            "all until then"
        );
        assert_eq!(cancel(&mut goals, GoalId::default(), 0), (CancelCode::None as i8, vec![2, 3]), "all");
        goals.finish(4, Status::Canceled, FollowResult::default());
        assert_eq!(cancel(&mut goals, [4; 16], 0), (CancelCode::GoalTerminated as i8, vec![]));
    }

    #[test]
    fn goals_without_end_are_forgotten_in_the_order_they_came() {
        let mut goals = Goals::default();
        for number in 0..=u8::MAX {
            executing(&mut goals, number);
            goals.finish(number.into(), Status::Succeeded, FollowResult::default());
        }
        assert_eq!(goals.goals.len(), MOST_DONE);
        assert!(goals.knows([u8::MAX; 16]) && !goals.knows([0; 16]));
    }
}
