"""Cycles that the tests run: the program itself, with simulated drives."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from patient import patient

import onbeat

ROOT = Path(__file__).resolve().parents[2]
ONBEAT = Path(os.environ.get("ONBEAT", ROOT / "target/debug/onbeat"))
TIMEOUT = 60.0
"""s; the machine may be busy."""


class Run:
    """`onbeat run` in a process of its own, and an attachment to it."""

    def __init__(self, robot: Path, folder: Path) -> None:
        # What is asked of the system for a cycle without delay is not asked for here: other tests run, too.
        arguments: list[str | Path] = [ONBEAT, "run", robot, "--profile", "none", "--ipc", folder / "ipc.sock"]
        self.log = folder / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                arguments, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )
        self.path = folder / "ipc.sock"
        self.cycle = self._attach()

    def _attach(self) -> onbeat.Cycle:
        end = time.monotonic() + TIMEOUT
        while True:
            try:
                return onbeat.attach(path=self.path)
            except onbeat.NoCycleError:
                assert self.process.poll() is None, self.log.read_text()
                assert time.monotonic() < end, f"no shared-memory interface within {TIMEOUT} s: {self.log.read_text()}"
                time.sleep(0.02)

    def until(self, what: Callable[[onbeat.State], bool]) -> onbeat.State:
        """The first state of which this holds."""
        end = time.monotonic() + TIMEOUT
        for state in self.cycle.states(timeout=TIMEOUT):
            if what(state):
                return state
            assert time.monotonic() < end, f"{state} after {TIMEOUT} s: {self.log.read_text()}"
        raise AssertionError(f"the cycle has ended: {self.log.read_text()}")

    def until_enabled(self) -> onbeat.State:
        """The first state in which every axis does what it is asked for."""
        return self.until(lambda state: all(axis.phase == "following" for axis in state.axes))

    def outages(self) -> int:
        """How often the cycle held its axes for want of replies."""
        log = self.log.read_text()
        return log.count("(outage)") + log.count("this computer stalled")

    def kill(self) -> None:
        """Ends the process at once, as nobody can prevent."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def end(self) -> None:
        """Ends it in order."""
        self.cycle.close()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(timeout=TIMEOUT)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


Start = Callable[[str], Run]


@pytest.fixture
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Starts cycles that end with the test."""
    if not ONBEAT.exists():
        pytest.fail(f"{ONBEAT} is not there: `cargo build`, or set ONBEAT to the path of the program")
    runs: list[Run] = []

    def run(robot: str) -> Run:
        folder = tmp_path_factory.mktemp("run")
        runs.append(Run(patient(ROOT / "examples" / robot, folder, "4ms"), folder))
        return runs[-1]

    yield run
    for it in runs:
        it.end()


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """What takes longer than this has not been woken."""
    begin = time.monotonic()
    yield
    assert time.monotonic() - begin < seconds
