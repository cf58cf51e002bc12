"""What a program asks of a running cycle."""

from __future__ import annotations

import math
import select
import time
import warnings
from collections.abc import Callable

import pytest
from conftest import TIMEOUT, Run, Start

import onbeat
from onbeat import Effort, Point, Position, Tolerance, Twist, Velocity


def drive(run: Run, command: onbeat.Command, twist: Twist, until: float) -> onbeat.State:
    """Commands this until the base has come so far ahead."""
    end = time.monotonic() + TIMEOUT
    while True:
        command.send(twist=twist, ttl=0.5)
        state = run.cycle.next_state(timeout=TIMEOUT)
        if state.base.pose[0] >= until:
            return state
        assert time.monotonic() < end, f"{state.base} {state.command} {state.axes}"
        time.sleep(0.02)


def test_a_twist_drives_the_base_and_it_stops_when_the_command_is_stale(start: Start) -> None:
    run = start("m4k.toml")
    run.until_enabled()
    with run.cycle.command() as command:
        moving = drive(run, command, Twist(x=0.3), 0.05)
    assert moving.command.freshness == "fresh" and moving.command.accepted > 0
    assert all(abs(axis.velocity) > 0.0 for axis in moving.axes)
    # Nobody holds the lease any more; the last command holds until its time is over.
    stopped = run.until(
        lambda state: state.command.freshness == "stale" and max(map(abs, state.velocities)) < 0.05
    )
    assert stopped.base.pose[0] > 0.05 and abs(stopped.base.pose[1]) < 0.05


def test_targets_of_axes_are_named_or_listed(start: Start) -> None:
    run = start("m4k.toml")
    run.until_enabled()
    with run.cycle.requests() as requests:
        requests.switch_controller("wheels", timeout=TIMEOUT)
    assert run.cycle.description.controllers[run.cycle.next_state(timeout=TIMEOUT).control.active].name == "wheels"
    with run.cycle.command() as command:
        end = time.monotonic() + TIMEOUT
        while run.cycle.next_state(timeout=TIMEOUT).velocities[1] < 0.5:
            command.send(axes={"right-wheel": Velocity(1.0)}, ttl=0.5)
            assert time.monotonic() < end
        assert abs(run.cycle.state().velocities[0]) < 0.2, "nothing was asked of the left wheel"
        command.send(axes=[Velocity(0.0), None], ttl=0.5)
        with pytest.raises(KeyError, match="there are: left-wheel"):
            command.send(axes={"tail": Velocity(1.0)}, ttl=0.5)
        with pytest.raises(onbeat.CommandError, match="for 1 axes, the robot has 2"):
            command.send(axes=[None], ttl=0.5)
        with pytest.raises(TypeError, match="expected a Position"):
            command.send(axes=[1.0, None], ttl=0.5)  # type: ignore[list-item]
        with pytest.raises(ValueError, match="ttl is -1"):
            command.send(ttl=-1.0)


@pytest.mark.parametrize(
    ("axes", "why"),
    [
        ({"left-wheel": Position(1.0)}, "in csv it takes velocities"),
        ({"left-wheel": Effort(1e9)}, "in csv it takes velocities"),
        # Controller `base` is active, `wheels` would follow it.
        ({"left-wheel": Velocity(1.0)}, "no target that the active controller follows"),
    ],
)
def test_what_an_axis_must_not_do_is_refused_counted_and_moves_nothing(
    start: Start, axes: dict[str, onbeat.Target], why: str
) -> None:
    run = start("m4k.toml")
    before = run.until_enabled()
    with run.cycle.command() as command:
        command.send(axes=axes, ttl=0.5)
        state = run.until(lambda state: state.command.refused > before.command.refused)
        warned = pytest.warns(onbeat.CommandWarning, match=f'before this one: axis "left-wheel": .*{why}')
        with warned, pytest.raises(onbeat.CommandError, match=f'axis "left-wheel": .*{why}'):
            command.send(axes=axes, ttl=0.5, timeout=TIMEOUT)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            command.send(twist=Twist(), ttl=0.5)
    assert state.command.last_refusal is not None and why in state.command.last_refusal
    assert state.command.last_refused_axis == 0
    assert list(state.positions) == pytest.approx(list(before.positions), abs=0.01)


def test_a_command_is_taken_or_raises(start: Start) -> None:
    run = start("m4k.toml")
    run.until_enabled()
    with run.cycle.command() as command:
        for twist in (Twist(x=0.1), Twist()):
            sequence = command.send(twist=twist, ttl=0.5, timeout=TIMEOUT)
            assert run.cycle.state().command.sequence == sequence
        with pytest.raises(onbeat.CommandError, match="the cycle refused it: "):
            command.send(axes={"left-wheel": Position(1.0)}, ttl=0.5, timeout=TIMEOUT)
        command.send(twist=Twist(), ttl=0.5, timeout=TIMEOUT)
        for number in (math.nan, math.inf, -math.inf):
            with pytest.raises(ValueError, match="axes: found -?(nan|inf), expected finite numbers"):
                command.send(axes={"left-wheel": Velocity(number)}, ttl=0.5)
            with pytest.raises(ValueError, match="twist: "):
                command.send(twist=Twist(yaw=number), ttl=0.5)
            with pytest.raises(ValueError, match="pose: "):
                command.send(pose=onbeat.Pose((0.0, number, 0.0)), ttl=0.5)
        assert run.cycle.state().command.refused == 1, "they were not even sent"


def test_the_lease_is_one_programs_at_a_time_and_given_back(start: Start) -> None:
    run = start("m4k.toml")
    with run.cycle.command() as command:
        with pytest.raises(onbeat.LeaseError, match=f"process .* gives the commands"):
            run.cycle.command()
    assert command.closed
    with pytest.raises(onbeat.LeaseError, match="given back"):
        command.send(ttl=0.1)
    run.cycle.command().close()


