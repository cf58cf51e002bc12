const WINDOWS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60];

/** Channels that the server sends to one page. */
const MOST_CHANNELS = 64;

/** The scope: its channels, its picture, and what a person does with it. */
class Scope {
  /** `wish`: asks the server for these channels, and returns the number of the wish. */
  constructor(wish) {
    this.ask = wish;
    this.channels = [];
    this.store = new Store([]);
    this.trigger = Object.assign(new Trigger(), remembered("trigger", {}));
    this.trigger.arm(-Infinity);
    this.capture = null;
    this.paused = false;
    this.live = false;
    this.marks = [];
    /** Visible part, from the newest row or the trigger's instant; null for all of the window. */
    this.zoom = null;
    /** Cursors, on the same axis; null without. */
    this.cursors = null;
    this.wished = 0;
    this.dirty = true;
    this.legend = new Map();
    this.controls();
    this.pointers();
    addEventListener("resize", () => (this.dirty = true));
    dark.addEventListener("change", () => this.legendRows());
    const draw = () => {
      if (this.dirty) this.draw();
      requestAnimationFrame(draw);
    };
    requestAnimationFrame(draw);
  }

  get chosen() {
    return this.store.channels.map((it) => it.name);
  }

  /** Goes over to a cycle with these channels; those chosen before stay where it has them too. */
  attach(channels, axes) {
    this.channels = channels.map(([name, unit], id) => ({ id, name, unit }));
    const known = new Set(this.channels.map((it) => it.name));
    let wanted = linked([...known]);
    if (!wanted.length) wanted = remembered("channels", []).filter((name) => known.has(name));
    if (!wanted.length) {
      const few = axes.slice(0, 3).map((it) => it.name);
      wanted = [...few.map((name) => `${name} position`), `${few[0]} following error`].filter((name) => known.has(name));
    }
    if (!wanted.length) wanted = this.channels.slice(0, 4).map((it) => it.name);
    this.wished = 0;
    this.choose(wanted);
  }

  /** Has these channels on the screen; the first ones where they are too many. */
  choose(names) {
    const byName = new Map(this.channels.map((it) => [it.name, it]));
    const chosen = [...new Set(names)].flatMap((name) => byName.get(name) ?? []).slice(0, MOST_CHANNELS);
    remember("channels", chosen.map((it) => it.name));
    // The same object stays for the same channel, so that it keeps its past.
    const same = new Map(this.store.channels.map((it) => [it.name, it]));
    this.store = this.store.with(chosen.map((it) => Object.assign(same.get(it.name) ?? {}, it)));
    this.wished = this.ask(chosen.map((it) => it.id));
    if (this.capture) this.capture = null;
    this.trigger.arm(-Infinity);
    this.sources();
    this.legendRows();
    this.dirty = true;
  }

  /** Takes rows of this wish. */
  rows(wish, numbers, rows) {
    if (wish !== this.wished || this.paused) return;
    this.store.append(numbers, rows);
    const found = this.trigger.look(this.store, this.marks);
    if (found) {
      this.capture = found;
      if (this.trigger.done) this.run(false);
    }
    this.dirty = true;
  }

  mark(mark) {
    this.marks.push(mark);
    this.marks.sort((one, other) => one.time - other.time);
    this.marks.splice(0, this.marks.length - 500);
    this.dirty = true;
  }

  /** Rows on the screen, the instant their times are counted from, and the visible part. */
  picture() {
    const { trigger, capture } = this;
    if (!trigger.rolls && capture) {
      const whole = { from: -trigger.pre * trigger.window, to: (1 - trigger.pre) * trigger.window };
      return { store: capture.store, origin: capture.at, whole };
    }
    return { store: this.store, origin: this.store.length ? this.store.newest : 0, whole: { from: -trigger.window, to: 0 } };
  }

