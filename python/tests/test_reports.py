"""HTML reports in Chromium: a plot tells values, and shows a part of itself larger."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ONBEAT, TIMEOUT, ROOT
from patient import patient

CHROMIUM = shutil.which("chromium")

# Drags over a part of the first plot, and tells what became of it.
DRAG = """<script>//<![CDATA[
addEventListener('load', () => {
  const plot = document.querySelector('figure svg[data-x]'), box = plot.getBoundingClientRect();
  plot.setPointerCapture = () => {};
  const fire = (type, across, down) => plot.dispatchEvent(new PointerEvent(type, {
    clientX: box.left + across * box.width, clientY: box.top + down * box.height, pointerId: 1, bubbles: true }));
  const told = [plot.getAttribute('viewBox')];
  fire('pointerdown', 0.25, 0.25);
  fire('pointermove', 0.5, 0.75);
  told.push(plot.nextSibling.textContent);
  fire('pointerup', 0.5, 0.75);
  told.push(plot.getAttribute('viewBox'), plot.nextSibling.textContent);
  plot.dispatchEvent(new MouseEvent('dblclick', { bubbles: true }));
  told.push(plot.getAttribute('viewBox'));
  document.title = told.join('|');
});
//]]></script></body>"""


# feature(measure): HTML reports tell values and enlarge parts of plots, in Chromium
@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium (Debian: chromium)")
def test_a_part_of_a_plot_is_enlarged_and_put_back(tmp_path: Path) -> None:
    recording, page = tmp_path / "run.mcap", tmp_path / "run.html"
    commands: list[list[str | Path]] = [
        ["run", patient(ROOT / "examples/six-axis.toml", tmp_path, "5ms"), "--no-ipc", "--cycles", "200", "--record", recording],
        ["report", recording, "--html", page],
    ]
    for arguments in commands:
        command: list[str | Path] = [ONBEAT, *arguments]
        subprocess.run(command, cwd=ROOT, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    page.write_text(page.read_text().replace("</body>", DRAG))
    browser = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", page.as_uri()]
    found = subprocess.run(browser, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=TIMEOUT, check=True).stdout
    title = re.search("<title>(.*?)</title>", found)
    assert title is not None
    before, readout, enlarged, part, after = title[1].split("|")
    assert before == after == "0 0 960 420"
    assert re.match(r"x [-0-9.e]+, y [-0-9.e]+ ", readout), readout
    assert [float(number) for number in enlarged.split()] == pytest.approx([240, 105, 240, 210], abs=1)
    ends = re.match(r"x ([-0-9.e]+) to ([-0-9.e]+), y ([-0-9.e]+) to ([-0-9.e]+); a double click shows all", part)
    assert ends is not None, part
    low_x, high_x, low_y, high_y = map(float, ends.groups())
    assert low_x < high_x
    assert low_y < high_y