def test_requests_disable_and_enable_drives_and_say_why_not(start: Start) -> None:
    run = start("m4k.toml")
    run.until_enabled()
    with run.cycle.requests() as requests:
        with pytest.raises(onbeat.PortError, match="has port `control` open"):
            run.cycle.requests()
        requests.disable(timeout=TIMEOUT)
        run.until(lambda state: all(axis.drive_state != "Operation enabled" for axis in state.axes))
        requests.enable(timeout=TIMEOUT)
        run.until_enabled()
        requests.stop(timeout=TIMEOUT)
        requests.deactivate(timeout=TIMEOUT)
        run.until(lambda state: state.control.active >= len(run.cycle.description.controllers))
        requests.switch_controller("base", timeout=TIMEOUT)
        run.until(lambda state: state.control.active == 0)
        with pytest.raises(onbeat.RequestRefusedError, match="no controller of that index"):
            requests.switch_controller(99, timeout=TIMEOUT)
        with pytest.raises(KeyError, match="there are: base, wheels"):
            requests.switch_controller("legs")
    run.cycle.requests().close()


def outcome(run: Run, motion: Callable[[], str]) -> str:
    """What a motion comes to, and once more where the machine stood still meanwhile: three cycles without process data end it."""
    end = time.monotonic() + TIMEOUT
    while True:
        run.until_enabled()
        outages = run.outages()
        found = motion()
        if found != "aborted" or time.monotonic() > end:
            return found
        # The log has the outage some milliseconds later.
        while run.outages() == outages:
            assert time.monotonic() < end, f"aborted without an outage: {run.log.read_text()}"
            time.sleep(0.05)


def test_a_trajectory_succeeds_is_canceled_and_is_rejected(start: Start) -> None:
    run = start("arm.toml")
    state = run.until_enabled()
    names = [axis.name for axis in run.cycle.description.axes[:2]]
    here = list(state.positions[:2])
    there = [here[0] + 0.2, here[1] - 0.1]
    with run.cycle.trajectories() as trajectories:

        def arrives() -> str:
            accepted = trajectories.follow(
                names,
                [Point(1.0, there)],
                tolerances={name: Tolerance(path_position=-1.0) for name in names},
                goal_time=-1.0,
                timeout=TIMEOUT,
            )
            return accepted.wait(timeout=TIMEOUT).outcome

        assert outcome(run, arrives) == "succeeded"
        state = run.cycle.next_state(timeout=TIMEOUT)
        assert list(state.positions[:2]) == pytest.approx(there, abs=0.02)
        assert state.control.trajectory_status == "succeeded"

        def canceled() -> str:
            back = trajectories.follow(names, [Point(20.0, here)], timeout=TIMEOUT)
            try:
                return back.wait(timeout=0.0).outcome
            except TimeoutError:
                back.cancel()
            return back.wait(timeout=TIMEOUT).outcome

        assert outcome(run, canceled) == "canceled"

        with pytest.raises(onbeat.RequestRefusedError, match="behind the limits"):
            trajectories.follow(names, [Point(1000.0, [9.0, 0.0])], timeout=TIMEOUT)
        with pytest.raises(ValueError, match="point 0: expected positions of 2 axes, found 1"):
            trajectories.follow(names, [Point(1.0, [0.0])])


def test_a_port_is_a_file_that_can_be_polled(start: Start) -> None:
    run = start("arm.toml")
    with pytest.raises(onbeat.PortError, match="there is no port `nothing`; there are: control, stop, trajectory"):
        run.cycle.port("nothing")
    with run.cycle.port("control") as port:
        assert (port.name, port.kind) == ("control", "message")
        assert select.select([port], [], [], 0.0)[0] == []
        assert port.read(timeout=0.0) is None
        # No message this cycle reads: it is refused, and that is an answer.
        port.write(b"x" * port.size)
        assert select.select([port], [], [], TIMEOUT)[0] == [port]
        reply = port.read(timeout=TIMEOUT)
        assert reply is not None and len(reply) == port.size
        with pytest.raises(ValueError, match="the port takes messages of 1 to"):
            port.write(b"x" * (port.size + 1))
    assert port.closed
    with pytest.raises(ValueError, match="closed"):
        port.fileno()


def test_a_pose_moves_the_tool_of_an_arm_and_one_that_cannot_be_is_refused(start: Start) -> None:
    run = start("arm.toml")
    run.until_enabled()
    with run.cycle.requests() as requests:
        requests.switch_controller("tool", timeout=TIMEOUT)
    with run.cycle.command() as command:
        command.send(pose=onbeat.Pose((0.3, 0.0, 0.5), (2.0, 0.0, 0.0, 0.0)), ttl=0.5)
        refused = run.until(lambda state: state.command.refused == 1)
        assert "quaternion" in str(refused.command.last_refusal)
        command.send(pose=onbeat.Pose((3.0, 0.0, 0.0)), ttl=0.5)
        refused = run.until(lambda state: state.command.refused == 2)
        assert max(map(abs, refused.velocities)) < 0.01
        # Stretched along x at the start: back and down, within its plane.
        end = time.monotonic() + TIMEOUT
        while max(map(abs, run.cycle.next_state(timeout=TIMEOUT).positions)) < 0.2:
            command.send(pose=onbeat.Pose(TOOL), ttl=0.5)
            assert time.monotonic() < end, run.cycle.state().command
            time.sleep(0.02)


TOOL = (0.50, 0.0, 0.47)
"""m, in the frame of the arm's base link."""
