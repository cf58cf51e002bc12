const MARGIN = { left: 62, right: 10, top: 16, bottom: 22 };

/** Round steps for a scale, some of them in a length. */
function ticks(low, high, count) {
  const raw = (high - low) / Math.max(count, 1);
  const decade = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((it) => it * decade).find((it) => it >= raw) ?? raw;
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-6 && found.length < 50; at += step) found.push(at);
  return { found, digits: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
}

/** Lowest and highest visible value of channels. */
function extent(store, places, first, last) {
  let [low, high] = [Infinity, -Infinity];
  for (const place of places) {
    const column = store.columns[place];
    for (let row = first; row < last; row++) {
      const value = column[row];
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  if (low > high) return [0, 1];
  const room = Math.max((high - low) * 0.08, Math.abs(high) * 1e-6, 1e-9);
  return [low - room, high + room];
}

/** Channels of one unit share a scale; each unit has a pane of its own below the one before. */
function panes(channels, height) {
  const units = [...new Set(channels.map((it) => it.unit))];
  const weight = (unit) => (unit === "bit" ? 0.5 : 1);
  const whole = units.reduce((sum, unit) => sum + weight(unit), 0);
  const gap = 8;
  const room = height - MARGIN.top - MARGIN.bottom - gap * (units.length - 1);
  let top = MARGIN.top;
  return units.map((unit) => {
    const high = (room * weight(unit)) / whole;
    const pane = { unit, top, height: high, places: channels.flatMap((it, place) => (it.unit === unit ? [place] : [])) };
    top += high + gap;
    return pane;
  });
}

/** Draws the rows of a store from view.from to view.to; marks and cursors on the same axis. */
function plot(canvas, store, view, { marks, cursors, origin, trigger }) {
  const { context: it, width, height } = pen(canvas);
  const colours = theme();
  const [left, right] = [MARGIN.left, width - MARGIN.right];
  const x = (time) => left + ((time - view.from) / (view.to - view.from)) * (right - left);
  const bottom = height - MARGIN.bottom;
  const first = Math.max(store.first(view.from) - 1, 0);
  const last = Math.min(store.first(view.to) + 1, store.length);
  it.lineWidth = 1;
  const scale = ticks(view.from - origin, view.to - origin, (right - left) / 110);
  it.textAlign = "center";
  for (const tick of scale.found) {
    const at = x(tick + origin);
    line(it, colours.grid, at, MARGIN.top, at, bottom);
    it.fillStyle = colours.aside;
    const text = Math.abs(tick) < 1e-12 ? "0 s" : seconds(tick);
    it.fillText(text, Math.min(Math.max(at, left + 16), right - 16), height - 6);
  }
  gaps(it, store, first, last, (time) => Math.max(x(time), left), colours, bottom);
  const all = panes(store.channels, height);
  for (const pane of all) {
    drawPane(it, store, pane, { first, last, x, left, right, colours, trigger });
  }
  if (trigger.time !== null && trigger.time >= view.from && trigger.time <= view.to) {
    it.fillStyle = colours.main;
    triangle(it, x(trigger.time), MARGIN.top - 2);
    line(it, colours.main, x(trigger.time), MARGIN.top, x(trigger.time), bottom, [2, 4]);
  }
  const shown = marks.filter((mark) => mark.time >= view.from && mark.time <= view.to);
  for (const mark of shown) {
    const shade = mark.severity === "error" ? colours.bad : mark.severity === "ok" ? colours.good : colours.warn;
    const at = x(mark.time);
    it.fillStyle = shade;
    it.fillRect(at - 2.5, 3, 5, 9);
    // Many lines would hide the curves.
    if (shown.length <= 40) line(it, shade, at, 12, at, bottom, [1, 3]);
  }
  cursors.forEach((time, place) => {
    const at = x(time);
    if (at < left || at > right) return;
    line(it, colours.ink, at, MARGIN.top, at, bottom, [5, 3]);
    it.fillStyle = colours.ink;
    it.textAlign = "center";
    it.fillText("AB"[place], at, 12);
  });
  return { x, time: (at) => view.from + ((at - left) / (right - left)) * (view.to - view.from), shown, panes: all, left, right };
}

function drawPane(it, store, pane, { first, last, x, left, right, colours, trigger }) {
  const [low, high] = pane.unit === "bit" ? [-0.15, 1.15] : extent(store, pane.places, first, last);
  const y = (value) => pane.top + pane.height - ((value - low) / (high - low)) * pane.height;
  it.strokeStyle = colours.line;
  it.strokeRect(left, pane.top, right - left, pane.height);
  it.textAlign = "right";
  it.fillStyle = colours.aside;
  const scale = pane.unit === "bit" ? { found: [0, 1], digits: 0 } : ticks(low, high, Math.max(2, pane.height / 36));
  for (const tick of scale.found) {
    line(it, colours.grid, left, y(tick), right, y(tick));
    const text = Math.abs(tick) >= 1e5 || scale.digits > 5 ? tick.toExponential(1) : tick.toFixed(scale.digits);
    it.fillText(text, left - 5, Math.min(Math.max(y(tick) + 4, pane.top + 9), pane.top + pane.height));
  }
  if (trigger.level !== null && pane.places.includes(trigger.place)) {
    line(it, colours.main, left, y(trigger.level), right, y(trigger.level), [2, 4]);
  }
  it.save();
  it.beginPath();
  it.rect(left, pane.top, right - left, pane.height);
  it.clip();
  it.lineWidth = 1.4;
  for (const place of pane.places) {
    it.strokeStyle = colour(place);
    it.beginPath();
    curve(it, store, store.columns[place], first, last, x, y, right - left);
    it.stroke();
  }
  it.restore();
  it.textAlign = "left";
  it.fillStyle = colours.aside;
  it.fillText(pane.unit || "no unit", left + 5, pane.top + 12);
}

/** A curve of all rows, or where many fall on a pixel of the lowest and highest of each. */
function curve(it, store, column, first, last, x, y, width) {
  let drawn = false;
  const dense = last - first > 3 * width;
  let [pixel, low, high, end] = [-1, 0, 0, 0];
  const flush = () => {
    if (pixel < 0) return;
    if (drawn) it.lineTo(pixel, y(low));
    else it.moveTo(pixel, y(low));
    it.lineTo(pixel, y(high));
    it.lineTo(pixel, y(end));
    [drawn, pixel] = [true, -1];
  };
  for (let row = first; row < last; row++) {
    const value = column[row];
    if (Number.isNaN(value) || (row > first && isGap(store, row))) {
      flush();
      drawn = false;
      if (Number.isNaN(value)) continue;
    }
    const at = x(store.time[row]);
    if (!dense) {
      if (drawn) it.lineTo(at, y(value));
      else it.moveTo(at, y(value));
      drawn = true;
      continue;
    }
    const here = Math.round(at);
    if (here !== pixel) {
      flush();
      [pixel, low, high] = [here, value, value];
    }
    if (value < low) low = value;
    if (value > high) high = value;
    end = value;
  }
  flush();
}

/** True where rows of cycles before this one are missing, or another cycle's begin. */
function isGap(store, row) {
  return store.cycle[row] !== store.cycle[row - 1] + 1;
}

/** Shades the times of cycles that are missing. */
function gaps(it, store, first, last, x, colours, bottom) {
  it.fillStyle = colours.line;
  for (let row = first + 1; row < last; row++) {
    if (isGap(store, row)) {
      const from = x(store.time[row - 1]);
      it.globalAlpha = 0.5;
      it.fillRect(from, MARGIN.top, Math.max(x(store.time[row]) - from, 1), bottom - MARGIN.top);
      it.globalAlpha = 1;
    }
  }
}

function line(it, shade, x0, y0, x1, y1, dash = []) {
  it.setLineDash(dash);
  it.strokeStyle = shade;
  it.lineWidth = 1;
  it.beginPath();
  it.moveTo(x0, y0);
  it.lineTo(x1, y1);
  it.stroke();
  it.setLineDash([]);
}

function triangle(it, x, y) {
  it.beginPath();
  it.moveTo(x - 5, y - 7);
  it.lineTo(x + 5, y - 7);
  it.lineTo(x, y);
  it.fill();
}