  draw() {
    this.dirty = false;
    const { store, origin, whole } = this.picture();
    const visible = this.zoom ?? whole;
    const view = { from: origin + visible.from, to: origin + visible.to };
    const cursors = (this.cursors ?? []).map((time) => origin + time);
    const { trigger } = this;
    const place = store.channels.findIndex((it) => it.name === trigger.source);
    const level = !trigger.rolls && place >= 0 ? trigger.level : null;
    const time = !trigger.rolls && this.capture && !this.capture.forced ? this.capture.at : null;
    this.drawn = plot($("plot"), store, view, { marks: this.marks, cursors, origin, trigger: { place, level, time } });
    Object.assign(this.drawn, { store, origin, visible });
    say($("status"), ...trigger.words(this.paused && !trigger.done, this.live));
    this.values(store, view, cursors);
  }

  /** Values in the legend: at the cursors, or the newest that is visible. */
  values(store, view, cursors) {
    store.channels.forEach((channel, place) => {
      const cell = this.legend.get(channel.name);
      if (!cell) return;
      if (cursors.length) {
        const [a, b] = cursors.map((time) => store.at(place, time));
        say(cell, `A ${number(a)}  B ${number(b)}  Δ ${number(b - a)}`);
      } else {
        say(cell, `${number(store.at(place, view.to))}${channel.unit && channel.unit !== "bit" ? ` ${channel.unit}` : ""}`);
      }
    });
    const deltas = $("deltas");
    deltas.hidden = !cursors.length;
    $("legend").className = cursors.length ? "two" : "";
    if (cursors.length) {
      const [a, b] = this.cursors;
      const hertz = b === a ? "" : `   1/Δt ${number(1 / Math.abs(b - a), 3)} Hz`;
      say(deltas, `A ${seconds(a)}   B ${seconds(b)}\nΔt ${seconds(b - a)}${hertz}`);
    }
  }

  legendRows() {
    this.dirty = true;
    const body = $("legend").tBodies[0];
    this.legend.clear();
    body.replaceChildren(
      ...this.store.channels.map((channel, place) => {
        const swatch = element("span", { className: "swatch" });
        swatch.style.background = colour(place);
        const value = element("td", { className: "value" });
        this.legend.set(channel.name, value);
        const away = element("button", { title: `Take ${channel.name} away`, onclick: () => this.choose(this.chosen.filter((it) => it !== channel.name)) }, "×");
        return element("tr", {}, element("td", {}, swatch), element("td", { className: "name" }, channel.name), value, element("td", {}, away));
      }),
    );
  }

  /** What a trigger can look at. */
  sources() {
    const marks = [["mark:any", "any event"], ["mark:fault", "a fault"], ["mark:late", "a late cycle"]];
    const all = [...this.chosen.map((name) => [name, name]), ...marks];
    $("source").replaceChildren(...all.map(([value, text]) => element("option", { value }, text)));
    if (!all.some(([value]) => value === this.trigger.source)) this.trigger.source = all[0][0];
    this.show();
  }

  /** Brings the controls in line. */
  show() {
    const { trigger } = this;
    $("mode").value = trigger.mode;
    $("window").value = String(trigger.window);
    $("source").value = trigger.source;
    $("edge").value = trigger.edge;
    $("pre").value = String(trigger.pre);
    if (document.activeElement !== $("level")) $("level").value = trigger.level;
    $("triggers").hidden = trigger.rolls;
    const byValue = !trigger.source.startsWith("mark:");
    $("level").hidden = !byValue;
    $("middle").hidden = !byValue;
    $("edge").parentElement.hidden = !byValue;
    say($("run"), this.paused ? "Run" : "Pause");
    $("cursors").setAttribute("aria-pressed", String(!!this.cursors));
    const { mode, source, edge, level, window, pre } = trigger;
    remember("trigger", { mode, source, edge, level, window, pre });
    this.dirty = true;
  }

  run(on) {
    this.paused = !on;
    if (on) this.trigger.arm(this.store.length ? this.store.newest : -Infinity);
    this.show();
  }

