"""A controller in a process of its own."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import TIMEOUT, ROOT, Start

import onbeat
from onbeat import Position, Velocity
from onbeat.controller import _MODES


@pytest.fixture
def robot(tmp_path: Path) -> str:
    """Six axes, four in csp and two in csv, whose controller is another process; a busy machine is no reason to stop."""
    text = (ROOT / "examples/six-axis.toml").read_text()
    text = text[: text.index("[controller]")] + '[controller]\nkind = "external"\nmax_late = 500\n'
    (tmp_path / "external.toml").write_text(text)
    return str(tmp_path / "external.toml")


def test_a_refused_priority_or_cpu_is_named(start: Start, robot: str) -> None:
    run = start(robot)
    with pytest.raises(OSError, match="the priority 0 of the controller process was refused"):
        run.cycle.controller(priority=0)
    with pytest.raises(OSError, match="the CPU 1000 of the controller process was refused"):
        run.cycle.controller(cpu=1000)


def test_enable_and_reset_fail_after_the_end_of_the_controller_process(start: Start, robot: str) -> None:
    run = start(robot)
    with run.cycle.controller() as controller:
        end = time.monotonic() + TIMEOUT
        for request in controller:
            here: list[onbeat.Target | None] = [Position(axis.target_position) for axis in request.axes[:4]]
            controller.answer(drives="enable", axes=[*here, Velocity(0.0), Velocity(0.0)])
            assert time.monotonic() < end, f"{request.axes}"
            if all(axis.phase == "following" for axis in request.axes):
                break
    run.until(lambda state: all(axis.phase != "following" for axis in state.axes))
    with run.cycle.requests() as requests:
        with pytest.raises(onbeat.RequestRefusedError, match="^`enable` was refused: no controller process"):
            requests.enable(timeout=TIMEOUT)
        with pytest.raises(onbeat.RequestRefusedError, match="^reset, but not ready: .*controller process"):
            requests.reset_faults(timeout=TIMEOUT)
        # A process that answers no more.
        with run.cycle.controller() as controller:
            for _, request in zip(range(20), controller, strict=False):
                here = [Position(axis.target_position) for axis in request.axes[:4]]
                controller.answer(drives="enable", axes=[*here, Velocity(0.0), Velocity(0.0)])
            run.until(lambda state: all(axis.phase != "following" for axis in state.axes))
            with pytest.raises(TimeoutError, match="within 0.6 s the cycle carried it out, but not all axes were ready"):
                requests.reset_faults(timeout=0.6)


def test_a_controller_process_moves_the_axes_until_it_gives_the_role_back(start: Start, robot: str) -> None:
    run = start(robot)
    with run.cycle.controller() as controller:
        with pytest.raises(onbeat.CommandError, match="nothing was asked yet"):
            controller.answer()
        with pytest.raises(onbeat.LeaseError, match="is the controller"):
            run.cycle.controller()
        positions = [0.0] * 4
        end = time.monotonic() + TIMEOUT
        for request in controller:
            assert time.monotonic() < end, f"{request.axes}"
            for axis, state in enumerate(request.axes[:4]):
                following = state.phase == "following"
                positions[axis] = positions[axis] + 0.1 * request.elapsed if following else state.target_position
            targets: list[onbeat.Target | None] = [Position(it) for it in positions]
            controller.answer(drives="enable", axes=[*targets, Velocity(0.2), None])
            assert request.command.freshness == "never" and request.command.axes == (None,) * 6
            assert request.deadline_ns > request.release_ns and not request.stopping
            if request.axes[0].position > 0.1 and request.axes[4].velocity > 0.1:
                break
        assert controller.answered > 10
        assert isinstance(request.signal("drive-1.statusword").value, int)
        # Asleep for too long: it is told how many cycles it has missed, and that it is late.
        request = controller.wait(TIMEOUT)
        time.sleep(0.05)
        assert not controller.answer()
        assert controller.late > 0
        before = controller.missed
        time.sleep(0.05)
        controller.wait(TIMEOUT)
        controller.wait(TIMEOUT)
        assert controller.missed > before
    # Gone: the axes are stopped, the bus stays.
    stopped = run.until(lambda state: all(axis.stop is not None for axis in state.axes))
    assert "stale" in str(stopped.axes[0].stop) and stopped.bus.phase == "Op"
    with pytest.raises(ValueError, match="given back"):
        controller.answer()
    # Another one is told that they are, and goes on.
    with run.cycle.controller() as controller:
        request = controller.wait(TIMEOUT)
        assert request.axes[0].stop is not None and request.axes[0].phase == "holding"


def test_an_answer_that_cannot_be_is_one_sentence_and_stops_nothing(start: Start, robot: str) -> None:
    run = start(robot)
    with run.cycle.controller() as controller:
        controller.wait(TIMEOUT)
        with pytest.raises(onbeat.CommandError, match='"axis-1" is in mode csp: expected Position, found Velocity'):
            controller.answer(axes={"axis-1": Velocity(1.0)})
        with pytest.raises(onbeat.CommandError, match="expected a finite number"):
            controller.answer(axes={"axis-1": Position(math.nan)})
        with pytest.raises(onbeat.CommandError, match="for 1 axes, the robot has 6"):
            controller.answer(axes=[Position(0.0)])
        with pytest.raises(KeyError, match="there is no axis 'tail'; there are: axis-1"):
            controller.answer(axes={"tail": Position(0.0)})
        with pytest.raises(TypeError, match="expected a Position"):
            controller.answer(axes={"axis-1": 1.0})  # type: ignore[dict-item]
        with pytest.raises(ValueError, match="expected one of disable, enable"):
            controller.answer(drives="on")
        with pytest.raises(onbeat.CommandError, match="is an input"):
            controller.answer(outputs={"drive-1.statusword": 1})
        with pytest.raises(onbeat.CommandError, match="is written by axis"):
            controller.answer(outputs={"drive-1.controlword": 1})
        with pytest.raises(KeyError, match="there is no signal"):
            controller.wait(TIMEOUT).signal("drive-1.nothing")
        controller.wait(TIMEOUT)
        controller.answer(drives={"axis-1": "enable"})
    assert run.cycle.diagnostics().get("controller", {}).get("wrong", 0) == 0


def test_outputs_and_commands_cross_and_the_end_of_the_cycle_ends_it(start: Start, tmp_path: Path) -> None:
    text = (ROOT / "examples/io-station.toml").read_text()
    text = text[: text.index("[controller]")] + '[controller]\nkind = "external"\nmax_late = 500\n'
    path = tmp_path / "station.toml"
    path.write_text(text)
    run = start(str(path))
    with run.cycle.controller() as controller, run.cycle.command() as command:
        end = time.monotonic() + TIMEOUT
        for request in controller:
            assert time.monotonic() < end
            with pytest.raises(onbeat.CommandError, match="expected true or false"):
                controller.answer(outputs={"lamp green": 1})
            with pytest.raises(onbeat.CommandError, match="written by outside"):
                controller.answer(outputs={"lamp red": True})
            fresh = request.command.freshness == "fresh"
            controller.answer(outputs={"lamp green": not fresh}, commanded=True)
            command.send(axes=[Velocity(0.5)], ttl=0.5)
            if request.signal("lamp green").value is False:
                assert request.command.axes == (Velocity(0.5),)
                break
        run.kill()
        # The request of the cycle after the answer may have come before.
        assert len(list(controller)) <= 1


def test_a_robot_with_its_own_controllers_takes_none(start: Start) -> None:
    run = start("m4k.toml")
    with pytest.raises(onbeat.LeaseError, match="takes no controller process"):
        run.cycle.controller()


def test_every_mode_has_a_target() -> None:
    def enums(node: object) -> Iterator[list[str]]:
        if isinstance(node, dict):
            if isinstance(node.get("enum"), list):
                yield node["enum"]
            node = list(node.values())
        if isinstance(node, list):
            for part in node:
                yield from enums(part)

    schema = json.loads((ROOT / "crates/robot/robot.schema.json").read_text())
    modes = [it for it in enums(schema) if "csp" in it]
    assert modes and all(set(it) == set(_MODES) for it in modes)
