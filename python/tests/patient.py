"""Robots for a machine that does much else: a slow cycle, whose axes and drives stand it when that stands still for a while.

Of `python/tests`, and of `lab/peers`.
"""

from __future__ import annotations

import re
from pathlib import Path


def patient(robot: Path, folder: Path, period: str) -> Path:
    """A copy of a robot file in `folder`: the drives stay in Op without process data for 5 s, and get no quick stop for 2 s."""
    text = re.sub("(?m)^outage_time = .*\n", "", robot.read_text())
    text, cycles = re.subn("(?m)^period = .*", f'period = "{period}"\noutage_time = "2s"', text)
    text, buses = re.subn("(?m)^\\[bus\\]\n", '[bus]\nprocess_data_watchdog = "5s"\n', text)
    assert (cycles, buses) == (1, 1), f"{robot}: expected one period and one [bus], found {cycles} and {buses}"
    copy = folder / f"patient-{robot.name}"
    copy.write_text(text.replace('urdf = "', f'urdf = "{robot.parent}/'))
    return copy