  controls() {
    $("window").replaceChildren(...WINDOWS.map((it) => element("option", { value: String(it) }, seconds(it))));
    const set = (id, key, read = (text) => text) =>
      ($(id).onchange = () => {
        const value = read($(id).value);
        if (typeof value === "number" && !Number.isFinite(value)) return;
        this.trigger[key] = value;
        this.zoom = null;
        if (key === "mode") this.capture = null;
        if (!this.paused || key === "mode") this.run(true);
        this.show();
      });
    set("mode", "mode");
    set("window", "window", Number);
    set("source", "source");
    set("edge", "edge");
    set("level", "level", Number);
    set("pre", "pre", Number);
    $("run").onclick = () => this.run(this.paused);
    $("middle").onclick = () => this.middle();
    $("fit").onclick = () => this.look(null);
    $("cursors").onclick = () => {
      const { from, to } = this.drawn.visible;
      this.cursors = this.cursors ? null : [from + (to - from) / 3, from + ((to - from) * 2) / 3];
      this.show();
    };
    $("csv").onclick = () => this.save();
  }

  /** Puts the trigger's level in the middle of what its channel shows. */
  middle() {
    const { store, origin, visible } = this.drawn;
    const place = store.channels.findIndex((it) => it.name === this.trigger.source);
    if (place < 0 || !store.length) return;
    const [first, last] = [visible.from, visible.to].map((time) => store.first(origin + time));
    const values = store.columns[place].subarray(first, last).filter((it) => !Number.isNaN(it));
    if (!values.length) return;
    const [low, high] = values.reduce(([low, high], it) => [Math.min(low, it), Math.max(high, it)], [Infinity, -Infinity]);
    this.trigger.level = +((low + high) / 2).toPrecision(5);
    this.trigger.arm(this.store.newest);
    this.show();
  }

  look(zoom) {
    this.zoom = zoom;
    this.dirty = true;
  }

  /** Rows on the screen, as text. */
  csv() {
    const { store, origin, visible } = this.drawn;
    return store.csv(origin + visible.from, origin + visible.to, origin);
  }

