"""An arm of six joints: trajectories by action and by topic, joint commands, its description."""

import math
import os
import time
import uuid

import ros_services as services
import ros_types as ros
from robot_processes import Robot
from ros_peer import LATCHED, Client, Judged, Node, matched, until

# action_msgs/GoalStatus
EXECUTING, CANCELING, SUCCEEDED, CANCELED, ABORTED = 2, 3, 4, 5, 6
PATH_TOLERANCE_VIOLATED, INVALID_GOAL = -4, -1
# controller_manager_msgs/SwitchController: a controller that is in the way is deactivated.
FORCE_AUTO = 4


def judge(onbeat, bridge, robot, folder):
    node = Node(int(os.environ["ROS_DOMAIN_ID"]))
    with Robot(onbeat, bridge, robot, folder) as processes:
        arm = Arm(node)
        processes.judge("arm", CHECKS, arm)


class Arm:
    def __init__(self, node):
        self.node = node
        self.joints = node.reader("/joint_states", ros.JointState)
        self.log = node.reader("/rosout", ros.Log, LATCHED)
        self.trajectory = node.writer("/joint_trajectory", ros.JointTrajectory)
        self.commands = node.writer("/joint_commands", ros.JointState)
        self.action = Action(node, "/trajectories/follow_joint_trajectory")
        self.names = self.joints.next("/joint_states").name

    def positions(self):
        state = self.joints.newest("/joint_states")
        return dict(zip(state.name, state.position))

    def rests(self, what):
        """Waits until it has stood still for a second: on a loaded machine commands may still be on their way."""
        last, still = self.joints.newest("/joint_states"), 0

        def stands():
            nonlocal last, still
            for now in self.joints.take():
                stays = max(abs(a - b) for a, b in zip(last.position, now.position)) < 2e-3
                still = still + 1 if stays else 0
                last = last if stays else now
            return still >= 100

        until(f"standstill {what}", stands)
        return dict(zip(self.names, last.position))

    def call(self, name, kind, **fields):
        return Client(self.node, name, *kind).call(**fields)

    def activate(self, controller):
        reply = self.call(
            "/controller_manager/switch_controller",
            services.SWITCH_CONTROLLER,
            activate_controllers=[controller],
            strictness=FORCE_AUTO,
        )
        if not reply.ok:
            raise Judged(f"controller {controller} cannot be activated: {reply.message}")

    def motion(self, names, targets, seconds):
        """A trajectory from where it stands to `targets`, in two points."""
        here = self.positions()
        middle = [(here[name] + target) / 2.0 for name, target in zip(names, targets)]
        still = [0.0] * len(names)
        speeds = [1.5 * (target - here[name]) / seconds for name, target in zip(names, targets)]
        point = lambda positions, velocities, at: ros.JointTrajectoryPoint(
            positions, velocities, [], [], ros.Duration(int(at), int(at % 1.0 * 1e9))
        )
        points = [point(middle, speeds, seconds / 2.0), point(list(targets), still, seconds)]
        return ros.JointTrajectory(ros.Header(), list(names), points)


class Action:
    """A client of FollowJointTrajectory."""

    def __init__(self, node, name):
        self.goal = Client(node, f"{name}/_action/send_goal", *services.SEND_GOAL)
        self.result = Client(node, f"{name}/_action/get_result", *services.GET_RESULT)
        self.cancel = Client(node, f"{name}/_action/cancel_goal", *services.CANCEL_GOAL)
        self.feedback = node.reader(f"{name}/_action/feedback", ros.FollowFeedbackMessage)
        self.status = node.reader(f"{name}/_action/status", ros.GoalStatusArray, LATCHED)

    def send(self, goal):
        """Sends a goal; its id if it was accepted."""
        goal_id = ros.UUID(uuid.uuid4().bytes)
        reply = self.goal.call(goal_id=goal_id, goal=goal)
        return goal_id if reply.accepted else None

    def accepted(self, goal):
        return self.send(goal) or refuse(f"a goal was refused: {goal}")

    def comes_to(self, goal_id, status):
        """Waits until the status topic says so."""
        there = lambda known: any((it.goal_info.goal_id, it.status) == (goal_id, status) for it in known.status_list)
        self.status.next(f"status {status}", there)

    def ends(self, goal_id, status, number):
        reply = self.result.reply(number)
        if reply.status != status:
            refuse(f"expected status {status}, found {reply}")
        self.comes_to(goal_id, status)
        return reply.result


