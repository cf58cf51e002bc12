"""The examples that need nothing but the package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from conftest import TIMEOUT, ROOT, Start


# feature(ipc): Python: an example that drives a base, with the package alone
def test_the_example_drives_a_base_as_far_as_it_is_told(start: Start) -> None:
    run = start("m4k.toml")
    run.until_enabled()
    command: list[str | Path] = [sys.executable, ROOT / "python/examples/drive.py", "0.2"]
    environment = os.environ | {"ONBEAT_IPC": str(run.path)}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT)
    assert ran.returncode == 0, ran.stderr
    told = float(ran.stdout.removeprefix("at x ").split(" ")[0])
    assert abs(told - 0.2) < 0.03, ran.stdout
    state = run.cycle.state()
    assert abs(state.base.pose[0] - 0.2) < 0.03 and max(map(abs, state.velocities)) < 0.05
