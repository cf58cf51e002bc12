/** Tabs over the panels; one is shown. */
function tabs() {
  const names = ["axes", "bus", "signals", "timing", "events"];
  const show = (chosen) => {
    for (const name of names) {
      $(name).hidden = name !== chosen;
      $(`tab-${name}`).setAttribute("aria-selected", String(name === chosen));
    }
    remember("tab", chosen);
  };
  for (const name of names) {
    const tab = element("button", { id: `tab-${name}`, role: "tab", onclick: () => show(name) }, name[0].toUpperCase() + name.slice(1));
    $("tabs").append(tab);
  }
  const last = remembered("tab", "axes");
  show(names.includes(last) ? last : "axes");
}

const GOOD_STATES = ["Operation enabled"];
const BAD_STATES = ["Fault", "Fault reaction active", "no answer"];

/** The table of axes: state, cause of a stop, values, limits. */
class AxesPanel {
  constructor(scope) {
    this.scope = scope;
  }

  attach(axes) {
    this.axes = axes;
    const panel = $("axes");
    panel.replaceChildren();
    if (!axes.length) panel.append("The robot has no axes.");
    this.rows = table(panel, [
      { name: "axis", style: "head text" }, { name: "state", style: "text" }, { name: "set-points", style: "text" },
      { name: "stopped", style: "text wrap long" }, { name: "position [rad]" }, { name: "range", style: "text" },
      { name: "velocity [rad/s]" }, { name: "effort [N m]" }, { name: "target" }, { name: "following error" },
      { name: "limits", style: "text long" },
    ], "cards");
    const unit = { position: "rad", velocity: "rad/s", torque: "N m" };
    this.fixed = axes.map((axis) => {
      const add = () => this.scope.choose([...this.scope.chosen, ...["position", "following error"].map((it) => `${axis.name} ${it}`)]);
      const name = element("button", { className: "link", title: "Put it on the scope", onclick: add }, axis.name);
      const dot = element("i");
      const where = element("span", { className: "where" }, dot);
      const range = axis.position_limits ? `${number(axis.position_limits[0], 2)} to ${number(axis.position_limits[1], 2)} rad, ` : "";
      const limits = `${range}${number(axis.velocity_limit, 2)} rad/s, ${number(axis.effort_limit, 2)} N m`;
      return { name, dot, where: axis.position_limits ? where : "", limits, unit: unit[mode(axis)] ?? "" };
    });
  }

  show(picture) {
    this.rows?.show(
      picture.axes.map((values, place) => {
        const [state, phase, stop, fresh, homed, position, velocity, effort, target, error] = values;
        const { name, dot, where, limits, unit } = this.fixed[place];
        const range = this.axes[place].position_limits;
        if (range) dot.style.left = `${Math.min(Math.max((position - range[0]) / (range[1] - range[0]), 0), 1) * 5.3}rem`;
        const style = BAD_STATES.includes(state) ? "bad" : GOOD_STATES.includes(state) ? "good" : "warn";
        const of = (value, digits) => (value === null ? "-" : `${value.toFixed(digits)} ${unit}`);
        return [
          name, [fresh ? state : `${state} (old)`, style], homed ? phase : `${phase}, not homed`, [stop ?? "", "bad"],
          number(position), where, number(velocity), number(effort), of(target, 4), of(error, 5), limits,
        ];
      }),
    );
  }
}

function mode(axis) {
  return { csp: "position", ip: "position", pp: "position", csv: "velocity", pv: "velocity", cst: "torque", tq: "torque" }[axis.mode] ?? axis.mode;
}

/** The table of signals, with a search. */
class SignalsPanel {
  constructor(scope) {
    this.scope = scope;
  }