def refuse(why):
    raise Judged(why)


def describes_itself(arm):
    """its description comes to whoever asks late, and names the joints of its joint states"""
    text = arm.node.reader("/robot_description", ros.String, LATCHED).next("/robot_description").data
    if "<robot" not in text or not all(f'"{name}"' in text for name in arm.names):
        raise Judged(f"joints {arm.names} are not those of its description: {text[:200]}")


def succeeds(arm):
    """a goal is accepted, executed with feedback, and succeeds where it should be"""
    names, here = arm.names[:2], arm.positions()
    targets = [here[name] + far for name, far in zip(names, [0.3, -0.2])]
    goal = ros.FollowGoal(arm.motion(names, targets, 1.5))
    goal_id = arm.action.accepted(goal)
    number = arm.action.result.send(goal_id=goal_id)
    arm.action.comes_to(goal_id, EXECUTING)
    moving = lambda it: it.goal_id == goal_id and abs(it.feedback.actual.velocities[0]) > 0.02
    told = arm.action.feedback.next("feedback of a moving joint", moving).feedback
    if told.joint_names != names or len(told.desired.positions) != 2:
        raise Judged(f"feedback of other joints: {told}")
    result = arm.action.ends(goal_id, SUCCEEDED, number)
    if result.error_code != 0:
        raise Judged(f"it succeeded with an error: {result}")
    there = arm.rests("after it succeeded")
    if any(abs(there[name] - target) > 0.02 for name, target in zip(names, targets)):
        raise Judged(f"it should be at {targets} and is at {there}")
    again = arm.action.result.call(goal_id=goal_id)
    if again.status != SUCCEEDED:
        raise Judged(f"whoever asks later is told something else: {again}")


def is_canceled(arm):
    """a goal is canceled on the way: it comes to rest there"""
    name, here = arm.names[0], arm.positions()[arm.names[0]]
    goal_id = arm.action.accepted(ros.FollowGoal(arm.motion([name], [here + 2.0], 8.0)))
    number = arm.action.result.send(goal_id=goal_id)
    until("that it moves", lambda: arm.positions()[name] > here + 0.05)
    reply = arm.action.cancel.call(goal_info=ros.GoalInfo(goal_id))
    if reply.return_code != 0 or [it.goal_id for it in reply.goals_canceling] != [goal_id]:
        raise Judged(f"it cannot be canceled: {reply}")
    arm.action.ends(goal_id, CANCELED, number)
    there = arm.rests("after it was canceled")[name]
    if not here + 0.05 < there < here + 1.5:
        raise Judged(f"canceled on the way from {here} to {here + 2.0}, it rests at {there}")
    unknown = arm.action.cancel.call(goal_info=ros.GoalInfo(ros.UUID(bytes([7] * 16))))
    if unknown.return_code != 2:
        raise Judged(f"a goal nobody gave was canceled: {unknown}")


def aborts(arm):
    """a goal whose tolerance cannot be kept is aborted with ROS's code for that"""
    name, here = arm.names[0], arm.positions()[arm.names[0]]
    goal = ros.FollowGoal(arm.motion([name], [here - 1.0], 1.2))
    goal.path_tolerance = [ros.JointTolerance(name, position=1e-7)]
    goal_id = arm.action.accepted(goal)
    result = arm.action.ends(goal_id, ABORTED, arm.action.result.send(goal_id=goal_id))
    if result.error_code != PATH_TOLERANCE_VIOLATED or name not in result.error_string:
        raise Judged(f"aborted for another reason: {result}")
    arm.rests("after it was aborted")


def is_replaced(arm):
    """a goal takes the place of the one before, which is canceled as joint_trajectory_controller does it"""
    name, here = arm.names[1], arm.positions()[arm.names[1]]
    first = arm.action.accepted(ros.FollowGoal(arm.motion([name], [here + 1.0], 6.0)))
    first_result = arm.action.result.send(goal_id=first)
    until("that it moves", lambda: abs(arm.positions()[name] - here) > 0.02)
    second = arm.action.accepted(ros.FollowGoal(arm.motion([name], [here], 2.0)))
    second_result = arm.action.result.send(goal_id=second)
    result = arm.action.ends(first, CANCELED, first_result)
    if result.error_code != INVALID_GOAL:
        raise Judged(f"replaced, and told with another code: {result}")
    arm.action.ends(second, SUCCEEDED, second_result)


