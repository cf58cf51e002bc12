/** SubDevices as the cable runs, with their health; working counters; clocks. */
class BusPanel {
  constructor() {
    this.counters = [];
  }

  attach() {
    this.tree = null;
    this.counters = [];
    this.tiles = element("div", { className: "tiles" });
    this.note = element("p", { className: "aside" });
    this.changes = element("p", { className: "aside" });
    $("bus").replaceChildren(this.tiles, this.note);
    this.rows = table($("bus"), [
      { name: "SubDevice", style: "head text" }, { name: "AL state", style: "text" }, { name: "trouble", style: "text wrap long" },
      { name: "clock off by" }, { name: "port 0", style: "text" }, { name: "port 1", style: "text" }, { name: "port 2", style: "text" },
      { name: "port 3", style: "text" }, { name: "ESC", style: "text" },
    ], "cards");
    $("bus").append(element("h2", {}, "Working counters"));
    this.datagrams = table($("bus"), [{ name: "datagram", style: "text" }, { name: "expected" }, { name: "received" }]);
    $("bus").append(this.changes);
    say(this.note, "The bus has not answered yet.");
  }

  found(tree) {
    this.tree = tree.sub_devices ?? null;
    if (tree.why) say(this.note, `The bus cannot be asked: ${tree.why}`, "warn");
    const label = (it) => `${it.position} ${it.name}`;
    const cable = branches(this.tree ?? []);
    this.names = (this.tree ?? []).map((it, place) => {
      const branch = cable[place];
      const node = element("span", {}, element("span", { className: "tree" }, branch), label(it));
      if (it.remarks?.length) node.title = it.remarks.join("; ");
      return node;
    });
  }

  picture({ bus, clock }) {
    if (!this.tiles) return;
    tiles(this.tiles, [
      ["phase", bus.phase, bus.phase === "Op" ? "good" : "warn"], ["inputs", bus.all_fresh ? "all fresh" : "some are old", bus.all_fresh ? "good" : "bad"],
      ["frames sent", grouped(bus.frames_sent)], ["frames lost", grouped(bus.frames_lost), bus.frames_lost ? "warn" : ""],
      ["frames rejected", grouped(bus.frames_rejected), bus.frames_rejected ? "warn" : ""],
      ["cycles with a wrong WKC", grouped(bus.broken_cycles), bus.broken_cycles ? "warn" : ""],
      ["largest clock difference", microseconds(bus.clock_difference_ns)], ["lock to the reference clock", clock.lock],
    ]);
  }

  show({ status }) {
    const all = status.sub_devices;
    all.forEach((it, place) => {
      if (it.errors) this.counters[place] = { errors: it.errors, links: it.links };
    });
    const reference = status.reference_clock === null ? "none" : `SubDevice ${status.reference_clock}`;
    const ring = status.ring ? (status.ring.open ? "; the ring is open" : "; the ring is closed") : "";
    say(this.note, `As of cycle ${grouped(status.cycle)}; reference clock: ${reference}${ring}. Each port: link, and errors it has counted: invalid frames, RX errors, forwarded, lost links.`, "aside");
    if ($("bus").hidden) return;
    this.rows.show(
      all.map((it, place) => {
        const trouble = [
          it.al_status_code && `0x${it.al_status_code.toString(16).padStart(4, "0")}: ${it.al_status_text}`,
          !it.exchanges && !it.waits && it.state !== "absent" && `no process data for ${it.missed} cycles`,
        ].filter(Boolean).join("; ");
        const { errors, links } = this.counters[place] ?? {};
        const ports = [0, 1, 2, 3].map((port) => portText(errors?.ports[port], links?.[port]));
        const esc = errors ? (errors.processing_unit_errors || errors.pdi_errors ? [`${errors.processing_unit_errors} processing, ${errors.pdi_errors} PDI`, "warn"] : "0") : "";
        const state = it.state === "Op" ? "good" : it.state === "absent" ? "" : "bad";
        const name = this.names?.[place] ?? `SubDevice ${place}`;
        const clock = it.clock_difference_ns === null ? "-" : `${it.clock_difference_ns} ns`;
        return [name, [it.state, state], [trouble, "bad"], clock, ...ports, esc];
      }),
    );
    this.datagrams.show(status.working_counters.map(({ expected, received }, place) => [
      String(place), String(expected), [received === null ? "frame lost" : String(received), received === expected ? "good" : "bad"],
    ]));
    const history = status.working_counter_history;
    const last = history.changes.slice(-8).map((it) => (it.short
      ? `cycle ${grouped(it.cycle)}: ${it.short} short, the first is datagram ${it.datagram} with ${it.received ?? "none"} of ${it.expected}`
      : `cycle ${grouped(it.cycle)}: all complete`));
    say(this.changes, `${grouped(history.short_cycles)} cycles with one that was short. ${last.join("; ")}`);
  }
}

function portText(errors, link) {
  if (!link) return "";
  if (!link.link) return ["no link", "aside"];
  if (!errors) return "link";
  const counts = [errors.invalid_frames, errors.rx_errors, errors.forwarded_rx_errors, errors.lost_links];
  return counts.some(Boolean) ? [`link ${counts.join(" / ")}`, "warn"] : "link 0";
}

/** Indents of SubDevices: a line stays a line, a junction opens branches. */
function branches(tree) {
  const indents = [];
  const children = new Map();
  for (const it of tree) {
    const parent = it.upstream?.position;
    children.set(parent, [...(children.get(parent) ?? []), it]);
  }
  return tree.map((it, place) => {
    const parent = it.upstream?.position;
    if (parent === undefined || parent >= place) return (indents[place] = "");
    const siblings = children.get(parent);
    const mine = siblings.length > 1 ? "  " : "";
    indents[place] = indents[parent] + mine;
    return mine ? `${indents[parent]}${siblings.at(-1) === it ? "└ " : "├ "}` : indents[place];
  });
}