  attach(signals) {
    const panel = $("signals");
    this.signals = signals;
    this.search = element("input", { type: "search", placeholder: "Search signals" });
    this.search.setAttribute("aria-label", "Search signals");
    this.count = element("span", { className: "aside" });
    panel.replaceChildren(element("div", { className: "bar" }, this.search, this.count));
    this.rows = table(panel, [
      { name: "signal", style: "head text" }, { name: "value" }, { name: "unit", style: "text" }, { name: "way", style: "text" },
      { name: "type", style: "text" }, { name: "SubDevice", style: "text" }, { name: "writer", style: "text" }, { name: "", style: "text long" },
    ], "cards");
    this.names = signals.map((signal) => {
      const add = () => this.scope.choose([...this.scope.chosen, signal.name]);
      return element("button", { className: "link", title: "Put it on the scope", onclick: add }, signal.name);
    });
    this.search.oninput = () => this.picture && this.show(this.picture);
  }

  show(picture) {
    this.picture = picture;
    if ($("signals").hidden) return;
    const words = this.search.value.toLowerCase().split(/\s+/);
    const places = [...this.signals.keys()].filter((place) => {
      const text = `${this.signals[place].name} ${this.signals[place].sub_device}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
    say(this.count, `${places.length} of ${this.signals.length}${places.length > 300 ? ", the first 300 shown" : ""}`);
    this.rows.show(
      places.slice(0, 300).map((place) => {
        const it = this.signals[place];
        const [value, flags] = picture.signals[place] ?? [null, 0];
        const text = typeof value === "boolean" ? String(value) : Number.isInteger(value) ? String(value) : number(value);
        const state = [flags & 2 && "forced", !(flags & 1) && "old"].filter(Boolean).join(", ");
        return [this.names[place], text, it.unit, it.direction, it.type, it.sub_device, it.writer ?? "", [state, "warn"]];
      }),
    );
  }
}

/** Histograms, figures and late cycles. */
class TimingPanel {
  constructor(scope) {
    this.scope = scope;
    this.late = new Map();
  }

  attach() {
    this.late.clear();
    [this.counted, this.unlisted] = [undefined, 0];
    this.tiles = element("div", { className: "tiles" });
    this.charts = element("div", { className: "charts" });
    this.notes = element("div");
    this.about = element("p", { className: "aside" });
    $("timing").replaceChildren(this.tiles, this.charts, element("h2", {}, "Late cycles"), this.about);
    this.rows = table($("timing"), [{ name: "cycle", style: "text" }, { name: "late by" }, { name: "why", style: "text wrap" }]);
    this.rows.frame.classList.add("list");
    $("timing").append(this.notes);
  }

  picture({ timing, clock }) {
    if (!this.tiles) return;
    const last = ([now, , mean, most]) => `${microseconds(now)}, mean ${microseconds(mean)}, max ${microseconds(most)}`;
    tiles(this.tiles, [
      ["cycles in Op", grouped(timing.cycles)], ["overruns", grouped(timing.overruns), timing.overruns ? "bad" : ""],
      ["releases skipped", grouped(timing.skipped), timing.skipped ? "bad" : ""], ["period jitter", last(timing.period_jitter), "small"],
      ["wake-up latency", last(timing.wakeup_latency), "small"], ["execution time", last(timing.execution), "small"],
      ["clock lock", clock.lock], ["phase error", microseconds(Math.abs(clock.phase_error_ns))],
    ]);
  }

  overrun({ cycle, time }) {
    const text = `cycle ${cycle} ran past the next release`;
    if (!this.late.has(cycle)) this.add(cycle, time, "overrun", text);
  }

  add(cycle, time, by, text) {
    if (!this.late.has(cycle)) this.scope.mark({ time, severity: "warning", late: true, text });
    this.late.set(cycle, [grouped(cycle), by, text]);
    while (this.late.size > 200) this.late.delete(this.late.keys().next().value);
    this.rows?.show([...this.late.values()].reverse());
  }

  show({ histograms, bounds, diagnostics, start_ns }) {
    for (const it of diagnostics?.late?.newest ?? []) {
      if (this.late.get(it.cycle)?.[2] !== it.sentence) this.add(it.cycle, (it.release_ns - start_ns) / 1e9, microseconds(it.late_ns), it.sentence);
    }
    const late = diagnostics?.late;
    this.unlisted += Math.max(0, (late?.count ?? 0) - (this.counted ?? late?.count ?? 0) - (late?.newest.length ?? 0));
    this.counted = late?.count;
    const more = this.unlisted ? `, and ${grouped(this.unlisted)} more are not` : "";
    say(this.about, late
      ? `${grouped(late.count)} cycles were late by more than ${microseconds(late.above_ns)}; the newest are listed and marked on the scope's axis${more}.`
      : "Cycles that ran past the next release. Start the run with --explain for all late cycles with what made them late.");
    const notes = [...(diagnostics?.warnings ?? [])];
    this.notes.replaceChildren(...notes.map((it) => element("p", { className: "warn" }, it)));
    if ($("timing").hidden) return;
    while (this.charts.children.length < histograms.length) {
      this.charts.append(element("figure", {}, element("canvas"), element("figcaption")));
    }
    histograms.forEach((it, place) => {
      const [canvas, caption] = this.charts.children[place].children;
      bars(canvas, bounds, it.counts);
      say(caption, it.count
        ? `${it.name}: ${grouped(it.count)} cycles, median ${microseconds(it.median)}, 99 % ${microseconds(it.p99)}, 99.9 % ${microseconds(it.p999)}, most ${microseconds(it.maximum)} in cycle ${it.maximum_cycle}`
        : `${it.name}: no cycle in Op since a page looks`);
    });
  }
}

function tiles(parent, values) {
  values.forEach(([name, text, style], place) => {
    parent.children[place] ?? parent.append(element("div", { className: "tile" }, element("span"), element("b")));
    const [label, value] = parent.children[place].children;
    say(label, name);
    say(value, text, style ?? "");
  });
}

/** A histogram; counts on a scale on which one cycle of many is seen. */
function bars(canvas, bounds, counts) {
  const { context: it, width, height } = pen(canvas);
  const colours = theme();
  const high = Math.log10(Math.max(...counts, 10) + 1);
  const [left, bottom] = [34, height - 18];
  const step = (width - left - 8) / counts.length;
  it.fillStyle = colours.aside;
  it.textAlign = "right";
  for (let power = 0; power <= high; power++) {
    const y = bottom - (Math.log10(10 ** power + 1) / high) * (bottom - 8);
    line(it, colours.grid, left, y, width, y);
    it.fillText(10 ** power >= 1e4 ? `1e${power}` : String(10 ** power), left - 4, y + 4);
  }
  it.fillStyle = colours.main;
  counts.forEach((count, place) => {
    const tall = (Math.log10(count + 1) / high) * (bottom - 8);
    it.fillRect(left + place * step + 0.5, bottom - tall, Math.max(step - 1, 1), tall);
  });
  it.fillStyle = colours.aside;
  it.textAlign = "center";
  bounds.forEach((bound, place) => {
    if (place % 10 === 0) it.fillText(bound >= 1e6 ? `${bound / 1e6} ms` : `${bound / 1e3} us`, Math.min(left + (place + 1) * step, width - 16), height - 4);
  });
}

/** Events, the newest first. */
class EventsPanel {
  constructor(scope) {
    this.scope = scope;
    this.list = element("ul");
    $("events").append(this.list);
  }

  add(time, { cycle, severity, sentence, event }) {
    this.scope.mark({ time, severity, text: `cycle ${cycle}: ${sentence}` });
    this.line(`cycle ${grouped(cycle)}`, sentence || event, { ok: "", warning: "warn", error: "bad" }[severity] ?? "warn");
  }

  line(when, text, style) {
    this.list.prepend(element("li", {}, element("time", {}, when), element("span", { className: style }, text)));
    while (this.list.children.length > 300) this.list.lastChild.remove();
    say($("tab-events"), `Events (${this.list.children.length})`);
  }
}