def refuses_goals(arm):
    """goals that cannot be are refused, and move nothing"""
    name = arm.names[0]
    before = arm.rests("before it is asked for nonsense")
    far, odd, empty = (arm.motion([name], [before[name] + 0.2], 1.0) for _ in range(3))
    far.points[1].positions = [50.0]
    odd.points[0].positions = [math.nan]
    empty.points = []
    stranger = arm.motion([name], [0.0], 1.0)
    stranger.joint_names = ["nobody"]
    for what, motion in [("too far", far), ("NaN", odd), ("no points", empty), ("an unknown joint", stranger)]:
        arm.log.take()
        if arm.action.send(ros.FollowGoal(motion)):
            raise Judged(f"a goal with {what} was accepted")
    arm.log.take()
    arm.trajectory.write(far)
    arm.log.next("a warning of a trajectory on the topic", lambda log: "joint_trajectory" in log.msg)
    after = arm.rests("when it was asked for nonsense")
    if max(abs(after[name] - before[name]) for name in arm.names) > 2e-3:
        raise Judged(f"nonsense moved it from {before} to {after}")


def follows_the_topic(arm):
    """a trajectory on the topic moves it"""
    name = arm.names[2]
    target = arm.positions()[name] + 0.25
    until("a reader of /joint_trajectory", lambda: matched(arm.trajectory))
    arm.trajectory.write(arm.motion([name], [target], 1.0))
    until("that it is there", lambda: abs(arm.positions()[name] - target) < 0.02)
    arm.rests("after the trajectory")


def follows_joint_commands(arm):
    """with another controller it follows joint commands, and no goals; back again it follows goals"""
    arm.activate("positions")
    if arm.action.send(ros.FollowGoal(arm.motion(arm.names[:1], [0.0], 1.0))):
        raise Judged("a goal was accepted by a controller that is not active")
    name = arm.names[3]
    start = arm.rests("before joint commands")[name]
    deadline = time.monotonic() + 30.0
    # Away from the limit that it goes to below, and may have got to already.
    target, end = start, start + (0.15 if start < HIGHEST / 2.0 else -0.15)
    while abs(arm.positions()[name] - start) < 0.1:
        if time.monotonic() > deadline:
            raise Judged(f"joint commands of {name} move nothing")
        target = min(target + 0.01, end) if end > start else max(target - 0.01, end)
        arm.commands.write(ros.JointState(ros.Header(), [name], [target]))
        time.sleep(0.02)
    arm.rests("when nobody commands it any more")
    for what, message in [
        ("NaN", ros.JointState(ros.Header(), [name], [math.nan])),
        ("an unknown joint", ros.JointState(ros.Header(), ["nobody"], [0.0])),
    ]:
        before = arm.rests(f"before {what}")[name]
        for _ in range(10):
            arm.commands.write(message)
            time.sleep(0.02)
        after = arm.rests(what)[name]
        if abs(after - before) > 2e-3:
            raise Judged(f"{what} moved {name} from {before} to {after}")
    goes_no_farther_than_its_limit(arm, name)
    arm.activate("trajectories")
    goal_id = arm.action.accepted(ros.FollowGoal(arm.motion([name], [start], 3.0)))
    arm.action.ends(goal_id, SUCCEEDED, arm.action.result.send(goal_id=goal_id))


def goes_no_farther_than_its_limit(arm, name):
    """commanded beyond its limit it goes to the limit, with a warning"""
    arm.log.take()
    deadline = time.monotonic() + 30.0
    while arm.positions()[name] < HIGHEST - 0.01:
        if time.monotonic() > deadline:
            raise Judged(f"commanded to 10 rad, {name} does not get to its limit of {HIGHEST} rad: {arm.positions()}")
        arm.commands.write(ros.JointState(ros.Header(), [name], [10.0]))
        time.sleep(0.02)
    arm.log.next("a warning of the limit", lambda log: log.level == 30 and "clamped" in log.msg)
    there = arm.rests("at its limit")[name]
    if there > HIGHEST + 0.01:
        raise Judged(f"commanded to 10 rad, {name} is at {there}, beyond its limit of {HIGHEST} rad")


# Limit of every joint in examples/arm.toml, rad.
HIGHEST = 2.9

CHECKS = [
    describes_itself,
    succeeds,
    is_canceled,
    aborts,
    is_replaced,
    refuses_goals,
    follows_the_topic,
    follows_joint_commands,
]