  save() {
    const link = element("a", { href: URL.createObjectURL(new Blob([this.csv()], { type: "text/csv" })), download: "onbeat-scope.csv" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  /** Zooms by a factor around a place on the screen; a rolling picture keeps its newest row at the right. */
  scale(factor, at) {
    const { visible, time, origin } = this.drawn;
    const centre = this.trigger.rolls && !this.paused ? visible.to : time(at) - origin;
    const span = (visible.to - visible.from) * factor;
    if (span < 1e-5 || span > 200) return;
    this.look({ from: centre - (centre - visible.from) * factor, to: centre + (visible.to - centre) * factor });
  }

  pan(pixels) {
    const { visible, left, right } = this.drawn;
    if (this.trigger.rolls && !this.paused) this.run(false);
    const by = (pixels / (right - left)) * (visible.to - visible.from);
    this.look({ from: visible.from - by, to: visible.to - by });
  }

  pointers() {
    const canvas = $("plot");
    const down = new Map();
    let cursor = null;
    canvas.onwheel = (event) => {
      event.preventDefault();
      this.scale(1.2 ** Math.sign(event.deltaY), event.offsetX);
    };
    canvas.ondblclick = () => this.look(null);
    canvas.onpointerdown = (event) => {
      canvas.setPointerCapture(event.pointerId);
      down.set(event.pointerId, event.offsetX);
      const near = (this.cursors ?? []).findIndex((it) => Math.abs(this.drawn.x(this.drawn.origin + it) - event.offsetX) < 12);
      cursor = near < 0 ? null : near;
    };
    canvas.onpointermove = (event) => {
      if (!down.has(event.pointerId)) return this.tip(event);
      const [before, now] = [down.get(event.pointerId), event.offsetX];
      const other = [...down].find(([id]) => id !== event.pointerId)?.[1];
      down.set(event.pointerId, now);
      if (cursor !== null) {
        this.cursors[cursor] = this.drawn.time(now) - this.drawn.origin;
        this.dirty = true;
      } else if (other !== undefined) {
        const apart = Math.max(Math.abs(now - other), 5);
        this.scale(Math.max(Math.abs(before - other), 5) / apart, (now + other) / 2);
      } else if (now !== before) this.pan(now - before);
    };
    canvas.onpointerup = canvas.onpointercancel = (event) => {
      down.delete(event.pointerId);
      if (!down.size) cursor = null;
    };
    canvas.onpointerleave = () => ($("tip").hidden = true);
    canvas.onkeydown = (event) => {
      const { left, right } = this.drawn;
      const keys = {
        ArrowLeft: () => this.pan(40), ArrowRight: () => this.pan(-40), "+": () => this.scale(1 / 1.2, (left + right) / 2),
        "-": () => this.scale(1.2, (left + right) / 2), " ": () => this.run(this.paused), Escape: () => this.look(null),
      };
      if (keys[event.key]) {
        event.preventDefault();
        keys[event.key]();
      }
    };
  }

  /** Words of the mark below the pointer. */
  tip(event) {
    const near = (this.drawn?.shown ?? []).filter((mark) => Math.abs(this.drawn.x(mark.time) - event.offsetX) < 5);
    const tip = $("tip");
    tip.hidden = !near.length;
    if (!near.length) return;
    say(tip, near.slice(-4).map((it) => it.text).join("; "));
    tip.style.left = `${Math.min(event.offsetX + 12, Math.max(0, $("plot").clientWidth - 240))}px`;
    tip.style.top = `${event.offsetY + 16}px`;
  }
}

/** Channels that the page's address asks for: `#channels=axis-1 position,*velocity`, where * stands for anything. */
function linked(names) {
  const asked = new URLSearchParams(location.hash.slice(1)).get("channels");
  const fits = (pattern) => {
    const parts = pattern.trim().split("*").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    return new RegExp(`^${parts.join(".*")}$`);
  };
  return (asked ? asked.split(",") : []).flatMap((pattern) => names.filter((name) => fits(pattern).test(name)));
}

/** The dialog in which channels are chosen. */
function picker(scope) {
  const [dialog, search, choices] = [$("picker"), $("search"), $("choices")];
  const show = () => {
    const words = search.value.toLowerCase().split(/\s+/);
    const chosen = new Set(scope.chosen);
    const found = scope.channels.filter((it) => words.every((word) => it.name.toLowerCase().includes(word)));
    say($("picked"), `${chosen.size} of at most ${MOST_CHANNELS} chosen; ${found.length} of ${scope.channels.length} shown${found.length > 600 ? ", the first 600" : ""}`);
    choices.replaceChildren(
      ...found.slice(0, 600).map((channel) => {
        const box = element("input", { type: "checkbox", checked: chosen.has(channel.name) });
        box.disabled = !box.checked && chosen.size >= MOST_CHANNELS;
        box.onchange = () => {
          scope.choose(box.checked ? [...scope.chosen, channel.name] : scope.chosen.filter((it) => it !== channel.name));
          show();
        };
        return element("label", {}, box, ` ${channel.name}`, element("span", { className: "aside" }, channel.unit ? ` ${channel.unit}` : ""));
      }),
    );
  };
  // The list stays where it was scrolled to.
  const kept = (act) => () => {
    const top = choices.scrollTop;
    act();
    choices.scrollTop = top;
  };
  search.oninput = show;
  $("pick").onclick = () => {
    show();
    dialog.showModal();
    search.focus();
  };
  $("none").onclick = kept(() => {
    scope.choose([]);
    show();
  });
  $("done").onclick = () => dialog.close();
  dialog.onclick = (event) => event.target === dialog && dialog.close();
}
