/** When a picture is taken: at a value of a channel, or at a mark (an event, a fault, a late cycle). */
class Trigger {
  constructor() {
    this.mode = "roll";
    this.source = "";
    this.edge = "rising";
    this.level = 0;
    this.window = 1;
    this.pre = 0.25;
    this.arm(-Infinity);
  }

  /** Looks for the next instant from this time on. */
  arm(time) {
    this.from = time;
    this.armed = time;
    /** Instant that was found; its picture is complete a little later. */
    this.at = null;
    this.done = false;
  }

  get rolls() {
    return this.mode === "roll";
  }

  /** The picture that is complete: its rows and its instant, null without one. */
  look(store, marks) {
    if (this.rolls || this.done || !store.length) return null;
    if (this.from === -Infinity) this.arm(store.newest);
    this.at ??= this.find(store, marks);
    const newest = store.newest;
    let [at, forced] = [this.at, false];
    if (at === null && this.mode === "auto" && newest - this.armed > Math.max(this.window, 0.5)) {
      [at, forced] = [newest - (1 - this.pre) * this.window, true];
    }
    const end = at + (1 - this.pre) * this.window;
    if (at === null || newest < end) return null;
    this.arm(Math.max(end, forced ? newest : end));
    this.done = this.mode === "single";
    return { at, forced, store: store.copy(at - this.pre * this.window, end + 1e-9) };
  }

  find(store, marks) {
    const kinds = { "mark:any": () => true, "mark:fault": (it) => it.severity === "error", "mark:late": (it) => it.late };
    if (kinds[this.source]) {
      const mark = marks.find((it) => it.time > this.from && kinds[this.source](it));
      return mark ? mark.time : null;
    }
    const place = store.channels.findIndex((it) => it.name === this.source);
    if (place < 0) return null;
    const [values, level] = [store.columns[place], this.level];
    const crossed = {
      rising: (before, now) => before < level && now >= level,
      falling: (before, now) => before > level && now <= level,
      above: (_, now) => now > level,
      below: (_, now) => now < level,
    }[this.edge];
    let row = Math.max(store.first(this.from), 1);
    for (; row < store.length; row++) {
      if (crossed(values[row - 1], values[row])) return store.time[row];
    }
    this.from = store.time[store.length - 1];
    return null;
  }

  /** Its state in words, and their style. */
  words(paused, live) {
    if (paused) return ["paused", "warn"];
    if (!live) return ["no new cycles", "warn"];
    if (this.rolls) return ["rolling", "good"];
    if (this.done) return ["triggered, stopped", "good"];
    return this.at === null ? ["waiting for trigger", "warn"] : ["triggered", "good"];
  }
}
